/* layer 3 (endpoint): received frames: their queue pair, and their effects on memory, queues and completions. */
#include "dissect/ip/ip.h"
#include "gen/endpoint/endpoint_impl.h"

#define COUNT(q, counter)                                                                                              \
    do {                                                                                                               \
        (q)->st.counter++;                                                                                             \
        (q)->ep->st.counter++;                                                                                         \
    } while (0)

/* --- Is it for us? In the order of 9.6 and of soft-RoCE; every failure is silent. ------------- */

static bool is_multicast(const struct pkt *p)
{
    return p->addr_len == 4 ? p->dst[0] >> 4 == 14 : p->addr_len == 16 && p->dst[0] == 0xff;
}

/* The VLAN of the packet is that of the endpoint; a priority tag (VLAN 0) is of none (IEEE 802.1Q). */
static bool vlan_ok(const struct link_addr *own, const struct pkt *p)
{
    return (p->have & H_VLAN ? p->vlan & 0xfffu : 0) == (own->has_vlan ? own->vlan : 0);
}

static bool is_addressed(const struct endpoint *ep, const struct pkt *p)
{
    if (p->encap != ep->cfg.addr.encap)
        return false;
    if (!vlan_ok(&ep->cfg.addr, p))
        return false;
    return is_multicast(p) || (p->encap == ENCAP_IB && p->lrh.dlid >= 0xc000) || ep_port_addressed(ep, p);
}

static bool pkey_ok(const struct ep_qp *q, const struct pkt *p)
{
    bool asks = q->qp.attr.mig_state == MIG_ARMED && p->bth.migreq;
    uint16_t own = asks ? q->qp.attr.alt_pkey : q->qp.attr.pkey, got = p->bth.pkey;

    if (((own ^ got) & 0x7fff) != 0)
        return ep_has_flaw(q->ep, FLAW_ANY_PKEY);
    return (own | got) & 0x8000 || ep_has_flaw(q->ep, FLAW_LIMITED_PKEY);
}

static bool is_sound(const struct endpoint *ep, const struct pkt *p)
{
    return p->have & H_BTH && !(p->flags & (PKT_MALFORMED | PKT_CUT)) && !p->bth.tver &&
           (p->op->name || opcode_is_manufacturers(p->bth.opcode)) && is_addressed(ep, p) &&
           !(p->have & H_IP4 && ip4_sum_wrong(p)) && !(p->have & H_UDP && udp_sum_wrong(p) && !udp_sum_is_partial(p));
}

/* True if a packet that failed is_sound() is an RDMA packet addressed to this endpoint: it is counted. */
static bool is_rubbish(const struct endpoint *ep, const struct pkt *p)
{
    bool rdma = p->have & H_BTH || (p->have & H_UDP && p->dport == UDP_PORT_ROCEV2);

    return rdma && (p->addr_len == 0 || ep_port_addressed(ep, p));
}

/* The queue pair of a decoded packet; NULL: drop it, as it is malformed, its ICRC is wrong, or it is for no queue pair
 * here with this P_Key and peer. */
static struct ep_qp *find_qp(struct endpoint *ep, const struct pkt *p, ns_t now)
{
    struct ep_qp *q;

    if (!is_sound(ep, p)) {
        ep->st.malformed += is_rubbish(ep, p);
        return NULL;
    }
    q = ep_lookup(ep, p->bth.dqpn);
    if (!q || !qp_can_receive(&q->qp)) {
        ep->st.unknown_qp += ep->cfg.no_verify || p->icrc != CRC_BAD;
        return NULL;
    }
    if (!pkey_ok(q, p)) {
        COUNT(q, bad_pkey);
        return NULL;
    }
    if (q->qp.type != QPT_UD && !ep_path_ok(q, p)) {
        if (ep->cfg.no_verify || p->icrc == CRC_GOOD)
            ep_path_refused(q, p, now);
        COUNT(q, other_source);
        return NULL;
    }
    if (!ep->cfg.no_verify && p->icrc != CRC_GOOD) {
        if (p->icrc == CRC_BAD)
            COUNT(q, rx_icrc_encapsulated);
        return NULL;
    }
    if (UNLIKELY(q->qp.attr.mig_state != MIG_MIGRATED))
        ep_path_confirmed(q, p, now);
    return q;
}

/* --- Responses -------------------------------------------------------------------------------- */

