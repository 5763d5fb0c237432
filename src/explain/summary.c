/* layer 3 (explain): incidents that are alike as one statement, and what they cost together. */
#include "src/explain/summary.h"

#include "src/explain/explain_impl.h"

#include <stdlib.h>

#define TABLE_ROWS  6
#define WORST_TOLD  3
#define WORST_LEAST (10 * NS_PER_US) /* shorter incidents are not listed as worst */

/* When it began to cost time; or when it was noticed. */
static ns_t begin_of(const struct incident *i)
{
    return i->episodes ? i->from : i->start;
}

/* --- Groups ----------------------------------------------------------------------------------- */

/* The group of an incident; a new one has room for `max` incidents. NULL: no memory. */
static struct group *group_of(struct summary *s, const struct incident *i, uint32_t max)
{
    uint32_t *of;
    struct group *g;

    for (g = s->groups; g < s->groups + s->n; g++)
        if (g->cause == i->cause && g->place == i->place && g->sentence == i->facts[0].sentence)
            return g;
    of = calloc(max, sizeof *of);
    if (!of)
        return NULL;
    s->n++;
    *g = (struct group){.of = of,
                        .cause = i->cause,
                        .place = i->place,
                        .sentence = i->facts[0].sentence,
                        .least = i->bill,
                        .first = begin_of(i),
                        .one_src = true,
                        .one_dst = true};
    return g;
}

static void group_add(struct group *g, const struct explainer *x, uint32_t number)
{
    const struct incident *i = &x->incidents[number], *one = g->n ? &x->incidents[g->of[0]] : i;

    g->of[g->n++] = number;
    g->more += i->times;
    g->bill += i->bill;
    g->least = i->bill < g->least ? i->bill : g->least;
    g->most = i->bill > g->most ? i->bill : g->most;
    g->first = begin_of(i) < g->first ? begin_of(i) : g->first;
    g->last = begin_of(i) > g->last ? begin_of(i) : g->last;
    g->one_src &= conn_addr_eq(&i->src, &one->src);
    g->one_dst &= conn_addr_eq(&i->dst, &one->dst);
    for (unsigned k = 0; k < TIME_STATES; k++)
        g->states[k] += i->states[k];
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Number of different values other than 0; sorts `v`. */
static uint32_t count_different(uint32_t *v, uint32_t n)
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

    if (v != w && (v >= WEIGHT_FAILED || w >= WEIGHT_FAILED))
        return w - v;
    if (g->bill != h->bill)
        return g->bill < h->bill ? 1 : -1;
    return v != w ? w - v : g->of[0] < h->of[0] ? -1 : g->of[0] > h->of[0];
}

static int by_count(const void *a, const void *b)
{
    const struct group *g = a, *h = b;

    if (g->n + g->more != h->n + h->more)
        return g->n + g->more < h->n + h->more ? 1 : -1;
    return by_cost(a, b);
}

bool explain_is_selected(const struct incident *i, const struct explain_opts *o)
{
    ns_t end = i->stop > i->start ? i->stop : i->start;
    bool late = o->since && end < o->since, early = o->until && begin_of(i) > o->until;

    return explain_is_shown(i, o->conn) && !late && !early && (!o->wanted || o->wanted(o->user, i));
}

/* --- Time ------------------------------------------------------------------------------------- */

static bool is_same_direction(const struct timeline_row *a, const struct timeline_row *b)
{
    return a->conn == b->conn && a->dqpn == b->dqpn && conn_addr_eq(&a->src, &b->src) && conn_addr_eq(&a->dst, &b->dst);
}

/* True if a direction is counted by its account `at`: of those of several taps, the one that knows most. The accounts
 * of a connection stand together, from `first` on. */
static bool knows_most(const struct timeline *t, size_t first, size_t at)
{
    const struct timeline_row *r = timeline_row(t, at);

    for (size_t i = first; i < timeline_n(t) && timeline_row(t, i)->conn == r->conn; i++) {
        const struct timeline_row *o = timeline_row(t, i);
        ns_t more = r->states[TIME_NOT_KNOWN] - o->states[TIME_NOT_KNOWN];
        if (i != at && is_same_direction(o, r) && (more > 0 || (more == 0 && i < at)))
            return false;
    }
    return true;
}

static ns_t lost_time(const struct timeline_row *r)
{
    ns_t lost = 0;

    for (unsigned k = 0; k < TIME_STATES; k++)
        lost += time_state_costs((enum time_state)k) ? r->states[k] : 0;
    return lost;
}

