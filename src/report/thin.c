/* layer 3b (report): a series of points in bounded memory. */
#include "src/report/thin.h"

#include <stdlib.h>

/* What is kept of a bucket: these points, some of which may be the same one. */
enum { FIRST, LOWEST, HIGHEST, LAST, KEPT };

struct thin_bucket {
    struct thin_point p[KEPT];
    bool used;
};

static unsigned n_buckets(const struct thin *s)
{
    return THIN_BUCKETS * (s->detail ? s->detail : 1);
}

static bool keep_exact(struct thin *s, struct thin_point p, uint32_t most)
{
    if (s->n_exact >= most)
        return false;
    if (s->n_exact == s->cap) {
        uint32_t cap = s->cap ? s->cap * 2 : 64;
        struct thin_point *more = realloc(s->exact, cap * sizeof *more);
        if (!more)
            return false;
        s->exact = more;
        s->cap = cap;
    }
    s->exact[s->n_exact++] = p;
    return true;
}

static void keep_extremes(struct thin_bucket *k, struct thin_point p)
{
    for (unsigned i = FIRST; !k->used && i < KEPT; i++)
        k->p[i] = p;
    k->used = true;
    if (p.v < k->p[LOWEST].v)
        k->p[LOWEST] = p;
    if (p.v > k->p[HIGHEST].v)
        k->p[HIGHEST] = p;
    k->p[LAST] = p;
}

void thin_add(struct thin *s, ns_t length, struct thin_point p, uint32_t exact)
{
    double at;

    s->n++;
    s->length = length > 0 ? length : 1;
    if (p.t < 0)
        p.t = 0;
    if (exact && keep_exact(s, p, exact))
        return;
    if (!s->buckets && !(s->buckets = calloc(n_buckets(s), sizeof *s->buckets))) {
        s->failed = true;
        return;
    }
    at = (double)p.t / (double)s->length * n_buckets(s);
    keep_extremes(&s->buckets[at < n_buckets(s) ? (unsigned)at : n_buckets(s) - 1], p);
}

void thin_free(struct thin *s)
{
    free(s->buckets);
    free(s->exact);
    *s = (struct thin){.n = 0};
}

/* --- Output ----------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
    const struct thin_point *x = a, *y = b;

    if (x->t != y->t)
        return x->t < y->t ? -1 : 1;
    return x->frame < y->frame ? -1 : x->frame > y->frame;
}

/* All points kept, in the order of time and each once. Returns their number. */
static uint32_t collect(const struct thin *s, struct thin_point *all)
{
    uint32_t n = s->n_exact, once = 0;

    if (n)
        memcpy(all, s->exact, n * sizeof *all);
    for (unsigned i = 0; s->buckets && i < n_buckets(s); i++)
        for (unsigned k = FIRST; s->buckets[i].used && k < KEPT; k++)
            all[n++] = s->buckets[i].p[k];
    qsort(all, n, sizeof *all, by_time);
    for (uint32_t i = 0; i < n; i++)
        if (!once || memcmp(&all[once - 1], &all[i], sizeof *all) != 0)
            all[once++] = all[i];
    return once;
}

static int64_t number_of(const struct thin_point *p, char key)
{
    return key == 't' ? p->t : key == 'v' ? p->v : (int64_t)p->frame;
}

static void put_column(struct buf *b, const struct thin_point *p, uint32_t n, char key)
{
    int64_t before = 0;

    buf_printf(b, ",\"%c\":[", key);
    for (uint32_t i = 0; i < n; i++) {
        int64_t v = number_of(&p[i], key);
        if (i)
            buf_char(b, ',');
        buf_sdec(b, v - before);
        before = v;
    }
    buf_char(b, ']');
}

void thin_json(struct buf *b, const struct thin *s)
{
    struct thin_point *all = malloc((s->n_exact + (s->buckets ? KEPT * n_buckets(s) : 0) + 1) * sizeof *all);
    uint32_t n = all ? collect(s, all) : 0;

    b->err |= !all || s->failed;
    buf_puts(b, "\"n\":");
    buf_dec(b, s->n);
    put_column(b, all, n, 't');
    put_column(b, all, n, 'v');
    put_column(b, all, n, 'f');
    free(all);
}
