/* layer 3 (rnic): verbs that few devices have, over libibverbs: device memory, regions without memory and of a DMA
 * buffer, advice, enhanced connection establishment, flow steering. What the driver lacks is -EOPNOTSUPP. */
#include "gen/rnic/ibv_lib.h"

#include <errno.h>

#define ETH_SPEC  sizeof(struct ibv_flow_spec_eth)
#define IP4_SPEC  sizeof(struct ibv_flow_spec_ipv4)
#define UDP_SPEC  sizeof(struct ibv_flow_spec_tcp_udp)
#define FLOW_SIZE (sizeof(struct ibv_flow_attr) + ETH_SPEC + IP4_SPEC + UDP_SPEC)

/* A pointer that a call returned, in *to. */
static int made(void *p, void **to)
{
    *to = p;
    return p ? 0 : ibv_result(-1);
}

static int made_mr(struct ibv_mr *m, struct rnic_mr *mr, void **handle)
{
    if (m) {
        mr->lkey = m->lkey;
        mr->rkey = m->rkey;
    }
    return made(m, handle);
}

/* --- Regions ---------------------------------------------------------------------------------- */

int ibv_be_null_mr(struct rnic *r, struct rnic_mr *mr, void **handle)
{
    struct verbs_context *v = verbs_get_ctx_op(ibv_of(r)->context, alloc_null_mr);

    errno = 0;
    return v ? made_mr(v->alloc_null_mr(mr->pd), mr, handle) : -EOPNOTSUPP;
}

int ibv_be_dmabuf_mr(struct rnic *r, struct rnic_mr *mr, int fd, uint64_t off, void **handle)
{
    uint64_t iova = mr->has_iova ? mr->iova : (uint64_t)(uintptr_t)mr->addr;

    (void)r;
    errno = 0;
    return ibv.ibv_reg_dmabuf_mr
               ? made_mr(ibv.ibv_reg_dmabuf_mr(mr->pd, off, mr->len, iova, fd, (int)mr->access), mr, handle)
               : -ENOSYS;
}

int ibv_be_advise(struct rnic *r, void *pd, uint32_t advice, bool flush, const struct sge *piece)
{
    struct verbs_context *v = verbs_get_ctx_op(ibv_of(r)->context, advise_mr);
    struct ibv_sge s = {.addr = piece->addr, .length = piece->length, .lkey = piece->lkey};

    errno = 0;
    return v ? ibv_result(
                   v->advise_mr(pd, (enum ibv_advise_mr_advice)advice, flush ? IBV_ADVISE_MR_FLAG_FLUSH : 0, &s, 1))
             : -EOPNOTSUPP;
}

/* --- Device memory ---------------------------------------------------------------------------- */

int ibv_be_dm_alloc(struct rnic *r, uint64_t len, uint32_t align, void **dm)
{
    struct verbs_context *v = verbs_get_ctx_op(ibv_of(r)->context, alloc_dm);
    struct ibv_alloc_dm_attr a = {.length = len, .log_align_req = align};

    errno = 0;
    return v ? made(v->alloc_dm(ibv_of(r)->context, &a), dm) : -EOPNOTSUPP;
}

int ibv_be_dm_free(struct rnic *r, void *dm)
{
    struct verbs_context *v = verbs_get_ctx_op(ibv_of(r)->context, free_dm);

    return v ? ibv_result(v->free_dm(dm)) : -EOPNOTSUPP;
}

int ibv_be_dm_write(struct rnic *r, void *dm, uint64_t off, const void *from, uint64_t n)
{
    (void)r;
    return ibv_result(((struct ibv_dm *)dm)->memcpy_to_dm(dm, off, from, n));
}

int ibv_be_dm_read(struct rnic *r, void *dm, uint64_t off, void *to, uint64_t n)
{
    (void)r;
    return ibv_result(((struct ibv_dm *)dm)->memcpy_from_dm(to, dm, off, n));
}

