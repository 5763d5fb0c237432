/* layer 2b (conn): the observer: what each packet is to its connection. */
#include "src/conn/observer.h"

#include "dissect/ip/tcp.h"
#include "dissect/pkt.h"
#include "fetch.h"
#include "pool.h"
#include "src/conn/copies.h"
#include "src/conn/packet.h"
#include "src/iwarp/iwarp.h"

#include <stdlib.h>

#define ENDS   16 /* pairs of addresses remembered */
#define LATELY 64 /* flows that observer_fetch() looks at, the first ones: more would not stay in the caches */

/* Two addresses that exchange packets other than RDMA. */
struct ends {
    struct conn_addr src, dst;
    uint32_t tap;
    bool used;
};

/* The subscribers that have a certain callback. */
struct listeners {
    unsigned n;
    struct listener {
        void *user;
        union {
            conn_flow_over *over;
            void (*fetch)(void *user, uint32_t flow);
            void (*packet)(void *user, const struct pkt *p);
            void (*event)(void *user, const struct event *e);
        };
    } to[OBSERVER_SUBS];
};

/* What is kept of the requests of a flow. */
struct evidence {
    _Alignas(CACHE_LINE) struct req_dir h; /* first */
    _Alignas(CACHE_LINE) struct go_backs go_backs;
    uint32_t block; /* number of the block of PSNs that was last passed to conn_note_psn() */
};

struct observer {
    struct conn_table *conns;
    struct flow *flow; /* of `conns`, by index */
    struct learner learner;
    struct room room;
    struct evidence **dirs; /* by index of the requests' flow; NULL: no request seen */
    struct pool evidence;   /* where they are */
    bool *seen;             /* a request or response was seen in the flow */
    bool partial;           /* RDMA packets were passed to observer_teach() only */
    struct ends others[ENDS];
    uint32_t others_at;
    struct observer_opts opts;
    struct listeners over, fetch, early, before, after;
    uint64_t lately; /* of the first LATELY flows: those with packets since observer_fetch(), a bit each */
    struct iwarp *iwarp;
    struct timeline *timeline;
    void (*release_timeline)(struct timeline *t);
    unsigned n_subs;
    uint64_t packets;
};

static void forget(struct observer *o, uint32_t flow)
{
    struct evidence *v = o->dirs[flow];

    if (!v)
        return;
    req_dir_end(&v->h);
    pool_give(&o->evidence, v);
    o->dirs[flow] = NULL;
}

static void flow_over(void *user, uint32_t flow, bool restart)
{
    struct observer *o = user;

    for (unsigned i = 0; i < o->over.n; i++)
        o->over.to[i].over(o->over.to[i].user, flow, restart);
    forget(o, flow);
    o->seen[flow] = false;
}

static bool has_psn(void *user, uint32_t flow, uint32_t psn)
{
    struct req_dir *h = observer_req_dir(user, flow);

    return h && h->service != SVC_UC && req_dir_has_psn(h, psn); /* nobody answers UC */
}

static enum goes_on goes_on(void *user, uint32_t flow, const struct pkt *p)
{
    struct observer *o = user;
    struct req_dir *h = observer_req_dir(o, flow);

    return h ? copy_goes_on(h, conn_flow_at(o->conns, flow)->peer != FLOW_NONE, p) : GOES_NOT_ON;
}

static uint32_t take_number(void *user)
{
    return conn_number_take(user);
}

struct observer *observer_new(const struct observer_opts *opts)
{
    struct observer *o = calloc(1, sizeof *o);

