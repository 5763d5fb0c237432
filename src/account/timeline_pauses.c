/* layer 2b (account): where the time of each direction of requests went: pause frames of its own tap, and of another.
 */
#include "dissect/link/macc.h"
#include "dissect/pkt.h"
#include "src/account/timeline_impl.h"

#include <stdlib.h>

/* A capture does not tell the rate of the link. A quantum is the longest at 1 Gbit/s, the slowest that carries RDMA; at
 * 400 Gbit/s it is as short as on any port: meanwhile the pause does hold. In ns. */
#define QUANTUM_MOST   PAUSE_QUANTUM_BITS
#define SURE_FOR(q)    ((ns_t)(q)*PAUSE_QUANTUM_BITS / 400)
#define PAUSES_AT_ONCE 8 /* pauses of one tap that last at a time, and are looked at */

/* The latest pause that the sender of pause frame `p` has demanded; NULL: none. */
static struct paused *pause_of(struct timeline *t, const struct pkt *p)
{
    uint32_t tap = conn_tap_of(p->frame);

    for (uint32_t i = 0; i < PAUSES && i < t->n_pauses; i++) {
        struct paused *x = &t->pauses[(t->n_pauses - 1 - i) % PAUSES];
        if (x->tap == tap && memcmp(x->mac, p->data + 6, 6) == 0)
            return x;
    }
    return NULL;
}

/* A pause begins; it takes the place of the oldest one. */
static struct paused *pause_new(struct timeline *t, const struct pkt *p)
{
    struct paused *x = &t->pauses[t->n_pauses++ % PAUSES];

    *x = (struct paused){.tap = conn_tap_of(p->frame), .frame = frame_u32(p), .since = p->frame->ts};
    memcpy(x->mac, p->data + 6, 6);
    return x;
}

/* The longest pause that the frame demands for any class, in quanta; 0: it ends the pause. */
static unsigned quanta_of(const struct pause_frame *f)
{
    unsigned most = 0;

    for (unsigned i = 0; i < PAUSE_CLASSES; i++)
        if (f->classes >> i & 1 && f->quanta[i] > most)
            most = f->quanta[i];
    return most;
}

/* The pause holds: DSCPs of requests that pass or passed meanwhile, a mask, are of no class that it pauses. */
static void note_unpaused(struct timeline *t, const struct paused *x, uint64_t dscps)
{
    for (unsigned i = 0; i < PAUSE_CLASSES; i++)
        t->unpaused[i] |= x->classes >> i & 1 ? dscps : 0;
}

void timeline_pause(struct timeline *t, const struct pkt *p)
{
    ns_t now = p->frame->ts;
    struct paused *x;
    struct pause_frame f;
    unsigned quanta;

    if (!pause_frame_of(&f, p) || !f.whole)
        return;
    x = pause_of(t, p);
    quanta = quanta_of(&f);
    if (quanta && (!x || now > x->until))
        x = pause_new(t, p);
    if (!x || (!quanta && now >= x->until))
        return;
    x->until = now + (ns_t)quanta * QUANTUM_MOST;
    x->asked = now;
    x->sure = now + SURE_FOR(quanta);
    x->classes |= pause_frame_paused(&f);
    if (!quanta)
        note_unpaused(t, x, x->passed);
}

/* Whether a DSCP is of another class than `class`: by the usual map of hosts and switches its upper three bits are its
 * class. A capture does not tell which map they have: it is the usual one if requests have a DSCP that the usual map
 * gives that class; without such requests the others are of another class only if some passed while it was paused. */
static bool is_of_other(const struct timeline *t, unsigned dscp, unsigned class)
{
    bool usual = t->dscps >> (class << 3) & 0xff, passed = t->unpaused[class] >> dscp & 1;

    return dscp >> 3 != class && (usual || passed);
}

/* Whether a pause may hold back a direction: its class is that of its VLAN tag, or of its DSCP. */
static bool may_hold(const struct timeline *t, const struct direction *d, const struct paused *x)
{
    for (unsigned i = 0; i < PAUSE_CLASSES; i++) {
        bool passes = d->tagged ? d->pcp != i : is_of_other(t, d->dscp, i);
        if (x->classes >> i & 1 && !passes)
            return true;
    }
    return false;
}

/* Until when a pause certainly holds, and what was under way when it was demanded passes. */
static ns_t sure_until(const struct paused *x)
{
    return x->sure - x->asked > PAUSE_REACTION ? x->sure : x->asked + PAUSE_REACTION;
}

