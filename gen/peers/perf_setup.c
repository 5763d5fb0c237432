/* layer 3 (peers): perftest-like traffic with a peer: memory and queue pairs, and their connections. */
#include "gen/peers/perf.h"

#include <errno.h>
#include <stdlib.h>

#define RECVS 16 /* receives posted for answers of the peer */

static bool fetches(const struct traffic_config *c)
{
    return c->op == TRAFFIC_READ || traffic_is_atomic(c->op);
}

/* The flows of a queue pair. Of its memory of `bytes`, the first slots are our messages', the rest is the peer's. */
static int make_flows(struct perf *p, unsigned i, size_t bytes)
{
    const struct traffic_config *c = &p->t.c;
    struct perf_qp *q = &p->qp[i];
    struct receives recvs = {
        .verbs = p->verbs, .qp = q->qp, .srq = p->xrc.verbs ? p->xrc.srq : EP_NO_SRQ, .lkey = p->key};
    int r = traffic_add(&p->t, &q->out, p->verbs, q->qp);

    q->mem = p->mem + i * bytes;
    q->answer = q->mem + (size_t)p->slots * traffic_pitch(c);
    q->out.lkey = p->key;
    q->out.from = (struct traffic_slots){q->mem, (uintptr_t)q->mem, p->slots, traffic_pitch(c)};
    q->out.to.n = 1;
    for (uint32_t s = 0; s < p->slots && !traffic_is_atomic(c->op); s++)
        perf_pattern(traffic_slot(&q->out.from, s), c->size, (uint64_t)i << 32 | s);
    if (r < 0 || !traffic_answers(c))
        return r;
    r = traffic_add(&p->t, &q->in, NULL, -1);
    if (c->op == TRAFFIC_WRITE) { /* the peer begins */
        traffic_pair(&q->in, &q->out);
        q->in.to = (struct traffic_slots){.mem = q->answer, .n = 1};
        return r;
    }
    traffic_pair(&q->out, &q->in);
    recvs.mem = q->answer;
    recvs.iova = (uintptr_t)q->answer;
    traffic_receive(&q->in, &recvs);
    return r;
}

static int make_qp(struct perf *p, unsigned i)
{
    const struct traffic_config *c = &p->t.c;
    struct perf_qp *q = &p->qp[i];
    struct verbs_qp_init init = {.type = c->type,
                                 .qpn = i == 0 ? p->t.c.qpn : 0,
                                 .max_send_wr = c->tx_depth + 1,
                                 .max_recv_wr = RECVS,
                                 .max_dest_rd = 16,
                                 .srq = EP_NO_SRQ,
                                 .pd = p->pd,
                                 .send_cq = p->cq,
                                 .recv_cq = p->cq};

    q->qp = verbs_qp_create(p->verbs, &init);
    return q->qp < 0 ? q->qp : 0;
}

/* What the peer is told of a queue pair. */
static void make_keys(struct perf *p, struct perf_qp *q)
{
    const struct traffic_config *c = &p->t.c;

    q->own = (struct perftest_keys){.out_reads = fetches(c) ? p->t.c.outs : 1,
                                    .qpn = verbs_qp_num(p->verbs, q->qp),
                                    .psn = verbs_pick_psn(p->verbs),
                                    .srqn = xrc_srqn(&p->xrc)};
    if (c->op != TRAFFIC_SEND) {
        q->own.rkey = p->key;
        q->own.vaddr = (uintptr_t)q->answer;
    }
}

/* XRC with latency: the target that takes the peer's requests, for the first queue pair. */
static int make_target(struct perf *p)
{
    struct verbs_qp_init init = {
        .type = QPT_XRC_TGT, .srq = EP_NO_SRQ, .pd = p->pd, .send_cq = p->cq, .recv_cq = p->cq, .max_dest_rd = 16};

    p->xrc.own = p->qp[0].own;
    return xrc_add(&p->xrc, init);
}

