/* layer 1 (wire): a decoded packet. */
#ifndef RDMATRACE_PKT_H
#define RDMATRACE_PKT_H

#include "dissect/decode_opts.h"
#include "dissect/frame_fields.h"
#include "dissect/ib/ib.h"
#include "dissect/ib/icrc.h"
#include "dissect/ib/opcode.h"
#include "frame.h"

/* One header of a packet. */
struct layer {
    const struct hdr *hdr;
    uint32_t off; /* offset of the first byte in the frame */
    uint32_t len; /* captured bytes of the header */
};

/* Flag in layer.off: the layer's bytes are not in the frame but in pkt.message, which was put together from several
 * packets; the other bits are the offset there. It is above every offset in a frame. */
#define LAYER_MESSAGE UINT32_C(0x80000000)

#define STREAM_NONE UINT32_MAX
#define PKT_LAYERS  48 /* headers of a packet, at most */

/* Flags of a packet; masks of these bits. */
enum {
    PKT_MALFORMED = 1u << 0, /* lengths or values contradict each other; pkt.why says how */
    PKT_CUT = 1u << 1,       /* cut by the snap length or a mirror, which is no error: it does not set pkt.why */
    PKT_GUESS = 1u << 2,     /* opcode 0x40-0x5f, with RD_OR_DC_GUESS: read as RD or DC by the encapsulation */
    PKT_FRAGMENT = 1u << 3,  /* an IP fragment, not a whole datagram */
    PKT_TUNNEL = 1u << 4,    /* the packet is in a tunnel; addresses in struct pkt are those of the inner packet */
    PKT_QUOTED = 1u << 5,    /* the layers after the ICMP header describe the packet that the ICMP error quotes */
    PKT_SHORT =
        1u << 6, /* a header's length exceeds the frame: a mirror cut it, or with PKT_MALFORMED it was damaged */
    PKT_IPOIB = 1u << 7, /* the payload carries IP over InfiniBand: the layers from its header on describe it */
};

/*
 * A decoded packet. pkt_decode() does not clear the struct: a member is valid if it is marked as always set, or under
 * the condition that is given (a header: if its H_* bit is set in `have`). Offsets are bytes from the start of the
 * frame; pointers point into the frame's data. Numbers are in host order.
 */
struct pkt {
    /* What is asked of every packet of RoCE comes first, in few lines of the cache: another thread may have decoded it.
     */
    const struct frame *frame; /* always set */
    const uint8_t *data;       /* frame->data */
    uint32_t caplen;           /* frame->caplen */
    uint32_t have;             /* always set: H_* bits of the headers that were captured in full */
    uint32_t flags;            /* always set: PKT_* */
    uint16_t n_layers;         /* always set */
    uint8_t encap;             /* always set: enum encap */
    uint8_t icrc;              /* always set: enum crc_status; CRC_UNKNOWN without opts.verify */
    uint8_t vcrc;              /* always set: the same for the VCRC */
    /* Innermost IP header, or the GRH of RoCEv1 and native InfiniBand; set with H_IP4, H_IP6 or H_GRH. */
    uint8_t addr_len; /* always set: 4, 16 or 0 (no addresses) */
    uint8_t tos;      /* TOS or traffic class: DSCP in the upper 6 bits, ECN in the lower 2 */
    uint8_t ttl;      /* TTL or hop limit */
    uint32_t ip_off;  /* offset of this IP header or GRH */
    uint32_t udp_off; /* with H_UDP: offset of the innermost UDP header */
    uint32_t bth_off; /* with H_BTH: offset of the BTH */
    uint16_t vlan;    /* with H_VLAN: tag control information of the innermost tag: PCP (3 bits), DEI (1), VID (12) */

    /* InfiniBand headers: each is valid if its H_* bit is set in `have`. Those that most packets lack follow below. */
    struct bth bth;
    const struct opinfo *op; /* with H_BTH: row of the opcode table; op->name is NULL for an undefined opcode */
    /* With H_BTH. */
    uint32_t payload_off; /* offset after the last extended header */
    uint32_t payload_len; /* bytes of payload on the wire, without pad */
    uint32_t payload_cap; /* captured bytes of the payload */
    uint32_t icrc_off;    /* offset of the ICRC; it was captured if icrc_off + 4 <= caplen */
    uint32_t icrc_got;    /* with CRC_GOOD or CRC_BAD: the ICRC in the packet, its 4 bytes read as big-endian */

