/* layer 2b (shadow): the replica of a responder. */
#include "src/shadow/shadow.h"

#include "src/transport/transport_impl.h"

void shadow_rsp_init(struct shadow_rsp *s, const struct rsp_params *p, const struct rsp_unknown *u,
                     struct rsp_res *ring, uint32_t n)
{
    memset(s, 0, sizeof *s);
    rsp_init(&s->r, p, ring, n);
    s->u = *u;
    s->u.counted = u->from_start;
}

void shadow_rsp_learn_pmtu(struct shadow_rsp *s, uint16_t pmtu)
{
    struct responder *r = &s->r;

    s->u.pmtu_unknown = false;
    r->p.pmtu = pmtu;
    for (uint32_t n = r->res_head; n != r->res_tail; n++) {
        struct rsp_res *res = rsp_res(r, n);
        uint32_t end;
        if (res->opcode != OP_READ_REQUEST)
            continue;
        res->span = psn_span(res->len, pmtu);
        if (rsp_is_due(res))
            rsp_set_answer(r, res, 0, res->len);
        end = psn_add(res->psn, res->span);
        if (psn_in(r->epsn_hi, res->psn, res->span))
            r->epsn_hi = end;
        if (psn_diff(end, r->seen_hi) > 0)
            r->seen_hi = end;
        if (psn_diff(end, r->res_end) > 0)
            r->res_end = end;
    }
}

void shadow_rsp_may_expect(struct shadow_rsp *s, uint32_t psn)
{
    if (LIKELY(psn_diff(psn, s->r.epsn_hi) <= 0))
        return;
    s->r.epsn_hi = psn;
    s->u.counted = false;
}

/* --- Requests --------------------------------------------------------------------------------- */

static void count(uint8_t *n)
{
    *n += *n < UINT8_MAX;
}

/* The responses of READs and atomics after `psn` may be repeated. A request captured out of order stands after
 * later PSNs in the ring, so all entries are examined. */
static void may_repeat_after(struct responder *r, uint32_t psn)
{
    for (uint32_t i = r->res_head; i != r->res_tail; i++) {
        struct rsp_res *later = rsp_res(r, i);
        if (psn_diff(later->psn, psn) <= 0)
            continue;
        count(&later->u.copies);
        count(&later->u.again);
    }
}

/* Request `p` is a duplicate of READ or atomic `n`. Its responses may be in progress: they may continue, or restart. */
static void repeat_response(struct responder *r, const struct pkt *p, uint32_t n)
{
    struct rsp_res *res = rsp_res(r, n);
    uint32_t from = res->from, end = res->end, under_way = rsp_is_due(res) ? res->next : UINT32_MAX;

    rsp_answer_again(r, p, n);
    if ((res->from != from || res->end != end) && res->opcode == OP_READ_REQUEST)
        count(&res->u.restarts);
    count(&res->u.copies);
    if (under_way != UINT32_MAX)
        count(&res->u.again);
    if (under_way < res->end)
        res->next = under_way;
    may_repeat_after(r, res->psn);
}

/* A READ or atomic has a PSN of an earlier one and is dropped, as it asks for something else: a responder may also send
 * what it asks for. */
static bool is_bad_repeat(const struct responder *r, const struct pkt *p, unsigned answer)
{
    return answer == ANS_DROP && !(p->op->flags & (OPF_SEND | OPF_WRITE)) && rsp_find(r, p->bth.psn) != r->res_tail;
}

static void may_answer_bad_repeat(struct responder *r, uint32_t n)
{
    struct rsp_res *res = rsp_res(r, n);

    res->u.restarts = UINT8_MAX; /* from any PSN of it on, in any form */
    count(&res->u.copies);
    count(&res->u.again);
}

/* A READ or atomic after missing requests: those may have arrived unseen, or be captured out of order, so it may get
 * a response. */
