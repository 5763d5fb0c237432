/* layer 3 (rnic): completion queues, shared receive queues, queue pairs and address handles over libibverbs. */
#include "gen/rnic/ibv_lib.h"

#include <errno.h>

/* A pointer that a call returned, in *to. */
static int made(void *p, void **to)
{
    *to = p;
    return p ? 0 : ibv_result(-1);
}

/* --- Completion queues ------------------------------------------------------------------------ */

int ibv_be_channel_create(struct rnic *r, void **channel)
{
    struct ibv_comp_channel *c;

    errno = 0;
    c = ibv.ibv_create_comp_channel(ibv_of(r)->context);
    if (c)
        ibv_unblock(c->fd);
    return made(c, channel);
}

int ibv_be_channel_destroy(struct rnic *r, void *channel)
{
    (void)r;
    return ibv_result(ibv.ibv_destroy_comp_channel(channel));
}

int ibv_be_channel_fd(struct rnic *r, void *channel)
{
    (void)r;
    return ((struct ibv_comp_channel *)channel)->fd;
}

int ibv_be_cq_create(struct rnic *r, uint32_t *entries, void *channel, uint32_t vector, void *user, void **cq)
{
    struct ibv_cq *c;

    errno = 0;
    c = ibv.ibv_create_cq(ibv_of(r)->context, (int)*entries, user, channel, (int)vector);
    if (c)
        *entries = (uint32_t)c->cqe;
    return made(c, cq);
}