    if (!o)
        return NULL;
    if (opts)
        o->opts = *opts;
    o->opts.memory = o->opts.memory ? o->opts.memory : ROOM_DEFAULT;
    o->opts.per_flow = o->opts.per_flow ? o->opts.per_flow : ROOM_PER_FLOW;
    o->room = room_of(o->opts.memory);
    o->conns = conn_table_new(room_flows(o->opts.memory, o->opts.per_flow));
    o->flow = o->conns ? conn_flows(o->conns) : NULL;
    o->dirs = zeros_new(observer_flows(o), sizeof *o->dirs);
    o->evidence = pool_new(observer_flows(o), sizeof(struct evidence));
    o->seen = zeros_new(observer_flows(o), sizeof *o->seen);
    o->iwarp = iwarp_new(take_number, o->conns);
    if (!o->conns || !o->dirs || !o->evidence.all || !o->seen || !o->iwarp) {
        observer_free(o);
        return NULL;
    }
    conn_table_user(o->conns, o, flow_over, has_psn, goes_on);
    return o;
}

void observer_free(struct observer *o)
{
    if (!o)
        return;
    if (o->timeline)
        o->release_timeline(o->timeline);
    for (uint32_t i = 0; o->conns && o->dirs && i < conn_counts(o->conns).flows; i++)
        forget(o, i);
    pool_end(&o->evidence);
    zeros_free(o->dirs, observer_flows(o), sizeof *o->dirs);
    zeros_free(o->seen, observer_flows(o), sizeof *o->seen);
    iwarp_free(o->iwarp);
    conn_table_free(o->conns);
    free(o);
}

bool observer_subscribe(struct observer *o, const struct observer_sub *s)
{
    if (o->n_subs == OBSERVER_SUBS)
        return false;
    o->n_subs++;
    if (s->over)
        o->over.to[o->over.n++] = (struct listener){.user = s->user, .over = s->over};
    if (s->fetch)
        o->fetch.to[o->fetch.n++] = (struct listener){.user = s->user, .fetch = s->fetch};
    if (s->early)
        o->early.to[o->early.n++] = (struct listener){.user = s->user, .packet = s->early};
    if (s->before)
        o->before.to[o->before.n++] = (struct listener){.user = s->user, .event = s->before};
    if (s->after)
        o->after.to[o->after.n++] = (struct listener){.user = s->user, .event = s->after};
    return true;
}

struct timeline *observer_timeline(const struct observer *o)
{
    return o->timeline;
}

void observer_set_timeline(struct observer *o, struct timeline *t, void (*release)(struct timeline *t))
{
    o->timeline = t;
    o->release_timeline = release;
}

void observer_incomplete(struct observer *o)
{
    o->opts.complete = false;
}

uint64_t observer_packets(const struct observer *o)
{
    return o->packets;
}

struct iwarp *observer_iwarp(struct observer *o)
{
    return o->iwarp;
}

struct conn_table *observer_conns(struct observer *o)
{
    return o->conns;
}

uint32_t observer_flows(const struct observer *o)
{
    return room_flows(o->opts.memory, o->opts.per_flow);
}

void observer_expect_many(struct observer *o)
{
    pool_many(&o->evidence);
    conn_expect_many(o->conns);
}

struct room *observer_room(struct observer *o)
{
    return &o->room;
}

struct req_dir *observer_req_dir(struct observer *o, uint32_t flow)
{
    return (struct req_dir *)o->dirs[flow]; /* its first member; NULL remains NULL */
}

const struct tries *observer_tries(const struct observer *o, uint32_t flow)
{
    static const struct tries none;

    return o->dirs[flow] ? &o->dirs[flow]->go_backs.tries : &none;
}

/* Whether `src` sent packets other than RDMA to `dst`. */
static bool sent_other(const struct observer *o, uint32_t tap, const struct conn_addr *src, const struct conn_addr *dst)
{
    for (unsigned i = 0; i < ENDS; i++) {
        const struct ends *e = &o->others[i];
        if (e->used && e->tap == tap && conn_addr_eq(&e->src, src) && conn_addr_eq(&e->dst, dst))
            return true;
    }
    return false;
}

bool observer_sees_responses(const struct observer *o, uint32_t flow)
{
    const struct flow *f = &o->flow[flow];

    return (!o->partial && sent_other(o, f->tap, &f->dst, &f->src)) || observer_sees_rdma_responses(o, flow);
}

