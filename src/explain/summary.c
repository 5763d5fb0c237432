/* layer 3 (explain): incidents that are alike as one statement, and what they cost together. */
#include "bitset.h"
#include "src/explain/compare/taps.h"
#include "src/explain/congestion/congestion.h"
#include "src/explain/explain_impl.h"

#include <stdlib.h>

/* When it began to cost time; or when it was noticed. */
static ns_t begin_of(const struct incident *i)
{
    return i->episodes ? i->from : i->start;
}

/* When the time that it cost was over. */
static ns_t end_of(const struct incident *i)
{
    ns_t begin = begin_of(i), end = i->episodes ? i->stop : ns_sum(i->start, i->lost);

    return end > begin ? end : begin;
}

/* What of a bill for the time between `from` and `to` lies between --since and --until: all of it, or a part as large
 * as that of its time. What several waits cost is taken to be spread evenly. */
static ns_t part_within(ns_t bill, ns_t from, ns_t to, const struct explain_opts *o)
{
    ns_t all = to - from;

    if (all <= 0)
        return bill;
    from = o->since && o->since > from ? o->since : from;
    to = o->until && o->until < to ? o->until : to;
    return to <= from ? 0 : to - from == all ? bill : (ns_t)((__int128)bill * (to - from) / all);
}

static ns_t bill_within(const struct incident *i, const struct explain_opts *o)
{
    return part_within(i->bill, begin_of(i), end_of(i), o);
}

struct moment incident_worst(const struct incident *i, const struct explain_opts *o)
{
    ns_t at = o->since && o->since > i->worst ? o->since : i->worst, wait = incident_setup_wait(i);

    if (wait) {
        at = o->since && o->since > i->start ? o->since : i->start;
        return (struct moment){i, at, part_within(wait, i->start, ns_sum(i->start, wait), o)};
    }
    return (struct moment){i, at, part_within(i->worst_bill, i->worst, i->worst_end, o)};
}

/* --- Groups ----------------------------------------------------------------------------------- */

/* What a group has in common: the cause, and the place, which two taps show, or else lies before or after the tap. */
struct kind_of_incident {
    uint32_t passed, missed;
    uint32_t at;          /* the tap that `place` is about, of several: see place_tap_put() */
    uint8_t cause, place; /* place: only if `passed` is 0 */
    uint32_t number;      /* of the incident */
};

/* The tap that the place of an incident is about, for place_tap_put(). */
static uint32_t place_tap(const struct explainer *x, const struct incident *i)
{
    bool files = false;

    if (!x->several_taps || i->passed || i->place == PLACE_UNKNOWN || i->tap + 1 >= PLACE_ONE_FILE)
        return 0;
    for (uint32_t f = 0; f < EXPLAIN_FILES; f++)
        files |= x->begun[f] && f != x->first_tap >> 16;
    return (i->tap + 1) | (files ? 0 : PLACE_ONE_FILE);
}

static struct kind_of_incident kind_of(const struct explainer *x, uint32_t number)
{
    const struct incident *i = &x->incidents[number];

    return (struct kind_of_incident){.passed = i->passed,
                                     .missed = i->missed,
                                     .at = place_tap(x, i),
                                     .cause = (uint8_t)i->cause,
                                     .place = i->passed ? 0 : (uint8_t)i->place,
                                     .number = number};
}

static int compare(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b;
}

static int by_what(const struct kind_of_incident *k, const struct kind_of_incident *l)
{
    int c = compare(k->cause, l->cause);

    c = c ? c : compare(k->passed, l->passed);
    c = c ? c : compare(k->missed, l->missed);
    c = c ? c : compare(k->place, l->place);
    return c ? c : compare(k->at, l->at);
}

static int by_kind(const void *a, const void *b)
{
    const struct kind_of_incident *k = a, *l = b;
    int c = by_what(k, l);

    return c ? c : compare(k->number, l->number);
}

/* A new group, which begins with incident `i`, of which `bill` is counted; its members follow each other from `of` on.
 */