static int make_memory(struct perf *p, size_t bytes)
{
    const struct traffic_config *c = &p->t.c;
    uint8_t access = ACCESS_LOCAL_WRITE;

    p->mem = calloc(c->qps, bytes);
    p->sample = calloc(1, traffic_pitch(&p->t.c));
    p->qp = calloc(c->qps, sizeof *p->qp);
    if (!p->mem || !p->sample || !p->qp)
        return -ENOMEM;
    for (unsigned i = 0; i < c->qps; i++)
        p->qp[i].qp = p->qp[i].ah = -1;
    if (c->op == TRAFFIC_WRITE && c->latency)
        access |= ACCESS_REMOTE_WRITE;
    p->pd = verbs_pd_alloc(p->verbs);
    return verbs_mr_reg(p->verbs, p->pd, p->mem, c->qps * bytes, access, &p->key);
}

int perf_init(struct perf *p, struct verbs *verbs, const struct traffic_config *config)
{
    struct traffic_config c = *config;
    uint32_t fit = PERF_MEMORY / c.qps / traffic_pitch(&c);
    size_t bytes;
    int r;

    *p = (struct perf){.verbs = verbs, .cq = -1};
    p->slots = min_u32(max_u32(fit, 1), c.latency ? 1 : c.tx_depth);
    if (traffic_is_atomic(c.op) || (c.op == TRAFFIC_READ && c.verify))
        c.tx_depth = p->slots; /* each message of the peer needs its own slot */
    c.rx_depth = RECVS;
    r = traffic_init(&p->t, &c, &perf_ways, true);
    bytes = (size_t)p->slots * traffic_pitch(&p->t.c) + traffic_receive_bytes(&p->t, traffic_answers(&c) ? RECVS : 1);
    if (r == 0)
        r = make_memory(p, bytes);
    if (r == 0)
        r = p->cq = verbs_cq_create(verbs, c.qps * (p->t.c.tx_depth + 1 + RECVS));
    if (r >= 0)
        r = c.type == QPT_XRC_INI ? xrc_open(&p->xrc, verbs, p->pd, p->cq, RECVS) : 0;
    for (unsigned i = 0; i < c.qps && r == 0; i++) {
        r = make_qp(p, i);
        if (r == 0)
            r = make_flows(p, i, bytes);
        if (r == 0)
            make_keys(p, &p->qp[i]);
    }
    if (r == 0 && p->xrc.verbs && c.latency)
        r = make_target(p);
    return r;
}

void perf_free(struct perf *p)
{
    for (unsigned i = 0; p->qp && i < p->t.c.qps; i++) {
        if (p->qp[i].qp >= 0)
            verbs_qp_destroy(p->verbs, p->qp[i].qp);
        if (p->qp[i].ah >= 0)
            verbs_ah_destroy(p->verbs, p->qp[i].ah);
    }
    xrc_close(&p->xrc);
    if (p->verbs)
        verbs_cq_destroy(p->verbs, p->cq);
    if (p->verbs && p->key)
        verbs_mr_dereg(p->verbs, p->key);
    traffic_free(&p->t);
    free(p->qp);
    free(p->mem);
    free(p->sample);
    memset(p, 0, sizeof *p);
}

int perf_connect(struct perf *p, unsigned i, const struct av *av, ns_t now)
{
    struct perf_qp *q = &p->qp[i];
    struct ep_peer e = ep_peer_default();

    e.av = *av;
    e.qpn = q->peer.qpn;
    e.rq_psn = q->peer.psn;
    e.sq_psn = q->own.psn;
    e.path_mtu = p->t.c.mtu;
    e.qkey = PERFTEST_QKEY;
    e.max_rd_atomic = p->t.c.outs;
    e.access = traffic_answers(&p->t.c) ? ACCESS_REMOTE_WRITE : 0;
    if (p->t.c.type == QPT_UD) {
        q->ah = verbs_ah_create(p->verbs, p->pd, av);
        if (q->ah < 0)
            return q->ah;
    }
    if (xrc_both_ways(&p->xrc)) {
        int r = xrc_connect(&p->xrc, e, now);
        if (r < 0)
            return r;
    }
    return verbs_qp_connect(p->verbs, q->qp, &e, now);
}
