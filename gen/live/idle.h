/* layer 3 (live): how much of a time the program had nothing to do, and waited for frames. Where a rate was measured
 * it says which end bounds that: a program that waits most of the time holds nobody up. */
#ifndef RDMATRACE_GEN_LIVE_IDLE_H
#define RDMATRACE_GEN_LIVE_IDLE_H

#include "types.h"

#define IDLE_MARKS 8192 /* times of frames that are kept; with more, only each second, fourth, ... frame's */

/* How long it had waited, ns since idle_begin(), when a frame passed at `at`. */
struct idle_mark {
    ns_t at, idle;
};

/* Since idle_begin(). Times are those of live_now(). */
struct idle {
    ns_t sum;                          /* waited so far */
    unsigned n;                        /* marks */
    unsigned each;                     /* one of so many frames has a mark, a power of 2; 0: as 1 */
    unsigned skipped;                  /* frames since the latest mark */
    struct idle_mark mark[IDLE_MARKS]; /* in their order */
};

void idle_begin(struct idle *l);
/* It has waited from `from` to `to`, with nothing to do. */
void idle_waited(struct idle *l, ns_t from, ns_t to);
/* A frame was taken, or sent, at `now`. */
void idle_frame(struct idle *l, ns_t now);
/* How much of the time between two frames, at `from` and at `to`, it has waited. Where a frame has no mark, it has
 * waited evenly between the two frames around it that have one. */
ns_t idle_within(const struct idle *l, ns_t from, ns_t to);

#endif
