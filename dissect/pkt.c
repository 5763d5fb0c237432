/* layer 1 (wire): decoding starts here, by link type. */
#include "dissect/dissectors.h"
#include "dissect/ip/ip.h"
#include "dissect/ip/tcp.h"
#include "dissect/link/eth.h"

#include <stdio.h>

void pkt_malformed(struct pkt *p, uint32_t off, const char *why)
{
    if (p->flags & PKT_MALFORMED)
        return;
    p->flags |= PKT_MALFORMED;
    p->why = why;
    p->why_off = off;
}

void pkt_short(struct pkt *p, uint32_t off, uint32_t end, const char *why)
{
    p->flags |= PKT_SHORT;
    if (p->frame->longer && !(p->flags & PKT_TUNNEL)) {
        pkt_malformed(p, off, why);
        return;
    }
    p->caplen = min_u32(p->caplen, p->end);
    p->end = end;
}

const uint8_t *pkt_need_slow(struct pkt *p, uint32_t off, uint32_t n, const char *what)
{
    if (off <= p->end && n <= p->end - off) {
        p->flags |= PKT_CUT;
    } else if (!(p->flags & PKT_MALFORMED)) {
        snprintf(p->why_text, sizeof p->why_text, "truncated %s, %s needed", what, count_str(n, "byte"));
        pkt_malformed(p, off, p->why_text);
    }
    return NULL;
}

bool pkt_stream(const struct pkt *p, const struct layer *l, struct value *v)
{
    unsigned n = 0;

    for (const struct layer *k = p->layers; k < l; k++)
        n += k->hdr == &udp_hdr || k->hdr == &tcp_hdr;
    if (n >= p->n_streams || p->streams[n] == STREAM_NONE)
        return false;
    v->u = p->streams[n];
    return true;
}

bool pkt_nest(struct pkt *p, uint32_t off)
{
    if (LIKELY(p->n_layers < PKT_NEST_MAX))
        return true;
    pkt_malformed(p, off, "too many nested headers");
    return false;
}

static void pkt_begin(struct pkt *p, const struct frame *frame)
{
    p->frame = frame;
    p->data = frame->data;
    p->caplen = frame->caplen;
    p->have = 0;
    p->flags = 0;
    p->n_layers = 0;
    p->encap = ENCAP_NONE;
    p->icrc = CRC_ABSENT;
    p->vcrc = CRC_ABSENT;
    p->addr_len = 0;
    p->network = 0;
    p->note.have = 0;
    p->since = p->delta = p->delta_displayed = 0;
    p->n_streams = 0;
    p->end = max_u32(frame->len, frame->caplen);
    pkt_layer(p, &frame_hdr, 0, frame->caplen);
}

/* Offsets in the usual frame: Ethernet, IPv4 without options, UDP, BTH. */
enum { USUAL_IP = 14, USUAL_UDP = USUAL_IP + 20, USUAL_BTH = USUAL_UDP + 8, USUAL_MIN = USUAL_BTH + 12 };
#define USUAL_IHL    0x45   /* IPv4, header of five words */
#define IP4_FRAGMENT 0x3fff /* flag "more fragments" and fragment offset, in bytes 6 and 7 of the header */

/* True if the frame is a usual one: Ethernet, IPv4 without options and not fragmented, UDP to port 4791, and consistent
 * lengths. */
static bool is_usual(const struct pkt *p)
{
    const uint8_t *d = p->data, *ip = d + USUAL_IP;
    uint32_t len, udp_len;

    if (p->frame->linktype != LINK_ETHERNET || p->caplen < USUAL_MIN || load_be16(d + 12) != ETHERTYPE_IPV4)
        return false;
    if (ip[0] != USUAL_IHL || load_be16(ip + 6) & IP4_FRAGMENT || ip[9] != IPPROTO_UDP_)
        return false;
    if (load_be16(d + USUAL_UDP + 2) != UDP_PORT_ROCEV2)
        return false;
    len = load_be16(d + USUAL_IP + 2);
    udp_len = load_be16(d + USUAL_UDP + 4);
    return udp_len >= USUAL_MIN - USUAL_UDP && len == udp_len + 20 && len <= p->end - USUAL_IP;
}

/* Set what the dissectors of Ethernet, IPv4 and UDP would set for a usual frame; is_usual() has made their checks. */
static void usual_decode(struct pkt *p, const struct decode_opts *o)
{
    const uint8_t *ip = p->data + USUAL_IP;

    p->layers[1] = (struct layer){&eth_hdr, 0, 14};
    p->layers[2] = (struct layer){&ip4_hdr, USUAL_IP, 20};
    p->layers[3] = (struct layer){&udp_hdr, USUAL_UDP, 8};
    p->n_layers = 4;
    p->have = H_ETH | H_IP4 | H_UDP;
    p->addr_len = 4;
    p->ip_off = USUAL_IP;
    p->src = ip + 12;
    p->dst = ip + 16;
    p->tos = ip[1];
    p->ttl = ip[8];
    p->udp_off = USUAL_UDP;
    p->sport = load_be16(ip + 20);
    p->dport = UDP_PORT_ROCEV2;
    p->end = USUAL_IP + load_be16(ip + 2);
    rocev2_decode(p, USUAL_BTH, o);
}

void pkt_decode_general(struct pkt *p, const struct frame *frame, const struct decode_opts *o)
{
    pkt_begin(p, frame);
    if (frame->linktype == LINK_ETHERNET)
        eth_decode(p, 0, o);
    else
        link_decode(p, o);
}

void pkt_decode(struct pkt *p, const struct frame *frame, const struct decode_opts *o)
{
    pkt_begin(p, frame);
    if (LIKELY(is_usual(p)))
        usual_decode(p, o);
    else if (frame->linktype == LINK_ETHERNET)
        eth_decode(p, 0, o);
    else
        link_decode(p, o);
}
