/* layer 3 (rnic): an endpoint of ours as a device. Its objects are numbers from 0 on: their pointers are one more. */
#include "gen/rnic/ep_impl.h"

#include <errno.h>
#include <stdlib.h>

/* A memory window; the others are numbers. */
struct twin_mw {
    uint32_t key; /* the one that it has when all binds that were posted have succeeded */
};

static void *pointer_of(uint64_t number)
{
    return (void *)(uintptr_t)(number + 1);
}
static uint32_t number_of(const void *p)
{
    return (uint32_t)((uintptr_t)p - 1);
}
/* A handle or a negative errno, in *to. */
static int made(int handle, void **to)
{
    *to = handle < 0 ? NULL : pointer_of((unsigned)handle);
    return handle < 0 ? handle : 0;
}

/* --- The device ------------------------------------------------------------------------------- */

static void twin_close(struct rnic *r)
{
    twin_cm_free(twin_of(r));
    free(r);
}
static int twin_list(struct rnic *r, struct buf *out)
{
    (void)r;
    buf_puts(out, " dev=twin");
    return 0;
}
static int twin_open(struct rnic *r, const char *name)
{
    (void)r;
    return !*name || strcmp(name, "twin") == 0 ? 0 : -ENODEV;
}
static const char *twin_device(struct rnic *r)
{
    (void)r;
    return "twin";
}
/* As soft-RoCE names them. */
static void twin_counters(struct rnic *r, struct buf *out)
{
    const struct ep_stats *s = ep_stats(twin_ep(r));

    buf_printf(out, " rdma.sent_pkts=%llu rdma.rcvd_pkts=%llu rdma.rcvd_seq_err=%llu rdma.rcvd_rnr_err=%llu",
               (unsigned long long)s->tx_packets, (unsigned long long)s->rx_packets,
               (unsigned long long)s->packet_seq_err, (unsigned long long)s->rnr_nak_retry_err);
    buf_printf(out, " rdma.send_rnr_err=%llu rdma.out_of_seq_request=%llu rdma.duplicate_request=%llu",
               (unsigned long long)s->rnr_nak_sent, (unsigned long long)s->seq_nak_sent,
               (unsigned long long)s->duplicate_request);
}
static int twin_query(struct rnic *r, struct buf *out)
{
    (void)r;
    buf_puts(out, " phys_port_cnt=1 stamp_mask=0xffffffffffffffff stamp_hz=1000000000");
    return 0;
}
static int twin_no_port(struct rnic *r, uint32_t port, struct buf *out)
{
    (void)r;
    (void)port;
    (void)out;
    return -EOPNOTSUPP;
}

/* Its table of P_Keys: a full member of the default partition, and a limited one. */
static const uint16_t twin_pkeys[] = {0xffff, 0x7fff};

static int twin_query_pkeys(struct rnic *r, uint32_t port, struct buf *out)
{
    (void)r;
    if (port != 1)
        return -EINVAL;
    for (unsigned i = 0; i < ARRAY_LEN(twin_pkeys); i++)
        buf_printf(out, " pkey=%u,0x%04x", i, twin_pkeys[i]);
    return 0;
}

/* --- Domains, regions, windows ---------------------------------------------------------------- */

