/* layer 3 (endpoint): the functions of the table of faults: how each fault changes a packet. */
#ifndef RDMATRACE_GEN_ENDPOINT_FAULT_CHANGES_H
#define RDMATRACE_GEN_ENDPOINT_FAULT_CHANGES_H

#include "dissect/pkt.h"
#include "gen/endpoint/faults.h"

/* Each changes the packet or the tweak as its row of fault_table says; false: the packet does not fit and is
 * unchanged. */

/* Of any packet. */
bool fault_wrong_icrc(struct fault_ctx *c);
bool fault_wrong_tver(struct fault_ctx *c);
bool fault_undefined_opcode(struct fault_ctx *c);
bool fault_reserved_bits(struct fault_ctx *c);
bool fault_wrong_pad_count(struct fault_ctx *c);
bool fault_trailing_bytes(struct fault_ctx *c);
bool fault_wrong_udp_length(struct fault_ctx *c);
bool fault_may_fragment(struct fault_ctx *c);
bool fault_wrong_udp_checksum(struct fault_ctx *c);
bool fault_other_source_port(struct fault_ctx *c);
bool fault_other_dscp(struct fault_ctx *c);
bool fault_born_congested(struct fault_ctx *c);
bool fault_to_qp0(struct fault_ctx *c);
bool fault_other_pkey(struct fault_ctx *c);
bool fault_other_migreq(struct fault_ctx *c);
bool fault_wrong_next_header(struct fault_ctx *c);
bool fault_wrong_link_version(struct fault_ctx *c);
bool fault_ttl_0(struct fault_ctx *c);

/* Of requests. */
bool fault_skipped_psn(struct fault_ctx *c);
bool fault_mixed_messages(struct fault_ctx *c);
bool fault_no_first(struct fault_ctx *c);
bool fault_short_packet(struct fault_ctx *c);
bool fault_half_pmtu(struct fault_ctx *c);
bool fault_double_pmtu(struct fault_ctx *c);
bool fault_wrong_write_length(struct fault_ctx *c);
bool fault_reth_too_long(struct fault_ctx *c);
bool fault_solicited_write(struct fault_ctx *c);
bool fault_window_too_large(struct fault_ctx *c);
bool fault_changed_repeat(struct fault_ctx *c);
bool fault_changed_payload(struct fault_ctx *c);
bool fault_wrapping_range(struct fault_ctx *c);
bool fault_missing_immediate(struct fault_ctx *c);
bool fault_unaligned_atomic_write(struct fault_ctx *c);
bool fault_plain_ack_for_place(struct fault_ctx *c);
bool fault_missing_xrceth(struct fault_ctx *c);
bool fault_inside_read(struct fault_ctx *c);
bool fault_wrong_reread(struct fault_ctx *c);
bool fault_unaligned_atomic(struct fault_ctx *c);
bool fault_resume_too_late(struct fault_ctx *c);
bool fault_reread_too_late(struct fault_ctx *c);
bool fault_wrong_qkey(struct fault_ctx *c);
bool fault_unannounced_qkey(struct fault_ctx *c);
bool fault_other_queue_pair(struct fault_ctx *c);
bool fault_long_datagram(struct fault_ctx *c);
bool fault_other_service(struct fault_ctx *c);
bool fault_wrong_group(struct fault_ctx *c);
bool fault_unreliable_repeat(struct fault_ctx *c);

/* Of responses. */
bool fault_answer_out_of_order(struct fault_ctx *c);
bool fault_short_answer(struct fault_ctx *c);
bool fault_ghost_answer(struct fault_ctx *c);
bool fault_refused_read(struct fault_ctx *c);
bool fault_plain_ack_for_atomic(struct fault_ctx *c);
bool fault_other_original(struct fault_ctx *c);
bool fault_reserved_syndrome(struct fault_ctx *c);
bool fault_ack_too_far(struct fault_ctx *c);
bool fault_wrong_msn(struct fault_ctx *c);
bool fault_wrong_read_msn(struct fault_ctx *c);
bool fault_unannounced_credits(struct fault_ctx *c);
bool fault_ack_that_asks(struct fault_ctx *c);
bool fault_wrong_nak_psn(struct fault_ctx *c);
bool fault_nak_twice(struct fault_ctx *c);
bool fault_nak_without_gap(struct fault_ctx *c);
bool fault_nak_of_nothing(struct fault_ctx *c);
bool fault_other_roce(struct fault_ctx *c);
bool fault_other_address(struct fault_ctx *c);
bool fault_success_after_fatal(struct fault_ctx *c);
bool fault_success_after_rnr(struct fault_ctx *c);
bool fault_rd_nak_code(struct fault_ctx *c);
bool fault_cnp_with_psn(struct fault_ctx *c);
bool fault_cnp_to_idle_qp(struct fault_ctx *c);

/* The operation of the packet: the lower five bits of its opcode. */
static inline unsigned fault_op(const struct fault_ctx *c)
{
    return c->p->bth.opcode & 31;
}

/* Give the packet another opcode; the headers follow from it. */
static inline void fault_set_opcode(struct pkt *p, uint8_t opcode)
{
    p->bth.opcode = opcode;
    p->op = &opcode_table[opcode];
    p->have = H_BTH | p->op->ext;
}
/* Likewise within its service. */
static inline void fault_set_operation(struct pkt *p, uint8_t operation)
{
    fault_set_opcode(p, OPCODE(p->bth.opcode >> 5, operation));
}

/* Of messages of the connection manager. */
bool fault_cm_out_of_order(struct cm_msg *m);
bool fault_cm_bad_version(struct cm_msg *m);
bool fault_cm_changed_retry(struct cm_msg *m);
bool fault_cm_bad_reason(struct cm_msg *m);
bool fault_cm_wrong_psn(struct cm_msg *m);
bool fault_cm_wrong_qpn(struct cm_msg *m);
bool fault_cm_too_deep(struct cm_msg *m);
bool fault_cm_wrong_port(struct cm_msg *m);
bool fault_cm_wrong_gid(struct cm_msg *m);
bool fault_cm_wrong_mtu(struct cm_msg *m);
bool fault_cm_wrong_sidr(struct cm_msg *m);
bool fault_cm_wrong_apr(struct cm_msg *m);
bool fault_cm_no_drep(struct cm_msg *m);

#endif
