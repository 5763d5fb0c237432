/* layer 1 (wire): UDP, and the dissector of each destination port. */
#include "dissect/dissectors.h"
#include "dissect/ip/inner.h"
#include "dissect/ip/ip.h"
#include "dissect/uet/uet.h"

/* Sum of 16-bit words, without carry folding. */
static uint64_t sum16(const uint8_t *p, uint32_t n)
{
    uint64_t sum = 0;

    for (; n >= 2; p += 2, n -= 2)
        sum += load_be16(p);
    return n ? sum + (uint64_t)p[0] * 256 : sum;
}

static uint64_t fold(uint64_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

/* Sum of the addresses, the protocol and the length. */
static uint64_t pseudo_sum(const struct pkt *p, uint32_t len)
{
    return 17u + len + sum16(p->src, p->addr_len) + sum16(p->dst, p->addr_len);
}

bool udp_sum_wrong(const struct pkt *p)
{
    const uint8_t *q = p->data + p->udp_off;
    uint32_t len = load_be16(q + 4);

    if (!load_be16(q + 6) || p->udp_off + len > p->caplen || p->flags & PKT_FRAGMENT)
        return false;
    return fold(pseudo_sum(p, len) + sum16(q, len)) != 0xffff;
}

bool udp_sum_is_partial(const struct pkt *p)
{
    const uint8_t *q = p->data + p->udp_off;

    return load_be16(q + 6) == fold(pseudo_sum(p, load_be16(q + 4)));
}

static void udp_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    const uint8_t *h = p->data + l->off;
    unsigned len;

    if (l->len < 8)
        return;
    len = load_be16(h + 4);
    buf_printf(b, "%u > %u len %u", load_be16(h), load_be16(h + 2), len >= 8 ? len - 8 : 0);
}

static bool payload_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    uint32_t len = l->len < 8 ? 0 : load_be16(p->data + l->off + 4), start = l->off + 8;
    uint32_t end = p->flags & PKT_IPOIB ? min_u32(inner_ip_end(p, l), p->caplen) : p->caplen;

    v->len = len > 8 && end > start ? min_u32(len - 8, end - start) : 0;
    v->p = p->data + start;
    return v->len > 0;
}

HDR_TABLE_PLUS(udp, UDP_FIELDS,
               FIELD_ALIAS(0, 16, FT_UINT16, BASE_DEC, "udp.port", "Port", "Source or destination port."),
               FIELD_ALIAS(16, 16, FT_UINT16, BASE_DEC, "udp.port", "Port", "Source or destination port."),
               FIELD_GET(payload_get, FT_BYTES, BASE_NONE, NULL, FLD_HIDDEN, "udp.payload", "UDP payload",
                         "Captured bytes of payload."),
               FIELD_GET(pkt_stream, FT_UINT32, BASE_DEC, NULL, FLD_HIDDEN, "udp.stream", "Stream index",
                         "Number of the conversation between two ports, from 0."))
const struct hdr udp_hdr = {
    .abbrev = "udp",
    .name = "User Datagram Protocol",
    .proto = "udp",
    .column = "UDP",
    .fields = udp_fields,
    .nfields = ARRAY_LEN(udp_fields),
    .len = 8,
    .info = udp_info,
};

static bool is_rocev2_port(uint16_t port, const struct decode_opts *o)
{
    if (LIKELY(port == UDP_PORT_ROCEV2))
        return true;
    for (unsigned i = 0; i < o->n_udp_ports; i++)
        if (o->udp_ports[i] == port)
            return true;
    return false;
}

/* Destination ports other than those of RoCEv2. Add a new protocol over UDP here. */
static const struct {
    uint16_t port;
    void (*decode)(struct pkt *p, uint32_t off, const struct decode_opts *o);
} udp_ports[] = {
    {4789, vxlan_decode},     /* IANA */
    {8472, vxlan_decode},     /* Linux before the assignment of 4789 */
    {4790, vxlan_gpe_decode}, /* IANA */
    {6081, geneve_decode},    /* IANA */
    {UET_PORT, uet_decode},   {UET_PORT_PROV, uet_decode},
};

static void udp_port_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    for (unsigned i = 0; i < ARRAY_LEN(udp_ports); i++)
        if (udp_ports[i].port == p->dport) {
            udp_ports[i].decode(p, off, o);
            return;
        }
}

void udp_decode(struct pkt *p, uint32_t off, const struct decode_opts *o)
{
    const uint8_t *q = pkt_header(p, &udp_hdr, off, 8, "UDP header");
    uint32_t len;

    if (!q)
        return;
    p->have |= H_UDP;
    p->udp_off = off;
    p->sport = load_be16(q);
    p->dport = load_be16(q + 2);
    len = load_be16(q + 4);
    if (len < 8 || len > p->end - off) {
        if (!(p->flags & PKT_FRAGMENT))
            pkt_malformed(p, off + 4, "UDP length does not fit the IP packet");
    } else {
        p->end = off + len;
    }
    if (is_rocev2_port(p->dport, o))
        rocev2_decode(p, off + 8, o);
    else
        udp_port_decode(p, off + 8, o);
}
