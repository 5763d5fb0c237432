/* layer 1 (wire): Ethernet, 802.3, 802.1Q and QinQ, and the dissector of each EtherType. */
#include "dissect/link/eth.h"

#include "dissect/dissectors.h"

static const struct vname ethertypes[] = {
    {ETHERTYPE_IPV4, "IPv4"},
    {ETHERTYPE_ARP, "ARP"},
    {0x22eb, "ERSPAN III"},
    {ETHERTYPE_TEB, "Transparent Ethernet bridging"},
    {ETHERTYPE_RARP, "RARP"},
    {ETHERTYPE_VLAN, "802.1Q"},
    {ETHERTYPE_IPV6, "IPv6"},
    {ETHERTYPE_MACC, "MAC control"},
    {0x8809, "Slow protocols"},
    {ETHERTYPE_MPLS, "MPLS"},
    {ETHERTYPE_MPLS_MULTI, "MPLS multicast"},
    {0x8863, "PPPoE discovery"},
    {0x8864, "PPPoE session"},
    {0x8870, "Jumbo LLC"},
    {0x888e, "802.1X"},
    {ETHERTYPE_QINQ, "802.1ad (QinQ)"},
    {0x88be, "ERSPAN"},
    {0x88cc, "LLDP"},
    {0x88e5, "MACsec"},
    {0x88f7, "PTP"},
    {0x8906, "FCoE"},
    {ETHERTYPE_ROCEV1, "RoCE"},
    {0x9000, "Loopback"},
    {ETHERTYPE_QINQ_OLD, "QinQ"},
    {0x9ac6, "TTPoE"},
};
const struct vdesc ethertype_desc = VDESC_NAMES(ethertypes);

/* Aliases and bits of the two MAC addresses; they are the same for Ethernet II and 802.3. */
#define ETH_ALIASES                                                                                                    \
    FIELD_ALIAS(0, 48, FT_ETHER, BASE_NONE, "eth.addr", "Address", "Source or destination."),                          \
        FIELD_ALIAS(48, 48, FT_ETHER, BASE_NONE, "eth.addr", "Address", "Source or destination."),                     \
        FIELD_ALIAS(0, 24, FT_UINT24, BASE_DEC, "eth.dst.oui", "Destination OUI", "Maker of the destination."),        \
        FIELD_ALIAS(48, 24, FT_UINT24, BASE_DEC, "eth.src.oui", "Source OUI", "Maker of the source."),                 \
        FIELD_ALIAS(0, 24, FT_UINT24, BASE_DEC, "eth.addr.oui", "Address OUI", "Maker of either."),                    \
        FIELD_ALIAS(48, 24, FT_UINT24, BASE_DEC, "eth.addr.oui", "Address OUI", "Maker of either."),                   \
        FIELD_ALIAS(6, 1, FT_BOOL, BASE_NONE, "eth.dst.lg", "LG bit", "Destination is locally administered."),         \
        FIELD_ALIAS(7, 1, FT_BOOL, BASE_NONE, "eth.dst.ig", "IG bit", "Destination is a group."),                      \
        FIELD_ALIAS(54, 1, FT_BOOL, BASE_NONE, "eth.src.lg", "LG bit", "Source is locally administered."),             \
        FIELD_ALIAS(55, 1, FT_BOOL, BASE_NONE, "eth.src.ig", "IG bit", "Source is a group."),                          \
        FIELD_ALIAS(6, 1, FT_BOOL, BASE_NONE, "eth.lg", "LG bit", "Either is locally administered."),                  \
        FIELD_ALIAS(54, 1, FT_BOOL, BASE_NONE, "eth.lg", "LG bit", "Either is locally administered."),                 \
        FIELD_ALIAS(7, 1, FT_BOOL, BASE_NONE, "eth.ig", "IG bit", "Either is a group."),                               \
        FIELD_ALIAS(55, 1, FT_BOOL, BASE_NONE, "eth.ig", "IG bit", "Either is a group.")

static void type_info(struct buf *b, const char *what, const struct pkt *p, uint32_t off)
{
    buf_puts(b, what);
    if (off + 2 > p->caplen)
        return;
    buf_puts(b, ", type ");
    buf_0x(b, load_be16(p->data + off), 4);
    buf_char(b, ' ');
    vdesc_print(b, &ethertype_desc, load_be16(p->data + off));
}
static void eth_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    type_info(b, "Ethernet II", p, l->off + 12);
}
static void vlan_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    type_info(b, "802.1Q", p, l->off + 2);
}

HDR_TABLE_PLUS(eth, ETH_FIELDS, ETH_ALIASES)
const struct hdr eth_hdr = {
    .abbrev = "eth",
    .name = "Ethernet II",
    .proto = "eth",
    .column = "Ethernet",
    .fields = eth_fields,
    .nfields = ARRAY_LEN(eth_fields),
    .len = ETH_LEN,
    .info = eth_info,
};

static const struct field eth_len_fields[] = {
    FIELD_ROW(NULL, 0, 48, FT_ETHER, BASE_NONE, NULL, FLD_MEMBER, "eth.dst", "Destination", "Destination MAC address."),
    FIELD_ROW(NULL, 48, 48, FT_ETHER, BASE_NONE, NULL, FLD_MEMBER, "eth.src", "Source", "Source MAC address."),
    FIELD_ROW(NULL, 96, 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "eth.len", "Length", "Bytes after this header."),
    ETH_ALIASES,
};
const struct hdr eth_len_hdr = {
    .abbrev = "eth",
    .name = "IEEE 802.3 Ethernet",
    .proto = "eth",
    .column = "Ethernet",
    .fields = eth_len_fields,
    .nfields = ARRAY_LEN(eth_len_fields),
    .len = ETH_LEN,
};

