/* layer 2 (cc): how the rate of a queue pair rises between two CNPs, as a capture at its sender shows it: in steps, of
 * which the first ones halve the distance to the rate before (fast recovery), and later ones are alike (additive
 * increase).
 *
 *     rate   |           ____----     later steps: additive increase
 *            |       __--
 *            |    _--                 each step half of the one before
 *            |   |
 *            |  _|
 *           CNP    T    T    T        so far apart
 */
#ifndef RDMATRACE_CC_RECOVERY_H
#define RDMATRACE_CC_RECOVERY_H

#include "types.h"

struct cc_config;

#define RECOVERY_LEVELS 32
#define RECOVERY_STEPS  4 /* fewer between two CNPs say nothing */

/* Packets that follow each other at one rate. */
struct recovery_level {
    uint64_t bytes;
    ns_t time; /* that these bytes took */
    ns_t from; /* when it began */
};

/* A number of several recoveries. */
struct recovery_value {
    uint64_t n, sum, min, max;
};

/* Zero at first. */
struct recovery {
    struct recovery_level level[RECOVERY_LEVELS], next; /* next: the packet that fits none, or no bytes */
    uint32_t n;                                         /* levels since the latest CNP */
    /* Of recoveries with enough steps: ns between two steps, in the middle; steps that halve the distance; bit/s that a
     * step adds later. */
    struct recovery_value period, halving, increase;
};

/* How the rate rises by the parameters of a scheme. */
struct recovery_shape {
    ns_t period;       /* between two steps of its timer; 0: not stated */
    uint64_t halving;  /* steps of fast recovery; 0: too small to be told from those that follow */
    uint64_t increase; /* bit/s that each later step adds, */
    uint64_t hyper;    /* up to so many */
    bool counter;      /* a byte counter makes steps between those of the timer, which may be as many */
};
/* The same of a configuration; false: its scheme has no such steps. */
bool recovery_shape_of(const struct cc_config *c, struct recovery_shape *s);
/* True if enough recoveries were seen, and they are not of this shape. */
bool recovery_differs(const struct recovery *r, const struct recovery_shape *s);

/* Packets follow a CNP from now on: what came before is over. */
void recovery_begin(struct recovery *r);
/* A packet of `bytes` inside a message that came `gap` after the one before, at `ts`. */
void recovery_packet(struct recovery *r, uint32_t bytes, ns_t gap, ns_t ts);
/* The packets until here are over: add what they say. */
void recovery_end(struct recovery *r);

#endif
