/* layer 1 (wire): messages of Communication Management: decoding and encoding a struct, and the Info column. */
#include "dissect/mad/cm.h"
#include "dissect/pkt.h"

/* All messages: X(attribute id, name of the struct cm_* and of the union's member). */
#define CM_MESSAGES(X)                                                                                                 \
    X(CM_REQ, req)                                                                                                     \
    X(CM_MRA, mra)                                                                                                     \
    X(CM_REJ, rej)                                                                                                     \
    X(CM_REP, rep)                                                                                                     \
    X(CM_RTU, rtu)                                                                                                     \
    X(CM_DREQ, dreq)                                                                                                   \
    X(CM_DREP, drep)                                                                                                   \
    X(CM_SIDR_REQ, sidr_req)                                                                                           \
    X(CM_SIDR_REP, sidr_rep)                                                                                           \
    X(CM_LAP, lap)                                                                                                     \
    X(CM_APR, apr)

static bool body_get(struct cm_msg *m, const uint8_t *p)
{
    switch (m->mad.attr_id) {
#define X(attr, name)                                                                                                  \
    case attr:                                                                                                         \
        cm_##name##_get(&m->name, p);                                                                                  \
        return true;
        CM_MESSAGES(X)
#undef X
    default:
        return false;
    }
}

bool cm_msg_decode(struct cm_msg *m, const uint8_t *p, size_t len)
{
    if (len < MAD_LEN)
        return false;
    mad_get(&m->mad, p);
    m->cut = 0;
    return m->mad.mgmt_class == CM_CLASS && body_get(m, p + MAD_HDR_LEN);
}

/* Read a message of which `len` bytes, less than all, were captured behind the MAD header. */
static bool cut_decode(struct cm_msg *m, const uint8_t *mad, uint32_t len)
{
    uint8_t body[CM_BODY_LEN] = {0};

    mad_get(&m->mad, mad);
    if (len < CM_BODY_LEN - CM_CUT_MAX || m->mad.mgmt_class != CM_CLASS || !cm_attr_str(m->mad.attr_id))
        return false;
    memcpy(body, mad + MAD_HDR_LEN, len);
    cm_clear_halves(body, m->mad.attr_id, len);
    m->cut = (uint8_t)(CM_BODY_LEN - len);
    return body_get(m, body);
}

void cm_msg_encode(uint8_t p[MAD_LEN], const struct cm_msg *m)
{
    memset(p, 0, MAD_LEN);
    mad_put(p, &m->mad);
    p += MAD_HDR_LEN;
    switch (m->mad.attr_id) {
#define X(attr, name)                                                                                                  \
    case attr:                                                                                                         \
        cm_##name##_put(p, &m->name);                                                                                  \
        break;
        CM_MESSAGES(X)
#undef X
    default:
        break;
    }
}

bool cm_msg_of(struct cm_msg *m, const struct pkt *p)
{
    const uint8_t *mad = p->data + p->payload_off;

    if (!(p->have & H_MAD) || p->payload_len < MAD_LEN || p->payload_cap < MAD_HDR_LEN)
        return false;
    return p->payload_cap < MAD_LEN ? cut_decode(m, mad, p->payload_cap - MAD_HDR_LEN)
                                    : cm_msg_decode(m, mad, p->payload_cap);
}

void cm_msg_ids(const struct cm_msg *m, uint32_t *sender, uint32_t *receiver)
{
    bool sidr = m->mad.attr_id == CM_SIDR_REQ || m->mad.attr_id == CM_SIDR_REP;

    *sender = sidr ? 0 : m->rtu.local_id;
    *receiver = sidr || m->mad.attr_id == CM_REQ ? 0 : m->rtu.remote_id;
}

static void ids_info(struct buf *b, const struct cm_msg *m)
{
    uint32_t local, remote;

    cm_msg_ids(m, &local, &remote);
    buf_printf(b, " local comm id 0x%08x remote comm id 0x%08x", local, remote);
}

/* True if a field was captured; else says that it was not. */
static bool is_there(struct buf *b, bool captured, const char *what)
{
    if (!captured)
        buf_printf(b, " %s not captured", what);
    return captured;
}

static void service_info(struct buf *b, bool captured, uint64_t id)
{
    if (!is_there(b, captured, "service"))
        return;
    buf_puts(b, " service ");
    buf_0x(b, id, 16);
    if (cm_service_is_ip(id)) {
        buf_puts(b, " (");
        vdesc_print(b, &cm_service_desc, id);
        buf_char(b, ')');
    }
}

static void qpn_info(struct buf *b, bool captured, uint32_t qpn)
{
    if (is_there(b, captured, "QPN"))
        buf_printf(b, " QPN 0x%06x", qpn);
}

static void psn_info(struct buf *b, bool captured, uint32_t psn)
{
    if (is_there(b, captured, "PSN"))
        buf_printf(b, " PSN %u", psn);
}

