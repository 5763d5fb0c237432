/* layer 5 (test): one connection at several taps has one number. */
#include "src/conn/conn.h"
#include "tests/unit/mkpkt.h"
#include "tests/unit/patience.h"

#include <criterion/criterion.h>

static struct conn_table *table;

static bool has_psn(void *user, uint32_t flow, uint32_t psn)
{
    (void)user;
    (void)flow;
    return psn == 7;
}

static void setup(void)
{
    table = conn_table_new(16);
    conn_table_user(table, NULL, NULL, has_psn, NULL);
}

static void teardown(void)
{
    conn_table_free(table);
}

TestSuite(conn_taps, .init = setup, .fini = teardown);

/* The flow of a packet from host `from` to queue pair `dqpn` of host `to`, seen at interface `tap`. */
static uint32_t seen(uint16_t tap, uint8_t from, uint8_t to, uint32_t dqpn)
{
    static const uint8_t hosts[4][4] = {{0, 0, 0, 0}, {10, 0, 0, 1}, {10, 0, 0, 2}, {10, 0, 0, 3}};
    static struct frame f;
    struct pkt p = mk(OP_SEND_ONLY, 7, 0);

    f = (struct frame){.iface = tap};
    p.frame = &f;
    p.addr_len = 4;
    p.src = hosts[from];
    p.dst = hosts[to];
    p.bth.dqpn = dqpn;
    return conn_flow(table, &p);
}

static uint32_t number(uint32_t flow)
{
    return conn_flow_at(table, flow)->conn;
}

Test(conn_taps, the_same_flow_has_one_number)
{
    uint32_t a = seen(0, 1, 2, 0x11), b = seen(1, 1, 2, 0x11), other = seen(1, 1, 2, 0x12);

    cr_assert_neq(a, b);
    cr_assert_eq(number(a), 1);
    cr_assert_eq(number(b), 1);
    cr_assert_eq(number(other), 2);
    cr_assert_eq(conn_number(table), 2);
}

Test(conn_taps, directions_that_are_paired_at_one_tap_are_at_the_other)
{
    uint32_t a0 = seen(0, 1, 2, 0x11), b0 = seen(0, 2, 1, 0x21), a1 = seen(1, 1, 2, 0x11), b1 = seen(1, 2, 1, 0x21);

    cr_assert_eq(number(b1), 2, "not paired yet");
    conn_pair_by_psn(table, b0, 7);
    cr_assert_eq(number(a0), 1);
    cr_assert_eq(number(b0), 1);
    cr_assert_eq(number(a1), 1);
    cr_assert_eq(number(b1), 1);
    cr_assert_eq(conn_number(table), 1);
    conn_pair_by_psn(table, b1, 7);
    cr_assert_eq(conn_number(table), 1, "number 2 is given up once");
}

/* The ends of a connection that CM set up, at each of whose taps its own host sends first. */
Test(conn_taps, each_tap_sees_another_direction_first)
{
    static const struct conn_known k = {
        .addr = {{{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}}, {{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2}}},
        .qpn = {0x21, 0x22},
        .how = PAIR_CM};

    conn_learn(table, &k);
    uint32_t a0 = seen(0, 1, 2, 0x22), b1 = seen(1, 2, 1, 0x21);
    cr_expect_eq(number(a0), 1);
    cr_expect_eq(number(b1), 1);
    uint32_t b0 = seen(0, 2, 1, 0x21), a1 = seen(1, 1, 2, 0x22);
    cr_expect_eq(number(b0), 1);
    cr_expect_eq(number(a1), 1);
    cr_expect_eq(conn_number(table), 1);
}

