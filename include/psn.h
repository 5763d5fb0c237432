/* layer 0 (base): arithmetic on 24-bit packet sequence numbers (IBTA volume 1, 9.7.1). */
#ifndef RDMATRACE_PSN_H
#define RDMATRACE_PSN_H

#include "types.h"

#define PSN_MASK UINT32_C(0xffffff)
#define PSN_BITS 24
/* PSNs further ahead than this count as behind. */
#define PSN_HALF UINT32_C(0x800000)

/* PSN `n` packets after `psn`; `n` may be any number, also a negative one converted to uint32_t. */
static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
    return (psn + n) & PSN_MASK;
}

/* The PSN before `psn`. */
static inline uint32_t psn_prev(uint32_t psn)
{
    return (psn - 1) & PSN_MASK;
}

/* Signed distance from `b` to `a` on the 24-bit circle, in -2^23 .. 2^23-1: positive when `a` comes after `b`. */
static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << (32 - PSN_BITS)) >> (32 - PSN_BITS);
}

/* Whether `psn` lies in the `n` PSNs that start at `first`. */
static inline bool psn_in(uint32_t psn, uint32_t first, uint32_t n)
{
    return ((psn - first) & PSN_MASK) < n;
}

/* PSNs that a message (or a READ's responses) of `len` bytes takes at a path MTU of `pmtu` bytes: at least one. */
static inline uint32_t psn_span(uint64_t len, uint32_t pmtu)
{
    return len == 0 ? 1 : (uint32_t)((len + pmtu - 1) / pmtu);
}

#endif
