/* layer 3 (endpoint): timers: a heap of those that run. */
#ifndef RDMATRACE_GEN_ENDPOINT_TIMERS_H
#define RDMATRACE_GEN_ENDPOINT_TIMERS_H

#include "types.h"

#include <stddef.h>

/* A timer, as a member of what it is for. All zero: it does not run. */
struct timer {
    ns_t when;
    uint32_t pos; /* in the heap, from 1; 0: it does not run */
};

/* Those that run; all zero: none. */
struct timers {
    struct timer **heap; /* from 1 on, the earliest first: room for all of them and one more is the caller's */
    uint32_t n;
};

/* Start a timer, or set one that runs to another time. */
void timer_set(struct timers *t, struct timer *x, ns_t when);
/* Stop it, if it runs. */
void timer_stop(struct timers *t, struct timer *x);
/* What the timer `t` is the `member` of, a `type`. */
#define TIMER_OF(t, type, member) ((type *)(void *)((char *)(t)-offsetof(type, member)))

/* The earliest; NULL: none runs. */
static inline struct timer *timers_first(const struct timers *t)
{
    return t->n ? t->heap[1] : NULL;
}

#endif
