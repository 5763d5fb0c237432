/* layer 2b (taps): how packets are marked (CE) between two taps, by the delay of the queue. */
#include "src/taps/marking.h"

#include "src/taps/taps.h"

#include <math.h>
#include <stdlib.h>

#define CE          3
#define APART       16 /* the queue between two packets is known within this part of the largest delay, or not at all */
#define CLEARLY     3  /* logarithm of the likelihood by which one delay must tell more than the other one */
#define ESTIMATE_OF 2  /* an estimate needs this part of the marks */

static bool is_ce(uint8_t tos)
{
    return (tos & 3) == CE;
}

/* --- The sample ------------------------------------------------------------------------------- */

static bool is_kept(const struct marking *m, uint32_t i)
{
    return !(i / MARKING_BLOCK & ((UINT32_C(1) << m->thin) - 1));
}

/* Drop every second block. */
static void thin(struct marking *m)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->n; i++)
        if (i / MARKING_BLOCK % 2 == 0)
            m->of[n++] = m->of[i];
    m->n = n;
    m->thin++;
}

/* A packet was marked: make room for the sample, which begins with what the ring has. */
static void begin(struct marking *m)
{
    struct marking_sight *of = malloc(MARKING_SAMPLE * sizeof *of);
    uint32_t first = m->seen > MARKING_EARLY ? m->seen % MARKING_EARLY : 0;

    if (!of)
        return;
    for (uint32_t i = 0; i < m->n; i++)
        of[i] = m->of[(first + i) % MARKING_EARLY];
    free(m->of);
    m->of = of;
    m->seen = m->n;
    m->marked = true;
}

static void add_early(struct marking *m, const struct marking_sight *s)
{
    if (!m->of)
        m->of = malloc(MARKING_EARLY * sizeof *m->of);
    if (!m->of)
        return;
    m->of[m->seen++ % MARKING_EARLY] = *s;
    m->n += m->n < MARKING_EARLY;
}

void marking_add(struct marking *m, const struct marking_sight *s)
{
    if (!s->len || !(s->tos[0] & 3) || !(s->tos[1] & 3) || m->thin > 20)
        return;
    if (!m->marked && is_ce(s->tos[0]) != is_ce(s->tos[1]))
        begin(m);
    if (!m->marked) {
        add_early(m, s);
        return;
    }
    if (is_kept(m, m->seen) && m->n == MARKING_SAMPLE)
        thin(m);
    if (is_kept(m, m->seen++))
        m->of[m->n++] = *s;
}

/* --- Groups of points ------------------------------------------------------------------------- */

static int order(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_group(const void *a, const void *b)
{
    const struct marking_point *p = a, *q = b;
    int d = order(p->tap[0], q->tap[0]);

    d = d ? d : order(p->tap[1], q->tap[1]);
    d = d ? d : memcmp(p->dst.b, q->dst.b, sizeof p->dst.b);
    d = d ? d : order(p->dst.network, q->dst.network);
    return d ? d : order(p->dscp, q->dscp);
}

static int by_size(const void *a, const void *b)
{
    int d = by_group(a, b);

    return d ? d : order(((const struct marking_point *)a)->len, ((const struct marking_point *)b)->len);
}

static ns_t arrival(const struct marking_point *p)
{
    return p->left - p->delay;
}

/* By the time at which they would have left if there had been no queue. */
static int by_arrival(const void *a, const void *b)
{
    const struct marking_point *p = a, *q = b;
    ns_t s = arrival(p), t = arrival(q);

    return s != t ? (s < t ? -1 : 1) : p->left < q->left ? -1 : p->left > q->left;
}

/* The most points from `p` on that `order` takes for equal. */
static size_t run(const struct marking_point *p, size_t n, int (*compare)(const void *, const void *))
{
    size_t i = 1;

    while (i < n && !compare(&p[0], &p[i]))
        i++;
    return i;
}

/* --- One group -------------------------------------------------------------------------------- */

/* Make delays those of queues: less the least one of the link. Returns the largest. */
static ns_t take_least(struct marking_point *p, size_t n)
{
    ns_t least[TAPS_LINKS], most = 0;

    for (unsigned i = 0; i < TAPS_LINKS; i++)
        least[i] = INT64_MAX;
    for (size_t i = 0; i < n; i++)
        if (p[i].delay < least[p[i].link])
            least[p[i].link] = p[i].delay;
    for (size_t i = 0; i < n; i++) {
        p[i].delay -= least[p[i].link];
        most = p[i].delay > most ? p[i].delay : most;
    }
    return most;
}

/* The queue at time `t` between the arrivals of `a` and `b`; < 0: not known. It shrinks by no more than time passes. */
static double queue_between(const struct marking_point *a, const struct marking_point *b, ns_t t, ns_t most)
{
    ns_t from = arrival(a), to = arrival(b), least = a->delay - (t - from), largest = b->delay + (to - t);
    double at = (double)a->delay;

    least = least > 0 ? least : 0;
    if (largest - least > most / APART)
        return -1;
    if (to > from)
        at += (double)(b->delay - a->delay) * (double)(t - from) / (double)(to - from);
    at = at > (double)largest ? (double)largest : at;
    return at < (double)least ? (double)least : at;
}

/* The first of points in the order of their arrival that arrives at time `t` or later. */
static size_t arrives_at(const struct marking_point *p, size_t n, ns_t t)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t k = low + (high - low) / 2;
        if (arrival(&p[k]) < t)
            low = k + 1;
        else
            high = k;
    }
    return low;
}

