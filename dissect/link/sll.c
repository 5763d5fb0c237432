/* layer 1 (wire): Linux cooked captures, versions 1 and 2 (LINKTYPE_LINUX_SLL, LINKTYPE_LINUX_SLL2). */

#include "dissect/dissectors.h"
#include "dissect/link/eth.h"
#include "dissect/link/link.h"

#define ARPHRD_IPGRE_ 778
#define PROTO_8022    4 /* protocol numbers below 0x600 are Linux's own */

static const struct vname pkttypes[] = {
    {0, "Unicast to us"}, {1, "Broadcast"}, {2, "Multicast"}, {3, "Unicast to another host"}, {4, "Sent by us"}};
static const struct vdesc pkttype_desc = VDESC_NAMES(pkttypes);
static const struct vname hatypes[] = {{1, "Ethernet"},      {32, "InfiniBand"}, {512, "PPP"},
                                       {768, "IPIP tunnel"}, {772, "Loopback"},  {ARPHRD_IPGRE_, "GRE over IP"},
                                       {0xfffe, "none"}};
static const struct vdesc hatype_desc = VDESC_NAMES(hatypes);

/* Conditions of the views. The protocol number is that of GRE for a GRE device, else an EtherType from 0x600 on, else
 * one of Linux's own numbers. The address length selects the view of the 8 address bytes. */
static bool is_gre(unsigned hatype)
{
    return hatype == ARPHRD_IPGRE_;
}
#define PROTO_WHEN(v, ha, pr)                                                                                          \
    static bool v##_is_gre(const uint8_t *h, uint32_t len)                                                             \
    {                                                                                                                  \
        return len >= 16 && is_gre(load_be16(h + (ha)));                                                               \
    }                                                                                                                  \
    static bool v##_is_etype(const uint8_t *h, uint32_t len)                                                           \
    {                                                                                                                  \
        return len >= 16 && !is_gre(load_be16(h + (ha))) && load_be16(h + (pr)) >= ETHERTYPE_MIN;                      \
    }                                                                                                                  \
    static bool v##_is_ltype(const uint8_t *h, uint32_t len)                                                           \
    {                                                                                                                  \
        return len >= 16 && !is_gre(load_be16(h + (ha))) && load_be16(h + (pr)) < ETHERTYPE_MIN;                       \
    }
PROTO_WHEN(v1, 2, 14)
PROTO_WHEN(v2, 8, 0)
#define ADDR_WHEN(v, halen)                                                                                            \
    static bool v##_addr6(const uint8_t *h, uint32_t len)                                                              \
    {                                                                                                                  \
        return len >= 16 && (halen) == 6;                                                                              \
    }                                                                                                                  \
    static bool v##_addr4(const uint8_t *h, uint32_t len)                                                              \
    {                                                                                                                  \
        return len >= 16 && (halen) == 4;                                                                              \
    }                                                                                                                  \
    static bool v##_addr0(const uint8_t *h, uint32_t len)                                                              \
    {                                                                                                                  \
        return len >= 16 && (halen) == 0;                                                                              \
    }                                                                                                                  \
    static bool v##_other(const uint8_t *h, uint32_t len)                                                              \
    {                                                                                                                  \
        return len >= 16 && (halen) != 0 && (halen) != 4 && (halen) != 6;                                              \
    }
ADDR_WHEN(v1, load_be16(h + 4))
ADDR_WHEN(v2, h[11])

