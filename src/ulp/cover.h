/* layer 2b (ulp): which bytes of a range were seen. */
#ifndef RDMATRACE_ULP_COVER_H
#define RDMATRACE_ULP_COVER_H

#include "types.h"

#define COVER_SPANS 8 /* pieces between gaps that are told apart; beyond, the smallest gap counts as seen */

/* Zero-initialise. */
struct cover {
    struct {
        uint64_t from, to; /* [from, to), ascending, with gaps between */
    } span[COVER_SPANS];
    unsigned n;
};

/* Add [from, to); returns how many of these bytes were not seen before. */
uint64_t cover_add(struct cover *c, uint64_t from, uint64_t to);
/* Likewise of bytes that are kept: no gap counts as seen. Where there are more pieces, the last one is forgotten.
 * False: that is [from, to) itself. */
bool cover_keep(struct cover *c, uint64_t from, uint64_t to);
/* Forget what is at `to` and beyond. */
void cover_cut(struct cover *c, uint64_t to);
/* Bytes from 0 to the first gap. */
static inline uint64_t cover_prefix(const struct cover *c)
{
    return c->n && c->span[0].from == 0 ? c->span[0].to : 0;
}

#endif
