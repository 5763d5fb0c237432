/* layer 3 (net): a bridge between two hosts that applies exact events to what passes. No clock and no I/O: frames are
 * given to it and handed out by callbacks, time is an argument.
 *
 *   port 0 >  record | learn, events: drop, change, hold back, double | queue | record  > port 1
 *
 * and the same the other way round. Frames leave in the order in which they came, but for those held back. What a port
 * cannot take at once waits in its queue, and bridge_ready() asks that nothing further be read for it
 * meanwhile. */
#ifndef RDMATRACE_GEN_NET_BRIDGE_H
#define RDMATRACE_GEN_NET_BRIDGE_H

#include "gen/net/net.h"

#define BRIDGE_QUEUE     4096 /* frames that wait for a port at most; more are dropped and counted */
#define BRIDGE_HELD      8192 /* frames of a direction that are held back by events at most; likewise */
#define BRIDGE_FRAME_MIN 14   /* bytes of an Ethernet header: events may cut a frame to less, which cannot be sent */

struct bridge_config {
    struct event_list *events; /* set up to learn; stays the caller's */
    uint64_t seed;             /* of the bits that are flipped */
    /* bytes of the largest IP packet that both ports carry; TCP that an offload has joined to more is taken apart */
    uint32_t mtu;
    ns_t hold; /* frames held back to be passed by others leave then at the latest */
    /* A frame leaves at `port`. False: not now. */
    bool (*send)(void *user, unsigned port, const uint8_t *data, uint32_t len);
    /* A frame has arrived at `port` (`in`) or is leaving; `note` says what was done to it, "" if nothing. NULL: not
     * wanted. */
    void (*record)(void *user, unsigned port, bool in, const uint8_t *data, uint32_t len, const char *note);
    /* Events matched a frame that came in at `port`. NULL: not wanted. */
    void (*told)(void *user, unsigned port, const char *note);
    void *user;
};

/* Counted for each port. */
struct bridge_stats {
    uint64_t received, bytes; /* came in */
    uint64_t rdma;            /* of these InfiniBand packets */
    uint64_t sent;            /* went out here */
    /* came in, and events matched; each segment of a joined frame for itself, here and in `dropped` */
    uint64_t matched;
    uint64_t dropped;   /* came in, and events dropped them, or cut them to less than an Ethernet header */
    uint64_t joined;    /* came in, TCP segments joined by an offload, and were taken apart */
    uint64_t too_long;  /* came in, longer than NET_FRAME_MAX, no whole TCP segments, and not forwarded */
    uint64_t too_short; /* to go out here, but cut to less than an Ethernet header */
    uint64_t overflow;  /* to go out here, but the queue was full, or too many frames were held back */
};

struct bridge;

/* NULL: no memory. */
struct bridge *bridge_new(const struct bridge_config *c);
void bridge_free(struct bridge *b);
/* Whether the next frame from `port` should be read. */
bool bridge_ready(const struct bridge *b, unsigned port);
/* A frame arrives at `port`; `lost` bytes of it are not there. */
void bridge_rx(struct bridge *b, unsigned port, const uint8_t *data, uint32_t len, uint32_t lost, ns_t now);
/* When bridge_run() wants to be called for the sake of frames held back; NS_NEVER: there are none. */
ns_t bridge_next(struct bridge *b);
/* Let go what is due, and try to send what waits. */
void bridge_run(struct bridge *b, ns_t now);
/* The end: let all go that is held back, and try to send what waits. */
void bridge_end(struct bridge *b, ns_t now);
/* Whether frames wait for a port. */
bool bridge_blocked(const struct bridge *b);
void bridge_stats(const struct bridge *b, unsigned port, struct bridge_stats *s);

#endif
