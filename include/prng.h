/* layer 0 (base): seeded random numbers: the same seed gives the same numbers everywhere (splitmix64). */
#ifndef RDMATRACE_PRNG_H
#define RDMATRACE_PRNG_H

#include "types.h"

/* Spread the bits of a number over all of the result. */
static inline uint64_t prng_mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

struct prng {
    uint64_t state;
};
static inline void prng_seed(struct prng *r, uint64_t seed)
{
    r->state = seed;
}
/* The next random number, 0 to 2^64 - 1. */
static inline uint64_t prng_next(struct prng *r)
{
    return prng_mix(r->state += UINT64_C(0x9e3779b97f4a7c15));
}
/* A random number from 0 to n - 1; n is at least 1. */
static inline uint32_t prng_below(struct prng *r, uint32_t n)
{
    return (uint32_t)(((prng_next(r) >> 32) * n) >> 32);
}

#endif
