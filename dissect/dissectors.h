/* layer 1 (wire): what dissectors call: headers noted, bounds checked, and the dissectors that continue with each
 * other. */
#ifndef RDMATRACE_DISSECTORS_H
#define RDMATRACE_DISSECTORS_H

#include "dissect/pkt.h"

/* Add a layer for the header `hdr` of `len` bytes at `off`; of these, the layer has the bytes that were captured. */
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

/* Mark the packet as malformed at `off`; only the first reason is kept. `why`: a phrase, e.g. "UDP length does not fit
 * the IP packet". */
void pkt_malformed(struct pkt *p, uint32_t off, const char *why);

/* The `n` bytes at `off`, or NULL if they are not all there. Then the packet is marked: PKT_CUT if they were on the
 * wire (they end within p->end) but were not captured, else PKT_MALFORMED. `what` names the bytes, e.g. "UDP header":
 * p->why then says "truncated UDP header, 8 bytes needed". */
const uint8_t *pkt_need_slow(struct pkt *p, uint32_t off, uint32_t n, const char *what);
static inline const uint8_t *pkt_need(struct pkt *p, uint32_t off, uint32_t n, const char *what)
{
    uint32_t limit = p->end < p->caplen ? p->end : p->caplen;

    if (LIKELY(off <= limit && n <= limit - off))
        return p->data + off;
    return pkt_need_slow(p, off, n, what);
}

/* The usual start of a dissector: add a layer for the header `hdr` of `n` bytes at `off`, and return its bytes. If the
 * packet ends within the header, the layer has the bytes that are there, the packet is marked as pkt_need() does, and
 * NULL is returned. */
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

/* The dissectors. Each decodes the header at `off` and then calls the dissector of what follows; none reads at or
 * beyond p->end. A new one is declared here. */
void eth_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
/* The header that the EtherType `type` announces. */
void ethertype_decode(struct pkt *p, uint32_t off, uint16_t type, const struct decode_opts *o);
/* IPv4 or IPv6, by the version nibble. */
void ip_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
/* The header that the IP protocol number `proto` announces. */
void ipproto_decode(struct pkt *p, uint32_t off, uint8_t proto, const struct decode_opts *o);
void udp_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
/* RoCEv2: the BTH at `off`, after the UDP header at p->udp_off. */
void rocev2_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
/* RoCEv1: the GRH at `off`. */
void rocev1_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
/* Native InfiniBand: the LRH at `off`. */
void ib_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
/* Layers of the BTH at `off` and of its extended headers, as far as they were captured, and nothing else: for packets
 * that an ICMP error quotes. */
void bth_layers(struct pkt *p, uint32_t off);
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
/* LLC header of an 802.3 frame at `off`. */
void llc_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
void arp_decode(struct pkt *p, uint32_t off);
/* MAC control: pause and priority-based flow control. */
void macc_decode(struct pkt *p, uint32_t off);
void mpls_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
void gre_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
/* ERSPAN type I (no header), II or III: `type` is 1, 2 or 3. */
void erspan_decode(struct pkt *p, uint32_t off, unsigned type, const struct decode_opts *o);
void vxlan_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
/* VXLAN with the generic protocol extension. */
void vxlan_gpe_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
void geneve_decode(struct pkt *p, uint32_t off, const struct decode_opts *o);
void icmp_decode(struct pkt *p, uint32_t off);
void icmp6_decode(struct pkt *p, uint32_t off);
void tcp_decode(struct pkt *p, uint32_t off);
/* The options of the IPv4 header that ends at offset `end`; they start at `off`. */
void ip4_options_decode(struct pkt *p, uint32_t off, uint32_t end);
/* An IPv6 extension header, or the authentication header of either IP version, and what follows it. */
void ip6ext_decode(struct pkt *p, uint32_t off, uint8_t proto, const struct decode_opts *o);
/* Protocols of which only the name is shown (opaque.h): true, and a layer is added, if `type` (an EtherType), `proto`
 * (IP) or `sap` (LLC) is one of them. */
bool named_ethertype(struct pkt *p, uint32_t off, uint16_t type);
bool named_ipproto(struct pkt *p, uint32_t off, uint8_t proto);
bool named_sap(struct pkt *p, uint32_t off, uint8_t sap);

/* Layers that encapsulation may use up; the rest is for the innermost packet. */
#define PKT_NEST_MAX (PKT_LAYERS - 20)
/* Whether one more header may be nested; if not, the packet is marked. Every dissector that can lead back to itself
 * asks, which bounds recursion. */
bool pkt_nest(struct pkt *p, uint32_t off);
/* The same at the start of a tunnel's inner packet; forgets the outer UDP header. */
static inline bool pkt_tunnel(struct pkt *p, uint32_t off)
{
    p->flags |= PKT_TUNNEL;
    p->have &= ~(uint32_t)H_UDP;
    return pkt_nest(p, off);
}

/* Management datagram in the payload of a UD packet to QP 0 or 1: p->payload_off, p->payload_len. */
void mad_decode(struct pkt *p);

#endif
