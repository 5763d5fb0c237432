/* layer 3 (verbs): receives of equal size, one beside the other in memory, and posted repeatedly. */
#include "gen/verbs/receives.h"

int receives_post(const struct receives *r, uint64_t n, ns_t now)
{
    struct sge sge = {r->iova + (n % r->slots) * r->pitch, r->bytes, r->lkey};
    struct recv_wr wr = {.wr_id = r->id + n, .sg_list = &sge, .num_sge = r->bytes ? 1 : 0};
    struct verbs *v = r->verbs;

    return r->srq == EP_NO_SRQ ? v->ops->post_recv(v, r->qp, &wr, now) : v->ops->post_srq_recv(v, r->srq, &wr, now);
}

int receives_post_all(const struct receives *r, ns_t now)
{
    int err = 0;

    for (uint32_t i = 0; i < r->slots && err == 0; i++)
        err = receives_post(r, i, now);
    return err;
}

uint8_t *receives_mem(const struct receives *r, uint64_t n)
{
    return r->mem + (n % r->slots) * r->pitch;
}

const uint8_t *receives_data(const struct receives *r, uint64_t n, const struct wc *wc, uint32_t *len)
{
    *len = wc->byte_len - r->grh;
    return receives_mem(r, n) + r->grh;
}

void receives_source(const uint8_t *grh, uint8_t gid[16])
{
    if (grh[0] >> 4 == 6)
        memcpy(gid, grh + 8, 16);
    else
        gid_from_ipv4(gid, load_be32(grh + 20 + 12));
}

void receives_destination(const uint8_t *grh, uint8_t gid[16])
{
    if (grh[0] >> 4 == 6)
        memcpy(gid, grh + 24, 16);
    else
        gid_from_ipv4(gid, load_be32(grh + 20 + 16));
}
