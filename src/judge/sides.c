/* layer 3 (judge): what a tap shows: at which end of a connection it is, which directions it has captured, and whether
 * their clocks differ. The user names the side of a host, which tells only if the host does not open connections and
 * accept some. */
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

/* --- What the connections say of the hosts ------------------------------------------------------ */

/* A host at a tap; with `whole` the tap itself. */
struct host {
    struct conn_addr addr; /* without `whole` */
    uint32_t tap;
    bool used, whole;
    uint32_t opens, accepts; /* connections, and REQs for them; those of which it is known who opens them */
    uint32_t flows;          /* from it or to it; with `whole`: all at the tap */
};

#define DAMAGED_REQS 8

/* The ends of a REQ that was damaged on its way. */
struct damaged_req {
    uint32_t tap;
    struct conn_addr opens, accepts;
};

struct sides {
    struct damaged_req damaged[DAMAGED_REQS];
    unsigned n_damaged; /* more than DAMAGED_REQS: not all are kept, and nothing is certain */
    struct host *host;  /* by host_hash(), or at the next free place */
    uint32_t places;    /* a power of two, more than half of them free */
    uint32_t n;         /* those that are used */
    bool lost;          /* there was no memory for all: nothing is certain */
    uint64_t next;      /* packets of the capture from which on it is collected anew */
};

#define HOST_PLACES 64
/* With so few flows the hosts are collected for each question. */
#define FEW_FLOWS 64

struct sides *judge_sides_new(void)
{
    return calloc(1, sizeof(struct sides));
}

void judge_sides_free(struct sides *s)
{
    if (s)
        free(s->host);
    free(s);
}

static uint64_t host_hash(const struct host *k)
{
    uint64_t h = (load_le64(k->addr.b) ^ k->addr.network) * HASH_MULTIPLIER;

    h = (h ^ h >> 32 ^ load_le64(k->addr.b + 8) ^ k->whole) * HASH_MULTIPLIER;
    return (h ^ h >> 32 ^ k->tap) * HASH_MULTIPLIER >> 20;
}

/* The place of host `k`, or the free one where it would be. */
static struct host *host_place(const struct sides *s, const struct host *k)
{
    for (uint64_t i = host_hash(k);; i++) {
        struct host *h = &s->host[i & (s->places - 1)];
        if (!h->used || (h->tap == k->tap && h->whole == k->whole && conn_addr_eq(&h->addr, &k->addr)))
            return h;
    }
}

/* Twice as many places, or the first ones. */
static bool grow_places(struct sides *s)
{
    struct sides old = *s;

    s->places = old.places ? 2 * old.places : HOST_PLACES;
    s->host = calloc(s->places, sizeof *s->host);
    if (!s->host) {
        *s = old;
        return false;
    }
    for (uint32_t i = 0; i < old.places; i++)
        if (old.host[i].used)
            *host_place(s, &old.host[i]) = old.host[i];
    free(old.host);
    return true;
}

/* Add the counts of `k` to those of its host. */
static void add_host(struct sides *s, struct host k)
{
    struct host *h;

    if (2 * (s->n + 1) > s->places && !grow_places(s)) {
        s->lost = true;
        return;
    }
    h = host_place(s, &k);
    s->n += !h->used;
    k.used = true;
    k.opens += h->opens;
    k.accepts += h->accepts;
    k.flows += h->flows;
    *h = k;
}

static void add_ends(struct sides *s, uint32_t tap, const struct conn_addr *opens, const struct conn_addr *accepts)
{
    add_host(s, (struct host){.addr = *opens, .tap = tap, .opens = 1});
    add_host(s, (struct host){.addr = *accepts, .tap = tap, .accepts = 1});
}

/* The ends of an exchange as its REQ names them by GIDs: on InfiniBand its messages may come from LIDs, and the packets
 * of its connection from GIDs. */
