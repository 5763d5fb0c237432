/* layer 3 (sim): what the files of the traffic share. */
#ifndef RDMATRACE_GEN_SIM_TRAFFIC_IMPL_H
#define RDMATRACE_GEN_SIM_TRAFFIC_IMPL_H

#include "gen/sim/traffic.h"

#define TX_IOVA     UINT64_C(0x10000000)
#define RX_IOVA     UINT64_C(0x20000000)
#define ATOMIC_AREA 64 /* bytes in front of the remote slots: counters of FETCH & ADD and COMPARE & SWAP */

#define TRAFFIC_LOANS    4 /* keys lent at a time, for each direction */
#define TRAFFIC_LOAN_WRS 4 /* work requests for each besides the message, at either host */

struct traffic_loans;

/* How far a connection is: mask. */
enum course {
    ENDS = 1, /* counted as failed, or disconnecting */
    OVER = 2, /* nothing more is to happen */
};

/* A flow of a simulation: `host` posts the messages, the other host is their responder. */
struct sim_flow {
    struct traffic_flow f; /* first */
    struct sim_conn *c;
    unsigned host;
    uint8_t *tx, *rx;            /* memory at the posting host, and at the other one */
    uint64_t entered;            /* posted messages that are in the ledger */
    struct ledger_row *rows;     /* tx_depth of them: message k in k % tx_depth */
    struct traffic_loans *loans; /* memory of the posting host lent to the other one; NULL: not in the mix */
    ns_t refill;                 /* with recv_delay: when to post receives again; 0: not all are used */
};

struct sim_traffic {
    struct traffic t; /* first */
    struct sim *s;
    struct sim_conn_config conn; /* with PSNs, QPNs and depths filled in */
    struct ledger *ledger;
    struct sim_flow *flows; /* t.n_flows: a connection's, or two if bidirectional */
    bool keeps_silent;      /* the second host posts no messages but those that return lent keys */
    unsigned alternate;     /* XRC in both directions: 1: every other connection has its initiator at host 1 */
    uint8_t *course;        /* per connection: mask of enum course */
    uint32_t n_over;        /* connections that are over */
    ns_t due;               /* when all connections have to be looked at; NS_NEVER: none */
    ns_t drain;             /* unreliable services: when to stop waiting for arrivals */
};

/* The flow and the traffic around those of gen/traffic. */
static inline struct sim_flow *sim_flow_of(const struct traffic_flow *f)
{
    return (struct sim_flow *)(uintptr_t)f;
}
static inline struct sim_traffic *sim_traffic_of(const struct sim_flow *d)
{
    return (struct sim_traffic *)d->f.t;
}

/* The flow in which `host` posts messages on a connection; NULL: it posts none. */
struct sim_flow *sim_flow_from(struct sim_traffic *t, unsigned conn, unsigned host);
/* What is known of the messages: their data, memory lent, the ledger. */
extern const struct traffic_ways sim_ways;
/* The data of message `k` of a flow, any number. */
void sim_pattern_put(const struct traffic_flow *f, uint64_t k, uint8_t *p, uint32_t len);
bool sim_pattern_is(const struct traffic_flow *f, uint64_t k, const uint8_t *p, uint32_t len);
/* At the end: work requests that did not complete, for the ledger. */
void sim_ledger_end(struct sim_flow *d);
/* sim_app.sent: count the frame for its work request. */
void sim_ledger_sent(void *user, unsigned host, const uint8_t *data, uint32_t len, ns_t now);

/* --- Memory lent (traffic_keys.c) ------------------------------------------------------------- */

/* Allocate memory, windows and regions: 0 or a negative errno; *d is freed by sim_loans_free() in either case. */
int sim_loans_open(struct sim_flow *d);
void sim_loans_free(struct sim_flow *d);
/* traffic_ways.lend: bind a window or register a region of m->len bytes as m->op says, and await its key. */
int sim_lend(struct traffic_flow *f, struct traffic_message *m, uint8_t *p, ns_t now);
/* Let the other host WRITE or READ through the keys of the flow that have arrived there, if its queue pair can send. */
void sim_use_keys(struct sim_flow *d, ns_t now);
/* traffic_ways.arrived: a key, or the SEND that gives it back. */
bool sim_loan_arrived(struct traffic_flow *f, const struct traffic_awaited *a, const struct wc *wc, const uint8_t *data,
                      uint32_t len);
/* A request about a key of the flow completed, at either host. */
void sim_loan_completed(struct sim_flow *d, const struct wc *wc);
/* Whether no key is lent, and the other host has completed all that it did with keys. */
bool sim_loans_done(const struct sim_flow *d);
/* At the end: memory that no valid key covers was not written. */
void sim_loans_check(struct sim_flow *d);

#endif
