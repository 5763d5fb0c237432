/* layer 2b (account): the accounts of a capture: where the time of each direction of requests went, and the episodes of
 * trouble to which lost time is billed.
 *
 * Subscribes to the observer. Time gets its state when the packet that ends it passes; a NAK, a retransmission or the
 * end of a pause change the state of the time before. One lost request, as a tap at the requester sees it:
 *
 *     request 7   8   9          NAK 7       7'  8'  9'  10          ACK
 *     |-----------|---|-----------|----------|---|---|---|------------|
 *     loss_nak                    |loss_     |loss_resend|transfer    response
 *                                 |retransmission
 *
 * The states are those of account.h. Memory is bounded by the number of connections, and EPISODES_MAX. */
#ifndef RDMATRACE_ACCOUNT_TIMELINE_H
#define RDMATRACE_ACCOUNT_TIMELINE_H

#include "src/account/spans.h"
#include "src/conn/observer.h"

#define EPISODES_MAX (1u << 18) /* the time of further ones is not known */

/* What an episode is, as far as packets show it. */
enum trouble {
    TROUBLE_SEQ_NAK,   /* a sequence NAK demanded the retransmission of a request */
    TROUBLE_IMPLIED,   /* a response skipped the response to a READ or atomic, or a part of it */
    TROUBLE_RNR,       /* RNR NAK */
    TROUBLE_TIMEOUT,   /* the ACK timeout brought a retransmission about */
    TROUBLE_DEAD,      /* the peer never responded again */
    TROUBLE_REFUSED,   /* a NAK that puts the requester's queue pair into the error state */
    TROUBLE_SLOW,      /* a response came far later than usual */
    TROUBLE_PAUSE,     /* pause frames */
    TROUBLE_THROTTLED, /* CNPs */
    TROUBLE_CREDIT,    /* no end-to-end credits */
    TROUBLE_DEPTH,     /* as many READs and atomics outstanding as agreed on */
    TROUBLE_STOPPED,   /* nothing came within a message; then a packet of it came for the first time */
    TROUBLES
};

/* One time of trouble of a direction of requests. Frames are 0 if there is none. */
struct episode {
    uint8_t why;              /* enum trouble */
    uint32_t flow;            /* of the requests; its place may have been given to another flow since */
    uint32_t conn, tap;       /* number of the connection; conn_tap_of() */
    uint32_t psn;             /* of the packet that was NAKed or retransmitted */
    uint32_t root;            /* the first of a row of episodes about one packet; may be this one */
    uint32_t tries;           /* TIMEOUT: how many there were in the row so far */
    ns_t start, end;          /* of the time that is billed to it */
    ns_t bill;                /* all time billed to it */
    ns_t states[TIME_STATES]; /* the same by state */
    /* TIMEOUT: silence before the retransmission; RNR: time waited; DEPTH: time from a response to the next READ, if it
     * is always the same, and more than the requester's reaction */
    ns_t wait;
    uint32_t sent;    /* frame of the copy that was sent before */
    uint32_t instead; /* frame that showed the gap */
    /* frame of the NAK; TIMEOUT: of one that the requester ignored; PAUSE, THROTTLED: of the pause frame, the CNP */
    uint32_t nak;
    uint32_t back;   /* frame of the retransmission */
    uint32_t answer; /* frame of the response that ended it */
    ns_t rtt;        /* TIMEOUT: no response came sooner after the first copy of its request; 0: not known */
    /* TIMEOUT without a further try: the response that ended it came so long after the latest retransmission, far
     * longer than responses usually take; 0: no longer, or none came */
    ns_t slow;
    bool cut;       /* TIMEOUT: of what was retransmitted before, the last packets did not pass the tap */
    uint32_t count; /* RNR NAKs, CNPs or waits in it */
    /* STOPPED: other queue pairs of the requester's host sent meanwhile; the silence is that of its ACK timeout, which
     * is known or was the same before. With neither its time is not_known. */
    bool others, timed;
    bool ahead; /* IMPLIED: the response came, but before an earlier one, which came then: its requester dropped it */
    /* PAUSE: how often nothing was outstanding, and the requester sent when the pause ended, far later than usual; that
     * time */
    uint32_t rests;
    ns_t rest;
};