static int twin_pd_alloc(struct rnic *r, void **pd)
{
    uint32_t n = ep_pd_alloc(twin_ep(r));

    *pd = pointer_of(n);
    return n ? 0 : -ENOMEM;
}
/* What lives as long as the endpoint. */
static int twin_stays(struct rnic *r, void *o)
{
    (void)r;
    (void)o;
    return 0;
}
static int twin_no_xrcd(struct rnic *r, void **xrcd)
{
    (void)r;
    (void)xrcd;
    return -EOPNOTSUPP;
}
/* Rights with the values of this endpoint. */
static uint8_t own_access(uint32_t access)
{
    const uint32_t same =
        ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC | ACCESS_MW_BIND;

    return (uint8_t)((access & same) | (access & RNIC_ACCESS_ZERO_BASED ? ACCESS_ZERO_BASED : 0) |
                     (access & RNIC_ACCESS_FLUSH_GLOBAL ? ACCESS_FLUSH_GLOBAL : 0) |
                     (access & RNIC_ACCESS_FLUSH_PERSISTENT ? ACCESS_FLUSH_PERSISTENT : 0));
}
/* The opposite, of a queue pair's rights. */
static uint32_t their_access(uint8_t own)
{
    return (own & ~(uint32_t)(ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT | ACCESS_ZERO_BASED)) |
           (own & ACCESS_FLUSH_GLOBAL ? RNIC_ACCESS_FLUSH_GLOBAL : 0) |
           (own & ACCESS_FLUSH_PERSISTENT ? RNIC_ACCESS_FLUSH_PERSISTENT : 0);
}
/* Rights that memory here can have: none of it is persistent. */
static bool has_access(uint32_t access)
{
    return !(access & ~(uint32_t)(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC |
                                  ACCESS_MW_BIND | RNIC_ACCESS_FLUSH_GLOBAL));
}
static int twin_mr_reg(struct rnic *r, struct rnic_mr *mr, void **handle)
{
    uint64_t iova = mr->has_iova ? mr->iova : (uint64_t)(uintptr_t)mr->addr;
    uint32_t key;
    int e;

    if (!has_access(mr->access))
        return -EOPNOTSUPP;
    e = ep_mr_reg(twin_ep(r), number_of(mr->pd), mr->addr, mr->len, iova, own_access(mr->access), &key);
    if (e < 0)
        return e;
    mr->lkey = mr->rkey = key;
    *handle = pointer_of(key);
    return 0;
}

/* --- Memory of the device --------------------------------------------------------------------- */

#define DM_BYTES (256u << 10) /* most bytes of a piece: what adapters have is of this order */

static int twin_dm_alloc(struct rnic *r, uint64_t len, uint32_t align, void **dm)
{
    (void)r, (void)align;
    *dm = len <= DM_BYTES ? calloc(1, len) : NULL;
    return *dm ? 0 : -ENOMEM;
}
static int twin_dm_free(struct rnic *r, void *dm)
{
    (void)r;
    free(dm);
    return 0;
}
static int twin_dm_write(struct rnic *r, void *dm, uint64_t off, const void *from, uint64_t n)
{
    (void)r;
    memcpy((uint8_t *)dm + off, from, n);
    return 0;
}
static int twin_dm_read(struct rnic *r, void *dm, uint64_t off, void *to, uint64_t n)
{
    (void)r;
    memcpy(to, (const uint8_t *)dm + off, n);
    return 0;
}
static int twin_dm_mr(struct rnic *r, struct rnic_mr *mr, void *dm, uint64_t off, void **handle)
{
    mr->addr = (uint8_t *)dm + off;
    mr->has_iova = true;
    return twin_mr_reg(r, mr, handle);
}

/* --- Windows ---------------------------------------------------------------------------------- */

/* Other rights; the memory and the protection domain stay. */
static int twin_mr_rereg(struct rnic *r, void *handle, uint32_t flags, struct rnic_mr *mr)
{
    mr->lkey = mr->rkey = number_of(handle);
    if (flags != RNIC_REREG_ACCESS || !has_access(mr->access))
        return -EOPNOTSUPP;
    return ep_mr_access(twin_ep(r), mr->rkey, own_access(mr->access));
}

static int twin_key_gone(struct rnic *r, void *handle)
{
    return ep_mr_dereg(twin_ep(r), number_of(handle));
}
static int twin_mw_alloc(struct rnic *r, void *pd, uint32_t type, uint32_t *rkey, void **mw)
{
    struct twin_mw *w = type == 1 || type == 2 ? calloc(1, sizeof *w) : NULL;
    int e = w ? ep_mw_alloc(twin_ep(r), number_of(pd), type == 1 ? MR_WINDOW1 : MR_WINDOW2, &w->key) : -EINVAL;

    if (e < 0) {
        free(w);
        return e;
    }
    *rkey = w->key;
    *mw = w;
    return 0;
}
static int twin_mw_free(struct rnic *r, void *mw)
{
    struct twin_mw *w = mw;
    const struct mr *now = &ep_mr_table(twin_ep(r))->mr[w->key >> 8];
    int e = ep_mr_dereg(twin_ep(r), (w->key & ~UINT32_C(0xff)) | now->variant); /* a bind may have failed */

    if (e == 0)
        free(w);
    return e;
}

/* --- Queues ----------------------------------------------------------------------------------- */

