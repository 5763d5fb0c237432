/* layer 3 (explain): compare taps: packets that came damaged to one of them. */
#ifndef RDMATRACE_EXPLAIN_DAMAGED_H
#define RDMATRACE_EXPLAIN_DAMAGED_H

#include "src/explain/explain_impl.h"

/* The frame in which the tap of a flow of requests saw the request, or response, with this PSN damaged; 0: it did not.
 */
uint32_t damaged_at(const struct explainer *x, uint32_t flow, uint32_t psn, bool response);
/* Whether the other tap saw one of the `n` requests of an incident damaged: then the incident says so. */
bool damaged_compare(struct explainer *x, struct incident *st, uint32_t other, unsigned n);
/* The packet of an incident came damaged to its tap: find out whether the other one saw it as it was sent. */
void damaged_between(struct explainer *x, struct incident *st, uint32_t other);

#endif
