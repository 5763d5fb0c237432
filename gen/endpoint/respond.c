/* layer 3 (endpoint): the responder: sends ACKs, READ and atomic responses, and NAKs.
 *
 * Responses leave in the order of the requests; rsp_due() of src/transport names the next one. An ACK acknowledges all
 * requests up to its PSN, so the ACK policy may delay it (coalescing). With a policy of one ACK for three requests:
 *
 *   requests    SEND 10   SEND 11   SEND 12           SEND 14 (13 is lost)           SEND 13   SEND 14
 *   responses                                ACK 12              sequence NAK 13
 *
 * After a sequence or RNR NAK, requests ahead of its PSN get no response until the requester has gone back to that PSN.
 * A fatal NAK moves the queue pair to the error state. */
#include <errno.h>

#include "gen/endpoint/endpoint_impl.h"

/* Credits for an ACK: receives posted, plus the one of a message in progress (its MSN does not count yet). */
static uint8_t credits_now(struct ep_qp *q)
{
    uint32_t n = rq_count(&q->rq) + (q->qp.rsp.recv_taken ? 1 : 0);

    q->qp.rsp.avail_sent = n;
    return credit_code(n);
}

static void fill_response(struct ep_qp *q, struct pkt *p, const struct rsp_due *o)
{
    /* fault CHOICE_UC_ACK: UC has no ACK of its own */
    unsigned service = qp_is_reliable(q->qp.type) ? q->qp.rsp.p.service : (unsigned)SVC_RC;

    ep_fill_bth(q, p, OPCODE(service, o->opcode), o->psn);
    p->payload_len = o->len;
    p->bth.padcnt = -o->len & 3;
    if (p->op->ext & H_AETH) {
        p->aeth = (struct aeth){.syndrome = o->syndrome, .msn = o->msn};
        if (q->qp.rsp.p.credits && aeth_type(o->syndrome) == AETH_ACK)
            p->aeth.syndrome = SYNDROME_ACK(credits_now(q));
    }
    if (p->op->ext & H_ATOMICACKETH)
        p->atomicacketh.orig = o->orig;
}

static void count_response(struct ep_qp *q, const struct rsp_due *o)
{
    struct ep_stats *a = &q->st, *b = &q->ep->st;

    q->ep->sent.request = false;
    switch (o->kind) {
    case DUE_ACK:
        a->acks_sent++;
        b->acks_sent++;
        break;
    case DUE_NAK:
        if (aeth_type(o->syndrome) == AETH_RNR) {
            a->rnr_nak_sent++;
            b->rnr_nak_sent++;
        } else {
            a->nak_sent++;
            b->nak_sent++;
            a->seq_nak_sent += aeth_value(o->syndrome) == NAK_PSN_SEQ;
            b->seq_nak_sent += aeth_value(o->syndrome) == NAK_PSN_SEQ;
        }
        break;
    default:
        a->tx_payload += o->len;
        b->tx_payload += o->len;
    }
}

/* A fault: send the same response a second time, or a plain ACK after it. */
static void repeat_response(struct ep_qp *q, const struct rsp_due *o, bool as_ack)
{
    q->again = *o;
    if (as_ack) {
        q->again.kind = DUE_ACK;
        q->again.syndrome = SYNDROME_ACK(AETH_CREDIT_INVALID);
    }
}

/* A fault: the path as the other version of RoCE. */
static const struct path *other_path(const struct ep_qp *q, struct path *other)
{
    struct link_addr own;

    if (!ep_source(q->ep, &q->qp.attr.av, &own))
        return &q->path;
    own.encap = own.encap == ENCAP_ROCEV1 ? ENCAP_ROCEV2 : ENCAP_ROCEV1;
    return path_init(other, &own, &q->qp.attr.av) ? &q->path : other;
}

/* The R_Key of a READ whose response is due no longer grants access: NAK it. Not so a duplicate: the requester may have
 * its data already, and have had the key invalidated since; its response is skipped. */
static void no_data(struct ep_qp *q, const struct rsp_due *o)
{
    struct responder *r = &q->qp.rsp;

    if (!rsp_res(r, o->res)->replay) {
        rsp_fail(r, SYNDROME_NAK(NAK_REMOTE_ACCESS));
        return;
    }
    rsp_skip(r, o->res);
    ep_ready(q);
}

