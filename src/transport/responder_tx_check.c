/* layer 2 (transport): checks of the responses that a responder sends: one predicate per rule. */
#include "src/transport/transport_impl.h"

/* A response as the predicates see it. */
struct re_view {
    const struct responder *r;
    const struct rsp_unknown *u; /* never NULL; all zero at an endpoint */
    const struct pkt *p;
    const struct rsp_res *res; /* the READ or atomic of the response; NULL: none, or a plain ACK */
    uint32_t n;                /* its number */
    uint32_t flags;            /* OPF_* */
    unsigned type;             /* AETH: enum aeth_type, if there is one */
    unsigned code;             /* AETH: low five bits */
    bool watched;              /* validator: requests may be lost after the tap, responses may be missed */
};
typedef bool (*re_rule)(const struct re_view *, struct verdict *v);

/* True if the capture has the responses in sending order, each of them once. */
static bool in_order(const struct re_view *t)
{
    return !t->watched || t->u->all_seen;
}

static bool is_nak(const struct re_view *t)
{
    return t->flags & OPF_ACK && t->type != AETH_ACK;
}

static bool is_plain_ack(const struct re_view *t)
{
    return t->flags & OPF_ACK && t->type == AETH_ACK;
}

static bool is_data(const struct re_view *t)
{
    return t->flags & (OPF_READ_RESP | OPF_ATOMIC_ACK);
}

static bool breaks_service_of(const struct re_view *t, struct verdict *v)
{
    if (is_unreliable(t->r->p.service))
        return fail(v, RULE_SVC_03, NULL, 0, 0);
    if (LIKELY(t->p->op->name && t->flags & OPF_RESPONSE && t->p->bth.opcode >> 5 == t->r->p.service))
        return false;
    return wrong_operation(t->p, OP_ACKNOWLEDGE, v);
}

static bool breaks_re_format(const struct re_view *t, struct verdict *v)
{
    return breaks_format(t->p, v);
}

static bool breaks_syndrome(const struct re_view *t, struct verdict *v)
{
    if (!(t->p->have & H_AETH))
        return false;
    if (UNLIKELY(t->p->aeth.syndrome & 0x80))
        return reserved_is_set("syndrome", t->p->aeth.syndrome & 0x7f, t->p->aeth.syndrome, v);
    if (t->type == AETH_RESERVED || (t->type == AETH_NAK && t->code > NAK_INVALID_RD_REQUEST) ||
        (is_data(t) && t->type != AETH_ACK))
        return fail(v, RULE_ACK_01, "syndrome", 0x1f, t->p->aeth.syndrome);
    if (t->type == AETH_NAK && t->code == NAK_INVALID_RD_REQUEST)
        return fail(v, RULE_NAK_06, "NAK code", NAK_REMOTE_OPERATIONAL, t->code);
    if (!t->r->p.credits && t->type == AETH_ACK && t->code != AETH_CREDIT_INVALID)
        return fail(v, RULE_CM_11, "credit code", AETH_CREDIT_INVALID, t->code);
    return false;
}

static bool is_fatal(const struct re_view *t)
{
    return is_nak(t) && t->type == AETH_NAK && t->code != NAK_PSN_SEQ;
}

/* True if the fatal NAK is of the PSN that one has refused before, and no copy of that: it has another reason, or the
 * capture has the responses once each, and that PSN did not come again. */
static bool is_another_fatal(const struct re_view *t)
{
    bool once = in_order(t) && !t->u->fatal_again;

    return is_fatal(t) && t->p->bth.psn == t->u->fatal_psn && (t->p->aeth.syndrome != t->u->fatal_code || once);
}

/* True if a fatal NAK precedes the response: at an endpoint its own, also while it is due; else one that was seen. A
 * NAK of the refused PSN may be a copy, or older; one of a later PSN needs the refused request to be executed. */
static bool follows_fatal(const struct re_view *t)
{
    int32_t after = psn_diff(t->p->bth.psn, t->u->fatal_psn);
    bool another = is_another_fatal(t);

    if (t->watched)
        return t->u->fatal_seen && (is_nak(t) ? after > 0 || another : after >= 0);
    return t->r->dead && !is_data(t) && !(is_nak(t) && t->r->nak_due);
}

