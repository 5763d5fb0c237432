/* layer 3 (gen): the table of deliberate mistakes. */
#include "gen/faults.h"

#include "src/transport/ud.h"

/* Give the packet another opcode; the headers follow from it. */
static void set_opcode(struct pkt *p, uint8_t opcode)
{
    p->bth.opcode = opcode;
    p->op = &opcode_table[opcode];
    p->have = H_BTH | p->op->ext;
}

static unsigned op_of(const struct fault_ctx *c)
{
    return c->p->bth.opcode & 31;
}

static bool is_rc(const struct fault_ctx *c)
{
    return c->p->bth.opcode >> 5 == SVC_RC;
}

/* --- Any packet ---------------------------------------------------------------------------------------------------------------- */

static bool wrong_icrc(struct fault_ctx *c)
{
    c->tweak->icrc_xor = 1;
    return true;
}

static bool wrong_tver(struct fault_ctx *c)
{
    c->p->bth.tver = 1;
    return true;
}

static bool undefined_opcode(struct fault_ctx *c)
{
    if (c->p->op->ext)
        return false;
    set_opcode(c->p, OPCODE(c->p->bth.opcode >> 5, 0x1f));
    return true;
}

static bool reserved_bits(struct fault_ctx *c)
{
    c->p->bth.resv7 = 1;
    return true;
}

static bool wrong_pad_count(struct fault_ctx *c)
{
    if (c->p->payload_len < 8)
        return false;
    c->tweak->keep_padcnt = true;
    c->p->bth.padcnt = (c->p->bth.padcnt + 1) & 3;
    return true;
}

static bool trailing_bytes(struct fault_ctx *c)
{
    if (c->p->op->flags & OPF_PAYLOAD)
        return false;
    c->tweak->trailing = 4;
    return true;
}

static bool wrong_udp_length(struct fault_ctx *c)
{
    if (c->encap != ENCAP_ROCEV2)
        return false;
    c->tweak->udp_len_add = 4;
    return true;
}

static bool may_fragment(struct fault_ctx *c)
{
    if (!c->ip4)
        return false;
    c->tweak->no_df = true;
    return true;
}

static bool wrong_udp_checksum(struct fault_ctx *c)
{
    if (c->encap != ENCAP_ROCEV2)
        return false;
    c->tweak->udp_csum = 0xbad;
    return true;
}

static bool other_source_port(struct fault_ctx *c)
{
    if (c->encap != ENCAP_ROCEV2 || c->req->msg_tail < 3)
        return false; /* from the first packet on it would be the port of the queue pair */
    c->tweak->udp_sport_xor = 1;
    return true;
}

static bool other_dscp(struct fault_ctx *c)
{
    if (c->encap != ENCAP_ROCEV2)
        return false;
    c->tweak->tos_xor = 0x20;
    return true;
}

static bool born_congested(struct fault_ctx *c)
{
    if (c->encap != ENCAP_ROCEV2)
        return false;
    c->tweak->tos_xor = 3;
    return true;
}

static bool to_qp0(struct fault_ctx *c)
{
    c->p->bth.dqpn = 0;
    return true;
}

static bool other_pkey(struct fault_ctx *c)
{
    c->p->bth.pkey ^= 1;
    return true;
}

static bool other_migreq(struct fault_ctx *c)
{
    c->p->bth.migreq ^= 1;
    return true;
}

static bool wrong_next_header(struct fault_ctx *c)
{
    if (c->encap != ENCAP_ROCEV1)
        return false;
    c->tweak->grh_nxthdr_xor = 1;
    return true;
}

static bool wrong_link_version(struct fault_ctx *c)
{
    if (c->encap != ENCAP_IB)
        return false;
    c->tweak->lver = 1;
    return true;
}

/* --- Requests ------------------------------------------------------------------------------------------------------------------ */

