/* layer 1 (wire): the PortInfo attribute (OpenSM ib_types.h, libibmad fields.c). */
#ifndef RDMATRACE_DISSECT_MAD_PORTINFO_H
#define RDMATRACE_DISSECT_MAD_PORTINFO_H

#include "dissect/mad/mad.h"

/* PortInfo: state, settings and capabilities of a port, 64 bytes. */
#define PORTINFO_FIELDS(U, A, V)                                                                                       \
    U(uint64_t, m_key, 0, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.portinfo.m_key", "M_Key",                         \
      "Key that guards the port against other managers.")                                                              \
    U(uint64_t, guid, 64, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.portinfo.guid", "GidPrefix",                      \
      "Prefix of the GIDs of the port.")                                                                               \
    U(uint16_t, lid, 128, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.portinfo.lid", "LID", "Base LID.")                \
    U(uint16_t, mastersmlid, 144, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.portinfo.mastersmlid", "MasterSMLID",     \
      "LID of the master subnet manager.")                                                                             \
    U(uint32_t, capabilitymask, 160, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask",              \
      "CapabilityMask", "What the port supports.")                                                                     \
    U(uint16_t, diagcode, 192, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.portinfo.diagcode", "DiagCode",              \
      "State of the self test.")                                                                                       \
    U(uint16_t, m_keyleaseperiod, 208, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.portinfo.m_keyleaseperiod",          \
      "M_KeyLeasePeriod", "Seconds until the M_Key protection lapses; 0: never.")                                      \
    U(uint8_t, localportnum, 224, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.portinfo.localportnum", "LocalPortNum",     \
      "Port that the packet came through.")                                                                            \
    U(uint8_t, linkwidthenabled, 232, 8, FT_UINT8, BASE_HEX, &link_width_desc, "infiniband.portinfo.linkwidthenabled", \
      "LinkWidthEnabled", "Widths that the link may use.")                                                             \
    U(uint8_t, linkwidthsupported, 240, 8, FT_UINT8, BASE_HEX, &link_width_desc,                                       \
      "infiniband.portinfo.linkwidthsupported", "LinkWidthSupported", "Widths that the port supports.")                \
    U(uint8_t, linkwidthactive, 248, 8, FT_UINT8, BASE_HEX, &link_width_desc, "infiniband.portinfo.linkwidthactive",   \
      "LinkWidthActive", "Width of the link.")                                                                         \
    U(uint8_t, linkspeedsupported, 256, 4, FT_UINT8, BASE_HEX, &link_speed_desc,                                       \
      "infiniband.portinfo.linkspeedsupported", "LinkSpeedSupported", "Speeds that the port supports.")                \
    U(uint8_t, portstate, 260, 4, FT_UINT8, BASE_HEX, &port_state_desc, "infiniband.portinfo.portstate", "PortState",  \
      "State of the logical link.")                                                                                    \
    U(uint8_t, portphysicalstate, 264, 4, FT_UINT8, BASE_HEX, &port_phys_state_desc,                                   \
      "infiniband.portinfo.portphysicalstate", "PortPhysicalState", "State of the physical link.")                     \
    U(uint8_t, linkdowndefaultstate, 268, 4, FT_UINT8, BASE_HEX, &port_down_state_desc,                                \
      "infiniband.portinfo.linkdowndefaultstate", "LinkDownDefaultState", "State that a link that goes down takes.")   \
    U(uint8_t, m_keyprotectbits, 272, 2, FT_UINT8, BASE_HEX, NULL, "infiniband.portinfo.m_keyprotectbits",             \
      "M_KeyProtectBits", "How strictly the M_Key is checked.")                                                        \
    U(uint8_t, reserved, 274, 3, FT_UINT8, BASE_HEX, NULL, "rdma.portinfo.reserved", "Reserved", "Zero.")              \
    U(uint8_t, lmc, 277, 3, FT_UINT8, BASE_HEX, NULL, "infiniband.portinfo.lmc", "LMC",                                \
      "The port has 2 to this power LIDs.")                                                                            \
    U(uint8_t, linkspeedactive, 280, 4, FT_UINT8, BASE_HEX, &link_speed_desc, "infiniband.portinfo.linkspeedactive",   \
      "LinkSpeedActive", "Speed of the link.")                                                                         \
    U(uint8_t, linkspeedenabled, 284, 4, FT_UINT8, BASE_HEX, &link_speed_desc, "infiniband.portinfo.linkspeedenabled", \
      "LinkSpeedEnabled", "Speeds that the link may use.")                                                             \
    U(uint8_t, neighbormtu, 288, 4, FT_UINT8, BASE_HEX, &mtu_desc, "infiniband.portinfo.neighbormtu", "NeighborMTU",   \
      "MTU of the link.")                                                                                              \
    U(uint8_t, mastersmsl, 292, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.portinfo.mastersmsl", "MasterSMSL",           \
      "Service level to the master subnet manager.")                                                                   \
    U(uint8_t, vlcap, 296, 4, FT_UINT8, BASE_HEX, &vl_cap_desc, "infiniband.portinfo.vlcap", "VLCap",                  \
      "Data lanes that the port supports.")                                                                            \
    U(uint8_t, inittype, 300, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.portinfo.inittype", "InitType",                 \
      "What the manager is asked to keep or reset.")                                                                   \
    U(uint8_t, vlhighlimit, 304, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.portinfo.vlhighlimit", "VLHighLimit",        \
      "Share of the high priority lanes in units of 4096 bytes.")                                                      \
    U(uint8_t, vlarbitrationhighcap, 312, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.portinfo.vlarbitrationhighcap",     \
      "VLArbitrationHighCap", "Entries of the high priority arbitration table.")                                       \
    U(uint8_t, vlarbitrationlowcap, 320, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.portinfo.vlarbitrationlowcap",       \
      "VLArbitrationLowCap", "Entries of the low priority arbitration table.")                                         \
    U(uint8_t, inittypereply, 328, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.portinfo.inittypereply", "InitTypeReply",  \
      "What the manager did about InitType.")                                                                          \
    U(uint8_t, mtucap, 332, 4, FT_UINT8, BASE_HEX, &mtu_desc, "infiniband.portinfo.mtucap", "MTUCap",                  \
      "Largest MTU that the port supports.")                                                                           \
    U(uint8_t, vlstallcount, 336, 3, FT_UINT8, BASE_HEX, NULL, "infiniband.portinfo.vlstallcount", "VLStallCount",     \
      "Packets that may be dropped in a row before a lane stalls.")                                                    \
    U(uint8_t, hoqlife, 339, 5, FT_UINT8, BASE_HEX, NULL, "infiniband.portinfo.hoqlife", "HOQLife",                    \
      "Code of the time that a packet may stay at the head of a queue.")                                               \
    U(uint8_t, operationalvls, 344, 4, FT_UINT8, BASE_HEX, &vl_cap_desc, "infiniband.portinfo.operationalvls",         \
      "OperationalVLs", "Data lanes in use.")                                                                          \
    U(uint8_t, partitionenforcementinbound, 348, 1, FT_UINT8, BASE_HEX, NULL,                                          \
      "infiniband.portinfo.partitionenforcementinbound", "PartitionEnforcementInbound",                                \
      "Partitions are enforced on packets that come in.")                                                              \
    U(uint8_t, partitionenforcementoutbound, 349, 1, FT_UINT8, BASE_HEX, NULL,                                         \
      "infiniband.portinfo.partitionenforcementoutbound", "PartitionEnforcementOutbound",                              \
      "Partitions are enforced on packets that go out.")                                                               \
    U(uint8_t, filterrawinbound, 350, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.portinfo.filterrawinbound",             \
      "FilterRawInbound", "Raw packets that come in are discarded.")                                                   \
    U(uint8_t, filterrawoutbound, 351, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.portinfo.filterrawoutbound",           \
      "FilterRawOutbound", "Raw packets that go out are discarded.")                                                   \
    U(uint16_t, m_keyviolations, 352, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.portinfo.m_keyviolations",            \
      "M_KeyViolations", "SMPs with a wrong M_Key.")                                                                   \
    U(uint16_t, p_keyviolations, 368, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.portinfo.p_keyviolations",            \
      "P_KeyViolations", "Packets with a wrong P_Key.")                                                                \
    U(uint16_t, q_keyviolations, 384, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.portinfo.q_keyviolations",            \
      "Q_KeyViolations", "Packets with a wrong Q_Key.")                                                                \
    U(uint8_t, guidcap, 400, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.portinfo.guidcap", "GUIDCap",                    \
      "GUIDs that the port can have.")                                                                                 \
    U(uint8_t, clientreregister, 408, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.portinfo.clientreregister",             \
      "ClientReregister", "The manager asks clients to register again.")                                               \
    U(uint8_t, mcastpkeytrapsuppression, 409, 2, FT_UINT8, BASE_HEX, NULL, "rdma.portinfo.mcastpkeytrapsuppression",   \
      "McastPkeyTrapSuppression", "Traps for P_Key violations of multicast packets are suppressed.")                   \
    U(uint8_t, subnettimeout, 411, 5, FT_UINT8, BASE_HEX, NULL, "infiniband.portinfo.subnettimeout", "SubnetTimeOut",  \
      "Code of the longest time that a packet travels in the subnet: 4.096 us times 2 to this power.")                 \
    U(uint8_t, reserved2, 416, 3, FT_UINT8, BASE_HEX, NULL, "rdma.portinfo.reserved", "Reserved", "Zero.")             \
    U(uint8_t, resptimevalue, 419, 5, FT_UINT8, BASE_HEX, NULL, "infiniband.portinfo.resptimevalue", "RespTimeValue",  \
      "Code of the longest time until a response: 4.096 us times 2 to this power.")                                    \
    U(uint8_t, localphyerrors, 424, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.portinfo.localphyerrors",                 \
      "LocalPhyErrors", "Threshold of local physical errors.")                                                         \
    U(uint8_t, overrunerrors, 428, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.portinfo.overrunerrors", "OverrunErrors",  \
      "Threshold of buffer overruns.")                                                                                 \
    U(uint16_t, maxcredithint, 432, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.portinfo.maxcredithint",                \
      "MaxCreditHint", "Receive buffer as credits.")                                                                   \
    U(uint8_t, reserved3, 448, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portinfo.reserved", "Reserved", "Zero.")             \
    U(uint32_t, linkroundtriplatency, 456, 24, FT_UINT24, BASE_HEX, NULL, "infiniband.portinfo.linkroundtriplatency",  \
      "LinkRoundTripLatency", "Round trip of the link.")                                                               \
    U(uint16_t, capabilitymask2, 480, 16, FT_UINT16, BASE_HEX, NULL, "rdma.portinfo.capabilitymask2",                  \
      "CapabilityMask2", "What the port supports, continued.")                                                         \
    U(uint8_t, linkspeedextactive, 496, 4, FT_UINT8, BASE_HEX, &link_speed_ext_desc,                                   \
      "rdma.portinfo.linkspeedextactive", "LinkSpeedExtActive", "Speed of the link beyond 10 Gb/s per lane; 0: none.") \
    U(uint8_t, linkspeedextsupported, 500, 4, FT_UINT8, BASE_HEX, &link_speed_ext_desc,                                \
      "rdma.portinfo.linkspeedextsupported", "LinkSpeedExtSupported", "Such speeds that the port supports.")           \
    U(uint8_t, reserved4, 504, 3, FT_UINT8, BASE_HEX, NULL, "rdma.portinfo.reserved", "Reserved", "Zero.")             \
    U(uint8_t, linkspeedextenabled, 507, 5, FT_UINT8, BASE_HEX, &link_speed_ext_desc,                                  \
      "rdma.portinfo.linkspeedextenabled", "LinkSpeedExtEnabled", "Such speeds that the link may use.")                \
    V(NULL, 190, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.issm", "SM", "Bit 1 of the mask.")  \
    V(NULL, 189, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.noticesupported",                   \
      "NoticeSupported", "Bit 2 of the mask.")                                                                         \
    V(NULL, 188, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.trapsupported", "TrapSupported",    \
      "Bit 3 of the mask.")                                                                                            \
    V(NULL, 187, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.optionalipdsupported",              \
      "OptionalIPDSupported", "Bit 4 of the mask.")                                                                    \
    V(NULL, 186, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.automaticmigrationsupported",       \
      "AutomaticMigrationSupported", "Bit 5 of the mask.")                                                             \
    V(NULL, 185, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.slmappingsupported",                \
      "SLMappingSupported", "Bit 6 of the mask.")                                                                      \
    V(NULL, 184, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.mkeynvram", "MKeyNVRAM",            \
      "Bit 7 of the mask.")                                                                                            \
    V(NULL, 183, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.pkeynvram", "PKeyNVRAM",            \
      "Bit 8 of the mask.")                                                                                            \
    V(NULL, 182, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.ledinfosupported",                  \
      "LEDInfoSupported", "Bit 9 of the mask.")                                                                        \
    V(NULL, 181, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.smdisabled", "SMdisabled",          \
      "Bit 10 of the mask.")                                                                                           \
    V(NULL, 180, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.systemimageguidsupported",          \
      "SystemImageGUIDSupported", "Bit 11 of the mask.")                                                               \
    V(NULL, 179, 1, FT_UINT32, BASE_HEX, NULL,                                                                         \
      "infiniband.portinfo.capabilitymask.pkeyswitchexternalporttrapsupported", "PKeySwitchExternalPortTrapSupported", \
      "Bit 12 of the mask.")                                                                                           \
    V(NULL, 178, 1, FT_UINT32, BASE_HEX, NULL, "rdma.portinfo.capabilitymask.cableinfosupported",                      \
      "CableInfoSupported", "Bit 13 of the mask.")                                                                     \
    V(NULL, 177, 1, FT_UINT32, BASE_HEX, NULL, "rdma.portinfo.capabilitymask.extendedspeedssupported",                 \
      "ExtendedSpeedsSupported", "Bit 14 of the mask.")                                                                \
    V(NULL, 176, 1, FT_UINT32, BASE_HEX, NULL, "rdma.portinfo.capabilitymask.capabilitymask2supported",                \
      "CapabilityMask2Supported", "Bit 15 of the mask.")                                                               \
    V(NULL, 175, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.communicationmanagementsupported",  \
      "CommunicationManagementSupported", "Bit 16 of the mask.")                                                       \
    V(NULL, 174, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.snmptunnelingsupported",            \
      "SNMPTunnelingSupported", "Bit 17 of the mask.")                                                                 \
    V(NULL, 173, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.reinitsupported",                   \
      "ReinitSupported", "Bit 18 of the mask.")                                                                        \
    V(NULL, 172, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.devicemanagementsupported",         \
      "DeviceManagementSupported", "Bit 19 of the mask.")                                                              \
    V(NULL, 171, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.vendorclasssupported",              \
      "VendorClassSupported", "Bit 20 of the mask.")                                                                   \
    V(NULL, 170, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.drnoticesupported",                 \
      "DRNoticeSupported", "Bit 21 of the mask.")                                                                      \
    V(NULL, 169, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.capabilitymasknoticesupported",     \
      "CapabilityMaskNoticeSupported", "Bit 22 of the mask.")                                                          \
    V(NULL, 168, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.bootmanagementsupported",           \
      "BootManagementSupported", "Bit 23 of the mask.")                                                                \
    V(NULL, 167, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.linkroundtriplatencysupported",     \
      "LinkRoundTripLatencySupported", "Bit 24 of the mask.")                                                          \
    V(NULL, 166, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.clientregistrationsupported",       \
      "ClientRegistrationSupported", "Bit 25 of the mask.")                                                            \
    V(NULL, 165, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.otherlocalchangesnoticesupported",  \
      "OtherLocalChangesNoticeSupported", "Bit 26 of the mask.")                                                       \
    V(NULL, 164, 1, FT_UINT32, BASE_HEX, NULL, "infiniband.portinfo.capabilitymask.linkspeedwidthpairstablesupported", \
      "LinkSpeedWIdthPairsTableSupported", "Bit 27 of the mask.")                                                      \
    V(NULL, 163, 1, FT_UINT32, BASE_HEX, NULL, "rdma.portinfo.capabilitymask.vendorspecificmadstablesupported",        \
      "VendorSpecificMadsTableSupported", "Bit 28 of the mask.")                                                       \
    V(NULL, 162, 1, FT_UINT32, BASE_HEX, NULL, "rdma.portinfo.capabilitymask.multicastpkeytrapsuppressionsupported",   \
      "MulticastPKeyTrapSuppressionSupported", "Bit 29 of the mask.")                                                  \
    V(NULL, 161, 1, FT_UINT32, BASE_HEX, NULL, "rdma.portinfo.capabilitymask.multicastfdbtopsupported",                \
      "MulticastFDBTopSupported", "Bit 30 of the mask.")                                                               \
    V(NULL, 160, 1, FT_UINT32, BASE_HEX, NULL, "rdma.portinfo.capabilitymask.hierarchyinfosupported",                  \
      "HierarchyInfoSupported", "Bit 31 of the mask.")

/* All headers of this file: NAME_hdr. */
#define PORTINFO_HDRS(X) X(portinfo)
PORTINFO_HDRS(HDR_EXTERN)

#endif