static unsigned class_of(const struct direction *d)
{
    return d->tagged ? d->pcp : d->dscp >> 3;
}

/* What passed of the host and class of `d` after pause `x`; if nothing is kept of it, what is kept of the oldest pause
 * of that host and class. NULL: the host is not known. */
static struct pause_passed *passed_of(const struct direction *d, const struct paused *x)
{
    struct pause_passed *kept = d->host ? d->host->passed[class_of(d)] : NULL, *oldest = kept;

    for (unsigned i = 0; kept && i < PAUSES_OVER; i++) {
        if (kept[i].since == x->since)
            return &kept[i];
        if (kept[i].since < oldest->since)
            oldest = &kept[i];
    }
    return oldest;
}

/* A request of `d`, whose class pause `x` may hold back, passes at `now`, when that is no longer sure: for its host and
 * class the pause is over, unless it is demanded again. A capture need not have the frame that ends a pause, and it
 * does not tell the rate of the link, thus how long a pause lasts without such a frame. */
static void note_over(struct direction *d, const struct paused *x, ns_t now)
{
    struct pause_passed *p = passed_of(d, x);

    if (p && (x->since > p->since || (x->since == p->since && p->at <= x->asked)))
        *p = (struct pause_passed){.since = x->since, .at = now};
}

/* Until when a pause may have held back a direction. */
static ns_t held_until(const struct direction *d, const struct paused *x)
{
    const struct pause_passed *p = passed_of(d, x);

    return p && p->since == x->since && p->at > x->asked ? p->at : x->until;
}

void timeline_note_class(struct timeline *t, struct direction *d, const struct pkt *p)
{
    uint32_t tap = conn_tap_of(p->frame);
    ns_t now = p->frame->ts;
    uint64_t dscp;

    d->classed = true;
    d->tagged = p->have & H_VLAN;
    d->pcp = (uint8_t)(p->vlan >> 13);
    d->dscp = p->addr_len ? p->tos >> 2 : 0;
    dscp = UINT64_C(1) << d->dscp;
    t->dscps |= d->tagged ? 0 : dscp;
    for (uint32_t i = 0; i < PAUSES_AT_ONCE && i < t->n_pauses; i++) {
        struct paused *x = &t->pauses[(t->n_pauses - 1 - i) % PAUSES];
        if (x->tap != tap || now <= x->since + PAUSE_REACTION || now >= x->until)
            continue;
        x->passed |= dscp;
        if (now > sure_until(x) && may_hold(t, d, x))
            note_over(d, x, now);
        if (now < x->sure)
            note_unpaused(t, x, dscp);
    }
}

/* A pause goes on behind a response, until a request passes: CNPs did not hold that request back. */
static void settle_throttled(struct direction *d, ns_t from, ns_t to)
{
    ns_t states[TIME_STATES];

    spans_between(&d->spans, from - 1, from, states);
    if (states[TIME_PAUSED])
        spans_change(&d->spans, from, to, 1u << TIME_THROTTLED, TIME_TRANSFER, NO_EPISODE);
}

/* Behind a pause that ended at `over` other queue pairs of the host had their turn first: CNPs did not hold the request
 * back that was sent at `now`, as soon as they had.
 *
 *   pause        ------|
 *   port         own   | A | own         A has had no turn since the first one
 */
static void settle_turn(struct direction *d, ns_t over, ns_t now)
{
    if (now > over && timeline_had_turn(d, over, now))
        spans_change(&d->spans, over, now, 1u << TIME_THROTTLED, TIME_TRANSFER, NO_EPISODE);
}

/* Time goes to a pause that other causes explain as well: nothing could pass. */
#define MAY_BE_PAUSED ((BEFORE_RNR & ~(1u << TIME_IDLE)) | 1u << TIME_RNR | 1u << TIME_NOT_KNOWN)

static void claim_pause(struct timeline *t, struct direction *d, uint32_t flow, const struct paused *x, ns_t from,
                        ns_t to, uint32_t over)
{
    if (to - from < PAUSE_LEAST) {
        settle_throttled(d, from, to);
        return;
    }
    if (d->pause_ep == NO_EPISODE || d->pause_since != x->since) {
        d->pause_ep = episode_new(t, flow, TROUBLE_PAUSE, 0, from);
        d->pause_since = x->since;
        if (d->pause_ep != NO_EPISODE)
            t->episodes[d->pause_ep].nak = x->frame;
    }
    timeline_claim(t, d, from, to, over, TIME_PAUSED, d->pause_ep);
}

