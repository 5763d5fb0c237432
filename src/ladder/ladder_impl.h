/* layer 3 (ladder): what the parts of the ladder share. */
#ifndef RDMATRACE_LADDER_LADDER_IMPL_H
#define RDMATRACE_LADDER_LADDER_IMPL_H

#include "dissect/iwarp/iwarp.h"
#include "src/explain/explain.h"
#include "src/ladder/ladder.h"

#define CM_RECENT    64 /* latest CM messages, to recognise retransmissions */
#define CM_EXCHANGES 64 /* exchanges of CM messages of one connection */

/* A packet as seen at one tap. */
struct rung {
    struct conn_addr src, dst;
    ns_t ts;
    uint32_t frame, flow; /* flow of the packet itself; FLOW_NONE: connection management */
    uint32_t psn, tap, dqpn, icrc;
    uint16_t len, ip_id;
    uint8_t opcode, syndrome, attr; /* attr: of a CM message, else 0 */
    bool again, bad, aeth;
    bool named;           /* its label names the queue pair: several connections are drawn */
    uint32_t missing;     /* of a request: PSNs before it not seen at its tap */
    uint32_t id, peer_id; /* of a CM message: communication ids of its sender and its receiver; 0: none */
    uint32_t qpn, to_qpn; /* of a CM message: queue pairs in it, 0: none */
    /* Of iWARP: an FPDU, MPA request or reply. Then `opcode` is that of RDMAP or an enum shown (streams.c), `psn` and
     * `icrc` the sequence number behind it, `qpn` and `dqpn` the ports of its sender and its receiver. */
    uint32_t stream;         /* number of the connection; 0: not of iWARP */
    uint32_t msn;            /* of an untagged message; 0: none */
    bool initiator, bad_crc; /* initiator: who sent it */
    bool terminates;         /* `terminate` is filled */
    ns_t later;              /* of a TCP segment that was sent again: since the first copy, or the gap */
    struct rdmap_terminate terminate;
};

/* Communication ids of a CM exchange: of the left end, and of the right one; 0: not known. */
struct cm_ids {
    uint32_t id[2];
};

/* Where a packet was lost, seen from its sender. */
enum lost_at {
    LOST_NOT,
    LOST_BETWEEN, /* the two taps */
    LOST_AFTER,   /* the last tap that it passed */
};

/* A packet as it is drawn, seen by one tap or two. */
struct row {
    const struct rung *at[2]; /* at the tap nearer to the left end, and at the other; NULL: not seen */
    const struct rung *r;     /* at the tap that it passed first */
    ns_t ts;                  /* of `r`, by the clock of the first tap */
    const char *what;         /* name of its incident, or NULL */
    uint8_t lost;             /* enum lost_at */
    bool right;               /* from left to right */
};

/* A line of the diagram: one row, or a run of similar rows. */
struct line {
    uint32_t row, n;
    ns_t silence; /* before it, if far longer than usual; else 0 */
};

/* Columns of a diagram. */
struct columns {
    unsigned width;
    unsigned frame, seconds; /* widths of the numbers, each with a space after it */
    const char *time;        /* head of the second one */
    unsigned left;           /* both together */
    unsigned arrow;          /* with its ends */
    unsigned what;           /* width of the incident, with the space before it; 0: on a line of its own */
    unsigned tap[2];         /* of the taps in the arrow; 0: not drawn */
};

/* Lines drawn: from the first to before the other. */
struct part {
    uint32_t from, to;
};

/* A frame that an incident is about. */
struct concerned_frame {
    uint32_t frame;
    uint16_t file;
    uint32_t incident; /* explain_at() */
};

struct ladder {
    struct observer *observer;
    struct explainer *explain;
    struct taps *taps;
    bool own; /* `explain` and `taps` are the ladder's */
    struct ladder_opts o;
    ns_t from, to; /* times drawn */
    ns_t origin;   /* time of the first frame of the capture, valid with have_origin */
    bool have_origin, hidden;
    struct rung *rungs;
    uint32_t n, cap;
    uint64_t left_out;        /* packets without room */
    uint64_t dropped;         /* packets before the frame `around` that were dropped */
    bool reached;             /* the frame `around` was found */
    ns_t around_ts;           /* its time */
    uint32_t around_flow;     /* its flow; FLOW_NONE: none */
    uint32_t conn;            /* connection drawn */
    struct flow left;         /* of an iWARP connection: what its initiator sends */
    struct conn_addr host[2]; /* with o.hosts, known with have_hosts: its ends */
    bool have_hosts;
    struct rung cm[CM_RECENT]; /* latest CM messages */
    uint32_t cm_at;
    struct cm_ids exchanges[CM_EXCHANGES]; /* of the connection drawn */
    uint32_t n_exchanges;
    uint32_t tap[2], n_taps; /* taps drawn: the one nearer to the left end first */
    struct tap_offset clock; /* offset of tap[1] to tap[0], in the middle of the diagram */
    struct row *rows;
    uint32_t n_rows;
    struct concerned_frame *concerned; /* by file and frame */
    uint32_t n_concerned_frames;
    struct line *lines;
    uint32_t n_lines;
    bool nanoseconds; /* times have nine decimals */
    bool arranged;    /* rows and lines are made */
    struct columns columns;
    struct part part;
    uint32_t next; /* line to be drawn next */
};

/* --- rows.c --- */
/* Make the rows and lines of one connection; `left`: flow of the end on the left. False: no memory. */
bool ladder_arrange(struct ladder *l, const struct flow *left);
/* Whether a row has the frame asked for. */
bool ladder_has_around(const struct ladder *l);
/* The line with the frame asked for, else the last one before its time. */
uint32_t ladder_middle(const struct ladder *l);

/* --- incidents.c: incidents -------------------------------------------------------------------------- */
/* The connection with the worst incident; 0: none. */
uint32_t incidents_worst_conn(struct ladder *l);
/* The first frame of the worst incident about connection `conn`; 0: none. */
uint32_t incidents_first_frame(struct ladder *l, uint32_t conn);
/* To be called before incidents_cause(). False: no memory. */
bool incidents_index(struct ladder *l);
/* Name of the cause of the worst incident with this first frame, or NULL; *after: the packet was lost after its last
 * tap. */
const char *incidents_cause(const struct ladder *l, const struct rung *r, bool *after);
/* True if the retries of a flow were exhausted. */
bool incidents_gave_up(struct ladder *l, uint32_t flow);

/* --- ladder.c --- */
/* Keep a packet, unless it is known not to be drawn. */
void ladder_keep(struct ladder *l, const struct rung *r);

/* --- streams.c --- */
/* Follow iWARP connections. False: no room. */
bool ladder_streams(struct ladder *l);
/* Keep FPDUs, as ladder_units() appended them. */
void ladder_put_units(struct ladder *l, const void *units, uint32_t len);
/* The flow of the initiator of iWARP connection number `conn`; NULL: no packet of it was kept. */
const struct flow *ladder_stream(struct ladder *l, uint32_t conn);
/* The label of an FPDU; `numbers`: with its length. */
void label_stream(struct buf *b, const struct rung *r, bool numbers);

/* --- label.c --- */
/* The label of a packet in `room` columns: words are abbreviated, then numbers omitted, then it is truncated. */
void label_fit(struct buf *b, const struct rung *r, size_t room);

#endif
