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
    bool power_of_two;                           /* only for so many ranks */
    bool empty;                                  /* there are no data */
    bool in_order;                               /* a rank begins a step when the message that it sent before is done */
    unsigned (*factor)(unsigned n);              /* bus bandwidth: factor / n of the bandwidth */
    uint64_t (*memory)(const struct coll *c);    /* bytes of a rank; its data come first */
    void (*init)(struct coll *c, unsigned rank); /* NULL: the data are as coll_value() says */
    bool (*move)(const struct coll *c, unsigned rank, unsigned step, struct coll_move *m); /* false: it sends nothing */
    void (*begin)(struct coll *c, unsigned rank, unsigned step);                           /* before it sends; NULL */
    void (*finish)(struct coll *c, unsigned rank, unsigned step); /* the message is there; NULL */
    bool (*right)(const struct coll *c, unsigned rank);
};

extern const struct collective allreduce_ring, reducescatter_ring, allgather_ring, allreduce_doubling,
    allreduce_halving, alltoall_pairwise, alltoall_bruck, broadcast_binomial, barrier_dissemination;

/* The smallest k with 2^k >= n. */
unsigned coll_log2(unsigned n);
/* Number `i` of the data of a rank. */
uint32_t coll_value(unsigned rank, uint64_t i);
/* `to` += `from`, `bytes` of numbers at these offsets of the rank's memory. */
void coll_add(struct coll *c, unsigned rank, uint64_t to, uint64_t from, uint64_t bytes);
/* True if `bytes` at `at` of the rank's memory are the sums from byte `first` of the data on. */
bool coll_is_sum(const struct coll *c, unsigned rank, uint64_t at, uint64_t first, uint64_t bytes);
/* True if they are the data of rank `of` from byte `first` on. */
bool coll_is_data(const struct coll *c, unsigned rank, uint64_t at, unsigned of, uint64_t first, uint64_t bytes);
/* Bus bandwidth of nccl-tests: 2(n - 1) of an all-reduce; n - 1 of the others; n of a broadcast. */
unsigned coll_factor_allreduce(unsigned n);
unsigned coll_factor_others(unsigned n);
unsigned coll_factor_broadcast(unsigned n);

#endif
