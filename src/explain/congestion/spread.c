/* layer 3 (explain): pauses spread: whom a port pauses, what is behind it, who is a victim of it; ports that pause each
 * other in a cycle.
 *
 *     v ---+                       +--- r   The link to r is full, so `right` pauses the trunk, and then `left`
 *         left --- (trunk) --- right         pauses a and v.
 *     a ---+                       +--- d   v sends to d, whose link is idle: v is a victim.
 */
#include "src/explain/compare/taps.h"
#include "src/explain/congestion/congestion_impl.h"

#include <stdlib.h>

#define PORT_FULL      90 /* percent of a link in use, from which on a queue builds up before it */
#define PORT_IDLE      50 /* percent, up to which packets that wait for it wait for something else */
#define VICTIMS_NAMED  3
#define PASSING        64              /* packets, of which some would have passed */
#define DEADLOCK_LEAST (3 * PAUSE_MAX) /* pauses that were renewed again and again, all at the same time */

/* A flow that pauser number `by` holds. */
struct held {
    const struct flow *f;
    uint32_t flow, by;
};

struct spread {
    struct explainer *x;
    struct congestion *c;
    struct held *held; /* by flow as all taps know it, then by the time of its first packet */
    uint32_t n;
    uint64_t behind[PAUSERS]; /* what a pauser holds goes on to where these pausers hold it, a mask */
    ns_t *waited;             /* by flow: time that its account calls paused */
};

/* --- What a pauser holds ---------------------------------------------------------------------- */

static bool is_of_class(const struct pauser *a, const struct noted_headers *h)
{
    return !a->classes || a->classes >> h->class & 1;
}

bool pause_is_ahead(const struct explainer *x, const struct pauser *a, uint32_t flow)
{
    const struct flow_notes *t = x->notes[flow];
    const struct noted_headers *h = t ? &t->headers : NULL;
    uint32_t number = (uint32_t)(a - x->congestion->pausers);

    if (!h || !h->packets || conn_flow_at(observer_conns(x->observer), flow)->tap != a->tap)
        return false;
    if (a->way && h->way)
        return a->way != h->way;
    if (h->dmac == a->mac || h->smac == a->mac)
        return h->dmac == a->mac;
    /* It would have passed during the pauses had it gone the other way: so many packets, and none did. */
    return !(h->passed >> number & 1) && h->packets >= PASSING &&
           (uint64_t)a->paused * 8 > time_between(h->ts, h->last_ts);
}

static bool pause_holds(const struct explainer *x, const struct pauser *a, uint32_t flow)
{
    return pause_is_ahead(x, a, flow) && is_of_class(a, &x->notes[flow]->headers);
}

static int by_flow(const void *a, const void *b)
{
    return flow_order(((const struct held *)a)->f, ((const struct held *)b)->f);
}

/* Find what each pauser holds. False: no memory. */
static bool find_held(struct spread *s)
{
    struct conn_table *conns = observer_conns(s->x->observer);
    uint32_t flows = conn_counts(conns).flows, room = 0;

    for (unsigned pass = 0; pass < 2; pass++) {
        if (pass && !(s->held = calloc(room + 1u, sizeof *s->held)))
            return false;
        for (uint32_t k = 0; k < s->c->n_pausers; k++)
            for (uint32_t i = 0; i < flows; i++) {
                if (!pause_holds(s->x, &s->c->pausers[k], i))
                    continue;
                if (pass)
                    s->held[s->n++] = (struct held){conn_flow_at(conns, i), i, k};
                else
                    room++;
            }
    }
    if (s->n)
        qsort(s->held, s->n, sizeof *s->held, by_flow);
    return true;
}

bool passes_first(const struct explainer *x, uint32_t a, uint32_t b)
{
    const struct noted_headers *h = &x->notes[a]->headers, *g = &x->notes[b]->headers;
    struct conn_table *conns = observer_conns(x->observer);

    return h->psn == g->psn &&
           h->ts < explain_clock(x, conn_flow_at(conns, b)->tap, conn_flow_at(conns, a)->tap, g->ts);
}

