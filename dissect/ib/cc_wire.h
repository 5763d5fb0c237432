/* layer 1 (wire): what congestion control of ours puts on the wire where nothing is published: the fair rate that a
 * switch tells (RoCC), the bytes that a receiver grants (Shaped-Quota), and telemetry (HPCC). No device sends any of
 * them. Each begins with four bytes that say whose it is. */
#ifndef RDMATRACE_DISSECT_IB_CC_WIRE_H
#define RDMATRACE_DISSECT_IB_CC_WIRE_H

#include "dissect/field.h"

struct pkt;

extern const struct hdr cc_fair_hdr, cc_quota_hdr, cc_int_hdr, int_hop_hdr;

/*
 * The fair rate of a queue, in an ICMP message of an experimental type, which a switch sends to the source of a packet
 * in the queue. The beginning of this packet follows: IP header, UDP header, BTH.
 *   | magic (4) | congestion point (4) | rate (4) |
 */
#define CC_FAIR_ICMP  253 /* RFC 4727: experiments; code 0 */
#define CC_FAIR_ICMP6 200 /* RFC 4443: private experimentation */
#define CC_FAIR_MAGIC UINT32_C(0x726d4652)
#define CC_FAIR_LEN   12
#define CC_FAIR_FIELDS(U, A, V)                                                                                        \
    U(uint32_t, magic, 0, 32, FT_UINT32, BASE_HEX, NULL, "rdma.fair.magic", "Magic", "0x726d4652: rdmagen's.")         \
    U(uint32_t, cp, 32, 32, FT_UINT32, BASE_DEC, NULL, "rdma.fair.cp", "Congestion Point",                             \
      "Number of the queue in the network.")                                                                           \
    U(uint32_t, rate, 64, 32, FT_UINT32, BASE_DEC, NULL, "rdma.fair.rate", "Rate", "Fair rate of a flow, kbit/s.")
HDR_STRUCT(cc_fair, CC_FAIR_FIELDS)

/*
 * What a sender asks for, and what its receiver grants: the payload of a packet with this manufacturer specific opcode,
 * whose BTH names the queue pair that is told. Byte counts are of frames, in all since the connection began.
 *   | magic (4) | kind (1) | reserved (3) | bytes (8) | sent (8) | quota (8) |
 */
#define CC_QUOTA_OPCODE 0xff
#define CC_QUOTA_MAGIC  UINT32_C(0x726d5351)
#define CC_QUOTA_LEN    32
enum {
    CC_QUOTA_ASK = 1,
    CC_QUOTA_GRANT = 2,
};
extern const struct vdesc cc_quota_kinds;
#define CC_QUOTA_FIELDS(U, A, V)                                                                                       \
    U(uint32_t, magic, 0, 32, FT_UINT32, BASE_HEX, NULL, "rdma.quota.magic", "Magic", "0x726d5351: rdmagen's.")        \
    U(uint8_t, kind, 32, 8, FT_UINT8, BASE_DEC, &cc_quota_kinds, "rdma.quota.kind", "Kind", "Asks or grants.")         \
    U(uint32_t, resv, 40, 24, FT_UINT24, BASE_HEX, NULL, "rdma.quota.reserved", "Reserved", "Zero.")                   \
    U(uint64_t, bytes, 64, 64, FT_UINT64, BASE_DEC, NULL, "rdma.quota.bytes", "Bytes",                                 \
      "Asked for, or granted, beyond the first quota.")                                                                \
    U(uint64_t, sent, 128, 64, FT_UINT64, BASE_DEC, NULL, "rdma.quota.sent", "Sent",                                   \
      "What the asking end has sent before; of a grant: 0.")                                                           \
    U(uint64_t, quota, 192, 64, FT_UINT64, BASE_DEC, NULL, "rdma.quota.quota", "Quota",                                \
      "What the asking end sends unasked at its start; of a grant: 0.")
HDR_STRUCT(cc_quota, CC_QUOTA_FIELDS)

/*
 * Telemetry, behind the ICRC in the frame, which it does not cover: a sender appends an empty one, each switch appends
 * a hop, and the receiver returns the hops behind an ACK.
 *   | magic (4) | kind (1) | hops (1) | reserved (2) | hops: | rate (4) | time (4) | sent (4) | queue (4) | ...
 */
#define CC_INT_MAGIC UINT32_C(0x726d494e)
#define CC_INT_LEN   8
#define INT_HOP_LEN  16
#define INT_HOPS_MAX 5
enum {
    CC_INT_COLLECT = 1,
    CC_INT_RETURN = 2,
};
extern const struct vdesc cc_int_kinds;
#define CC_INT_FIELDS(U, A, V)                                                                                         \
    U(uint32_t, magic, 0, 32, FT_UINT32, BASE_HEX, NULL, "rdma.int.magic", "Magic", "0x726d494e: rdmagen's.")          \
    U(uint8_t, kind, 32, 8, FT_UINT8, BASE_DEC, &cc_int_kinds, "rdma.int.kind", "Kind", "Collected or returned.")      \
    U(uint8_t, hops, 40, 8, FT_UINT8, BASE_DEC, NULL, "rdma.int.hops", "Hops", "Switches that have written.")          \
    U(uint16_t, resv, 48, 16, FT_UINT16, BASE_HEX, NULL, "rdma.int.reserved", "Reserved", "Zero.")
HDR_STRUCT(cc_int, CC_INT_FIELDS)
#define INT_HOP_FIELDS(U, A, V)                                                                                        \
    U(uint32_t, rate, 0, 32, FT_UINT32, BASE_DEC, NULL, "rdma.int.rate", "Rate", "Of the link, Mbit/s.")               \
    U(uint32_t, time, 32, 32, FT_UINT32, BASE_DEC, NULL, "rdma.int.time", "Time",                                      \
      "When the packet left, ns by the switch's clock, modulo 2^32.")                                                  \
    U(uint32_t, sent, 64, 32, FT_UINT32, BASE_DEC, NULL, "rdma.int.sent", "Sent",                                      \
      "Bytes of the line that the port has used before, those between frames among them, modulo 2^32.")                \
    U(uint32_t, queue, 96, 32, FT_UINT32, BASE_DEC, NULL, "rdma.int.queue", "Queue", "Bytes left in the queue.")
HDR_STRUCT(int_hop, INT_HOP_FIELDS)

/* True if the ICMP message at `off`, of a type above, is a fair rate: its layer is added. */
bool cc_fair_decode(struct pkt *p, uint32_t off);
/* Append what the fair rate at `q` says. */
void cc_fair_info(struct buf *b, const uint8_t *q);
/* Read the payload of a packet with CC_QUOTA_OPCODE; false: it is none of ours. */
bool cc_quota_of(struct cc_quota *m, const struct pkt *p);
/* The same for its layer, which is added. */
bool cc_quota_decode(struct pkt *p);
/* What follows the packet in the frame, if it is telemetry. */
void cc_int_decode(struct pkt *p);

/* The telemetry at `q`, of which `len` bytes were captured; false: it is none, or it was cut. */
bool cc_telemetry_get(struct cc_int *t, struct int_hop hop[INT_HOPS_MAX], const uint8_t *q, uint32_t len);

#endif
