/* layer 2 (transport): the apply half of a requester: acknowledgements, responses, timers.
 *
 * Go-back-N, a sequence NAK (S is a SEND):
 *     requester  S0  S1  S2  S3 ....... S1  S2  S3     the NAK acknowledges S0: una is 1; psn_tx goes back to 1
 *     responder      lost    NAK 1                     ePSN is 1 until S1 arrives; S3 is dropped silently
 * Implied NAK (9.7.5), R is a READ: a response with a later PSN than a missing READ or atomic response proves that the
 * missing one was lost:
 *     requester  R0  S4 ................ R0  S4         una stays 0
 *     responder         r0 r1 r2 r3 A4                  responses r0 to r3 are lost, ACK 4 arrives
 * Further responses in flight are implied NAKs of the same PSN: the requester goes back once (went_back) until una
 * moves. READ restart: r2 is lost; after r3 the requester retransmits the READ from PSN 2 on. */
#include "src/transport/transport_impl.h"

/* --- Acknowledgement -------------------------------------------------------------------------- */

/* Responses may have been missed: treat those before `to` as received. */
static void take_as_received(struct req_msg *m, uint32_t to)
{
    int32_t n = psn_diff(to, m->psn);

    if (n > 0)
        m->got = max_u32(m->got, min_u32((uint32_t)n, m->span));
}

/* Acknowledge everything before `to`, up to the first READ or atomic without its response. True: all of it. `missed`:
 * responses may have been missed. */
static bool advance(struct requester *r, uint32_t to, bool missed, struct effects *e)
{
    uint32_t start = r->una_hi;
    bool reached = true;

    while (r->msg_head != r->msg_tail) {
        struct req_msg *m = req_msg(r, r->msg_head);
        uint32_t end;
        if (UNLIKELY(missed && req_takes_response(m)))
            take_as_received(m, to);
        end = psn_add(m->psn, req_takes_response(m) ? m->got : m->span);
        if (req_takes_response(m) && m->got < m->span) {
            r->una_hi = end;
            reached = psn_diff(to, end) <= 0;
            break;
        }
        if (m->kind != MSG_LOCAL && (m->open || psn_diff(to, end) < 0)) {
            r->una_hi = psn_diff(to, end) < 0 ? to : end;
            break;
        }
        req_release(r, m);
        r->una_hi = end;
        r->msg_head++;
        e->completed++;
    }
    if (r->una_hi != start)
        e->flags |= EFF_ACKED;
    return reached;
}

/* True if the probe, the one packet sent without credit, is acknowledged or no longer needed. */
static bool probe_is_over(const struct requester *r)
{
    return r->unlimited || r->msg_head == r->msg_tail || psn_diff(r->una_hi, r->probe_end) >= 0;
}

/* Progress: restart the ACK timer, reset the retry counters. */
static void progress(struct requester *r, struct effects *e, ns_t now)
{
    if (!(e->flags & EFF_ACKED))
        return;
    r->retry_left = r->p.retry_cnt;
    r->rnr_left = r->p.rnr_retry;
    r->went_back = false;
    r->rnr_wait = false;
    r->timer = r->una_hi == r->psn_next ? NS_NEVER : now;
    if (r->probing && probe_is_over(r)) {
        r->probing = false;
        e->flags |= EFF_CREDITS;
    }
}

void req_take_credits(struct requester *r, const struct pkt *p, struct effects *e)
{
    unsigned code = aeth_value(p->aeth.syndrome);
    uint32_t limit;

    if (aeth_type(p->aeth.syndrome) != AETH_ACK)
        return;
    if (UNLIKELY(r->learn_credits)) {
        r->learn_credits = false;
        r->unlimited = code == AETH_CREDIT_INVALID;
    }
    if (LIKELY(r->unlimited))
        return;
    if (code == AETH_CREDIT_INVALID) {
        r->unlimited = true;
        e->flags |= EFF_CREDITS;
        return;
    }
    limit = psn_add(p->aeth.msn, aeth_credits(code));
    if (psn_diff(limit, r->limit) > 0) {
        r->limit = limit;
        e->flags |= EFF_CREDITS;
        if (r->probing && psn_diff(r->ssn, limit) <= 0)
            r->probing = false;
    }
}

/* --- Responses: content ----------------------------------------------------------------------- */

static void drop(struct effects *e, enum eff_reason why)
{
    e->flags |= EFF_DROP;
    e->reason = (uint8_t)why;
}

static void demand_failure(const struct requester *r, struct effects *e, enum wc_status status)
{
    e->flags |= EFF_ERROR;
    e->status = (uint8_t)status;
    e->msg = r->msg_head;
}

