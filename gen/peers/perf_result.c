/* layer 3 (peers): perftest-like traffic: bandwidth and latency from the times of messages. */
#include "gen/peers/perf_run.h"

#include <math.h>
#include <stdlib.h>

static int compare_samples(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* The smallest sample that `permille` of all samples do not exceed, in microseconds. */
static double percentile(const struct load *l, unsigned permille)
{
    uint64_t rank = ((uint64_t)l->samples * permille + 999) / 1000;

    return l->samples ? l->latency[rank ? rank - 1 : 0] / 1e3 : 0;
}

static void distribution(struct load *l, struct load_stats *s)
{
    double sum = 0, d;

    if (l->samples)
        qsort(l->latency, l->samples, sizeof *l->latency, compare_samples);
    for (uint32_t i = 0; i < l->samples; i++) {
        d = l->latency[i] / 1e3 - s->mean;
        sum += d * d;
    }
    s->deviation = l->samples ? sqrt(sum / l->samples) : 0;
    s->typical = percentile(l, 500);
    s->p99 = percentile(l, 990);
    s->p999 = percentile(l, 999);
}

void load_result(struct load *l, int i, struct load_stats *s)
{
    const struct load_meter *m = i < 0 ? &l->all : &l->qp[i].m;

    memset(s, 0, sizeof *s);
    s->messages = m->completed;
    s->bytes = m->completed * l->config.size;
    s->seconds = m->completed ? (double)(m->last - m->first) / 1e9 : 0;
    if (s->seconds > 0) {
        s->average = (double)s->bytes / s->seconds;
        s->rate = (double)s->messages / s->seconds;
    }
    if (m->best > 0)
        s->peak = (double)m->best_n * l->config.size * 1e9 / (double)m->best;
    if (s->peak < s->average)
        s->peak = s->average;
    s->samples = m->took.n;
    s->min = (double)m->took.min / 1e3;
    s->max = (double)m->took.max / 1e3;
    s->mean = m->took.n ? (double)m->took.sum / 1e3 / (double)m->took.n : 0;
    for (unsigned q = 0; l->qp && q < l->config.qps; q++)
        if (i < 0 || q == (unsigned)i) {
            s->compared += l->qp[q].compared;
            s->mismatches += l->qp[q].mismatches;
        }
    if (i < 0)
        distribution(l, s);
}
