/* layer 3 (workload): the figures of reports. */
#include "gen/workload/figures.h"

#include <stdlib.h>

/* num / den in thousandths. */
uint64_t fig_thousandths(unsigned __int128 num, unsigned __int128 den)
{
    return den ? (uint64_t)((num * 1000 + den / 2) / den) : 0;
}

void fig_decimal(struct buf *b, uint64_t milli)
{
    buf_dec(b, milli / 1000);
    buf_char(b, '.');
    buf_dec0(b, milli % 1000, 3);
}

/* All messages that are done; NULL: no memory. */
struct fct *fig_messages(const struct workload *w, uint32_t *n)
{
    struct fct *f = malloc(((size_t)w->n_messages + 1) * sizeof *f);

    *n = 0;
    for (uint32_t i = 0; f && i < w->n_messages; i++) {
        const struct workload_message *m = &w->message[i];
        uint64_t slow;
        if (!m->done)
            continue;
        slow = fig_thousandths((unsigned __int128)(m->done - m->posted), (unsigned __int128)workload_ideal(w, m));
        f[(*n)++] = (struct fct){m->bytes, slow > 1000 ? slow : 1000, m->done - m->posted};
    }
    return f;
}

static int by_size(const void *a, const void *b)
{
    const struct fct *x = a, *y = b;

    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}
int fig_by_took(const void *a, const void *b)
{
    const struct fct *x = a, *y = b;

    return x->took < y->took ? -1 : x->took > y->took;
}
int fig_by_slowdown(const void *a, const void *b)
{
    const struct fct *x = a, *y = b;

    return x->slowdown < y->slowdown ? -1 : x->slowdown > y->slowdown;
}

/* The messages in up to `most` parts of as many each, by size; returns how many parts. */
unsigned fig_sizes(struct fct *f, uint32_t n, struct size_bin *bin, unsigned most)
{
    uint32_t from = 0;
    unsigned bins = 0;

    qsort(f, n, sizeof *f, by_size);
    for (unsigned i = 1; i <= most && from < n; i++) {
        uint32_t to = (uint32_t)((uint64_t)n * i / most);
        if (to <= from)
            continue;
        while (to < n && f[to].bytes == f[to - 1].bytes)
            to++;
        bin[bins++] = (struct size_bin){f[to - 1].bytes, from, to};
        qsort(f + from, to - from, sizeof *f, fig_by_slowdown);
        from = to;
    }
    return bins;
}

/* The element below which `percent` of `n` sorted ones are. */
const struct fct *fig_percent(const struct fct *f, uint32_t n, unsigned percent)
{
    uint64_t i = ((uint64_t)n * percent + 99) / 100;

    return &f[i ? i - 1 : 0];
}

/* Jain's index of the rates of flows, in thousandths: (sum x)^2 / (n sum x^2); 0: fewer than two are done. */
uint64_t fig_jain(const struct workload *w)
{
    unsigned __int128 sum = 0, squares = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->n_flows; i++) {
        const struct workload_flow *f = &w->flow[i];
        ns_t took = f->last - f->first;
        uint64_t x;
        if (!f->done || took <= 0)
            continue;
        x = (uint64_t)((unsigned __int128)f->bytes * f->done * 1000000 / (uint64_t)took); /* B/ms */
        sum += x;
        squares += (unsigned __int128)x * x;
        n++;
    }
    return n < 2 || !squares ? 0 : fig_thousandths(sum * sum, (unsigned __int128)n * squares);
}

/* bit/s of `bytes` in `ns`, times num / den. */
uint64_t fig_bandwidth(uint64_t bytes, ns_t ns, unsigned num, unsigned den)
{
    return ns > 0 ? (uint64_t)((unsigned __int128)bytes * 8 * NS_PER_S * num / ((unsigned __int128)ns * den)) : 0;
}

ns_t fig_round_mean(const struct coll *c)
{
    return c->rounds ? c->round_sum / (ns_t)c->rounds : 0;
}

uint64_t fig_bus_bandwidth(const struct coll *c)
{
    return fig_bandwidth(c->bytes, fig_round_mean(c), c->k->factor(c->n), c->n);
}
