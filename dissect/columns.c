/* layer 1 (wire): the columns of a packet list: protocol, information, addresses. */
#include "dissect/columns.h"

#include "dissect/ip/icmp.h"
#include "dissect/link/eth.h"
#include "dissect/link/link.h"
#include "dissect/pkt.h"

static bool is_icmp(const struct hdr *h)
{
    return h == &icmp_hdr || h == &icmp6_hdr;
}

/* Number of layers that the columns describe: all layers, but for an ICMP error only those up to the ICMP header, and
 * for IP over InfiniBand those up to its header, which speaks for the others. */
static unsigned column_layers(const struct pkt *p)
{
    unsigned n = 0;

    if (LIKELY(!(p->flags & (PKT_QUOTED | PKT_IPOIB))))
        return p->n_layers;
    while (n < p->n_layers && !is_icmp(p->layers[n].hdr) && p->layers[n].hdr != &ipoib_hdr)
        n++;
    return n < p->n_layers ? n + 1 : n;
}

/* True if the columns describe the BTH: an InfiniBand packet of a defined opcode that is no MAD, carries no IP and is
 * not quoted by an ICMP error. Behind another opcode a layer may know more. */
static bool bth_speaks(const struct pkt *p)
{
    return (p->have & (H_BTH | H_MAD)) == H_BTH && !(p->flags & (PKT_QUOTED | PKT_IPOIB)) &&
           LIKELY(p->op->name != NULL);
}

/* The column of the upper protocol that the packet has a layer of; `other`: it has none. */
static const char *upper_column(const struct pkt *p, const char *other)
{
    for (unsigned i = p->n_layers; i-- > 0;)
        if (p->layers[i].hdr->upper && p->layers[i].hdr->column)
            return p->layers[i].hdr->column;
    return other;
}

const char *pkt_column(const struct pkt *p)
{
    static const char *const bth[] = {
        [ENCAP_NONE] = "", [ENCAP_ROCEV2] = "RRoCE", [ENCAP_ROCEV1] = "RoCE", [ENCAP_IB] = "InfiniBand"};

    if (LIKELY(bth_speaks(p)))
        return p->note.have & NOTE_ULP ? upper_column(p, bth[p->encap]) : bth[p->encap];
    for (unsigned i = column_layers(p); i-- > 0;) {
        if (p->layers[i].hdr->column)
            return p->layers[i].hdr->column;
        if (p->layers[i].hdr == &bth_hdr)
            return bth[p->encap];
    }
    return "";
}

static char *text_put(char *q, const char *text, size_t n)
{
    memcpy(q, text, n);
    return q + n;
}

/* Write " [message 7, packet 3 of 8, 8192 bytes]" at `q`; returns the end. */
static char *message_info(char *q, const struct pkt_note *n)
{
    q = text_put(q, " [message ", 10);
    q = text_put(fmt_dec(q, n->msg), ", packet ", 9);
    q = fmt_dec(q, n->msg_packet);
    if (n->have & NOTE_MSG_PACKETS)
        q = fmt_dec(text_put(q, " of ", 4), n->msg_packets);
    if (n->have & NOTE_MSG_BYTES)
        q = text_put(fmt_dec(text_put(q, ", ", 2), n->msg_bytes), " bytes", 6);
    *q++ = ']';
    return q;
}

/* The notes that the Info column shows, and the bytes that all of them together may take. */
#define NOTE_INFO      (NOTE_RETRANS | NOTE_TWICE | NOTE_MSG | NOTE_REQUEST | NOTE_ACKED)
#define NOTE_INFO_ROOM (160 + 7 * FMT_DEC_MAX)

/* Append what the notes say: retransmission, message, request, acknowledged frames. */
static void note_info(struct buf *b, const struct pkt_note *n)
{
    char *q;

    if (!buf_need(b, NOTE_INFO_ROOM))
        return;
    q = b->p + b->len;
    if (n->have & NOTE_RETRANS)
        q = text_put(q, " [retransmission]", 17);
    if (n->have & NOTE_TWICE)
        q = text_put(q, " [captured twice]", 17);
    if (n->have & NOTE_MSG && (n->msg_packet > 1 || !(n->have & NOTE_MSG_PACKETS) || n->msg_packets > 1))
        q = message_info(q, n);
    if (n->have & NOTE_REQUEST) {
        q = fmt_dec(text_put(q, " [request in ", 13), n->request_frame);
        *q++ = ']';
    }
    if (n->have & NOTE_ACKED) {
        q = fmt_dec(text_put(q, " [answers ", 10), n->acked_first);
        if (n->acked_last != n->acked_first) {
            *q++ = '-';
            q = fmt_dec(q, n->acked_last);
        }
        *q++ = ']';
    }
    b->len = (size_t)(q - b->p);
}

/* Append the text of the innermost layer that has one. */
static void layer_info(struct buf *b, const struct pkt *p)
{
    for (unsigned i = column_layers(p); i-- > 0;)
        if (p->layers[i].hdr->info) {
            p->layers[i].hdr->info(b, p, &p->layers[i]);
            return;
        }
}

/* Append the marks: malformed, IP fragment, cut by the snap length, bad ICRC. */
static void mark_info(struct buf *b, const struct pkt *p)
{
    if (p->flags & PKT_MALFORMED)
        buf_printf(b, " [malformed: %s]", p->why);
    if (p->flags & PKT_FRAGMENT && p->have & H_BTH)
        buf_puts(b, " [IP fragment]");
    if (p->flags & PKT_CUT)
        buf_puts(b, p->flags & PKT_SHORT ? " [cut before the capture]" : " [cut by the snap length]");
    if (p->icrc == CRC_BAD)
        buf_puts(b, " [bad ICRC]");
}

void pkt_info(struct buf *b, const struct pkt *p)
{
    if (LIKELY(bth_speaks(p)))
        bth_hdr.info(b, p, NULL);
    else
        layer_info(b, p);
    if (UNLIKELY(p->note.have & NOTE_ULP)) {
        buf_puts(b, " | ");
        buf_puts(b, p->note.ulp);
    }
    if (p->note.have & NOTE_INFO)
        note_info(b, &p->note);
    if (UNLIKELY(p->flags & (PKT_MALFORMED | PKT_FRAGMENT | PKT_CUT) || p->icrc == CRC_BAD))
        mark_info(b, p);
}

/* Append the address of the source or destination: `ip` if the packet has an IP header or GRH, else `lid` if it has an
 * LRH, else the MAC address at byte `mac` of the Ethernet header. */
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
