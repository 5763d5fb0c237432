/* layer 2 (transport): the check half of a responder: responses sent. */
#include "src/transport/responder.h"
#include "src/transport/rsp_check.h"
#include "src/transport/tx_check.h"

/* A response as the predicates see it. */
struct re_view {
    const struct responder *r;
    const struct pkt *p;
    const struct rsp_res *res; /* READ or atomic that it answers; NULL: none, or a plain ACK */
    uint32_t n;                /* its number */
    uint32_t flags;            /* OPF_* */
    unsigned type;             /* AETH: enum aeth_type, if there is one */
    unsigned code;             /* AETH: low five bits */
};
typedef bool (*re_rule)(const struct re_view *, struct verdict *v);

/* Whether the responses come in the order in which they left, each of them once. */
static bool in_order(const struct re_view *t)
{
    return t->r->p.certain || t->r->p.all_seen;
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
    if (t->r->p.service != SVC_RC)
        return fail(v, RULE_SVC_03, "opcode", 0, t->p->bth.opcode);
    if (LIKELY(t->p->op->name && t->flags & OPF_RESPONSE && t->p->bth.opcode >> 5 == SVC_RC))
        return false;
    return fail(v, RULE_FMT_03, "opcode", OP_ACKNOWLEDGE, t->p->bth.opcode);
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
        return fail(v, RULE_FMT_04, "syndrome", t->p->aeth.syndrome & 0x7f, t->p->aeth.syndrome);
    if (t->type == AETH_RESERVED || (t->type == AETH_NAK && t->code > NAK_INVALID_RD_REQUEST) || (is_data(t) && t->type != AETH_ACK))
        return fail(v, RULE_ACK_01, "syndrome", 0x1f, t->p->aeth.syndrome);
    if (t->type == AETH_NAK && t->code == NAK_INVALID_RD_REQUEST)
        return fail(v, RULE_NAK_06, "NAK code", 1, t->code);
    if (!t->r->p.credits && t->type == AETH_ACK && t->code != AETH_CREDIT_INVALID)
        return fail(v, RULE_CM_11, "credit code", AETH_CREDIT_INVALID, t->code);
    return false;
}

static bool breaks_silence_after_fatal(const struct re_view *t, struct verdict *v)
{
    if (LIKELY(!t->r->dead) || !in_order(t) || is_data(t) || (is_nak(t) && t->r->nak_owed))
        return false;
    return fail(v, RULE_NAK_04, "PSN", t->r->nak_psn, t->p->bth.psn);
}

static bool breaks_ghost(const struct re_view *t, struct verdict *v)
{
    uint8_t want = t->flags & OPF_ATOMIC_ACK ? 0 : OP_READ_REQUEST;

    if (!is_data(t))
        return false;
    if (UNLIKELY(!t->res))
        return fail(v, RULE_RDA_05, "PSN", t->r->res_next == t->r->res_tail ? 0 : rsp_res(t->r, t->r->res_next)->psn, t->p->bth.psn);
    if (UNLIKELY(want ? t->res->opcode != OP_READ_REQUEST : t->res->opcode == OP_READ_REQUEST))
        return fail(v, RULE_RDA_05, "opcode", t->res->opcode, t->p->bth.opcode);
    return false;
}

/* In the order of the PSNs, First to Last. */
static bool breaks_answer_order(const struct re_view *t, struct verdict *v)
{
    const struct rsp_res *res = t->res;
    uint32_t off;
    bool first, last;

    if (!(t->flags & OPF_READ_RESP) || !res || !in_order(t))
        return false;
    off = (t->p->bth.psn - res->psn) & PSN_MASK;
    if (UNLIKELY(off != res->next || res->next == res->end))
        return fail(v, RULE_RDA_02, "PSN", psn_add(res->psn, res->next), t->p->bth.psn);
    first = off == res->from && !(t->r->p.rxe && res->from);
    last = off + 1 == res->end;
    if (LIKELY(first == !!(t->flags & OPF_START) && last == !!(t->flags & OPF_END)))
        return false;
    return fail(v, RULE_RDA_02, "opcode", last ? OP_READ_RESP_LAST : OP_READ_RESP_MIDDLE, t->p->bth.opcode & 31);
}

static bool breaks_answer_length(const struct re_view *t, struct verdict *v)
{
    uint32_t want;

    if (!(t->flags & OPF_READ_RESP) || !t->res)
        return false;
    if (!in_order(t) && t->flags & OPF_END && t->p->bth.psn != psn_add(t->res->psn, t->res->end - 1))
        return false; /* the end of an answer whose request was asked for again, and is not known */
    want = t->flags & OPF_END ? t->res->tail : t->r->p.pmtu;
    return LIKELY(t->p->payload_len == want) ? false : fail(v, RULE_RDA_03, "payload bytes", want, t->p->payload_len);
}

static bool breaks_atomic(const struct re_view *t, struct verdict *v)
{
    if (!(t->flags & OPF_ATOMIC_ACK) || !t->res || !t->res->executed || LIKELY(t->p->atomicacketh.orig == t->res->orig))
        return false;
    return fail(v, RULE_RDA_09, "original value", t->res->orig, t->p->atomicacketh.orig);
}