Test(conn_taps, directions_that_were_numbered_apart_get_the_lower_number_everywhere)
{
    uint32_t a0 = seen(0, 1, 2, 0x11), b1 = seen(1, 2, 1, 0x12), b2 = seen(2, 2, 1, 0x12);

    cr_expect_eq(number(b1), 2, "not paired yet");
    uint32_t b0 = seen(0, 2, 1, 0x12);
    cr_expect_eq(number(b0), 2, "as at the other taps");
    conn_pair_by_psn(table, a0, 7);
    cr_expect_eq(number(a0), 1);
    cr_expect_eq(number(b0), 1);
    cr_expect_eq(number(b1), 1);
    cr_expect_eq(number(b2), 1);
    cr_expect_eq(number(seen(2, 1, 2, 0x11)), 1);
    cr_expect_eq(conn_number(table), 1);
}

Test(conn_taps, a_number_that_was_given_up_leads_to_the_one_that_remains)
{
    uint32_t a = seen(0, 1, 2, 0x11), b = seen(0, 2, 1, 0x21), c = seen(0, 1, 3, 0x11);

    cr_assert_eq(number(c), 3);
    cr_assert_eq(conn_number_now(table, 2), 2);
    conn_pair_by_psn(table, b, 7);
    cr_assert_eq(number(a), 1);
    cr_assert_eq(conn_number_now(table, 1), 1);
    cr_assert_eq(conn_number_now(table, 2), 1);
    cr_assert_eq(conn_number_now(table, 3), 3);
}

Test(conn_taps, a_number_of_tcp_is_not_given_up)
{
    uint32_t b;

    seen(0, 1, 2, 0x11);
    b = seen(0, 2, 1, 0x21);
    cr_assert_eq(number(b), 2);
    cr_assert_eq(conn_number_take(table), 3);
    conn_pair_by_psn(table, b, 7);
    cr_expect_eq(number(b), 1);
    cr_expect_eq(number(seen(0, 1, 3, 0x11)), 4);
}

Test(conn_taps, the_next_connection_gets_the_next_number)
{
    seen(0, 1, 2, 0x11);
    seen(1, 1, 2, 0x11);
    cr_assert_eq(number(seen(1, 3, 2, 0x11)), 2, "another host");
    cr_assert_eq(number(seen(0, 3, 2, 0x11)), 2);
    cr_assert_eq(conn_counts(table).conns, 2);
}

Test(conn_taps, a_tap_is_named_by_file_and_interface)
{
    static const char *const files[] = {"x/a.pcap", "b.pcap", NULL};
    struct buf b = {0};

    conn_tap_put(&b, files, 0);
    buf_char(&b, ' ');
    conn_tap_put(&b, files, 1 << 16 | 3);
    buf_char(&b, ' ');
    conn_tap_put(&b, NULL, 1 << 16 | 3);
    cr_assert_str_eq(buf_str(&b), "a.pcap:0 b.pcap:3 file 1:3");
    buf_free(&b);
}

Test(conn_taps, files_of_the_same_name_are_told_apart_by_their_folders)
{
    static const char *const files[] = {"x/1/a.pcap", "y/1/a.pcap", "2/a.pcap", "a.pcap", "aa.pcap",
                                        "2/a.pcap",   "/a",         "b/x.pcap", NULL};
    static const char *const names[] = {"x/1/a.pcap", "y/1/a.pcap", "2/a.pcap", "a.pcap",
                                        "aa.pcap",    "2/a.pcap",   "a",        "x.pcap"};

    for (uint32_t i = 0; i < ARRAY_LEN(names); i++)
        cr_assert_str_eq(conn_file_name(files, i), names[i]);
}

