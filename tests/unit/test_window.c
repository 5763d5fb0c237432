/* layer 5 (test): the reorder window. */
#include "src/cap/reorder.h"

#include <criterion/criterion.h>

static void put(struct window *w, ns_t ts, uint64_t number, uint32_t len)
{
    uint8_t data[4096];
    struct frame f = {.ts = ts, .has_ts = ts >= 0, .data = data, .caplen = len, .len = len, .number = number};

    memset(data, (int)number, sizeof data);
    cr_assert(window_put(w, &f));
    window_own(w); /* `data` ends here */
}

Test(window, frames_come_out_by_time_with_their_own_bytes_and_numbers)
{
    static const ns_t times[] = {30, 10, 20, 40, 5, 50, 45};
    static const uint64_t order[] = {5, 2, 3, 1, 4, 7, 6};
    struct window *w = window_new();
    const struct frame *f;

    for (unsigned i = 0; i < ARRAY_LEN(times); i++)
        put(w, times[i], i + 1, 10 + i);
    for (unsigned i = 0; i < ARRAY_LEN(order); i++) {
        cr_assert_not_null(f = window_get(w));
        cr_assert_eq(f->number, order[i]);
        cr_assert_eq(f->caplen, 9 + order[i]);
        cr_assert_eq(f->data[f->caplen - 1], order[i]);
    }
    cr_assert_null(window_get(w));
    window_free(w);
}

Test(window, equal_and_missing_times_keep_their_order)
{
    struct window *w = window_new();
    const struct frame *f;

    put(w, 7, 1, 8);
    put(w, 7, 2, 8);
    put(w, -1, 3, 8); /* without a time: behind the frame before it */
    put(w, 9, 4, 8);
    put(w, 7, 5, 8);
    for (uint64_t n = 0; n < 5; n++) {
        static const uint64_t order[] = {1, 2, 3, 5, 4};
        cr_assert_not_null(f = window_get(w));
        cr_assert_eq(f->number, order[n]);
    }
    window_free(w);
}

Test(window, the_order_of_the_file_is_kept_where_the_clock_of_an_interface_was_set_back)
{
    static const struct {
        ns_t ts;
        uint32_t iface;
    } in[] = {
        {NS_PER_S * 100, 0},     {NS_PER_S * 100 + 5, 1}, {NS_PER_S * 90, 0}, {NS_PER_S * 100 + 20, 1},
        {NS_PER_S * 90 + 30, 0}, {NS_PER_S * 90 + 10, 0}, {NS_PER_S * 89, 0}, {NS_PER_S * 100 + 40, 1},
    };
    static const uint64_t order[] = {1, 3, 2, 6, 4, 5, 7, 8};
    struct window *w = window_new();
    const struct frame *f;

    for (unsigned i = 0; i < ARRAY_LEN(in); i++) {
        struct frame g = {
            .ts = in[i].ts, .has_ts = true, .iface = in[i].iface, .data = (const uint8_t *)"", .number = i + 1};
        cr_assert(window_put(w, &g));
        window_own(w);
    }
    for (unsigned i = 0; i < ARRAY_LEN(order); i++) {
        cr_assert_not_null(f = window_get(w));
        cr_assert_eq(f->number, order[i], "place %u: frame %u", i, (unsigned)f->number);
    }
    window_free(w);
}

Test(window, a_long_run_in_order_goes_through_and_holds_a_bounded_number)
{
    struct window *w = window_new();
    const struct frame *f;
    uint64_t next = 1, held = 0;

    for (uint64_t n = 1; n <= 100000; n++) {
        put(w, (ns_t)n, n, n % 2 ? 100 : 4000);
        held++;
        while (window_full(w)) {
            cr_assert_not_null(f = window_get(w));
            cr_assert_eq(f->number, next++);
            held--;
        }
        cr_assert_lt(held, WINDOW_FRAMES);
    }
    while ((f = window_get(w)))
        cr_assert_eq(f->number, next++);
    cr_assert_eq(next, 100001);
    window_free(w);
}

Test(window, frames_are_not_copied_until_their_bytes_move)
{
    uint8_t bytes[3] = {1, 2, 3};
    struct window *w = window_new();
    const struct frame *f;

    for (unsigned i = 0; i < 3; i++)
        cr_assert(window_put(
            w, &(struct frame){.has_ts = true, .caplen = 1, .len = 1, .ts = i, .number = i + 1, .data = &bytes[i]}));
    cr_assert_not_null(f = window_get(w));
    cr_assert_eq(f->data, &bytes[0]);
    window_own(w);
    memset(bytes, 0xff, sizeof bytes);
    for (unsigned i = 2; i <= 3; i++) {
        cr_assert_not_null(f = window_get(w));
        cr_assert_eq(f->number, i);
        cr_assert_eq(f->data[0], i);
    }
    window_free(w);
}

Test(window, a_brief_frame_that_later_ones_overtake_is_copied)
{
    enum { FRAMES = 10 * WINDOW_FRAMES };
    uint8_t bytes[FRAMES];
    struct window *w = window_new();
    const struct frame *f = NULL;

    for (unsigned i = 0; i < FRAMES; i++) {
        bytes[i] = (uint8_t)i;
        while (window_full(w)) {
            cr_assert_not_null(f = window_get(w));
            cr_assert_eq(f->data[0], (uint8_t)(f->number - 1), "frame %u", (unsigned)f->number);
        }
        cr_assert(window_put(w, &(struct frame){.has_ts = true,
                                                .brief = true,
                                                .caplen = 1,
                                                .len = 1,
                                                .ts = i ? i : FRAMES,
                                                .number = i + 1,
                                                .data = &bytes[i]}));
        if (i > WINDOW_FRAMES + 1)
            bytes[i - WINDOW_FRAMES - 1] = 0xee; /* a reader that keeps so many frames uses the place again */
        if (i == WINDOW_FRAMES + 1)
            bytes[0] = 0xee;
    }
    while ((f = window_get(w)))
        cr_assert_eq(f->data[0], (uint8_t)(f->number - 1), "frame %u", (unsigned)f->number);
    window_free(w);
}

Test(window, large_frames_fill_it_whether_copied_or_not)
{
    static uint8_t data[FRAME_MAX];
    const struct frame f = {.data = data, .caplen = FRAME_MAX, .len = FRAME_MAX};

    for (int own = 0; own < 2; own++) {
        struct window *w = window_new();
        const struct frame *g;
        unsigned n = 0;
        for (; !window_full(w); n++) {
            cr_assert(window_put(w, &f));
            if (own)
                window_own(w);
        }
        cr_assert_eq(n, WINDOW_BYTES / FRAME_MAX + 1);
        for (; (g = window_get(w)); n--)
            cr_assert_eq(g->caplen, FRAME_MAX);
        cr_assert_eq(n, 0);
        cr_assert_not(window_full(w));
        window_free(w);
    }
}
