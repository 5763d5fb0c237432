/* layer 1 (wire): names of values in messages of Communication Management. */
#include "dissect/mad/cm.h"

static const struct vname attrs[] = {
    {CM_REQ, "REQ"},           {CM_MRA, "MRA"},   {CM_REJ, "REJ"},   {CM_REP, "REP"},
    {CM_RTU, "RTU"},           {CM_DREQ, "DREQ"}, {CM_DREP, "DREP"}, {CM_SIDR_REQ, "SIDR_REQ"},
    {CM_SIDR_REP, "SIDR_REP"}, {CM_LAP, "LAP"},   {CM_APR, "APR"},
};
const struct vdesc cm_attr_desc = VDESC_NAMES(attrs);

const char *cm_attr_str(unsigned attr)
{
    return vname_find(attrs, ARRAY_LEN(attrs), attr);
}

static const struct vname rej_reasons[] = {
    {CM_REJ_NO_QP, "no QP available"},
    {CM_REJ_NO_EEC, "no EE context available"},
    {CM_REJ_NO_RESOURCES, "no resources available"},
    {CM_REJ_TIMEOUT, "timeout"},
    {CM_REJ_UNSUPPORTED, "unsupported request"},
    {CM_REJ_INVALID_COMM_ID, "invalid communication id"},
    {CM_REJ_INVALID_COMM_INSTANCE, "invalid communication instance"},
    {CM_REJ_INVALID_SERVICE_ID, "invalid service id"},
    {CM_REJ_INVALID_TRANSPORT_TYPE, "invalid transport service type"},
    {CM_REJ_STALE_CONN, "stale connection"},
    {CM_REJ_RDC_NOT_EXIST, "RDC does not exist"},
    {CM_REJ_INVALID_GID, "invalid GID"},
    {CM_REJ_INVALID_LID, "invalid LID"},
    {CM_REJ_INVALID_SL, "invalid SL"},
    {CM_REJ_INVALID_TRAFFIC_CLASS, "invalid traffic class"},
    {CM_REJ_INVALID_HOP_LIMIT, "invalid hop limit"},
    {CM_REJ_INVALID_PACKET_RATE, "invalid packet rate"},
    {CM_REJ_INVALID_ALT_GID, "invalid alternate GID"},
    {CM_REJ_INVALID_ALT_LID, "invalid alternate LID"},
    {CM_REJ_INVALID_ALT_SL, "invalid alternate SL"},
    {CM_REJ_INVALID_ALT_TRAFFIC_CLASS, "invalid alternate traffic class"},
    {CM_REJ_INVALID_ALT_HOP_LIMIT, "invalid alternate hop limit"},
    {CM_REJ_INVALID_ALT_PACKET_RATE, "invalid alternate packet rate"},
    {CM_REJ_PORT_CM_REDIRECT, "port and CM redirection"},
    {CM_REJ_PORT_REDIRECT, "port redirection"},
    {CM_REJ_INVALID_MTU, "invalid path MTU"},
    {CM_REJ_INSUFFICIENT_RESP_RESOURCES, "insufficient responder resources"},
    {CM_REJ_CONSUMER_DEFINED, "consumer defined"},
    {CM_REJ_INVALID_RNR_RETRY, "invalid RNR retry count"},
    {CM_REJ_DUPLICATE_LOCAL_COMM_ID, "duplicate local communication id"},
    {CM_REJ_INVALID_CLASS_VERSION, "unsupported class version"},
    {CM_REJ_INVALID_FLOW_LABEL, "invalid flow label"},
    {CM_REJ_INVALID_ALT_FLOW_LABEL, "invalid alternate flow label"},
    {CM_REJ_VENDOR_OPTION_NOT_SUPPORTED, "vendor option not supported"},
};
const struct vdesc cm_rej_reason_desc = VDESC_NAMES(rej_reasons);

const char *cm_rej_reason_str(unsigned reason)
{
    return vname_find(rej_reasons, ARRAY_LEN(rej_reasons), reason);
}

static const struct vname sidr_statuses[] = {
    {CM_SIDR_SUCCESS, "QPN and Q_Key valid"},
    {CM_SIDR_UNSUPPORTED, "service id not supported"},
    {CM_SIDR_REJECT, "rejected by the service provider"},
    {CM_SIDR_NO_QP, "no QP available"},
    {CM_SIDR_REDIRECT, "redirection"},
    {CM_SIDR_UNSUPPORTED_VERSION, "unsupported class version"},
};
const struct vdesc cm_sidr_status_desc = VDESC_NAMES(sidr_statuses);

const char *cm_sidr_status_str(unsigned status)
{
    return vname_find(sidr_statuses, ARRAY_LEN(sidr_statuses), status);
}

static const struct vname apr_statuses[] = {
    {CM_APR_SUCCESS, "alternate path loaded"},
    {CM_APR_INVALID_COMM_ID, "invalid communication instance"},
    {CM_APR_UNSUPPORTED, "alternate paths not supported"},
    {CM_APR_REJECT, "failover port rejected"},
    {CM_APR_REDIRECT, "redirection"},
    {CM_APR_IS_CURRENT, "already the primary path"},
    {CM_APR_INVALID_QPN_EECN, "QPN or EECN does not match"},
    {CM_APR_INVALID_LID, "LID rejected"},
    {CM_APR_INVALID_GID, "GID rejected"},
    {CM_APR_INVALID_FLOW_LABEL, "flow label rejected"},
    {CM_APR_INVALID_TCLASS, "traffic class rejected"},
    {CM_APR_INVALID_HOP_LIMIT, "hop limit rejected"},
    {CM_APR_INVALID_PACKET_RATE, "packet rate rejected"},
    {CM_APR_INVALID_SL, "SL rejected"},
};
const struct vdesc cm_apr_status_desc = VDESC_NAMES(apr_statuses);

