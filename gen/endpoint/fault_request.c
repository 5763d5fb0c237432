/* layer 3 (endpoint): faults of requests, and of any packet. */
#include "gen/endpoint/fault_changes.h"

#include "src/transport/requester.h"
#include "src/transport/ud.h"

static bool is_reliable(const struct fault_ctx *c)
{
    unsigned svc = c->p->bth.opcode >> 5;

    return svc == SVC_RC || svc == SVC_XRC;
}

/* --- Any packet ------------------------------------------------------------------------------- */

bool fault_wrong_icrc(struct fault_ctx *c)
{
    c->tweak->icrc_xor = 1;
    return true;
}

bool fault_wrong_tver(struct fault_ctx *c)
{
    c->p->bth.tver = 1;
    return true;
}

bool fault_undefined_opcode(struct fault_ctx *c)
{
    if (c->p->op->ext)
        return false;
    fault_set_operation(c->p, 0x1f);
    return true;
}

bool fault_reserved_bits(struct fault_ctx *c)
{
    c->p->bth.resv7 = 1;
    return true;
}

bool fault_wrong_pad_count(struct fault_ctx *c)
{
    if (c->p->payload_len < 8)
        return false;
    c->tweak->keep_padcnt = true;
    c->p->bth.padcnt = (c->p->bth.padcnt + 1) & 3;
    return true;
}

bool fault_trailing_bytes(struct fault_ctx *c)
{
    if (c->p->op->flags & OPF_PAYLOAD)
        return false;
    c->tweak->trailing = 4;
    return true;
}

bool fault_wrong_udp_length(struct fault_ctx *c)
{
    if (c->encap != ENCAP_ROCEV2)
        return false;
    c->tweak->udp_len_add = 4;
    return true;
}

bool fault_may_fragment(struct fault_ctx *c)
{
    if (!c->ip4)
        return false;
    c->tweak->no_df = true;
    return true;
}

bool fault_wrong_udp_checksum(struct fault_ctx *c)
{
    if (c->encap != ENCAP_ROCEV2)
        return false;
    c->tweak->udp_csum = 0xbad;
    return true;
}

bool fault_other_source_port(struct fault_ctx *c)
{
    if (c->encap != ENCAP_ROCEV2 || c->req->msg_tail < 3)
        return false; /* the port of the first packet defines the port of the queue pair */
    c->tweak->udp_sport_xor = 1;
    return true;
}

bool fault_other_dscp(struct fault_ctx *c)
{
    if (c->encap != ENCAP_ROCEV2)
        return false;
    c->tweak->tos_xor = 0x20;
    return true;
}

bool fault_born_congested(struct fault_ctx *c)
{
    if (c->encap != ENCAP_ROCEV2)
        return false;
    c->tweak->tos_xor = 3;
    return true;
}

bool fault_to_qp0(struct fault_ctx *c)
{
    c->p->bth.dqpn = 0;
    return true;
}

bool fault_other_pkey(struct fault_ctx *c)
{
    c->p->bth.pkey ^= 1;
    return true;
}

bool fault_other_migreq(struct fault_ctx *c)
{
    c->p->bth.migreq ^= 1;
    return true;
}

bool fault_wrong_next_header(struct fault_ctx *c)
{
    if (c->encap != ENCAP_ROCEV1)
        return false;
    c->tweak->grh_nxthdr_xor = 1;
    return true;
}

bool fault_wrong_link_version(struct fault_ctx *c)
{
    if (c->encap != ENCAP_IB)
        return false;
    c->tweak->lver = 1;
    return true;
}

bool fault_ttl_0(struct fault_ctx *c)
{
    if (c->encap != ENCAP_ROCEV2)
        return false;
    c->tweak->has_ttl = true;
    return true;
}

/* --- Requests --------------------------------------------------------------------------------- */

bool fault_skipped_psn(struct fault_ctx *c)
{
    if (c->repeat || !is_reliable(c))
        return false;
    c->p->bth.psn = psn_add(c->p->bth.psn, 1);
    return true;
}

/* A Middle or plain Last of the other operation. */
static bool other_operation(struct fault_ctx *c)
{
    static const uint8_t swap[32] = {[OP_SEND_MIDDLE] = OP_WRITE_MIDDLE,
                                     [OP_SEND_LAST] = OP_WRITE_LAST,
                                     [OP_WRITE_MIDDLE] = OP_SEND_MIDDLE,
                                     [OP_WRITE_LAST] = OP_SEND_LAST};

    if (!swap[fault_op(c)])
        return false;
    fault_set_operation(c->p, swap[fault_op(c)]);
    return true;
}

