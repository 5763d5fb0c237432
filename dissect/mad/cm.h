/* layer 1 (wire): messages of Communication Management (IBTA volume 1, chapter 12; kernel rdma/ib_cm.h). */
#ifndef RDMATRACE_DISSECT_MAD_CM_H
#define RDMATRACE_DISSECT_MAD_CM_H

#include "dissect/mad/cm_layout.h"
#include "dissect/mad/mad.h"

#define CM_CLASS         0x07
#define CM_CLASS_VERSION 2
#define CM_METHOD_SEND   0x03
#define CM_BODY_LEN      232 /* bytes of every message after the MAD header */
#define CM_CUT_MAX       224 /* of them, bytes that may not have been captured: the two communication ids were */

/* Messages, by the attribute id of the MAD. Their structs are in cm_layout.h: struct cm_req, struct cm_mra ... */
enum cm_attr {
    CM_REQ = 0x10,
    CM_MRA = 0x11,
    CM_REJ = 0x12,
    CM_REP = 0x13,
    CM_RTU = 0x14,
    CM_DREQ = 0x15,
    CM_DREP = 0x16,
    CM_SIDR_REQ = 0x17,
    CM_SIDR_REP = 0x18,
    CM_LAP = 0x19,
    CM_APR = 0x1a,
};
/* Name of a message, e.g. "SIDR_REP"; NULL for an attribute id that is no message. */
const char *cm_attr_str(unsigned attr);
extern const struct vdesc cm_attr_desc;

/* Reasons of a REJ (12.6.7.2; kernel enum ib_cm_rej_reason). */
enum cm_rej_reason {
    CM_REJ_NO_QP = 1,
    CM_REJ_NO_EEC = 2,
    CM_REJ_NO_RESOURCES = 3,
    CM_REJ_TIMEOUT = 4,
    CM_REJ_UNSUPPORTED = 5,
    CM_REJ_INVALID_COMM_ID = 6,
    CM_REJ_INVALID_COMM_INSTANCE = 7,
    CM_REJ_INVALID_SERVICE_ID = 8,
    CM_REJ_INVALID_TRANSPORT_TYPE = 9,
    CM_REJ_STALE_CONN = 10,
    CM_REJ_RDC_NOT_EXIST = 11,
    CM_REJ_INVALID_GID = 12,
    CM_REJ_INVALID_LID = 13,
    CM_REJ_INVALID_SL = 14,
    CM_REJ_INVALID_TRAFFIC_CLASS = 15,
    CM_REJ_INVALID_HOP_LIMIT = 16,
    CM_REJ_INVALID_PACKET_RATE = 17,
    CM_REJ_INVALID_ALT_GID = 18,
    CM_REJ_INVALID_ALT_LID = 19,
    CM_REJ_INVALID_ALT_SL = 20,
    CM_REJ_INVALID_ALT_TRAFFIC_CLASS = 21,
    CM_REJ_INVALID_ALT_HOP_LIMIT = 22,
    CM_REJ_INVALID_ALT_PACKET_RATE = 23,
    CM_REJ_PORT_CM_REDIRECT = 24,
    CM_REJ_PORT_REDIRECT = 25,
    CM_REJ_INVALID_MTU = 26,
    CM_REJ_INSUFFICIENT_RESP_RESOURCES = 27,
    CM_REJ_CONSUMER_DEFINED = 28,
    CM_REJ_INVALID_RNR_RETRY = 29,
    CM_REJ_DUPLICATE_LOCAL_COMM_ID = 30,
    CM_REJ_INVALID_CLASS_VERSION = 31,
    CM_REJ_INVALID_FLOW_LABEL = 32,
    CM_REJ_INVALID_ALT_FLOW_LABEL = 33,
    CM_REJ_VENDOR_OPTION_NOT_SUPPORTED = 35,
};
/* Name of a reason, e.g. "invalid service id"; NULL for a reason that is not defined. */
const char *cm_rej_reason_str(unsigned reason);

