/* layer 2b (conn): where the time of a connection went: the states of an account, incidents, and the JSON of both.
 *
 * An account is kept for one direction of requests of a connection, what one side asks of the other, and is told from
 * the requester's side: `arrives` means at the requester, or at the tap in its stead. Each nanosecond from first_ns to
 * last_ns is in exactly one state, so that the sum is exact. A later line of this list wins over an earlier one:
 *
 *   idle                no request is outstanding (sent, and not yet known to be done) and none waits to be sent
 *   transfer            packets of the direction follow each other: requests, or responses to them
 *   response            requests are outstanding, and the requester waits for a response for its usual time
 *   peer_slow           the same, beyond the usual time, and the response then came without a retransmission: from when
 *                       the response would have come, or from the latest packet of the direction if that was later
 *   read_depth          a READ or atomic waits to be sent because as many are outstanding as were agreed on, and
 *                       nothing arrives meanwhile for half a round trip or longer
 *   credit              a SEND waits to be sent for want of end-to-end credits
 *   throttled           the requester spaces its packets wider because of CNPs: the time above the usual gap
 *   loss_nak            from the sending of the packet that was lost (or overtaken, or damaged) to the arrival of the
 *                       first NAK that asks for it. A lost READ response: none, the later response tells at once
 *   loss_retransmission from that NAK (READ: from the response that came in its stead) to the retransmission
 *   loss_resend         from a retransmission until everything sent before it has been sent again or acknowledged, or
 *                       a new episode begins; of a READ of which later responses had arrived already: until the last
 *                       of those arrives again, too
 *   ack_timeout         from the latest packet of the direction, request or response, to the retransmission that its
 *                       ACK timeout brought about; or to the end of the capture or the error completion, if it ran out
 *   rnr                 from an RNR NAK to the retransmission
 *   paused              pause frames stop the requester's or the responder's port, and nothing of the direction passes
 *   peer_dead           an ACK timeout has run out, and the peer never sends anything any more, not even a message of
 *                       connection management: from the first request that was never answered, or from the latest
 *                       packet of the peer if that was later
 *   given_up            from the error completion (or the DREQ after unanswered tries) to the end
 *   cm                  from the first message of connection management to the RTU or the first request; from the DREQ
 *                       to the last message of connection management
 *   not_known           the tap cannot decide
 *
 * Idle, transfer, response, cm and not_known cost nothing. The time of any other state is on the bill of exactly one
 * incident. */
#ifndef RDMATRACE_CONN_ACCOUNT_H
#define RDMATRACE_CONN_ACCOUNT_H

#include "buf.h"

enum time_state {
#define TIME_STATE(name, text, costs, words) TIME_##name,
#include "src/conn/time_states.def"
#undef TIME_STATE
    TIME_STATES
};
/* The name as in JSON: "loss_nak". */
const char *time_state_str(enum time_state s);
/* The same in a sentence: "until the NAK". */
const char *time_state_words(enum time_state s);
/* Whether time in this state is lost, and on the bill of an incident. */
bool time_state_costs(enum time_state s);

/* How sure a statement is. */
enum certainty {
    CERTAIN,  /* the evidence excludes everything else */
    PROBABLE, /* another cause is possible, but rarer */
    POSSIBLE, /* one of several */
};
/* "certain", "likely", "possible". */
const char *certainty_str(enum certainty c);

/* Causes of incidents: src/conn/causes.def. */
enum cause {
#define CAUSE(name, text, weight, meaning, next) CAUSE_##name,
#include "src/conn/causes.def"
#undef CAUSE
    CAUSE_COUNT
};
struct cause_info {
    const char *name;    /* "packet-loss" */
    int weight;          /* the heavier, the worse; from 100 on a connection failed */
    const char *meaning; /* a sentence */
    const char *next;    /* what to look at next */
};
extern const struct cause_info cause_table[CAUSE_COUNT];

/* The time of one direction of a connection at one tap. */
struct account {
    uint32_t conn;            /* number of the connection, from 1 */
    ns_t first, last;         /* since 1970 */
    ns_t states[TIME_STATES]; /* add up to last - first */
    const char *tap;          /* name: "requester", an interface or file; NULL: not said */
    const char *from, *to;    /* requester and responder: "10.0.0.1 0x000011", address and QPN */
};

/* The time of one work request, from its first packet to the response that completes it. */
struct request_account {
    uint32_t conn;
    uint64_t number;          /* of the work requests of its direction, from 1 */
    const char *tap, *from;   /* tap and requester, as in its account */
    ns_t start, end;          /* since 1970 */
    ns_t states[TIME_STATES]; /* add up to end - start */
};

/* Append `{"idle":1,...}`: the states that are not 0. */
void states_json(struct buf *b, const ns_t states[TIME_STATES]);
/* Append one object of the list `account`, `requests`. */
void account_json(struct buf *b, const struct account *a);
void request_account_json(struct buf *b, const struct request_account *r);

/* What a frame is to an incident. */
enum frame_role {
    ROLE_LOST,           /* was lost, overtaken or damaged */
    ROLE_INSTEAD,        /* came in its stead, and showed the gap */
    ROLE_NAK,            /* asked for it again */
    ROLE_RETRANSMISSION, /* the request sent again */
    ROLE_ANSWER,         /* the response that shows that it arrived */
    ROLE_EVIDENCE,       /* anything else that shows it: CNP, pause frame, ICMP, REJ, DREQ */
    FRAME_ROLES
};
/* "lost", "instead", "nak", "retransmission", "answer", "evidence". */
const char *frame_role_str(enum frame_role r);

#define INCIDENT_FRAMES 12

/* An incident as it is written: text, setting, next may be NULL. */
struct incident_row {
    uint32_t number, conn; /* from 1; conn 0: of no connection */
    uint8_t cause;         /* enum cause */
    uint8_t certainty;     /* enum certainty */
    const char *place;     /* "before the tap", "requester to middle": where; NULL: not known */
    ns_t start, end, bill; /* since 1970; bill: lost time that is billed to it, all connections together */
    uint32_t frames[INCIDENT_FRAMES];
    uint8_t roles[INCIDENT_FRAMES]; /* enum frame_role */
    uint32_t n_frames;
    const char *text, *setting, *next;
};
/* Append one object of the list `incidents`, without the closing brace: further members may follow. */
void incident_json_open(struct buf *b, const struct incident_row *i);

#endif
