/* layer 1 (wire): decoding of Communication Management: field tables of the messages, and conditions of fields. */
#include "dissect/mad/cm.h"

#include "dissect/dissectors.h"

/* True if the service id at byte `off` of the message at `p` (`len` bytes) is one of the RDMA IP CM service. */
static bool service_ip_at(const uint8_t *p, uint32_t len, uint32_t off)
{
    return len >= off + 8 && cm_service_is_ip(load_be64(p + off));
}

bool cm_req_ip(const uint8_t *p, uint32_t len)
{
    return service_ip_at(p, len, 8);
}

bool cm_req_no_ip(const uint8_t *p, uint32_t len)
{
    return !service_ip_at(p, len, 8);
}

bool cm_sidr_req_ip(const uint8_t *p, uint32_t len)
{
    return service_ip_at(p, len, 8);
}

bool cm_sidr_req_no_ip(const uint8_t *p, uint32_t len)
{
    return !service_ip_at(p, len, 8);
}

#define PRIM_LGID 56 /* offset of the primary local GID in a REQ, bytes */

bool cm_req_gid4(const uint8_t *p, uint32_t len)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    return len >= PRIM_LGID + 16 && memcmp(p + PRIM_LGID, mapped, sizeof mapped) == 0;
}

bool cm_req_gid6(const uint8_t *p, uint32_t len)
{
    return !cm_req_gid4(p, len);
}

bool cm_ip_v4(const uint8_t *p, uint32_t len)
{
    return len >= 2 && p[1] >> 4 == 4;
}

bool cm_ip_v6(const uint8_t *p, uint32_t len)
{
    return !cm_ip_v4(p, len);
}

/* True if the REJ at `p` (`len` bytes) has reason `a` or `b` and at least `n` valid bytes of additional information. */
static bool ari(const uint8_t *p, uint32_t len, unsigned a, unsigned b, unsigned n)
{
    unsigned reason;

    if (len < 12 || p[9] >> 1 < n)
        return false;
    reason = load_be16(p + 10);
    return reason == a || reason == b;
}

bool cm_ari_gid(const uint8_t *p, uint32_t len)
{
    return ari(p, len, CM_REJ_INVALID_GID, CM_REJ_INVALID_ALT_GID, 16) ||
           ari(p, len, CM_REJ_PORT_REDIRECT, CM_REJ_PORT_REDIRECT, 16);
}

#define ARI_IS(name, a, b, n)                                                                                          \
    bool cm_ari_##name(const uint8_t *p, uint32_t len)                                                                 \
    {                                                                                                                  \
        return ari(p, len, a, b, n);                                                                                   \
    }
ARI_IS(lid, CM_REJ_INVALID_LID, CM_REJ_INVALID_ALT_LID, 2)
ARI_IS(sl, CM_REJ_INVALID_SL, CM_REJ_INVALID_ALT_SL, 1)
ARI_IS(tclass, CM_REJ_INVALID_TRAFFIC_CLASS, CM_REJ_INVALID_ALT_TRAFFIC_CLASS, 1)
ARI_IS(hop, CM_REJ_INVALID_HOP_LIMIT, CM_REJ_INVALID_ALT_HOP_LIMIT, 1)
ARI_IS(rate, CM_REJ_INVALID_PACKET_RATE, CM_REJ_INVALID_ALT_PACKET_RATE, 1)
ARI_IS(redirect, CM_REJ_PORT_CM_REDIRECT, CM_REJ_PORT_CM_REDIRECT, 40)
ARI_IS(mtu, CM_REJ_INVALID_MTU, CM_REJ_INVALID_MTU, 1)
ARI_IS(resources, CM_REJ_INSUFFICIENT_RESP_RESOURCES, CM_REJ_INSUFFICIENT_RESP_RESOURCES, 1)
ARI_IS(rnr, CM_REJ_INVALID_RNR_RETRY, CM_REJ_INVALID_RNR_RETRY, 1)
ARI_IS(version, CM_REJ_INVALID_CLASS_VERSION, CM_REJ_INVALID_CLASS_VERSION, 1)

static bool rep_vendor_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    const uint8_t *q = p->data + l->off;

    if (l->len < 24)
        return false;
    v->u = (uint64_t)q[15] << 16 | (uint64_t)q[19] << 8 | q[23];
    return true;
}

static bool sidr_rep_vendor_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    const uint8_t *q = p->data + l->off;

    if (l->len < 12)
        return false;
    v->u = (uint64_t)load_be16(q + 6) << 8 | q[11];
    return true;
}

