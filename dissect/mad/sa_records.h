/* layer 1 (wire): records of subnet administration: a key and an attribute of a node (OpenSM ib_types.h). */
#ifndef RDMATRACE_DISSECT_MAD_SA_RECORDS_H
#define RDMATRACE_DISSECT_MAD_SA_RECORDS_H

#include "dissect/mad/mad.h"

/* Key of a NodeRecord, 4 bytes; NodeInfo and NodeDescription follow. */
#define NODEREC_FIELDS(U, A, V)                                                                                        \
    U(uint16_t, lid, 0, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.sa.lid", "LID", "LID of the node.")                 \
    U(uint16_t, reserved, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.noderecord.reserved", "Reserved", "Zero.")

/* Key of a PortInfoRecord, 4 bytes; PortInfo follows. */
#define PORTINFOREC_FIELDS(U, A, V)                                                                                    \
    U(uint16_t, endportlid, 0, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.sa.endportlid", "EndportLID",                \
      "LID of the port.")                                                                                              \
    U(uint8_t, portnum, 16, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.sa.portnum", "PortNum", "Port.")                  \
    U(uint8_t, options, 24, 8, FT_UINT8, BASE_HEX, NULL, "rdma.portinforecord.options", "Options",                     \
      "Options of the query.")

/* Key of an SLtoVLMappingTableRecord, 8 bytes; SLtoVLMappingTable follows. */
#define SL2VLREC_FIELDS(U, A, V)                                                                                       \
    U(uint16_t, lid, 0, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.sa.lid", "LID", "LID of the port.")                 \
    U(uint8_t, inputportnum, 16, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.sa.inputportnum", "InputPortNum",            \
      "Ingress port of a switch.")                                                                                     \
    U(uint8_t, outputportnum, 24, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.sa.outputportnum", "OutputPortNum",         \
      "Egress port of a switch.")                                                                                      \
    U(uint32_t, reserved, 32, 32, FT_UINT32, BASE_HEX, NULL, "rdma.sltovlrecord.reserved", "Reserved", "Zero.")

/* Key of a SwitchInfoRecord, 4 bytes; SwitchInfo follows. */
#define SWITCHINFOREC_FIELDS(U, A, V)                                                                                  \
    U(uint16_t, lid, 0, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.sa.lid", "LID", "LID of the switch.")               \
    U(uint16_t, reserved, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.switchinforecord.reserved", "Reserved", "Zero.")

/* Key of a LinearForwardingTableRecord or RandomForwardingTableRecord, 8 bytes; the block of entries follows. */
#define LFTREC_FIELDS(U, A, V)                                                                                         \
    U(uint16_t, lid, 0, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.sa.lid", "LID", "LID of the switch.")               \
    U(uint16_t, blocknum_sixteenbit, 16, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.sa.blocknum_sixteenbit",           \
      "BlockNum_SixteenBit", "Block of the table.")                                                                    \
    U(uint32_t, reserved, 32, 32, FT_UINT32, BASE_HEX, NULL, "rdma.lftrecord.reserved", "Reserved", "Zero.")

/* Key of a MulticastForwardingTableRecord, 8 bytes; the block of entries follows. */
#define MFTREC_FIELDS(U, A, V)                                                                                         \
    U(uint16_t, lid, 0, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.sa.lid", "LID", "LID of the switch.")               \
    U(uint8_t, position, 16, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.sa.position", "Position",                        \
      "Which 16 ports the masks are for.")                                                                             \
    U(uint8_t, reserved, 20, 3, FT_UINT8, BASE_HEX, NULL, "rdma.mftrecord.reserved", "Reserved", "Zero.")              \
    U(uint16_t, blocknum_ninebit, 23, 9, FT_UINT16, BASE_HEX, NULL, "infiniband.sa.blocknum_ninebit",                  \
      "BlockNum_NineBit", "Block of the table.")                                                                       \
    U(uint32_t, reserved2, 32, 32, FT_UINT32, BASE_HEX, NULL, "rdma.mftrecord.reserved", "Reserved", "Zero.")

/* Key of an SMInfoRecord, 4 bytes; SMInfo follows. */
#define SMINFOREC_FIELDS(U, A, V)                                                                                      \
    U(uint16_t, lid, 0, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.sa.lid", "LID", "LID of the subnet manager.")       \
    U(uint16_t, reserved, 16, 16, FT_UINT16, BASE_HEX, NULL, "rdma.sminforecord.reserved", "Reserved", "Zero.")

/* Key of a GuidInfoRecord, 8 bytes; GUIDInfo follows. */
#define GUIDINFOREC_FIELDS(U, A, V)                                                                                    \
    U(uint16_t, lid, 0, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.sa.lid", "LID", "LID of the port.")                 \
    U(uint8_t, blocknum_eightbit, 16, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.sa.blocknum_eightbit",                  \
      "BlockNum_EightBit", "Block of the table.")                                                                      \
    U(uint64_t, reserved, 24, 40, FT_UINT40, BASE_HEX, NULL, "rdma.guidinforecord.reserved", "Reserved", "Zero.")

/* Key of a P_KeyTableRecord, 8 bytes; the block of P_Keys follows. */
#define PKEYREC_FIELDS(U, A, V)                                                                                        \
    U(uint16_t, lid, 0, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.sa.lid", "LID", "LID of the port.")                 \
    U(uint16_t, blocknum_sixteenbit, 16, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.sa.blocknum_sixteenbit",           \
      "BlockNum_SixteenBit", "Block of the table.")                                                                    \
    U(uint8_t, portnum, 32, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.sa.portnum", "PortNum", "Port of a switch.")      \
    U(uint32_t, reserved, 40, 24, FT_UINT24, BASE_HEX, NULL, "rdma.pkeytablerecord.reserved", "Reserved", "Zero.")

/* Key of a VLArbitrationTableRecord, 8 bytes; the block of entries follows. */
#define VLARBREC_FIELDS(U, A, V)                                                                                       \
    U(uint16_t, lid, 0, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.sa.lid", "LID", "LID of the port.")                 \
    U(uint8_t, outputportnum, 16, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.sa.outputportnum", "OutputPortNum",         \
      "Port of a switch.")                                                                                             \
    U(uint8_t, blocknum_eightbit, 24, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.sa.blocknum_eightbit",                  \
      "BlockNum_EightBit", "Block of the table.")                                                                      \
    U(uint32_t, reserved, 32, 32, FT_UINT32, BASE_HEX, NULL, "rdma.vlarbitrationrecord.reserved", "Reserved", "Zero.")

/* Key of an InformInfoRecord, 24 bytes; InformInfo follows. */
#define INFORMREC_FIELDS(U, A, V)                                                                                      \
    A(subscribergid, 0, 128, FT_IPV6, "infiniband.informinforecord.subscribergid", "SubscriberGID",                    \
      "GID of the subscriber.")                                                                                        \
    U(uint16_t, enum_, 128, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.informinforecord.enum", "Enum",                 \
      "Number of the subscription.")                                                                                   \
    U(uint64_t, reserved, 144, 48, FT_UINT48, BASE_HEX, NULL, "rdma.informinforecord.reserved", "Reserved", "Zero.")

/* InformInfo: a subscription to notices, 36 bytes. */
#define INFORMINFO_FIELDS(U, A, V)                                                                                     \
    A(gid, 0, 128, FT_IPV6, "infiniband.informinfo.gid", "GID", "Only notices about this GID; 0: by LID.")             \
    U(uint16_t, lidrangebegin, 128, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.informinfo.lidrangebegin",              \
      "LIDRangeBegin", "Only notices from these LIDs; 0xffff: from all.")                                              \
    U(uint16_t, lidrangeend, 144, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.informinfo.lidrangeend", "LIDRangeEnd",   \
      "Last LID of the range.")                                                                                        \
    U(uint16_t, reserved, 160, 16, FT_UINT16, BASE_HEX, NULL, "rdma.informinfo.reserved", "Reserved", "Zero.")         \
    U(uint8_t, isgeneric, 176, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.informinfo.isgeneric", "IsGeneric",            \
      "1: notices of the specification, 0: of a vendor.")                                                              \
    U(uint8_t, subscribe, 184, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.informinfo.subscribe", "Subscribe",            \
      "1 subscribes, 0 unsubscribes.")                                                                                 \
    U(uint16_t, type, 192, 16, FT_UINT16, BASE_HEX, &notice_type_desc, "infiniband.informinfo.type", "Type",           \
      "Only notices of this type; 0xffff: all.")                                                                       \
    U(uint16_t, trapnumberdeviceid, 208, 16, FT_UINT16, BASE_HEX, &trap_desc,                                          \
      "infiniband.informinfo.trapnumberdeviceid", "TrapNumberDeviceID", "Only this trap; 0xffff: all.")                \
    U(uint32_t, qpn, 224, 24, FT_UINT24, BASE_HEX, NULL, "infiniband.informinfo.qpn", "QPN",                           \
      "QP that gets the notices.")                                                                                     \
    U(uint8_t, reserved2, 248, 3, FT_UINT8, BASE_HEX, NULL, "rdma.informinfo.reserved", "Reserved", "Zero.")           \
    U(uint8_t, resptimevalue, 251, 5, FT_UINT8, BASE_HEX, NULL, "infiniband.informinfo.resptimevalue",                 \
      "RespTimeValue", "Code of the time in which the subscriber answers.")                                            \
    U(uint8_t, reserved3, 256, 8, FT_UINT8, BASE_HEX, NULL, "rdma.informinfo.reserved", "Reserved", "Zero.")           \
    U(uint32_t, producertypevendorid, 264, 24, FT_UINT24, BASE_HEX, &producer_desc,                                    \
      "infiniband.informinfo.producertypevendorid", "ProducerTypeVendorID",                                            \
      "Only notices of this producer; 0xffffff: all.")

/* LinkRecord: a link between two ports, 6 bytes. */
#define LINKREC_FIELDS(U, A, V)                                                                                        \
    U(uint16_t, fromlid, 0, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.linkrecord.fromlid", "FromLID",                 \
      "LID of one end.")                                                                                               \
    U(uint8_t, fromport, 16, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.linkrecord.fromport", "FromPort",                \
      "Port of one end.")                                                                                              \
    U(uint8_t, toport, 24, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.linkrecord.toport", "ToPort",                      \
      "Port of the other end.")                                                                                        \
    U(uint16_t, tolid, 32, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.linkrecord.tolid", "ToLID",                      \
      "LID of the other end.")

/* All headers of this file: NAME_hdr. */
#define SA_RECORD_HDRS(X)                                                                                              \
    X(noderec)                                                                                                         \
    X(portinforec)                                                                                                     \
    X(sl2vlrec)                                                                                                        \
    X(switchinforec)                                                                                                   \
    X(lftrec) X(mftrec) X(sminforec) X(guidinforec) X(pkeyrec) X(vlarbrec) X(informrec) X(informinfo) X(linkrec)
SA_RECORD_HDRS(HDR_EXTERN)

#endif
