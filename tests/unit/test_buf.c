/* layer 0 tests: text formatting and bit ranges. */
#include "bits.h"
#include "buf.h"
#include "psn.h"

#include <criterion/criterion.h>

#define EXPECT_TEXT(call, want)                                                                                        \
    do {                                                                                                               \
        struct buf b = {0};                                                                                            \
        call;                                                                                                          \
        cr_expect_str_eq(buf_str(&b), want);                                                                           \
        buf_free(&b);                                                                                                  \
    } while (0)

Test(buf, numbers)
{
    EXPECT_TEXT(buf_dec(&b, 0), "0");
    EXPECT_TEXT(buf_dec(&b, UINT64_MAX), "18446744073709551615");
    EXPECT_TEXT(buf_dec_pad(&b, 42, 5), "   42");
    EXPECT_TEXT(buf_dec0(&b, 42, 5), "00042");
    EXPECT_TEXT(buf_sdec(&b, INT64_MIN), "-9223372036854775808");
    EXPECT_TEXT(buf_0x(&b, 0x1b4, 6), "0x0001b4");
    EXPECT_TEXT(buf_hex(&b, UINT64_MAX, 1), "ffffffffffffffff");
    EXPECT_TEXT(buf_time(&b, INT64_C(1700000000000000042)), "1700000000.000000042");
    EXPECT_TEXT(buf_time(&b, -1), "-0.000000001");
    EXPECT_TEXT(buf_duration(&b, 4096), "4.096 us");
    EXPECT_TEXT(buf_duration(&b, 655360000), "655.36 ms");
    EXPECT_TEXT(buf_duration(&b, -4096), "-4.096 us");
    EXPECT_TEXT(buf_duration(&b, 0), "0 ns");
}

Test(buf, a_duration_is_rounded_to_three_digits)
{
    EXPECT_TEXT(buf_rounded(&b, 0), "0 ns");
    EXPECT_TEXT(buf_rounded(&b, 999), "999 ns");
    EXPECT_TEXT(buf_rounded(&b, 4096), "4.1 us");
    EXPECT_TEXT(buf_rounded(&b, -4096), "-4.1 us");
    EXPECT_TEXT(buf_rounded(&b, 2125), "2.12 us");
    EXPECT_TEXT(buf_rounded(&b, 9996), "10 us");
    EXPECT_TEXT(buf_rounded(&b, 1050001), "1.05 ms");
    EXPECT_TEXT(buf_seconds(&b, 1234567899), "1.234568");
    EXPECT_TEXT(buf_seconds(&b, -1500), "-0.000002");
    EXPECT_TEXT(buf_rounded(&b, 67108864), "67.1 ms");
    EXPECT_TEXT(buf_rounded(&b, 2 * NS_PER_MS), "2 ms");
    EXPECT_TEXT(buf_rounded(&b, 999499), "999 us");
    EXPECT_TEXT(buf_rounded(&b, 999600), "1 ms");
    EXPECT_TEXT(buf_rounded(&b, 999600 * NS_PER_US), "1 s");
    EXPECT_TEXT(buf_rounded(&b, 999600 * NS_PER_MS), "1000 s");
    EXPECT_TEXT(buf_rounded(&b, 86400 * NS_PER_S), "86400 s");
    EXPECT_TEXT(buf_rounded(&b, -67108864), "-67.1 ms");
}

