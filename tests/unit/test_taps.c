/* layer 5 (test): clocks of taps from the packets that both saw. */
#include "src/taps/stamps.h"
#include "src/taps/taps.h"
#include "tests/unit/mkpkt.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct observer *observer;
static struct taps *taps;
static uint64_t number;

static void setup(void)
{
    observer = observer_new(NULL);
    taps = taps_new(observer);
}

static void teardown(void)
{
    taps_free(taps);
    observer_free(observer);
}

TestSuite(taps, .init = setup, .fini = teardown);

static const uint8_t hosts[3][4] = {{10, 0, 0, 1}, {10, 0, 0, 2}, {10, 0, 0, 3}};

/* A packet of host `from` to queue pair 0x11 of the other one of hosts 0 and 1. */
static void seen(uint16_t tap, ns_t ts, unsigned from, uint8_t opcode, uint32_t psn)
{
    struct frame f = {.iface = tap, .ts = ts, .has_ts = true, .number = ++number};
    struct pkt p = opcode == OP_ACKNOWLEDGE ? mk_ack(psn, 0, 0) : mk(opcode, psn, 64);

    p.frame = &f;
    p.addr_len = 4;
    p.src = hosts[from];
    p.dst = hosts[!from];
    p.bth.dqpn = 0x11;
    observer_packet(observer, &p);
}

/* `n` requests and their ACKs, `gap` apart; tap 1 is `offset` ahead. `lost`: each of so many requests does not reach
 * tap 1. */
static void talk(unsigned n, ns_t offset, unsigned lost)
{
    for (unsigned i = 0; i < n; i++) {
        ns_t t = 1000 * NS_PER_S + (ns_t)i * 100 * NS_PER_US + 1;
        seen(0, t, 0, OP_SEND_ONLY, i);
        if (lost && i % lost == 0)
            continue;
        seen(1, t + 3000 + offset, 0, OP_SEND_ONLY, i);
        seen(1, t + 4000 + offset, 1, OP_ACKNOWLEDGE, i);
        seen(0, t + 7000, 1, OP_ACKNOWLEDGE, i);
    }
}

Test(taps, offset_and_order_of_two_taps)
{
    struct tap_offset o, back;
    struct conn_addr a = {.b = {[10] = 0xff, 0xff, 10, 0, 0, 1}}, b = {.b = {[10] = 0xff, 0xff, 10, 0, 0, 2}};

    talk(100, 5 * NS_PER_MS, 0);
    o = taps_offset(taps, 0, 1, 1000 * NS_PER_S);
    back = taps_offset(taps, 1, 0, 1000 * NS_PER_S);
    cr_assert(o.known);
    cr_assert_leq(llabs(o.offset - 5 * NS_PER_MS), 2);
    cr_assert_leq(llabs(o.bound - 3000), 10);
    cr_assert_leq(llabs(back.offset + 5 * NS_PER_MS), 2);
    cr_assert_eq(taps_order(taps, 0, 1, &a, &b), TAPS_A_FIRST);
    cr_assert_eq(taps_order(taps, 1, 0, &a, &b), TAPS_B_FIRST);
    cr_assert_eq(taps_order(taps, 0, 1, &b, &a), TAPS_B_FIRST);
    cr_assert(taps_offset(taps, 1, 1, 0).known);
    cr_assert_not(taps_offset(taps, 0, 2, 0).known);
}

/* Four pairs in each direction are enough: the last one is that of the last two packets. */
Test(taps, the_last_packets_count)
{
    talk(4, 5 * NS_PER_MS, 0);
    taps_end(taps);
    cr_assert(taps_offset(taps, 0, 1, 1000 * NS_PER_S).known);
}

Test(taps, losses_do_not_matter)
{
    struct tap_offset o;

    talk(300, -70 * NS_PER_MS, 7);
    taps_end(taps);
    o = taps_offset(taps, 0, 1, 1000 * NS_PER_S);
    cr_assert(o.known);
    cr_assert_leq(llabs(o.offset + 70 * NS_PER_MS), 2);
    cr_assert_eq(o.steps, 0);
}

Test(taps, one_direction_is_refused)
{
    for (unsigned i = 0; i < 200; i++) {
        seen(0, i * 1000 + 1, 0, OP_SEND_ONLY, i);
        seen(1, i * 1000 + 501, 0, OP_SEND_ONLY, i);
    }
    cr_assert_not(taps_offset(taps, 0, 1, 0).known);
}

Test(taps, clocks_far_apart_are_aligned_by_a_sample)
{
    enum { N = 100000 };
    struct tap_offset o;

    for (unsigned i = 0; i < N; i++) {
        seen(0, (ns_t)i * 10000 + 1, 0, OP_SEND_ONLY, i);
        seen(0, (ns_t)i * 10000 + 7001, 1, OP_ACKNOWLEDGE, i);
    }
    for (unsigned i = 0; i < N; i++) {
        seen(1, 3600 * NS_PER_S + (ns_t)i * 10000 + 3001, 0, OP_SEND_ONLY, i);
        seen(1, 3600 * NS_PER_S + (ns_t)i * 10000 + 4001, 1, OP_ACKNOWLEDGE, i);
    }
    o = taps_offset(taps, 0, 1, NS_PER_S);
    cr_assert(o.known);
    cr_assert_leq(llabs(o.offset - 3600 * NS_PER_S), 10);
}

