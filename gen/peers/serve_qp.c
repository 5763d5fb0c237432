/* layer 3 (peers): the server's queue pairs: memory, receives, answers. */
#include "gen/peers/serve_impl.h"

#include <errno.h>
#include <stdlib.h>

#define RECV_BYTES (8u << 20) /* memory for the receives of one queue pair */
#define RECVS_MIN  2
#define RECVS_MAX  512
#define DOUBT      8   /* this part of the memory is for receives that are probably not needed */
#define READS      128 /* READs and atomics outstanding, as responder: perftest requests as many */
/* after this time without a second message the client may be waiting for an answer */
#define GUESS_WAIT (100 * NS_PER_MS)
/* after this time without a packet the client waits for our WRITE, rather than being about to READ */
#define GUESS_READ (3 * NS_PER_S)
#define GUESS_SLOW 10                  /* or this many times the session's `slowest`, if that is longer */
#define WR_SENT    (UINT64_C(1) << 63) /* wr_id: session, queue pair, slot */

static uint64_t wr_id(const struct serve *v, const struct serve_session *s, const struct serve_qp *q)
{
    return (uint64_t)(s - v->session) << 48 | (uint64_t)(q - s->qp) << 32;
}

static bool is_ud(const struct serve *v, const struct serve_session *s)
{
    return v->config.type == QPT_UD && !s->cm;
}

bool sqp_xrc_both_ways(const struct serve *v, const struct serve_session *s)
{
    return v->config.type == QPT_XRC_INI && !s->cm && (v->config.latency || s->mark.latency);
}

static bool lay_out(struct serve *v, struct serve_session *s, struct serve_qp *q)
{
    bool receives = s->cm || q->peer.rkey == 0; /* with RDMA-CM the keys come later */
    bool doubtful = !receives && !s->mark.ours; /* some adapters have an R_Key for memory without remote rights */
    uint32_t largest = is_ud(v, s) ? min_u32(v->config.room, v->live->mtu) : v->config.room;
    uint32_t bytes = largest + UD_GRH_BYTES, slots = RECV_BYTES / bytes;

    slots = max_u32(RECVS_MIN, min_u32(doubtful ? slots / DOUBT : slots, RECVS_MAX));
    if (!receives && (!doubtful || v->memory >= SERVE_MEMORY / DOUBT))
        slots = 0;
    q->mem_len = 2 * (size_t)v->config.room + (size_t)slots * bytes;
    if (v->memory + q->mem_len > SERVE_MEMORY)
        return false;
    q->mem = calloc(1, q->mem_len);
    if (!q->mem)
        return false;
    v->memory += q->mem_len;
    q->recvs = (struct receives){.verbs = v->verbs,
                                 .srq = EP_NO_SRQ,
                                 .mem = q->mem + 2 * (size_t)v->config.room,
                                 .iova = (uintptr_t)q->mem + 2 * (size_t)v->config.room,
                                 .pitch = bytes,
                                 .bytes = bytes,
                                 .grh = is_ud(v, s) ? UD_GRH_BYTES : 0,
                                 .slots = slots,
                                 .id = wr_id(v, s, q)};
    return true;
}

/* The memory of an answer. */
static uint8_t *answer_mem(const struct serve *v, const struct serve_qp *q)
{
    return q->mem + v->config.room;
}

/* XRC: the target's domain and shared receive queue and, with latency, the initiator. */
static int make_xrc(struct serve *v, const struct serve_session *s, struct serve_qp *q, struct verbs_qp_init *init)
{
    int r = xrc_open(&q->xrc, v->verbs, q->pd, v->cq, q->recvs.slots);

    if (r == 0 && sqp_xrc_both_ways(v, s))
        r = xrc_add(&q->xrc, *init);
    init->type = QPT_XRC_TGT;
    init->xrcd = q->xrc.xrcd;
    q->recvs.srq = q->xrc.srq;
    return r;
}

