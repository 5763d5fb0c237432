/* layer 1 (wire): IPv4 and IPv6, and the dissector of each IP protocol number. */
#include "dissect/ip/ip.h"

#include "dissect/dissectors.h"

static const struct vname ipprotos[] = {
    {0, "IPv6 Hop-by-Hop Option"},
    {1, "ICMP"},
    {2, "IGMP"},
    {4, "IPIP"},
    {6, "TCP"},
    {17, "UDP"},
    {41, "IPv6"},
    {43, "Routing Header for IPv6"},
    {44, "Fragment Header for IPv6"},
    {47, "Generic Routing Encapsulation"},
    {50, "Encap Security Payload"},
    {51, "Authentication Header"},
    {58, "ICMPv6"},
    {59, "IPv6 no next header"},
    {60, "Destination Options for IPv6"},
    {88, "EIGRP"},
    {89, "OSPF IGP"},
    {103, "Protocol Independent Multicast"},
    {112, "VRRP"},
    {132, "SCTP"},
    {137, "MPLS in IP"},
};
const struct vdesc ipproto_desc = VDESC_NAMES(ipprotos);

static const struct vname ecn_names[] = {{0, "Not-ECT"}, {1, "ECT(1)"}, {2, "ECT(0)"}, {3, "CE"}};
const struct vdesc ecn_desc = VDESC_NAMES(ecn_names);

static bool ip4_hdr_len_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    v->u = l->len ? (p->data[l->off] & 15) * 4 : 0;
    return l->len > 0;
}

static void proto_info(struct buf *b, unsigned proto)
{
    if (!vdesc_print(b, &ipproto_desc, proto))
        buf_puts(b, "Unknown");
    buf_printf(b, " (%u)", proto);
}

static void ip4_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    const uint8_t *h = p->data + l->off;

    if (l->len < 20)
        return;
    if (load_be16(h + 6) & 0x3fff) {
        buf_puts(b, "Fragmented IP protocol, proto ");
        proto_info(b, h[9]);
        buf_printf(b, ", off %u, ID 0x%04x", (load_be16(h + 6) & 0x1fffu) * 8, load_be16(h + 4));
    } else {
        proto_info(b, h[9]);
    }
}

static void ip6_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    if (l->len >= 40)
        proto_info(b, p->data[l->off + 6]);
}

#define ADDR_BLURB "Source or destination."
HDR_TABLE_PLUS(ip4, IP4_FIELDS,
               FIELD_GET(ip4_hdr_len_get, FT_UINT8, BASE_DEC, NULL, 0, "ip.hdr_len", "Header Length",
                         "Bytes, options included."),
               FIELD_ALIAS(96, 32, FT_IPV4, BASE_NONE, "ip.addr", "Address", ADDR_BLURB),
               FIELD_ALIAS(128, 32, FT_IPV4, BASE_NONE, "ip.addr", "Address", ADDR_BLURB))
const struct hdr ip4_hdr = {
    .abbrev = "ip",
    .name = "Internet Protocol Version 4",
    .proto = "ip",
    .column = "IPv4",
    .fields = ip4_fields,
    .nfields = ARRAY_LEN(ip4_fields),
    .len = 20,
    .info = ip4_info,
};

HDR_TABLE_PLUS(ip6, IP6_FIELDS, FIELD_ALIAS(0, 4, FT_UINT8, BASE_DEC, "ip.version", "Version", "6."),
               FIELD_ALIAS(64, 128, FT_IPV6, BASE_NONE, "ipv6.addr", "Address", ADDR_BLURB),
               FIELD_ALIAS(192, 128, FT_IPV6, BASE_NONE, "ipv6.addr", "Address", ADDR_BLURB))
const struct hdr ip6_hdr = {
    .abbrev = "ipv6",
    .name = "Internet Protocol Version 6",
    .proto = "ipv6",
    .column = "IPv6",
    .fields = ip6_fields,
    .nfields = ARRAY_LEN(ip6_fields),
    .len = 40,
    .info = ip6_info,
};

