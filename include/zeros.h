/* layer 0 (base): large arrays of which little may ever be used. */
#ifndef RDMATRACE_ZEROS_H
#define RDMATRACE_ZEROS_H

#include <stddef.h>
#include <sys/mman.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

/* Zeroed memory for `n` (at least 1) members of `size` bytes; what is never touched takes none. NULL without memory. */
static inline void *zeros_new(size_t n, size_t size)
{
    size_t bytes;
    void *p;

    if (__builtin_mul_overflow(n, size, &bytes))
        return NULL;
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
#ifdef __SANITIZE_ADDRESS__
    __lsan_register_root_region(p, bytes); /* what it points to is no leak */
#endif
    return p;
}

/* Much of what zeros_new() gave for these numbers will be touched, here and there: large pages save misses of the
 * processor's table of pages. */
static inline void zeros_many(void *p, size_t n, size_t size)
{
    madvise(p, n * size, MADV_HUGEPAGE); /* a hint: whether it is followed does not matter */
}

/* Release what zeros_new() gave for the same numbers; `p` may be NULL. */
static inline void zeros_free(void *p, size_t n, size_t size)
{
    if (!p)
        return;
#ifdef __SANITIZE_ADDRESS__
    __lsan_unregister_root_region(p, n * size);
#endif
    munmap(p, n * size);
}

#endif
