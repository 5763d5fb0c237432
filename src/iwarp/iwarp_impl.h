/* layer 2b (iwarp): internal: a connection with its streams, FPDUs and operations. */
#ifndef RDMATRACE_IWARP_IWARP_IMPL_H
#define RDMATRACE_IWARP_IWARP_IMPL_H

#include "src/iwarp/again.h"
#include "src/iwarp/iwarp.h"
#include "src/iwarp/stream.h"

/* What is known of the framing of a stream. */
enum framing {
    FRAMING_START, /* it may begin with a request or reply */
    FRAMING_PROBE, /* FPDUs are looked for, from b[0] on; nothing is handed out so far */
    FRAMING_FPDUS, /* b[0] is the first byte of an FPDU, or a marker before it */
    FRAMING_SEEK,  /* FPDUs, but their place was lost */
    FRAMING_NONE,  /* no iWARP so far: only a request or reply at the beginning of a segment begins it */
    FRAMING_OFF,   /* nothing is looked at any more */
};

/* A message under way. */
struct message {
    bool used;
    uint32_t msn, stag;
    uint64_t next; /* message offset, or tagged offset, of the next segment */
    uint64_t op;   /* serial number of its operation; 0: none */
};
#define TAGGED 16 /* WRITEs under way in a direction */
#define LINGER 32 /* operations of a direction that are done and not handed over yet */

/* An operation that is not over. */
struct open_op {
    struct iwarp_op op; /* first */
    uint64_t serial;
    uint32_t end;       /* sequence number behind its last byte; with op.complete */
    uint32_t sink_stag; /* of a READ: where the response goes */
    uint64_t sink_to;
    uint32_t id;                     /* of an atomic: its identifier */
    struct seq_span message, answer; /* where it is in the stream of its side, and its response in the other one */
    bool done;                       /* it lingers: a Terminate may still refuse it */
};

/* A segment that was sent. */
struct sent_segment {
    uint32_t seq, len; /* len 0: none */
    uint16_t id;       /* IP identification; 0: it has none */
    uint64_t frame;
    ns_t ts;
};
#define SENT_SEGMENTS 64 /* the latest ones of a direction */

/* What TCP repairs of one direction. */
struct repairs {
    struct sent_segment sent[SENT_SEGMENTS];
    uint32_t at;   /* segments so far */
    uint32_t dups; /* duplicate ACKs of the other end in a row */
    uint32_t end;  /* with `open`: the sequence number that is to be acknowledged */
    bool open;     /* `repair` waits for its ACK */
    struct iwarp_repair repair;
    ns_t until; /* end of the losses that are over */
    struct lost_span {
        ns_t from, sent, to; /* as in struct iwarp_repair */
        bool dups;
    } loss[IWARP_LOSSES]; /* those that are over: loss[i % IWARP_LOSSES] */
    uint32_t n_losses;
};

/* One direction. */
struct side {
    struct stream stream;
    struct repairs repairs;
    struct again again; /* retransmitted segments */
    enum framing framing;
    unsigned tries;     /* segments that looked like FPDUs and were not */
    uint64_t frames_at; /* place in the stream of the first byte behind request or reply; markers are counted from it */
    bool syn;           /* the beginning of the stream was seen */
    bool timing;        /* a segment was sent whose ACK is to come: */
    uint32_t timed_end; /* sequence number behind it */
    ns_t timed;         /* when it passed */
    bool unsure;        /* FPDUs were lost or damaged: MSNs and offsets are not known */
    uint32_t seek;      /* FRAMING_SEEK: bytes looked at */
    uint32_t nonsense;  /* FPDUs in a row that are not right */
    uint64_t told;      /* place in the stream: FPDUs before it were handed out, and not shown so far */
    /* operations */
    uint32_t msn[DDP_QUEUES]; /* next one of each queue */
    bool have_msn[DDP_QUEUES];
    uint64_t msn_frame[DDP_QUEUES]; /* of the message before */
    struct message message[DDP_QUEUES], tagged[TAGGED];
    unsigned tagged_at;
    struct open_op *open; /* in the order in which they began */
    uint32_t n, cap;
    uint64_t serial;
};

/* A TCP connection. */
struct tcp_conn {
    struct iwarp_conn c; /* first */
    struct tcp_conn *chain;
    struct tcp_conn *older, *newer; /* by use */
    bool known;                     /* it is iWARP: c.number is given */
    bool ended;                     /* FIN of both, or RST */
    bool fin[IWARP_SIDES];
    struct side side[IWARP_SIDES];
};

#define CHAINS 1024 /* a power of two */

