/* layer 1 (wire): what dissectors call: adding layers, checking bounds, and the other dissectors. */
#ifndef RDMATRACE_DISSECTORS_H
#define RDMATRACE_DISSECTORS_H

#include "dissect/pkt.h"

/* Add a layer for the header `hdr` of `len` bytes at `off`. The layer's length is what was captured of them. */
static inline void pkt_layer(struct pkt *p, const struct hdr *hdr, uint32_t off, uint32_t len)
{
    struct layer *l = &p->layers[p->n_layers];
    uint32_t room = p->caplen > off ? p->caplen - off : 0;

    if (UNLIKELY(p->n_layers >= PKT_LAYERS))
        return;
    l->hdr = hdr;
    l->off = off;
    l->len = len < room ? len : room;
    p->n_layers++;
}

/* Mark the packet as malformed at `off`. Only the first reason is kept. `why` is a phrase that stays valid with the
 * packet, e.g. "UDP length does not fit the IP packet". */
void pkt_malformed(struct pkt *p, uint32_t off, const char *why);

/* The header field at `off` says that the packet ends at `end`, behind the frame or the packet around it: a switch that
 * mirrors packets kept its beginning only (PKT_SHORT). What follows the packet in the frame is none of its bytes. If
 * the mirror sends longer frames (frame.longer), the packet is malformed for the reason `why`. */
void pkt_short(struct pkt *p, uint32_t off, uint32_t end, const char *why);
/* The header of `n` bytes at `off` is the first one of a packet that a frame or a tunnel carries, and no header around
 * it states its length: if it does not end within the frame, the mirror has cut it, as by pkt_short(). */
static inline void pkt_may_end(struct pkt *p, uint32_t off, uint32_t n, const char *why)
{
    if (UNLIKELY(off < p->end && n > p->end - off))
        pkt_short(p, off, off + n, why);
}

/* The `n` bytes at `off`; NULL if the packet or the capture ends before they do. With NULL the packet is marked:
 * PKT_CUT if the bytes were on the wire (they end within p->end), else PKT_MALFORMED. `what` names the bytes for
 * p->why: "UDP header" gives "truncated UDP header, 8 bytes needed". */
const uint8_t *pkt_need_slow(struct pkt *p, uint32_t off, uint32_t n, const char *what);
static inline const uint8_t *pkt_need(struct pkt *p, uint32_t off, uint32_t n, const char *what)
{
    uint32_t limit = p->end < p->caplen ? p->end : p->caplen;

    if (LIKELY(off <= limit && n <= limit - off))
        return p->data + off;
    return pkt_need_slow(p, off, n, what);
}

/* The usual start of a dissector: add a layer for the header `hdr` of `n` bytes at `off`, and return its bytes. If the
 * packet or the capture ends within the header, the layer gets the bytes that are there, the packet is marked as by
 * pkt_need(), and NULL is returned. */
static inline const uint8_t *pkt_header(struct pkt *p, const struct hdr *hdr, uint32_t off, uint32_t n,
                                        const char *what)
{
    const uint8_t *q = pkt_need(p, off, n, what);
    uint32_t end = p->end;

    if (LIKELY(q != NULL))
        pkt_layer(p, hdr, off, n);
    else if (off < end && off < p->caplen)
        pkt_layer(p, hdr, off, n < end - off ? n : end - off);
    return q;
}

/* The dissectors. Each decodes the header at `off` and calls the dissector of the next header; none reads at or beyond
 * p->end. Declare a new one here. */
void eth_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
/* The header that the EtherType `type` announces. */
void ethertype_decode(struct pkt *p, uint32_t off, uint16_t type, const struct decode_opts *o);
/* IPv4 or IPv6, by the version nibble. */
void ip_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
/* The header that the IP protocol number `proto` announces. */
void ipproto_decode(struct pkt *p, uint32_t off, uint8_t proto, const struct decode_opts *o);
void udp_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
/* RoCEv2: the BTH at `off`; the UDP header is at p->udp_off. */
void rocev2_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
/* RoCEv1: the GRH at `off`. */
void rocev1_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
/* Native InfiniBand: the LRH at `off`. */
void ib_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
/* For the packet that an ICMP error quotes: add layers for the BTH at `off` and its extended headers, as far as they
 * were captured. Nothing else of `p` is set. */
