/* layer 1 (wire): records of subnet administration about paths, groups and services (OpenSM ib_types.h, kernel
 * rdma/ib_sa.h). */
#ifndef RDMATRACE_DISSECT_MAD_SA_PATHS_H
#define RDMATRACE_DISSECT_MAD_SA_PATHS_H

#include "dissect/mad/mad.h"

/* PathRecord: a path between two ports, 64 bytes. */
#define PATHREC_FIELDS(U, A, V)                                                                                        \
    U(uint64_t, serviceid, 0, 64, FT_UINT64, BASE_HEX, NULL, "rdma.pathrecord.serviceid", "ServiceID",                 \
      "Service that the path is for; 0: any.")                                                                         \
    A(dgid, 64, 128, FT_IPV6, "infiniband.pathrecord.dgid", "DGID", "GID of the destination.")                         \
    A(sgid, 192, 128, FT_IPV6, "infiniband.pathrecord.sgid", "SGID", "GID of the source.")                             \
    U(uint16_t, dlid, 320, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.pathrecord.dlid", "DLID",                        \
      "LID of the destination.")                                                                                       \
    U(uint16_t, slid, 336, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.pathrecord.slid", "SLID", "LID of the source.")  \
    U(uint8_t, rawtraffic, 352, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.pathrecord.rawtraffic", "RawTraffic",         \
      "The path is for raw packets.")                                                                                  \
    U(uint8_t, reserved, 353, 3, FT_UINT8, BASE_HEX, NULL, "rdma.pathrecord.reserved", "Reserved", "Zero.")            \
    U(uint32_t, flowlabel, 356, 20, FT_UINT24, BASE_HEX, NULL, "infiniband.pathrecord.flowlabel", "FlowLabel",         \
      "Flow label of the GRH.")                                                                                        \
    U(uint8_t, hoplimit, 376, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.pathrecord.hoplimit", "HopLimit",               \
      "Hop limit of the GRH.")                                                                                         \
    U(uint8_t, tclass, 384, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.pathrecord.tclass", "TClass",                     \
      "Traffic class of the GRH.")                                                                                     \
    U(uint8_t, reversible, 392, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.pathrecord.reversible", "Reversible",         \
      "The path serves both directions.")                                                                              \
    U(uint8_t, numbpath, 393, 7, FT_UINT8, BASE_HEX, NULL, "infiniband.pathrecord.numbpath", "NumbPath",               \
      "Paths wanted at most.")                                                                                         \
    U(uint16_t, p_key, 400, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.pathrecord.p_key", "P_Key", "Partition.")       \
    U(uint16_t, qosclass, 416, 12, FT_UINT16, BASE_HEX, NULL, "rdma.pathrecord.qosclass", "QosClass",                  \
      "Class of service.")                                                                                             \
    U(uint8_t, sl, 428, 4, FT_UINT16, BASE_HEX, NULL, "infiniband.pathrecord.sl", "SL", "Service level.")              \
    U(uint8_t, mtuselector, 432, 2, FT_UINT8, BASE_HEX, &selector_desc, "infiniband.pathrecord.mtuselector",           \
      "MTUSelector", "How the MTU is meant.")                                                                          \
    U(uint8_t, mtu, 434, 6, FT_UINT8, BASE_HEX, &mtu_desc, "infiniband.pathrecord.mtu", "MTU", "Path MTU.")            \
    U(uint8_t, rateselector, 440, 2, FT_UINT8, BASE_HEX, &selector_desc, "infiniband.pathrecord.rateselector",         \
      "RateSelector", "How the rate is meant.")                                                                        \
    U(uint8_t, rate, 442, 6, FT_UINT8, BASE_HEX, &rate_desc, "infiniband.pathrecord.rate", "Rate",                     \
      "Rate of the path.")                                                                                             \
    U(uint8_t, packetlifetimeselector, 448, 2, FT_UINT8, BASE_HEX, &selector_desc,                                     \
      "infiniband.pathrecord.packetlifetimeselector", "PacketLifeTimeSelector", "How the life time is meant.")         \
    U(uint8_t, packetlifetime, 450, 6, FT_UINT8, BASE_HEX, &time_4us_desc, "infiniband.pathrecord.packetlifetime",     \
      "PacketLifeTime", "Code of the longest time in flight: 4.096 us times 2 to this power.")                         \
    U(uint8_t, preference, 456, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.pathrecord.preference", "Preference",         \
      "Lowest is best.")                                                                                               \
    U(uint64_t, reserved2, 464, 48, FT_UINT48, BASE_HEX, NULL, "rdma.pathrecord.reserved", "Reserved", "Zero.")

