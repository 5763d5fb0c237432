/* layer 3 (peers): perftest-like traffic with a peer: what is known of its data, requests before and behind the
 * messages, polling. */
#include "gen/peers/perf.h"

#include <endian.h>

enum perftest_op perf_op(enum traffic_op op)
{
    static const uint8_t of[] = {[TRAFFIC_WRITE] = PERFTEST_WRITE,
                                 [TRAFFIC_SEND] = PERFTEST_SEND,
                                 [TRAFFIC_READ] = PERFTEST_READ,
                                 [TRAFFIC_CAS] = PERFTEST_ATOMIC,
                                 [TRAFFIC_FAA] = PERFTEST_ATOMIC};

    return (enum perftest_op)of[op];
}

/* --- Data ------------------------------------------------------------------------------------- */

void perf_pattern(uint8_t *p, size_t n, uint64_t seed)
{
    struct prng r;
    uint64_t word;

    prng_seed(&r, seed);
    for (size_t i = 0; i < n; i += 8) {
        word = htole64(i ? prng_next(&r) : seed);
        memcpy(p + i, &word, n - i < 8 ? n - i : 8);
    }
}

bool perf_pattern_ok(const uint8_t *p, size_t n)
{
    struct prng r;
    uint64_t word;

    if (n <= 8)
        return true;
    prng_seed(&r, load_le64(p));
    for (size_t i = 8; i < n; i += 8) {
        word = htole64(prng_next(&r));
        if (memcmp(p + i, &word, n - i < 8 ? n - i : 8) != 0)
            return false;
    }
    return true;
}

/* READs return what the first one did, or rdmagen's pattern; rdmagen sends back the message that it received last. */
static bool is_expected(const struct traffic_flow *f, uint64_t k, const uint8_t *data, uint32_t len)
{
    const struct perf_qp *q = (const struct perf_qp *)(f->verbs ? f : f->back);
    const struct perf *p = (const struct perf *)f->t;

    if (!f->verbs)
        return memcmp(data, traffic_slot(&q->out.from, k), len) == 0;
    return memcmp(data, p->t.c.known ? p->sample : q->answer, len) == 0;
}

static void failed(struct traffic_flow *f, const struct wc *wc)
{
    const struct perf_qp *q = (const struct perf_qp *)f;
    struct perf *p = (struct perf *)f->t;

    if (wc->wr_id & RECEIVES_ID)
        why_set(p->why, "a receive completed with %s", wc_status_str(wc->status));
    else
        why_set(p->why, "%s %llu of queue pair 0x%06x completed with %s", traffic_op_str(p->t.c.op),
                (unsigned long long)f->completed + 1, q->own.qpn, wc_status_str(wc->status));
}

const struct traffic_ways perf_ways = {.is = is_expected, .failed = failed};

/* --- Requests before and behind the messages -------------------------------------------------- */

struct send_wr perf_wr(enum wr_opcode op, const struct sge *sge, const struct perftest_keys *peer, int ah)
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

/* The result of posting something. */
static void posted(struct perf *p, const char *what, int err)
{
    if (err < 0)
        why_set(p->why, "%s could not be posted: %s", what, strerror(-err));
}

/* Post a READ, or an atomic that changes nothing. */
static void post_extra(struct perf *p, unsigned i, enum wr_opcode op, void *mem, ns_t now)
{
    struct perf_qp *q = &p->qp[i];
    struct sge sge = {(uintptr_t)mem, p->t.c.size, p->key};
    struct send_wr wr = perf_wr(op, &sge, &q->peer, q->ah);

    wr.wr_id = TRAFFIC_FOREIGN | i;
    wr.flags = SEND_SIGNALED;
    posted(p, wr_opcode_str(op), verbs_post_send(p->verbs, q->qp, &wr, now));
    p->extras++;
}

/* Before the messages the initial value is fetched, behind them what was written. */
static void extra_done(struct perf *p, struct perf_qp *q, const struct wc *wc)
{
    struct traffic_flow *f = &q->out;

    p->extras--;
    if (wc->status != WC_SUCCESS)
        failed(f, wc);
    else if (p->stage == PERF_CHECK)
        traffic_compared(f, memcmp(q->answer, traffic_slot(&f->from, f->posted - 1), p->t.c.size) == 0);
    else if (traffic_is_atomic(p->t.c.op))
        memcpy(&f->next[p->t.c.op == TRAFFIC_CAS], q->mem, sizeof f->next[0]);
    else
        memcpy(q->answer, q->mem, p->t.c.size);
}

