/* layer 0 (base): a set of numbers that grows. */
#include "bitset.h"

#include <stdlib.h>
#include <string.h>

bool bitset_add(struct bitset *s, uint64_t n)
{
    size_t need = (size_t)(n / 8) + 1;
    uint8_t *more;

    if (need > s->size) {
        more = realloc(s->bits, need * 2);
        if (!more)
            return false;
        memset(more + s->size, 0, need * 2 - s->size);
        s->bits = more;
        s->size = need * 2;
    }
    s->bits[n / 8] |= (uint8_t)(1u << n % 8);
    return true;
}

void bitset_free(struct bitset *s)
{
    free(s->bits);
    *s = (struct bitset){0};
}
