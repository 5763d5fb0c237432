/* layer 3b (extract): which bytes of a message were seen. */
#include "src/extract/seen.h"

#include <stdlib.h>

/* The first piece that ends at `from` or behind it. */
static uint32_t first_from(const struct seen *s, uint64_t from)
{
    uint32_t lo = 0, hi = s->n;

    if (s->n && s->span[s->n - 1].to < from) /* packets mostly come in order */
        return s->n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (s->span[mid].to < from)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool insert(struct seen *s, uint32_t at, uint64_t from, uint64_t to)
{
    if (s->n == s->room) {
        uint32_t room = s->room ? 2 * s->room : 4;
        struct span *more = s->n < SEEN_MAX ? realloc(s->span, room * sizeof *more) : NULL;
        if (!more) {
            s->full = true;
            return false;
        }
        s->span = more;
        s->room = room;
    }
    memmove(s->span + at + 1, s->span + at, (s->n - at) * sizeof *s->span);
    s->span[at] = (struct span){from, to};
    s->n++;
    return true;
}

bool seen_add(struct seen *s, uint64_t from, uint64_t to)
{
    uint32_t at = first_from(s, from), end = at;

    if (from >= to)
        return true;
    while (end < s->n && s->span[end].from <= to)
        end++;
    if (end == at)
        return insert(s, at, from, to);
    if (from < s->span[at].from)
        s->span[at].from = from;
    if (to > s->span[end - 1].to)
        s->span[end - 1].to = to;
    s->span[at].to = s->span[end - 1].to;
    memmove(s->span + at + 1, s->span + end, (s->n - end) * sizeof *s->span);
    s->n -= end - at - 1;
    return true;
}

uint64_t seen_bytes(const struct seen *s)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < s->n; i++)
        n += s->span[i].to - s->span[i].from;
    return n;
}

bool seen_hole(const struct seen *s, uint32_t i, uint64_t end, struct span *hole)
{
    bool begins = s->n && s->span[0].from == 0; /* no hole before the first piece */
    uint32_t after = i + begins;                /* the hole is before piece `after` */

    if (after > s->n)
        return false;
    hole->from = after ? s->span[after - 1].to : 0;
    hole->to = after < s->n ? s->span[after].from : end;
    return hole->from < hole->to;
}

void seen_free(struct seen *s)
{
    free(s->span);
    *s = (struct seen){NULL};
}