static struct group *group_new(struct summary *s, const struct incident *i, ns_t bill, uint32_t *of)
{
    struct group *g = &s->groups[s->n++];

    *g = (struct group){.of = of,
                        .cause = i->cause,
                        .place = i->place,
                        .passed = i->passed,
                        .missed = i->missed,
                        .least = bill,
                        .first = begin_of(i)};
    return g;
}

/* How many occurrences an incident stands for: duplicates and pause frames count each, and so do losses of one class,
 * and those that had no room for incidents of their own. */
static uint64_t occurrences(const struct incident *i)
{
    if (i->cause == CAUSE_DUPLICATE)
        return (uint64_t)i->n_frames + i->times;
    if (i->cause == CAUSE_PAUSE || i->of_time)
        return 1u + (uint64_t)i->times;
    return i->cause == CAUSE_PACKET_LOSS && i->supersedes ? i->supersedes : 1;
}

static void group_add(struct group *g, const struct explainer *x, uint32_t number, ns_t bill)
{
    const struct incident *i = &x->incidents[number];

    g->of[g->n++] = number;
    g->count += occurrences(i);
    g->messages += i->messages;
    g->missing |= i->missing != 0;
    g->failure = incident_failure(i) > g->failure ? incident_failure(i) : g->failure;
    g->bill = ns_sum(g->bill, bill);
    g->setup = ns_sum(g->setup, incident_setup_wait(i));
    g->least = bill < g->least ? bill : g->least;
    g->most = bill > g->most ? bill : g->most;
    g->first = begin_of(i) < g->first ? begin_of(i) : g->first;
    g->last = end_of(i) > g->last ? end_of(i) : g->last;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

uint32_t explain_count_values(uint32_t *v, uint32_t n)
{
    uint32_t count = 0;

    qsort(v, n, sizeof *v, by_number);
    for (uint32_t i = 0; i < n; i++)
        count += v[i] && (!i || v[i] != v[i - 1]);
    return count;
}

/* Failures first, then the most expensive; or the most frequent. */
static int by_cost(const void *a, const void *b)
{
    const struct group *g = a, *h = b;
    int v = cause_table[g->cause].weight, w = cause_table[h->cause].weight;
    ns_t cost = ns_sum(g->bill, g->setup), other = ns_sum(h->bill, h->setup);

    if (g->failure != h->failure)
        return h->failure - g->failure;
    if (cost != other)
        return cost < other ? 1 : -1;
    return v != w ? w - v : g->of[0] < h->of[0] ? -1 : g->of[0] > h->of[0];
}

static int by_count(const void *a, const void *b)
{
    const struct group *g = a, *h = b;

    if (g->count != h->count)
        return g->count < h->count ? 1 : -1;
    return by_cost(a, b);
}

bool explain_is_selected(const struct incident *i, const struct explain_opts *o)
{
    ns_t end = i->stop > i->start ? i->stop : i->start;
    bool late = o->since && end < o->since, early = o->until && begin_of(i) > o->until;

    return explain_is_shown(i, o->conn) && !late && !early && (!o->wanted || o->wanted(o->user, i));
}

/* --- Time ------------------------------------------------------------------------------------- */

void explain_times(const struct explainer *x, uint32_t conn, ns_t *time, ns_t *lost)
{
    *time = *lost = 0;
    for (size_t i = 0; i < timeline_n(x->timeline); i++) {
        const struct timeline_row *r = timeline_row(x->timeline, i);
        if ((conn && r->conn != conn) || !account_counts(x, r))
            continue;
        *time = ns_sum(*time, r->last - r->first - r->states[TIME_CM]);
        *lost = ns_sum(*lost, states_lost(r->states));
    }
}

/* Add up the time of the connections, and count them. */
static void add_times(struct summary *s, const struct explainer *x, const struct explain_opts *o)
{
    uint32_t conn = 0, hit = 0, both = 0; /* the connections counted last */
    const struct timeline_row *first = NULL;

    explain_times(x, o->conn, &s->time, &s->lost);
    for (size_t i = 0; i < timeline_n(x->timeline); i++) {
        const struct timeline_row *r = timeline_row(x->timeline, i);
        if ((o->conn && r->conn != o->conn) || !account_counts(x, r))
            continue;
        first = r->conn != conn ? r : first;
        s->conns += r->conn != conn;
        conn = r->conn;
        if (conn != both && (!conn_addr_eq(&r->src, &first->src) || r->dqpn != first->dqpn)) {
            s->both++;
            both = conn;
        }
        if (states_lost(r->states) && r->conn != hit) {
            s->hit++;
            hit = r->conn;
        }
    }
}

/* Those of iWARP, whose lost time is that of their incidents. */
static void add_streams(struct summary *s, const struct explainer *x, const struct explain_opts *o)
{
    struct bitset hit = {0};
    uint32_t conns = s->conns;

    s->time = ns_sum(s->time, explain_streams_time(x, o->conn, &s->conns));
    s->both += s->conns - conns;
    for (uint32_t i = 0; i < x->n; i++) {
        const struct incident *at = &x->incidents[i];
        if (!at->stream || !at->bill || !explain_is_selected(at, o))
            continue;
        s->lost = ns_sum(s->lost, at->bill);
        s->hit += !bitset_has(&hit, at->conn);
        bitset_add(&hit, at->conn);
    }
    bitset_free(&hit);
}

/* The incidents that are shown, those of a group behind each other. */
static uint32_t select_all(const struct explainer *x, const struct explain_opts *o, struct kind_of_incident *kinds)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < x->n; i++)
        if (explain_is_selected(&x->incidents[i], o))
            kinds[n++] = kind_of(x, i);
    if (n)
        qsort(kinds, n, sizeof *kinds, by_kind);
    return n;
}

