/* layer 3 (live): two ports of this host and what lies between them: frames are forwarded from each to the other,
 * events happen to them (gen/net/bridge.h), and both sides are recorded. */
#ifndef RDMATRACE_GEN_LIVE_FORWARD_H
#define RDMATRACE_GEN_LIVE_FORWARD_H

#include "gen/live/live.h"
#include "gen/net/bridge.h"

struct forward {
    /* Set by the caller. */
    const char *name[NET_HOSTS];   /* of the ports: an interface, or NAME:ARGS of a backend */
    void (*say)(const char *line); /* told when an interface goes or comes back; NULL: nobody is */
    uint64_t count;                /* frames to take at most; UINT64_MAX: no limit */
    /* Each frame that comes in at a port, at live_now() `when`; NULL: nobody asks. */
    void (*seen)(void *user, unsigned port, const uint8_t *data, uint32_t len, ns_t when);
    /* A frame from `port` matched an event, as `note` says; NULL: nobody asks. */
    void (*matched)(void *user, unsigned port, const char *note);
    void *user;
    /* State. */
    struct backend *backend[NET_HOSTS];
    struct bridge *bridge;                                    /* NULL: nothing is forwarded */
    struct cap_writer *record;                                /* NULL: nothing is recorded */
    struct cap_iface iface[NET_HOSTS];                        /* the ports as interfaces of the capture */
    uint64_t record_from[NET_HOSTS], dropped_from[NET_HOSTS]; /* what the ports had received, and lost, before it */
    int record_err;                                           /* first error in writing the capture, a negative errno */
    ns_t start, now;                                          /* live_now(): when the ports were opened, and now */
    ns_t flush_at;                                            /* live_now() of the next flush of the capture */
    ns_t epoch;                                               /* ns since 1970 at live_now() = 0 */
    uint64_t received;                                        /* frames */
    struct late late;                                         /* since the caller's late_begin() */
    struct idle idle;                                         /* since the caller's idle_begin() */
};

/* Open both ports. 0, or a negative errno with *err filled; forward_close() has to follow in any case. */
int forward_open(struct forward *f, struct backend_error *err);
/* Begin to forward anew, with what may have come in before forgotten, and let `events`, which are the caller's, happen
 * to the frames; `seed`: of the bits that corrupt flips. False: no memory. forward_end() ends it: what events hold back
 * leaves then; the statistics of the bridge stay. */
bool forward_begin(struct forward *f, struct event_list *events, uint64_t seed);
void forward_end(struct forward *f);
/* Forward frames; if there are none, wait for one until `end`. 0, or as live_step(). */
int forward_step(struct forward *f, ns_t end);
/* Record `snaplen` bytes of each frame (0: all) in a pcapng file: interface 0 is the first port. 0, or a negative errno
 * with *err filled. End it: its first error, with *err filled; *lost: frames that came in meanwhile, and were not taken
 * in time. */
int forward_record(struct forward *f, const char *path, uint32_t snaplen, struct cap_error *err);
int forward_record_end(struct forward *f, uint64_t *lost, struct cap_error *err);
/* Close all but the capture. */
void forward_close(struct forward *f);

#endif