static void remember_ahead(struct responder *r, const struct pkt *p)
{
    struct effects e = {0};
    uint32_t n;

    if (p->op->flags & (OPF_SEND | OPF_WRITE))
        return;
    n = rsp_find(r, p->bth.psn);
    if (n == r->res_tail)
        rsp_remember(r, p, &e);
    else if (rsp_res(r, n)->opcode == (p->bth.opcode & 31))
        repeat_response(r, p, n);
}

/* A request with the PSN epsn_hi: it may be the expected one. */
static inline void take_expected(struct responder *r, const struct pkt *p, uint32_t end)
{
    struct effects e = {0};

    rsp_note_seen(r, end);
    if (UNLIKELY(!(p->op->flags & (OPF_SEND | OPF_WRITE))))
        rsp_remember(r, p, &e);
    r->started = true;
    r->msn_hi = psn_add(r->msn_hi, !!(p->op->flags & OPF_END));
    r->epsn_hi = end;
}

/* Another request: a duplicate, one after a gap, or one of another service. */
static void take_other(struct shadow_rsp *s, const struct pkt *p, uint32_t end, ns_t now)
{
    struct responder *r = &s->r;
    struct verdict v = rsp_rx_check(r, NULL, p, now);

    if (psn_diff(p->bth.psn, r->epsn_hi) < 0)
        shadow_rsp_may_expect(s, end); /* a READ no longer in the ring: all of its PSNs count at once */
    rsp_note_seen(r, end);
    if (v.answer == ANS_DUPLICATE && !(p->op->flags & (OPF_SEND | OPF_WRITE)))
        repeat_response(r, p, rsp_find(r, p->bth.psn));
    else if (is_bad_repeat(r, p, v.answer))
        may_answer_bad_repeat(r, rsp_find(r, p->bth.psn));
    else if (v.answer != ANS_DUPLICATE && (!s->u.all_seen || s->u.pmtu_unknown) && rsp_right_service(r, p))
        remember_ahead(r, p); /* without the path MTU epsn_hi may be after the expected PSN */
    if (v.answer == ANS_NAK_SEQ && !s->u.all_seen)
        s->u.counted = false;
}

/* True if request `p` may retransmit the PSN that the RNR NAK rejected: its PSN is the same, or it is an earlier READ
 * whose PSNs may include it. */
static bool may_end_wait(const struct shadow_rsp *s, const struct pkt *p)
{
    int32_t before = psn_diff(s->u.rnr_psn, p->bth.psn);

    return before == 0 || (before > 0 && p->op->flags & OPF_READ_REQ);
}

static void rc_rx(struct shadow_rsp *s, const struct pkt *p, ns_t now)
{
    struct responder *r = &s->r;
    uint32_t psn = p->bth.psn, end = psn_add(psn, p->op->name ? request_span(p, r->p.pmtu) : 1);

    if (UNLIKELY(s->u.nak_seen && psn == s->u.nak_psn))
        s->u.nak_seen = false;
    if (UNLIKELY(s->u.fatal_seen && psn == s->u.fatal_psn))
        s->u.fatal_again = true;
    if (UNLIKELY(s->u.rnr_waits && may_end_wait(s, p)))
        s->u.rnr_waits = false;
    if (LIKELY(psn == r->epsn_hi && rsp_right_service(r, p)))
        take_expected(r, p, end);
    else
        take_other(s, p, end, now);
}

void shadow_rsp_rx(struct shadow_rsp *s, const struct pkt *p, ns_t now)
{
    uint32_t epsn_lo = s->r.epsn_lo, msn_lo = s->r.msn_lo;

    if (LIKELY(!is_unreliable(s->r.p.service))) {
        rc_rx(s, p, now);
        return;
    }
    rsp_rx(&s->r, NULL, p, now);
    s->r.epsn_lo = epsn_lo; /* no response proves that it arrived */
    s->r.msn_lo = msn_lo;
}

/* --- Responses -------------------------------------------------------------------------------- */