/* Status of a SIDR_REP (12.11; kernel enum ib_cm_sidr_status). */
enum cm_sidr_status {
    CM_SIDR_SUCCESS = 0,
    CM_SIDR_UNSUPPORTED = 1,
    CM_SIDR_REJECT = 2,
    CM_SIDR_NO_QP = 3,
    CM_SIDR_REDIRECT = 4,
    CM_SIDR_UNSUPPORTED_VERSION = 5,
};
/* Name of a status, e.g. "service id not supported"; NULL for a status that is not defined. */
const char *cm_sidr_status_str(unsigned status);

/* Status of an APR (12.8; kernel enum ib_cm_apr_status). */
enum cm_apr_status {
    CM_APR_SUCCESS = 0,
    CM_APR_INVALID_COMM_ID = 1,
    CM_APR_UNSUPPORTED = 2,
    CM_APR_REJECT = 3,
    CM_APR_REDIRECT = 4,
    CM_APR_IS_CURRENT = 5,
    CM_APR_INVALID_QPN_EECN = 6,
    CM_APR_INVALID_LID = 7,
    CM_APR_INVALID_GID = 8,
    CM_APR_INVALID_FLOW_LABEL = 9,
    CM_APR_INVALID_TCLASS = 10,
    CM_APR_INVALID_HOP_LIMIT = 11,
    CM_APR_INVALID_PACKET_RATE = 12,
    CM_APR_INVALID_SL = 13,
};
/* Name of a status, e.g. "alternate path loaded"; NULL for a status that is not defined. */
const char *cm_apr_status_str(unsigned status);

/* What a REP says of the alternate path of its REQ (12.6.8, failover accepted). */
enum cm_failover {
    CM_FAILOVER_ACCEPTED = 0, /* or there was none */
    CM_FAILOVER_UNSUPPORTED = 1,
    CM_FAILOVER_REJECTED = 2,
};

/* Transport service of a REQ (12.6.7). */
enum cm_transport {
    CM_TRANSPORT_RC = 0,
    CM_TRANSPORT_UC = 1,
    CM_TRANSPORT_RD = 2,
    CM_TRANSPORT_EXT = 3, /* see the extended transport field: 1 is XRC */
};

/* The message that an MRA acknowledges or a REJ rejects. */
enum cm_about {
    CM_ABOUT_REQ = 0,
    CM_ABOUT_REP = 1,
    CM_ABOUT_OTHER = 2, /* MRA: a LAP; REJ: no specific message */
};

/* Duration of a CM timer in ns: 4.096 us x 2^n; only the low five bits of `n` count. */
static inline ns_t cm_time(unsigned n)
{
    return INT64_C(4096) << (n & 31);
}
/* Path MTU in bytes of an MTU code (1 to 5), 0 for other codes; and the MTU code of a number of bytes, 0 if there is
 * none. */
static inline uint32_t cm_mtu_bytes(unsigned code)
{
    return code >= 1 && code <= 5 ? 128u << code : 0;
}
unsigned cm_mtu_code(uint32_t bytes);

/* Service ids of the RDMA IP CM service (annex A11): this prefix (40 bits), the port space (8 bits), the port (16
 * bits). */
#define CM_IP_PREFIX      UINT64_C(0x0000000001000000)
#define CM_IP_PREFIX_MASK UINT64_C(0xffffffffff000000)
#define CM_PS_IPOIB                                                                                                    \
    0x02 /* the low byte of RDMA_PS_IPOIB 0x0002, RDMA_PS_TCP 0x0106, RDMA_PS_UDP 0x0111, RDMA_PS_IB 0x013f */
#define CM_PS_TCP 0x06
#define CM_PS_UDP 0x11
#define CM_PS_IB  0x3f
static inline bool cm_service_is_ip(uint64_t service_id)
{
    return (service_id & CM_IP_PREFIX_MASK) == CM_IP_PREFIX;
}
static inline uint64_t cm_service_ip(uint8_t port_space, uint16_t port)
{
    return CM_IP_PREFIX | (uint64_t)port_space << 16 | port;
}