/* MultiPathRecord: a request for several paths, 24 bytes; source GIDs, then destination GIDs follow. */
#define MULTIPATH_FIELDS(U, A, V)                                                                                      \
    U(uint8_t, rawtraffic, 0, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.multipathrecord.rawtraffic", "RawTraffic",      \
      "The paths are for raw packets.")                                                                                \
    U(uint8_t, reserved, 1, 3, FT_UINT8, BASE_HEX, NULL, "rdma.multipathrecord.reserved", "Reserved", "Zero.")         \
    U(uint32_t, flowlabel, 4, 20, FT_UINT24, BASE_HEX, NULL, "infiniband.multipathrecord.flowlabel", "FlowLabel",      \
      "Flow label of the GRH.")                                                                                        \
    U(uint8_t, hoplimit, 24, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.multipathrecord.hoplimit", "HopLimit",           \
      "Hop limit of the GRH.")                                                                                         \
    U(uint8_t, tclass, 32, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.multipathrecord.tclass", "TClass",                 \
      "Traffic class of the GRH.")                                                                                     \
    U(uint8_t, reversible, 40, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.multipathrecord.reversible", "Reversible",     \
      "The paths serve both directions.")                                                                              \
    U(uint8_t, numbpath, 41, 7, FT_UINT8, BASE_HEX, NULL, "infiniband.multipathrecord.numbpath", "NumbPath",           \
      "Paths wanted at most.")                                                                                         \
    U(uint16_t, p_key, 48, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.multipathrecord.p_key", "P_Key", "Partition.")   \
    U(uint16_t, qosclass, 64, 12, FT_UINT16, BASE_HEX, NULL, "rdma.multipathrecord.qosclass", "QosClass",              \
      "Class of service.")                                                                                             \
    U(uint8_t, sl, 76, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.multipathrecord.sl", "SL", "Service level.")           \
    U(uint8_t, mtuselector, 80, 2, FT_UINT8, BASE_HEX, &selector_desc, "infiniband.multipathrecord.mtuselector",       \
      "MTUSelector", "How the MTU is meant.")                                                                          \
    U(uint8_t, mtu, 82, 6, FT_UINT8, BASE_HEX, &mtu_desc, "infiniband.multipathrecord.mtu", "MTU", "Path MTU.")        \
    U(uint8_t, rateselector, 88, 2, FT_UINT8, BASE_HEX, &selector_desc, "infiniband.multipathrecord.rateselector",     \
      "RateSelector", "How the rate is meant.")                                                                        \
    U(uint8_t, rate, 90, 6, FT_UINT8, BASE_HEX, &rate_desc, "infiniband.multipathrecord.rate", "Rate",                 \
      "Rate of the paths.")                                                                                            \
    U(uint8_t, packetlifetimeselector, 96, 2, FT_UINT8, BASE_HEX, &selector_desc,                                      \
      "infiniband.multipathrecord.packetlifetimeselector", "PacketLifeTimeSelector", "How the life time is meant.")    \
    U(uint8_t, packetlifetime, 98, 6, FT_UINT8, BASE_HEX, &time_4us_desc, "infiniband.multipathrecord.packetlifetime", \
      "PacketLifeTime", "Code of the longest time in flight: 4.096 us times 2 to this power.")                         \
    U(uint8_t, serviceid8msb, 104, 8, FT_UINT8, BASE_HEX, NULL, "rdma.multipathrecord.serviceid8msb", "ServiceID8MSB", \
      "Upper byte of the service id.")                                                                                 \
    U(uint8_t, independenceselector, 112, 2, FT_UINT8, BASE_HEX, NULL,                                                 \
      "infiniband.multipathrecord.independenceselector", "IndependenceSelector",                                       \
      "Whether the paths shall share no component.")                                                                   \
    U(uint8_t, gidscope, 114, 6, FT_UINT8, BASE_HEX, NULL, "infiniband.multipathrecord.gidscope", "GIDScope",          \
      "Scope of the GIDs.")                                                                                            \
    U(uint8_t, sgidcount, 120, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.multipathrecord.sgidcount", "SGIDCount",       \
      "Source GIDs that follow.")                                                                                      \
    U(uint8_t, dgidcount, 128, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.multipathrecord.dgidcount", "DGIDCount",       \
      "Destination GIDs that follow.")                                                                                 \
    U(uint64_t, serviceid56lsb, 136, 56, FT_UINT56, BASE_HEX, NULL, "rdma.multipathrecord.serviceid56lsb",             \
      "ServiceID56LSB", "Lower seven bytes of the service id.")