/* Append the name of a value, or its number if it has no name. */
static void name_info(struct buf *b, const struct vdesc *desc, unsigned value)
{
    if (!vdesc_print(b, desc, value))
        buf_dec(b, value);
}

static void vendor_info(struct buf *b, const struct cm_msg *m, uint32_t vendor)
{
    if (vendor)
        buf_printf(b, " ECE vendor 0x%06x options 0x%08x", vendor, m->mad.attr_mod);
}

static void req_info(struct buf *b, const struct cm_msg *m)
{
    const struct cm_req *r = &m->req;

    buf_printf(b, " local comm id 0x%08x", r->local_id);
    qpn_info(b, CM_HAS(m, req, qpn), r->qpn);
    service_info(b, CM_HAS(m, req, service_id), r->service_id);
    psn_info(b, CM_HAS(m, req, psn), r->psn);
    if (cm_mtu_bytes(r->mtu))
        buf_printf(b, " PMTU %u", cm_mtu_bytes(r->mtu));
    if (r->transport) {
        buf_char(b, ' ');
        name_info(b, r->transport == CM_TRANSPORT_EXT ? &cm_ext_transport_desc : &cm_transport_desc,
                  r->transport == CM_TRANSPORT_EXT ? r->ext_transport : r->transport);
    }
    vendor_info(b, m, r->vendor_id);
}

static void rep_info(struct buf *b, const struct cm_msg *m)
{
    ids_info(b, m);
    qpn_info(b, cm_has_rep_qpn(m), cm_rep_qpn(&m->rep));
    psn_info(b, CM_HAS(m, rep, psn), m->rep.psn);
    if (CM_HAS(m, rep, vendor_l))
        vendor_info(b, m, cm_rep_vendor(&m->rep));
}

static void rej_info(struct buf *b, const struct cm_msg *m)
{
    ids_info(b, m);
    if (!is_there(b, CM_HAS(m, rej, reason), "reason"))
        return;
    buf_puts(b, " of ");
    name_info(b, &cm_rej_msg_desc, m->rej.about);
    buf_printf(b, ": reason %u", m->rej.reason);
    if (cm_rej_reason_str(m->rej.reason))
        buf_printf(b, " (%s)", cm_rej_reason_str(m->rej.reason));
}

static void mra_info(struct buf *b, const struct cm_msg *m)
{
    ids_info(b, m);
    if (!is_there(b, CM_HAS(m, mra, service_timeout), "service timeout"))
        return;
    buf_puts(b, " of ");
    name_info(b, &cm_mra_msg_desc, m->mra.about);
    buf_puts(b, " service timeout ");
    buf_duration(b, cm_time(m->mra.service_timeout));
}

static void sidr_req_info(struct buf *b, const struct cm_msg *m)
{
    buf_printf(b, " request id 0x%08x", m->sidr_req.request_id);
    service_info(b, CM_HAS(m, sidr_req, service_id), m->sidr_req.service_id);
}

static void sidr_rep_info(struct buf *b, const struct cm_msg *m)
{
    const struct cm_sidr_rep *r = &m->sidr_rep;

    buf_printf(b, " request id 0x%08x status ", r->request_id);
    name_info(b, &cm_sidr_status_desc, r->status);
    if (r->status == CM_SIDR_SUCCESS) {
        qpn_info(b, CM_HAS(m, sidr_rep, qpn), r->qpn);
        if (is_there(b, CM_HAS(m, sidr_rep, qkey), "Q_Key"))
            buf_printf(b, " Q_Key 0x%08x", r->qkey);
    }
    service_info(b, CM_HAS(m, sidr_rep, service_id), r->service_id);
    if (CM_HAS(m, sidr_rep, vendor_l))
        vendor_info(b, m, cm_sidr_rep_vendor(r));
}

static void apr_info(struct buf *b, const struct cm_msg *m)
{
    ids_info(b, m);
    if (!is_there(b, CM_HAS(m, apr, status), "status"))
        return;
    buf_char(b, ' ');
    name_info(b, &cm_apr_status_desc, m->apr.status);
}

static void msg_info(struct buf *b, const struct cm_msg *m)
{
    switch (m->mad.attr_id) {
    case CM_REQ:
        req_info(b, m);
        break;
    case CM_REP:
        rep_info(b, m);
        break;
    case CM_REJ:
        rej_info(b, m);
        break;
    case CM_MRA:
        mra_info(b, m);
        break;
    case CM_SIDR_REQ:
        sidr_req_info(b, m);
        break;
    case CM_SIDR_REP:
        sidr_rep_info(b, m);
        break;
    case CM_APR:
        apr_info(b, m);
        break;
    default: /* RTU, DREQ, DREP, LAP */
        ids_info(b, m);
    }
}

void cm_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    struct cm_msg m;

    mad_get(&m.mad, p->data + l->off - MAD_HDR_LEN);
    buf_printf(b, "CM %s", cm_attr_str(m.mad.attr_id));
    if (cm_msg_of(&m, p))
        msg_info(b, &m);
}
