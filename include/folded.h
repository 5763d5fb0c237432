/* layer 0 (base): memory that repeats: a few bytes stand at many addresses, for messages larger than memory. */
#ifndef RDMATRACE_FOLDED_H
#define RDMATRACE_FOLDED_H

#include "types.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define FOLDED_PAGE  4096
#define FOLDED_TIMES 8192 /* most repetitions: each is a mapping, of which a process may have 65530 */

/* Whether there can be `len` bytes of memory that repeat after `part`. */
static inline bool folded_can(uint64_t len, uint64_t part)
{
    return part && part % FOLDED_PAGE == 0 && len && len % part == 0 && len / part <= FOLDED_TIMES;
}

/* `len` bytes of memory, zero, of which number n is number n modulo `part`, as folded_can() says; munmap() releases all
 * of them. 0 with the memory in *to, or a negative errno. */
static inline int folded_new(uint64_t len, uint64_t part, uint8_t **to)
{
    int fd = memfd_create("rdmagen", MFD_CLOEXEC), e = 0;
    uint8_t *p;

    if (fd < 0)
        return -errno;
    p = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED || ftruncate(fd, (off_t)part) < 0)
        e = -errno;
    for (uint64_t at = 0; at < len && e == 0; at += part)
        if (mmap(p + at, part, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
            e = -errno;
    close(fd);
    if (e < 0 && p != MAP_FAILED)
        munmap(p, len);
    *to = e < 0 ? NULL : p;
    return e;
}

#endif