void bth_layers(struct pkt *p, uint32_t off);
/* The payload of a packet with a manufacturer specific opcode, if it is one of MRC: an opcode of MRC in RoCEv2 over
 * IPv6, with headers that fit its length. False: it is none, and nothing is done. */
bool mrc_decode(struct pkt *p);
/* Native InfiniBand link packet (flow control) at `off`. */
void iblink_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
/* All link types but Ethernet. */
void link_decode(struct pkt *p, const struct decode_opts *o);
/* Linux cooked captures: link type 113 (version 1) or 276 (version 2). */
void sll_decode(struct pkt *p, const struct decode_opts *o);
void sll2_decode(struct pkt *p, const struct decode_opts *o);
/* Link type 197: a frame that starts with an ERF record header. */
void erf_decode(struct pkt *p, const struct decode_opts *o);
/* Link type 242: IP over InfiniBand. */
void ipoib_decode(struct pkt *p, const struct decode_opts *o);
/* IP over InfiniBand in the payload of a UD packet, or (connected mode) at the start of a message, whose packet is the
 * `first` of several: adds its layers and sets PKT_IPOIB. False: the payload begins with no header of RFC 4391, or the
 * IP packet behind it has another length; nothing is done. */
bool ipoib_layers(struct pkt *p, bool first);
/* The LLC header at `off` of an 802.3 frame. */
void llc_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
void arp_decode(struct pkt *p, uint32_t off);
/* MAC control: pause and priority-based flow control. */
void macc_decode(struct pkt *p, uint32_t off);
void mpls_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
void gre_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
/* ERSPAN type I (no header), II or III: `type` is 1, 2 or 3. */
void erspan_decode(struct pkt *p, uint32_t off, unsigned type, const struct decode_opts *o);
void vxlan_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
/* VXLAN with the generic protocol extension (VXLAN-GPE). */
void vxlan_gpe_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
void geneve_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
void icmp_decode(struct pkt *p, uint32_t off);
void icmp6_decode(struct pkt *p, uint32_t off);
void tcp_decode(struct pkt *p, uint32_t off);
/* The options of an IPv4 header, from offset `off` to the end of the header at `end`. */
void ip4_options_decode(struct pkt *p, uint32_t off, uint32_t end);
/* The IPv6 extension header `proto`, or the authentication header of either IP version. */
void ip6ext_decode(struct pkt *p, uint32_t off, uint8_t proto, const struct decode_opts *o);
/* Protocols that are only named (opaque.h): if the EtherType `type`, the IP protocol `proto` or the LLC SAP `sap` is
 * one of them, add its layer and return true. */
bool named_ethertype(struct pkt *p, uint32_t off, uint16_t type);
bool named_ipproto(struct pkt *p, uint32_t off, uint8_t proto);
bool named_sap(struct pkt *p, uint32_t off, uint8_t sap);

/* Layers that encapsulation may use; the others are kept for the innermost packet. */
#define PKT_NEST_MAX (PKT_LAYERS - 20)
/* True if one more header may be nested; if not, the packet is marked as malformed. Every dissector that can lead back
 * to itself calls it first: this bounds the recursion. */
bool pkt_nest(struct pkt *p, uint32_t off);
/* The same before the inner packet of a tunnel; it also drops the outer UDP header from p->have. */
static inline bool pkt_tunnel(struct pkt *p, uint32_t off)
{
    p->flags |= PKT_TUNNEL;
    p->have &= ~(uint32_t)H_UDP;
    return pkt_nest(p, off);
}

/* The management datagram in the payload (p->payload_off, p->payload_len) of a UD packet to QP 0 or 1. */
void mad_decode(struct pkt *p);

#endif
