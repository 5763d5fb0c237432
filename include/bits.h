/* layer 0 (base): bit ranges of a big-endian header. Bit 0 is the most significant bit of byte 0. */
#ifndef RDMATRACE_BITS_H
#define RDMATRACE_BITS_H

#include "types.h"

/* Odd multiplier of the hash tables: 2^64 divided by the golden ratio (Knuth, volume 3, 6.4). */
#define HASH_MULTIPLIER UINT64_C(0x9e3779b97f4a7c15)

/* Read `width` bits (1 to 64; 1 to 57 unless `bit` is a multiple of 8) at bit `bit` of `p`. Only bytes that hold a part
 * of the range are read. With constant arguments this compiles to one or two loads. */
ALWAYS_INLINE uint64_t bits_get(const uint8_t *p, unsigned bit, unsigned width)
{
    const uint8_t *q = p + bit / 8;
    unsigned bytes = (bit % 8 + width + 7) / 8;
    unsigned shift = bytes * 8 - bit % 8 - width;
    uint64_t v = 0;

    switch (bytes) {
    case 1:
        v = q[0];
        break;
    case 2:
        v = load_be16(q);
        break;
    case 3:
        v = load_be24(q);
        break;
    case 4:
        v = load_be32(q);
        break;
    case 8:
        v = load_be64(q);
        break;
    default:
        for (unsigned i = 0; i < bytes; i++)
            v = v << 8 | q[i];
    }
    v >>= shift;
    return width >= 64 ? v : v & ((UINT64_C(1) << width) - 1);
}

/* Store the low `width` bits of `v` at bit `bit` of `p`; the neighbouring bits are kept. Limits as for bits_get(). */
ALWAYS_INLINE void bits_put(uint8_t *p, unsigned bit, unsigned width, uint64_t v)
{
    uint8_t *q = p + bit / 8;
    unsigned bytes = (bit % 8 + width + 7) / 8;
    unsigned shift = bytes * 8 - bit % 8 - width;
    uint64_t mask = width >= 64 ? UINT64_MAX : ((UINT64_C(1) << width) - 1) << shift;

    v = (v << shift) & mask;
    for (unsigned i = bytes; i-- > 0; v >>= 8, mask >>= 8)
        q[i] = (uint8_t)((q[i] & ~(uint8_t)mask) | (uint8_t)v);
}

#endif
