/* layer 3 (peers): perftest-like traffic with a peer in another process: the flow of each queue pair, whose receiving
 * end is the peer's (gen/traffic/traffic.h).
 *
 * With `verify` it compares:
 *
 * - READ: every message: with rdmagen's pattern if the peer is rdmagen; else with the data of the first READ,
 *   as nobody changes the memory.
 * - WRITE: if the peer is rdmagen: at the end it READs the memory written, which must hold the last message.
 * - SEND: nothing here: the receiver verifies (rdmagen serve does, and reports the result). With `latency` it checks
 *   the message of the peer: its length, and, if the peer is rdmagen, its data, which are those sent.
 * - CAS: every response holds the value that the previous one stored, as each comparison must succeed.
 * - FAA: every response is one more than the previous one. */
#ifndef RDMATRACE_GEN_PEERS_PERF_H
#define RDMATRACE_GEN_PEERS_PERF_H

#include "gen/peers/perftest.h"
#include "gen/peers/why.h"
#include "gen/peers/xrc.h"
#include "gen/traffic/traffic.h"

#define PERF_MEMORY (256u << 20)                 /* bytes for the messages of all queue pairs at most */
#define PERF_SEED   UINT64_C(0x52444d4147454e21) /* seed of the pattern in rdmagen's memory, which READs return */

/* The name that perftest uses for `op`, which is not TRAFFIC_MIXED. */
enum perftest_op perf_op(enum traffic_op op);

/* Fill `n` bytes with the pattern of `seed`: the first 8 bytes are the seed, little-endian; a shorter pattern is the
 * beginning of a longer one. */
void perf_pattern(uint8_t *p, size_t n, uint64_t seed);
/* Whether the bytes after the first 8 have the pattern of the seed in these. */
bool perf_pattern_ok(const uint8_t *p, size_t n);

/* A work request to the queue pair that `peer` describes. `sge`: all its data, may be empty; `ah`: of UD. wr_id and
 * flags are 0. */
struct send_wr perf_wr(enum wr_opcode op, const struct sge *sge, const struct perftest_keys *peer, int ah);

/* A queue pair. */
struct perf_qp {
    struct traffic_flow out, in;    /* messages, and the peer's answers to them; `out` is the first member */
    int qp, ah;                     /* handles; ah: of UD */
    struct perftest_keys own, peer; /* own.rkey and .vaddr: the memory to which the peer may WRITE */
    uint8_t *mem, *answer;          /* slots of messages; memory for the peer's, or for what is READ from it */
};

enum perf_stage { PERF_IDLE, PERF_LEARN, PERF_RUN, PERF_CHECK, PERF_DONE };

/* The traffic of all queue pairs. */
struct perf {
    struct traffic t; /* first */
    struct verbs *verbs;
    struct perf_qp *qp;    /* t.c.qps of them */
    struct xrc xrc;        /* XRC; with latency the target that the peer's requests come to */
    int cq;                /* handle */
    uint32_t pd, key;      /* of the memory */
    uint32_t slots;        /* messages that have memory of their own, for each queue pair */
    uint8_t *mem;          /* memory of all queue pairs */
    uint8_t *sample;       /* READ: the expected data, `size` bytes */
    uint8_t stage;         /* enum perf_stage */
    uint32_t extras, turn; /* requests before and behind the messages outstanding; queue pair to post next */
    char why[WHY_MAX];     /* why it failed; "": it did not */
};

/* What is known of the messages: the data that the peer returns. */
extern const struct traffic_ways perf_ways;

/* Create queue pairs (in RESET) and memory. 0 or a negative errno; call perf_free() in either case. */
int perf_init(struct perf *p, struct verbs *verbs, const struct traffic_config *config);
/* Free queue pairs and memory; also after perf_init() failed. */
void perf_free(struct perf *p);
/* Connect queue pair `i`: RESET to RTS. `av`: the path. 0 or a negative errno. p->qp[i].peer is filled in. */
int perf_connect(struct perf *p, unsigned i, const struct av *av, ns_t now);
/* The queue pairs have left RESET: post the receives. */
void perf_ready(struct perf *p, ns_t now);
/* Start posting messages. */
void perf_start(struct perf *p, ns_t now);
/* Poll completions, post the messages that are due. Returns the time by which it must be called again (NS_NEVER: when a
 * packet arrives). */
ns_t perf_poll(struct perf *p, ns_t now);
/* When the next message may be posted, if only the rate delays it and none is outstanding; else 0. */
ns_t perf_paced(const struct perf *p);
/* Whether all messages are complete, or it has failed. */
bool perf_done(const struct perf *p);

#endif