/* True if `p` is a plain ACK of RC without pad, payload or reserved bits. */
static inline bool has_usual_headers(const struct responder *r, const struct pkt *p)
{
    const struct bth *h = &p->bth;
    bool acknowledge = h->opcode == OPCODE(SVC_RC, OP_ACKNOWLEDGE) && r->p.service == SVC_RC && p->have & H_AETH;
    bool right_credits = r->p.credits || p->aeth.syndrome == AETH_CREDIT_INVALID;

    return acknowledge && !(h->tver | h->resv6 | h->resv7 | h->padcnt | p->payload_len) &&
           aeth_type(p->aeth.syndrome) == AETH_ACK && right_credits;
}

/* True if `psn` is after the latest ACK or NAK and after the responses of all READs and atomics, and was seen in a
 * request. */
static inline bool is_next_ack(const struct shadow_rsp *s, uint32_t psn)
{
    const struct responder *r = &s->r;

    return r->acked && psn_diff(psn, s->u.passed_psn) > 0 && psn_diff(psn, r->epsn_hi) < 0 &&
           r->res_next == r->res_tail && (r->res_tail == r->res_head || psn_diff(psn, r->res_end) >= 0);
}

/* A response acknowledges PSN `psn`: no ACK of an earlier one may follow. */
static inline void pass(struct shadow_rsp *s, uint32_t psn)
{
    if (s->u.passed && psn_diff(psn, s->u.passed_psn) <= 0)
        return;
    s->u.passed = true;
    s->u.passed_psn = psn;
}

bool shadow_rsp_tx_is_usual(const struct shadow_rsp *s, const struct pkt *p)
{
    const struct responder *r = &s->r;
    uint32_t msn = p->aeth.msn;

    if (UNLIKELY(!has_usual_headers(r, p) || s->u.fatal_seen || s->u.rnr_waits || !is_next_ack(s, p->bth.psn)))
        return false;
    return psn_diff(msn, s->u.ack_msn) >= 0 &&
           (!s->u.counted || (psn_diff(msn, r->msn_lo) >= 0 && psn_diff(msn, r->msn_hi) <= 0));
}

/* Every request before `psn` was executed. */
static inline void prove(struct shadow_rsp *s, uint32_t psn)
{
    if (psn_diff(psn, s->r.epsn_lo) > 0)
        s->r.epsn_lo = psn;
    if (UNLIKELY(s->u.rnr_waits && psn_diff(psn, s->u.rnr_psn) > 0))
        s->u.rnr_waits = false;
}

/* The responder may have dropped the request: no response is due, but it may come. */
static void doubt_response(struct rsp_res *res)
{
    res->u.doubtful = true;
    res->next = res->end;
}

/* A READ response or ATOMIC ACK: the responses due before it were sent, even if they were not seen; or it overtook
 * them, which is reported once, with this one (RDA-11). */
static void take_response(struct shadow_rsp *s, const struct pkt *p)
{
    struct responder *r = &s->r;
    uint32_t n = rsp_answered(r, p), off, end;
    struct rsp_res *res = rsp_res(r, n);

    if (n == r->res_tail)
        return;
    for (; r->res_next != r->res_tail && (int32_t)(r->res_next - n) < 0; r->res_next++)
        if (rsp_is_due(rsp_res(r, r->res_next)))
            doubt_response(rsp_res(r, r->res_next));
    off = (p->bth.psn - res->psn) & PSN_MASK;
    if (off == res->from && off != res->next && res->u.again && !res->u.doubtful) {
        res->u.again--;
        res->u.copies--;
    }
    res->u.doubtful = false;
    rsp_advance_answer(r, res, p);
    pass(s, p->bth.psn);
    end = psn_add(res->psn, res->span);
    if (psn_diff(end, r->epsn_lo) > 0) {
        prove(s, end);
        shadow_rsp_may_expect(s, end);
    }
}