HDR_TABLE(vlan, VLAN_FIELDS)
const struct hdr vlan_hdr = {
    .abbrev = "vlan",
    .name = "802.1Q Virtual LAN",
    .proto = "vlan",
    .column = "VLAN",
    .fields = vlan_fields,
    .nfields = ARRAY_LEN(vlan_fields),
    .len = 4,
    .info = vlan_info,
};

/* The bits of a VLAN tag; `proto` is the prefix that tshark gives their names in this kind of tag. */
#define TAG_ROWS(proto)                                                                                                \
    FIELD_ROW(NULL, 0, 3, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, proto ".priority", "Priority",                        \
              "Priority code point."),                                                                                 \
        FIELD_ROW(NULL, 3, 1, FT_BOOL, BASE_NONE, NULL, FLD_MEMBER, proto ".dei", "DEI", "Drop eligible indicator."),  \
        FIELD_ROW(NULL, 4, 12, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, proto ".id", "ID", "VLAN identifier.")

static const struct field vlan_len_fields[] = {
    TAG_ROWS("vlan"),
    FIELD_ROW(NULL, 16, 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "vlan.len", "Length", "Bytes after this tag."),
};
const struct hdr vlan_len_hdr = {
    .abbrev = "vlan",
    .name = "802.1Q Virtual LAN",
    .proto = "vlan",
    .column = "VLAN",
    .fields = vlan_len_fields,
    .nfields = ARRAY_LEN(vlan_len_fields),
    .len = 4,
};

/* The outer tag of QinQ, EtherType 0x88a8. */
static const struct field vlan_ad_fields[] = {
    TAG_ROWS("ieee8021ad"),
    FIELD_ROW(NULL, 16, 16, FT_UINT16, BASE_HEX, &ethertype_desc, FLD_MEMBER, "ieee8021ah.etype", "Type",
              "What follows."),
};
const struct hdr vlan_ad_hdr = {
    .abbrev = "ieee8021ad",
    .name = "IEEE 802.1ad",
    .proto = "ieee8021ad",
    .column = "802.1ad",
    .fields = vlan_ad_fields,
    .nfields = ARRAY_LEN(vlan_ad_fields),
    .len = 4,
    .info = vlan_info,
};

/* An 802.3 frame: its length field gives `len` bytes of LLC at `off`. */
static void len_decode(struct pkt *p, uint32_t off, uint16_t len, const struct decode_opts *o)
{
    if (len > p->end - off)
        pkt_malformed(p, off - 2, "802.3 length does not fit the frame");
    else
        p->end = off + len;
    llc_decode(p, off, o);
}

static void vlan_decode(struct pkt *p, const struct hdr *hdr, uint32_t off, const struct decode_opts *o)
{
    const uint8_t *q = pkt_header(p, hdr, off, 4, "VLAN tag");
    uint16_t type;

    if (!q || !pkt_nest(p, off))
        return;
    p->have |= H_VLAN;
    p->vlan = load_be16(q);
    type = load_be16(q + 2);
    if (type >= ETHERTYPE_MIN) {
        ethertype_decode(p, off + 4, type, o);
    } else {
        p->layers[p->n_layers - 1].hdr = &vlan_len_hdr;
        len_decode(p, off + 4, type, o);
    }
}

void ethertype_decode(struct pkt *p, uint32_t off, uint16_t type, const struct decode_opts *o)
{
    switch (type) {
    case ETHERTYPE_IPV4:
    case ETHERTYPE_IPV6:
        ip_decode(p, off, o);
        break;
    case ETHERTYPE_VLAN:
    case ETHERTYPE_QINQ_OLD:
        vlan_decode(p, &vlan_hdr, off, o);
        break;
    case ETHERTYPE_QINQ:
        vlan_decode(p, &vlan_ad_hdr, off, o);
        break;
    case ETHERTYPE_ROCEV1:
        p->have &= ~(uint32_t)(H_IP4 | H_IP6 | H_UDP);
        rocev1_decode(p, off, o);
        break;
    case ETHERTYPE_ARP:
    case ETHERTYPE_RARP:
        arp_decode(p, off);
        break;
    case ETHERTYPE_MACC:
        macc_decode(p, off);
        break;
    case ETHERTYPE_MPLS:
    case ETHERTYPE_MPLS_MULTI:
        mpls_decode(p, off, o);
        break;
    case 0x8870:
        llc_decode(p, off, o);
        break;
    default:
        named_ethertype(p, off, type);
        break;
    }
}

void eth_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    const uint8_t *q = pkt_header(p, &eth_hdr, off, ETH_LEN, "Ethernet header");
    uint16_t type;

    if (!q)
        return;
    p->have |= H_ETH;
    type = load_be16(q + 12);
    if (LIKELY(type >= ETHERTYPE_MIN)) {
        ethertype_decode(p, off + ETH_LEN, type, o);
        return;
    }
    p->layers[p->n_layers - 1].hdr = &eth_len_hdr;
    len_decode(p, off + ETH_LEN, type, o);
}