static bool breaks_silence_after_fatal(const struct re_view *t, struct verdict *v)
{
    if (LIKELY(!follows_fatal(t)))
        return false;
    fail(v, RULE_NAK_04, "PSN", t->watched ? psn_prev(t->u->fatal_psn) : t->r->nak_psn, t->p->bth.psn);
    if (t->watched && is_another_fatal(t) && t->p->aeth.syndrome == t->u->fatal_code)
        v->needs = N_REQ | N_COMPLETE | N_TAP_RSP;
    return true;
}

/* True if the response acknowledges the request with PSN `psn`, or refuses it or a later one. A sequence NAK of that
 * PSN is the matter of NAK-07, and another RNR NAK of it a copy unless the capture has the responses once each. */
static bool decides(const struct re_view *t, uint32_t psn)
{
    int32_t behind = psn_diff(t->p->bth.psn, psn);
    bool may_come_again = is_nak(t) && !is_fatal(t) && !(t->type == AETH_RNR && in_order(t));

    return may_come_again ? behind > 0 : behind >= 0;
}

/* After an RNR NAK no response may complete or refuse the rejected request before it is retransmitted. An endpoint
 * knows that state itself: its expected PSN is the rejected one. */
static bool breaks_wait_for_receive(const struct re_view *t, struct verdict *v)
{
    const struct responder *r = t->r;
    bool waits = t->watched ? t->u->rnr_waits : r->nak_sent && r->rnr_sent && !r->nak_due;
    uint32_t psn = t->watched ? t->u->rnr_psn : r->epsn_lo;

    if (LIKELY(!waits) || !decides(t, psn))
        return false;
    return fail(v, RULE_NAK_11, "PSN", psn_prev(psn), t->p->bth.psn);
}

/* True if a validator's ring may have lost the READ or atomic of this PSN. */
static bool may_be_forgotten(const struct re_view *t)
{
    const struct responder *r = t->r;

    return t->watched && r->res_head && psn_diff(t->p->bth.psn, rsp_res(r, r->res_head)->psn) < 0;
}

static bool breaks_ghost(const struct re_view *t, struct verdict *v)
{
    if (!is_data(t) || (!t->res && may_be_forgotten(t)))
        return false;
    if (UNLIKELY(!t->res))
        return fail(v, RULE_RDA_05, "PSN", t->r->res_next == t->r->res_tail ? 0 : rsp_res(t->r, t->r->res_next)->psn,
                    t->p->bth.psn);
    if (UNLIKELY(rsp_is_atomic(t->res) != !!(t->flags & OPF_ATOMIC_ACK)))
        return fail(v, RULE_RDA_08, "opcode", rsp_is_atomic(t->res) ? OP_ATOMIC_ACKNOWLEDGE : OP_READ_RESP_ONLY,
                    t->p->bth.opcode & 31);
    return false;
}

/* True if responses may begin at PSN number `off` of the READ although another one is due: for a duplicate of the
 * request, or because only the retransmission was executed. Never at an endpoint. */
static bool may_begin_again(const struct rsp_res *res, uint32_t off)
{
    return (res->u.again && (off == res->from || res->u.restarts > 1)) || res->u.doubtful;
}

/* An ATOMIC ACK that was sent already, and no duplicate of its request has come. For READs: breaks_answer_order(). */
static bool breaks_atomic_once(const struct re_view *t, struct verdict *v)
{
    const struct rsp_res *res = t->res;

    if (!(t->flags & OPF_ATOMIC_ACK) || !res || rsp_is_due(res) || !in_order(t) || may_begin_again(res, 0))
        return false;
    fail(v, RULE_RDA_05, "PSN", 0, t->p->bth.psn);
    v->needs = N_COMPLETE | N_TAP_RSP;
    return true;
}

/* One form of the responses to a READ: from PSN number `from` to before `end`, with `tail` bytes in the last one. */
struct shape {
    uint32_t from, end, tail;
    bool late_start; /* the first may be a Middle or Last: rxe, after a READ restart */
};

/* The rule that a READ response breaks if it belongs to `s`; RULE_NONE: none. *want: the opcode or the bytes
 * expected. */
