/* layer 1 (wire): IP over InfiniBand (RFC 4391): in capture files (LINKTYPE_IPOIB), and in datagrams and messages. */

#include "dissect/dissectors.h"
#include "dissect/ip/icmp.h"
#include "dissect/ip/inner.h"
#include "dissect/ip/ip.h"
#include "dissect/link/eth.h"
#include "dissect/link/link.h"

#define PSEUDO_LEN        40
#define IPOIB_LEN         4  /* the header of RFC 4391 */
#define IPOIB_CM_LEN      8  /* private data of connected mode */
#define ARP_HW_INFINIBAND 32 /* IANA's hardware type; RFC 4391 */

/*
 * Known files have 40 bytes before the header of RFC 4391. Received frame: a GRH with the source QP in its second
 * 4-byte word. Sent frame: 20 zero bytes and the link-layer address of the destination: reserved (1), QPN (3), GID
 * (16).
 */
static const struct field ipoib_dst_fields[] = {
    FIELD_ROW(NULL, 0, 168, FT_BYTES, BASE_NONE, NULL, FLD_MEMBER, "rdma.ipoib.unused", "Unused", "Zero."),
    FIELD_ROW(NULL, 168, 24, FT_UINT24, BASE_HEX, NULL, FLD_MEMBER, "ipoib.daddr.qpn", "Destination QPN",
              "Destination queue pair."),
    FIELD_ROW(NULL, 192, 128, FT_IPV6, BASE_NONE, NULL, FLD_MEMBER, "ipoib.dgid", "Destination GID",
              "Destination port."),
};
const struct hdr ipoib_dst_hdr = {
    .abbrev = "ipoib.daddr",
    .name = "Destination address",
    .proto = "ipoib",
    .fields = ipoib_dst_fields,
    .nfields = ARRAY_LEN(ipoib_dst_fields),
    .len = PSEUDO_LEN,
};

static const struct field ipoib_grh_fields[] = {
    FIELD_ROW(NULL, 0, 4, FT_UINT8, BASE_DEC, NULL, FLD_MEMBER, "ipoib.grh.ipver", "IP Version", "6."),
    FIELD_ROW(NULL, 4, 8, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "ipoib.grh.tclass", "Traffic Class", "Traffic class."),
    FIELD_ROW(NULL, 12, 20, FT_UINT32, BASE_DEC, NULL, FLD_MEMBER, "ipoib.grh.flowlabel", "Flow Label", "Flow label."),
    FIELD_ROW(NULL, 32, 8, FT_UINT8, BASE_HEX, NULL, FLD_MEMBER, "rdma.ipoib.reserved8", "Reserved", "Any value."),
    FIELD_ROW(NULL, 40, 24, FT_UINT24, BASE_HEX, NULL, FLD_MEMBER, "ipoib.grh.sqpn", "Source QPN",
              "Queue pair that sent the packet."),
    FIELD_ROW(NULL, 64, 128, FT_IPV6, BASE_NONE, NULL, FLD_MEMBER, "ipoib.grh.sgid", "Source GID", "Source port."),
    FIELD_ROW(NULL, 192, 128, FT_IPV6, BASE_NONE, NULL, FLD_MEMBER, "ipoib.dgid", "Destination GID",
              "Destination port."),
};
const struct hdr ipoib_grh_hdr = {
    .abbrev = "ipoib.grh",
    .name = "Global Route Header",
    .proto = "ipoib",
    .fields = ipoib_grh_fields,
    .nfields = ARRAY_LEN(ipoib_grh_fields),
    .len = PSEUDO_LEN,
};

/* The header of RFC 4391, 4 bytes: | EtherType (2) | reserved (2) | */
static const struct field ipoib_fields[] = {
    FIELD_ROW(NULL, 0, 16, FT_UINT16, BASE_HEX, &ethertype_desc, FLD_MEMBER, "ipoib.type", "Type", "What follows."),
    FIELD_ROW(NULL, 16, 16, FT_UINT16, BASE_HEX, NULL, FLD_MEMBER, "ipoib.reserved", "Reserved", "Zero."),
};

/* Private data of a REQ and a REP of connected mode (RFC 4755), 8 bytes: | ignored (1) | QPN (3) | MTU (4) | */
static const struct field ipoib_cm_fields[] = {
    FIELD_ROW(NULL, 8, 24, FT_UINT24, BASE_HEX, NULL, 0, "rdma.ipoib.cm.qpn", "UD QPN",
              "Queue pair of the sender's datagrams, a part of its link-layer address."),
    FIELD_ROW(NULL, 32, 32, FT_UINT32, BASE_DEC, NULL, 0, "rdma.ipoib.cm.mtu", "Receive MTU",
              "Bytes of a message, its header of 4 bytes included, that the sender can receive."),
};
const struct hdr ipoib_cm_hdr = {
    .abbrev = "rdma.ipoib.cm",
    .name = "IP over InfiniBand, connected mode (private data)",
    .proto = "ipoib",
    .fields = ipoib_cm_fields,
    .nfields = ARRAY_LEN(ipoib_cm_fields),
    .len = IPOIB_CM_LEN,
    .type = FT_NONE,
    .upper = true,
};