static void take_nak(struct requester *r, const struct pkt *p, bool missed, struct effects *e)
{
    static const uint8_t status[] = {
        [NAK_INVALID_REQUEST] = WC_REM_INV_REQ_ERR,
        [NAK_REMOTE_ACCESS] = WC_REM_ACCESS_ERR,
        [NAK_REMOTE_OPERATIONAL] = WC_REM_OP_ERR,
        [NAK_INVALID_RD_REQUEST] = WC_REM_INV_RD_REQ_ERR,
    };
    unsigned type = aeth_type(p->aeth.syndrome), code = aeth_value(p->aeth.syndrome);

    if (type == AETH_NAK && code >= ARRAY_LEN(status))
        drop(e, WHY_INVALID);
    else if (!advance(r, p->bth.psn, missed, e))
        e->reason = WHY_IMPLIED_NAK;
    else if (type == AETH_RNR)
        e->reason = WHY_RNR_NAK;
    else if (code == NAK_PSN_SEQ)
        e->reason = WHY_SEQUENCE_NAK;
    else
        demand_failure(r, e, (enum wc_status)status[code]);
}

static void take_ack(struct requester *r, const struct pkt *p, bool missed, struct effects *e)
{
    switch (aeth_type(p->aeth.syndrome)) {
    case AETH_ACK:
        if (!advance(r, psn_add(p->bth.psn, 1), missed, e))
            e->reason = WHY_IMPLIED_NAK;
        req_take_credits(r, p, e);
        break;
    case AETH_RNR:
    case AETH_NAK:
        take_nak(r, p, missed, e);
        break;
    default:
        drop(e, WHY_INVALID);
    }
}

/* True if a READ response or ATOMIC ACK is the kind of response that message `m` expects. */
static bool is_answered_by(const struct req_msg *m, const struct pkt *p)
{
    return p->op->flags & OPF_ATOMIC_ACK ? m->kind == MSG_ATOMIC : m->kind == MSG_READ || m->kind == MSG_PLACE;
}

/* True if a READ response, the next of message `m`, has a wrong opcode or length. */
static bool is_bad_read_response(const struct requester *r, const struct req_msg *m, const struct pkt *p)
{
    bool last = m->got + 1 == m->span;
    uint32_t len = m->kind == MSG_READ ? m->len : 0;

    return last != !!(p->op->flags & OPF_END) || p->payload_len != (last ? len - m->got * r->p.pmtu : r->p.pmtu);
}

static void take_data(struct requester *r, const struct pkt *p, bool missed, struct effects *e)
{
    struct req_msg *m;

    if (!advance(r, p->bth.psn, missed, e)) {
        e->reason = WHY_IMPLIED_NAK;
        return;
    }
    m = r->msg_head != r->msg_tail ? req_msg(r, r->msg_head) : NULL;
    if (!m || r->una_hi != p->bth.psn || !is_answered_by(m, p)) {
        drop(e, WHY_GHOST);
        return;
    }
    if (m->kind != MSG_ATOMIC && UNLIKELY(is_bad_read_response(r, m, p))) {
        demand_failure(r, e, WC_BAD_RESP_ERR);
        return;
    }
    if (LIKELY(m->kind != MSG_PLACE))
        e->flags |= m->kind == MSG_READ ? EFF_READ_DATA : EFF_ATOMIC_DATA;
    e->msg = r->msg_head;
    e->offset = m->got * r->p.pmtu;
    e->len = m->kind == MSG_ATOMIC ? 8 : p->payload_len;
    m->got++;
    advance(r, psn_add(p->bth.psn, 1), missed, e);
    if (p->have & H_AETH)
        req_take_credits(r, p, e);
}

bool req_rx_ignores(const struct requester *r, const struct pkt *p, struct effects *e)
{
    if (UNLIKELY(r->dead || p->op->name == NULL || !(p->op->flags & OPF_RESPONSE) ||
                 p->bth.opcode >> 5 != r->p.service))
        drop(e, r->dead ? WHY_STATE : WHY_INVALID);
    else if (UNLIKELY(psn_diff(p->bth.psn, r->psn_next) >= 0))
        drop(e, WHY_GHOST);
    return e->flags & EFF_DROP;
}

void req_rx_take(struct requester *r, const struct pkt *p, bool missed, ns_t now, struct effects *e)
{
    if (UNLIKELY(psn_diff(p->bth.psn, r->una_hi) < 0)) {
        drop(e, WHY_STALE);
        if (p->op->flags & OPF_ACK && p->bth.psn == psn_prev(r->una_hi))
            req_take_credits(r, p, e);
        return;
    }
    if (p->op->flags & OPF_ACK)
        take_ack(r, p, missed, e);
    else
        take_data(r, p, missed, e);
    progress(r, e, now);
}

/* --- Responses: reaction of the requester ----------------------------------------------------- */

static void fail_queue(struct requester *r, struct effects *e, enum wc_status status)
{
    demand_failure(r, e, status);
    r->dead = true;
    r->timer = NS_NEVER;
    r->rnr_wait = false;
}

