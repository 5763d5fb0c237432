/* layer 3 (peers): perftest-like traffic: posting work requests and polling completions. */
#include "gen/peers/perf_run.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define WR_RECV (UINT64_C(1) << 63) /* wr_id of receives */
#define WR_QP   48                  /* and from this bit on the queue pair; below, the message or the slot */
#define RECVS   16                  /* receives posted for responses of the peer */

enum stage { STAGE_IDLE, STAGE_LEARN, STAGE_RUN, STAGE_CHECK, STAGE_DONE };

enum perftest_op load_perftest_op(enum traffic_op op)
{
    static const uint8_t of[] = {[TRAFFIC_WRITE] = PERFTEST_WRITE,
                                 [TRAFFIC_SEND] = PERFTEST_SEND,
                                 [TRAFFIC_READ] = PERFTEST_READ,
                                 [TRAFFIC_CAS] = PERFTEST_ATOMIC,
                                 [TRAFFIC_FAA] = PERFTEST_ATOMIC};

    return (enum perftest_op)of[op];
}

void load_fail(struct load *l, const char *fmt, ...)
{
    va_list ap;

    if (l->failed)
        return;
    l->failed = true;
    va_start(ap, fmt);
    vsnprintf(l->why, sizeof l->why, fmt, ap);
    va_end(ap);
}

/* --- Data ------------------------------------------------------------------------------------- */

static bool is_atomic(const struct load *l)
{
    return traffic_is_atomic(l->config.op);
}

/* SEND and WRITE with `latency`: the peer sends each message back. */
static bool is_pong(const struct load *l)
{
    return l->config.latency && (l->config.op == TRAFFIC_SEND || l->config.op == TRAFFIC_WRITE);
}

static uint8_t *slot_mem(const struct load *l, const struct load_qp *q, uint64_t n)
{
    return q->mem + (n % l->slots) * l->slot;
}

/* Where the first message of the peer arrives. */
static uint8_t *answer_mem(const struct load_qp *q)
{
    return q->recvs.mem;
}

/* --- Resources -------------------------------------------------------------------------------- */

static bool make_meter(struct load_meter *m, uint32_t window)
{
    m->window = window;
    m->ring = 2 * window;
    m->when = calloc(m->ring, sizeof *m->when);
    return m->when != NULL;
}

static void lay_out_receives(struct load *l, unsigned i, uint32_t n)
{
    struct load_qp *q = &l->qp[i];

    q->recvs = (struct receives){.verbs = l->verbs,
                                 .srq = EP_NO_SRQ,
                                 .mem = q->mem + (size_t)l->slots * l->slot,
                                 .pitch = l->slot + UD_GRH_BYTES,
                                 .bytes = l->slot + UD_GRH_BYTES,
                                 .grh = l->config.type == QPT_UD ? UD_GRH_BYTES : 0,
                                 .slots = n,
                                 .id = WR_RECV | (uint64_t)i << WR_QP};
    q->recvs.iova = (uintptr_t)q->recvs.mem;
}

static int make_memory(struct load *l)
{
    const struct load_config *c = &l->config;
    uint32_t recvs;
    size_t of_qp;

    l->slot = (c->size + 7) & ~7u;
    l->slots = (uint32_t)(LOAD_MEMORY / c->qps / (l->slot ? l->slot : 8));
    l->slots = l->slots < 1 ? 1 : l->slots > c->depth ? c->depth : l->slots;
    if ((c->op == TRAFFIC_READ && c->validate) || is_atomic(l))
        l->config.depth = l->slots; /* each message of the peer needs a slot of its own */
    if (l->config.batch > l->config.depth)
        l->config.batch = l->config.depth;
    recvs = is_pong(l) && c->op == TRAFFIC_SEND ? RECVS : 1;
    of_qp = (size_t)l->slots * l->slot + (size_t)recvs * (l->slot + UD_GRH_BYTES);
    l->mem_len = of_qp * c->qps;
    l->mem = calloc(1, l->mem_len);
    l->sample = calloc(1, l->slot + 8u);
    l->qp = calloc(c->qps, sizeof *l->qp);
    if (!l->mem || !l->sample || !l->qp || !make_meter(&l->all, l->config.depth * c->qps))
        return -ENOMEM;
    for (unsigned i = 0; i < c->qps; i++) {
        struct load_qp *q = &l->qp[i];
        q->qp = q->ah = -1;
        q->mem = l->mem + i * of_qp;
        lay_out_receives(l, i, recvs);
        q->s.message = calloc(l->config.depth, sizeof *q->s.message);
        if (!q->s.message || !make_meter(&q->m, l->config.depth))
            return -ENOMEM;
        for (uint32_t s = 0; s < l->slots && !is_atomic(l); s++)
            load_pattern(q->mem + s * l->slot, c->size, (uint64_t)i << 32 | s);
    }
    return 0;
}

