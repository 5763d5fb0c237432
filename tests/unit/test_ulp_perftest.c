/* layer 1 tests: the messages of perftest with -R, as a capture of ib_write_bw has them (QPN and PSN as it printed). */
#include "dissect/ulp/perftest.h"

#include <criterion/criterion.h>

static const uint8_t version[16] = "6.06";
static const uint8_t keys[56] = {0,    0,    0,    0,    0,    0,    0,    1,    0,    0,    0, 2, 0,
                                 0x61, 0x67, 0x4e, 0x0c, 0xff, 0xcb, 0,    0x0a, 0x7f, 0,    0, 0, 0,
                                 0x55, 0x77, 0x02, 0xfa, 0xe3, 0x88, 0x52, 0x54, 0,    0x77, 0, 1};

Test(ulp_perftest, one_version_tells)
{
    uint8_t b[16];

    cr_expect_eq(perftest_looks(version, 16, true), LOOKS_FIRST);
    cr_expect_eq(perftest_looks(version, 16, false), LOOKS_OTHER);
    cr_expect_eq(perftest_looks(keys, 56, true), LOOKS_OTHER);
    for (unsigned i = 0; i < 5; i++) {
        memcpy(b, version, sizeof b);
        b[i] = 'x';
        cr_expect_eq(perftest_looks(b, 16, true), LOOKS_OTHER, "byte %u", i);
    }
}

Test(ulp_perftest, kinds_by_length_and_place)
{
    static const struct {
        uint32_t len;
        unsigned n;
        enum perftest_kind kind;
    } cases[] = {{16, 0, PERFTEST_VERSION_TEXT}, {16, 1, PERFTEST_KINDS},     {4, 0, PERFTEST_BUFFER},
                 {4, 1, PERFTEST_LINE},          {4, 2, PERFTEST_KINDS},      {2, 0, PERFTEST_MTU_CODE},
                 {56, 7, PERFTEST_KEYS},         {8, 0, PERFTEST_BYTES},      {8, 4, PERFTEST_RATE},
                 {8, 5, PERFTEST_BYTES},         {8, 6, PERFTEST_ITERATIONS}, {3, 0, PERFTEST_KINDS},
                 {0, 0, PERFTEST_KINDS}};

    for (unsigned i = 0; i < ARRAY_LEN(cases); i++)
        cr_expect_eq(perftest_kind_of(cases[i].len, cases[i].n), cases[i].kind, "%u bytes, %u", cases[i].len,
                     cases[i].n);
}

Test(ulp_perftest, values)
{
    static const uint8_t peak[8] = {0x40, 0x49, 0x77, 0xc5, 0xb8, 0x8a, 0x18, 0xcc}, codes[3][2] = {"1", "5", "7"};
    static const uint64_t mtus[3] = {256, 4096, 0};
    struct perftest_message m;
    uint8_t text[16];
    double d;

    perftest_get(&m, PERFTEST_KEYS, keys);
    cr_expect(m.qpn == 2 && m.psn == 0x61674e && m.rkey == 0x0cffcb00 && m.va == UINT64_C(0x557702fae388));
    perftest_get(&m, PERFTEST_PEAK, peak);
    memcpy(&d, &m.number, sizeof d);
    cr_expect(d > 50.93 && d < 50.94, "%g", d);
    for (unsigned i = 0; i < 3; i++) {
        perftest_get(&m, PERFTEST_MTU_CODE, codes[i]);
        cr_expect_eq(m.number, mtus[i]);
    }
    memset(text, 'v', sizeof text);
    perftest_get(&m, PERFTEST_VERSION_TEXT, text);
    cr_expect_eq(strlen(m.version), 16);
    text[3] = 0x1b; /* what no terminal should get */
    perftest_get(&m, PERFTEST_VERSION_TEXT, text);
    cr_expect_str_eq(m.version, "vvv");
}
