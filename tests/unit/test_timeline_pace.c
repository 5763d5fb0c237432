/* layer 2b (conn) tests: requesters that CNPs slow down; added up by hand. */
#include "tests/unit/timeline_talk.h"

/* 20 packets of a WRITE of `packets`, from PSN 100 on, one each microsecond; then a CNP. */
static void write_up_to_a_cnp(unsigned packets)
{
    start();
    talk(&t, 0, 0, mk_reth(OP_WRITE_FIRST, 100, 1024, 0, 1, packets * 1024));
    for (unsigned i = 1; i < 20; i++)
        talk(&t, 0, US, mk(OP_WRITE_MIDDLE, 100 + i, 1024));
    talk(&t, 1, 0, mk_ack(110, 0x1f, 0));
    talk(&t, 1, 0, mk(OPCODE_CNP, 0, 16));
}

Test(timeline, after_a_cnp_a_wider_gap_is_throttled_but_for_the_usual_gap)
{
    write_up_to_a_cnp(40);
    for (unsigned i = 20; i < 30; i++)
        talk(&t, 0, 4 * US, mk(OP_WRITE_MIDDLE, 100 + i, 1024));
    const struct timeline_row *r = account();
    cr_expect_gt(r->states[TIME_THROTTLED], 27 * US); /* 3 us each, less an eighth of the usual gap */
    cr_expect_leq(r->states[TIME_THROTTLED], 30 * US);
    cr_expect_eq(only_episode()->why, TROUBLE_THROTTLED);
}

Test(timeline, a_short_packet_is_followed_sooner_than_a_long_one)
{
    write_up_to_a_cnp(22);
    talk(&t, 0, 4 * US, mk(OP_WRITE_MIDDLE, 120, 1024));
    talk(&t, 0, 4 * US, mk(OP_WRITE_LAST, 121, 100));
    talk(&t, 0, US / 2, mk_reth(OP_WRITE_FIRST, 122, 1024, 0, 1, 2 * 1024));
    ns_t throttled = account()->states[TIME_THROTTLED]; /* but for the sixth part of 1 us that the short packet takes */
    cr_expect_geq(throttled, 6 * US + US / 4, "%lld", (long long)throttled);
    cr_expect_lt(throttled, 6 * US + US / 2, "%lld", (long long)throttled);
}

Test(timeline, a_message_that_waited_for_a_response_is_not_throttled)
{
    start();
    for (unsigned i = 0; i < 20; i++)
        talk(&t, 0, US, mk(OP_SEND_ONLY, 100 + i, 10));
    talk(&t, 1, 0, mk_ack(105, 0x1f, 6));
    talk(&t, 1, 0, mk(OPCODE_CNP, 0, 16));
    talk(&t, 1, 50 * US, mk_ack(110, 0x1f, 11));
    talk(&t, 0, 100, mk(OP_SEND_ONLY, 120, 10));
    cr_expect_eq(account()->states[TIME_THROTTLED], 0);
}

/* The requester keeps 20 packets under way: each ACK of four brings four more. */
Test(timeline, packets_that_wait_for_responses_are_not_throttled)
{
    write_up_to_a_cnp(200);
    for (unsigned i = 20; i < 120; i += 4) {
        talk(&t, 1, 40 * US, mk_ack(90 + i, 0x1f, 0));
        for (unsigned k = 0; k < 4; k++)
            talk(&t, 0, k ? US : 0, mk(OP_WRITE_MIDDLE, 100 + i + k, 1024));
    }
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_THROTTLED], 0, "%lld", (long long)r->states[TIME_THROTTLED]);
}

/* Each second of them comes just before a packet, by chance. */
Test(timeline, responses_that_come_by_chance_before_packets_do_not_excuse_wide_gaps)
{
    write_up_to_a_cnp(200);
    for (unsigned i = 20; i < 60; i++) {
        ns_t before = i % 2 ? 200 : 2 * US;
        talk(&t, 1, 4 * US - before, mk_ack(90 + i, 0x1f, 0));
        talk(&t, 0, before, mk(OP_WRITE_MIDDLE, 100 + i, 1024));
    }
    cr_expect_gt(account()->states[TIME_THROTTLED], 100 * US);
}

Test(timeline, the_first_cnp_counts_though_nothing_else_came_from_its_sender)
{
    start();
    talk(&t, 0, 0, mk_reth(OP_WRITE_FIRST, 100, 1024, 0, 1, 100 * 1024));
    for (unsigned i = 1; i < 20; i++)
        talk(&t, 0, US, mk(OP_WRITE_MIDDLE, 100 + i, 1024));
    uint64_t first = talk(&t, 1, 0, mk(OPCODE_CNP, 0, 16));
    talk(&t, 1, 0, mk(OPCODE_CNP, 0, 16));
    for (unsigned i = 20; i < 30; i++)
        talk(&t, 0, 4 * US, mk(OP_WRITE_MIDDLE, 100 + i, 1024));
    account();
    cr_expect_eq(only_episode()->why, TROUBLE_THROTTLED);
    cr_expect_eq(only_episode()->nak, first);
    cr_expect_eq(only_episode()->count, 2);
}