bool observer_sees_rdma_responses(const struct observer *o, uint32_t flow)
{
    const struct flow *flows = o->flow, *f = &flows[flow];

    if (!o->partial && f->params.rep_frame)
        return true;
    if (f->peer != FLOW_NONE)
        return o->seen[f->peer];
    for (uint32_t i = 0; i < conn_counts(o->conns).flows; i++)
        if (o->seen[i] && flows[i].tap == f->tap && conn_addr_eq(&flows[i].src, &f->dst) &&
            conn_addr_eq(&flows[i].dst, &f->src))
            return true;
    return false;
}

/* --- Requests --------------------------------------------------------------------------------- */

/* At the first request of a flow: discard the learnt setup if its starting PSN is far away, it then belongs to an
 * earlier connection. */
static void distrust_setup(struct observer *o, const struct pkt *p, uint32_t flow)
{
    const struct flow *c = &o->flow[flow];

    if (o->opts.cautious && !o->opts.complete && c->have_psn && !psn_in(p->bth.psn, c->psn, TRACK_SENT))
        conn_unlearn(o->conns, flow);
}

/* Create the evidence of a flow; NULL without memory. Not inlined, so that dir_of() stays short. */
static __attribute__((noinline)) struct req_dir *dir_new(struct observer *o, const struct pkt *p, uint32_t flow)
{
    const struct flow *c = &o->flow[flow];
    struct evidence *v = pool_take(&o->evidence);
    struct req_dir *h = &v->h;

    if (!v)
        return NULL;
    if (!req_dir_init(h, flow)) {
        pool_give(&o->evidence, v);
        return NULL;
    }
    o->dirs[flow] = v;
    h->room = &o->room;
    v->block = UINT32_MAX;
    distrust_setup(o, p, flow);
    req_dir_set_pmtu(h, c->pmtu);
    h->from_start = c->have_psn && c->psn == p->bth.psn;
    h->gbn_known = !o->opts.cautious && c->have_psn && psn_in(p->bth.psn, c->psn, TRACK_SENT);
    h->gbn = h->gbn_known ? c->psn : 0;
    return h;
}

static inline struct req_dir *dir_of(struct observer *o, const struct pkt *p, uint32_t flow)
{
    struct req_dir *h = observer_req_dir(o, flow);

    return LIKELY(h != NULL) ? h : dir_new(o, p, flow);
}

#define UC_COPY_WITHIN (100 * NS_PER_MS) /* the network does not delay a copy for longer */

/* Whether a UC requester, which never retransmits, starts from its first PSN, or from an earlier one: its queue pair
 * was reset. */
static bool is_uc_reset(const struct event *e)
{
    const struct req_dir *h = e->h;

    return psn_diff(e->p->bth.psn, h->start) <= 0 && e->p->op->flags & OPF_START &&
           (e->as != SEEN_COPY || e->p->frame->ts - h->last_ts > UC_COPY_WITHIN);
}

/* Whether a PSN this far from those remembered may be the first one of another connection of the same queue pairs:
 * without CM, only the distance shows that. */
static bool may_be_reset(const struct observer *o, const struct event *e)
{
    unsigned how = o->opts.complete ? o->flow[e->flow].paired_by : PAIR_NONE;
    bool far = e->as == SEEN_GAP && how != PAIR_CM && psn_diff(e->p->bth.psn, e->h->next) > TRACK_SENT;

    if (UNLIKELY(e->h->service == SVC_UC))
        return (far && e->p->op->flags & OPF_START) || (how != PAIR_CM && is_uc_reset(e));
    return e->as == SEEN_OLD ? how <= PAIR_PSN : far;
}

