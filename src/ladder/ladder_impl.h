/* layer 3 (ladder): what the parts of the ladder share. */
#ifndef RDMATRACE_LADDER_LADDER_IMPL_H
#define RDMATRACE_LADDER_LADDER_IMPL_H

#include "src/explain/explain.h"
#include "src/ladder/ladder.h"

#define CM_RECENT    64 /* latest CM messages in which a repeated one is looked up */
#define CM_EXCHANGES 64 /* pairs of communication ids that one connection may have */

/* A packet in short. */
struct rung {
    struct conn_addr src, dst;
    ns_t ts;
    uint32_t frame, flow; /* flow of the packet itself; FLOW_NONE: connection management */
    uint32_t psn, tap, dqpn, icrc;
    uint16_t len, ip_id;
    uint8_t opcode, syndrome, attr; /* attr: of a CM message, else 0 */
    bool again, bad, aeth;
    uint32_t missing;     /* of a request: PSNs before it that its tap had not seen */
    uint32_t id, peer_id; /* of a CM message: communication ids of its sender and its receiver; 0: none */
    uint32_t qpn, to_qpn; /* likewise: queue pairs that it names, 0: none */
};

/* The communication ids of an exchange of CM messages: of the end on the left, and of the other; 0: not known. */
struct cm_ids {
    uint32_t id[2];
};

/* Where a packet was lost, seen from its sender. */
enum lost_at {
    LOST_NOT,
    LOST_BETWEEN, /* the two taps */
    LOST_AFTER,   /* the last tap that it passed */
};

/* A packet as it is drawn: what one tap saw, or two. */
struct row {
    const struct rung *at[2]; /* at the tap nearer to the left end, and at the other; NULL: not seen there */
    const struct rung *r;     /* the one at the tap that it passed first */
    ns_t ts;                  /* there, by the clock of the first tap */
    const char *what;         /* what explain says about it, or NULL */
    uint8_t lost;             /* enum lost_at */
    bool right;               /* from left to right */
};

/* A line of the diagram: one row, or a run of like ones. */
struct line {
    uint32_t row, n;
    ns_t silence; /* before it, if that is far above the usual; else 0 */
};

/* A frame that an incident is about. */
struct told {
    uint32_t frame;
    uint16_t file;
    uint32_t incident; /* explain_at() */
};

struct ladder {
    struct observer *observer;
    struct explainer *explain;
    struct taps *taps;
    struct ladder_opts o;
    ns_t from, to; /* times drawn */
    ns_t origin;   /* time of the first frame of the capture, valid with have_origin */
    bool have_origin, hidden;
    struct rung *rungs;
    uint32_t n, cap;
    uint64_t left_out;         /* packets that came when there was no room */
    uint64_t dropped;          /* those before the frame `around`, of which the older ones are not kept */
    bool reached;              /* the frame `around` was there, */
    ns_t around_ts;            /* its time, */
    uint32_t around_flow;      /* and its flow; FLOW_NONE: none */
    uint32_t conn;             /* drawn */
    struct rung cm[CM_RECENT]; /* latest messages of connection management */
    uint32_t cm_at;
    struct cm_ids exchanges[CM_EXCHANGES]; /* of the connection drawn */
    uint32_t n_exchanges;
    uint32_t tap[2], n_taps; /* drawn: the one nearer to the left end first */
    struct tap_offset clock; /* of tap[1] against tap[0], in the middle of what is drawn */
    struct row *rows;
    uint32_t n_rows;
    struct told *told; /* by file and frame */
    uint32_t n_told;
    struct line *lines;
    uint32_t n_lines;
    bool nanoseconds; /* times are shown with nine decimals */
};

/* --- rows.c --- */
/* From the packets of all connections to the rows and lines of one; `left`: the flow whose sender stands on the left.
 * False without memory. */
bool ladder_arrange(struct ladder *l, const struct flow *left);
/* The line in the middle, around the frame asked for. */
uint32_t ladder_middle(const struct ladder *l);

/* --- told.c: all that comes from explain --- */
/* The connection with the worst incident; 0: none. */
uint32_t told_worst(struct ladder *l);
/* The first frame of the worst incident about connection `conn`; 0: none. */
uint32_t told_first_frame(struct ladder *l, uint32_t conn);
/* Before told_fate(). False without memory. */
bool told_prepare(struct ladder *l);
/* Name of the cause of the worst incident whose first frame is this one, or NULL; *after is set if it was lost behind
 * its last tap. */
const char *told_fate(const struct ladder *l, const struct rung *r, bool *after);
/* Whether the retries of the requests of a flow were used up. */
bool told_given_up(struct ladder *l, uint32_t flow);

/* --- label.c --- */
/* The label of a packet in `room` columns: words are shortened, then numbers left out, then it is cut. */
void label_fit(struct buf *b, const struct rung *r, size_t room);

#endif
