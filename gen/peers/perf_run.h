/* layer 3 (peers): the active side of perftest-like traffic with a peer in another process. Every queue pair sends a
 * number of messages of one operation and size, with a window of them outstanding, or (latency) one at a time. It
 * measures as perftest does, and verifies data where the expected data is known.
 *
 * With `validate` it verifies:
 *
 * - READ: every message: against rdmagen's pattern if the peer is rdmagen; else against the data of the first READ,
 *   as nobody changes the memory.
 * - WRITE: if the peer is rdmagen: at the end it READs the memory written, which must hold the last message.
 * - SEND: nothing here: the receiver verifies (rdmagen serve does, and reports the result). With `latency` it checks
 * the message of the peer: its length, and, if the peer is rdmagen, its data, which are those sent.
 * - CAS: every response holds the value that the previous one stored, as each comparison must succeed.
 * - FAA: every response is one more than the previous one.
 *
 * The traffic of a simulation (gen/sim/traffic.h) posts and completes its messages by the same struct sender; what it
 * does with them differs: it has the memory and the completions of both hosts, so each of its messages has content of
 * its own and both ends are verified. */
#ifndef RDMATRACE_GEN_PEERS_PERF_RUN_H
#define RDMATRACE_GEN_PEERS_PERF_RUN_H

#include "gen/peers/perftest.h"
#include "gen/peers/xrc.h"
#include "gen/verbs/receives.h"
#include "gen/verbs/sender.h"

#define LOAD_MEMORY  (256u << 20)                 /* bytes for the messages of all queue pairs at most */
#define LOAD_SAMPLES (1u << 22)                   /* latencies kept at most */
#define LOAD_SEED    UINT64_C(0x52444d4147454e21) /* seed of the pattern in rdmagen's memory, which READs return */

/* The name that perftest uses for `op`, which is not TRAFFIC_MIXED. */
enum perftest_op load_perftest_op(enum traffic_op op);

/* Fill `n` bytes with the pattern of `seed`: the first 8 bytes are the seed, little-endian; a shorter pattern is the
 * beginning of a longer one. */
void load_pattern(uint8_t *p, size_t n, uint64_t seed);
/* Whether the bytes after the first 8 have the pattern of the seed in these. */
bool load_pattern_ok(const uint8_t *p, size_t n);

/* A work request to the queue pair that `peer` describes. `sge`: all its data, may be empty; `ah`: of UD. wr_id and
 * flags are 0. */
struct send_wr load_wr(enum wr_opcode op, const struct sge *sge, const struct perftest_keys *peer, int ah);

/* Options of a load. */
struct load_config {
    uint8_t op;     /* enum traffic_op, not TRAFFIC_MIXED */
    uint8_t type;   /* enum qp_type; QPT_XRC_INI: the peer has the targets */
    uint32_t size;  /* bytes of a message; atomics: 8 */
    uint32_t qps;   /* queue pairs */
    uint32_t qpn;   /* QPN of the first queue pair; 0: the provider chooses */
    uint64_t iters; /* messages of each queue pair; 0: `duration` limits them */
    ns_t duration;  /* with iters 0: ns in which messages are posted */
    uint32_t depth; /* messages outstanding on each queue pair */
    uint32_t batch; /* messages posted together, with one completion; at most depth */
    uint8_t outs;   /* READs and atomics outstanding: initiator depth */
    uint64_t rate;  /* bit/s of payload, of all queue pairs together; 0: as fast as possible */
    bool latency;   /* one message at a time; SEND and WRITE: the peer sends each one back */
    bool validate;  /* verify data as described above */
    bool known;     /* the peer is another rdmagen (may be set until load_start()) */
    uint16_t mtu;   /* path MTU, bytes */
};

