/* layer 0 (base): arrays that grow one element at a time. */
#ifndef RDMATRACE_GROW_H
#define RDMATRACE_GROW_H

#include "types.h"

#include <stdlib.h>

/* Room for one more element of `size` bytes in *array, which has `n`; its room doubles. False, and the array as it was,
 * without memory. *array is NULL at first; free() frees it. */
static inline bool grow(void **array, uint32_t n, size_t size)
{
    void *p;

    if (n & (n - 1) && n)
        return true;
    p = realloc(*array, (n ? 2 * (size_t)n : 1) * size);
    if (p)
        *array = p;
    return p != NULL;
}

#endif
