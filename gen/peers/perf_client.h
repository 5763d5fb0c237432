/* layer 3 (peers): the client for servers of perftest, for ibv_*_pingpong, or for a peer whose parameters are given by
 * hand: exchange parameters, run the traffic, disconnect. */
#ifndef RDMATRACE_GEN_PEERS_PERF_CLIENT_H
#define RDMATRACE_GEN_PEERS_PERF_CLIENT_H

#include "gen/peers/oob_tcp.h"
#include "gen/peers/perf.h"

enum perf_exchange {
    PERF_PERFTEST, /* like the clients ib_write_bw, ib_read_bw, ib_send_bw, ib_atomic_bw, ib_*_lat */
    PERF_PINGPONG, /* like ibv_rc_pingpong, ibv_uc_pingpong, ibv_ud_pingpong; SEND with latency */
    PERF_BY_HAND,  /* no exchange: `by_hand` has all parameters, of one queue pair */
};

struct perf_client {
    struct live *live;            /* its event loop runs while perf_client_run() waits */
    struct traffic_config config; /* mtu: filled in */
    uint8_t exchange;             /* enum perf_exchange */
    const char *host;             /* of the TCP exchange */
    uint16_t port;                /* port of the TCP exchange, or of RDMA-CM */
    bool rdma_cm;                 /* PERF_PERFTEST: connect by RDMA-CM, exchange by SENDs, as perftest -R; RC only */
    const uint8_t *gid;           /* the peer's GID, for RDMA-CM and PERF_BY_HAND */
    struct perftest_keys by_hand; /* parameters of the peer, for PERF_BY_HAND */
    bool psn_given;               /* own_psn is given */
    uint32_t own_psn;             /* starting PSN of every queue pair */
    ns_t timeout;                 /* longest time without progress */
    /* Called about ten times a second while the traffic runs; may be NULL. */
    void (*progress)(void *user, const struct perf *traffic);
    /* Called when the queue pairs exist; may be NULL. */
    void (*made)(void *user, const struct perf *traffic);
    /* Called when all queue pairs are connected, and traffic->qp[].peer is known but for RDMA-CM; may be NULL. */
    void (*joined)(void *user, const struct perf *traffic);
    void *user; /* argument of the callbacks */
    /* Results and state. */
    struct chan chan;
    struct rchan control; /* with rdma_cm */
    int channel;          /* with rdma_cm: event channel */
    /* with rdma_cm: RDMA-CM ids of the control queue pair, then of those for data; -1: none; NULL: not allocated */
    int *id;
    bool not_there;          /* the REJ says that the server does not listen */
    char why[160];           /* reason why the connection failed, or why the server refused */
    struct perf traffic;     /* freed by perf_client_free() */
    const char *step;        /* the step that failed, e.g. "the exchange of versions" */
    bool ours;               /* the peer is another rdmagen */
    bool counted;            /* the peer has reported `arrived` and `wrong` */
    uint64_t arrived, wrong; /* messages received, and of these with wrong data */
    bool interrupted;        /* by a signal: outstanding messages were completed, no further ones posted */
};

/* Exchange parameters, run the traffic, disconnect. 0: the traffic ran, and p->traffic says whether it failed; a
 * negative errno: the step p->step before or after it failed. -EPROTO: the peer sent something unexpected. */
int perf_client_run(struct perf_client *p);
/* Free the traffic and close the channels; *p itself belongs to the caller. */
void perf_client_free(struct perf_client *p);

#endif
