/* layer 3 tests: what perftest's programs exchange, against the bytes that perftest 4.5 sent on Linux soft-RoCE. */
#include "gen/peers/perf.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* From a capture of ib_write_bw: the client's keys. */
#define CAPTURED                                                                                                       \
    "0000:0001:00001f:cc1722:00001681:0000564d64e21000:00:00:00:00:00:00:00:00:00:00:ff:ff:c0:a8:4d:01:00000000:"
/* From one of ib_write_bw -R, behind the BTH. */
static const uint8_t binary[PERFTEST_BINARY] = {
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x2c, 0x00, 0x36, 0x74, 0xd4, 0x00, 0x00, 0x20,
    0x23, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x55, 0xe4, 0xa3, 0xb2, 0x60, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xc0, 0xa8, 0x4d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
};

Test(perftest, keys_of_ib_write_bw_are_read_and_written)
{
    static const uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, 192, 168, 77, 1};
    struct perftest_keys k;
    char text[PERFTEST_TEXT];

    cr_assert_eq(sizeof CAPTURED, PERFTEST_TEXT);
    cr_assert(perftest_keys_get(&k, CAPTURED));
    cr_assert_eq(k.lid, 0);
    cr_assert_eq(k.out_reads, 1);
    cr_assert_eq(k.qpn, 0x1f);
    cr_assert_eq(k.psn, 0xcc1722);
    cr_assert_eq(k.rkey, 0x1681);
    cr_assert_eq(k.vaddr, 0x564d64e21000);
    cr_assert_arr_eq(k.gid, gid, 16);
    cr_assert_eq(k.srqn, 0);
    perftest_keys_put(text, &k);
    cr_assert_str_eq(text, CAPTURED);
}

Test(perftest, keys_over_rdma_are_read_and_written)
{
    struct perftest_keys k;
    uint8_t again[PERFTEST_BINARY];

    perftest_keys_get_binary(&k, binary);
    cr_assert_eq(k.out_reads, 1);
    cr_assert_eq(k.qpn, 0x2c);
    cr_assert_eq(k.rkey, 0x2023);
    cr_assert_eq(k.vaddr, UINT64_C(0x55e4a3b26000));
    cr_assert_eq(k.gid[15], 1);
    perftest_keys_put_binary(again, &k);
    /* a queue pair number follows, and the index of the GID, which concerns its sender only */
    cr_assert_arr_eq(again, binary, 48);
}

Test(perftest, keys_with_any_wrong_character_are_refused)
{
    struct perftest_keys k;
    char text[PERFTEST_TEXT];

    for (unsigned i = 0; i < PERFTEST_TEXT; i++) {
        memcpy(text, CAPTURED, sizeof text);
        text[i] = text[i] == ':' || !text[i] ? '0' : 'g';
        cr_expect_not(perftest_keys_get(&k, text), "%u", i);
        text[i] = ' ';
        cr_expect_not(perftest_keys_get(&k, text), "%u", i);
        text[i] = (char)0xb0;
        cr_expect_not(perftest_keys_get(&k, text), "%u", i);
    }
}

Test(perftest, random_bytes_do_no_harm)
{
    char text[PERFTEST_TEXT];
    uint8_t back[PERFTEST_BINARY];
    struct perftest_keys k;
    struct perftest_mark mark;

    srand(1);
    for (unsigned n = 0; n < 20000; n++) {
        memcpy(text, CAPTURED, sizeof text);
        for (unsigned i = n % 8 ? (unsigned)rand() % PERFTEST_TEXT : 0; i < PERFTEST_TEXT;
             i += n % 8 ? PERFTEST_TEXT : 1)
            text[i] = (char)rand();
        if (perftest_keys_get(&k, text)) {
            char again[PERFTEST_TEXT];
            perftest_keys_put(again, &k);
            cr_assert_eq(strcasecmp(again, text), 0);
        }
        perftest_keys_get_binary(&k, (const uint8_t *)text);
        cr_assert(k.qpn <= 0xffffff && k.psn <= 0xffffff);
        perftest_keys_put_binary(back, &k);
        perftest_version_get((const uint8_t *)text, &mark);
        cr_assert(perftest_mtu_get((const uint8_t *)text) <= 4096);
    }
}