static int twin_channel_create(struct rnic *r, void **channel)
{
    *channel = r;
    return 0;
}
static int twin_channel_fd(struct rnic *r, void *channel)
{
    (void)r;
    (void)channel;
    return -1;
}
static int twin_cq_create(struct rnic *r, uint32_t *entries, void *channel, uint32_t vector, void *user, void **cq)
{
    int h = vector || !*entries ? -EINVAL : ep_cq_create(twin_ep(r), *entries);

    (void)channel;
    if (h >= TWIN_USERS) {
        ep_cq_destroy(twin_ep(r), h);
        h = -ENOMEM;
    }
    if (h >= 0)
        twin_of(r)->cq_user[h] = user;
    return made(h, cq);
}
static int twin_cq_resize(struct rnic *r, void *cq, uint32_t *entries)
{
    (void)r;
    (void)cq;
    (void)entries;
    return -EOPNOTSUPP;
}
static int twin_cq_arm(struct rnic *r, void *cq, bool solicited)
{
    return ep_cq_arm(twin_ep(r), (int)number_of(cq), solicited);
}
static int twin_cq_poll(struct rnic *r, void *cq, struct rnic_wc *wc, int n)
{
    struct wc w;
    int got = 0;

    while (got < n && ep_poll(twin_ep(r), (int)number_of(cq), &w, 1) == 1)
        wc[got++] = (struct rnic_wc){.wc = w, .raw_status = w.status, .raw_opcode = w.opcode, .raw_flags = w.flags};
    return got;
}
static int twin_cq_destroy(struct rnic *r, void *cq)
{
    if (twin_of(r)->cq_uses[number_of(cq)])
        return -EBUSY;
    ep_cq_destroy(twin_ep(r), (int)number_of(cq));
    return 0;
}
static int twin_srq_create(struct rnic *r, struct rnic_srq_init *init, void *user, void **srq)
{
    int h = init->xrcd || init->max_tags || init->max_sge > RNIC_SGES
                ? -EOPNOTSUPP
                : ep_srq_create(twin_ep(r), number_of(init->pd), init->max_wr, (uint16_t)init->max_sge);

    if (h >= 0 && h < TWIN_USERS)
        twin_of(r)->srq_user[h] = user;
    return made(h, srq);
}
static int twin_srq_modify(struct rnic *r, void *srq, uint32_t mask, uint32_t max_wr, uint32_t limit)
{
    (void)max_wr;
    return mask != RNIC_SRQ_LIMIT ? -EOPNOTSUPP : ep_srq_limit(twin_ep(r), (int)number_of(srq), limit);
}
static int twin_srq_query(struct rnic *r, void *srq, struct rnic_srq_init *out)
{
    (void)r;
    (void)srq;
    (void)out;
    return -EOPNOTSUPP;
}

/* --- Queue pairs ------------------------------------------------------------------------------ */

/* The completion queues of queue pair `h` have one user more, or less. */
static void use_cqs(struct twin *t, int h, int change)
{
    for (unsigned i = 0; i < 2; i++)
        t->cq_uses[t->qp_cq[h][i]] += (unsigned)change;
}

static int twin_qp_create(struct rnic *r, struct rnic_qp_init *q, void *user, void **qp)
{
    struct ep_qp_init init = {.max_send_wr = q->max_send_wr,
                              .max_recv_wr = q->max_recv_wr,
                              .max_send_sge = (uint16_t)q->max_send_sge,
                              .max_recv_sge = (uint16_t)q->max_recv_sge,
                              .max_inline = q->max_inline,
                              .sq_sig_all = q->sig_all,
                              .srq = q->srq ? (int)number_of(q->srq) : EP_NO_SRQ};
    int h;

    if (((q->type < RNIC_QP_RC || q->type > RNIC_QP_UD) && q->type != RNIC_QP_XRC_SEND) || q->create_flags)
        return -EOPNOTSUPP;
    if (!q->pd || !q->send_cq || !q->recv_cq || q->max_send_sge > RNIC_SGES || q->max_recv_sge > RNIC_SGES)
        return -EINVAL;
    init.type = q->type == RNIC_QP_RC   ? QPT_RC
                : q->type == RNIC_QP_UC ? QPT_UC
                : q->type == RNIC_QP_UD ? QPT_UD
                                        : QPT_XRC_INI;
    init.pd = number_of(q->pd);
    init.send_cq = (int)number_of(q->send_cq);
    init.recv_cq = (int)number_of(q->recv_cq);
    h = ep_qp_create(twin_ep(r), &init);
    if (h >= TWIN_USERS) {
        ep_qp_destroy(twin_ep(r), h);
        h = -ENOMEM;
    }
    if (h < 0)
        return h;
    twin_of(r)->qp_cq[h][0] = init.send_cq;
    twin_of(r)->qp_cq[h][1] = init.recv_cq;
    use_cqs(twin_of(r), h, 1);
    ep_qp_set_user(twin_ep(r), h, user);
    q->qpn = ep_qp(twin_ep(r), h)->qpn;
    return made(h, qp);
}

