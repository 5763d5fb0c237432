/* layer 3 (endpoint): timers: a heap of running timers. */
#include "gen/endpoint/timers.h"

static void put(struct timer_slot *heap, uint32_t i, struct timer_slot x)
{
    heap[i] = x;
    x.timer->pos = i;
}

static void up(struct timers *t, struct timer_slot x, uint32_t i)
{
    for (; i > 1 && t->heap[i / 2].when > x.when; i /= 2)
        put(t->heap, i, t->heap[i / 2]);
    put(t->heap, i, x);
}

/* The earlier of two children is chosen without a branch, which would be mispredicted every other time. */
static void down(struct timers *t, struct timer_slot x, uint32_t i)
{
    struct timer_slot *heap = t->heap;
    uint32_t n = t->n, child;

    while ((child = 2 * i) < n) {
        child += heap[child + 1].when < heap[child].when;
        if (heap[child].when >= x.when) {
            put(heap, i, x);
            return;
        }
        put(heap, i, heap[child]);
        i = child;
    }
    if (child == n && heap[child].when < x.when) {
        put(heap, i, heap[child]);
        i = child;
    }
    put(heap, i, x);
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
