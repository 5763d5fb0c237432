/* layer 3 (endpoint): the requester: chooses the next request packet, builds, checks and sends it. */
#include <errno.h>

#include "gen/endpoint/endpoint_impl.h"

void ep_fill_bth(struct ep_qp *q, struct pkt *p, uint8_t opcode, uint32_t psn)
{
    p->op = &opcode_table[opcode];
    p->have = H_BTH | p->op->ext;
    p->bth = (struct bth){
        .opcode = opcode, .migreq = ep_migreq(q), .pkey = q->qp.attr.pkey, .dqpn = q->qp.attr.dest_qpn, .psn = psn};
    p->payload_len = 0;
}

/* --- What to send ----------------------------------------------------------------------------- */

const struct wr_info *wr_info_of(unsigned opcode)
{
    static const struct wr_info infos[] = {
        [WR_SEND] = {MSG_SEND, .receive = true, .data = true, .first = OP_SEND_FIRST, OP_SEND_MIDDLE, OP_SEND_LAST,
                     OP_SEND_ONLY},
        [WR_SEND_WITH_IMM] = {MSG_SEND, .receive = true, .data = true, .first = OP_SEND_FIRST, OP_SEND_MIDDLE,
                              OP_SEND_LAST_IMM, OP_SEND_ONLY_IMM},
        [WR_SEND_WITH_INV] = {MSG_SEND, .receive = true, .data = true, .first = OP_SEND_FIRST, OP_SEND_MIDDLE,
                              OP_SEND_LAST_INV, OP_SEND_ONLY_INV},
        [WR_RDMA_WRITE] = {MSG_WRITE, .data = true, .first = OP_WRITE_FIRST, OP_WRITE_MIDDLE, OP_WRITE_LAST,
                           OP_WRITE_ONLY},
        [WR_RDMA_WRITE_WITH_IMM] = {MSG_WRITE, .receive = true, .data = true, .first = OP_WRITE_FIRST, OP_WRITE_MIDDLE,
                                    OP_WRITE_LAST_IMM, OP_WRITE_ONLY_IMM},
        [WR_RDMA_READ] = {MSG_READ, .fills = true, .only = OP_READ_REQUEST},
        [WR_ATOMIC_CMP_AND_SWP] = {MSG_ATOMIC, .fills = true, .eight = true, .only = OP_COMPARE_SWAP},
        [WR_ATOMIC_FETCH_AND_ADD] = {MSG_ATOMIC, .fills = true, .eight = true, .only = OP_FETCH_ADD},
        [WR_ATOMIC_WRITE] = {MSG_PLACE, .data = true, .eight = true, .only = OP_ATOMIC_WRITE},
        [WR_FLUSH] = {MSG_PLACE, .only = OP_FLUSH},
        [WR_BIND_MW] = {MSG_LOCAL},
        [WR_LOCAL_INV] = {MSG_LOCAL},
        [WR_REG_MR] = {MSG_LOCAL},
    };
    return &infos[opcode];
}

/* Opcode of a packet of a work request: First, Last, Only or Middle. */
static uint8_t packet_op(const struct wr_info *i, bool first, bool last)
{
    return first && last ? i->only : first ? i->first : last ? i->last : i->middle;
}

static uint32_t window_of(const struct ep_qp *q)
{
    return ep_window(q);
}

static bool has_depth(struct ep_qp *q)
{
    return req_resources(&q->qp.req) < q->qp.req.p.max_rd || ep_fault_choice(q, CHOICE_EXTRA_READ);
}

static bool uses_depth(enum msg_kind kind)
{
    return kind == MSG_READ || kind == MSG_ATOMIC || kind == MSG_PLACE;
}

/* What else holds back a work request of `span` PSNs that the window does: with a larger one it would wait all the same
 * until the oldest message is complete, and could begin then. */
static enum ep_wait also_waits(const struct ep_qp *q, const struct wr_info *i, uint32_t span)
{
    const struct requester *r = &q->qp.req;
    const struct req_msg *oldest = req_msg(r, r->msg_head);
    uint32_t left = psn_add(oldest->psn, oldest->span), out = req_outstanding(r);