static bool deliver_read(struct ep_qp *q, const struct effects *e, const struct pkt *p)
{
    const struct ep_swqe *w = swqe_of(q, e->msg);
    const struct sge *sge = &q->ssge[(size_t)(e->msg & q->sq_mask) * q->max_ssge];
    uint8_t orig[8];
    const uint8_t *data = p->data + p->payload_off;

    if (e->flags & EFF_ATOMIC_DATA) {
        memcpy(orig, &p->atomicacketh.orig, 8);
        data = orig;
    }
    return sge_copy(q->ep, q->pd, sge, w->num_sge, e->offset, (uint8_t *)(uintptr_t)data, e->len, true);
}

static void count_retry(struct ep_qp *q, const struct effects *e, const struct pkt *p)
{
    if (p->op->flags & OPF_ACK && aeth_type(p->aeth.syndrome) == AETH_NAK &&
        aeth_value(p->aeth.syndrome) == NAK_PSN_SEQ)
        COUNT(q, packet_seq_err);
    if (p->op->flags & OPF_ACK && aeth_type(p->aeth.syndrome) == AETH_RNR)
        COUNT(q, rnr_nak_retry_err);
    if (e->reason == WHY_IMPLIED_NAK)
        COUNT(q, implied_nak_seq_err);
}

static void rx_response(struct ep_qp *q, const struct pkt *p, ns_t now)
{
    struct requester *r = &q->qp.req;
    uint32_t first = r->msg_head, una = r->una_hi;
    struct effects e;

    if (!qp_can_send(&q->qp))
        return;
    e = req_rx(r, p, now);
    if (UNLIKELY(e.flags & EFF_ERROR) && (ep_migrate_instead(q, &e, now) || ep_one_more_try(q, &e)))
        e = req_rx(r, p, now);
    if (UNLIKELY(e.flags & (EFF_DROP | EFF_RETRANSMIT | EFF_WAIT | EFF_ERROR)))
        count_retry(q, &e, p);
    if (UNLIKELY(q->cc != NULL))
        ep_cc_response(q, p, &e, psn_diff(r->una_hi, una) > 0 ? (uint32_t)psn_diff(r->una_hi, una) : 0, now);
    ep_tell_requester(q, &e, now);
    if (e.flags & (EFF_READ_DATA | EFF_ATOMIC_DATA)) {
        q->st.rx_payload += p->payload_len;
        q->ep->st.rx_payload += p->payload_len;
        if (UNLIKELY(!deliver_read(q, &e, p))) {
            ep_send_done(q, first, e.msg - first, now);
            r->msg_head = e.msg;
            ep_qp_fail(q, WC_LOC_PROT_ERR, now);
            return;
        }
    }
    ep_send_done(q, first, e.completed, now);
    if (UNLIKELY(q->ep->n_fault))
        ep_plan_stray(q, &e, now);
    if (UNLIKELY(e.flags & EFF_ERROR)) {
        ep_qp_fail(q, (enum wc_status)e.status, now);
        return;
    }
    if (e.flags & (EFF_ACKED | EFF_RETRANSMIT | EFF_CREDITS))
        ep_ready(q);
    if (e.flags & EFF_WAIT)
        ep_timer(q, ep_qp_deadline(q));
}

/* --- Requests --------------------------------------------------------------------------------- */

static void take_receive(struct ep_qp *q, ns_t now)
{
    struct ep_rq *rq = rq_of(q);
    uint32_t slot = rq->head & rq->mask;

    q->cur = rq->wqe[slot];
    memcpy(q->cur_sge, &rq->sge[(size_t)slot * rq->max_sge], q->cur.num_sge * sizeof *q->cur_sge);
    rq->head++;
    if (q->srq != EP_NO_SRQ) {
        struct ep_srq *srq = q->ep->srq[q->srq];
        if (srq->limit && rq_count(rq) < srq->limit) {
            srq->limit = 0;
            ep_raise(q->ep, EP_EV_SRQ_LIMIT, q->srq, now);
        }
    } else if (UNLIKELY(q->pol.refill != &refill_none)) {
        ep_refill(q, now);
    }
}

/* A request failed while it was executed: complete its receive with an error, and move the queue pair to the error
 * state. */
static void fail_receive(struct ep_qp *q, enum wc_status status, ns_t now)
{
    struct wc wc = {.wr_id = q->cur.wr_id, .status = (uint8_t)status, .opcode = WC_RECV};

    q->qp.rsp.recv_taken = false;
    ep_recv_complete(q, &wc, now);
}