bool fault_mixed_messages(struct fault_ctx *c)
{
    return !c->repeat && other_operation(c);
}

bool fault_no_first(struct fault_ctx *c)
{
    static const uint8_t later[32] = {[OP_SEND_FIRST] = OP_SEND_MIDDLE,
                                      [OP_SEND_ONLY] = OP_SEND_LAST,
                                      [OP_WRITE_FIRST] = OP_WRITE_MIDDLE,
                                      [OP_WRITE_ONLY] = OP_WRITE_LAST};

    if (c->repeat || !later[fault_op(c)] || c->p->payload_len == 0 || c->p->bth.opcode >> 5 == SVC_UD)
        return false;
    fault_set_operation(c->p, later[fault_op(c)]);
    return true;
}

static bool is_full_packet(const struct fault_ctx *c)
{
    return !c->repeat && c->p->op->flags & (OPF_FIRST | OPF_MIDDLE) && c->p->op->flags & (OPF_SEND | OPF_WRITE);
}

bool fault_short_packet(struct fault_ctx *c)
{
    if (!is_full_packet(c))
        return false;
    c->p->payload_len -= 4;
    return true;
}

bool fault_half_pmtu(struct fault_ctx *c)
{
    if (!is_full_packet(c) || c->req->p.pmtu == 256)
        return false;
    c->p->payload_len /= 2;
    return true;
}

bool fault_double_pmtu(struct fault_ctx *c)
{
    if (!is_full_packet(c) || c->req->p.pmtu > 2048)
        return false;
    c->p->payload_len *= 2;
    return true;
}

bool fault_wrong_write_length(struct fault_ctx *c)
{
    if (c->repeat || !(c->p->op->flags & OPF_WRITE) || !(c->p->op->ext & H_RETH))
        return false;
    if (c->p->op->flags & OPF_ONLY)
        c->p->reth.dmalen += 4;
    else
        c->p->reth.dmalen = c->p->payload_len;
    return true;
}

bool fault_reth_too_long(struct fault_ctx *c)
{
    if (c->repeat || !(c->p->op->ext & H_RETH) || c->p->op->flags & OPF_ONLY)
        return false;
    c->p->reth.dmalen = (UINT32_C(1) << 31) + 4;
    return true;
}

bool fault_solicited_write(struct fault_ctx *c)
{
    if (c->p->op->flags & OPF_SEND || c->p->op->ext & H_IMMDT)
        return false;
    c->p->bth.se = 1;
    return true;
}

/* A READ of 2^23 PSNs; at a path MTU above 256 its length would break the length rule, too. */
bool fault_window_too_large(struct fault_ctx *c)
{
    if (c->repeat || fault_op(c) != OP_READ_REQUEST || c->req->p.pmtu != 256)
        return false;
    c->p->reth.dmalen = UINT32_C(1) << 31;
    return true;
}

bool fault_changed_payload(struct fault_ctx *c)
{
    if (!c->repeat || !(c->p->op->flags & (OPF_SEND | OPF_WRITE)) || !c->p->payload_len)
        return false;
    c->tweak->payload_xor = 1;
    return true;
}

bool fault_wrapping_range(struct fault_ctx *c)
{
    if (c->repeat || !(c->p->op->ext & H_RETH) || c->p->reth.dmalen <= 8)
        return false;
    c->p->reth.va = UINT64_MAX - 7;
    return true;
}

bool fault_changed_repeat(struct fault_ctx *c)
{
    if (!c->repeat)
        return false;
    if (c->p->op->flags & OPF_WRITE && c->p->op->ext & H_RETH) {
        c->p->reth.va += 8;
        return true;
    }
    if (c->p->op->flags & (OPF_SEND | OPF_WRITE) && c->p->op->flags & OPF_END && c->p->payload_len > 8) {
        c->p->payload_len -= 4;
        return true;
    }
    return other_operation(c);
}

/* An opcode with immediate, but without the ImmDt header and without payload. */
bool fault_missing_immediate(struct fault_ctx *c)
{
    if (!(c->p->op->ext & H_IMMDT) || fault_op(c) == OP_WRITE_ONLY_IMM)
        return false;
    c->p->op = &opcode_table[OPCODE(c->p->bth.opcode >> 5, fault_op(c) - 1)];
    c->p->have &= ~(uint32_t)H_IMMDT;
    c->p->payload_len = 0;
    return true;
}

