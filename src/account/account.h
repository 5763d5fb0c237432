/* layer 2b (account): where the time of a connection went: the states of an account, incidents, and the JSON of both.
 *
 * An account covers one direction of requests of a connection, from the requester's view: `arrives` means that a packet
 * reaches the requester, or in place of it the tap; one that is damaged does not. Each nanosecond from first_ns to
 * last_ns is in exactly one state, so that the sum is exact. Where several states apply, the last one of this list
 * counts:
 *
 *   idle                no request is outstanding (sent, and not known to be complete) and none waits to be sent
 *   transfer            packets of the direction follow each other: requests, or responses to them
 *   response            requests are outstanding, and the requester waits for a response no longer than usual
 *   peer_slow           the response took longer than usual and came without a retransmission: from the time at which
 *                       it was due, or from the latest packet of the direction if that was later
 *   read_depth          a READ or atomic waits to be sent because as many are outstanding as the agreed initiator depth
 *                       allows, and nothing arrives for at least half a round trip: from the latest packet of the
 *                       direction to the next one that arrives; while a response is late, it is peer_slow
 *   credit              a SEND waits for end-to-end credits: from the latest request, or from the time at which it was
 *                       posted, to the response that brings them
 *   throttled           the requester spaces its packets wider because of CNPs: the time above the usual gap
 *   loss_nak            from the sending of a packet that was lost (or reordered, or corrupted) to the arrival of the
 *                       first NAK for it. Of a lost READ response: 0, a later response is an implied NAK as it arrives
 *   loss_retransmission from that NAK (READ: from the response that skipped the lost one) to the retransmission
 *   loss_resend         from a retransmission until everything sent before it was retransmitted or acknowledged, or the
 *                       requester goes back again; if later responses of a READ had arrived already: until the last of
 *                       them arrives again, too
 *   ack_timeout         from the latest packet of the direction, request or response, to the retransmission on ACK
 *                       timeout; or, if none followed, to the error completion or the end of the capture; likewise to
 *                       a packet of the message that is new to the tap, if its first copy was lost before
 *   rnr                 from an RNR NAK to the retransmission; or to the end of the capture, if that comes before
 *                       the RNR timer expires, and a retry was left
 *   paused              pause frames stop the requester's or the responder's port, and nothing of the direction passes
 *                       for 2 us or longer
 *   peer_dead           at least two tries were in vain, and the peer's host sends nothing until the end of the
 *                       capture, on no queue pair, not even CM messages: from the first request without a response,
 *                       or from the latest packet of the host if that was later
 *   given_up            from the error completion (or the DREQ after retries without a response) to the end
 *   cm                  from the first message of connection management to the RTU or the first request; from the DREQ
 *                       to the last message of connection management
 *   not_known           the tap cannot decide
 *
 * Time in any state but idle, transfer, response, cm and not_known is lost time, and billed to exactly one incident. */
#ifndef RDMATRACE_ACCOUNT_ACCOUNT_H
#define RDMATRACE_ACCOUNT_ACCOUNT_H

#include "buf.h"
#include "cell.h"

enum time_state {
#define TIME_STATE(name, text, costs, words) TIME_##name,
#include "src/account/time_states.def"
#undef TIME_STATE
    TIME_STATES
};
/* Its name in JSON: "loss_nak". */
const char *time_state_str(enum time_state s);
/* Its words in a sentence: "until the NAK". */
const char *time_state_words(enum time_state s);
/* Whether time in this state is lost time, billed to an incident. */
bool time_state_costs(enum time_state s);
/* The sum of two times, ns, at most NS_NEVER: those of damaged captures are of any length. */
static inline ns_t ns_sum(ns_t a, ns_t b)
{
    ns_t sum;

    return __builtin_add_overflow(a, b, &sum) ? NS_NEVER : sum;
}

/* The time of the states that cost. */
ns_t states_lost(const ns_t states[TIME_STATES]);