/* --- Stages ----------------------------------------------------------------------------------- */

void perf_ready(struct perf *p, ns_t now)
{
    for (unsigned i = 0; i < p->t.c.qps && traffic_answers(&p->t.c) && !*p->why; i++)
        posted(p, "a receive", traffic_post_receives(&p->qp[i].in, now));
}

void perf_start(struct perf *p, ns_t now)
{
    const struct traffic_config *c = &p->t.c;
    bool known = p->t.c.known, reads = c->op == TRAFFIC_READ;
    bool learn = traffic_is_atomic(c->op) || (reads && c->verify && !known);

    p->stage = learn ? PERF_LEARN : PERF_RUN;
    if (!known && !reads)
        p->t.ways.is = NULL;
    if (known)
        perf_pattern(p->sample, c->size, PERF_SEED);
    for (unsigned i = 0; i < c->qps; i++) {
        struct perf_qp *q = &p->qp[i];
        struct traffic_flow *f = &q->out;
        f->ah = q->ah;
        f->rkey = q->peer.rkey;
        f->remote_qpn = q->peer.qpn;
        f->remote_qkey = PERFTEST_QKEY;
        f->remote_srqn = q->peer.srqn;
        f->to.addr = f->counter[0] = f->counter[1] = q->peer.vaddr;
        if (learn)
            post_extra(p, i, traffic_opcode(c->op, false), q->mem, now);
    }
}

static bool all_sent(const struct perf *p, ns_t now)
{
    for (unsigned i = 0; i < p->t.c.qps; i++)
        if (!traffic_flow_done(&p->qp[i].out, now))
            return false;
    return true;
}

ns_t perf_paced(const struct perf *p)
{
    for (unsigned i = 0; i < p->t.c.qps; i++) {
        const struct traffic_flow *f = &p->qp[i].out;
        if (f->completed < f->posted || (f->back && f->back->arrived + f->leads <= f->posted))
            return 0;
    }
    return p->t.c.rate && p->stage == PERF_RUN ? p->t.next : 0;
}

/* Enter the next stage when this one is complete. */
static void advance(struct perf *p, ns_t now)
{
    const struct traffic_config *c = &p->t.c;
    bool check = c->op == TRAFFIC_WRITE && c->verify && p->t.c.known && qp_is_reliable(c->type) && !c->latency;

    if (p->stage == PERF_RUN && all_sent(p, now)) {
        p->stage = PERF_CHECK;
        for (unsigned i = 0; i < c->qps; i++)
            if (check && p->qp[i].out.posted)
                post_extra(p, i, WR_RDMA_READ, p->qp[i].answer, now);
    }
    if (p->stage == PERF_LEARN && !p->extras)
        p->stage = PERF_RUN;
    if (p->stage == PERF_CHECK && !p->extras)
        p->stage = PERF_DONE;
}

/* Post at the queue pairs in turn; when to do so again. */
static ns_t post_all(struct perf *p, ns_t now)
{
    const struct traffic *t = &p->t;
    uint32_t first = p->turn;

    for (unsigned i = 0; i < t->c.qps && !*p->why; i++) {
        unsigned at = (first + i) % t->c.qps;
        uint64_t before = t->r.posted;
        posted(p, wr_opcode_str(traffic_opcode(t->c.op, false)), traffic_post(&p->qp[at].out, now));
        if (t->r.posted != before)
            p->turn = at + 1;
    }
    if (t->c.rate && t->next > now && t->next < t->until)
        return t->next;
    return t->until > now ? t->until : NS_NEVER;
}

ns_t perf_poll(struct perf *p, ns_t now)
{
    ns_t when = NS_NEVER;
    struct wc wc[32];
    int n;

    while (!*p->why && (n = verbs_poll(p->verbs, p->cq, wc, ARRAY_LEN(wc))) > 0)
        for (int i = 0; i < n && !*p->why; i++)
            if (wc[i].wr_id & TRAFFIC_FOREIGN)
                extra_done(p, &p->qp[wc[i].wr_id & ~TRAFFIC_FOREIGN], &wc[i]);
            else
                traffic_took(&p->t, &wc[i]);
    traffic_look(&p->t, now);
    perf_ready(p, now);
    if (!*p->why)
        advance(p, now);
    if (!*p->why && p->stage == PERF_RUN)
        when = post_all(p, now);
    return when;
}

bool perf_done(const struct perf *p)
{
    return *p->why || p->stage == PERF_DONE;
}
