/* layer 4 (test) property: large arrays of judges are used again. A judge maps its arrays (include/zeros.h) and touches
 * a small part of them. For a thousand frames the kernel takes longer to map, to fault in and to unmap them than the
 * judge to judge. So munmap() of such an array clears the pages that were touched and keeps the array for the next
 * mmap() of its size. The program is linked with --wrap for both. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE       4096u
#define KEPT       128    /* arrays */
#define KEPT_PAGES 16384u /* of an array; a larger one is not kept */
#define MANY_PAGES 100u
#define ZEROS      (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE) /* the flags of zeros_new() */

static struct kept {
    void *at; /* NULL: free place */
    size_t bytes;
    bool in_use;
} kept[KEPT];

void *__real_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t off);
int __real_munmap(void *at, size_t bytes);
void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t off);
int __wrap_munmap(void *at, size_t bytes);

static size_t pages_of(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE;
}

/* The array of that size that is free, or a place for one; NULL: neither. */
static struct kept *find_free(size_t bytes)
{
    struct kept *place = NULL;

    for (unsigned i = 0; i < KEPT; i++) {
        if (kept[i].at && !kept[i].in_use && kept[i].bytes == bytes)
            return &kept[i];
        if (!kept[i].at && !place)
            place = &kept[i];
    }
    return place;
}

void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t off)
{
    struct kept *k = flags == ZEROS && pages_of(bytes) <= KEPT_PAGES ? find_free(bytes) : NULL;

    if (!k)
        return __real_mmap(at, bytes, prot, flags, fd, off);
    if (!k->at) {
        void *p = __real_mmap(at, bytes, prot, flags, fd, off);
        if (p == MAP_FAILED)
            return p;
        *k = (struct kept){.at = p, .bytes = bytes};
    }
    k->in_use = true;
    return k->at;
}

/* Clear the pages that were touched; false if that cannot be known. Where they have become many, as in a table by hash,
 * the kernel clears those that will be touched sooner. */
static bool clear(const struct kept *k)
{
    static unsigned char touched[KEPT_PAGES]; /* bit 0 */
    size_t n = pages_of(k->bytes), some = 0;

    if (mincore(k->at, k->bytes, touched))
        return false;
    for (size_t i = 0; i < n && some <= MANY_PAGES; i++)
        some += touched[i] & 1;
    if (some > MANY_PAGES)
        return madvise(k->at, k->bytes, MADV_DONTNEED) == 0;
    for (size_t i = 0; i < n && some; i++)
        if (touched[i] & 1) {
            memset((uint8_t *)k->at + i * PAGE, 0, PAGE);
            some--;
        }
    return true;
}

int __wrap_munmap(void *at, size_t bytes)
{
    for (unsigned i = 0; i < KEPT; i++) {
        if (kept[i].at != at)
            continue;
        kept[i].in_use = false;
        if (clear(&kept[i]))
            return 0;
        kept[i].at = NULL;
        break;
    }
    return __real_munmap(at, bytes);
}
