/* layer 3 (cores): internal: the ring of batches, which owners.c and cores.c share. */
#ifndef RDMATRACE_CORES_CORES_IMPL_H
#define RDMATRACE_CORES_CORES_IMPL_H

#include "src/cores/cores.h"

#include <pthread.h>

/* How a packet is shown. */
enum shows { SHOWS_NOT, SHOWS_LATER, SHOWS_TEXT };

#define OWNER_NONE UINT16_MAX /* of a packet that is left to no owner */

struct batch {
    struct frame frames[CORES_FRAMES];
    struct pkt pkts[CORES_FRAMES];
    uint32_t tags[CORES_FRAMES];
    uint8_t shows[CORES_FRAMES]; /* enum shows */
    uint32_t ends[CORES_FRAMES]; /* of SHOWS_TEXT: where its text ends in `said` */
    struct longest longest;      /* what was known when the batch was read */
    uint8_t *copies;             /* what the frames point to */
    uint32_t used;               /* bytes of it */
    uint32_t n;
    struct buf said, text; /* of SHOWS_TEXT; of all */
    void *scratch;         /* of show() */
    /* With own(): the owner of each packet, OWNER_NONE: none, and where its part of the log of its lane ends. */
    uint16_t owner[CORES_FRAMES];
    uint32_t logged[CORES_FRAMES];
    struct buf *logs; /* by lane */
    bool ready;       /* read and dissected */
    bool shown;       /* `text` is there */
};

struct cores {
    struct cores_opts o;
    /* Of the caller's thread. */
    _Alignas(64) struct longest longest; /* of the packets handed out */
    struct batch *batch;                 /* of which packets are handed out; NULL: none */
    uint32_t at;                         /* the next one of it */
    struct frame frame;                  /* with one thread: the frame at hand, its tag and its packet */
    uint32_t tag;
    struct pkt pkt;
    uint64_t n_owned;    /* packets that are left to owners, and not settled */
    uint32_t owned_from; /* those of `batch` before this one are settled */

    _Alignas(64) pthread_mutex_t lock; /* of all that follows, and of batch.ready and batch.shown */
    pthread_cond_t room;               /* the reader may go on */
    pthread_cond_t work;               /* there is something for a helper */
    pthread_cond_t done;               /* something was done: for the caller */
    struct batch **ring;               /* n_ring; batch i is ring[i % n_ring] */
    uint32_t n_ring;
    /* the oldest batch, that is the next one to write; the next ones to show, to hand out, to dissect, and to read */
    uint64_t head, show, given, next, tail;
    uint64_t settled;  /* the next one to settle; with own() alone, else as `given` */
    struct lane {      /* a part of the owners: one of o.threads */
        uint64_t next; /* the next batch of which it takes its packets */
        bool busy;     /* a thread does it */
    } lanes[CORES_MAX];
    bool ended;           /* there are no more frames */
    bool stop;            /* threads are to end */
    struct longest known; /* what the caller knew when it took the latest batch */
    pthread_t thread[CORES_MAX];
    unsigned n_threads; /* started; the first one is the reader */
    unsigned n_helpers; /* of these, that are none and run */
    bool at_once;       /* start them with the first batch */
    bool started;
};

static inline struct batch *batch_of(const struct cores *c, uint64_t i)
{
    return c->ring[i % c->n_ring];
}

/* --- owners.c: called and left with the lock ----------------------------------------------------- */

/* Take all packets of the owners of a lane that no thread does. `prefers`: the number of the calling thread, which so
 * finds what it knows of them in the caches of its processor. False: there are none. */
bool owners_help(struct cores *c, unsigned prefers);
/* Whether owners have taken all packets of the next batch to settle; settle it, by the caller's thread. */
bool owners_may_settle(const struct cores *c);
void owners_settle_one(struct cores *c);

#endif
