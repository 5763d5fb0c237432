/* layer 3 (workload): collective operations of n ranks, as steps: in a step a rank sends at most one message, and gets
 * at most one. A rank goes on to its next step when the message of this one is there. Data are numbers of 32 bits that
 * are added; each rank's result is verified. */
#ifndef RDMATRACE_GEN_WORKLOAD_COLLECTIVE_H
#define RDMATRACE_GEN_WORKLOAD_COLLECTIVE_H

#include "types.h"

/* A collective in progress. */
struct coll {
    const struct collective *k;
    const char *name;
    struct coll *next;  /* the one behind it; NULL: none */
    unsigned n;         /* ranks */
    unsigned steps;     /* of a round */
    unsigned ordered;   /* of these, the first ones, which a rank begins when the message it sent before is done */
    uint64_t bytes;     /* of data of a rank */
    uint64_t block;     /* bytes / n */
    uint8_t **mem;      /* by rank */
    uint32_t *sum;      /* what all ranks' data add up to */
    uint32_t *step;     /* by rank: the step it is in */
    uint8_t *begun;     /* by rank: its step has begun */
    uint32_t *sends;    /* by rank: its messages under way */
    uint32_t *waits;    /* by rank and step: messages that come, one unless they are cut */
    uint32_t *there;    /* by rank and step: of these, have come */
    unsigned left;      /* ranks that have no result yet */
    uint64_t under_way; /* messages */
    ns_t began;
    uint64_t iters, rounds;               /* rounds to do, and finished */
    ns_t round_min, round_max, round_sum; /* ns from the beginning of a round until the last rank has its result */
    uint64_t wrong;                       /* ranks whose result was wrong */
};

/* A message of a rank. */
struct coll_move {
    unsigned to;
    uint64_t from_at, to_at; /* offsets in the memory of the two ranks */
    uint64_t bytes;
};

/* An algorithm; functions may be NULL where `coll` says so. */
struct collective {
    unsigned (*steps)(unsigned n);
    bool power_of_two; /* only for so many ranks */
    bool empty;        /* there are no data */
    unsigned (*in_order)(
        unsigned n); /* in so many steps a rank begins when the message it sent before is done; NULL: 0 */
    unsigned (*factor)(unsigned n);              /* bus bandwidth: factor / n of the bandwidth */
    uint64_t (*memory)(const struct coll *c);    /* bytes of a rank; its data come first */
    void (*init)(struct coll *c, unsigned rank); /* NULL: the data are as coll_value() says */
    bool (*move)(const struct coll *c, unsigned rank, unsigned step, struct coll_move *m); /* false: it sends nothing */
    void (*begin)(struct coll *c, unsigned rank, unsigned step);                           /* before it sends; NULL */
    void (*finish)(struct coll *c, unsigned rank, unsigned step); /* the message is there; NULL */
    bool (*right)(const struct coll *c, unsigned rank);
};

extern const struct collective allreduce_ring, reducescatter_ring, allgather_ring, allreduce_doubling,
    allreduce_halving, reducescatter_halving, allgather_doubling, alltoall_pairwise, alltoall_bruck, broadcast_binomial,
    broadcast_scatter, reduce_binomial, gather_binomial, scatter_binomial, barrier_dissemination;

/* The smallest k with 2^k >= n. */
unsigned coll_log2(unsigned n);
/* The largest power of two that is not above `n`; for so many ranks some algorithms are made. Others are folded in and
 * out: in the first step they send their data to the rank that is this power below, which adds them to its own, and in
 * the last one they get the result. */
unsigned coll_power(unsigned n);
/* Steps of an algorithm that has `inner` for a power of two. */
unsigned coll_folded(unsigned n, unsigned inner);
/* Offsets in the memory of a rank. */
struct coll_places {
    uint64_t in;     /* where the data of a rank that is folded in arrive */
    uint64_t result; /* the result */
    uint64_t out;    /* the same of a rank that was folded in */
};
/* True if nothing else is to be done in `step` than folding: `sends` says whether the rank sends something, which is
 * `m`. Otherwise `step` becomes that of the algorithm. */
bool coll_fold(const struct coll *c, unsigned rank, unsigned *step, const struct coll_places *at, struct coll_move *m,
               bool *sends);
/* Likewise, when the message of a step is there. */
bool coll_fold_finish(struct coll *c, unsigned rank, unsigned *step, uint64_t in);
/* True if the rank has the sum of all. */
bool coll_fold_right(const struct coll *c, unsigned rank, const struct coll_places *at);
/* Number `i` of the data of a rank. */
uint32_t coll_value(unsigned rank, uint64_t i);
/* `to` += `from`, `bytes` of numbers at these offsets of the rank's memory. */
void coll_add(struct coll *c, unsigned rank, uint64_t to, uint64_t from, uint64_t bytes);
/* True if `bytes` at `at` of the rank's memory are the sums from byte `first` of the data on. */
bool coll_is_sum(const struct coll *c, unsigned rank, uint64_t at, uint64_t first, uint64_t bytes);
/* True if they are the data of rank `of` from byte `first` on. */
bool coll_is_data(const struct coll *c, unsigned rank, uint64_t at, unsigned of, uint64_t first, uint64_t bytes);
/* True if they are the data of each rank in its own block, from that of rank `first` on, `blocks` of them. */
bool coll_is_gathered(const struct coll *c, unsigned rank, unsigned first, unsigned blocks);
/* Bus bandwidth of nccl-tests: 2(n - 1) of an all-reduce; n - 1 of the others; n of a broadcast or reduce. */
unsigned coll_factor_allreduce(unsigned n);
unsigned coll_factor_others(unsigned n);
unsigned coll_factor_broadcast(unsigned n);

#endif
