/* layer 3 (net): TCP segments that an offload has joined (GRO, or the sender's TSO on a virtual link), taken apart
 * again. */
#ifndef RDMATRACE_GEN_NET_TSO_SPLIT_H
#define RDMATRACE_GEN_NET_TSO_SPLIT_H

#include "types.h"

/* Whether an Ethernet frame holds an IP packet of more than `mtu` bytes. */
bool segment_needed(const uint8_t *data, uint32_t len, uint32_t mtu);
/* Cut a frame of TCP over IPv4 or IPv6 into segments whose IP packets have `mtu` bytes at most, each with right
 * checksums, and hand them to `each` in order. Returns how many there were; 0: it is no such frame, not all there, or
 * `mtu` leaves no room for data. */
unsigned segment_tcp(const uint8_t *data, uint32_t len, uint32_t mtu,
                     void (*each)(void *user, const uint8_t *data, uint32_t len), void *user);

#endif
