/* layer 0 (base): memory is fetched into the caches before it is used. Inline: gcc drops calls of functions that do
 * nothing else. */
#ifndef RDMATRACE_FETCH_H
#define RDMATRACE_FETCH_H

#include "types.h"

/* Fetch the `n` bytes at `from`; nothing is read. */
ALWAYS_INLINE void fetch(const void *from, size_t n)
{
    for (size_t i = 0; i < n; i += CACHE_LINE)
        __builtin_prefetch((const char *)from + i);
}

/* The same of bytes that will be written. A store that misses the cache holds up those behind it. */
ALWAYS_INLINE void fetch_to_write(const void *from, size_t n)
{
    for (size_t i = 0; i < n; i += CACHE_LINE)
        __builtin_prefetch((const char *)from + i, 1);
}

#endif
