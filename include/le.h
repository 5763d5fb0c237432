/* layer 0 (base): little-endian numbers of any number of bytes. */
#ifndef RDMATRACE_LE_H
#define RDMATRACE_LE_H

#include "types.h"

/* The number in the `n` bytes at `p`, at most 8. */
ALWAYS_INLINE uint64_t load_le(const uint8_t *p, unsigned n)
{
    uint64_t v = 0;

    while (n-- > 0)
        v = v << 8 | p[n];
    return v;
}

/* Store the low `n` bytes of `v`, at most 8. */
ALWAYS_INLINE void store_le(uint8_t *p, unsigned n, uint64_t v)
{
    for (; n-- > 0; v >>= 8)
        *p++ = (uint8_t)v;
}

#endif
