/* layer 1 (wire): the headers of an IP packet within the payload of another packet: an ICMP error quotes it, or IP over
 * InfiniBand carries it. */
#ifndef RDMATRACE_DISSECT_IP_INNER_H
#define RDMATRACE_DISSECT_IP_INNER_H

#include "dissect/pkt.h"

/* Add layers for the IPv4 or IPv6 header at `off` of the frame, the UDP (with RoCEv2), TCP or ICMP header behind it,
 * and those of a packet that an ICMP error quotes, as far as they lie before `limit` (an offset within the captured
 * bytes). Addresses, ports and headers in `p` stay those of the packet around it; a header that is cut is not
 * malformed: an ICMP error may quote no more than 8 bytes of it.
 */
void inner_ip_layers(struct pkt *p, uint32_t off, uint32_t limit);
/* Likewise of a packet that an ICMP error quotes: what this one quotes is not followed. */
void quoted_ip_layers(struct pkt *p, uint32_t off, uint32_t limit);

/* Offset in the frame at which the datagram with the transport header `l` of such a packet ends by the IP header in the
 * layer before `l`; it may lie behind the captured bytes. p->end if that layer is no IP header. */
uint32_t inner_ip_end(const struct pkt *p, const struct layer *l);

#endif
