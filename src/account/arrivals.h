/* layer 2b (account): what all hosts together send to one, as its link carries it. */
#ifndef RDMATRACE_ACCOUNT_ARRIVALS_H
#define RDMATRACE_ACCOUNT_ARRIVALS_H

#include "types.h"

#include <stdbool.h>
#include <stdint.h>

#define PACE_BYTES  65536    /* as many bytes of frames as a pace is the time of */
#define FRAME_EXTRA 24       /* bytes that pass with each frame: preamble, frame check sequence, gap between packets */
#define PACE_MOST   NS_PER_S /* a gap that is longer does not tell how fast a host sends */

#define ARRIVALS_LONG NS_PER_MS

/* Requests to a host, of all hosts together. All zero: none yet. */
struct arrivals {
    const void *from;        /* the host of the latest one, */
    uint32_t len;            /* its bytes, */
    ns_t ts;                 /* and time; 0: none yet */
    ns_t mixed;              /* of the latest one that followed one of another host; 0: none */
    ns_t least;              /* the shortest time from any to the next one, for PACE_BYTES; 0: not known */
    ns_t rested;             /* of the latest one before which the link carried none; 0: none */
    ns_t from_long, long_to; /* of the latest ones between which it carried none for ARRIVALS_LONG; 0: none */
};

/* A request of `len` bytes comes, of a host that any pointer stands for. */
void arrivals_add(struct arrivals *a, const void *from, uint32_t len, ns_t now);
/* After the latest arrival: since its requester's latest request passed at `last`, the link rested until *until, at
 * the latest. Had the new one been sent before, the link would have carried it then. False: the link has not rested, so
 * that the request may have waited for those of others all the time.
 *
 *   to the receiver    1 x x x   x x      x x 2       1, 2: of this requester; x: of other hosts
 *                                         ^ until
 */
bool arrivals_rested(const struct arrivals *a, ns_t last, ns_t *until);
/* After the latest arrival: its requester's latest request passed at `last`, and for ARRIVALS_LONG or longer after that
 * the link carried those of other hosts. */
bool arrivals_went_on(const struct arrivals *a, ns_t last);

#endif
