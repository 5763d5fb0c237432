/* layer 3 (endpoint): faults of responses. */
#include "gen/endpoint/fault_changes.h"

#include "src/transport/responder.h"

static bool is_ack(const struct fault_ctx *c)
{
    return c->p->op->flags & OPF_ACK && aeth_type(c->p->aeth.syndrome) == AETH_ACK;
}

static bool is_sequence_nak(const struct fault_ctx *c)
{
    return c->p->op->flags & OPF_ACK && c->p->aeth.syndrome == SYNDROME_NAK(NAK_PSN_SEQ);
}

static bool is_fatal_nak(const struct fault_ctx *c)
{
    return c->p->op->flags & OPF_ACK && aeth_type(c->p->aeth.syndrome) == AETH_NAK && !is_sequence_nak(c);
}

bool fault_answer_out_of_order(struct fault_ctx *c)
{
    if (fault_op(c) != OP_READ_RESP_MIDDLE)
        return false;
    c->p->bth.psn = psn_add(c->p->bth.psn, 1);
    return true;
}

bool fault_short_answer(struct fault_ctx *c)
{
    if (!(c->p->op->flags & OPF_READ_RESP) || c->p->payload_len <= 4)
        return false;
    c->p->payload_len -= 4;
    return true;
}

bool fault_ghost_answer(struct fault_ctx *c)
{
    if (!is_ack(c) || c->rsp->last_is_res)
        return false;
    fault_set_operation(c->p, OP_READ_RESP_ONLY);
    return true;
}

bool fault_refused_read(struct fault_ctx *c)
{
    if (!(c->p->op->flags & (OPF_READ_RESP | OPF_ATOMIC_ACK)) || !(c->p->op->flags & OPF_START))
        return false;
    fault_set_operation(c->p, OP_ACKNOWLEDGE);
    c->p->aeth.syndrome = SYNDROME_NAK(NAK_INVALID_REQUEST);
    c->p->payload_len = 0;
    return true;
}

bool fault_plain_ack_for_atomic(struct fault_ctx *c)
{
    if (!(c->p->op->flags & OPF_ATOMIC_ACK))
        return false;
    fault_set_operation(c->p, OP_ACKNOWLEDGE);
    return true;
}

/* A READ response without data that answers no READ. */
bool fault_plain_ack_for_place(struct fault_ctx *c)
{
    uint32_t n = c->rsp->res_next;

    if (!(c->p->op->flags & OPF_READ_RESP) || n == c->rsp->res_tail || rsp_res(c->rsp, n)->opcode == OP_READ_REQUEST)
        return false;
    fault_set_operation(c->p, OP_ACKNOWLEDGE);
    return true;
}

bool fault_other_original(struct fault_ctx *c)
{
    const struct responder *r = c->rsp;

    if (!(c->p->op->flags & OPF_ATOMIC_ACK) || r->res_next == r->res_tail || !rsp_res(r, r->res_next)->replay)
        return false;
    c->p->atomicacketh.orig++;
    return true;
}

bool fault_reserved_syndrome(struct fault_ctx *c)
{
    if (!is_ack(c))
        return false;
    c->p->aeth.syndrome = AETH_RESERVED << 5;
    return true;
}

bool fault_ack_that_asks(struct fault_ctx *c)
{
    if (!is_ack(c))
        return false;
    c->p->bth.ackreq = 1;
    return true;
}

bool fault_ack_too_far(struct fault_ctx *c)
{
    if (!is_ack(c))
        return false;
    c->p->bth.psn = c->rsp->epsn_hi;
    return true;
}

bool fault_wrong_msn(struct fault_ctx *c)
{
    if (!is_ack(c))
        return false;
    c->p->aeth.msn = psn_add(c->p->aeth.msn, 1);
    return true;
}

bool fault_wrong_read_msn(struct fault_ctx *c)
{
    if (!(c->p->op->flags & OPF_READ_RESP) || !(c->p->op->ext & H_AETH))
        return false;
    c->p->aeth.msn = psn_add(c->p->aeth.msn, 1);
    return true;
}

bool fault_unannounced_credits(struct fault_ctx *c)
{
    if (!is_ack(c) || c->rsp->p.credits)
        return false;
    c->p->aeth.syndrome = SYNDROME_ACK(5);
    return true;
}

bool fault_wrong_nak_psn(struct fault_ctx *c)
{
    if (!is_sequence_nak(c))
        return false;
    c->p->bth.psn = psn_add(c->p->bth.psn, 1);
    return true;
}

bool fault_nak_twice(struct fault_ctx *c)
{
    c->again = is_sequence_nak(c);
    return c->again;
}

bool fault_nak_without_gap(struct fault_ctx *c)
{
    if (!is_ack(c) || c->rsp->seen_hi != c->rsp->epsn_hi)
        return false;
    c->p->aeth.syndrome = SYNDROME_NAK(NAK_PSN_SEQ);
    c->p->bth.psn = c->rsp->epsn_hi;
    return true;
}

#define FAR_PSNS 1000 /* ahead of all that was sent */

bool fault_nak_of_nothing(struct fault_ctx *c)
{
    if (!is_ack(c))
        return false;
    c->p->aeth.syndrome = SYNDROME_RNR(c->rsp->p.rnr_timer);
    c->p->bth.psn = psn_add(c->rsp->seen_hi, FAR_PSNS);
    return true;
}

bool fault_other_roce(struct fault_ctx *c)
{
    c->tweak->other_roce = is_ack(c) && c->encap != ENCAP_IB;
    return c->tweak->other_roce;
}

bool fault_other_address(struct fault_ctx *c)
{
    if (!is_ack(c) || c->encap == ENCAP_IB)
        return false;
    c->tweak->src_xor = 0x40;
    return true;
}

bool fault_success_after_fatal(struct fault_ctx *c)
{
    c->again = c->again_as_ack = is_fatal_nak(c);
    return c->again;
}

bool fault_success_after_rnr(struct fault_ctx *c)
{
    c->again = c->again_as_ack = c->p->op->flags & OPF_ACK && aeth_type(c->p->aeth.syndrome) == AETH_RNR;
    return c->again;
}

bool fault_rd_nak_code(struct fault_ctx *c)
{
    if (!is_fatal_nak(c))
        return false;
    c->p->aeth.syndrome = SYNDROME_NAK(NAK_INVALID_RD_REQUEST);
    return true;
}

/* A CNP in place of an ACK. */
static bool make_cnp(struct fault_ctx *c)
{
    if (!is_ack(c) || c->encap != ENCAP_ROCEV2)
        return false;
    fault_set_opcode(c->p, OPCODE_CNP);
    c->p->bth.becn = 1;
    c->p->bth.psn = 0;
    c->p->payload_len = 16;
    return true;
}

bool fault_cnp_with_psn(struct fault_ctx *c)
{
    uint32_t psn = c->p->bth.psn;

    if (!make_cnp(c))
        return false;
    c->p->bth.psn = psn ? psn : 1;
    return true;
}

bool fault_cnp_to_idle_qp(struct fault_ctx *c)
{
    if (!make_cnp(c))
        return false;
    c->p->bth.dqpn ^= 0x800000;
    return true;
}
