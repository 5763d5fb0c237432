/* layer 2b (iwarp): iWARP connections in TCP: FPDUs out of the streams, and the operations that they carry.
 *
 *     segment -> stream (stream.h) -> MPA request, reply, FPDU -> DDP segment -> operation
 *                                     fpdu()                      bad()          over()
 *
 * A connection is recognised by the MPA request or reply at the beginning of a segment. In a capture that begins later,
 * one end's stream is taken for iWARP if IWARP_SURE FPDUs in a row, from the beginning of a segment on, are right in
 * all their headers, and either all CRCs are right or all are zero; markers are not looked for there.
 *
 * Where bytes are missing, FPDUs are found again where the one before ends, or by the same test. Nothing is said of an
 * FPDU that was not captured whole, nor of the order of messages across a gap.
 *
 * Bounds: IWARP_STREAMS TCP connections, the one unused for longest is given up; for each direction what stream.h
 * states, and IWARP_OPEN operations that are not over; IWARP_BYTES in all streams. */
#ifndef RDMATRACE_IWARP_IWARP_H
#define RDMATRACE_IWARP_IWARP_H

#include "dissect/iwarp/iwarp.h"

#define IWARP_STREAMS 4096
#define IWARP_OPEN    256 /* operations of a direction that are not over; the oldest is given up */
#define IWARP_BYTES   (UINT64_C(256) << 20)
#define IWARP_SURE    3
#define IWARP_USERS   8 /* subscribers */

/* The ends of a TCP connection as a packet names them. */
struct iwarp_ends {
    uint32_t tap;
    uint64_t network; /* in which the addresses are valid */
    uint8_t src[16], dst[16];
};

/* The ends of a connection: the initiator sends the MPA request. Without one, it is the end with the higher port. */
enum iwarp_side { IWARP_INITIATOR, IWARP_RESPONDER, IWARP_SIDES };
static inline enum iwarp_side iwarp_other(enum iwarp_side side)
{
    return side == IWARP_INITIATOR ? IWARP_RESPONDER : IWARP_INITIATOR;
}

/* How a connection was recognised. */
enum iwarp_how { IWARP_BY_START, IWARP_BY_FPDUS };

/* Where the time went that a direction lost: from a lost segment (or the one that came in its place) to the ACK of its
 * retransmission, each nanosecond once. */
enum iwarp_time {
    IWARP_TIME_DUPS,   /* until the retransmission, which duplicate ACKs asked for */
    IWARP_TIME_TIMER,  /* until the retransmission, without duplicate ACKs */
    IWARP_TIME_RESEND, /* from the retransmission to its ACK */
    IWARP_TIMES
};

/* What one end sent. */
struct iwarp_sent {
    bool have_start;         /* its MPA request or reply was seen */
    struct mpa_start start;  /* with have_start */
    uint64_t packets;        /* TCP segments, also those without payload */
    uint64_t segments;       /* TCP segments with payload, retransmissions included */
    uint64_t bytes;          /* of them on the wire, with all headers */
    uint64_t again;          /* segments that were seen before */
    uint64_t retransmitted;  /* segments that TCP sent again, whether or not the first copy was captured */
    uint64_t reordered;      /* segments that came behind a later one */
    uint64_t lacking;        /* bytes of the stream that were not captured */
    uint64_t lacking_data;   /* of them in WRITEs and READ responses of which the headers were captured */
    uint64_t fpdus, payload; /* and bytes of payload in them */
    uint64_t bad_crc;
    uint64_t ops[RDMAP_OPCODES];      /* messages by opcode, without READ responses */
    ns_t lost[IWARP_TIMES];           /* of losses that are over */
    bool terminated;                  /* it sent a Terminate */
    struct rdmap_terminate terminate; /* with `terminated` */
    uint64_t terminate_frame;
};

/* From a segment, SYN or payload, that was sent once, to its ACK by an end. */
struct iwarp_trip {
    ns_t least; /* the shortest time; with `n` */
    uint64_t n; /* how many were seen */
};

struct iwarp_conn {
    uint32_t number; /* of the connection */
    bool again;      /* another tap saw it before */
    uint32_t tap;
    uint64_t network;
    uint8_t addr[IWARP_SIDES][16]; /* as in iwarp_ends */
    uint16_t port[IWARP_SIDES];
    enum iwarp_how how;
    bool crc;                  /* CRCs are used */
    bool markers[IWARP_SIDES]; /* in what this end sends */
    bool refused;              /* the reply rejects the connection */
    uint64_t first_frame, last_frame;
    ns_t first, last; /* their times */
    struct iwarp_trip trip[IWARP_SIDES];
    struct iwarp_sent sent[IWARP_SIDES];
};

