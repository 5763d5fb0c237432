/* layer 3 (endpoint): queue pairs of an endpoint: creation, states, posting, flushing. */
#include <errno.h>
#include <stdlib.h>

#include "gen/endpoint/endpoint_impl.h"

/* --- QP numbers ------------------------------------------------------------------------------- */

static uint32_t slot_of(const struct endpoint *ep, uint32_t qpn)
{
    return (qpn * UINT32_C(2654435761)) >> 8 & ep->map_mask;
}

struct ep_qp *ep_lookup(const struct endpoint *ep, uint32_t qpn)
{
    for (uint32_t i = slot_of(ep, qpn); ep->map[i]; i = (i + 1) & ep->map_mask)
        if (ep->qp[ep->map[i] - 1]->qp.qpn == qpn)
            return ep->qp[ep->map[i] - 1];
    return NULL;
}

static void map_put(struct endpoint *ep, const struct ep_qp *q)
{
    uint32_t i = slot_of(ep, q->qp.qpn);

    while (ep->map[i])
        i = (i + 1) & ep->map_mask;
    ep->map[i] = (uint32_t)q->handle + 1;
}

/* Remove `q` from the map; the entries after it in its probe sequence move up. */
static void map_drop(struct endpoint *ep, const struct ep_qp *q)
{
    uint32_t i = slot_of(ep, q->qp.qpn), k;

    while (ep->map[i] != (uint32_t)q->handle + 1)
        i = (i + 1) & ep->map_mask;
    for (k = i;;) {
        uint32_t home;
        ep->map[i] = 0;
        do {
            k = (k + 1) & ep->map_mask;
            if (!ep->map[k])
                return;
            home = slot_of(ep, ep->qp[ep->map[k] - 1]->qp.qpn);
        } while (((k - home) & ep->map_mask) < ((k - i) & ep->map_mask));
        ep->map[i] = ep->map[k];
        i = k;
    }
}

/* Rebuild the map, large enough for `n` queue pairs. */
static int map_rebuild(struct endpoint *ep, uint32_t n)
{
    uint32_t size = ep->map_mask + 1, *map;

    while (size < n * 2)
        size *= 2;
    map = calloc(size, sizeof *map);
    if (!map)
        return -ENOMEM;
    free(ep->map);
    ep->map = map;
    ep->map_mask = size - 1;
    for (uint32_t i = 0; i < ep->n_qp; i++)
        if (ep->qp[i])
            map_put(ep, ep->qp[i]);
    return 0;
}

int ep_qp_find(const struct endpoint *ep, uint32_t qpn)
{
    const struct ep_qp *q = ep_lookup(ep, qpn);

    return q ? q->handle : -ENOENT;
}

/* --- Made and released ------------------------------------------------------------------------ */

static uint32_t round_up(uint32_t n)
{
    uint32_t p = 1;

    while (p < n)
        p <<= 1;
    return p;
}

static void qp_release(struct ep_qp *q)
{
    free(q->swqe);
    free(q->ssge);
    free(q->inline_data);
    free(q->cur_sge);
    free(q->cc);
    ep_reorder_forget(q);
    rq_free(&q->rq);
    free(q);
}

static bool handle_ok(int handle, uint32_t n)
{
    return handle >= 0 && (uint32_t)handle < n;
}

/* True if the XRC domain is one, and an SRQ is given only to a queue pair that has no XRC domain. */
static bool init_xrc_ok(const struct endpoint *ep, const struct ep_qp_init *i)
{
    bool xrcd_ok = i->type == QPT_XRC_TGT ? i->xrcd >= 1 && i->xrcd <= ep->xrcds : i->xrcd == 0;

    return xrcd_ok && (i->srq == EP_NO_SRQ || (i->type < QPT_XRC_INI && !ep->srq[i->srq]->xrcd));
}

/* True if the PD, the CQs and the SRQ exist. */
static bool init_resources_ok(const struct endpoint *ep, const struct ep_qp_init *i)
{
    bool cqs_ok = handle_ok(i->send_cq, ep->n_cq) && handle_ok(i->recv_cq, ep->n_cq);
    bool srq_ok = i->srq == EP_NO_SRQ || ep_srq_of(ep, i->srq);

    return i->pd >= 1 && i->pd <= ep->pds && cqs_ok && srq_ok && init_xrc_ok(ep, i);
}