/* Put each incident that is shown into its group. False: no memory. */
static bool make_groups(struct summary *s, const struct explainer *x, const struct explain_opts *o)
{
    struct kind_of_incident *kinds = calloc(x->n + 1u, sizeof *kinds);
    struct group *g = NULL;
    uint32_t n = 0;

    s->groups = calloc(x->n + 1u, sizeof *s->groups);
    s->members = calloc(x->n + 1u, sizeof *s->members);
    if (kinds && s->groups && s->members)
        n = select_all(x, o, kinds);
    for (uint32_t k = 0; k < n; k++) {
        const struct incident *i = &x->incidents[kinds[k].number];
        ns_t bill = bill_within(i, o);
        if (!k || by_what(&kinds[k], &kinds[k - 1])) {
            g = group_new(s, i, bill, &s->members[k]);
            g->at = kinds[k].at;
        }
        group_add(g, x, kinds[k].number, bill);
        s->setup = ns_sum(s->setup, incident_setup_wait(i));
        s->count += occurrences(i);
    }
    s->incidents = n;
    free(kinds);
    return kinds && s->groups && s->members;
}

static int by_address(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct conn_addr));
}

uint32_t explain_count_hosts(struct conn_addr *v, uint32_t n)
{
    static const struct conn_addr none;
    uint32_t count = 0;

    qsort(v, n, sizeof *v, by_address);
    for (uint32_t i = 0; i < n; i++)
        count += !conn_addr_eq(&v[i], &none) && (!i || !conn_addr_eq(&v[i], &v[i - 1]));
    return count;
}

/* Whether the incidents of a group are all about the same two hosts, in both directions. */
static bool is_between_two(const struct explainer *x, const struct group *g)
{
    const struct incident *a = &x->incidents[g->of[0]];
    bool two = g->srcs == 2 && g->dsts == 2;

    for (uint32_t k = 1; two && k < g->n; k++) {
        const struct incident *i = &x->incidents[g->of[k]];
        two = is_same_way(&i->src, &i->dst, &a->src, &a->dst) || is_same_way(&i->src, &i->dst, &a->dst, &a->src);
    }
    return two;
}

struct loss {
    ns_t at;
    const struct conn_addr *src;
    uint32_t host; /* number of `src` among those of the group */
};

static int by_sender(const void *a, const void *b)
{
    return by_address(((const struct loss *)a)->src, ((const struct loss *)b)->src);
}

