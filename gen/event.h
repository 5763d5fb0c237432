/* layer 3 (gen): exact events: what happens to the packet of one connection, direction, class, relative PSN and iteration.
 *
 *   [conn=N] [dir=req|rsp] [class=CLASS] [psn=RANGE] [iter=RANGE | nth=RANGE] ACTION...
 *
 *   conn   number of the connection, from 1; without it any
 *   dir    req: from the connection's requester (host 0) to its responder, rsp: the other way;
 *          without it req, or both if a class is given
 *   class  send write read atomic ack nak rnr resp cm cnp any
 *   psn    counted from the first PSN of the sequence: a request from its sender's first one, a response from that of the requests
 *   iter   how often this PSN has passed in this direction, from 1
 *   nth    how many packets that match all of the above have passed, from 1
 *   RANGE  N, N-M, N- or *
 *
 * Without iter and nth an event with psn means iter=1, any other nth=1. Actions: drop, ce, corrupt, corrupt=icrc, corrupt=FIELD,
 * delay=TIME, reorder=N, dup=N, truncate=N, set FIELD=VALUE [raw].
 */
#ifndef RDMATRACE_EVENT_H
#define RDMATRACE_EVENT_H

#include "gen/conns.h"
#include "gen/rewrite.h"
#include "gen/text.h"

#define EVENT_WORDS 32 /* of a specification at most */

struct event_list;

struct event_list *event_list_new(void);
void event_list_free(struct event_list *l);
/* Add an event of `n` words; `label` is what a report calls it (copied). False with *e filled. */
bool event_add(struct event_list *l, const struct token *t, unsigned n, const char *label, struct text_error *e);
/* The connections that events speak of; filled by the simulation as they come to be. */
struct conns *event_conns(struct event_list *l);

/* What the network has to do with a frame. Changes of the bytes are made already. */
struct event_result {
    uint32_t hit;     /* events that matched */
    bool drop;
    ns_t delay;
    uint32_t reorder; /* hold back until so many others have passed */
    uint32_t dup;     /* further copies */
};
/* A frame of host `from` passes; *len may shrink. */
struct event_result events_apply(struct event_list *l, unsigned from, uint8_t *data, uint32_t *len, uint16_t linktype, struct prng *r);
/* The label of the i-th event that never matched; NULL: there are no more. */
const char *events_unused(const struct event_list *l, unsigned i);

#endif
