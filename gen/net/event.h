/* layer 3 (net): exact events: an action on the packet of one connection, direction, class, relative PSN and iteration.
 *
 *   [conn=N] [dir=req|rsp] [class=CLASS] [psn=RANGE] [iter=RANGE | nth=RANGE] ACTION...
 *
 *   conn   number of the connection, from 1; default: any
 *   dir    req: from the connection's requester (host 0) to its responder, rsp: from the responder;
 *          default: req, or both directions if a class is given
 *   class  send write read atomic ack nak rnr resp cm cnp any
 *   psn    relative PSN: of a request counted from the first PSN of its requester,
 *          of a response from the first PSN of the requests that it answers
 *   iter   how many times this PSN has passed in this direction, from 1
 *   nth    how many packets that match conn, dir, class and psn have passed, from 1
 *   RANGE  N, N-M, N- or *
 *
 * Without iter and nth, an event with psn means iter=1, any other event nth=1. Actions: drop, ce, corrupt,
 * corrupt=icrc, corrupt=FIELD, delay=TIME, reorder=N, dup=N, truncate=N, as=PACKET, set FIELD=VALUE [raw].
 *
 * Iterations of a go-back-N retransmission after PSN 1 was lost:
 *
 *   time ->   PSN   0  1  2  3   1  2  3
 *             iter  1  1  1  1   2  2  2
 *
 * "psn=1 drop" is "psn=1 iter=1 drop": it drops PSN 1 once, the retransmission passes. "psn=1 iter=1-2 drop" drops the
 * first retransmission as well. */
#ifndef RDMATRACE_GEN_NET_EVENT_H
#define RDMATRACE_GEN_NET_EVENT_H

#include "buf.h"
#include "gen/endpoint/rewrite.h"
#include "gen/net/conn_ids.h"
#include "tokens.h"

#define EVENT_WORDS 32 /* of a specification at most */
#define EVENT_HITS  8  /* events noted per packet */

struct event_list;

struct event_list *event_list_new(void);
void event_list_free(struct event_list *l);
/* Add an event of `n` words; `label` is what a report calls it (copied). False with *e filled. */
bool event_add(struct event_list *l, const struct token *t, unsigned n, const char *label, struct text_error *e);
/* The connections that conn= selects; the simulation adds each connection when it begins. */
struct conns *event_conns(struct event_list *l);
/* From now on learn connections from packets, and always count `iteration`. False: no memory. */
bool event_learn(struct event_list *l);
/* Connections not learnt: CONNS_LEARN_MAX reached, or no memory. */
uint64_t event_unlearnt(const struct event_list *l);

/* An event that matched a packet. */
struct event_hit {
    uint16_t event; /* number, from 1 in the order of event_add() */
    uint8_t done;   /* bit i: its i-th action could be applied */
};

/* What the network does with a frame; the bytes of the frame are changed already. */
struct event_result {
    uint32_t hit; /* events that matched */
    bool drop;
    bool changed; /* bytes of the frame were changed */
    ns_t delay;
    uint32_t reorder;       /* hold the frame until this many later frames have passed it */
    uint32_t dup;           /* further copies */
    uint32_t cut;           /* bytes cut off */
    uint32_t iteration;     /* how many times this PSN has passed, this time included; 0: not counted */
    struct conns_view view; /* view of the packet; only set with events, or if connections are learnt */
    struct event_hit hits[EVENT_HITS];
};
/* Apply all events to a frame of host `from`; *len may change. `data` has room for NET_FRAME_MAX bytes. */
struct event_result events_apply(struct event_list *l, unsigned from, uint8_t *data, uint32_t *len, uint16_t linktype,
                                 struct prng *r);
/* Report each event that never matched a packet, or with an action that could be applied to no matching packet. Returns
 * the number of events reported. */
unsigned events_idle(const struct event_list *l, report_fn *report, void *user);
/* Number of events; of event `number`, from 1: its label, the packets that matched, and those to which all its actions
 * could be applied. */
unsigned events_count(const struct event_list *l);
const char *event_label(const struct event_list *l, unsigned number);
uint64_t event_used(const struct event_list *l, unsigned number);
uint64_t event_applied(const struct event_list *l, unsigned number);

/* A packet released after it was held: its actual delay and reordering. */
struct event_left {
    ns_t held;       /* how long it was held back */
    uint32_t passed; /* frames that passed it */
};
/* Append what events did to a packet: "dropped by event 1 (psn=3 drop)"; several events are joined by "; ". `left`:
 * NULL while the packet is still held. */
void events_describe(struct buf *b, const struct event_list *l, const struct event_result *r,
                     const struct event_left *left);

#endif