/* Packets of a WRITE, of which no response came yet, are 4 us apart after a CNP for queue pair `first`, and after one
 * for `second`; then the response shows that the requester's is 0x11. */
static void two_early_cnps(uint32_t first, uint32_t second)
{
    const uint32_t qpn[] = {first, second};

    start();
    talk(&t, 0, 0, mk_reth(OP_WRITE_FIRST, 100, 1024, 0, 1, 100 * 1024));
    for (unsigned i = 1; i < 20; i++)
        talk(&t, 0, US, mk(OP_WRITE_MIDDLE, 100 + i, 1024));
    for (unsigned i = 0; i < 20; i++) {
        if (i % 10 == 0)
            talk_to(&t, 1, 0, qpn[i / 10], mk(OPCODE_CNP, 0, 16));
        talk(&t, 0, 4 * US, mk(OP_WRITE_MIDDLE, 120 + i, 1024));
    }
    talk(&t, 1, 0, mk_ack(130, 0x1f, 0));
}

Test(timeline, cnps_for_another_queue_pair_have_slowed_down_nothing)
{
    two_early_cnps(0x77, 0x77);
    cr_expect_eq(account()->states[TIME_THROTTLED], 0);
}

Test(timeline, before_the_first_cnp_for_its_queue_pair_nothing_was_throttled)
{
    two_early_cnps(0x77, 0x11);
    cr_expect_gt(account()->states[TIME_THROTTLED], 27 * US);
    cr_expect_leq(account()->states[TIME_THROTTLED], 30 * US);
    cr_expect_eq(only_episode()->count, 1);
    cr_expect_gt(only_episode()->nak, 30);
}

/* CNPs to an earlier queue pair of the same number. */
Test(timeline, a_cnp_long_before_has_slowed_down_nothing)
{
    talk_start(&t, false);
    cr_assert_not_null(timeline_of(t.observer));
    talk_to(&t, 1, 0, 0x77, mk(OPCODE_CNP, 0, 16));
    talk(&t, 1, 0, mk(OPCODE_CNP, 0, 16));
    talk(&t, 0, 200 * NS_PER_MS, mk_reth(OP_WRITE_FIRST, 100, 1024, 0, 1, 100 * 1024));
    for (unsigned i = 1; i < 20; i++)
        talk(&t, 0, US, mk(OP_WRITE_MIDDLE, 100 + i, 1024));
    talk_to(&t, 1, 0, 0x77, mk(OPCODE_CNP, 0, 16));
    for (unsigned i = 0; i < 10; i++)
        talk(&t, 0, 4 * US, mk(OP_WRITE_MIDDLE, 120 + i, 1024));
    cr_expect_eq(timeline_episodes(timeline_of(t.observer)), 1); /* it may be for this one */
    talk(&t, 1, 0, mk_ack(125, 0x1f, 0));
    cr_expect_eq(account()->states[TIME_THROTTLED], 0);
}

/* Its first CNP comes behind its first packet: how fast the host sends, another queue pair has shown. */
Test(timeline, a_cnp_behind_the_first_packet_of_a_queue_pair_counts)
{
    start();
    talk(&t, 0, 0, mk_reth(OP_WRITE_FIRST, 100, 1024, 0, 1, 100 * 1024));
    for (unsigned i = 0; i < 20; i++)
        talk_to(&t, 0, US, 0x12, mk(i ? OP_SEND_MIDDLE : OP_SEND_FIRST, 500 + i, 1024));
    talk(&t, 1, 0, mk(OPCODE_CNP, 0, 16));
    for (unsigned i = 1; i <= 10; i++)
        talk(&t, 0, 4 * US, mk(OP_WRITE_MIDDLE, 100 + i, 1024));
    ns_t throttled = account()->states[TIME_THROTTLED];
    cr_expect_geq(throttled, 28 * US, "%lld", (long long)throttled); /* 3 us each, and nothing before the CNP */
    cr_expect_leq(throttled, 32 * US, "%lld", (long long)throttled);
}

