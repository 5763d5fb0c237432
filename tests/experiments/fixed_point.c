/* layer 5 (test): DCQCN's fixed point, by bisection. */
#include "tests/experiments/fixed_point.h"

#include <math.h>

#define TAU  50e-6 /* s: period of CNPs */
#define K    55e-6 /* s: period of alpha */
#define T    55e-6 /* s: timer */
#define F    5
#define B    10e6 /* bytes: byte counter */
#define KMIN 5000.
#define KMAX 200000.
#define PMAX .01

/* a^2 alpha / ((b + d)(c + e)) - tau^2 R_AI R, all rates in packets/s; `bytes`: the byte counter in packets. */
static double excess(double p, double rate, double ai, double bytes)
{
    double a = -expm1(TAU * rate * log1p(-p)), alpha = -expm1(K * rate * log1p(-p));
    double b = p / expm1(-bytes * log1p(-p)), c = b * pow(1 - p, F * bytes);
    double d = p / expm1(-T * rate * log1p(-p)), e = d * pow(1 - p, F * T * rate);

    return a * a * alpha / ((b + d) * (c + e)) - TAU * TAU * ai * rate;
}

#define HALVINGS 100

struct fixed_point fixed_point(double link, double n, double ai, double packet)
{
    double rate = link / 8 / packet / n, low = 1e-9, high = .5;
    struct fixed_point x;

    for (unsigned i = 0; i < HALVINGS; i++) {
        double p = sqrt(low * high);
        if (excess(p, rate, ai / 8 / packet, B / packet) < 0)
            low = p;
        else
            high = p;
    }
    x.p = low;
    x.queue = KMIN + x.p / PMAX * (KMAX - KMIN);
    x.alpha = -expm1(K * rate * log1p(-x.p));
    x.cnps = -expm1(TAU * rate * log1p(-x.p)) / TAU;
    return x;
}

/* --- Two links in a row ----------------------------------------------------------------------- */

/* The rate at which a flow rests if so many of its packets are marked, packets/s. */
static double rate_at(double p, double ai, double bytes)
{
    double low = 1, high = 1e9;

    for (unsigned i = 0; i < HALVINGS; i++) {
        double rate = sqrt(low * high);
        if (excess(p, rate, ai, bytes) < 0)
            low = rate;
        else
            high = rate;
    }
    return low;
}

/* The share of marks at the second link which fills it, if the first one marks `first`: the more marks, the less. */
static double second_link(double first, double link, double n, double ai, double bytes)
{
    double low = 1e-7, high = .3;

    for (unsigned i = 0; i < HALVINGS; i++) {
        double p = sqrt(low * high);
        if (rate_at(1 - (1 - first) * (1 - p), ai, bytes) + n * rate_at(p, ai, bytes) > link)
            low = p;
        else
            high = p;
    }
    return low;
}

struct two_links two_links(double link, double n, double ai, double packet)
{
    double unit = 8 * packet, low = 1e-7, high = .3, p = 0, second = 0;
    struct two_links x = {0};

    for (unsigned i = 0; i < HALVINGS; i++) {
        p = sqrt(low * high);
        second = second_link(p, link / unit, n, ai / unit, B / packet);
        x.both = rate_at(1 - (1 - p) * (1 - second), ai / unit, B / packet) * unit;
        x.first = rate_at(p, ai / unit, B / packet) * unit;
        if (x.first + x.both > link)
            low = p;
        else
            high = p;
    }
    x.second = rate_at(second, ai / unit, B / packet) * unit;
    return x;
}