static enum rule mismatch_of_shape(const struct re_view *t, const struct shape *s, uint32_t *want)
{
    uint32_t off = (t->p->bth.psn - t->res->psn) & PSN_MASK, op = t->p->bth.opcode & 31;
    bool last = off + 1 == s->end, first = off == s->from, late_start = first && s->late_start;

    *want = first && last ? OP_READ_RESP_ONLY
            : first       ? OP_READ_RESP_FIRST
            : last        ? OP_READ_RESP_LAST
                          : OP_READ_RESP_MIDDLE;
    if (off < s->from || off >= s->end)
        return RULE_RDA_02;
    if (op != *want && !(late_start && op == (last ? OP_READ_RESP_LAST : OP_READ_RESP_MIDDLE)))
        return RULE_RDA_02;
    *want = last ? s->tail : t->r->p.pmtu;
    return t->p->payload_len == *want ? RULE_NONE : RULE_RDA_03;
}

/* True if it responds to a READ, or (a READ response without data) to an ATOMIC WRITE or FLUSH. */
static bool answers_read(const struct re_view *t)
{
    return t->flags & OPF_READ_RESP && t->res && !rsp_is_atomic(t->res);
}

/* A response has the opcode and length that its PSN requires, in the original READ or the restarted one. After several
 * restarts any form may be right. */
static bool breaks_form(const struct re_view *t, struct verdict *v)
{
    const struct rsp_res *res = t->res;
    struct shape whole, again;
    uint32_t want, other;
    enum rule rule, rule_again;

    if (!t->watched || !answers_read(t) || (t->u->pmtu_unknown && res->len > 256))
        return false;
    whole = (struct shape){0, res->span, res->opcode == OP_READ_REQUEST ? res->len - (res->span - 1) * t->r->p.pmtu : 0,
                           t->r->p.rxe && !t->u->from_start};
    again = (struct shape){res->from, res->end, res->tail, t->r->p.rxe};
    rule = mismatch_of_shape(t, &whole, &want);
    if (LIKELY(rule == RULE_NONE) || res->u.restarts > 1)
        return false;
    rule_again = res->u.restarts ? mismatch_of_shape(t, &again, &other) : rule;
    if (rule_again == RULE_NONE)
        return false;
    if (rule_again == RULE_RDA_03 && rule == RULE_RDA_02) {
        rule = rule_again;
        want = other;
    }
    return fail(v, res->opcode == OP_READ_REQUEST ? rule : RULE_RDA_12,
                rule == RULE_RDA_02 ? "opcode" : "payload bytes", want,
                rule == RULE_RDA_02 ? t->p->bth.opcode & 31u : t->p->payload_len);
}

/* Responses come in PSN order, First to Last. */
static bool breaks_answer_order(const struct re_view *t, struct verdict *v)
{
    const struct rsp_res *res = t->res;
    uint32_t off;
    bool first, last;

    if (!(t->flags & OPF_READ_RESP) || !res || !in_order(t))
        return false;
    off = (t->p->bth.psn - res->psn) & PSN_MASK;
    if (UNLIKELY(off != res->next || res->next == res->end) && !may_begin_again(res, off))
        return fail(v, RULE_RDA_02, "PSN", psn_add(res->psn, res->next), t->p->bth.psn);
    if (t->watched) /* breaks_form() checks opcode and length */
        return false;
    first = off == res->from && !(t->r->p.rxe && res->from);
    last = off + 1 == res->end;
    if (LIKELY(first == !!(t->flags & OPF_START) && last == !!(t->flags & OPF_END)))
        return false;
    return fail(v, RULE_RDA_02, "opcode", last ? OP_READ_RESP_LAST : OP_READ_RESP_MIDDLE, t->p->bth.opcode & 31);
}

static bool breaks_answer_length(const struct re_view *t, struct verdict *v)
{
    uint32_t want;

    if (!(t->flags & OPF_READ_RESP) || !t->res || t->watched)
        return false;
    want = t->flags & OPF_END ? t->res->tail : t->r->p.pmtu;
    return LIKELY(t->p->payload_len == want) ? false : fail(v, RULE_RDA_03, "payload bytes", want, t->p->payload_len);
}

