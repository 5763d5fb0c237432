/* layer 1 (wire): Ethernet and 802.1Q tags. */
#ifndef RDMATRACE_DISSECT_LINK_ETH_H
#define RDMATRACE_DISSECT_LINK_ETH_H

#include "dissect/field.h"

#define ETHERTYPE_MIN        0x0600 /* a smaller value is the length of an 802.3 frame */
#define ETHERTYPE_IPV4       0x0800
#define ETHERTYPE_ARP        0x0806
#define ETHERTYPE_RARP       0x8035
#define ETHERTYPE_TEB        0x6558 /* transparent Ethernet bridging */
#define ETHERTYPE_VLAN       0x8100
#define ETHERTYPE_IPV6       0x86dd
#define ETHERTYPE_MACC       0x8808 /* MAC control: pause frames */
#define ETHERTYPE_MPLS       0x8847
#define ETHERTYPE_MPLS_MULTI 0x8848
#define ETHERTYPE_QINQ       0x88a8
#define ETHERTYPE_ROCEV1     0x8915
#define ETHERTYPE_QINQ_OLD   0x9100

extern const struct vdesc ethertype_desc;

/*
 * Ethernet II header, 14 bytes (IEEE 802.3).
 *   | destination (6) | source (6) | EtherType (2) |
 */
#define ETH_LEN 14
#define ETH_FIELDS(U, A, V)                                                                                            \
    A(dst, 0, 48, FT_ETHER, "eth.dst", "Destination", "Destination MAC address.")                                      \
    A(src, 48, 48, FT_ETHER, "eth.src", "Source", "Source MAC address.")                                               \
    U(uint16_t, type, 96, 16, FT_UINT16, BASE_HEX, &ethertype_desc, "eth.type", "Type", "What follows.")
HDR_STRUCT(eth, ETH_FIELDS)

/*
 * 802.1Q tag without its leading EtherType, 4 bytes (IEEE 802.1Q).
 *   0    3   4            16               32
 *   +----+---+------------+----------------+
 *   |PCP |DEI|    VID     |    EtherType   |
 *   +----+---+------------+----------------+
 */
#define VLAN_FIELDS(U, A, V)                                                                                           \
    U(uint8_t, pcp, 0, 3, FT_UINT16, BASE_DEC, NULL, "vlan.priority", "Priority", "Priority code point.")              \
    U(uint8_t, dei, 3, 1, FT_BOOL, BASE_NONE, NULL, "vlan.dei", "DEI", "Drop eligible indicator.")                     \
    U(uint16_t, vid, 4, 12, FT_UINT16, BASE_DEC, NULL, "vlan.id", "ID", "VLAN identifier.")                            \
    U(uint16_t, type, 16, 16, FT_UINT16, BASE_HEX, &ethertype_desc, "vlan.etype", "Type", "What follows.")
HDR_STRUCT(vlan, VLAN_FIELDS)

/* eth_len_hdr and vlan_len_hdr have a length (802.3) instead of the EtherType. vlan_ad_hdr is the tag of EtherType
 * 0x88a8 (802.1ad). */
extern const struct hdr eth_hdr, eth_len_hdr, vlan_hdr, vlan_len_hdr, vlan_ad_hdr;

#endif
