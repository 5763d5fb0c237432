/* layer 1 (wire): IPv6 extension headers (RFC 8200) and the authentication header (RFC 4302). */
#include "dissect/dissectors.h"
#include "dissect/ip/ip.h"
#include "dissect/link/link.h"

#define PROTO_HOPOPTS  0
#define PROTO_ROUTING  43
#define PROTO_FRAGMENT 44
#define PROTO_AH       51
#define PROTO_DSTOPTS  60

static bool oct_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    v->u = l->len >= 2 ? (p->data[l->off + 1] + 1) * 8u : 0;
    return l->len >= 2;
}

/* Hop-by-hop options, destination options, routing: | next header (1) | length (1) | ... |; the length is in units of
 * 8 bytes, without the first 8 bytes. */
#define EXT_ROWS(abbrev)                                                                                               \
    FIELD_ROW(NULL, 0, 8, FT_UINT8, BASE_DEC, &ipproto_desc, FLD_MEMBER, abbrev ".nxt", "Next Header",                 \
              "What follows."),                                                                                        \
        FIELD_ROW(NULL, 8, 8, FT_UINT8, BASE_DEC, NULL, FLD_MEMBER, abbrev ".len", "Length",                           \
                  "In 8 bytes, without the first 8."),                                                                 \
        FIELD_GET(oct_get, FT_UINT16, BASE_DEC, NULL, 0, abbrev ".len_oct", "Length", "Bytes.")
static const struct field ip6_hopopts_fields[] = {EXT_ROWS("ipv6.hopopts")};
static const struct field ip6_dstopts_fields[] = {EXT_ROWS("ipv6.dstopts")};
static const struct vname routing_types[] = {
    {0, "Source Route"}, {2, "Mobile IP"}, {3, "RPL Source Route"}, {4, "Segment Routing"}};
static const struct vdesc routing_type_desc = VDESC_NAMES(routing_types);
static const struct field ip6_routing_fields[] = {
    EXT_ROWS("ipv6.routing"),
    FIELD_ROW(NULL, 16, 8, FT_UINT8, BASE_DEC, &routing_type_desc, 0, "ipv6.routing.type", "Type",
              "Kind of routing header."),
    FIELD_ROW(NULL, 24, 8, FT_UINT8, BASE_DEC, NULL, 0, "ipv6.routing.segleft", "Segments Left",
              "Nodes still to visit."),
};

/* Fragment header, 8 bytes: | next header (1) | reserved (1) | offset (13 bits), reserved (2 bits), M (1 bit) |
 * identification (4) |; the offset is in units of 8 bytes. */
static const struct field ip6_frag_fields[] = {
    FIELD_ROW(NULL, 0, 8, FT_UINT8, BASE_DEC, &ipproto_desc, FLD_MEMBER, "ipv6.fraghdr.nxt", "Next header",
              "What follows."),
    FIELD_ROW(NULL, 8, 8, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "ipv6.fraghdr.reserved_octet", "Reserved octet",
              "Zero."),
    FIELD_ROW(NULL, 16, 13, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "ipv6.fraghdr.offset", "Offset", "In 8 bytes."),
    FIELD_ROW(NULL, 29, 2, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "ipv6.fraghdr.reserved_bits", "Reserved bits",
              "Zero."),
    FIELD_ROW(NULL, 31, 1, FT_BOOL, BASE_NONE, NULL, FLD_MEMBER, "ipv6.fraghdr.more", "More Fragments",
              "Not the last."),
    FIELD_ROW(NULL, 32, 32, FT_UINT32, BASE_HEX, NULL, FLD_MEMBER, "ipv6.fraghdr.ident", "Identification",
              "Of the datagram."),
};

/* Option: | type (1) | length (1) | data |; Pad1 has only the type. */
static const struct vname opt_types[] = {
    {0, "Pad1"}, {1, "PadN"}, {4, "Tunnel Encapsulation Limit"}, {5, "Router Alert"}, {0xc2, "Jumbo Payload"}};
static const struct vdesc opt_type_desc = VDESC_NAMES(opt_types);
static bool has_length(const uint8_t *h, uint32_t len)
{
    return len >= 2 && h[0] != 0;
}
static const struct field ip6_opt_fields[] = {
    FIELD_ROW(NULL, 0, 8, FT_UINT8, BASE_HEX, &opt_type_desc, 0, "ipv6.opt.type", "Type", "Kind of option."),
    FIELD_ROW(NULL, 0, 2, FT_UINT8, BASE_DEC, NULL, FLD_HIDDEN, "ipv6.opt.type.action", "Action",
              "When it is not known."),
    FIELD_ROW(NULL, 2, 1, FT_BOOL, BASE_NONE, NULL, FLD_HIDDEN, "ipv6.opt.type.change", "May Change",
              "Changes on the way."),
    FIELD_ROW(NULL, 3, 5, FT_UINT8, BASE_HEX, NULL, FLD_HIDDEN, "ipv6.opt.type.rest", "Low-Order Bits",
              "Rest of the type."),
    FIELD_ROW(has_length, 8, 8, FT_UINT8, BASE_DEC, NULL, 0, "ipv6.opt.length", "Length", "Bytes of data."),
    FIELD_ROW(has_length, 16, 0, FT_BYTES, BASE_NONE, NULL, 0, "rdma.ipv6.opt.data", "Data", "Data of the option."),
};