static bool init_limits_ok(const struct ep_qp_init *i)
{
    return i->type < QP_TYPES && i->max_send_wr <= UINT32_C(1) << 20 && i->max_send_sge <= 64 &&
           i->max_dest_rd <= 128 && i->qpn <= PSN_MASK;
}

static int pick_qpn(struct endpoint *ep, uint32_t *qpn)
{
    if (*qpn)
        return ep_lookup(ep, *qpn) ? -EINVAL : 0;
    for (uint32_t tries = 0; tries < 65536; tries++) {
        *qpn = ep->cfg.policies.qpn->pick(&ep->rng, ep->qpn_n++, ep->cfg.policies.qpn_arg) & PSN_MASK;
        if (*qpn >= 2 && *qpn != PSN_MASK && !ep_lookup(ep, *qpn))
            return 0;
    }
    return -ENOMEM;
}

static int qp_queues(struct ep_qp *q, const struct ep_qp_init *init)
{
    uint32_t n = q->sq_mask + 1;
    uint16_t max_rsge = init->type == QPT_XRC_TGT ? RQ_SGE_MAX
                        : init->srq == EP_NO_SRQ  ? init->max_recv_sge
                                                  : q->ep->srq[init->srq]->rq.max_sge;

    q->max_ssge = init->max_send_sge ? init->max_send_sge : 1;
    q->max_inline = init->max_inline;
    q->swqe = malloc(n * sizeof *q->swqe);
    q->ssge = malloc((size_t)n * q->max_ssge * sizeof *q->ssge);
    q->cur_sge = malloc((max_rsge ? max_rsge : 1u) * sizeof *q->cur_sge);
    if (q->max_inline)
        q->inline_data = malloc((size_t)n * q->max_inline);
    if (!q->swqe || !q->ssge || !q->cur_sge || (q->max_inline && !q->inline_data))
        return -ENOMEM;
    return has_own_receives(q) ? rq_init(&q->rq, init->max_recv_wr ? init->max_recv_wr : 16, init->max_recv_sge) : 0;
}

/* Responder resources of a queue pair if the caller gives none. */
#define RES_DEFAULT 16

static struct ep_qp *qp_alloc(struct endpoint *ep, const struct ep_qp_init *init, uint32_t qpn)
{
    uint32_t n_msg = round_up(init->max_send_wr ? init->max_send_wr : 16), n_res = 1;
    struct ep_qp *q;
    struct qp_options opt = {.credits_rx = ep->cfg.credits && init->type == QPT_RC && init->srq == EP_NO_SRQ,
                             .credits_tx = ep->cfg.credits && init->type == QPT_RC,
                             .rxe = ep->cfg.profile == EP_RXE,
                             .selective = ep->cfg.profile == EP_NV,
                             .port_mtu = ep->cfg.mtu};

    if (init->type == QPT_RC || init->type == QPT_XRC_TGT)
        n_res = init->max_dest_rd ? round_up(init->max_dest_rd) : RES_DEFAULT;
    q = calloc(1, offsetof(struct ep_qp, qp) + qp_size(n_msg, n_res) + 8);
    if (!q)
        return NULL;
    q->ep = ep;
    q->sq_max = n_msg;
    q->sq_mask = n_msg - 1;
    q->sig_all = init->sq_sig_all;
    q->srq = init->srq;
    q->pd = init->pd;
    q->xrcd = init->xrcd;
    q->send_cq = init->send_cq;
    q->recv_cq = init->recv_cq;
    q->pol = init->policies ? *init->policies : ep->cfg.policies;
    q->ps.ack_due = q->ps.answer_due = q->refill_at = NS_NEVER;
    q->ud_sport = q->pol.sport->pick(&ep->rng, qpn, 0, 0, q->pol.sport_arg);
    qp_init(&q->qp, (enum qp_type)init->type, qpn, n_msg, n_res, &opt);
    if (qp_queues(q, init) || ep_cc_create(q)) {
        qp_release(q);
        return NULL;
    }
    return q;
}