Test(conn_taps, each_tap_has_its_own_times_of_the_setup)
{
    struct conn_known k = {.addr = {{{[10] = 0xff, 0xff, 10, 0, 0, 1}}, {{[10] = 0xff, 0xff, 10, 0, 0, 2}}},
                           .qpn = {0x12, 0x11},
                           .how = PAIR_CM,
                           .n_setup = 1};
    uint32_t flow[3];

    for (uint16_t tap = 0; tap < 2; tap++) {
        k.setup[0] = (struct conn_setup){tap, 100 + 10 * tap, 105 + 10 * tap};
        conn_learn(table, &k);
    }
    for (uint16_t tap = 0; tap < 3; tap++)
        flow[tap] = seen(tap, 1, 2, 0x11);
    cr_expect_eq(conn_flow_at(table, flow[0])->params.req_ts, 100);
    cr_expect_eq(conn_flow_at(table, flow[0])->params.rep_ts, 105);
    cr_expect_eq(conn_flow_at(table, flow[1])->params.req_ts, 110);
    cr_expect_eq(conn_flow_at(table, flow[1])->params.rep_ts, 115);
    cr_expect_eq(conn_flow_at(table, flow[2])->params.req_ts, 0);
}

Test(conn_taps, a_connection_of_one_direction_exists)
{
    cr_expect_not(conn_exists(table, 1));
    seen(0, 1, 2, 0x11);
    cr_expect(conn_exists(table, 1));
    cr_expect_not(conn_exists(table, 2));
    cr_expect(conn_exists(table, conn_number_take(table)));
}

Test(conn_taps, flows_that_are_alike_at_all_taps_come_by_index)
{
    uint32_t of[3], other = seen(0, 1, 2, 0x12), back = seen(0, 2, 1, 0x11);

    for (uint16_t tap = 0; tap < 3; tap++)
        of[tap] = seen(tap, 1, 2, 0x11);
    for (unsigned i = 0; i < 3; i++) {
        cr_expect_eq(conn_flow_alike(table, of[i], 0), of[0]);
        cr_expect_eq(conn_flow_alike(table, of[i], of[0] + 1), of[1]);
        cr_expect_eq(conn_flow_alike(table, of[i], of[2]), of[2]);
        cr_expect_eq(conn_flow_alike(table, of[i], of[2] + 1), FLOW_NONE);
    }
    cr_expect_eq(conn_flow_alike(table, other, 0), other, "another queue pair");
    cr_expect_eq(conn_flow_alike(table, other, other + 1), FLOW_NONE);
    cr_expect_eq(conn_flow_alike(table, back, 0), back, "the other direction");
}

/* Examining all flows for each would be 10^11 comparisons. */
Test(conn_taps, flows_that_are_alike_are_found_among_many)
{
    const uint32_t pairs = 160000;
    uint32_t wrong = 0;

    hangs_after(20);
    conn_table_free(table);
    table = conn_table_new(2 * pairs);
    for (uint32_t i = 0; i < pairs; i++)
        for (uint16_t tap = 0; tap < 2; tap++)
            seen(tap, 1, 2, i + 2);
    for (uint32_t i = 0; i < 2 * pairs; i++) {
        uint32_t first = i & ~1u;
        wrong += conn_flow_alike(table, i, 0) != first || conn_flow_alike(table, i, first + 1) != first + 1 ||
                 conn_flow_alike(table, i, first + 2) != FLOW_NONE;
    }
    cr_expect_eq(wrong, 0);
}

/* --- What happens to flows, again in another table ---------------------------------------------- */

static struct conn_change told[32];
static unsigned n_told;

static void tell(void *user, const struct conn_change *c)
{
    (void)user;
    cr_assert_lt(n_told, 32);
    told[n_told++] = *c;
}

/* Tables of two processes, of which each follows one tap, and what happened in them. */
static void follow_apart(struct conn_change of[2][8], unsigned n[2])
{
    for (uint16_t tap = 0; tap < 2; tap++) {
        teardown();
        setup();
        conn_on_changed(table, tell, NULL);
        n_told = 0;
        if (tap) {
            seen(1, 3, 1, 0x31);
            seen(1, 2, 1, 0x21);
            conn_pair_by_psn(table, seen(1, 1, 2, 0x11), 7);
        } else {
            seen(0, 1, 2, 0x11);
        }
        n[tap] = n_told;
        memcpy(of[tap], told, n_told * sizeof *told);
    }
}

