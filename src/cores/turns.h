/* layer 3 (cores): frames dissected by several threads, and taken one after the other, in their order, by the same.
 *
 * Each thread reads a batch of frames, dissects it, and takes its packets when all before them were taken:
 *
 *     one:    read 0  dissect 0  take 0   read 2  dissect 2  take 2 ...
 *     other:          read 1  dissect 1   take 1  read 3 ...
 *
 * One thread reads at a time, and one takes. Packets and frames never leave the thread that made them; what moves
 * between the processors' caches is what is known of the connections, once for a batch. */
#ifndef RDMATRACE_CORES_TURNS_H
#define RDMATRACE_CORES_TURNS_H

#include "dissect/pkt.h"
#include "src/taps/longest.h"

struct chunks;

#define TURNS_THREADS 4  /* threads of use: one takes at a time */
#define TURNS_MOST    16 /* threads, however many are asked for: more of them would wait for their turns */
#define TURNS_BATCHES 2  /* batches of a thread: while one waits for its turn, the next one is read */
/* Frames of a batch, at most, and the bytes with which it is full. What the window holds while another thread begins to
 * read, and what is known of the connections, goes to that thread's processor: where processors are far from each other
 * that costs as much as all the rest, unless it is little beside the batch. */
#define TURNS_FRAMES 1024
#define TURNS_BYTES  (1 << 20)

struct turns_opts {
    unsigned threads; /* as in struct cores_opts, two or more, or 0: at most TURNS_THREADS */
    struct decode_opts decode;
    struct longest longest; /* as in struct cores_opts */
    /* Read the next frame into *f. *stays: its data stay where they are until chunks_done() of its batch, else only
     * until the next call. False at the end. By one thread at a time, any. */
    bool (*read)(void *reader, struct frame *f, bool *stays);
    void *reader;          /* its argument */
    struct chunks *chunks; /* they are told of batches */
    /* This frame is taken soon, by the thread that takes. NULL: that is of no use. */
    void (*ahead)(void *user, const struct frame *f);
    /* Take a packet, by one thread at a time, any; it is gone when the function returns. False: enough. */
    bool (*take)(void *user, struct pkt *p);
    void *user; /* argument of ahead() and take() */
};

/* Read and take all. False without memory. */
bool turns_run(const struct turns_opts *o);

#endif
