/* layer 3 (sim): perftest-like traffic in a simulation: a number of operations of one kind and size on every
 * connection, all data verified. */
#ifndef RDMATRACE_GEN_SIM_TRAFFIC_H
#define RDMATRACE_GEN_SIM_TRAFFIC_H

#include "gen/sim/ledger.h"
#include "gen/sim/sim.h"
#include "gen/verbs/traffic_ops.h"

struct traffic_config {
    uint8_t op;         /* enum traffic_op */
    uint32_t mix;       /* TRAFFIC_MIXED: mask of 1 << enum traffic_op; 0: all before TRAFFIC_MIXED */
    uint8_t type;       /* enum qp_type; not QPT_XRC_TGT */
    uint32_t size;      /* bytes of a message, or that it lends; atomics: 8 */
    bool vary;          /* random sizes from 0 to `size` */
    uint64_t iters;     /* messages per connection and direction */
    uint32_t qps;       /* connections */
    uint32_t tx_depth;  /* messages outstanding per connection and direction */
    uint32_t rx_depth;  /* receives posted; 0: twice tx_depth */
    ns_t recv_delay;    /* an empty receive queue is refilled after this time */
    bool bidirectional; /* host 1 does the same towards host 0; XRC: over as many further connections */
    bool with_imm;      /* SENDs and WRITEs carry immediate data */
    bool solicited;
    uint32_t signal_every; /* every n-th work request is signaled; 0: 1 */
    bool use_cm;
    bool disconnect; /* with use_cm: at the end */
    uint64_t seed;
    bool srq;                    /* receives are posted to a shared receive queue; one connection only */
    struct sim_conn_config conn; /* for all connections; PSNs, QPNs and queue depths are filled in */
    bool psn_given;              /* conn.psn is used unchanged */
    ns_t time_limit;             /* give up at this time; 0: never */
    struct ledger *ledger;       /* a row for each work request when it completes; NULL: none */
};

struct traffic_result {
    uint64_t posted;      /* requests */
    uint64_t completed;   /* with success */
    uint64_t failed;      /* with an error, flushed ones included */
    uint64_t received;    /* receive completions with success */
    uint64_t recv_failed; /* receives with an error other than flushed */
    /* messages with wrong data, out of order or duplicate; memory that was written without a valid key; keys that were
     * not valid when they should be, or the other way round */
    uint64_t mismatches;
    uint64_t conn_failed;      /* connections that were not established */
    uint8_t first_error;       /* enum wc_status of the first failure */
    uint64_t bytes;            /* payload of messages completed */
    ns_t start, end;           /* first request posted, last one completed */
    struct traffic_times took; /* from posting to completion */
    bool gave_up;              /* at the time limit, or because nothing happened any more */
};

/* True if such traffic needs receives: SENDs or immediate data. */
bool traffic_receives(const struct traffic_config *c);
/* True if it lends memory: both hosts send requests then. */
bool traffic_lends(const struct traffic_config *c);
/* How many connections it makes: config.qps, and as many again for the other direction of XRC. */
uint32_t traffic_conns(const struct traffic_config *c);
/* Most regions and windows that it has at a host. */
uint32_t traffic_keys(const struct traffic_config *c);

struct traffic;
/* Prepare traffic for `s`, whose application becomes traffic_app(). NULL with *err set. */
struct traffic *traffic_new(struct sim *s, const struct traffic_config *c, int *err);
/* The value of sim.app. */
struct sim_app traffic_app(struct traffic *t);
void traffic_free(struct traffic *t);
/* Progress, 0 to 1000. */
unsigned traffic_progress(const struct traffic *t);
/* Run `s` until all is done; `tick` is called from time to time (may be NULL). */
void traffic_run(struct traffic *t, void (*tick)(void *user), void *user);
const struct traffic_result *traffic_result(const struct traffic *t);

#endif