static void find_behind(struct spread *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = i + 1; k < s->n && !by_flow(&s->held[i], &s->held[k]); k++) {
            const struct held *a = &s->held[i], *b = &s->held[k];
            if (a->f->tap == b->f->tap || s->c->pausers[a->by].mac == s->c->pausers[b->by].mac)
                continue;
            if (passes_first(s->x, a->flow, b->flow))
                s->behind[a->by] |= UINT64_C(1) << b->by;
            else if (passes_first(s->x, b->flow, a->flow))
                s->behind[b->by] |= UINT64_C(1) << a->by;
        }
}

static bool find_waits(struct spread *s)
{
    s->waited = calloc(conn_counts(observer_conns(s->x->observer)).flows + 1u, sizeof *s->waited);
    for (size_t i = 0; s->waited && i < timeline_n(s->x->timeline); i++) {
        const struct timeline_row *r = timeline_row(s->x->timeline, i);
        if (r->flow != FLOW_NONE)
            s->waited[r->flow] += r->states[TIME_PAUSED];
    }
    return s->waited != NULL;
}

/* --- Whom a port pauses ----------------------------------------------------------------------- */

static void tell_whom(struct spread *s, struct incident *st, uint32_t by)
{
    struct conn_addr *src = calloc(2 * (s->n + 1u), sizeof *src), *dst = src ? src + s->n + 1 : NULL;
    struct conn_addr one = {0};
    uint32_t n = 0, srcs, dsts;

    for (uint32_t i = 0; src && i < s->n; i++)
        if (s->held[i].by == by) {
            one = s->held[i].f->src;
            src[n] = one;
            dst[n++] = s->held[i].f->dst;
        }
    srcs = n ? explain_count_hosts(src, n) : 0;
    dsts = n ? explain_count_hosts(dst, n) : 0;
    if (srcs)
        incident_add(st, srcs == 1 ? SAY(PAUSES_HOST, .end = one, .n = dsts) : SAY(PAUSES_HOSTS, .n = srcs, .m = dsts));
    free(src);
}

/* The adapter of a host pauses the switch: all that comes from that MAC address is of the host. */
static void tell_whose(struct spread *s, struct incident *st, const struct pauser *a)
{
    struct conn_table *conns = observer_conns(s->x->observer);
    const struct flow *of = NULL;

    for (uint32_t i = 0; i < conn_counts(conns).flows; i++) {
        const struct flow_notes *t = s->x->notes[i];
        const struct flow *f = conn_flow_at(conns, i);
        if (!t || f->tap != a->tap || t->headers.smac != a->mac)
            continue;
        if (of && !conn_addr_eq(&of->src, &f->src))
            return;
        of = f;
    }
    if (of)
        incident_add(st, SAY(PAUSE_OF_HOST, .end = of->src, .address = a->mac));
}

/* --- What is behind it ------------------------------------------------------------------------ */

/* In most of the slices in which `a` pauses, `b` does, too. */
static bool goes_with(const struct pauser *a, const struct pauser *b)
{
    uint32_t n = 0, both = 0;

    for (unsigned i = 0; a->slices && b->slices && i < SLICES; i++)
        if (a->slices[i]) {
            n++;
            both += b->slices[i] || (i && b->slices[i - 1]);
        }
    return both * 2 > n;
}

/* The pauser at the end of those behind pauser `by`: itself if there is none, or in a cycle one of it. */
static uint32_t root_of(const struct spread *s, uint32_t by)
{
    uint64_t seen = 0;
    bool further = true;

    while (further && !(seen >> by & 1)) {
        uint64_t behind = s->behind[by];
        const struct pauser *a = &s->c->pausers[by];
        seen |= UINT64_C(1) << by;
        further = false;
        for (uint32_t k = 0; k < s->c->n_pausers && !a->deadlocked && !further; k++)
            if (behind >> k & 1 && goes_with(a, &s->c->pausers[k])) {
                by = k;
                further = true;
            }
    }
    return by;
}

/* The incident about pauser `by`, or the one that explains it. */
static uint32_t incident_of(const struct spread *s, uint32_t by)
{
    uint32_t n = s->c->pausers[by].incident;
    const struct incident *st = incident_at(s->x, n);

    return st && st->superseded_by ? st->superseded_by - 1 : n;
}

/* Pauser `by` only passes on the pause of `root`. */
static void tell_spread(struct spread *s, uint32_t by, uint32_t root)
{
    const struct pauser *a = &s->c->pausers[by];
    uint32_t of = incident_of(s, root);
    struct incident *st = incident_at(s->x, of);

    if (!st || a->incident == NO_INCIDENT || of == a->incident)
        return;
    cross_supersede(s->x, of, a->incident);
    incident_add(st, SAY(PAUSE_SPREAD, .address = a->mac, .tap = fact_tap(a->tap), .other = a->frame));
}