    left = psn_diff(left, r->una_hi) > 0 ? (uint32_t)psn_diff(left, r->una_hi) : 0;
    if (left > out || (out != left && out - left + span > window_of(q)))
        return EP_WAIT_NONE;
    if (uses_depth((enum msg_kind)i->kind) && req_resources(r) >= r->p.max_rd)
        return EP_WAIT_DEPTH;
    return i->receive && !req_has_credit(r, psn_add(r->ssn, 1)) ? EP_WAIT_CREDIT : EP_WAIT_NONE;
}

/* True if work request `w` may begin now. A work request that failed, or needs no packet, never begins: settle_local()
 * completes it. */
static bool may_begin(struct ep_qp *q, const struct ep_swqe *w)
{
    const struct requester *r = &q->qp.req;
    const struct wr_info *i = wr_info_of(w->opcode);
    enum msg_kind kind = (enum msg_kind)i->kind;
    uint32_t span;

    if (!req_has_room(r) || q->qp.state != QPS_RTS)
        return false;
    if (UNLIKELY(w->status != WC_SUCCESS || kind == MSG_LOCAL))
        return false;
    if (w->flags & SEND_FENCE && req_resources(r))
        return false;
    span = kind == MSG_READ ? psn_span(w->len, r->p.pmtu) : 1;
    if (req_outstanding(r) && req_outstanding(r) + span > window_of(q)) {
        q->waits = also_waits(q, i, span);
        return false;
    }
    q->waits = EP_WAIT_DEPTH;
    if (uses_depth(kind) && !has_depth(q))
        return false;
    q->waits = EP_WAIT_CREDIT;
    if (LIKELY(r->unlimited) || !i->receive || req_has_credit(r, psn_add(r->ssn, 1)))
        return true;
    return r->limit && ep_fault_choice(q, CHOICE_NO_CREDIT); /* without credits until the first ACK */
}

/* The next request packet: number of its message, and its PSN counted from the first PSN of the message. False: nothing
 * may be sent.
 *
 * Go-back-N: PSN 11 is lost, and una_hi is the PSN after the newest acknowledged one:
 *
 *   psn_tx      10 11 12 13  |  sequence NAK 11, or ACK timeout: psn_tx = una_hi = 11  |  11 12 13  |  14
 *               new packets  |                                                         |  going back  new packets
 *
 * While req_going_back(), the packets from (msg_tx, psn_tx) on are retransmitted from their work requests; then the
 * newest message continues if it is open, else the next work request begins. */
static bool next_place(struct ep_qp *q, uint32_t *n, uint32_t *off)
{
    const struct requester *r = &q->qp.req;
    const struct req_msg *m;

    q->waits = EP_WAIT_NONE;
    if (UNLIKELY(req_going_back(r))) {
        *n = r->msg_tx;
        *off = (r->psn_tx - req_msg(r, *n)->psn) & PSN_MASK;
        return true;
    }
    m = req_msg(r, r->msg_tail - 1);
    if (r->msg_tail != r->msg_head && m->kind != MSG_LOCAL && m->open) {
        *n = r->msg_tail - 1;
        *off = m->span;
        bool held = r->probing && m->credit; /* its latest packet is the probe, sent without credit */
        q->waits = held ? EP_WAIT_CREDIT : EP_WAIT_NONE;
        if (held || (q->qp.type != QPT_UC && req_outstanding(r) >= window_of(q)))
            return false;
        return true;
    }
    *n = r->msg_tail;
    *off = 0;
    return *n != q->sq_tail && may_begin(q, swqe_of(q, *n));
}

/* --- Local operations ------------------------------------------------------------------------- */

/* Fast registration: the region's memory is that of the work request from now on. */
static void run_reg_mr(struct ep_qp *q, struct ep_swqe *w)
{
    struct mr_fast f = {.key = w->inv_rkey,
                        .new_key = w->rkey,
                        .pd = q->pd,
                        .iova = w->remote_addr,
                        .len = w->mw_length,
                        .access = w->mw_access};

    if (mr_fast_register(&q->ep->mrs, &f))
        w->status = WC_LOC_QP_OP_ERR;
    else
        q->ep->mem[w->rkey >> 8] = w->reg_mem;
}

