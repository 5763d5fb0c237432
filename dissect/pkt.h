/* layer 1 (wire): a decoded packet. */
#ifndef RDMATRACE_PKT_H
#define RDMATRACE_PKT_H

#include "dissect/ib/ib.h"
#include "dissect/ib/icrc.h"
#include "dissect/ib/opcode.h"
#include "frame.h"

/* One header found in a packet. */
struct layer {
    const struct hdr *hdr;
    uint32_t off; /* of its first byte in the frame */
    uint32_t len; /* bytes of it that were captured */
};

#define PKT_LAYERS 48 /* a packet with more headers is malformed */

/* How the InfiniBand transport is carried. */
enum encap {
    ENCAP_NONE,   /* no InfiniBand packet */
    ENCAP_ROCEV2, /* UDP over IPv4 or IPv6 */
    ENCAP_ROCEV1, /* EtherType 0x8915 and GRH */
    ENCAP_IB,     /* native: LRH */
};

/* Flags of a packet; masks of these bits. */
enum {
    PKT_MALFORMED = 1u << 0, /* lengths or values contradict each other; pkt.why says how */
    PKT_CUT = 1u << 1,       /* the snap length cut it: the captured bytes are right; pkt.why is not set */
    PKT_GUESS = 1u << 2,     /* an opcode 0x40-0x5f was read as RD or DC without decode_opts.rd_or_dc saying which */
    PKT_FRAGMENT = 1u << 3,  /* an IP fragment other than a whole datagram */
    PKT_TUNNEL = 1u << 4,    /* the addresses in pkt are those inside of a tunnel */
    PKT_QUOTED = 1u << 5,    /* the layers after the ICMP header describe the packet that the ICMP error quotes */
};

/* How opcodes 0x40-0x5f are read. */
enum rd_or_dc {
    RD_OR_DC_GUESS, /* DC on RoCE, RD on native InfiniBand */
    RD_OR_DC_RD,
    RD_OR_DC_DC,
};

#define ETHERTYPE_ROCEV1 0x8915

struct decode_opts {
    uint16_t udp_ports[8]; /* destination ports of RoCEv2 besides 4791 */
    unsigned n_udp_ports;  /* at most 8 */
    enum rd_or_dc rd_or_dc;
    bool verify; /* calculate ICRC and VCRC */
    /* stop after the extended transport headers: no payload, pad, ICRC, management datagram */
    bool headers_only;
};

/* What a first pass over the capture found about a frame: a broken rule, or that it belongs to an incident. */
struct pkt_mark {
    uint64_t frame;      /* number in its file */
    const char *finding; /* id of the rule that it breaks, such as "SEQ-01"; NULL: none */
    const char *cause;   /* of the incident that it belongs to, such as "packet-loss"; NULL: none */
    uint32_t number;     /* of the finding or incident in its report, from 1; 0: a finding that is not listed there */
    uint16_t file;       /* index of the file, as in struct frame */
};

/* What earlier packets say about this one. src/conn/annotate.c fills it; the wire layer only names its fields and
 * prints them. Frame numbers are those of the file; 0: not known. */
struct pkt_note {
    uint32_t have;          /* NOTE_* */
    uint32_t conn;          /* number of the connection, from 1 */
    uint32_t src_qpn;       /* source QP: of the connection, or of the DETH */
    uint32_t pmtu;          /* path MTU of the connection in bytes */
    const char *upper;      /* upper protocol, e.g. "NVMe/RDMA" */
    uint32_t msg;           /* number of the message in its connection and direction, from 1 */
    uint32_t msg_packet;    /* position of the packet in its message, from 1 */
    uint32_t msg_packets;   /* packets of the whole message */
    uint64_t msg_bytes;     /* payload bytes of the whole message */
    uint64_t request_frame; /* frame of the request that this responds to */
    uint64_t acked_first;   /* first and last frame that this response acknowledges */
    uint64_t acked_last;
    /* with layers of rdma_mark_hdr, see pkt_marks(): one of each, from that of the layer `first_mark` on */
    const struct pkt_mark *marks;
    uint16_t first_mark;
    bool retransmission; /* the request was sent before, or requests the rest of a READ again */
};
enum {
    NOTE_CONN = 1u << 0,
    NOTE_SRC_QPN = 1u << 1,
    NOTE_PMTU = 1u << 2,
    NOTE_UPPER = 1u << 3,
    NOTE_MSG = 1u << 4,         /* msg, msg_packet */
    NOTE_MSG_PACKETS = 1u << 5, /* msg_packets */
    NOTE_MSG_BYTES = 1u << 6,
    NOTE_REQUEST = 1u << 7,
    NOTE_ACKED = 1u << 8,
    NOTE_RETRANS = 1u << 9, /* the flag `retransmission` is meaningful */
    NOTE_TWICE = 1u << 10,  /* an identical copy was captured before: captured twice, or duplicated by the network */
};

/*
 * A packet as pkt_decode() leaves it. It is never cleared: `have` says which headers are valid, and of the other
 * members only those stated to be always set may be read. Pointers and offsets refer to the frame's
 * data. */
