/* layer 1 (wire): management datagrams: the common header, and which class continues. */
#include "dissect/mad.h"

#include "dissect/cm.h"
#include "dissect/pkt.h"

/* One row per class; a class that is decoded further names its function here. */
static const struct mad_class mad_classes[] = {
    {0x01, "SubnMgt", NULL, NULL},     {0x81, "SubnMgt(DR)", NULL, NULL}, {0x03, "SubnAdm", NULL, NULL},
    {0x04, "PerfMgt", NULL, NULL},     {0x05, "BoardMgt", NULL, NULL},    {0x06, "DevMgt", NULL, NULL},
    {0x07, "ComMgt", cm_decode, &cm_attr_desc},      {0x08, "SNMP", NULL, NULL},
    {0x21, "CongestionControl", NULL, NULL},
};

const struct mad_class *mad_class_find(uint8_t class)
{
    for (unsigned i = 0; i < ARRAY_LEN(mad_classes); i++)
        if (mad_classes[i].class == class)
            return &mad_classes[i];
    return NULL;
}

static void class_text(struct buf *b, uint64_t class)
{
    const struct mad_class *c = mad_class_find((uint8_t)class);

    if (c)
        buf_puts(b, c->name);
    else if ((class >= 0x09 && class <= 0x0f) || (class >= 0x30 && class <= 0x4f))
        buf_printf(b, "Vendor(0x%02x)", (unsigned)class);
    else if (class >= 0x10 && class <= 0x2f)
        buf_printf(b, "Application(0x%02x)", (unsigned)class);
}
const struct vdesc mad_class_desc = VDESC_TEXT(class_text);

static const struct vname methods[] = {
    {0x01, "Get"}, {0x02, "Set"}, {0x03, "Send"}, {0x05, "Trap"}, {0x06, "Report"}, {0x07, "TrapRepress"},
    {0x12, "GetTable"}, {0x13, "GetTraceTable"}, {0x14, "GetMulti"}, {0x15, "Delete"}, {0x81, "GetResp"},
    {0x86, "ReportResp"}, {0x92, "GetTableResp"}, {0x94, "GetMultiResp"}, {0x95, "DeleteResp"},
};
const struct vdesc mad_method_desc = VDESC_NAMES(methods);

static void mad_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    struct mad m;

    if (l->len < MAD_HDR_LEN)
        return;
    mad_get(&m, p->data + l->off);
    buf_puts(b, "MAD ");
    if (!vdesc_print(b, &mad_class_desc, m.mgmt_class))
        buf_printf(b, "class 0x%02x", m.mgmt_class);
    buf_char(b, ' ');
    if (!vdesc_print(b, &mad_method_desc, m.method))
        buf_printf(b, "method 0x%02x", m.method);
    buf_printf(b, " attribute 0x%04x", m.attr_id);
}

HDR_TABLE(mad, MAD_FIELDS)
const struct hdr mad_hdr = {"infiniband.mad", "MAD - Management Datagram", "infiniband", "MAD", mad_fields, ARRAY_LEN(mad_fields),
                            MAD_HDR_LEN, FT_BYTES, mad_info};

void mad_decode(struct pkt *p)
{
    const uint8_t *q = pkt_header(p, &mad_hdr, p->payload_off, MAD_HDR_LEN, "MAD header of 24 bytes");
    const struct mad_class *c;
    struct mad m;

    if (!q)
        return;
    p->have |= H_MAD;
    mad_get(&m, q);
    c = mad_class_find(m.mgmt_class);
    if (c && c->decode)
        c->decode(p, p->payload_off, &m);
}