/* Authentication header: | next header (1) | length (1) | reserved (2) | SPI (4) | sequence number (4) | ICV |; the
 * length is in units of 4 bytes, less 2. */
static const struct field ah_fields[] = {
    FIELD_ROW(NULL, 0, 8, FT_UINT8, BASE_DEC, &ipproto_desc, FLD_MEMBER, "ah.next_header", "Next header",
              "What follows."),
    FIELD_ROW(NULL, 8, 8, FT_UINT8, BASE_DEC, NULL, FLD_MEMBER, "ah.length", "Length", "In 4-byte words, less 2."),
    FIELD_ROW(NULL, 16, 16, FT_BYTES, BASE_NONE, NULL, FLD_MEMBER, "ah.reserved", "Reserved", "Zero."),
    FIELD_ROW(NULL, 32, 32, FT_UINT32, BASE_HEX, NULL, FLD_MEMBER, "ah.spi", "AH SPI", "Security parameters index."),
    FIELD_ROW(NULL, 64, 32, FT_UINT32, BASE_DEC, NULL, FLD_MEMBER, "ah.sequence", "AH Sequence",
              "Number of the packet."),
    FIELD_ROW(NULL, 96, 0, FT_BYTES, BASE_NONE, NULL, 0, "ah.icv", "AH ICV", "Integrity check value."),
};

static void frag_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    const uint8_t *h = p->data + l->off;

    if (l->len >= 8)
        buf_printf(b, "IPv6 fragment (off=%u more=%c ident=0x%08x nxt=%u)", load_be16(h + 2) & 0xfff8,
                   h[3] & 1 ? 'y' : 'n', load_be32(h + 4), h[0]);
}
static void next_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    if (l->len < 1)
        return;
    buf_printf(b, "%s, next header %u ", l->hdr->name, p->data[l->off]);
    vdesc_print(b, &ipproto_desc, p->data[l->off]);
}
#define EXT_HDR(id, filter_name, title, group, bytes, to_info)                                                         \
    const struct hdr id##_hdr = {                                                                                      \
        .abbrev = filter_name,                                                                                         \
        .name = title,                                                                                                 \
        .proto = group,                                                                                                \
        .fields = id##_fields,                                                                                         \
        .nfields = ARRAY_LEN(id##_fields),                                                                             \
        .len = bytes,                                                                                                  \
        .info = to_info,                                                                                               \
    };
EXT_HDR(ip6_hopopts, "ipv6.hopopts", "IPv6 Hop-by-Hop Option", "ipv6", 2, next_info)
EXT_HDR(ip6_dstopts, "ipv6.dstopts", "Destination Options for IPv6", "ipv6", 2, next_info)
EXT_HDR(ip6_routing, "ipv6.routing", "Routing Header for IPv6", "ipv6", 2, next_info)
EXT_HDR(ip6_frag, "ipv6.fraghdr", "Fragment Header for IPv6", "ipv6", 8, frag_info)
EXT_HDR(ip6_opt, "ipv6.opt", "IPv6 Option", "ipv6", 0, NULL)
EXT_HDR(ah, "ah", "Authentication Header", "ah", 12, next_info)

/* Add the layers of the options from `off` to `end`, which were captured in full; options for which no layer is left
 * are skipped. */
static void options_decode(struct pkt *p, uint32_t off, uint32_t end)
{
    while (off < end && p->n_layers < PKT_NEST_MAX - 8) {
        const uint8_t *q = p->data + off;
        uint32_t n = q[0] == 0 ? 1 : end - off < 2 ? 2 : 2u + q[1];
        if (n > end - off) {
            pkt_malformed(p, off, "IPv6 option exceeds its header");
            return;
        }
        pkt_layer(p, &ip6_opt_hdr, off, n);
        off += n;
    }
}

void ip6ext_decode(struct pkt *p, uint32_t off, uint8_t proto, const struct decode_opts *o)
{
    const uint8_t *q = pkt_need(p, off, 8, "IPv6 extension header");
    const struct hdr *hdr;
    uint32_t n;

    if (!q || !pkt_nest(p, off))
        return;
    n = proto == PROTO_FRAGMENT ? 8 : proto == PROTO_AH ? (q[1] + 2) * 4u : (q[1] + 1) * 8u;
    hdr = proto == PROTO_HOPOPTS    ? &ip6_hopopts_hdr
          : proto == PROTO_DSTOPTS  ? &ip6_dstopts_hdr
          : proto == PROTO_ROUTING  ? &ip6_routing_hdr
          : proto == PROTO_FRAGMENT ? &ip6_frag_hdr
                                    : &ah_hdr;
    if (!pkt_header(p, hdr, off, n, "IPv6 extension header"))
        return;
    if (proto == PROTO_HOPOPTS || proto == PROTO_DSTOPTS)
        options_decode(p, off + 2, off + n);
    if (proto == PROTO_FRAGMENT && load_be16(q + 2) & 0xfff9) {
        p->flags |= PKT_FRAGMENT;
        if (load_be16(q + 2) & 0xfff8)
            return;
    }
    ipproto_decode(p, off + n, q[0], o);
}