/* When the connection of `flow` last sent a packet, in either direction. */
static ns_t latest_packet(struct observer *o, uint32_t flow)
{
    uint32_t peer = o->flow[flow].peer;
    const struct req_dir *dirs[] = {observer_req_dir(o, flow), peer == FLOW_NONE ? NULL : observer_req_dir(o, peer)};
    ns_t at = 0;

    for (unsigned i = 0; i < ARRAY_LEN(dirs); i++) {
        const struct req_dir *h = dirs[i];
        at = h && h->last_ts > at ? h->last_ts : at;
        at = h && h->rsp_ts > at ? h->rsp_ts : at;
    }
    return at;
}

/* Whether a request after a long silence is the first one of another connection of the same queue pairs, without CM
 * that was captured: it is not what the requester would send next, nor a retransmission. */
static bool is_used_again(struct observer *o, const struct event *e)
{
    bool cm = o->opts.complete && o->flow[e->flow].paired_by == PAIR_CM, begins = e->p->op->flags & OPF_START;

    if (cm || !begins || e->p->frame->ts - latest_packet(o, e->flow) <= QPN_REUSED_AFTER)
        return false;
    if (e->as == SEEN_NEW)
        return e->h->fatal.have;
    return e->as != SEEN_COPY && (e->as != SEEN_AGAIN || !copy_may_repeat(e->h, e->p));
}

/* The queue pair was reset: neither the CM parameters nor the path MTU derived from packets hold any more. */
static void apply_reset(struct observer *o, const struct event *e)
{
    const struct flow *c = &o->flow[e->flow];

    if (!o->opts.complete && c->paired_by > PAIR_PSN)
        conn_unlearn(o->conns, e->flow);
    e->h->pmtu = (uint16_t)c->pmtu;
}

/* Why the requester goes back to the request of `e`. */
static enum why_back why_back(struct observer *o, const struct event *e)
{
    const struct conn_params *c = &o->flow[e->flow].params;

    e->h->timeout = c->timeout_known ? c->timeout : 0;
    return go_back_why(&o->dirs[e->flow]->go_backs, e->h, e->p);
}

/* A request whose PSN is not the next one, or that comes after a long silence: decide whether the queue pair was reset,
 * or why its requester goes back. */
static __attribute__((noinline)) void look_closer(struct observer *o, struct event *e)
{
    if (e->as == SEEN_AGAIN || e->as == SEEN_RESTART)
        e->forged = copy_of_another_sender(e->h, e->p);
    if (UNLIKELY(e->forged)) {
        e->as = SEEN_AGAIN;
        return;
    }
    if (o->opts.cautious && (may_be_reset(o, e) || is_used_again(o, e)))
        e->as = SEEN_RESTART;
    if (o->opts.cautious && e->as == SEEN_RESTART)
        apply_reset(o, e);
    else if (e->as == SEEN_AGAIN && psn_diff(e->p->bth.psn, e->h->cursor) < 0)
        e->why = (uint8_t)why_back(o, e);
}

static inline void note_lately(struct observer *o, uint32_t flow)
{
    if (flow < LATELY)
        o->lately |= UINT64_C(1) << flow;
}

#define BLOCKS_OF_READ 64 /* blocks of PSNs of a READ that are noted; its first responses find their requests */

/* Enter the PSNs of a request into the index (conn_note_psn()), by which the flow of a response is found. */
static __attribute__((noinline)) void note_psns(struct observer *o, const struct pkt *p, uint32_t flow)
{
    uint32_t psn = p->bth.psn, bytes = p->have & H_RETH && p->op->flags & OPF_READ_REQ ? p->reth.dmalen : 0;
    /* a response for each 256 bytes, at most */
    uint32_t blocks = (psn % PSN_BLOCK + bytes / 256) / PSN_BLOCK;

    o->dirs[flow]->block = psn / PSN_BLOCK;
    for (uint32_t i = 0; i <= min_u32(blocks, BLOCKS_OF_READ); i++)
        conn_note_psn(o->conns, flow, psn_add(psn, i * PSN_BLOCK));
}

