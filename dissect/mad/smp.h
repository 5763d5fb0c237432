/* layer 1 (wire): subnet management packets: attributes of nodes, ports and switches (OpenSM ib_types.h, libibmad,
 * kernel rdma/ib_smi.h). */
#ifndef RDMATRACE_DISSECT_MAD_SMP_H
#define RDMATRACE_DISSECT_MAD_SMP_H

#include "dissect/mad/mad.h"
#include "dissect/mad/repeat.h"

/*
 * LID-routed SMP, 40 bytes after the MAD header; the attribute follows at byte 64 of the MAD.
 *   0                                                                   32
 *   +-------------------------------------------------------------------+
 *   |                         M_Key (64)                                |
 *   +-------------------------------------------------------------------+
 *   |                         reserved (256)                            |
 *   +-------------------------------------------------------------------+
 */
#define SMPLID_FIELDS(U, A, V)                                                                                         \
    U(uint64_t, m_key, 0, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.smplid.mkey", "M_Key",                            \
      "Key that permits management of the port.")                                                                      \
    A(reserved, 64, 256, FT_BYTES, "rdma.smplid.reserved", "Reserved", "Zero.")

/*
 * Directed-route SMP, 40 bytes after the MAD header; the attribute follows at byte 64 of the MAD.
 *   0                                 16                                32
 *   +---------------------------------+---------------------------------+
 *   |                         M_Key (64)                                |
 *   +---------------------------------+---------------------------------+
 *   |            DrSLID               |            DrDLID               |
 *   +---------------------------------+---------------------------------+
 *   |                         reserved (224)                            |
 *   +-------------------------------------------------------------------+
 */
#define SMPDR_FIELDS(U, A, V)                                                                                          \
    U(uint64_t, m_key, 0, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.smplid.mkey", "M_Key",                            \
      "Key that permits management of the port.")                                                                      \
    U(uint16_t, drslid, 64, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.smpdirected.drslid", "DrSLID",                  \
      "LID where the directed route starts; 0xffff: at the sender.")                                                   \
    U(uint16_t, drdlid, 80, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.smpdirected.drdlid", "DrDLID",                  \
      "LID where the directed route ends; 0xffff: at the receiver.")                                                   \
    A(reserved, 96, 224, FT_BYTES, "rdma.smpdirected.reserved", "Reserved", "Zero.")

/* Initial path and return path of a directed-route SMP, 128 bytes after the attribute: egress port by hop, from 1;
 * entry 0 is unused. */
#define SMPPATH_FIELDS(U, A, V)                                                                                        \
    A(initialpath, 0, 512, FT_BYTES, "infiniband.smpdirected.initialpath", "Initial Path",                             \
      "Egress port of each hop on the way out, from byte 1.")                                                          \
    A(returnpath, 512, 512, FT_BYTES, "infiniband.smpdirected.returnpath", "Return Path",                              \
      "Ingress port of each hop, written on the way out: the way back.")

/* NodeDescription: name of a node, 64 bytes of UTF-8, padded with zeros. */
#define NODEDESC_FIELDS(U, A, V)                                                                                       \
    A(nodestring, 0, 512, FT_STRING, "infiniband.nodedescription.nodestring", "NodeString", "Name of the node.")

/* NodeInfo: type, GUIDs and device of a node, 40 bytes. */
#define NODEINFO_FIELDS(U, A, V)                                                                                       \
    U(uint8_t, baseversion, 0, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.nodeinfo.baseversion", "BaseVersion",          \
      "MAD base version that is supported.")                                                                           \
    U(uint8_t, classversion, 8, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.nodeinfo.classversion", "ClassVersion",       \
      "Subnet management class version that is supported.")                                                            \
    U(uint8_t, nodetype, 16, 8, FT_UINT8, BASE_HEX, &node_type_desc, "infiniband.nodeinfo.nodetype", "NodeType",       \
      "1 channel adapter, 2 switch, 3 router.")                                                                        \
    U(uint8_t, numports, 24, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.nodeinfo.numports", "NumPorts",                  \
      "Physical ports of the node.")                                                                                   \
    U(uint64_t, systemimageguid, 32, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.nodeinfo.systemimageguid",             \
      "SystemImageGUID", "GUID of the system that the node is a part of.")                                             \
    U(uint64_t, nodeguid, 96, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.nodeinfo.nodeguid", "NodeGUID",               \
      "GUID of the node.")                                                                                             \
    U(uint64_t, portguid, 160, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.nodeinfo.portguid", "PortGUID",              \
      "GUID of the port that answers.")                                                                                \
    U(uint16_t, partitioncap, 224, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.nodeinfo.partitioncap", "PartitionCap",  \
      "Entries in the partition table of each port.")                                                                  \
    U(uint16_t, deviceid, 240, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.nodeinfo.deviceid", "DeviceID",              \
      "Device number, by the vendor.")                                                                                 \
    U(uint32_t, revision, 256, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.nodeinfo.revision", "Revision",              \
      "Revision of the device.")                                                                                       \
    U(uint8_t, localportnum, 288, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.nodeinfo.localportnum", "LocalPortNum",     \
      "Port that the packet came through.")                                                                            \
    U(uint32_t, vendorid, 296, 24, FT_UINT24, BASE_HEX, NULL, "infiniband.nodeinfo.vendorid", "VendorID",              \
      "OUI of the vendor.")

/* SwitchInfo: capabilities and settings of a switch, 20 bytes. */
#define SWITCHINFO_FIELDS(U, A, V)                                                                                     \
    U(uint16_t, linearfdbcap, 0, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.switchinfo.linearfdbcap", "LinearFDBCap",  \
      "Entries of the linear forwarding table.")                                                                       \
    U(uint16_t, randomfdbcap, 16, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.switchinfo.randomfdbcap", "RandomFDBCap", \
      "Entries of the random forwarding table.")                                                                       \
    U(uint16_t, multicastfdbcap, 32, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.switchinfo.multicastfdbcap",           \
      "MulticastFDBCap", "Entries of the multicast forwarding table.")                                                 \
    U(uint16_t, linearfdbtop, 48, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.switchinfo.linearfdbtop", "LinearFDBTop", \
      "Last entry of the linear forwarding table in use.")                                                             \
    U(uint8_t, defaultport, 64, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.switchinfo.defaultport", "DefaultPort",       \
      "Port for LIDs that are not in the random forwarding table.")                                                    \
    U(uint8_t, defaultmulticastprimaryport, 72, 8, FT_UINT8, BASE_HEX, NULL,                                           \
      "infiniband.switchinfo.defaultmulticastprimaryport", "DefaultMulticastPrimaryPort",                              \
      "Port for multicast LIDs that are not in the table.")                                                            \
    U(uint8_t, defaultmulticastnotprimaryport, 80, 8, FT_UINT8, BASE_HEX, NULL,                                        \
      "infiniband.switchinfo.defaultmulticastnotprimaryport", "DefaultMulticastNotPrimaryPort",                        \
      "The same for packets that came in by the primary port.")                                                        \
    U(uint8_t, lifetimevalue, 88, 5, FT_UINT8, BASE_HEX, NULL, "infiniband.switchinfo.lifetimevalue", "LifeTimeValue", \
      "Code of the time that a packet may stay in the switch.")                                                        \
    U(uint8_t, portstatechange, 93, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.switchinfo.portstatechange",              \
      "PortStateChange", "A port changed its state since this was cleared.")                                           \
    U(uint8_t, optimizedsltovlmappingprogramming, 94, 2, FT_UINT8, BASE_HEX, NULL,                                     \
      "infiniband.switchinfo.optimizedsltovlmappingprogramming", "OptimizedSLtoVLMappingProgramming",                  \
      "How SL to VL maps may be written at once.")                                                                     \
    U(uint16_t, lidsperport, 96, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.switchinfo.lidsperport", "LIDsPerPort",    \
      "LIDs per port of the random forwarding table.")                                                                 \
    U(uint16_t, partitionenforcementcap, 112, 16, FT_UINT16, BASE_HEX, NULL,                                           \
      "infiniband.switchinfo.partitionenforcementcap", "PartitionEnforcementCap",                                      \
      "Entries of the partition enforcement tables.")                                                                  \
    U(uint8_t, inboundenforcementcap, 128, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.switchinfo.inboundenforcementcap", \
      "InboundEnforcementCap", "Can enforce partitions on packets that come in.")                                      \
    U(uint8_t, outboundenforcementcap, 129, 1, FT_UINT8, BASE_HEX, NULL,                                               \
      "infiniband.switchinfo.outboundenforcementcap", "OutboundEnforcementCap",                                        \
      "Can enforce partitions on packets that go out.")                                                                \
    U(uint8_t, filterrawinboundcap, 130, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.switchinfo.filterrawinboundcap",     \
      "FilterRawInboundCap", "Can discard raw packets that come in.")                                                  \
    U(uint8_t, filterrawoutboundcap, 131, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.switchinfo.filterrawoutboundcap",   \
      "FilterRawOutboundCap", "Can discard raw packets that go out.")                                                  \
    U(uint8_t, enhancedportzero, 132, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.switchinfo.enhancedportzero",           \
      "EnhancedPortZero", "Port 0 can do more than management.")                                                       \
    U(uint16_t, reserved, 133, 11, FT_UINT16, BASE_HEX, NULL, "rdma.switchinfo.reserved", "Reserved", "Zero.")         \
    U(uint16_t, multicastfdbtop, 144, 16, FT_UINT16, BASE_HEX, NULL, "rdma.switchinfo.multicastfdbtop",                \
      "MulticastFDBTop", "Last entry of the multicast forwarding table in use.")

/* GUIDInfo: a block of eight GUIDs of a port, 64 bytes. */
#define GUIDINFO_ENTRY(U, A, V, i)                                                                                     \
    U(uint64_t, guid_##i, (i)*64, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.switchinfo.guid", "GUID " #i,             \
      "GUID of the port at this index of the block.")
#define GUIDINFO_FIELDS(U, A, V) REP8(GUIDINFO_ENTRY, U, A, V)

/* P_KeyTable: a block of 32 P_Keys, 64 bytes. */
#define PKEYTABLE_ENTRY(U, A, V, i)                                                                                    \
    U(uint8_t, membershiptype_##i, (i)*16, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.p_keytable.membershiptype",        \
      "MembershipType " #i, "1 full, 0 limited member.")                                                               \
    U(uint16_t, p_keybase_##i, 1 + (i)*16, 15, FT_UINT16, BASE_HEX, NULL, "infiniband.p_keytable.p_keybase",           \
      "P_KeyBase " #i, "Number of the partition.")
#define PKEYTABLE_FIELDS(U, A, V)                                                                                      \
    V(NULL, 0, 512, FT_BYTES, BASE_NONE, NULL, "infiniband.p_keytable.p_keytableblock", "P_KeyTableBlock",             \
      "The whole block.")                                                                                              \
    REP32(PKEYTABLE_ENTRY, U, A, V)

/* SLtoVLMappingTable: the virtual lane of each of the 16 service levels, 4 bits each, 8 bytes. */
#define SL2VL_ENTRY(U, A, V, i)                                                                                        \
    U(uint8_t, sltovl_##i, (i)*8, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.sltovlmappingtable.sltovlhighbits",         \
      "SL(x)toVL " #i, "Virtual lane of the service level of twice this index.")                                       \
    U(uint8_t, sltovlodd_##i, 4 + (i)*8, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.sltovlmappingtable.sltovllowbits",   \
      "SL(x)toVL " #i, "Virtual lane of the service level after it.")
#define SL2VL_FIELDS(U, A, V) REP8(SL2VL_ENTRY, U, A, V)

/* VLArbitrationTable: a block of 32 entries, 64 bytes. */
#define VLARB_ENTRY(U, A, V, i)                                                                                        \
    U(uint8_t, reserved_##i, (i)*16, 4, FT_UINT8, BASE_HEX, NULL, "rdma.vlarbitrationtable.reserved", "reserved " #i,  \
      "Zero.")                                                                                                         \
    U(uint8_t, vl_##i, 4 + (i)*16, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.vlarbitrationtable.vl", "VL " #i,          \
      "Virtual lane.")                                                                                                 \
    U(uint8_t, weight_##i, 8 + (i)*16, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.vlarbitrationtable.weight",            \
      "Weight " #i, "Share of the lane in units of 64 bytes; 0: entry is skipped.")
#define VLARB_FIELDS(U, A, V) REP32(VLARB_ENTRY, U, A, V)

/* LinearForwardingTable: a block of 64 entries, 64 bytes; the attribute modifier is the number of the block. */
#define LFT_ENTRY(U, A, V, i)                                                                                          \
    U(uint8_t, port_##i, (i)*8, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.linearforwardingtable.port", "Port " #i,      \
      "Egress port of the LID (block times 64 plus index); 255: none.")
#define LFT_FIELDS(U, A, V) REP64(LFT_ENTRY, U, A, V)

/* RandomForwardingTable: a block of 16 entries, 64 bytes. */
#define RFT_ENTRY(U, A, V, i)                                                                                          \
    U(uint16_t, lid_##i, (i)*32, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.randomforwardingtable.lid", "LID " #i,     \
      "First LID of the entry.")                                                                                       \
    U(uint8_t, valid_##i, 16 + (i)*32, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.randomforwardingtable.valid",          \
      "Valid " #i, "The entry is in use.")                                                                             \
    U(uint8_t, lmc_##i, 17 + (i)*32, 3, FT_UINT8, BASE_HEX, NULL, "infiniband.randomforwardingtable.lmc", "LMC " #i,   \
      "Low bits of the LID that are ignored.")                                                                         \
    U(uint8_t, reserved_##i, 20 + (i)*32, 4, FT_UINT8, BASE_HEX, NULL, "rdma.randomforwardingtable.reserved",          \
      "reserved " #i, "Zero.")                                                                                         \
    U(uint8_t, port_##i, 24 + (i)*32, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.randomforwardingtable.port",            \
      "Port " #i, "Egress port.")
#define RFT_FIELDS(U, A, V) REP16(RFT_ENTRY, U, A, V)

/* MulticastForwardingTable: a block of 32 entries, each a mask of 16 ports, 64 bytes. */
#define MFT_ENTRY(U, A, V, i)                                                                                          \
    U(uint16_t, portmask_##i, (i)*16, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.multicastforwardingtable.portmask",   \
      "PortMask " #i, "Ports that get a copy, for one multicast LID.")
#define MFT_FIELDS(U, A, V) REP32(MFT_ENTRY, U, A, V)

/* LinkSpeedWidthPairsTable: pairs of link speed and width that ports support, 36 bytes. Of the last three bytes only
 * the first bit has a public name. */
#define LSWP_FIELDS(U, A, V)                                                                                           \
    U(uint8_t, numtables, 0, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.linkspeedwidthpairstable.numtables",             \
      "NumTables", "Number of tables.")                                                                                \
    A(portmask, 8, 256, FT_BYTES, "infiniband.linkspeedwidthpairstable.portmask", "PortMask",                          \
      "Ports that the table is for.")                                                                                  \
    U(uint8_t, speedtwofive, 264, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.linkspeedwidthpairstable.speedtwofive",     \
      "Speed 2.5 Gbps", "2.5 Gb/s per lane.")                                                                          \
    U(uint8_t, reserved, 265, 7, FT_UINT8, BASE_HEX, NULL, "rdma.linkspeedwidthpairstable.reserved", "Reserved",       \
      "Zero.")                                                                                                         \
    U(uint8_t, speedfive, 272, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.linkspeedwidthpairstable.speedfive",           \
      "Speed 5 Gbps", "5 Gb/s per lane.")                                                                              \
    U(uint8_t, reserved2, 273, 7, FT_UINT8, BASE_HEX, NULL, "rdma.linkspeedwidthpairstable.reserved", "Reserved",      \
      "Zero.")                                                                                                         \
    U(uint8_t, speedten, 280, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.linkspeedwidthpairstable.speedten",             \
      "Speed 10 Gbps", "10 Gb/s per lane.")                                                                            \
    U(uint8_t, reserved3, 281, 7, FT_UINT8, BASE_HEX, NULL, "rdma.linkspeedwidthpairstable.reserved", "Reserved",      \
      "Zero.")

/* SMInfo: a subnet manager, 21 bytes. */
#define SMINFO_FIELDS(U, A, V)                                                                                         \
    U(uint64_t, guid, 0, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.sminfo.guid", "GUID",                              \
      "Port GUID of the subnet manager.")                                                                              \
    U(uint64_t, sm_key, 64, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.sminfo.sm_key", "SM_Key",                       \
      "Key that the manager proves itself with.")                                                                      \
    U(uint32_t, actcount, 128, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.sminfo.actcount", "ActCount",                \
      "Rises while the manager is alive.")                                                                             \
    U(uint8_t, priority, 160, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.sminfo.priority", "Priority", "Highest wins.")  \
    U(uint8_t, smstate, 164, 4, FT_UINT8, BASE_HEX, &sm_state_desc, "infiniband.sminfo.smstate", "SMState",            \
      "What the manager is doing.")

/* VendorDiag: diagnostic data of a vendor, 64 bytes. */
#define VENDORDIAG_FIELDS(U, A, V)                                                                                     \
    U(uint16_t, nextindex, 0, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.vendordiag.nextindex", "NextIndex",           \
      "Attribute modifier of the next block; 0: this is the last.")                                                    \
    A(diagdata, 16, 496, FT_BYTES, "infiniband.vendordiag.diagdata", "DiagData", "Data as the vendor defines it.")

/* LedInfo: the beacon LED of a port, 4 bytes. */
#define LEDINFO_FIELDS(U, A, V)                                                                                        \
    U(uint8_t, ledmask, 0, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.ledinfo.ledmask", "LedMask",                       \
      "1: the light is on.")                                                                                           \
    U(uint32_t, reserved, 1, 31, FT_UINT32, BASE_HEX, NULL, "rdma.ledinfo.reserved", "Reserved", "Zero.")

/* PortInfoExtended: forward error correction of a port, 64 bytes. */
#define PORTINFOEXT_FIELDS(U, A, V)                                                                                    \
    U(uint32_t, capmask, 0, 32, FT_UINT32, BASE_HEX, NULL, "rdma.portinfoextended.capmask", "CapMask",                 \
      "Capabilities.")                                                                                                 \
    U(uint16_t, fecmodeactive, 32, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portinfoextended.fecmodeactive",               \
      "FECModeActive", "Forward error correction in use.")                                                             \
    U(uint16_t, fdrfecmodesupported, 48, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portinfoextended.fdrfecmodesupported",   \
      "FDRFECModeSupported", "Modes supported at FDR.")                                                                \
    U(uint16_t, fdrfecmodeenabled, 64, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portinfoextended.fdrfecmodeenabled",       \
      "FDRFECModeEnabled", "Modes enabled at FDR.")                                                                    \
    U(uint16_t, edrfecmodesupported, 80, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portinfoextended.edrfecmodesupported",   \
      "EDRFECModeSupported", "Modes supported at EDR.")                                                                \
    U(uint16_t, edrfecmodeenabled, 96, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portinfoextended.edrfecmodeenabled",       \
      "EDRFECModeEnabled", "Modes enabled at EDR.")                                                                    \
    U(uint16_t, hdrfecmodesupported, 112, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portinfoextended.hdrfecmodesupported",  \
      "HDRFECModeSupported", "Modes supported at HDR.")                                                                \
    U(uint16_t, hdrfecmodeenabled, 128, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portinfoextended.hdrfecmodeenabled",      \
      "HDRFECModeEnabled", "Modes enabled at HDR.")                                                                    \
    A(reserved, 144, 368, FT_BYTES, "rdma.portinfoextended.reserved", "Reserved", "Zero.")

/* Attribute 0xff90 of Mellanox devices, 64 bytes. */
#define MLNXPORTINFO_FIELDS(U, A, V)                                                                                   \
    U(uint32_t, reserved, 0, 24, FT_UINT24, BASE_HEX, NULL, "rdma.mlnxextportinfo.reserved", "Reserved", "Zero.")      \
    U(uint8_t, statechangeenable, 24, 8, FT_UINT8, BASE_HEX, NULL, "rdma.mlnxextportinfo.statechangeenable",           \
      "StateChangeEnable", "Which of the settings are to change.")                                                     \
    U(uint32_t, reserved2, 32, 24, FT_UINT24, BASE_HEX, NULL, "rdma.mlnxextportinfo.reserved", "Reserved", "Zero.")    \
    U(uint8_t, linkspeedsupported, 56, 8, FT_UINT8, BASE_HEX, NULL, "rdma.mlnxextportinfo.linkspeedsupported",         \
      "LinkSpeedSupported", "1: FDR10 is supported.")                                                                  \
    U(uint32_t, reserved3, 64, 24, FT_UINT24, BASE_HEX, NULL, "rdma.mlnxextportinfo.reserved", "Reserved", "Zero.")    \
    U(uint8_t, linkspeedenabled, 88, 8, FT_UINT8, BASE_HEX, NULL, "rdma.mlnxextportinfo.linkspeedenabled",             \
      "LinkSpeedEnabled", "1: FDR10 is enabled.")                                                                      \
    U(uint32_t, reserved4, 96, 24, FT_UINT24, BASE_HEX, NULL, "rdma.mlnxextportinfo.reserved", "Reserved", "Zero.")    \
    U(uint8_t, linkspeedactive, 120, 8, FT_UINT8, BASE_HEX, NULL, "rdma.mlnxextportinfo.linkspeedactive",              \
      "LinkSpeedActive", "1: the link runs at FDR10.")                                                                 \
    A(reserved5, 128, 384, FT_BYTES, "rdma.mlnxextportinfo.reserved", "Reserved", "Zero.")

/* All headers of this file: NAME_hdr. */
#define SMP_HDRS(X)                                                                                                    \
    X(smplid)                                                                                                          \
    X(smpdr)                                                                                                           \
    X(smppath)                                                                                                         \
    X(nodedesc)                                                                                                        \
    X(nodeinfo)                                                                                                        \
    X(switchinfo)                                                                                                      \
    X(guidinfo)                                                                                                        \
    X(pkeytable)                                                                                                       \
    X(sl2vl) X(vlarb) X(lft) X(rft) X(mft) X(lswp) X(sminfo) X(vendordiag) X(ledinfo) X(portinfoext) X(mlnxportinfo)
SMP_HDRS(HDR_EXTERN)

#endif
