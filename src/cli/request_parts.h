/* layer 4 (tool): where the time of each work request went.
 *
 * A work request is handed over up to WQE_MAX requests after its completion. The timeline may have forgotten the spans
 * of its time by then, so they are kept from its completion on. Memory is bounded by the work requests that are not
 * handed over: WQE_MAX for each direction of a connection. */
#ifndef RDMATRACE_CLI_REQUEST_PARTS_H
#define RDMATRACE_CLI_REQUEST_PARTS_H

#include "src/conn/timeline.h"
#include "src/measure/wqe.h"

struct request_parts;

/* NULL without memory. `t` must live as long. */
struct request_parts *request_parts_new(const struct timeline *t);
void request_parts_free(struct request_parts *r);
/* wqe_user.packet(): keeps where the time of `w` went if `p` completes it. Without memory nothing is kept, and more
 * time is TIME_NOT_KNOWN. */
void request_parts_packet(struct request_parts *r, const struct wqe *w, const struct pkt *p, uint32_t flow);
/* wqe_user.over(): where its time went, from w->start to the response that completed it, or to its latest packet; the
 * states add up to the end, which is returned, less w->start. What was kept of `w` is dropped. */
ns_t request_parts_over(struct request_parts *r, const struct wqe *w, uint32_t flow, ns_t states[TIME_STATES]);

#endif