struct pkt {
    const struct frame *frame; /* always set */
    const uint8_t *data;       /* frame->data */
    uint32_t caplen;           /* frame->caplen */
    uint32_t have;             /* always set: H_* bits of the headers that are here in full */
    uint32_t flags;            /* always set: PKT_* */
    uint16_t n_layers;         /* always set */
    uint8_t encap;             /* always set: enum encap */
    uint8_t icrc;              /* always set: enum crc_status; CRC_UNKNOWN without opts.verify */
    uint8_t vcrc;              /* always set, likewise */
    const char *why;           /* with PKT_MALFORMED: what is wrong, a constant text or why_text */
    uint32_t why_off;          /* and at which offset in the frame */
    char why_text[80];         /* "truncated UDP header, 8 bytes needed" */
    uint32_t end; /* offset of the end of the packet according to the headers decoded so far; at most frame->len */
    const char *unverified; /* with icrc == CRC_UNKNOWN: why */

    /* Innermost IP header, or the GRH of RoCEv1 and native InfiniBand; set with H_IP4, H_IP6 or H_GRH. */
    uint8_t addr_len;   /* always set: 4, 16 or 0 (no addresses) */
    uint8_t tos;        /* TOS or traffic class: DSCP in the upper 6 bits, ECN in the lower 2 */
    uint8_t ttl;        /* TTL or hop limit */
    uint32_t ip_off;    /* offset of the header */
    const uint8_t *src; /* addr_len bytes */
    const uint8_t *dst;

    uint32_t udp_off; /* with H_UDP: offset of the innermost UDP header */
    uint16_t sport;   /* with H_UDP, also set for TCP */
    uint16_t dport;
    uint16_t vlan; /* with H_VLAN: tag control information of the innermost tag: PCP (3 bits), DEI (1), VID (12) */

    /* InfiniBand transport; each valid if its H_* bit is set in `have`. */
    struct lrh lrh;
    struct grh grh;
    struct bth bth;
    struct rdeth rdeth;
    struct deth deth;
    struct xrceth xrceth;
    struct feth feth;
    struct reth reth;
    struct atomiceth atomiceth;
    struct aeth aeth;
    struct atomicacketh atomicacketh;
    struct immdt immdt;
    struct ieth ieth;

    /* With H_BTH. */
    const struct opinfo *op; /* row of the opcode table; op->name NULL for an undefined opcode */
    uint32_t ib_off;         /* offset of the LRH, the GRH or (RoCEv2) the BTH */
    uint32_t bth_off;        /* offset of the BTH */
    uint32_t payload_off;    /* offset after the last extended header */
    uint32_t payload_len;    /* bytes of payload on the wire, without pad */
    uint32_t payload_cap;    /* bytes of them that were captured */
    uint32_t icrc_off;       /* offset of the ICRC; it is there if icrc_off + 4 <= caplen */
    uint32_t icrc_got;       /* with icrc good or bad: value in the packet ... */
    uint32_t icrc_want;      /* ... and as calculated */
    uint16_t vcrc_got;       /* likewise */
    uint16_t vcrc_want;

    ns_t since;           /* time since the first frame; pkt_decode() sets 0, the caller may know better */
    struct pkt_note note; /* note.have is always set */

    struct layer layers[PKT_LAYERS];
};

/* Bytes in front of a packet of LINK_ERF that were never on the wire: its record and extension headers. */
uint32_t erf_lead(const struct pkt *p);
/* Bytes of the packet on the wire, without the ERF record in front of it. */
static inline uint32_t pkt_wire_len(const struct pkt *p)
{
    return p->frame->len - (UNLIKELY(p->frame->linktype == LINK_ERF) ? min_u32(erf_lead(p), p->frame->len) : 0);
}
/* Of these, how many were captured. */
static inline uint32_t pkt_wire_caplen(const struct pkt *p)
{
    return p->frame->caplen - (UNLIKELY(p->frame->linktype == LINK_ERF) ? min_u32(erf_lead(p), p->frame->caplen) : 0);
}

/* Decode `frame` into `p`. Never fails: the packet is described as far as it goes, and marked. */
void pkt_decode(struct pkt *p, const struct frame *frame, const struct decode_opts *opts);
/* The same without the short cut that pkt_decode() takes for the usual packet; the tests compare the two. */
void pkt_decode_general(struct pkt *p, const struct frame *frame, const struct decode_opts *opts);

/* Give the packet a layer of rdma_mark_hdr for each of the `n` marks, as far as there is room. */
void pkt_marks(struct pkt *p, const struct pkt_mark *marks, unsigned n);

/* rdma.finding, rdma.incident and rdma.cause; in pkt_marks()'s layers. */
extern const struct hdr rdma_mark_hdr;
/* frame.* and the columns; rdma.*, the members of pkt_note: printers add this layer last when note.have is not 0. */
extern const struct hdr frame_hdr, rdma_hdr;

#endif