static void finish_receive(struct ep_qp *q, const struct effects *e, const struct pkt *p, ns_t now)
{
    struct wc wc = {.wr_id = q->cur.wr_id,
                    .status = WC_SUCCESS,
                    .opcode = p->op->flags & OPF_WRITE ? WC_RECV_RDMA_WITH_IMM : WC_RECV,
                    .byte_len = e->offset + e->len};

    if (p->bth.se)
        wc.flags |= WC_SOLICITED;
    if (ep_has_flaw(q->ep, FLAW_PAD_COUNTED))
        wc.byte_len += p->bth.padcnt;
    if (p->op->ext & H_IMMDT) {
        wc.flags |= WC_WITH_IMM;
        wc.imm_data = p->immdt.data;
    }
    if (p->op->ext & H_IETH) {
        wc.flags |= WC_WITH_INV;
        wc.inv_rkey = p->ieth.rkey;
    }
    if (q->qp.type == QPT_UD) {
        wc.flags |= WC_GRH;
        wc.src_qp = p->deth.srcqp;
        wc.pkey = p->bth.pkey;
    }
    ep_recv_complete(q, &wc, now);
}

/* UD: the 40 bytes in front of the payload hold the GRH or IPv6 header, or an IPv4 header in their last 20. */
static bool put_network_header(struct ep_qp *q, const struct pkt *p)
{
    uint8_t h[UD_GRH_BYTES] = {0};

    if (p->addr_len == 4)
        memcpy(h + (ep_has_flaw(q->ep, FLAW_HEADER_FIRST) ? 0 : 20), p->data + p->ip_off, 20);
    else if (p->addr_len == 16)
        memcpy(h, p->data + p->ip_off, UD_GRH_BYTES);
    return sge_copy(q->ep, recv_pd(q), q->cur_sge, q->cur.num_sge, 0, h, sizeof h, true);
}

static void run_atomic(struct ep_qp *q, const struct effects *e, const struct pkt *p)
{
    const struct atomiceth *a = &p->atomiceth;
    uint8_t *mem = ep_remote_mem(q->ep, q, a->rkey, a->va, 8, ACCESS_REMOTE_ATOMIC);
    uint64_t old, new;

    if (!mem) {
        rsp_fail(&q->qp.rsp, SYNDROME_NAK(NAK_REMOTE_OPERATIONAL));
        return;
    }
    memcpy(&old, mem, 8);
    if ((p->bth.opcode & 31) == OP_FETCH_ADD)
        new = old + a->swap;
    else
        new = old == a->cmp ? a->swap : old;
    memcpy(mem, &new, 8);
    rsp_atomic_done(&q->qp.rsp, e->msg, old);
}

/* Perform the memory effects; false: one of them failed with `*status`. */
static bool do_memory(struct ep_qp *q, const struct effects *e, const struct pkt *p, enum wc_status *status)
{
    uint8_t *data = (uint8_t *)(uintptr_t)p->data + p->payload_off, *mem;

    if (e->flags & EFF_WRITE && e->len) { /* also ATOMIC WRITE: nothing reads the memory during the copy */
        mem = ep_remote_mem(q->ep, q, e->rkey, e->va, e->len, ACCESS_REMOTE_WRITE);
        *status = WC_LOC_ACCESS_ERR;
        if (!mem)
            return false;
        ep_copy(q->ep, mem, data, e->len);
    }
    if (e->flags & EFF_RECV_DATA) {
        *status = WC_LOC_PROT_ERR;
        if (q->qp.type == QPT_UD && !put_network_header(q, p))
            return false;
        if (e->len && !sge_copy(q->ep, recv_pd(q), q->cur_sge, q->cur.num_sge, e->offset, data, e->len, true))
            return false;
    }
    if (e->flags & EFF_INVALIDATE) {
        *status = WC_REM_INV_REQ_ERR;
        if (mr_invalidate(&q->ep->mrs, p->ieth.rkey, q->pd, q->qp.qpn, true) != MR_OK)
            return false;
    }
    if (e->flags & EFF_ATOMIC)
        run_atomic(q, e, p);
    return true;
}

/* A local error while a request was executed: RC sends a NAK, UC and UD only fail, and so does RC if an R_Key cannot be
 * invalidated (9.9.6.3, class J). */
