/* layer 1 (wire): Ultra Ethernet Transport over UDP: packet delivery (PDS) and what follows it (SES), big-endian.
 *
 * The specification was not at hand. What stands here is what two independent sources agree on: the headers of xdp2
 * (github.com/xdp2-dev/xdp2) and of the reference provider (github.com/ultraethernet/uet-ref-prov). No packet of a real
 * device was seen. Of encrypted packets (TSS) only the header is shown. Names of
 * fields are those of Wireshark's packet-uet.c, which no release has so far, where it reads the same; bytes that do not
 * fit are left as they are. */
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

/* The packet at byte `off`, behind a UDP header. */
void uet_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);

/* clang-format off */
#define UET_HDRS(X) X(uet_pds) X(uet_small) X(uet_medium) X(uet_request) X(uet_response)
/* clang-format on */
#define UET_DECLARE(name) extern const struct hdr name##_hdr;
UET_HDRS(UET_DECLARE)

#endif
