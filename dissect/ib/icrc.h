/* layer 1 (wire): invariant and variant CRC of InfiniBand and RoCE packets (IBTA volume 1, 7.8; annexes A16, A17). */
#ifndef RDMATRACE_DISSECT_IB_ICRC_H
#define RDMATRACE_DISSECT_IB_ICRC_H

#include "types.h"

/* Longest IP header, options and extension headers included, that icrc_rocev2() takes. */
#define ICRC_IP_MAX 164

/* ICRC of a RoCEv2 packet: `ip` is the IPv4 or IPv6 header (with options or extension headers) that ends where the UDP
 * header at `udp` starts, at most ICRC_IP_MAX bytes later; `n` bytes from the start of the UDP header up to the ICRC,
 * which is not included. */
uint32_t icrc_rocev2(const uint8_t *ip, const uint8_t *udp, size_t n);
/* ICRC of a RoCEv1 packet: 40 bytes of GRH at `grh`, then `n` bytes from the BTH up to the ICRC. */
uint32_t icrc_rocev1(const uint8_t *grh, size_t n);
/* ICRC of a native InfiniBand packet: `n` bytes from the LRH up to the ICRC; `has_grh` as LNH says. */
uint32_t icrc_ib(const uint8_t *lrh, size_t n, bool has_grh);
/* VCRC over `n` bytes from the LRH up to and including the ICRC. */
uint16_t vcrc_ib(const uint8_t *lrh, size_t n);
/* Link packet CRC of a flow control packet: the VCRC's polynomial over its first 4 bytes. */
#define lpcrc_ib(p) vcrc_ib(p, 4)

/* What a check of a CRC found. */
enum crc_status {
    CRC_ABSENT,  /* this kind of packet has none */
    CRC_UNKNOWN, /* not all of the packet was captured, or its framing is not known */
    CRC_GOOD,
    CRC_BAD,
};
/* "good", "bad", "unknown"; "" for CRC_ABSENT. */
const char *crc_status_str(enum crc_status s);

#endif
