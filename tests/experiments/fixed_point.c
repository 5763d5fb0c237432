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

struct fixed_point fixed_point(double link, double n, double ai, double packet)
{
    double rate = link / 8 / packet / n, low = 1e-9, high = .5;
    struct fixed_point x;

    for (unsigned i = 0; i < 200; i++) {
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
