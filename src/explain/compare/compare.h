/* layer 3 (explain): compare taps: what the files of this folder need of each other. */
#ifndef RDMATRACE_EXPLAIN_COMPARE_H
#define RDMATRACE_EXPLAIN_COMPARE_H

#include "src/explain/compare/taps.h"

/* What a tap saw about an incident (kept.c): keep it, if there is room; a tap that got there was compared with
 * it, so that it may make room; whether something is kept of what the tap of another flow saw about the incident; put
 * all that is kept about it in the place of what the taps saw since, for a comparison (`in`), and back. */
void kept_take(struct explainer *x, struct incident *st, struct req_dir *h);
void kept_compared(struct explainer *x, const struct incident *st);
bool kept_at(struct explainer *x, const struct incident *st, uint32_t flow);
void kept_swap(struct explainer *x, const struct incident *st, bool in);
/* Three or more taps (between.c): name the two between which the packet of a proved incident was lost. */
void explain_between(struct explainer *x, struct incident *st);
/* The flow of the requests of an incident; one about a damaged response has the flow of the other direction. */
uint32_t explain_requests_of(struct explainer *x, const struct incident *s);
/* The same flow at another tap (cross_check.c), from index `i` on; FLOW_NONE if there is none. */
uint32_t explain_elsewhere(struct explainer *x, uint32_t flow, uint32_t i);

#endif
