/* layer 5 (test): clocks of two taps: hulls, windows, clocks that are set. */
#include "prng.h"
#include "src/taps/clock_hull.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct clock_hull hull;
static struct prng seed;

static void setup(void)
{
    clock_hull_init(&hull);
    prng_seed(&seed, 7);
}

TestSuite(clock_hull, .init = setup);

/* A network between the taps, and what clock 2 shows. */
struct net {
    ns_t offset;      /* at time 0, ns */
    double skew;      /* ns in a ns */
    ns_t forth, back; /* least delays */
    ns_t queue;       /* of either direction, at most */
};

/* A packet that passes its first tap at true time `t`, which is that of clock 1. */
static void packet(const struct net *n, ns_t t, bool forward)
{
    ns_t delay = (forward ? n->forth : n->back) + (n->queue ? (ns_t)(prng_next(&seed) % (uint64_t)n->queue) : 0);
    ns_t at1 = forward ? t : t + delay, at2 = forward ? t + delay : t;

    clock_hull_add(&hull, at1, at2 + n->offset + (ns_t)(n->skew * (double)at2), forward);
}

static void talk(const struct net *n, ns_t from, ns_t to, ns_t gap)
{
    for (ns_t t = from; t < to; t += gap) {
        packet(n, t, true);
        packet(n, t + gap / 2, false);
    }
}

/* The offset found is within its bound of the true one. Returns how far off it is. */
static ns_t close_to(const struct net *n, ns_t t)
{
    struct clock_estimate e = clock_hull_at(&hull, t);
    ns_t truth = n->offset + (ns_t)(n->skew * (double)t);

    cr_assert(e.known);
    cr_assert_leq(llabs(e.offset - truth), e.bound + 2, "%lld, not %lld +- %lld", (long long)e.offset, (long long)truth,
                  (long long)e.bound);
    return llabs(e.offset - truth);
}

Test(clock_hull, equal_delays_give_the_offset_and_the_drift)
{
    const struct net n = {.offset = 5 * NS_PER_MS, .skew = 20e-6, .forth = 3000, .back = 3000};
    struct clock_estimate e;

    talk(&n, 0, 10 * NS_PER_MS, 2 * NS_PER_US);
    e = clock_hull_at(&hull, 5 * NS_PER_MS);
    cr_assert_leq(close_to(&n, 5 * NS_PER_MS), 2);
    cr_assert_float_eq(e.skew_ppm, 20, 0.5);
    cr_assert_leq(e.bound, 3010);
    cr_assert_geq(e.bound, 2999);
}

Test(clock_hull, queues_do_not_matter)
{
    const struct net n = {.offset = 5 * NS_PER_MS, .skew = 20e-6, .forth = 3000, .back = 3000, .queue = 50000};

    talk(&n, 0, 50 * NS_PER_MS, 2 * NS_PER_US);
    cr_assert_leq(close_to(&n, 25 * NS_PER_MS), 1000);
}

Test(clock_hull, a_queue_that_fills_in_one_direction_is_no_drift)
{
    struct net n = {.offset = 5 * NS_PER_MS, .skew = 20e-6, .forth = 3000, .back = 3000};

    for (ns_t t = 0; t < 18 * NS_PER_MS; t += 4 * NS_PER_US) {
        n.forth = 3000 + t / 100; /* as fast as it is sent, minus one percent */
        packet(&n, t, true);
        packet(&n, t + NS_PER_US, false);
    }
    cr_assert_leq(close_to(&n, 9 * NS_PER_MS), 1000);
    cr_assert_float_eq(clock_hull_at(&hull, 9 * NS_PER_MS).skew_ppm, 20, 1);
}

Test(clock_hull, delays_that_differ_shift_the_offset_by_half_the_difference)
{
    const struct net n = {.offset = 5 * NS_PER_MS, .skew = 20e-6, .forth = 13000, .back = 3000};

    talk(&n, 0, 10 * NS_PER_MS, 2 * NS_PER_US);
    cr_assert_leq(llabs(close_to(&n, 5 * NS_PER_MS) - 5000), 10);
}