/* Times of the messages of one queue pair, or of all. */
struct load_meter {
    uint64_t posted, completed; /* messages */
    uint32_t window;            /* messages outstanding at most */
    uint32_t ring;              /* twice that */
    ns_t *when;                 /* when the last `ring` messages were posted */
    ns_t first, last;           /* when the first message was posted, and the last one completed */
    ns_t best;                  /* shortest time of `best_n` messages, from the first posting to the last completion */
    uint64_t best_n;            /* window, or all if there are fewer; 0: none yet */
    struct traffic_times
        took; /* from posting to completion; latency of SEND and WRITE: half the time until the peer's message */
};

/* A queue pair. */
struct load_qp {
    int qp, ah;                     /* handles; ah: of UD */
    struct sender s;                /* its messages; set by load_start() */
    struct perftest_keys own, peer; /* own.rkey and .vaddr: the memory to which the peer may WRITE */
    struct load_meter m;
    uint8_t *mem;          /* slots of messages, then of receives */
    struct receives recvs; /* in mem: where the messages of the peer arrive */
    uint64_t answers;      /* messages of the peer received, with latency */
    uint64_t compared;     /* messages, responses, or the memory written, that were verified */
    uint64_t mismatches;   /* of these with wrong data, or with a wrong length */
    bool learned, checked; /* the first atomic or READ has completed; the memory written was READ */
};

/* Results, of a queue pair or of all. */
struct load_stats {
    /* messages completed, and their bytes; messages verified, and those with wrong data */
    uint64_t messages, bytes, compared, mismatches;
    double seconds;                                       /* from the first posting to the last completion */
    double peak, average;                                 /* bytes/s */
    double rate;                                          /* messages/s */
    uint64_t samples;                                     /* latencies kept; the following values are in microseconds */
    double min, max, typical, mean, deviation, p99, p999; /* latencies; p99, p999: percentiles 99 and 99.9 */
};

struct load {
    struct verbs *verbs;
    struct load_config config;
    struct load_qp *qp;            /* config.qps of them */
    struct load_meter all;         /* times of all queue pairs together */
    struct xrc xrc;                /* XRC; with latency the target that the peer's requests come to */
    int cq;                        /* handle */
    uint32_t pd, key, slots, slot; /* slot: bytes from the memory of one message to that of the next */
    uint8_t *mem;                  /* memory of all queue pairs */
    size_t mem_len;                /* bytes of `mem` */
    uint8_t *sample;               /* READ: the expected data, `size` bytes */
    uint32_t *latency;             /* in ns, at most LOAD_SAMPLES */
    uint32_t samples, room;        /* of `latency`: used, allocated */
    uint8_t stage;                 /* internal */
    ns_t until, next; /* no message is posted from `until` on, and, because of `rate`, none before `next` */
    unsigned turn;    /* queue pair that posts first */
    bool failed;
    char why[160]; /* reason of `failed` */
};

/* Create queue pairs (in RESET) and memory. 0 or a negative errno; call load_free() in either case. */
int load_init(struct load *l, struct verbs *verbs, const struct load_config *config);
/* Free queue pairs and memory; also after load_init() failed. */
void load_free(struct load *l);
/* Connect queue pair `i`: RESET to RTS. `av`: the path. 0 or a negative errno. l->qp[i].peer is filled in. */
int load_connect(struct load *l, unsigned i, const struct av *av, ns_t now);
/* The queue pairs have left RESET: post the receives. */
void load_ready(struct load *l, ns_t now);
/* Start posting messages. */
void load_start(struct load *l, ns_t now);
/* Poll completions, post the messages that are due. Returns the time by which it must be called again (NS_NEVER: when a
 * packet arrives). */
ns_t load_poll(struct load *l, ns_t now);
/* When the next message may be posted, if only config.rate delays it and none is outstanding; else 0. */
ns_t load_paced(const struct load *l);
/* Post no more messages; outstanding ones still complete. */
void load_stop(struct load *l);
/* Whether all messages are complete, or l->failed. */
bool load_done(const struct load *l);
/* Fail with a reason, unless the load has failed already. */
void load_fail(struct load *l, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The results; of queue pair `i`, or of all if `i` is negative (percentiles: of all only). Sorts the samples. */
void load_result(struct load *l, int i, struct load_stats *s);

#endif
