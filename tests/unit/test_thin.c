/* layer 5 (test): series of the report keep every spike in bounded memory. */
#include "src/report/thin.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define LENGTH NS_PER_S

/* The numbers of a column, which are written as differences. Returns how many there are. */
static unsigned column(struct buf *b, const char *name, int64_t *to, unsigned max)
{
    const char *at = strstr(buf_str(b), name);
    unsigned n = 0;

    cr_assert(at, "there is no %s in %s", name, buf_str(b));
    at += strlen(name);
    for (int64_t sum = 0; *at != ']'; n++) {
        char *end;
        cr_assert(n < max);
        sum += strtoll(at, &end, 10);
        to[n] = sum;
        at = *end == ',' ? end + 1 : end;
    }
    return n;
}

Test(thin, spikes_are_kept)
{
    static int64_t t[8 * THIN_BUCKETS], v[8 * THIN_BUCKETS];
    struct thin s = {.n = 0};
    struct buf b = {0};
    unsigned n, high = 0, low = 0;

    for (unsigned i = 0; i < 1000000; i++)
        thin_add(&s, LENGTH, (struct thin_point){i * 1000, i == 123456 ? 1000 : i == 777777 ? -5 : 10, i + 1}, 0);
    thin_json(&b, &s);
    n = column(&b, "\"v\":[", v, 8 * THIN_BUCKETS);
    cr_assert_eq(column(&b, "\"t\":[", t, 8 * THIN_BUCKETS), n);
    cr_assert_leq(n, 4 * THIN_BUCKETS);
    for (unsigned i = 0; i < n; i++) {
        high += v[i] == 1000 && t[i] == 123456000;
        low += v[i] == -5 && t[i] == 777777000;
        cr_assert(!i || t[i] > t[i - 1]);
    }
    cr_assert_eq(high, 1);
    cr_assert_eq(low, 1);
    cr_assert_eq(s.n, 1000000);
    buf_free(&b);
    thin_free(&s);
}

Test(thin, events_are_kept_one_by_one_until_there_are_too_many)
{
    static int64_t f[8 * THIN_BUCKETS];
    struct thin s = {.n = 0};
    struct buf b = {0};

    for (unsigned i = 0; i < THIN_EXACT; i++)
        thin_add(&s, LENGTH, (struct thin_point){i, 7, i + 1}, THIN_EXACT);
    thin_json(&b, &s);
    cr_assert_eq(column(&b, "\"f\":[", f, ARRAY_LEN(f)), THIN_EXACT);
    for (unsigned i = 0; i < 100 * THIN_EXACT; i++)
        thin_add(&s, LENGTH, (struct thin_point){THIN_EXACT + i, 7, i + 1}, THIN_EXACT);
    b.len = 0;
    thin_json(&b, &s);
    cr_assert_leq(column(&b, "\"f\":[", f, ARRAY_LEN(f)), THIN_EXACT + 4 * THIN_BUCKETS);
    cr_assert_eq(s.n, 101 * THIN_EXACT);
    buf_free(&b);
    thin_free(&s);
}

Test(thin, times_outside_of_the_capture_are_those_of_its_ends)
{
    struct thin s = {.n = 0};
    struct buf b = {0};

    thin_add(&s, 0, (struct thin_point){-5, 1, 1}, 0);
    thin_add(&s, LENGTH, (struct thin_point){INT64_MAX, 2, 2}, 0);
    thin_json(&b, &s);
    cr_assert_str_eq(buf_str(&b), "\"n\":2,\"t\":[0,9223372036854775807],\"v\":[1,1],\"f\":[1,1]");
    buf_free(&b);
    thin_free(&s);
}
