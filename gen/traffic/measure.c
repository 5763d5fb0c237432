/* layer 3 (traffic): counts, bandwidth and latency from the times of messages. */
#include "gen/traffic/traffic.h"

#include <math.h>
#include <stdlib.h>

static void count_posted(struct traffic_result *r, ns_t now)
{
    if (r->when)
        r->when[r->posted % (2 * r->window)] = now;
    if (!r->posted++)
        r->start = now;
}

static void count_completed(struct traffic_result *r, uint32_t bytes, ns_t now)
{
    uint64_t n = ++r->completed < r->window ? r->completed : r->window;
    ns_t span = r->when ? now - r->when[(r->completed - n) % (2 * r->window)] : 0;

    r->bytes += bytes;
    r->end = now;
    if (r->when && (n > r->best_n || span < r->best)) {
        r->best = span;
        r->best_n = n;
    }
}

static void count_took(struct traffic_result *r, ns_t took)
{
    r->min = r->samples && r->min < took ? r->min : took;
    r->max = r->max > took ? r->max : took;
    r->sum += took;
    r->samples++;
}

void traffic_count_posted(struct traffic_flow *f, ns_t now)
{
    count_posted(&f->r, now);
    count_posted(&f->t->r, now);
}

void traffic_count_completed(struct traffic_flow *f, uint32_t bytes, ns_t now)
{
    count_completed(&f->r, bytes, now);
    count_completed(&f->t->r, bytes, now);
}

static void keep_sample(struct traffic *t, ns_t took)
{
    if (t->samples == t->room && t->room < TRAFFIC_SAMPLES) {
        uint32_t room = t->room ? 2 * t->room : 1024;
        uint32_t *p = realloc(t->sample, room * sizeof *p);
        if (p) {
            t->sample = p;
            t->room = room;
        }
    }
    if (t->samples < t->room)
        t->sample[t->samples++] = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
}

void traffic_count_took(struct traffic_flow *f, ns_t took)
{
    count_took(&f->r, took);
    count_took(&f->t->r, took);
    keep_sample(f->t, took);
}

static int compare_samples(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* The smallest sample that `permille` of all samples do not exceed, in microseconds. */
static double percentile(const struct traffic *t, unsigned permille)
{
    uint64_t rank = ((uint64_t)t->samples * permille + 999) / 1000;

    return t->samples ? t->sample[rank ? rank - 1 : 0] / 1e3 : 0;
}

static void distribution(struct traffic *t, struct traffic_figures *s)
{
    double sum = 0, d;

    if (t->samples)
        qsort(t->sample, t->samples, sizeof *t->sample, compare_samples);
    for (uint32_t i = 0; i < t->samples; i++) {
        d = t->sample[i] / 1e3 - s->mean;
        sum += d * d;
    }
    s->deviation = t->samples ? sqrt(sum / t->samples) : 0;
    s->typical = percentile(t, 500);
    s->p99 = percentile(t, 990);
    s->p999 = percentile(t, 999);
}

struct traffic_figures traffic_figures(struct traffic *t, const struct traffic_flow *f)
{
    const struct traffic_result *r = f ? &f->r : &t->r;
    struct traffic_figures s = {.seconds = r->completed ? (double)(r->end - r->start) / 1e9 : 0,
                                .min = (double)r->min / 1e3,
                                .max = (double)r->max / 1e3,
                                .mean = r->samples ? (double)r->sum / 1e3 / (double)r->samples : 0};

    if (s.seconds > 0) {
        s.average = (double)r->bytes / s.seconds;
        s.rate = (double)r->completed / s.seconds;
    }
    if (r->best > 0)
        s.peak = (double)r->best_n * t->c.size * 1e9 / (double)r->best;
    if (s.peak < s.average)
        s.peak = s.average;
    if (!f)
        distribution(t, &s);
    return s;
}
