/* layer 3 (net): exact events: what happens to the packet of one connection, direction, class, relative PSN and
 * iteration.
 *
 *   [conn=N] [dir=req|rsp] [class=CLASS] [psn=RANGE] [iter=RANGE | nth=RANGE] ACTION...
 *
 *   conn   number of the connection, from 1; without it any
 *   dir    req: from the connection's requester (host 0) to its responder, rsp: the other way;
 *          without it req, or both if a class is given
 *   class  send write read atomic ack nak rnr resp cm cnp any
 *   psn    counted from the first PSN of the sequence: a request from its sender's first one, a response from that of
 * the requests iter   how often this PSN has passed in this direction, from 1 nth    how many packets that match all of
 * the above have passed, from 1 RANGE  N, N-M, N- or *
 *
 * Without iter and nth an event with psn means iter=1, any other nth=1. Actions: drop, ce, corrupt, corrupt=icrc,
 * corrupt=FIELD, delay=TIME, reorder=N, dup=N, truncate=N, set FIELD=VALUE [raw].
 */
#ifndef RDMATRACE_GEN_NET_EVENT_H
#define RDMATRACE_GEN_NET_EVENT_H

#include "buf.h"
#include "gen/endpoint/rewrite.h"
#include "gen/net/conn_ids.h"
#include "tokens.h"

#define EVENT_WORDS 32 /* of a specification at most */
#define EVENT_HITS  8  /* events of one packet that are remembered */

struct event_list;

struct event_list *event_list_new(void);
void event_list_free(struct event_list *l);
/* Add an event of `n` words; `label` is what a report calls it (copied). False with *e filled. */
bool event_add(struct event_list *l, const struct token *t, unsigned n, const char *label, struct text_error *e);
/* The connections that events speak of; filled by the simulation as they come to be. */
struct conns *event_conns(struct event_list *l);
/* From now on connections are learnt from the packets themselves, and `iteration` is always counted. False: no
 * memory. */
bool event_learn(struct event_list *l);
/* Connections that were not learnt for lack of room. */
uint64_t event_unlearnt(const struct event_list *l);

/* An event that matched a packet. */
struct event_hit {
    uint16_t event; /* number, from 1 in the order in which they were added */
    uint8_t done;   /* bit i: its i-th action could be done */
};

/* What the network has to do with a frame. Changes of the bytes are made already. */
struct event_result {
    uint32_t hit; /* events that matched */
    bool drop;
    bool changed; /* bytes are others than before */
    ns_t delay;
    uint32_t reorder;       /* hold back until so many others have passed */
    uint32_t dup;           /* further copies */
    uint32_t cut;           /* bytes cut off */
    uint32_t iteration;     /* how often this PSN has passed; 0: not counted */
    struct conns_view view; /* what the packet is; not set without events, unless connections are learnt */
    struct event_hit hits[EVENT_HITS];
};
/* A frame of host `from` passes; *len may shrink. */
struct event_result events_apply(struct event_list *l, unsigned from, uint8_t *data, uint32_t *len, uint16_t linktype,
                                 struct prng *r);
/* Tell of each event that never matched, or that could not be applied to any packet that it matched; returns how many
 * they are. */
unsigned events_idle(const struct event_list *l, told_fn *told, void *user);
/* How many events there are; of event `number`: its label, how many packets it was for, and on how many of these all
 * that it says could be done. */
unsigned events_count(const struct event_list *l);
const char *event_label(const struct event_list *l, unsigned number);
uint64_t event_used(const struct event_list *l, unsigned number);
uint64_t event_applied(const struct event_list *l, unsigned number);

/* A packet that leaves: what became of what was to be done. */
struct event_left {
    ns_t held;       /* how long it was held back */
    uint32_t passed; /* how many others have passed it meanwhile */
};
/* Append what was done to a packet, for people: "dropped by event 1 (psn=3 drop)"; of several events joined by "; ".
 * `left`: NULL while it has not left yet. */
void events_describe(struct buf *b, const struct event_list *l, const struct event_result *r,
                     const struct event_left *left);

#endif