static int set_av(struct rnic *r, struct av *to, const struct rnic_av *av)
{
    const struct twin *t = twin_of(r);

    *to = (struct av){.dlid = (uint16_t)av->dlid,
                      .flow = av->flow,
                      .tclass = (uint8_t)av->tclass,
                      .hop_limit = (uint8_t)av->hop_limit,
                      .sl = (uint8_t)av->sl,
                      .grh = av->is_global != 0};
    memcpy(to->dgid, av->dgid, 16);
    if (gid_is_group(av->dgid))
        return gid_group_mac(av->dgid, to->dmac), 0;
    return t->c.resolve(t->c.user, av->dgid, to->dmac) ? 0 : -ETIMEDOUT; /* as when ARP has no answer */
}

/* Whether the numbers fit into the endpoint's attributes; what does not is out of every range. */
static bool fit(const struct rnic_qp_attr *a)
{
    const uint32_t bytes = a->state | a->cur_state | a->max_rd_atomic | a->max_dest_rd_atomic | a->min_rnr_timer |
                           a->port | a->timeout | a->retry_cnt | a->rnr_retry;

    return bytes <= UINT8_MAX && a->access <= RNIC_ACCESS_FLUSH_PERSISTENT * 2 - 1 && a->path_mtu <= UINT16_MAX &&
           a->pkey_index < ARRAY_LEN(twin_pkeys);
}

static int twin_qp_modify(struct rnic *r, void *qp, uint32_t mask, const struct rnic_qp_attr *a)
{
    struct qp_attr to = {.state = (uint8_t)a->state,
                         .cur_state = (uint8_t)a->cur_state,
                         .access = own_access(a->access),
                         .port = (uint8_t)a->port,
                         .qkey = a->qkey,
                         .dest_qpn = a->dest_qpn,
                         .rq_psn = a->rq_psn,
                         .sq_psn = a->sq_psn,
                         .path_mtu = (uint16_t)a->path_mtu,
                         .max_rd_atomic = (uint8_t)a->max_rd_atomic,
                         .max_dest_rd_atomic = (uint8_t)a->max_dest_rd_atomic,
                         .min_rnr_timer = (uint8_t)a->min_rnr_timer,
                         .timeout = (uint8_t)a->timeout,
                         .retry_cnt = (uint8_t)a->retry_cnt,
                         .rnr_retry = (uint8_t)a->rnr_retry};
    int e = mask & QPA_AV ? set_av(r, &to.av, &a->av) : 0;

    if (mask & (RNIC_QPA_ALT_PATH | RNIC_QPA_PATH_MIG_STATE | RNIC_QPA_CAP | RNIC_QPA_RATE_LIMIT))
        return -EOPNOTSUPP;
    if (!fit(a))
        return -EINVAL;
    to.pkey = twin_pkeys[a->pkey_index];
    if (!a->en_sqd_async_notify)
        mask &= ~(uint32_t)QPA_EN_SQD_ASYNC_NOTIFY;
    return e < 0 ? e : ep_qp_modify(twin_ep(r), (int)number_of(qp), &to, mask, twin_now(r));
}