size_t ep_qp_memory(uint32_t sends, uint16_t send_sge, uint32_t receives, uint16_t recv_sge)
{
    return offsetof(struct ep_qp, qp) + qp_size(round_up(sends), RES_DEFAULT) + 8 +
           round_up(sends) * (sizeof(struct ep_swqe) + send_sge * sizeof(struct sge)) +
           round_up(receives) * (sizeof(struct ep_rwqe) + recv_sge * sizeof(struct sge)) +
           recv_sge * sizeof(struct sge);
}

static int slot_alloc(struct endpoint *ep)
{
    uint32_t cap = ep->cap_qp ? ep->cap_qp * 2 : 16;
    struct timer_slot *heap;
    struct ep_qp **qp;
    int *handles;

    if (ep->n_qp < ep->cap_qp)
        return 0;
    if (ep->n_qp >= ep->cfg.max_qp)
        return -ENOMEM;
    qp = realloc(ep->qp, cap * sizeof *qp);
    if (qp)
        ep->qp = qp;
    heap = realloc(ep->timers.heap, (cap + 1) * sizeof *heap);
    if (heap)
        ep->timers.heap = heap;
    handles = realloc(ep->free_qp, cap * sizeof *handles);
    if (handles)
        ep->free_qp = handles;
    if (!qp || !heap || !handles)
        return -ENOMEM;
    ep->cap_qp = cap;
    return 0;
}

int ep_qp_create(struct endpoint *ep, const struct ep_qp_init *init)
{
    uint32_t qpn = init->qpn;
    struct ep_qp *q;
    int err;

    if (!init_resources_ok(ep, init) || !init_limits_ok(init))
        return -EINVAL;
    err = pick_qpn(ep, &qpn);
    if (!err && !ep->n_free_qp)
        err = slot_alloc(ep);
    if (!err && (ep->n_qp + 1) * 2 > ep->map_mask + 1)
        err = map_rebuild(ep, (ep->n_qp + 1) * 2);
    if (err)
        return err;
    q = qp_alloc(ep, init, qpn);
    if (!q)
        return -ENOMEM;
    q->handle = ep->n_free_qp ? ep->free_qp[--ep->n_free_qp] : (int)ep->n_qp++;
    ep->qp[q->handle] = q;
    map_put(ep, q);
    return q->handle;
}

int ep_qp_destroy(struct endpoint *ep, int qp)
{
    struct ep_qp *q = qp_of(ep, qp);

    if (!q)
        return -EINVAL;
    ep_timer_remove(q);
    ep_unready(q);
    ep_grants_forget(q);
    map_drop(ep, q);
    ep->qp[qp] = NULL;
    ep->free_qp[ep->n_free_qp++] = qp;
    for (uint32_t i = ep->n_group; i-- > 0;)
        if (ep->group[i].qp == qp)
            ep->group[i] = ep->group[--ep->n_group];
    qp_release(q);
    return 0;
}

/* --- Completions ------------------------------------------------------------------------------ */

static void send_complete(struct ep_qp *q, uint32_t n, enum wc_status status, ns_t now)
{
    const struct ep_swqe *w = swqe_of(q, n);
    struct wc wc = {.wr_id = w->wr_id,
                    .status = (uint8_t)status,
                    .opcode = (uint8_t)wc_opcode_of((enum wr_opcode)w->opcode),
                    .byte_len = w->len,
                    .qpn = q->qp.qpn,
                    .when = now};

    if (status == WC_SUCCESS) {
        q->st.messages++;
        q->ep->st.messages++;
    }
    if (status != WC_SUCCESS || q->sig_all || w->flags & SEND_SIGNALED)
        q->cq_overflowed |= !ep_complete(q->ep, q->send_cq, &wc, false);
}

void ep_send_done(struct ep_qp *q, uint32_t first, uint32_t n, ns_t now)
{
    for (uint32_t i = 0; i < n; i++)
        send_complete(q, first + i, WC_SUCCESS, now);
}

void ep_recv_complete(struct ep_qp *q, struct wc *wc, ns_t now)
{
    wc->qpn = q->qp.qpn;
    wc->when = now;
    q->cq_overflowed |=
        !ep_complete(q->ep, q->xrcd ? q->ep->srq[q->srq]->cq : q->recv_cq, wc, wc->flags & WC_SOLICITED);
}

