/* layer 3 (conform): how predictable are the keys and numbers that a device chooses. */
#include "gen/conform/identities.h"
#include "gen/conform/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* By enum script_chosen: the id, in JSON and of published values, the name, and the bits that count. */
static const struct {
    const char *id, *name;
    uint32_t mask;
} kinds[SCRIPT_CHOSEN] = {[SCRIPT_CHOSE_KEY] = {"rkey", "R_Key", UINT32_MAX},
                          [SCRIPT_CHOSE_QPN] = {"qpn", "queue pair number", 0xffffff},
                          [SCRIPT_CHOSE_PSN] = {"psn", "starting PSN (RDMA-CM)", 0xffffff}};

void identities_add(struct identities *all, enum script_chosen kind, uint32_t value)
{
    unsigned room = all->of[kind].room ? 2 * all->of[kind].room : 64;

    if (all->of[kind].n == all->of[kind].room) {
        uint32_t *v = room > IDENTITIES_MAX ? NULL : realloc(all->of[kind].v, room * sizeof *v);
        if (!v)
            return;
        all->of[kind].v = v;
        all->of[kind].room = room;
    }
    all->of[kind].v[all->of[kind].n++] = value & kinds[kind].mask;
}

void identities_free(struct identities *all)
{
    for (unsigned k = 0; k < SCRIPT_CHOSEN; k++)
        free(all->of[k].v);
    *all = (struct identities){0};
}

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

static void commonest(struct pair *p, unsigned n, struct identity_summary *s)
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

void identity_summarise(const struct identities *all, enum script_chosen kind, struct identity_summary *s)
{
    const uint32_t *v = all->of[kind].v;
    unsigned n = all->of[kind].n, steps = n ? n - 1 : 0;
    struct pair *p = n >= 3 ? calloc(steps, sizeof *p) : NULL;

    *s = (struct identity_summary){0};
    if (!p)
        return;
    for (unsigned i = 0; i < steps; i++) {
        p[i].step = (v[i + 1] - v[i]) & kinds[kind].mask;
        p[i].before = i ? p[i - 1].step : 0;
    }
    s->n = n;
    s->distinct = count_distinct(v, n);
    s->conditional = conditional(p + 1, steps - 1); /* the first step has none before it */
    commonest(p, steps, s);
    free(p);
}

/* --- Printing --------------------------------------------------------------------------------- */

void identities_print_text(const struct identities *all, struct buf *b)
{
    bool any = false;

    for (unsigned k = 0; k < SCRIPT_CHOSEN; k++) {
        struct identity_summary s;
        struct metric_published p;
        identity_summarise(all, (enum script_chosen)k, &s);
        if (!s.n)
            continue;
        if (!any)
            buf_puts(
                b, "\nchosen by the device       n  distinct  commonest step       entropy of steps: least, and of one "
                   "behind another\n");
        any = true;
        buf_printf(b, "%-22s %5u  %8u  0x%-8x %5.1f %%   %5.2f bits, %5.2f bits\n", kinds[k].name, s.n, s.distinct,
                   s.step, 100 * s.share, s.min_entropy, s.conditional);
        for (unsigned i = 0; metric_published(kinds[k].id, i, &p); i++)
            buf_printf(b, "    published: %.*s: %.*s [%.*s]\n", (int)p.device.len, p.device.p, (int)p.value.len,
                       p.value.p, (int)p.source.len, p.source.p);
    }
}

void identities_print_json(const struct identities *all, struct buf *b)
{
    const char *sep = "";

    buf_puts(b, ",\"identities\":[");
    for (unsigned k = 0; k < SCRIPT_CHOSEN; k++) {
        struct identity_summary s;
        identity_summarise(all, (enum script_chosen)k, &s);
        if (!s.n)
            continue;
        buf_printf(b,
                   "%s\n{\"id\":\"%s\",\"n\":%u,\"distinct\":%u,\"step\":%u,\"share\":%.4f,\"min_entropy_bits\":%.3f,"
                   "\"conditional_bits\":%.3f",
                   sep, kinds[k].id, s.n, s.distinct, s.step, s.share, s.min_entropy, s.conditional);
        metric_published_json(kinds[k].id, b);
        buf_char(b, '}');
        sep = ",";
    }
    buf_char(b, ']');
}
