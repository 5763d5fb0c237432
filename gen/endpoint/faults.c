/* layer 3 (endpoint): the table of faults. */
#include "gen/endpoint/faults.h"

#include "gen/endpoint/fault_changes.h"

const struct fault_info fault_table[] = {
    {RULE_FMT_01, FAULT_REQUEST, "a request with a wrong ICRC", fault_wrong_icrc},
    {RULE_FMT_01, FAULT_RESPONSE, "a response with a wrong ICRC", fault_wrong_icrc},
    {RULE_FMT_02, FAULT_REQUEST, "a request of transport version 1", fault_wrong_tver},
    {RULE_FMT_03, FAULT_REQUEST, "a request with an undefined opcode", fault_undefined_opcode},
    {RULE_FMT_04, FAULT_REQUEST, "a request with a reserved bit set", fault_reserved_bits},
    {RULE_FMT_05, FAULT_REQUEST, "a request whose pad count is wrong", fault_wrong_pad_count},
    {RULE_FMT_05, FAULT_RESPONSE, "a READ response whose pad count is wrong", fault_wrong_pad_count},
    {RULE_FMT_06, FAULT_RESPONSE, "an ACK with four bytes too many", fault_trailing_bytes},
    {RULE_FMT_06, FAULT_REQUEST, "a READ or atomic request with four bytes too many", fault_trailing_bytes},
    {RULE_FMT_07, FAULT_REQUEST, "a request whose UDP length is 4 too large", fault_wrong_udp_length},
    {RULE_FMT_08, FAULT_REQUEST, "a request that may be fragmented", fault_may_fragment, .mild = true},
    {RULE_FMT_09, FAULT_REQUEST, "a request with a wrong UDP checksum", fault_wrong_udp_checksum},
    {RULE_FMT_10, FAULT_REQUEST, "a request from another UDP port", fault_other_source_port},
    {RULE_FMT_11, FAULT_REQUEST, "a request with another DSCP", fault_other_dscp},
    {RULE_FMT_12, FAULT_REQUEST, "a request that is marked CE by its sender", fault_born_congested},
    {RULE_FMT_14, FAULT_REQUEST, "a request to queue pair 0", fault_to_qp0},
    {RULE_FMT_15, FAULT_REQUEST, "a request with another P_Key", fault_other_pkey},
    {RULE_FMT_16, FAULT_REQUEST, "a datagram with a wrong Q_Key", fault_wrong_qkey},
    {RULE_FMT_17, FAULT_REQUEST, "a request with the other MigReq", fault_other_migreq},
    {RULE_FMT_18, FAULT_REQUEST, "RoCEv1: a GRH whose next header is not 0x1b", fault_wrong_next_header},
    {RULE_FMT_19, FAULT_REQUEST, "native InfiniBand: an LRH of link version 1", fault_wrong_link_version},
    {RULE_FMT_21, FAULT_REQUEST, "a request with TTL or hop limit 0", fault_ttl_0},
    {RULE_FMT_24, FAULT_RESPONSE, "an ACK by the other version of RoCE", fault_other_roce},
    {RULE_FMT_25, FAULT_RESPONSE, "an ACK from another address", fault_other_address},
    {RULE_SEQ_01, FAULT_REQUEST, "a request that skips a PSN", fault_skipped_psn},
    {RULE_SEQ_02, FAULT_REQUEST, "a Middle or Last of the other operation inside a message", fault_mixed_messages},
    {RULE_SEQ_03, FAULT_REQUEST, "a message without its First packet", fault_no_first},
    {RULE_SEQ_04, FAULT_REQUEST, "a First or Middle 4 bytes shorter than the path MTU", fault_short_packet},
    {RULE_SEQ_05, FAULT_REQUEST, "a First or Middle of half the path MTU", fault_half_pmtu},
    {RULE_SEQ_06, FAULT_REQUEST, "a WRITE whose RETH announces another length", fault_wrong_write_length},
    {RULE_SEQ_07, FAULT_REQUEST, "a WRITE whose RETH announces more than 2^31 bytes", fault_reth_too_long},
    {RULE_SEQ_08, FAULT_REQUEST, "a solicited event on a plain WRITE, READ or atomic", fault_solicited_write},
    {RULE_SEQ_10, FAULT_REQUEST, "path MTU 256: a READ that takes 2^23 PSNs", fault_window_too_large},
    {RULE_SEQ_11, FAULT_REQUEST, "a retransmission that differs from the original", fault_changed_repeat},
    {RULE_SEQ_12, FAULT_REQUEST, "a SEND with immediate without its immediate", fault_missing_immediate},
    {RULE_SEQ_13, FAULT_REQUEST, "a retransmission with another payload", fault_changed_payload},
    {RULE_SEQ_14, FAULT_RESPONSE, "an ACK with AckReq", fault_ack_that_asks},
    {RULE_RDA_01, FAULT_REQUEST, "a request with a PSN that belongs to a READ's responses", fault_inside_read},
    {RULE_RDA_02, FAULT_RESPONSE, "a READ response that skips a PSN", fault_answer_out_of_order},
    {RULE_RDA_03, FAULT_RESPONSE, "a READ response 4 bytes too short", fault_short_answer},
    {RULE_RDA_04, FAULT_REQUEST, "a READ asked for again at the wrong address", fault_wrong_reread},
    {RULE_RDA_05, FAULT_RESPONSE, "a READ response without a READ request, in place of an ACK", fault_ghost_answer},
    {RULE_RDA_06, FAULT_CHOICE, "one READ or atomic more than the depth allows", .choice = CHOICE_EXTRA_READ},
    {RULE_RDA_07, FAULT_RESPONSE, "NAK Invalid Request for a READ or atomic within the depth", fault_refused_read},
    {RULE_RDA_08, FAULT_REQUEST, "an atomic at an address that is no multiple of 8", fault_unaligned_atomic},
    {RULE_RDA_08, FAULT_RESPONSE, "a plain ACK for an atomic", fault_plain_ack_for_atomic},
    {RULE_RDA_09, FAULT_RESPONSE, "a duplicate atomic is answered as if it had been executed twice",
     fault_other_original},
    {RULE_RDA_11, FAULT_CHOICE, "an ACK before the responses of an earlier READ", .choice = CHOICE_ACK_BEFORE_READ},
    {RULE_RDA_12, FAULT_REQUEST, "an ATOMIC WRITE at an address that is no multiple of 8",
     fault_unaligned_atomic_write},
    {RULE_RDA_12, FAULT_RESPONSE, "a plain ACK for an ATOMIC WRITE or FLUSH", fault_plain_ack_for_place},
    {RULE_RDA_14, FAULT_REQUEST, "a READ or WRITE whose address range ends behind 2^64", fault_wrapping_range},
    {RULE_ACK_01, FAULT_RESPONSE, "an ACK with a reserved syndrome", fault_reserved_syndrome},
    {RULE_ACK_02, FAULT_RESPONSE, "an ACK for a PSN that did not arrive", fault_ack_too_far},
    {RULE_ACK_04, FAULT_CHOICE,
     "no answer from an ACK that is asked for on, until the requester has waited too long and tried again",
     .choice = CHOICE_MUTE},
    {RULE_ACK_06, FAULT_RESPONSE, "an ACK whose MSN is one too high", fault_wrong_msn},
    {RULE_ACK_07, FAULT_RESPONSE, "a READ response whose MSN is one too high", fault_wrong_read_msn},
    {RULE_ACK_08, FAULT_CHOICE, "a message for which there is no credit", .choice = CHOICE_NO_CREDIT},
    {RULE_NAK_01, FAULT_RESPONSE, "a sequence NAK with the PSN after the expected one", fault_wrong_nak_psn},
    {RULE_NAK_02, FAULT_RESPONSE, "a sequence NAK sent twice", fault_nak_twice},
    {RULE_NAK_03, FAULT_RESPONSE, "a sequence NAK without a gap, in place of an ACK", fault_nak_without_gap},
    {RULE_NAK_04, FAULT_RESPONSE, "an ACK after a fatal NAK", fault_success_after_fatal},
    {RULE_NAK_06, FAULT_RESPONSE, "NAK code 4 in place of another fatal one", fault_rd_nak_code},
    {RULE_NAK_08, FAULT_CHOICE, "an empty SEND after a fatal NAK", .choice = CHOICE_AFTER_FATAL},
    {RULE_NAK_09, FAULT_RESPONSE, "an RNR NAK of a PSN that was not sent, in place of an ACK", fault_nak_of_nothing},
    {RULE_NAK_10, FAULT_CHOICE, "no sequence NAK for a gap", .choice = CHOICE_NO_NAK},
    {RULE_NAK_11, FAULT_RESPONSE, "an ACK after an RNR NAK, although the request was not sent again",
     fault_success_after_rnr},
    {RULE_RTX_01, FAULT_REQUEST, "resumes behind the PSN of a sequence NAK", fault_resume_too_late},
    {RULE_RTX_02, FAULT_CHOICE, "a request sent again although nothing asks for it", .choice = CHOICE_SPURIOUS},
    {RULE_RTX_04, FAULT_CHOICE, "one retry more than the retry count", .choice = CHOICE_EXTRA_RETRY},
    {RULE_RTX_05, FAULT_CHOICE, "a retry before the time of an RNR NAK is over", .choice = CHOICE_EARLY_RNR_RETRY},
    {RULE_RTX_08, FAULT_CHOICE, "one RNR retry more than the RNR retry count", .choice = CHOICE_EXTRA_RNR_RETRY},
    {RULE_RTX_11, FAULT_REQUEST, "a READ asked for again behind the first missing PSN", fault_reread_too_late},
    {RULE_RTX_15, FAULT_CHOICE, "a new request while an RNR NAK is waited out", .choice = CHOICE_IN_RNR_WAIT},
    {RULE_CC_01, FAULT_RESPONSE, "a CNP with a PSN, in place of an ACK", fault_cnp_with_psn},
    {RULE_CC_02, FAULT_RESPONSE, "a CNP to a queue pair that sent nothing, in place of an ACK", fault_cnp_to_idle_qp},
    {RULE_CC_03, FAULT_CHOICE, "no CNPs for packets marked CE", .choice = CHOICE_NO_CNP},
    {RULE_CC_04, FAULT_CHOICE, "a CNP for each packet marked CE, whatever the interval", .choice = CHOICE_CNP_EACH},
    {RULE_CM_08, FAULT_REQUEST, "a First or Middle of twice the path MTU", fault_double_pmtu},
    {RULE_CM_01, FAULT_CM, "a REP in place of the RTU", .change_cm = fault_cm_out_of_order},
    {RULE_CM_02, FAULT_CM, "messages of class version 1", .change_cm = fault_cm_bad_version},
    {RULE_CM_03, FAULT_CM, "a REQ or REP that differs when it is sent again", .change_cm = fault_cm_changed_retry,
     .repeats = true},
    {RULE_CM_05, FAULT_CM, "a REQ refused for a reason that is not defined", .change_cm = fault_cm_bad_reason},
    {RULE_CM_06, FAULT_CM, "a REP whose starting PSN is one too high", .change_cm = fault_cm_wrong_psn},
    {RULE_CM_07, FAULT_CM, "a DREQ that names another QPN", .change_cm = fault_cm_wrong_qpn},
    {RULE_CM_07, FAULT_REQUEST, "a request to another queue pair than the REP named", fault_other_queue_pair},
    {RULE_CM_09, FAULT_CM, "a REP that asks for an initiator depth of 255", .change_cm = fault_cm_too_deep},
    {RULE_CM_13, FAULT_CM, "a DREQ without a DREP", .change_cm = fault_cm_no_drep, .unsent = true},
    {RULE_CM_14, FAULT_CM, "an APR whose status is not defined", .change_cm = fault_cm_wrong_apr},
    {RULE_CM_15, FAULT_CM, "a SIDR_REP whose status is not defined", .change_cm = fault_cm_wrong_sidr},
    {RULE_CM_15, FAULT_REQUEST, "a datagram with another Q_Key than the SIDR_REP gave", fault_unannounced_qkey},
    {RULE_CM_16, FAULT_CM, "a REQ whose RDMA-CM header names the other IP version", .change_cm = fault_cm_wrong_port},
    {RULE_CM_17, FAULT_CM, "a REQ with another local GID", .change_cm = fault_cm_wrong_gid},
    {RULE_CM_18, FAULT_CM, "a REQ with path MTU code 0", .change_cm = fault_cm_wrong_mtu},
    {RULE_CM_11, FAULT_RESPONSE, "credits although flow control is off", fault_unannounced_credits},
    {RULE_SVC_01, FAULT_REQUEST, "a datagram longer than any MTU", fault_long_datagram},
    {RULE_SVC_02, FAULT_REQUEST, "a datagram to a connected queue pair, or the reverse", fault_other_service},
    {RULE_SVC_03, FAULT_CHOICE, "an ACK for a UC packet", .choice = CHOICE_UC_ACK},
    {RULE_SVC_04, FAULT_REQUEST, "an XRC request without its XRCETH", fault_missing_xrceth},
    {RULE_SVC_05, FAULT_REQUEST, "a multicast packet to another MAC address, or to no group", fault_wrong_group},
    {RULE_SVC_06, FAULT_REQUEST, "a UC or UD packet with the PSN of the one before", fault_unreliable_repeat},
    {RULE_SEC_02, FAULT_CHOICE, "80 requests of PSNs that are far away, between two of its own",
     .choice = CHOICE_SWEEP},
    {RULE_SEC_03, FAULT_CHOICE, "another packet of the same PSN, from further away, before one of its own",
     .choice = CHOICE_FORGE},
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