static void execution_failed(struct ep_qp *q, const struct effects *e, enum wc_status status, ns_t now)
{
    if (e->flags & (EFF_RECV_DATA | EFF_RECV_DONE))
        fail_receive(q, status, now);
    if (!qp_is_reliable(q->qp.type) || status == WC_REM_INV_REQ_ERR) {
        ep_qp_fail(q, WC_SUCCESS, now);
        return;
    }
    rsp_undo(&q->qp.rsp, e);
    rsp_fail(&q->qp.rsp, SYNDROME_NAK(e->flags & EFF_WRITE ? NAK_REMOTE_ACCESS : NAK_REMOTE_OPERATIONAL));
    ep_ready(q);
}

static void count_request(struct ep_qp *q, const struct effects *e, const struct pkt *p)
{
    if (e->flags & EFF_DUPLICATE)
        COUNT(q, duplicate_request);
    else if (e->reason == WHY_GAP || e->reason == WHY_SILENT)
        COUNT(q, out_of_sequence);
    else if (e->reason == WHY_NOT_READY)
        COUNT(q, out_of_buffer);
    else if (q->qp.type == QPT_UD && p->deth.qkey != q->qp.attr.qkey)
        COUNT(q, bad_qkey);
}

static void refused(struct ep_qp *q, const struct effects *e, ns_t now)
{
    if (e->flags & EFF_RECV_FAIL)
        fail_receive(q, (enum wc_status)e->status, now);
    ep_raise(q->ep, e->reason == WHY_ACCESS ? EP_EV_QP_ACCESS_ERR : EP_EV_QP_REQ_ERR, q->handle, now);
    ep_ready(q);
}

/* Fault CHOICE_MUTE: after its first ACKs the responder sends nothing. T is the ACK timeout:
 *
 *   mute_from              first retransmission                       mute_until
 *   |<---------- w ---------->|<---------------- w / 2 ---------------->|
 *
 * and mute_until is at least 1.5 T after mute_from: the silence outlasts the timeout even if the requester retransmits
 * early. */
static void suppress_responses(struct ep_qp *q, const struct effects *e, const struct pkt *p, ns_t now)
{
    ns_t timeout = ack_timeout(q->qp.req.p.timeout);

    if (!q->mute && q->st.acks_sent && p->bth.ackreq && !(e->flags & EFF_DUPLICATE) &&
        ep_fault_choice(q, CHOICE_MUTE)) {
        q->mute = true;
        q->mute_from = now;
        q->mute_until = NS_NEVER;
    }
    if (!q->mute || !(e->flags & EFF_DUPLICATE) || q->mute_until != NS_NEVER)
        return;
    q->mute_until = now + (now - q->mute_from) / 2;
    if (timeout != NS_NEVER && q->mute_until < q->mute_from + timeout + timeout / 2)
        q->mute_until = q->mute_from + timeout + timeout / 2;
    ep_timer(q, q->mute_until);
}

/* With a policy's answer_wait: delay the response to a READ or atomic if no other one is outstanding. */
static void delay_read_response(struct ep_qp *q, ns_t now)
{
    const struct responder *r = &q->qp.rsp;

    if (r->res_tail - r->res_next != 1)
        return;
    q->ps.answer_due = now + q->pol.answer_wait;
    ep_timer(q, q->ps.answer_due);
}

/* With a policy's slow_ppb: by chance the responder sends nothing for a time. */
static void be_slow(struct ep_qp *q, ns_t now)
{
    const struct ep_watch *w = q->ep->watch;

    if (q->ps.slow_until > now || prng_below(&q->ep->rng, 1000000000) >= q->pol.slow_ppb)
        return;
    q->ps.slow_until = now + q->pol.slow_time;
    ep_timer(q, q->ps.slow_until);
    if (w)
        w->slow(w->user, q->handle, now, q->ps.slow_until);
}

/* A request needs a response: the ACK policy decides when it is due; a duplicate is answered at once. */
static void schedule_response(struct ep_qp *q, const struct effects *e, const struct pkt *p, ns_t now)
{
    ns_t due = e->flags & EFF_DUPLICATE ? now : q->pol.ack->due(&q->ps, p->bth.ackreq, now, &q->pol);

    if (UNLIKELY(ep_may_choose(q->ep, CHOICE_MUTE)))
        suppress_responses(q, e, p, now);
    if (due < q->ps.ack_due)
        q->ps.ack_due = due;
    if (q->ps.ack_due > now && q->ps.ack_due != NS_NEVER)
        ep_timer(q, q->ps.ack_due);
    if (UNLIKELY(q->pol.answer_wait))
        delay_read_response(q, now);
    if (UNLIKELY(q->pol.slow_ppb))
        be_slow(q, now);
    ep_ready(q);
}