/* A message. mad.attr_id (enum cm_attr) tells which member of the union is valid. Numbers are in host order. */
struct cm_msg {
    struct mad mad;
    uint8_t cut; /* bytes at its end that were not captured, 0 to CM_CUT_MAX; a field that is not there in full is 0 */
    union {
        struct cm_req req;
        struct cm_mra mra;
        struct cm_rej rej;
        struct cm_rep rep;
        struct cm_rtu rtu;
        struct cm_dreq dreq;
        struct cm_drep drep;
        struct cm_sidr_req sidr_req;
        struct cm_sidr_rep sidr_rep;
        struct cm_lap lap;
        struct cm_apr apr;
    };
};
/* Whether field `field` of the message `m`, a cm_`name`, was captured in full: CM_HAS(m, req, qpn). */
#define CM_HAS(m, name, field) (cm_msg_captured(m) >= HDR_END(cm_##name, field))
/* Bytes of the message (behind the MAD header) that were captured. */
static inline size_t cm_msg_captured(const struct cm_msg *m)
{
    return CM_BODY_LEN - m->cut;
}
/* Bytes of its private data that were captured. */
unsigned cm_private_captured(const struct cm_msg *m);
/* Whether the header of the RDMA IP CM service, at the start of the private data of a REQ or SIDR_REQ, was captured. */
static inline bool cm_has_ip(const struct cm_msg *m)
{
    return cm_private_captured(m) >= CM_IP_LEN;
}

/* Read the MAD of `len` bytes at `p`. False if it is shorter than 256 bytes, of another class, or not a message of enum
 * cm_attr. */
bool cm_msg_decode(struct cm_msg *m, const uint8_t *p, size_t len);
/* Write all 256 bytes of a message; mad.attr_id must be one of enum cm_attr. */
void cm_msg_encode(uint8_t p[MAD_LEN], const struct cm_msg *m);
/* Read the message of a decoded packet, of which the snap length may have cut bytes: see `cut`. False if the packet has
 * none, or less was captured than the communication ids, which most messages begin with. */
bool cm_msg_of(struct cm_msg *m, const struct pkt *p);
/* Communication ids of the sender and of the receiver of a message, 0 for an id that the message does not have:
 * SIDR_REQ and SIDR_REP have neither, a REQ has only the sender's. */
void cm_msg_ids(const struct cm_msg *m, uint32_t *sender, uint32_t *receiver);

/* Queue pair of a REP: of XRC its number is in the EE context number, and the QPN is 0 (so Linux fills them in). */
static inline uint32_t cm_rep_qpn(const struct cm_rep *m)
{
    return m->qpn ? m->qpn : m->eecn;
}
/* Whether that number was captured. */
static inline bool cm_has_rep_qpn(const struct cm_msg *m)
{
    return CM_HAS(m, rep, qpn) && (m->rep.qpn || CM_HAS(m, rep, eecn));
}
/* ECE vendor id, 24 bits, from its parts in a REP or SIDR_REP. */
static inline uint32_t cm_rep_vendor(const struct cm_rep *m)
{
    return (uint32_t)m->vendor_h << 16 | (uint32_t)m->vendor_m << 8 | m->vendor_l;
}
static inline uint32_t cm_sidr_rep_vendor(const struct cm_sidr_rep *m)
{
    return (uint32_t)m->vendor_h << 8 | m->vendor_l;
}

/* The field of a message that has bit `bit` of its body; NULL: the bit is in the private data, or `attr` no message. */
const struct field *cm_field_at(unsigned attr, unsigned bit);
/* Bytes of private data in a message; 0 for an attribute id that is no message. */
unsigned cm_private_max(unsigned attr);

/* Of a message of which only the first `captured` bytes are known: set the bytes of a field that ends behind them to 0,
 * except for private data, of which each byte counts. `attr` is one of enum cm_attr. */
void cm_clear_halves(uint8_t body[CM_BODY_LEN], unsigned attr, uint32_t captured);
/* Decode a MAD of class 7 at `off`, whose header is `m` (struct mad_class.decode). */
void cm_decode(struct pkt *p, uint32_t off, const struct mad *m);
/* Append the Info column of a CM message. */
void cm_info(struct buf *b, const struct pkt *p, const struct layer *l);

extern const struct hdr cm_req_hdr, cm_mra_hdr, cm_rej_hdr, cm_rep_hdr, cm_rtu_hdr, cm_dreq_hdr, cm_drep_hdr,
    cm_sidr_req_hdr, cm_sidr_rep_hdr, cm_lap_hdr, cm_apr_hdr, cm_ip_hdr, cm_sidr_ip_hdr;

#endif