ALWAYS_INLINE void see_request(struct observer *o, const struct pkt *p, uint32_t flow, struct event *e)
{
    *e = (struct event){.p = p, .kind = EVENT_REQUEST, .own = flow, .flow = flow, .h = dir_of(o, p, flow)};
    note_lately(o, flow);
    if (UNLIKELY(!e->h))
        return;
    if (UNLIKELY(p->bth.psn / PSN_BLOCK != o->dirs[flow]->block || p->op->flags & OPF_READ_REQ))
        note_psns(o, p, flow);
    if (UNLIKELY(!e->h->pmtu && p->op->flags & (OPF_FIRST | OPF_MIDDLE)))
        req_dir_set_pmtu(e->h, p->payload_len);
    e->as = (uint8_t)req_dir_classify(e->h, p);
    if (UNLIKELY(e->as != SEEN_NEW || p->frame->ts - e->h->last_ts > QPN_REUSED_AFTER))
        look_closer(o, e);
    if (UNLIKELY(conn_moved(o->conns, flow))) { /* its first try along this path is no retry */
        e->moved = true;
        o->dirs[flow]->go_backs.tries.n = 0;
    }
}

void observer_request(struct observer *o, const struct pkt *p, uint32_t flow, struct event *e)
{
    see_request(o, p, flow, e);
}

/* --- Responses -------------------------------------------------------------------------------- */

/* The path MTU that a READ response tells: its length; 0: none. The last one, without those before it, may be that of
 * another READ, which was not captured. */
static uint32_t pmtu_of_response(const struct pkt *p)
{
    return p->op->flags & (OPF_FIRST | OPF_MIDDLE) ? p->payload_len : 0;
}

ALWAYS_INLINE void see_response(struct observer *o, const struct pkt *p, uint32_t flow, struct event *e)
{
    struct flow *c = &o->flow[flow];

    *e = (struct event){
        .p = p, .kind = EVENT_RESPONSE, .own = flow, .flow = FLOW_NONE, .unpaired = c->peer == FLOW_NONE};
    if (UNLIKELY(e->unpaired))
        conn_pair_by_psn(o->conns, flow, p->bth.psn);
    if (c->peer == FLOW_NONE || (p->op->flags & OPF_ACK && !(p->have & H_AETH)))
        return; /* an Acknowledge cut before its AETH may be an ACK or a NAK */
    e->flow = c->peer;
    e->h = observer_req_dir(o, e->flow);
    note_lately(o, flow);
    note_lately(o, e->flow);
    if (UNLIKELY(e->h && !e->h->pmtu && p->op->flags & OPF_READ_RESP)) {
        req_dir_set_pmtu(e->h, pmtu_of_response(p));
        e->h->pmtu_from_response = e->h->pmtu != 0;
    }
}

void observer_response(struct observer *o, const struct pkt *p, uint32_t flow, struct event *e)
{
    see_response(o, p, flow, e);
}

/* --- Packets ---------------------------------------------------------------------------------- */

void observer_take(struct observer *o, const struct event *e)
{
    const struct pkt *p = e->p;

    if (e->kind == EVENT_REQUEST) {
        go_back_next(&o->dirs[e->flow]->go_backs, p->bth.psn);
        req_dir_request(e->h, p, (enum seen_as)e->as, (enum why_back)e->why);
        if (UNLIKELY(e->moved))
            e->h->retries = 0;
        return;
    }
    req_dir_response(e->h, p);
    if (UNLIKELY(p->op->flags & OPF_ACK && p->aeth.syndrome == (AETH_NAK << 5 | NAK_PSN_SEQ)))
        go_back_nak(&o->dirs[e->flow]->go_backs, p->bth.psn);
}

static void note_other(struct observer *o, const struct pkt *p)
{
    struct ends e = {.tap = conn_tap_of(p->frame), .used = true};

    conn_addr_of(p, &e.src, &e.dst);
    if (!sent_other(o, e.tap, &e.src, &e.dst))
        o->others[o->others_at++ % ENDS] = e;
}

