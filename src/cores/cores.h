/* layer 3 (cores): how many threads there are, how one is started, and frames read and dissected by one thread alone;
 * by several: turns.h. */
#ifndef RDMATRACE_CORES_CORES_H
#define RDMATRACE_CORES_CORES_H

#include "dissect/pkt.h"
#include "src/taps/longest.h"

#include <pthread.h>

#define CORES_MAX    256       /* threads that may be asked for */
#define CORES_STACK  (2 << 20) /* bytes of the stack of a thread */
#define CORES_ARENAS 8         /* of the allocator, at most: each reserves 64 MB of addresses */

struct cores_opts {
    struct decode_opts decode;
    struct longest longest; /* what is known of the longest frames of each interface before the first one */
    /* Read the next frame into *f, which may be used until the next call, and what cores_tag() says of it into *tag.
     * False at the end. */
    bool (*read)(void *reader, struct frame *f, uint32_t *tag);
    void *reader; /* its argument */
};

/* Processors that this process may use, CORES_MAX at most. */
unsigned cores_processors(void);
/* Whether one thread is to do all: it is asked for, or -- `threads` is 0 -- there is one processor. */
bool cores_is_one(unsigned threads);
/* Threads, where 2 to CORES_MAX are asked for; 0: as many as there are processors, two at least, `most` at most. */
unsigned cores_threads(unsigned asked, unsigned most);
/* Start a thread. False: the system refuses it. */
bool cores_start(pthread_t *id, void *(*run)(void *user), void *user);

struct cores;

/* NULL without memory. */
struct cores *cores_new(const struct cores_opts *o);
/* Release everything; NULL is allowed. */
void cores_free(struct cores *c);
/* The next packet, which may be used until the next call; NULL at the end. */
struct pkt *cores_next(struct cores *c);
/* What read() said of the frame of the packet that was handed out last. */
uint32_t cores_tag(const struct cores *c);
/* Dissect a frame that did not come through read(), in its place among the packets of cores_next(). The packet may be
 * used until the next call, or the next one of cores_next(). */
struct pkt *cores_dissect(struct cores *c, const struct frame *f);

#endif