static void add_gids(struct sides *s, const struct cm_ends *e, const struct cm_copies *req)
{
    struct conn_addr active = {.network = e->addr[1].network}, passive = active, none = active;

    if (!req->copies || !CM_HAS(&req->m, req, prim_rgid))
        return;
    memcpy(active.b, req->m.req.prim_lgid, sizeof active.b);
    memcpy(passive.b, req->m.req.prim_rgid, sizeof passive.b);
    if (!conn_addr_eq(&active, &none) && !conn_addr_eq(&passive, &none) && !conn_addr_eq(&active, &e->addr[1]))
        add_ends(s, e->tap, &active, &passive);
}

void judge_damaged_req(struct judge *j, const struct pkt *p)
{
    struct sides *s = j->sides;
    struct damaged_req *d = &s->damaged[s->n_damaged % DAMAGED_REQS];
    struct mad mad;

    if (!(p->have & H_MAD) || p->payload_cap < MAD_HDR_LEN || s->n_damaged > DAMAGED_REQS)
        return;
    mad_get(&mad, p->data + p->payload_off);
    if (mad.mgmt_class != CM_CLASS || mad.attr_id != CM_REQ)
        return;
    d->tap = conn_tap_of(p->frame);
    conn_addr_of(p, &d->opens, &d->accepts);
    s->n_damaged++;
}

/* Look through all connections and REQs. */
static void collect_hosts(const struct judge *j)
{
    struct sides *s = j->sides;
    uint32_t n = conn_counts(j->conns).flows;
    const struct conn_addr *end[2];

    if (s->host)
        memset(s->host, 0, s->places * sizeof *s->host);
    s->n = 0;
    s->lost = s->n_damaged > DAMAGED_REQS;
    for (unsigned i = 0; i < min_u32(s->n_damaged, DAMAGED_REQS); i++)
        add_ends(s, s->damaged[i].tap, &s->damaged[i].opens, &s->damaged[i].accepts);
    for (uint32_t i = 0; i < n; i++) {
        const struct flow *f = &j->flow[i];
        add_host(s, (struct host){.tap = f->tap, .whole = true, .flows = 1});
        add_host(s, (struct host){.addr = f->src, .tap = f->tap, .flows = 1});
        if (!conn_addr_eq(&f->src, &f->dst))
            add_host(s, (struct host){.addr = f->dst, .tap = f->tap, .flows = 1});
        if (ends_of(j, i, end))
            add_ends(s, f->tap, end[0], end[1]);
    }
    for (unsigned i = 0; i < j->n_cm_used; i++) {
        const struct cm_ends *e = &j->cm_ends[j->cm_used[i]];
        if (!e->used)
            continue;
        add_ends(s, e->tap, &e->addr[1], &e->addr[0]);
        add_gids(s, e, &j->cm[j->cm_used[i]].req);
    }
}

/* What is known of all hosts. With many flows it is collected anew only after four times as many packets, so that the
 * time for it does not grow with the number of questions: a failure may then count as decided by the side of the tap
 * although its hosts have just turned out to open connections and accept some; judge_doubt_sides() finds that. */
static const struct sides *sides_of(const struct judge *j)
{
    struct sides *s = j->sides;
    uint32_t n = conn_counts(j->conns).flows;

    if (n > FEW_FLOWS && j->packets < s->next)
        return s;
    collect_hosts(j);
    s->next = j->packets + UINT64_C(4) * n;
    return s;
}

static struct host host_at(const struct sides *s, uint32_t tap, const struct conn_addr *addr)
{
    return s->places ? *host_place(s, &(struct host){.addr = *addr, .tap = tap}) : (struct host){0};
}

/* Whether another connection at `tap`, or the REQ for one, has one of two ends in the other role. */
static bool are_two_way(const struct sides *s, uint32_t tap, const struct conn_addr *const end[2])
{
    return s->lost || host_at(s, tap, end[0]).accepts || host_at(s, tap, end[1]).opens;
}

/* Whether `host` is an end of all connections at `tap`. */
static bool is_in_all(const struct sides *s, uint32_t tap, const struct conn_addr *host)
{
    const struct host whole = {.tap = tap, .whole = true};

    return !s->lost && s->places && host_at(s, tap, host).flows == host_place(s, &whole)->flows;
}

