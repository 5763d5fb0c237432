/* layer 2b (ulp): which bytes of a range were seen. */
#include "src/ulp/cover.h"

#include <string.h>

/* Remove span `i`. */
static void take_out(struct cover *c, unsigned i)
{
    memmove(&c->span[i], &c->span[i + 1], (c->n - i - 1) * sizeof c->span[0]);
    c->n--;
}

/* Join the two spans with the smallest gap between them. */
static void join_nearest(struct cover *c)
{
    unsigned best = 0;

    for (unsigned i = 1; i + 1 < c->n; i++)
        if (c->span[i + 1].from - c->span[i].to < c->span[best + 1].from - c->span[best].to)
            best = i;
    c->span[best].to = c->span[best + 1].to;
    take_out(c, best + 1);
}

uint64_t cover_add(struct cover *c, uint64_t from, uint64_t to)
{
    uint64_t fresh = to > from ? to - from : 0;
    unsigned i = 0;

    if (!fresh)
        return 0;
    while (i < c->n && c->span[i].to < from)
        i++;
    while (i < c->n && c->span[i].from <= to) { /* it touches this span, which becomes part of it */
        uint64_t a = c->span[i].from > from ? c->span[i].from : from, b = c->span[i].to < to ? c->span[i].to : to;
        fresh -= b > a ? b - a : 0;
        from = c->span[i].from < from ? c->span[i].from : from;
        to = c->span[i].to > to ? c->span[i].to : to;
        take_out(c, i);
    }
    if (c->n == COVER_SPANS) {
        join_nearest(c);
        for (i = 0; i < c->n && c->span[i].to < from; i++)
            ;
        if (i < c->n && c->span[i].from <= to) { /* the gap that counts as seen holds it */
            c->span[i].from = c->span[i].from < from ? c->span[i].from : from;
            c->span[i].to = c->span[i].to > to ? c->span[i].to : to;
            return fresh;
        }
    }
    memmove(&c->span[i + 1], &c->span[i], (c->n - i) * sizeof c->span[0]);
    c->span[i].from = from;
    c->span[i].to = to;
    c->n++;
    return fresh;
}

bool cover_keep(struct cover *c, uint64_t from, uint64_t to)
{
    bool touches = false;

    for (unsigned i = 0; i < c->n; i++)
        touches |= c->span[i].from <= to && from <= c->span[i].to;
    if (from >= to || (!touches && c->n == COVER_SPANS && from > c->span[c->n - 1].to))
        return false;
    if (!touches && c->n == COVER_SPANS)
        c->n--;
    cover_add(c, from, to);
    return true;
}

void cover_cut(struct cover *c, uint64_t to)
{
    while (c->n && c->span[c->n - 1].from >= to)
        c->n--;
    if (c->n && c->span[c->n - 1].to > to)
        c->span[c->n - 1].to = to;
}
