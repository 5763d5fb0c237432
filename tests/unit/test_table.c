/* layer 3 (measure) tests: tables in text output. */
#include "src/measure/table.h"

#include <criterion/criterion.h>
#include <stdio.h>

static const struct text_column columns[] = {
    {"conn", "conn", 0, true, 0},
    {"bytes", "bytes", 9, false, 8},
    {"lost", "lost", 1, false, 0},
    {"status", "status", 0, true, 0},
};

static struct table fitted(unsigned width)
{
    struct table t;

    table_of(&t, columns, 4);
    table_fit(&t, width);
    return t;
}

static const char *head(const struct table *t)
{
    static char text[128];
    struct buf b = {0};

    table_head(t, &b);
    snprintf(text, sizeof text, "%s", buf_str(&b));
    buf_free(&b);
    return text;
}

Test(table, titles_are_aligned_as_their_values)
{
    struct table t = fitted(0);

    cr_expect_str_eq(head(&t), "conn     bytes  lost  status\n");
}

Test(table, the_column_of_the_highest_rank_is_left_out_first)
{
    struct table t = fitted(28);

    cr_expect_eq(t.n, 4, "it fits exactly");
    t = fitted(27);
    cr_expect_str_eq(head(&t), "conn  lost  status\n");
    t = fitted(17);
    cr_expect_str_eq(head(&t), "conn  status\n");
}

Test(table, columns_of_rank_0_remain)
{
    struct table t = fitted(1);

    cr_expect_str_eq(head(&t), "conn  status\n");
}

Test(table, names_are_separated_by_commas)
{
    static struct column_names c;
    char many[3 * TABLE_COLUMNS + 2] = "";

    cr_assert(column_names_parse(&c, "ends,lost_ns"));
    cr_expect_eq(c.n, 2);
    cr_expect_str_eq(c.names[0], "ends");
    cr_expect_str_eq(c.names[1], "lost_ns");
    cr_expect_not(column_names_parse(&c, ""));
    cr_expect_not(column_names_parse(&c, "ends,"));
    cr_expect_not(column_names_parse(&c, ",ends"));
    for (unsigned i = 0; i < TABLE_COLUMNS; i++)
        strcat(many, i ? ",ab" : "ab");
    cr_expect(column_names_parse(&c, many));
    strcat(many, ",c");
    cr_expect_not(column_names_parse(&c, many));
}

Test(table, rates_have_a_unit)
{
    struct buf b = {0};

    table_rate(&b, 999);
    buf_char(&b, ' ');
    table_rate(&b, 1180000);
    cr_expect_str_eq(buf_str(&b), "999 bit/s 1.18 Mbit/s");
    buf_free(&b);
}