/* The account of one direction at one tap. */
struct timeline_row {
    uint32_t conn, tap, flow;
    struct conn_addr src, dst;
    uint32_t sqpn, dqpn;
    bool have_sqpn;
    ns_t first, last;
    ns_t states[TIME_STATES]; /* add up to last - first */
};

struct timeline;

/* The timeline of `o`, created by the first call, which must come before the first packet. It subscribes to `o` and
 * lives as long as `o`. NULL without memory. */
struct timeline *timeline_of(struct observer *o);
/* The capture has several taps: keep what timeline_share_pauses() needs. Before the first packet; false without memory.
 */
bool timeline_several(struct timeline *t);
/* Convert time *ts of tap `from` to the clock of tap `to`; false: their clocks could not be compared. */
typedef bool timeline_clock(void *user, uint32_t from, uint32_t to, ns_t *ts);
/* Before timeline_end(): pause frames that one tap saw explain silences of the same connections at other taps, as far
 * as both are still kept. */
void timeline_share_pauses(struct timeline *t, timeline_clock *clock, void *user);
/* Before timeline_end(): the requester of `flow` heard no response to its requests, although the tap may have seen some
 * that it drops: its silences were ACK timeouts. */
void timeline_unheard(struct timeline *t, uint32_t flow);
/* At a request of `flow`, whose latest one passed at `ts`: whether those of other hosts to the same one went on passing
 * the tap then, for a millisecond or longer, and its own host sent none at all. */
bool timeline_others_sent(const struct timeline *t, uint32_t flow, ns_t ts);
/* Before timeline_end(): a later frame of a tap was read by somebody else. */
void timeline_last_frame(struct timeline *t, uint32_t tap, ns_t ts);
/* What is kept in tables that all hosts share. */
struct timeline_use {
    uint64_t episodes, ports, guesses, cnps;
    bool pauses;
    bool peers; /* whether a responder is dead was asked, which depends on what it sends to other hosts, and they to it
                 */
    bool gathers; /* what a requester lost after CNPs depends on those of other hosts that send to the same one */
};
struct timeline_use timeline_use(const struct timeline *t);
/* Whether the tables have room for so much, so that nothing of a host takes the place of what was kept of another. */
bool timeline_use_fits(const struct timeline_use *u);
/* After the last packet: what is open gets its states. May be called again. */
void timeline_end(struct timeline *t);

/* The accounts, by number of connection; after timeline_end(). */
size_t timeline_n(const struct timeline *t);
const struct timeline_row *timeline_row(const struct timeline *t, size_t i);
/* Number of the first account of connection `conn`, whose accounts follow one another; of the next connection with
 * accounts if it has none, or timeline_n(). */
static inline size_t timeline_first(const struct timeline *t, uint64_t conn)
{
    size_t low = 0, high = timeline_n(t);

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (timeline_row(t, mid)->conn < conn)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}
/* The episodes in the order in which they began. */
uint32_t timeline_episodes(const struct timeline *t);
const struct episode *timeline_episode(const struct timeline *t, uint32_t i);
/* How the time of a flow of requests between two points was spent, as far as it is known so far; adds up to to - from.
 */
void timeline_between(const struct timeline *t, uint32_t flow, ns_t from, ns_t to, ns_t states[TIME_STATES]);
/* Before timeline_end(): how the time of a flow of requests was spent, up to the latest packet that gave time a state;
 * what follows may still change it. False: the flow has no requests. */
bool timeline_so_far(const struct timeline *t, uint32_t flow, ns_t states[TIME_STATES]);

#endif
