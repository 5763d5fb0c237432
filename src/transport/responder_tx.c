/* layer 2 (transport): the apply half of a responder: responses due and sent. */
#include "src/transport/transport_impl.h"

static void due_res(const struct responder *r, struct rsp_due *o)
{
    const struct rsp_res *res = rsp_res(r, r->res_next);
    bool first = res->next == res->from && !(r->p.rxe && res->from), last = res->next + 1 == res->end;

    o->res = r->res_next;
    o->psn = psn_add(res->psn, res->next);
    o->syndrome = SYNDROME_ACK(AETH_CREDIT_INVALID);
    o->rkey = res->rkey;
    if (rsp_is_atomic(res)) {
        o->kind = DUE_ATOMIC;
        o->opcode = OP_ATOMIC_ACKNOWLEDGE;
        o->orig = res->orig;
        return;
    }
    o->kind = DUE_READ;
    o->opcode = first && last ? OP_READ_RESP_ONLY
                : first       ? OP_READ_RESP_FIRST
                : last        ? OP_READ_RESP_LAST
                              : OP_READ_RESP_MIDDLE;
    o->va = res->va + (uint64_t)res->next * r->p.pmtu;
    o->len = last ? res->tail : r->p.pmtu;
}

struct rsp_due rsp_due(const struct responder *r, bool ack)
{
    struct rsp_due o = {0};

    o.msn = r->msn_lo;
    if (r->res_next != r->res_tail) {
        due_res(r, &o);
    } else if (r->nak_due) {
        o.kind = DUE_NAK;
        o.opcode = OP_ACKNOWLEDGE;
        o.syndrome = r->nak_syndrome;
        o.psn = r->nak_psn;
    } else if (ack && r->ack_due && !r->dead) {
        o.kind = DUE_ACK;
        o.opcode = OP_ACKNOWLEDGE;
        o.syndrome = SYNDROME_ACK(AETH_CREDIT_INVALID);
        o.psn = psn_prev(r->epsn_lo);
    }
    return o;
}

uint32_t rsp_answered(const struct responder *r, const struct pkt *p)
{
    const struct rsp_res *due = rsp_res(r, r->res_next);

    if (r->res_next != r->res_tail && p->bth.psn == psn_add(due->psn, due->next))
        return r->res_next;
    return rsp_find(r, p->bth.psn);
}

void rsp_advance_answer(struct responder *r, struct rsp_res *res, const struct pkt *p)
{
    res->next = ((p->bth.psn - res->psn) & PSN_MASK) + 1;
    if (res->next > res->end || p->op->flags & OPF_END)
        res->next = res->end;
    if (p->op->flags & OPF_ATOMIC_ACK && !res->executed && p->have & H_ATOMICACKETH) {
        res->executed = true;
        res->orig = p->atomicacketh.orig;
    }
    rsp_find_next_due(r);
}

/* A READ response or ATOMIC ACK was sent. */
static void sent_answer(struct responder *r, const struct pkt *p)
{
    uint32_t n = rsp_answered(r, p);
    struct rsp_res *res = rsp_res(r, n);

    if (n == r->res_tail)
        return;
    rsp_advance_answer(r, res, p);
    if (!rsp_is_due(res) && psn_add(res->psn, res->span) == r->epsn_hi)
        r->ack_due = false;
}

static void sent_ack(struct responder *r, const struct pkt *p)
{
    r->ack_due = false;
    if (aeth_type(p->aeth.syndrome) == AETH_ACK) {
        r->ack_psn = p->bth.psn;
        r->acked = true;
    } else {
        r->nak_due = false;
    }
}

struct effects rsp_tx(struct responder *r, const struct pkt *p, ns_t now)
{
    (void)now;
    if (p->have & H_AETH)
        r->msn_sent = p->aeth.msn;
    if (p->op->flags & OPF_ACK)
        sent_ack(r, p);
    else if (p->op->flags & (OPF_READ_RESP | OPF_ATOMIC_ACK))
        sent_answer(r, p);
    return (struct effects){0};
}

uint8_t credit_code(uint32_t n)
{
    uint8_t code = 0;

    while (code < 30 && aeth_credits(code + 1u) <= n)
        code++;
    return code;
}