const char *cm_apr_status_str(unsigned status)
{
    return vname_find(apr_statuses, ARRAY_LEN(apr_statuses), status);
}

static const struct vname rej_msgs[] = {{CM_ABOUT_REQ, "REQ"}, {CM_ABOUT_REP, "REP"}, {CM_ABOUT_OTHER, "no message"}};
const struct vdesc cm_rej_msg_desc = VDESC_NAMES(rej_msgs);

static const struct vname mra_msgs[] = {{CM_ABOUT_REQ, "REQ"}, {CM_ABOUT_REP, "REP"}, {CM_ABOUT_OTHER, "LAP"}};
const struct vdesc cm_mra_msg_desc = VDESC_NAMES(mra_msgs);

static const struct vname failovers[] = {{0, "accepted"}, {1, "not supported"}, {2, "rejected"}};
const struct vdesc cm_failover_desc = VDESC_NAMES(failovers);

static const struct vname transports[] = {
    {CM_TRANSPORT_RC, "RC"}, {CM_TRANSPORT_UC, "UC"}, {CM_TRANSPORT_RD, "RD"}, {CM_TRANSPORT_EXT, "extended"}};
const struct vdesc cm_transport_desc = VDESC_NAMES(transports);

static const struct vname ext_transports[] = {{1, "XRC"}};
const struct vdesc cm_ext_transport_desc = VDESC_NAMES(ext_transports);

static const struct vname mtus[] = {{1, "256"}, {2, "512"}, {3, "1024"}, {4, "2048"}, {5, "4096"}};
const struct vdesc cm_mtu_desc = VDESC_NAMES(mtus);

unsigned cm_mtu_code(uint32_t bytes)
{
    for (unsigned code = 1; code <= 5; code++)
        if (cm_mtu_bytes(code) == bytes)
            return code;
    return 0;
}

/* MTU in a REJ. The public layout does not tell which half of the byte holds the code, so either is accepted. */
static void ari_mtu_text(struct buf *b, uint64_t v)
{
    uint32_t bytes = cm_mtu_bytes((unsigned)(v & 15 ? v : v >> 4));

    if (bytes)
        buf_dec(b, bytes);
}
const struct vdesc cm_ari_mtu_desc = VDESC_TEXT(ari_mtu_text);

/* Codes of the static rate, as in path records (kernel enum ib_rate). */
static const struct vname rates[] = {
    {0, "of the port"}, {2, "2.5 Gb/s"},  {5, "5 Gb/s"},    {3, "10 Gb/s"},   {6, "20 Gb/s"},   {4, "30 Gb/s"},
    {7, "40 Gb/s"},     {8, "60 Gb/s"},   {9, "80 Gb/s"},   {10, "120 Gb/s"}, {11, "14 Gb/s"},  {12, "56 Gb/s"},
    {13, "112 Gb/s"},   {14, "168 Gb/s"}, {15, "25 Gb/s"},  {16, "100 Gb/s"}, {17, "200 Gb/s"}, {18, "300 Gb/s"},
    {19, "28 Gb/s"},    {20, "50 Gb/s"},  {21, "400 Gb/s"}, {22, "600 Gb/s"}, {23, "800 Gb/s"},
};
const struct vdesc cm_rate_desc = VDESC_NAMES(rates);

static void time_text(struct buf *b, uint64_t n)
{
    buf_duration(b, cm_time((unsigned)n));
}
const struct vdesc cm_time_desc = VDESC_TEXT(time_text);

static void ack_timeout_text(struct buf *b, uint64_t n)
{
    if (n)
        time_text(b, n);
    else
        buf_puts(b, "off");
}
const struct vdesc cm_ack_timeout_desc = VDESC_TEXT(ack_timeout_text);

static const struct vname rnr_retries[] = {{7, "no limit"}};
const struct vdesc cm_rnr_retry_desc = VDESC_NAMES(rnr_retries);

static const struct vname port_spaces[] = {
    {CM_PS_IPOIB, "RDMA_PS_IPOIB"}, {CM_PS_TCP, "RDMA_PS_TCP"}, {CM_PS_UDP, "RDMA_PS_UDP"}, {CM_PS_IB, "RDMA_PS_IB"}};
const struct vdesc cm_port_space_desc = VDESC_NAMES(port_spaces);

static void port_text(struct buf *b, uint64_t port)
{
    buf_dec(b, port);
}
const struct vdesc cm_port_desc = VDESC_TEXT(port_text);

/* Append port space and port of a service id of the RDMA IP CM service, e.g. "RDMA_PS_TCP port 7174"; nothing for other
 * ids. */
static void service_text(struct buf *b, uint64_t id)
{
    if (!cm_service_is_ip(id))
        return;
    if (!vdesc_print(b, &cm_port_space_desc, id >> 16 & 0xff))
        buf_printf(b, "port space 0x%02x", (unsigned)(id >> 16 & 0xff));
    buf_printf(b, " port %u", (unsigned)(id & 0xffff));
}
const struct vdesc cm_service_desc = VDESC_TEXT(service_text);
