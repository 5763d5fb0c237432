/* layer 3 (judge): at which end of a connection a tap is: the user names the side of a host, which tells only if the
 * host does not open connections and accept some. */
#include <stdlib.h>

#include "src/judge/judge_impl.h"

enum opener { OPENER_UNKNOWN, OPENER_THIS, OPENER_PEER };

/* True if the first request in `flow` was captured; `peer` is the flow of the responses. */
static bool began_here(const struct judge *j, uint32_t flow, uint32_t peer)
{
    const struct req_dir *h = j->flows[flow].dir;

    return h->began == BEGAN_SEEN && !(j->flows[peer].has_rsp && j->flows[peer].rsp_frame < h->first_frame);
}

/* For a connection of which only `flow` has requests: true if the sender of `flow` opened it, and does not respond
 * to requests that were not captured. */
static bool opens(const struct judge *j, uint32_t flow, uint32_t peer)
{
    const struct req_dir *h = j->flows[flow].dir;

    if (!h || !h->have_next || j->flows[flow].has_rsp)
        return false;
    return h->service == SVC_UC || (peer != FLOW_NONE && began_here(j, flow, peer));
}

/* Which end opened the connection: the sender of the requests in `flow`, or its peer. Without CM it is the end that
 * sent the first request; it is known if that request was captured, and if the peer responded before it sent its own
 * first request. */
static enum opener opener(const struct judge *j, uint32_t flow)
{
    const struct flow *f = &j->flow[flow];
    const struct req_dir *a = j->flows[flow].dir, *b = f->peer == FLOW_NONE ? NULL : j->flows[f->peer].dir;

    if (f->paired_by == PAIR_CM)
        return f->params.passive ? OPENER_PEER : OPENER_THIS;
    if (f->peer == FLOW_NONE && conn_has_reverse(j->conns, flow))
        return OPENER_UNKNOWN;
    if (!a || !a->have_next)
        return b && opens(j, f->peer, flow) ? OPENER_PEER : OPENER_UNKNOWN;
    if (!b || !b->have_next)
        return opens(j, flow, f->peer) ? OPENER_THIS : OPENER_UNKNOWN;
    if (j->malformed || j->have_cm)
        return OPENER_UNKNOWN; /* CM messages state it, but were not understood */
    if (!began_here(j, flow, f->peer) || !began_here(j, f->peer, flow))
        return OPENER_UNKNOWN;
    if (a->first_rsp_ts <= b->first_ts)
        return OPENER_THIS;
    return b->first_rsp_ts <= a->first_ts ? OPENER_PEER : OPENER_UNKNOWN;
}

enum tap_side judge_side(const struct judge *j, uint32_t tap)
{
    uint32_t iface = tap & 0xffff;

    for (unsigned i = 0; i < j->o.n_taps; i++)
        if (j->o.taps[i].tap == tap)
            return j->o.taps[i].side;
    return iface < JUDGE_TAPS ? j->o.tap[iface] : TAP_UNKNOWN;
}

/* The ends of the connection of `flow`: [0] opened it. False: which one is not known. */
static bool ends_of(const struct judge *j, uint32_t flow, const struct conn_addr *end[2])
{
    enum opener who = opener(j, flow);

    end[who == OPENER_PEER] = &j->flow[flow].src;
    end[who != OPENER_PEER] = &j->flow[flow].dst;
    return who != OPENER_UNKNOWN;
}

/* Whether another connection at `tap`, or the REQ for one, has one of two ends in the other role. */
static bool are_two_way(const struct judge *j, uint32_t tap, const struct conn_addr *const end[2])
{
    const struct conn_addr *other[2];
    uint32_t n = conn_counts(j->conns).flows;

    for (uint32_t i = 0; i < n; i++)
        if (j->flow[i].tap == tap && ends_of(j, i, other) &&
            (conn_addr_eq(end[0], other[1]) || conn_addr_eq(end[1], other[0])))
            return true;
    for (unsigned i = 0; i < j->n_cm_used; i++) {
        const struct cm_ends *e = &j->cm_ends[j->cm_used[i]];
        if (e->used && e->tap == tap && (conn_addr_eq(end[0], &e->addr[0]) || conn_addr_eq(end[1], &e->addr[1])))
            return true;
    }
    return false;
}

/* Whether `host` is an end of all connections at `tap`. */
static bool is_in_all(const struct judge *j, uint32_t tap, const struct conn_addr *host)
{
    uint32_t n = conn_counts(j->conns).flows;

    for (uint32_t i = 0; i < n; i++)
        if (j->flow[i].tap == tap && !conn_addr_eq(&j->flow[i].src, host) && !conn_addr_eq(&j->flow[i].dst, host))
            return false;
    return true;
}

/* The side of a tap at one of two hosts that open connections and accept some: it is at the one that takes part in all.
 */
static enum tap_side side_of_two_way(const struct judge *j, uint32_t tap, const struct conn_addr *const end[2])
{
    bool opens = is_in_all(j, tap, end[0]), accepts = is_in_all(j, tap, end[1]);

    return opens == accepts ? TAP_UNKNOWN : opens ? TAP_REQUESTER : TAP_RESPONDER;
}

enum tap_side judge_side_of(const struct judge *j, uint32_t tap, const struct conn_addr *const end[2])
{
    enum tap_side side = judge_side(j, tap);

    if (side != TAP_REQUESTER && side != TAP_RESPONDER)
        return side;
    return are_two_way(j, tap, end) ? side_of_two_way(j, tap, end) : side;
}

/* Look whether the ends of `flow` open connections and accept some, which stays once it is known, and at which of them
 * the tap is then. All connections are looked through: for a failure, else ever more rarely, as each flow does it. */
