/* layer 3 (sim): what the files of the traffic share. */
#ifndef RDMATRACE_GEN_SIM_TRAFFIC_IMPL_H
#define RDMATRACE_GEN_SIM_TRAFFIC_IMPL_H

#include "gen/sim/traffic.h"
#include "gen/verbs/receives.h"
#include "gen/verbs/sender.h"

#define RECV_ID     (UINT64_C(1) << 63)
#define TX_IOVA     UINT64_C(0x10000000)
#define RX_IOVA     UINT64_C(0x20000000)
#define ATOMIC_AREA 64 /* bytes in front of the remote slots: counters of FETCH & ADD and COMPARE & SWAP */

/* A message without a receive completion yet. */
struct awaited {
    uint64_t k;   /* its number */
    uint32_t len; /* bytes */
};

/* The messages of one direction of a connection: `host` posts them, the other host is their responder. */
struct traffic_dir {
    struct sim_conn *c;              /* connection */
    unsigned host;                   /* that posts */
    struct sender s;                 /* the messages */
    struct prng prng;                /* operations and sizes */
    uint64_t told;                   /* posted messages that are in the ledger */
    struct ledger_row *rows;         /* tx_depth of them: message k in k % tx_depth */
    uint8_t *tx, *rx;                /* memory at the posting host, and at the other one */
    struct awaited *await;           /* ring */
    uint64_t await_head, await_tail; /* numbers in it, modulo its size */
    struct receives recvs;           /* in rx, at the other host */
    uint64_t rx_posted, rx_done;     /* receives */
    ns_t refill;                     /* with recv_delay: when to post receives again; 0: not all are used */
    bool dead;                       /* failed: no more messages are posted */
};

struct traffic {
    struct sim *s;
    struct traffic_config c;  /* with PSNs, QPNs and depths filled in */
    uint32_t stride;          /* bytes of a slot */
    uint32_t rx_slots, ring;  /* receives of a direction; size of traffic_dir.await, a power of two */
    struct traffic_dir *dirs; /* qps, times 2 if bidirectional */
    unsigned n_dirs;
    unsigned alternate; /* XRC in both directions: 1: every other connection has its initiator at host 1 */
    uint8_t *conn_done; /* per connection: 1 counted as failed or closing */
    bool *through;      /* per connection: finished */
    uint32_t n_through;
    bool drained; /* `drain` is over */
    ns_t refill;  /* when the next refill of a direction is due; NS_NEVER: none */
    ns_t drain;   /* unreliable services: when to stop waiting for arrivals */
    bool all_done;
    struct traffic_result r;
};

/* Post the missing receives of the direction, at the receiving host. */
void traffic_post_recvs(struct traffic *t, struct traffic_dir *d, ns_t now);
/* Post the next message; false: verbs_post_send() refused it. */
bool traffic_post(struct traffic *t, struct traffic_dir *d, ns_t now);
/* A completion of the direction's send queue, or of a receive at the receiving host: verify the data, and count. */
void traffic_send_completed(struct traffic *t, struct traffic_dir *d, const struct wc *wc);
void traffic_recv_completed(struct traffic *t, struct traffic_dir *d, const struct wc *wc);
/* Work requests up to number `k` are over: write them to the ledger, if any. Only the last of them may have a
 * completion; it then means success of the others. `wc` NULL: they did not complete. */
void traffic_tell(struct traffic *t, struct traffic_dir *d, uint64_t k, const struct wc *wc);
/* The direction in which `host` posts messages on a connection; NULL: it posts none. */
struct traffic_dir *traffic_dir_of(struct traffic *t, unsigned conn, unsigned host);
/* sim_app.sent: count the frame for its work request. */
void traffic_sent(void *user, unsigned host, const uint8_t *data, uint32_t len, ns_t now);

#endif