/* Fault CHOICE_UC_ACK: an ACK on a UC queue pair. */
static void acknowledge_uc(struct ep_qp *q, const struct pkt *p)
{
    if (!ep_fault_choice(q, CHOICE_UC_ACK))
        return;
    q->again = (struct rsp_due){
        .kind = DUE_ACK, .opcode = OP_ACKNOWLEDGE, .syndrome = SYNDROME_ACK(AETH_CREDIT_INVALID), .psn = p->bth.psn};
    q->repeat_again = true;
    ep_ready(q);
}

/* XRC: receives come from the shared receive queue that the request names, until the message is complete. */
static void select_srq(struct ep_qp *q, const struct pkt *p)
{
    bool receives = p->op->flags & OPF_SEND || p->op->ext & H_IMMDT;

    if (receives && !q->qp.rsp.recv_taken && p->have & H_XRCETH)
        q->srq = ep_srq_of_number(q->ep, p->xrceth.srqn, q->xrcd);
}

/* What the responder may use for a request. */
static struct rsp_env env_of(struct ep_qp *q)
{
    const struct ep_rq *rq = rq_of(q);
    uint32_t avail = rq_count(rq);

    return (struct rsp_env){.mrs = &q->ep->mrs,
                            .pd = q->pd,
                            .qpn = q->qp.qpn,
                            .no_srq = q->xrcd && q->srq == EP_NO_SRQ,
                            .rq_avail = avail,
                            .rq_len = q->qp.rsp.recv_taken ? q->cur.len
                                      : avail              ? rq->wqe[rq->head & rq->mask].len
                                                           : 0};
}

/* UD: a datagram that is dropped takes no receive, unless the endpoint has the flaw FLAW_RECEIVE_LOST. */
static void lose_receive(struct ep_qp *q, const struct effects *e, ns_t now)
{
    if (ep_has_flaw(q->ep, FLAW_RECEIVE_LOST) && q->qp.type == QPT_UD && e->flags & EFF_DROP &&
        e->reason == WHY_NOT_READY && rq_count(rq_of(q)))
        take_receive(q, now);
}

static bool rx_request(struct ep_qp *q, const struct pkt *p, ns_t now)
{
    struct endpoint *ep = q->ep;
    struct pkt changed;
    enum wc_status status;
    struct rsp_env env;
    struct effects e;

    if (UNLIKELY(q->qp.type == QPT_XRC_INI)) /* it has no responder */
        return false;
    if (UNLIKELY(q->xrcd))
        select_srq(q, p);
    if (UNLIKELY(ep->cfg.flaws)) {
        p = ep_flaw_request(q, p, &changed);
        ep_flaw_receive(q, p);
    }
    env = env_of(q);
    e = rsp_rx(&q->qp.rsp, &env, p, now);
    if (UNLIKELY(ep->cfg.flaws))
        lose_receive(q, &e, now);
    if (UNLIKELY(e.flags & (EFF_DROP | EFF_DUPLICATE)))
        count_request(q, &e, p);
    if (UNLIKELY(e.flags & EFF_ERROR)) {
        if (e.flags & EFF_RECV_START)
            take_receive(q, now);
        refused(q, &e, now);
        return true;
    }
    if (LIKELY(!(e.flags & (EFF_DROP | EFF_DUPLICATE)))) {
        q->st.rx_payload += p->payload_len;
        ep->st.rx_payload += p->payload_len;
        if (UNLIKELY(q->qp.state == QPS_RTR && !q->comm_est)) {
            q->comm_est = true;
            ep_raise(ep, EP_EV_COMM_EST, q->handle, now);
        }
        if (e.flags & EFF_RECV_START)
            take_receive(q, now);
        if (UNLIKELY(!do_memory(q, &e, p, &status))) {
            execution_failed(q, &e, status, now);
            return true;
        }
        if (p->op->flags & OPF_END)
            COUNT(q, served);
        if (p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ))
            COUNT(q, fetched);
        if (e.flags & EFF_RECV_DONE)
            finish_receive(q, &e, p, now);
        if (UNLIKELY(q->pol.refill != &refill_none))
            ep_refill(q, now);
    }
    if (e.flags & EFF_RESPOND)
        schedule_response(q, &e, p, now);
    if (UNLIKELY(q->qp.type == QPT_UC && ep_may_choose(ep, CHOICE_UC_ACK)))
        acknowledge_uc(q, p);
    return !(e.flags & EFF_DROP) || e.flags & EFF_RESPOND;
}

