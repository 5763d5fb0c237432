/* layer 1 (wire): management datagrams: the common header, and the dissector of each class. */
#include "dissect/mad/mad.h"

#include "dissect/dissectors.h"
#include "dissect/mad/cm.h"
#include "dissect/mad/notice.h"
#include "dissect/mad/other.h"
#include "dissect/mad/tables.h"

/* The classes. A class that is decoded further has its function or the table of its attributes here. */
static const struct mad_class mad_classes[] = {
    {0x01, "SubnMgt", smp_decode, NULL, smp_attrs, 64},
    {0x81, "SubnMgt DR", smp_decode, NULL, smp_attrs, 64},
    {0x03, "SubnAdm", sa_decode, NULL, sa_attrs, 56},
    {0x04, "PerfMgt", NULL, NULL, perf_attrs, 64},
    {0x05, "BoardMgt", NULL, NULL, bm_attrs, 64},
    {0x06, "DevMgt", NULL, NULL, devmgt_attrs, 64},
    {0x07, "ComMgt", cm_decode, &cm_attr_desc, NULL, 0},
    {0x08, "SNMP", NULL, NULL, other_attrs, 64},
    {0x21, "CongestionControl", cc_decode, NULL, cc_attrs, 64},
};

/* The row of a class; NULL if it has none. */
static const struct mad_class *mad_class_find(uint8_t class)
{
    for (unsigned i = 0; i < ARRAY_LEN(mad_classes); i++)
        if (mad_classes[i].class == class)
            return &mad_classes[i];
    return NULL;
}

const struct mad_attr *mad_attr_find(const struct mad_attr *table, uint16_t id)
{
    for (; table && table->name; table++)
        if (table->id == id)
            return table;
    return NULL;
}

static bool is_vendor(uint64_t class)
{
    return (class >= 0x09 && class <= 0x0f) || mad_has_oui((uint8_t) class);
}

static void class_text(struct buf *b, uint64_t class)
{
    const struct mad_class *c = mad_class_find((uint8_t) class);

    if (c)
        buf_puts(b, c->name);
    else if (is_vendor(class))
        buf_printf(b, "Vendor(0x%02x)", (unsigned)class);
    else if (class >= 0x10 && class <= 0x2f)
        buf_printf(b, "Application(0x%02x)", (unsigned)class);
}
const struct vdesc mad_class_desc = VDESC_TEXT(class_text);

static const struct vname methods[] = {
    {0x01, "Get"},         {0x02, "Set"},        {0x03, "Send"},          {0x05, "Trap"},         {0x06, "Report"},
    {0x07, "TrapRepress"}, {0x12, "GetTable"},   {0x13, "GetTraceTable"}, {0x14, "GetMulti"},     {0x15, "Delete"},
    {0x81, "GetResp"},     {0x86, "ReportResp"}, {0x92, "GetTableResp"},  {0x94, "GetMultiResp"}, {0x95, "DeleteResp"},
};
const struct vdesc mad_method_desc = VDESC_NAMES(methods);

static const struct vname status_codes[] = {
    {0, "no invalid fields"},
    {1, "version not supported"},
    {2, "method not supported"},
    {3, "method and attribute not supported together"},
    {7, "invalid value in attribute or modifier"},
};
const struct vdesc mad_status_desc = VDESC_NAMES(status_codes);

static const struct vname sa_statuses[] = {
    {0, "success"},
    {1, "no resources"},
    {2, "invalid request"},
    {3, "no records"},
    {4, "too many records"},
    {5, "invalid GID"},
    {6, "insufficient components"},
    {7, "denied"},
    {8, "priority suggested"},
};
const struct vdesc sa_status_desc = VDESC_NAMES(sa_statuses);

static uint8_t class_of(const uint8_t *p, uint32_t len)
{
    return len >= 2 ? p[1] : 0;
}

bool mad_is_dr(const uint8_t *p, uint32_t len)
{
    return class_of(p, len) == 0x81;
}

bool mad_is_sa(const uint8_t *p, uint32_t len)
{
    return class_of(p, len) == 0x03;
}

bool mad_is_other(const uint8_t *p, uint32_t len)
{
    return !mad_is_dr(p, len) && !mad_is_sa(p, len);
}

/* Append the name of attribute `id` of class `c`. False, and nothing is appended, if it has none or `c` is NULL. */
static bool attr_print(struct buf *b, const struct mad_class *c, uint16_t id)
{
    const struct mad_attr *a = c ? mad_attr_find(c->table, id) : NULL;

    if (a)
        buf_puts(b, a->name);
    return a || (c && vdesc_print(b, c->attrs, id));
}

/* Append a status other than 0 with its meaning: " status 0x0301, busy, no records". */
static void status_info(struct buf *b, const struct mad *m)
{
    uint16_t status = m->mgmt_class == 0x81 ? m->status & 0x7fff : m->status;

    if (!status)
        return;
    buf_printf(b, " status 0x%04x", status);
    if (status & 1)
        buf_puts(b, ", busy");
    if (status & 2)
        buf_puts(b, ", redirect");
    if (status >> 2 & 7) {
        buf_puts(b, ", ");
        if (!vdesc_print(b, &mad_status_desc, status >> 2 & 7))
            buf_puts(b, "reserved code");
    }
    if (m->mgmt_class == 0x03 && status >> 8) {
        buf_puts(b, ", ");
        if (!vdesc_print(b, &sa_status_desc, status >> 8))
            buf_puts(b, "reserved class status");
    }
}