/* An answer that is due stands before what is about to be sent. */
static bool breaks_answer_first(const struct re_view *t, struct verdict *v)
{
    const struct rsp_res *due;

    if (LIKELY(t->r->res_next == t->r->res_tail) || !in_order(t))
        return false;
    due = rsp_res(t->r, t->r->res_next);
    if (is_plain_ack(t) && t->r->p.certain && t->p->bth.psn == due->psn && due->opcode != OP_READ_REQUEST)
        return fail(v, RULE_RDA_08, "opcode", OP_ATOMIC_ACKNOWLEDGE, t->p->bth.opcode & 31);
    if (is_data(t) && t->n == t->r->res_next)
        return false;
    if (!t->r->p.certain && due->replay)
        return false;
    if (psn_diff(t->p->bth.psn, due->psn) < 0)
        return is_data(t) && t->r->p.certain ? fail(v, RULE_RTX_10, "PSN", due->psn, t->p->bth.psn) : false;
    return fail(v, RULE_RDA_11, "PSN", psn_add(due->psn, due->next), t->p->bth.psn);
}

/* An endpoint knows whether it has a reason for a fatal NAK. */
static bool breaks_baseless_nak(const struct re_view *t, struct verdict *v)
{
    const struct responder *r = t->r;

    if (LIKELY(!is_nak(t) || !r->p.certain) || t->type != AETH_NAK || t->code == NAK_PSN_SEQ || r->nak_owed)
        return false;
    return fail(v, RULE_RDA_07, "syndrome", SYNDROME_ACK(AETH_CREDIT_INVALID), t->p->aeth.syndrome);
}

static bool breaks_ack(const struct re_view *t, struct verdict *v)
{
    const struct responder *r = t->r;
    uint32_t n;

    if (!is_plain_ack(t))
        return false;
    if (UNLIKELY(psn_diff(t->p->bth.psn, r->p.certain ? r->epsn_hi : r->seen_hi) >= 0))
        return fail(v, RULE_ACK_02, "PSN", psn_add(r->epsn_hi, PSN_MASK), t->p->bth.psn);
    if (UNLIKELY(psn_diff(t->p->bth.psn, r->epsn_hi) >= 0))
        return fail(v, RULE_ACK_03, "PSN", psn_add(r->epsn_hi, PSN_MASK), t->p->bth.psn);
    if (UNLIKELY(r->acked && in_order(t) && psn_diff(t->p->bth.psn, r->ack_psn) < 0))
        return fail(v, RULE_ACK_02, "PSN", r->ack_psn, t->p->bth.psn);
    n = r->res_tail != r->res_head ? rsp_find(r, t->p->bth.psn) : r->res_tail;
    if (UNLIKELY(n != r->res_tail && t->p->bth.psn != psn_add(r->epsn_lo, PSN_MASK)))
        return fail(v, RULE_ACK_05, "PSN", rsp_res(r, n)->psn, t->p->bth.psn);
    return false;
}

static bool breaks_nak(const struct re_view *t, struct verdict *v)
{
    const struct responder *r = t->r;
    uint32_t psn = t->p->bth.psn;

    if (LIKELY(!is_nak(t)) || (!in_order(t) && psn_diff(psn, r->epsn_lo) <= 0))
        return false;
    if (t->type == AETH_NAK && t->code == NAK_PSN_SEQ && r->hush && psn == r->epsn_lo && !(r->p.certain && r->nak_owed))
        return r->rnr_given && r->p.rxe ? false
                                        : fail(v, r->rnr_given ? RULE_NAK_07 : RULE_NAK_02, "sequence NAKs for this PSN", 1, 2);
    if (psn_diff(psn, r->epsn_lo) < 0 || psn_diff(psn, r->epsn_hi) > 0)
        return r->p.certain && r->dead ? false : fail(v, RULE_NAK_01, "PSN", r->epsn_lo, psn);
    if (t->type != AETH_NAK || (r->p.certain && r->nak_owed))
        return false;
    if (t->code == NAK_PSN_SEQ && psn_diff(r->seen_hi, psn_add(psn, 1)) <= 0)
        return fail(v, RULE_NAK_03, "PSN", psn, r->seen_hi);
    return false;
}

static bool breaks_msn(const struct re_view *t, struct verdict *v)
{
    const struct responder *r = t->r;
    uint32_t msn = t->p->aeth.msn;

    if (!(t->p->have & H_AETH) || LIKELY(msn == r->msn_lo))
        return false;
    if (LIKELY((psn_diff(msn, r->msn_lo) >= 0 || !in_order(t)) && psn_diff(msn, r->msn_hi) <= 0))
        return false;
    return fail(v, t->flags & OPF_READ_RESP ? RULE_ACK_07 : RULE_ACK_06, "MSN", r->msn_lo, msn);
}

static const re_rule re_rules[] = {breaks_service_of,    breaks_syndrome, breaks_silence_after_fatal, breaks_ghost,      breaks_baseless_nak,
                                   breaks_answer_first,  breaks_answer_order, breaks_answer_length,   breaks_atomic,     breaks_ack,
                                   breaks_nak,           breaks_msn,      breaks_re_format};

unsigned rsp_tx_check_all(const struct responder *r, const struct pkt *p, ns_t now, struct verdict *out, unsigned max)
{
    struct re_view t = {.r = r, .p = p, .flags = p->op->flags, .n = r->res_tail};
    unsigned found = 0;

    (void)now;
    if (p->have & H_AETH) {
        t.type = p->aeth.syndrome >> 5 & 3;
        t.code = p->aeth.syndrome & 31;
    }
    if (is_data(&t)) {
        t.n = r->res_next;
        if (t.n == r->res_tail || !psn_in(p->bth.psn, rsp_res(r, t.n)->psn, rsp_res(r, t.n)->span))
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

    return rsp_tx_check_all(r, p, now, &v, 1) ? v : verdict_pass();
}
