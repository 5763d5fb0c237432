/* layer 1 (wire): decoding starts here: by link type; and the columns of a packet list. */
#include "dissect/pkt.h"

#include "dissect/ip/icmp.h"

#include "dissect/ip/ip.h"
#include "dissect/link/eth.h"

void pkt_malformed(struct pkt *p, uint32_t off, const char *why)
{
    if (p->flags & PKT_MALFORMED)
        return;
    p->flags |= PKT_MALFORMED;
    p->why = why;
    p->why_off = off;
}

const uint8_t *pkt_need_slow(struct pkt *p, uint32_t off, uint32_t n, const char *why)
{
    if (off <= p->end && n <= p->end - off)
        p->flags |= PKT_CUT;
    else
        pkt_malformed(p, off, why);
    return NULL;
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
    p->note.have = 0;
    p->since = 0;
    p->end = max_u32(frame->len, frame->caplen);
    pkt_layer(p, &frame_hdr, 0, frame->caplen);
}

/* Ethernet, IPv4 without options, UDP, BTH. */
enum { USUAL_IP = 14, USUAL_UDP = USUAL_IP + 20, USUAL_BTH = USUAL_UDP + 8, USUAL_MIN = USUAL_BTH + 12 };

/* Whether the frame is the usual one: an Ethernet frame with a whole RoCEv2 packet over plain IPv4, all lengths in
 * accord. */
static bool is_usual(const struct pkt *p)
{
    const uint8_t *d = p->data;
    uint32_t len, udp_len;

    if (p->frame->linktype != LINK_ETHERNET || p->caplen < USUAL_MIN || load_be16(d + 12) != ETHERTYPE_IPV4 ||
        d[USUAL_IP] != 0x45 || load_be16(d + USUAL_IP + 6) & 0x3fff || d[USUAL_IP + 9] != IPPROTO_UDP_ ||
        load_be16(d + USUAL_UDP + 2) != UDP_PORT_ROCEV2)
        return false;
    len = load_be16(d + USUAL_IP + 2);
    udp_len = load_be16(d + USUAL_UDP + 4);
    return udp_len >= USUAL_MIN - USUAL_UDP && len == udp_len + 20 && len <= p->end - USUAL_IP;
}

/* What the dissectors of Ethernet, IPv4 and UDP would do to the usual frame, one after another, without their
 * checks. */
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

/* Layers that the columns describe: all, but for an ICMP error those up to the ICMP header. */
static unsigned column_layers(const struct pkt *p)
{
    unsigned n = p->n_layers;

    if (UNLIKELY(p->flags & PKT_QUOTED))
        while (n > 0 && p->layers[n - 1].hdr != &icmp_hdr && p->layers[n - 1].hdr != &icmp6_hdr)
            n--;
    return n;
}

/* An InfiniBand packet that is no MAD: its innermost header with a text of its own is the BTH. */
static bool bth_speaks(const struct pkt *p)
{
    return (p->have & (H_BTH | H_MAD)) == H_BTH && !(p->flags & PKT_QUOTED);
}

const char *pkt_column(const struct pkt *p)
{
    static const char *const bth[] = {
        [ENCAP_NONE] = "", [ENCAP_ROCEV2] = "RRoCE", [ENCAP_ROCEV1] = "RoCE", [ENCAP_IB] = "InfiniBand"};

    if (LIKELY(bth_speaks(p)))
        return bth[p->encap];
    for (unsigned i = column_layers(p); i-- > 0;) {
        if (p->layers[i].hdr->column)
            return p->layers[i].hdr->column;
        if (p->layers[i].hdr == &bth_hdr)
            return bth[p->encap];
    }
    return "";
}

/* "message 7, packet 3 of 8, 8192 bytes", for messages of several packets. */
static void message_info(struct buf *b, const struct pkt_note *n)
{
    buf_mem(b, " [message ", 10);
    buf_dec(b, n->msg);
    buf_mem(b, ", packet ", 9);
    buf_dec(b, n->msg_packet);
    if (n->have & NOTE_MSG_PACKETS) {
        buf_mem(b, " of ", 4);
        buf_dec(b, n->msg_packets);
    }
    if (n->have & NOTE_MSG_BYTES) {
        buf_mem(b, ", ", 2);
        buf_dec(b, n->msg_bytes);
        buf_mem(b, " bytes", 6);
    }
    buf_char(b, ']');
}