/* The port of the destination of a held flow, behind the pauser, and how much of its link was used; NULL: not captured.
 */
static const struct port_end *destination_port(const struct spread *s, const struct held *h, uint32_t *tap, int *used)
{
    for (uint32_t i = 0; i < s->c->n_ports; i++) {
        uint32_t at = s->c->ports[i]->tap;
        const struct port_end *e = at == h->f->tap ? NULL : port_of_host(s->c, at, &h->f->dst);
        if (!e)
            continue;
        *tap = at;
        *used = port_used(s->c, e, &s->c->pausers[h->by]);
        if (*used >= 0)
            return e;
    }
    return NULL;
}

/* The link behind the pause that is full. */
static void tell_full(struct spread *s, struct incident *st, uint32_t by)
{
    uint32_t tap;
    int used;

    for (uint32_t i = 0; i < s->n; i++) {
        const struct held *h = &s->held[i];
        if (h->by != by || !destination_port(s, h, &tap, &used) || used < PORT_FULL)
            continue;
        incident_add(st, SAY(PAUSE_FULL, .end = h->f->dst, .m = (uint32_t)used, .tap = fact_tap(tap)));
        return;
    }
}

/* True if the link at a tap is paused itself. */
static bool is_paused(const struct congestion *c, uint32_t tap)
{
    for (uint32_t i = 0; i < c->n_pausers; i++)
        if (c->pausers[i].tap == tap && c->pausers[i].paused >= PAUSE_LONG)
            return true;
    return false;
}

/* True if it is known where the packets are to go that cannot. */
static bool is_reason_known(const struct incident *st)
{
    for (unsigned i = 0; i < st->n_facts; i++)
        if (st->facts[i].sentence == SENTENCE_PAUSE_FULL || st->facts[i].sentence == SENTENCE_PAUSE_OF_HOST)
            return true;
    return false;
}

static bool is_named(const struct incident *st, uint32_t conn)
{
    for (unsigned i = 0; i < st->n_facts; i++)
        if (st->facts[i].sentence == SENTENCE_PAUSE_VICTIM && st->facts[i].n == conn)
            return true;
    return false;
}

/* Flows that waited with the others at pauser `by`, although the link that they go to is idle: victims of `root`. */
static void tell_victims(struct spread *s, uint32_t by, uint32_t root)
{
    struct incident *st = incident_at(s->x, incident_of(s, root));
    uint32_t tap, named = 0;
    int used;

    if (!st || !is_reason_known(st))
        return;
    for (uint32_t i = 0; i < s->n && named < VICTIMS_NAMED; i++) {
        const struct held *h = &s->held[i];
        uint32_t conn = conn_number_now(observer_conns(s->x->observer), h->f->conn);
        bool waited = h->by == by && s->waited[h->flow] && !is_named(st, conn);
        if (!waited || !destination_port(s, h, &tap, &used) || used > PORT_IDLE || is_paused(s->c, tap))
            continue;
        named++;
        incident_add(st, SAY(PAUSE_VICTIM, .n = conn, .end = h->f->dst, .time = s->waited[h->flow],
                             .m = (uint32_t)(used ? used : 1), .tap = fact_tap(tap)));
    }
}

/* --- Cycles ----------------------------------------------------------------------------------- */

/* The time in which all pausers of a mask paused without a break. */
static ns_t common(const struct spread *s, uint64_t mask, uint32_t tap, ns_t *from)
{
    ns_t to = INT64_MAX;

    *from = INT64_MIN;
    for (uint32_t i = 0; i < s->c->n_pausers; i++) {
        const struct pauser *a = &s->c->pausers[i];
        ns_t begin = explain_clock(s->x, a->tap, tap, a->long_from), end = explain_clock(s->x, a->tap, tap, a->long_to);
        if (!(mask >> i & 1))
            continue;
        *from = begin > *from ? begin : *from;
        to = end < to ? end : to;
    }
    return (ns_t)(time_between(*from, to) & INT64_MAX);
}

/* The shortest cycle from pauser `first` on; order: its pausers, all of `mask`, each behind the one before. Their
 * number; 0: there is none. */
