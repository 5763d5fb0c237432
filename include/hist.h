/* layer 0 (base): a distribution of times in bounded memory: a histogram whose buckets grow with the value. */
#ifndef RDMATRACE_HIST_H
#define RDMATRACE_HIST_H

#include "types.h"

/* Each power of two is cut into 2^HIST_BITS buckets, so a bucket is at most 1/32 of its values wide and hist_permille()
 * is wrong by at most half of that: HIST_ERROR_PERCENT. Values from 2^HIST_TOP ns (9.8 hours) on share the last
 * bucket. */
#define HIST_BITS          5
#define HIST_TOP           45
#define HIST_BUCKETS       ((HIST_TOP - HIST_BITS + 1) << HIST_BITS)
#define HIST_ERROR_PERCENT 1.6

/* Zero-initialise. */
struct hist {
    uint64_t n;
    ns_t min, max; /* exact; valid if n is not 0 */
    uint32_t bucket[HIST_BUCKETS];
};

/* Count a value; negative ones count as 0. */
void hist_add(struct hist *h, ns_t v);
/* The value at rank `permille` of 1000 (nearest rank): the middle of its bucket; the smallest and largest value are
 * exact. 0 without values. */
ns_t hist_permille(const struct hist *h, unsigned permille);

#endif