/* Pauses explain part of the time between `from` and `to`: what is left of a response that seemed slow is not slow. */
static void settle_slow(struct direction *d, ns_t from, ns_t to)
{
    ns_t states[TIME_STATES];

    spans_between(&d->spans, from, to, states);
    if (states[TIME_PAUSED] && states[TIME_PEER_SLOW] <= SLOW_LEAST)
        spans_change(&d->spans, from, to, 1u << TIME_PEER_SLOW, TIME_RESPONSE, NO_EPISODE);
}

/* The pause that began `back` pauses before the latest one; NULL: it is not kept. */
static const struct paused *pause_back(const struct timeline *t, uint32_t back)
{
    return back < PAUSES && back < t->n_pauses ? &t->pauses[(t->n_pauses - 1 - back) % PAUSES] : NULL;
}

static void keep_silence(struct timeline *t, uint32_t flow, ns_t from, ns_t to)
{
    if (t->silences && to - from >= PAUSE_LEAST)
        t->silences[t->n_silences++ % SILENCES] =
            (struct silence){.flow = flow, .from = from, .to = to, .usual = timeline_rest(t->dirs[flow])};
}

/* Since when a queue pair that sends a packet of the direction at `now` had work for its port: since the first of the
 * responses that it has sent just before. */
static ns_t busy_since(const struct direction *d, ns_t from, ns_t now)
{
    bool answers = d->answering > from && now - d->answered < PAUSE_REACTION;

    return answers && d->answering < now ? d->answering : now;
}

void timeline_note_rest(struct direction *d, ns_t rest)
{
    if (d->rest.latest > d->rest.longest)
        d->rest.longest = d->rest.latest;
    if (d->rest.latest && ++d->rest.n == RESTS) {
        d->rest.before = d->rest.longest;
        d->rest.longest = d->rest.n = 0;
    }
    d->rest.latest = rest;
}

ns_t timeline_rest(const struct direction *d)
{
    if (!d->rest.before)
        return 0;
    return d->rest.longest > d->rest.before ? d->rest.longest : d->rest.before;
}

/* Whether a pause that lasts from `a` to `b` most likely held a request back that was due, although nothing was
 * outstanding since `from`: it began before the end of the longest usual rest, the request came at `now` many times
 * later, and no longer than such a rest behind the pause, whose exact end a capture need not show. A pause that takes
 * almost all of that time is no chance either: then the request may come a little later, and `usual`, the longest usual
 * rest, need not be known (0).
 *
 *     response     due                    request
 *     |---- rest ---|                        |
 *        |--------------- pause -----------|
 */
static bool outlasts_rest(ns_t usual, ns_t from, ns_t a, ns_t b, ns_t now)
{
    ns_t little = (b - a) / REST_LITTLE;

    if (now - b > (usual > little ? usual : little))
        return false;
    return usual ? a - from <= usual && (b - from) / REST_OUTLASTS >= usual : a - from <= little && b - a >= REST_LEAST;
}

/* When the pauses began that the one from `a` on, the `back`th before the latest one, continues: each began at most
 * PAUSE_REACTION after the one before it had ended. At most as early as `from`. */
static ns_t row_begin(const struct timeline *t, const struct direction *d, uint32_t tap, uint32_t back, ns_t from,
                      ns_t a)
{
    const struct paused *x;

    while (a > from && (x = pause_back(t, ++back)) && (x->tap != tap || a - x->until < PAUSE_REACTION))
        if (x->tap == tap && may_hold(t, d, x))
            a = x->since > from ? x->since : from;
    return a;
}

/* The time between `from` and `to` that nothing was outstanding is that of a pause, as a rest longer than usual. */
static void claim_rest(struct timeline *t, struct direction *d, uint32_t flow, const struct paused *x, ns_t from,
                       ns_t to)
{
    ns_t states[TIME_STATES];
    struct episode *e;

    spans_between(&d->spans, from, to, states);
    if (!states[TIME_IDLE])
        return;
    d->rest.latest = 0;
    claim_pause(t, d, flow, x, from, to, 1u << TIME_IDLE);
    e = episode_at(t, d->pause_ep);
    if (!e)
        return;
    e->rests++;
    e->rest += states[TIME_IDLE];
}

/* Who has nothing outstanding was held back by a pause that ended just before it sent, or by the pauses before that one
 * if they follow each other as closely; and most likely if it sent later than it uses to, and when the pause ended. */