/* Where the length shows it: in a First or Middle, and without payload. */
bool fault_missing_xrceth(struct fault_ctx *c)
{
    if (!(c->p->op->ext & H_XRCETH) || (c->p->op->flags & OPF_PAYLOAD && !(c->p->op->flags & (OPF_FIRST | OPF_MIDDLE))))
        return false;
    c->p->op = &opcode_table[OPCODE(SVC_RC, fault_op(c))];
    c->p->have &= ~(uint32_t)H_XRCETH;
    return true;
}

bool fault_inside_read(struct fault_ctx *c)
{
    const struct requester *r = c->req;
    const struct req_msg *m = req_msg(r, r->msg_tail - 1);

    if (c->repeat || fault_op(c) == OP_READ_REQUEST || r->msg_tail == r->msg_head || m->kind != MSG_READ || m->span < 2)
        return false;
    c->p->bth.psn = psn_add(m->psn, 1);
    return true;
}

bool fault_wrong_reread(struct fault_ctx *c)
{
    if (!c->repeat || fault_op(c) != OP_READ_REQUEST)
        return false;
    c->p->reth.va += 8;
    return true;
}

bool fault_unaligned_atomic(struct fault_ctx *c)
{
    if (!(c->p->op->flags & OPF_ATOMIC_REQ))
        return false;
    c->p->atomiceth.va += 4;
    return true;
}

bool fault_unaligned_atomic_write(struct fault_ctx *c)
{
    if (!(c->p->op->flags & OPF_ATOMIC_WRITE))
        return false;
    c->p->reth.va += 4;
    return true;
}

bool fault_resume_too_late(struct fault_ctx *c)
{
    if (!c->repeat || c->req->cause != WHY_SEQUENCE_NAK || c->p->bth.psn != c->req->una_hi)
        return false;
    c->p->bth.psn = psn_add(c->p->bth.psn, 1);
    return true;
}

bool fault_reread_too_late(struct fault_ctx *c)
{
    if (!c->repeat || c->req->cause != WHY_IMPLIED_NAK || fault_op(c) != OP_READ_REQUEST ||
        c->p->reth.dmalen <= c->req->p.pmtu)
        return false;
    c->p->bth.psn = psn_add(c->p->bth.psn, 1);
    c->p->reth.va += c->req->p.pmtu;
    c->p->reth.dmalen -= c->req->p.pmtu;
    return true;
}

bool fault_wrong_qkey(struct fault_ctx *c)
{
    if (!(c->p->op->ext & H_DETH))
        return false;
    c->p->deth.qkey ^= 1;
    return true;
}

bool fault_unannounced_qkey(struct fault_ctx *c)
{
    return c->p->bth.dqpn != 1 && fault_wrong_qkey(c);
}

/* Not the first packet: the packets around it show which connection it belongs to. */
bool fault_other_queue_pair(struct fault_ctx *c)
{
    if (c->repeat || !is_reliable(c) || c->req->msg_tail < 2)
        return false;
    c->p->bth.dqpn ^= 0x800000;
    return true;
}

bool fault_long_datagram(struct fault_ctx *c)
{
    if (c->p->bth.opcode >> 5 != SVC_UD || c->p->bth.dqpn == 1)
        return false;
    c->p->payload_len = 4096 + 4;
    return true;
}

bool fault_other_service(struct fault_ctx *c)
{
    unsigned svc = c->p->bth.opcode >> 5;

    if (fault_op(c) != OP_SEND_ONLY || c->repeat)
        return false;
    fault_set_opcode(c->p, OPCODE(svc == SVC_UD ? SVC_RC : SVC_UD, OP_SEND_ONLY));
    if (svc != SVC_UD)
        c->p->deth = (struct deth){.qkey = QKEY_GSI, .srcqp = 1};
    return true;
}

bool fault_wrong_group(struct fault_ctx *c)
{
    if (c->p->bth.opcode >> 5 != SVC_UD || c->p->bth.dqpn == 1 || c->encap == ENCAP_IB)
        return false;
    if (c->p->bth.dqpn == PSN_MASK)
        c->tweak->mac_xor = 1;
    else
        c->p->bth.dqpn = PSN_MASK;
    return true;
}

bool fault_unreliable_repeat(struct fault_ctx *c)
{
    if (is_reliable(c) || c->req->msg_tail == 0)
        return false;
    c->p->bth.psn = psn_prev(c->p->bth.psn);
    return true;
}
