/* layer 1 (wire): headers of links, IP options and tunnels that no other file declares. */
#ifndef RDMATRACE_DISSECT_LINK_LINK_H
#define RDMATRACE_DISSECT_LINK_LINK_H

#include "dissect/field.h"

extern const struct hdr llc_hdr, snap_hdr, null_hdr, sll_hdr, sll2_hdr, ipoib_dst_hdr, ipoib_grh_hdr, ipoib_cm_hdr,
    ipoib_hdr, iblink_hdr, erf_hdr, erf_ehdr_hdr, erf_eth_hdr, linktype_hdr, ip4_opt_hdr, ip6_hopopts_hdr,
    ip6_dstopts_hdr, ip6_routing_hdr, ip6_frag_hdr, ip6_opt_hdr, ah_hdr, mpls_hdr, mpls_cw_hdr, gre_hdr, erspan1_hdr,
    erspan2_hdr, erspan3_hdr, erspan_platform_hdr, vxlan_hdr, vxlan_gpe_hdr, geneve_hdr, geneve_opt_hdr, arp_hdr;

/* Whether frames of this link type are decoded: else they are shown as bytes, and hold no RDMA that is known. */
bool link_is_decoded(uint16_t linktype);
/* Append "link type 105 (802.11)"; the name of one that is not decoded, if it is known. */
void link_type_put(struct buf *b, uint16_t linktype);

#endif
