/* layer 3b (diff): which direction of one capture is compared with which of the other. */
#include "src/diff/diff_impl.h"

#include <stdlib.h>

const char *const diff_matches[] = {"auto", "addresses", "order", NULL};

static int by_number(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* Directions are compared only if they are of one kind. */
static int by_kind(const struct direction *a, const struct direction *b)
{
    int c = strcmp(a->row.service ? a->row.service : "", b->row.service ? b->row.service : "");

    if (!c)
        c = by_number(a->row.stream, b->row.stream);
    return c ? c : by_number(!a->row.conn, !b->row.conn);
}

static int by_ends(const struct direction *a, const struct direction *b)
{
    int c = memcmp(&a->row.src, &b->row.src, sizeof a->row.src);

    if (!c)
        c = memcmp(&a->row.dst, &b->row.dst, sizeof a->row.dst);
    return c ? c : by_number(row_tap(&a->row), row_tap(&b->row));
}

/* A direction and its place in the order of its capture. */
struct placed {
    struct direction *d;
    size_t at;
};

static int by_kind_and_ends(const void *x, const void *y)
{
    const struct placed *a = x, *b = y;
    int c = by_kind(a->d, b->d);

    if (!c)
        c = by_ends(a->d, b->d);
    return c ? c : by_number(a->at, b->at);
}

static int by_kind_alone(const void *x, const void *y)
{
    const struct placed *a = x, *b = y;
    int c = by_kind(a->d, b->d);

    return c ? c : by_number(a->at, b->at);
}

/* The directions of `s` without a match, sorted; sets *n. */
static void sort_rest(const struct diff_side *s, bool by_order, struct placed *to, size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < s->n_rows; i++)
        if (!s->dir[i]->matched)
            to[(*n)++] = (struct placed){s->dir[i], i};
    qsort(to, *n, sizeof *to, by_order ? by_kind_alone : by_kind_and_ends);
}

/* Match what is left of both sides: the first of a kind (with the same ends, unless `by_order`) with the first of it,
 * the second with the second, and so on. `x`, `y`: room for all directions of each. */
static void match_rest(struct diff *d, const struct diff_side *a, const struct diff_side *b, bool by_order,
                       struct placed *x, struct placed *y)
{
    size_t n, m, i = 0, j = 0;

    sort_rest(a, by_order, x, &n);
    sort_rest(b, by_order, y, &m);
    while (i < n && j < m) {
        int c = by_kind(x[i].d, y[j].d);
        if (!c && !by_order)
            c = by_ends(x[i].d, y[j].d);
        if (!c) {
            d->pair[d->n_pairs++] = (struct matched){.a = x[i].d, .b = y[j].d, .by_order = by_order};
            x[i].d->matched = y[j].d->matched = true;
        }
        i += c <= 0;
        j += c >= 0;
    }
}

static size_t rest(const struct diff_side *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_rows; i++)
        n += !s->dir[i]->matched;
    return n;
}

/* By connection of the first capture. */
static int by_place(const void *x, const void *y)
{
    const struct meter_row *a = &((const struct matched *)x)->a->row, *b = &((const struct matched *)y)->a->row;
    int c = by_number(!a->conn, !b->conn);

    if (!c)
        c = by_number(a->conn, b->conn);
    if (!c)
        c = by_number(row_tap(a), row_tap(b));
    return c ? c : by_number((uint64_t)a->first_frame, (uint64_t)b->first_frame);
}

bool match_directions(struct diff *d, const struct diff_side *a, const struct diff_side *b)
{
    struct placed *x = calloc(a->n_rows + 1, sizeof *x), *y = calloc(b->n_rows + 1, sizeof *y);
    bool ok = x && y && (d->pair = calloc(a->n_rows + 1, sizeof *d->pair));

    if (ok && d->o.match != DIFF_ORDER)
        match_rest(d, a, b, false, x, y);
    if (ok && d->o.match != DIFF_ADDRESSES)
        match_rest(d, a, b, true, x, y);
    free(x);
    free(y);
    if (!ok)
        return false;
    qsort(d->pair, d->n_pairs, sizeof *d->pair, by_place);
    d->only_a = rest(a);
    d->only_b = rest(b);
    return true;
}