static int by_time(const void *a, const void *b)
{
    const struct loss *v = a, *w = b;

    return v->at < w->at ? -1 : v->at > w->at;
}

/* The losses of a group, in the order of time. */
static void sort_losses(const struct explainer *x, const struct group *g, struct loss *v)
{
    for (uint32_t i = 0; i < g->n; i++)
        v[i] = (struct loss){.at = x->incidents[g->of[i]].start, .src = &x->incidents[g->of[i]].src};
    qsort(v, g->n, sizeof *v, by_sender);
    for (uint32_t i = 1; i < g->n; i++)
        v[i].host = v[i - 1].host + !conn_addr_eq(v[i].src, v[i - 1].src);
    qsort(v, g->n, sizeof *v, by_time);
}

/* How many hosts lost requests to the one that all of the group are for, at the same time. Room for all of the group:
 * `v`, and `lost`, the losses of each host within INCAST_WITHIN. */
static uint32_t count_met(const struct explainer *x, const struct group *g, struct loss *v, uint32_t *lost)
{
    uint32_t most = 0, now = 0, from = 0;

    if (g->dsts != 1 || g->srcs < 2 || (g->cause != CAUSE_PACKET_LOSS && g->cause != CAUSE_LOST_LAST_PACKET))
        return 0;
    sort_losses(x, g, v);
    memset(lost, 0, g->n * sizeof *lost);
    for (uint32_t to = 0; to < g->n; to++) {
        now += lost[v[to].host]++ == 0;
        for (; v[to].at - v[from].at >= INCAST_WITHIN; from++)
            now -= --lost[v[from].host] == 0;
        most = now > most ? now : most;
    }
    return most;
}

/* How many connections and hosts each group is about. False: no memory. */
static bool count_spread(struct summary *s, const struct explainer *x)
{
    uint32_t *conns = calloc(x->n + 1u, sizeof *conns);
    struct conn_addr *hosts = calloc(x->n + 1u, sizeof *hosts);
    struct loss *losses = calloc(x->n + 1u, sizeof *losses);
    bool room = conns && hosts && losses;

    for (struct group *g = s->groups; room && g < s->groups + s->n; g++) {
        for (uint32_t i = 0; i < g->n; i++)
            conns[i] = x->incidents[g->of[i]].conn;
        g->conns = explain_count_values(conns, g->n);
        for (uint32_t i = 0; i < g->n; i++)
            hosts[i] = x->incidents[g->of[i]].src;
        g->srcs = explain_count_hosts(hosts, g->n);
        for (uint32_t i = 0; i < g->n; i++)
            hosts[i] = x->incidents[g->of[i]].dst;
        g->dsts = explain_count_hosts(hosts, g->n);
        g->two = is_between_two(x, g);
        g->met = count_met(x, g, losses, conns);
    }
    free(conns);
    free(hosts);
    free(losses);
    return room;
}

bool summary_make(struct summary *s, struct explainer *x, const struct explain_opts *o)
{
    *s = (struct summary){0};
    if (!make_groups(s, x, o) || !count_spread(s, x))
        return false;
    qsort(s->groups, s->n, sizeof *s->groups, o->by_count ? by_count : by_cost);
    add_times(s, x, o);
    add_streams(s, x, o);
    if (o->since || o->until)
        s->lost = 0;
    for (uint32_t i = 0; (o->since || o->until) && i < s->n; i++)
        s->lost = ns_sum(s->lost, s->groups[i].bill);
    return true;
}

bool explain_cause_places(struct explainer *x, const struct explain_opts *o,
                          void (*take)(void *user, const struct cause_place *p), void *user)
{
    struct summary s;
    bool room = summary_make(&s, x, o);

    for (uint32_t i = 0; room && i < s.n; i++) {
        const struct group *g = &s.groups[i];
        take(user, &(struct cause_place){g->cause, g->place, g->passed, g->missed, g->at, g->count, g->bill});
    }
    summary_free(&s);
    return room;
}

void summary_free(struct summary *s)
{
    free(s->members);
    free(s->groups);
}
