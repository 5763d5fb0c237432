/* layer 3 (cores): frames read in their order, dissected by several threads, handed out in their order, and shown by
 * several threads.
 *
 * The caller's thread is one of them: it takes packets, and does what the others do while none is ready. One thread
 * reads, and leaves batches of frames for the others; it dissects and shows, too, where they do not keep up.
 *
 *     reader:  read 0  read 1  dissect 0  read 2  show 0 ...
 *     helper:                  dissect 1  ...
 *     caller:                                     take 0   take 1  write 0 ...
 *
 * What a packet means to others is decided by who takes it, in the order of the capture; so results do not depend on
 * the number of threads. Threads meet at a ring of batches alone: they take its lock a few times for each batch. */
#ifndef RDMATRACE_CORES_CORES_H
#define RDMATRACE_CORES_CORES_H

#include "buf.h"
#include "dissect/pkt.h"
#include "src/taps/longest.h"

#include <pthread.h>

#define CORES_MAX    256         /* threads that may be asked for */
#define CORES_MOST   64          /* threads of a ring, however many are asked for: one hands out and writes */
#define CORES_STACK  (2 << 20)   /* bytes of the stack of a thread */
#define CORES_ARENAS 8           /* of the allocator, at most: each reserves 64 MB of addresses */
#define CORES_SPARE  6           /* batches of the ring beyond one for each thread; a batch has 0.7 MB */
#define CORES_FRAMES 256         /* frames of a batch, at most */
#define CORES_BYTES  (256 << 10) /* a batch is full once its frames have so many bytes */

struct cores_opts {
    /* 1 to CORES_MAX, of which CORES_MOST at most are started, at once; 1: frames are not copied, and no thread is
     * started. 0: as many as there are processors, at least two; they are started when files are not small */
    unsigned threads;
    struct decode_opts decode;
    struct longest longest; /* what is known of the longest frames of each interface before the first one */
    /* Read the next frame into *f, which may be used until the next call, and what cores_tag() says of it into *tag.
     * False at the end. Called by one thread at a time. */
    bool (*read)(void *reader, struct frame *f, uint32_t *tag);
    void
        *reader; /* its argument; a cache line that the caller's thread writes, too, for each packet, makes both slow */
    /* Append a packet for which cores_show() was called, by any thread. Its frame, note and times are as the caller
     * left them. `scratch`: `scratch_size` bytes, zero at first, for one thread at a time. With one thread it is not
     * called. */
    void (*show)(void *user, void *scratch, struct buf *text, const struct pkt *p, uint32_t tag);
    size_t scratch_size;
    /* The text of a batch, by the thread of the caller, in the order of the packets. It may be taken away. */
    void (*write)(void *user, struct buf *text);
    void *user; /* argument of show() and write() */
};

/* Whether one thread is to do all: it is asked for, or -- `threads` is 0 -- there is one processor. */
bool cores_is_one(unsigned threads);
/* Threads, where `asked` is as `threads` above, not 1: with 0 at most `most`. */
unsigned cores_threads(unsigned asked, unsigned most);
/* Start a thread. False: the system refuses it. */
bool cores_start(pthread_t *id, void *(*run)(void *user), void *user);

struct cores;

/* NULL without memory. */
struct cores *cores_new(const struct cores_opts *o);
/* End the threads and release everything; NULL is allowed. If read() waits, this waits for it. */
void cores_free(struct cores *c);
/* The next packet; NULL at the end: then read() is not called any more, and all was written. It may be used until the
 * next call. */
struct pkt *cores_next(struct cores *c);
/* What read() said of the frame of the packet that was handed out last. */
uint32_t cores_tag(const struct cores *c);
/* With more than one thread. The packet handed out last is shown: its text comes from show(), which gets this tag ...
 */
void cores_show(struct cores *c, uint32_t tag);
/* ... or it is what is appended here before the next packet, of a packet whose note does not last longer. */
struct buf *cores_text(struct cores *c);
/* Dissect a frame that did not come through read(), in its place among the packets of cores_next(). The packet may be
 * used until the next call, or the next one of cores_next(). With one thread only. */
struct pkt *cores_dissect(struct cores *c, const struct frame *f);

#endif
