/* layer 3b (tui): a growing array of numbers: the first ones in memory, further ones in a temporary file without a
 * name, so that memory does not grow with a capture for ever. */
#ifndef RDMATRACE_TUI_FAR_H
#define RDMATRACE_TUI_FAR_H

#include "buf.h"

#include <stdio.h>

#define FAR_CHUNK 65536u /* elements of an allocation */

struct far {
    size_t size;           /* bytes of an element */
    uint64_t near;         /* chunks kept in memory */
    uint64_t n;            /* elements */
    uint8_t **chunks;      /* those beyond `near` are mapped from the file */
    size_t n_chunks, room; /* of them, and places for them */
    FILE *file;            /* NULL: not needed so far */
};

/* An empty array of elements of `size` bytes, of which about `memory` bytes are kept in memory. */
void far_init(struct far *f, size_t size, uint64_t memory);
void far_free(struct far *f);
/* Forget the elements, keep the memory. */
void far_clear(struct far *f);
/* Append an element. False without memory, or if the file has no room. */
bool far_add(struct far *f, const void *element);
/* Element `i`, below f->n. */
static inline const void *far_at(const struct far *f, uint64_t i)
{
    return f->chunks[i / FAR_CHUNK] + i % FAR_CHUNK * f->size;
}

#endif