Test(buf, ipv6_follows_rfc_5952)
{
    /* Section 4.2: longest run, first of equals, no "::" for a single group. */
    EXPECT_TEXT(buf_ipv6(&b, (const uint8_t[16]){0x20, 1, 0xd, 0xb8, [15] = 1}), "2001:db8::1");
    EXPECT_TEXT(buf_ipv6(&b, (const uint8_t[16]){0}), "::");
    EXPECT_TEXT(buf_ipv6(&b, (const uint8_t[16]){[15] = 1}), "::1");
    EXPECT_TEXT(buf_ipv6(&b, (const uint8_t[16]){0xfe, 0x80}), "fe80::");
    EXPECT_TEXT(buf_ipv6(&b, (const uint8_t[16]){0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}),
                "2001:db8:0:1:1:1:1:1");
    EXPECT_TEXT(buf_ipv6(&b, (const uint8_t[16]){0x20, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}), "2001:0:0:1::1");
    EXPECT_TEXT(buf_ipv6(&b, (const uint8_t[16]){[10] = 0xff, [11] = 0xff, 192, 168, 77, 1}), "::ffff:192.168.77.1");
}

Test(buf, a_gid_of_ipv4_is_an_ipv4_address)
{
    EXPECT_TEXT(buf_gid(&b, (const uint8_t[16]){[10] = 0xff, [11] = 0xff, 192, 168, 77, 1}), "192.168.77.1");
    EXPECT_TEXT(buf_gid(&b, (const uint8_t[16]){0xfe, 0x80, [10] = 0xff, [11] = 0xff, 1, 2, 3, 4}),
                "fe80::ffff:102:304");
}

Test(buf, one_is_singular)
{
    cr_expect_str_eq(count_str(0, "packet"), "0 packets");
    cr_expect_str_eq(count_str(1, "packet"), "1 packet");
    cr_expect_str_eq(count_str(UINT64_MAX, "RNR NAK"), "18446744073709551615 RNR NAKs");
}

Test(buf, json_is_valid_for_any_bytes)
{
    EXPECT_TEXT(buf_json(&b, "a\"\\\n\x7f", 5), "\"a\\\"\\\\\\u000a\\u007f\"");
    EXPECT_TEXT(buf_csv(&b, "a b"), "a b");
    EXPECT_TEXT(buf_csv(&b, "a, \"b\""), "\"a, \"\"b\"\"\"");
    EXPECT_TEXT(buf_json(&b, "\xff\xc3\xa9\xc0\x80", 5), "\"\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\"");
    EXPECT_TEXT(buf_printable(&b, "x\x1b[31m\xc2\x9b", 8), "x\\x1b[31m\\xc2\\x9b");
    EXPECT_TEXT(buf_printable(&b, "\xe2\x80\xaex\xe2\x80\xa6", 7), "\\xe2\\x80\\xaex\xe2\x80\xa6"); /* U+202E; U+2026 */
    EXPECT_TEXT(buf_printable(&b, "\xd8\x9cx\xd8\x9b", 5), "\\xd8\\x9cx\xd8\x9b");                  /* U+061C; U+061B */
    EXPECT_TEXT(buf_json(&b, "\xe2\x80\xaex\xc2\x9b\xf0\x9f\x98\x80", 10), "\"\\u202ex\\u009b\xf0\x9f\x98\x80\"");
    EXPECT_TEXT(buf_csv(&b, "a\x1b,\n"), "\"a\\x1b,\\x0a\"");
}

Test(bits, put_then_get_is_the_identity_and_keeps_neighbours)
{
    for (unsigned bit = 0; bit < 40; bit++)
        for (unsigned width = 1; width <= (bit % 8 ? 57 : 64); width++) {
            uint8_t p[16], q[16];
            uint64_t v = UINT64_C(0xa5c396e178d24b0f) >> (64 - width);
            memset(p, 0xff, sizeof p);
            memset(q, 0, sizeof q);
            bits_put(p, bit, width, v);
            bits_put(q, bit, width, v);
            cr_assert_eq(bits_get(p, bit, width), v);
            cr_assert_eq(bits_get(q, bit, width), v);
            for (unsigned i = 0; i < 128; i++)
                if (i < bit || i >= bit + width)
                    cr_assert(bits_get(p, i, 1) == 1 && bits_get(q, i, 1) == 0, "bit %u width %u: %u", bit, width, i);
        }
}

