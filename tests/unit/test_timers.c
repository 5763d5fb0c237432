/* layer 3 tests: timers and chains, compared with looking through all. */
#include "gen/cm/multimap.h"
#include "gen/endpoint/policy.h"
#include "gen/endpoint/timers.h"

#include <criterion/criterion.h>

#define N 300

static ns_t earliest(const struct timer *x, unsigned n)
{
    ns_t best = NS_NEVER;

    for (unsigned i = 0; i < n; i++)
        if (x[i].place && x[i].when < best)
            best = x[i].when;
    return best;
}

Test(timers, the_first_is_the_earliest_of_those_that_run)
{
    static struct timer_slot heap[N + 1];
    static struct timer x[N];
    struct timers t = {.heap = heap};
    struct prng r;
    unsigned running = 0;

    prng_seed(&r, 1);
    for (unsigned i = 0; i < 20000; i++) {
        struct timer *one = &x[prng_below(&r, N)];
        bool ran = one->place != 0, stop = prng_below(&r, 3) == 0;
        if (stop)
            timer_stop(&t, one);
        else
            timer_set(&t, one, prng_below(&r, 1000));
        running += !stop - ran;
        cr_assert_eq(t.n, running);
        cr_assert_eq(one->place != 0, !stop);
        cr_assert_eq(timers_first(&t) ? timers_first(&t)->when : NS_NEVER, earliest(x, N));
    }
}

Test(chains, all_with_a_key_are_found_until_they_are_taken_out)
{
    static uint32_t key[N];
    static bool in[N];
    struct chains c;
    struct prng r;

    prng_seed(&r, 2);
    cr_assert(chains_init(&c, N));
    for (unsigned i = 0; i < 20000; i++) {
        uint32_t one = prng_below(&r, N), sought = prng_below(&r, 50) * 0x10001, want = 0, got = 0;
        if (in[one])
            chains_drop(&c, key[one], one);
        else
            chains_put(&c, key[one] = prng_below(&r, 50) * 0x10001, one);
        in[one] = !in[one];
        for (unsigned k = 0; k < N; k++)
            want += in[k] && key[k] == sought;
        for (uint32_t k = chains_first(&c, sought); k; k = chains_next(&c, k - 1))
            got += in[k - 1] && key[k - 1] == sought;
        cr_assert_eq(got, want);
    }
    chains_free(&c);
}
