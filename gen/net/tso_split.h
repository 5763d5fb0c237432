/* layer 3 (net): split TCP segments that an offload joined (GRO, or the sender's TSO on a virtual link). */
#ifndef RDMATRACE_GEN_NET_TSO_SPLIT_H
#define RDMATRACE_GEN_NET_TSO_SPLIT_H

#include "types.h"

/* True if an Ethernet frame holds an IP packet of more than `mtu` bytes. */
bool segment_needed(const uint8_t *data, uint32_t len, uint32_t mtu);
/* Split a frame of TCP over IPv4 or IPv6 into segments whose IP packets have `mtu` bytes at most, with correct
 * checksums, and pass them to `each` in order. Returns their number; 0: no TCP over IP, truncated, or `mtu` leaves no
 * room for data. */
unsigned segment_tcp(const uint8_t *data, uint32_t len, uint32_t mtu,
                     void (*each)(void *user, const uint8_t *data, uint32_t len), void *user);

#endif
