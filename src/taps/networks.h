/* layer 2b (taps): tenants with equal addresses: the networks (VLANs, overlays) that have to be told apart.
 *
 * A VLAN or a VNI alone does not tell who is talking: the two directions of a connection may take different VLANs, a
 * capture of both sides of a router has each packet in two of them, and the tunnel of a mirror is nobody's network. So
 * networks count as one unless packets prove the contrary: two networks carry other packets between the same addresses
 * to the same queue pair, at one tap. Networks in which the same packets were seen are one, whatever the tap. */
#ifndef RDMATRACE_TAPS_NETWORKS_H
#define RDMATRACE_TAPS_NETWORKS_H

#include "dissect/pkt.h"

#define NETWORKS_MAX 64 /* networks of a capture that are compared; packets of others count as those of no network */

/* The network of a packet as its headers say, 0: none. The VNI of the innermost VXLAN or GENEVE header, or the VSID of
 * NVGRE, or the key of another GRE header, and the VLANs of the two innermost tags behind it; tags outside a tunnel are
 * those of its underlay. */
uint64_t network_of(const struct pkt *p);
/* Append "VNI 5001 VLAN 7", "VSID 5001" or "GRE key 5001" of such a number; nothing for 0. */
void network_put(struct buf *b, uint64_t network);

struct networks;

/* NULL without memory. */
struct networks *networks_new(void);
void networks_free(struct networks *n);
/* Compare a packet with those of other networks. */
void networks_note(struct networks *n, const struct pkt *p);
/* Whether more than one network was seen. */
bool networks_are_several(const struct networks *n);
/* After the last packet: decide which networks are separate. */
void networks_decide(struct networks *n);
/* Set p->network: the network in which the packet's addresses are valid, 0 if it need not be told apart. `n` NULL: 0.
 */
void networks_apply(const struct networks *n, struct pkt *p);

#endif
