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
    return m->mad.mgmt_class == CM_CLASS && body_get(m, p + MAD_HDR_LEN);
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
    return p->have & H_MAD && cm_msg_decode(m, p->data + p->payload_off, p->payload_cap);
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

static void service_info(struct buf *b, uint64_t id)
{
    buf_puts(b, " service ");
    buf_0x(b, id, 16);
    if (cm_service_is_ip(id)) {
        buf_puts(b, " (");
        vdesc_print(b, &cm_service_desc, id);
        buf_char(b, ')');
    }
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

    buf_printf(b, " local comm id 0x%08x QPN 0x%06x", r->local_id, r->qpn);
    service_info(b, r->service_id);
    buf_printf(b, " PSN %u", r->psn);
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
    buf_printf(b, " QPN 0x%06x PSN %u", cm_rep_qpn(&m->rep), m->rep.psn);
    vendor_info(b, m, cm_rep_vendor(&m->rep));
}

static void rej_info(struct buf *b, const struct cm_msg *m)
{
    ids_info(b, m);
    buf_puts(b, " of ");
    name_info(b, &cm_rej_msg_desc, m->rej.about);
    buf_printf(b, ": reason %u", m->rej.reason);
    if (cm_rej_reason_str(m->rej.reason))
        buf_printf(b, " (%s)", cm_rej_reason_str(m->rej.reason));
}

static void mra_info(struct buf *b, const struct cm_msg *m)
{
    ids_info(b, m);
    buf_puts(b, " of ");
    name_info(b, &cm_mra_msg_desc, m->mra.about);
    buf_puts(b, " service timeout ");
    buf_duration(b, cm_time(m->mra.service_timeout));
}

static void sidr_req_info(struct buf *b, const struct cm_msg *m)
{
    buf_printf(b, " request id 0x%08x", m->sidr_req.request_id);
    service_info(b, m->sidr_req.service_id);
}

static void sidr_rep_info(struct buf *b, const struct cm_msg *m)
{
    buf_printf(b, " request id 0x%08x status ", m->sidr_rep.request_id);
    name_info(b, &cm_sidr_status_desc, m->sidr_rep.status);
    if (m->sidr_rep.status == CM_SIDR_SUCCESS)
        buf_printf(b, " QPN 0x%06x Q_Key 0x%08x", m->sidr_rep.qpn, m->sidr_rep.qkey);
    service_info(b, m->sidr_rep.service_id);
    vendor_info(b, m, cm_sidr_rep_vendor(&m->sidr_rep));
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
        ids_info(b, m);
        buf_char(b, ' ');
        name_info(b, &cm_apr_status_desc, m->apr.status);
        break;
    default: /* RTU, DREQ, DREP, LAP */
        ids_info(b, m);
    }
}

void cm_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    const uint8_t *mad = p->data + l->off - MAD_HDR_LEN;
    struct cm_msg m;

    mad_get(&m.mad, mad);
    buf_printf(b, "CM %s", cm_attr_str(m.mad.attr_id));
    if (l->len >= CM_BODY_LEN && body_get(&m, mad + MAD_HDR_LEN))
        msg_info(b, &m);
}