/* In an incast, hundreds of CNPs to other hosts pass before the first response. */
Test(timeline, many_cnps_for_others_do_not_hide_the_first_for_its_queue_pair)
{
    start();
    talk(&t, 0, 0, mk_reth(OP_WRITE_FIRST, 100, 1024, 0, 1, 100 * 1024));
    for (unsigned i = 1; i < 20; i++)
        talk(&t, 0, US, mk(OP_WRITE_MIDDLE, 100 + i, 1024));
    talk_to(&t, 1, 0, 0x77, mk(OPCODE_CNP, 0, 16));
    uint64_t first = talk(&t, 1, 0, mk(OPCODE_CNP, 0, 16));
    for (unsigned i = 0; i < 10; i++) {
        for (unsigned k = 0; k < 200; k++)
            talk_to(&t, 1, 0, 0x1000 + k % 50, mk(OPCODE_CNP, 0, 16));
        talk(&t, 0, 4 * US, mk(OP_WRITE_MIDDLE, 120 + i, 1024));
    }
    talk(&t, 1, 0, mk(OPCODE_CNP, 0, 16));
    talk(&t, 1, 0, mk_ack(125, 0x1f, 0));
    cr_expect_gt(account()->states[TIME_THROTTLED], 27 * US);
    cr_expect_leq(account()->states[TIME_THROTTLED], 30 * US);
    cr_expect_eq(only_episode()->count, 2);
    cr_expect_eq(only_episode()->nak, first);
}

/* There are eight times as many queue pairs as places, in no order. */
Test(timeline, of_cnps_for_too_many_queue_pairs_the_oldest_are_forgotten)
{
    const struct timeline *l = start();
    ns_t oldest = INT64_MAX;

    for (unsigned i = 0; i < 8 * EARLY_CNPS; i++)
        talk_to(&t, 1, US, (0x1000 + i * i * 977) & 0xffffff, mk(OPCODE_CNP, 0, 16));
    for (unsigned i = 0; i < EARLY_CNPS; i++)
        if (l->cnps[i].got.n && l->cnps[i].got.last < oldest)
            oldest = l->cnps[i].got.last;
    cr_expect_eq(timeline_use(l).cnps, EARLY_CNPS);
    cr_expect_lt(t.now - oldest, 4 * EARLY_CNPS * US, "%lld ns ago", (long long)(t.now - oldest));
}

/* Two packets of another queue pair, and a CNP meanwhile. `psn` is acknowledged while the port still sends the second
 * of them, and message `next` begins when that is over: as late as the pacer lets it, whose packets are 4 us apart. */
static void response_while_the_port_is_busy(uint32_t psn, uint32_t next)
{
    talk_to(&t, 0, 2000, 0x12, mk(OP_SEND_FIRST, 500, 1024));
    talk_to(&t, 0, 1100, 0x12, mk(OP_SEND_MIDDLE, 501, 1024));
    talk(&t, 1, 100, mk(OPCODE_CNP, 0, 16));
    talk(&t, 1, 100, mk_ack(psn, 0x1f, psn - 118));
    talk(&t, 0, 800, mk_reth(OP_WRITE_FIRST, next, 1024, 0, 1, 20 * 1024));
    for (unsigned i = 1; i < 4; i++)
        talk(&t, 0, 4 * US, mk(OP_WRITE_MIDDLE, next + i, 1024));
}

/* A WRITE of 20 packets, one each microsecond: the first of them `after` the packet before. */
static void write_20(uint32_t psn, ns_t after)
{
    talk(&t, 0, after, mk_reth(OP_WRITE_FIRST, psn, 1024, 0, 1, 20 * 1024));
    for (unsigned i = 1; i < 20; i++)
        talk(&t, 0, US, mk(i < 19 ? OP_WRITE_MIDDLE : OP_WRITE_LAST, psn + i, 1024));
}

/* WRITEs of one packet each: the first of them `after` the packet before. */
static void write_only(uint32_t psn, unsigned n, ns_t after)
{
    for (unsigned i = 0; i < n; i++)
        talk(&t, 0, i ? US : after, mk_reth(OP_WRITE_ONLY, psn + i, 1024, 0, 1, 1024));
}

/* One message is outstanding at a time. A response comes while the port still sends a packet of another queue pair, and
 * the next message begins when that is over: by chance as late as the pacer would have let it go. */
Test(timeline, a_packet_that_waited_for_a_response_and_then_for_the_port_was_not_throttled)
{
    start();
    write_20(100, 0);
    talk(&t, 1, 5 * US, mk_ack(119, 0x1f, 1));
    write_only(120, 1, 0);
    talk(&t, 1, 5 * US, mk_ack(120, 0x1f, 2));
    write_only(121, 1, 0);
    response_while_the_port_is_busy(121, 122);
    ns_t throttled = account()->states[TIME_THROTTLED]; /* 3 us each, but for the first */
    cr_expect_gt(throttled, 8 * US, "%lld", (long long)throttled);
    cr_expect_leq(throttled, 9 * US, "%lld", (long long)throttled);
}

