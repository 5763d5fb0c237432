/* layer 3 (live): filter program for the kernel: the frames of an interface that are for an endpoint. */
#ifndef RDMATRACE_GEN_LIVE_BE_FILTER_H
#define RDMATRACE_GEN_LIVE_BE_FILTER_H

#include "gen/live/backend.h"

#include <linux/filter.h>

/* Passes ARP, neighbour solicitations and advertisements, ICMP and ICMPv6 "destination unreachable", RoCEv1, and UDP to
 * port 4791 over IPv4 (first fragment or whole) and IPv6. VLAN tags are expected to be out of the frame, as they are at
 * AF_PACKET's sockets. Frames that this host sends do not pass. */
#define BE_FILTER_LEN 37 /* instructions */
/* The program for part `part` of `parts` (gen/live/parts.h), which takes RoCE packets for its queue pairs only; 0 of 1:
 * all of them. */
void be_filter(struct sock_filter out[BE_FILTER_LEN], unsigned part, unsigned parts);
/* Passes everything but the frames sent by this host. */
extern const struct sock_filter be_filter_bridge[];
extern const unsigned be_filter_bridge_len;

#endif
