/* layer 1 (wire): the list of protocols of which only the name and the length are shown. */
#ifndef RDMATRACE_DISSECT_OPAQUE_H
#define RDMATRACE_DISSECT_OPAQUE_H

#include "dissect/field.h"

/* X(kind, number, filter name, name, Protocol column); number: EtherType, IP protocol or LLC SAP. Filter names are
 * tshark's. */
#define NAMED(X)                                                                                                       \
    X(KIND_ETHERTYPE, 0x8035, rarp, "Reverse Address Resolution Protocol", "RARP")                                     \
    X(KIND_ETHERTYPE, 0x8809, slow, "Slow Protocols", "LACP")                                                          \
    X(KIND_ETHERTYPE, 0x8863, pppoed, "PPP-over-Ethernet Discovery", "PPPoED")                                         \
    X(KIND_ETHERTYPE, 0x8864, pppoes, "PPP-over-Ethernet Session", "PPPoES")                                           \
    X(KIND_ETHERTYPE, 0x888e, eapol, "802.1X Authentication", "EAPOL")                                                 \
    X(KIND_ETHERTYPE, 0x88cc, lldp, "Link Layer Discovery Protocol", "LLDP")                                           \
    X(KIND_ETHERTYPE, 0x88e5, macsec, "802.1AE Security tag", "MACSEC")                                                \
    X(KIND_ETHERTYPE, 0x88f7, ptp, "Precision Time Protocol", "PTPv2")                                                 \
    X(KIND_ETHERTYPE, 0x8906, fcoe, "Fibre Channel over Ethernet", "FCoE")                                             \
    X(KIND_ETHERTYPE, 0x9000, loop, "Configuration Test Protocol (loopback)", "LOOP")                                  \
    X(KIND_IP, 2, igmp, "Internet Group Management Protocol", "IGMP")                                                  \
    X(KIND_IP, 50, esp, "Encapsulating Security Payload", "ESP")                                                       \
    X(KIND_IP, 88, eigrp, "Enhanced Interior Gateway Routing Protocol", "EIGRP")                                       \
    X(KIND_IP, 89, ospf, "Open Shortest Path First", "OSPF")                                                           \
    X(KIND_IP, 103, pim, "Protocol Independent Multicast", "PIM")                                                      \
    X(KIND_IP, 112, vrrp, "Virtual Router Redundancy Protocol", "VRRP")                                                \
    X(KIND_IP, 132, sctp, "Stream Control Transmission Protocol", "SCTP")                                              \
    X(KIND_SAP, 0x42, stp, "Spanning Tree Protocol", "STP")                                                            \
    X(KIND_SAP, 0xe0, ipx, "Internetwork Packet eXchange", "IPX")                                                      \
    X(KIND_SAP, 0xf0, netbios, "NetBIOS", "NetBIOS")                                                                   \
    X(KIND_SAP, 0xfe, osi, "ISO OSI network layer", "OSI")

#define NAMED_DECLARE(kind, number, id, name, column) extern const struct hdr named_##id;
NAMED(NAMED_DECLARE)

/* Pointers to the headers of these protocols, each followed by a comma, for the list of all headers. */
#define NAMED_REF(kind, number, id, name, column) &named_##id,
#define NAMED_HEADERS                             NAMED(NAMED_REF)

#endif