Test(conn_taps, flows_that_several_have_followed_get_the_numbers_of_one)
{
    uint32_t flow[2][4] = {{FLOW_NONE, FLOW_NONE, FLOW_NONE, FLOW_NONE}, {FLOW_NONE, FLOW_NONE, FLOW_NONE, FLOW_NONE}};
    uint32_t numbered[2][5];
    struct conn_change of[2][8];
    struct conn_replayed r[2];
    unsigned n[2];

    follow_apart(of, n);
    cr_assert_eq(n[0], 2, "it begins, and has a number");
    cr_assert_eq(n[1], 7, "so do three, of which two are joined");
    for (unsigned i = 0; i < 2; i++) {
        memset(numbered[i], 0xff, sizeof numbered[i]);
        r[i] = (struct conn_replayed){flow[i], 4, numbered[i], 5};
    }
    teardown();
    setup();
    cr_expect(conn_replay(table, &r[1], &of[1][0], false) && conn_replay(table, &r[1], &of[1][1], true));
    cr_expect(conn_replay(table, &r[0], &of[0][0], false) && conn_replay(table, &r[0], &of[0][1], true));
    for (unsigned i = 2; i < n[1]; i++)
        cr_expect(conn_replay(table, &r[1], &of[1][i], i % 2 || i == 6), "%u", i);
    cr_expect_eq(conn_replayed_number(table, &r[1], 1), 1);
    cr_expect_eq(conn_replayed_number(table, &r[0], 1), 2, "it began second");
    cr_expect_eq(conn_replayed_number(table, &r[1], 2), 2, "it is the other direction of that, at another tap");
    cr_expect_eq(conn_replayed_number(table, &r[1], 4), 0);
    cr_expect_eq(conn_replayed_number(table, &r[1], 5), 0);
    cr_expect_eq(conn_number(table), 2);
    cr_expect(conn_replay(table, &r[0], &of[0][1], true), "a number is given once");
    cr_expect_not(conn_replay(table, &r[0], &of[0][0], true), "a flow begins once");
    cr_expect_not(conn_replay(table, &r[0], &(struct conn_change){.what = FLOW_NUMBERED, .flow = 3}, true));
    cr_expect_not(conn_replay(table, &r[0], &(struct conn_change){.what = FLOW_NUMBERED, .number = 5}, true));
    cr_expect_not(conn_replay(table, &r[0], &(struct conn_change){.what = FLOWS_JOINED, .other = 0}, true));
    cr_expect_not(conn_replay(table, &r[0], &(struct conn_change){.what = FLOWS_JOINED, .other = 4}, true));
    cr_expect_not(conn_replay(table, &r[0], &(struct conn_change){.what = FLOW_BEGUN, .flow = 4}, true));
}

Test(conn_taps, what_was_learnt_is_discarded_at_one_tap)
{
    struct conn_known k = {.qpn = {0x11, 0x21}, .psn = {100, 200}, .pmtu = 1024, .how = PAIR_CM};
    uint32_t a;

    memcpy(k.addr[0].b, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\1", 16);
    memcpy(k.addr[1].b, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\2", 16);
    conn_learn(table, &k);
    a = seen(0, 1, 2, 0x21);
    cr_assert(conn_flow_at(table, a)->have_psn && conn_flow_at(table, a)->pmtu == 1024);
    conn_unlearn(table, a);
    cr_expect_eq(conn_flow_at(table, seen(0, 2, 1, 0x11))->paired_by, PAIR_PSN, "the other direction at this tap");
    cr_expect_not(conn_flow_at(table, seen(0, 2, 1, 0x11))->have_psn);
    cr_expect_eq(conn_flow_at(table, seen(1, 1, 2, 0x21))->paired_by, PAIR_CM, "another tap may see that connection");
    cr_expect(conn_flow_at(table, seen(1, 2, 1, 0x11))->have_psn);
}
