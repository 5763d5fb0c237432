/* layer 2b (taps): how far apart two clocks are, from packets that both have seen.
 *
 * theta(t) is the time of clock 2 minus that of clock 1, at time t of clock 1. A packet that passes clock 1 and then
 * clock 2 (forward) has f = t2 - t1 = delay + theta; one that passes clock 2 first (backward) has b = t2 - t1 =
 * theta - delay. No delay is negative, so that
 *
 *     max b <= theta <= min f
 *
 * holds at all times, whatever the queues on the way. While the clocks drift evenly theta is a line above the upper
 * hull of b and below the lower hull of f. Of the slopes that fit, the one is taken whose lines lie closest to the
 * pairs of both directions, by the product of the mean distances (where a queue fills, its direction tells less than
 * the other one, whose pairs keep to their line); the line is in the middle between the two hulls.
 *
 *     f  \_      .  .   _/      lower hull of f
 *          \___________/
 *        - - - - - - - - - -    theta
 *           ___________
 *     b  __/    .   .  \___     upper hull of b
 *
 * Drift changes with temperature: a window ends when it is 10 s long and has enough pairs, and has a line of its own.
 * Between windows the offset is interpolated. If pairs contradict a window beyond any drift (CLOCK_DRIFT_PPM), a clock
 * was set: the window ends, and the next one begins. Single pairs that do so are dropped.
 *
 * Times are integers; hulls are exact (128-bit products). Lines are doubles relative to the start of their window,
 * whose rounding stays below 1 ns for spans below 10^15 ns. Memory is fixed: hulls are thinned (which only loosens the
 * bound), and when there is no room for more windows every second one is dropped and windows become twice as long. */
#ifndef RDMATRACE_TAPS_CLOCK_HULL_H
#define RDMATRACE_TAPS_CLOCK_HULL_H

#include "types.h"

#define CLOCK_HULL_POINTS 48  /* of a hull */
#define CLOCK_WINDOWS     256 /* kept */
/* Pairs needed in each direction: fewer may match by chance. The bound holds for any number. */
#define CLOCK_PAIRS_MIN 4
#define CLOCK_DRIFT_PPM 200 /* two clocks drift apart by less; real ones by up to 30 */
#define CLOCK_SUSPECTS  4   /* pairs in a row of one direction that contradict the window: a clock was set */

/* A pair of times: x is that of clock 1, y the difference t2 - t1, both in ns. */
struct clock_point {
    ns_t x, y;
};

struct clock_points {
    struct clock_point p[CLOCK_HULL_POINTS + 1]; /* ordered by x */
    uint32_t n;
    uint32_t pairs; /* pairs added to this side, */
    double x, y;    /* and their sums, relative to clock_hull.base */
};

/* A completed window. */
struct clock_window {
    ns_t from, to; /* first and last time of clock 1 */
    ns_t at;       /* time in the middle, */
    ns_t offset;   /* and theta there, ns */
    double skew;   /* change of theta, ns in a ns */
    ns_t bound;    /* theta is within this of the line, ns */
    bool stepped;  /* a clock was set at its end */
};

struct clock_hull {
    struct clock_points side[2]; /* of the present window: [0] lower hull of f, [1] upper hull of b */
    ns_t from, to;               /* of that window, valid with pairs */
    struct clock_point base;     /* its first pair */
    struct clock_point suspects[2][CLOCK_SUSPECTS];
    uint32_t n_suspects[2];
    uint32_t dropped; /* pairs that contradicted all others */
    uint32_t steps;   /* times that a clock was set */
    ns_t length;      /* of a window */
    struct clock_window windows[CLOCK_WINDOWS];
    uint32_t n;
};

/* An estimate of theta at a time. */
struct clock_estimate {
    bool known;
    ns_t offset;     /* theta, ns */
    ns_t bound;      /* |true theta - offset| <= bound, ns */
    double skew_ppm; /* change of theta, millionths */
};

void clock_hull_init(struct clock_hull *h);
/* A packet was seen at `t1` by clock 1 and at `t2` by clock 2; `forward`: it passed clock 1 first. */
void clock_hull_add(struct clock_hull *h, ns_t t1, ns_t t2, bool forward);
/* No more pairs: makes later estimates cheaper. */
void clock_hull_end(struct clock_hull *h);
/* theta at time `t` of clock 1. Unknown unless a window has CLOCK_PAIRS_MIN pairs in each direction. */
struct clock_estimate clock_hull_at(const struct clock_hull *h, ns_t t);

#endif
