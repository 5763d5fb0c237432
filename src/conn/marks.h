/* layer 2b (conn): what a first pass over captures found, by frame.
 *
 * Filled in any order, then sorted once, then asked for frame after frame. */
#ifndef RDMATRACE_CONN_MARKS_H
#define RDMATRACE_CONN_MARKS_H

#include "dissect/pkt.h"

#define MARKS_MAX (UINT32_C(1) << 20) /* kept, 32 bytes each; further ones are counted */

/* Zero-initialise. */
struct marks {
    struct pkt_mark *v; /* by file and frame, once sorted */
    size_t n, cap;
    uint64_t left_out; /* for want of room, or of memory */
};

void marks_add(struct marks *m, const struct pkt_mark *mark);
/* Put them in order; equal ones become one. */
void marks_sort(struct marks *m);
/* The marks of a frame, their number in *n; needs marks_sort(). */
const struct pkt_mark *marks_of(const struct marks *m, const struct frame *f, unsigned *n);
void marks_free(struct marks *m);

#endif