int ibv_be_dm_mr(struct rnic *r, struct rnic_mr *mr, void *dm, uint64_t off, void **handle)
{
    struct verbs_context *v = verbs_get_ctx_op(ibv_of(r)->context, reg_dm_mr);

    errno = 0;
    return v ? made_mr(v->reg_dm_mr(mr->pd, dm, off, mr->len, mr->access | IBV_ACCESS_ZERO_BASED), mr, handle)
             : -EOPNOTSUPP;
}

/* --- Queue pairs ------------------------------------------------------------------------------ */

int ibv_be_ece_query(struct rnic *r, void *qp, struct rnic_ece *ece)
{
    struct ibv_ece e = {0};
    int result = ibv.ibv_query_ece ? ibv_result(ibv.ibv_query_ece(qp, &e)) : -ENOSYS;

    (void)r;
    *ece = (struct rnic_ece){.vendor_id = e.vendor_id, .options = e.options, .comp_mask = e.comp_mask};
    return result;
}

int ibv_be_ece_set(struct rnic *r, void *qp, const struct rnic_ece *ece)
{
    struct ibv_ece e = {.vendor_id = ece->vendor_id, .options = ece->options, .comp_mask = ece->comp_mask};

    (void)r;
    return ibv.ibv_set_ece ? ibv_result(ibv.ibv_set_ece(qp, &e)) : -ENOSYS;
}

/* Append a header to the flow's attributes. */
static void put_spec(uint8_t *to, struct ibv_flow_attr *a, const void *spec, uint16_t size)
{
    memcpy(to + a->size, spec, size);
    a->size = (uint16_t)(a->size + size);
    a->num_of_specs++;
}

int ibv_be_flow_create(struct rnic *r, void *qp, const struct rnic_flow *f, void **flow)
{
    struct verbs_context *v = verbs_get_ctx_op(ibv_of(r)->context, ibv_create_flow);
    struct ibv_flow_spec_eth eth = {.type = IBV_FLOW_SPEC_ETH, .size = ETH_SPEC};
    struct ibv_flow_spec_ipv4 ip = {.type = IBV_FLOW_SPEC_IPV4, .size = IP4_SPEC};
    struct ibv_flow_spec_tcp_udp udp = {.type = IBV_FLOW_SPEC_UDP, .size = UDP_SPEC};
    _Alignas(struct ibv_flow_attr) uint8_t bytes[FLOW_SIZE] = {0};
    struct ibv_flow_attr a = {
        .type = (enum ibv_flow_attr_type)f->type, .size = sizeof a, .priority = f->priority, .port = (uint8_t)f->port};

    if (!v)
        return -EOPNOTSUPP;
    if (f->has_mac) {
        memcpy(eth.val.dst_mac, f->mac, 6);
        memset(eth.mask.dst_mac, 0xff, 6);
    }
    if (f->has_mac || f->has_ip || f->udp_port)
        put_spec(bytes, &a, &eth, ETH_SPEC);
    if (f->has_ip) {
        memcpy(&ip.val.dst_ip, f->ip, 4);
        ip.mask.dst_ip = UINT32_MAX;
    }
    if (f->has_ip || f->udp_port)
        put_spec(bytes, &a, &ip, IP4_SPEC);
    if (f->udp_port) {
        udp.val.dst_port = (uint16_t)(f->udp_port >> 8 | f->udp_port << 8);
        udp.mask.dst_port = UINT16_MAX;
        put_spec(bytes, &a, &udp, UDP_SPEC);
    }
    memcpy(bytes, &a, sizeof a);
    errno = 0;
    return made(v->ibv_create_flow(qp, (struct ibv_flow_attr *)(void *)bytes), flow);
}

int ibv_be_flow_destroy(struct rnic *r, void *flow)
{
    struct verbs_context *v = verbs_get_ctx_op(ibv_of(r)->context, ibv_destroy_flow);

    return v ? ibv_result(v->ibv_destroy_flow(flow)) : -EOPNOTSUPP;
}