void ipproto_decode(struct pkt *p, uint32_t off, uint8_t proto, const struct decode_opts *o)
{
    switch (proto) {
    case IPPROTO_UDP_:
        udp_decode(p, off, o);
        break;
    case 0:
    case 43:
    case 44:
    case 51:
    case 60:
        ip6ext_decode(p, off, proto, o);
        break;
    case 1:
        icmp_decode(p, off);
        break;
    case IPPROTO_IPIP_:
    case 41:
        if (pkt_tunnel(p, off))
            ip_decode(p, off, o);
        break;
    case 6:
        tcp_decode(p, off);
        break;
    case 47:
        gre_decode(p, off, o);
        break;
    case 58:
        icmp6_decode(p, off);
        break;
    case 137:
        mpls_decode(p, off, o);
        break;
    default:
        named_ipproto(p, off, proto);
        break;
    }
}

/* Set the addresses of `p`. The innermost IP header is decoded last and thus overwrites those of outer ones. */
static void ip_addresses(struct pkt *p, uint32_t off, uint8_t addr_len, const uint8_t *src)
{
    if (p->addr_len)
        p->flags |= PKT_TUNNEL;
    p->ip_off = off;
    p->addr_len = addr_len;
    p->src = src;
    p->dst = src + addr_len;
}

static void ip4_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    const uint8_t *q = pkt_header(p, &ip4_hdr, off, 20, "IPv4 header");
    uint32_t len, ihl;

    if (!q)
        return;
    ihl = (q[0] & 15) * 4u;
    len = load_be16(q + 2);
    ip_addresses(p, off, 4, q + 12);
    p->have = (p->have & ~(uint32_t)H_IP6) | H_IP4;
    p->tos = q[1];
    p->ttl = q[8];
    if (UNLIKELY(ihl < 20)) {
        pkt_malformed(p, off, "IPv4 header length below 20");
        return;
    }
    if (LIKELY(len >= ihl && len <= p->end - off))
        p->end = off + len;
    else if (len && len < ihl)
        pkt_malformed(p, off + 2, "IPv4 total length does not hold the header");
    else if (len) /* 0: captured before the adapter segmented it (TSO) */
        pkt_short(p, off + 2, off + len, "IPv4 total length does not fit the frame");
    if (UNLIKELY(ihl > 20))
        ip4_options_decode(p, off + 20, off + ihl);
    if (load_be16(q + 6) & 0x3fff) {
        p->flags |= PKT_FRAGMENT;
        if (load_be16(q + 6) & 0x1fff)
            return;
    }
    ipproto_decode(p, off + ihl, q[9], o);
}

static void ip6_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    const uint8_t *q;
    uint32_t len;

    pkt_may_end(p, off, 40, "truncated IPv6 header, 40 bytes needed");
    q = pkt_header(p, &ip6_hdr, off, 40, "IPv6 header");
    if (!q)
        return;
    len = 40u + load_be16(q + 4);
    ip_addresses(p, off, 16, q + 8);
    p->have = (p->have & ~(uint32_t)H_IP4) | H_IP6;
    p->tos = (uint8_t)(load_be16(q) >> 4);
    p->ttl = q[7];
    if (LIKELY(len <= p->end - off && len > 40))
        p->end = off + len;
    else if (len > 40)
        pkt_short(p, off + 4, off + len, "IPv6 payload length does not fit the frame");
    else if (q[6] != 0) /* payload length 0, but no jumbogram: that has hop-by-hop options (0) */
        p->end = off + 40;
    ipproto_decode(p, off + 40, q[6], o);
}

void ip_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    const uint8_t *q = pkt_need(p, off, 1, "IP header");

    if (!q)
        return;
    if (q[0] >> 4 == 4)
        ip4_decode(p, off, o);
    else if (q[0] >> 4 == 6)
        ip6_decode(p, off, o);
    else
        pkt_malformed(p, off, "IP version is neither 4 nor 6");
}

bool ip4_sum_wrong(const struct pkt *p)
{
    const uint8_t *q = p->data + p->ip_off;
    uint32_t len = (q[0] & 15u) * 4;

    return len >= 20 && p->ip_off + len <= p->caplen && ip4_header_sum_wrong(q, len);
}
