/* layer 3 (peers): perftest-like traffic: posting work requests and polling completions. */
#include "gen/peers/perf_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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
    unsigned i = (unsigned)((wc->wr_id & ~RECEIVES_ID) >> WR_QP);
    struct load_qp *q = &l->qp[i];
    const struct sender_message *m;

    if (wc->wr_id & RECEIVES_ID) {
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