static int make(struct serve *v, struct serve_session *s, struct serve_qp *q)
{
    struct verbs *verbs = v->verbs;
    struct verbs_qp_init init = {.type = s->cm ? QPT_RC : v->config.type,
                                 .max_send_wr = 16,
                                 .max_recv_wr = q->recvs.slots,
                                 .max_dest_rd = READS,
                                 .sq_sig_all = true,
                                 .srq = EP_NO_SRQ,
                                 .send_cq = v->cq,
                                 .recv_cq = v->cq};
    int r;

    q->pd = init.pd = verbs_pd_alloc(verbs);
    r = verbs_mr_reg(verbs, q->pd, q->mem, q->mem_len, ACCESS_LOCAL_WRITE, &q->key);
    if (r == 0)
        r = verbs_mr_reg(verbs, q->pd, q->mem, v->config.room, ACCESS_LOCAL_WRITE | ACCESS_REMOTE, &q->rkey);
    if (r == 0 && init.type == QPT_XRC_INI)
        r = make_xrc(v, s, q, &init);
    if (r == 0)
        r = q->qp = verbs_qp_create(verbs, &init);
    q->recvs.qp = q->qp;
    q->recvs.lkey = q->key;
    return r < 0 ? r : 0;
}

static void release(struct serve *v, struct serve_qp *q)
{
    rdmacm_id_destroy(v->verbs->cm, q->id, live_now());
    if (q->qp >= 0)
        verbs_qp_destroy(v->verbs, q->qp);
    xrc_close(&q->xrc);
    if (q->ah >= 0)
        verbs_ah_destroy(v->verbs, q->ah);
    if (q->key)
        verbs_mr_dereg(v->verbs, q->key);
    if (q->rkey)
        verbs_mr_dereg(v->verbs, q->rkey);
    v->memory -= q->mem ? q->mem_len : 0;
    free(q->mem);
}

struct serve_qp *sqp_new(struct serve *v, struct serve_session *s, const struct perftest_keys *peer)
{
    struct serve_qp *q;

    if (!s->qp)
        s->qp = calloc(SERVE_QPS, sizeof *s->qp);
    if (!s->qp || s->n_qps == SERVE_QPS) {
        session_fail(s, "it wants more than %u queue pairs", SERVE_QPS);
        return NULL;
    }
    q = &s->qp[s->n_qps];
    *q = (struct serve_qp){.qp = -1, .ah = -1, .id = -1, .peer = *peer};
    if (!lay_out(v, s, q) || make(v, s, q) < 0) {
        release(v, q);
        session_fail(s, "no memory is left for its queue pairs");
        return NULL;
    }
    s->n_qps++;
    q->own = (struct perftest_keys){.out_reads = min_u32(peer->out_reads ? peer->out_reads : 1, READS),
                                    .qpn = verbs_qp_num(v->verbs, q->qp),
                                    .psn = verbs_pick_psn(v->verbs),
                                    .vaddr = (uintptr_t)q->mem,
                                    .srqn = xrc_srqn(&q->xrc)};
    memcpy(q->own.gid, v->live->id.gid, 16);
    return q;
}

/* The path to a queue pair at `gid`, and the attributes of ours; false: the session has failed. */
static bool path_to(struct serve *v, struct serve_session *s, const uint8_t gid[16], struct ep_peer *e)
{
    *e = ep_peer_default();
    e->path_mtu = s->mtu;
    e->qkey = PERFTEST_QKEY;
    e->max_dest_rd_atomic = READS;
    if (live_path(v->live, gid, &e->av))
        return true;
    session_fail(s, "%s, where its queue pair is to be, does not answer", live_addr_str(gid));
    return false;
}

void sqp_connect_back(struct serve *v, struct serve_session *s, struct serve_qp *q, ns_t now)
{
    struct ep_peer e;
    int r;

    if (!path_to(v, s, q->xrc.peer.gid, &e))
        return;
    r = xrc_connect(&q->xrc, e, now);
    if (r < 0)
        session_fail(s, "the initiator for its answers cannot be connected: %s", strerror(-r));
}

void sqp_connect(struct serve *v, struct serve_session *s, struct serve_qp *q, ns_t now)
{
    struct ep_peer e;
    int r;

    if (!path_to(v, s, q->peer.gid, &e))
        return;
    e.qpn = q->peer.qpn;
    e.rq_psn = q->peer.psn;
    e.sq_psn = q->own.psn;
    if (v->config.type == QPT_UD)
        q->ah = verbs_ah_create(v->verbs, q->pd, &e.av);
    r = verbs_qp_connect(v->verbs, q->qp, &e, now);
    if (r < 0)
        session_fail(s, "its queue pair cannot be connected: %s", strerror(-r));
    else if (v->joined)
        v->joined(v->user, q->qp, &q->peer);
}

/* Check the result of posting receives. */
static void posted(struct serve_session *s, int err)
{
    if (err < 0)
        session_fail(s, "a receive could not be posted");
}

