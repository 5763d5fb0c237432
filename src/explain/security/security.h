/* layer 3 (explain): internal: what somebody tries one after another. */
#ifndef RDMATRACE_EXPLAIN_SECURITY_H
#define RDMATRACE_EXPLAIN_SECURITY_H

#include "types.h"

struct explainer;
struct event;
struct flow_notes;

/* A request whose PSN is not the next one, or any while x->tried.n_psns; a response to such requests. */
void guesses_request(struct explainer *x, const struct event *e);
void guesses_response(struct explainer *x, const struct event *e);
/* A fatal NAK; `t`: notes of the requests. */
void guesses_refused(struct explainer *x, const struct event *e, const struct flow_notes *t);
/* The place of a flow is given to another one. */
void guesses_forget(struct explainer *x, uint32_t flow);
/* At the end of the capture. */
void guesses_end(struct explainer *x);

#endif