static void run_local(struct ep_qp *q, struct ep_swqe *w)
{
    struct mr_table *t = &q->ep->mrs;

    if (w->opcode == WR_REG_MR)
        run_reg_mr(q, w);
    else if (w->opcode == WR_LOCAL_INV)
        w->status = mr_invalidate(t, w->inv_rkey, q->pd, q->qp.qpn, false) == MR_OK ? WC_SUCCESS : WC_LOC_QP_OP_ERR;
    else if (ep_has_flaw(q->ep, FLAW_EMPTY_WINDOW) && !w->window1 && w->mw_length == 0)
        w->status = WC_SUCCESS;
    else if (mw_bind(t, &(struct mw_bind){.key = w->inv_rkey,
                                          .new_key = w->rkey,
                                          .mr_key = w->mr_key,
                                          .pd = q->pd,
                                          .qpn = q->qp.qpn,
                                          .va = w->remote_addr,
                                          .len = w->mw_length,
                                          .access = w->mw_access,
                                          .kind = w->window1 ? MR_WINDOW1 : MR_WINDOW2}))
        w->status = WC_MW_BIND_ERR;
}

/* Complete the next work requests that need no packet (local operations) or fail before their first packet. False: the
 * queue pair failed. */
static bool settle_local(struct ep_qp *q, ns_t now)
{
    struct requester *r = &q->qp.req;

    while (r->msg_tail != q->sq_tail && !req_going_back(r) && q->qp.state == QPS_RTS) {
        struct ep_swqe *w = swqe_of(q, r->msg_tail);
        const struct wr_info *i = wr_info_of(w->opcode);
        struct effects e;
        bool open = r->msg_tail != r->msg_head && req_msg(r, r->msg_tail - 1)->open;
        uint32_t first = r->msg_head;
        bool local = i->kind == MSG_LOCAL;
        if (open || !req_has_room(r) || (w->flags & SEND_FENCE && req_resources(r)))
            return true;
        if (local && w->status == WC_SUCCESS)
            run_local(q, w);
        if (i->eight && w->len != 8)
            w->status = WC_LOC_LEN_ERR;
        else if (!local && !w->checked && !(w->flags & SEND_INLINE && q->qp.type != QPT_UD)) {
            w->checked = true;
            if (q->qp.type == QPT_UD && q->ep->ah[w->ah].pd != q->pd)
                w->status = WC_LOC_QP_OP_ERR;
            else if (!(w->flags & SEND_INLINE) &&
                     !sge_check(q->ep, q->pd, &q->ssge[(size_t)(r->msg_tail & q->sq_mask) * q->max_ssge], w->num_sge,
                                i->fills ? ACCESS_LOCAL_WRITE : 0))
                w->status = WC_LOC_PROT_ERR;
        }
        if (UNLIKELY(w->status != WC_SUCCESS)) {
            if (r->msg_head != r->msg_tail)
                return true; /* earlier work requests complete first */
            ep_qp_fail(q, (enum wc_status)w->status, now);
            return false;
        }
        if (!local)
            return true;
        req_local(r);
        e = req_settle(r);
        ep_send_done(q, first, e.completed, now);
    }
    return true;
}

/* --- Packets ---------------------------------------------------------------------------------- */

static bool wants_ackreq(struct ep_qp *q, bool last, uint32_t span)
{
    const struct requester *r = &q->qp.req;

    q->ps.since_ackreq++;
    if (!qp_is_reliable(q->qp.type))
        return false;
    if (last || ep_ackreq_is_due(q) || req_outstanding(r) + span >= window_of(q) ||
        (UNLIKELY(!r->unlimited) && psn_diff(r->ssn, r->limit) >= 0)) {
        q->ps.since_ackreq = 0;
        return true;
    }
    return false;
}

/* Extended transport headers. */
static void fill_ext(const struct ep_qp *q, struct pkt *p, const struct ep_swqe *w, uint32_t skip)
{
    uint32_t ext = p->op->ext;

    if (ext & H_XRCETH)
        p->xrceth = (struct xrceth){.srqn = w->remote_srqn};
    if (ext & H_FETH)
        p->feth = (struct feth){.plt = w->placement, .sel = w->whole_region};
    if (ext & H_RETH)
        p->reth = (struct reth){
            .va = w->remote_addr + skip, .rkey = w->rkey, .dmalen = ext & H_FETH ? w->flush_length : w->len - skip};
    if (ext & H_ATOMICETH) {
        bool cas = w->opcode == WR_ATOMIC_CMP_AND_SWP;
        p->atomiceth = (struct atomiceth){.va = w->remote_addr,
                                          .rkey = w->rkey,
                                          .swap = cas ? w->swap : w->compare_add,
                                          .cmp = cas ? w->compare_add : 0};
    }
    if (ext & H_IMMDT)
        p->immdt.data = w->imm_data;
    if (ext & H_IETH)
        p->ieth.rkey = w->inv_rkey;
    if (ext & H_DETH) {
        p->deth = (struct deth){.qkey = w->remote_qkey >> 31 ? q->qp.attr.qkey : w->remote_qkey, .srcqp = q->qp.qpn};
        if (q->qp.qpn == 1)
            p->deth.qkey = QKEY_GSI;
    }
}

