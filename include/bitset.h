/* layer 0 (base): a set of numbers that grows. */
#ifndef RDMATRACE_BITSET_H
#define RDMATRACE_BITSET_H

#include "types.h"

/* Zero is the empty set. A number takes a bit: the largest one decides the size. */
struct bitset {
    uint8_t *bits;
    size_t size; /* bytes at `bits` */
};

/* Add a number. False without memory. */
bool bitset_add(struct bitset *s, uint64_t n);
static inline bool bitset_has(const struct bitset *s, uint64_t n)
{
    return n / 8 < s->size && s->bits[n / 8] >> n % 8 & 1;
}
/* Remove a number, if it is there. */
static inline void bitset_remove(struct bitset *s, uint64_t n)
{
    if (bitset_has(s, n))
        s->bits[n / 8] &= (uint8_t) ~(1u << n % 8);
}
/* Release the memory: the set is empty. */
void bitset_free(struct bitset *s);

#endif
