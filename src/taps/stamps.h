/* layer 2b (taps): the interfaces of the capture: when their frames were captured, how exactly, and how long they are.
 */
#ifndef RDMATRACE_TAPS_STAMPS_H
#define RDMATRACE_TAPS_STAMPS_H

#include "src/conn/conn.h"
#include "src/taps/step.h"

#define STAMPS_PLACES 1024 /* interfaces that are kept; of others nothing is known */
#define STAMPS_TRIES  8    /* places where an interface may be */

/* What is known of an interface. */
struct stamps {
    struct ts_step step; /* the resolution of its time stamps; .owner: the interface, ts_owner(); 0: unused */
    uint32_t longest;    /* bytes of its longest frame */
    uint32_t tap;        /* conn_tap_of() of its frames */
    bool timed;          /* a frame had a time stamp: `tap` and what follows is known */
    bool joined;         /* others count as the same tap (frame.counts_for) */
    bool alone;          /* it is a tap of its own */
    ns_t first, last;    /* times of its first and its latest frame */
};

/* Zero-initialise. */
struct stamps_table {
    struct stamps of[STAMPS_PLACES]; /* by stamps_place() */
};

/* Number of an interface, unique over all files; never 0. */
static inline uint32_t ts_owner(const struct frame *f)
{
    return (uint32_t)f->file << 16 | (f->iface + 1);
}
/* Where an interface, ts_owner(), may be: the first place, and those behind it. */
static inline unsigned stamps_place(uint32_t owner, unsigned nth)
{
    return ((owner >> 16) * 8 + owner - 1 + nth) % STAMPS_PLACES;
}
/* Take the time stamp and the length of the next frame. False: it was stamped before the latest frame of its interface.
 */
bool stamps_take(struct stamps_table *t, const struct frame *f);
/* What is known of an interface, ts_owner(); NULL: nothing. */
const struct stamps *stamps_at(const struct stamps_table *t, uint32_t owner);
/* Resolution of the time stamps at the interface of a frame, ns; 0: exact to 1 ns. A time between two packets may be
 * wrong by this much. */
static inline ns_t stamps_step(const struct stamps_table *t, const struct frame *f)
{
    const struct stamps *s = &t->of[stamps_place(ts_owner(f), 0)];

    if (UNLIKELY(s->step.owner != ts_owner(f)))
        s = stamps_at(t, ts_owner(f));
    return !s || !s->timed ? STEP_MAX : s->step.ns > 1 ? s->step.ns : 0;
}
/* When the capture began at a tap, conn_tap_of(): of several files, the one that began last. False: not known, or not
 * all of its interfaces were heard of yet. */
bool stamps_began(const struct stamps_table *t, uint32_t tap, ns_t *when);
/* The time of the latest frame of a tap. False: not known. */
bool stamps_ended(const struct stamps_table *t, uint32_t tap, ns_t *when);
/* Whether the capture goes on at a tap for `more` after `since`. */
bool stamps_go_on(const struct stamps_table *t, uint32_t tap, ns_t since, ns_t more);
/* A later frame of a tap, of a single interface, was read by somebody else. */
void stamps_last(struct stamps_table *t, uint32_t tap, ns_t ts);

#endif