static int twin_qp_query(struct rnic *r, void *qp, struct rnic_qp_attr *a)
{
    const struct qp *q = ep_qp(twin_ep(r), (int)number_of(qp));
    const struct qp_attr *is = &q->attr;

    *a = (struct rnic_qp_attr){.state = q->state,
                               .access = their_access(is->access),
                               .port = is->port,
                               .qkey = is->qkey,
                               .dest_qpn = is->dest_qpn,
                               .rq_psn = is->rq_psn,
                               .sq_psn = is->sq_psn,
                               .path_mtu = is->path_mtu,
                               .max_rd_atomic = is->max_rd_atomic,
                               .max_dest_rd_atomic = is->max_dest_rd_atomic,
                               .min_rnr_timer = is->min_rnr_timer,
                               .timeout = is->timeout,
                               .retry_cnt = is->retry_cnt,
                               .rnr_retry = is->rnr_retry};
    memcpy(a->av.dgid, is->av.dgid, 16);
    a->av.hop_limit = is->av.hop_limit;
    a->av.tclass = is->av.tclass;
    a->av.flow = is->av.flow;
    return 0;
}
static int twin_qp_destroy(struct rnic *r, void *qp)
{
    int h = (int)number_of(qp), e = ep_qp_destroy(twin_ep(r), h);

    if (e == 0)
        use_cqs(twin_of(r), h, -1);
    return e;
}
static int twin_ah_create(struct rnic *r, void *pd, const struct rnic_av *av, void **ah)
{
    struct av to;
    int e = set_av(r, &to, av);

    return e < 0 ? e : made(ep_ah_create(twin_ep(r), number_of(pd), &to), ah);
}
static int twin_ah_destroy(struct rnic *r, void *ah)
{
    return ep_ah_destroy(twin_ep(r), (int)number_of(ah));
}
static int twin_mcast(struct rnic *r, void *qp, const uint8_t gid[16], uint16_t lid, bool attach)
{
    (void)lid;
    return attach ? ep_qp_attach(twin_ep(r), (int)number_of(qp), gid) : -EOPNOTSUPP;
}

/* --- Work requests and events ----------------------------------------------------------------- */

static struct send_wr request_of(const struct rnic_send *s)
{
    struct send_wr w = s->wr;

    w.sg_list = s->sge;
    w.ah = s->ah ? number_of(s->ah) : 0;
    if (w.opcode == WR_BIND_MW) {
        w.inv_rkey = ((const struct twin_mw *)s->mw)->key;
        w.mw_access = own_access(w.mw_access);
        w.mr_key = number_of(s->mr);
    }
    return w;
}
static int twin_post_send(struct rnic *r, void *qp, const struct rnic_send *s)
{
    struct send_wr w = request_of(s);
    struct twin_mw *mw = w.opcode == WR_BIND_MW ? s->mw : NULL;
    int e = w.opcode > WR_LOCAL_INV ? -EINVAL : ep_post_send(twin_ep(r), (int)number_of(qp), &w, twin_now(r));

    if (e == 0 && mw && (w.rkey ^ mw->key) <= 0xff) /* a key with another index is not bound */
        mw->key = w.rkey;
    return e;
}
static int twin_mw_bind(struct rnic *r, void *qp, const struct rnic_send *s, uint32_t *rkey)
{
    struct send_wr w = request_of(s);
    struct twin_mw *mw = s->mw;
    int e;

    *rkey = mw->key;
    e = ep_mw_bind(twin_ep(r), (int)number_of(qp), &w, rkey, twin_now(r));
    if (e == 0)
        mw->key = *rkey;
    return e;
}
static int twin_post_recv(struct rnic *r, void *qp, const struct recv_wr *wr)
{
    return ep_post_recv(twin_ep(r), (int)number_of(qp), wr, twin_now(r));
}
static int twin_post_srq(struct rnic *r, void *srq, const struct recv_wr *wr)
{
    return ep_post_srq_recv(twin_ep(r), (int)number_of(srq), wr, twin_now(r));
}
static int twin_fds(struct rnic *r, int fd[RNIC_FDS])
{
    (void)r;
    (void)fd;
    return 0;
}

/* As the asynchronous events of libibverbs are named; CQ_NOTIFY is none of them. */
static const struct {
    const char *name;
    enum { OF_QP, OF_CQ, OF_SRQ } of;
} events[] = {
    [EP_EV_QP_FATAL] = {"QP_FATAL", OF_QP},
    [EP_EV_QP_REQ_ERR] = {"QP_REQ_ERR", OF_QP},
    [EP_EV_QP_ACCESS_ERR] = {"QP_ACCESS_ERR", OF_QP},
    [EP_EV_COMM_EST] = {"COMM_EST", OF_QP},
    [EP_EV_SQ_DRAINED] = {"SQ_DRAINED", OF_QP},
    [EP_EV_SRQ_LIMIT] = {"SRQ_LIMIT_REACHED", OF_SRQ},
    [EP_EV_LAST_WQE] = {"QP_LAST_WQE_REACHED", OF_QP},
    [EP_EV_CQ_ERR] = {"CQ_ERR", OF_CQ},
    [EP_EV_CQ_NOTIFY] = {"", OF_CQ},
};

