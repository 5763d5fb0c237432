/* layer 0 (base): memory whose lines of the processors' caches hold nothing else. */
#ifndef RDMATRACE_APART_H
#define RDMATRACE_APART_H

#include "types.h"

#include <stdlib.h>
#include <string.h>

/* Zeroed memory for `n` (at least 1) members of `size` bytes, released by free(). For what one thread uses for each
 * frame: in a line that another thread writes to, each use costs more than the frame. NULL without memory. */
static inline void *apart_new(size_t n, size_t size)
{
    size_t bytes;
    void *p;

    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX - CACHE_LINE)
        return NULL;
    bytes = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    p = aligned_alloc(CACHE_LINE, bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

#endif
