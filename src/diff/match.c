/* layer 3b (diff): which direction of one capture is compared with which of the other.
 *
 * Connections are matched, and then their directions: the two directions of a connection of one capture are always
 * compared with those of one connection of the other. */
#include "src/diff/diff_impl.h"

#include <stdlib.h>

const char *const diff_matches[] = {"auto", "addresses", "order", NULL};

/* A connection with its directions at all taps, or a direction of datagrams. */
struct unit {
    struct direction **row; /* `n` of diff_side.dir */
    size_t n;
    struct direction *main;              /* the first that has requests; else the first */
    const struct conn_addr *end, *other; /* of a connection the lower address first, of datagrams the source */
    unsigned asks;                       /* bits: `end` sends requests, `other` does */
    bool matched;
};

/* How far two connections must be alike to be matched, in the order in which that is tried. */
enum likeness {
    LIKE_ALL,  /* addresses, who sends requests, and tap */
    LIKE_TAP,  /* addresses and tap */
    LIKE_ENDS, /* addresses */
    LIKE_KIND, /* none of these: in their order */
};

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

static int by_address(const struct conn_addr *a, const struct conn_addr *b)
{
    return memcmp(a, b, sizeof *a);
}

static int by_likeness(const struct unit *a, const struct unit *b, enum likeness how)
{
    int c = by_kind(a->main, b->main);

    if (!c && how <= LIKE_ENDS)
        c = by_address(a->end, b->end);
    if (!c && how <= LIKE_ENDS)
        c = by_address(a->other, b->other);
    if (!c && how <= LIKE_TAP)
        c = by_number(row_tap(&a->row[0]->row), row_tap(&b->row[0]->row));
    return c || how != LIKE_ALL ? c : by_number(a->asks, b->asks);
}

static int sort_units(const struct unit *x, const struct unit *y, enum likeness how)
{
    int c = by_likeness(x, y, how);

    return c ? c : by_number(x->row[0]->at, y->row[0]->at);
}

#define SORTED(name, how)                                                                                              \
    static int name(const void *x, const void *y)                                                                      \
    {                                                                                                                  \
        return sort_units(*(struct unit *const *)x, *(struct unit *const *)y, how);                                    \
    }
SORTED(sort_all, LIKE_ALL)
SORTED(sort_tap, LIKE_TAP)
SORTED(sort_ends, LIKE_ENDS)
SORTED(sort_kind, LIKE_KIND)

static void unit_of(struct unit *u, struct direction **row, size_t n)
{
    const struct meter_row *r = &row[0]->row;
    bool turn = r->conn && by_address(&r->src, &r->dst) > 0;

    *u = (struct unit){.row = row, .n = n, .end = turn ? &r->dst : &r->src, .other = turn ? &r->src : &r->dst};
    for (size_t i = 0; i < n; i++) {
        r = &row[i]->row;
        if (!r->requests)
            continue;
        u->asks |= by_address(&r->src, u->end) == 0 ? 1 : 2;
        u->main = u->main ? u->main : row[i];
    }
    u->main = u->main ? u->main : row[0];
}

/* The connections of a side, whose rows follow each other. `u`: room for all its directions. Returns their number. */
static size_t units_of(const struct diff_side *s, struct unit *u)
{
    size_t units = 0;

    for (size_t i = 0, n; i < s->n_rows; i += n) {
        uint64_t conn = s->dir[i]->row.conn;
        for (n = 1; conn && i + n < s->n_rows && s->dir[i + n]->row.conn == conn; n++)
            ;
        unit_of(&u[units++], &s->dir[i], n);
    }
    return units;
}

/* --- Directions of two connections --------------------------------------------------------------- */

/* A direction without a match, and which way it goes. */
struct placed {
    struct direction *d;
    unsigned way;
};

static int by_way(const struct placed *a, const struct placed *b, bool same_tap)
{
    int c = by_kind(a->d, b->d);

    if (!c)
        c = by_number(a->way, b->way);
    return c || !same_tap ? c : by_number(row_tap(&a->d->row), row_tap(&b->d->row));
}

static int sort_placed(const void *x, const void *y)
{
    const struct placed *a = x, *b = y;
    int c = by_way(a, b, true);

    return c ? c : by_number(a->d->at, b->d->at);
}

#define NO_WAY 2

/* From which end a direction goes to the other; by order, whether it is that of the first requests. */
static unsigned way_of(const struct unit *u, const struct direction *d, bool by_order)
{
    if (by_order)
        return by_address(&d->row.src, &u->main->row.src) != 0;
    if (by_address(&d->row.src, u->end) == 0 && by_address(&d->row.dst, u->other) == 0)
        return 0;
    return by_address(&d->row.src, u->other) == 0 && by_address(&d->row.dst, u->end) == 0 ? 1 : NO_WAY;
}

