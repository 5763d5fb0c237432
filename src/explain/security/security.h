/* layer 3 (explain): internal: what somebody tries one after another. */
#ifndef RDMATRACE_EXPLAIN_SECURITY_H
#define RDMATRACE_EXPLAIN_SECURITY_H

#include "types.h"

struct buf;
struct explain_opts;
struct explainer;
struct event;
struct flow_notes;
struct pkt;

/* A request whose PSN is not the next one, or any while x->tried.n_psns; a response to such requests. */
void guesses_request(struct explainer *x, const struct event *e);
void guesses_response(struct explainer *x, const struct event *e);
/* A fatal NAK; `t`: notes of the requests. */
void guesses_refused(struct explainer *x, const struct event *e, const struct flow_notes *t);
/* The place of a flow is given to another one. */
void guesses_forget(struct explainer *x, uint32_t flow);
/* At the end of the capture. */
void guesses_end(struct explainer *x);

/* What a host chooses: the packet is a REQ or REP that is seen for the first time, or a request with an R_Key. */
void chosen_by_cm(struct explainer *x, const struct pkt *p, bool known, uint32_t qpn, bool have_psn, uint32_t psn);
void chosen_key(struct explainer *x, const struct event *e);
/* Append what can be guessed of that: sentences behind `sep`, if `b` holds some; members of an array of JSON. */
void guessable_put(struct explainer *x, const char *sep, struct buf *b);
void guessable_json(struct explainer *x, const struct explain_opts *o, struct buf *b);

#endif
