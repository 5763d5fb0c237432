/* layer 1 (wire): InfiniBand link packets: flow control (IBTA volume 1, 7.9). */
#include "dissect/dissectors.h"
#include "dissect/link/link.h"

static const struct vname ops[] = {{0, "Normal Flow Control"}, {1, "Flow Control Init"}};
static const struct vdesc op_desc = VDESC_NAMES(ops);

static bool status_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->p = (const uint8_t *)crc_status_str(p->vcrc);
    v->len = (uint32_t)strlen((const char *)v->p);
    return p->vcrc != CRC_ABSENT;
}
static bool want_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->u = p->vcrc_want;
    return p->vcrc == CRC_BAD;
}

/*
 * Flow control packet, 6 bytes.
 *   0       4                 16      20              32
 *   +-------+-----------------+-------+---------------+
 *   |  Op   |      FCTBS      |  VL   |     FCCL      |
 *   +-------+-----------------+-------+---------------+
 *   |         LPCRC           |
 *   +-------------------------+
 */
static const struct field iblink_fields[] = {
    FIELD_ROW(NULL, 0, 4, FT_UINT16, BASE_DEC, &op_desc, FLD_MEMBER, "infiniband_link.op", "Operand",
              "0 normal, 1 initialisation."),
    FIELD_ROW(NULL, 4, 12, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "infiniband_link.fctbs",
              "Flow Control Total Blocks Sent", "64-byte blocks sent on the virtual lane, modulo 4096."),
    FIELD_ROW(NULL, 16, 4, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "infiniband_link.vl", "Virtual Lane",
              "Virtual lane."),
    FIELD_ROW(NULL, 20, 12, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "infiniband_link.fccl", "Flow Control Credit Limit",
              "Blocks up to which the other side may send, modulo 4096."),
    FIELD_ROW(NULL, 32, 16, FT_UINT16, BASE_HEX, NULL, FLD_MEMBER, "infiniband_link.lpcrc", "Link Packet CRC",
              "As it stands in the packet."),
    FIELD_GET(status_get, FT_STRING, BASE_NONE, NULL, 0, "rdma.lpcrc.status", "LPCRC status", "good, bad, or unknown."),
    FIELD_GET(want_get, FT_UINT16, BASE_HEX, NULL, 0, "rdma.lpcrc.calculated", "LPCRC calculated",
              "What it should be, when it is bad."),
};
static void iblink_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    const uint8_t *h = p->data + l->off;

    if (l->len < 4)
        return;
    if (!vdesc_print(b, &op_desc, h[0] >> 4))
        buf_printf(b, "Flow control operand %u", h[0] >> 4);
    buf_printf(b, " VL %u FCTBS %u FCCL %u", h[2] >> 4, load_be16(h) & 0xfff, load_be16(h + 2) & 0xfff);
    if (p->vcrc == CRC_BAD)
        buf_puts(b, " [bad LPCRC]");
}
const struct hdr iblink_hdr = {
    .abbrev = "infiniband_link",
    .name = "InfiniBand Link",
    .proto = "infiniband_link",
    .column = "InfiniBand Link",
    .fields = iblink_fields,
    .nfields = ARRAY_LEN(iblink_fields),
    .len = 6,
    .info = iblink_info,
};

void iblink_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    const uint8_t *q = pkt_header(p, &iblink_hdr, off, 6, "InfiniBand link packet");

    p->vcrc = CRC_UNKNOWN;
    if (!q || !o->verify)
        return;
    p->vcrc_got = load_be16(q + 4);
    p->vcrc_want = __builtin_bswap16(lpcrc_ib(q));
    p->vcrc = p->vcrc_got == p->vcrc_want ? CRC_GOOD : CRC_BAD;
}