/* A GID of a MultiPathRecord, 16 bytes. */
#define MULTIPATHGID_FIELDS(U, A, V)                                                                                   \
    A(sdgid, 0, 128, FT_IPV6, "infiniband.multipathrecord.sdgid", "SDGID", "Source or destination GID.")

/* MCMemberRecord: a member of a multicast group, 52 bytes. */
#define MCMEMBER_FIELDS(U, A, V)                                                                                       \
    A(mgid, 0, 128, FT_IPV6, "infiniband.mcmemberrecord.mgid", "MGID", "GID of the group.")                            \
    A(portgid, 128, 128, FT_IPV6, "infiniband.mcmemberrecord.portgid", "PortGID", "GID of the member.")                \
    U(uint32_t, q_key, 256, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.mcmemberrecord.q_key", "Q_Key",                 \
      "Q_Key of the group.")                                                                                           \
    U(uint16_t, mlid, 288, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.mcmemberrecord.mlid", "MLID",                    \
      "LID of the group.")                                                                                             \
    U(uint8_t, mtuselector, 304, 2, FT_UINT8, BASE_HEX, &selector_desc, "infiniband.mcmemberrecord.mtuselector",       \
      "MTUSelector", "How the MTU is meant.")                                                                          \
    U(uint8_t, mtu, 306, 6, FT_UINT8, BASE_HEX, &mtu_desc, "infiniband.mcmemberrecord.mtu", "MTU",                     \
      "MTU of the group.")                                                                                             \
    U(uint8_t, tclass, 312, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.mcmemberrecord.tclass", "TClass",                 \
      "Traffic class of the GRH.")                                                                                     \
    U(uint16_t, p_key, 320, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.mcmemberrecord.p_key", "P_Key", "Partition.")   \
    U(uint8_t, rateselector, 336, 2, FT_UINT8, BASE_HEX, &selector_desc, "infiniband.mcmemberrecord.rateselector",     \
      "RateSelector", "How the rate is meant.")                                                                        \
    U(uint8_t, rate, 338, 6, FT_UINT8, BASE_HEX, &rate_desc, "infiniband.mcmemberrecord.rate", "Rate",                 \
      "Rate of the group.")                                                                                            \
    U(uint8_t, packetlifetimeselector, 344, 2, FT_UINT8, BASE_HEX, &selector_desc,                                     \
      "infiniband.mcmemberrecord.packetlifetimeselector", "PacketLifeTimeSelector", "How the life time is meant.")     \
    U(uint8_t, packetlifetime, 346, 6, FT_UINT8, BASE_HEX, &time_4us_desc, "infiniband.mcmemberrecord.packetlifetime", \
      "PacketLifeTime", "Code of the longest time in flight: 4.096 us times 2 to this power.")                         \
    U(uint8_t, sl, 352, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.mcmemberrecord.sl", "SL", "Service level.")           \
    U(uint32_t, flowlabel, 356, 20, FT_UINT24, BASE_HEX, NULL, "infiniband.mcmemberrecord.flowlabel", "FlowLabel",     \
      "Flow label of the GRH.")                                                                                        \
    U(uint8_t, hoplimit, 376, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.mcmemberrecord.hoplimit", "HopLimit",           \
      "Hop limit of the GRH.")                                                                                         \
    U(uint8_t, scope, 384, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.mcmemberrecord.scope", "Scope",                    \
      "Scope of the group.")                                                                                           \
    U(uint8_t, joinstate, 388, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.mcmemberrecord.joinstate", "JoinState",        \
      "Bit 0 full, bit 1 non-member, bit 2 send only member.")                                                         \
    U(uint8_t, proxyjoin, 392, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.mcmemberrecord.proxyjoin", "ProxyJoin",        \
      "Joined for another port.")                                                                                      \
    U(uint32_t, reserved, 393, 23, FT_UINT24, BASE_HEX, NULL, "rdma.mcmemberrecord.reserved", "Reserved", "Zero.")

/* TraceRecord: a node on a path, 46 bytes (Wireshark). */
#define TRACEREC_FIELDS(U, A, V)                                                                                       \
    U(uint64_t, gidprefix, 0, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.tracerecord.gidprefix", "GidPrefix",          \
      "Prefix of the subnet.")                                                                                         \
    U(uint16_t, idgeneration, 64, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.tracerecord.idgeneration",                \
      "IDGeneration", "Generation of the identifiers.")                                                                \
    U(uint8_t, reserved, 80, 8, FT_UINT8, BASE_HEX, NULL, "rdma.tracerecord.reserved", "Reserved", "Zero.")            \
    U(uint8_t, nodetype, 88, 8, FT_UINT8, BASE_HEX, &node_type_desc, "infiniband.tracerecord.nodetype", "NodeType",    \
      "1 channel adapter, 2 switch, 3 router.")                                                                        \
    U(uint64_t, nodeid, 96, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.tracerecord.nodeid", "NodeID",                  \
      "Identifies the node.")                                                                                          \
    U(uint64_t, chassisid, 160, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.tracerecord.chassisid", "ChassisID",        \
      "Identifies the chassis.")                                                                                       \
    U(uint64_t, entryportid, 224, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.tracerecord.entryportid", "EntryPortID",  \
      "Identifies the ingress port.")                                                                                  \
    U(uint64_t, exitportid, 288, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.tracerecord.exitportid", "ExitPortID",     \
      "Identifies the egress port.")                                                                                   \
    U(uint8_t, entryport, 352, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.tracerecord.entryport", "EntryPort",           \
      "Ingress port.")                                                                                                 \
    U(uint8_t, exitport, 360, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.tracerecord.exitport", "ExitPort",              \
      "Egress port.")

/* ServiceRecord: a service that a node offers, 176 bytes. */
#define SERVICEREC_FIELDS(U, A, V)                                                                                     \
    U(uint64_t, serviceid, 0, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.linkrecord.serviceid", "ServiceID",           \
      "Service id.")                                                                                                   \
    A(servicegid, 64, 128, FT_IPV6, "infiniband.linkrecord.servicegid", "ServiceGID",                                  \
      "GID of the port that offers it.")                                                                               \
    U(uint16_t, servicep_key, 192, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.linkrecord.servicep_key",                \
      "ServiceP_Key", "Partition.")                                                                                    \
    U(uint16_t, reserved, 208, 16, FT_UINT16, BASE_HEX, NULL, "rdma.servicerecord.reserved", "Reserved", "Zero.")      \
    U(uint32_t, servicelease, 224, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.linkrecord.servicelease",                \
      "ServiceLease", "Seconds that the record lives; 0xffffffff: for ever.")                                          \
    A(servicekey, 256, 128, FT_BYTES, "infiniband.linkrecord.servicekey", "ServiceKey",                                \
      "Key that protects the record.")                                                                                 \
    A(servicename, 384, 512, FT_BYTES, "infiniband.linkrecord.servicename", "ServiceName",                             \
      "Name of the service, UTF-8.")                                                                                   \
    A(data8, 896, 128, FT_BYTES, "infiniband.linkrecord.servicedata", "Data8", "16 numbers of 8 bits.")                \
    A(data16, 1024, 128, FT_BYTES, "infiniband.linkrecord.servicedata", "Data16", "8 numbers of 16 bits.")             \
    A(data32, 1152, 128, FT_BYTES, "infiniband.linkrecord.servicedata", "Data32", "4 numbers of 32 bits.")             \
    A(data64, 1280, 128, FT_BYTES, "infiniband.linkrecord.servicedata", "Data64", "2 numbers of 64 bits.")

/* ServiceAssociationRecord: key and name of a service, 80 bytes (Wireshark). */
#define SVCASSOC_FIELDS(U, A, V)                                                                                       \
    A(servicekey, 0, 128, FT_BYTES, "infiniband.serviceassociationrecord.servicekey", "ServiceKey",                    \
      "Key that protects the service.")                                                                                \
    A(servicename, 128, 512, FT_STRING, "infiniband.serviceassociationrecord.servicename", "ServiceName",              \
      "Name of the service.")

/* All headers of this file: NAME_hdr. */
#define SA_PATH_HDRS(X) X(pathrec) X(multipath) X(multipathgid) X(mcmember) X(tracerec) X(servicerec) X(svcassoc)
SA_PATH_HDRS(HDR_EXTERN)

#endif
