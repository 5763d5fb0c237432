/* layer 2b tests: the messages of perftest with -R, as a capture of ib_write_bw has them (QPN and PSN as it printed).
 */
#include "dissect/ulp/perftest.h"

#include "tests/unit/ulp_run.h"

static const uint8_t version[16] = "6.06";
static const uint8_t keys[56] = {0,    0,    0,    0,    0,    0,    0,    1,    0,    0,    0, 2, 0,
                                 0x61, 0x67, 0x4e, 0x0c, 0xff, 0xcb, 0,    0x0a, 0x7f, 0,    0, 0, 0,
                                 0x55, 0x77, 0x02, 0xfa, 0xe3, 0x88, 0x52, 0x54, 0,    0x77, 0, 1};

Test(ulp_perftest, one_version_tells)
{
    uint8_t b[16];

    cr_expect_eq(perftest_looks(version, 16, true), LOOKS_FIRST_EITHER, "both ends say it");
    cr_expect_eq(perftest_looks(version, 16, false), LOOKS_OTHER);
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

Test(ulp_perftest, keys_of_a_queue_pair_tell)
{
    static const unsigned zero[] = {0, 1, 4, 5, 8, 12, 48, 52}; /* in numbers of 16 or 24 bits */
    uint8_t b[56] = {0};

    cr_expect_eq(perftest_looks(keys, 56, true), LOOKS_EITHER);
    cr_expect_eq(perftest_looks(keys, 56, false), LOOKS_OTHER);
    cr_expect_eq(perftest_looks(keys, 55, true), LOOKS_OTHER);
    cr_expect_eq(perftest_looks(b, 56, true), LOOKS_OTHER, "those of no queue pair");
    for (unsigned i = 0; i < ARRAY_LEN(zero); i++) {
        memcpy(b, keys, sizeof b);
        b[zero[i]] = 1;
        cr_expect_eq(perftest_looks(b, 56, true), LOOKS_OTHER, "byte %u", zero[i]);
    }
    memcpy(b, keys, sizeof b);
    memset(b + 32, 0, 16);
    cr_expect_eq(perftest_looks(b, 56, true), LOOKS_OTHER, "a port has a LID or a GID");
    b[3] = 7;
    cr_expect_eq(perftest_looks(b, 56, true), LOOKS_EITHER);
}

/* --- Captures that begin in mid-stream -------------------------------------------------------- */

/* A message of an end, and the ACK of the other one, which has counted `n` of them. */
static struct pkt *tell(struct run *r, unsigned from, uint32_t n, const void *b, unsigned len)
{
    static struct pkt said;
    const uint8_t ack[4] = {0x1f, 0, 0, (uint8_t)n};
    uint32_t psn = from == HOST ? 100 + n : 500 + n;

    said = *put(r, from, OP_SEND_ONLY, psn, NULL, 0, b, len);
    put(r, 3 - from, OP_ACKNOWLEDGE, psn, ack, 4, NULL, 0);
    return &said;
}

static const uint8_t *keys_of(unsigned qpn)
{
    static uint8_t b[56];

    memcpy(b, keys, sizeof b);
    b[11] = (uint8_t)qpn;
    return b;
}

/* Each of the commands is of the host. */
static void are_of_host(const struct run *r, unsigned n)
{
    cr_assert_eq(r->n_over, n, "%u commands", r->n_over);
    for (unsigned i = 0; i < n; i++) {
        cr_expect_eq(r->over[i].ended, ULP_COMPLETED, "%u", i);
        cr_expect_lt(r->over[i].frame, r->over[i].response);
        cr_expect_eq(r->over[i].by_server, false);
    }
}

Test(ulp_perftest, another_message_than_the_last_one_is_of_the_client)
{
    struct run *r = run_new(NULL);

    tell(r, TARGET, 9, keys_of(2), 56); /* answers what was not captured */
    tell(r, HOST, 10, keys_of(1), 56);
    tell(r, TARGET, 10, keys_of(2), 56);
    for (unsigned i = 11; i < 16; i++) {
        tell(r, HOST, i, keys, 8);
        tell(r, TARGET, i, keys, 8);
    }
    run_end(r);
    are_of_host(r, 6);
    run_free(r);
}

Test(ulp_perftest, what_the_ends_have_counted_tells_the_client)
{
    for (unsigned first = 0; first < 2; first++) {
        struct run *r = run_new(NULL);

        if (first)
            tell(r, TARGET, 9, keys_of(2), 56);
        tell(r, HOST, 10, keys_of(1), 56);
        tell(r, TARGET, 10, keys_of(2), 56);
        tell(r, HOST, 11, keys_of(1), 56);
        tell(r, TARGET, 11, keys_of(2), 56);
        run_end(r);
        are_of_host(r, 2);
        run_free(r);
    }
}

/* Its messages are not those of a client without a response. */
Test(ulp_perftest, one_end_alone_may_be_the_client_or_the_server)
{
    struct run *r = run_new(NULL);

    for (unsigned i = 0; i < 20; i++) /* more than wait */
        put(r, TARGET, OP_SEND_ONLY, i, NULL, 0, keys_of(2), 56);
    run_end(r);
    cr_expect_eq(r->n_over, 20);
    for (unsigned i = 0; i < 20; i++)
        cr_expect(r->over[i].ended == ULP_ONE_END && r->over[i].unseen, "%u", i);
    cr_expect(strstr(buf_str(&r->text), ": not known, one end alone was captured"), "%s", buf_str(&r->text));
    run_free(r);
}

Test(ulp_perftest, a_message_that_is_none_waits_for_nothing)
{
    struct run *r = run_new(NULL);

    tell(r, HOST, 1, keys_of(1), 56);
    tell(r, TARGET, 1, keys_of(2), 56);
    for (unsigned i = 2; i < 8; i++)
        tell(r, HOST, i, keys, 33);
    run_end(r);
    cr_expect_leq(r->n_over, 1, "%u", r->n_over);
    run_free(r);
}
