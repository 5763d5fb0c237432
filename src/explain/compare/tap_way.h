/* layer 3 (explain): internal: in which order packets pass taps. */
#ifndef RDMATRACE_EXPLAIN_TAP_WAY_H
#define RDMATRACE_EXPLAIN_TAP_WAY_H

#include "src/explain/explain_impl.h"

/* Where a tap is on the way of packets: the nearer to the responder, the shorter is the time from a request to its
 * response. */
struct tap_way {
    ns_t exact; /* flow_notes.responses.round_trip: of requests sent once; negative: not known */
    ns_t trip;  /* flow_notes.responses.least_trip: a response to an earlier copy may shorten it */
    ns_t at;    /* the longer, the later they pass it; set by tap_way_order() */
};
/* Put `n` taps of `size` bytes each, which begin with their struct tap_way, in the order in which requests pass them,
 * or responses if not `requests`: by `exact` if it is known of all. */
void tap_way_order(void *taps, unsigned n, size_t size, bool requests);

#endif
