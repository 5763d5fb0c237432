/* layer 1 (wire): GRE (RFC 2784, RFC 2890; version 1: RFC 2637) and ERSPAN in it. */
#include "dissect/dissectors.h"
#include "dissect/link/eth.h"
#include "dissect/link/link.h"

#define GRE_CSUM    0x8000
#define GRE_ROUTING 0x4000
#define GRE_KEY     0x2000
#define GRE_SEQ     0x1000
#define GRE_ACK     0x0080 /* only in version 1 */
#define GRE_VERSION 0x0007
#define GRE_ERSPAN  0x88be /* protocol type: ERSPAN type I or II */
#define GRE_ERSPAN3 0x22eb /* ERSPAN type III */

/*
 * GRE header, 4 bytes, then the optional 4-byte words whose flags are set, in this order.
 *   0  1  2  3  4  5      8           13     16                     32
 *   +--+--+--+--+--+------+-----------+------+----------------------+
 *   |C |R |K |S |s |recur |   flags   | ver  |    protocol type     |
 *   +--+--+--+--+--+------+-----------+------+----------------------+
 *   | checksum (C or R)                      | offset (C or R)      |
 *   | key (K)                                                       |
 *   | sequence number (S)                                           |
 *   | acknowledgement number (version 1, bit 8 set)                 |
 *   +---------------------------------------------------------------+
 */
static uint32_t gre_flags(const uint8_t *h)
{
    return load_be16(h);
}
/* Offset of the optional word of `flag` in the header, bytes; `flag` 0: length of the header with all its words. */
static uint32_t gre_offset(const uint8_t *h, uint32_t flag)
{
    uint32_t f = gre_flags(h), off = 4;

    if (flag == GRE_CSUM)
        return off;
    off += f & (GRE_CSUM | GRE_ROUTING) ? 4 : 0;
    if (flag == GRE_KEY)
        return off;
    off += f & GRE_KEY ? 4 : 0;
    if (flag == GRE_SEQ)
        return off;
    off += f & GRE_SEQ ? 4 : 0;
    if (flag == GRE_ACK)
        return off;
    return off + ((f & GRE_VERSION) == 1 && f & GRE_ACK ? 4 : 0);
}
static bool gre_word(const struct pkt *p, const struct layer *l, uint32_t flags, uint32_t flag, uint32_t *word)
{
    const uint8_t *h = p->data + l->off;
    uint32_t off;

    if (l->len < 4 || !(gre_flags(h) & flags))
        return false;
    off = gre_offset(h, flag);
    if (off + 4 > l->len)
        return false;
    *word = load_be32(h + off);
    return true;
}
#define GRE_WORD(name, flags, flag, expr)                                                                              \
    static bool name##_get(const struct pkt *p, const struct layer *l, struct value *v)                                \
    {                                                                                                                  \
        uint32_t w;                                                                                                    \
        if (!gre_word(p, l, flags, flag, &w))                                                                          \
            return false;                                                                                              \
        v->u = (expr);                                                                                                 \
        return true;                                                                                                   \
    }
GRE_WORD(gre_csum, GRE_CSUM | GRE_ROUTING, GRE_CSUM, w >> 16)
GRE_WORD(gre_off, GRE_CSUM | GRE_ROUTING, GRE_CSUM, w & 0xffff)
GRE_WORD(gre_key, GRE_KEY, GRE_KEY, w)
GRE_WORD(gre_seq, GRE_SEQ, GRE_SEQ, w)

static const struct field gre_fields[] = {
    FIELD_ROW(NULL, 0, 16, FT_UINT16, BASE_HEX, NULL, FLD_MEMBER, "gre.flags_and_version", "Flags and Version",
              "What is present."),
    FIELD_ROW(NULL, 0, 1, FT_BOOL, BASE_NONE, NULL, 0, "gre.flags.checksum", "Checksum Bit", "Checksum present."),
    FIELD_ROW(NULL, 1, 1, FT_BOOL, BASE_NONE, NULL, 0, "gre.flags.routing", "Routing Bit", "Routing present."),
    FIELD_ROW(NULL, 2, 1, FT_BOOL, BASE_NONE, NULL, 0, "gre.flags.key", "Key Bit", "Key present."),
    FIELD_ROW(NULL, 3, 1, FT_BOOL, BASE_NONE, NULL, 0, "gre.flags.sequence_number", "Sequence Number Bit",
              "Sequence number present."),
    FIELD_ROW(NULL, 4, 1, FT_BOOL, BASE_NONE, NULL, 0, "gre.flags.strict_source_route", "Strict Source Route Bit",
              "Historic."),
    FIELD_ROW(NULL, 5, 3, FT_UINT16, BASE_DEC, NULL, 0, "gre.flags.recursion_control", "Recursion control",
              "Historic."),
    FIELD_ROW(NULL, 8, 5, FT_UINT16, BASE_DEC, NULL, 0, "gre.flags.reserved", "Flags (Reserved)", "Zero."),
    FIELD_ROW(NULL, 13, 3, FT_UINT16, BASE_DEC, NULL, 0, "gre.flags.version", "Version", "0; 1: PPTP."),
    FIELD_ROW(NULL, 16, 16, FT_UINT16, BASE_HEX, &ethertype_desc, FLD_MEMBER, "gre.proto", "Protocol Type",
              "What follows."),
    FIELD_GET(gre_csum_get, FT_UINT16, BASE_HEX, NULL, 0, "gre.checksum", "Checksum", "Of header and payload."),
    FIELD_GET(gre_off_get, FT_UINT16, BASE_DEC, NULL, 0, "gre.offset", "Offset", "Historic."),
    FIELD_GET(gre_key_get, FT_UINT32, BASE_HEX, NULL, 0, "gre.key", "Key", "Identifies the flow."),
    FIELD_GET(gre_seq_get, FT_UINT32, BASE_DEC, NULL, 0, "gre.sequence_number", "Sequence Number",
              "Number of the packet."),
};
static void gre_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    if (l->len < 4)
        return;
    buf_puts(b, "Encapsulated ");
    if (!vdesc_print(b, &ethertype_desc, load_be16(p->data + l->off + 2)))
        buf_0x(b, load_be16(p->data + l->off + 2), 4);
}
const struct hdr gre_hdr = {
    .abbrev = "gre",
    .name = "Generic Routing Encapsulation",
    .proto = "gre",
    .column = "GRE",
    .fields = gre_fields,
    .nfields = ARRAY_LEN(gre_fields),
    .len = 4,
    .info = gre_info,
};

void gre_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    const uint8_t *q = pkt_need(p, off, 4, "GRE header");
    uint32_t n, flags, type;

    if (!q || !pkt_tunnel(p, off))
        return;
    flags = gre_flags(q);
    type = load_be16(q + 2);
    n = gre_offset(q, 0);
    if (!pkt_header(p, &gre_hdr, off, n, "GRE header with optional words") || flags & GRE_ROUTING ||
        flags & GRE_VERSION)
        return;
    if (type == ETHERTYPE_TEB)
        eth_decode(p, off + n, o);
    else if (type == GRE_ERSPAN)
        erspan_decode(p, off + n, flags & GRE_SEQ ? 2 : 1, o);
    else if (type == GRE_ERSPAN3)
        erspan_decode(p, off + n, 3, o);
    else
        ethertype_decode(p, off + n, (uint16_t)type, o);
}