/* A marker of an FPDU. */
#define IWARP_MARKERS 8 /* of an FPDU that are reported */
struct iwarp_marker {
    uint8_t b[MPA_MARKER_LEN];
};

/* An MPA request, a reply, or an FPDU that a packet completes; valid until the next packet. */
struct iwarp_unit {
    struct iwarp_conn *conn;
    enum iwarp_side side; /* who sent it */
    bool start;           /* a request or reply: `body` is all of it */
    struct ulp_body body; /* of an FPDU all of its bytes but markers; `off` is LAYER_MESSAGE unless in the packet */
    bool whole;           /* all of its bytes were captured; else nothing but `lacks` is said of it */
    bool crc, crc_good;   /* of an FPDU: a CRC is used; it is right */
    uint32_t crc_want;    /* with `crc`: as calculated */
    bool readable;        /* `ddp` is filled */
    struct ddp ddp;
    enum ddp_wrong wrong;   /* with `readable` */
    const uint8_t *payload; /* with `readable` */
    uint32_t payload_len;
    uint32_t captured; /* likewise: first bytes of the payload, behind the DDP header in `body`, that were captured */
    uint64_t first_frame, frame; /* of its first byte; of the packet that completes it */
    ns_t first, now;
    uint32_t seq, end;  /* sequence number of its first byte; behind it */
    unsigned n_markers; /* all of them; IWARP_MARKERS are in `marker` */
    struct iwarp_marker marker[IWARP_MARKERS];
};

/* Where the payload of a readable FPDU begins: `captured` bytes of it are there. */
static inline const uint8_t *iwarp_payload(const struct iwarp_unit *u)
{
    return u->body.b + MPA_LENGTH_LEN + u->ddp.head;
}

/* What contradicts the documents. */
enum iwarp_fault {
    IWARP_BAD_CRC,
    IWARP_BAD_MARKER,      /* it does not point to the beginning of its FPDU */
    IWARP_BAD_LENGTH,      /* the ULPDU is too short for its headers, or the message for its opcode */
    IWARP_BAD_VERSION,     /* of DDP or RDMAP */
    IWARP_BAD_OPCODE,      /* not defined, or with the wrong buffer model or queue */
    IWARP_BAD_MSN,         /* not the next one of its queue */
    IWARP_BAD_MO,          /* not where the segment before ended */
    IWARP_BAD_RESPONSE,    /* a READ response without a READ request */
    IWARP_TERMINATED,      /* a Terminate */
    IWARP_AFTER_TERMINATE, /* the sender of a Terminate goes on */
    IWARP_FAULTS
};
struct iwarp_bad {
    enum iwarp_fault fault;
    const struct iwarp_unit *unit;
    const char *seen, *expected; /* valid during the call; `expected` may be NULL */
    uint64_t cause;              /* frame that proves it, 0: none */
};

enum iwarp_end {
    IWARP_OPEN_STILL, /* not over at the end of the capture */
    IWARP_DONE,       /* a READ or atomic has its response; TCP has acknowledged any other */
    IWARP_REFUSED_OP, /* the other end sent a Terminate that quotes it */
    IWARP_BEHIND,     /* it came behind that one, or was open when a Terminate quoted none */
    IWARP_LEFT,       /* the TCP connection ended before */
    IWARP_GIVEN_UP,   /* IWARP_OPEN later ones began */
};

/* An operation: a message, for a READ or atomic with its response. */
struct iwarp_op {
    const struct iwarp_conn *conn;
    enum iwarp_side side; /* who posted it */
    uint64_t number;      /* that begun() gave it; 0: none */
    uint8_t opcode;       /* enum rdmap_opcode */
    uint8_t atomic;       /* of an atomic: 0 FetchAdd, 1 Swap, 2 CmpSwap */
    uint8_t ended;        /* enum iwarp_end */
    bool muted;           /* it began while iwarp_mute() was on: it is not handed out */
    bool begun, complete; /* its first segment was seen; its last one */
    uint32_t msn;         /* of an untagged one */
    uint32_t stag;        /* remote memory: of a WRITE, READ or atomic; of a SEND with Invalidate the STag */
    uint64_t to;          /* offset there */
    uint64_t bytes;       /* payload; of a READ the requested length */
    uint64_t answered;    /* bytes of a READ that came */
    uint32_t fpdus;       /* of its message, and of its response */
    uint32_t again;       /* TCP segments of these that were retransmitted */
    uint64_t first_frame, last_frame; /* of its message */
    uint64_t done_frame;              /* with IWARP_DONE */
    ns_t start, last, done;           /* first byte, last byte of the message; with done_frame */
};