/* Filter names that are the same for all messages. */
#define LOCAL_ALIAS                                                                                                    \
    FIELD_ALIAS(0, 32, FT_UINT32, BASE_HEX, "rdma.cm.localcommid", "Local Communication ID",                           \
                "Local id of any CM message.")
#define REMOTE_ALIAS                                                                                                   \
    FIELD_ALIAS(32, 32, FT_UINT32, BASE_HEX, "rdma.cm.remotecommid", "Remote Communication ID",                        \
                "Remote id of any CM message.")
#define SERVICE_ALIAS(bit)                                                                                             \
    FIELD_ALIAS(bit, 64, FT_UINT64, BASE_HEX, "rdma.cm.serviceid", "ServiceID",                                        \
                "Service id of any CM message, undivided.")

HDR_TABLE_PLUS(cm_req, CM_REQ_FIELDS, LOCAL_ALIAS, SERVICE_ALIAS(64),
               /* Wireshark gives these three bits the name of those before the ACK timeout. */
               FIELD_ALIAS(1117, 3, FT_UINT8, BASE_HEX, "infiniband.cm.req.alt_reserved1", "Reserved (3 bits)",
                           "Zero."))
HDR_TABLE_PLUS(cm_mra, CM_MRA_FIELDS, LOCAL_ALIAS, REMOTE_ALIAS)
HDR_TABLE_PLUS(cm_rej, CM_REJ_FIELDS, LOCAL_ALIAS, REMOTE_ALIAS)
HDR_TABLE_PLUS(
    cm_rep, CM_REP_FIELDS, LOCAL_ALIAS, REMOTE_ALIAS,
    FIELD_GET(rep_vendor_get, FT_UINT24, BASE_HEX, NULL, 0, "rdma.cm.rep.vendorid", "ECE Vendor ID",
              "Enhanced Connection Establishment: vendor that defines the options in the attribute modifier."))
HDR_TABLE_PLUS(cm_rtu, CM_RTU_FIELDS, LOCAL_ALIAS, REMOTE_ALIAS)
HDR_TABLE_PLUS(cm_dreq, CM_DREQ_FIELDS, LOCAL_ALIAS, REMOTE_ALIAS)
HDR_TABLE_PLUS(cm_drep, CM_DREP_FIELDS, LOCAL_ALIAS, REMOTE_ALIAS)
HDR_TABLE_PLUS(cm_lap, CM_LAP_FIELDS, LOCAL_ALIAS, REMOTE_ALIAS)
HDR_TABLE_PLUS(cm_apr, CM_APR_FIELDS, LOCAL_ALIAS, REMOTE_ALIAS)
HDR_TABLE_PLUS(cm_sidr_req, CM_SIDR_REQ_FIELDS, SERVICE_ALIAS(64))
HDR_TABLE_PLUS(
    cm_sidr_rep, CM_SIDR_REP_FIELDS, SERVICE_ALIAS(96),
    FIELD_GET(sidr_rep_vendor_get, FT_UINT24, BASE_HEX, NULL, 0, "rdma.cm.sidr_rep.vendorid", "ECE Vendor ID",
              "Enhanced Connection Establishment: vendor that defines the options in the attribute modifier."))
HDR_TABLE(cm_ip, CM_IP_FIELDS)
HDR_TABLE(cm_sidr_ip, CM_SIDR_IP_FIELDS)

#define CM_HDR(var, abbr, title)                                                                                       \
    const struct hdr var##_hdr = {                                                                                     \
        .abbrev = "rdma.cm." abbr,                                                                                     \
        .name = title,                                                                                                 \
        .proto = "infiniband",                                                                                         \
        .column = "CM",                                                                                                \
        .fields = var##_fields,                                                                                        \
        .nfields = ARRAY_LEN(var##_fields),                                                                            \
        .len = CM_BODY_LEN,                                                                                            \
        .info = cm_info,                                                                                               \
    };
CM_HDR(cm_req, "req", "CM ConnectRequest (REQ)")
CM_HDR(cm_mra, "mra", "CM MsgRcptAck (MRA)")
CM_HDR(cm_rej, "rej", "CM ConnectReject (REJ)")
CM_HDR(cm_rep, "rep", "CM ConnectReply (REP)")
CM_HDR(cm_rtu, "rtu", "CM ReadyToUse (RTU)")
CM_HDR(cm_dreq, "dreq", "CM DisconnectRequest (DREQ)")
CM_HDR(cm_drep, "drep", "CM DisconnectReply (DREP)")
CM_HDR(cm_sidr_req, "sidr_req", "CM ServiceIDResReq (SIDR_REQ)")
CM_HDR(cm_sidr_rep, "sidr_rep", "CM ServiceIDResReqResp (SIDR_REP)")
CM_HDR(cm_lap, "lap", "CM LoadAlternatePath (LAP)")
CM_HDR(cm_apr, "apr", "CM AlternatePathResponse (APR)")