static int make_qp(struct load *l, unsigned i)
{
    const struct load_config *c = &l->config;
    struct load_qp *q = &l->qp[i];
    struct verbs_qp_init init = {.type = c->type,
                                 .qpn = i == 0 ? c->qpn : 0,
                                 .max_send_wr = c->depth + 1,
                                 .max_recv_wr = RECVS,
                                 .max_dest_rd = 16,
                                 .srq = EP_NO_SRQ,
                                 .pd = l->pd,
                                 .send_cq = l->cq,
                                 .recv_cq = l->cq};

    q->qp = verbs_qp_create(l->verbs, &init);
    if (q->qp < 0)
        return q->qp;
    q->recvs.qp = q->qp;
    q->recvs.lkey = l->key;
    q->own =
        (struct perftest_keys){.out_reads = 1, .qpn = verbs_qp_num(l->verbs, q->qp), .psn = verbs_pick_psn(l->verbs)};
    if (c->op == TRAFFIC_READ || is_atomic(l))
        q->own.out_reads = c->outs;
    if (c->op != TRAFFIC_SEND) {
        q->own.rkey = l->key;
        q->own.vaddr = (uintptr_t)answer_mem(q);
    }
    q->own.srqn = xrc_srqn(&l->xrc);
    if (l->xrc.verbs)
        q->recvs.srq = l->xrc.srq;
    return 0;
}

/* XRC with latency: the target that takes the peer's requests, for the first queue pair. */
static int make_target(struct load *l)
{
    struct verbs_qp_init init = {
        .type = QPT_XRC_TGT, .srq = EP_NO_SRQ, .pd = l->pd, .send_cq = l->cq, .recv_cq = l->cq, .max_dest_rd = 16};

    l->xrc.own = l->qp[0].own;
    return xrc_add(&l->xrc, init);
}

int load_init(struct load *l, struct verbs *verbs, const struct load_config *config)
{
    uint8_t access = ACCESS_LOCAL_WRITE;
    int r;

    memset(l, 0, sizeof *l);
    l->verbs = verbs;
    l->cq = -1;
    l->config = *config;
    if (l->config.latency)
        l->config.depth = l->config.batch = 1;
    r = make_memory(l);
    if (r < 0)
        return r;
    if (config->op == TRAFFIC_WRITE && config->latency)
        access |= ACCESS_REMOTE_WRITE;
    l->pd = verbs_pd_alloc(verbs);
    r = verbs_mr_reg(verbs, l->pd, l->mem, l->mem_len, access, &l->key);
    if (r < 0)
        return r;
    l->cq = verbs_cq_create(verbs, config->qps * (l->config.depth + 1 + RECVS));
    if (l->cq < 0)
        return l->cq;
    if (config->type == QPT_XRC_INI)
        r = xrc_open(&l->xrc, verbs, l->pd, l->cq, RECVS);
    for (unsigned i = 0; i < config->qps && r == 0; i++)
        r = make_qp(l, i);
    if (r == 0 && l->xrc.verbs && config->latency)
        r = make_target(l);
    return r;
}