/* How sure a statement is. */
enum certainty {
    CERTAIN,  /* the evidence excludes everything else */
    PROBABLE, /* another cause is possible, but rarer */
    POSSIBLE, /* one of several causes that are about as likely */
};
/* "certain", "likely", "possible". */
const char *certainty_str(enum certainty c);

/* Causes of incidents: src/account/causes.def. */
enum cause {
#define CAUSE(name, text, weight, meaning, next) CAUSE_##name,
#include "src/account/causes.def"
#undef CAUSE
    CAUSE_COUNT
};
#define WEIGHT_FAILED 100 /* from this weight on a connection, or the attempt to make one, has failed */
struct cause_info {
    const char *name;    /* "packet-loss" */
    int weight;          /* order of severity, higher is worse; from WEIGHT_FAILED on a connection failed */
    const char *meaning; /* a sentence */
    const char *next;    /* what to look at next */
};
extern const struct cause_info cause_table[CAUSE_COUNT];

/* Account of one direction of requests of a connection, at one tap. */
struct account {
    uint32_t conn;            /* number of the connection, from 1 */
    ns_t first, last;         /* ns since 1970 */
    ns_t states[TIME_STATES]; /* ns in each state; they add up to last - first */
    const char *tap;          /* name: "requester", an interface or file; NULL: not said */
    const char *from, *to;    /* requester and responder: "10.0.0.1 0x000011", address and QPN */
};

/* Account of one work request: from its first packet to the response that completes it. */
struct request_account {
    uint32_t conn;            /* number of the connection, from 1 */
    uint64_t number;          /* among the work requests of its direction, from 1 */
    const char *tap, *from;   /* tap and requester, as in its account */
    ns_t start, end;          /* ns since 1970 */
    ns_t states[TIME_STATES]; /* ns in each state; they add up to end - start */
};

/* Append `{"idle":1,...}`: the states that are not 0. */
void states_json(struct buf *b, const ns_t states[TIME_STATES]);
/* Append one object of the list `account`, `requests`. */
void account_json(struct buf *b, const struct account *a);
void request_account_json(struct buf *b, const struct request_account *r);

/* Role of a frame in an incident. */
enum frame_role {
    ROLE_LOST,           /* the packet that was lost, reordered or corrupted */
    ROLE_INSTEAD,        /* the later packet that showed the gap */
    ROLE_NAK,            /* the NAK that demanded the retransmission */
    ROLE_RETRANSMISSION, /* the retransmitted request */
    ROLE_ANSWER,         /* the response that shows that the request arrived */
    ROLE_EVIDENCE,       /* other evidence: CNP, pause frame, ICMP, REJ, DREQ */
    FRAME_ROLES
};
/* "lost", "instead", "nak", "retransmission", "answer", "evidence". */
const char *frame_role_str(enum frame_role r);

/* Frames of an incident that are kept, at most. */
#define INCIDENT_FRAMES 12

/* An incident, as printed. `text`, `setting` and `next` may be NULL. */
struct incident_row {
    uint32_t number, conn; /* from 1; conn 0: the incident belongs to no connection */
    uint8_t cause;         /* enum cause */
    uint8_t certainty;     /* enum certainty */
    const char *place;     /* "before the tap", "requester to middle"; NULL: not known */
    ns_t start, end, bill; /* ns since 1970; bill: ns of lost time billed to it, of all connections together */
    uint32_t frames[INCIDENT_FRAMES]; /* frame numbers */
    uint8_t roles[INCIDENT_FRAMES];   /* enum frame_role */
    uint32_t n_frames;
    const char *text, *setting, *next; /* sentences; the parameters that matter; what to look at next */
};
/* The values of an incident but its frames. */
void incident_cells(const struct incident_row *i, cell_take *take, void *user);
/* Append `,"frames":{"lost":[12],"nak":[14]}`: each role with its frames. */
void incident_frames_json(struct buf *b, const struct incident_row *i);

#endif
