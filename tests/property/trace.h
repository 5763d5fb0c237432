/* layer 4 (test) property: recordings of taps in memory: changed as captures differ from the wire, judged, written to
 * files. */
#ifndef RDMATRACE_PROPERTY_TRACE_H
#define RDMATRACE_PROPERTY_TRACE_H

#include "gen/endpoint/build.h"
#include "gen/net/tap.h"
#include "src/judge/judge.h"

/* Bytes of frames, shared by traces. */
struct store {
    uint8_t *b;
    size_t n, cap;
};

/* A frame: `len` bytes at offset `off` of the store, seen at interface `iface`. */
struct shot {
    ns_t ts;
    size_t off;
    uint32_t len;
    uint32_t iface;
};

struct trace {
    struct store *store;
    struct shot *shot;
    size_t n, cap;
    uint16_t linktype; /* enum linktype */
    uint32_t snap;     /* bytes kept of each frame; 0: all */
    bool untimed;      /* frames carry no time stamps */
};

/* Append a frame. */
void trace_add(struct trace *t, const uint8_t *data, uint32_t len, ns_t ts);
/* Make `to` the same as `from`; their bytes are shared. */
void trace_copy(struct trace *to, const struct trace *from);
void trace_free(struct trace *t);
static inline const uint8_t *trace_data(const struct trace *t, size_t i)
{
    return t->store->b + t->shot[i].off;
}

/* How a capture differs from the packets that passed its tap. */
enum mutation {
    AS_IT_WAS,
    DROPPED,    /* frames are missing: 1, 5 or 30 % */
    ONE_WAY,    /* one direction is missing */
    CUT,        /* it begins later, ends earlier, or both */
    DOUBLED,    /* every frame is there twice */
    SWAPPED,    /* frames of opposite directions changed places within a window of 8 */
    DISORDERED, /* times are right, but the records are not in their order, as of several queues */
    MUTATIONS
};
/* "as it was", ... */
const char *mutation_str(enum mutation m);
/* Whether the capture still lacks no frame between its first and its last, and has them in order: the condition of
 * --complete. */
bool mutation_is_complete(enum mutation m);
void trace_mutate(struct trace *t, enum mutation m, struct prng *r);
/* Whether a REQ of this host is there. */
bool trace_opens(const struct trace *t, const struct link_addr *host);
/* Connection management was not captured. */
void trace_drop_cm(struct trace *t);
/* The frames of `n` captures of one link type as one, in the order of time, captures later in the list behind those of
 * the same time; their bytes are put into `store`. `taps`: each is an interface of its own. */
void trace_merge(struct trace *t, struct store *store, const struct trace *const in[], unsigned n, bool taps);
/* Whether no queue pair of `later` begins with a PSN of which it may be thought that it goes on with, or repeats, what
 * the same queue pair has sent in `t`. */
bool trace_psns_differ(const struct trace *t, const struct trace *later);
/* Whether communication ids of a host may be the same in both: they count from the same number, or neither has any. */
bool trace_cm_ids_meet(const struct trace *t, const struct trace *later);
/* Time stamps are multiples of `step` ns. */
void trace_round(struct trace *t, ns_t step);
/* Set the clock back by `by` ns before frame `at`. */
void trace_set_back(struct trace *t, size_t at, ns_t by);
/* Delay all of it by `by` ns. */
void trace_delay(struct trace *t, ns_t by);

/* The clock of one direction is `by` ns ahead: its frames are merged into the others by time. */
void trace_skew(struct trace *t, ns_t by, struct prng *r);

/* Judge it; the judge is the caller's to free. */
struct judge *trace_judge(const struct trace *t, const struct judge_opts *o);
/* Write it to a capture file; false after a message. */
bool trace_write(const struct trace *t, const char *path);

#endif