void ep_fill_request(struct ep_qp *q, struct pkt *p, uint32_t n, uint32_t off, uint32_t *skip)
{
    const struct ep_swqe *w = swqe_of(q, n);
    const struct requester *r = &q->qp.req;
    const struct wr_info *i = wr_info_of(w->opcode);
    uint32_t left;
    bool last;

    *skip = off * r->p.pmtu;
    left = w->len - *skip;
    last = !i->data || left <= r->p.pmtu || q->qp.type == QPT_UD;
    ep_fill_bth(q, p, OPCODE(r->p.service, packet_op(i, !i->data || off == 0, last)), r->psn_tx);
    if (i->data)
        p->payload_len = last ? left : r->p.pmtu;
    fill_ext(q, p, w, *skip);
    if (q->qp.type == QPT_UD)
        p->bth.dqpn = w->remote_qpn;
    p->bth.se = last && w->flags & SEND_SOLICITED && i->receive;
    p->bth.ackreq = wants_ackreq(q, last, w->opcode == WR_RDMA_READ ? psn_span(left, r->p.pmtu) : 1);
    p->bth.padcnt = -p->payload_len & 3;
}

static bool copy_payload(struct ep_qp *q, uint32_t n, uint32_t skip, uint8_t *to, uint32_t len)
{
    const struct ep_swqe *w = swqe_of(q, n);
    uint32_t slot = n & q->sq_mask;

    if (w->flags & SEND_INLINE) {
        ep_copy(q->ep, to, q->inline_data + (size_t)slot * q->max_inline + skip, len);
        return true;
    }
    return sge_copy(q->ep, q->pd, &q->ssge[(size_t)slot * q->max_ssge], w->num_sge, skip, to, len, false);
}

static void count_request(struct ep_qp *q, uint32_t n, const struct pkt *p, bool repeat)
{
    q->ep->sent = (struct ep_sent){.request = true, .repeat = repeat, .wr_id = swqe_of(q, n)->wr_id, .psn = p->bth.psn};
    if (repeat) {
        q->st.retransmitted++;
        q->ep->st.retransmitted++;
    } else {
        q->st.tx_payload += p->payload_len;
        q->ep->st.tx_payload += p->payload_len;
    }
}

/* A UD message that is too long for a frame completes with success but is not sent (C10-93.1.1). */
static bool vanishes(const struct ep_qp *q, uint32_t n)
{
    return q->qp.type == QPT_UD && swqe_of(q, n)->len > q->qp.req.p.pmtu;
}

static void swallow(struct ep_qp *q, ns_t now)
{
    struct requester *r = &q->qp.req;
    uint32_t first = r->msg_head;
    struct effects e;

    req_local(r);
    e = req_settle(r);
    ep_send_done(q, first, e.completed, now);
}

/* Path of message `n`. */
static const struct path *path_of(struct ep_qp *q, uint32_t n)
{
    struct ep_ah *ah;

    if (q->qp.type != QPT_UD)
        return &q->path;
    ah = &q->ep->ah[swqe_of(q, n)->ah];
    if (ah->auto_sport)
        path_set_sport(&ah->path, q->ud_sport);
    return &ah->path;
}

/* Check the packet; a spurious retransmission (CHOICE_SPURIOUS) against the state in which it is not due. */
static void judge(struct ep_qp *q, const struct pkt *p, ns_t now)
{
    struct requester *r = &q->qp.req;
    uint32_t psn = r->psn_tx, msg = r->msg_tx;

    if (UNLIKELY(q->spurious)) {
        r->psn_tx = r->psn_next;
        r->msg_tx = r->msg_tail;
    }
    ep_self_check(q, req_tx_check(r, p, now));
    r->psn_tx = psn;
    r->msg_tx = msg;
}

