/* layer 5 (test): marks between two taps: the sample that is kept, and the curve that is fitted. */
#include "prng.h"
#include "src/taps/marking.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#define POINTS 20000

static struct marking sample;

static void teardown(void)
{
    free(sample.of);
}

TestSuite(marking, .fini = teardown);

/* Packet number `i` at both taps, ECN-capable; marked between the two or not. */
static void add(uint32_t i, bool marked)
{
    marking_add(&sample, &(struct marking_sight){.t = {i, i + 5}, .len = 1024, .tos = {2, marked ? 3 : 2}});
}

Test(marking, few_are_kept_until_one_is_marked)
{
    for (uint32_t i = 0; i < 5 * MARKING_EARLY / 2; i++)
        add(i, false);
    cr_assert_not(sample.marked);
    cr_assert_eq(sample.n, MARKING_EARLY);
    add(5 * MARKING_EARLY / 2, true);
    cr_assert(sample.marked);
    cr_assert_eq(sample.n, MARKING_EARLY + 1);
    for (uint32_t i = 0; i < sample.n; i++) /* the latest, in their order */
        cr_assert_eq(sample.of[i].t[0], 3 * MARKING_EARLY / 2 + (ns_t)i);
}

Test(marking, a_sample_of_few_packets_begins_with_the_first)
{
    for (uint32_t i = 0; i < 10; i++)
        add(i, i == 7);
    cr_assert_eq(sample.n, 10);
    cr_assert_eq(sample.of[0].t[0], 0);
    cr_assert_eq(sample.of[9].t[0], 9);
}

Test(marking, a_full_sample_keeps_every_second_block_and_goes_on)
{
    add(0, true);
    for (uint32_t i = 1; i < 10 * MARKING_SAMPLE; i++) {
        add(i, false);
        cr_assert_leq(sample.n, MARKING_SAMPLE);
    }
    cr_assert_geq(sample.n, MARKING_SAMPLE / 2);
    cr_assert_eq(sample.thin, 4);
    for (uint32_t i = 0; i < sample.n; i++)
        cr_assert_eq(sample.of[i].t[0], i / MARKING_BLOCK * MARKING_BLOCK * 16 + i % MARKING_BLOCK);
}

Test(marking, packets_without_payload_or_ecn_are_not_kept)
{
    marking_add(&sample, &(struct marking_sight){.t = {1, 2}, .len = 0, .tos = {2, 3}});
    marking_add(&sample, &(struct marking_sight){.t = {1, 2}, .len = 8, .tos = {0, 0}});
    cr_assert_eq(sample.n, 0);
    cr_assert_not(sample.marked);
}

/* Fit the curve to packets whose delays are anywhere from 0 to `most`, marked as RED does. */
static struct marking_curve fit(double kmin, double kmax, double pmax, double most)
{
    static double x[POINTS];
    static bool marked[POINTS];
    struct prng seed;
    double likelihood;

    prng_seed(&seed, 5);
    for (unsigned i = 0; i < POINTS; i++) {
        double p;
        x[i] = (double)(prng_next(&seed) % 1000000) / 1e6 * most;
        p = x[i] <= kmin ? 0 : x[i] > kmax ? 1 : pmax * (x[i] - kmin) / (kmax - kmin);
        marked[i] = (double)(prng_next(&seed) % 1000000) / 1e6 < p;
    }
    return marking_fit(x, marked, POINTS, most, &likelihood);
}

static void is_near(const struct marking_value *v, double want, double within)
{
    cr_assert(fabs(v->is - want) <= within && v->least <= want && want <= v->most, "%g (%g to %g), not %g", v->is,
              v->least, v->most, want);
}

/* A step of the grid is 1562 ns. */
Test(marking, a_curve_with_packets_above_kmax)
{
    struct marking_curve c = fit(20000, 80000, 0.2, 100000);

    cr_assert(c.known && c.full);
    is_near(&c.kmin, 20000, 3000);
    is_near(&c.kmax, 80000, 1600);
    is_near(&c.pmax, 0.2, 0.02);
    c = fit(5000, 50000, 0.01, 100000);
    cr_assert(c.known && c.full);
    is_near(&c.kmax, 50000, 1600);
    is_near(&c.pmax, 0.01, 0.004);
}

Test(marking, without_packets_above_kmax_the_rise_is_known)
{
    struct marking_curve c = fit(20000, 150000, 0.5, 100000);

    cr_assert(c.known && !c.full);
    is_near(&c.kmin, 20000, 3000);
    is_near(&c.rise, 0.5 / 130000, 0.04 / 130000);
}

Test(marking, where_all_is_marked_at_once_pmax_is_small_or_any)
{
    struct marking_curve c = fit(30000, 30000.5, 1, 100000);

    cr_assert(c.known && c.full);
    is_near(&c.kmax, 30000, 1600);
}