/* A frame consumes one receive at most, and receives are posted again between two steps: so no SEND lacks one. */
static void limit_burst(struct serve *v)
{
    uint32_t least = 0;

    for (unsigned i = 0; i < SERVE_SESSIONS; i++) {
        const struct serve_session *s = &v->session[i];
        for (unsigned k = 0; s->used && s->kind == SERVE_SEND && k < s->n_qps; k++)
            if (!least || s->qp[k].recvs.slots < least)
                least = s->qp[k].recvs.slots;
    }
    v->live->burst = least;
}

void sqp_ready(struct serve *v, struct serve_session *s, struct serve_qp *q, ns_t now)
{
    if (q->ready)
        return;
    q->ready = true;
    if (s->kind != SERVE_SEND)
        q->own.rkey = q->rkey;
    if (xrc_both_ways(&q->xrc)) { /* all but QPN and PSN is the same for both */
        struct perftest_keys k = q->own;
        k.qpn = q->xrc.own.qpn;
        k.psn = q->xrc.own.psn;
        q->xrc.own = k;
    }
    if (s->kind == SERVE_READ)
        perf_pattern(q->mem, v->config.room, PERF_SEED);
    posted(s, receives_post_all(&q->recvs, now));
    limit_burst(v);
}

static void answer(struct serve *v, struct serve_session *s, struct serve_qp *q, enum wr_opcode op, uint32_t size,
                   ns_t now)
{
    bool back = xrc_both_ways(&q->xrc);
    struct sge sge = {(uintptr_t)answer_mem(v, q), size, q->key};
    struct send_wr wr = perf_wr(op, &sge, back ? &q->xrc.peer : &q->peer, q->ah);
    int r;

    wr.wr_id = WR_SENT | wr_id(v, s, q);
    q->answered++;
    if (op == WR_RDMA_WRITE)
        answer_mem(v, q)[size - 1] = (uint8_t)q->answered;
    r = verbs_post_send(v->verbs, back ? q->xrc.qp : q->qp, &wr, now);
    if (r < 0)
        session_fail(s, "an answer could not be posted: %s", strerror(-r));
}

/* Size of the messages of ib_write_lat. */
static uint32_t write_size(const struct serve *v, const struct serve_session *s)
{
    uint32_t size = s->mark.size ? s->mark.size : v->config.size;

    return size <= v->config.room ? size : v->config.room;
}

static void message(struct serve *v, struct serve_session *s, struct serve_qp *q, const struct wc *wc, ns_t now)
{
    uint32_t slot = wc->wr_id & 0xffffffff, len;
    const uint8_t *data = receives_data(&q->recvs, slot, wc, &len);

    if (wc->opcode != WC_RECV) { /* a WRITE with immediate data has no data here */
        posted(s, receives_post(&q->recvs, slot, now));
        return;
    }
    if (s->kind != SERVE_SEND) { /* in spite of its R_Key */
        s->kind = SERVE_SEND;
        s->kind_guessed = false;
        limit_burst(v);
    }
    q->received++;
    q->arrived = now;
    if (s->mark.ours && (!perf_pattern_ok(data, len) || (s->mark.size && len != s->mark.size)))
        q->wrong++;
    if (len <= v->config.room)
        memcpy(answer_mem(v, q), data, len);
    posted(s, receives_post(&q->recvs, slot, now));
    if (v->config.latency || s->mark.latency)
        s->answering = true;
    q->len = len;
    if (s->answering)
        answer(v, s, q, WR_SEND, len, now);
}

/* The answer on trial has completed; `good`: successfully. */
static void trial_done(struct serve *v, struct serve_session *s, struct serve_qp *q, bool good, ns_t now)
{
    s->on_trial = false;
    if (!good) /* the reason has been reported */
        return;
    s->answering = true;
    if (q->received > q->answered) /* the next message arrived before the ACK */
        answer(v, s, q, WR_SEND, q->len, now);
}

static bool is_of(const struct serve *v, const struct serve_qp *q, uint32_t qpn)
{
    return verbs_qp_num(v->verbs, q->qp) == qpn || (xrc_both_ways(&q->xrc) && q->xrc.own.qpn == qpn);
}

void sqp_poll(struct serve *v, ns_t now)
{
    struct wc wc;

    while (verbs_poll(v->verbs, v->cq, &wc, 1) == 1) {
        struct serve_session *s = &v->session[wc.wr_id >> 48 & (SERVE_SESSIONS - 1)];
        unsigned i = (unsigned)(wc.wr_id >> 32 & 0xffff);
        bool sent = wc.wr_id & WR_SENT;
        if (!s->used || i >= s->n_qps || s->stage == SERVE_OVER || !is_of(v, &s->qp[i], wc.qpn))
            continue; /* of a session that has ended */
        if (sent && s->on_trial)
            trial_done(v, s, &s->qp[i], wc.status == WC_SUCCESS, now);
        else if (wc.status == WC_SUCCESS && !sent)
            message(v, s, &s->qp[i], &wc, now);
        else if (wc.status != WC_SUCCESS && !s->qp[i].gone)
            session_fail(s, "%s completed with %s", sent ? "an answer" : "a receive", wc_status_str(wc.status));
    }
}

