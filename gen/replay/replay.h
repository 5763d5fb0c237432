/* layer 3 (replay): plays the story of one end of a connection against a live peer, over any provider: PSNs, queue pair
 * numbers, keys and addresses are those of the connection that was made, and what the peer answers is waited for.
 *
 * A work request is posted when its time has come, as many messages of the peer's have arrived as had in the capture,
 * and as many READs and atomics are complete. Keys of our memory are written into our messages where the capture has
 * the old ones; the peer's keys are taken from its messages, at the places where the capture has them. */
#ifndef RDMATRACE_GEN_REPLAY_REPLAY_H
#define RDMATRACE_GEN_REPLAY_REPLAY_H

#include "gen/replay/story.h"
#include "gen/verbs/receives.h"

struct replay_opts {
    uint32_t qpn;    /* of our queue pair; 0: the provider's choice */
    bool topspeed;   /* post as soon as the peer's answers allow */
    uint32_t speed;  /* times as fast as in the capture, in thousandths; 0: 1000 */
    bool has_memory; /* the peer's memory is known: where its messages do not tell keys, */
    uint32_t rkey;   /* its R_Key, and */
    uint64_t va;     /* the address that stands for the lowest one of each such key */
};

struct replay_counts {
    uint32_t posted, completed; /* work requests */
    uint64_t bytes;             /* of those completed */
    uint32_t arrived;           /* messages of the peer's */
    uint32_t other_length;      /* of them with another length than in the capture */
    uint32_t other_data;        /* of them of the same length, with other bytes */
    uint32_t other_reads;       /* READs that returned other bytes */
    uint32_t plain;             /* SENDs with Invalidate sent without: which key of the peer's is meant is not known */
    ns_t start, end;            /* first one posted, last one completed; 0: none */
};

/* A message of the peer's, as it came now. */
struct replay_heard {
    ns_t when;   /* 0: it has not come */
    uint64_t at; /* offset in replay.heard_bytes */
    uint32_t n;  /* bytes kept there; 0: none is needed */
    bool needed; /* a work request's memory is named in it */
};

struct replay {
    struct verbs *verbs;
    struct story *s;
    struct replay_opts o;
    int qp, cq; /* handles; the caller connects the queue pair */
    struct replay_counts counts;
    char why[200]; /* why it failed; "": it did not */
    bool flushed;  /* with `why`: a work request was flushed, as the queue pair was in the error state */
    /* internal */
    uint32_t pd, bytes_key, sink_key;
    uint8_t **memory;     /* of each region */
    uint32_t *key;        /* likewise: its R_Key now */
    uint8_t *sink;        /* what READs return, in slots */
    uint32_t slot, slots; /* bytes of a slot; how many, 0: nothing is read */
    struct receives recvs;
    uint32_t next, next_put, next_own; /* what is next of story.ops, puts, owns */
    uint32_t reads_posted, reads_done; /* READs and atomics */
    ns_t posted_at;                    /* when work request next - 1 was */
    struct replay_heard *heard;        /* of each message; behind them the private data */
    struct buf heard_bytes;
    bool started;
};

/* How long to wait for what came at `to` in the capture, after what came at `from`: at most 73 years. */
ns_t replay_wait(const struct replay_opts *o, ns_t from, ns_t to);
/* Create queue pair (RESET), memory and receives. 0; -ENOKEY: a work request goes to memory of the peer's that no
 * message names, r->why names it; another negative errno. Call replay_free() in either case. `s` is changed, and must
 * outlive it. */
int replay_init(struct replay *r, struct verbs *verbs, struct story *s, const struct replay_opts *o);
void replay_free(struct replay *r);
/* Private data of our REQ or REP, with the keys of now. Returns its bytes. */
const uint8_t *replay_private(struct replay *r);
/* That of the peer. */
void replay_heard_private(struct replay *r, const uint8_t *data, uint8_t len);
/* The queue pair has left RESET: post the receives. */
void replay_ready(struct replay *r, ns_t now);
/* It may send: begin. */
void replay_start(struct replay *r, ns_t now);
/* Poll completions, post what is due. Returns the time by which it must be called again; NS_NEVER: when something
 * arrives. */
ns_t replay_poll(struct replay *r, ns_t now);
/* Whether all work requests are complete and all messages of the peer's have come, or it has failed. */
bool replay_done(const struct replay *r);

#endif