/* Add up the time of the connections: each direction at the tap where least of its time is not known. */
static void add_times(struct summary *s, const struct explainer *x, const struct explain_opts *o)
{
    size_t first = 0;
    uint32_t conn = 0, hit = 0; /* the connections counted last */

    for (size_t i = 0; i < timeline_n(x->timeline); i++) {
        const struct timeline_row *r = timeline_row(x->timeline, i);
        if (r->conn != timeline_row(x->timeline, first)->conn)
            first = i;
        if ((o->conn && r->conn != o->conn) || !knows_most(x->timeline, first, i))
            continue;
        s->time += r->last - r->first - r->states[TIME_CM];
        s->lost += lost_time(r);
        s->conns += r->conn != conn;
        conn = r->conn;
        if (lost_time(r) && r->conn != hit) {
            s->hit++;
            hit = r->conn;
        }
    }
}

/* Put each incident that is shown into its group. False: no memory. */
static bool make_groups(struct summary *s, const struct explainer *x, const struct explain_opts *o)
{
    s->groups = calloc(x->n + 1u, sizeof *s->groups);
    for (uint32_t i = 0; s->groups && i < x->n; i++) {
        struct group *g;
        if (!explain_is_selected(&x->incidents[i], o))
            continue;
        g = group_of(s, &x->incidents[i], x->n);
        if (!g)
            return false;
        group_add(g, x, i);
        s->incidents++;
    }
    return s->groups != NULL;
}

/* How many connections each group is about. False: no memory. */
static bool count_conns(struct summary *s, const struct explainer *x)
{
    uint32_t *conns = calloc(x->n + 1u, sizeof *conns);

    if (!conns)
        return false;
    for (struct group *g = s->groups; g < s->groups + s->n; g++) {
        for (uint32_t i = 0; i < g->n; i++)
            conns[i] = x->incidents[g->of[i]].conn;
        g->conns = count_different(conns, g->n);
    }
    free(conns);
    return true;
}

bool summary_make(struct summary *s, struct explainer *x, const struct explain_opts *o)
{
    *s = (struct summary){0};
    if (!make_groups(s, x, o) || !count_conns(s, x))
        return false;
    qsort(s->groups, s->n, sizeof *s->groups, o->by_count ? by_count : by_cost);
    add_times(s, x, o);
    if (o->since || o->until)
        s->lost = 0;
    for (uint32_t i = 0; (o->since || o->until) && i < s->n; i++)
        s->lost += s->groups[i].bill;
    return true;
}

void summary_free(struct summary *s)
{
    for (uint32_t i = 0; s->groups && i < s->n; i++)
        free(s->groups[i].of);
    free(s->groups);
}

/* --- Text ------------------------------------------------------------------------------------- */

static double percent(ns_t part, ns_t all)
{
    return all > 0 ? 100.0 * (double)part / (double)all : 0;
}

/* " (12.3 %)"; nothing for a negligible part. */
static void put_share(struct buf *b, ns_t part, ns_t all)
{
    double p = percent(part, all);

    if (p >= 0.1)
        buf_printf(b, " (%.*f %%)", p < 99.95 ? 1 : 0, p);
}

static void put_cause(struct buf *b, const struct group *g)
{
    buf_puts(b, cause_table[g->cause].name);
    if (g->place)
        buf_printf(b, " %s", place_str((enum place)g->place));
}

/* One sentence: how many failures, how much lost time, and its main causes. */
static void put_verdict(const struct summary *s, const struct explain_opts *o, struct buf *b)
{
    const struct group *worst = &s->groups[0], *failed = &s->groups[0];
    bool part = o->since || o->until;
    struct buf text = {0};

    for (uint32_t i = 1; i < s->n; i++) {
        if (s->groups[i].bill > worst->bill)
            worst = &s->groups[i];
        if (cause_table[s->groups[i].cause].weight > cause_table[failed->cause].weight)
            failed = &s->groups[i];
    }
    if (cause_table[failed->cause].weight >= WEIGHT_FAILED) {
        put_cause(&text, failed);
        if (failed->conns)
            buf_printf(&text, " on %s", count_str(failed->conns, "connection"));
        buf_puts(&text, s->lost ? "; " : ".");
    }
    if (s->lost) {
        buf_rounded(&text, s->lost);
        if (!part) {
            buf_puts(&text, " of ");
            buf_rounded(&text, s->time);
            put_share(&text, s->lost, s->time);
        }
        buf_puts(&text, " were lost");
        if (!part && s->conns > 1)
            buf_printf(&text, " on %u of %u connections", s->hit, s->conns);
        if (worst->bill) {
            buf_printf(&text, ", %.0f %% of that to ", percent(worst->bill < s->lost ? worst->bill : s->lost, s->lost));
            put_cause(&text, worst);
        }
        buf_char(&text, '.');
    }
    if (text.len)
        buf_paragraph(b, buf_str(&text), 0, explain_columns(o));
    buf_free(&text);
}

static void put_end(struct buf *b, const struct incident *i)
{
    if (!i->conn || i->flow == FLOW_NONE) {
        buf_puts(b, "-");
        return;
    }
    buf_printf(b, "%u: ", i->conn);
    conn_addr_put(b, &i->src);
    buf_puts(b, " > ");
    conn_addr_put(b, &i->dst);
}

