/* layer 5 (test): work requests in the order of a value: of more than there is room for, those that come first. */
#include "src/measure/wqe_sort.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define REQUESTS 1000

static void take(void *user, const char *text, size_t len)
{
    buf_mem(user, text, len);
    buf_char(user, ' ');
}

Test(wqe_sort, the_largest_of_many)
{
    static const struct meter_row row;
    const char *near;
    struct buf b = {0};
    struct wqe_sort s = {.max = 5};

    s.by = wqe_sort_column("bytes", &near);
    cr_assert_str_eq(s.by, "bytes");
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct wqe w = {.id = i + 1, .bytes = i * 37 % REQUESTS};
        char text[16];
        int n = snprintf(text, sizeof text, "%llu", (unsigned long long)w.bytes);
        wqe_sort_put(&s, &(struct wqe_row){.w = &w, .row = &row}, text, (size_t)n);
    }
    wqe_sort_end(&s, take, &b);
    cr_assert_str_eq(buf_str(&b), "999 998 997 996 995 ");
    cr_assert_eq(s.left_out, REQUESTS - 5);
    cr_assert_not(s.failed);
    wqe_sort_free(&s);
    buf_free(&b);
}
