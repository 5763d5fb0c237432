/* layer 5 (test): the reorder window. */
#include "src/trace/window.h"

#include <criterion/criterion.h>

static void put(struct window *w, ns_t ts, uint64_t number, uint32_t len)
{
    uint8_t data[4096];
    struct frame f = {.ts = ts, .has_ts = ts >= 0, .data = data, .caplen = len, .len = len, .number = number};

    memset(data, (int)number, sizeof data);
    cr_assert(window_put(w, &f));
}

Test(window, frames_come_out_by_time_with_their_own_bytes_and_numbers)
{
    static const ns_t times[] = {30, 10, 20, 40, 5, 50, 45};
    static const uint64_t order[] = {5, 2, 3, 1, 4, 7, 6};
    struct window *w = window_new();
    struct frame f;

    for (unsigned i = 0; i < ARRAY_LEN(times); i++)
        put(w, times[i], i + 1, 10 + i);
    for (unsigned i = 0; i < ARRAY_LEN(order); i++) {
        cr_assert(window_get(w, &f));
        cr_assert_eq(f.number, order[i]);
        cr_assert_eq(f.caplen, 9 + order[i]);
        cr_assert_eq(f.data[f.caplen - 1], order[i]);
    }
    cr_assert_not(window_get(w, &f));
    window_free(w);
}

Test(window, equal_and_missing_times_keep_their_order)
{
    struct window *w = window_new();
    struct frame f;

    put(w, 7, 1, 8);
    put(w, 7, 2, 8);
    put(w, -1, 3, 8); /* without a time: behind the frame before it */
    put(w, 9, 4, 8);
    put(w, 7, 5, 8);
    for (uint64_t n = 0; n < 5; n++) {
        static const uint64_t order[] = {1, 2, 3, 5, 4};
        cr_assert(window_get(w, &f));
        cr_assert_eq(f.number, order[n]);
    }
    window_free(w);
}

Test(window, a_long_run_in_order_goes_through_and_holds_a_bounded_number)
{
    struct window *w = window_new();
    struct frame f;
    uint64_t next = 1, held = 0;

    for (uint64_t n = 1; n <= 100000; n++) {
        put(w, (ns_t)n, n, n % 2 ? 100 : 4000);
        held++;
        while (window_full(w)) {
            cr_assert(window_get(w, &f));
            cr_assert_eq(f.number, next++);
            held--;
        }
        cr_assert_lt(held, WINDOW_FRAMES);
    }
    while (window_get(w, &f))
        cr_assert_eq(f.number, next++);
    cr_assert_eq(next, 100001);
    window_free(w);
}