/* A TCP segment. */
static void learn_stream(struct observer *o, const struct pkt *p)
{
    struct iwarp_ends e = {.tap = conn_tap_of(p->frame)};
    struct conn_addr src, dst;

    conn_addr_of(p, &src, &dst);
    e.network = src.network;
    memcpy(e.src, src.b, sizeof e.src);
    memcpy(e.dst, dst.b, sizeof e.dst);
    iwarp_packet(o->iwarp, p, &e);
}

void observer_learn(struct observer *o, const struct pkt *p)
{
    if (LIKELY(p->have & H_BTH && !(p->have & H_MAD)))
        return;
    if (!(p->have & H_BTH) && p->addr_len)
        note_other(o, p);
    if (tcp_layer(p))
        learn_stream(o, p);
    else
        iwarp_no_packet(o->iwarp);
    learn_packet(&o->learner, o->conns, p);
}

void observer_early(const struct observer *o, const struct pkt *p)
{
    for (unsigned i = 0; i < o->early.n; i++)
        o->early.to[i].packet(o->early.to[i].user, p);
}

static inline void hand_out(const struct listeners *l, const struct event *e)
{
    for (unsigned i = 0; i < l->n; i++)
        l->to[i].event(l->to[i].user, e);
}

static void fetch_flow(const struct observer *o, uint32_t flow)
{
    const struct evidence *v = o->dirs[flow];

    fetch_to_write(&o->flow[flow].in, CACHE_LINE);
    if (v)
        fetch_to_write(v, REQ_DIR_HOT);
    for (unsigned i = 0; i < o->fetch.n; i++)
        o->fetch.to[i].fetch(o->fetch.to[i].user, flow);
}

void observer_fetch(struct observer *o)
{
    for (uint64_t rest = o->lately; rest; rest &= rest - 1)
        fetch_flow(o, (uint32_t)__builtin_ctzll(rest));
    o->lately = 0;
}

void observer_teach(struct observer *o, const struct pkt *p)
{
    observer_early(o, p);
    o->partial |= (p->have & (H_BTH | H_MAD)) == H_BTH;
    iwarp_mute(o->iwarp, true);
    observer_learn(o, p);
    iwarp_mute(o->iwarp, false);
}

void observer_see(struct observer *o, const struct pkt *p, struct event *e)
{
    bool usable = p->have & H_BTH && !(p->flags & PKT_MALFORMED) && p->op->name;
    uint32_t flow;

    if (LIKELY(usable && p->icrc != CRC_BAD && !(p->op->ext & H_DETH || p->op->flags & OPF_CNP))) {
        flow = conn_flow(o->conns, p);
        if (UNLIKELY(!o->seen[flow]))
            o->seen[flow] = true; /* not written for nothing: another thread may have it in its caches */
        if (p->op->flags & OPF_REQUEST)
            see_request(o, p, flow, e);
        else
            see_response(o, p, flow, e);
        return;
    }
    observer_learn(o, p);
    *e = (struct event){.p = p, .kind = EVENT_OTHER, .own = FLOW_NONE, .flow = FLOW_NONE};
    if (p->icrc == CRC_BAD)
        e->kind = EVENT_BAD_ICRC;
    else if (usable && p->op->flags & OPF_CNP)
        e->kind = EVENT_CNP;
    if (e->kind == EVENT_CNP)
        e->own = conn_flow_unnumbered(o->conns, p); /* its peer is known even if its sender has sent nothing else */
    else if (usable && !(p->op->ext & H_DETH) && e->kind != EVENT_OTHER)
        e->own = conn_flow_find(o->conns, p);
}

void observer_packet(struct observer *o, const struct pkt *p)
{
    struct event e;

    o->packets++;
    observer_early(o, p);
    observer_see(o, p, &e);
    hand_out(&o->before, &e);
    if (!e.h)
        return;
    observer_take(o, &e);
    hand_out(&o->after, &e);
}
