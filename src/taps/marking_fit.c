/* layer 2b (taps): the marking curve of RED that fits packets best.
 *
 * Every curve on a grid of delays and of Pmax is tried. Ranges are those of all curves whose likelihood is not much
 * smaller than the largest (by the quantile of chi squared for one value), wider where the packets scatter more than
 * marks at random do; values are the means of these curves, by their likelihood. Kmax lies somewhere in a step, whose
 * packets may have any share. Shares are numbers of a geometric series, so that a product of two is a sum of their
 * places. */
#include "src/taps/marking.h"

#include <math.h>

#define GRID    64   /* steps of the delay */
#define OCTAVE  96   /* places of a factor of 2 */
#define PMAX    96   /* values of Pmax, */
#define PSTEP   8    /* so many places apart: 12 of a factor of 2 */
#define PLACES  960  /* a share of 2^-10 is taken for none: times of capture are not exact, */
#define ALL     0.99 /* and this for all */
#define NEAR    1.92 /* half the 95 % quantile of chi squared with one degree of freedom */
#define SCATTER 4    /* deviance of a step, on average, beyond which marks follow no curve */
#define MORE    8    /* steps that count for the average besides those with packets of both kinds */

/* Packets by step of the delay. */
struct steps {
    double n[GRID], k[GRID]; /* all; marked */
    double none[GRID + 1];   /* logarithm of the likelihood of the steps before, if none should be marked; */
    double all[GRID + 1];    /* if all should */
    double own[GRID];        /* of a step, with the share that it has; */
    double best;             /* the sum */
    double mixed;            /* steps with packets that are marked and such that are not */
    double yes[PLACES + 1], no[PLACES + 1]; /* by place: logarithms of a share, and of what is left to 1 */
    int place[2 * GRID + 1];                /* of a factor in front of a share */
};

static double cost(const struct steps *s, int step, int place)
{
    place = place < PLACES ? place : PLACES;
    return s->k[step] * s->yes[place] + (s->n[step] - s->k[step]) * s->no[place];
}

static void make_tables(struct steps *s)
{
    for (int i = 0; i <= PLACES; i++) {
        double p = exp2(-(double)i / OCTAVE);
        p = p > ALL ? ALL : p;
        s->yes[i] = log(p);
        s->no[i] = log(1 - p);
    }
    for (int i = 1; i <= 2 * GRID; i++)
        s->place[i] = (int)lrint(OCTAVE * log2(i));
}

static void count(struct steps *s, const double *x, const bool *marked, size_t n, double most)
{
    for (size_t i = 0; i < n; i++) {
        int at = (int)(x[i] / most * GRID);
        at = at < 0 ? 0 : at >= GRID ? GRID - 1 : at;
        s->n[at]++;
        s->k[at] += marked[i];
    }
    for (int i = 0; i < GRID; i++) {
        s->none[i + 1] = s->none[i] + cost(s, i, PLACES);
        s->all[i + 1] = s->all[i] + cost(s, i, 0);
        s->own[i] = cost(s, i, s->k[i] > 0 ? (int)lrint(-OCTAVE * log2(s->k[i] / s->n[i])) : PLACES);
        s->best += s->own[i];
        s->mixed += s->k[i] > 0 && s->k[i] < s->n[i];
    }
}

/* The curve that rises from the start of step `low` to some time in step `high`, to the Pmax at place `p`. */
static double likelihood_of(const struct steps *s, int low, int high, int p)
{
    double sum = s->none[low] + (high < GRID ? s->all[GRID] - s->all[high + 1] + s->own[high] : 0);

    for (int i = low; i < high; i++)
        if (s->n[i] > 0)
            sum += cost(s, i, p + s->place[2 * (high - low)] - s->place[2 * (i - low) + 1]);
    return sum;
}

/* A value of one of the curves that are likely enough, by how likely it is. */
static void take(struct marking_value *v, double value, double weight)
{
    v->is += value * weight;
    v->least = fmin(v->least, value);
    v->most = fmax(v->most, value);
}

/* What is between two places counts to both. */
static void widen(struct marking_value *v, double weight, double by)
{
    v->is /= weight;
    v->least = fmax(v->least - by, 0);
    v->most += by;
}

/* A curve: `high` is GRID if no packet is above Kmax. */
struct curve {
    int low, high, p;
};

static bool next_curve(struct curve *c)
{
    if ((c->p += PSTEP) < PMAX * PSTEP)
        return true;
    c->p = 0;
    if (++c->low < c->high)
        return true;
    c->low = 0;
    return ++c->high <= GRID;
}

static double share_at(int place)
{
    return exp2(-(double)place / OCTAVE);
}

/* All curves whose likelihood is at most `less` below the largest: the mean, and the range. */
static void take_curves(struct marking_curve *of, const struct steps *s, double largest, double less, double step)
{
    const struct marking_value none = {.least = INFINITY};
    struct curve c = {0, 1, 0};
    double sum = 0;

    of->kmin = of->kmax = of->pmax = of->rise = none;
    of->full = true;
    do {
        double below = largest - likelihood_of(s, c.low, c.high, c.p), weight = exp(-below * NEAR / less);
        if (below > less)
            continue;
        sum += weight;
        take(&of->kmin, c.low * step, weight);
        take(&of->kmax, (c.high + 0.5) * step, weight);
        take(&of->pmax, share_at(c.p), weight);
        take(&of->rise, share_at(c.p) / ((c.high - c.low) * step), weight);
        of->full &= c.high < GRID - 1;
    } while (next_curve(&c));
    widen(&of->kmin, sum, step);
    widen(&of->kmax, sum, step);
    widen(&of->pmax, sum, 0);
    widen(&of->rise, sum, 0);
    of->pmax.least *= share_at(PSTEP / 2);
    of->pmax.most = fmin(of->pmax.most / share_at(PSTEP / 2), 1);
}

struct marking_curve marking_fit(const double *x, const bool *marked, size_t n, double most, double *likelihood)
{
    struct steps s = {.mixed = 0};
    struct curve c = {0, 1, 0};
    struct marking_curve of = {.packets = (uint32_t)n};
    double largest = -INFINITY, scatter;

    make_tables(&s);
    count(&s, x, marked, n, most);
    do
        largest = fmax(largest, likelihood_of(&s, c.low, c.high, c.p));
    while (next_curve(&c));
    *likelihood = s.best;
    scatter = 2 * (s.best - largest) / (s.mixed + MORE);
    take_curves(&of, &s, largest, NEAR * fmax(scatter, 1), most / GRID);
    of.known = scatter <= SCATTER;
    return of;
}
