/* layer 1 (wire): layout of CM messages (IBTA volume 1, chapter 12; kernel rdma/ibta_vol1_c12.h). */
#ifndef RDMATRACE_DISSECT_MAD_CM_LAYOUT_H
#define RDMATRACE_DISSECT_MAD_CM_LAYOUT_H

#include "dissect/field.h"
#include "dissect/ib/ib.h"

extern const struct vdesc cm_time_desc, cm_ack_timeout_desc, cm_mtu_desc, cm_rate_desc, cm_transport_desc,
    cm_ext_transport_desc, cm_rnr_retry_desc, cm_service_desc, cm_port_space_desc, cm_port_desc, cm_rej_msg_desc,
    cm_mra_msg_desc, cm_rej_reason_desc, cm_sidr_status_desc, cm_apr_status_desc, cm_failover_desc, cm_ari_mtu_desc;

/* Conditions of the tables below, on the `len` captured bytes of a message at `p`: the service id is, or is not, one of
 * the RDMA IP CM service; the primary GIDs, or the addresses of the RDMA IP CM header, are IPv4 or IPv6. */
bool cm_req_ip(const uint8_t *p, uint32_t len);
bool cm_req_no_ip(const uint8_t *p, uint32_t len);
bool cm_sidr_req_ip(const uint8_t *p, uint32_t len);
bool cm_sidr_req_no_ip(const uint8_t *p, uint32_t len);
bool cm_req_gid4(const uint8_t *p, uint32_t len);
bool cm_req_gid6(const uint8_t *p, uint32_t len);
bool cm_ip_v4(const uint8_t *p, uint32_t len);
bool cm_ip_v6(const uint8_t *p, uint32_t len);
/* Conditions on a REJ: what its additional information holds, by reason and length. */
bool cm_ari_gid(const uint8_t *p, uint32_t len);
bool cm_ari_lid(const uint8_t *p, uint32_t len);
bool cm_ari_sl(const uint8_t *p, uint32_t len);
bool cm_ari_tclass(const uint8_t *p, uint32_t len);
bool cm_ari_hop(const uint8_t *p, uint32_t len);
bool cm_ari_rate(const uint8_t *p, uint32_t len);
bool cm_ari_redirect(const uint8_t *p, uint32_t len);
bool cm_ari_mtu(const uint8_t *p, uint32_t len);
bool cm_ari_resources(const uint8_t *p, uint32_t len);
bool cm_ari_rnr(const uint8_t *p, uint32_t len);
bool cm_ari_version(const uint8_t *p, uint32_t len);

/* The communication ids, with which most messages begin. */
#define CM_LOCAL_ID(U, abbr)                                                                                           \
    U(uint32_t, local_id, 0, 32, FT_UINT32, BASE_HEX, NULL, abbr, "Local Communication ID",                            \
      "Communication id that the sender of the message chose.")
#define CM_REMOTE_ID(U, abbr)                                                                                          \
    U(uint32_t, remote_id, 32, 32, FT_UINT32, BASE_HEX, NULL, abbr, "Remote Communication ID",                         \
      "Communication id that the receiver of the message chose; 0 if it is not known.")

/*
 * A path in a REQ, 44 bytes without the last three bits; it starts at bit `bit` of the message.
 *   0                       16                       32
 *   +-----------------------+------------------------+
 *   |    Local port LID     |    Remote port LID     |
 *   +-----------------------+------------------------+
 *   |            Local port GID, 16 bytes            |
 *   |           Remote port GID, 16 bytes            |
 *   +----------------------------+-------+-----------+
 *   |       Flow label (20)      | r (6) | rate (6)  |
 *   +-----------+-----------+----+-+-----+-----+-----+
 *   |  TClass   | Hop limit | SL 4 |SN1| r3|ATO 5| 3 |
 *   +-----------+-----------+------+---+---+-----+---+
 */
