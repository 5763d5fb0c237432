/* layer 3 (traffic): perftest-like traffic over any provider: messages of one kind and size, posted in a window, at a
 * rate, for a time, or one at a time (latency), measured, and verified as far as their data is known.
 *
 * A flow is the messages of one direction of a connection. Either of its ends, or both, are ours:
 *
 *                            sending end   receiving end
 *     gen/sim/traffic.h      ours          ours            virtual time; each message has data of its own
 *     gen/peers/perf.h       ours          the peer's      its answers, with latency, are a flow the other way
 *
 * What is known of the data, and what else happens to a message, are functions of struct traffic_ways. Times are those
 * of the completions and of the caller: virtual or real. */
#ifndef RDMATRACE_GEN_TRAFFIC_TRAFFIC_H
#define RDMATRACE_GEN_TRAFFIC_TRAFFIC_H

#include "gen/traffic/ops.h"
#include "gen/verbs/receives.h"
#include "prng.h"

#define TRAFFIC_SAMPLES (1u << 22) /* latencies kept at most */
#define TRAFFIC_FLOW    48         /* wr_id: from this bit on the flow; below, the number of the message or receive */
/* wr_id of the caller's own work requests, which traffic_took() must not see. */
#define TRAFFIC_FOREIGN (UINT64_C(1) << 47)

struct traffic_config {
    uint8_t op;            /* enum traffic_op */
    uint8_t type;          /* enum qp_type; not QPT_XRC_TGT */
    uint32_t mix;          /* TRAFFIC_MIXED: mask of 1 << enum traffic_op; 0: all before TRAFFIC_MIXED */
    uint32_t size;         /* bytes of a message, or that it lends; atomics: 8 */
    bool vary;             /* random sizes from 0 to `size` */
    uint64_t iters;        /* messages of a flow; 0: `duration` limits them */
    ns_t duration;         /* with iters 0: messages are posted so long, from the first one on */
    uint32_t qps;          /* connections */
    uint32_t tx_depth;     /* messages outstanding in a flow */
    uint32_t rx_depth;     /* receives posted for a flow; 0: twice tx_depth */
    uint32_t batch;        /* messages posted together, at most tx_depth; 0: 1 */
    uint32_t signal_every; /* every n-th work request is signaled, at most tx_depth; 0: the last of each batch */
    uint64_t rate;         /* bit/s of payload, of all flows together; 0: as fast as possible */
    bool latency;          /* one message at a time; SEND and WRITE: each one is answered by one the other way */
    bool with_imm;         /* SENDs and WRITEs carry immediate data: their number */
    bool solicited;        /* SENDs, and WRITEs with immediate data, ask for a solicited event */
    bool verify;           /* compare data, as far as it is known */
    /* Both ends are ours. */
    uint64_t seed;      /* of operations, sizes and PSNs */
    bool bidirectional; /* host 1 does the same towards host 0; XRC: over as many further connections */
    ns_t recv_delay;    /* an empty receive queue is refilled after this time */
    bool srq;           /* receives are posted to a shared receive queue; one connection only */
    bool psn_given;     /* the connections' PSNs are used unchanged */
    bool disconnect;    /* at the end, if there is a connection manager */
    ns_t time_limit;    /* give up at this time; 0: never */
    /* The other end is a peer's. */
    uint32_t qpn; /* of the first queue pair; 0: the provider chooses */
    uint8_t outs; /* READs and atomics outstanding: initiator depth */
    uint16_t mtu; /* path MTU, bytes */
    bool known;   /* the peer is another rdmagen */
};

/* What the messages are: mask of 1 << enum traffic_op. */
uint32_t traffic_mix(const struct traffic_config *c);
/* Bytes of a slot for a message. */
uint32_t traffic_pitch(const struct traffic_config *c);
/* True if such traffic needs receives: SENDs or immediate data. */
bool traffic_receives(const struct traffic_config *c);
/* True if it lends memory: both ends send requests then. */
bool traffic_lends(const struct traffic_config *c);
/* True if messages are answered. */
bool traffic_answers(const struct traffic_config *c);

