/* layer 0 (base): large arrays of which little may ever be used. */
#ifndef RDMATRACE_ZEROS_H
#define RDMATRACE_ZEROS_H

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__ /* the sanitizers see overflows and leaks of what calloc() gives only */
#define ZEROS_MAPPED 0
#else
#define ZEROS_MAPPED 1
#endif

/* Zeroed memory for `n` (at least 1) members of `size` bytes; what is never touched takes none. NULL without memory. */
static inline void *zeros_new(size_t n, size_t size)
{
    size_t bytes;
    void *p;

    if (!ZEROS_MAPPED)
        return calloc(n, size);
    if (__builtin_mul_overflow(n, size, &bytes))
        return NULL;
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Release what zeros_new() gave for the same numbers; `p` may be NULL. */
static inline void zeros_free(void *p, size_t n, size_t size)
{
    if (!ZEROS_MAPPED)
        free(p);
    else if (p)
        munmap(p, n * size);
}

#endif