void load_free(struct load *l)
{
    for (unsigned i = 0; l->qp && i < l->config.qps; i++) {
        if (l->qp[i].qp >= 0)
            verbs_qp_destroy(l->verbs, l->qp[i].qp);
        if (l->qp[i].ah >= 0)
            verbs_ah_destroy(l->verbs, l->qp[i].ah);
        free(l->qp[i].s.message);
        free(l->qp[i].m.when);
    }
    xrc_close(&l->xrc);
    if (l->verbs)
        verbs_cq_destroy(l->verbs, l->cq);
    if (l->verbs && l->key)
        verbs_mr_dereg(l->verbs, l->key);
    free(l->qp);
    free(l->mem);
    free(l->sample);
    free(l->latency);
    free(l->all.when);
    memset(l, 0, sizeof *l);
}

int load_connect(struct load *l, unsigned i, const struct av *av, ns_t now)
{
    struct load_qp *q = &l->qp[i];
    struct ep_peer e = ep_peer_default();

    e.av = *av;
    e.qpn = q->peer.qpn;
    e.rq_psn = q->peer.psn;
    e.sq_psn = q->own.psn;
    e.path_mtu = l->config.mtu;
    e.qkey = PERFTEST_QKEY;
    e.max_rd_atomic = l->config.outs;
    e.access = is_pong(l) ? ACCESS_REMOTE_WRITE : 0;
    if (l->config.type == QPT_UD) {
        q->ah = verbs_ah_create(l->verbs, l->pd, av);
        if (q->ah < 0)
            return q->ah;
    }
    if (xrc_both_ways(&l->xrc)) {
        int r = xrc_connect(&l->xrc, e, now);
        if (r < 0)
            return r;
    }
    return verbs_qp_connect(l->verbs, q->qp, &e, now);
}

/* Check the result of posting receives. */
static void posted(struct load *l, int err)
{
    if (err < 0)
        load_fail(l, "a receive could not be posted: %s", strerror(-err));
}

void load_ready(struct load *l, ns_t now)
{
    for (unsigned i = 0; i < l->config.qps && is_pong(l) && l->config.op == TRAFFIC_SEND; i++)
        posted(l, receives_post_all(&l->qp[i].recvs, now));
}

/* --- Posting ---------------------------------------------------------------------------------- */

struct send_wr load_wr(enum wr_opcode op, const struct sge *sge, const struct perftest_keys *peer, int ah)
{
    return (struct send_wr){.opcode = (uint8_t)op,
                            .num_sge = sge->length ? 1 : 0,
                            .sg_list = sge,
                            .remote_addr = peer->vaddr,
                            .rkey = peer->rkey,
                            .remote_qpn = peer->qpn,
                            .remote_qkey = PERFTEST_QKEY,
                            .remote_srqn = peer->srqn,
                            .ah = (uint32_t)ah};
}

/* `op` was posted, with result `err`. False: it was not. */
static bool posted_send(struct load *l, enum wr_opcode op, int err)
{
    if (err < 0)
        load_fail(l, "%s could not be posted: %s", wr_opcode_str(op), strerror(-err));
    return err == 0;
}

/* Post a READ, or an atomic that changes nothing, before or after the messages. */
static void post_extra(struct load *l, struct load_qp *q, enum wr_opcode op, void *mem, ns_t now)
{
    struct sge sge = {(uintptr_t)mem, l->config.size, l->key};
    struct send_wr wr = load_wr(op, &sge, &q->peer, q->ah);

    wr.wr_id = q->s.id;
    wr.flags = SEND_SIGNALED;
    posted_send(l, op, verbs_post_send(l->verbs, q->qp, &wr, now));
}

/* Number of messages that a queue pair may post now: a batch, or the rest. */
static uint64_t may_post(const struct load *l, const struct load_qp *q, ns_t now)
{
    uint64_t n = sender_room(&q->s);

    if (now >= l->until)
        return 0;
    if (is_pong(l) && q->answers + (l->config.op == TRAFFIC_SEND) <= q->s.posted)
        return 0; /* WRITE: the peer sends first; SEND: this side does */
    if (n < l->config.batch)
        return q->s.posted + n == q->s.iters ? n : 0;
    return l->config.batch;
}

