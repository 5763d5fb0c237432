/* layer 1 (wire): IPv4 and IPv6; what an IP protocol number announces. */
#include "dissect/ip.h"

#include "dissect/pkt.h"

static const struct vname ipprotos[] = {{1, "ICMP"}, {4, "IPv4"}, {6, "TCP"}, {17, "UDP"}, {41, "IPv6"}, {47, "GRE"}, {58, "ICMPv6"}};
const struct vdesc ipproto_desc = VDESC_NAMES(ipprotos);

static const struct vname ecn_names[] = {{0, "Not-ECT"}, {1, "ECT(1)"}, {2, "ECT(0)"}, {3, "CE"}};
const struct vdesc ecn_desc = VDESC_NAMES(ecn_names);

static bool ip4_hdr_len_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    v->u = l->len ? (p->data[l->off] & 15) * 4 : 0;
    return l->len > 0;
}

#define ADDR_BLURB "Source or destination."
HDR_TABLE_PLUS(ip4, IP4_FIELDS,
               FIELD_GET(ip4_hdr_len_get, FT_UINT8, BASE_DEC, NULL, 0, "ip.hdr_len", "Header Length", "Bytes, options included."),
               FIELD_ALIAS(96, 32, FT_IPV4, BASE_NONE, "ip.addr", "Address", ADDR_BLURB),
               FIELD_ALIAS(128, 32, FT_IPV4, BASE_NONE, "ip.addr", "Address", ADDR_BLURB))
const struct hdr ip4_hdr = {"ip", "Internet Protocol Version 4", "ip", "IPv4", ip4_fields, ARRAY_LEN(ip4_fields), 20, FT_NONE, NULL};

HDR_TABLE_PLUS(ip6, IP6_FIELDS, FIELD_ALIAS(64, 128, FT_IPV6, BASE_NONE, "ipv6.addr", "Address", ADDR_BLURB),
               FIELD_ALIAS(192, 128, FT_IPV6, BASE_NONE, "ipv6.addr", "Address", ADDR_BLURB))
const struct hdr ip6_hdr = {"ipv6", "Internet Protocol Version 6", "ipv6", "IPv6", ip6_fields, ARRAY_LEN(ip6_fields), 40, FT_NONE, NULL};

void ipproto_decode(struct pkt *p, uint32_t off, uint8_t proto, const struct decode_opts *o)
{
    if (proto == IPPROTO_UDP_)
        udp_decode(p, off, o);
}

/* Note the addresses of the innermost IP header. */
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
    const uint8_t *q = pkt_header(p, &ip4_hdr, off, 20, "IPv4 header of 20 bytes");
    uint32_t len, ihl;

    if (!q)
        return;
    ihl = (q[0] & 15) * 4u;
    len = load_be16(q + 2);
    ip_addresses(p, off, 4, q + 12);
    p->have = (p->have & ~(uint32_t)H_IP6) | H_IP4;
    p->tos = q[1];
    p->ttl = q[8];
    if (ihl < 20 || len < ihl || len > p->end - off) {
        pkt_malformed(p, off + 2, ihl < 20 ? "IPv4 header length below 20" : "IPv4 total length does not fit the frame");
        if (ihl < 20)
            return;
    } else {
        p->end = off + len;
    }
    if (load_be16(q + 6) & 0x3fff) {
        p->flags |= PKT_FRAGMENT;
        if (load_be16(q + 6) & 0x1fff)
            return;
    }
    ipproto_decode(p, off + ihl, q[9], o);
}

static void ip6_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    const uint8_t *q = pkt_header(p, &ip6_hdr, off, 40, "IPv6 header of 40 bytes");
    uint32_t len;

    if (!q)
        return;
    len = 40u + load_be16(q + 4);
    ip_addresses(p, off, 16, q + 8);
    p->have = (p->have & ~(uint32_t)H_IP4) | H_IP6;
    p->tos = (uint8_t)(load_be16(q) >> 4);
    p->ttl = q[7];
    if (len > p->end - off)
        pkt_malformed(p, off + 4, "IPv6 payload length does not fit the frame");
    else
        p->end = off + len;
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
