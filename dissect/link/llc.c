/* layer 1 (wire): LLC and SNAP headers of 802.3 frames (IEEE 802.2). */
#include "dissect/dissectors.h"
#include "dissect/link/link.h"

#include "dissect/link/eth.h"

#define SAP_SNAP 0xaa

static bool control_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    const uint8_t *h = p->data + l->off;

    if (l->len < 3 || ((h[2] & 3) != 3 && l->len < 4))
        return false;
    v->u = (h[2] & 3) == 3 ? h[2]
                           : (uint32_t)(h[2] | h[3] << 8); /* unnumbered frames: 1 byte; others: 2, low byte first */
    return true;
}

static const struct field llc_fields[] = {
    FIELD_ROW(NULL, 0, 8, FT_UINT8, BASE_HEX, NULL, 0, "llc.dsap", "DSAP", "Destination service access point."),
    FIELD_ROW(NULL, 7, 1, FT_BOOL, BASE_NONE, NULL, FLD_HIDDEN, "llc.dsap.ig", "IG Bit", "Group address."),
    FIELD_ROW(NULL, 8, 8, FT_UINT8, BASE_HEX, NULL, 0, "llc.ssap", "SSAP", "Source service access point."),
    FIELD_ROW(NULL, 15, 1, FT_BOOL, BASE_NONE, NULL, FLD_HIDDEN, "llc.ssap.cr", "CR Bit", "Response."),
    FIELD_GET(control_get, FT_UINT16, BASE_HEX, NULL, 0, "llc.control", "Control", "Kind and numbers of the frame."),
};

static void llc_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    if (l->len >= 2)
        buf_printf(b, "LLC, DSAP 0x%02x, SSAP 0x%02x", p->data[l->off], p->data[l->off + 1]);
}
const struct hdr llc_hdr = {
    .abbrev = "llc",
    .name = "Logical-Link Control",
    .proto = "llc",
    .column = "LLC",
    .fields = llc_fields,
    .nfields = ARRAY_LEN(llc_fields),
    .info = llc_info,
};

static bool snap_is_ethertype(const uint8_t *h, uint32_t len)
{
    return len >= 3 && (load_be24(h) == 0 || load_be24(h) == 0xf8);
}
static bool snap_is_private(const uint8_t *h, uint32_t len)
{
    return !snap_is_ethertype(h, len);
}
static const struct field snap_fields[] = {
    FIELD_ROW(NULL, 0, 24, FT_UINT24, BASE_DEC, NULL, FLD_MEMBER, "llc.oui", "Organization Code",
              "0: an EtherType follows."),
    FIELD_ROW(snap_is_ethertype, 24, 16, FT_UINT16, BASE_HEX, &ethertype_desc, FLD_MEMBER, "llc.type", "Type",
              "What follows."),
    FIELD_ROW(snap_is_private, 24, 16, FT_UINT16, BASE_HEX, NULL, 0, "llc.pid", "Protocol ID",
              "The organization's own."),
};
static void snap_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    if (l->len >= 5)
        buf_printf(b, "SNAP, OUI 0x%06x, PID 0x%04x", load_be24(p->data + l->off), load_be16(p->data + l->off + 3));
}
const struct hdr snap_hdr = {
    .abbrev = "rdma.snap",
    .name = "Subnetwork Access Protocol",
    .proto = "llc",
    .column = "SNAP",
    .fields = snap_fields,
    .nfields = ARRAY_LEN(snap_fields),
    .len = 5,
    .info = snap_info,
};

void llc_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    const uint8_t *q = pkt_need(p, off, 3, "LLC header");
    uint32_t n;

    if (!q)
        return;
    n = (q[2] & 3) == 3 ? 3 : 4;
    q = pkt_header(p, &llc_hdr, off, n, "LLC header");
    if (!q)
        return;
    if (q[0] != SAP_SNAP || n != 3) {
        named_sap(p, off + n, q[0]);
        return;
    }
    q = pkt_header(p, &snap_hdr, off + 3, 5, "SNAP header");
    if (q && pkt_nest(p, off) && snap_is_ethertype(q, 5))
        ethertype_decode(p, off + 8, load_be16(q + 3), o);
}