/* What became of a segment that came again, or out of its order: TCP's recovery, as far as a tap sees it. */
enum iwarp_repaired {
    IWARP_LOST_BEFORE, /* a later one came first, and this one was sent after that */
    IWARP_LOST_AFTER,  /* it was seen, not acknowledged, and retransmitted */
    IWARP_NEEDLESS,    /* it was retransmitted although it had been acknowledged */
    IWARP_DUPLICATED,  /* the same packet came twice */
    IWARP_OVERTAKEN,   /* a later one came first, and was sent after this one */
};
struct iwarp_repair {
    const struct iwarp_conn *conn;
    enum iwarp_side side; /* who sent the segment */
    enum iwarp_repaired kind;
    uint32_t seq, end_seq; /* of the segment; of a loss up to the end of the last one that was retransmitted in a row */
    uint32_t segments;     /* retransmitted in a row, from 1 */
    uint32_t dups;         /* duplicate ACKs before the first retransmission */
    uint64_t lost;         /* frame of the first copy; 0: not captured */
    uint64_t instead;      /* frame of the later one that came first; 0: none */
    uint64_t again;        /* frame of the retransmission, or of the duplicate */
    uint64_t ack;          /* frame of the ACK that ended it; 0: none was captured */
    ns_t start;            /* of the first copy, or of the segment that came instead */
    ns_t from;             /* likewise, or the end of an earlier loss of the direction, if that is later */
    ns_t sent, end;        /* of the retransmission; of the ACK, or else likewise */
};

struct iwarp_sub {
    void *user;
    void (*fpdu)(void *user, const struct pkt *p, const struct iwarp_unit *u); /* likewise a request or reply */
    void (*bad)(void *user, const struct pkt *p, const struct iwarp_bad *b);
    uint64_t (*begun)(void *user); /* an operation begins: its number; all that have this must give the same */
    void (*over)(void *user, const struct iwarp_op *op);
    void (*repaired)(void *user, const struct iwarp_repair *r);
    /* a segment with the bytes [seq, end) was retransmitted; before what it completes */
    void (*again)(void *user, const struct iwarp_conn *c, enum iwarp_side side, uint32_t seq, uint32_t end);
    /* the connection is forgotten: it is valid for the last time */
    void (*gone)(void *user, const struct iwarp_conn *c);
};

struct iwarp;
/* `number` gives each connection its number. NULL without memory. */
struct iwarp *iwarp_new(uint32_t (*number)(void *user), void *user);
void iwarp_free(struct iwarp *w);
/* *s is copied; any of its functions may be NULL. False: there are IWARP_USERS. */
bool iwarp_subscribe(struct iwarp *w, const struct iwarp_sub *s);
/* A packet whose innermost layer is a TCP header, between `ends`. */
void iwarp_packet(struct iwarp *w, const struct pkt *p, const struct iwarp_ends *ends);
/* The packet has no TCP header, and nothing to show; nor has a packet with a BTH, which is passed to none of these. */
void iwarp_no_packet(struct iwarp *w);
/* What the packets from now on complete or begin is not handed out, but followed. */
void iwarp_mute(struct iwarp *w, bool muted);
/* All packets are there: gaps are given up, and the subscriber with this `user` gets the operations that are open, by
 * over(), and what TCP had not repaired, by repaired(), once for each call. Connections stay valid. */
void iwarp_finish(struct iwarp *w, const void *user);
/* The packet shows the number of its connection, from its MPA request on, and what it completed: layers are added to
 * it. After iwarp_packet() for the same packet. */
void iwarp_show(const struct iwarp *w, struct pkt *p);
/* Request, reply or FPDU number `i` of those that iwarp_show() shows in the packet; false: there are no more. *u is
 * valid until the next packet. */
bool iwarp_shown(const struct iwarp *w, const struct pkt *p, unsigned i, struct iwarp_unit *u);
/* Whether the latest packet belongs to an iWARP connection. */
bool iwarp_has(const struct iwarp *w);
/* Connections so far; number `i` of those kept, NULL behind the last one. */
uint32_t iwarp_count(const struct iwarp *w);
const struct iwarp_conn *iwarp_at(const struct iwarp *w, uint32_t i);

/* What the direction that `side` sends lost, losses that are not over included: of all of its time; in [from, to), as
 * far as the latest IWARP_LOSSES tell. */
#define IWARP_LOSSES 64
void iwarp_lost(const struct iwarp_conn *c, enum iwarp_side side, ns_t lost[IWARP_TIMES]);
void iwarp_lost_between(const struct iwarp_conn *c, enum iwarp_side side, ns_t from, ns_t to, ns_t lost[IWARP_TIMES]);

/* "SEND", "RDMA READ", "FetchAdd". */
const char *iwarp_op_str(const struct iwarp_op *op);
/* Why its end is not known: "no response in the capture"; "" for IWARP_DONE. */
const char *iwarp_end_str(enum iwarp_end e);

#endif