void timeline_paused(struct timeline *t, struct direction *d, uint32_t flow, ns_t from, ns_t now)
{
    uint32_t tap = conn_flow_at(observer_conns(t->observer), flow)->tap;
    const struct paused *x;
    ns_t held = busy_since(d, from, now), row = NS_NEVER; /* row: begin of the pauses that follow each other closely */
    bool outlasts = false;                                /* and whether they outlast a rest */

    if (from >= now)
        return;
    keep_silence(t, flow, from, now);
    for (uint32_t i = 0; (x = pause_back(t, i)); i++) {
        ns_t until = held_until(d, x), a = x->since > from ? x->since : from, b = until < now ? until : now;
        bool holds = held - b < PAUSE_REACTION;
        if (x->tap != tap || b <= a || !may_hold(t, d, x))
            continue;
        claim_pause(t, d, flow, x, a, b, MAY_BE_PAUSED | (holds ? 1u << TIME_IDLE : 0));
        settle_turn(d, b, now);
        if (a < row) {
            row = row_begin(t, d, tap, i, from, a);
            outlasts = false;
        }
        outlasts |= !holds && outlasts_rest(timeline_rest(d), from, row, b, now);
        if (holds)
            d->rest.latest = 0;
        else if (outlasts)
            claim_rest(t, d, flow, x, a, b);
        held = holds && a < held ? a : held;
        settle_slow(d, from, now);
    }
}

/* --- Pauses that another tap saw -------------------------------------------------------------- */

bool timeline_several(struct timeline *t)
{
    t->silences = calloc(SILENCES, sizeof *t->silences);
    return t->silences != NULL;
}

/* The flow of the requests of flow `flow` at tap `tap`; FLOW_NONE: it did not see them. */
static uint32_t seen_at(const struct timeline *t, uint32_t flow, uint32_t tap)
{
    struct conn_table *conns = observer_conns(t->observer);
    const struct flow *f = conn_flow_at(conns, flow);

    for (uint32_t i = 0; i < conn_counts(conns).flows; i++) {
        const struct flow *g = conn_flow_at(conns, i);
        if (g->tap == tap && g->dqpn == f->dqpn && conn_addr_eq(&g->src, &f->src) && conn_addr_eq(&g->dst, &f->dst))
            return i;
    }
    return FLOW_NONE;
}

/* What pause `p` of another tap, which saw the flow of silence `s` as its flow `there`, explains of it. */
static void share_pause(struct timeline *t, const struct silence *s, const struct paused *p, uint32_t there,
                        timeline_clock *clock, void *user)
{
    uint32_t tap = conn_flow_at(observer_conns(t->observer), s->flow)->tap;
    struct paused x = *p;
    ns_t a, b;

    if (t->dirs[there])
        x.until = held_until(t->dirs[there], p);
    if (!clock(user, p->tap, tap, &x.since) || !clock(user, p->tap, tap, &x.until))
        return;
    x.frame = 0; /* it is none of this tap */
    a = x.since > s->from ? x.since : s->from;
    b = x.until < s->to ? x.until : s->to;
    if (b <= a || !may_hold(t, t->dirs[s->flow], p))
        return;
    claim_pause(t, t->dirs[s->flow], s->flow, &x, a, b, MAY_BE_PAUSED);
    if (outlasts_rest(s->usual, s->from, a, b, s->to))
        claim_rest(t, t->dirs[s->flow], s->flow, &x, a, b);
    settle_slow(t->dirs[s->flow], s->from, s->to);
}

void timeline_share_pauses(struct timeline *t, timeline_clock *clock, void *user)
{
    uint32_t seen = FLOW_NONE, by = 0, there = FLOW_NONE; /* tap `by` saw flow `seen` as its flow `there` */
    const struct paused *p;

    for (uint32_t i = 0; t->silences && t->n_pauses && i < SILENCES && i < t->n_silences; i++) {
        const struct silence *s = &t->silences[i];
        if (!t->dirs[s->flow])
            continue;
        for (uint32_t k = 0; (p = pause_back(t, k)); k++) {
            if (p->tap == conn_flow_at(observer_conns(t->observer), s->flow)->tap)
                continue;
            if (seen != s->flow || by != p->tap)
                there = seen_at(t, s->flow, p->tap);
            seen = s->flow;
            by = p->tap;
            if (there != FLOW_NONE)
                share_pause(t, s, p, there, clock, user);
        }
    }
}