void ep_flush_recv(struct ep_qp *q, ns_t now)
{
    struct wc wc = {.status = WC_WR_FLUSH_ERR, .opcode = WC_RECV};

    if (q->qp.rsp.recv_taken) {
        wc.wr_id = q->cur.wr_id;
        ep_recv_complete(q, &wc, now);
        q->qp.rsp.recv_taken = false;
    }
    if (!has_own_receives(q)) {
        if (!q->last_wqe && q->qp.type != QPT_XRC_INI)
            ep_raise(q->ep, EP_EV_LAST_WQE, q->handle, now);
        q->last_wqe = true;
        return;
    }
    for (; q->rq.head != q->rq.tail; q->rq.head++) {
        wc.wr_id = q->rq.wqe[q->rq.head & q->rq.mask].wr_id;
        ep_recv_complete(q, &wc, now);
    }
}

static void flush_send(struct ep_qp *q, enum wc_status first, ns_t now)
{
    struct requester *r = &q->qp.req;

    for (; r->msg_head != q->sq_tail; r->msg_head++) {
        send_complete(q, r->msg_head, first == WC_SUCCESS ? WC_WR_FLUSH_ERR : first, now);
        first = WC_SUCCESS;
    }
    r->msg_tail = r->msg_tx = r->msg_head;
    r->timer = NS_NEVER;
    r->rnr_wait = false;
    r->dead = q->qp.state == QPS_ERR;
    q->paced = false;
}

void ep_qp_fail(struct ep_qp *q, enum wc_status status, ns_t now)
{
    if (q->qp.state == QPS_ERR || q->qp.state == QPS_RESET)
        return;
    if (UNLIKELY(q->ep->watch))
        q->ep->watch->failed(q->ep->watch->user, q->handle, status, now);
    if (!qp_is_reliable(q->qp.type) && status != WC_SUCCESS) {
        q->qp.state = q->qp.attr.state = QPS_SQE;
        flush_send(q, status, now);
        q->qp.req.dead = false;
        return;
    }
    qp_error(&q->qp);
    flush_send(q, status, now);
    ep_flush_recv(q, now);
    ep_raise(q->ep, EP_EV_QP_FATAL, q->handle, now);
}

/* --- States ----------------------------------------------------------------------------------- */

static void forget_work(struct ep_qp *q)
{
    q->sq_tail = 0;
    q->rq.head = q->rq.tail;
    q->comm_est = q->last_wqe = q->draining = q->paced = q->cq_overflowed = false;
    q->ps = (struct policy_state){.ack_due = NS_NEVER};
    q->data_waits = false;
    q->cnps_due = 0;
    if (q->cc) {
        *q->cc = (struct ep_cc){0};
        ep_grants_forget(q);
    }
    q->refill_at = NS_NEVER;
    ep_reorder_forget(q);
}

void ep_set_path(struct ep_qp *q)
{
    struct endpoint *ep = q->ep;
    const struct av *av = &q->qp.attr.av;

    ep_path_init(ep, av, &q->path);
    if (!av->sport)
        path_set_sport(&q->path,
                       q->pol.sport->pick(&ep->rng, q->qp.qpn, q->qp.attr.dest_qpn, av->flow, q->pol.sport_arg));
}

int ep_qp_modify(struct endpoint *ep, int qp, const struct qp_attr *attr, uint32_t mask, ns_t now)
{
    struct ep_qp *q = qp_of(ep, qp);
    uint8_t from, armed;
    struct path probe;
    int err;

    if (!q || (mask & QPA_AV && ep_path_init(ep, &attr->av, &probe)) ||
        (mask & QPA_ALT_PATH && ep_path_init(ep, &attr->alt_av, &probe)))
        return -EINVAL;
    from = q->qp.state;
    armed = q->qp.attr.mig_state == MIG_ARMED;
    err = qp_modify(&q->qp, attr, mask);
    if (err)
        return err;
    if (mask & QPA_AV)
        ep_set_path(q);
    if (mask & QPA_PATH_MIG_STATE) {
        q->mig_err = false;
        if (armed && attr->mig_state == MIG_MIGRATED)
            ep_migrated(q, EP_MIG_SOFTWARE, now);
    }
    if (q->qp.state == QPS_RESET)
        forget_work(q);
    if (q->qp.state == QPS_ERR && from != QPS_ERR && from != QPS_RESET) {
        flush_send(q, WC_SUCCESS, now);
        ep_flush_recv(q, now);
    }
    if (from == QPS_RTR && q->qp.state == QPS_RTS)
        q->sq_tail = 0;
    q->draining = q->qp.state == QPS_SQD && from == QPS_RTS;
    if (q->qp.state == QPS_RTR)
        ep_refill(q, now);
    ep_ready(q);
    return 0;
}