static bool breaks_atomic(const struct re_view *t, struct verdict *v)
{
    if (!(t->flags & OPF_ATOMIC_ACK) || !t->res || !t->res->executed || LIKELY(t->p->atomicacketh.orig == t->res->orig))
        return false;
    return fail(v, RULE_RDA_09, "original value", t->res->orig, t->p->atomicacketh.orig);
}

/* True if the pending response may be left out: its request was a duplicate, or this NAK demands its retransmission. */
static bool may_be_withheld(const struct re_view *t, const struct rsp_res *due)
{
    return t->watched && (due->replay || (is_nak(t) && psn_diff(t->p->bth.psn, psn_add(due->psn, due->next)) <= 0));
}

/* An earlier response is due first. */
static bool breaks_answer_first(const struct re_view *t, struct verdict *v)
{
    const struct rsp_res *due;

    if (LIKELY(t->r->res_next == t->r->res_tail) || !in_order(t))
        return false;
    due = rsp_res(t->r, t->r->res_next);
    if (is_plain_ack(t) && t->p->bth.psn == due->psn && due->opcode != OP_READ_REQUEST && !due->replay)
        return fail(v, rsp_is_atomic(due) ? RULE_RDA_08 : RULE_RDA_12, "opcode",
                    rsp_is_atomic(due) ? OP_ATOMIC_ACKNOWLEDGE : OP_READ_RESP_ONLY, t->p->bth.opcode & 31);
    if (is_data(t) && t->n == t->r->res_next)
        return false;
    if (may_be_withheld(t, due))
        return false;
    if (is_plain_ack(t) && psn_in(t->p->bth.psn, due->psn, due->span))
        return fail(v, RULE_RDA_11, "opcode", due->span == 1 ? OP_READ_RESP_ONLY : OP_READ_RESP_FIRST,
                    t->p->bth.opcode & 31u);
    if (psn_diff(t->p->bth.psn, due->psn) < 0)
        return is_data(t) && !t->watched ? fail(v, RULE_RTX_10, "PSN", due->psn, t->p->bth.psn) : false;
    return fail(v, RULE_RDA_11, "PSN", psn_add(due->psn, due->next), t->p->bth.psn);
}

/* A fatal NAK without a reason. Only an endpoint knows the reason. */
static bool breaks_baseless_nak(const struct re_view *t, struct verdict *v)
{
    const struct responder *r = t->r;

    if (LIKELY(!is_nak(t) || t->watched) || t->type != AETH_NAK || t->code == NAK_PSN_SEQ || r->nak_due)
        return false;
    return fail(v, RULE_RDA_07, "syndrome", SYNDROME_ACK(AETH_CREDIT_INVALID), t->p->aeth.syndrome);
}

/* True if the packet's PSN may have been the last one executed when the READ or atomic was. */
static bool may_end_answer(const struct re_view *t, const struct rsp_res *res)
{
    uint32_t psn = t->p->bth.psn;

    return t->watched && (psn == psn_add(res->psn, res->span - 1) || psn == psn_add(res->psn, res->end - 1));
}

/* True if the response is a plain ACK of a PSN before that of an earlier response, which is *furthest. */
static bool goes_back(const struct re_view *t, uint32_t *furthest)
{
    *furthest = t->watched ? t->u->passed_psn : t->r->ack_psn;
    return is_plain_ack(t) && in_order(t) && (t->watched ? t->u->passed : t->r->acked) &&
           psn_diff(t->p->bth.psn, *furthest) < 0;
}

static bool breaks_ack(const struct re_view *t, struct verdict *v)
{
    const struct responder *r = t->r;
    uint32_t n;

    if (!is_plain_ack(t))
        return false;
    if (UNLIKELY(t->u->from_start && !r->acked && !r->p.rxe && t->p->bth.psn == psn_prev(r->p.psn)))
        return fail(v, RULE_ACK_02, "PSN", r->p.psn, t->p->bth.psn); /* no message is complete yet */
    if (UNLIKELY(psn_diff(t->p->bth.psn, r->epsn_hi) >= 0 && (in_order(t) || psn_diff(t->p->bth.psn, r->seen_hi) >= 0)))
        return fail(v, RULE_ACK_02, "PSN", psn_prev(r->epsn_hi), t->p->bth.psn);
    if (UNLIKELY(psn_diff(t->p->bth.psn, r->epsn_hi) >= 0))
        return fail(v, RULE_ACK_03, "PSN", psn_prev(r->epsn_hi), t->p->bth.psn);
    if (UNLIKELY(goes_back(t, &n)))
        return fail(v, RULE_ACK_02, "PSN", n, t->p->bth.psn);
    n = r->res_tail != r->res_head ? rsp_find(r, t->p->bth.psn) : r->res_tail;
    if (UNLIKELY(n != r->res_tail && t->p->bth.psn != psn_prev(r->epsn_lo) && !may_end_answer(t, rsp_res(r, n))))
        return fail(v, RULE_ACK_05, "PSN", rsp_res(r, n)->psn, t->p->bth.psn);
    return false;
}

