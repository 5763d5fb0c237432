/* layer 0 (base): how predictable are numbers that somebody chooses one after another. */
#include "steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A step, and the one before it. */
struct pair {
    uint32_t before, step;
};

static int by_step(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;

    return (x->step > y->step) - (x->step < y->step);
}

static int by_both(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;

    return x->before == y->before ? by_step(a, b) : (x->before > y->before) - (x->before < y->before);
}

/* How many of the pairs from `i` on compare equal by `order`. */
static unsigned run_of(const struct pair *p, unsigned i, unsigned n, int (*order)(const void *, const void *))
{
    unsigned k = i;

    while (k < n && order(&p[i], &p[k]) == 0)
        k++;
    return k - i;
}

static void commonest(struct pair *p, unsigned n, struct steps *s)
{
    unsigned best = 0;

    qsort(p, n, sizeof *p, by_step);
    for (unsigned i = 0, many; i < n; i += many) {
        many = run_of(p, i, n, by_step);
        if (many > best) {
            best = many;
            s->step = p[i].step;
        }
    }
    s->times = best;
    s->share = (double)best / n;
    s->min_entropy = best == n ? 0 : -log2(s->share);
}

/* Mean entropy of a step if the one before is known; `n` pairs. */
static double conditional(struct pair *p, unsigned n)
{
    double bits = 0;

    qsort(p, n, sizeof *p, by_both);
    for (unsigned i = 0, group; i < n; i += group) {
        for (group = 0; i + group < n && p[i + group].before == p[i].before;)
            group++;
        for (unsigned k = i, many; k < i + group; k += many) {
            many = run_of(p, k, i + group, by_step);
            bits += many == group ? 0 : -(double)many / n * log2((double)many / group);
        }
    }
    return bits;
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static unsigned count_distinct(const uint32_t *v, unsigned n)
{
    uint32_t *sorted = malloc(n * sizeof *sorted);
    unsigned distinct = n > 0;

    if (!sorted)
        return 0;
    memcpy(sorted, v, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    for (unsigned i = 1; i < n; i++)
        distinct += sorted[i] != sorted[i - 1];
    free(sorted);
    return distinct;
}

void steps_of(const uint32_t *v, unsigned n, uint32_t mask, struct steps *s)
{
    unsigned steps = n ? n - 1 : 0;
    struct pair *p = n >= 3 ? calloc(steps, sizeof *p) : NULL;

    *s = (struct steps){0};
    if (!p)
        return;
    for (unsigned i = 0; i < steps; i++) {
        p[i].step = (v[i + 1] - v[i]) & mask;
        p[i].before = i ? p[i - 1].step : 0;
    }
    s->n = n;
    s->distinct = count_distinct(v, n);
    s->conditional = conditional(p + 1, steps - 1); /* the first step has none before it */
    commonest(p, steps, s);
    free(p);
}
