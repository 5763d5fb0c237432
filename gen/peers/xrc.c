/* layer 3 (peers): what perftest's traffic over XRC has beside its queue pairs. */
#include "gen/peers/xrc.h"

int xrc_open(struct xrc *x, struct verbs *v, uint32_t pd, int cq, uint32_t depth)
{
    struct verbs_xrc_srq_init init = {.pd = pd, .depth = depth, .max_sge = 1, .cq = cq};

    *x = (struct xrc){.verbs = v, .qp = -1};
    init.xrcd = x->xrcd = verbs_xrcd_alloc(v);
    x->srq = verbs_xrc_srq_create(v, &init);
    return x->srq < 0 ? x->srq : 0;
}

uint32_t xrc_srqn(const struct xrc *x)
{
    return x->verbs ? verbs_srq_num(x->verbs, x->srq) : 0;
}

int xrc_add(struct xrc *x, struct verbs_qp_init init)
{
    init.xrcd = init.type == QPT_XRC_TGT ? x->xrcd : 0;
    x->qp = verbs_qp_create(x->verbs, &init);
    if (x->qp < 0)
        return x->qp;
    x->own.qpn = verbs_qp_num(x->verbs, x->qp);
    x->own.psn = verbs_pick_psn(x->verbs);
    return 0;
}

int xrc_connect(const struct xrc *x, struct ep_peer like, ns_t now)
{
    like.qpn = x->peer.qpn;
    like.rq_psn = x->peer.psn;
    like.sq_psn = x->own.psn;
    return verbs_qp_connect(x->verbs, x->qp, &like, now);
}

void xrc_close(struct xrc *x)
{
    if (x->verbs && x->qp >= 0)
        verbs_qp_destroy(x->verbs, x->qp);
    if (x->verbs && x->srq >= 0)
        verbs_srq_destroy(x->verbs, x->srq);
    *x = (struct xrc){0};
}
