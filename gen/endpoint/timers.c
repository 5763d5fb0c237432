/* layer 3 (endpoint): timers: a heap of running timers. */
#include "gen/endpoint/timers.h"

static void put(struct timers *t, uint32_t i, struct timer_slot x)
{
    t->heap[i] = x;
    x.timer->pos = i;
}

static void up(struct timers *t, struct timer_slot x, uint32_t i)
{
    for (; i > 1 && t->heap[i / 2].when > x.when; i /= 2)
        put(t, i, t->heap[i / 2]);
    put(t, i, x);
}

static void down(struct timers *t, struct timer_slot x, uint32_t i)
{
    for (uint32_t child; (child = 2 * i) <= t->n; i = child) {
        if (child < t->n && t->heap[child + 1].when < t->heap[child].when)
            child++;
        if (t->heap[child].when >= x.when)
            break;
        put(t, i, t->heap[child]);
    }
    put(t, i, x);
}

void timer_set(struct timers *t, struct timer *x, ns_t when)
{
    bool later = x->pos && when > x->when;
    struct timer_slot slot = {when, x};

    x->when = when;
    if (later)
        down(t, slot, x->pos);
    else
        up(t, slot, x->pos ? x->pos : ++t->n);
}

void timer_stop(struct timers *t, struct timer *x)
{
    uint32_t i = x->pos;
    struct timer_slot last;

    if (!i)
        return;
    x->pos = 0;
    last = t->heap[t->n--];
    if (last.timer == x)
        return;
    up(t, last, i);
    down(t, last, last.timer->pos);
}
