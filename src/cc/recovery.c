/* layer 2 (cc): how the rate of a queue pair rises between two CNPs. */
#include "src/cc/recovery.h"

#include "src/cc/cc.h"

#include <stdlib.h>
#include <string.h>

#define ALIKE 1000 /* gaps that differ by 1/1000 at most are of one rate */
#define STAMP 1    /* ns by which any gap may differ */

#define RECOVERIES_LEAST 3 /* fewer do not show by which values a sender recovers */
#define HALVING_NEAR     1 /* the first step may be too small to be seen, one after the last looks like it */

/* The gap for `bytes` at the rate of a level. */
static ns_t gap_at(const struct recovery_level *l, uint32_t bytes)
{
    return (ns_t)((unsigned __int128)(uint64_t)l->time * bytes / l->bytes);
}

static bool fits(const struct recovery_level *l, uint32_t bytes, ns_t gap)
{
    ns_t want = gap_at(l, bytes), most = want / ALIKE + STAMP;

    return gap >= want - most && gap <= want + most;
}

static uint64_t rate_of(const struct recovery_level *l)
{
    return l->time > 0 ? (uint64_t)((unsigned __int128)l->bytes * 8 * NS_PER_S / (uint64_t)l->time) : 0;
}

void recovery_begin(struct recovery *r)
{
    recovery_end(r);
    r->n = 0;
    r->next.bytes = 0;
}

void recovery_packet(struct recovery *r, uint32_t bytes, ns_t gap, ns_t ts)
{
    struct recovery_level *l = r->n ? &r->level[r->n - 1] : NULL;

    if (gap <= 0 || !bytes)
        return;
    if (l && fits(l, bytes, gap)) {
        l->bytes += bytes;
        l->time += gap;
        r->next.bytes = 0;
        return;
    }
    if (!r->next.bytes || !fits(&r->next, bytes, gap)) {
        r->next = (struct recovery_level){.bytes = bytes, .time = gap, .from = ts - gap};
        return;
    }
    r->next.bytes += bytes;
    r->next.time += gap;
    if (l && rate_of(&r->next) <= rate_of(l)) /* without a CNP: for another reason */
        r->n = 0;
    if (r->n < RECOVERY_LEVELS)
        r->level[r->n++] = r->next;
    r->next.bytes = 0;
}

static void take(struct recovery_value *v, uint64_t x)
{
    v->min = v->n && v->min < x ? v->min : x;
    v->max = v->max > x ? v->max : x;
    v->sum += x;
    v->n++;
}

static int by_time(const void *a, const void *b)
{
    ns_t x = *(const ns_t *)a, y = *(const ns_t *)b;

    return (x > y) - (x < y);
}

/* The time between two steps, in the middle of all. */
static ns_t period_of(const struct recovery *r)
{
    ns_t t[RECOVERY_LEVELS];
    uint32_t n = 0;

    for (uint32_t i = 1; i + 1 < r->n; i++)
        t[n++] = r->level[i + 1].from - r->level[i].from;
    qsort(t, n, sizeof t[0], by_time);
    return t[n / 2];
}

/* Step `i`, bit/s: from level `i` to the next one. */
static uint64_t step(const struct recovery *r, uint32_t i)
{
    return rate_of(&r->level[i + 1]) - rate_of(&r->level[i]);
}

/* Half of the step before, a third more or less. */
static bool is_half(uint64_t before, uint64_t after)
{
    return after * 3 >= before && after * 3 <= before * 2;
}

/* Whether each level is above the one before: the rate of a level changes a little with each of its packets. */
static bool rises(const struct recovery *r)
{
    for (uint32_t i = 1; i < r->n; i++)
        if (rate_of(&r->level[i]) <= rate_of(&r->level[i - 1]))
            return false;
    return true;
}

void recovery_end(struct recovery *r)
{
    uint32_t steps = r->n ? r->n - 1 : 0, halving = 1;

    if (steps < RECOVERY_STEPS || !rises(r))
        return;
    while (halving < steps && is_half(step(r, halving - 1), step(r, halving)))
        halving++;
    take(&r->period, (uint64_t)period_of(r));
    take(&r->halving, halving);
    /* The target rises by the increase and the rate by half of what is left to it: a step is half of the sum of the
     * step before and the increase. */
    for (uint32_t i = halving; i < steps; i++)
        if (2 * step(r, i) > step(r, i - 1))
            take(&r->increase, 2 * step(r, i) - step(r, i - 1));
    r->n = 0;
}

/* --- What was stated -------------------------------------------------------------------------- */

/* The value of a parameter; false: the scheme has none of this name. */
static bool value_of(const struct cc_config *c, const char *name, uint64_t *v)
{
    for (unsigned i = 0; c->scheme->params[i].name; i++)
        if (strcmp(c->scheme->params[i].name, name) == 0) {
            *v = c->v[i];
            return true;
        }
    return false;
}

/* By the names of the published scheme. */
static bool shape_of_paper(const struct cc_config *c, struct recovery_shape *s)
{
    uint64_t period;

    if (!value_of(c, "t", &period) || !value_of(c, "f", &s->halving) || !value_of(c, "ai", &s->increase))
        return false;
    s->period = (ns_t)period;
    s->hyper = s->increase;
    return true;
}

/* By those of ConnectX adapters: microseconds, Mbit/s. One step of additive increase follows fast recovery, then hyper
 * increase. */
static bool shape_of_connectx(const struct cc_config *c, struct recovery_shape *s)
{
    uint64_t period, increase, hyper, blocks;

    if (!value_of(c, "rp_time_reset", &period) || !value_of(c, "rp_ai_rate", &increase) ||
        !value_of(c, "rp_hai_rate", &hyper) || !value_of(c, "rp_byte_reset", &blocks))
        return false;
    s->period = (ns_t)period * NS_PER_US;
    s->increase = (increase < hyper ? increase : hyper) * 1000000;
    s->hyper = (increase > hyper ? increase : hyper) * 1000000;
    s->counter = blocks != 0;
    return true;
}

bool recovery_shape_of(const struct cc_config *c, struct recovery_shape *s)
{
    *s = (struct recovery_shape){0};
    return c->scheme->cnp && (shape_of_paper(c, s) || shape_of_connectx(c, s));
}

static uint64_t mean(const struct recovery_value *v)
{
    return v->sum / v->n;
}

/* True if `seen` is below `least`, or above `most`, by more than so many percent. */
static bool is_off(uint64_t seen, uint64_t least, uint64_t most, unsigned percent)
{
    return seen > most + most / 100 * percent || seen + least / 100 * percent < least;
}

static bool halving_differs(const struct recovery_value *v, uint64_t stated)
{
    uint64_t halving = (v->sum + v->n / 2) / v->n;

    return halving + HALVING_NEAR < stated || halving > stated + HALVING_NEAR;
}

bool recovery_differs(const struct recovery *r, const struct recovery_shape *s)
{
    uint64_t period = (uint64_t)s->period;

    if (!s->period || r->period.n < RECOVERIES_LEAST)
        return false;
    if (is_off(mean(&r->period), s->counter ? 0 : period, period, 10))
        return true;
    if (s->halving && halving_differs(&r->halving, s->halving))
        return true;
    return r->increase.n >= RECOVERIES_LEAST &&
           is_off(mean(&r->increase), s->increase, s->counter ? UINT64_MAX / 2 : s->hyper, 25);
}