static bool skipped_psn(struct fault_ctx *c)
{
    if (c->repeat || !is_rc(c))
        return false;
    c->p->bth.psn = psn_add(c->p->bth.psn, 1);
    return true;
}

/* A Middle or plain Last of the other operation. */
static bool other_operation(struct fault_ctx *c)
{
    static const uint8_t swap[32] = {[OP_SEND_MIDDLE] = OP_WRITE_MIDDLE, [OP_SEND_LAST] = OP_WRITE_LAST, [OP_WRITE_MIDDLE] = OP_SEND_MIDDLE,
                                     [OP_WRITE_LAST] = OP_SEND_LAST};

    if (!swap[op_of(c)])
        return false;
    set_opcode(c->p, OPCODE(c->p->bth.opcode >> 5, swap[op_of(c)]));
    return true;
}

static bool mixed_messages(struct fault_ctx *c)
{
    return !c->repeat && other_operation(c);
}

static bool no_first(struct fault_ctx *c)
{
    static const uint8_t later[32] = {[OP_SEND_FIRST] = OP_SEND_MIDDLE, [OP_SEND_ONLY] = OP_SEND_LAST, [OP_WRITE_FIRST] = OP_WRITE_MIDDLE,
                                      [OP_WRITE_ONLY] = OP_WRITE_LAST};

    if (c->repeat || !later[op_of(c)] || c->p->payload_len == 0 || c->p->bth.opcode >> 5 == SVC_UD)
        return false;
    set_opcode(c->p, OPCODE(c->p->bth.opcode >> 5, later[op_of(c)]));
    return true;
}

static bool is_full_packet(const struct fault_ctx *c)
{
    return !c->repeat && c->p->op->flags & (OPF_FIRST | OPF_MIDDLE) && c->p->op->flags & (OPF_SEND | OPF_WRITE);
}

static bool short_packet(struct fault_ctx *c)
{
    if (!is_full_packet(c))
        return false;
    c->p->payload_len -= 4;
    return true;
}

static bool half_pmtu(struct fault_ctx *c)
{
    if (!is_full_packet(c) || c->req->p.pmtu == 256)
        return false;
    c->p->payload_len /= 2;
    return true;
}

static bool double_pmtu(struct fault_ctx *c)
{
    if (!is_full_packet(c) || c->req->p.pmtu > 2048)
        return false;
    c->p->payload_len *= 2;
    return true;
}

static bool wrong_write_length(struct fault_ctx *c)
{
    if (c->repeat || !(c->p->op->flags & OPF_WRITE) || !(c->p->op->ext & H_RETH))
        return false;
    if (c->p->op->flags & OPF_ONLY)
        c->p->reth.dmalen += 4;
    else
        c->p->reth.dmalen = c->p->payload_len;
    return true;
}

static bool reth_too_long(struct fault_ctx *c)
{
    if (c->repeat || !(c->p->op->ext & H_RETH) || c->p->op->flags & OPF_ONLY)
        return false;
    c->p->reth.dmalen = (UINT32_C(1) << 31) + 4;
    return true;
}

static bool solicited_write(struct fault_ctx *c)
{
    if (c->p->op->flags & OPF_SEND || c->p->op->ext & H_IMMDT)
        return false;
    c->p->bth.se = 1;
    return true;
}

/* 2^23 PSNs for one READ: only at a path MTU of 256 is that not too long as well. */
static bool window_too_large(struct fault_ctx *c)
{
    if (c->repeat || op_of(c) != OP_READ_REQUEST || c->req->p.pmtu != 256)
        return false;
    c->p->reth.dmalen = UINT32_C(1) << 31;
    return true;
}

static bool changed_repeat(struct fault_ctx *c)
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

