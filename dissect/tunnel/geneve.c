/* layer 1 (wire): GENEVE (RFC 8926). */
#include "dissect/dissectors.h"
#include "dissect/link/eth.h"
#include "dissect/link/link.h"

#define GENEVE_LEN          8 /* bytes of the header without options */
#define GENEVE_VERSION(q)   ((q)[0] >> 6)
#define GENEVE_OPT_WORDS    0x3f /* bits of the header's first byte: length of all options in 4-byte words */
#define GENEVE_OPT_LEN      4    /* bytes of an option without its data */
#define GENEVE_OPT_DATA     0x1f /* bits of an option's fourth byte: length of its data in 4-byte words */
#define GENEVE_INNER_LAYERS 8    /* layers that options leave for the inner packet */

/* Length of all options of the header at `q`, bytes. */
static uint32_t geneve_options_len(const uint8_t *q)
{
    return (q[0] & GENEVE_OPT_WORDS) * 4u;
}
/* Length of the option at `q`, bytes, data included. */
static uint32_t geneve_option_len(const uint8_t *q)
{
    return GENEVE_OPT_LEN + (q[3] & GENEVE_OPT_DATA) * 4u;
}

static bool geneve_optlen_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    v->u = l->len ? geneve_options_len(p->data + l->off) : 0;
    return l->len > 0;
}

/*
 * GENEVE header, 8 bytes, followed by options.
 *   0    2         8  9  10            16                        32
 *   +----+---------+--+--+-------------+-------------------------+
 *   |ver | opt len |O |C |  reserved   |      protocol type      |
 *   +----+---------+--+--+-------------+--------------+----------+
 *   |                VNI                              | reserved |
 *   +-------------------------------------------------+----------+
 */
static const struct field geneve_fields[] = {
    FIELD_ROW(NULL, 0, 2, FT_UINT8, BASE_DEC, NULL, FLD_MEMBER, "geneve.version", "Version", "0."),
    FIELD_ROW(NULL, 2, 6, FT_UINT8, BASE_DEC, NULL, FLD_MEMBER, "rdma.geneve.optlen", "Options length in words",
              "In 4-byte words."),
    FIELD_GET(geneve_optlen_get, FT_UINT8, BASE_DEC, NULL, 0, "geneve.option.length", "Length", "Bytes of options."),
    FIELD_ROW(NULL, 8, 8, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "geneve.flags", "Flags", "Flags."),
    FIELD_ROW(NULL, 8, 1, FT_BOOL, BASE_NONE, NULL, 0, "geneve.flags.oam", "OAM", "Operations and management."),
    FIELD_ROW(NULL, 9, 1, FT_BOOL, BASE_NONE, NULL, 0, "geneve.flags.critical", "Critical Options Present",
              "An option must be understood."),
    FIELD_ROW(NULL, 10, 6, FT_BOOL, BASE_NONE, NULL, 0, "geneve.flags.reserved", "Reserved", "Zero."),
    FIELD_ROW(NULL, 16, 16, FT_UINT16, BASE_HEX, &ethertype_desc, FLD_MEMBER, "geneve.proto_type", "Protocol Type",
              "What follows."),
    FIELD_ROW(NULL, 32, 24, FT_UINT24, BASE_HEX, NULL, FLD_MEMBER, "geneve.vni", "Virtual Network Identifier (VNI)",
              "Overlay network."),
    FIELD_ROW(NULL, 56, 8, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "geneve.reserved", "Reserved", "Zero."),
};
static void geneve_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    if (l->len < GENEVE_LEN)
        return;
    buf_printf(b, "GENEVE VNI %u, encapsulated ", load_be24(p->data + l->off + 4));
    if (!vdesc_print(b, &ethertype_desc, load_be16(p->data + l->off + 2)))
        buf_0x(b, load_be16(p->data + l->off + 2), 4);
}
const struct hdr geneve_hdr = {
    .abbrev = "geneve",
    .name = "Generic Network Virtualization Encapsulation",
    .proto = "geneve",
    .column = "Geneve",
    .fields = geneve_fields,
    .nfields = ARRAY_LEN(geneve_fields),
    .len = GENEVE_LEN,
    .info = geneve_info,
};

/*
 * GENEVE option, 4 bytes and data.
 *   0                              16 17           24    27        32
 *   +------------------------------+--+------------+-----+----------+
 *   |            class             |C |    type    |flags| length   |
 *   +------------------------------+--+------------+-----+----------+
 *   |                  data, `length` 4-byte words                  |
 *   +---------------------------------------------------------------+
 */
static bool geneve_opt_len_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    v->u = l->len >= GENEVE_OPT_LEN ? geneve_option_len(p->data + l->off) : 0;
    return l->len >= GENEVE_OPT_LEN;
}
static const struct field geneve_opt_fields[] = {
    FIELD_ROW(NULL, 0, 16, FT_UINT16, BASE_HEX, NULL, FLD_MEMBER, "geneve.option.class", "Class",
              "Who defined the type."),
    FIELD_ROW(NULL, 16, 8, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "geneve.option.type", "Type", "Kind of option."),
    FIELD_ROW(NULL, 16, 1, FT_BOOL, BASE_NONE, NULL, 0, "geneve.option.type.critical", "Critical Option",
              "Must be understood."),
    FIELD_ROW(NULL, 24, 3, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "geneve.option.flags", "Flags", "Reserved."),
    FIELD_ROW(NULL, 27, 5, FT_UINT8, BASE_DEC, NULL, FLD_MEMBER, "rdma.geneve.option.words", "Length in words",
              "Of the data."),
    FIELD_GET(geneve_opt_len_get, FT_UINT8, BASE_DEC, NULL, 0, "geneve.option.length", "Length",
              "Bytes, with these 4."),
    FIELD_ROW(NULL, 32, 0, FT_BYTES, BASE_NONE, NULL, 0, "geneve.option.unknown.data", "Data", "Data of the option."),
};
const struct hdr geneve_opt_hdr = {
    .abbrev = "geneve.option",
    .name = "Option",
    .proto = "geneve",
    .fields = geneve_opt_fields,
    .nfields = ARRAY_LEN(geneve_opt_fields),
    .len = GENEVE_OPT_LEN,
    .type = FT_BYTES,
};

/* Add the layers of the options from `off` to `end`; options for which no layer is left are skipped. False if the
 * packet ends within them. */
static bool options_decode(struct pkt *p, uint32_t off, uint32_t end)
{
    while (off < end) {
        const uint8_t *q = pkt_need(p, off, GENEVE_OPT_LEN, "GENEVE option");
        uint32_t n;
        if (!q)
            return false;
        n = geneve_option_len(q);
        if (n > end - off) {
            pkt_malformed(p, off + 3, "GENEVE option exceeds the options' length");
            return true;
        }
        if (p->n_layers < PKT_NEST_MAX - GENEVE_INNER_LAYERS &&
            !pkt_header(p, &geneve_opt_hdr, off, n, "GENEVE option"))
            return false;
        off += n;
    }
    return true;
}

void geneve_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    const uint8_t *q = pkt_header(p, &geneve_hdr, off, GENEVE_LEN, "GENEVE header");
    uint32_t inner;

    if (!q || !pkt_tunnel(p, off) || GENEVE_VERSION(q) != 0)
        return;
    inner = off + GENEVE_LEN + geneve_options_len(q);
    if (!options_decode(p, off + GENEVE_LEN, inner))
        return;
    if (load_be16(q + 2) == ETHERTYPE_TEB)
        eth_decode(p, inner, o);
    else
        ethertype_decode(p, inner, load_be16(q + 2), o);
}
