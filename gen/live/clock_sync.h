/* layer 3 (live): the clock of an interface beside that of this host. */
#ifndef RDMATRACE_GEN_LIVE_CLOCK_SYNC_H
#define RDMATRACE_GEN_LIVE_CLOCK_SYNC_H

#include "types.h"

#define STAMPS_WINDOW (1 * NS_PER_S) /* so long, and as long again at most, a delay counts */
/* a frame that was taken within this time after its stamp shows that both clocks are in step */
#define STAMPS_STEP (1 * NS_PER_MS)

/* How much later, by the host's clock, frames are taken than the interface's stamps say: at least. All zero: nothing is
 * known. */
struct stamps {
    ns_t least, before; /* in this window, and in the one before it */
    ns_t end;           /* of this window */
    bool known;
};

/* A frame with the interface's stamp `ts` is taken at `now`, by the host's clock: when it arrived, by the host's clock.
 * The clocks need not have anything in common; if they have not, the fastest frame of a window is taken to have needed
 * no time, so that times are right among themselves within what the clocks drift in two windows, and late by the least
 * delay. */
ns_t stamps_time(struct stamps *s, ns_t ts, ns_t now);
/* Whether the interface's clock is in step with the host's. */
bool stamps_in_step(const struct stamps *s);

#endif
