/* layer 0 (base): arithmetic on 24-bit packet sequence numbers (IBTA volume 1, 9.7.1). */
#ifndef RDMATRACE_PSN_H
#define RDMATRACE_PSN_H

#include "types.h"

#define PSN_MASK UINT32_C(0xffffff)
#define PSN_BITS 24
/* Half of the PSN space. A PSN that is 2^23 or more ahead of another one, modulo 2^24, is the earlier of the two. */
#define PSN_HALF UINT32_C(0x800000)

/* The PSN `n` packets after `psn`, modulo 2^24; for a PSN before it, pass a negative number converted to uint32_t. */
static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
    return (psn + n) & PSN_MASK;
}

/* The PSN before `psn`, modulo 2^24. */
static inline uint32_t psn_prev(uint32_t psn)
{
    return (psn - 1) & PSN_MASK;
}

/* Signed distance from `b` to `a` modulo 2^24, from -2^23 to 2^23 - 1: positive if `a` is after `b`. */
static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << (32 - PSN_BITS)) >> (32 - PSN_BITS);
}

/* True if `psn` is one of the `n` PSNs that start at `first`. */
static inline bool psn_in(uint32_t psn, uint32_t first, uint32_t n)
{
    return ((psn - first) & PSN_MASK) < n;
}

/* PSNs of one direction counted on beyond 2^24: a line that goes on where they wrap. All zero: none was seen. */
struct psn_line {
    bool begun;
    int64_t top; /* the highest one; the first one is as it was */
};

/* `psn` on the line, the nearest to its top: one before the first may be negative. Before the line has begun: `psn`. */
static inline int64_t psn_line_at(const struct psn_line *l, uint32_t psn)
{
    return l->begun ? l->top + psn_diff(psn, (uint32_t)l->top) : psn;
}

/* The same; the line goes on to `psn` if it is the highest one. */
static inline int64_t psn_line_go_on(struct psn_line *l, uint32_t psn)
{
    int64_t at = psn_line_at(l, psn);

    if (!l->begun || at > l->top)
        *l = (struct psn_line){.begun = true, .top = at};
    return at;
}

/* Number of PSNs that a message, or the responses to a READ, of `len` bytes takes at a path MTU of `pmtu` bytes: at
 * least one. */
static inline uint32_t psn_span(uint64_t len, uint32_t pmtu)
{
    return len == 0 ? 1 : (uint32_t)((len + pmtu - 1) / pmtu);
}

#endif
