/* layer 3 (rnic): work requests, completions and events over libibverbs. */
#include "gen/rnic/ibv_lib.h"

#include <arpa/inet.h>
#include <errno.h>

/* --- Work requests ---------------------------------------------------------------------------- */

/* By enum wr_opcode; -1: the library has none. */
static const int opcodes[] = {
    [WR_SEND] = IBV_WR_SEND,
    [WR_SEND_WITH_IMM] = IBV_WR_SEND_WITH_IMM,
    [WR_SEND_WITH_INV] = IBV_WR_SEND_WITH_INV,
    [WR_RDMA_WRITE] = IBV_WR_RDMA_WRITE,
    [WR_RDMA_WRITE_WITH_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
    [WR_RDMA_READ] = IBV_WR_RDMA_READ,
    [WR_ATOMIC_CMP_AND_SWP] = IBV_WR_ATOMIC_CMP_AND_SWP,
    [WR_ATOMIC_FETCH_AND_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
    [WR_ATOMIC_WRITE] = -1, /* ibv_later_post() */
    [WR_FLUSH] = -1,
    [WR_BIND_MW] = IBV_WR_BIND_MW,
    [WR_LOCAL_INV] = IBV_WR_LOCAL_INV,
    [WR_REG_MR] = -1,
};

/* IBV_SEND_* have the values of SEND_*. */
_Static_assert(IBV_SEND_FENCE == (int)SEND_FENCE && IBV_SEND_SIGNALED == (int)SEND_SIGNALED &&
                   IBV_SEND_SOLICITED == (int)SEND_SOLICITED && IBV_SEND_INLINE == (int)SEND_INLINE,
               "flags of work requests");

static void set_pieces(struct ibv_sge *to, const struct sge *from, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        to[i] = (struct ibv_sge){.addr = from[i].addr, .length = from[i].length, .lkey = from[i].lkey};
}

static void set_remote(struct ibv_send_wr *to, const struct rnic_send *s, uint8_t type)
{
    if (s->wr.opcode == WR_ATOMIC_CMP_AND_SWP || s->wr.opcode == WR_ATOMIC_FETCH_AND_ADD) {
        to->wr.atomic.remote_addr = s->wr.remote_addr;
        to->wr.atomic.rkey = s->wr.rkey;
        to->wr.atomic.compare_add = s->wr.compare_add;
        to->wr.atomic.swap = s->wr.swap;
    } else if (type == IBV_QPT_UD) {
        to->wr.ud.ah = s->ah;
        to->wr.ud.remote_qpn = s->wr.remote_qpn;
        to->wr.ud.remote_qkey = s->wr.remote_qkey;
    } else {
        to->wr.rdma.remote_addr = s->wr.remote_addr;
        to->wr.rdma.rkey = s->wr.rkey;
    }
    if (type == IBV_QPT_XRC_SEND)
        to->qp_type.xrc.remote_srqn = s->wr.remote_srqn;
}

int ibv_be_post_send(struct rnic *r, void *qp, const struct rnic_send *s)
{
    struct ibv_sge sge[RNIC_SGES];
    struct ibv_send_wr wr = {.wr_id = s->wr.wr_id, .sg_list = sge, .num_sge = s->wr.num_sge, .send_flags = s->wr.flags},
                       *bad;
    int op = s->wr.opcode < ARRAY_LEN(opcodes) ? opcodes[s->wr.opcode] : s->wr.opcode;

    (void)r;
    if (s->wr.opcode == WR_ATOMIC_WRITE || s->wr.opcode == WR_FLUSH)
        return ibv_later_post(qp, s);
    if (op < 0)
        return -ENOSYS;
    wr.opcode = (enum ibv_wr_opcode)op;
    set_pieces(sge, s->sge, s->wr.num_sge);
    if (s->wr.opcode == WR_SEND_WITH_INV || s->wr.opcode == WR_LOCAL_INV)
        wr.invalidate_rkey = s->wr.inv_rkey;
    else
        wr.imm_data = htonl(s->wr.imm_data);
    if (s->wr.opcode == WR_BIND_MW) {
        wr.bind_mw.mw = s->mw;
        wr.bind_mw.rkey = s->wr.rkey;
        wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
            .mr = s->mr, .addr = s->wr.remote_addr, .length = s->wr.mw_length, .mw_access_flags = s->wr.mw_access};
    } else {
        set_remote(&wr, s, (uint8_t)((struct ibv_qp *)qp)->qp_type);
    }
    return ibv_result(ibv_post_send(qp, &wr, &bad));
}

int ibv_be_mw_bind(struct rnic *r, void *qp, const struct rnic_send *s, uint32_t *rkey)
{
    struct ibv_mw_bind b = {
        .wr_id = s->wr.wr_id,
        .send_flags = s->wr.flags,
        .bind_info = {
            .mr = s->mr, .addr = s->wr.remote_addr, .length = s->wr.mw_length, .mw_access_flags = s->wr.mw_access}};
    int e = ibv_result(ibv_bind_mw(qp, s->mw, &b));

    (void)r;
    *rkey = ((struct ibv_mw *)s->mw)->rkey;
    return e;
}

int ibv_be_post_recv(struct rnic *r, void *qp, const struct recv_wr *w)
{
    struct ibv_sge sge[RNIC_SGES];
    struct ibv_recv_wr wr = {.wr_id = w->wr_id, .sg_list = sge, .num_sge = w->num_sge}, *bad;

    (void)r;
    set_pieces(sge, w->sg_list, w->num_sge);
    return ibv_result(ibv_post_recv(qp, &wr, &bad));
}

int ibv_be_post_srq(struct rnic *r, void *srq, const struct recv_wr *w)
{
    struct ibv_sge sge[RNIC_SGES];
    struct ibv_recv_wr wr = {.wr_id = w->wr_id, .sg_list = sge, .num_sge = w->num_sge}, *bad;

    (void)r;
    set_pieces(sge, w->sg_list, w->num_sge);
    return ibv_result(ibv_post_srq_recv(srq, &wr, &bad));
}

/* --- Completions ------------------------------------------------------------------------------ */

static const struct {
    int theirs;
    uint8_t ours;
} completed[] = {
    {IBV_WC_SEND, WC_SEND},
    {IBV_WC_RDMA_WRITE, WC_RDMA_WRITE},
    {IBV_WC_RDMA_READ, WC_RDMA_READ},
    {IBV_WC_COMP_SWAP, WC_COMP_SWAP},
    {IBV_WC_FETCH_ADD, WC_FETCH_ADD},
    {IBV_WC_BIND_MW, WC_BIND_MW},
    {IBV_WC_LOCAL_INV, WC_LOCAL_INV},
    {9, WC_ATOMIC_WRITE}, /* IBV_WC_ATOMIC_WRITE */
    {8, WC_FLUSH},        /* IBV_WC_FLUSH */
    {IBV_WC_RECV, WC_RECV},
    {IBV_WC_RECV_RDMA_WITH_IMM, WC_RECV_RDMA_WITH_IMM},
};

static void take_wc(struct rnic_wc *to, const struct ibv_wc *w)
{
    *to = (struct rnic_wc){.wc = {.wr_id = w->wr_id,
                                  .status = (uint8_t)w->status,
                                  .byte_len = w->byte_len,
                                  .qpn = w->qp_num,
                                  .src_qp = w->src_qp,
                                  .pkey = w->pkey_index},
                           .vendor_err = w->vendor_err,
                           .raw_status = w->status,
                           .raw_opcode = w->opcode,
                           .raw_flags = w->wc_flags,
                           .slid = w->slid,
                           .sl = w->sl,
                           .path_bits = w->dlid_path_bits};
    for (unsigned i = 0; i < ARRAY_LEN(completed); i++)
        if (completed[i].theirs == (int)w->opcode)
            to->wc.opcode = completed[i].ours;
    to->wc.flags =
        (uint8_t)((w->wc_flags & IBV_WC_GRH ? WC_GRH : 0) | (w->wc_flags & IBV_WC_WITH_IMM ? WC_WITH_IMM : 0) |
                  (w->wc_flags & IBV_WC_WITH_INV ? WC_WITH_INV : 0));
    if (to->wc.flags & WC_WITH_INV)
        to->wc.inv_rkey = w->invalidated_rkey;
    else
        to->wc.imm_data = ntohl(w->imm_data);
}

int ibv_be_cq_poll(struct rnic *r, void *cq, struct rnic_wc *wc, int n)
{
    struct ibv_wc w;
    int got = 0;

    (void)r;
    while (got < n) {
        int e = ibv_poll_cq(cq, 1, &w);
        if (e < 0)
            return -EIO;
        if (e == 0)
            break;
        take_wc(&wc[got++], &w);
    }
    return got;
}

/* The completion at hand, as ibv_poll_cq() has it. */
static struct ibv_wc wc_at_hand(struct ibv_cq_ex *q)
{
    struct ibv_wc w = {.wr_id = q->wr_id,
                       .status = q->status,
                       .opcode = ibv_wc_read_opcode(q),
                       .vendor_err = ibv_wc_read_vendor_err(q),
                       .qp_num = ibv_wc_read_qp_num(q)};

    if (w.status != IBV_WC_SUCCESS)
        return w; /* nothing else is valid */
    w.byte_len = ibv_wc_read_byte_len(q);
    w.wc_flags = ibv_wc_read_wc_flags(q);
    w.src_qp = ibv_wc_read_src_qp(q);
    if (w.wc_flags & IBV_WC_WITH_INV)
        w.invalidated_rkey = ibv_wc_read_invalidated_rkey(q);
    else
        w.imm_data = ibv_wc_read_imm_data(q);
    return w;
}

int ibv_be_cq_poll_stamped(struct rnic *r, void *cq, struct rnic_wc *wc, int n)
{
    struct ibv_poll_cq_attr none = {.comp_mask = 0};
    struct ibv_cq_ex *q = cq;
    int got = 0, e = n > 0 ? ibv_start_poll(q, &none) : ENOENT;

    (void)r;
    if (e)
        return e == ENOENT ? 0 : -e;
    while (e == 0 && got < n) {
        struct ibv_wc w = wc_at_hand(q);
        take_wc(&wc[got], &w);
        wc[got++].stamp = ibv_wc_read_completion_ts(q);
        if (got < n)
            e = ibv_next_poll(q);
    }
    ibv_end_poll(q);
    return got;
}

/* --- Events ----------------------------------------------------------------------------------- */

enum { OF_PORT, OF_QP, OF_CQ, OF_SRQ };
static const struct {
    const char *name;
    int of;
} events[] = {
    [IBV_EVENT_CQ_ERR] = {"CQ_ERR", OF_CQ},
    [IBV_EVENT_QP_FATAL] = {"QP_FATAL", OF_QP},
    [IBV_EVENT_QP_REQ_ERR] = {"QP_REQ_ERR", OF_QP},
    [IBV_EVENT_QP_ACCESS_ERR] = {"QP_ACCESS_ERR", OF_QP},
    [IBV_EVENT_COMM_EST] = {"COMM_EST", OF_QP},
    [IBV_EVENT_SQ_DRAINED] = {"SQ_DRAINED", OF_QP},
    [IBV_EVENT_PATH_MIG] = {"PATH_MIG", OF_QP},
    [IBV_EVENT_PATH_MIG_ERR] = {"PATH_MIG_ERR", OF_QP},
    [IBV_EVENT_DEVICE_FATAL] = {"DEVICE_FATAL", OF_PORT},
    [IBV_EVENT_PORT_ACTIVE] = {"PORT_ACTIVE", OF_PORT},
    [IBV_EVENT_PORT_ERR] = {"PORT_ERR", OF_PORT},
    [IBV_EVENT_LID_CHANGE] = {"LID_CHANGE", OF_PORT},
    [IBV_EVENT_PKEY_CHANGE] = {"PKEY_CHANGE", OF_PORT},
    [IBV_EVENT_SM_CHANGE] = {"SM_CHANGE", OF_PORT},
    [IBV_EVENT_SRQ_ERR] = {"SRQ_ERR", OF_SRQ},
    [IBV_EVENT_SRQ_LIMIT_REACHED] = {"SRQ_LIMIT_REACHED", OF_SRQ},
    [IBV_EVENT_QP_LAST_WQE_REACHED] = {"QP_LAST_WQE_REACHED", OF_QP},
    [IBV_EVENT_CLIENT_REREGISTER] = {"CLIENT_REREGISTER", OF_PORT},
    [IBV_EVENT_GID_CHANGE] = {"GID_CHANGE", OF_PORT},
    [IBV_EVENT_WQ_FATAL] = {"WQ_FATAL", OF_PORT},
};

static void take_async(struct rnic_event *to, const struct ibv_async_event *e)
{
    unsigned type = (unsigned)e->event_type;

    to->what = RNIC_ASYNC;
    to->name = type < ARRAY_LEN(events) && events[type].name ? events[type].name : "UNKNOWN";
    switch (type < ARRAY_LEN(events) ? events[type].of : OF_PORT) {
    case OF_QP:
        to->user = e->element.qp->qp_context;
        break;
    case OF_CQ:
        to->user = e->element.cq->cq_context;
        break;
    case OF_SRQ:
        to->user = e->element.srq->srq_context;
        break;
    default:
        to->port = (uint32_t)e->element.port_num;
    }
}

static int next_notify(struct ibv_comp_channel *c, struct rnic_event *e)
{
    struct ibv_cq *cq;
    void *user;

    if (ibv.ibv_get_cq_event(c, &cq, &user) != 0)
        return 0;
    ibv.ibv_ack_cq_events(cq, 1);
    e->what = RNIC_NOTIFY;
    e->name = "";
    e->user = user;
    return 1;
}

int ibv_be_next_event(struct rnic *r, void *channel, struct rnic_event *e)
{
    struct ibv_rnic *d = ibv_of(r);
    struct ibv_async_event async;

    memset(e, 0, sizeof *e);
    if (channel)
        return next_notify(channel, e);
    if (d->context && ibv.ibv_get_async_event(d->context, &async) == 0) {
        take_async(e, &async);
        ibv.ibv_ack_async_event(&async);
        return 1;
    }
    return d->cm ? ibv_be_cm_event(d, e) : 0;
}