/* The opcode promises an immediate, but neither it nor anything else follows. */
static bool missing_immediate(struct fault_ctx *c)
{
    if (!(c->p->op->ext & H_IMMDT) || op_of(c) == OP_WRITE_ONLY_IMM)
        return false;
    c->p->op = &opcode_table[OPCODE(c->p->bth.opcode >> 5, op_of(c) - 1)];
    c->p->have &= ~(uint32_t)H_IMMDT;
    c->p->payload_len = 0;
    return true;
}

static bool inside_read(struct fault_ctx *c)
{
    const struct requester *r = c->req;
    const struct req_msg *m = req_msg(r, r->msg_tail - 1);

    if (c->repeat || op_of(c) == OP_READ_REQUEST || r->msg_tail == r->msg_head || m->kind != MSG_READ || m->span < 2)
        return false;
    c->p->bth.psn = psn_add(m->psn, 1);
    return true;
}

static bool wrong_reread(struct fault_ctx *c)
{
    if (!c->repeat || op_of(c) != OP_READ_REQUEST)
        return false;
    c->p->reth.va += 8;
    return true;
}

static bool unaligned_atomic(struct fault_ctx *c)
{
    if (!(c->p->op->flags & OPF_ATOMIC_REQ))
        return false;
    c->p->atomiceth.va += 4;
    return true;
}

static bool resume_too_late(struct fault_ctx *c)
{
    if (!c->repeat || c->req->cause != WHY_SEQUENCE_NAK || c->p->bth.psn != c->req->una_hi)
        return false;
    c->p->bth.psn = psn_add(c->p->bth.psn, 1);
    return true;
}

static bool reread_too_late(struct fault_ctx *c)
{
    if (!c->repeat || c->req->cause != WHY_IMPLIED_NAK || op_of(c) != OP_READ_REQUEST || c->p->reth.dmalen <= c->req->p.pmtu)
        return false;
    c->p->bth.psn = psn_add(c->p->bth.psn, 1);
    c->p->reth.va += c->req->p.pmtu;
    c->p->reth.dmalen -= c->req->p.pmtu;
    return true;
}

static bool wrong_qkey(struct fault_ctx *c)
{
    if (!(c->p->op->ext & H_DETH))
        return false;
    c->p->deth.qkey ^= 1;
    return true;
}

static bool unannounced_qkey(struct fault_ctx *c)
{
    return c->p->bth.dqpn != 1 && wrong_qkey(c);
}

/* In mid-stream, so that the packets around it show whose it is. */
static bool other_queue_pair(struct fault_ctx *c)
{
    if (c->repeat || !is_rc(c) || c->req->msg_tail < 2)
        return false;
    c->p->bth.dqpn ^= 0x800000;
    return true;
}

static bool long_datagram(struct fault_ctx *c)
{
    if (c->p->bth.opcode >> 5 != SVC_UD || c->p->bth.dqpn == 1)
        return false;
    c->p->payload_len = 4096 + 4;
    return true;
}

static bool other_service(struct fault_ctx *c)
{
    unsigned svc = c->p->bth.opcode >> 5;

    if (op_of(c) != OP_SEND_ONLY || c->repeat)
        return false;
    set_opcode(c->p, OPCODE(svc == SVC_UD ? SVC_RC : SVC_UD, OP_SEND_ONLY));
    if (svc != SVC_UD)
        c->p->deth = (struct deth){.qkey = QKEY_GSI, .srcqp = 1};
    return true;
}

static bool wrong_group(struct fault_ctx *c)
{
    if (c->p->bth.opcode >> 5 != SVC_UD || c->p->bth.dqpn == 1 || c->encap == ENCAP_IB)
        return false;
    if (c->p->bth.dqpn == PSN_MASK)
        c->tweak->mac_xor = 1;
    else
        c->p->bth.dqpn = PSN_MASK;
    return true;
}

static bool unreliable_repeat(struct fault_ctx *c)
{
    if (is_rc(c) || c->req->msg_tail == 0)
        return false;
    c->p->bth.psn = psn_add(c->p->bth.psn, PSN_MASK);
    return true;
}

