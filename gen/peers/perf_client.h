/* layer 3 (peers): the client of perftest's programs, of ibv_*_pingpong, or of a peer whose numbers are known: agree
 * with the peer, run a load, take leave. */
#ifndef RDMATRACE_GEN_PEERS_PERF_CLIENT_H
#define RDMATRACE_GEN_PEERS_PERF_CLIENT_H

#include "gen/peers/oob_tcp.h"
#include "gen/peers/perf_run.h"

enum perf_exchange {
    PERF_PERFTEST, /* as the clients ib_write_bw, ib_read_bw, ib_send_bw, ib_atomic_bw, ib_*_lat */
    PERF_PINGPONG, /* as ibv_rc_pingpong, ibv_uc_pingpong, ibv_ud_pingpong; SEND with latency */
    PERF_BY_HAND,  /* no exchange: `by_hand` says all, for one queue pair */
};

struct perf_client {
    struct live *live;
    struct load_config config; /* mtu: filled in */
    uint8_t exchange;          /* enum perf_exchange */
    const char *host;          /* of the TCP exchange */
    uint16_t port;             /* of it, or of RDMA-CM */
    bool rdma_cm;              /* PERF_PERFTEST: connect by RDMA-CM, exchange by SENDs, as perftest -R; RC only */
    const uint8_t *gid;        /* the peer's address, for messages and PERF_BY_HAND */
    struct perftest_keys by_hand;
    bool psn_given; /* own_psn is to be used */
    uint32_t own_psn;
    ns_t timeout; /* longest time without progress */
    /* Called about ten times a second while the load runs, and before it, when the queue pairs are made; may be
     * NULL. */
    void (*progress)(void *user, const struct load *load);
    void (*made)(void *user, const struct load *load);
    void *user;
    /* What became of it. */
    struct chan chan;
    struct rchan control;    /* with rdma_cm */
    int waiting;             /* queue pair whose connection is waited for */
    bool connected, gone;    /* what became of it */
    bool not_there;          /* with `gone`: nobody listens */
    char why[160];           /* of `gone`, or why the server refuses to go on */
    struct load load;        /* freed by perf_client_free() */
    const char *step;        /* what failed: "the exchange of versions" */
    bool ours;               /* the peer is rdmagen */
    bool counted;            /* it has told what came: */
    uint64_t arrived, wrong; /* messages, and of these not what they should be */
    bool interrupted;
};

/* Do all of it. 0: the load ran, p->load tells whether it failed; a negative errno with p->step: what came before or
 * after it. -EPROTO: the peer said something else than expected. */
int perf_client_run(struct perf_client *p);
/* With rdma_cm: what live_config.event must be, and live_config.user the struct perf_client. */
void perf_client_event(void *live, int qp, enum cm_event event, const struct cm_conn *c);
void perf_client_free(struct perf_client *p);

#endif
