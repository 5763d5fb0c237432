/* layer 3b (extract): which bytes of a message were seen. */
#ifndef RDMATRACE_EXTRACT_SEEN_H
#define RDMATRACE_EXTRACT_SEEN_H

#include "types.h"

#define SEEN_MAX (1u << 22) /* pieces between holes; bytes that would be a further one are left out */

struct span {
    uint64_t from, to; /* [from, to) */
};

/* Zero-initialise. */
struct seen {
    struct span *span; /* ascending, with holes between */
    uint32_t n, room;
    bool full; /* pieces were left out: more than SEEN_MAX, or there was no memory */
};

/* Add [from, to). False if it was left out. */
bool seen_add(struct seen *s, uint64_t from, uint64_t to);
/* Bytes in all pieces. */
uint64_t seen_bytes(const struct seen *s);
/* Hole number `i`, from 0, in [0, `end`): false if there are no more. */
bool seen_hole(const struct seen *s, uint32_t i, uint64_t end, struct span *hole);
void seen_free(struct seen *s);

#endif
