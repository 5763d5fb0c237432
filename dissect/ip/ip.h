/* layer 1 (wire): IPv4 and IPv6. */
#ifndef RDMATRACE_DISSECT_IP_IP_H
#define RDMATRACE_DISSECT_IP_IP_H

#include "dissect/field.h"

/* The protocol behind a header (ip.proto, ipv6.nxt). */
#define IPPROTO_ICMP_  1
#define IPPROTO_IPIP_  4
#define IPPROTO_UDP_   17
#define IPPROTO_ICMP6_ 58

#define ECN_CE 3 /* congestion experienced */

extern const struct vdesc ipproto_desc, ecn_desc;

/*
 * IPv4 header, 20 bytes and options (RFC 791; DSCP and ECN: RFC 2474, RFC 3168).
 *   0       4       8        14   16                               32
 *   +-------+-------+--------+----+---------------------------------+
 *   |version|  IHL  |  DSCP  |ECN |          total length           |
 *   +-------+-------+--------+----+--+------------------------------+
 *   |      identification         |r DF MF|  fragment offset (13)   |
 *   +---------------+-------------+-------+-------------------------+
 *   |      TTL      |  protocol   |          header checksum        |
 *   +---------------+-------------+---------------------------------+
 *   |                       source address                          |
 *   |                     destination address                       |
 *   +---------------------------------------------------------------+
 */
#define IP4_LEN 20 /* without options */
#define IP4_FIELDS(U, A, V)                                                                                            \
    U(uint8_t, version, 0, 4, FT_UINT8, BASE_DEC, NULL, "ip.version", "Version", "4.")                                 \
    U(uint8_t, ihl, 4, 4, FT_UINT8, BASE_DEC, NULL, "rdma.ip.ihl", "Header Length in words", "In 4-byte words.")       \
    V(NULL, 8, 8, FT_UINT8, BASE_HEX, NULL, "ip.dsfield", "Differentiated Services Field", "DSCP and ECN.")            \
    U(uint8_t, dscp, 8, 6, FT_UINT8, BASE_DEC, NULL, "ip.dsfield.dscp", "DSCP", "Differentiated services codepoint.")  \
    U(uint8_t, ecn, 14, 2, FT_UINT8, BASE_DEC, &ecn_desc, "ip.dsfield.ecn", "ECN",                                     \
      "Explicit congestion notification.")                                                                             \
    U(uint16_t, len, 16, 16, FT_UINT16, BASE_DEC, NULL, "ip.len", "Total Length", "Header and payload, bytes.")        \
    U(uint16_t, id, 32, 16, FT_UINT16, BASE_HEX, NULL, "ip.id", "Identification",                                      \
      "Identifies a datagram's fragments.")                                                                            \
    V(NULL, 48, 3, FT_UINT8, BASE_HEX, NULL, "ip.flags", "Flags", "Fragmentation flags.")                              \
    U(uint8_t, rb, 48, 1, FT_BOOL, BASE_NONE, NULL, "ip.flags.rb", "Reserved bit", "Zero.")                            \
    U(uint8_t, df, 49, 1, FT_BOOL, BASE_NONE, NULL, "ip.flags.df", "Don't fragment", "Routers must not fragment.")     \
    U(uint8_t, mf, 50, 1, FT_BOOL, BASE_NONE, NULL, "ip.flags.mf", "More fragments", "Not the last fragment.")         \
    U(uint16_t, frag, 51, 13, FT_UINT16, BASE_DEC, NULL, "ip.frag_offset", "Fragment Offset", "In 8-byte units.")      \
    U(uint8_t, ttl, 64, 8, FT_UINT8, BASE_DEC, NULL, "ip.ttl", "Time to Live", "Hops left.")                           \
    U(uint8_t, proto, 72, 8, FT_UINT8, BASE_DEC, &ipproto_desc, "ip.proto", "Protocol", "What follows.")               \
    U(uint16_t, csum, 80, 16, FT_UINT16, BASE_HEX, NULL, "ip.checksum", "Header Checksum", "RFC 1071 sum.")            \
    A(src, 96, 32, FT_IPV4, "ip.src", "Source Address", "Source address.")                                             \
    A(dst, 128, 32, FT_IPV4, "ip.dst", "Destination Address", "Destination address.")
HDR_STRUCT(ip4, IP4_FIELDS)