#define ADDR_ROWS(v, bit)                                                                                              \
    FIELD_ROW(v##_addr6, bit, 48, FT_ETHER, BASE_NONE, NULL, FLD_MEMBER, "sll.src.eth", "Source",                      \
              "Sender's MAC address."),                                                                                \
        FIELD_ROW(v##_addr6, (bit) + 48, 16, FT_BYTES, BASE_NONE, NULL, FLD_MEMBER, "sll.unused", "Unused",            \
                  "Any value."),                                                                                       \
        FIELD_ROW(v##_addr4, bit, 32, FT_IPV4, BASE_NONE, NULL, 0, "sll.src.ipv4", "Source", "Sender's address."),     \
        FIELD_ROW(v##_addr4, (bit) + 32, 32, FT_BYTES, BASE_NONE, NULL, 0, "sll.unused", "Unused", "Any value."),      \
        FIELD_ROW(v##_addr0, bit, 64, FT_BYTES, BASE_NONE, NULL, 0, "sll.unused", "Unused", "Any value."),             \
        FIELD_ROW(v##_other, bit, 64, FT_BYTES, BASE_NONE, NULL, 0, "sll.src.other", "Source",                         \
                  "Sender's address, its first 8 bytes.")
#define PROTO_ROWS(v, bit)                                                                                             \
    FIELD_ROW(v##_is_etype, bit, 16, FT_UINT16, BASE_HEX, &ethertype_desc, FLD_MEMBER, "sll.etype", "Protocol",        \
              "An EtherType."),                                                                                        \
        FIELD_ROW(v##_is_ltype, bit, 16, FT_UINT16, BASE_HEX, NULL, 0, "sll.ltype", "Protocol",                        \
                  "4: LLC; Linux's own numbers."),                                                                     \
        FIELD_ROW(v##_is_gre, bit, 16, FT_UINT16, BASE_HEX, &ethertype_desc, 0, "sll.gretype", "Protocol",             \
                  "GRE protocol type.")

/* Version 1, 16 bytes: | packet type (2) | ARPHRD type (2) | address length (2) | address (8) | protocol (2) | */
static const struct field sll_fields[] = {
    FIELD_ROW(NULL, 0, 16, FT_UINT16, BASE_DEC, &pkttype_desc, FLD_MEMBER, "sll.pkttype", "Packet type", "Direction."),
    FIELD_ROW(NULL, 16, 16, FT_UINT16, BASE_DEC, &hatype_desc, FLD_MEMBER, "sll.hatype", "Link-layer address type",
              "ARPHRD_*."),
    FIELD_ROW(NULL, 32, 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "sll.halen", "Link-layer address length", "Bytes."),
    ADDR_ROWS(v1, 48),
    PROTO_ROWS(v1, 112),
};
/* Version 2, 20 bytes: | protocol (2) | 0 (2) | interface (4) | ARPHRD type (2) | packet type (1) | address length (1)
 * | address (8) | */
static const struct field sll2_fields[] = {
    PROTO_ROWS(v2, 0),
    FIELD_ROW(NULL, 16, 16, FT_UINT16, BASE_HEX, NULL, FLD_MEMBER, "rdma.sll.reserved", "Reserved", "Zero."),
    FIELD_ROW(NULL, 32, 32, FT_UINT32, BASE_DEC, NULL, FLD_MEMBER, "sll.ifindex", "Interface index",
              "On the capturing host."),
    FIELD_ROW(NULL, 64, 16, FT_UINT16, BASE_DEC, &hatype_desc, FLD_MEMBER, "sll.hatype", "Link-layer address type",
              "ARPHRD_*."),
    FIELD_ROW(NULL, 80, 8, FT_UINT16, BASE_DEC, &pkttype_desc, FLD_MEMBER, "sll.pkttype", "Packet type", "Direction."),
    FIELD_ROW(NULL, 88, 8, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "sll.halen", "Link-layer address length", "Bytes."),
    ADDR_ROWS(v2, 96),
};
static void sll_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    bool v1 = l->hdr == &sll_hdr;

    if (l->len < 16)
        return;
    buf_printf(b, "Linux cooked capture v%u, protocol 0x%04x", v1 ? 1 : 2, load_be16(p->data + l->off + (v1 ? 14 : 0)));
}
const struct hdr sll_hdr = {
    .abbrev = "sll",
    .name = "Linux cooked capture v1",
    .proto = "sll",
    .column = "SLL",
    .fields = sll_fields,
    .nfields = ARRAY_LEN(sll_fields),
    .len = 16,
    .info = sll_info,
};
const struct hdr sll2_hdr = {
    .abbrev = "sll",
    .name = "Linux cooked capture v2",
    .proto = "sll",
    .column = "SLL",
    .fields = sll2_fields,
    .nfields = ARRAY_LEN(sll2_fields),
    .len = 20,
    .info = sll_info,
};

static void proto_decode(struct pkt *p, uint32_t off, uint16_t proto, const struct decode_opts *o)
{
    if (proto == PROTO_8022)
        llc_decode(p, off, o);
    else if (proto >= ETHERTYPE_MIN)
        ethertype_decode(p, off, proto, o);
}

void sll_decode(struct pkt *p, const struct decode_opts *o)
{
    const uint8_t *q = pkt_header(p, &sll_hdr, 0, 16, "cooked header");

    if (q)
        proto_decode(p, 16, load_be16(q + 14), o);
}

void sll2_decode(struct pkt *p, const struct decode_opts *o)
{
    const uint8_t *q = pkt_header(p, &sll2_hdr, 0, 20, "cooked header");

    if (q)
        proto_decode(p, 20, load_be16(q), o);
}
