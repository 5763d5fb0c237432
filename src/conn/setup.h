/* layer 2b (conn): connection setup: CM messages and the TCP parameter exchange of test programs.
 *
 * Each end of a connection states its half: REQ and REP, SIDR_REQ and SIDR_REP, or the two lines of a TCP exchange.
 * setup_msg_of() recognises a half, setup_answers() tells which half answers which. learn_packet() joins the halves in
 * captures; the bridge of `rdmagen inject` (gen/net/conns_learn.c) numbers its connections by the same halves. */
#ifndef RDMATRACE_CONN_SETUP_H
#define RDMATRACE_CONN_SETUP_H

#include "dissect/ip/tcp_exchange.h"
#include "dissect/mad/cm.h"
#include "src/conn/conn.h"

#define SETUP_SMC_END 26 /* bytes: SMC_END_LEN of dissect/socket/smc.h, which includes all of a packet */

#define LEARN_PENDING 256 /* REQs, and halves of exchanges, that are remembered */

enum setup_kind {
    SETUP_NONE,
    SETUP_REQ,
    SETUP_REP,
    SETUP_SIDR_REQ,
    SETUP_SIDR_REP, /* with status success */
    SETUP_EXCHANGE,
};

/* One half: what its sender states about its own queue pair. */
struct setup_half {
    enum setup_kind kind; /* SETUP_NONE: unused */
    bool answered;        /* exchange: the other half was seen */
    /* where it was captured, and where the other half is expected: the same tap, or the other port */
    uint32_t tap, peer_tap;
    struct conn_addr src, dst; /* of the packet that carried it */
    /* CM: communication id that its sender chose; SIDR_REQ: request id; exchange: source and destination port */
    uint32_t id;
    uint32_t peer_id; /* `id` of the half that it answers; a REQ or SIDR_REQ answers none: 0 */
    uint32_t qpn;     /* of its sender; SIDR_REQ: 0, not known */
    /* exchange: first PSN that its sender sends; REQ, REP: first PSN that its receiver sends (starting PSN); SIDR: 0 */
    uint32_t psn;
    bool any_psn;         /* REQ, REP: it was not captured, psn is 0 */
    struct conn_addr end; /* exchange: address of the queue pair, a LID as ::lid; CM: src */
    unsigned smc_type;    /* exchange of SMC-R: SMC_ACCEPT or SMC_CONFIRM; else 0 */
    uint8_t smc[SETUP_SMC_END];
};

/* A half, and the CM message that carries it. */
struct setup_msg {
    struct setup_half half;
    struct cm_msg cm; /* not for SETUP_EXCHANGE */
};

/* Recognise a half; false: the packet carries none, or is a CM message with a bad ICRC, or of which the queue pair was
 * not captured. */
bool setup_msg_of(struct setup_msg *m, const struct pkt *p);
/* True if `answer` is the other half of `first`, which came before it. */
bool setup_answers(const struct setup_half *answer, const struct setup_half *first);

/* The halves of exchanges seen last. Zero-initialise. */
struct setup_exchanges {
    struct setup_half half[LEARN_PENDING];
    uint32_t at; /* half[at % LEARN_PENDING] is the oldest */
};
/* Remember a half of an exchange, and copy the oldest unanswered half that it answers to *first. False: there is none,
 * or the half was seen before (TCP or the program retransmitted it). */
bool setup_exchange_join(struct setup_exchanges *x, const struct setup_half *h, struct setup_half *first);

/* A REQ that waits for its REP. */
struct setup_req {
    struct setup_half half;
    ns_t ts;                            /* of the REQ */
    uint64_t tid;                       /* its transaction id */
    uint32_t pmtu;                      /* bytes */
    const char *upper;                  /* upper protocol; NULL: not known */
    bool upper_by_private, upper_vague; /* as in conn_known */
    uint16_t port;                      /* likewise */
    uint8_t greeting_len;               /* likewise */
    uint8_t greeting[CONN_GREETING];
    struct conn_params peer; /* parameters that the REQ states for the requests of the passive side */
    bool have_depth;         /* depth is known */
    uint8_t depth;           /* initiator depth that the REQ states */
    bool over;               /* the connection was closed: the same REQ begins another one */
    ns_t ready;              /* its active side sent the RTU, the latest; 0: none was seen */
    /* local and remote GID of the primary path: data packets with a GRH carry them, even if the REQ came without a
     * GRH */
    struct conn_addr gid[2];
    bool has_gids;             /* both were captured */
    bool has_alt;              /* the REQ offers an alternate path: */
    struct conn_path lid_path; /* native InfiniBand: by LIDs */
    struct conn_path gid_path; /* by GIDs; queue pairs and first path are those of the connection, once REP was seen */
    uint32_t passive_id;       /* once the REP was seen: the passive side's communication id */
};

/* A LAP that waits for its APR. */
struct setup_lap {
    uint32_t tap;
    uint32_t id[2];          /* communication ids of its sender and its receiver */
    struct conn_addr gid[2]; /* of the path: the sender's, the receiver's */
    struct conn_addr lid[2]; /* likewise, ::lid */
    uint8_t timeout;         /* local ACK timeout code of the receiver's requests */
};
#define LEARN_LAPS 64

#define LEARN_STREAMS 16
#define LEARN_PART    256 /* bytes of a line at most */

/* One direction of a TCP connection: lines may be sent together, and begin in one segment and end in the next. */
struct setup_stream {
    uint32_t tap, id; /* as in struct setup_half; tap and id of an unused one fit nothing, as `n` and `next` are 0 */
    struct conn_addr src, dst;
    uint32_t next; /* sequence number of the next byte */
    uint32_t n;    /* bytes of the line that has begun */
    uint8_t part[LEARN_PART];
};

/* State of learn_packet(). Zero-initialise. */
struct learner {
    struct setup_req req[LEARN_PENDING];
    uint32_t req_at; /* req[req_at % LEARN_PENDING] is the oldest */
    struct setup_lap lap[LEARN_LAPS];
    uint32_t lap_at; /* lap[lap_at % LEARN_LAPS] is the oldest */
    struct setup_exchanges exchanges;
    struct setup_stream stream[LEARN_STREAMS];
    uint32_t stream_at; /* stream[stream_at % LEARN_STREAMS] is the oldest */
};

/* Learn from any packet of a capture; a connection of which both halves are known is passed to conn_learn(). */
void learn_packet(struct learner *l, struct conn_table *t, const struct pkt *p);
/* What a REQ says of its upper protocol. */
struct cm_msg;
struct ulp_named setup_upper(const struct cm_msg *msg);
/* Learn from `len` bytes of a TCP segment if they are a CLC message of SMC-R (setup_smc.c). */
void learn_smc(struct learner *l, struct conn_table *t, const struct pkt *p, const uint8_t *data, uint32_t len);

#endif
