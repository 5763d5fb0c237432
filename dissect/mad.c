/* layer 1 (wire): management datagrams: the common header, and which class continues. */
#include "dissect/mad.h"

#include "dissect/pkt.h"

static const struct vname classes[] = {
    {0x01, "SubnMgt (LID routed)"}, {0x81, "SubnMgt (directed route)"}, {0x03, "SubnAdm"}, {0x04, "PerfMgt"},
    {0x05, "BoardMgt"}, {0x06, "DevMgt"}, {0x07, "ComMgt"}, {0x08, "SNMP"}, {0x21, "CongestionControl"},
};
const struct vdesc mad_class_desc = VDESC_NAMES(classes);

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
    if (pkt_header(p, &mad_hdr, p->payload_off, MAD_HDR_LEN, "MAD header of 24 bytes"))
        p->have |= H_MAD;
}
