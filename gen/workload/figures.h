/* layer 3 (workload): figures of reports: completion times, slowdown, fairness, bandwidth. Decimals are thousandths. */
#ifndef RDMATRACE_GEN_WORKLOAD_FIGURES_H
#define RDMATRACE_GEN_WORKLOAD_FIGURES_H

#include "gen/workload/workload_impl.h"

#define FIG_BINS 20 /* of messages by size */

/* A message that is done. */
struct fct {
    uint64_t bytes, slowdown; /* in thousandths */
    ns_t took;
};

/* Slowdown of messages of a size, or of several sizes. */
struct size_bin {
    uint64_t bytes;    /* the largest */
    uint32_t from, to; /* of the messages, which are sorted by their slowdown within */
};

/* num / den in thousandths. */
uint64_t fig_thousandths(unsigned __int128 num, unsigned __int128 den);
/* Append thousandths as a number with three decimals. */
void fig_decimal(struct buf *b, uint64_t milli);
/* All messages that are done, to be freed; NULL: no memory. */
struct fct *fig_messages(const struct workload *w, uint32_t *n);
/* For qsort(). */
int fig_by_took(const void *a, const void *b);
int fig_by_slowdown(const void *a, const void *b);
/* The element below which `percent` of `n` sorted ones are. */
const struct fct *fig_percent(const struct fct *f, uint32_t n, unsigned percent);
/* The messages in up to `most` parts of as many each, by size; returns how many parts. */
unsigned fig_sizes(struct fct *f, uint32_t n, struct size_bin *bin, unsigned most);
/* Jain's index of the rates of flows, in thousandths; 0: fewer than two are done. */
uint64_t fig_jain(const struct workload *w);
/* bit/s of `bytes` in `ns`, times num / den. */
uint64_t fig_bandwidth(uint64_t bytes, ns_t ns, unsigned num, unsigned den);
/* Mean time of a round, ns; 0: there was none. */
ns_t fig_round_mean(const struct coll *c);
/* Bus bandwidth of nccl-tests, bit/s. */
uint64_t fig_bus_bandwidth(const struct coll *c);

#endif
