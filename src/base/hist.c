/* layer 0 (base): a log-linear histogram. */
#include "hist.h"

#define SUB (1u << HIST_BITS)

/* Values below 2^(HIST_BITS + 1) have a bucket each; above, the upper HIST_BITS + 1 bits choose it. */
static unsigned bucket_of(uint64_t v)
{
    unsigned shift;

    if (v >> HIST_TOP)
        return HIST_BUCKETS - 1;
    if (v < 2 * SUB)
        return (unsigned)v;
    shift = 63u - (unsigned)__builtin_clzll(v) - HIST_BITS;
    return (shift << HIST_BITS) + (unsigned)(v >> shift);
}

/* The middle of a bucket. */
static ns_t middle_of(unsigned b)
{
    unsigned shift;

    if (b < 2 * SUB)
        return b;
    shift = (b >> HIST_BITS) - 1;
    return (ns_t)((uint64_t)(SUB + (b & (SUB - 1))) << shift) + (INT64_C(1) << shift >> 1);
}

void hist_add(struct hist *h, ns_t v)
{
    if (v < 0)
        v = 0;
    if (!h->n || v < h->min)
        h->min = v;
    if (!h->n || v > h->max)
        h->max = v;
    h->n++;
    h->bucket[bucket_of((uint64_t)v)]++;
}

ns_t hist_permille(const struct hist *h, unsigned permille)
{
    uint64_t rank = (h->n / 1000) * permille + (h->n % 1000 * permille + 999) / 1000, seen = 0;
    ns_t v;

    if (!h->n)
        return 0;
    if (rank <= 1)
        return h->min;
    if (rank >= h->n)
        return h->max;
    for (unsigned b = 0; b < HIST_BUCKETS; b++) {
        seen += h->bucket[b];
        if (seen < rank)
            continue;
        v = middle_of(b);
        return v < h->min ? h->min : v > h->max ? h->max : v;
    }
    return h->max;
}
