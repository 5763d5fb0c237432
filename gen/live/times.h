/* layer 3 (live): a search in a table by time. */
#ifndef RDMATRACE_GEN_LIVE_TIMES_H
#define RDMATRACE_GEN_LIVE_TIMES_H

#include "types.h"

#include <stddef.h>

/* The first of `n` rows, each of `row` bytes, whose time is behind `t`; n: none is. The times, ns, do not go back;
 * that of the first row is at `first`. */
static inline unsigned times_behind(const ns_t *first, size_t row, unsigned n, ns_t t)
{
    unsigned low = 0, high = n;

    while (low < high) {
        unsigned mid = low + (high - low) / 2;
        if (*(const ns_t *)((const char *)first + row * mid) <= t)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

#endif
