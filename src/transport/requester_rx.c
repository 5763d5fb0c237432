/* layer 2 (transport): the apply half of a requester that waits: acknowledgements, responses, timers. */
#include "src/transport/req_apply.h"

#include "src/transport/tx_check.h"

/* --- Acknowledgement -------------------------------------------------------------------------- */

/* Responses may have been missed: those before `to` count as received. */
static void take_for_heard(struct req_msg *m, uint32_t to)
{
    int32_t n = psn_diff(to, m->psn);

    if (n > 0)
        m->got = max_u32(m->got, min_u32((uint32_t)n, m->span));
}

/* Acknowledge everything before `to`, as far as no READ or atomic still lacks its answer. Returns whether it got
 * there. */
static bool advance(struct requester *r, uint32_t to, struct effects *e)
{
    uint32_t start = r->una_hi;
    bool there = true;

    while (r->msg_head != r->msg_tail) {
        struct req_msg *m = req_msg(r, r->msg_head);
        uint32_t end;
        if (UNLIKELY(!r->p.certain && !r->p.complete && req_takes_response(m)))
            take_for_heard(m, to);
        end = psn_add(m->psn, req_takes_response(m) ? m->got : m->span);
        if (req_takes_response(m) && m->got < m->span) {
            r->una_hi = end;
            there = psn_diff(to, end) <= 0;
            break;
        }
        if (m->kind != MSG_LOCAL && (m->open || psn_diff(to, end) < 0)) {
            r->una_hi = psn_diff(to, end) < 0 ? to : end;
            break;
        }
        if (req_takes_depth(m))
            r->rd_out--;
        r->una_hi = end;
        r->msg_head++;
        e->completed++;
    }
    if (r->una_hi != start)
        e->flags |= EFF_ACKED;
    return there;
}

/* The transport timer, the retry counters and the point of resumption after progress. */
static void progress(struct requester *r, struct effects *e, ns_t now)
{
    if (!(e->flags & EFF_ACKED))
        return;
    r->retry_left = r->p.retry_cnt;
    r->rnr_left = r->p.rnr_retry;
    r->went_back = false;
    r->rnr_wait = false;
    r->timer = r->una_hi == r->psn_next ? NS_NEVER : now;
    if (r->probing && (r->unlimited || r->msg_head == r->msg_tail || r->una_hi != req_msg(r, r->msg_tail - 1)->psn)) {
        r->probing = false;
        e->flags |= EFF_CREDITS;
    }
    if (!r->p.certain) {
        if (UNLIKELY(r->alt)) {
            r->alt_moved = true;
            r->alt_from = INT64_MIN;
        }
        return;
    }
    r->una_lo = r->una_hi;
    if (UNLIKELY(psn_diff(r->psn_tx, r->una_hi) < 0)) {
        r->psn_tx = r->una_hi;
        r->msg_tx = r->msg_head;
        req_skip_local(r);
    }
}

static void die(struct requester *r, struct effects *e, enum wc_status status)
{
    e->flags |= EFF_ERROR;
    e->status = (uint8_t)status;
    e->msg = r->msg_head;
    if (!r->p.certain) /* the response may have been lost behind the tap */
        return;
    r->dead = true;
    r->timer = NS_NEVER;
    r->rnr_wait = false;
}

static bool no_retry_left(const struct requester *r)
{
    return r->retry_left == 0 && !(r->p.rxe && r->p.retry_cnt == 7);
}

