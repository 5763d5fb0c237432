/* layer 1 (wire): records of Endace's Extensible Record Format (ERF types specification, EDM11-01). */

#include "dissect/dissectors.h"
#include "dissect/link/link.h"

enum {
    ERF_ETH = 2,
    ERF_COLOR_ETH = 11,
    ERF_DSM_COLOR_ETH = 16,
    ERF_COLOR_HASH_ETH = 20,
    ERF_INFINIBAND = 21,
    ERF_IPV4 = 22,
    ERF_IPV6 = 23,
    ERF_INFINIBAND_LINK = 25,
};
#define ERF_TYPE(h) ((h)[8] & 0x7f)
#define ERF_MORE    0x80 /* upper bit of a type: an extension header follows */

static const struct vname types[] = {
    {1, "HDLC_POS"},
    {ERF_ETH, "ETH"},
    {3, "ATM"},
    {4, "AAL5"},
    {5, "MC_HDLC"},
    {6, "MC_RAW"},
    {7, "MC_ATM"},
    {8, "MC_RAW_CHANNEL"},
    {9, "MC_AAL5"},
    {10, "COLOR_HDLC_POS"},
    {ERF_COLOR_ETH, "COLOR_ETH"},
    {12, "MC_AAL2"},
    {13, "IP_COUNTER"},
    {14, "TCP_FLOW_COUNTER"},
    {15, "DSM_COLOR_HDLC_POS"},
    {ERF_DSM_COLOR_ETH, "DSM_COLOR_ETH"},
    {17, "COLOR_MC_HDLC_POS"},
    {18, "AAL2"},
    {19, "COLOR_HASH_POS"},
    {ERF_COLOR_HASH_ETH, "COLOR_HASH_ETH"},
    {ERF_INFINIBAND, "INFINIBAND"},
    {ERF_IPV4, "IPV4"},
    {ERF_IPV6, "IPV6"},
    {24, "RAW_LINK"},
    {ERF_INFINIBAND_LINK, "INFINIBAND_LINK"},
    {27, "META"},
    {48, "PAD"},
};
static const struct vdesc type_desc = VDESC_NAMES(types);

static bool has_color(const uint8_t *h, uint32_t len)
{
    static const uint8_t color[] = {10, ERF_COLOR_ETH, 15, ERF_DSM_COLOR_ETH, 17, 19, ERF_COLOR_HASH_ETH};

    for (unsigned i = 0; len > 8 && i < ARRAY_LEN(color); i++)
        if (ERF_TYPE(h) == color[i])
            return true;
    return false;
}
static bool has_lctr(const uint8_t *h, uint32_t len)
{
    return !has_color(h, len);
}

/*
 * Record header, 16 bytes. The timestamp is little-endian: seconds since 1970, 32.32 bits. All else is big-endian.
 *   | timestamp (8) | type (1) | flags (1) | record length (2) | loss counter or colour (2) | wire length (2) |
 */
static const struct field erf_fields[] = {
    FIELD_ROW(NULL, 0, 64, FT_UINT64, BASE_HEX, NULL, FLD_MEMBER | FLD_LE, "erf.ts", "Timestamp",
              "Seconds since 1970, 32.32 bits."),
    FIELD_ROW(NULL, 64, 8, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "erf.types", "Record type", "Type and extension bit."),
    FIELD_ROW(NULL, 65, 7, FT_UINT8, BASE_DEC, &type_desc, 0, "erf.types.type", "Type", "What the record holds."),
    FIELD_ROW(NULL, 64, 1, FT_UINT8, BASE_DEC, NULL, 0, "erf.types.ext_header", "Extension header present",
              "One follows."),
    FIELD_ROW(NULL, 72, 8, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "erf.flags", "Flags", "Flags."),
    FIELD_ROW(NULL, 78, 2, FT_UINT8, BASE_DEC, NULL, 0, "erf.flags.cap", "Capture interface", "Port of the card."),
    FIELD_ROW(NULL, 77, 1, FT_UINT8, BASE_DEC, NULL, 0, "erf.flags.vlen", "Varying record length",
              "Records vary in length."),
    FIELD_ROW(NULL, 76, 1, FT_UINT8, BASE_DEC, NULL, 0, "erf.flags.trunc", "Truncated", "The card had no room."),
    FIELD_ROW(NULL, 75, 1, FT_UINT8, BASE_DEC, NULL, 0, "erf.flags.rxe", "RX error", "Error on the link."),
    FIELD_ROW(NULL, 74, 1, FT_UINT8, BASE_DEC, NULL, 0, "erf.flags.dse", "DS error", "Error in the card."),
    FIELD_ROW(NULL, 72, 2, FT_UINT8, BASE_HEX, NULL, 0, "erf.flags.res", "Reserved", "Zero."),
    FIELD_ROW(NULL, 80, 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "erf.rlen", "Record length",
              "Bytes of the whole record."),
    FIELD_ROW(has_lctr, 96, 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "erf.lctr", "Loss counter",
              "Frames lost before this one."),
    FIELD_ROW(has_color, 96, 16, FT_UINT16, BASE_HEX, NULL, 0, "erf.color", "Color", "Result of a filter."),
    FIELD_ROW(NULL, 112, 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "erf.wlen", "Wire length",
              "Bytes of the frame on the wire."),
};
static void erf_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    buf_puts(b, "ERF record");
    if (l->len < 9)
        return;
    buf_printf(b, " type %u ", ERF_TYPE(p->data + l->off));
    vdesc_print(b, &type_desc, ERF_TYPE(p->data + l->off));
}
const struct hdr erf_hdr = {
    .abbrev = "erf",
    .name = "Extensible Record Format",
    .proto = "erf",
    .column = "ERF",
    .fields = erf_fields,
    .nfields = ARRAY_LEN(erf_fields),
    .len = 16,
    .info = erf_info,
};