/* Build, check and send the packet at (`n`, `off`). */
static int send_packet(struct ep_qp *q, uint32_t n, uint32_t off, uint8_t *buf, uint32_t cap, ns_t now)
{
    struct endpoint *ep = q->ep;
    struct requester *r = &q->qp.req;
    const struct path *path = path_of(q, n);
    struct frame_out out = {.buf = buf, .cap = cap};
    struct build_tweak tweak = {0};
    struct pkt *p = &ep->tx, honest;
    bool repeat = req_going_back(r);
    uint32_t skip, first = r->msg_head, data;

    ep_fill_request(q, p, n, off, &skip);
    if (UNLIKELY(ep->n_fault)) {
        struct fault_ctx c = {.p = p,
                              .tweak = &tweak,
                              .req = r,
                              .rsp = &q->qp.rsp,
                              .now = now,
                              .repeat = repeat,
                              .encap = path->encap,
                              .ip4 = path->ip4};
        honest = *p;
        ep_fault_packet(q, FAULT_REQUEST, &c);
    }
    if (build_begin(&out, path, p, p->payload_len, ep->ip_id, &tweak))
        return -ENOSPC;
    if (!ep->cfg.no_self_check)
        judge(q, p, now);
    data = min_u32(p->payload_len, swqe_of(q, n)->len - skip);
    if (UNLIKELY(!copy_payload(q, n, skip, out.payload, data))) {
        ep_qp_fail(q, WC_LOC_PROT_ERR, now);
        return 0;
    }
    if (UNLIKELY(data < p->payload_len)) /* a fault made the packet longer than its message */
        memset(out.payload + data, 0, p->payload_len - data);
    build_end(&out, path, p, p->payload_len, &tweak);
    if (UNLIKELY(q->cc != NULL))
        out.len += ep_cc_collect(q, buf + out.len, cap - out.len);
    ep->ip_id++;
    req_tx(r, UNLIKELY(ep->n_fault) ? &honest : p, now);
    count_request(q, n, p, repeat);
    ep_send_done(q, first, r->msg_head - first, now);
    if (UNLIKELY(q->cc != NULL))
        ep_cc_sent(q, p, out.len, repeat, now);
    if (q->pol.pace != &pace_none)
        q->ps.next_send = q->pol.pace->sent(&q->ps, out.len, now, &q->pol);
    return (int)out.len;
}

/* Fault CHOICE_SPURIOUS: retransmit the oldest unacknowledged packet without a timeout or NAK. Only after the first
 * response: before it a capture does not show whether responses are captured at all. */
static bool spurious_possible(const struct requester *r)
{
    bool acknowledged_any = r->una_hi != r->p.psn;

    return req_outstanding(r) && acknowledged_any && !req_going_back(r) && r->una_hi == req_msg(r, r->msg_head)->psn;
}

static int send_spurious(struct ep_qp *q, uint8_t *buf, uint32_t cap, ns_t now)
{
    struct requester *r = &q->qp.req, saved = *r;
    int n;

    if (!spurious_possible(r) || !ep_fault_choice(q, CHOICE_SPURIOUS))
        return 0;
    r->psn_tx = r->una_hi;
    r->msg_tx = r->msg_head;
    q->spurious = true;
    n = send_packet(q, r->msg_head, 0, buf, cap, now);
    q->spurious = false;
    *r = saved;
    return n;
}

/* Fault CHOICE_AFTER_FATAL: the queue pair has failed, and sends an empty SEND all the same. */
static int send_after_fatal(struct ep_qp *q, uint8_t *buf, uint32_t cap)
{
    struct frame_out out = {.buf = buf, .cap = cap};
    struct build_tweak tweak = {0};
    struct pkt *p = &q->ep->tx;

    if (!ep_fault_choice(q, CHOICE_AFTER_FATAL))
        return 0;
    ep_fill_bth(q, p, OPCODE(q->qp.req.p.service, OP_SEND_ONLY), q->stray_psn);
    p->bth.ackreq = true;
    if (build_begin(&out, &q->path, p, 0, q->ep->ip_id, &tweak))
        return -ENOSPC;
    build_end(&out, &q->path, p, 0, &tweak);
    q->ep->ip_id++;
    q->ep->sent = (struct ep_sent){.request = true, .psn = q->stray_psn};
    return (int)out.len;
}

