/* layer 3 (sim): what the files of the traffic share. */
#ifndef RDMATRACE_GEN_SIM_TRAFFIC_IMPL_H
#define RDMATRACE_GEN_SIM_TRAFFIC_IMPL_H

#include "gen/sim/traffic.h"
#include "gen/verbs/receives.h"

#define RECV_ID     (UINT64_C(1) << 63)
#define TX_IOVA     UINT64_C(0x10000000)
#define RX_IOVA     UINT64_C(0x20000000)
#define ATOMIC_AREA 64 /* bytes in front of the remote slots: counters of FETCH & ADD and COMPARE & SWAP */

/* A message under way. */
struct slot {
    ns_t posted;           /* when */
    uint64_t expect;       /* atomics: value to be found */
    uint32_t len;          /* bytes */
    uint8_t op;            /* enum traffic_op */
    struct ledger_row row; /* with a ledger */
};

/* A message that the other side has yet to receive. */
struct awaited {
    uint64_t k;   /* its number */
    uint32_t len; /* bytes */
};

/* One direction of one connection. */
struct flow {
    struct sim_conn *c;              /* connection */
    unsigned host;                   /* that posts */
    uint64_t posted, done;           /* messages */
    uint64_t told;                   /* of the posted ones: in the ledger */
    uint64_t counter[2];             /* atomics posted: FETCH & ADD, COMPARE & SWAP */
    struct prng prng;                /* operations and sizes */
    struct slot *slots;              /* tx_depth of them: message k in k % tx_depth */
    uint8_t *tx, *rx;                /* memory at the posting host, and at the other one */
    uint32_t lkey, rkey;             /* keys of tx, and of rx */
    struct awaited *await;           /* ring */
    uint64_t await_head, await_tail; /* numbers in it, modulo its size */
    struct receives recvs;           /* in rx, at the other host */
    uint64_t rx_posted, rx_done;     /* of them */
    ns_t refill;                     /* with recv_delay: when they are posted again; 0: they are not all used up */
    bool dead;                       /* failed: nothing more is posted */
};

struct traffic {
    struct sim *s;
    struct traffic_config c; /* with PSNs, QPNs and depths filled in */
    uint32_t stride;         /* bytes of a slot */
    uint32_t rx_slots, ring; /* receives of a flow; size of flow.await, a power of two */
    struct flow *flows;      /* qps, times 2 if bidirectional */
    unsigned n_flows;
    uint8_t *conn_done; /* per connection: 1 counted as failed or closing */
    bool *through;      /* per connection: nothing is left to do */
    uint32_t n_through;
    bool drained; /* that time is over */
    ns_t refill;  /* when receives of a flow are to be posted next; NS_NEVER: none wait */
    ns_t drain;   /* unreliable: until when arrivals are awaited */
    bool all_done;
    struct traffic_result r;
};

/* Post as many receives as the flow wants, at the host that it goes to. */
void traffic_post_recvs(struct traffic *t, struct flow *f, ns_t now);
/* Post the next message; false: it cannot be. */
bool traffic_post(struct traffic *t, struct flow *f, ns_t now);
/* A completion of the flow's send queue, or of a receive of the other host's: verify the data, and count. */
void traffic_send_completed(struct traffic *t, struct flow *f, const struct wc *wc);
void traffic_recv_completed(struct traffic *t, struct flow *f, const struct wc *wc);
/* Requests up to number `k` are over: only the last of them may have a completion, and one that says of the others that
 * they succeeded. They go to the ledger, if there is one; `wc` NULL: they did not complete. */
void traffic_tell(struct traffic *t, struct flow *f, uint64_t k, const struct wc *wc);
/* sim_app.sent: which work request a frame belongs to. */
/* The flow that `host` sends on a connection; NULL: it sends none. */
struct flow *traffic_flow(struct traffic *t, unsigned conn, unsigned host);
void traffic_sent(void *user, unsigned host, const uint8_t *data, uint32_t len, ns_t now);

#endif
