/* layer 3 (peers): perftest-like traffic: memory and queue pairs of the active side, and their connections. */
#include "gen/peers/perf_impl.h"

#include <errno.h>
#include <stdlib.h>

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
                                 .id = RECEIVES_ID | (uint64_t)i << WR_QP};
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
        l->config.depth = l->slots; /* each message of the peer needs its own slot */
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
