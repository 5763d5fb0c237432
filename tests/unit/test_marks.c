/* layer 5 (test): marks of frames. */
#include "dissect/frame_fields.h"
#include "frame.h"
#include "src/show/marks.h"

#include <criterion/criterion.h>

static void add(struct marks *m, uint16_t file, uint64_t frame, const char *finding, const char *cause, uint32_t number)
{
    marks_add(m,
              &(struct pkt_mark){.file = file, .frame = frame, .finding = finding, .cause = cause, .number = number});
}

static const struct pkt_mark *of(const struct marks *m, uint16_t file, uint64_t frame, unsigned *n)
{
    return marks_of(m, &(struct frame){.file = file, .number = frame}, n);
}

Test(marks, a_frame_has_its_marks_in_order_and_each_once)
{
    struct marks m = {0};
    const struct pkt_mark *found;
    unsigned n;

    add(&m, 1, 7, NULL, "packet-loss", 2);
    add(&m, 0, 7, NULL, "rnr", 9);
    add(&m, 1, 7, "SEQ-01", NULL, 4);
    add(&m, 1, 7, NULL, "packet-loss", 2);
    add(&m, 1, 6, "ACK-01", NULL, 1);
    add(&m, 1, 7, "FMT-01", NULL, 5);
    marks_sort(&m);
    cr_expect_eq(m.n, 5, "the same mark twice is one");
    found = of(&m, 1, 7, &n);
    cr_assert_eq(n, 3);
    cr_expect_str_eq(found[0].finding, "FMT-01");
    cr_expect_str_eq(found[1].finding, "SEQ-01");
    cr_expect_str_eq(found[2].cause, "packet-loss");
    found = of(&m, 0, 7, &n);
    cr_assert_eq(n, 1);
    cr_expect_str_eq(found->cause, "rnr");
    of(&m, 0, 8, &n);
    cr_expect_eq(n, 0);
    of(&m, 2, 1, &n);
    cr_expect_eq(n, 0);
    marks_free(&m);
    of(&m, 0, 7, &n);
    cr_expect_eq(n, 0, "nothing was found");
}

Test(marks, those_beyond_the_limit_are_counted)
{
    struct marks m = {0};
    unsigned n;

    for (uint32_t i = 0; i < MARKS_MAX + 5; i++)
        add(&m, 0, i + 1, "SEQ-01", NULL, 1);
    marks_sort(&m);
    cr_expect_eq(m.n, MARKS_MAX);
    cr_expect_eq(m.left_out, 5);
    of(&m, 0, MARKS_MAX, &n);
    cr_expect_eq(n, 1);
    of(&m, 0, MARKS_MAX + 1, &n);
    cr_expect_eq(n, 0);
    marks_free(&m);
}
