/* layer 3 (endpoint): timers: a heap of running timers. */
#include "gen/endpoint/timers.h"

/* Places are counted in bytes: a child's is a sum, not a product; two thirds of the instructions are left of what
 * indices take. */
static struct timer_slot *slot_at(const struct timers *t, size_t place)
{
    return (struct timer_slot *)(void *)((char *)t->heap + place);
}

static void put(struct timers *t, size_t place, struct timer_slot x)
{
    *slot_at(t, place) = x;
    x.timer->place = place;
}

static size_t parent_of(size_t place)
{
    return place / 2 & -sizeof(struct timer_slot);
}

static void up(struct timers *t, struct timer_slot x, size_t place)
{
    size_t parent;

    for (; (parent = parent_of(place)) && slot_at(t, parent)->when > x.when; place = parent)
        put(t, place, *slot_at(t, parent));
    put(t, place, x);
}

/* The earlier of two children is chosen without a branch, which would be mispredicted every other time. */
static void down(struct timers *t, struct timer_slot x, size_t place)
{
    size_t last = t->n * sizeof x, child;

    while ((child = 2 * place) < last) {
        const struct timer_slot *both = slot_at(t, child);
        child += (size_t)(both[1].when < both[0].when) * sizeof x;
        if (slot_at(t, child)->when >= x.when) {
            put(t, place, x);
            return;
        }
        put(t, place, *slot_at(t, child));
        place = child;
    }
    if (child == last && slot_at(t, child)->when < x.when) {
        put(t, place, *slot_at(t, child));
        place = child;
    }
    put(t, place, x);
}

void timer_set(struct timers *t, struct timer *x, ns_t when)
{
    bool later = x->place && when > x->when;
    struct timer_slot slot = {when, x};

    x->when = when;
    if (later)
        down(t, slot, x->place);
    else
        up(t, slot, x->place ? x->place : ++t->n * sizeof slot);
}

void timer_stop(struct timers *t, struct timer *x)
{
    size_t place = x->place;
    struct timer_slot last;

    if (!place)
        return;
    x->place = 0;
    last = t->heap[t->n--];
    if (last.timer == x)
        return;
    up(t, last, place);
    down(t, last, last.timer->place);
}
