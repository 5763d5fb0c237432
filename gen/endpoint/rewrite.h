/* layer 3 (endpoint): changing frames in transit: congestion marks, named fields, damage. */
#ifndef RDMATRACE_GEN_ENDPOINT_REWRITE_H
#define RDMATRACE_GEN_ENDPOINT_REWRITE_H

#include "dissect/field.h"
#include "gen/endpoint/policy.h"

struct frame;
struct pkt;

/* A header field to change, resolved once. */
struct frame_field {
    const struct hdr *hdr;
    const struct field *field;
};

/* Resolve a field by name (`len` bytes); false: unknown, or not writable. */
bool frame_field_find(struct frame_field *f, const char *name, size_t len);
/* Write the low bits of `value` to the first header with the field; false if the frame has none. Checksums are not
 * updated. */
bool frame_field_set(const struct frame_field *f, uint8_t *data, uint32_t len, uint16_t linktype, uint64_t value);
/* Read the field; false if the frame does not have it. */
bool frame_field_get(const struct frame_field *f, const uint8_t *data, uint32_t len, uint16_t linktype,
                     uint64_t *value);
/* Decode a whole frame, without verifying it. `f` must outlive `p`. */
void frame_decode(struct pkt *p, struct frame *f, const uint8_t *data, uint32_t len, uint16_t linktype);

/* Mark congestion: ECN CE in IPv4, IPv6 or GRH (unless `if_capable` and the packet is not ECN capable),
 * FECN on native InfiniBand without GRH. Checksums are updated. Returns true if the frame is marked now. */
bool frame_mark_ce(uint8_t *data, uint32_t len, uint16_t linktype, bool if_capable);
/* Recalculate the checksum of the IPv4 header. */
void frame_fix_ip(uint8_t *data, uint32_t len, uint16_t linktype);
/* Calculate the TCP, UDP or ICMP checksum in an Ethernet frame, as checksum offload does. Fragments, and IPv6 with
 * extension headers, are left alone. */
void frame_fix_l4(uint8_t *data, uint32_t len);
/* Recalculate the IPv4 checksum, ICRC and VCRC. */
void frame_fix(uint8_t *data, uint32_t len, uint16_t linktype);

/* Make a RoCE or InfiniBand packet one of another opcode of its service, `opcode` the lower five bits: extended headers
 * that both have stay, others are zero; `syndrome`: of the AETH if it has one, negative: that of before; the payload
 * stays if both opcodes have one. With OPCODE_CNP a packet of RoCEv2 becomes a CNP to its queue pair, of PSN 0, with
 * BECN. Lengths and checksums are set right. *len: bytes of the frame, afterwards at most `cap`. False: the frame is no
 * such packet, or in a tunnel, its service has no such opcode, or `cap` is too small. */
bool frame_retype(uint8_t *data, uint32_t *len, uint32_t cap, uint16_t linktype, uint8_t opcode, int syndrome);

/* Which bytes to damage. */
enum frame_damage {
    DAMAGE_PAYLOAD, /* one bit of the payload; of the transport headers if there is none */
    DAMAGE_ICRC,    /* one bit of the ICRC */
    DAMAGE_FIELD,   /* the lowest bit of a named field */
};
/* Flip one bit, chosen by `r`; the ICRC is then wrong. False: the frame has no such bytes. */
bool frame_damage(uint8_t *data, uint32_t len, uint16_t linktype, enum frame_damage what, const struct frame_field *f,
                  struct prng *r);

#endif
