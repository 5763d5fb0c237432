/* layer 3 (net): a bridge between two hosts that applies exact events to the frames that it forwards. No clock and no
 * I/O: frames come and go by callbacks, time is an argument.
 *
 *   port 0 >  record | learn, events: drop, change, hold back, duplicate | queue | record  > port 1
 *
 * and likewise from port 1 to port 0. Frames leave in the order of arrival, except those held by an event. A frame that
 * a port cannot send at once waits in the queue of the port; bridge_ready() is false meanwhile. */
#ifndef RDMATRACE_GEN_NET_BRIDGE_H
#define RDMATRACE_GEN_NET_BRIDGE_H

#include "gen/net/net.h"

#define BRIDGE_QUEUE     4096 /* frames waiting for a port at most; more are dropped and counted */
#define BRIDGE_HELD      8192 /* frames held by events at most, per direction; more are dropped and counted */
#define BRIDGE_FRAME_MIN 14   /* bytes of an Ethernet header: events may cut a frame to less, which cannot be sent */

struct bridge_config {
    struct event_list *events; /* after event_learn(); not freed by the bridge */
    uint64_t seed;             /* of the choice of flipped bits */
    /* bytes of the largest IP packet that both ports carry; longer TCP packets, joined by an offload, are split */
    uint32_t mtu;
    ns_t hold; /* longest time that a frame is held for reorder=N */
    /* Send a frame at `port`. False: the port is busy; the frame is queued and tried again. */
    bool (*send)(void *user, unsigned port, const uint8_t *data, uint32_t len);
    /* Called for each frame that arrives at `port` (`in`) or leaves there; `note`: what the events did to it, "" if
     * nothing. May be NULL. */
    void (*record)(void *user, unsigned port, bool in, const uint8_t *data, uint32_t len, const char *note);
    /* Called for each frame from `port` that matched an event. May be NULL. */
    void (*matched)(void *user, unsigned port, const char *note);
    void *user;
};

/* Counters of one port, in frames unless they say bytes. */
struct bridge_stats {
    uint64_t received, bytes; /* received */
    uint64_t rdma;            /* InfiniBand packets among them */
    uint64_t sent;            /* sent */
    /* received frames that events matched; here and in `dropped` each segment of a joined frame counts */
    uint64_t matched;
    uint64_t dropped;   /* received frames that events dropped, or cut to less than an Ethernet header */
    uint64_t joined;    /* received frames of joined TCP segments, which were split */
    uint64_t too_long;  /* received frames longer than NET_FRAME_MAX, not whole TCP segments: not forwarded */
    uint64_t too_short; /* to be sent here, but cut to less than an Ethernet header */
    uint64_t overflow;  /* to be sent here, but the queue was full, or too many frames were held back */
};

struct bridge;

/* NULL: no memory. */
struct bridge *bridge_new(const struct bridge_config *c);
void bridge_free(struct bridge *b);
/* True if the next frame from `port` may be read: no frame is queued for the other port. */
bool bridge_ready(const struct bridge *b, unsigned port);
/* A frame arrives at `port`; the receive buffer was too small for its last `lost` bytes. */
void bridge_rx(struct bridge *b, unsigned port, const uint8_t *data, uint32_t len, uint32_t lost, ns_t now);
/* When bridge_run() must be called next to release a held frame; NS_NEVER: no frame is held. */
ns_t bridge_next(struct bridge *b);
/* Release the held frames that are due, and try to send the queued frames. */
void bridge_run(struct bridge *b, ns_t now);
/* At the end: release all held frames, and try to send the queued frames. */
void bridge_end(struct bridge *b, ns_t now);
/* True if frames are queued for either port. */
bool bridge_blocked(const struct bridge *b);
void bridge_stats(const struct bridge *b, unsigned port, struct bridge_stats *s);

#endif