/* Extension header, 8 bytes: | more (1 bit), type (7 bits) | data of that type (7) | */
static const struct vname ehdr_types[] = {
    {3, "Classification"}, {4, "InterceptID"},       {5, "Raw Link"}, {6, "BFS Filter/Hash"}, {12, "Channelised"},
    {14, "Signature"},     {15, "Packet Signature"}, {16, "Flow ID"}, {17, "Host ID"},        {18, "Anchor ID"}};
static const struct vdesc ehdr_desc = VDESC_NAMES(ehdr_types);
static const struct field erf_ehdr_fields[] = {
    FIELD_ROW(NULL, 0, 1, FT_BOOL, BASE_NONE, NULL, FLD_MEMBER, "rdma.erf.ehdr.more", "More", "Another follows."),
    FIELD_ROW(NULL, 1, 7, FT_UINT8, BASE_DEC, &ehdr_desc, FLD_MEMBER, "erf.ehdr.types", "Extension Header",
              "Kind of extension header."),
    FIELD_ROW(NULL, 8, 56, FT_BYTES, BASE_NONE, NULL, FLD_MEMBER, "rdma.erf.ehdr.data", "Data", "As the type says."),
};
const struct hdr erf_ehdr_hdr = {
    .abbrev = "rdma.erf.ehdr",
    .name = "ERF extension header",
    .proto = "erf",
    .fields = erf_ehdr_fields,
    .nfields = ARRAY_LEN(erf_ehdr_fields),
    .len = 8,
};

/* Before an Ethernet frame, 2 bytes: | offset (1) | pad (1) | */
static const struct field erf_eth_fields[] = {
    FIELD_ROW(NULL, 0, 8, FT_UINT8, BASE_DEC, NULL, FLD_MEMBER, "erf.eth.off", "Offset",
              "Bytes of the frame that were left out at its start."),
    FIELD_ROW(NULL, 8, 8, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "erf.eth.pad", "Padding", "Zero."),
};
const struct hdr erf_eth_hdr = {
    .abbrev = "erf.eth",
    .name = "Ethernet Header",
    .proto = "erf",
    .fields = erf_eth_fields,
    .nfields = ARRAY_LEN(erf_eth_fields),
    .len = 2,
};

/* Decode the extension headers at `off`. Returns the offset after the last one; 0 if they were not captured in full. */
static uint32_t extensions_decode(struct pkt *p, uint32_t off, bool more)
{
    for (; more; off += 8) {
        const uint8_t *q = pkt_header(p, &erf_ehdr_hdr, off, 8, "ERF extension header");
        if (!q || !pkt_nest(p, off))
            return 0;
        more = q[0] & ERF_MORE;
    }
    return off;
}

static void payload_decode(struct pkt *p, uint32_t off, unsigned type, const struct decode_opts *o)
{
    switch (type) {
    case ERF_ETH:
    case ERF_COLOR_ETH:
    case ERF_DSM_COLOR_ETH:
    case ERF_COLOR_HASH_ETH:
        eth_decode(p, off, o);
        break;
    case ERF_INFINIBAND:
        ib_decode(p, off, o);
        break;
    case ERF_INFINIBAND_LINK:
        iblink_decode(p, off, o);
        break;
    case ERF_IPV4:
    case ERF_IPV6:
        ip_decode(p, off, o);
        break;
    default:
        break;
    }
}

uint32_t erf_lead(const struct pkt *p)
{
    uint32_t lead = 0;

    for (unsigned i = 0; i < p->n_layers; i++) {
        const struct layer *l = &p->layers[i];
        if (l->hdr == &erf_hdr || l->hdr == &erf_ehdr_hdr || l->hdr == &erf_eth_hdr)
            lead = l->off + l->len;
        else if (lead)
            break;
    }
    return lead;
}

/* Decode a frame that starts with its ERF record header. The wire length, which counts the bytes after the ERF headers,
 * sets p->end. */
void erf_decode(struct pkt *p, const struct decode_opts *o)
{
    const uint8_t *q = pkt_header(p, &erf_hdr, 0, 16, "ERF record header");
    unsigned type;
    uint32_t off, rlen, wlen;

    if (!q)
        return;
    type = ERF_TYPE(q);
    rlen = load_be16(q + 10);
    wlen = load_be16(q + 14);
    if (rlen < 16)
        pkt_malformed(p, 10, "ERF record length below 16");
    off = extensions_decode(p, 16, q[8] & ERF_MORE);
    if (!off)
        return;
    if (type == ERF_ETH || type == ERF_COLOR_ETH || type == ERF_DSM_COLOR_ETH || type == ERF_COLOR_HASH_ETH) {
        if (!pkt_header(p, &erf_eth_hdr, off, 2, "ERF Ethernet offset and pad"))
            return;
        off += 2;
    }
    if (off <= p->end && wlen <= p->end - off)
        p->end = off + wlen;
    payload_decode(p, off, type, o);
}