/* Change to state `to` with the attributes that this transition requires. */
static int step(struct ep_qp *q, struct qp_attr *a, enum qp_state to, ns_t now)
{
    uint32_t required, optional;

    a->state = (uint8_t)to;
    qp_transition((enum qp_type)q->qp.type, (enum qp_state)q->qp.state, to, &required, &optional);
    return ep_qp_modify(q->ep, q->handle, a, required | QPA_STATE, now);
}

int ep_qp_to_rtr(struct endpoint *ep, int qp, const struct ep_peer *peer, ns_t now)
{
    struct ep_qp *q = qp_of(ep, qp);
    struct qp_attr a = {.access = peer->access,
                        .port = 1,
                        .pkey = peer->pkey ? peer->pkey : ep->cfg.pkey,
                        .qkey = peer->qkey,
                        .dest_qpn = peer->qpn,
                        .rq_psn = peer->rq_psn,
                        .path_mtu = peer->path_mtu,
                        .max_dest_rd_atomic = peer->max_dest_rd_atomic,
                        .min_rnr_timer = peer->min_rnr_timer,
                        .av = peer->av};
    int err;

    if (!q)
        return -EINVAL;
    if (q->qp.qpn == 1)
        a.qkey = QKEY_GSI;
    err = q->qp.state == QPS_INIT ? 0 : step(q, &a, QPS_INIT, now);
    return err ? err : step(q, &a, QPS_RTR, now);
}

int ep_qp_to_rts(struct endpoint *ep, int qp, const struct ep_peer *peer, ns_t now)
{
    struct ep_qp *q = qp_of(ep, qp);
    struct qp_attr a = {.sq_psn = peer->sq_psn,
                        .timeout = ep->cfg.timeout ? ep->cfg.timeout : peer->timeout,
                        .retry_cnt = peer->retry_cnt,
                        .rnr_retry = peer->rnr_retry,
                        .max_rd_atomic = peer->max_rd_atomic};

    return q ? step(q, &a, QPS_RTS, now) : -EINVAL;
}

int ep_qp_load_path(struct endpoint *ep, int qp, const struct av *av, uint8_t timeout, ns_t now)
{
    const struct ep_qp *q = qp_of(ep, qp);
    struct qp_attr a = {.alt_av = *av, .alt_timeout = timeout, .mig_state = MIG_REARM};

    if (!q || q->qp.state < QPS_RTS)
        return -EINVAL;
    a.alt_pkey = q->qp.attr.pkey;
    return ep_qp_modify(ep, qp, &a, QPA_ALT_PATH | QPA_PATH_MIG_STATE, now);
}

int ep_qp_connect(struct endpoint *ep, int qp, const struct ep_peer *peer, ns_t now)
{
    int err = ep_qp_to_rtr(ep, qp, peer, now);

    return err ? err : ep_qp_to_rts(ep, qp, peer, now);
}

/* --- Posting ---------------------------------------------------------------------------------- */

static bool wr_allowed(const struct ep_qp *q, const struct send_wr *wr)
{
    switch (q->qp.type) {
    case QPT_RC:
    case QPT_XRC_INI:
        return wr->opcode <= WR_REG_MR;
    case QPT_XRC_TGT:
        return false;
    case QPT_UC:
        return wr->opcode <= WR_SEND_WITH_IMM || wr->opcode == WR_RDMA_WRITE || wr->opcode == WR_RDMA_WRITE_WITH_IMM ||
               (wr->opcode >= WR_BIND_MW && wr->opcode <= WR_REG_MR);
    default:
        return wr->opcode <= WR_SEND_WITH_IMM && wr->ah < q->ep->n_ah && q->ep->ah[wr->ah].used;
    }
}