static void look_both_ways(const struct judge *j, uint32_t flow, const struct conn_addr *const end[2])
{
    struct jflow *f = &j->flows[flow];
    uint32_t tap = j->flow[flow].tap;

    if (LIKELY(j->packets < f->two_way_next))
        return;
    f->two_way = f->two_way || are_two_way(j, tap, end);
    f->two_way_side = f->two_way ? (uint8_t)side_of_two_way(j, tap, end) : TAP_UNKNOWN;
    f->two_way_next = j->packets + j->packets / 8 + conn_counts(j->conns).flows;
}

unsigned judge_have_tap(const struct judge *j, uint32_t flow)
{
    uint32_t tap = j->flow[flow].tap;
    enum tap_side side = judge_side(j, tap);
    const struct conn_addr *end[2];

    if ((side != TAP_REQUESTER && side != TAP_RESPONDER) || !ends_of(j, flow, end))
        return 0;
    look_both_ways(j, flow, end);
    if (UNLIKELY(j->flows[flow].two_way))
        side = j->flows[flow].two_way_side;
    if (side == TAP_UNKNOWN)
        return 0;
    return (side == TAP_REQUESTER) == (end[0] == &j->flow[flow].src) ? N_TAP_REQ : N_TAP_RSP;
}

/* --- The end ---------------------------------------------------------------------------------- */

/* An end of a connection at a tap: that which opened it, or the other one. */
struct role {
    struct conn_addr addr;
    uint32_t tap;
    bool opens;
};

/* The connections whose ends open connections and accept some. */
struct doubt {
    const struct judge *j;
    struct role *role; /* of all connections and REQs, sorted */
    uint64_t *of;      /* doubt_key(), sorted */
    uint32_t n_roles, n;
    bool known; /* the rest is */
    bool full;  /* there was no memory for it: all are doubted */
};

/* `conn` 0: one that a REQ shows. */
static uint64_t doubt_key(uint32_t tap, uint32_t conn)
{
    return (uint64_t)tap << 32 | conn;
}

static int by_role(const void *x, const void *y)
{
    const struct role *a = x, *b = y;

    if (a->tap != b->tap)
        return a->tap < b->tap ? -1 : 1;
    return a->opens != b->opens ? a->opens - b->opens : memcmp(&a->addr, &b->addr, sizeof a->addr);
}

static int by_key(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

    return (a > b) - (a < b);
}

static void add_roles(struct doubt *d, uint32_t tap, const struct conn_addr *opens, const struct conn_addr *accepts)
{
    d->role[d->n_roles++] = (struct role){*opens, tap, true};
    d->role[d->n_roles++] = (struct role){*accepts, tap, false};
}

static bool has_role(const struct doubt *d, uint32_t tap, const struct conn_addr *addr, bool opens)
{
    struct role r = {*addr, tap, opens};

    return bsearch(&r, d->role, d->n_roles, sizeof r, by_role) != NULL;
}

/* As are_two_way(). */
static void doubt_if_two_way(struct doubt *d, uint32_t tap, uint32_t conn, const struct conn_addr *const end[2])
{
    if (has_role(d, tap, end[0], false) || has_role(d, tap, end[1], true))
        d->of[d->n++] = doubt_key(tap, conn);
}

/* Fill `d`, whose arrays have room for all. */
static void look_at_all(struct doubt *d)
{
    const struct judge *j = d->j;
    uint32_t n = conn_counts(j->conns).flows;
    const struct conn_addr *end[2];

    for (uint32_t i = 0; i < n; i++)
        if (ends_of(j, i, end))
            add_roles(d, j->flow[i].tap, end[0], end[1]);
    for (unsigned i = 0; i < j->n_cm_used; i++) {
        const struct cm_ends *e = &j->cm_ends[j->cm_used[i]];
        if (e->used)
            add_roles(d, e->tap, &e->addr[1], &e->addr[0]);
    }
    qsort(d->role, d->n_roles, sizeof *d->role, by_role);
    for (uint32_t i = 0; i < n; i++)
        if (j->flow[i].conn && ends_of(j, i, end))
            doubt_if_two_way(d, j->flow[i].tap, j->flow[i].conn, end);
    for (unsigned i = 0; i < j->n_cm_used; i++) {
        const struct cm_ends *e = &j->cm_ends[j->cm_used[i]];
        if (e->used)
            doubt_if_two_way(d, e->tap, 0, (const struct conn_addr *[]){&e->addr[1], &e->addr[0]});
    }
    qsort(d->of, d->n, sizeof *d->of, by_key);
}

/* Whether it turned out after a failure that its ends open connections and accept some. */
static bool is_doubted(void *user, const struct finding *f)
{
    struct doubt *d = user;
    uint32_t tap = (uint32_t)f->file << 16 | f->tap;
    size_t most = conn_counts(d->j->conns).flows + (size_t)d->j->n_cm_used + 1;
    uint64_t conn = doubt_key(tap, f->conn), any = doubt_key(tap, 0);

    if (!d->known) {
        d->known = true;
        d->role = malloc(2 * most * sizeof *d->role);
        d->of = malloc(most * sizeof *d->of);
        d->full = !d->role || !d->of;
        if (!d->full)
            look_at_all(d);
    }
    if (d->full || (f->conn && bsearch(&conn, d->of, d->n, sizeof conn, by_key)))
        return true;
    return rule_table[f->rule].applies & ON_CM && bsearch(&any, d->of, d->n, sizeof any, by_key);
}

void judge_doubt_sides(struct judge *j)
{
    struct doubt d = {.j = j};

    findings_doubt(j->findings, N_OPENER, is_doubted, &d);
    free(d.role);
    free(d.of);
}