    struct aeth aeth;
    struct reth reth;
    /* always set: the network in which the addresses are valid, 0: need not be told apart; pkt_decode() sets 0,
     * networks_apply() (src/taps/networks.h) sets it */
    uint64_t network;
    const uint8_t *src; /* source address, addr_len bytes */
    const uint8_t *dst;
    uint16_t sport; /* with H_UDP, or after a TCP header: ports */
    uint16_t dport;
    uint32_t ib_off; /* with H_BTH: offset of the LRH, the GRH or (RoCEv2) the BTH */

    /* ns since the first frame, the frame before, and the frame displayed before; pkt_decode() sets 0,
     * frame_times_see() sets them */
    ns_t since, delta, delta_displayed;

    /* What is set for every packet, and asked of few. */
    uint32_t end;      /* offset of the packet's end according to the headers decoded so far; it may be above caplen */
    uint8_t n_streams; /* of `streams`; pkt_decode() sets 0 */
    const char *unverified; /* with icrc == CRC_UNKNOWN: why the ICRC was not verified */
    struct pkt_note note;   /* note.have is always set */
    struct layer layers[PKT_LAYERS];

    const char *why;    /* with PKT_MALFORMED: what is wrong; a constant text, or why_text */
    uint32_t why_off;   /* with PKT_MALFORMED: offset of the error */
    char why_text[80];  /* "truncated UDP header, 8 bytes needed" */
    uint32_t icrc_want; /* with CRC_GOOD or CRC_BAD: the ICRC as calculated, in the same byte order */
    uint16_t vcrc_got;  /* as icrc_got for the VCRC, 2 bytes */
    uint16_t vcrc_want;

    /* Further InfiniBand headers. */
    struct lrh lrh;
    struct grh grh;
    struct rdeth rdeth;
    struct deth deth;
    struct xrceth xrceth;
    struct feth feth;
    struct atomiceth atomiceth;
    struct atomicacketh atomicacketh;
    struct immdt immdt;
    struct ieth ieth;

    /* numbers of the conversations of its UDP and TCP headers, outermost first, from 0; STREAM_NONE: not known */
#define PKT_STREAMS 4
    uint32_t streams[PKT_STREAMS];
    /* of layers with LAYER_MESSAGE: set by src/ulp, valid until its next packet */
    const uint8_t *message;
    uint8_t to_the_line[8];
};
_Static_assert(sizeof(struct pkt) % CACHE_LINE == 0,
               "packets of an array begin at the same place of a line of the cache");

/* The first byte of a layer. */
static inline const uint8_t *layer_bytes(const struct pkt *p, const struct layer *l)
{
    return UNLIKELY(l->off & LAYER_MESSAGE) ? p->message + (l->off & ~LAYER_MESSAGE) : p->data + l->off;
}

/* Bytes before a packet of LINK_ERF that were not on the wire: the ERF record header and extension headers. */
uint32_t erf_lead(const struct pkt *p);
/* Bytes of the packet on the wire, without the ERF record in front of it. */
static inline uint32_t pkt_wire_len(const struct pkt *p)
{
    return p->frame->len - (UNLIKELY(p->frame->linktype == LINK_ERF) ? min_u32(erf_lead(p), p->frame->len) : 0);
}
/* Captured bytes of the packet, without the ERF record in front of it. */
static inline uint32_t pkt_wire_caplen(const struct pkt *p)
{
    return p->frame->caplen - (UNLIKELY(p->frame->linktype == LINK_ERF) ? min_u32(erf_lead(p), p->frame->caplen) : 0);
}

/* The frame number in 32 bits, 0 if it is larger. */
static inline uint32_t frame_u32(const struct pkt *p)
{
    return p->frame->number <= UINT32_MAX ? (uint32_t)p->frame->number : 0;
}
/* Class of a response's AETH (enum aeth_type), AETH_ACK if it has none. */
static inline unsigned response_type(const struct pkt *p)
{
    return p->have & H_AETH ? aeth_type(p->aeth.syndrome) : AETH_ACK;
}

/* A getter: the number of the conversation of a UDP or TCP header. */
bool pkt_stream(const struct pkt *p, const struct layer *l, struct value *v);

/* Decode `frame` into `p`. It never fails: a packet that is malformed or cut is decoded as far as possible and marked
 * (PKT_MALFORMED, PKT_CUT). `p` refers to `frame`, which must outlive it. */
void pkt_decode(struct pkt *p, const struct frame *frame, const struct decode_opts *opts);
/* The same without the fast path of pkt_decode() for the usual packet; the tests compare the two. */
void pkt_decode_general(struct pkt *p, const struct frame *frame, const struct decode_opts *opts);

#endif