bool ep_take(struct ep_qp *q, const struct pkt *p, ns_t now)
{
    if (!(p->op->flags & OPF_RESPONSE))
        return rx_request(q, p, now);
    rx_response(q, p, now);
    return true;
}

static bool in_group(const struct pkt *p, const struct ep_group *g)
{
    return p->addr_len == 4 ? gid_is_ipv4(g->gid) && memcmp(p->dst, g->gid + 12, 4) == 0
                            : p->addr_len == 16 && memcmp(p->dst, g->gid, 16) == 0;
}

/* A packet to QP 0xffffff: deliver it to every member of the group. */
static bool rx_multicast(struct endpoint *ep, const struct pkt *p, ns_t now)
{
    bool used = false;

    if (!is_sound(ep, p) || p->bth.opcode >> 5 != SVC_UD || (!ep->cfg.no_verify && p->icrc != CRC_GOOD))
        return false;
    for (uint32_t i = 0; i < ep->n_group; i++) {
        struct ep_qp *q = qp_of(ep, ep->group[i].qp);
        if (q && in_group(p, &ep->group[i]) && qp_can_receive(&q->qp) && pkey_ok(q, p)) {
            used |= rx_request(q, p, now);
            ep_check_overflow(q, now);
        }
    }
    return used;
}

bool ep_pause(struct endpoint *ep, struct ep_pause *p)
{
    if (ep->pause_head == ep->pause_tail)
        return false;
    *p = ep->pause[ep->pause_head++ % EP_PAUSES];
    return true;
}

/* Keep a pause frame; false: the packet is none. */
static bool rx_pause(struct endpoint *ep, const struct pkt *p, ns_t now)
{
    struct ep_pause *at = &ep->pause[ep->pause_tail % EP_PAUSES], got = {.when = now};

    if (!pause_frame_of(&got.frame, p))
        return false;
    if (ep->pause_tail - ep->pause_head == EP_PAUSES)
        ep->pause_head++;
    *at = got;
    ep->pause_tail++;
    return true;
}

bool ep_rx(struct endpoint *ep, const uint8_t *data, uint32_t len, ns_t now)
{
    struct frame f = {.ts = now, .data = data, .caplen = len, .len = len, .linktype = ep_linktype(ep)};
    struct decode_opts opts = {.verify = !ep->cfg.no_verify};
    struct pkt *p = &ep->rx;
    struct ep_qp *q;
    bool used = true;

    ep->st.rx_packets++;
    ep->st.rx_bytes += len;
    pkt_decode(p, &f, &opts);
    if (UNLIKELY(p->have & H_BTH && p->bth.dqpn == PSN_MASK)) {
        used = rx_multicast(ep, p, now);
        ep->st.dropped += !used;
        return used;
    }
    q = find_qp(ep, p, now);
    if (UNLIKELY(!q) && (rx_pause(ep, p, now) || ep_cc_fair(ep, p, now)))
        return true;
    if (!q) {
        if (p->have & H_BTH && p->icrc == CRC_BAD)
            ep->st.rx_icrc_encapsulated += !ep_lookup(ep, p->bth.dqpn);
        ep->st.dropped++;
        return false;
    }
    q->st.rx_packets++;
    q->st.rx_bytes += len;
    if (UNLIKELY(ep->cfg.congestion.cnps && !(p->op->flags & OPF_CNP)))
        ep_cc_mark(q, p, now);
    if (UNLIKELY(q->cc != NULL))
        ep_cc_arrived(q, p, len, now);
    if (UNLIKELY(!p->op->name) && ep_cc_quota(q, p, now))
        return true;
    if (p->op->flags & OPF_CNP)
        ep_cc_cnp(q, now);
    else if (LIKELY(ep->cfg.profile != EP_NV) || !ep_reorder_keep(q, p, data, len, now))
        used = ep_take(q, p, now);
    if (UNLIKELY(p->bth.opcode >> 5 != q->qp.rsp.p.service && !(p->op->flags & OPF_CNP)))
        COUNT(q, other_service);
    if (UNLIKELY(q->kept[0] || q->kept[1]))
        ep_reorder_go_on(q, now); /* `p` is another packet then */
    ep_check_overflow(q, now);
    if (!used) {
        q->st.dropped++;
        ep->st.dropped++;
    }
    return used;
}