static int copy_pieces(struct ep_qp *q, struct ep_swqe *w, uint32_t slot, const struct send_wr *wr)
{
    uint64_t len = 0;
    uint32_t off = 0;

    if (wr->num_sge > q->max_ssge && !(wr->flags & SEND_INLINE))
        return -E2BIG;
    for (unsigned i = 0; i < wr->num_sge; i++)
        len += wr->sg_list[i].length;
    if (len > UINT32_C(1) << 31 ||
        (q->qp.type != QPT_UD && psn_span(len, q->qp.attr.path_mtu ? q->qp.attr.path_mtu : 256) >= PSN_HALF))
        return -E2BIG;
    w->len = (uint32_t)len;
    w->num_sge = (uint8_t)wr->num_sge;
    if (!(wr->flags & SEND_INLINE)) {
        if (wr->num_sge)
            memcpy(&q->ssge[(size_t)slot * q->max_ssge], wr->sg_list, wr->num_sge * sizeof *wr->sg_list);
        return 0;
    }
    if (len > q->max_inline || !wr_info_of(wr->opcode)->data)
        return -E2BIG;
    for (unsigned i = 0; i < wr->num_sge; i++) { /* inline: addresses are the caller's own pointers */
        memcpy(q->inline_data + (size_t)slot * q->max_inline + off, (const void *)(uintptr_t)wr->sg_list[i].addr,
               wr->sg_list[i].length);
        off += wr->sg_list[i].length;
    }
    return 0;
}

static int post_send(struct endpoint *ep, int qp, const struct send_wr *wr, bool window1, ns_t now)
{
    struct ep_qp *q = qp_of(ep, qp);
    struct ep_swqe *w;
    int err;

    if (!q || !wr_allowed(q, wr) || q->qp.state < QPS_RTS)
        return -EINVAL;
    if (q->sq_tail - q->qp.req.msg_head >= q->sq_max)
        return -ENOMEM;
    w = swqe_of(q, q->sq_tail);
    err = copy_pieces(q, w, q->sq_tail & q->sq_mask, wr);
    if (err)
        return err;
    w->wr_id = wr->wr_id;
    w->opcode = wr->opcode;
    w->flags = wr->flags;
    w->remote_addr = wr->remote_addr;
    w->rkey = wr->rkey;
    w->imm_data = wr->imm_data;
    w->inv_rkey = wr->inv_rkey;
    w->compare_add = wr->compare_add;
    w->swap = wr->swap;
    w->remote_qpn = wr->remote_qpn;
    w->remote_qkey = wr->remote_qkey;
    w->ah = wr->ah;
    w->remote_srqn = wr->remote_srqn;
    w->mr_key = wr->mr_key;
    w->mw_length = wr->mw_length;
    w->reg_mem = wr->reg_mem;
    w->mw_access = wr->mw_access;
    w->flush_length = wr->flush_length;
    w->placement = wr->placement;
    w->whole_region = wr->whole_region;
    w->checked = false;
    w->window1 = window1;
    w->status = WC_SUCCESS;
    q->sq_tail++;
    if (UNLIKELY(q->cc != NULL))
        ep_cc_posted(q, wr_info_of(wr->opcode), w->len);
    if (UNLIKELY(q->ep->watch))
        q->ep->watch->posted(q->ep->watch->user, qp, now);
    if (q->qp.state == QPS_ERR || q->qp.state == QPS_SQE)
        flush_send(q, WC_SUCCESS, now);
    else
        ep_ready(q);
    return 0;
}

int ep_post_send(struct endpoint *ep, int qp, const struct send_wr *wr, ns_t now)
{
    return post_send(ep, qp, wr, false, now);
}

int ep_mw_bind(struct endpoint *ep, int qp, const struct send_wr *wr, uint32_t *key, ns_t now)
{
    struct send_wr bind = *wr;
    int err;

    if (mr_kind_of(&ep->mrs, *key) != MR_WINDOW1 || wr->mw_access & ~ACCESS_REMOTE)
        return -EINVAL;
    bind.opcode = WR_BIND_MW;
    bind.inv_rkey = *key;
    bind.rkey = mr_next_key(*key);
    bind.num_sge = 0;
    err = post_send(ep, qp, &bind, true, now);
    if (!err)
        *key = bind.rkey;
    return err;
}
