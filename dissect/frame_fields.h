/* layer 1 (wire): what is known of a packet as a whole, beside its headers: what earlier packets and a first pass tell.
 */
#ifndef RDMATRACE_DISSECT_FRAME_FIELDS_H
#define RDMATRACE_DISSECT_FRAME_FIELDS_H

#include "dissect/field.h"

struct pkt;

/* What a first pass over the capture found about a frame: a rule that it breaks, or an incident that it is part of. */
struct pkt_mark {
    uint64_t frame;      /* number of the frame in its file */
    const char *finding; /* id of the broken rule, such as "SEQ-01"; NULL: none */
    const char *cause;   /* cause of the incident, such as "packet-loss"; NULL: no incident */
    uint32_t number;     /* number of the finding or incident in its report, from 1; 0: a finding that is not listed */
    uint16_t file;       /* index of the file, as in struct frame */
};

/* What earlier packets of the capture tell about a packet. src/conn/annotate.c fills it; this layer only names and
 * prints the fields. Frame numbers are those in the file; 0: not known. */
struct pkt_note {
    uint32_t have;          /* NOTE_* */
    uint32_t conn;          /* number of the connection, from 1 */
    uint32_t src_qpn;       /* source QP, from the connection or from the DETH */
    uint32_t pmtu;          /* path MTU of the connection in bytes */
    const char *upper;      /* upper-layer protocol, e.g. "NVMe/RDMA" */
    uint32_t msg;           /* number of the message in its connection and direction, from 1 */
    uint32_t msg_packet;    /* position of the packet in its message, from 1 */
    uint32_t msg_packets;   /* packets of the whole message */
    uint64_t msg_bytes;     /* payload bytes of the whole message */
    uint64_t request_frame; /* frame of the request that this packet is a response to */
    uint64_t acked_first;   /* first and last frame that this response acknowledges */
    uint64_t acked_last;
    /* set by pkt_marks(): marks[i] belongs to layers[first_mark + i], a layer of rdma_mark_hdr */
    const struct pkt_mark *marks;
    uint16_t first_mark;
    /* the command of the upper protocol that the packet belongs to (src/ulp) */
    const char *ulp;         /* with NOTE_ULP: in words, "NVMe Write cid 0x3 ..."; valid until the next packet */
    const char *ulp_how;     /* how the protocol was learnt, "CM private data" */
    uint64_t ulp_command;    /* number of the command, from 1, as in `rdmatrace ops` */
    uint64_t ulp_command_in; /* frame of its message */
    uint64_t ulp_offset;     /* offset of the packet's payload in the data of the command */
    uint64_t ulp_missing;    /* the first byte of the message that is not there */
    ns_t ulp_latency;        /* of the response: since the command */
    uint32_t ulp_queue;      /* number of the queue that the connection is */
    bool retransmission;     /* a retransmitted request, or a READ request for the rest of an earlier READ */
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
    NOTE_TWICE = 1u << 10,  /* an identical packet was captured before: captured twice, or duplicated by the network */
    NOTE_ULP_HOW = 1u << 11,
    NOTE_ULP = 1u << 12, /* ulp, ulp_command, ulp_command_in, ulp_queue */
    NOTE_ULP_DATA = 1u << 13,
    NOTE_ULP_DONE = 1u << 14, /* ulp_latency */
    NOTE_ULP_HOLE = 1u << 15, /* ulp_missing */
};

/* The times of the frames before, for frame.time_relative and frame.time_delta. Zero-initialise. */
struct frame_times {
    ns_t first;     /* time of the first frame */
    ns_t before;    /* of the frame before */
    ns_t displayed; /* of the frame displayed before */
    bool begun, any_displayed;
};
/* A packet was decoded: set p->since, p->delta and p->delta_displayed. */
void frame_times_see(struct frame_times *t, struct pkt *p);
/* It is displayed. */
void frame_times_display(struct frame_times *t, const struct pkt *p);
/* A frame of this time is there, but not decoded. */
void frame_times_pass(struct frame_times *t, ns_t ts);

/* Add a layer of rdma_mark_hdr for each of the `n` marks, up to PKT_LAYERS layers. `marks` must outlive `p`. */
void pkt_marks(struct pkt *p, const struct pkt_mark *marks, unsigned n);

/* rdma.finding, rdma.incident and rdma.cause: the header of the layers that pkt_marks() adds. */
extern const struct hdr rdma_mark_hdr;
/* frame_hdr: frame.* and the columns. rdma_hdr: rdma.*, the members of struct pkt_note; printers add its layer last if
 * note.have is not 0. */
extern const struct hdr frame_hdr, rdma_hdr;

#endif