uint64_t sqp_payload(const struct serve *v, const struct serve_session *s)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < s->n_qps; i++)
        n += verbs_qp_counters(v->verbs, s->qp[i].qp).rx_payload;
    return n;
}

/* Packets without payload have arrived: the assumed WRITEs are READs or atomics, one at a time. If payload follows,
 * they are WRITEs after all: the first packets were lost or corrupted. */
static void find_kind(struct serve_session *s)
{
    if (s->kind == SERVE_WRITE && !s->answering && s->progress && s->bytes == 0) {
        s->kind = SERVE_READ;
        s->kind_guessed = true;
    } else if (s->kind_guessed && s->bytes) {
        s->kind = SERVE_WRITE;
        s->kind_guessed = false;
    }
}

/* How many keys a client like ib_*_lat sends before the data: over XRC those of two queue pairs. */
static unsigned keys_of_latency(const struct serve *v, const struct serve_session *s)
{
    return sqp_xrc_both_ways(v, s) ? 6 : 4;
}

/* Whether a client that has sent its keys waits for our WRITE. ib_write_bw and ib_read_bw send data before they send
 * their keys for the fourth time. */
static bool waits_for_write(const struct serve *v, const struct serve_session *s, ns_t now)
{
    ns_t guess = GUESS_SLOW * s->slowest;

    if (s->kind != SERVE_WRITE || s->answering || s->n_keys != keys_of_latency(v, s) || s->progress)
        return false;
    if (s->mark.ours)
        return s->mark.latency;
    if (guess < GUESS_READ)
        guess = GUESS_READ;
    if (guess > v->config.wait / 2)
        guess = v->config.wait / 2;
    return now - s->keys_at >= guess;
}

/* Whether the sender of a first message may wait for an answer. */
static bool may_wait_for_answer(const struct serve_session *s, const struct serve_qp *q, ns_t now)
{
    bool others_send = s->kind == SERVE_SEND && !q->xrc.verbs && !s->mark.ours && s->n_keys == 4;
    bool undecided = !s->answering && !s->on_trial, first = q->received == 1 && q->answered == 0;

    return others_send && undecided && first && now - q->arrived >= GUESS_WAIT;
}

static void work_alone(struct serve *v, struct serve_session *s, struct serve_qp *q, ns_t now)
{
    if (s->kind == SERVE_WRITE && s->answering) {
        const volatile uint8_t *last = q->mem + write_size(v, s) - 1;
        if (*last == (uint8_t)q->answered) {
            q->received++;
            answer(v, s, q, WR_RDMA_WRITE, write_size(v, s), now);
        }
    } else if (waits_for_write(v, s, now)) {
        s->answering = true;
        answer(v, s, q, WR_RDMA_WRITE, write_size(v, s), now);
    } else if (may_wait_for_answer(s, q, now)) {
        s->on_trial = true;
        answer(v, s, q, WR_SEND, q->len, now);
    } else if (s->on_trial && verbs_qp_counters(v->verbs, q->qp).rnr_nak_retry_err) {
        /* RNR: a client that waits for an answer would have posted a receive, so this one only sends */
        s->on_trial = false;
        verbs_qp_hold(v->verbs, q->qp, NS_NEVER);
    }
}

void sqp_work(struct serve *v, struct serve_session *s, ns_t now)
{
    uint64_t progress = 0;

    for (unsigned i = 0; i < s->n_qps; i++)
        progress += verbs_qp_counters(v->verbs, s->qp[i].qp).rx_packets;
    s->bytes = sqp_payload(v, s);
    if (progress != s->progress) {
        s->progress = progress;
        s->last_rx = now;
    }
    find_kind(s);
    if (s->n_qps == 1)
        work_alone(v, s, s->qp, now);
}

void sqp_free_all(struct serve *v, struct serve_session *s)
{
    for (unsigned i = 0; i < s->n_qps; i++)
        release(v, &s->qp[i]);
    free(s->qp);
    s->qp = NULL;
    s->n_qps = 0;
    limit_burst(v);
}