/* True if a NAK for the packet's PSN was sent, or seen, and the PSN has not arrived since. *rnr: an RNR NAK. */
static bool was_naked(const struct re_view *t, bool *rnr)
{
    *rnr = t->watched ? t->u->nak_is_rnr : t->r->rnr_sent;
    if (t->watched)
        return t->u->nak_seen && t->p->bth.psn == t->u->nak_psn;
    return t->r->nak_sent && t->p->bth.psn == t->r->epsn_lo && !t->r->nak_due;
}

/* One sequence NAK per PSN; strict responders send none after an RNR NAK. */
static bool breaks_single_nak(const struct re_view *t, bool rnr, struct verdict *v)
{
    if (rnr && t->r->p.rxe)
        return false;
    fail(v, rnr ? RULE_NAK_07 : RULE_NAK_02, "sequence NAKs for this PSN", 1, 2);
    v->needs = rnr || in_order(t) ? 0 : N_TAP_RSP; /* else it may be a duplicate of the first one */
    return true;
}

/* True if the request of the packet's PSN is a READ or atomic that was seen again: a duplicate may be refused. */
static bool is_of_duplicate(const struct re_view *t)
{
    uint32_t n = rsp_find(t->r, t->p->bth.psn);

    return n != t->r->res_tail && rsp_res(t->r, n)->u.copies;
}

/* A fatal or RNR NAK for a request that was acknowledged, or answered if the capture has all responses; validator only,
 * which does not know its reason. */
static bool breaks_refusal_of_acked(const struct re_view *t, struct verdict *v)
{
    const struct responder *r = t->r;

    if (in_order(t) && t->u->passed && psn_diff(t->p->bth.psn, t->u->passed_psn) <= 0 && !is_of_duplicate(t))
        return fail(v, RULE_RTX_09, "PSN", psn_add(t->u->passed_psn, 1), t->p->bth.psn);
    if (!r->acked || psn_diff(t->p->bth.psn, r->ack_psn) > 0)
        return false;
    if (!in_order(t) && psn_diff(t->p->aeth.msn, t->u->ack_msn) < 0)
        return false; /* by its MSN it was sent before that ACK, which overtook it */
    return fail(v, RULE_RTX_09, "PSN", psn_add(r->ack_psn, 1), t->p->bth.psn);
}

static bool breaks_nak(const struct re_view *t, struct verdict *v)
{
    const struct responder *r = t->r;
    uint32_t psn = t->p->bth.psn;
    bool sequence = t->type == AETH_NAK && t->code == NAK_PSN_SEQ, rnr;

    if (LIKELY(!is_nak(t)) || (t->watched && follows_fatal(t)))
        return false;
    if (t->watched && !sequence)
        return breaks_refusal_of_acked(t, v);
    if (sequence && was_naked(t, &rnr))
        return breaks_single_nak(t, rnr, v);
    if (!in_order(t) && psn_diff(psn, r->epsn_lo) <= 0)
        return false;
    if (psn_diff(psn, r->epsn_lo) < 0 || psn_diff(psn, r->epsn_hi) > 0) {
        if (r->dead)
            return false;
        fail(v, RULE_NAK_01, "PSN", r->epsn_lo, psn);
        /* else it may have come before the capture, or the first request seen was ahead of it and was dropped */
        v->needs = psn_diff(psn, r->epsn_hi) > 0 || r->epsn_lo == r->p.psn ? N_START : 0;
        return true;
    }
    if (sequence && !r->nak_due && psn_diff(r->seen_hi, psn_add(psn, 1)) <= 0)
        return fail(v, RULE_NAK_03, "PSN", psn, r->seen_hi);
    return false;
}

