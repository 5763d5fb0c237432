/* layer 3 (cores): frames dissected and shown by several threads, and taken one after the other, in their order, by
 * the same.
 *
 * Each thread reads a batch of frames, dissects it, and takes its packets when all before them were taken:
 *
 *     one:    read 0  dissect 0  take 0   read 2  dissect 2  take 2 ...
 *     other:          read 1  dissect 1   take 1  read 3 ...
 *
 * One thread reads at a time, and one takes. Packets and frames never leave the thread that made them; what moves
 * between the processors' caches is what is known of the connections, once for a batch.
 *
 * What is done with a packet may have two parts that share nothing but the packet, early() and take(). Each has turns
 * of its own, so that two threads are in them at a time, with different batches:
 *
 *     one:    ... early 0  take 0   read 2  dissect 2  early 2  take 2 ...
 *     other:  ...          early 1  take 1  read 3 ...
 *
 * Or take() is shared out: packets are those of several parts that share nothing, and each part has turns of its own:
 *
 *     one:    ... sort 0  part A of 0  part B of 0  read 2  dissect 2  sort 2  part A of 2 ...
 *     other:  ...         sort 1       part A of 1  part B of 1  read 3 ...
 *
 * If packets are shown, the thread makes the text of its batch while others take theirs, and writes it when the text
 * of all batches before was written. What is shown does not depend on the number of threads. */
#ifndef RDMATRACE_CORES_TURNS_H
#define RDMATRACE_CORES_TURNS_H

#include "buf.h"
#include "dissect/pkt.h"
#include "src/taps/longest.h"

struct cap_merge;
struct chunks;

#define TURNS_THREADS 4  /* threads of use, where one takes at a time */
#define TURNS_MOST    16 /* threads, however many are asked for: more of them would wait for their turns */
/* Frames of a batch, at most; it is full with as many KiB, too. Of a single file half as many frames are read at once,
 * and are a batch: the next thread reads to memory of its own, and finds no record in the caches of another processor.
 * What the window holds then, and what is known of the connections, goes to that thread's processor: where processors
 * are far from each other that costs as much as all the rest, unless it is little beside the batch. But more memory
 * than the caches have makes all slower, and the text of a packet may be as long as some hundred packets. */
#define TURNS_FRAMES 2048 /* nothing is shown */
#define TURNS_LINES  1024 /* a line is shown of each */
#define TURNS_TREES  256  /* more than that */

#define TURNS_PARTS 64 /* parts, at most */
/* Parts of a packet, a bit each: one of them, or all; or there are enough packets. */
#define TURNS_PART(i) (UINT64_C(1) << (i))
#define TURNS_ALL     UINT64_MAX
#define TURNS_ENOUGH  0

/* How a packet is shown that was taken. */
struct turn {
    uint32_t tag;     /* what read() said of its frame; take() may change it for show() */
    uint32_t end;     /* where its text ends in `said`, by turns_run() */
    bool later;       /* show() makes its text, once the whole batch was taken */
    struct buf *said; /* or take() appends the text, of a packet whose note does not last longer. NULL without show() */
};

struct turns_opts {
    /* 2 to CORES_MAX, of which TURNS_MOST at most are started, at once. 0: as many as there are processors, at most
     * TURNS_THREADS, or TURNS_MOST with show() or parts; they are started when files are not small */
    unsigned threads;
    uint32_t frames; /* of a batch: TURNS_* */
    struct decode_opts decode;
    struct longest longest; /* as in struct cores_opts */
    /* Read the next frame into *f, and what show() is told of it into *tag. *stays: its data stay where they are until
     * chunks_done() of its batch, else only until the next call. False at the end. By one thread at a time, any. */
    bool (*read)(void *reader, struct frame *f, uint32_t *tag, bool *stays);
    void *reader; /* its argument */
    /* The files that read() reads, with `chunks`; only read() and who calls it use them. With more than two threads and
     * without show() each thread also reads bytes of a single file between its turns (cap_claim()): there is little
     * left that one thread at a time does. NULL: there is none, or it is not known how they are read on. */
    struct cap_merge *in;
    struct chunks *chunks; /* they are told of batches; NULL: no data stay where they are */
    /* Each packet before take() gets it, by one thread at a time, any. It may get packets behind the one with which
     * take() has enough. NULL: there is only take(). */
    void (*early)(void *user, struct pkt *p);
    /* Another thread than that of the latest batch will call early(), or take(): fetch what that one has written. NULL:
     * that is of no use. */
    void (*fetch_early)(void *user);
    void (*fetch)(void *user);
    /* This frame is taken soon, by the thread that takes. NULL: that is of no use. */
    void (*ahead)(void *user, const struct frame *f);
    /* Take a packet, by one thread at a time, any; without show() it is gone when the function returns. False:
     * enough. */
    bool (*take)(void *user, struct pkt *p, struct turn *turn);
    /* With `parts`, 2 to TURNS_PARTS, in place of all above from early() on; nothing is shown. parts_of() gets each
     * packet first, by one thread at a time, and says whose it is; TURNS_ENOUGH: it is none's, and no more are read.
     * take_part() gets it then for each of them; a part is in one thread at a time, any, and sees its packets in order.
     * fetch_part() and ahead_part() are as fetch() and ahead(). part_taken() follows the packets of a
     * batch; false: the part has enough. */
    unsigned parts;
    uint64_t (*parts_of)(void *user, struct pkt *p);
    void (*take_part)(void *user, unsigned part, struct pkt *p);
    bool (*part_taken)(void *user, unsigned part);
    void (*fetch_part)(void *user, unsigned part);
    void (*ahead_part)(void *user, unsigned part, const struct frame *f);
    /* Append a packet, by any thread, also while others take or show theirs. Its frame, note and times are as take()
     * left them. `scratch`: `scratch_size` bytes of the thread, zero at first. NULL: nothing is shown. */
    void (*show)(void *user, void *scratch, struct buf *text, const struct pkt *p, uint32_t tag);
    size_t scratch_size;
    /* Write the text of a batch, in the order of the packets, by one thread at a time, any. False: no more. */
    bool (*write)(void *user, struct buf *text);
    void *user; /* argument of all that follow read() */
};

/* Read and take all. False without memory. */
bool turns_run(const struct turns_opts *o);

#endif