Test(clock_hull, random_networks_stay_within_the_bound)
{
    for (unsigned i = 0; i < 200; i++) {
        struct net n = {.offset = (ns_t)(prng_next(&seed) % 2000000000) - NS_PER_S,
                        .skew = ((double)(prng_next(&seed) % 200) - 100) / 1e6,
                        .forth = (ns_t)(prng_next(&seed) % 20000),
                        .back = (ns_t)(prng_next(&seed) % 20000),
                        .queue = (ns_t)(prng_next(&seed) % 100000)};
        clock_hull_init(&hull);
        talk(&n, 0, 100 * NS_PER_MS, 40 * NS_PER_US);
        for (ns_t t = 0; t <= 100 * NS_PER_MS; t += 10 * NS_PER_MS)
            close_to(&n, t);
        cr_assert_eq(hull.steps, 0);
    }
}

Test(clock_hull, one_direction_is_not_enough)
{
    const struct net n = {.offset = 1000, .forth = 3000, .back = 3000};

    for (ns_t t = 0; t < 100000; t += 100)
        packet(&n, t, true);
    cr_assert_not(clock_hull_at(&hull, 500).known);
    for (unsigned i = 0; i < CLOCK_PAIRS_MIN - 1; i++)
        packet(&n, 1000 * i, false);
    cr_assert_not(clock_hull_at(&hull, 500).known, "one pair too few in the other direction");
    packet(&n, 90000, false);
    cr_assert(clock_hull_at(&hull, 500).known);
}

Test(clock_hull, a_clock_that_is_set_begins_a_window)
{
    const ns_t steps[] = {-3 * NS_PER_MS, 3 * NS_PER_MS};

    for (unsigned i = 0; i < 2; i++) {
        struct net n = {.offset = NS_PER_MS, .skew = 10e-6, .forth = 3000, .back = 3000, .queue = 5000};
        struct net after = n;
        clock_hull_init(&hull);
        after.offset += steps[i];
        talk(&n, 0, 100 * NS_PER_MS, 10 * NS_PER_US);
        talk(&after, 100 * NS_PER_MS, 200 * NS_PER_MS, 10 * NS_PER_US);
        cr_assert_eq(hull.steps, 1);
        close_to(&n, 50 * NS_PER_MS);
        close_to(&n, 90 * NS_PER_MS);
        close_to(&after, 110 * NS_PER_MS);
        close_to(&after, 150 * NS_PER_MS);
    }
}

Test(clock_hull, single_wrong_pairs_are_dropped)
{
    const struct net n = {.offset = 7000, .forth = 3000, .back = 3000}, wrong = {.offset = -900000};

    for (unsigned i = 0; i < 20; i++) {
        talk(&n, i * NS_PER_MS, (i + 1) * NS_PER_MS, 20 * NS_PER_US);
        packet(&wrong, (i + 1) * NS_PER_MS - 1, true);
    }
    talk(&n, 20 * NS_PER_MS, 21 * NS_PER_MS, 20 * NS_PER_US);
    cr_assert_eq(hull.steps, 0);
    cr_assert_eq(hull.dropped, 20);
    cr_assert_leq(close_to(&n, 10 * NS_PER_MS), 2);
}

Test(clock_hull, drift_that_changes_is_followed_by_windows)
{
    struct net n = {.offset = 0, .forth = 3000, .back = 3000, .queue = 2000};

    for (ns_t t = 0; t < 100 * NS_PER_S; t += 10 * NS_PER_MS) {
        n.offset = (ns_t)(20e-6 * (double)t * (double)t / 2 / (100.0 * 1e9)); /* 0 to 20 ppm in 100 s */
        packet(&n, t, true);
        packet(&n, t + NS_PER_MS, false);
    }
    cr_assert_geq(hull.n, 8);
    for (ns_t t = 5 * NS_PER_S; t < 95 * NS_PER_S; t += 5 * NS_PER_S) {
        n.offset = (ns_t)(20e-6 * (double)t * (double)t / 2 / (100.0 * 1e9));
        cr_assert_leq(close_to(&n, t), 5000);
    }
}

Test(clock_hull, memory_is_bounded_over_days)
{
    struct net n = {.offset = 12345, .forth = 3000, .back = 3000, .queue = 20000};

    talk(&n, 0, 40000 * NS_PER_S, 200 * NS_PER_MS);
    cr_assert_leq(hull.n, CLOCK_WINDOWS);
    cr_assert_leq(hull.side[0].n, CLOCK_HULL_POINTS);
    cr_assert_leq(hull.side[1].n, CLOCK_HULL_POINTS);
    cr_assert_gt(hull.length, 10 * NS_PER_S);
    close_to(&n, 20000 * NS_PER_S);
}
