/* layer 2b (conn): the observer: what each packet is to its connection, decided once and handed out as an event.
 *
 * For every packet one place decides its kind, its flow, whose requests it belongs to or answers, whether it was seen
 * before and why its requester went back. Subscribers get the event before the packet changes the evidence about its
 * requests, and after it:
 *
 *     observer_packet(o, p):   early(p)  learn  see -> event   before(event)   take -> evidence   after(event)
 *
 * A caller with an order of its own uses the steps: observer_see(), or observer_learn() and observer_request() or
 * observer_response() (the judge); observer_take(). */
#ifndef RDMATRACE_CONN_OBSERVER_H
#define RDMATRACE_CONN_OBSERVER_H

#include "src/conn/go_back.h"
#include "src/conn/setup.h"

#define OBSERVER_SUBS 16 /* subscribers of one observer at most */
/* ns: a queue pair that was idle for so long may have been reset or destroyed: its number may be another one's by now.
 * No source states a time: it is far above the ACK timeouts in use. */
#define QPN_REUSED_AFTER (10 * NS_PER_S)

struct iwarp;
struct observer;
struct timeline;

enum event_kind {
    EVENT_OTHER,    /* of no connection: no BTH, malformed, an opcode without a name, a datagram */
    EVENT_BAD_ICRC, /* its receiver drops it */
    EVENT_CNP,
    EVENT_REQUEST,
    EVENT_RESPONSE,
};

/* A packet, and its meaning for its connection. */
struct event {
    const struct pkt *p;
    uint8_t kind;      /* enum event_kind */
    uint8_t as;        /* of a request: enum seen_as */
    uint8_t why;       /* of a request that goes back: enum why_back; else BACK_NONE */
    bool unpaired;     /* its flow had no peer before this packet */
    bool moved;        /* a request: it took another path than the previous one, so its queue pair has migrated */
    uint32_t own;      /* flow of the packet itself; FLOW_NONE: none, or not known */
    uint32_t flow;     /* flow of the requests: `own`, or for a response its peer; FLOW_NONE: not known */
    struct req_dir *h; /* evidence about the requests in `flow`; NULL: none were seen */
    /* of a SEEN_AGAIN: the copy of it that another sender has sent (copy_of_another_sender()), so that its requester
     * goes back to nothing; NULL: there is none */
    const struct sent *forged;
};

/* A subscriber; any function may be NULL. */
struct observer_sub {
    void *user;
    /* forget what is kept of a flow: its place is about to be given to another one, or (`restart`) its queue pairs are
     * those of another connection from now on; conn_flow_at() still returns the flow that was */
    conn_flow_over *over;
    /* observer_fetch() of a flow: fetch what is kept of it, which will be written soon */
    void (*fetch)(void *user, uint32_t flow);
    /* any packet, also one that only teaches, before anything is learnt from it */
    void (*early)(void *user, const struct pkt *p);
    void (*before)(void *user, const struct event *e); /* before the packet changes the evidence */
    /* a request or response with `h`, after the packet has changed the evidence */
    void (*after)(void *user, const struct event *e);
};

struct observer_opts {
    /* Assume of a connection only what is proved. A PSN far from those remembered then means that the queue pair was
     * reset, unless CM says that the connection is still the same; and CM parameters hold only for PSNs near the
     * starting PSN that CM states, and do not tell which PSN the responder expects first. If false, a PSN far from
     * those remembered is taken for a retransmission, or for a gap. */
    bool cautious;
    bool complete; /* the capture lacks no frame, see observer_incomplete() */
    /* bytes for flows and evidence about them, 0: ROOM_DEFAULT; one flow is kept for each `per_flow`, beyond that
     * the one unused for longest is evicted */
    uint64_t memory;
    uint32_t per_flow; /* bytes, 0: ROOM_PER_FLOW */
};

/* NULL without memory. `opts` NULL: all false. */
struct observer *observer_new(const struct observer_opts *opts);
void observer_free(struct observer *o);
/* *s is copied. At most OBSERVER_SUBS, before the first packet; false if there are more. */
bool observer_subscribe(struct observer *o, const struct observer_sub *s);
/* The accounts (timeline_of()): a subscriber that other subscribers read, and that is released with the observer. NULL:
 * none. */
struct timeline *observer_timeline(const struct observer *o);
/* Set the accounts; observer_free() calls `release`. */
void observer_set_timeline(struct observer *o, struct timeline *t, void (*release)(struct timeline *t));
/* Frames may be missing in the capture from now on. */
void observer_incomplete(struct observer *o);

/* Process a packet: classify it and pass its event to the subscribers. */
void observer_packet(struct observer *o, const struct pkt *p);
/* Use a packet only to learn which queue pairs belong together: subscribers get early() and no event. */
void observer_teach(struct observer *o, const struct pkt *p);
/* Do no more than tell those who want to hear of every packet: it is one of other hosts, which another process follows.
 */
void observer_early(const struct observer *o, const struct pkt *p);
/* Another thread than before goes on with the packets: fetch what is kept of the flows that had some since the last
 * call out of the other processor's caches, all at once. It changes nothing else, and may be left out. */
void observer_fetch(struct observer *o);
/* Packets taken by observer_packet() so far. */
uint64_t observer_packets(const struct observer *o);

/* The steps. Learn connection setup from `p`, a MAD or a packet without a BTH. */
void observer_learn(struct observer *o, const struct pkt *p);
/* Learn from any packet, and fill its event. */
void observer_see(struct observer *o, const struct pkt *p, struct event *e);
/* Fill the event of a request, or of a response, in flow `flow`. e->h is NULL without memory (request), or if no
 * request of its connection was seen (response). */
void observer_request(struct observer *o, const struct pkt *p, uint32_t flow, struct event *e);
void observer_response(struct observer *o, const struct pkt *p, uint32_t flow, struct event *e);
/* Update the evidence by the packet; only if e->h is not NULL. */
void observer_take(struct observer *o, const struct event *e);

struct conn_table *observer_conns(struct observer *o);
/* Number of flows kept at a time: every index of a flow is lower. */
uint32_t observer_flows(const struct observer *o);
/* There are many flows: see zeros_many(). */
void observer_expect_many(struct observer *o);
/* The memory left for evidence; subscribers count there what they keep of a flow beyond a small constant. */
struct room *observer_room(struct observer *o);
/* The iWARP connections in the TCP streams (src/iwarp/iwarp.h), which observer_learn() follows; their numbers are
 * those of conn.h. */
struct iwarp *observer_iwarp(struct observer *o);
/* Evidence about the requests of a flow; NULL if it carried none. */
struct req_dir *observer_req_dir(struct observer *o, uint32_t flow);
/* The latest retransmissions of a flow after an ACK timeout. */
const struct tries *observer_tries(const struct observer *o, uint32_t flow);
/* Whether the tap sees the direction of the responses: it saw packets of the connection or of its setup, or any other
 * packets between the same addresses, in that direction. */
bool observer_sees_responses(const struct observer *o, uint32_t flow);
/* The same, by RDMA packets alone: other packets of the responder do not show that its responses would be captured. */
bool observer_sees_rdma_responses(const struct observer *o, uint32_t flow);

#endif
