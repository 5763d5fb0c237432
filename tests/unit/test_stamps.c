/* layer 3 tests: time stamps of received frames: a ring made by hand, with the interface's stamps and without; clocks
 * that have nothing in common. */
#include "gen/live/backends/be_ring.h"
#include "gen/live/clock_sync.h"

#include <criterion/criterion.h>

#define SLOT  512
#define BLOCK 2048 /* 4 slots, and two blocks */
#define SLOTS 8

static uint8_t memory[2 * BLOCK] __attribute__((aligned(16)));

static struct ring ring_of(void)
{
    return (struct ring){.mem = memory, .block = BLOCK, .slot = SLOT, .slots = SLOTS, .per_block = BLOCK / SLOT};
}

static struct tpacket2_hdr *slot_at(unsigned i)
{
    return (struct tpacket2_hdr *)(void *)(memory + i * SLOT);
}

/* As the kernel puts a frame into slot `i`. */
static void arrive(unsigned i, uint32_t status, uint32_t sec, uint32_t nsec)
{
    struct tpacket2_hdr *h = slot_at(i);

    *h = (struct tpacket2_hdr){.tp_status = TP_STATUS_USER | status,
                               .tp_len = 100,
                               .tp_snaplen = 60,
                               .tp_mac = 80,
                               .tp_sec = sec,
                               .tp_nsec = nsec};
    ((uint8_t *)h)[80] = (uint8_t)(0xa0 + i);
}

Test(stamps, a_stamp_of_the_interface_is_known_from_one_of_the_kernel)
{
    struct ring r = ring_of();
    struct backend_frame f;
    uint32_t status;

    cr_assert_null(ring_next(&r, &f, &status));
    arrive(0, TP_STATUS_TS_RAW_HARDWARE, 7, 5);
    arrive(1, TP_STATUS_TS_SOFTWARE, 1800000000, 999999999);
    arrive(2, 0, 1800000001, 0);
    cr_assert_eq(ring_next(&r, &f, &status), slot_at(0));
    cr_assert_eq(f.stamp, BACKEND_STAMPS_HARDWARE);
    cr_assert_eq(f.ts, 7 * NS_PER_S + 5);
    cr_assert_eq(f.data[0], 0xa0);
    cr_assert_eq(f.len, 60);
    cr_assert_eq(f.lost, 40);
    cr_assert_eq(ring_next(&r, &f, &status), slot_at(1));
    cr_assert_eq(f.stamp, BACKEND_STAMPS_KERNEL);
    cr_assert_eq(f.ts, 1800000000 * NS_PER_S + 999999999);
    cr_assert_eq(ring_next(&r, &f, &status), slot_at(2));
    cr_assert_eq(f.stamp, BACKEND_STAMPS_KERNEL, "no flag at all: the kernel's time");
    cr_assert_null(ring_next(&r, &f, &status));
}

Test(stamps, slots_go_back_to_the_kernel_and_round)
{
    struct ring r = ring_of();
    struct backend_frame f;
    uint32_t status;

    for (unsigned i = 0; i < 3 * SLOTS; i++) {
        arrive(i % SLOTS, i % 2 ? TP_STATUS_TS_RAW_HARDWARE : 0, i, 0);
        cr_assert_eq(ring_next(&r, &f, &status), slot_at(i % SLOTS));
        cr_assert_eq(f.ts, i * NS_PER_S);
        cr_assert_eq(f.stamp, i % 2 ? BACKEND_STAMPS_HARDWARE : BACKEND_STAMPS_KERNEL);
        cr_assert_eq(slot_at(i % SLOTS)->tp_status & TP_STATUS_USER, TP_STATUS_USER, "it is held");
        cr_assert_null(ring_next(&r, &f, &status));
        cr_assert_eq(slot_at(i % SLOTS)->tp_status, TP_STATUS_KERNEL);
    }
}

Test(stamps, a_clock_in_step_is_believed)
{
    struct stamps s = {0};
    ns_t now = 1800000000 * NS_PER_S;

    for (unsigned i = 0; i < 1000; i++, now += 3 * NS_PER_MS) {
        ns_t ts = now - 20 * NS_PER_US - i % 7 * 100 * NS_PER_US;
        ns_t t = stamps_time(&s, ts, now);
        cr_assert_eq(t, ts, "frame %u: off by %lld", i, (long long)(t - ts));
        cr_assert(stamps_in_step(&s));
    }
}

/* A clock that began with the interface, and is fast or slow by 50 parts in a million. */
Test(stamps, any_other_clock_is_brought_into_step)
{
    ns_t start = 1800000000 * NS_PER_S, drift = 2 * STAMPS_WINDOW / 20000;

    for (int sign = -1; sign <= 1; sign += 2) {
        struct stamps s = {0};
        for (unsigned i = 0; i < 20000; i++) {
            ns_t since = i * NS_PER_MS, real = start + since, ts = 100 + since + sign * since / 20000,
                 delay = (5 + i % 50) * NS_PER_US;
            ns_t t = stamps_time(&s, ts, real + delay);
            cr_assert(!stamps_in_step(&s));
            if (i > 50)
                cr_assert(t - real >= 5 * NS_PER_US - drift && t - real <= 5 * NS_PER_US + drift,
                          "frame %u: off by %lld ns", i, (long long)(t - real));
        }
    }
}

/* A clock that is slightly ahead would have frames arrive before they were sent. */
Test(stamps, a_clock_that_is_ahead_is_not_believed)
{
    struct stamps s = {0};
    ns_t now = 1800000000 * NS_PER_S;

    for (unsigned i = 0; i < 100; i++, now += NS_PER_MS) {
        ns_t t = stamps_time(&s, now + 300 * NS_PER_US, now);
        cr_assert_eq(t, now);
        cr_assert(!stamps_in_step(&s));
    }
}