enum rule rsp_msn_rule(const struct pkt *p)
{
    return p->op->flags & OPF_READ_RESP ? RULE_ACK_07 : RULE_ACK_06;
}

/* The ACK with the later PSN must not have the smaller MSN. This holds even if requests are missing in the capture. */
static bool breaks_msn_order(const struct re_view *t, struct verdict *v)
{
    const struct responder *r = t->r;
    int32_t later = psn_diff(t->p->bth.psn, r->ack_psn), more = psn_diff(t->p->aeth.msn, t->u->ack_msn);

    v->rule = RULE_NONE;
    if (!r->acked || is_nak(t) || (later > 0 ? more >= 0 : later == 0 || more <= 0 || is_data(t)))
        return false;
    return fail(v, rsp_msn_rule(t->p), "MSN", t->u->ack_msn, t->p->aeth.msn);
}

static bool breaks_msn(const struct re_view *t, struct verdict *v)
{
    const struct responder *r = t->r;
    uint32_t msn = t->p->aeth.msn, furthest;

    if (!rsp_has_msn(t->p) || LIKELY(msn == r->msn_lo) || goes_back(t, &furthest)) /* ACK-02 reports that */
        return false;
    if (t->watched && t->res && t->res->u.doubtful && psn_diff(msn, r->msn_lo) < 0)
        return false; /* a response to a later request has overtaken it: RDA-11 */
    if (t->watched && (breaks_msn_order(t, v) || !t->u->counted))
        return v->rule != RULE_NONE;
    if (LIKELY((psn_diff(msn, r->msn_lo) >= 0 || !in_order(t)) && psn_diff(msn, r->msn_hi) <= 0))
        return false;
    if (t->watched && psn_diff(msn, r->msn_hi) > 0 && psn_diff(t->p->bth.psn, r->epsn_hi) >= 0)
        return false; /* it counts requests that have not arrived: breaks_ack() reports that */
    fail(v, rsp_msn_rule(t->p), "MSN", r->msn_lo, msn);
    v->needs = in_order(t) ? 0 : N_COMPLETE; /* requests that were missed count, too */
    return true;
}

static const re_rule re_rules[] = {breaks_service_of,
                                   breaks_syndrome,
                                   breaks_silence_after_fatal,
                                   breaks_wait_for_receive,
                                   breaks_ghost,
                                   breaks_atomic_once,
                                   breaks_baseless_nak,
                                   breaks_answer_first,
                                   breaks_answer_order,
                                   breaks_form,
                                   breaks_answer_length,
                                   breaks_atomic,
                                   breaks_ack,
                                   breaks_nak,
                                   breaks_msn,
                                   breaks_re_format};

unsigned rsp_tx_check_all(const struct responder *r, const struct rsp_unknown *u, const struct pkt *p, ns_t now,
                          struct verdict *out, unsigned max)
{
    static const struct rsp_unknown nothing;
    struct re_view t = {
        .r = r, .u = u ? u : &nothing, .p = p, .flags = p->op->flags, .n = r->res_tail, .watched = u != NULL};
    unsigned found = 0;

    (void)now;
    if (p->have & H_AETH) {
        t.type = aeth_type(p->aeth.syndrome);
        t.code = aeth_value(p->aeth.syndrome);
    }
    if (is_data(&t)) {
        t.n = r->res_next;
        if (t.n == r->res_tail || !in_order(&t) || !psn_in(p->bth.psn, rsp_res(r, t.n)->psn, rsp_res(r, t.n)->span))
            t.n = rsp_find(r, p->bth.psn);
        t.res = t.n != r->res_tail ? rsp_res(r, t.n) : NULL;
    }
    for (unsigned i = 0; i < ARRAY_LEN(re_rules) && found < max; i++)
        if (UNLIKELY(re_rules[i](&t, &out[found])))
            found++;
    return found;
}

struct verdict rsp_tx_check(const struct responder *r, const struct pkt *p, ns_t now)
{
    struct verdict v;

    return rsp_tx_check_all(r, NULL, p, now, &v, 1) ? v : verdict_pass();
}