static void put_table(const struct summary *s, const struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    buf_printf(b, "\n%10s %8s %7s  %-36s %s\n", "lost", "share", "count", "cause", "worst connection");
    for (uint32_t i = 0; i < s->n && i < TABLE_ROWS; i++) {
        const struct group *g = &s->groups[i];
        struct buf cell = {0};
        buf_rounded(&cell, g->bill);
        buf_printf(b, "%10s %6.1f %% %7llu  ", g->bill ? buf_str(&cell) : "-",
                   percent(g->bill, o->since || o->until ? s->lost : s->time), (unsigned long long)(g->n + g->more));
        cell.len = 0;
        put_cause(&cell, g);
        buf_printf(b, "%-36s ", buf_str(&cell));
        put_end(b, &x->incidents[g->of[0]]);
        buf_char(b, '\n');
        buf_free(&cell);
    }
    if (s->n > TABLE_ROWS)
        buf_printf(b, "%28s%s\n", "", count_str(s->n - TABLE_ROWS, "more kind"));
}

/* The most expensive incidents. */
static void put_worst(const struct summary *s, const struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    const struct incident *told[WORST_TOLD] = {0};
    unsigned n = 0;

    for (uint32_t g = 0; g < s->n; g++)
        for (uint32_t i = 0; i < s->groups[g].n && i < WORST_TOLD; i++) {
            const struct incident *at = &x->incidents[s->groups[g].of[i]];
            for (unsigned k = 0; k < WORST_TOLD; k++)
                if (!told[k] || at->worst_bill > told[k]->worst_bill) {
                    const struct incident *moved = told[k];
                    told[k] = at;
                    at = moved;
                    if (!at)
                        break;
                }
        }
    while (n < WORST_TOLD && told[n] && told[n]->worst_bill >= WORST_LEAST)
        n++;
    if (!n || !o->put_time)
        return;
    buf_printf(b, "Worst moment%s:\n", n == 1 ? "" : "s");
    for (unsigned k = 0; k < n; k++) {
        buf_puts(b, "  ");
        o->put_time(o->user, b, told[k]->worst);
        buf_puts(b, "  ");
        buf_rounded(b, told[k]->worst_bill);
        buf_printf(b, ", %s", cause_table[told[k]->cause].name);
        if (told[k]->n_frames)
            buf_printf(b, ", frame %u", told[k]->frames[0]);
        buf_char(b, '\n');
    }
}

void summary_put(const struct summary *s, const struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    if (!s->n)
        return;
    put_verdict(s, o, b);
    put_table(s, x, o, b);
    put_worst(s, x, o, b);
    buf_char(b, '\n');
}

/* "10.0.0.1 > 10.0.0.2", "all to 10.0.0.2", "all from 10.0.0.1". */
static void put_shared(struct buf *b, const struct group *g, const struct incident *one)
{
    if (g->one_src && g->one_dst) {
        buf_puts(b, ", ");
        conn_addr_put(b, &one->src);
        buf_puts(b, " > ");
        conn_addr_put(b, &one->dst);
    } else if (g->one_dst || g->one_src) {
        buf_puts(b, g->one_dst ? ", all to " : ", all from ");
        conn_addr_put(b, g->one_dst ? &one->dst : &one->src);
    }
}

void group_put(const struct group *g, const struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    const struct incident *one = &x->incidents[g->of[0]];

    put_cause(b, g);
    buf_printf(b, ": %llu times", (unsigned long long)(g->n + g->more));
    if (g->conns)
        buf_printf(b, " on %s", count_str(g->conns, "connection"));
    if (one->conn && one->flow != FLOW_NONE)
        put_shared(b, g, one);
    if (g->bill) {
        buf_puts(b, ", ");
        buf_rounded(b, g->bill);
        buf_puts(b, " lost (");
        buf_rounded(b, g->least);
        buf_puts(b, " to ");
        buf_rounded(b, g->most);
        buf_puts(b, " each)");
    }
    buf_char(b, '\n');
    if (o->put_time) {
        buf_puts(b, "  from ");
        o->put_time(o->user, b, g->first);
        buf_puts(b, " to ");
        o->put_time(o->user, b, g->last);
        buf_char(b, '\n');
    }
}

void bill_put(struct buf *b, ns_t all, const ns_t states[TIME_STATES])
{
    const char *sep = ": ";

    buf_rounded(b, all);
    for (unsigned i = 0; i < TIME_STATES; i++)
        if (states[i] > 0) {
            buf_puts(b, sep);
            buf_rounded(b, states[i]);
            buf_printf(b, " %s", time_state_words((enum time_state)i));
            sep = ", ";
        }
}