/* Results, of a flow or of all. */
struct traffic_result {
    uint64_t posted, completed; /* messages; completed: with success */
    uint64_t bytes;             /* of those completed */
    uint64_t failed;            /* requests with an error, flushed ones included */
    uint64_t received;          /* receive completions with success */
    uint64_t recv_failed;       /* receives with an error other than flushed */
    uint64_t compared;          /* messages, or answers, whose data was known and compared */
    /* messages with wrong data, out of order or duplicate; memory that was written without a valid key; keys that were
     * not valid when they should be, or the other way round */
    uint64_t mismatches;
    uint8_t first_error; /* enum wc_status of the first failure */
    ns_t start, end;     /* first message posted, last one completed */
    /* Latencies: from posting to completion; answered messages: half the time until the answer. */
    uint64_t samples;
    ns_t min, max;
    unsigned __int128 sum;
    /* The best rate over a window of messages. */
    ns_t *when;           /* when the last 2 x window messages were posted; NULL: it is not measured */
    uint32_t window;      /* messages outstanding at most */
    ns_t best;            /* shortest time of `best_n` messages, from the first posting to the last completion */
    uint64_t best_n;      /* window, or all if there are fewer; 0: none yet */
    uint64_t conn_failed; /* the caller's: connections that were not established */
    bool gave_up;         /* the caller's: at a limit of time, or because nothing happened any more */
};

/* Slots for messages, side by side: message k in slot k % n. */
struct traffic_slots {
    uint8_t *mem;   /* the first one; NULL: memory of the peer, which cannot be seen */
    uint64_t addr;  /* its address in work requests */
    uint32_t n;     /* slots, at least 1 */
    uint32_t pitch; /* bytes from one to the next; 0: all messages have the same */
};
uint8_t *traffic_slot(const struct traffic_slots *s, uint64_t k);

/* A message posted and not complete. */
struct traffic_message {
    ns_t posted;     /* when */
    uint64_t expect; /* atomics: the value that it must return */
    uint32_t len;    /* bytes */
    uint8_t op;      /* enum traffic_op, not TRAFFIC_MIXED */
};

/* A message without a receive completion yet. */
struct traffic_awaited {
    uint64_t k;   /* its number */
    uint32_t len; /* bytes */
    uint8_t kind; /* 0: a message of the flow; else traffic_ways.arrived knows */
    uint8_t loan; /* then */
};

struct traffic;

/* The messages of one direction of a connection. */
struct traffic_flow {
    struct traffic *t;
    uint64_t id; /* wr_id of message 0 */
    /* The sending end. */
    struct verbs *verbs;              /* NULL: the peer sends them */
    int qp, ah;                       /* handles; ah: UD */
    uint32_t lkey, rkey;              /* of the memory here, and at the other end */
    uint32_t remote_qpn, remote_qkey; /* UD */
    uint32_t remote_srqn;             /* XRC */
    struct traffic_slots from, to;    /* here, and at the other end */
    uint64_t counter[2];              /* remote addresses of FETCH & ADD and COMPARE & SWAP */
    uint64_t iters;                   /* messages; UINT64_MAX: without end */
    uint64_t posted, completed;       /* messages */
    uint64_t next[2];                 /* what the next FETCH & ADD, and COMPARE & SWAP, must return */
    struct traffic_message *message;  /* number k in k % tx_depth */
    struct prng prng;                 /* operations and sizes */
    bool dead;                        /* failed: no more messages are posted */
    /* The receiving end. */
    struct receives recvs;           /* slots 0: none are ours */
    uint64_t rx_posted, rx_done;     /* receives */
    bool rx_flushed;                 /* the queue pair is in state Error: it takes no more */
    struct traffic_awaited *await;   /* ring */
    uint64_t await_head, await_tail; /* numbers in it, modulo its size */
    /* With answers. */
    struct traffic_flow *back; /* its messages answer those of this flow, and the other way round; NULL: none */
    bool leads;                /* this flow has the first message */
    uint64_t arrived;          /* messages */
    struct traffic_result r;
};

/* What is known of the messages, and what else happens to them. A function may be NULL. */
struct traffic_ways {
    /* Write the data of message `k`; NULL: it is there. */
    void (*put)(const struct traffic_flow *f, uint64_t k, uint8_t *p, uint32_t len);
    /* Whether this is the data of message `k`; NULL: it is not known. */
    bool (*is)(const struct traffic_flow *f, uint64_t k, const uint8_t *p, uint32_t len);
    /* The next message lends memory: write the data of the SEND that hands it over to `p`, its length to m->len, and
     * await it. 0; -EAGAIN: not now. */
    int (*lend)(struct traffic_flow *f, struct traffic_message *m, uint8_t *p, ns_t now);
    /* A receive completed that was awaited with another kind than 0; false: not with what it should. */
    bool (*arrived)(struct traffic_flow *f, const struct traffic_awaited *a, const struct wc *wc, const uint8_t *data,
                    uint32_t len);
    /* Message number f->posted - 1, whose data is at `remote` at the other end, was posted. */
    void (*posted)(struct traffic_flow *f, const struct traffic_message *m, uint64_t remote, ns_t now);
    /* Work requests up to message `k` completed. */
    void (*completed)(struct traffic_flow *f, uint64_t k, const struct wc *wc);
    /* A request or a receive completed with an error. */
    void (*failed)(struct traffic_flow *f, const struct wc *wc);
};