static void meter_posted(struct load_meter *m, ns_t now)
{
    m->when[m->posted % m->ring] = now;
    if (m->posted++ == 0)
        m->first = now;
}

/* Prepare the memory from which message `n` is sent, or to which it is read. */
static uint8_t *prepare(const struct load *l, const struct load_qp *q, uint64_t n)
{
    const struct load_config *c = &l->config;
    uint8_t *mem = slot_mem(l, q, n);

    if (c->op == TRAFFIC_READ && c->validate) /* so that a correct READ changes every byte */
        for (uint32_t k = 0; k < c->size; k++)
            mem[k] = (uint8_t)~mem[k];
    if (is_pong(l) && c->op == TRAFFIC_WRITE)
        mem[c->size - 1] = (uint8_t)(n + 1);
    return mem;
}

static void post_batch(struct load *l, unsigned i, uint64_t n, ns_t now)
{
    struct sender_message m = {.len = l->config.size, .op = l->config.op};
    struct load_qp *q = &l->qp[i];

    for (uint64_t k = 0; k < n; k++) {
        uint8_t *mem = prepare(l, q, q->s.posted);
        if (!posted_send(l, traffic_opcode(m.op, false), sender_post(&q->s, &m, (uintptr_t)mem, q->peer.vaddr, now)))
            return;
        meter_posted(&q->m, now);
        meter_posted(&l->all, now);
    }
    if (l->config.rate)
        l->next = (l->next > now - NS_PER_MS ? l->next : now) +
                  (ns_t)((unsigned __int128)n * l->config.size * 8 * NS_PER_S / l->config.rate);
}

static ns_t post_all(struct load *l, ns_t now)
{
    unsigned idle = 0, n = l->config.qps;

    while (idle < n && !l->failed) {
        unsigned i = l->turn++ % n;
        uint64_t may = may_post(l, &l->qp[i], now);
        if (may && l->config.rate && now < l->next)
            return l->next;
        if (may)
            post_batch(l, i, may, now);
        idle = may ? 0 : idle + 1;
    }
    return l->until < NS_NEVER && now < l->until ? l->until : NS_NEVER;
}

/* --- Completions ------------------------------------------------------------------------------ */

static void keep_sample(struct load *l, struct load_qp *q, ns_t t)
{
    traffic_times_add(&q->m.took, t);
    traffic_times_add(&l->all.took, t);
    if (l->samples == l->room && l->room < LOAD_SAMPLES) {
        uint32_t room = l->room ? 2 * l->room : 1024;
        uint32_t *p = realloc(l->latency, room * sizeof *p);
        if (p) {
            l->latency = p;
            l->room = room;
        }
    }
    if (l->samples < l->room)
        l->latency[l->samples++] = t < UINT32_MAX ? (uint32_t)t : UINT32_MAX;
}

static void meter_completed(struct load_meter *m, ns_t now)
{
    uint64_t n = ++m->completed < m->window ? m->completed : m->window;
    ns_t span = now - m->when[(m->completed - n) % m->ring];

    m->last = now;
    if (n > m->best_n || span < m->best) {
        m->best = span;
        m->best_n = n;
    }
}

/* Verify the data that the last message completed returned. */
static void compare(const struct load *l, struct load_qp *q, const struct sender_message *m)
{
    const uint8_t *mem = slot_mem(l, q, q->s.completed - 1);

    if (!l->config.validate)
        return;
    q->compared += is_atomic(l) || m->op == TRAFFIC_READ;
    if (is_atomic(l))
        q->mismatches += memcmp(mem, &m->expect, sizeof m->expect) != 0;
    else if (m->op == TRAFFIC_READ)
        q->mismatches += memcmp(mem, l->config.known ? l->sample : answer_mem(q), m->len) != 0;
}