void shadow_rsp_settle(struct shadow_rsp *s)
{
    struct responder *r = &s->r;

    for (; r->res_next != r->res_tail; r->res_next++)
        if (rsp_is_due(rsp_res(r, r->res_next)))
            doubt_response(rsp_res(r, r->res_next));
}

/* A NAK proves that all requests before its PSN arrived. Requests from its PSN on were not executed when it was
 * sent; those seen since then may have been. */
static void take_nak(struct shadow_rsp *s, const struct pkt *p)
{
    struct responder *r = &s->r;
    unsigned type = aeth_type(p->aeth.syndrome);
    uint32_t psn = p->bth.psn;
    /* wrong: it proves nothing */
    bool ahead = s->u.all_seen && !s->u.pmtu_unknown && psn_diff(psn, r->epsn_hi) > 0;

    s->u.nak_seen = type == AETH_RNR || aeth_value(p->aeth.syndrome) == NAK_PSN_SEQ;
    s->u.nak_is_rnr = type == AETH_RNR;
    s->u.nak_psn = psn;
    if (psn_diff(psn, r->epsn_hi) <= 0)
        pass(s, psn_prev(psn));
    if (type == AETH_RNR && psn_diff(psn, r->epsn_lo) >= 0) { /* else it was completed before: RTX-09 */
        s->u.rnr_waits = true;
        s->u.rnr_psn = psn;
    }
    if (type == AETH_NAK && !s->u.nak_seen && !s->u.fatal_seen && !aeth_is_undefined(p->aeth.syndrome)) {
        s->u.fatal_seen = true;
        s->u.fatal_code = p->aeth.syndrome;
        s->u.fatal_psn = psn;
    }
    if (!ahead)
        prove(s, psn);
    if (!s->u.all_seen || ahead)
        return;
    shadow_rsp_may_expect(s, psn);
    for (uint32_t n = r->res_tail; n != r->res_head && psn_diff(rsp_res(r, n - 1)->psn, psn) >= 0; n--)
        doubt_response(rsp_res(r, n - 1));
    rsp_find_next_due(r);
}

/* A plain ACK acknowledges a READ or atomic whose response is due: reported once, with this ACK. The response may
 * still follow. */
static void doubt_acknowledged(struct responder *r, uint32_t psn)
{
    while (r->res_next != r->res_tail && psn_diff(rsp_res(r, r->res_next)->psn, psn) <= 0) {
        doubt_response(rsp_res(r, r->res_next));
        rsp_find_next_due(r);
    }
}

static void take_ack(struct shadow_rsp *s, const struct pkt *p)
{
    struct responder *r = &s->r;
    uint32_t psn = p->bth.psn, end = psn_add(psn, 1);

    if (s->u.all_seen || !r->acked || psn_diff(psn, r->ack_psn) >= 0) {
        r->ack_psn = psn;
        s->u.ack_msn = p->aeth.msn;
        s->u.passed_psn = psn;
    }
    r->acked = s->u.passed = true;
    if (UNLIKELY(r->res_next != r->res_tail))
        doubt_acknowledged(r, psn);
    prove(s, end);
    shadow_rsp_may_expect(s, end);
}

void shadow_rsp_tx(struct shadow_rsp *s, const struct pkt *p)
{
    struct responder *r = &s->r;

    if (p->have & H_AETH) {
        if (psn_diff(p->aeth.msn, r->msn_lo) > 0)
            r->msn_lo = p->aeth.msn;
        if (psn_diff(r->msn_lo, r->msn_hi) > 0)
            r->msn_hi = r->msn_lo;
    }
    if (p->op->flags & OPF_ACK)
        (aeth_type(p->aeth.syndrome) == AETH_ACK ? take_ack : take_nak)(s, p);
    else if (p->op->flags & (OPF_READ_RESP | OPF_ATOMIC_ACK))
        take_response(s, p);
}