const struct hdr cm_ip_hdr = {
    .abbrev = "infiniband.cm.req.ip_cm",
    .name = "IP CM Private Data",
    .proto = "infiniband",
    .fields = cm_ip_fields,
    .nfields = ARRAY_LEN(cm_ip_fields),
    .len = CM_IP_LEN,
    .type = FT_BYTES,
};
const struct hdr cm_sidr_ip_hdr = {
    .abbrev = "rdma.cm.sidr_req.ip_cm",
    .name = "IP CM Private Data",
    .proto = "infiniband",
    .fields = cm_sidr_ip_fields,
    .nfields = ARRAY_LEN(cm_sidr_ip_fields),
    .len = CM_IP_LEN,
    .type = FT_BYTES,
};

/* By attribute id: the header of the message, the offset of its private data in the message (bytes), and the header at
 * the start of the private data if the service id is one of the RDMA IP CM service (NULL: none). */
static const struct cm_layout {
    const struct hdr *hdr;
    uint16_t private_off;
    const struct hdr *ip;
} layouts[] = {
    [CM_REQ - CM_REQ] = {&cm_req_hdr, 140, &cm_ip_hdr},
    [CM_MRA - CM_REQ] = {&cm_mra_hdr, 10, NULL},
    [CM_REJ - CM_REQ] = {&cm_rej_hdr, 84, NULL},
    [CM_REP - CM_REQ] = {&cm_rep_hdr, 36, NULL},
    [CM_RTU - CM_REQ] = {&cm_rtu_hdr, 8, NULL},
    [CM_DREQ - CM_REQ] = {&cm_dreq_hdr, 12, NULL},
    [CM_DREP - CM_REQ] = {&cm_drep_hdr, 8, NULL},
    [CM_SIDR_REQ - CM_REQ] = {&cm_sidr_req_hdr, 16, &cm_sidr_ip_hdr},
    [CM_SIDR_REP - CM_REQ] = {&cm_sidr_rep_hdr, 96, NULL},
    [CM_LAP - CM_REQ] = {&cm_lap_hdr, 64, NULL},
    [CM_APR - CM_REQ] = {&cm_apr_hdr, 84, NULL},
};

static const struct cm_layout *layout_of(unsigned attr)
{
    return attr >= CM_REQ && attr <= CM_APR ? &layouts[attr - CM_REQ] : NULL;
}

const struct field *cm_field_at(unsigned attr, unsigned bit)
{
    const struct cm_layout *c = layout_of(attr);

    for (unsigned i = 0; c && bit < c->private_off * 8u && i < c->hdr->nfields; i++) {
        const struct field *f = &c->hdr->fields[i];
        if (f->flags & FLD_MEMBER && bit >= f->bit && bit - f->bit < f->width)
            return f;
    }
    return NULL;
}

unsigned cm_private_max(unsigned attr)
{
    const struct cm_layout *c = layout_of(attr);

    return c ? CM_BODY_LEN - c->private_off : 0;
}

unsigned cm_private_captured(const struct cm_msg *m)
{
    unsigned max = cm_private_max(m->mad.attr_id);

    return m->cut < max ? max - m->cut : 0;
}

void cm_clear_halves(uint8_t body[CM_BODY_LEN], unsigned attr, uint32_t captured)
{
    const struct hdr *h = layout_of(attr)->hdr;

    for (unsigned i = 0; i < h->nfields; i++) {
        const struct field *f = &h->fields[i];
        unsigned first = f->bit / 8, end = (f->bit + f->width + 7u) / 8;
        if (f->flags & FLD_MEMBER && first < captured && captured < end && end < CM_BODY_LEN)
            memset(body + first, 0, captured - first);
    }
}

void cm_decode(struct pkt *p, uint32_t off, const struct mad *m)
{
    const struct cm_layout *c = layout_of(m->attr_id);
    uint32_t at = off + MAD_HDR_LEN;

    if (!c)
        return;
    pkt_header(p, c->hdr, at, CM_BODY_LEN, "CM message");
    /* REQ and SIDR_REQ, the two messages with such a header, both have their service id at byte 8. */
    if (c->ip && min_u32(p->end, p->caplen) > at + c->private_off && service_ip_at(p->data + at, c->private_off, 8))
        pkt_layer(p, c->ip, at + c->private_off, min_u32(CM_BODY_LEN, p->end - at) - c->private_off);
}