static void message_done(struct load *l, struct load_qp *q, const struct sender_message *m, ns_t now)
{
    compare(l, q, m);
    if (!is_pong(l))
        keep_sample(l, q, now - m->posted);
    meter_completed(&q->m, now);
    meter_completed(&l->all, now);
}

/* The first atomic or READ of a queue pair returned the initial value. */
static void learned(struct load *l, struct load_qp *q)
{
    q->learned = true;
    if (is_atomic(l))
        memcpy(&q->s.next[l->config.op == TRAFFIC_CAS], q->mem, sizeof q->s.next[0]);
    else if (!l->config.known)
        memcpy(answer_mem(q), q->mem, l->config.size);
}

static void answer(struct load *l, unsigned i, ns_t now)
{
    struct load_qp *q = &l->qp[i];

    if (q->s.posted)
        keep_sample(l, q, (now - q->s.message[(q->s.posted - 1) % q->s.depth].posted) / 2);
    q->answers++;
}

/* rdmagen sends back the message that it received last; of other peers only the length is known. */
static void compare_answer(const struct load *l, struct load_qp *q, const uint8_t *data, uint32_t len)
{
    bool good = len == l->config.size;

    if (good && l->config.known && q->s.posted) {
        q->compared++;
        good = memcmp(data, slot_mem(l, q, q->s.posted - 1), len) == 0;
    }
    q->mismatches += !good;
}

static void take_answer(struct load *l, unsigned i, const struct wc *wc, ns_t now)
{
    uint32_t n = wc->wr_id & 0xffffffff, len;
    struct load_qp *q = &l->qp[i];
    const uint8_t *data = receives_data(&q->recvs, n, wc, &len);

    if (wc->status != WC_SUCCESS) {
        load_fail(l, "a receive completed with %s", wc_status_str(wc->status));
        return;
    }
    if (l->config.validate)
        compare_answer(l, q, data, len);
    answer(l, i, now);
    posted(l, receives_post(&q->recvs, n, now));
}

static void take(struct load *l, const struct wc *wc, ns_t now)
{
    unsigned i = (unsigned)((wc->wr_id & ~WR_RECV) >> WR_QP);
    struct load_qp *q = &l->qp[i];
    const struct sender_message *m;

    if (wc->wr_id & WR_RECV) {
        take_answer(l, i, wc, now);
    } else if (wc->status != WC_SUCCESS) {
        load_fail(l, "%s %llu of queue pair 0x%06x completed with %s", traffic_op_str(l->config.op),
                  (unsigned long long)q->s.completed + 1, q->own.qpn, wc_status_str(wc->status));
    } else if (l->stage == STAGE_LEARN) {
        learned(l, q);
    } else if (l->stage == STAGE_CHECK) {
        q->checked = true;
        q->compared++;
        q->mismatches += memcmp(answer_mem(q), slot_mem(l, q, q->s.posted - 1), l->config.size) != 0;
    } else {
        while ((m = sender_completed(&q->s, wc)))
            message_done(l, q, m, now);
    }
}

/* WRITE with latency: the last byte of our memory shows the next WRITE of the peer. */
static void look_for_writes(struct load *l, ns_t now)
{
    if (!is_pong(l) || l->config.op != TRAFFIC_WRITE)
        return;
    for (unsigned i = 0; i < l->config.qps; i++) {
        struct load_qp *q = &l->qp[i];
        const volatile uint8_t *last = answer_mem(q) + l->config.size - 1;
        if (q->answers <= q->s.posted && *last == (uint8_t)(q->answers + 1))
            answer(l, i, now);
    }
}

/* --- Stages ----------------------------------------------------------------------------------- */