/* --- Responses ----------------------------------------------------------------------------------------------------------------- */

static bool is_ack(const struct fault_ctx *c)
{
    return c->p->op->flags & OPF_ACK && c->p->aeth.syndrome >> 5 == AETH_ACK;
}

static bool is_sequence_nak(const struct fault_ctx *c)
{
    return c->p->op->flags & OPF_ACK && c->p->aeth.syndrome == SYNDROME_NAK(NAK_PSN_SEQ);
}

static bool is_fatal_nak(const struct fault_ctx *c)
{
    return c->p->op->flags & OPF_ACK && c->p->aeth.syndrome >> 5 == AETH_NAK && !is_sequence_nak(c);
}

static bool answer_out_of_order(struct fault_ctx *c)
{
    if (op_of(c) != OP_READ_RESP_MIDDLE)
        return false;
    c->p->bth.psn = psn_add(c->p->bth.psn, 1);
    return true;
}

static bool short_answer(struct fault_ctx *c)
{
    if (!(c->p->op->flags & OPF_READ_RESP) || c->p->payload_len <= 4)
        return false;
    c->p->payload_len -= 4;
    return true;
}

static bool ghost_answer(struct fault_ctx *c)
{
    if (!is_ack(c) || c->rsp->last_is_res)
        return false;
    set_opcode(c->p, OP_READ_RESP_ONLY);
    return true;
}

static bool refused_read(struct fault_ctx *c)
{
    if (!(c->p->op->flags & (OPF_READ_RESP | OPF_ATOMIC_ACK)) || !(c->p->op->flags & OPF_START))
        return false;
    set_opcode(c->p, OP_ACKNOWLEDGE);
    c->p->aeth.syndrome = SYNDROME_NAK(NAK_INVALID_REQUEST);
    c->p->payload_len = 0;
    return true;
}

static bool plain_ack_for_atomic(struct fault_ctx *c)
{
    if (!(c->p->op->flags & OPF_ATOMIC_ACK))
        return false;
    set_opcode(c->p, OP_ACKNOWLEDGE);
    return true;
}

static bool other_original(struct fault_ctx *c)
{
    const struct responder *r = c->rsp;

    if (!(c->p->op->flags & OPF_ATOMIC_ACK) || r->res_next == r->res_tail || !rsp_res(r, r->res_next)->replay)
        return false;
    c->p->atomicacketh.orig++;
    return true;
}

static bool reserved_syndrome(struct fault_ctx *c)
{
    if (!is_ack(c))
        return false;
    c->p->aeth.syndrome = AETH_RESERVED << 5;
    return true;
}

static bool ack_too_far(struct fault_ctx *c)
{
    if (!is_ack(c))
        return false;
    c->p->bth.psn = c->rsp->epsn_hi;
    return true;
}

static bool wrong_msn(struct fault_ctx *c)
{
    if (!is_ack(c))
        return false;
    c->p->aeth.msn = psn_add(c->p->aeth.msn, 1);
    return true;
}

static bool wrong_read_msn(struct fault_ctx *c)
{
    if (!(c->p->op->flags & OPF_READ_RESP) || !(c->p->op->ext & H_AETH))
        return false;
    c->p->aeth.msn = psn_add(c->p->aeth.msn, 1);
    return true;
}

static bool unannounced_credits(struct fault_ctx *c)
{
    if (!is_ack(c) || c->rsp->p.credits)
        return false;
    c->p->aeth.syndrome = SYNDROME_ACK(5);
    return true;
}

static bool wrong_nak_psn(struct fault_ctx *c)
{
    if (!is_sequence_nak(c))
        return false;
    c->p->bth.psn = psn_add(c->p->bth.psn, 1);
    return true;
}

static bool nak_twice(struct fault_ctx *c)
{
    c->again = is_sequence_nak(c);
    return c->again;
}