/* Send again from the oldest PSN without an answer. */
static void go_back(struct requester *r, enum eff_reason why, struct effects *e)
{
    e->reason = (uint8_t)why;
    if (!r->p.certain) {
        if (!r->alt || psn_diff(r->una_hi, r->alt_low) < 0)
            r->alt_low = r->una_hi;
        r->alt = true;
        r->alt_moved = false;
        r->alt_why = (uint8_t)why;
        r->alt_psn = r->una_hi;
        r->alt_from = INT64_MIN;
        return;
    }
    if (why != WHY_RNR_NAK) {
        if (no_retry_left(r)) {
            die(r, e, WC_RETRY_EXC_ERR);
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

/* A response passed over a READ or atomic without answer. Once per episode: responses on their way say the same
 * again. */
static void implied_nak(struct requester *r, struct effects *e, ns_t now)
{
    progress(r, e, now);
    if (r->went_back) {
        e->flags |= EFF_DROP;
        e->reason = WHY_STALE;
        return;
    }
    go_back(r, WHY_IMPLIED_NAK, e);
}

static void take_credits(struct requester *r, const struct pkt *p, struct effects *e)
{
    unsigned code = aeth_value(p->aeth.syndrome);
    uint32_t limit;

    if (!r->p.certain && r->p.credits && !r->credited && aeth_type(p->aeth.syndrome) == AETH_ACK) {
        r->credited = true; /* from here on, its credits are known */
        r->unlimited = code == AETH_CREDIT_INVALID;
    }
    if (LIKELY(r->unlimited) || aeth_type(p->aeth.syndrome) != AETH_ACK)
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

/* --- Responses -------------------------------------------------------------------------------- */

static void rx_rnr(struct requester *r, const struct pkt *p, struct effects *e, ns_t now)
{
    bool again = r->alt && r->alt_why == WHY_RNR_NAK && r->alt_psn == r->una_hi; /* a copy: the earlier one may count */
    ns_t from = r->alt_from;

    if (r->rnr_wait) {
        e->flags |= EFF_DROP;
        e->reason = WHY_STALE;
        return;
    }
    if (r->p.rnr_retry != 7 && r->p.certain) {
        if (r->rnr_left == 0) {
            die(r, e, WC_RNR_RETRY_EXC_ERR);
            return;
        }
        r->rnr_left--;
    }
    go_back(r, WHY_RNR_NAK, e);
    r->rnr_until = now + rnr_time(aeth_value(p->aeth.syndrome));
    if (r->p.certain)
        r->rnr_wait = true;
    else
        r->alt_from = again ? from : r->rnr_until - r->p.slack;
    r->alt_at = again ? r->alt_at : now;
    e->flags |= EFF_WAIT;
}

static void rx_sequence_nak(struct requester *r, struct effects *e, ns_t now)
{
    bool waits = !r->p.certain && r->alt && r->alt_why == WHY_RNR_NAK && r->alt_psn == r->una_hi && now < r->alt_from;

    if (r->went_back || r->rnr_wait || waits) {
        e->flags |= EFF_DROP;
        e->reason = WHY_STALE;
        return;
    }
    go_back(r, WHY_SEQUENCE_NAK, e);
}

static void rx_nak(struct requester *r, const struct pkt *p, struct effects *e, ns_t now)
{
    static const uint8_t status[] = {
        [NAK_INVALID_REQUEST] = WC_REM_INV_REQ_ERR,
        [NAK_REMOTE_ACCESS] = WC_REM_ACCESS_ERR,
        [NAK_REMOTE_OPERATIONAL] = WC_REM_OP_ERR,
        [NAK_INVALID_RD_REQUEST] = WC_REM_INV_RD_REQ_ERR,
    };
    unsigned type = aeth_type(p->aeth.syndrome), code = aeth_value(p->aeth.syndrome);

    if (type == AETH_NAK && code >= ARRAY_LEN(status)) {
        e->flags |= EFF_DROP;
        e->reason = WHY_INVALID;
        return;
    }
    if (!advance(r, p->bth.psn, e)) {
        implied_nak(r, e, now);
        return;
    }
    progress(r, e, now);
    if (type == AETH_RNR)
        rx_rnr(r, p, e, now);
    else if (code == NAK_PSN_SEQ)
        rx_sequence_nak(r, e, now);
    else
        die(r, e, (enum wc_status)status[code]);
}

static void rx_ack(struct requester *r, const struct pkt *p, struct effects *e, ns_t now)
{
    bool there;

    switch (aeth_type(p->aeth.syndrome)) {
    case AETH_ACK:
        there = advance(r, psn_add(p->bth.psn, 1), e);
        take_credits(r, p, e);
        if (there)
            progress(r, e, now);
        else
            implied_nak(r, e, now);
        break;
    case AETH_RNR:
    case AETH_NAK:
        rx_nak(r, p, e, now);
        break;
    default:
        e->flags |= EFF_DROP;
        e->reason = WHY_INVALID;
    }
}

/* Whether a READ response or ATOMIC ACK is of the kind that message `m` asks for. */
static bool is_answered_by(const struct req_msg *m, const struct pkt *p)
{
    return p->op->flags & OPF_ATOMIC_ACK ? m->kind == MSG_ATOMIC : m->kind == MSG_READ || m->kind == MSG_PLACE;
}

/* Whether a READ response is what its place demands; `m` is its message, whose next response it is. */
static bool bad_read_response(const struct requester *r, const struct req_msg *m, const struct pkt *p,
                              struct verdict *v)
{
    bool last = m->got + 1 == m->span;
    uint32_t want = last ? m->len - m->got * r->p.pmtu : r->p.pmtu;

    if (last != !!(p->op->flags & OPF_END))
        return fail(v, RULE_RDA_02, "opcode", last ? OP_READ_RESP_LAST : OP_READ_RESP_MIDDLE, p->bth.opcode & 31);
    return p->payload_len == want ? false : fail(v, RULE_RDA_03, "payload bytes", want, p->payload_len);
}

static void rx_data(struct requester *r, const struct pkt *p, struct effects *e, ns_t now)
{
    struct req_msg *m;
    struct verdict v;

    if (!advance(r, p->bth.psn, e)) {
        if (r->p.rxe && r->p.certain &&
            psn_in(p->bth.psn, req_msg(r, r->msg_head)->psn, req_msg(r, r->msg_head)->span)) {
            progress(r, e, now);
            e->flags |= EFF_DROP;
            e->reason = WHY_GAP;
        } else {
            implied_nak(r, e, now);
        }
        return;
    }
    m = r->msg_head != r->msg_tail ? req_msg(r, r->msg_head) : NULL;
    if (!m || r->una_hi != p->bth.psn || !is_answered_by(m, p)) {
        progress(r, e, now);
        e->flags |= EFF_DROP;
        e->reason = WHY_GHOST;
        return;
    }
    if (m->kind == MSG_READ && UNLIKELY(bad_read_response(r, m, p, &v))) {
        progress(r, e, now);
        die(r, e, WC_BAD_RESP_ERR);
        return;
    }
    e->flags |= m->kind == MSG_READ ? EFF_READ_DATA : EFF_ATOMIC_DATA;
    e->msg = r->msg_head;
    e->offset = m->got * r->p.pmtu;
    e->len = m->kind == MSG_READ ? p->payload_len : 8;
    m->got++;
    advance(r, psn_add(p->bth.psn, 1), e);
    if (p->have & H_AETH)
        take_credits(r, p, e);
    progress(r, e, now);
}

struct effects req_rx(struct requester *r, const struct pkt *p, ns_t now)
{
    struct effects e = {0};

    if (UNLIKELY(r->dead || p->op->name == NULL || !(p->op->flags & OPF_RESPONSE) ||
                 p->bth.opcode >> 5 != r->p.service)) {
        e.flags = EFF_DROP;
        e.reason = r->dead ? WHY_STATE : WHY_INVALID;
        return e;
    }
    if (UNLIKELY(psn_diff(p->bth.psn, r->psn_next) >= 0)) {
        e.flags = EFF_DROP;
        e.reason = WHY_GHOST;
        return e;
    }
    if (!r->p.certain) {
        uint32_t heard =
            p->op->flags & OPF_ACK && aeth_type(p->aeth.syndrome) != AETH_ACK ? p->bth.psn : psn_add(p->bth.psn, 1);
        if (psn_diff(heard, r->heard) > 0)
            r->heard = heard;
        if (req_going_back(r) && psn_diff(heard, r->back_psn) > 0)
            r->retry_left =
                r->p.retry_cnt; /* it answers the last try, and may have been lost behind the tap the times before */
    }
    if (UNLIKELY(psn_diff(p->bth.psn, r->una_hi) < 0)) {
        e.flags = EFF_DROP;
        e.reason = WHY_STALE;
        if (p->op->flags & OPF_ACK && p->bth.psn == psn_prev(r->una_hi))
            take_credits(r, p, &e);
        return e;
    }
    if (p->op->flags & OPF_ACK)
        rx_ack(r, p, &e, now);
    else
        rx_data(r, p, &e, now);
    return e;
}

struct verdict req_rx_check_msn(const struct requester *r, const struct pkt *p)
{
    bool nak = p->op->flags & OPF_ACK && aeth_type(p->aeth.syndrome) != AETH_ACK, open;
    uint32_t n, low, high, msn = p->aeth.msn;
    const struct req_msg *m;
    struct verdict v;
    enum rule rule = p->op->flags & OPF_READ_RESP ? RULE_ACK_07 : RULE_ACK_06;

    if (!r->counted || !(p->have & H_AETH) || r->msg_tail == r->msg_head)
        return verdict_pass();
    n = req_find(r, p->bth.psn);
    if (n == r->msg_tail)
        return verdict_pass();
    m = req_msg(r, n);
    open = req_msg(r, r->msg_tail - 1)->open;
    low = psn_prev(m->ssn);
    high = open ? psn_prev(r->ssn) : r->ssn;
    if (nak)
        high = low;
    else if (!(p->op->flags & OPF_READ_RESP) && !m->open &&
             (req_takes_response(m) || p->bth.psn == psn_add(m->psn, m->span - 1)))
        low = m->ssn;
    if (LIKELY(psn_diff(msn, low) >= 0 && psn_diff(msn, high) <= 0))
        return verdict_pass();
    v = verdict_fail(rule, "MSN", psn_diff(msn, low) < 0 ? low : high, msn);
    v.needs = psn_diff(msn, low) < 0 || r->p.certain ? 0 : N_COMPLETE; /* requests that were not seen count, too */
    return v;
}

struct effects req_settle(struct requester *r)
{
    struct effects e = {0};

    if (r->p.service == SVC_RC) {
        advance(r, r->una_hi, &e);
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