Test(psn, arithmetic_wraps_at_24_bits)
{
    cr_expect_eq(psn_add(0xffffff, 1), 0);
    cr_expect_eq(psn_add(0, (uint32_t)-1), 0xffffff);
    cr_expect_eq(psn_diff(0, 0xffffff), 1);
    cr_expect_eq(psn_diff(0xffffff, 0), -1);
    cr_expect_eq(psn_diff(0x800000, 0), -0x800000);
    cr_expect_eq(psn_diff(0x7fffff, 0), 0x7fffff);
    cr_expect(psn_in(1, 0xfffffe, 4));
    cr_expect_not(psn_in(2, 0xfffffe, 4));
    cr_expect_eq(psn_span(0, 1024), 1);
    cr_expect_eq(psn_span(1024, 1024), 1);
    cr_expect_eq(psn_span(1025, 1024), 2);
}

Test(psn, a_line_goes_on_over_each_wrap)
{
    struct psn_line l = {0};

    cr_expect_eq(psn_line_at(&l, 5), 5);
    cr_expect_eq(psn_line_go_on(&l, 5), 5);
    cr_expect_eq(psn_line_go_on(&l, 0xfffffe), -2);
    cr_expect_eq(l.top, 5, "a PSN before the first one");
    for (int64_t at = 0; at < 3 << PSN_BITS; at += 0x7fff01)
        cr_expect_eq(psn_line_go_on(&l, (uint32_t)(at & PSN_MASK)), at);
    cr_expect_eq(psn_line_at(&l, psn_prev((uint32_t)l.top)), l.top - 1);
    cr_expect_eq(psn_line_at(&l, psn_add((uint32_t)l.top, 9)), l.top + 9);
    l.top = 0x1fffffe;
    cr_expect_eq(psn_line_at(&l, 3), 0x2000003);
    cr_expect_eq(l.top, 0x1fffffe, "to ask does not carry it on");
}

Test(buf, paragraph_is_indented_and_broken_between_words)
{
    struct buf b = {0};

    buf_paragraph(&b, "one two three averyverylongword four", 2, 11);
    cr_expect_str_eq(buf_str(&b), "  one two\n  three\n  averyverylongword\n  four\n");
    buf_free(&b);
}

static void expect_folded(const char *text, unsigned columns, const char *want)
{
    struct buf b = {0};

    buf_fold(&b, text, strlen(text), columns);
    cr_expect_str_eq(buf_str(&b), want);
    buf_free(&b);
}

Test(buf, lines_are_folded_between_words)
{
    expect_folded("short\n\nlonger than ten\nlast", 10, "short\n\nlonger\n  than ten\nlast");
    expect_folded("    a rule of four\n", 12, "    a rule\n      of\n      four\n");
    expect_folded("one averyverylongword two\n", 10, "one\n  averyverylongword\n  two\n");
    expect_folded("ten column\n", 10, "ten column\n");
    expect_folded("trailing       \n", 10, "trailing\n");
}

Test(buf, a_folded_line_is_continued_below_its_last_column)
{
    expect_folded("  -n, --of N  how many of all of them\n", 30,
                  "  -n, --of N  how many of all\n              of them\n");
    expect_folded("                    of the list above\n", 40, "                    of the list above\n");
    expect_folded("                    of the list above them\n", 40,
                  "                    of the list above\n                    them\n");
    expect_folded("the last column  is far behind\n", 20, "the last column  is\n  far behind\n");
}

Test(buf, colours_and_bytes_of_a_character_are_no_columns)
{
    expect_folded("\033[1;31mred\033[0m \342\206\222 black\n", 11, "\033[1;31mred\033[0m \342\206\222 black\n");
    expect_folded("\033[1;31mred\033[0m \342\206\222 black\n", 10, "\033[1;31mred\033[0m \342\206\222\n  black\n");
    expect_folded("a text that is long \033[0", 12, "a text that\n  is long \033[0");
}