/* What the Info column shows of these, and more. */
#define NOTE_INFO (NOTE_RETRANS | NOTE_TWICE | NOTE_MSG | NOTE_REQUEST | NOTE_ACKED)

/* What context adds to the Info column. */
static void note_info(struct buf *b, const struct pkt_note *n)
{
    if (n->have & NOTE_RETRANS)
        buf_mem(b, " [retransmission]", 17);
    if (n->have & NOTE_TWICE)
        buf_mem(b, " [captured twice]", 17);
    if (n->have & NOTE_MSG && (n->msg_packet > 1 || !(n->have & NOTE_MSG_PACKETS) || n->msg_packets > 1))
        message_info(b, n);
    if (n->have & NOTE_REQUEST) {
        buf_mem(b, " [request in ", 13);
        buf_dec(b, n->request_frame);
        buf_char(b, ']');
    }
    if (n->have & NOTE_ACKED) {
        buf_mem(b, " [answers ", 10);
        buf_dec(b, n->acked_first);
        if (n->acked_last != n->acked_first) {
            buf_char(b, '-');
            buf_dec(b, n->acked_last);
        }
        buf_char(b, ']');
    }
}

/* The text of the innermost layer that has one. */
static void layer_info(struct buf *b, const struct pkt *p)
{
    for (unsigned i = column_layers(p); i-- > 0;)
        if (p->layers[i].hdr->info) {
            p->layers[i].hdr->info(b, p, &p->layers[i]);
            return;
        }
}

/* What is wrong or missing. */
static void mark_info(struct buf *b, const struct pkt *p)
{
    if (p->flags & PKT_MALFORMED) {
        buf_puts(b, " [malformed: ");
        buf_puts(b, p->why);
        buf_char(b, ']');
    }
    if (p->flags & PKT_FRAGMENT && p->have & H_BTH)
        buf_puts(b, " [IP fragment]");
    if (p->flags & PKT_CUT)
        buf_puts(b, " [cut by the snap length]");
    if (p->icrc == CRC_BAD)
        buf_puts(b, " [bad ICRC]");
}

void pkt_info(struct buf *b, const struct pkt *p)
{
    if (LIKELY(bth_speaks(p)))
        bth_hdr.info(b, p, NULL);
    else
        layer_info(b, p);
    if (p->note.have & NOTE_INFO)
        note_info(b, &p->note);
    if (UNLIKELY(p->flags & (PKT_MALFORMED | PKT_FRAGMENT | PKT_CUT) || p->icrc == CRC_BAD))
        mark_info(b, p);
}

/* An endpoint's address: `ip` if there is one, else the LID, else the MAC address `mac` bytes into the Ethernet
 * header. */
static void address(struct buf *b, const struct pkt *p, const uint8_t *ip, uint16_t lid, unsigned mac)
{
    if (p->addr_len == 4) {
        buf_ipv4(b, ip);
    } else if (p->addr_len == 16) {
        buf_ipv6(b, ip);
    } else if (p->have & H_LRH) {
        buf_mem(b, "LID: ", 5);
        buf_dec(b, lid);
    } else if (p->have & H_ETH) {
        for (unsigned i = 0; i < p->n_layers; i++)
            if (p->layers[i].hdr == &eth_hdr || p->layers[i].hdr == &eth_len_hdr) {
                buf_mac(b, p->data + p->layers[i].off + mac);
                return;
            }
    }
}

void pkt_source(struct buf *b, const struct pkt *p)
{
    address(b, p, p->src, p->lrh.slid, 6);
}

void pkt_destination(struct buf *b, const struct pkt *p)
{
    address(b, p, p->dst, p->lrh.dlid, 0);
}