Test(taps, microseconds_widen_the_bound)
{
    for (unsigned i = 0; i < 100; i++) {
        ns_t t = (ns_t)i * 100 * NS_PER_US;
        seen(0, t, 0, OP_SEND_ONLY, i);
        seen(1, t + 3000, 0, OP_SEND_ONLY, i);
        seen(1, t + 4000, 1, OP_ACKNOWLEDGE, i);
        seen(0, t + 7000, 1, OP_ACKNOWLEDGE, i);
    }
    cr_assert_geq(taps_offset(taps, 0, 1, 0).bound, 3000 + 2 * 999);
}

Test(taps, an_offset_is_written_for_people)
{
    struct tap_offset o = {true, 5 * NS_PER_MS, 3000, 20.0, 0};
    struct buf b = {0};

    tap_offset_put(&b, &o);
    cr_assert_str_eq(buf_str(&b), "+5.000 ms +20.0 ppm +-3.0 us");
    o = (struct tap_offset){true, -123, 80, -0.01, 0};
    b.len = 0;
    tap_offset_put(&b, &o);
    cr_assert_str_eq(buf_str(&b), "-123 ns +0.0 ppm +-80 ns");
    o = (struct tap_offset){true, 31, 2100, CLOCK_DRIFT_PPM, 0};
    b.len = 0;
    tap_offset_put(&b, &o);
    cr_assert_str_eq(buf_str(&b), "+31 ns +-2.1 us", "the change is not known");
    buf_free(&b);
}

Test(taps, how_fine_time_stamps_are_is_known_of_each_file_though_two_are_read_together)
{
    struct stamps_table *t = calloc(1, sizeof *t);
    struct frame fine = {.ts = 1234567891, .has_ts = true}, coarse = {.ts = 5 * NS_PER_US, .has_ts = true, .file = 1};

    cr_expect_eq(stamps_step(t, &fine), 1000 * NS_PER_MS, "nothing was seen yet");
    for (int i = 0; i < 3; i++) {
        stamps_take(t, &fine);
        stamps_take(t, &coarse);
        cr_expect_eq(stamps_step(t, &fine), 0);
        cr_expect_eq(stamps_step(t, &coarse), NS_PER_US);
        coarse.ts = 7 * NS_PER_MS; /* an accident: the step stays what it was */
        fine.ts = 8 * NS_PER_MS;
    }
    fine.ts -= 1;
    cr_expect(!stamps_take(t, &fine), "the order of frames is unknown");
    coarse.ts += 1;
    cr_expect(stamps_take(t, &coarse), "that of another file is not");
    free(t);
}

Test(taps, the_beginning_and_the_end_of_a_capture_are_those_of_the_tap)
{
    struct stamps_table *t = calloc(1, sizeof *t);
    struct frame f[] = {{.ts = 100, .has_ts = true, .len = 9000},
                        {.ts = 500, .has_ts = true, .file = 1},
                        {.ts = 700, .has_ts = true, .file = 64, .len = 60},
                        {.ts = 800, .has_ts = true, .file = 2, .counts_for = (2u << 16) + 1},
                        {.ts = 900, .has_ts = true, .file = 3, .counts_for = (2u << 16) + 1},
                        {.ts = 950, .has_ts = true, .file = 2, .iface = 1, .counts_for = (2u << 16) + 1}};
    ns_t began = 0, ended = 0;

    for (unsigned i = 0; i < 4; i++)
        stamps_take(t, &f[i]);
    f[0].ts = 1000;
    stamps_take(t, &f[0]);
    cr_expect(stamps_began(t, 0, &began) && began == 100 && stamps_ended(t, 0, &ended) && ended == 1000);
    cr_expect(stamps_began(t, 1u << 16, &began) && began == 500 && stamps_ended(t, 1u << 16, &ended) && ended == 500);
    cr_expect(stamps_go_on(t, 0, 100, 900) && !stamps_go_on(t, 0, 100, 901) && !stamps_go_on(t, 1u << 16, 500, 1));
    cr_expect(!stamps_began(t, 5, &began) && !stamps_ended(t, 5, &ended) && !stamps_go_on(t, 5, 0, 0));
    cr_expect_eq(stamps_at(t, (64u << 16) + 1)->longest, 60, "file 64 does not share what is known of file 0");
    cr_expect(!stamps_began(t, 2u << 16, &began), "nothing is heard of the interface of the other direction");
    for (unsigned i = 4; i < 6; i++)
        stamps_take(t, &f[i]);
    cr_expect(stamps_began(t, 2u << 16, &began) && began == 900, "the file of the other direction began last");
    cr_expect(stamps_ended(t, 2u << 16, &ended) && ended == 950);
    free(t);
}

Test(taps, when_a_tap_of_many_interfaces_began_is_found_in_one_pass, .timeout = 60)
{
    struct stamps_table *t = calloc(1, sizeof *t);
    ns_t began = 0;

    for (uint32_t i = 0; i < STAMPS_PLACES; i++)
        stamps_take(t, &(struct frame){.ts = 100 + i, .has_ts = true, .iface = i, .counts_for = 1});
    for (unsigned i = 0; i < 200000; i++)
        cr_assert(stamps_began(t, 0, &began) && began == 100);
    free(t);
}
