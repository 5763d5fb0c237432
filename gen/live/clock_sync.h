/* layer 3 (live): the clock of an interface against that of this host. */
#ifndef RDMATRACE_GEN_LIVE_CLOCK_SYNC_H
#define RDMATRACE_GEN_LIVE_CLOCK_SYNC_H

#include "types.h"

#define STAMPS_WINDOW (1 * NS_PER_S) /* a delay counts for one window, two at most */
/* a frame read within this time after its stamp proves that both clocks agree */
#define STAMPS_STEP (1 * NS_PER_MS)

/* The smallest difference between the host's clock when a frame is read and the interface's stamp. All zero: not
 * known. */
struct stamps {
    ns_t least, before; /* in this window, and in the previous one */
    ns_t end;           /* of this window */
    bool known;
};

/* A frame with the interface's stamp `ts` is read at `now` of the host's clock. Returns its time of arrival on the
 * host's clock. If the clocks do not agree, the fastest frame of a window counts as read without delay: all times are
 * then late by the smallest delay, and their differences are exact within the drift of the clocks in two windows. */
ns_t stamps_time(struct stamps *s, ns_t ts, ns_t now);
/* True if the interface's clock agrees with the host's. */
bool stamps_in_step(const struct stamps *s);

#endif