/* Go-back-N: retransmit from the oldest PSN without a response. */
static void go_back(struct requester *r, enum eff_reason why, struct effects *e)
{
    e->reason = (uint8_t)why;
    if (why != WHY_RNR_NAK) {
        if (req_no_retry_left(r)) {
            fail_queue(r, e, WC_RETRY_EXC_ERR);
            return;
        }
        if (r->retry_left)
            r->retry_left--;
    }
    r->cause = (uint8_t)why;
    r->went_back = why == WHY_SEQUENCE_NAK || why == WHY_IMPLIED_NAK;
    r->rtx_end = r->psn_next;
    r->psn_tx = r->una_hi;
    r->msg_tx = r->msg_head;
    req_skip_local(r);
    r->timer = NS_NEVER;
    e->flags |= EFF_RETRANSMIT;
}

static void obey_rnr_nak(struct requester *r, const struct pkt *p, struct effects *e, ns_t now)
{
    if (r->p.rnr_retry != 7) {
        if (r->rnr_left == 0) {
            e->reason = WHY_NONE;
            fail_queue(r, e, WC_RNR_RETRY_EXC_ERR);
            return;
        }
        r->rnr_left--;
    }
    go_back(r, WHY_RNR_NAK, e);
    r->rnr_until = now + rnr_time(aeth_value(p->aeth.syndrome));
    r->rnr_wait = true;
    e->flags |= EFF_WAIT;
}

/* True if a missing READ response is left to the ACK timeout, as soft-RoCE does. */
static bool leaves_hole_to_timeout(const struct requester *r, const struct pkt *p)
{
    const struct req_msg *m = req_msg(r, r->msg_head);

    return r->p.rxe && !(p->op->flags & OPF_ACK) && psn_in(p->bth.psn, m->psn, m->span);
}

/* True for a response that was in flight at the last go-back-N and demands the same retransmission again: the requester
 * ignores it. */
static bool is_demanded_again(const struct requester *r, enum eff_reason why)
{
    return (r->went_back && why != WHY_RNR_NAK) || (r->rnr_wait && why != WHY_IMPLIED_NAK);
}

/* A NAK, explicit or implied. */
static void obey_nak(struct requester *r, const struct pkt *p, struct effects *e, ns_t now)
{
    enum eff_reason why = (enum eff_reason)e->reason;

    if (why == WHY_IMPLIED_NAK && leaves_hole_to_timeout(r, p))
        drop(e, WHY_GAP);
    else if (is_demanded_again(r, why))
        drop(e, WHY_STALE);
    else if (why == WHY_RNR_NAK)
        obey_rnr_nak(r, p, e, now);
    else
        go_back(r, why, e);
}

/* Progress at an endpoint: PSNs acknowledged meanwhile are not retransmitted. */
static void catch_up(struct requester *r)
{
    r->una_lo = r->una_hi;
    if (UNLIKELY(psn_diff(r->psn_tx, r->una_hi) < 0)) {
        r->psn_tx = r->una_hi;
        r->msg_tx = r->msg_head;
        req_skip_local(r);
    }
}

struct effects req_rx(struct requester *r, const struct pkt *p, ns_t now)
{
    struct effects e = {0};

    if (req_rx_ignores(r, p, &e))
        return e;
    req_rx_take(r, p, false, now, &e);
    if (e.flags & EFF_ACKED)
        catch_up(r);
    if (UNLIKELY(e.flags & EFF_ERROR))
        fail_queue(r, &e, (enum wc_status)e.status);
    else if (UNLIKELY(req_rx_demands(&e)))
        obey_nak(r, p, &e, now);
    return e;
}

struct effects req_settle(struct requester *r)
{
    struct effects e = {0};

    if (!is_unreliable(r->p.service)) {
        advance(r, r->una_hi, false, &e);
        return e;
    }
    while (r->msg_head != r->msg_tail && !req_msg(r, r->msg_head)->open) {
        r->msg_head++;
        e.completed++;
    }
    return e;
}

/* --- Time ------------------------------------------------------------------------------------- */

ns_t req_expiry(const struct requester *r)
{
    ns_t wait;

    if (r->dead)
        return NS_NEVER;
    if (r->rnr_wait)
        return r->rnr_until;
    wait = ack_timeout(r->p.timeout);
    return r->timer == NS_NEVER || wait == NS_NEVER ? NS_NEVER : r->timer + wait;
}

struct effects req_expire(struct requester *r, ns_t now)
{
    struct effects e = {0};

    if (r->dead || now < req_expiry(r))
        return e;
    if (r->rnr_wait) {
        r->rnr_wait = false;
        r->went_back = false;
        e.flags = EFF_RETRANSMIT;
        e.reason = WHY_RNR_NAK;
        return e;
    }
    go_back(r, WHY_TIMEOUT, &e);
    return e;
}
