/* layer 3 (explain): compare taps: in which order packets pass them. */
#include "src/explain/compare/tap_way.h"

#include <stdlib.h>

static int by_way(const void *a, const void *b)
{
    const struct tap_way *s = a, *o = b;

    return s->at < o->at ? -1 : s->at > o->at;
}

static struct tap_way *way_of(void *taps, unsigned i, size_t size)
{
    return (struct tap_way *)((char *)taps + i * size);
}

void tap_way_order(void *taps, unsigned n, size_t size, bool requests)
{
    bool exact = true;

    for (unsigned i = 0; i < n; i++)
        exact &= way_of(taps, i, size)->exact >= 0;
    for (unsigned i = 0; i < n; i++) {
        struct tap_way *w = way_of(taps, i, size);
        ns_t trip = exact ? w->exact : w->trip;
        w->at = requests ? -trip : trip;
    }
    if (n)
        qsort(taps, n, size, by_way);
}
