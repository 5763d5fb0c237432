/* layer 1 (wire): the TCP header, and the payload of a segment. */
#include "dissect/ip/tcp.h"

#include "dissect/dissectors.h"
#include "dissect/ip/icmp.h"
#include "dissect/ip/inner.h"

static uint32_t header_bytes(const struct pkt *p, const struct layer *l)
{
    return (p->data[l->off + 12] >> 4) * 4u;
}
static uint32_t payload_len(const struct pkt *p, const struct layer *l)
{
    uint32_t end = p->flags & (PKT_QUOTED | PKT_IPOIB) ? inner_ip_end(p, l) : p->end;
    uint32_t start = l->len < 20 ? end : l->off + header_bytes(p, l);

    return end > start ? end - start : 0;
}
uint32_t tcp_payload_cap(const struct pkt *p, const struct layer *l)
{
    uint32_t start = l->len < 20 ? p->caplen : l->off + header_bytes(p, l);

    return min_u32(payload_len(p, l), p->caplen > start ? p->caplen - start : 0);
}
static bool hdr_len_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    if (l->len < 20)
        return false;
    v->u = header_bytes(p, l);
    return true;
}
static bool len_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    v->u = payload_len(p, l);
    return l->len >= 20 && !(p->flags & PKT_QUOTED);
}
static bool payload_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    v->len = tcp_payload_cap(p, l);
    v->p = v->len ? p->data + l->off + header_bytes(p, l) : NULL;
    return v->len > 0;
}

HDR_TABLE_PLUS(tcp, TCP_FIELDS,
               FIELD_ALIAS(0, 16, FT_UINT16, BASE_DEC, "tcp.port", "Port", "Source or destination port."),
               FIELD_ALIAS(16, 16, FT_UINT16, BASE_DEC, "tcp.port", "Port", "Source or destination port."),
               FIELD_GET(hdr_len_get, FT_UINT8, BASE_DEC, NULL, 0, "tcp.hdr_len", "Header Length",
                         "Bytes, options included."),
               FIELD_GET(len_get, FT_UINT32, BASE_DEC, NULL, 0, "tcp.len", "TCP Segment Len", "Bytes of payload."),
               FIELD_GET(payload_get, FT_BYTES, BASE_NONE, NULL, FLD_HIDDEN, "tcp.payload", "TCP payload",
                         "Captured bytes of payload."),
               FIELD_GET(pkt_stream, FT_UINT32, BASE_DEC, NULL, FLD_HIDDEN, "tcp.stream", "Stream index",
                         "Number of the TCP connection, from 0."))

static void tcp_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    static const char *const flags[] = {"FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"};
    const uint8_t *h = p->data + l->off;
    struct value v = {0};
    const char *sep = "";

    if (l->len < 20)
        return;
    buf_printf(b, "%u > %u [", load_be16(h), load_be16(h + 2));
    for (unsigned i = 0; i < ARRAY_LEN(flags); i++)
        if (h[13] >> i & 1) {
            buf_puts(b, sep);
            buf_puts(b, flags[i]);
            sep = ", ";
        }
    len_get(p, l, &v);
    buf_printf(b, "] seq %u", load_be32(h + 4));
    if (h[13] & 0x10)
        buf_printf(b, " ack %u", load_be32(h + 8));
    buf_printf(b, " win %u len %u", load_be16(h + 14), (unsigned)v.u);
}
const struct hdr tcp_hdr = {
    .abbrev = "tcp",
    .name = "Transmission Control Protocol",
    .proto = "tcp",
    .column = "TCP",
    .fields = tcp_fields,
    .nfields = ARRAY_LEN(tcp_fields),
    .len = 20,
    .info = tcp_info,
};

void tcp_decode(struct pkt *p, uint32_t off)
{
    const uint8_t *q = pkt_need(p, off, 20, "TCP header");
    uint32_t n = q ? (q[12] >> 4) * 4u : 20;

    if (n < 20)
        pkt_malformed(p, off + 12, "TCP header length below 20");
    pkt_header(p, &tcp_hdr, off, n < 20 ? 20 : n, "TCP header with options");
    if (!q)
        return;
    p->sport = load_be16(q);
    p->dport = load_be16(q + 2);
}

/* Whether the packet that IP over InfiniBand carries is of ICMP: a TCP header behind it is one that it quotes. */
static bool quotes_inside(const struct pkt *p)
{
    for (unsigned i = 0; p->flags & PKT_IPOIB && i < p->n_layers; i++)
        if (p->layers[i].hdr == &icmp_hdr || p->layers[i].hdr == &icmp6_hdr)
            return true;
    return false;
}

const struct layer *tcp_layer(const struct pkt *p)
{
    unsigned n = p->flags & PKT_QUOTED || quotes_inside(p) ? 0 : p->n_layers;

    while (n && p->layers[n - 1].hdr->upper)
        n--;
    return n && p->layers[n - 1].hdr == &tcp_hdr ? &p->layers[n - 1] : NULL;
}

const uint8_t *tcp_payload(const struct pkt *p, struct tcp *h, uint32_t *len)
{
    const struct layer *l = tcp_layer(p);
    uint32_t start, end = min_u32(p->end, p->caplen);

    if (!l || l->len < 20 || p->flags & PKT_FRAGMENT)
        return NULL;
    tcp_get(h, p->data + l->off);
    start = l->off + h->doff * 4u;
    if (h->doff < 5 || start >= end)
        return NULL;
    *len = end - start;
    return p->data + start;
}

bool tcp_opens(const struct pkt *p)
{
    const struct layer *l = tcp_layer(p);
    struct tcp h;

    if (!l || l->len < 20 || p->flags & PKT_FRAGMENT)
        return false;
    tcp_get(&h, p->data + l->off);
    return h.syn && !h.ackf;
}