/* Find the queue that each packet leaves behind. */
static void look_behind(struct marking_point *p, size_t n, ns_t most)
{
    qsort(p, n, sizeof *p, by_arrival);
    for (size_t i = 0; i < n; i++) {
        size_t k = arrives_at(p, n, p[i].left);
        p[i].behind = k && k < n ? queue_between(&p[k - 1], &p[k], p[i].left, most) : -1;
    }
}

static void add_share(struct marking_report *r, double x, bool marked)
{
    size_t at = x < 0 ? 0 : (size_t)(x / (double)r->width);
    struct marking_share *s = &r->shares[at < MARKING_SHARES ? at : MARKING_SHARES - 1];

    s->packets++;
    s->marked += marked;
}

/* The points of which the queue left behind is known, and both delays of these. */
struct delays {
    double *x[2]; /* by enum marking_by */
    bool *marked;
    size_t n, marks;
};

static void take_delays(struct delays *d, const struct marking_point *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i].behind >= 0) {
            d->x[MARKING_OWN][d->n] = (double)p[i].delay;
            d->x[MARKING_BEHIND][d->n] = p[i].behind;
            d->marked[d->n++] = p[i].marked;
            d->marks += p[i].marked;
        }
}

static void widen(struct marking_value *v, const struct marking_value *by)
{
    v->least = fmin(v->least, by->least);
    v->most = fmax(v->most, by->most);
}

/* Both delays tell as much: what is known is what both curves say. */
static void join(struct marking_curve *c, const struct marking_curve *other)
{
    c->known &= other->known;
    c->full &= other->full;
    widen(&c->kmin, &other->kmin);
    widen(&c->kmax, &other->kmax);
    widen(&c->pmax, &other->pmax);
    widen(&c->rise, &other->rise);
}

static void fit(struct marking_report *r, const struct delays *d, ns_t most)
{
    double likelihood[2];
    struct marking_curve c[2];

    for (unsigned by = 0; by < 2; by++)
        c[by] = marking_fit(d->x[by], d->marked, d->n, (double)most + 1, &likelihood[by]);
    r->by = likelihood[MARKING_BEHIND] > likelihood[MARKING_OWN] ? MARKING_BEHIND : MARKING_OWN;
    r->curve = c[r->by];
    if (fabs(likelihood[MARKING_BEHIND] - likelihood[MARKING_OWN]) < CLEARLY)
        join(&r->curve, &c[!r->by]);
}

/* `n` points of one size. False: they say nothing. */
static bool report(struct marking_point *p, size_t n, struct marking_report *r)
{
    struct delays d = {.n = 0};
    ns_t most, bound = 0;

    *r = (struct marking_report){.tap = {p->tap[0], p->tap[1]}, .dst = p->dst, .dscp = p->dscp, .packets = (uint32_t)n};
    for (size_t i = 0; i < n; i++) {
        r->marked += p[i].marked;
        bound = p[i].bound > bound ? p[i].bound : bound;
    }
    if (n < MARKING_PACKETS || r->marked < MARKING_MARKS)
        return false;
    most = take_least(p, n);
    if (most < MARKING_CLOCKS * bound || most < MARKING_SHARES)
        return false;
    r->width = most / MARKING_SHARES + 1;
    look_behind(p, n, most);
    d.x[0] = malloc(n * sizeof(double));
    d.x[1] = malloc(n * sizeof(double));
    d.marked = malloc(n);
    if (d.x[0] && d.x[1] && d.marked)
        take_delays(&d, p, n);
    if (d.n >= MARKING_PACKETS && d.marks >= MARKING_MARKS && d.marks >= r->marked / ESTIMATE_OF)
        fit(r, &d, most);
    if (r->by == MARKING_BEHIND) {
        r->packets = (uint32_t)d.n;
        r->marked = (uint32_t)d.marks;
        for (size_t i = 0; i < d.n; i++)
            add_share(r, d.x[MARKING_BEHIND][i], d.marked[i]);
    } else {
        for (size_t i = 0; i < n; i++)
            add_share(r, (double)p[i].delay, p[i].marked);
    }
    free(d.x[0]);
    free(d.x[1]);
    free(d.marked);
    return true;
}

/* Keep the most marked reports; of equal ones the first. */
static size_t insert(struct marking_report to[MARKING_REPORTS], size_t n, const struct marking_report *r)
{
    size_t at = n;

    while (at && to[at - 1].marked < r->marked)
        at--;
    if (at == MARKING_REPORTS)
        return n;
    n += n < MARKING_REPORTS;
    memmove(&to[at + 1], &to[at], (n - at - 1) * sizeof *to);
    to[at] = *r;
    return n;
}

size_t marking_make(struct marking_point *points, size_t n, struct marking_report to[MARKING_REPORTS])
{
    size_t made = 0;

    qsort(points, n, sizeof *points, by_size);
    for (size_t i = 0, end; i < n; i = end) {
        size_t from = i, most = 0;
        struct marking_report r;
        end = i + run(&points[i], n - i, by_group);
        for (size_t k = i, size; k < end; k += size) { /* small packets take less time on links: the usual size only */
            size = run(&points[k], end - k, by_size);
            from = size > most ? k : from;
            most = size > most ? size : most;
        }
        if (report(&points[from], most, &r))
            made = insert(to, made, &r);
    }
    return made;
}