static void mad_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    const struct mad_class *c;
    struct mad m;

    if (l->len < MAD_HDR_LEN) {
        buf_puts(b, "MAD");
        return;
    }
    mad_get(&m, p->data + l->off);
    c = mad_class_find(m.mgmt_class);
    if (!vdesc_print(b, &mad_class_desc, m.mgmt_class))
        buf_printf(b, "class 0x%02x", m.mgmt_class);
    buf_char(b, ' ');
    if (!vdesc_print(b, &mad_method_desc, m.method))
        buf_printf(b, "method 0x%02x", m.method);
    buf_char(b, '(');
    if (!attr_print(b, c, m.attr_id))
        buf_printf(b, "attribute 0x%04x", m.attr_id);
    buf_printf(b, ") mod 0x%08x", m.attr_mod);
    status_info(b, &m);
    notice_info(b, p);
}

/* Name of the attribute. */
static bool get_attribute(const struct pkt *p, const struct layer *l, struct value *v)
{
    const struct mad_attr *a = NULL;
    const struct mad_class *c;
    struct mad m;

    if (l->len < MAD_HDR_LEN)
        return false;
    mad_get(&m, p->data + l->off);
    c = mad_class_find(m.mgmt_class);
    if (c)
        a = mad_attr_find(c->table, m.attr_id);
    if (a) {
        v->p = (const uint8_t *)a->name;
        v->len = (uint32_t)strlen(a->name);
    } else if (c && c->attrs && (v->p = (const uint8_t *)vname_find(c->attrs->names, c->attrs->n, m.attr_id))) {
        v->len = (uint32_t)strlen((const char *)v->p);
    }
    return a || (c && c->attrs && v->p);
}

/* The 232 bytes after the MAD header. */
static bool get_data(const struct pkt *p, const struct layer *l, struct value *v)
{
    uint32_t end = min_u32(p->caplen, l->off + MAD_LEN);

    if (l->len < MAD_HDR_LEN || !(p->have & H_BTH) || end > p->payload_off + p->payload_len || end - l->off != MAD_LEN)
        return false;
    v->p = p->data + l->off + MAD_HDR_LEN;
    v->len = MAD_LEN - MAD_HDR_LEN;
    return true;
}

HDR_TABLE_PLUS(mad, MAD_FIELDS,
               FIELD_GET(get_attribute, FT_STRING, BASE_NONE, NULL, 0, "rdma.mad.attribute", "Attribute",
                         "Name of the attribute."),
               FIELD_GET(get_data, FT_BYTES, BASE_NONE, NULL, FLD_HIDDEN, "infiniband.mad.data", "MAD Data Payload",
                         "All bytes after the header."))
const struct hdr mad_hdr = {
    .abbrev = "infiniband.mad",
    .name = "MAD - Management Datagram",
    .proto = "infiniband",
    .column = "MAD",
    .fields = mad_fields,
    .nfields = ARRAY_LEN(mad_fields),
    .len = MAD_HDR_LEN,
    .type = FT_BYTES,
    .info = mad_info,
};

void mad_attr_decode(struct pkt *p, uint32_t off, uint32_t len, const struct mad_attr *a)
{
    unsigned i = 0;

    if (!a || !a->parts[0]) {
        if (len && off < p->end)
            pkt_header(p, &madbytes_hdr, off, min_u32(len, p->end - off), "attribute");
        return;
    }
    for (; i < MAD_PARTS && a->parts[i] && len; i++) {
        uint32_t n = min_u32(a->parts[i]->len, len);
        if (!pkt_header(p, a->parts[i], off, n, "attribute"))
            return;
        off += n;
        len -= n;
    }
}

/* Decode a class without a function of its own: by the table of its attributes, or as bytes (`c` NULL: no row). */
static void class_decode(struct pkt *p, uint32_t off, const struct mad *m, const struct mad_class *c)
{
    uint32_t data = c ? c->data_off : MAD_HDR_LEN;

    if (mad_has_oui(m->mgmt_class)) {
        vendor_decode(p, off);
    } else if (c && c->table && m->attr_id == ATTR_NOTICE) {
        notice_decode(p, off + data, MAD_LEN - data, m->mgmt_class);
    } else {
        mad_attr_decode(p, off + data, MAD_LEN - data, c ? mad_attr_find(c->table, m->attr_id) : NULL);
    }
}

void mad_decode(struct pkt *p)
{
    const uint8_t *q = pkt_header(p, &mad_hdr, p->payload_off, MAD_HDR_LEN, "MAD header");
    const struct mad_class *c;
    struct mad m;

    if (!q)
        return;
    /* infiniband.mad names the whole datagram, not only its header. */
    p->layers[p->n_layers - 1].len = min_u32(p->end, p->caplen) - p->payload_off;
    p->have |= H_MAD;
    mad_get(&m, q);
    if (p->payload_len != MAD_LEN)
        pkt_malformed(p, p->payload_off, "a MAD has 256 bytes");
    c = mad_class_find(m.mgmt_class);
    if (c && c->decode)
        c->decode(p, p->payload_off, &m);
    else
        class_decode(p, p->payload_off, &m, c);
}
