/* layer 1 (wire): notices and traps (OpenSM ib_types.h; traps 68 and 69: Wireshark). */
#ifndef RDMATRACE_DISSECT_MAD_NOTICE_H
#define RDMATRACE_DISSECT_MAD_NOTICE_H

#include "dissect/mad/mad.h"

/*
 * Start of a notice, 10 bytes; 54 bytes of details follow.
 *   0 1              8                16                                32
 *   +-+--------------+----------------+---------------------------------+
 *   |g|    type      |       producer type, or vendor's OUI             |
 *   +-+--------------+----------------+---------------------------------+
 *   |  trap number, or device         |           issuer LID            |
 *   +-+-------------------------------+---------------------------------+
 *   |t|            count              |
 *   +-+-------------------------------+
 */
#define NOTICE_FIELDS(U, A, V)                                                                                         \
    U(uint8_t, isgeneric, 0, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.notice.isgeneric", "IsGeneric",                  \
      "1: of the specification, 0: of a vendor.")                                                                      \
    U(uint8_t, type, 1, 7, FT_UINT8, BASE_HEX, &notice_type_desc, "infiniband.notice.type", "Type",                    \
      "How grave it is.")                                                                                              \
    U(uint32_t, producertypevendorid, 8, 24, FT_UINT24, BASE_HEX, &producer_desc,                                      \
      "infiniband.notice.producertypevendorid", "ProducerTypeVendorID",                                                \
      "Kind of the sender; vendor's OUI in a vendor's notice.")                                                        \
    U(uint16_t, trapnumberdeviceid, 32, 16, FT_UINT16, BASE_HEX, &trap_desc, "infiniband.notice.trapnumberdeviceid",   \
      "TrapNumberDeviceID", "What happened; the device in a vendor's notice.")                                         \
    U(uint16_t, issuerlid, 48, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.notice.issuerlid", "IssuerLID",              \
      "LID of the sender.")                                                                                            \
    U(uint8_t, noticetoggle, 64, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.notice.noticetoggle", "NoticeToggle",        \
      "Changes with each new notice.")                                                                                 \
    U(uint16_t, noticecount, 65, 15, FT_UINT16, BASE_HEX, NULL, "infiniband.notice.noticecount", "NoticeCount",        \
      "Notices that wait.")

/* Details of a notice as bytes, 54 bytes. */
#define DETAILS_FIELDS(U, A, V)                                                                                        \
    A(datadetails, 0, 432, FT_BYTES, "infiniband.notice.datadetails", "DataDetails", "Details, by the trap number.")

/* GID of the sender, 16 bytes after the details of a notice to or from subnet administration. */
#define ISSUERGID_FIELDS(U, A, V)                                                                                      \
    A(issuergid, 0, 128, FT_IPV6, "rdma.notice.issuergid", "IssuerGID", "GID of the sender.")

/* Traps 64 to 67: a GID went in or out of service, or a multicast group was created or deleted, 22 bytes. */
#define TRAP64_FIELDS(U, A, V)                                                                                         \
    U(uint64_t, reserved, 0, 48, FT_UINT48, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")                 \
    A(gidaddr, 48, 128, FT_IPV6, "infiniband.trap.gidaddr", "GIDADDR", "GID of the port or of the group.")

/* Traps 68 and 69: paths were withdrawn or are available again, 9 bytes (Wireshark). */
#define TRAP68_FIELDS(U, A, V)                                                                                         \
    U(uint64_t, comp_mask, 0, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.trap.comp_mask", "COMP_MASK",                 \
      "Components of the path record that count.")                                                                     \
    U(uint8_t, wait_for_repath, 64, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.trap.wait_for_repath", "WAIT_FOR_REPATH", \
      "A new path will be offered.")                                                                                   \
    U(uint8_t, reserved, 65, 7, FT_UINT8, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")

/* Trap 128: the state of a link of a switch changed, 2 bytes. */
#define TRAP128_FIELDS(U, A, V)                                                                                        \
    U(uint16_t, lidaddr, 0, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.trap.lidaddr", "LIDADDR", "LID of the switch.")

/* Traps 129 to 131: a threshold of link errors was exceeded, 5 bytes. */
#define TRAP129_FIELDS(U, A, V)                                                                                        \
    U(uint16_t, reserved, 0, 16, FT_UINT16, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")                 \
    U(uint16_t, lidaddr, 16, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.trap.lidaddr", "LIDADDR", "LID of the port.")  \
    U(uint8_t, portno, 32, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.trap.portno", "PORTNO", "Port.")

/* Trap 144: settings of a port changed, 14 bytes. */
#define TRAP144_FIELDS(U, A, V)                                                                                        \
    U(uint16_t, reserved, 0, 16, FT_UINT16, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")                 \
    U(uint16_t, lidaddr, 16, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.trap.lidaddr", "LIDADDR", "LID of the port.")  \
    U(uint16_t, reserved2, 32, 15, FT_UINT16, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")               \
    U(uint8_t, otherlocalchanges, 47, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.trap.otherlocalchanges",                \
      "OtherLocalChanges", "The change flags count.")                                                                  \
    U(uint32_t, capabilitymask, 48, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.trap.capabilitymask", "CAPABILITYMASK", \
      "New CapabilityMask of the port.")                                                                               \
    U(uint16_t, reserved3, 80, 10, FT_UINT16, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")               \
    U(uint8_t, capabilitymask2change, 90, 1, FT_BOOL, BASE_DEC, NULL, "rdma.trap.capabilitymask2change",               \
      "CapabilityMask2Change", "CapabilityMask2 changed.")                                                             \
    U(uint8_t, hierarchyinfochange, 91, 1, FT_BOOL, BASE_DEC, NULL, "rdma.trap.hierarchyinfochange",                   \
      "HierarchyInfoChange", "Hierarchy information changed.")                                                         \
    U(uint8_t, smprioritychange, 92, 1, FT_BOOL, BASE_DEC, NULL, "rdma.trap.smprioritychange", "SMPriorityChange",     \
      "Priority of the subnet manager changed.")                                                                       \
    U(uint8_t, linkspeecenabledchange, 93, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.trap.linkspeecenabledchange",      \
      "LinkSpeecEnabledChange", "Enabled link speeds changed.")                                                        \
    U(uint8_t, linkwidthenabledchange, 94, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.trap.linkwidthenabledchange",      \
      "LinkWidthEnabledChange", "Enabled link widths changed.")                                                        \
    U(uint8_t, nodedescriptionchange, 95, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.trap.nodedescriptionchange",        \
      "NodeDescriptionChange", "The node description changed.")                                                        \
    U(uint16_t, capabilitymask2, 96, 16, FT_UINT16, BASE_HEX, NULL, "rdma.trap.capabilitymask2", "CapabilityMask2",    \
      "New CapabilityMask2 of the port.")

/* Trap 145: the SystemImageGUID changed, 14 bytes. */
#define TRAP145_FIELDS(U, A, V)                                                                                        \
    U(uint16_t, reserved, 0, 16, FT_UINT16, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")                 \
    U(uint16_t, lidaddr, 16, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.trap.lidaddr", "LIDADDR", "LID of the port.")  \
    U(uint16_t, reserved2, 32, 16, FT_UINT16, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")               \
    U(uint64_t, systemimageguid, 48, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.trap.systemimageguid",                 \
      "SYSTEMIMAGEGUID", "New SystemImageGUID.")

/* Trap 256: an SMP with a wrong M_Key was received, 54 bytes. */
#define TRAP256_FIELDS(U, A, V)                                                                                        \
    U(uint16_t, reserved, 0, 16, FT_UINT16, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")                 \
    U(uint16_t, lidaddr, 16, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.trap.lidaddr", "LIDADDR",                      \
      "LID of the sender of the SMP.")                                                                                 \
    U(uint16_t, drslid, 32, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.trap.drslid", "DRSLID", "DrSLID of the SMP.")   \
    U(uint8_t, method, 48, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.trap.method", "METHOD", "Method of the SMP.")      \
    U(uint8_t, reserved2, 56, 8, FT_UINT8, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")                  \
    U(uint16_t, attributeid, 64, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.trap.attributeid", "ATTRIBUTEID",          \
      "Attribute of the SMP.")                                                                                         \
    U(uint32_t, attributemodifier, 80, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.trap.attributemodifier",             \
      "ATTRIBUTEMODIFIER", "Attribute modifier of the SMP.")                                                           \
    U(uint64_t, mkey, 112, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.trap.mkey", "MKEY", "Wrong M_Key.")              \
    U(uint8_t, reserved3, 176, 8, FT_UINT8, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")                 \
    U(uint8_t, drnotice, 184, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.trap.drnotice", "DRNotice",                     \
      "The SMP was directed-route.")                                                                                   \
    U(uint8_t, drpathtruncated, 185, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.trap.drpathtruncated",                   \
      "DRPathTruncated", "The route is longer than what fits here.")                                                   \
    U(uint8_t, drhopcount, 186, 6, FT_UINT8, BASE_HEX, NULL, "infiniband.trap.drhopcount", "DRHopCount",               \
      "Hops in the return path.")                                                                                      \
    A(drnoticereturnpath, 192, 240, FT_BYTES, "infiniband.trap.drnoticereturnpath", "DRNoticeReturnPath",              \
      "Return path.")

/* Traps 257 and 258: a packet with a wrong P_Key (257) or Q_Key (258) was received, 50 bytes. */
#define TRAP257_FIELDS(U, A, V)                                                                                        \
    U(uint16_t, reserved, 0, 16, FT_UINT16, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")                 \
    U(uint16_t, lidaddr1, 16, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.trap.lidaddr1", "LIDADDR1",                   \
      "LID of the sender.")                                                                                            \
    U(uint16_t, lidaddr2, 32, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.trap.lidaddr2", "LIDADDR2",                   \
      "LID of the receiver.")                                                                                          \
    U(uint32_t, key, 48, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.trap.key", "KEY", "Wrong key.")                    \
    U(uint8_t, sl, 80, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.trap.sl", "SL", "Service level.")                      \
    U(uint8_t, reserved2, 84, 4, FT_UINT8, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")                  \
    U(uint32_t, qp1, 88, 24, FT_UINT24, BASE_HEX, NULL, "infiniband.trap.qp1", "QP1", "QP of the sender.")             \
    U(uint8_t, reserved3, 112, 8, FT_UINT8, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")                 \
    U(uint32_t, qp2, 120, 24, FT_UINT24, BASE_HEX, NULL, "infiniband.trap.qp2", "QP2", "QP of the receiver.")          \
    A(gidaddr1, 144, 128, FT_IPV6, "infiniband.trap.gidaddr1", "GIDADDR1", "GID of the sender.")                       \
    A(gidaddr2, 272, 128, FT_IPV6, "infiniband.trap.gidaddr2", "GIDADDR2", "GID of the receiver.")

/* Trap 259: a packet with a wrong P_Key at a switch port, 51 bytes. */
#define TRAP259_FIELDS(U, A, V)                                                                                        \
    U(uint16_t, datavalid, 0, 16, FT_UINT16, BASE_HEX, NULL, "rdma.trap.datavalid", "DataValid",                       \
      "Which of the values are known.")                                                                                \
    U(uint16_t, lidaddr1, 16, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.trap.lidaddr1", "LIDADDR1",                   \
      "LID of the sender.")                                                                                            \
    U(uint16_t, lidaddr2, 32, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.trap.lidaddr2", "LIDADDR2",                   \
      "LID of the receiver.")                                                                                          \
    U(uint16_t, pkey, 48, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.trap.pkey", "PKEY", "Wrong P_Key.")               \
    U(uint8_t, sl, 64, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.trap.sl", "SL", "Service level.")                      \
    U(uint8_t, reserved, 68, 4, FT_UINT8, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")                   \
    U(uint32_t, qp1, 72, 24, FT_UINT24, BASE_HEX, NULL, "infiniband.trap.qp1", "QP1", "QP of the sender.")             \
    U(uint8_t, reserved2, 96, 8, FT_UINT8, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")                  \
    U(uint32_t, qp2, 104, 24, FT_UINT24, BASE_HEX, NULL, "infiniband.trap.qp2", "QP2", "QP of the receiver.")          \
    A(gidaddr1, 128, 128, FT_IPV6, "infiniband.trap.gidaddr1", "GIDADDR1", "GID of the sender.")                       \
    A(gidaddr2, 256, 128, FT_IPV6, "infiniband.trap.gidaddr2", "GIDADDR2", "GID of the receiver.")                     \
    U(uint16_t, swlidaddr, 384, 16, FT_UINT16, BASE_HEX, NULL, "rdma.trap.swlidaddr", "SwLIDAddr",                     \
      "LID of the switch.")                                                                                            \
    U(uint8_t, portno, 400, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.trap.portno", "PORTNO", "Port of the switch.")

/* Trap 259 of baseboard management: a datagram with a wrong B_Key was received, 38 bytes. */
#define TRAPBKEY_FIELDS(U, A, V)                                                                                       \
    U(uint16_t, lidaddr, 0, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.trap.lidaddr", "LIDADDR", "LID of the sender.") \
    U(uint8_t, method, 16, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.trap.method", "METHOD", "Method of the datagram.") \
    U(uint8_t, reserved, 24, 8, FT_UINT8, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")                   \
    U(uint16_t, attributeid, 32, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.trap.attributeid", "ATTRIBUTEID",          \
      "Attribute of the datagram.")                                                                                    \
    U(uint32_t, attributemodifier, 48, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.trap.attributemodifier",             \
      "ATTRIBUTEMODIFIER", "Attribute modifier of the datagram.")                                                      \
    U(uint8_t, reserved2, 80, 8, FT_UINT8, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")                  \
    U(uint32_t, qp, 88, 24, FT_UINT24, BASE_HEX, NULL, "rdma.trap.qp", "QP", "QP of the sender.")                      \
    U(uint64_t, bkey, 112, 64, FT_UINT64, BASE_HEX, NULL, "rdma.trap.bkey", "BKey", "Wrong B_Key.")                    \
    A(gid, 176, 128, FT_IPV6, "rdma.trap.gid", "GID", "GID of the sender.")

/* Trap 0 of congestion control: a datagram with a wrong CC_Key was received, 40 bytes. */
#define TRAPCCKEY_FIELDS(U, A, V)                                                                                      \
    U(uint16_t, slid, 0, 16, FT_UINT16, BASE_HEX, NULL, "rdma.trap.slid", "SLID", "LID of the sender.")                \
    U(uint8_t, method, 16, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.trap.method", "METHOD", "Method of the datagram.") \
    U(uint8_t, reserved, 24, 8, FT_UINT8, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")                   \
    U(uint16_t, attributeid, 32, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.trap.attributeid", "ATTRIBUTEID",          \
      "Attribute of the datagram.")                                                                                    \
    U(uint16_t, reserved2, 48, 16, FT_UINT16, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")               \
    U(uint32_t, attributemodifier, 64, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.trap.attributemodifier",             \
      "ATTRIBUTEMODIFIER", "Attribute modifier of the datagram.")                                                      \
    U(uint8_t, reserved3, 96, 8, FT_UINT8, BASE_HEX, NULL, "rdma.trap.reserved", "Reserved", "Zero.")                  \
    U(uint32_t, qp, 104, 24, FT_UINT24, BASE_HEX, NULL, "rdma.trap.qp", "QP", "Destination QP of the datagram.")       \
    U(uint64_t, cckey, 128, 64, FT_UINT64, BASE_HEX, NULL, "rdma.trap.cckey", "CCKey", "Wrong CC_Key.")                \
    A(sgid, 192, 128, FT_IPV6, "rdma.trap.sgid", "SGID", "GID of the sender.")

/* ClassPortInfo: capabilities of a management class at a port, and where to send its requests and traps, 72 bytes. */
#define CLASSPORTINFO_FIELDS(U, A, V)                                                                                  \
    U(uint8_t, baseversion, 0, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.classportinfo.baseversion", "BaseVersion",     \
      "MAD base version that is supported.")                                                                           \
    U(uint8_t, classversion, 8, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.classportinfo.classversion", "ClassVersion",  \
      "Class version that is supported.")                                                                              \
    U(uint16_t, capabilitymask, 16, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.classportinfo.capabilitymask",          \
      "CapabilityMask",                                                                                                \
      "Bit 0: sends traps, bit 1: has Get and Set of notices, bit 2: CapabilityMask2; 8 to 15 by class.")              \
    U(uint32_t, capabilitymask2, 32, 27, FT_UINT32, BASE_HEX, NULL, "infiniband.classportinfo.capabilitymask2",        \
      "CapabilityMask2", "Further abilities, by class.")                                                               \
    U(uint8_t, resptimevalue, 59, 5, FT_UINT8, BASE_HEX, NULL, "infiniband.classportinfo.resptimevalue",               \
      "RespTimeValue", "Code of the longest time until a response: 4.096 us times 2 to this power.")                   \
    A(redirectgid, 64, 128, FT_IPV6, "infiniband.classportinfo.redirectgid", "RedirectGID",                            \
      "GID that requests shall go to; 0: no redirection.")                                                             \
    U(uint8_t, redirecttc, 192, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.classportinfo.redirecttc", "RedirectTC",      \
      "Traffic class to it.")                                                                                          \
    U(uint8_t, redirectsl, 200, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.classportinfo.redirectsl", "RedirectSL",      \
      "Service level to it.")                                                                                          \
    U(uint32_t, redirectfl, 204, 20, FT_UINT24, BASE_HEX, NULL, "infiniband.classportinfo.redirectfl", "RedirectFL",   \
      "Flow label to it.")                                                                                             \
    U(uint16_t, redirectlid, 224, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.classportinfo.redirectlid",               \
      "RedirectLID", "LID to it.")                                                                                     \
    U(uint16_t, redirectpkey, 240, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.classportinfo.redirectpkey",             \
      "RedirectP_Key", "P_Key to it.")                                                                                 \
    U(uint8_t, reserved, 256, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.classportinfo.reserved", "Reserved", "Zero.")   \
    U(uint32_t, redirectqp, 264, 24, FT_UINT24, BASE_HEX, NULL, "infiniband.classportinfo.redirectqp", "RedirectQP",   \
      "QP of it.")                                                                                                     \
    U(uint32_t, redirectqkey, 288, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.classportinfo.redirectqkey",             \
      "RedirectQ_Key", "Q_Key of it.")                                                                                 \
    A(trapgid, 320, 128, FT_IPV6, "infiniband.classportinfo.trapgid", "TrapGID", "GID that traps shall go to.")        \
    U(uint8_t, traptc, 448, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.classportinfo.traptc", "TrapTC",                  \
      "Traffic class to it.")                                                                                          \
    U(uint8_t, trapsl, 456, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.classportinfo.trapsl", "TrapSL",                  \
      "Service level to it.")                                                                                          \
    U(uint32_t, trapfl, 460, 20, FT_UINT24, BASE_HEX, NULL, "infiniband.classportinfo.trapfl", "TrapFL",               \
      "Flow label to it.")                                                                                             \
    U(uint16_t, traplid, 480, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.classportinfo.traplid", "TrapLID",            \
      "LID to it.")                                                                                                    \
    U(uint16_t, trappkey, 496, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.classportinfo.trappkey", "TrapP_Key",        \
      "P_Key to it.")                                                                                                  \
    U(uint8_t, traphl, 512, 8, FT_UINT8, BASE_HEX, NULL, "rdma.classportinfo.traphl", "TrapHL", "Hop limit to it.")    \
    U(uint32_t, trapqp, 520, 24, FT_UINT24, BASE_HEX, NULL, "infiniband.classportinfo.trapqp", "TrapQP", "QP of it.")  \
    U(uint32_t, trapqkey, 544, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.classportinfo.trapqkey", "TrapQ_Key",        \
      "Q_Key of it.")

/* All headers of this file: NAME_hdr. */
#define NOTICE_HDRS(X)                                                                                                 \
    X(notice)                                                                                                          \
    X(details)                                                                                                         \
    X(issuergid)                                                                                                       \
    X(trap64)                                                                                                          \
    X(trap68)                                                                                                          \
    X(trap128)                                                                                                         \
    X(trap129) X(trap144) X(trap145) X(trap256) X(trap257) X(trap259) X(trapbkey) X(trapcckey) X(classportinfo)
NOTICE_HDRS(HDR_EXTERN)

#define NOTICE_LEN         10
#define NOTICE_DETAILS_LEN 54
HDR_STRUCT(notice, NOTICE_FIELDS)

#endif
