/* layer 2 (cc): internal: what the schemes share. */
#ifndef RDMATRACE_CC_IMPL_H
#define RDMATRACE_CC_IMPL_H

#include "src/cc/cc.h"

/* The state of a scheme, a struct declared with CC_STATE, of a queue pair. */
#define CC_STATE __attribute__((may_alias))
#define CC_STATE_OF(c, type)                                                                                           \
    (__extension__({                                                                                                   \
        _Static_assert(sizeof(type) <= sizeof((c)->state), "CC_STATE_WORDS is too small");                             \
        (type *)(void *)(c)->state;                                                                                    \
    }))

/* x * share / CC_ONE, for any x. */
static inline uint64_t cc_part(uint64_t x, uint64_t share)
{
    return (uint64_t)((unsigned __int128)x * share / CC_ONE);
}
/* a * b / c, rounded down, at most UINT64_MAX; c is not 0. */
static inline uint64_t cc_mul_div(uint64_t a, uint64_t b, uint64_t c)
{
    unsigned __int128 x = (unsigned __int128)a * b / c;

    return x < UINT64_MAX ? (uint64_t)x : UINT64_MAX;
}
static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}
static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}
static inline ns_t min_ns(ns_t a, ns_t b)
{
    return a < b ? a : b;
}

/* A new rate, of at least `least` (and 1) and at most the line's; a lower one counts as a cut. */
void cc_set_rate(struct cc *c, uint64_t rate, uint64_t least);
/* Bytes that the line carries in `time`. */
static inline uint64_t cc_bytes_in(uint64_t bps, ns_t time)
{
    return cc_mul_div(bps, (uint64_t)time, 8 * (uint64_t)NS_PER_S);
}

extern const struct cc_scheme cc_none, cc_dcqcn, cc_dcqcn_cx, cc_timely, cc_timely_patched, cc_swift, cc_rocc, cc_rttcc,
    cc_sq, cc_hpcc;

#endif
