/* layer 3 (peers): the active side of perftest-like traffic with a peer in another process: so many messages of a kind
 * and size on every queue pair, a window of them under way, or one at a time and its answer; measured as perftest does,
 * data compared where it can be known.
 *
 * What is compared (with `validate`):
 * - READ: every message: with rdmagen's pattern if the peer is rdmagen; else with what the first READ brought, as
 * nobody changes it.
 * - WRITE: if the peer is rdmagen: at the end the memory written is READ, and must hold the last message.
 * - SEND: nothing here: the receiver compares (rdmagen serve does, and tells). With `latency` the peer's answer is
 * looked at: its length, and, if the peer is rdmagen, its data, which are those sent.
 * - CAS: every answer: the value that the one before stored, as each comparison must succeed.
 * - FAA: every answer: one more than that of the one before.
 *
 * The traffic of a simulation (gen/sim/traffic.h) is another program over the same verbs: it has the memory and the
 * completions of both hosts at hand, so that each message has content of its own and both ends are compared. */
#ifndef RDMATRACE_GEN_PEERS_PERF_RUN_H
#define RDMATRACE_GEN_PEERS_PERF_RUN_H

#include "gen/peers/perftest.h"
#include "gen/verbs/receives.h"
#include "gen/verbs/traffic_ops.h"

#define LOAD_MEMORY  (256u << 20)                 /* bytes at most for the messages of all queue pairs */
#define LOAD_SAMPLES (1u << 22)                   /* latencies kept at most */
#define LOAD_SEED    UINT64_C(0x52444d4147454e21) /* of the pattern in rdmagen's memory that READs find */

/* As perftest calls `op`, which is not TRAFFIC_MIXED. */
enum perftest_op load_perftest_op(enum traffic_op op);

/* `n` bytes that follow from `seed`, of which the first 8 are the little-endian number; the same for all lengths. */
void load_pattern(uint8_t *p, size_t n, uint64_t seed);
/* Whether the bytes behind the first 8 follow from these. */
bool load_pattern_ok(const uint8_t *p, size_t n);

/* A request to a queue pair of which `peer` tells: `sge` is all its data, which may be empty; `ah`: UD. wr_id and flags
 * are 0. */
struct send_wr load_wr(enum wr_opcode op, const struct sge *sge, const struct perftest_keys *peer, int ah);

struct load_config {
    uint8_t op;    /* enum traffic_op, not TRAFFIC_MIXED */
    uint8_t type;  /* enum qp_type */
    uint32_t size; /* bytes of a message; atomics: 8 */
    uint32_t qps;
    uint32_t qpn;   /* number of the first queue pair; 0: the provider's choice */
    uint64_t iters; /* messages of each queue pair; 0: `duration` */
    ns_t duration;
    uint32_t depth; /* messages under way on each queue pair */
    uint32_t batch; /* posted at a time, with one completion; at most depth */
    uint8_t outs;   /* READs and atomics outstanding: initiator depth */
    uint64_t rate;  /* bit/s of payload, all queue pairs together; 0: as fast as possible */
    bool latency;   /* one at a time; SEND and WRITE: the peer answers each with the same */
    bool validate;
    bool known;   /* the peer is rdmagen (may be set until load_start()) */
    uint16_t mtu; /* path MTU, bytes */
};

/* Times of one queue pair's messages, or of all. */
struct load_meter {
    uint64_t posted, completed; /* messages */
    uint32_t window;            /* the most under way at a time */
    uint32_t ring;              /* twice that */
    ns_t *when;                 /* times of posting, of the last `ring` messages */
    ns_t first, last;           /* first posted, last completed */
    ns_t best;                  /* shortest time that `best_n` messages took, first posting to last completion */
    uint64_t best_n;            /* window, or all if there are fewer; 0: none yet */
    struct traffic_times took;  /* from posting to completion; half the time to the peer's answer */
};

struct load_qp {
    int qp, ah;
    struct perftest_keys own, peer; /* own.rkey and .vaddr: where the peer may write its answers */
    struct load_meter m;
    uint8_t *mem;          /* slots of messages, then those of receives */
    struct receives recvs; /* in mem: where answers arrive */
    uint64_t answers;      /* of the peer, with latency */
    uint64_t compared;     /* messages, answers, or the memory written */
    uint64_t mismatches;   /* of these, or answers of a wrong length */
    uint64_t expect;       /* atomics: the value there before the first */
    bool learned, checked; /* the first atomic, or READ, came back; the memory written was read */
};

struct load_stats {
    uint64_t messages, bytes, compared, mismatches;
    double seconds;
    double peak, average; /* bytes/s */
    double rate;          /* messages/s */
    uint64_t samples;     /* of what follows; microseconds */
    double min, max, typical, mean, deviation, p99, p999;
};

struct load {
    struct verbs *verbs;
    struct load_config config;
    struct load_qp *qp;
    struct load_meter all;
    int cq;
    uint32_t pd, key, slots, slot; /* slot: bytes from one message's memory to the next */
    uint8_t *mem;
    size_t mem_len;
    uint8_t *sample;   /* READ: what a message must hold, `size` bytes */
    uint32_t *latency; /* in ns, at most LOAD_SAMPLES */
    uint32_t samples, room;
    uint8_t stage;    /* internal */
    ns_t until, next; /* nothing is posted from `until` on; nor before `next`, because of `rate` */
    unsigned turn;    /* queue pair that posts first */
    bool failed;
    char why[160];
};

/* Make queue pairs (in RESET) and memory. 0, or a negative errno; load_free() in any case. */
int load_init(struct load *l, struct verbs *verbs, const struct load_config *config);
void load_free(struct load *l);
/* Connect queue pair `i`: RESET to RTS. `av`: the path. 0 or a negative errno. l->qp[i].peer is filled in. */
int load_connect(struct load *l, unsigned i, const struct av *av, ns_t now);
/* The queue pairs have left RESET: post what receives are needed. */
void load_ready(struct load *l, ns_t now);
/* Begin. */
void load_start(struct load *l, ns_t now);
/* Take completions, post what is due. Returns when it wants to be called again at the latest (NS_NEVER: when something
 * arrives). */
ns_t load_poll(struct load *l, ns_t now);
/* When the next message may be posted, if nothing but config.rate keeps it and none is under way; else 0. */
ns_t load_paced(const struct load *l);
/* Post no more: what is under way still completes. */
void load_stop(struct load *l);
/* All that is to be done, or l->failed. */
bool load_done(const struct load *l);
void load_fail(struct load *l, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The results; of queue pair `i`, or of all if `i` is negative (percentiles: of all only). Sorts the samples. */
void load_result(struct load *l, int i, struct load_stats *s);

#endif