struct traffic {
    struct traffic_config c; /* with defaults filled in */
    struct traffic_ways ways;
    struct traffic_flow **flow; /* n_flows of them, of the caller */
    uint32_t n_flows;
    uint32_t ring;    /* size of traffic_flow.await, a power of two */
    bool peak;        /* the best rates are measured */
    ns_t until, next; /* no message is posted from `until` on, and, because of c.rate, none before `next` */
    struct traffic_result r;
    uint32_t *sample;       /* latencies in ns */
    uint32_t samples, room; /* of `sample`: used, allocated */
};

/* Prepare traffic of at most two flows for each connection: 0 or -ENOMEM; traffic_free() in either case. */
int traffic_init(struct traffic *t, const struct traffic_config *c, const struct traffic_ways *ways, bool peak);
/* Also frees what traffic_add() allocated for the flows, which are the caller's. */
void traffic_free(struct traffic *t);
/* Add a flow, all zero, whose messages queue pair `qp` sends; `verbs` NULL: the peer does. The caller fills in the
 * keys and addresses of the sending end. 0 or -ENOMEM. */
int traffic_add(struct traffic *t, struct traffic_flow *f, struct verbs *verbs, int qp);
/* Its messages arrive in receives of a queue pair of ours. `at`: .verbs, .qp, .srq, .mem, of traffic_receive_bytes(),
 * .iova, .lkey. */
void traffic_receive(struct traffic_flow *f, const struct receives *at);
/* Bytes of memory that `n` receives take. */
size_t traffic_receive_bytes(const struct traffic *t, uint32_t n);
/* The two flows answer each other; `a` has the first message. */
void traffic_pair(struct traffic_flow *a, struct traffic_flow *b);

/* Post the missing receives of a flow: 0, or the error of the provider. */
int traffic_post_receives(struct traffic_flow *f, ns_t now);
/* Post the messages that are due: 0, or the error of the provider or of traffic_ways.lend. */
int traffic_post(struct traffic_flow *f, ns_t now);
/* The flow that a work request belongs to. */
struct traffic_flow *traffic_flow_of(const struct traffic *t, uint64_t wr_id);
/* A work request of a flow completed: verify its data, and count. */
void traffic_took(struct traffic *t, const struct wc *wc);
/* WRITEs that are answered: see whether the next one of each flow whose receiving end is ours has arrived. */
void traffic_look(struct traffic *t, ns_t now);
/* Whether all messages of the flow are complete, and received where that is certain, or its queue pair failed. */
bool traffic_flow_done(const struct traffic_flow *f, ns_t now);
/* How much is done, in 1/1000, where a number of messages is given. */
unsigned traffic_progress(const struct traffic *t);

/* A receive of the flow is to complete, behind all awaited so far. */
void traffic_await(struct traffic_flow *f, struct traffic_awaited a);
/* Data of the flow was compared. */
void traffic_compared(struct traffic_flow *f, bool good);
/* Count a mismatch if `wrong`. */
void traffic_wrong(struct traffic_flow *f, bool wrong);
/* A request of the flow completed with an error: it is dead. */
void traffic_failed(struct traffic_flow *f, const struct wc *wc);

/* --- Measures (measure.c) --------------------------------------------------------------------- */

/* Figures of a result; times in microseconds. */
struct traffic_figures {
    double seconds;                       /* from the first posting to the last completion */
    double peak, average;                 /* bytes/s */
    double rate;                          /* messages/s */
    double min, max, mean;                /* latencies */
    double typical, deviation, p99, p999; /* of all flows only: median, percentiles 99 and 99.9 */
};
/* The figures of flow `f`, or of all if it is NULL. Sorts the samples. */
struct traffic_figures traffic_figures(struct traffic *t, const struct traffic_flow *f);
/* A message was posted, completed, took so long. */
void traffic_count_posted(struct traffic_flow *f, ns_t now);
void traffic_count_completed(struct traffic_flow *f, uint32_t bytes, ns_t now);
void traffic_count_took(struct traffic_flow *f, ns_t took);

#endif
