/* layer 0 (base): numbers that somebody chooses one after another: how predictable is the next one for somebody who has
 * seen some of them. */
#ifndef RDMATRACE_STEPS_H
#define RDMATRACE_STEPS_H

#include "types.h"

/* Steps from a value to the next one, modulo the width of the values. */
struct steps {
    unsigned n;         /* values */
    unsigned distinct;  /* of these */
    uint32_t step;      /* the commonest step */
    unsigned times;     /* how often it was taken */
    double share;       /* of all steps, 0 to 1 */
    double min_entropy; /* bits: -log2 of that share; how hard the next value is to guess from the last one */
    double conditional; /* bits: mean entropy of a step if the one before is known */
};
/* Of `n` values, in the order in which they were chosen; `mask`: the bits that count. All 0 with fewer than three
 * values, or without memory. */
void steps_of(const uint32_t *v, unsigned n, uint32_t mask, struct steps *s);

#endif