static size_t rows_of(const struct unit *u, bool by_order, struct placed *to)
{
    size_t n = 0;

    for (size_t i = 0; i < u->n; i++) {
        unsigned way = way_of(u, u->row[i], by_order);
        if (!u->row[i]->matched && way != NO_WAY)
            to[n++] = (struct placed){u->row[i], way};
    }
    qsort(to, n, sizeof *to, sort_placed);
    return n;
}

/* Connections of both sides, and room for pointers to them, and for their directions. */
struct sides {
    struct unit *a, *b;
    size_t n, m;
    struct unit **x, **y;
    struct placed *v, *w;
};

/* Match the directions of two connections: at the same tap, then those that are left. */
static void match_rows(struct diff *d, const struct sides *s, struct unit *a, struct unit *b, bool by_order)
{
    for (int same_tap = 1; same_tap >= 0; same_tap--) {
        size_t n = rows_of(a, by_order, s->v), m = rows_of(b, by_order, s->w), i = 0, j = 0;
        while (i < n && j < m) {
            int c = by_way(&s->v[i], &s->w[j], same_tap);
            if (!c) {
                d->pair[d->n_pairs++] = (struct matched){.a = s->v[i].d, .b = s->w[j].d, .by_order = by_order};
                s->v[i].d->matched = s->w[j].d->matched = a->matched = b->matched = true;
            }
            i += c <= 0;
            j += c >= 0;
        }
    }
}

/* --- Connections --------------------------------------------------------------------------------- */

/* The units without a match, sorted; returns their number. */
static size_t rest_of(struct unit *u, size_t units, enum likeness how, struct unit **to)
{
    static int (*const sort[])(const void *, const void *) = {sort_all, sort_tap, sort_ends, sort_kind};
    size_t n = 0;

    for (size_t i = 0; i < units; i++)
        if (!u[i].matched)
            to[n++] = &u[i];
    qsort(to, n, sizeof *to, sort[how]);
    return n;
}

/* Match what is left of both sides and alike: the first with the first, the second with the second, and so on. */
static void match_rest(struct diff *d, const struct sides *s, enum likeness how)
{
    size_t n = rest_of(s->a, s->n, how, s->x), m = rest_of(s->b, s->m, how, s->y), i = 0, j = 0;

    while (i < n && j < m) {
        int c = by_likeness(s->x[i], s->y[j], how);
        if (!c)
            match_rows(d, s, s->x[i], s->y[j], how == LIKE_KIND);
        i += c <= 0;
        j += c >= 0;
    }
}

static size_t rest(const struct diff_side *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_rows; i++)
        n += is_alone(s->dir[i]);
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

static void leave_out(const struct diff_side *s, uint64_t conn)
{
    for (size_t i = 0; i < s->n_rows; i++)
        s->dir[i]->left_out = s->dir[i]->row.conn != conn;
}

/* Keep the connection of A that is asked for, and its match in B. */
static void select_conn(struct diff *d, const struct diff_side *a, const struct diff_side *b)
{
    size_t n = 0;

    if (!d->o.conn)
        return;
    for (size_t i = 0; i < d->n_pairs; i++)
        if (d->pair[i].a->row.conn == d->o.conn)
            d->pair[n++] = d->pair[i];
    d->n_pairs = n;
    leave_out(a, d->o.conn);
    leave_out(b, n ? d->pair[0].b->row.conn : UINT64_MAX);
}

bool match_directions(struct diff *d, const struct diff_side *a, const struct diff_side *b)
{
    struct sides s = {.a = calloc(a->n_rows + 1, sizeof *s.a),
                      .b = calloc(b->n_rows + 1, sizeof *s.b),
                      .x = calloc(a->n_rows + 1, sizeof(struct unit *)),
                      .y = calloc(b->n_rows + 1, sizeof(struct unit *)),
                      .v = calloc(a->n_rows + 1, sizeof *s.v),
                      .w = calloc(b->n_rows + 1, sizeof *s.w)};
    bool ok = s.a && s.b && s.x && s.y && s.v && s.w && (d->pair = calloc(a->n_rows + 1, sizeof *d->pair));

    if (ok) {
        s.n = units_of(a, s.a);
        s.m = units_of(b, s.b);
        for (enum likeness how = LIKE_ALL; how <= LIKE_KIND; how++)
            if (d->o.match != (how == LIKE_KIND ? DIFF_ADDRESSES : DIFF_ORDER))
                match_rest(d, &s, how);
        select_conn(d, a, b);
        qsort(d->pair, d->n_pairs, sizeof *d->pair, by_place);
        d->only_a = rest(a);
        d->only_b = rest(b);
    }
    free(s.a);
    free(s.b);
    free(s.x);
    free(s.y);
    free(s.v);
    free(s.w);
    return ok;
}