/* Send the response in ep->tx; `o`: location of a READ's data. */
static int send_response(struct ep_qp *q, const struct rsp_due *o, uint8_t *buf, uint32_t cap, ns_t now)
{
    struct endpoint *ep = q->ep;
    struct responder *r = &q->qp.rsp;
    struct frame_out out = {.buf = buf, .cap = cap};
    struct build_tweak tweak = {0};
    struct pkt *p = &ep->tx, honest;
    struct fault_ctx c = {
        .p = p, .tweak = &tweak, .req = &q->qp.req, .rsp = r, .now = now, .encap = q->path.encap, .ip4 = q->path.ip4};
    const struct path *path = &q->path;
    struct path other;
    const uint8_t *mem = NULL;

    if (o->kind == DUE_READ && o->len) {
        mem = ep_remote_mem(ep, q, o->rkey, o->va, o->len, ACCESS_REMOTE_READ);
        if (UNLIKELY(!mem)) {
            no_data(q, o);
            return 0;
        }
    }
    fill_response(q, p, o);
    if (UNLIKELY(ep->n_fault)) {
        honest = *p;
        ep_fault_packet(q, FAULT_RESPONSE, &c);
        path = tweak.other_roce ? other_path(q, &other) : path;
    }
    if (build_begin(&out, path, p, p->payload_len, ep->ip_id, &tweak))
        return -ENOSPC;
    if (!ep->cfg.no_self_check)
        ep_self_check(q, rsp_tx_check(r, p, now));
    if (mem)
        ep_copy(ep, out.payload, mem, min_u32(p->payload_len, o->len));
    if (UNLIKELY(p->payload_len > o->len))
        memset(out.payload + o->len, 0, p->payload_len - o->len);
    build_end(&out, path, p, p->payload_len, &tweak);
    ep->ip_id++;
    if (UNLIKELY(q->cc != NULL) && o->kind == DUE_READ)
        ep_cc_sent(q, p, out.len, false, now);
    else if (UNLIKELY(q->cc != NULL))
        out.len += ep_cc_return(q, buf + out.len, cap - out.len);
    if (!q->repeat_again)
        rsp_tx(r, UNLIKELY(ep->n_fault) ? &honest : p, now);
    q->repeat_again = c.again;
    if (c.again)
        repeat_response(q, o, c.again_as_ack);
    if (!r->ack_due) {
        q->ps.unacked = 0;
        q->ps.ack_due = NS_NEVER;
    }
    count_response(q, o);
    return (int)out.len;
}

/* A fatal NAK was sent: move the queue pair to the error state. */
static void after_nak(struct ep_qp *q, ns_t now)
{
    if (q->qp.rsp.dead && !q->qp.rsp.nak_due && q->qp.state != QPS_ERR)
        ep_qp_fail(q, WC_SUCCESS, now);
}

/* Fault CHOICE_ACK_BEFORE_READ: send the ACK of a later request before the READ response that is still due:
 *
 *   requests    READ(10-12)  SEND(13)
 *   correct     responses 10, 11, 12, then ACK 13
 *   fault       ACK 13, then responses 10, 11, 12 */
static void ack_before_read_response(struct ep_qp *q, struct rsp_due *o)
{
    const struct responder *r = &q->qp.rsp;

    if (o->kind != DUE_READ || !r->ack_due || r->last_is_res || !ep_fault_choice(q, CHOICE_ACK_BEFORE_READ))
        return;
    *o = (struct rsp_due){.kind = DUE_ACK,
                          .opcode = OP_ACKNOWLEDGE,
                          .syndrome = SYNDROME_ACK(AETH_CREDIT_INVALID),
                          .psn = psn_prev(r->epsn_lo),
                          .msn = r->msn_lo};
}

/* Fault CHOICE_NO_NAK: true if the sequence NAK that is due is not sent. */
static bool withholds_nak(struct ep_qp *q, const struct rsp_due *o)
{
    if (o->kind != DUE_NAK || o->syndrome != SYNDROME_NAK(NAK_PSN_SEQ) || !ep_fault_choice(q, CHOICE_NO_NAK))
        return false;
    q->qp.rsp.nak_due = false;
    return true;
}

/* True while the policy delays the response to the oldest READ or atomic; later responses wait for it. */
static bool read_response_waits(struct ep_qp *q, const struct rsp_due *o, ns_t now)
{
    if (q->ps.answer_due == NS_NEVER || (o->kind != DUE_READ && o->kind != DUE_ATOMIC))
        return false;
    if (q->ps.answer_due > now)
        return true;
    q->ps.answer_due = NS_NEVER;
    return false;
}

/* Fault CHOICE_MUTE: true while the responder sends nothing. */
static bool is_mute(struct ep_qp *q, ns_t now)
{
    q->mute = q->mute && q->mute_until > now;
    return q->mute;
}

int ep_tx_response(struct ep_qp *q, uint8_t *buf, uint32_t cap, ns_t now)
{
    struct responder *r = &q->qp.rsp;
    struct rsp_due o;
    int n;

    q->data_waits = false;
    if (UNLIKELY(q->cnps_due && q->cnp_at <= now) && q->qp.type != QPT_UD)
        return ep_cc_send_cnp(q, buf, cap, now);
    if (UNLIKELY(q->cc != NULL) && q->cc->grant_due)
        return ep_cc_send_grant(q, buf, cap);
    if (UNLIKELY(q->ps.slow_until > now))
        return 0;
    if (!qp_is_reliable(q->qp.type) ? !q->repeat_again : !qp_can_receive(&q->qp) && !r->nak_due && !q->repeat_again)
        return 0;
    if (UNLIKELY(q->mute) && is_mute(q, now))
        return 0;
    for (int tries = 0; tries < 2; tries++) {
        o = q->repeat_again ? q->again : rsp_due(r, q->ps.ack_due <= now);
        q->data_waits = UNLIKELY(q->cc != NULL) && o.kind == DUE_READ && ep_next_send(q, now) > now;
        if (o.kind == DUE_NOTHING || q->data_waits || read_response_waits(q, &o, now))
            return 0;
        if (UNLIKELY(ep_may_choose(q->ep, CHOICE_NO_NAK)) && withholds_nak(q, &o))
            continue;
        if (UNLIKELY(ep_may_choose(q->ep, CHOICE_ACK_BEFORE_READ)))
            ack_before_read_response(q, &o);
        n = send_response(q, &o, buf, cap, now);
        if (n) {
            after_nak(q, now);
            return n;
        }
    }
    return 0;
}