/* --- The side of a tap ---------------------------------------------------------------------------- */

/* The side of a tap at one of two hosts that open connections and accept some: it is at the one that takes part in all.
 */
static enum tap_side side_of_two_way(const struct sides *s, uint32_t tap, const struct conn_addr *const end[2])
{
    bool opens = is_in_all(s, tap, end[0]), accepts = is_in_all(s, tap, end[1]);

    return opens == accepts ? TAP_UNKNOWN : opens ? TAP_REQUESTER : TAP_RESPONDER;
}

enum tap_side judge_side_of(const struct judge *j, uint32_t tap, const struct conn_addr *const end[2])
{
    enum tap_side side = judge_side(j, tap);
    const struct sides *s;

    if (side != TAP_REQUESTER && side != TAP_RESPONDER)
        return side;
    s = sides_of(j);
    return are_two_way(s, tap, end) ? side_of_two_way(s, tap, end) : side;
}

/* Look whether the ends of `flow` open connections and accept some, which stays once it is known, and at which of them
 * the tap is then: for a failure, else ever more rarely, as each flow does it. */
static void look_both_ways(const struct judge *j, uint32_t flow, const struct conn_addr *const end[2])
{
    struct jflow *f = &j->flows[flow];
    uint32_t tap = j->flow[flow].tap;
    const struct sides *s;

    if (LIKELY(j->packets < f->two_way_next))
        return;
    s = sides_of(j);
    f->two_way = f->two_way || are_two_way(s, tap, end);
    f->two_way_side = f->two_way ? (uint8_t)side_of_two_way(s, tap, end) : TAP_UNKNOWN;
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

/* Connections of which failures are doubted: their ends open connections and accept some. */
struct doubt {
    const struct judge *j;
    uint64_t *of; /* doubt_key(), sorted */
    uint32_t n;
    bool known; /* the rest is */
    bool full;  /* there was no memory for it: all are doubted */
};

/* `conn` 0: one that a REQ shows. */
static uint64_t doubt_key(uint32_t tap, uint32_t conn)
{
    return (uint64_t)tap << 32 | conn;
}

static int by_key(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

    return (a > b) - (a < b);
}

static void doubt_if_two_way(struct doubt *d, uint32_t tap, uint32_t conn, const struct conn_addr *const end[2])
{
    if (are_two_way(d->j->sides, tap, end))
        d->of[d->n++] = doubt_key(tap, conn);
}

/* Fill `d`, whose array has room for all. */
static void look_at_all(struct doubt *d)
{
    const struct judge *j = d->j;
    uint32_t n = conn_counts(j->conns).flows;
    const struct conn_addr *end[2];

    collect_hosts(j);
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

uint32_t judge_tap_of(const struct judge *j, const struct finding *f)
{
    uint32_t tap = (uint32_t)f->file << 16 | f->tap;
    const struct stamps *s = stamps_at(&j->stamps, tap + 1);

    return s && s->timed ? s->tap : tap;
}

/* Whether it turned out after a failure that its ends open connections and accept some. */
static bool is_doubted(void *user, const struct finding *f)
{
    struct doubt *d = user;
    uint32_t tap = judge_tap_of(d->j, f);
    size_t most = conn_counts(d->j->conns).flows + (size_t)d->j->n_cm_used + 1;
    uint64_t conn = doubt_key(tap, f->conn), any = doubt_key(tap, 0);

    if (!f->by_side)
        return false;
    if (!d->known) {
        d->known = true;
        d->of = malloc(most * sizeof *d->of);
        d->full = !d->of;
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
    free(d.of);
}

/* --- Pairings by PSN ---------------------------------------------------------------------------- */

/* Whether these requests were paired with other responses since, or may be. */
static bool may_pair_otherwise(const struct judge *j, uint32_t flow)
{
    return j->flows[flow].rests_peer &&
           (j->flows[flow].rests_peer != j->flow[flow].peer + 1 || judge_another_may_be_meant(j, flow));
}

/* The connections of which a failure rests on a pairing by PSN, although another queue pair may be meant. */
static void look_at_pairings(struct doubt *d)
{
    const struct judge *j = d->j;
    uint32_t n = conn_counts(j->conns).flows, of = 0;

    for (uint32_t i = 0; i < n; i++)
        of += j->flows[i].rests_peer != 0;
    d->of = malloc((of + 1) * sizeof *d->of);
    d->full = !d->of;
    for (uint32_t i = 0; d->of && of && i < n; i++)
        if (may_pair_otherwise(j, i))
            d->of[d->n++] = doubt_key(j->flow[i].tap, j->flows[i].rests_conn);
    if (d->of)
        qsort(d->of, d->n, sizeof *d->of, by_key);
}

static bool is_of_another(void *user, const struct finding *f)
{
    const struct doubt *d = user;
    uint64_t conn = doubt_key(judge_tap_of(d->j, f), f->conn);

    return f->by_pairing && (d->full || bsearch(&conn, d->of, d->n, sizeof conn, by_key));
}

void judge_doubt_pairings(struct judge *j)
{
    struct doubt d = {.j = j};

    look_at_pairings(&d);
    findings_doubt(j->findings, N_PAIRED, is_of_another, &d);
    free(d.of);
}

/* --- Clocks ----------------------------------------------------------------------------------- */

static bool is_of_skewed(void *user, const struct finding *f)
{
    const struct judge *j = user;

    return f->by_clock && j->skewed_before[tap_slot(judge_tap_of(j, f))];
}

void judge_doubt_clocks(struct judge *j)
{
    findings_doubt(j->findings, N_CLOCK, is_of_skewed, j);
}

/* --- Frames that the capture lost ---------------------------------------------------------------- */

static bool rests_on_all_frames(void *user, const struct finding *f)
{
    (void)user;
    return f->by_complete;
}

void judge_doubt_complete(struct judge *j)
{
    if (j->drops)
        findings_doubt(j->findings, N_COMPLETE, rests_on_all_frames, NULL);
}

/* --- Directions that a tap has captured --------------------------------------------------------- */

/* The word of the way of `from` to `to` at a tap, and its bit: never that of the way back. */
static uint64_t *way_word(struct ways *w, uint32_t tap, const struct conn_addr *from, const struct conn_addr *to,
                          uint64_t *bit)
{
    uint64_t pair = (conn_pair_hash(from, to) ^ tap) * HASH_MULTIPLIER >> 32;
    unsigned back = memcmp(from->b, to->b, sizeof from->b) > 0, at = (unsigned)(2 * pair + back) % WAYS_OF_OWNER;

    *bit = UINT64_C(1) << at % 64;
    return &w->of[conn_owner_in(from, to, tap >> 16)][at / 64];
}

void judge_hear(struct judge *j, uint32_t tap, const struct conn_addr *from, const struct conn_addr *to)
{
    uint64_t bit, *word = way_word(&j->heard, tap, from, to, &bit);

    *word |= bit;
}

void judge_ip_sum_right(struct judge *j, uint32_t tap, const struct conn_addr *from, const struct conn_addr *to)
{
    uint64_t bit, *word = way_word(&j->ip_sums, tap, from, to, &bit);

    *word |= bit;
}

bool judge_has_ip_sums(struct judge *j, uint32_t tap, const struct conn_addr *from, const struct conn_addr *to)
{
    uint64_t bit, *word = way_word(&j->ip_sums, tap, from, to, &bit);

    return *word & bit;
}

void judge_needs_peer(struct judge *j, struct found *f, uint32_t tap, const struct conn_addr *peer,
                      const struct conn_addr *to, bool passive)
{
    uint64_t bit, *word = way_word(&j->heard, tap, peer, to, &bit);
    unsigned need = passive ? N_RSP : N_REQ;

    f->by_clock = true;
    if (*word & bit)
        return;
    f->needs |= need;
    f->lacks |= need;
}