static bool nak_without_gap(struct fault_ctx *c)
{
    if (!is_ack(c) || c->rsp->seen_hi != c->rsp->epsn_hi)
        return false;
    c->p->aeth.syndrome = SYNDROME_NAK(NAK_PSN_SEQ);
    c->p->bth.psn = c->rsp->epsn_hi;
    return true;
}

static bool success_after_fatal(struct fault_ctx *c)
{
    c->again = c->again_as_ack = is_fatal_nak(c);
    return c->again;
}

static bool rd_nak_code(struct fault_ctx *c)
{
    if (!is_fatal_nak(c))
        return false;
    c->p->aeth.syndrome = SYNDROME_NAK(NAK_INVALID_RD_REQUEST);
    return true;
}

/* An ACK gives way to a congestion notification. */
static bool make_cnp(struct fault_ctx *c)
{
    if (!is_ack(c) || c->encap != ENCAP_ROCEV2)
        return false;
    set_opcode(c->p, OPCODE_CNP);
    c->p->bth.becn = 1;
    c->p->bth.psn = 0;
    c->p->payload_len = 16;
    return true;
}

static bool cnp_with_psn(struct fault_ctx *c)
{
    uint32_t psn = c->p->bth.psn;

    if (!make_cnp(c))
        return false;
    c->p->bth.psn = psn ? psn : 1;
    return true;
}

static bool cnp_to_stranger(struct fault_ctx *c)
{
    if (!make_cnp(c))
        return false;
    c->p->bth.dqpn ^= 0x800000;
    return true;
}

