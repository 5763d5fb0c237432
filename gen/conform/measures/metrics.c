/* layer 3 (conform): samples of metrics, and their order statistics. */
#include "gen/conform/measures/metrics.h"

#include "prng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLD      5    /* samples left out at the beginning, */
#define ENOUGH    20   /* if there are so many */
#define DRAWINGS  1000 /* of the bootstrap */
#define DRAWN_MAX 1000 /* most samples of a drawing: a larger one would show no more */

static bool is_name(const struct token *t)
{
    for (uint32_t i = 0; i < t->len; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789_", t->p[i]) || !t->p[i])
            return false;
    return t->len > 0 && t->len < METRIC_NAME;
}

static struct metric *find(struct metrics *m, const struct token *name)
{
    for (unsigned i = 0; i < m->n; i++)
        if (token_is(name, m->metric[i].name))
            return &m->metric[i];
    if (m->n == METRICS || !is_name(name))
        return NULL;
    snprintf(m->metric[m->n].name, METRIC_NAME, "%.*s", (int)name->len, name->p);
    return &m->metric[m->n++];
}

bool metrics_add(struct metrics *m, const struct token *name, enum metric_unit u, int64_t value)
{
    bool sane = value >= -METRIC_MOST && value <= METRIC_MOST;
    struct metric *x = sane ? find(m, name) : NULL;

    if (!x || x->n == METRIC_SAMPLES)
        return false;
    if (!x->n)
        x->unit = (uint8_t)u;
    if (x->n == x->room) {
        unsigned room = x->room ? 2 * x->room : 16;
        int64_t *more = realloc(x->sample, room * sizeof *more);
        if (!more)
            return false;
        x->sample = more;
        x->room = room;
    }
    x->sample[x->n++] = value;
    return true;
}

void metrics_leave_out(struct metrics *m, const struct token *name, enum metric_unit u)
{
    struct metric *x = find(m, name);

    if (!x || x->left_out == METRIC_SAMPLES)
        return;
    if (!x->n)
        x->unit = (uint8_t)u;
    x->left_out++;
}

void metrics_bound(struct metrics *m, const struct token *name, ns_t taken, ns_t idle)
{
    struct metric *x = find(m, name);
    bool sane = taken > 0 && taken <= METRIC_MOST && idle >= 0 && idle <= taken;

    if (!x || !sane || x->taken > METRIC_MOST)
        return;
    x->taken += taken;
    x->idle += idle;
}

static void move(struct metrics *m, const struct metric *x)
{
    struct token name = token_of(x->name);

    for (unsigned k = 0; k < x->n; k++)
        metrics_add(m, &name, (enum metric_unit)x->unit, x->sample[k]);
    for (unsigned k = 0; k < x->left_out; k++)
        metrics_leave_out(m, &name, (enum metric_unit)x->unit);
    metrics_bound(m, &name, x->taken, x->idle);
}

void metrics_gather(struct metrics *m, struct metrics *from)
{
    for (unsigned i = 0; i < from->n; i++)
        move(m, &from->metric[i]);
    metrics_free(from);
}

void metrics_move(struct metrics *m, struct metrics *from)
{
    for (unsigned i = 0; i < from->n; i++)
        if (from->metric[i].n)
            move(m, &from->metric[i]);
    metrics_free(from);
}

void metrics_free(struct metrics *m)
{
    for (unsigned i = 0; i < m->n; i++)
        free(m->metric[i].sample);
    *m = (struct metrics){0};
}

/* --- Statistics ------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void sort(int64_t *t, unsigned n)
{
    qsort(t, n, sizeof *t, by_value);
}

/* The value that `percent` of the sorted samples do not exceed: the nearest rank. */
static int64_t percentile(const int64_t *sorted, unsigned n, unsigned percent)
{
    unsigned rank = (unsigned)(((uint64_t)n * percent + 99) / 100);

    return sorted[rank ? rank - 1 : 0];
}

/* Median of the distances from `median`; `t` is overwritten. */
static int64_t median_distance(int64_t *t, unsigned n, int64_t median)
{
    for (unsigned i = 0; i < n; i++)
        t[i] = t[i] > median ? t[i] - median : median - t[i];
    sort(t, n);
    return percentile(t, n, 50);
}

/* The interval of the median: percentiles 2.5 and 97.5 of the medians of drawings with replacement. `t`: room for
 * DRAWN_MAX samples. */
static void bootstrap(const int64_t *sorted, unsigned n, uint64_t seed, int64_t *t, struct metric_summary *s)
{
    unsigned drawn = n < DRAWN_MAX ? n : DRAWN_MAX;
    int64_t median[DRAWINGS];
    struct prng r;

    prng_seed(&r, seed);
    for (unsigned i = 0; i < DRAWINGS; i++) {
        for (unsigned k = 0; k < drawn; k++)
            t[k] = sorted[prng_below(&r, n)];
        sort(t, drawn);
        median[i] = percentile(t, drawn, 50);
    }
    sort(median, DRAWINGS);
    s->low = median[DRAWINGS * 25 / 1000];
    s->high = median[DRAWINGS * 975 / 1000 - 1];
}

void metric_summarise(const struct metric *m, uint64_t seed, struct metric_summary *s)
{
    unsigned skip = m->n >= ENOUGH ? COLD : 0, n = m->n - skip;
    int64_t *t = n ? malloc((n + DRAWN_MAX) * sizeof *t) : NULL;

    *s = (struct metric_summary){0};
    if (!t)
        return;
    memcpy(t, m->sample + skip, n * sizeof *t);
    sort(t, n);
    *s = (struct metric_summary){.n = n,
                                 .min = t[0],
                                 .p5 = percentile(t, n, 5),
                                 .median = percentile(t, n, 50),
                                 .p95 = percentile(t, n, 95),
                                 .p99 = percentile(t, n, 99),
                                 .max = t[n - 1]};
    bootstrap(t, n, seed, t + n, s);
    s->mad = median_distance(t, n, s->median);
    free(t);
}

struct metric_link metrics_link(const struct metrics *m, uint64_t seed)
{
    struct metric_summary s;

    for (unsigned i = 0; i < m->n; i++)
        if (strcmp(m->metric[i].name, METRIC_LINK) == 0) {
            metric_summarise(&m->metric[i], seed, &s);
            return (struct metric_link){.known = s.n > 0, .least = s.min, .error = (s.p95 - s.p5) / 2};
        }
    return (struct metric_link){0};
}

struct metric_ratio metrics_ratio(struct metrics *m, const struct token *name, const struct token *of,
                                  const struct token *over)
{
    struct metric_summary of_it = {0}, over_it = {0};
    struct metric_ratio r = {0};

    for (unsigned i = 0; i < m->n; i++)
        if (token_is(of, m->metric[i].name))
            metric_summarise(&m->metric[i], 0, &of_it);
        else if (token_is(over, m->metric[i].name))
            metric_summarise(&m->metric[i], 0, &over_it);
    if (of_it.median <= 0 || over_it.median <= 0)
        return r;
    r.permille = (int64_t)(1000.0 * (double)of_it.median / (double)over_it.median + 0.5);
    r.above = metric_has_interval(&of_it) && metric_has_interval(&over_it) && of_it.low > over_it.high;
    metrics_add(m, name, METRIC_PERMILLE, r.permille);
    return r;
}
