/* layer 3 (endpoint): an endpoint as a provider of the verbs. */
#include "gen/endpoint/endpoint_impl.h"

#include <errno.h>
#include <stddef.h>

static struct endpoint *ep_of(struct verbs *v)
{
    return (struct endpoint *)(void *)((char *)v - offsetof(struct endpoint, verbs));
}

static uint32_t pd_alloc(struct verbs *v)
{
    return ep_pd_alloc(ep_of(v));
}

static int mr_reg(struct verbs *v, uint32_t pd, void *mem, uint64_t len, uint64_t iova, uint8_t access, uint32_t *key)
{
    return ep_mr_reg(ep_of(v), pd, mem, len, iova, access, key);
}

static int mr_dereg(struct verbs *v, uint32_t key)
{
    return ep_mr_dereg(ep_of(v), key);
}

static int fast_alloc(struct verbs *v, uint32_t pd, uint64_t most, uint32_t *key)
{
    return ep_mr_alloc(ep_of(v), pd, most, key);
}

static int window_alloc(struct verbs *v, uint32_t pd, unsigned type, uint32_t *key)
{
    return type == 1 || type == 2 ? ep_mw_alloc(ep_of(v), pd, type == 1 ? MR_WINDOW1 : MR_WINDOW2, key) : -EINVAL;
}

static int window_dealloc(struct verbs *v, uint32_t key)
{
    struct mr_table *t = ep_mr_table(ep_of(v));

    return mr_kind_of(t, key) == MR_REGION ? -EINVAL : mr_deregister(t, key);
}

static int window_bind(struct verbs *v, int qp, const struct send_wr *wr, uint32_t *key, ns_t now)
{
    return ep_mw_bind(ep_of(v), qp, wr, key, now);
}

static int ah_create(struct verbs *v, uint32_t pd, const struct av *av)
{
    return ep_ah_create(ep_of(v), pd, av);
}

static int ah_destroy(struct verbs *v, int ah)
{
    return ep_ah_destroy(ep_of(v), ah);
}

static int cq_create(struct verbs *v, uint32_t depth)
{
    return ep_cq_create(ep_of(v), depth);
}

static void cq_destroy(struct verbs *v, int cq)
{
    ep_cq_destroy(ep_of(v), cq);
}

static int poll(struct verbs *v, int cq, struct wc *wc, int n)
{
    return ep_poll(ep_of(v), cq, wc, n);
}

static int srq_create(struct verbs *v, uint32_t pd, uint32_t depth, uint16_t max_sge)
{
    return ep_srq_create(ep_of(v), pd, depth, max_sge);
}

static int xrc_srq_create(struct verbs *v, const struct verbs_xrc_srq_init *init)
{
    struct endpoint *ep = ep_of(v);
    int srq = ep_srq_create(ep, init->pd, init->depth, init->max_sge);
    int err = srq < 0 ? srq : ep_srq_to_xrc(ep, srq, init->xrcd, init->cq);

    if (err == 0)
        return srq;
    ep_srq_destroy(ep, srq);
    return err;
}

static int srq_destroy(struct verbs *v, int srq)
{
    return ep_srq_destroy(ep_of(v), srq);
}

static uint32_t srq_num(struct verbs *v, int srq)
{
    return ep_srq_number(ep_of(v), srq);
}

static uint32_t xrcd_alloc(struct verbs *v)
{
    return ep_xrcd_alloc(ep_of(v));
}

static int qp_create(struct verbs *v, const struct verbs_qp_init *init)
{
    struct ep_qp_init own = {.type = init->type,
                             .qpn = init->qpn,
                             .max_send_wr = init->max_send_wr,
                             .max_recv_wr = init->max_recv_wr,
                             .max_dest_rd = init->max_dest_rd,
                             .sq_sig_all = init->sq_sig_all,
                             .send_cq = init->send_cq,
                             .recv_cq = init->recv_cq,
                             .srq = init->srq,
                             .pd = init->pd,
                             .xrcd = init->xrcd};

    return ep_qp_create(ep_of(v), &own);
}

static int qp_destroy(struct verbs *v, int qp)
{
    return ep_qp_destroy(ep_of(v), qp);
}

static int qp_connect(struct verbs *v, int qp, const struct ep_peer *peer, ns_t now)
{
    return ep_qp_connect(ep_of(v), qp, peer, now);
}

static uint32_t qp_num(struct verbs *v, int qp)
{
    const struct qp *q = ep_qp(ep_of(v), qp);

    return q ? q->qpn : 0;
}

static int qp_state(struct verbs *v, int qp)
{
    const struct qp *q = ep_qp(ep_of(v), qp);

    return q ? q->state : -EINVAL;
}

static uint32_t pick_psn(struct verbs *v)
{
    return ep_pick_psn(ep_of(v));
}

static int qp_hold(struct verbs *v, int qp, ns_t until)
{
    if (!ep_qp(ep_of(v), qp))
        return -EINVAL;
    ep_qp_hold(ep_of(v), qp, until);
    return 0;
}

static int qp_counters(struct verbs *v, int qp, struct verbs_counters *c)
{
    const struct ep_stats *s = ep_qp_stats(ep_of(v), qp);

    *c = (struct verbs_counters){0};
    if (!s)
        return -EINVAL;
    *c = (struct verbs_counters){.rx_packets = s->rx_packets,
                                 .rx_payload = s->rx_payload,
                                 .served = s->served,
                                 .fetched = s->fetched,
                                 .rnr_nak_retry_err = s->rnr_nak_retry_err,
                                 .other_service = s->other_service};
    return 0;
}

static bool async_event(struct verbs *v, struct ep_event *e)
{
    return ep_event(ep_of(v), e);
}

static int post_send(struct verbs *v, int qp, const struct send_wr *wr, ns_t now)
{
    return ep_post_send(ep_of(v), qp, wr, now);
}

static int post_recv(struct verbs *v, int qp, const struct recv_wr *wr, ns_t now)
{
    return ep_post_recv(ep_of(v), qp, wr, now);
}

static int post_srq_recv(struct verbs *v, int srq, const struct recv_wr *wr, ns_t now)
{
    return ep_post_srq_recv(ep_of(v), srq, wr, now);
}

const struct verbs_ops ep_verbs_ops = {
    .pd_alloc = pd_alloc,
    .mr_reg = mr_reg,
    .mr_dereg = mr_dereg,
    .mr_alloc = fast_alloc,
    .mw_alloc = window_alloc,
    .mw_dealloc = window_dealloc,
    .mw_bind = window_bind,
    .ah_create = ah_create,
    .ah_destroy = ah_destroy,
    .cq_create = cq_create,
    .cq_destroy = cq_destroy,
    .poll = poll,
    .srq_create = srq_create,
    .xrc_srq_create = xrc_srq_create,
    .srq_destroy = srq_destroy,
    .srq_num = srq_num,
    .xrcd_alloc = xrcd_alloc,
    .qp_create = qp_create,
    .qp_destroy = qp_destroy,
    .qp_connect = qp_connect,
    .qp_num = qp_num,
    .qp_state = qp_state,
    .pick_psn = pick_psn,
    .qp_hold = qp_hold,
    .qp_counters = qp_counters,
    .async_event = async_event,
    .post_send = post_send,
    .post_recv = post_recv,
    .post_srq_recv = post_srq_recv,
};

struct verbs *ep_verbs(struct endpoint *ep)
{
    return &ep->verbs;
}
