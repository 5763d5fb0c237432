/* layer 3 (live): when the program was late: on a busy host the scheduler lets it wait, and then it neither sees frames
 * nor answers them in time. What a peer does meanwhile, it does because of this host. */
#ifndef RDMATRACE_GEN_LIVE_LATE_H
#define RDMATRACE_GEN_LIVE_LATE_H

#include "types.h"

#include <stdbool.h>

#define LATE_LEAST  (1 * NS_PER_MS) /* less counts as in time */
#define LATE_DELAYS 4096            /* delays that are told apart; with more, all since the latest one is one delay */

/* From when to when something waited for the program. */
struct late_delay {
    ns_t from, to;
};

/* Since late_begin(). Times are those of live_now(). Many frames may wait through the same delay, which is one. */
struct late {
    ns_t most, sum;                       /* longest delay; time within delays of LATE_LEAST and more, ns, */
    unsigned n;                           /* of so many, */
    struct late_delay delay[LATE_DELAYS]; /* in their order; they do not overlap */
    ns_t mark;                            /* the latest one of late_mark(); 0: there was none */
    bool behind;                          /* since the latest delay, late_caught_up() was not called */
};

void late_begin(struct late *l);
/* Something that could have happened at `from` happens at `now`. */
void late_note(struct late *l, ns_t from, ns_t now);
/* From `begin` on it waited for a frame, but not beyond `when`, a second at most; it goes on at `now`. */
void late_waited(struct late *l, ns_t begin, ns_t when, ns_t now);
/* The loop is at work: what lies between two marks is a delay. */
void late_mark(struct late *l, ns_t now);
/* Likewise, but it has waited since the mark before, as it should. */
void late_mark_waited(struct late *l, ns_t now);
/* All has been done that waited. Where frames have no time of arrival, those that waited through a delay seem to come
 * behind it: it lasts until now. */
void late_caught_up(struct late *l, ns_t now);
/* How much of the time between `from` and `to` lies within delays of LATE_LEAST and more. */
ns_t late_within(const struct late *l, ns_t from, ns_t to);
/* *l by another clock, which shows `least` to `most` more, in *to: each delay is so much longer that it is covered. */
void late_on_clock(const struct late *l, ns_t least, ns_t most, struct late *to);

#endif