static void make_sender(struct load *l, unsigned i)
{
    const struct load_config *c = &l->config;
    struct load_qp *q = &l->qp[i];

    q->s = (struct sender){.verbs = l->verbs,
                           .qp = q->qp,
                           .ah = q->ah,
                           .id = (uint64_t)i << WR_QP,
                           .iters = c->iters ? c->iters : UINT64_MAX,
                           .depth = c->depth,
                           .signal_every = c->batch,
                           .lkey = l->key,
                           .rkey = q->peer.rkey,
                           .remote_qpn = q->peer.qpn,
                           .remote_qkey = PERFTEST_QKEY,
                           .remote_srqn = q->peer.srqn,
                           .message = q->s.message};
}

void load_start(struct load *l, ns_t now)
{
    bool learn = is_atomic(l) || (l->config.op == TRAFFIC_READ && l->config.validate && !l->config.known);

    l->until = l->next = 0;
    l->stage = learn ? STAGE_LEARN : STAGE_RUN;
    if (l->config.known)
        load_pattern(l->sample, l->config.size, LOAD_SEED);
    for (unsigned i = 0; i < l->config.qps; i++) {
        make_sender(l, i);
        if (learn)
            post_extra(l, &l->qp[i], traffic_opcode(l->config.op, false), l->qp[i].mem, now);
    }
    l->until = l->config.iters ? NS_NEVER : now + l->config.duration;
}

void load_stop(struct load *l)
{
    l->until = 0;
}

/* Whether a message of this queue pair, or the response to one, is outstanding. */
static bool under_way(const struct load *l, const struct load_qp *q)
{
    return q->s.completed < q->s.posted || (is_pong(l) && q->answers < q->s.posted);
}

static bool run_done(const struct load *l, ns_t now)
{
    for (unsigned i = 0; i < l->config.qps; i++) {
        const struct load_qp *q = &l->qp[i];
        if (under_way(l, q) || (now < l->until && (!l->config.iters || q->s.posted < l->config.iters)))
            return false;
    }
    return true;
}

ns_t load_paced(const struct load *l)
{
    for (unsigned i = 0; i < l->config.qps; i++)
        if (under_way(l, &l->qp[i]) ||
            (is_pong(l) && l->config.op == TRAFFIC_WRITE && l->qp[i].answers == l->qp[i].s.posted))
            return 0;
    return l->config.rate && l->stage == STAGE_RUN ? l->next : 0;
}

/* Enter the next stage when this one is complete. */
static void advance(struct load *l, ns_t now)
{
    bool check = l->config.op == TRAFFIC_WRITE && l->config.validate && l->config.known &&
                 qp_is_reliable(l->config.type) && !l->config.latency && l->config.size;
    bool all = true;

    for (unsigned i = 0; i < l->config.qps; i++)
        all = all && (l->stage == STAGE_LEARN ? l->qp[i].learned : l->qp[i].checked || !l->qp[i].s.posted);
    if (l->stage == STAGE_LEARN && all) {
        l->stage = STAGE_RUN;
        l->until = l->config.iters ? NS_NEVER : now + l->config.duration;
    } else if (l->stage == STAGE_RUN && run_done(l, now)) {
        l->stage = check ? STAGE_CHECK : STAGE_DONE;
        for (unsigned i = 0; check && i < l->config.qps; i++)
            if (l->qp[i].s.posted)
                post_extra(l, &l->qp[i], WR_RDMA_READ, answer_mem(&l->qp[i]), now);
    } else if (l->stage == STAGE_CHECK && all) {
        l->stage = STAGE_DONE;
    }
}

ns_t load_poll(struct load *l, ns_t now)
{
    ns_t when = NS_NEVER;
    struct wc wc[32];
    int n;

    while (!l->failed && (n = verbs_poll(l->verbs, l->cq, wc, ARRAY_LEN(wc))) > 0)
        for (int i = 0; i < n && !l->failed; i++)
            take(l, &wc[i], now);
    if (!l->failed)
        look_for_writes(l, now);
    if (!l->failed)
        advance(l, now);
    if (!l->failed && l->stage == STAGE_RUN)
        when = post_all(l, now);
    return when;
}

bool load_done(const struct load *l)
{
    return l->failed || l->stage == STAGE_DONE;
}
