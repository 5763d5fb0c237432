/* layer 3 (measure): the account of each work request.
 *
 * The meter hands a work request over (wqe_user.over()) up to WQE_MAX requests after its completion. By then the
 * timeline may have dropped the spans of its time, so its account is kept from its completion on. Memory is bounded by
 * the work requests not yet handed over: WQE_MAX for each direction of a connection. */
#ifndef RDMATRACE_MEASURE_REQUEST_PARTS_H
#define RDMATRACE_MEASURE_REQUEST_PARTS_H

#include "src/account/timeline.h"
#include "src/measure/meter.h"

struct request_parts;

/* NULL without memory. `t` must outlive the result. */
struct request_parts *request_parts_new(const struct timeline *t);
void request_parts_free(struct request_parts *r);
/* For wqe_user.packet(): keep the account of `w` if `p` completes it. Without memory it is not kept, and more of its
 * time is TIME_NOT_KNOWN. */
void request_parts_packet(struct request_parts *r, const struct wqe *w, const struct pkt *p, uint32_t flow);
/* For wqe_user.over(): the account of `w`, from w->start to the response that completed it, else to its latest packet.
 * Returns that end, ns since 1970; states[] add up to it less w->start. The kept account is dropped. */
ns_t request_parts_over(struct request_parts *r, const struct wqe *w, uint32_t flow, ns_t states[TIME_STATES]);

/* Likewise of a request that meter `m` hands over, also of iWARP. *known: the states say something; datagrams have
 * none. */
ns_t request_account_over(struct request_parts *r, const struct meter *m, const struct wqe *w, uint32_t flow,
                          ns_t states[TIME_STATES], bool *known);

#endif