static int twin_next_event(struct rnic *r, void *channel, struct rnic_event *to)
{
    const struct twin *t = twin_of(r);
    struct ep_event e;

    if (channel) /* notifications come with all others */
        return 0;
    if (!ep_event(twin_ep(r), &e))
        return twin_cm_event(r, to);
    if (e.type == EP_EV_COMM_EST && t->c.established)
        t->c.established(t->c.user, e.handle);
    *to =
        (struct rnic_event){.what = e.type == EP_EV_CQ_NOTIFY ? RNIC_NOTIFY : RNIC_ASYNC, .name = events[e.type].name};
    if (events[e.type].of == OF_QP)
        to->user = ep_qp_user(twin_ep(r), e.handle);
    else if (e.handle < TWIN_USERS)
        to->user = events[e.type].of == OF_CQ ? t->cq_user[e.handle] : t->srq_user[e.handle];
    return 1;
}

static const struct rnic_ops twin_ops = {
    .name = "twin",
    .close = twin_close,
    .list = twin_list,
    .open = twin_open,
    .query = twin_query,
    .query_port = twin_no_port,
    .query_gids = twin_no_port,
    .query_pkeys = twin_query_pkeys,
    .device = twin_device,
    .device_clock = twin_device_clock,
    .counters = twin_counters,
    .pd_alloc = twin_pd_alloc,
    .pd_free = twin_stays,
    .xrcd_open = twin_no_xrcd,
    .channel_create = twin_channel_create,
    .channel_destroy = twin_stays,
    .channel_fd = twin_channel_fd,
    .cq_create = twin_cq_create,
    .cq_resize = twin_cq_resize,
    .cq_arm = twin_cq_arm,
    .cq_poll = twin_cq_poll,
    .cq_destroy = twin_cq_destroy,
    .cq_create_stamped = twin_cq_create,
    .cq_poll_stamped = twin_cq_poll_stamped,
    .srq_create = twin_srq_create,
    .srq_modify = twin_srq_modify,
    .srq_query = twin_srq_query,
    .srq_destroy = twin_stays,
    .mr_reg = twin_mr_reg,
    .mr_rereg = twin_mr_rereg,
    .mr_dereg = twin_key_gone,
    .dm_alloc = twin_dm_alloc,
    .dm_free = twin_dm_free,
    .dm_write = twin_dm_write,
    .dm_read = twin_dm_read,
    .dm_mr = twin_dm_mr,
    .mw_alloc = twin_mw_alloc,
    .mw_bind = twin_mw_bind,
    .mw_free = twin_mw_free,
    .qp_create = twin_qp_create,
    .qp_modify = twin_qp_modify,
    .qp_query = twin_qp_query,
    .qp_destroy = twin_qp_destroy,
    .ah_create = twin_ah_create,
    .ah_destroy = twin_ah_destroy,
    .mcast = twin_mcast,
    .post_send = twin_post_send,
    .post_recv = twin_post_recv,
    .post_srq = twin_post_srq,
    .fds = twin_fds,
    .next_event = twin_next_event,
    .cm_create = twin_cm_create,
    .cm_own = twin_cm_own,
    .cm_destroy = twin_cm_destroy,
    .cm_bind = twin_cm_bind,
    .cm_listen = twin_cm_listen,
    .cm_resolve = twin_cm_resolve,
    .cm_route = twin_cm_route,
    .cm_connect = twin_cm_connect,
    .cm_accept = twin_cm_accept,
    .cm_reject = twin_cm_reject,
    .cm_establish = twin_cm_establish,
    .cm_disconnect = twin_cm_disconnect,
    .cm_join = twin_cm_no_group,
    .cm_leave = twin_cm_no_group,
    .cm_option = twin_cm_no_option,
    .cm_modify = twin_cm_modify,
};

struct rnic *ep_rnic_new(const struct ep_rnic_config *c)
{
    struct twin *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->base.ops = &twin_ops;
    t->c = *c;
    return &t->base;
}
