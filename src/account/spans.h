/* layer 2b (account): the time of one direction of requests, in spans of one state each.
 *
 * The latest spans are kept one by one, so that time can still get another state when a later packet tells what it was
 * lost to; older ones are only added up. */
#ifndef RDMATRACE_ACCOUNT_SPANS_H
#define RDMATRACE_ACCOUNT_SPANS_H

#include "src/account/account.h"

#define SPANS_MAX  256
#define NO_EPISODE UINT32_MAX

struct span {
    ns_t start, end;
    ns_t response; /* TIME_TRANSFER: of its time, what is TIME_RESPONSE: spans of the two follow each other closely */
    uint32_t episode; /* NO_EPISODE unless the state costs */
    uint8_t state;    /* enum time_state; never TIME_RESPONSE */
};

/* Callback: `ns` (negative: less than before) of time in `state` are billed to an episode. */
typedef void span_bill(void *user, uint32_t episode, enum time_state state, ns_t ns);

struct spans {
    ns_t first, at;         /* from where, and up to where time has states */
    ns_t sums[TIME_STATES]; /* of spans that are no longer kept */
    unsigned n;
    struct span span[SPANS_MAX];
    span_bill *bill;
    void *user;
};

/* Begin at `first`. `bill` may be NULL. */
void spans_init(struct spans *s, ns_t first, span_bill *bill, void *user);
/* The time from s->at to `to` is in `state`. Nothing if `to` is not later. */
void spans_add(struct spans *s, ns_t to, enum time_state state, uint32_t episode);
/* Time between `from` and `to` (at most s->at) gets another state, as far as its spans are still kept and their states
 * are in the set `over` (1 << state). Returns how much it was. */
ns_t spans_change(struct spans *s, ns_t from, ns_t to, uint32_t over, enum time_state state, uint32_t episode);
/* How the time from `from` to `to` was spent; what is no longer kept is TIME_NOT_KNOWN. Adds up to to - from. */
void spans_between(const struct spans *s, ns_t from, ns_t to, ns_t states[TIME_STATES]);
/* All of it; adds up to s->at - s->first. */
void spans_total(const struct spans *s, ns_t states[TIME_STATES]);

#define SPANS_GOOD (1u << TIME_IDLE | 1u << TIME_TRANSFER | 1u << TIME_RESPONSE)

#endif
