/* layer 3b (export): internal: the packets and tracks of a trace for Perfetto. */
#ifndef RDMATRACE_EXPORT_TRACKS_H
#define RDMATRACE_EXPORT_TRACKS_H

#include "src/conn/addr.h"

enum event_type { SLICE_BEGIN = 1, SLICE_END, INSTANT, COUNTER }; /* as TrackEvent.Type */

/* Kinds of tracks: a process for each host; for each direction of a connection requests, answers to them, events, lost
 * time, and the counters rate and outstanding; for each port that is paused and each priority the pauses; findings. */
enum track_kind {
    OF_HOST,
    OF_REQUESTS,
    OF_ANSWERS,
    OF_EVENTS,
    OF_STALLS,
    OF_RATE,
    OF_OUTSTANDING,
    OF_PAUSES,
    OF_CHECK
};

struct track {
    uint64_t uuid; /* 0: the row of the table is free */
    uint8_t kind;  /* enum track_kind */
    ns_t *lanes;   /* ends of the slices of each lane: those that overlap are on several tracks of one name */
    unsigned n_lanes;
    ns_t value_at;  /* of a rate: the end of its latest interval; of pauses: of the latest frame; else 0 */
    uint64_t value; /* of a counter: the latest; of pauses: the quanta of the latest frame, 0: not paused */
    uint64_t frame; /* of pauses: the number of the latest frame */
};

/* One direction of a connection at a tap. OF_PAUSES: `src` is the MAC address of the port that asks for them, in its
 * last six bytes, `dqpn` the priority or PAUSE_CLASSES for all. */
struct ends {
    uint32_t tap, conn;
    const struct conn_addr *src, *dst;
    uint32_t dqpn;
};

/* A trace that is written. */
struct tracks {
    const char *const *files; /* names of the captures */
    int fd, error;            /* where to; errno of the first error */
    struct buf out, event, part, text;
    struct track *rows; /* hash table by uuid, open addressing */
    uint32_t n, cap, pids;
};

/* Whether a file begins as such a trace; `n`: bytes at `p`. */
bool tracks_are(const uint8_t *p, size_t n);
/* Write what is kept. */
void tracks_flush(struct tracks *x);
void tracks_free(struct tracks *x);
/* The track, which is described in the trace at first; NULL: there is no room. Valid until the next call. */
struct track *track_of(struct tracks *x, enum track_kind kind, const struct ends *e);
/* The number of a track for a slice that begins at `start`: the first lane that is free; 0: there is no room. */
uint64_t track_lane(struct tracks *x, enum track_kind kind, const struct ends *e, ns_t start, ns_t end);

/* An event: begun, given a name, notes and flows, and put. */
void event_begin(struct tracks *x, enum event_type type, uint64_t track);
void event_name(struct tracks *x, const char *category, const char *name);
void event_number(struct tracks *x, const char *name, uint64_t v);
/* Nothing if `text` is NULL or empty. */
void event_text(struct tracks *x, const char *name, const char *text);
/* Events with the same number are joined by arrows, in the order of time. */
void event_flow(struct tracks *x, uint64_t flow);
/* The flow of a message with this PSN, the same at all taps; all of them have the bit FLOW_OF_MESSAGE. */
#define FLOW_OF_MESSAGE (UINT64_C(1) << 63)
uint64_t flow_of_message(const struct ends *e, uint32_t psn);
void event_put(struct tracks *x, ns_t at);
/* The event of a counter. */
void event_value(struct tracks *x, struct track *t, ns_t at, uint64_t v);

#endif