/* Twice a message begins behind what was sent again for a NAK, with three outstanding: no response let it. */
Test(timeline, a_message_behind_a_retransmission_shows_no_limit_of_outstanding_messages)
{
    start();
    write_20(100, 0);
    talk(&t, 1, 5 * US, mk_ack(119, 0x1f, 1));
    for (uint32_t psn = 120; psn < 126; psn += 3) {
        write_only(psn, 2, 5 * US);
        talk(&t, 1, 3 * US, mk_ack(psn, 0x60, psn - 119));
        write_only(psn, 3, US);
        talk(&t, 1, 5 * US, mk_ack(psn + 2, 0x1f, psn - 116));
    }
    write_only(126, 4, 5 * US);
    response_while_the_port_is_busy(126, 130);
    ns_t throttled = account()->states[TIME_THROTTLED]; /* 3 us each, and 1 us before them */
    cr_expect_gt(throttled, 9 * US + US / 2, "%lld", (long long)throttled);
    cr_expect_leq(throttled, 10 * US, "%lld", (long long)throttled);
}

/* One message at a time for a while, then eight: with two outstanding, no response lets the next one go. */
Test(timeline, a_requester_may_come_to_keep_more_messages_outstanding)
{
    start();
    write_20(100, 0);
    talk(&t, 1, 5 * US, mk_ack(119, 0x1f, 1));
    write_only(120, 1, 0);
    talk(&t, 1, 5 * US, mk_ack(120, 0x1f, 2));
    write_only(121, 1, 0);
    talk(&t, 1, 5 * US, mk_ack(121, 0x1f, 3));
    write_only(122, 8, 2 * US);
    for (uint32_t psn = 122; psn < 126; psn++) {
        talk(&t, 1, 5 * US, mk_ack(psn, 0x1f, psn - 118));
        write_only(psn + 8, 1, 0);
    }
    talk(&t, 1, 5 * US, mk_ack(133, 0x1f, 15));
    write_20(134, 5 * US);
    write_only(154, 1, US);
    response_while_the_port_is_busy(153, 155);
    ns_t throttled = account()->states[TIME_THROTTLED]; /* 3 us each, and 1 us before them */
    cr_expect_gt(throttled, 9 * US + US / 2, "%lld", (long long)throttled);
    cr_expect_leq(throttled, 10 * US, "%lld", (long long)throttled);
}

/* A CNP comes before the first request, others before the first response, which counts them together: a packet that
 * comes late more than 50 ms after the first CNP is throttled. */
Test(timeline, a_cnp_before_the_first_request_does_not_make_later_ones_older)
{
    start();
    uint64_t first = talk(&t, 1, 0, mk(OPCODE_CNP, 0, 16));
    talk(&t, 0, NS_PER_MS, mk_reth(OP_WRITE_FIRST, 100, 1024, 0, 1, 100 * 1024));
    for (unsigned i = 1; i < 20; i++)
        talk(&t, 0, US, mk(OP_WRITE_MIDDLE, 100 + i, 1024));
    for (unsigned i = 0; i < 6; i++)
        talk(&t, 1, 8 * NS_PER_MS, mk(OPCODE_CNP, 0, 16));
    talk(&t, 1, US, mk_ack(119, 0x1f, 0));
    talk(&t, 0, US, mk(OP_WRITE_MIDDLE, 120, 1024));
    talk(&t, 0, 2 * NS_PER_MS, mk(OP_WRITE_MIDDLE, 121, 1024));
    talk(&t, 0, 2 * NS_PER_MS, mk(OP_WRITE_MIDDLE, 122, 1024));
    cr_expect_gt(account()->states[TIME_THROTTLED], 3900 * US);
    cr_expect_eq(only_episode()->nak, first);
    cr_expect_eq(only_episode()->count, 7);
}

/* The stamp of one CNP is 60 ms older than its frame. */
Test(timeline, a_cnp_out_of_order_does_not_end_a_series)
{
    write_up_to_a_cnp(40);
    for (unsigned i = 20; i < 30; i++) {
        ns_t back = i == 25 ? 60 * NS_PER_MS : 0;
        talk(&t, 1, 2 * US - back, mk(OPCODE_CNP, 0, 16));
        talk(&t, 0, 2 * US + back, mk(OP_WRITE_MIDDLE, 100 + i, 1024));
    }
    cr_expect_gt(account()->states[TIME_THROTTLED], 27 * US); /* 3 us each, less an eighth of the usual gap */
    cr_expect_eq(only_episode()->count, 10);                  /* the old one is of another series */
}
