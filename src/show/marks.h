/* layer 3 (show): findings and incidents of a first pass over captures, by frame.
 *
 * Filled in any order, sorted once, then searched frame by frame. */
#ifndef RDMATRACE_SHOW_MARKS_H
#define RDMATRACE_SHOW_MARKS_H

#include "types.h"

struct frame;
struct pkt_mark;

#define MARKS_MAX (UINT32_C(1) << 20) /* marks kept, 32 bytes each; further ones are only counted */

/* Zero-initialise. */
struct marks {
    struct pkt_mark *v; /* by file and frame, once sorted */
    size_t n, cap;      /* marks in `v`, room for marks */
    uint64_t left_out;  /* marks not kept: MARKS_MAX reached, or no memory */
};

/* Append a copy of *mark; its strings are not copied. */
void marks_add(struct marks *m, const struct pkt_mark *mark);
/* Sort by file and frame, and remove duplicates. */
void marks_sort(struct marks *m);
/* The marks of a frame, *n of them. Call marks_sort() before. */
const struct pkt_mark *marks_of(const struct marks *m, const struct frame *f, unsigned *n);
/* Release the memory; *m is empty then. */
void marks_free(struct marks *m);

#endif
