/* layer 1 (wire): the headers of an IP packet within the payload of another packet. */
#include "dissect/ip/inner.h"

#include "dissect/dissectors.h"
#include "dissect/ip/icmp.h"
#include "dissect/ip/ip.h"
#include "dissect/ip/tcp.h"

#define PROTO_TCP 6

/* Bytes of the TCP header at `off`, with options, up to `limit`. */
static uint32_t tcp_len(const struct pkt *p, uint32_t off, uint32_t limit)
{
    uint32_t n = limit - off >= TCP_LEN ? (p->data[off + 12] >> 4) * 4u : TCP_LEN;

    return min_u32(n < TCP_LEN ? TCP_LEN : n, limit - off);
}

static void ip_layers(struct pkt *p, uint32_t off, uint32_t limit, bool quoted);

/* An ICMP header, and the packet that an error quotes; a quoted error (`quoted`) is not followed. */
static void icmp_layers(struct pkt *p, uint32_t off, uint32_t limit, bool six, bool quoted)
{
    pkt_layer(p, six ? &icmp6_hdr : &icmp_hdr, off, 8);
    if (!quoted && (six ? icmp6_is_error : icmp_is_error)(p->data[off]))
        ip_layers(p, off + 8, limit, true);
}

static void transport_layers(struct pkt *p, uint32_t off, uint32_t limit, uint8_t proto, bool quoted)
{
    if (off > limit || limit - off < 8)
        return;
    switch (proto) {
    case IPPROTO_UDP_:
        pkt_layer(p, &udp_hdr, off, UDP_LEN);
        if (load_be16(p->data + off + 2) == UDP_PORT_ROCEV2)
            bth_layers(p, off + UDP_LEN);
        break;
    case PROTO_TCP:
        pkt_layer(p, &tcp_hdr, off, tcp_len(p, off, limit));
        break;
    case IPPROTO_ICMP_:
    case IPPROTO_ICMP6_:
        icmp_layers(p, off, limit, proto == IPPROTO_ICMP6_, quoted);
        break;
    default:
        break;
    }
}

static void ip_layers(struct pkt *p, uint32_t off, uint32_t limit, bool quoted)
{
    const uint8_t *q = p->data + off;

    if (off >= limit)
        return;
    if (q[0] >> 4 == 4 && limit - off >= IP4_LEN) {
        pkt_layer(p, &ip4_hdr, off, IP4_LEN);
        if ((q[0] & 15) >= 5 && !(load_be16(q + 6) & 0x1fff))
            transport_layers(p, off + (q[0] & 15) * 4u, limit, q[9], quoted);
    } else if (q[0] >> 4 == 6 && limit - off >= IP6_LEN) {
        pkt_layer(p, &ip6_hdr, off, IP6_LEN);
        transport_layers(p, off + IP6_LEN, limit, q[6], quoted);
    }
}

void inner_ip_layers(struct pkt *p, uint32_t off, uint32_t limit)
{
    ip_layers(p, off, limit, false);
}

void quoted_ip_layers(struct pkt *p, uint32_t off, uint32_t limit)
{
    ip_layers(p, off, limit, true);
}

uint32_t inner_ip_end(const struct pkt *p, const struct layer *l)
{
    const struct layer *ip = l > p->layers ? l - 1 : l;
    const uint8_t *h = p->data + ip->off;

    if (ip->hdr == &ip4_hdr && ip->len >= IP4_LEN)
        return ip->off + load_be16(h + 2);
    return ip->hdr == &ip6_hdr && ip->len >= IP6_LEN ? ip->off + IP6_LEN + load_be16(h + 4) : p->end;
}