#define SHOWN_MAX 256 /* requests, replies and FPDUs of a packet that are shown */

struct iwarp {
    struct iwarp_sub sub[IWARP_USERS];
    unsigned n_subs;
    uint32_t (*number)(void *user);
    void *user;
    struct tcp_conn *chain[CHAINS];
    struct tcp_conn *oldest, *newest;
    uint32_t n_conns;        /* TCP connections kept */
    uint32_t n_known;        /* iWARP connections so far */
    struct tcp_conn **known; /* those kept, in the order of their numbers */
    uint32_t n_kept, cap_kept;
    uint64_t bytes;       /* of all streams */
    const struct pkt *p;  /* packet at hand; behind the last one none but `frame` */
    bool muted;           /* iwarp_mute() */
    struct frame frame;   /* of the latest segment, without its bytes */
    uint32_t payload_off; /* offset of its TCP payload */
    uint64_t payload_at;  /* place in its stream */
    uint32_t payload_cap; /* 0: it is not in order */
    struct buf scratch;   /* FPDUs without their markers */
    struct buf message;   /* bytes of layers that are not in the packet */
    struct iwarp_unit shown[SHOWN_MAX];
    unsigned n_shown;
    bool hidden;   /* what is handed out is not shown in the packet at hand */
    uint32_t conn; /* of the packet at hand: number of its connection, 0: none */
    bool again;    /* it is a TCP segment that was retransmitted */
};

/* --- fpdu.c ----------------------------------------------------------------------------------- */

/* Read the bytes in order of one side. */
void fpdu_read(struct iwarp *w, struct tcp_conn *t, enum iwarp_side side);
/* Whether the first bytes of a segment, `n` captured ones, may be those of an FPDU without a marker. */
bool fpdu_looks_right(const uint8_t *b, uint32_t n);
/* The place in the stream was lost. */
void fpdu_lost(struct side *s);

/* --- rdmap.c ---------------------------------------------------------------------------------- */

/* A whole FPDU whose CRC is right. */
void rdmap_take(struct iwarp *w, struct tcp_conn *t, const struct iwarp_unit *u);
/* Whether the segment continues a message exactly: its headers are right, even if the CRC is not. */
bool rdmap_continues(const struct side *s, const struct ddp *d);
/* A segment of `side` was retransmitted. */
void rdmap_again(struct tcp_conn *t, enum iwarp_side side, const struct seq_span *at);
/* TCP of the other end has acknowledged everything before `ack`. */
void rdmap_acked(struct iwarp *w, struct tcp_conn *t, enum iwarp_side side, uint32_t ack);
/* Hand over all open operations of both sides. */
void rdmap_flush(struct iwarp *w, struct tcp_conn *t, enum iwarp_end why);

/* --- repairs.c -------------------------------------------------------------------------------- */

/* Before the stream takes a segment of its side with this IP identification. */
void repairs_segment(struct iwarp *w, struct tcp_conn *t, enum iwarp_side side, const struct segment *g, uint16_t id);
/* A segment that takes sequence numbers up to `end` is sent, not for the first time if `again`: times the way to the
 * other end and back. */
void repairs_time(struct tcp_conn *t, enum iwarp_side side, uint32_t end, bool again, ns_t now);
/* Before the stream of `side` learns that the other end has acknowledged everything before `ack`; `bare`: in a segment
 * without payload. */
void repairs_ack(struct iwarp *w, struct tcp_conn *t, enum iwarp_side side, uint32_t ack, bool bare);
/* The repair of a side that is open; false: none is. */
bool repairs_open(const struct tcp_conn *t, enum iwarp_side side, struct iwarp_repair *r);

/* --- iwarp.c ---------------------------------------------------------------------------------- */

void iwarp_hand_out(struct iwarp *w, const struct iwarp_unit *u);
/* The packet at hand shows a unit that was handed out before. */
void iwarp_show_late(struct iwarp *w, const struct iwarp_unit *u);
void iwarp_report(struct iwarp *w, const struct iwarp_bad *b);
/* The number of an operation that begins. */
uint64_t iwarp_number(const struct iwarp *w);
void iwarp_over(struct iwarp *w, const struct iwarp_op *op);
void iwarp_repair_over(struct iwarp *w, const struct iwarp_repair *r);
/* A segment was retransmitted. */
void iwarp_again(struct iwarp *w, struct tcp_conn *t, enum iwarp_side side, const struct seq_span *at);
/* The TCP connection is iWARP. */
void iwarp_recognised(struct iwarp *w, struct tcp_conn *t, enum iwarp_how how);

#endif