/*
 * IPv6 header, 40 bytes (RFC 8200).
 *   0       4                 12                                  32
 *   +-------+-----------------+-----------------------------------+
 *   |version|  traffic class  |            flow label             |
 *   +-------+-----------------+-----+--------------+--------------+
 *   |     payload length            | next header  |  hop limit   |
 *   +-------------------------------+--------------+--------------+
 *   |          source address, destination address (16 each)      |
 *   +-------------------------------------------------------------+
 */
#define IP6_LEN 40
#define IP6_FIELDS(U, A, V)                                                                                            \
    U(uint8_t, version, 0, 4, FT_UINT8, BASE_DEC, NULL, "ipv6.version", "Version", "6.")                               \
    V(NULL, 4, 8, FT_UINT32, BASE_HEX, NULL, "ipv6.tclass", "Traffic Class", "DSCP and ECN.")                          \
    U(uint8_t, dscp, 4, 6, FT_UINT32, BASE_DEC, NULL, "ipv6.tclass.dscp", "DSCP",                                      \
      "Differentiated services codepoint.")                                                                            \
    U(uint8_t, ecn, 10, 2, FT_UINT32, BASE_DEC, &ecn_desc, "ipv6.tclass.ecn", "ECN",                                   \
      "Explicit congestion notification.")                                                                             \
    U(uint32_t, flow, 12, 20, FT_UINT24, BASE_HEX, NULL, "ipv6.flow", "Flow Label", "Flow label.")                     \
    U(uint16_t, plen, 32, 16, FT_UINT16, BASE_DEC, NULL, "ipv6.plen", "Payload Length", "Bytes after this header.")    \
    U(uint8_t, nxt, 48, 8, FT_UINT8, BASE_DEC, &ipproto_desc, "ipv6.nxt", "Next Header", "What follows.")              \
    U(uint8_t, hlim, 56, 8, FT_UINT8, BASE_DEC, NULL, "ipv6.hlim", "Hop Limit", "Hops left.")                          \
    A(src, 64, 128, FT_IPV6, "ipv6.src", "Source Address", "Source address.")                                          \
    A(dst, 192, 128, FT_IPV6, "ipv6.dst", "Destination Address", "Destination address.")
HDR_STRUCT(ip6, IP6_FIELDS)

/*
 * UDP header, 8 bytes (RFC 768).
 *   0                              16                              32
 *   +------------------------------+------------------------------+
 *   |         source port          |       destination port       |
 *   +------------------------------+------------------------------+
 *   |            length            |           checksum           |
 *   +------------------------------+------------------------------+
 */
#define UDP_LEN 8
#define UDP_FIELDS(U, A, V)                                                                                            \
    U(uint16_t, sport, 0, 16, FT_UINT16, BASE_DEC, NULL, "udp.srcport", "Source Port",                                 \
      "On RoCEv2: entropy for load balancing.")                                                                        \
    U(uint16_t, dport, 16, 16, FT_UINT16, BASE_DEC, NULL, "udp.dstport", "Destination Port", "4791 is RoCEv2.")        \
    U(uint16_t, len, 32, 16, FT_UINT16, BASE_DEC, NULL, "udp.length", "Length", "Header and payload, bytes.")          \
    U(uint16_t, csum, 48, 16, FT_UINT16, BASE_HEX, NULL, "udp.checksum", "Checksum", "0: none.")
HDR_STRUCT(udp, UDP_FIELDS)

extern const struct hdr ip4_hdr, ip6_hdr, udp_hdr;

struct pkt;

/* Whether the checksum of the IPv4 header at `q`, of `len` bytes, is wrong: the sum of all 16-bit words is not -0.
 * Their byte order does not matter (RFC 1071). */
static inline bool ip4_header_sum_wrong(const uint8_t *q, uint32_t len)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < len; i += 4)
        sum += load_le32(q + i);
    sum = (sum >> 32) + (sum & UINT32_MAX);
    sum = (sum >> 16) + (sum & 0xffff);
    return (sum >> 16) + (sum & 0xffff) != 0xffff;
}
/* Whether an IPv4 header (H_IP4) that was captured whole has a wrong checksum (RFC 791, RFC 1071). */
bool ip4_sum_wrong(const struct pkt *p);
/* Whether a UDP datagram (H_UDP) that was captured whole has a checksum, other than 0, that is wrong. */
bool udp_sum_wrong(const struct pkt *p);
/* Whether the checksum of a UDP datagram (H_UDP) is partial: the sum of the pseudo header alone (addresses, protocol
 * and length), as the host leaves it to an adapter with checksum offload. A packet between two interfaces of one host
 * keeps it, as no adapter completes it. */
bool udp_sum_is_partial(const struct pkt *p);

#endif
