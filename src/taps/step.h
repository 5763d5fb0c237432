/* layer 2b (taps): the resolution of the time stamps of an interface. */
#ifndef RDMATRACE_TAPS_STEP_H
#define RDMATRACE_TAPS_STEP_H

#include "types.h"

#define STEP_MAX    (1000 * NS_PER_MS) /* ns; the coarsest resolution that is recognised */
#define STEP_STAMPS 1024               /* time stamps examined per interface */

/* The largest power of ten ns that divides all of them so far, or what a coarser clock counts. */
struct ts_step {
    uint32_t owner;   /* of the user: the interface; 0: unused */
    uint32_t ns;      /* resolution, ns: `decimal`, or `tick` if that is coarser and certain */
    uint32_t decimal; /* the largest power of ten ns that divides all time stamps */
    uint32_t stamps;  /* time stamps examined */
    uint32_t ticks;   /* of these, how many differed from the previous time stamp */
    uint64_t tick;    /* divides all their differences: a clock may count 15.625 ms, or 4 ms from any beginning */
    ns_t last;        /* the latest time stamp */
};
/* An interface whose first time stamp is `ts`. */
struct ts_step ts_step_new(uint32_t owner, ns_t ts);
/* Whether further time stamps change nothing. */
static inline bool ts_step_is_settled(const struct ts_step *s)
{
    return s->ns == 1 || s->stamps == STEP_STAMPS;
}
/* Take the next time stamp. */
void ts_step_learn(struct ts_step *s, ns_t ts);

#endif