static uint32_t cycle_from(const struct spread *s, uint64_t mask, uint32_t first, uint8_t order[PAUSERS])
{
    uint8_t from[PAUSERS];
    uint64_t seen = 0, now = s->behind[first] & mask;
    uint32_t queue[PAUSERS], n = 0, at = 0;

    for (uint32_t i = 0; i < PAUSERS; i++)
        if (now >> i & 1) {
            from[i] = (uint8_t)first;
            queue[n++] = i;
        }
    seen = now;
    for (; at < n && !(seen >> first & 1); at++)
        for (uint32_t i = 0; i < PAUSERS; i++)
            if ((s->behind[queue[at]] & mask & ~seen) >> i & 1) {
                from[i] = (uint8_t)queue[at];
                seen |= UINT64_C(1) << i;
                queue[n++] = i;
            }
    if (!(seen >> first & 1))
        return 0;
    n = 1;
    for (uint32_t i = first; from[i] != first; i = from[i])
        n++;
    for (uint32_t i = first, k = n; k > 1; k--)
        order[k - 1] = (uint8_t)(i = from[i]);
    order[0] = (uint8_t)first;
    return n;
}

static void tell_cycle(struct spread *s, const uint8_t order[PAUSERS], uint32_t n, uint64_t members)
{
    uint32_t tap = s->c->pausers[order[0]].tap;
    ns_t from, time = common(s, members, tap, &from);
    uint32_t by = cross_new(s->x, CAUSE_PFC_DEADLOCK, tap, from);
    struct incident *st = incident_at(s->x, by);
    struct fact f = {.sentence = SENTENCE_PFC_DEADLOCK, .n = n, .time = time, .time2 = from};

    if (!st)
        return;
    for (uint32_t i = 0; i < n; i++)
        f.code |= s->c->pausers[order[i]].classes;
    incident_is(st, &f);
    for (uint32_t i = 0; i < n; i++) {
        struct pauser *a = &s->c->pausers[order[i]];
        a->deadlocked = true;
        incident_frame_at(st, ROLE_EVIDENCE, a->tap, a->frame);
        incident_add(st, SAY(DEADLOCK_PORT, .address = a->mac, .tap = fact_tap(a->tap), .other = a->frame));
        if (a->incident != NO_INCIDENT)
            cross_supersede(s->x, by, a->incident);
    }
}

static void find_cycles(struct spread *s)
{
    uint64_t mask = 0, members;
    uint8_t order[PAUSERS];
    ns_t from;

    for (uint32_t i = 0; i < s->c->n_pausers; i++)
        if (time_between(s->c->pausers[i].long_from, s->c->pausers[i].long_to) >= DEADLOCK_LEAST)
            mask |= UINT64_C(1) << i;
    for (uint32_t i = 0; i < s->c->n_pausers; i++) {
        uint32_t n = mask >> i & 1 ? cycle_from(s, mask, i, order) : 0;
        members = 0;
        for (uint32_t k = 0; k < n; k++)
            members |= UINT64_C(1) << order[k];
        if (!n || common(s, members, s->c->pausers[i].tap, &from) < DEADLOCK_LEAST)
            continue;
        tell_cycle(s, order, n, members);
        mask &= ~members;
    }
}

/* --- All of it -------------------------------------------------------------------------------- */

void explain_spread(struct explainer *x, struct congestion *c)
{
    struct spread s = {.x = x, .c = c};

    if (c->n_pausers && find_held(&s) && find_waits(&s)) {
        find_behind(&s);
        find_cycles(&s);
        for (uint32_t i = 0; i < c->n_pausers; i++) {
            struct incident *st = incident_at(x, c->pausers[i].incident);
            if (!st || c->pausers[i].deadlocked || c->pausers[i].paused < PAUSE_LONG || root_of(&s, i) != i)
                continue;
            tell_whose(&s, st, &c->pausers[i]);
            tell_whom(&s, st, i);
            tell_full(&s, st, i);
        }
        for (uint32_t i = 0; i < c->n_pausers; i++) {
            uint32_t root = root_of(&s, i);
            tell_victims(&s, i, root);
            if (root != i && !c->pausers[i].deadlocked)
                tell_spread(&s, i, root);
        }
    }
    free(s.held);
    free(s.waited);
}
