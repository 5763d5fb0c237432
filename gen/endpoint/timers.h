/* layer 3 (endpoint): timers: a heap of running timers. */
#ifndef RDMATRACE_GEN_ENDPOINT_TIMERS_H
#define RDMATRACE_GEN_ENDPOINT_TIMERS_H

#include "types.h"

#include <stddef.h>

/* A timer, a member of the object that it belongs to. All zero: not running. */
struct timer {
    ns_t when;
    size_t place; /* bytes from the start of the heap to its slot; 0: not running */
};

/* A running timer in the heap, with its time beside it: to compare two, no timer is read. */
struct timer_slot {
    ns_t when;
    struct timer *timer;
};

/* The running timers; all zero: none. */
struct timers {
    struct timer_slot *heap; /* from 1 on, the earliest first; the caller provides room for all timers plus one */
    uint32_t n;
};

/* Start a timer, or change its time. */
void timer_set(struct timers *t, struct timer *x, ns_t when);
/* Stop a timer, if it runs. */
void timer_stop(struct timers *t, struct timer *x);
/* The object of this `type` whose `member` is the timer `t`. */
#define TIMER_OF(t, type, member) ((type *)(void *)((char *)(t)-offsetof(type, member)))

/* The earliest timer; NULL: none runs. */
static inline struct timer *timers_first(const struct timers *t)
{
    return t->n ? t->heap[1].timer : NULL;
}

#endif