int ibv_be_cq_create_stamped(struct rnic *r, uint32_t *entries, void *channel, uint32_t vector, void *user, void **cq)
{
    struct ibv_cq_init_attr_ex a = {.cqe = *entries,
                                    .cq_context = user,
                                    .channel = channel,
                                    .comp_vector = vector,
                                    .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
    struct ibv_cq_ex *c;

    errno = EOPNOTSUPP;
    c = ibv_create_cq_ex(ibv_of(r)->context, &a);
    if (c)
        *entries = (uint32_t)c->cqe;
    return made(c ? ibv_cq_ex_to_cq(c) : NULL, cq);
}

int ibv_be_device_clock(struct rnic *r, uint64_t *ticks)
{
    struct ibv_context *c = ibv_of(r)->context;
    struct verbs_context *v = verbs_get_ctx_op(c, query_rt_values);
    struct ibv_values_ex is = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
    int e = v ? ibv_result(v->query_rt_values(c, &is)) : -EOPNOTSUPP;

    if (e == 0 && !(is.comp_mask & IBV_VALUES_MASK_RAW_CLOCK))
        e = -EOPNOTSUPP;
    *ticks = (uint64_t)is.raw_clock.tv_nsec; /* ticks, although its name says ns */
    return e;
}

int ibv_be_cq_resize(struct rnic *r, void *cq, uint32_t *entries)
{
    int e = ibv_result(ibv.ibv_resize_cq(cq, (int)*entries));

    (void)r;
    *entries = (uint32_t)((struct ibv_cq *)cq)->cqe;
    return e;
}

int ibv_be_cq_arm(struct rnic *r, void *cq, bool solicited)
{
    (void)r;
    if (!((struct ibv_cq *)cq)->channel)
        return -EINVAL; /* no thread would read the notification */
    return ibv_result(ibv_req_notify_cq(cq, solicited));
}

int ibv_be_cq_destroy(struct rnic *r, void *cq)
{
    (void)r;
    return ibv_result(ibv.ibv_destroy_cq(cq));
}

/* --- Shared receive queues -------------------------------------------------------------------- */

/* For XRC, or for tag matching. */
static int special_srq(struct ibv_context *c, struct rnic_srq_init *init, struct ibv_srq_init_attr_ex *a, void **srq)
{
    struct verbs_context *v = verbs_get_ctx_op(c, create_srq_ex);
    struct ibv_srq *s;
    int e;

    if (!v)
        return -EOPNOTSUPP;
    errno = 0;
    s = v->create_srq_ex(c, a);
    e = made(s, srq);
    if (e == 0)
        ibv_get_srq_num(s, &init->srqn);
    return e;
}

int ibv_be_srq_create(struct rnic *r, struct rnic_srq_init *init, void *user, void **srq)
{
    struct ibv_srq_init_attr a = {.srq_context = user,
                                  .attr = {.max_wr = init->max_wr, .max_sge = init->max_sge, .srq_limit = init->limit}};
    struct ibv_srq_init_attr_ex x = {.srq_context = user,
                                     .attr = a.attr,
                                     .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                  IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
                                     .srq_type = IBV_SRQT_XRC,
                                     .pd = init->pd,
                                     .xrcd = init->xrcd,
                                     .cq = init->cq};
    int e;

    if (init->max_tags) {
        x.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
        x.srq_type = IBV_SRQT_TM;
        x.tm_cap = (struct ibv_tm_cap){.max_num_tags = init->max_tags, .max_ops = init->max_tag_ops};
    }
    if (init->xrcd || init->max_tags)
        return init->cq ? special_srq(ibv_of(r)->context, init, &x, srq) : -EINVAL;
    errno = 0;
    e = made(ibv.ibv_create_srq(init->pd, &a), srq);
    if (e == 0) {
        init->max_wr = a.attr.max_wr;
        init->max_sge = a.attr.max_sge;
    }
    return e;
}

int ibv_be_srq_modify(struct rnic *r, void *srq, uint32_t mask, uint32_t max_wr, uint32_t limit)
{
    struct ibv_srq_attr a = {.max_wr = max_wr, .srq_limit = limit};

    (void)r;
    return ibv_result(ibv.ibv_modify_srq(srq, &a, (int)mask));
}

int ibv_be_srq_query(struct rnic *r, void *srq, struct rnic_srq_init *out)
{
    struct ibv_srq_attr a = {0};
    int e = ibv_result(ibv.ibv_query_srq(srq, &a));

    (void)r;
    out->max_wr = a.max_wr;
    out->max_sge = a.max_sge;
    out->limit = a.srq_limit;
    return e;
}

int ibv_be_srq_destroy(struct rnic *r, void *srq)
{
    (void)r;
    return ibv_result(ibv.ibv_destroy_srq(srq));
}

/* --- Queue pairs ------------------------------------------------------------------------------ */

static struct ibv_qp *create(struct ibv_context *c, struct rnic_qp_init *q, struct ibv_qp_init_attr_ex *x)
{
    struct verbs_context *v = verbs_get_ctx_op(c, create_qp_ex);

    errno = 0;
    if (x->comp_mask == IBV_QP_INIT_ATTR_PD) /* the attributes up to comp_mask are those of struct ibv_qp_init_attr */
        return ibv.ibv_create_qp(q->pd, (struct ibv_qp_init_attr *)(void *)x);
    errno = EOPNOTSUPP;
    return v ? v->create_qp_ex(c, x) : NULL;
}

/* What the type cannot do without: the library reads it. */
static bool is_whole(const struct rnic_qp_init *q)
{
    if (q->type == RNIC_QP_XRC_RECV)
        return q->xrcd != NULL;
    return q->pd && q->send_cq && (q->recv_cq || q->type == RNIC_QP_XRC_SEND);
}

int ibv_be_qp_create(struct rnic *r, struct rnic_qp_init *q, void *user, void **qp)
{
    struct ibv_qp_init_attr_ex x = {
        .qp_context = user,
        .send_cq = q->send_cq,
        .recv_cq = q->recv_cq,
        .srq = q->srq,
        .cap = {q->max_send_wr, q->max_recv_wr, q->max_send_sge, q->max_recv_sge, q->max_inline},
        .qp_type = (enum ibv_qp_type)q->type,
        .sq_sig_all = q->sig_all,
        .pd = q->pd,
        .xrcd = q->xrcd,
        .create_flags = q->create_flags,
        .send_ops_flags = q->send_ops_flags};
    int e;

    if (!is_whole(q))
        return -EINVAL;
    x.comp_mask = (q->pd ? IBV_QP_INIT_ATTR_PD : 0) | (q->xrcd ? IBV_QP_INIT_ATTR_XRCD : 0) |
                  (q->create_flags ? IBV_QP_INIT_ATTR_CREATE_FLAGS : 0) |
                  (q->send_ops_flags ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0);
    e = made(create(ibv_of(r)->context, q, &x), qp);
    if (e < 0)
        return e;
    q->qpn = ((struct ibv_qp *)*qp)->qp_num;
    q->max_send_wr = x.cap.max_send_wr;
    q->max_recv_wr = x.cap.max_recv_wr;
    q->max_send_sge = x.cap.max_send_sge;
    q->max_recv_sge = x.cap.max_recv_sge;
    q->max_inline = x.cap.max_inline_data;
    return 0;
}

static void set_av(struct ibv_ah_attr *to, const struct rnic_av *av)
{
    memcpy(to->grh.dgid.raw, av->dgid, 16);
    to->grh.flow_label = av->flow;
    to->grh.sgid_index = (uint8_t)av->sgid_index;
    to->grh.hop_limit = (uint8_t)av->hop_limit;
    to->grh.traffic_class = (uint8_t)av->tclass;
    to->dlid = (uint16_t)av->dlid;
    to->sl = (uint8_t)av->sl;
    to->src_path_bits = (uint8_t)av->src_path_bits;
    to->static_rate = (uint8_t)av->static_rate;
    to->is_global = (uint8_t)av->is_global;
    to->port_num = (uint8_t)av->port;
}

static void get_av(struct rnic_av *to, const struct ibv_ah_attr *av)
{
    memcpy(to->dgid, av->grh.dgid.raw, 16);
    to->flow = av->grh.flow_label;
    to->sgid_index = av->grh.sgid_index;
    to->hop_limit = av->grh.hop_limit;
    to->tclass = av->grh.traffic_class;
    to->dlid = av->dlid;
    to->sl = av->sl;
    to->src_path_bits = av->src_path_bits;
    to->static_rate = av->static_rate;
    to->is_global = av->is_global;
    to->port = av->port_num;
}

/* 256 to 4096 bytes are the codes 1 to 5. */
static uint32_t mtu_code(uint32_t bytes)
{
    for (uint32_t code = 1; code <= 5; code++)
        if (bytes == 128u << code)
            return code;
    return bytes;
}

/* Attributes that both sides have by the same name. */
#define COPY_ATTRIBUTES(to, from)                                                                                      \
    do {                                                                                                               \
        (to)->qkey = (from)->qkey;                                                                                     \
        (to)->rq_psn = (from)->rq_psn;                                                                                 \
        (to)->sq_psn = (from)->sq_psn;                                                                                 \
        (to)->pkey_index = (__typeof__((to)->pkey_index))(from)->pkey_index;                                           \
        (to)->alt_pkey_index = (__typeof__((to)->alt_pkey_index))(from)->alt_pkey_index;                               \
        (to)->en_sqd_async_notify = (__typeof__((to)->en_sqd_async_notify))(from)->en_sqd_async_notify;                \
        (to)->max_rd_atomic = (__typeof__((to)->max_rd_atomic))(from)->max_rd_atomic;                                  \
        (to)->max_dest_rd_atomic = (__typeof__((to)->max_dest_rd_atomic))(from)->max_dest_rd_atomic;                   \
        (to)->min_rnr_timer = (__typeof__((to)->min_rnr_timer))(from)->min_rnr_timer;                                  \
        (to)->timeout = (__typeof__((to)->timeout))(from)->timeout;                                                    \
        (to)->retry_cnt = (__typeof__((to)->retry_cnt))(from)->retry_cnt;                                              \
        (to)->rnr_retry = (__typeof__((to)->rnr_retry))(from)->rnr_retry;                                              \
        (to)->alt_timeout = (__typeof__((to)->alt_timeout))(from)->alt_timeout;                                        \
        (to)->rate_limit = (from)->rate_limit;                                                                         \
    } while (0)

int ibv_be_qp_modify(struct rnic *r, void *qp, uint32_t mask, const struct rnic_qp_attr *a)
{
    struct ibv_qp_attr to = {.qp_state = (enum ibv_qp_state)a->state,
                             .cur_qp_state = (enum ibv_qp_state)a->cur_state,
                             .path_mtu = (enum ibv_mtu)mtu_code(a->path_mtu),
                             .path_mig_state = (enum ibv_mig_state)a->path_mig_state,
                             .dest_qp_num = a->dest_qpn,
                             .qp_access_flags = a->access,
                             .port_num = (uint8_t)a->port,
                             .alt_port_num = (uint8_t)a->alt_port,
                             .cap = {a->max_send_wr, a->max_recv_wr, a->max_send_sge, a->max_recv_sge, a->max_inline}};

    (void)r;
    COPY_ATTRIBUTES(&to, a);
    set_av(&to.ah_attr, &a->av);
    set_av(&to.alt_ah_attr, &a->alt_av);
    return ibv_result(ibv.ibv_modify_qp(qp, &to, (int)mask));
}

int ibv_be_qp_query(struct rnic *r, void *qp, struct rnic_qp_attr *a)
{
    struct ibv_qp_init_attr init = {0};
    struct ibv_qp_attr is = {0};
    int e = ibv_result(ibv.ibv_query_qp(qp, &is, (1 << 21) - 1, &init));

    (void)r;
    COPY_ATTRIBUTES(a, &is);
    a->state = is.qp_state;
    a->path_mtu = is.path_mtu >= IBV_MTU_256 && is.path_mtu <= IBV_MTU_4096 ? 128u << is.path_mtu : is.path_mtu;
    a->path_mig_state = is.path_mig_state;
    a->dest_qpn = is.dest_qp_num;
    a->access = is.qp_access_flags;
    a->port = is.port_num;
    a->alt_port = is.alt_port_num;
    a->max_send_wr = is.cap.max_send_wr;
    a->max_recv_wr = is.cap.max_recv_wr;
    a->max_send_sge = is.cap.max_send_sge;
    a->max_recv_sge = is.cap.max_recv_sge;
    a->max_inline = is.cap.max_inline_data;
    get_av(&a->av, &is.ah_attr);
    get_av(&a->alt_av, &is.alt_ah_attr);
    return e;
}

int ibv_be_qp_destroy(struct rnic *r, void *qp)
{
    (void)r;
    return ibv_result(ibv.ibv_destroy_qp(qp));
}

int ibv_be_ah_create(struct rnic *r, void *pd, const struct rnic_av *av, void **ah)
{
    struct ibv_ah_attr a = {0};

    (void)r;
    set_av(&a, av);
    errno = 0;
    return made(ibv.ibv_create_ah(pd, &a), ah);
}

int ibv_be_ah_destroy(struct rnic *r, void *ah)
{
    (void)r;
    return ibv_result(ibv.ibv_destroy_ah(ah));
}

int ibv_be_mcast(struct rnic *r, void *qp, const uint8_t gid[16], uint16_t lid, bool attach)
{
    union ibv_gid g;

    (void)r;
    memcpy(g.raw, gid, 16);
    return ibv_result(attach ? ibv.ibv_attach_mcast(qp, &g, lid) : ibv.ibv_detach_mcast(qp, &g, lid));
}
