/* layer 5 (test): the histogram of times. */
#include "hist.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    ns_t x = *(const ns_t *)a, y = *(const ns_t *)b;

    return x < y ? -1 : x > y;
}

Test(hist, empty_has_no_percentiles)
{
    static struct hist h;

    cr_assert_eq(hist_permille(&h, 500), 0);
}

Test(hist, small_values_are_exact)
{
    static struct hist h;

    for (ns_t v = 1; v <= 50; v++)
        hist_add(&h, v);
    cr_assert_eq(hist_permille(&h, 500), 25);
    cr_assert_eq(hist_permille(&h, 1000), 50);
    cr_assert_eq(hist_permille(&h, 1), 1);
    cr_assert_eq(h.min, 1);
    cr_assert_eq(h.max, 50);
}

Test(hist, percentiles_keep_the_stated_error)
{
    enum { N = 20000 };
    static struct hist h;
    static ns_t v[N];
    uint64_t x = 1;

    for (unsigned i = 0; i < N; i++) {
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
        v[i] = (ns_t)(x >> 20 >> (x & 31)); /* all magnitudes up to 2^44 */
        hist_add(&h, v[i]);
    }
    qsort(v, N, sizeof v[0], by_value);
    for (unsigned permille = 1; permille <= 1000; permille++) {
        ns_t want = v[(N * permille + 999) / 1000 - 1], got = hist_permille(&h, permille);
        double error = want ? (double)(got - want) / (double)want : (double)got;
        cr_assert(error <= HIST_ERROR_PERCENT / 100 && error >= -HIST_ERROR_PERCENT / 100, "%u: %lld instead of %lld",
                  permille, (long long)got, (long long)want);
    }
}

Test(hist, values_beyond_the_top_share_a_bucket)
{
    static struct hist h;

    hist_add(&h, INT64_MAX);
    hist_add(&h, -5);
    hist_add(&h, INT64_C(1) << HIST_TOP);
    cr_assert_eq(h.n, 3);
    cr_assert_eq(h.min, 0);
    cr_assert_eq(hist_permille(&h, 1000), INT64_MAX);
}