Test(perftest, versions_from_5_70_on_are_understood)
{
    static const uint8_t captured[PERFTEST_VERSION] = "6.06";
    struct perftest_mark m;
    uint8_t v[PERFTEST_VERSION];

    cr_assert(perftest_version_get(captured, &m));
    cr_assert(!m.ours && !m.latency && m.op == -1 && m.size == 0);
    perftest_version_put(v, &(struct perftest_mark){.latency = true, .op = PERFTEST_READ, .size = 65536});
    cr_assert_arr_eq(v, captured, 5);
    cr_assert(perftest_version_get(v, &m));
    cr_assert(m.ours && m.latency && m.op == PERFTEST_READ && m.size == 65536);
    v[12] = 0xff;
    cr_assert(perftest_version_get(v, &m));
    cr_assert_eq(m.op, -1);
    perftest_version_put(v, &(struct perftest_mark){.op = -1, .size = 1 << 30});
    cr_assert(perftest_version_get(v, &m));
    cr_assert(m.ours && !m.latency && m.op == -1 && m.size == 0);
    cr_assert_not(perftest_version_get((const uint8_t *)"5.60\0\0\0\0\0\0\0\0\0\0\0", &m));
    cr_assert(perftest_version_get((const uint8_t *)"5.70\0\0\0\0\0\0\0\0\0\0\0", &m));
    cr_assert_not(perftest_version_get((const uint8_t *)"GET / HTTP/1.1\r\n", &m));
}

Test(perftest, mtus_are_codes_in_text)
{
    uint8_t p[PERFTEST_MTU];

    for (unsigned mtu = 256; mtu <= 4096; mtu *= 2) {
        perftest_mtu_put(p, (uint16_t)mtu);
        cr_assert_eq(perftest_mtu_get(p), mtu);
    }
    perftest_mtu_put(p, 1024);
    cr_assert_arr_eq(p, "3", 2); /* as captured */
    cr_assert_eq(perftest_mtu_get((const uint8_t *)"0"), 0);
    cr_assert_eq(perftest_mtu_get((const uint8_t *)"6"), 0);
}

Test(perftest, report_of_ib_write_bw_is_read_and_written)
{
    /* 5 messages of 8192 bytes: ib_write_bw printed 4.49 and 3.50 MB/s. */
    static const uint8_t captured[PERFTEST_REPORT][PERFTEST_VALUE] = {{0, 0, 0, 0, 0, 0, 0x20, 0},
                                                                      {0, 0, 0, 0, 0, 0, 0, 5},
                                                                      {0x40, 0x11, 0xf2, 0xe9, 0x9e, 0x6a, 0xe0, 0xf0},
                                                                      {0x40, 0x0b, 0xf9, 0xa5, 0x39, 0x03, 0x66, 0x9e},
                                                                      {0x3f, 0x3d, 0x55, 0x87, 0x8c, 0x8a, 0x1c, 0x89}};
    uint8_t again[PERFTEST_REPORT][PERFTEST_VALUE];
    struct perftest_report r;

    perftest_report_get(&r, captured);
    cr_assert_eq(r.size, 8192);
    cr_assert_eq(r.iters, 5);
    cr_assert_float_eq(r.peak, 4.487, 0.001);
    cr_assert_float_eq(r.average, 3.497, 0.001);
    cr_assert_float_eq(r.rate * 1e6 * 8192 / (1 << 20), r.average, 0.001); /* the three agree in their units */
    perftest_report_put(again, &r);
    cr_assert_arr_eq(again, captured, sizeof captured);
}

Test(load, pattern_notices_any_changed_byte)
{
    uint8_t p[67];

    for (size_t n = 9; n <= sizeof p; n++)
        for (size_t i = 0; i < n; i++) {
            perf_pattern(p, n, 77);
            cr_assert(perf_pattern_ok(p, n));
            p[i] ^= 1;
            cr_assert_not(perf_pattern_ok(p, n), "byte %zu of %zu", i, n);
        }
}
