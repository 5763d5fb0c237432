/* layer 3 (sim): what the files of the traffic share. */
#ifndef RDMATRACE_GEN_SIM_TRAFFIC_IMPL_H
#define RDMATRACE_GEN_SIM_TRAFFIC_IMPL_H

#include "gen/sim/traffic.h"
#include "gen/verbs/receives.h"
#include "gen/verbs/sender.h"

#define TX_IOVA     UINT64_C(0x10000000)
#define RX_IOVA     UINT64_C(0x20000000)
#define ATOMIC_AREA 64 /* bytes in front of the remote slots: counters of FETCH & ADD and COMPARE & SWAP */

#define KEY_ID             (UINT64_C(1) << 62) /* wr_id of the requests about keys that are no messages */
#define TRAFFIC_LOANS      4                   /* keys lent at a time, for each direction */
#define TRAFFIC_LOAN_WRS   4                   /* work requests for each besides the message, at either host */
#define TRAFFIC_LOAN_BYTES 32                  /* of the SEND of a key */

enum await_kind {
    AWAIT_DATA,
    AWAIT_KEY,    /* a key that is lent */
    AWAIT_RETURN, /* of a key; the direction is that of the SEND which says so */
};

/* A message without a receive completion yet. */
struct awaited {
    uint64_t k;   /* its number */
    uint32_t len; /* bytes */
    uint8_t kind; /* enum await_kind */
    uint8_t loan; /* number of the loan */
};

struct traffic_loans;

/* The messages of one direction of a connection: `host` posts them, the other host is their responder. */
struct traffic_dir {
    struct sim_conn *c;              /* connection */
    unsigned host;                   /* that posts */
    struct sender s;                 /* the messages */
    struct prng prng;                /* operations and sizes */
    uint64_t entered;                /* posted messages that are in the ledger */
    struct ledger_row *rows;         /* tx_depth of them: message k in k % tx_depth */
    uint8_t *tx, *rx;                /* memory at the posting host, and at the other one */
    struct awaited *await;           /* ring */
    uint64_t await_head, await_tail; /* numbers in it, modulo its size */
    struct receives recvs;           /* in rx, at the other host */
    uint64_t rx_posted, rx_done;     /* receives */
    bool rx_flushed;                 /* the receiving queue pair is in state Error: it takes no more */
    struct traffic_loans *loans;     /* memory of the posting host lent to the other one; NULL: not in the mix */
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
    bool answers;       /* the second host has no messages of its own, but gives back what it was lent */
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
/* What the messages are made of: mask of 1 << enum traffic_op. */
uint32_t traffic_mix(const struct traffic_config *c);
/* The data of message `k` of a direction, any number. */
void traffic_pattern_put(const struct traffic_dir *d, uint64_t k, uint8_t *p, uint32_t len);
bool traffic_pattern_is(const struct traffic_dir *d, uint64_t k, const uint8_t *p, uint32_t len);
/* A receive of the direction is to complete, behind all awaited so far. */
void traffic_await(struct traffic *t, struct traffic_dir *d, struct awaited a);
/* A send of the direction's posting host completed with an error: it is dead. */
void traffic_failed(struct traffic *t, struct traffic_dir *d, const struct wc *wc);

/* --- Memory lent (traffic_keys.c) ------------------------------------------------------------- */

/* Allocate memory, windows and regions: 0 or a negative errno; *d is freed by traffic_loans_free() in either case. */
int traffic_loans_open(struct traffic *t, struct traffic_dir *d);
void traffic_loans_free(struct traffic_dir *d);
/* Lend m->len bytes as m->op says: bind or register them, and write the SEND that hands over the key to `p`,
 * TRAFFIC_LOAN_BYTES, which becomes m->len. The number of the loan, or -EAGAIN: too many keys are lent. */
int traffic_lend(struct traffic *t, struct traffic_dir *d, struct sender_message *m, uint8_t *p, ns_t now);
/* The other host WRITEs or READs through the keys of the direction that it has got, if its queue pair can send. */
void traffic_use_keys(struct traffic *t, struct traffic_dir *d, ns_t now);
/* A receive completed that was awaited as AWAIT_KEY or AWAIT_RETURN; false: not with what it should. */
bool traffic_loan_arrived(struct traffic *t, struct traffic_dir *d, const struct awaited *a, const struct wc *wc,
                          const uint8_t *data, uint32_t len);
/* A request with a KEY_ID completed. */
void traffic_loan_completed(struct traffic *t, unsigned conn, unsigned host, const struct wc *wc);
/* Whether no key is lent, and the other host has completed all that it did with keys. */
bool traffic_loans_done(const struct traffic_dir *d);
/* At the end: memory that no valid key covers was not written. */
void traffic_loans_check(struct traffic *t, const struct traffic_dir *d);

/* The direction in which `host` posts messages on a connection; NULL: it posts none. */
struct traffic_dir *traffic_dir_of(struct traffic *t, unsigned conn, unsigned host);
/* sim_app.sent: count the frame for its work request. */
void traffic_sent(void *user, unsigned host, const uint8_t *data, uint32_t len, ns_t now);

#endif