#define CM_REQ_PATH(U, A, V, m, bit, abbr, name, gid_type, ...)                                                        \
    U(uint16_t, m##_llid, (bit) + 0, 16, FT_UINT16, BASE_DEC, NULL, "infiniband.cm.req." abbr "_locallid",             \
      name " Local Port LID", "LID of the active side; reserved on RoCE.")                                             \
    U(uint16_t, m##_rlid, (bit) + 16, 16, FT_UINT16, BASE_DEC, NULL, "infiniband.cm.req." abbr "_remotelid",           \
      name " Remote Port LID", "LID of the passive side; reserved on RoCE.")                                           \
    A(m##_lgid, (bit) + 32, 128, gid_type, "infiniband.cm.req." abbr "_localgid", name " Local Port GID",              \
      "GID of the active side.", ##__VA_ARGS__)                                                                        \
    A(m##_rgid, (bit) + 160, 128, gid_type, "infiniband.cm.req." abbr "_remotegid", name " Remote Port GID",           \
      "GID of the passive side.", ##__VA_ARGS__)                                                                       \
    U(uint32_t, m##_flow, (bit) + 288, 20, FT_UINT32, BASE_HEX, NULL, "infiniband.cm.req." abbr "_flowlabel",          \
      name " Flow Label", "Flow label; the UDP source port of RoCEv2 is made from it.")                                \
    U(uint8_t, m##_resv0, (bit) + 308, 6, FT_UINT32, BASE_HEX, NULL, "infiniband.cm.req." abbr "_reserved0",           \
      "Reserved (6 bits)", "Zero.")                                                                                    \
    U(uint8_t, m##_rate, (bit) + 314, 6, FT_UINT32, BASE_HEX, &cm_rate_desc, "infiniband.cm.req." abbr "_pktrate",     \
      name " Packet Rate", "Code of the greatest rate at which the active side may send.")                             \
    U(uint8_t, m##_tclass, (bit) + 320, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.req." abbr "_tfcclass",            \
      name " Traffic Class", "Traffic class, DSCP and ECN on RoCEv2.")                                                 \
    U(uint8_t, m##_hop, (bit) + 328, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.req." abbr "_hoplim",                 \
      name " Hop Limit", "Hop limit.")                                                                                 \
    U(uint8_t, m##_sl, (bit) + 336, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.req." abbr "_sl", name " SL",          \
      "Service level.")                                                                                                \
    U(uint8_t, m##_subnet_local, (bit) + 340, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.req." abbr "_subnetlocal",   \
      name " Subnet Local", "1: both ends are in one subnet, packets have no GRH.")                                    \
    U(uint8_t, m##_resv1, (bit) + 341, 3, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.req." abbr "_reserved1",            \
      "Reserved (3 bits)", "Zero.")                                                                                    \
    U(uint8_t, m##_ack_timeout, (bit) + 344, 5, FT_UINT8, BASE_HEX, &cm_ack_timeout_desc,                              \
      "infiniband.cm.req." abbr "_localacktout", name " Local ACK Timeout",                                            \
      "Exponent of the time within which the active side acknowledges; the passive side's retry timer.")

/*
 * REQ: connection request, from the active to the passive side (table 106).
 *   0               8               16              24              32
 *   +---------------------------------------------------------------+
 *   |                         local comm id                         |
 *   +---------------+-----------------------------------------------+
 *   |    reserved   |                 ECE vendor id                 |
 *   +---------------------------------------------------------------+
 *   |                        service id (64)                        |
 *   +---------------------------------------------------------------+
 *   |                       local CA GUID (64)                      |
 *   +---------------------------------------------------------------+
 *   |                            reserved                           |
 *   +---------------------------------------------------------------+
 *   |                          local Q_Key                          |
 *   +-----------------------------------------------+---------------+
 *   |                   local QPN                   |resp. resources|
 *   +-----------------------------------------------+---------------+
 *   |                   local EECN                  |initiator depth|
 *   +-----------------------------------------------+---------+---+-+
 *   |                  remote EECN                  | rem tout|svc|F|
 *   +-----------------------------------------------+---------+-----+
 *   |                  starting PSN                 | loc tout|retry|
 *   +-------------------------------+-------+-+-----+-------+-+-----+
 *   |             P_Key             |  MTU  |R| rnr |  max  |S| ext |
 *   +---------------------------------------------------------------+
 *   |               primary path, 44 bytes, see above               |
 *   +---------------------------------------------------------------+
 *   |                    alternate path, 44 bytes                   |
 *   +---------------------------------------------------------------+
 *   |                     private data, 92 bytes                    |
 *   +---------------------------------------------------------------+
 */
#define CM_REQ_FIELDS(U, A, V)                                                                                         \
    CM_LOCAL_ID(U, "infiniband.cm.req")                                                                                \
    U(uint8_t, resv0, 32, 8, FT_UINT8, BASE_HEX, NULL, "rdma.cm.req.reserved0", "Reserved", "Zero.")                   \
    U(uint32_t, vendor_id, 40, 24, FT_UINT24, BASE_HEX, NULL, "rdma.cm.req.vendorid", "ECE Vendor ID",                 \
      "Enhanced Connection Establishment: vendor that defines the options in the attribute modifier.")                 \
    U(uint64_t, service_id, 64, 64, FT_UINT64, BASE_HEX, &cm_service_desc, "infiniband.cm.req.serviceid", "ServiceID", \
      "Service that is asked for.")                                                                                    \
    V(cm_req_ip, 64, 40, FT_BYTES, BASE_NONE, NULL, "infiniband.cm.req.serviceid.prefix", "Prefix",                    \
      "0000000001: the RDMA IP CM service.")                                                                           \
    V(cm_req_ip, 104, 8, FT_UINT8, BASE_HEX, &cm_port_space_desc, "infiniband.cm.req.serviceid.protocol", "Protocol",  \
      "Port space.")                                                                                                   \
    V(cm_req_ip, 112, 16, FT_UINT16, BASE_HEX, &cm_port_desc, "infiniband.cm.req.serviceid.dport", "Destination Port", \
      "Port that the passive side listens on.")                                                                        \
    U(uint64_t, ca_guid, 128, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.cm.req.localcaguid", "Local CA GUID",         \
      "Channel adapter of the active side.")                                                                           \
    U(uint32_t, resv1, 192, 32, FT_UINT32, BASE_HEX, NULL, "rdma.cm.req.reserved1", "Reserved", "Zero.")               \
    U(uint32_t, qkey, 224, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.cm.req.localqkey", "Local Q_Key",                \
      "Q_Key of the active side; RD only.")                                                                            \
    U(uint32_t, qpn, 256, 24, FT_UINT24, BASE_HEX, NULL, "infiniband.cm.req.localqpn", "Local QPN",                    \
      "Queue pair of the active side.")                                                                                \
    U(uint8_t, resp_res, 280, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.req.responderres", "Responder Resources",    \
      "READs and atomics that the active side can serve at a time.")                                                   \
    U(uint32_t, eecn, 288, 24, FT_UINT24, BASE_HEX, NULL, "infiniband.cm.req.localeecn", "Local EECN",                 \
      "End-to-end context of the active side; RD only.")                                                               \
    U(uint8_t, init_depth, 312, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.req.initdepth", "Initiator Depth",         \
      "READs and atomics that the active side wants to have outstanding.")                                             \
    U(uint32_t, remote_eecn, 320, 24, FT_UINT24, BASE_HEX, NULL, "infiniband.cm.req.remoteeecn", "Remote EECN",        \
      "End-to-end context of the passive side; RD only.")                                                              \
    U(uint8_t, remote_timeout, 344, 5, FT_UINT8, BASE_HEX, &cm_time_desc, "infiniband.cm.req.remoteresptout",          \
      "Remote CM Response Timeout", "Exponent of the time within which the passive side should answer.")               \
    U(uint8_t, transport, 349, 2, FT_UINT8, BASE_HEX, &cm_transport_desc, "infiniband.cm.req.transpsvctype",           \
      "Transport Service Type", "0 RC, 1 UC, 2 RD, 3 as the extended transport says.")                                 \
    U(uint8_t, flow_ctrl, 351, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.req.e2eflowctrl",                           \
      "End-to-End Flow Control", "1: the active side sends end-to-end credits.")                                       \
    U(uint32_t, psn, 352, 24, FT_UINT24, BASE_HEX, &psn_desc, "infiniband.cm.req.startpsn", "Starting PSN",            \
      "PSN from which the passive side sends.")                                                                        \
    U(uint8_t, local_timeout, 376, 5, FT_UINT8, BASE_HEX, &cm_time_desc, "infiniband.cm.req.localresptout",            \
      "Local CM Response Timeout", "Exponent of the time within which the active side answers.")                       \
    U(uint8_t, retry_count, 381, 3, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.req.retrcount", "Retry Count",            \
      "Transport retries of the passive side after a timeout or a sequence NAK.")                                      \
    U(uint16_t, pkey, 384, 16, FT_UINT16, BASE_HEX, NULL, "infiniband.cm.req.pkey", "Partition Key", "Partition.")     \
    U(uint8_t, mtu, 400, 4, FT_UINT8, BASE_HEX, &cm_mtu_desc, "infiniband.cm.req.pppmtu", "Path Packet Payload MTU",   \
      "Code of the path MTU: 1 is 256 bytes, 5 is 4096.")                                                              \
    U(uint8_t, rdc_exists, 404, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.req.rdcexist", "RDC Exists",               \
      "1: a reliable datagram channel exists already; RD only.")                                                       \
    U(uint8_t, rnr_retry, 405, 3, FT_UINT8, BASE_HEX, &cm_rnr_retry_desc, "infiniband.cm.req.rnrretrcount",            \
      "RNR Retry Count", "Retries of the passive side after an RNR NAK; 7: no limit.")                                 \
    U(uint8_t, max_retries, 408, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.req.maxcmretr", "Max CM Retries",         \
      "Times that either side sends a message of this exchange again.")                                                \
    U(uint8_t, srq, 412, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.req.srq", "SRQ",                                  \
      "1: the active side receives from a shared queue.")                                                              \
    U(uint8_t, ext_transport, 413, 3, FT_UINT8, BASE_HEX, &cm_ext_transport_desc, "infiniband.cm.req.ext_transport",   \
      "Extended Transport", "Transport when the service type is 3: 1 is XRC.")                                         \
    CM_REQ_PATH(U, A, V, prim, 416, "prim", "Primary", FT_IPV6, cm_req_gid6)                                           \
    V(cm_req_gid4, 544, 32, FT_IPV4, BASE_NONE, NULL, "infiniband.cm.req.prim_localgid_ipv4",                          \
      "Primary Local Port GID", "IPv4 address in the GID of the active side.")                                         \
    V(cm_req_gid4, 672, 32, FT_IPV4, BASE_NONE, NULL, "infiniband.cm.req.prim_remotegid_ipv4",                         \
      "Primary Remote Port GID", "IPv4 address in the GID of the passive side.")                                       \
    U(uint8_t, prim_resv2, 765, 3, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.req.prim_reserved2", "Reserved (3 bits)",  \
      "Zero.")                                                                                                         \
    CM_REQ_PATH(U, A, V, alt, 768, "alt", "Alternate", FT_BYTES)                                                       \
    U(uint8_t, sap, 1117, 1, FT_UINT8, BASE_HEX, NULL, "rdma.cm.req.sap", "SAP Supported",                             \
      "1: suggested alternate paths are understood.")                                                                  \
    U(uint8_t, alt_resv2, 1118, 2, FT_UINT8, BASE_HEX, NULL, "rdma.cm.req.alt_reserved2", "Reserved (2 bits)",         \
      "Zero.")                                                                                                         \
    A(private_data, 1120, 736, FT_BYTES, "infiniband.cm.req.private", "PrivateData",                                   \
      "Data of the consumer; of the RDMA IP CM service its own layer shows it.", cm_req_no_ip)
HDR_STRUCT(cm_req, CM_REQ_FIELDS)
HDR_ENDS(cm_req, CM_REQ_FIELDS)

/*
 * MRA: acknowledges a message whose reply will take longer (table 107).
 *   0               8               16              24              32
 *   +---------------------------------------------------------------+
 *   |                         local comm id                         |
 *   +---------------------------------------------------------------+
 *   |                         remote comm id                        |
 *   +---+-----------+---------+-----+-------------------------------+
 *   |msg|  reserved | svc tout|  r  |    private data, 222 bytes    |
 *   +---+-----------+---------+-----+-------------------------------+
 */
#define CM_MRA_FIELDS(U, A, V)                                                                                         \
    CM_LOCAL_ID(U, "rdma.cm.mra.localcommid")                                                                          \
    CM_REMOTE_ID(U, "rdma.cm.mra.remotecommid")                                                                        \
    U(uint8_t, about, 64, 2, FT_UINT8, BASE_HEX, &cm_mra_msg_desc, "rdma.cm.mra.msgmraed", "Message MRAed",            \
      "Message that was received: 0 REQ, 1 REP, 2 LAP.")                                                               \
    U(uint8_t, resv0, 66, 6, FT_UINT8, BASE_HEX, NULL, "rdma.cm.mra.reserved0", "Reserved (6 bits)", "Zero.")          \
    U(uint8_t, service_timeout, 72, 5, FT_UINT8, BASE_HEX, &cm_time_desc, "rdma.cm.mra.svctimeout", "Service Timeout", \
      "Exponent of the time, from now, within which the answer comes.")                                                \
    U(uint8_t, resv1, 77, 3, FT_UINT8, BASE_HEX, NULL, "rdma.cm.mra.reserved1", "Reserved (3 bits)", "Zero.")          \
    A(private_data, 80, 1776, FT_BYTES, "rdma.cm.mra.private", "PrivateData", "Data of the consumer.")
HDR_STRUCT(cm_mra, CM_MRA_FIELDS)
HDR_ENDS(cm_mra, CM_MRA_FIELDS)

/*
 * REJ: rejects a connection (table 108).
 *   0               8               16              24              32
 *   +---------------------------------------------------------------+
 *   |                         local comm id                         |
 *   +---------------------------------------------------------------+
 *   |                         remote comm id                        |
 *   +---+-----------+-------------+-+-------------------------------+
 *   |msg|  reserved | info length | |             reason            |
 *   +---------------------------------------------------------------+
 *   |                additional information, 72 bytes               |
 *   +---------------------------------------------------------------+
 *   |                    private data, 148 bytes                    |
 *   +---------------------------------------------------------------+
 */
#define CM_REJ_FIELDS(U, A, V)                                                                                         \
    CM_LOCAL_ID(U, "infiniband.cm.rej.localcommid")                                                                    \
    CM_REMOTE_ID(U, "infiniband.cm.rej.remotecommid")                                                                  \
    U(uint8_t, about, 64, 2, FT_UINT8, BASE_HEX, &cm_rej_msg_desc, "infiniband.cm.rej.msgrej", "Message REJected",     \
      "Message that is refused: 0 REQ, 1 REP, 2 none of them.")                                                        \
    U(uint8_t, resv0, 66, 6, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.rej.reserved0", "Reserved (6 bits)", "Zero.")    \
    U(uint8_t, info_len, 72, 7, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.rej.rejinfolen", "Reject Info Length",        \
      "Bytes of additional information that are valid.")                                                               \
    U(uint8_t, resv1, 79, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.rej.reserved1", "Reserved (1 bit)", "Zero.")     \
    U(uint16_t, reason, 80, 16, FT_UINT16, BASE_HEX, &cm_rej_reason_desc, "infiniband.cm.rej.reason", "Reason",        \
      "Why.")                                                                                                          \
    A(info, 96, 576, FT_BYTES, "infiniband.cm.rej.ari", "Additional Reject Information (ARI)",                         \
      "What would be accepted, as the reason defines it.")                                                             \
    V(cm_ari_gid, 96, 128, FT_IPV6, BASE_NONE, NULL, "rdma.cm.rej.ari.gid", "Acceptable GID",                          \
      "GID that would be accepted, or to which the port is redirected.")                                               \
    V(cm_ari_lid, 96, 16, FT_UINT16, BASE_DEC, NULL, "rdma.cm.rej.ari.lid", "Acceptable LID", "LID to use.")           \
    V(cm_ari_sl, 96, 8, FT_UINT8, BASE_HEX, NULL, "rdma.cm.rej.ari.sl", "Acceptable SL", "Service level to use.")      \
    V(cm_ari_tclass, 96, 8, FT_UINT8, BASE_HEX, NULL, "rdma.cm.rej.ari.tfcclass", "Acceptable Traffic Class",          \
      "Traffic class to use.")                                                                                         \
    V(cm_ari_hop, 96, 8, FT_UINT8, BASE_HEX, NULL, "rdma.cm.rej.ari.hoplim", "Acceptable Hop Limit",                   \
      "Hop limit to use.")                                                                                             \
    V(cm_ari_rate, 96, 8, FT_UINT8, BASE_HEX, &cm_rate_desc, "rdma.cm.rej.ari.pktrate", "Acceptable Packet Rate",      \
      "Greatest packet rate.")                                                                                         \
    V(cm_ari_mtu, 96, 8, FT_UINT8, BASE_HEX, &cm_ari_mtu_desc, "rdma.cm.rej.ari.mtu", "Acceptable MTU",                \
      "Greatest path MTU.")                                                                                            \
    V(cm_ari_resources, 96, 8, FT_UINT8, BASE_DEC, NULL, "rdma.cm.rej.ari.responderres",                               \
      "Acceptable Responder Resources", "READs and atomics that can be served at a time.")                             \
    V(cm_ari_rnr, 96, 8, FT_UINT8, BASE_HEX, NULL, "rdma.cm.rej.ari.rnrretrcount", "Acceptable RNR Retry Count",       \
      "RNR retry count to use.")                                                                                       \
    V(cm_ari_version, 96, 8, FT_UINT8, BASE_DEC, NULL, "rdma.cm.rej.ari.classversion", "Supported Class Version",      \
      "Highest class version that is understood.")                                                                     \
    V(cm_ari_redirect, 160, 128, FT_IPV6, BASE_NONE, NULL, "rdma.cm.rej.ari.redirect.gid", "Redirect GID",             \
      "Where to send the request instead (ClassPortInfo).")                                                            \
    V(cm_ari_redirect, 320, 16, FT_UINT16, BASE_DEC, NULL, "rdma.cm.rej.ari.redirect.lid", "Redirect LID",             \
      "LID of the redirection.")                                                                                       \
    V(cm_ari_redirect, 336, 16, FT_UINT16, BASE_HEX, NULL, "rdma.cm.rej.ari.redirect.pkey", "Redirect P_Key",          \
      "Partition of the redirection.")                                                                                 \
    V(cm_ari_redirect, 360, 24, FT_UINT24, BASE_HEX, NULL, "rdma.cm.rej.ari.redirect.qp", "Redirect QP",               \
      "Queue pair of the communication manager there.")                                                                \
    V(cm_ari_redirect, 384, 32, FT_UINT32, BASE_HEX, NULL, "rdma.cm.rej.ari.redirect.qkey", "Redirect Q_Key",          \
      "Q_Key of that queue pair.")                                                                                     \
    A(private_data, 672, 1184, FT_BYTES, "infiniband.cm.rej.private", "PrivateData", "Data of the consumer.")
HDR_STRUCT(cm_rej, CM_REJ_FIELDS)
HDR_ENDS(cm_rej, CM_REJ_FIELDS)

/*
 * REP: accepts a REQ, from the passive to the active side (table 110).
 *   0               8               16              24              32
 *   +---------------------------------------------------------------+
 *   |                         local comm id                         |
 *   +---------------------------------------------------------------+
 *   |                         remote comm id                        |
 *   +---------------------------------------------------------------+
 *   |                          local Q_Key                          |
 *   +-----------------------------------------------+---------------+
 *   |                   local QPN                   |  vendor 23:16 |
 *   +-----------------------------------------------+---------------+
 *   |                   local EECN                  |  vendor 15:8  |
 *   +-----------------------------------------------+---------------+
 *   |                  starting PSN                 |   vendor 7:0  |
 *   +---------------+---------------+---------+---+-+-----+-+-------+
 *   |resp. resources|initiator depth|ack delay| fo|F| rnr |S|   r   |
 *   +---------------------------------------------------------------+
 *   |                       local CA GUID (64)                      |
 *   +---------------------------------------------------------------+
 *   |                    private data, 196 bytes                    |
 *   +---------------------------------------------------------------+
 */
#define CM_REP_FIELDS(U, A, V)                                                                                         \
    CM_LOCAL_ID(U, "infiniband.cm.rep")                                                                                \
    CM_REMOTE_ID(U, "infiniband.cm.rep.remotecommid")                                                                  \
    U(uint32_t, qkey, 64, 32, FT_UINT32, BASE_HEX, NULL, "infiniband.cm.rep.localqkey", "Local Q_Key",                 \
      "Q_Key of the passive side; RD only.")                                                                           \
    U(uint32_t, qpn, 96, 24, FT_UINT24, BASE_HEX, NULL, "infiniband.cm.rep.localqpn", "Local QPN",                     \
      "Queue pair of the passive side.")                                                                               \
    U(uint8_t, vendor_h, 120, 8, FT_UINT8, BASE_HEX, NULL, "rdma.cm.rep.vendorid_h", "ECE Vendor ID (23:16)",          \
      "Upper byte of the ECE vendor id.")                                                                              \
    U(uint32_t, eecn, 128, 24, FT_UINT24, BASE_HEX, NULL, "infiniband.cm.rep.localeecn", "Local EE Context Number",    \
      "End-to-end context of the passive side; RD only.")                                                              \
    U(uint8_t, vendor_m, 152, 8, FT_UINT8, BASE_HEX, NULL, "rdma.cm.rep.vendorid_m", "ECE Vendor ID (15:8)",           \
      "Middle byte of the ECE vendor id.")                                                                             \
    U(uint32_t, psn, 160, 24, FT_UINT24, BASE_HEX, &psn_desc, "infiniband.cm.rep.startpsn", "Starting PSN",            \
      "PSN from which the active side sends.")                                                                         \
    U(uint8_t, vendor_l, 184, 8, FT_UINT8, BASE_HEX, NULL, "rdma.cm.rep.vendorid_l", "ECE Vendor ID (7:0)",            \
      "Lower byte of the ECE vendor id.")                                                                              \
    U(uint8_t, resp_res, 192, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.rep.respres", "Responder Resources",         \
      "READs and atomics that the passive side can serve at a time.")                                                  \
    U(uint8_t, init_depth, 200, 8, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.rep.initdepth", "Initiator Depth",         \
      "READs and atomics that the passive side will have outstanding.")                                                \
    U(uint8_t, ack_delay, 208, 5, FT_UINT8, BASE_HEX, &cm_time_desc, "infiniband.cm.rep.tgtackdelay",                  \
      "Target ACK Delay", "Exponent of the time that the passive side takes to acknowledge.")                          \
    U(uint8_t, failover, 213, 2, FT_UINT8, BASE_HEX, &cm_failover_desc, "infiniband.cm.rep.failoveracc",               \
      "Failover Accepted", "What became of the alternate path: 0 accepted, 1 not supported, 2 rejected.")              \
    U(uint8_t, flow_ctrl, 215, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.rep.e2eflowctrl",                           \
      "End-To-End Flow Control", "1: the passive side sends end-to-end credits.")                                      \
    U(uint8_t, rnr_retry, 216, 3, FT_UINT8, BASE_HEX, &cm_rnr_retry_desc, "infiniband.cm.rep.rnrretrcount",            \
      "RNR Retry Count", "Retries of the active side after an RNR NAK; 7: no limit.")                                  \
    U(uint8_t, srq, 219, 1, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.rep.srq", "SRQ",                                  \
      "1: the passive side receives from a shared queue.")                                                             \
    U(uint8_t, resv, 220, 4, FT_UINT8, BASE_HEX, NULL, "infiniband.cm.rep.reserved", "Reserved (4 bits)", "Zero.")     \
    U(uint64_t, ca_guid, 224, 64, FT_UINT64, BASE_HEX, NULL, "infiniband.cm.rep.localcaguid", "Local CA GUID",         \
      "Channel adapter of the passive side.")                                                                          \
    A(private_data, 288, 1568, FT_BYTES, "infiniband.cm.rep.private", "PrivateData", "Data of the consumer.")
HDR_STRUCT(cm_rep, CM_REP_FIELDS)
HDR_ENDS(cm_rep, CM_REP_FIELDS)

/*
 * RTU: ready to use, from the active to the passive side (table 111).
 *   0               8               16              24              32
 *   +---------------------------------------------------------------+
 *   |                         local comm id                         |
 *   +---------------------------------------------------------------+
 *   |                         remote comm id                        |
 *   +---------------------------------------------------------------+
 *   |                    private data, 224 bytes                    |
 *   +---------------------------------------------------------------+
 */
#define CM_RTU_FIELDS(U, A, V)                                                                                         \
    CM_LOCAL_ID(U, "infiniband.cm.rtu.localcommid")                                                                    \
    CM_REMOTE_ID(U, "infiniband.cm.rtu.remotecommid")                                                                  \
    A(private_data, 64, 1792, FT_BYTES, "infiniband.cm.rtu.private", "PrivateData", "Data of the consumer.")
HDR_STRUCT(cm_rtu, CM_RTU_FIELDS)
HDR_ENDS(cm_rtu, CM_RTU_FIELDS)

/*
 * DREQ: request to disconnect (table 112).
 *   0               8               16              24              32
 *   +---------------------------------------------------------------+
 *   |                         local comm id                         |
 *   +---------------------------------------------------------------+
 *   |                         remote comm id                        |
 *   +-----------------------------------------------+---------------+
 *   |               remote QPN or EECN              |    reserved   |
 *   +---------------------------------------------------------------+
 *   |                    private data, 220 bytes                    |
 *   +---------------------------------------------------------------+
 */
#define CM_DREQ_FIELDS(U, A, V)                                                                                        \
    CM_LOCAL_ID(U, "infiniband.cm.dreq.localcommid")                                                                   \
    CM_REMOTE_ID(U, "infiniband.cm.dreq.remotecommid")                                                                 \
    U(uint32_t, remote_qpn, 64, 24, FT_UINT24, BASE_HEX, NULL, "infiniband.cm.req.remoteqpneecn", "Remote QPN/EECN",   \
      "Queue pair (RD: end-to-end context) of the receiver.")                                                          \
    U(uint8_t, resv, 88, 8, FT_UINT8, BASE_HEX, NULL, "rdma.cm.dreq.reserved", "Reserved", "Zero.")                    \
    A(private_data, 96, 1760, FT_BYTES, "infiniband.cm.dreq.private", "PrivateData", "Data of the consumer.")
HDR_STRUCT(cm_dreq, CM_DREQ_FIELDS)
HDR_ENDS(cm_dreq, CM_DREQ_FIELDS)

/*
 * DREP: reply to a DREQ (table 113).
 *   0               8               16              24              32
 *   +---------------------------------------------------------------+
 *   |                         local comm id                         |
 *   +---------------------------------------------------------------+
 *   |                         remote comm id                        |
 *   +---------------------------------------------------------------+
 *   |                    private data, 224 bytes                    |
 *   +---------------------------------------------------------------+
 */
#define CM_DREP_FIELDS(U, A, V)                                                                                        \
    CM_LOCAL_ID(U, "infiniband.cm.drsp.localcommid")                                                                   \
    CM_REMOTE_ID(U, "infiniband.cm.drsp.remotecommid")                                                                 \
    A(private_data, 64, 1792, FT_BYTES, "infiniband.cm.drsp.private", "PrivateData", "Data of the consumer.")
HDR_STRUCT(cm_drep, CM_DREP_FIELDS)
HDR_ENDS(cm_drep, CM_DREP_FIELDS)

/*
 * LAP: request to load an alternate path (table 115).
 *   0               8               16              24              32
 *   +---------------------------------------------------------------+
 *   |                         local comm id                         |
 *   +---------------------------------------------------------------+
 *   |                         remote comm id                        |
 *   +---------------------------------------------------------------+
 *   |                            reserved                           |
 *   +-----------------------------------------------+---------+-----+
 *   |               remote QPN or EECN              | rem tout|  r  |
 *   +---------------------------------------------------------------+
 *   |                            reserved                           |
 *   +-------------------------------+-------------------------------+
 *   |         local port LID        |        remote port LID        |
 *   +---------------------------------------------------------------+
 *   |                    local port GID, 16 bytes                   |
 *   +---------------------------------------------------------------+
 *   |                   remote port GID, 16 bytes                   |
 *   +---------------------------------------+-------+---------------+
 *   |               flow label              |   r   | traffic class |
 *   +---------------+---+-----------+-------+-+-----+---------+-----+
 *   |   hop limit   | r |    rate   |   SL  |L|  r  | ack tout|  r  |
 *   +---------------------------------------------------------------+
 *   |                    private data, 168 bytes                    |
 *   +---------------------------------------------------------------+
 */
#define CM_LAP_FIELDS(U, A, V)                                                                                         \
    CM_LOCAL_ID(U, "rdma.cm.lap.localcommid")                                                                          \
    CM_REMOTE_ID(U, "rdma.cm.lap.remotecommid")                                                                        \
    U(uint32_t, resv0, 64, 32, FT_UINT32, BASE_HEX, NULL, "rdma.cm.lap.reserved0", "Reserved", "Zero.")                \
    U(uint32_t, remote_qpn, 96, 24, FT_UINT24, BASE_HEX, NULL, "rdma.cm.lap.remoteqpneecn", "Remote QPN/EECN",         \
      "Queue pair (RD: end-to-end context) of the receiver.")                                                          \
    U(uint8_t, remote_timeout, 120, 5, FT_UINT8, BASE_HEX, &cm_time_desc, "rdma.cm.lap.remoteresptout",                \
      "Remote CM Response Timeout", "Exponent of the time within which the APR should come.")                          \
    U(uint8_t, resv1, 125, 3, FT_UINT8, BASE_HEX, NULL, "rdma.cm.lap.reserved1", "Reserved (3 bits)", "Zero.")         \
    U(uint32_t, resv2, 128, 32, FT_UINT32, BASE_HEX, NULL, "rdma.cm.lap.reserved2", "Reserved", "Zero.")               \
    U(uint16_t, llid, 160, 16, FT_UINT16, BASE_DEC, NULL, "rdma.cm.lap.alt_locallid", "Alternate Local Port LID",      \
      "LID of the sender; reserved on RoCE.")                                                                          \
    U(uint16_t, rlid, 176, 16, FT_UINT16, BASE_DEC, NULL, "rdma.cm.lap.alt_remotelid", "Alternate Remote Port LID",    \
      "LID of the receiver; reserved on RoCE.")                                                                        \
    A(lgid, 192, 128, FT_IPV6, "rdma.cm.lap.alt_localgid", "Alternate Local Port GID", "GID of the sender.")           \
    A(rgid, 320, 128, FT_IPV6, "rdma.cm.lap.alt_remotegid", "Alternate Remote Port GID", "GID of the receiver.")       \
    U(uint32_t, flow, 448, 20, FT_UINT24, BASE_HEX, NULL, "rdma.cm.lap.alt_flowlabel", "Alternate Flow Label",         \
      "Flow label of the path.")                                                                                       \
    U(uint8_t, resv3, 468, 4, FT_UINT8, BASE_HEX, NULL, "rdma.cm.lap.reserved3", "Reserved (4 bits)", "Zero.")         \
    U(uint8_t, tclass, 472, 8, FT_UINT8, BASE_HEX, NULL, "rdma.cm.lap.alt_tfcclass", "Alternate Traffic Class",        \
      "Traffic class of the path.")                                                                                    \
    U(uint8_t, hop, 480, 8, FT_UINT8, BASE_HEX, NULL, "rdma.cm.lap.alt_hoplim", "Alternate Hop Limit",                 \
      "Hop limit of the path.")                                                                                        \
    U(uint8_t, resv4, 488, 2, FT_UINT8, BASE_HEX, NULL, "rdma.cm.lap.reserved4", "Reserved (2 bits)", "Zero.")         \
    U(uint8_t, rate, 490, 6, FT_UINT8, BASE_HEX, &cm_rate_desc, "rdma.cm.lap.alt_pktrate", "Alternate Packet Rate",    \
      "Code of the greatest packet rate of the path.")                                                                 \
    U(uint8_t, sl, 496, 4, FT_UINT8, BASE_HEX, NULL, "rdma.cm.lap.alt_sl", "Alternate SL", "Service level.")           \
    U(uint8_t, subnet_local, 500, 1, FT_UINT8, BASE_HEX, NULL, "rdma.cm.lap.alt_subnetlocal",                          \
      "Alternate Subnet Local", "1: both ends are in one subnet, packets have no GRH.")                                \
    U(uint8_t, resv5, 501, 3, FT_UINT8, BASE_HEX, NULL, "rdma.cm.lap.reserved5", "Reserved (3 bits)", "Zero.")         \
    U(uint8_t, ack_timeout, 504, 5, FT_UINT8, BASE_HEX, &cm_ack_timeout_desc, "rdma.cm.lap.alt_localacktout",          \
      "Alternate Local ACK Timeout", "Exponent of the time within which the sender acknowledges.")                     \
    U(uint8_t, resv6, 509, 3, FT_UINT8, BASE_HEX, NULL, "rdma.cm.lap.reserved6", "Reserved (3 bits)", "Zero.")         \
    A(private_data, 512, 1344, FT_BYTES, "rdma.cm.lap.private", "PrivateData", "Data of the consumer.")
HDR_STRUCT(cm_lap, CM_LAP_FIELDS)
HDR_ENDS(cm_lap, CM_LAP_FIELDS)

/*
 * APR: response to a LAP (table 116).
 *   0               8               16              24              32
 *   +---------------------------------------------------------------+
 *   |                         local comm id                         |
 *   +---------------------------------------------------------------+
 *   |                         remote comm id                        |
 *   +---------------+---------------+-------------------------------+
 *   |  info length  |     status    |            reserved           |
 *   +---------------------------------------------------------------+
 *   |                additional information, 72 bytes               |
 *   +---------------------------------------------------------------+
 *   |                    private data, 148 bytes                    |
 *   +---------------------------------------------------------------+
 */
#define CM_APR_FIELDS(U, A, V)                                                                                         \
    CM_LOCAL_ID(U, "rdma.cm.apr.localcommid")                                                                          \
    CM_REMOTE_ID(U, "rdma.cm.apr.remotecommid")                                                                        \
    U(uint8_t, info_len, 64, 8, FT_UINT8, BASE_HEX, NULL, "rdma.cm.apr.infolen", "Additional Information Length",      \
      "Bytes of additional information that are valid.")                                                               \
    U(uint8_t, status, 72, 8, FT_UINT8, BASE_HEX, &cm_apr_status_desc, "rdma.cm.apr.status", "AP Status",              \
      "What became of the path.")                                                                                      \
    U(uint16_t, resv, 80, 16, FT_UINT16, BASE_HEX, NULL, "rdma.cm.apr.reserved", "Reserved", "Zero.")                  \
    A(info, 96, 576, FT_BYTES, "rdma.cm.apr.info", "Additional Information", "What would be accepted.")                \
    A(private_data, 672, 1184, FT_BYTES, "rdma.cm.apr.private", "PrivateData", "Data of the consumer.")
HDR_STRUCT(cm_apr, CM_APR_FIELDS)
HDR_ENDS(cm_apr, CM_APR_FIELDS)

/*
 * SIDR_REQ: asks for the UD queue pair of a service id (table 119).
 *   0               8               16              24              32
 *   +---------------------------------------------------------------+
 *   |                           request id                          |
 *   +-------------------------------+-------------------------------+
 *   |             P_Key             |            reserved           |
 *   +---------------------------------------------------------------+
 *   |                        service id (64)                        |
 *   +---------------------------------------------------------------+
 *   |                    private data, 216 bytes                    |
 *   +---------------------------------------------------------------+
 */
#define CM_SIDR_REQ_FIELDS(U, A, V)                                                                                    \
    U(uint32_t, request_id, 0, 32, FT_UINT32, BASE_HEX, NULL, "rdma.cm.sidr_req.requestid", "Request ID",              \
      "Joins the SIDR_REP to it.")                                                                                     \
    U(uint16_t, pkey, 32, 16, FT_UINT16, BASE_HEX, NULL, "rdma.cm.sidr_req.pkey", "Partition Key", "Partition.")       \
    U(uint16_t, resv, 48, 16, FT_UINT16, BASE_HEX, NULL, "rdma.cm.sidr_req.reserved", "Reserved", "Zero.")             \
    U(uint64_t, service_id, 64, 64, FT_UINT64, BASE_HEX, &cm_service_desc, "rdma.cm.sidr_req.serviceid", "ServiceID",  \
      "Service that is asked for.")                                                                                    \
    V(cm_sidr_req_ip, 104, 8, FT_UINT8, BASE_HEX, &cm_port_space_desc, "rdma.cm.sidr_req.serviceid.protocol",          \
      "Protocol", "Port space.")                                                                                       \
    V(cm_sidr_req_ip, 112, 16, FT_UINT16, BASE_HEX, &cm_port_desc, "rdma.cm.sidr_req.serviceid.dport",                 \
      "Destination Port", "Port that the passive side listens on.")                                                    \
    A(private_data, 128, 1728, FT_BYTES, "rdma.cm.sidr_req.private", "PrivateData",                                    \
      "Data of the consumer; of the RDMA IP CM service its own layer shows it.", cm_sidr_req_no_ip)
HDR_STRUCT(cm_sidr_req, CM_SIDR_REQ_FIELDS)
HDR_ENDS(cm_sidr_req, CM_SIDR_REQ_FIELDS)

/*
 * SIDR_REP: reply to a SIDR_REQ (table 120).
 *   0               8               16              24              32
 *   +---------------------------------------------------------------+
 *   |                           request id                          |
 *   +---------------+---------------+-------------------------------+
 *   |     status    |  info length  |          vendor 23:8          |
 *   +-----------------------------------------------+---------------+
 *   |                      QPN                      |   vendor 7:0  |
 *   +---------------------------------------------------------------+
 *   |                        service id (64)                        |
 *   +---------------------------------------------------------------+
 *   |                             Q_Key                             |
 *   +---------------------------------------------------------------+
 *   |                additional information, 72 bytes               |
 *   +---------------------------------------------------------------+
 *   |                    private data, 136 bytes                    |
 *   +---------------------------------------------------------------+
 */
#define CM_SIDR_REP_FIELDS(U, A, V)                                                                                    \
    U(uint32_t, request_id, 0, 32, FT_UINT32, BASE_HEX, NULL, "rdma.cm.sidr_rep.requestid", "Request ID",              \
      "Of the SIDR_REQ.")                                                                                              \
    U(uint8_t, status, 32, 8, FT_UINT8, BASE_HEX, &cm_sidr_status_desc, "rdma.cm.sidr_rep.status", "Status",           \
      "0: the service has a queue pair.")                                                                              \
    U(uint8_t, info_len, 40, 8, FT_UINT8, BASE_HEX, NULL, "rdma.cm.sidr_rep.infolen", "Additional Information Length", \
      "Bytes of additional information that are valid.")                                                               \
    U(uint16_t, vendor_h, 48, 16, FT_UINT16, BASE_HEX, NULL, "rdma.cm.sidr_rep.vendorid_h", "ECE Vendor ID (23:8)",    \
      "Upper bytes of the ECE vendor id.")                                                                             \
    U(uint32_t, qpn, 64, 24, FT_UINT24, BASE_HEX, NULL, "rdma.cm.sidr_rep.qpn", "QPN", "Queue pair of the service.")   \
    U(uint8_t, vendor_l, 88, 8, FT_UINT8, BASE_HEX, NULL, "rdma.cm.sidr_rep.vendorid_l", "ECE Vendor ID (7:0)",        \
      "Lower byte of the ECE vendor id.")                                                                              \
    U(uint64_t, service_id, 96, 64, FT_UINT64, BASE_HEX, &cm_service_desc, "rdma.cm.sidr_rep.serviceid", "ServiceID",  \
      "Service that was asked for.")                                                                                   \
    U(uint32_t, qkey, 160, 32, FT_UINT32, BASE_HEX, NULL, "rdma.cm.sidr_rep.qkey", "Q_Key",                            \
      "Q_Key of that queue pair.")                                                                                     \
    A(info, 192, 576, FT_BYTES, "rdma.cm.sidr_rep.info", "Additional Information",                                     \
      "With status 4: ClassPortInfo of the port to ask instead.")                                                      \
    A(private_data, 768, 1088, FT_BYTES, "rdma.cm.sidr_rep.private", "PrivateData", "Data of the consumer.")
HDR_STRUCT(cm_sidr_rep, CM_SIDR_REP_FIELDS)
HDR_ENDS(cm_sidr_rep, CM_SIDR_REP_FIELDS)

/*
 * Header of the RDMA IP CM service, 36 bytes, at the start of the private data of a REQ or SIDR_REQ (annex A11).
 *   0        4        8        12       16                               32
 *   +--------+--------+--------+--------+--------------------------------+
 *   | major  | minor  | IP ver |  resv  |         source port            |
 *   +--------+--------+--------+--------+--------------------------------+
 *   |          source address, 16 bytes; IPv4 in the last 4              |
 *   |        destination address, 16 bytes; IPv4 in the last 4           |
 *   +--------------------------------------------------------------------+
 */
#define CM_IP_LIST(U, A, V, pre)                                                                                       \
    U(uint8_t, major, 0, 4, FT_UINT8, BASE_HEX, NULL, pre ".majv", "IP CM Major Version", "0.")                        \
    U(uint8_t, minor, 4, 4, FT_UINT8, BASE_HEX, NULL, pre ".minv", "IP CM Minor Version", "0.")                        \
    U(uint8_t, ip_version, 8, 4, FT_UINT8, BASE_HEX, NULL, pre ".ipv", "IP CM IP Version", "4 or 6.")                  \
    U(uint8_t, resv, 12, 4, FT_UINT8, BASE_HEX, NULL, pre ".reserved", "IP CM Reserved", "Zero.")                      \
    U(uint16_t, sport, 16, 16, FT_UINT16, BASE_HEX, &cm_port_desc, pre ".sport", "IP CM Source Port",                  \
      "Port of the active side.")                                                                                      \
    A(src, 32, 128, FT_IPV6, pre ".sip6", "IP CM Source IP", "Address of the active side.", cm_ip_v6)                  \
    V(cm_ip_v4, 128, 32, FT_IPV4, BASE_NONE, NULL, pre ".sip4", "IP CM Source IP", "Address of the active side.")      \
    A(dst, 160, 128, FT_IPV6, pre ".dip6", "IP CM Destination IP", "Address of the passive side.", cm_ip_v6)           \
    V(cm_ip_v4, 256, 32, FT_IPV4, BASE_NONE, NULL, pre ".dip4", "IP CM Destination IP",                                \
      "Address of the passive side.")                                                                                  \
    V(NULL, 288, 0, FT_BYTES, BASE_NONE, NULL, pre ".private", "IP CM Consumer PrivateData", "Data of the consumer.")
#define CM_IP_FIELDS(U, A, V)      CM_IP_LIST(U, A, V, "infiniband.cm.req.ip_cm")
#define CM_SIDR_IP_FIELDS(U, A, V) CM_IP_LIST(U, A, V, "rdma.cm.sidr_req.ip_cm")
HDR_STRUCT(cm_ip, CM_IP_FIELDS)
#define CM_IP_LEN 36

#endif
