/* layer 1 (wire): ARP (RFC 826). */
#include "dissect/dissectors.h"
#include "dissect/link/link.h"

#include "dissect/link/eth.h"

static const struct vname arp_ops[] = {{1, "request"},       {2, "reply"},           {3, "reverse request"},
                                       {4, "reverse reply"}, {8, "inverse request"}, {9, "inverse reply"}};
static const struct vdesc arp_op_desc = VDESC_NAMES(arp_ops);

/*
 * 8 bytes, then four addresses whose sizes the header gives.
 *   | hardware type (2) | protocol type (2) | hardware size (1) | protocol size (1) | operation (2) |
 *   | sender hardware | sender protocol | target hardware | target protocol |
 */
enum which {
    SRC_HW,
    SRC_PROTO,
    DST_HW,
    DST_PROTO,
};

/* Get one of the four addresses; false if it was not captured in full. */
static bool address(const struct pkt *p, const struct layer *l, enum which w, struct value *v)
{
    const uint8_t *h = p->data + l->off;
    uint32_t off, hw, proto;

    if (l->len < 8)
        return false;
    hw = h[4];
    proto = h[5];
    off = 8 + (w >= SRC_PROTO ? hw : 0) + (w >= DST_HW ? proto : 0) + (w >= DST_PROTO ? hw : 0);
    v->len = w == SRC_HW || w == DST_HW ? hw : proto;
    v->p = h + off;
    return v->len > 0 && off + v->len <= l->len;
}
static bool is_mac(const struct pkt *p, const struct layer *l)
{
    const uint8_t *h = p->data + l->off;
    return l->len >= 8 && h[4] == 6 && (load_be16(h) == 1 || load_be16(h) == 6);
}
static bool is_ip4(const struct pkt *p, const struct layer *l)
{
    const uint8_t *h = p->data + l->off;
    return l->len >= 8 && h[5] == 4 && load_be16(h + 2) == ETHERTYPE_IPV4;
}
#define ADDRESS(name, is, which)                                                                                       \
    static bool name##_get(const struct pkt *p, const struct layer *l, struct value *v)                                \
    {                                                                                                                  \
        return (is) && address(p, l, which, v);                                                                        \
    }
ADDRESS(src_mac, is_mac(p, l), SRC_HW)
ADDRESS(src_hw, !is_mac(p, l), SRC_HW)
ADDRESS(src_ip4, is_ip4(p, l), SRC_PROTO)
ADDRESS(src_proto, !is_ip4(p, l), SRC_PROTO)
ADDRESS(dst_mac, is_mac(p, l), DST_HW)
ADDRESS(dst_hw, !is_mac(p, l), DST_HW)
ADDRESS(dst_ip4, is_ip4(p, l), DST_PROTO)
ADDRESS(dst_proto, !is_ip4(p, l), DST_PROTO)

static const struct field arp_fields[] = {
    FIELD_ROW(NULL, 0, 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "arp.hw.type", "Hardware type",
              "1 Ethernet, 32 InfiniBand."),
    FIELD_ROW(NULL, 16, 16, FT_UINT16, BASE_HEX, &ethertype_desc, FLD_MEMBER, "arp.proto.type", "Protocol type",
              "An EtherType."),
    FIELD_ROW(NULL, 32, 8, FT_UINT8, BASE_DEC, NULL, FLD_MEMBER, "arp.hw.size", "Hardware size",
              "Bytes of a hardware address."),
    FIELD_ROW(NULL, 40, 8, FT_UINT8, BASE_DEC, NULL, FLD_MEMBER, "arp.proto.size", "Protocol size",
              "Bytes of a protocol address."),
    FIELD_ROW(NULL, 48, 16, FT_UINT16, BASE_DEC, &arp_op_desc, FLD_MEMBER, "arp.opcode", "Opcode",
              "1 request, 2 reply."),
    FIELD_GET(src_mac_get, FT_ETHER, BASE_NONE, NULL, 0, "arp.src.hw_mac", "Sender MAC address",
              "Sender's MAC address."),
    FIELD_GET(src_hw_get, FT_BYTES, BASE_NONE, NULL, 0, "arp.src.hw", "Sender hardware address",
              "Sender's address, other links."),
    FIELD_GET(src_ip4_get, FT_IPV4, BASE_NONE, NULL, 0, "arp.src.proto_ipv4", "Sender IP address",
              "Sender's IPv4 address."),
    FIELD_GET(src_proto_get, FT_BYTES, BASE_NONE, NULL, 0, "arp.src.proto", "Sender protocol address",
              "Sender's address, other protocols."),
    FIELD_GET(dst_mac_get, FT_ETHER, BASE_NONE, NULL, 0, "arp.dst.hw_mac", "Target MAC address",
              "Target's MAC address."),
    FIELD_GET(dst_hw_get, FT_BYTES, BASE_NONE, NULL, 0, "arp.dst.hw", "Target hardware address",
              "Target's address, other links."),
    FIELD_GET(dst_ip4_get, FT_IPV4, BASE_NONE, NULL, 0, "arp.dst.proto_ipv4", "Target IP address",
              "Target's IPv4 address."),
    FIELD_GET(dst_proto_get, FT_BYTES, BASE_NONE, NULL, 0, "arp.dst.proto", "Target protocol address",
              "Target's address, other protocols."),
};

static void arp_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    struct value src, dst, hw;
    unsigned op;

    if (l->len < 8)
        return;
    op = load_be16(p->data + l->off + 6);
    if (op == 1 && src_ip4_get(p, l, &src) && dst_ip4_get(p, l, &dst)) {
        buf_puts(b, memcmp(src.p, dst.p, 4) == 0 ? "ARP Announcement for " : "Who has ");
        buf_ipv4(b, dst.p);
        if (memcmp(src.p, dst.p, 4) == 0)
            return;
        buf_puts(b, "? Tell ");
        buf_ipv4(b, src.p);
    } else if (op == 2 && src_ip4_get(p, l, &src) && address(p, l, SRC_HW, &hw)) {
        buf_ipv4(b, src.p);
        buf_puts(b, " is at ");
        buf_bytes(b, hw.p, hw.len, ':');
    } else {
        buf_puts(b, "ARP ");
        if (!vdesc_print(b, &arp_op_desc, op))
            buf_printf(b, "operation %u", op);
    }
}
const struct hdr arp_hdr = {
    .abbrev = "arp",
    .name = "Address Resolution Protocol",
    .proto = "arp",
    .column = "ARP",
    .fields = arp_fields,
    .nfields = ARRAY_LEN(arp_fields),
    .len = 8,
    .info = arp_info,
};

void arp_decode(struct pkt *p, uint32_t off)
{
    const uint8_t *q = pkt_need(p, off, 8, "ARP header");

    pkt_header(p, &arp_hdr, off, q ? 8 + 2 * (q[4] + q[5]) : 8, "ARP packet with addresses");
}
