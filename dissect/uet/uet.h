/* layer 1 (wire): Ultra Ethernet Transport over UDP: packet delivery (PDS) and what follows it (SES), big-endian.
 *
 * The specification was not at hand. What stands here is what two independent sources agree on: the headers of xdp2
 * (github.com/xdp2-dev/xdp2) and of the reference provider (github.com/ultraethernet/uet-ref-prov). No packet of a real
 * device was seen. Of encrypted packets (TSS) only the header is shown. Names of
 * fields are those of Wireshark's packet-uet.c, which no release has so far, where it reads the same; bytes that do not
 * fit are left as they are.
 *
 * Behind a request the headers of atomics are those of both sources. That of a rendezvous is that of the reference
 * provider: its length, its offset and key are those of Wireshark, too, its indices those of xdp2. */
#ifndef RDMATRACE_DISSECT_UET_UET_H
#define RDMATRACE_DISSECT_UET_UET_H

#include "dissect/pkt.h"

struct decode_opts;

#define UET_PORT      4793  /* UDP destination port */
#define UET_PORT_PROV 49150 /* that of the reference provider */

/* The prologue, two bytes, then fields that depend on the type:
 *   0       5           9            16
 *   +-------+-----------+------------+
 *   | type  |next header|   flags    |
 *   +-------+-----------+------------+ */
enum uet_type {
    UET_TSS = 1,
    UET_RUD_REQ = 2,
    UET_ROD_REQ = 3,
    UET_RUDI_REQ = 4,
    UET_RUDI_RESP = 5,
    UET_UUD_REQ = 6,
    UET_ACK = 7,
    UET_ACK_CC = 8,
    UET_ACK_CCX = 9,
    UET_NACK = 10,
    UET_CONTROL = 11,
    UET_NACK_CCX = 12,
    UET_RUD_CC_REQ = 13,
    UET_ROD_CC_REQ = 14,
};
/* Next headers. */
enum { UET_NONE, UET_SMALL, UET_MEDIUM, UET_STANDARD, UET_RESPONSE, UET_RESPONSE_DATA, UET_RESPONSE_SMALL };

/* Operations that a request asks for, with more than its header. */
enum {
    UET_OP_ATOMIC = 0x3,
    UET_OP_FETCHING_ATOMIC = 0x4,
    UET_OP_RENDEZVOUS = 0x6,
    UET_OP_DEFERRABLE = 0x8,
    UET_OP_TAGGED_RENDEZVOUS = 0xa,
    UET_OP_TAGGED_DEFERRABLE = 0xb,
    UET_OP_READY_TO_RESTART = 0xc,
    UET_OP_TSEND_ATOMIC = 0xd,
    UET_OP_TSEND_FETCHING_ATOMIC = 0xe,
};

/* The packet at byte `off`, behind a UDP header. */
void uet_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);

/* Define header `id`: its fields are `id`_fields, it has `bytes` bytes, and `write` adds to the column (NULL: nothing).
 */
#define UET_HDR(id, filter_name, title, bytes, write)                                                                  \
    const struct hdr id##_hdr = {.abbrev = filter_name,                                                                \
                                 .name = title,                                                                        \
                                 .proto = "uet",                                                                       \
                                 .column = "UET",                                                                      \
                                 .fields = id##_fields,                                                                \
                                 .nfields = ARRAY_LEN(id##_fields),                                                    \
                                 .len = bytes,                                                                         \
                                 .type = FT_NONE,                                                                      \
                                 .info = write}

/* clang-format off */
#define UET_HDRS(X) \
    X(uet_pds) X(uet_small) X(uet_medium) X(uet_request) X(uet_response) X(uet_atomic) X(uet_swap) X(uet_rendezvous)
/* clang-format on */
#define UET_DECLARE(name) extern const struct hdr name##_hdr;
UET_HDRS(UET_DECLARE)

/* uet_ext.c: the header behind a (`standard`) request for `opcode`, of which `len` bytes at `b` are there; NULL: none.
 */
const struct hdr *uet_ext_hdr(unsigned opcode, bool standard, const uint8_t *b, uint32_t len);
/* " sum of int32" */
void uet_atomic_text(struct buf *b, const uint8_t *ext);

#endif