/* Append what the layers from `l` on say of the packet inside: "192.168.77.1 > 192.168.77.2 TCP 22 > 40000 [SYN] ...".
 */
static void inside_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    const struct layer *last = NULL, *end = p->layers + p->n_layers;

    for (; l < end; l++) {
        const uint8_t *h = p->data + l->off;
        if (l->hdr == &ip4_hdr && l->len >= IP4_LEN) {
            buf_ipv4(b, h + 12);
            buf_puts(b, " > ");
            buf_ipv4(b, h + 16);
            buf_char(b, ' ');
        } else if (l->hdr == &ip6_hdr && l->len >= IP6_LEN) {
            buf_ipv6(b, h + 8);
            buf_puts(b, " > ");
            buf_ipv6(b, h + 24);
            buf_char(b, ' ');
        }
        if (l->hdr->column && l->hdr->info)
            last = l;
        if (l->hdr == &icmp_hdr || l->hdr == &icmp6_hdr) /* what is behind it is what it quotes */
            break;
    }
    if (!last)
        return;
    if (last->hdr != &ip4_hdr && last->hdr != &ip6_hdr && last->hdr != &arp_hdr) {
        buf_puts(b, last->hdr->column);
        buf_char(b, ' ');
    }
    last->hdr->info(b, p, last);
}

static void ipoib_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    if (p->flags & PKT_IPOIB)
        inside_info(b, p, l + 1);
    else if (l->len >= 2)
        buf_printf(b, "IP over InfiniBand, type 0x%04x", load_be16(p->data + l->off));
}
const struct hdr ipoib_hdr = {
    .abbrev = "ipoib",
    .name = "IP over Infiniband",
    .proto = "ipoib",
    .column = "IPoIB",
    .fields = ipoib_fields,
    .nfields = ARRAY_LEN(ipoib_fields),
    .len = IPOIB_LEN,
    .info = ipoib_info,
};

/* True if the frame starts with the header of RFC 4391, as the registry of link types defines it: the EtherType of IP,
 * a reserved 0 and an IP header of that version. */
static bool starts_with_header(const struct pkt *p)
{
    const uint8_t *q = p->data;

    if (p->caplen < 5 || load_be16(q + 2) != 0)
        return false;
    return (load_be16(q) == ETHERTYPE_IPV4 && q[4] >> 4 == 4) || (load_be16(q) == ETHERTYPE_IPV6 && q[4] >> 4 == 6);
}

void ipoib_decode(struct pkt *p, const struct decode_opts *o)
{
    const uint8_t *q;
    uint32_t off = 0;

    if (!starts_with_header(p)) {
        q = pkt_need(p, 0, 1, "IPoIB pseudo-header");
        if (!q || !pkt_header(p, q[0] ? &ipoib_grh_hdr : &ipoib_dst_hdr, 0, PSEUDO_LEN, "IPoIB pseudo-header"))
            return;
        off = PSEUDO_LEN;
    }
    q = pkt_header(p, &ipoib_hdr, off, IPOIB_LEN, "IPoIB header");
    if (q)
        ethertype_decode(p, off + IPOIB_LEN, load_be16(q), o);
}

/* True if the payload can be an IP over InfiniBand packet of `type`: its own length is that of the payload, or with
 * `first` (of several packets of a message) longer. */
static bool length_fits(const struct pkt *p, uint16_t type, const uint8_t *ip, bool first)
{
    uint32_t room = p->payload_len - IPOIB_LEN, len;

    if (type == ETHERTYPE_IPV4)
        len = ip[0] >> 4 == 4 ? load_be16(ip + 2) : 0;
    else if (type == ETHERTYPE_IPV6)
        len = ip[0] >> 4 == 6 ? IP6_LEN + load_be16(ip + 4) : 0;
    else
        len = type == ETHERTYPE_ARP && load_be16(ip) == ARP_HW_INFINIBAND ? room : 0;
    return len == room || (first && len > room);
}

bool ipoib_layers(struct pkt *p, bool first)
{
    const uint8_t *q = p->data + p->payload_off;
    uint32_t off = p->payload_off + IPOIB_LEN, cap = p->payload_off + p->payload_cap;

    if (p->payload_cap < IPOIB_LEN + 8 || load_be16(q + 2) != 0 || !length_fits(p, load_be16(q), q + IPOIB_LEN, first))
        return false;
    p->flags |= PKT_IPOIB;
    pkt_layer(p, &ipoib_hdr, p->payload_off, IPOIB_LEN);
    if (load_be16(q) == ETHERTYPE_ARP)
        pkt_layer(p, &arp_hdr, off, min_u32(8 + 2 * (q[IPOIB_LEN + 4] + q[IPOIB_LEN + 5]), cap - off));
    else
        inner_ip_layers(p, off, cap);
    return true;
}
