/* layer 1 (wire): invariant and variant CRC of InfiniBand and RoCE packets (IBTA volume 1, 7.8; annexes A16, A17). */
#ifndef RDMATRACE_DISSECT_IB_ICRC_H
#define RDMATRACE_DISSECT_IB_ICRC_H

#include "types.h"

/* Longest IP header that icrc_rocev2() takes: bytes, with options or extension headers. */
#define ICRC_IP_MAX 164

/* ICRC of a RoCEv2 packet. `ip`: the IPv4 or IPv6 header, with options or extension headers, at most ICRC_IP_MAX bytes;
 * it ends at `udp`, the UDP header. `n`: bytes from the UDP header up to the ICRC, without the ICRC. The result is sent
 * least significant byte first, as for the other ICRCs. */
uint32_t icrc_rocev2(const uint8_t *ip, const uint8_t *udp, size_t n);
/* ICRC of a RoCEv1 packet. `grh`: the GRH, 40 bytes, followed by `n` bytes from the BTH up to the ICRC. */
uint32_t icrc_rocev1(const uint8_t *grh, size_t n);
/* ICRC of a native InfiniBand packet of `n` bytes from the LRH up to the ICRC. `has_grh`: LNH announces a GRH. */
uint32_t icrc_ib(const uint8_t *lrh, size_t n, bool has_grh);
/* VCRC over the `n` bytes from the LRH to the end of the ICRC. */
uint16_t vcrc_ib(const uint8_t *lrh, size_t n);
/* Link packet CRC of a flow control packet: the VCRC over its first 4 bytes. */
#define lpcrc_ib(p) vcrc_ib(p, 4)

/* Four bytes that change an ICRC like the `n` bytes (at least 4) at `p`, if they follow n - 4 zeros in their place. */
void icrc_stand_in(const uint8_t *p, size_t n, uint8_t stand_in[4]);

/* CRC-32 of IEEE 802.3 over `n` bytes, as a number. */
uint32_t crc32_of(const uint8_t *p, size_t n);

/* Result of verifying a CRC. */
enum crc_status {
    CRC_ABSENT,  /* the packet has no such CRC */
    CRC_UNKNOWN, /* not verified, e.g. not asked for, cut by the snap length, or an IP fragment */
    CRC_GOOD,
    CRC_BAD,
};
/* Name of a result: "good", "bad", "unknown"; "" for CRC_ABSENT. */
const char *crc_status_str(enum crc_status s);

#endif