const struct fault_info fault_table[] = {
    {RULE_FMT_01, FAULT_REQUEST, "a request with a wrong ICRC", wrong_icrc},
    {RULE_FMT_01, FAULT_RESPONSE, "a response with a wrong ICRC", wrong_icrc},
    {RULE_FMT_02, FAULT_REQUEST, "a request of transport version 1", wrong_tver},
    {RULE_FMT_03, FAULT_REQUEST, "a request with an undefined opcode", undefined_opcode},
    {RULE_FMT_04, FAULT_REQUEST, "a request with a reserved bit set", reserved_bits},
    {RULE_FMT_05, FAULT_REQUEST, "a request whose pad count is wrong", wrong_pad_count},
    {RULE_FMT_05, FAULT_RESPONSE, "a READ response whose pad count is wrong", wrong_pad_count},
    {RULE_FMT_06, FAULT_RESPONSE, "an ACK with four bytes too many", trailing_bytes},
    {RULE_FMT_06, FAULT_REQUEST, "a READ or atomic request with four bytes too many", trailing_bytes},
    {RULE_FMT_07, FAULT_REQUEST, "a request whose UDP length is 4 too large", wrong_udp_length},
    {RULE_FMT_08, FAULT_REQUEST, "a request that may be fragmented", may_fragment, .mild = true},
    {RULE_FMT_09, FAULT_REQUEST, "a request with a wrong UDP checksum", wrong_udp_checksum},
    {RULE_FMT_10, FAULT_REQUEST, "a request from another UDP port", other_source_port},
    {RULE_FMT_11, FAULT_REQUEST, "a request with another DSCP", other_dscp},
    {RULE_FMT_12, FAULT_REQUEST, "a request that is marked CE by its sender", born_congested},
    {RULE_FMT_14, FAULT_REQUEST, "a request to queue pair 0", to_qp0},
    {RULE_FMT_15, FAULT_REQUEST, "a request with another P_Key", other_pkey},
    {RULE_FMT_16, FAULT_REQUEST, "a datagram with a wrong Q_Key", wrong_qkey},
    {RULE_FMT_17, FAULT_REQUEST, "a request with the other MigReq", other_migreq},
    {RULE_FMT_18, FAULT_REQUEST, "RoCEv1: a GRH whose next header is not 0x1b", wrong_next_header},
    {RULE_FMT_19, FAULT_REQUEST, "native InfiniBand: an LRH of link version 1", wrong_link_version},
    {RULE_SEQ_01, FAULT_REQUEST, "a request that skips a PSN", skipped_psn},
    {RULE_SEQ_02, FAULT_REQUEST, "a Middle or Last of the other operation inside a message", mixed_messages},
    {RULE_SEQ_03, FAULT_REQUEST, "a message without its First packet", no_first},
    {RULE_SEQ_04, FAULT_REQUEST, "a First or Middle 4 bytes shorter than the path MTU", short_packet},
    {RULE_SEQ_05, FAULT_REQUEST, "a First or Middle of half the path MTU", half_pmtu},
    {RULE_SEQ_06, FAULT_REQUEST, "a WRITE whose RETH announces another length", wrong_write_length},
    {RULE_SEQ_07, FAULT_REQUEST, "a WRITE whose RETH announces more than 2^31 bytes", reth_too_long},
    {RULE_SEQ_08, FAULT_REQUEST, "a solicited event on a plain WRITE, READ or atomic", solicited_write},
    {RULE_SEQ_10, FAULT_REQUEST, "path MTU 256: a READ that takes 2^23 PSNs", window_too_large},
    {RULE_SEQ_11, FAULT_REQUEST, "a retransmission that differs from the original", changed_repeat},
    {RULE_SEQ_12, FAULT_REQUEST, "a SEND with immediate without its immediate", missing_immediate},
    {RULE_RDA_01, FAULT_REQUEST, "a request with a PSN that belongs to a READ's responses", inside_read},
    {RULE_RDA_02, FAULT_RESPONSE, "a READ response that skips a PSN", answer_out_of_order},
    {RULE_RDA_03, FAULT_RESPONSE, "a READ response 4 bytes too short", short_answer},
    {RULE_RDA_04, FAULT_REQUEST, "a READ asked for again at the wrong address", wrong_reread},
    {RULE_RDA_05, FAULT_RESPONSE, "a READ response that nobody asked for, in place of an ACK", ghost_answer},
    {RULE_RDA_06, FAULT_CHOICE, "one READ or atomic more than the depth allows", NULL},
    {RULE_RDA_07, FAULT_RESPONSE, "NAK Invalid Request for a READ or atomic within the depth", refused_read},
    {RULE_RDA_08, FAULT_REQUEST, "an atomic at an address that is no multiple of 8", unaligned_atomic},
    {RULE_RDA_08, FAULT_RESPONSE, "a plain ACK for an atomic", plain_ack_for_atomic},
    {RULE_RDA_09, FAULT_RESPONSE, "a duplicate atomic is answered as if it had been executed twice", other_original},
    {RULE_RDA_11, FAULT_CHOICE, "an ACK before the responses of an earlier READ", NULL},
    {RULE_ACK_01, FAULT_RESPONSE, "an ACK with a reserved syndrome", reserved_syndrome},
    {RULE_ACK_02, FAULT_RESPONSE, "an ACK for a PSN that did not arrive", ack_too_far},
    {RULE_ACK_04, FAULT_CHOICE, "no ACK from one that is asked for on, until a request comes again", NULL},
    {RULE_ACK_06, FAULT_RESPONSE, "an ACK whose MSN is one too high", wrong_msn},
    {RULE_ACK_07, FAULT_RESPONSE, "a READ response whose MSN is one too high", wrong_read_msn},
    {RULE_ACK_08, FAULT_CHOICE, "a message for which there is no credit", NULL},
    {RULE_NAK_01, FAULT_RESPONSE, "a sequence NAK with the PSN after the expected one", wrong_nak_psn},
    {RULE_NAK_02, FAULT_RESPONSE, "a sequence NAK sent twice", nak_twice},
    {RULE_NAK_03, FAULT_RESPONSE, "a sequence NAK without a gap, in place of an ACK", nak_without_gap},
    {RULE_NAK_04, FAULT_RESPONSE, "an ACK after a fatal NAK", success_after_fatal},
    {RULE_NAK_06, FAULT_RESPONSE, "NAK code 4 in place of another fatal one", rd_nak_code},
    {RULE_RTX_01, FAULT_REQUEST, "resumes behind the PSN of a sequence NAK", resume_too_late},
    {RULE_RTX_02, FAULT_CHOICE, "a request sent again although nothing asks for it", NULL},
    {RULE_RTX_04, FAULT_CHOICE, "one retry more than the retry count", NULL},
    {RULE_RTX_05, FAULT_CHOICE, "a retry before the time of an RNR NAK is over", NULL},
    {RULE_RTX_08, FAULT_CHOICE, "one RNR retry more than the RNR retry count", NULL},
    {RULE_RTX_11, FAULT_REQUEST, "a READ asked for again behind the first missing PSN", reread_too_late},
    {RULE_CC_01, FAULT_RESPONSE, "a CNP with a PSN, in place of an ACK", cnp_with_psn},
    {RULE_CC_02, FAULT_RESPONSE, "a CNP to a queue pair that sent nothing, in place of an ACK", cnp_to_stranger},
    {RULE_CM_08, FAULT_REQUEST, "a First or Middle of twice the path MTU", double_pmtu},
    {RULE_CM_01, FAULT_CM, "a REP in place of the RTU", NULL},
    {RULE_CM_02, FAULT_CM, "messages of class version 1", NULL},
    {RULE_CM_03, FAULT_CM, "a REQ or REP that differs when it is sent again", NULL},
    {RULE_CM_05, FAULT_CM, "a REQ refused for a reason that is not defined", NULL},
    {RULE_CM_06, FAULT_CM, "a REP whose starting PSN is one too high", NULL},
    {RULE_CM_07, FAULT_CM, "a DREQ that names another QPN", NULL},
    {RULE_CM_07, FAULT_REQUEST, "a request to another queue pair than the REP named", other_queue_pair},
    {RULE_CM_09, FAULT_CM, "a REP that asks for an initiator depth of 255", NULL},
    {RULE_CM_13, FAULT_CM, "a DREQ without a DREP", NULL},
    {RULE_CM_15, FAULT_CM, "a SIDR_REP whose status is not defined", NULL},
    {RULE_CM_15, FAULT_REQUEST, "a datagram with another Q_Key than the SIDR_REP gave", unannounced_qkey},
    {RULE_CM_16, FAULT_CM, "a REQ whose RDMA-CM header names the other IP version", NULL},
    {RULE_CM_17, FAULT_CM, "a REQ with another local GID", NULL},
    {RULE_CM_11, FAULT_RESPONSE, "credits although flow control is off", unannounced_credits},
    {RULE_SVC_01, FAULT_REQUEST, "a datagram longer than any MTU", long_datagram},
    {RULE_SVC_02, FAULT_REQUEST, "a datagram to a connected queue pair, or the reverse", other_service},
    {RULE_SVC_03, FAULT_CHOICE, "an ACK for a UC packet", NULL},
    {RULE_SVC_05, FAULT_REQUEST, "a multicast packet to another MAC address, or to no group", wrong_group},
    {RULE_SVC_06, FAULT_REQUEST, "a UC or UD packet with the PSN of the one before", unreliable_repeat},
};
const unsigned fault_count = ARRAY_LEN(fault_table);

const char *fault_whose(enum rule rule)
{
    switch (rule_table[rule].fault) {
    case F_CM:
        return "the connection manager's";
    case F_REQ:
        return "a requester's";
    case F_RSP:
        return "a responder's";
    default:
        return "either end's";
    }
}

const struct fault_info *fault_find(enum rule rule)
{
    for (unsigned i = 0; i < fault_count; i++)
        if (fault_table[i].rule == rule)
            return &fault_table[i];
    return NULL;
}