/* Fault CHOICE_IN_RNR_WAIT: send a new request during the RNR wait. The go-back-N retransmits it later. */
static int send_ahead(struct ep_qp *q, uint8_t *buf, uint32_t cap, ns_t now)
{
    struct requester *r = &q->qp.req;
    uint32_t psn = r->psn_tx, msg = r->msg_tx, n, off;
    ns_t timer = r->timer;
    int sent = 0;

    r->psn_tx = r->psn_next;
    if (next_place(q, &n, &off) && ep_fault_choice(q, CHOICE_IN_RNR_WAIT))
        sent = send_packet(q, n, off, buf, cap, now);
    r->psn_tx = psn;
    r->msg_tx = msg;
    r->timer = timer;
    return sent;
}

/* The request that ep_plan_stray() has planned. */
static int send_stray(struct ep_qp *q, uint8_t *buf, uint32_t cap, ns_t now)
{
    q->stray_at = 0;
    if (q->qp.state == QPS_ERR)
        return send_after_fatal(q, buf, cap);
    return q->qp.req.rnr_wait && now < q->qp.req.rnr_until ? send_ahead(q, buf, cap, now) : 0;
}

/* An RNR wait that is over ends before anything is sent, even if the queue pair was so busy with responses that its
 * timer was not looked at: else the next RNR NAK would count as one that was under way during the wait. */
static void end_rnr_wait(struct ep_qp *q, ns_t now)
{
    struct effects e = req_expire(&q->qp.req, now);

    ep_tell_requester(q, &e, now);
}

static bool may_send(struct ep_qp *q, ns_t now)
{
    const struct requester *r = &q->qp.req;
    ns_t next;

    q->waits = EP_WAIT_NONE;
    q->paced = false; /* what waits for something else has no deadline of the pacing */
    if (!qp_can_send(&q->qp) || r->dead)
        return false;
    if (UNLIKELY(r->rnr_wait && now < r->rnr_until) && !ep_fault_choice(q, CHOICE_EARLY_RNR_RETRY))
        return false;
    if (UNLIKELY(r->rnr_wait && now >= r->rnr_until))
        end_rnr_wait(q, now);
    next = ep_cc_has_budget(q) ? ep_next_send(q, now) : NS_NEVER;
    q->paced = next > now;
    if (q->paced && q->ps.usual_send && next > q->ps.usual_send && req_outstanding(r) < window_of(q))
        q->waits = EP_WAIT_CUT;
    return !q->paced;
}

/* Tell the observer why nothing is sent. */
static void tell_wait(const struct ep_qp *q, ns_t now)
{
    const struct ep_watch *w = q->ep->watch;

    if (UNLIKELY(w))
        w->waits(w->user, q->handle, (enum ep_wait)q->waits, q->ps.usual_send, now);
}

int ep_tx_request(struct ep_qp *q, uint8_t *buf, uint32_t cap, ns_t now)
{
    struct requester *r = &q->qp.req;
    uint32_t n, off;
    int sent;

    if (UNLIKELY(q->stray_at && q->stray_at <= now))
        return send_stray(q, buf, cap, now);
    if (UNLIKELY(q->cc != NULL) && ep_cc_asks(q, now))
        return ep_cc_send_ask(q, buf, cap, now);
    if (!may_send(q, now) || !settle_local(q, now)) {
        tell_wait(q, now);
        return 0;
    }
    while (next_place(q, &n, &off)) {
        if (vanishes(q, n)) {
            swallow(q, now);
            continue;
        }
        if (q->qp.type == QPT_UD && !q->ep->ah[swqe_of(q, n)->ah].used) {
            ep_qp_fail(q, WC_LOC_QP_OP_ERR, now);
            return 0;
        }
        if (UNLIKELY(q->ep->n_fault) && (sent = ep_intrude(q, n, off, buf, cap)))
            return sent;
        return send_packet(q, n, off, buf, cap, now);
    }
    tell_wait(q, now);
    if (UNLIKELY(ep_may_choose(q->ep, CHOICE_SPURIOUS)))
        return send_spurious(q, buf, cap, now);
    if (q->draining && r->msg_head == r->msg_tail) {
        q->draining = false;
        ep_raise(q->ep, EP_EV_SQ_DRAINED, q->handle, now);
    }
    return 0;
}
