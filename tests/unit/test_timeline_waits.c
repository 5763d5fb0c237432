/* layer 2b (conn) tests: waits without a loss: the depth of READs, credits, slow responses; added up by hand. */
#include "tests/unit/timeline_talk.h"

Test(timeline, reads_beyond_the_depth_wait)
{
    start(); /* depth 2 */
    talk(&t, 0, 0, mk_read(100, 0, 10));
    talk(&t, 0, 0, mk_read(101, 0, 10));
    for (unsigned i = 0; i < 4; i++) {
        talk(&t, 1, 10 * US, mk_aeth(OP_READ_RESP_ONLY, 100 + i, 10, 0x1f, i + 1));
        if (i < 2)
            talk(&t, 0, 100, mk_read(102 + i, 0, 10));
    }
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_READ_DEPTH], 20 * US);
    cr_expect_eq(only_episode()->why, TROUBLE_DEPTH);
    cr_expect_eq(only_episode()->count, 2);
}

Test(timeline, a_send_beyond_the_credits_waits_from_the_first_response_on)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10)); /* no credit is known yet: one packet may be sent */
    talk(&t, 1, 10 * US, mk_ack(100, 0x01, 1));
    talk(&t, 0, 100, mk(OP_SEND_ONLY, 101, 10)); /* the credit */
    talk(&t, 0, 100, mk(OP_SEND_ONLY, 102, 10)); /* without */
    talk(&t, 1, 10 * US, mk_ack(101, 0x01, 2));
    talk(&t, 0, 100, mk(OP_SEND_ONLY, 103, 10));
    talk(&t, 1, 10 * US, mk_ack(103, 0x01, 4));
    cr_expect_eq(account()->states[TIME_CREDIT], 20 * US);
    cr_expect_eq(only_episode()->why, TROUBLE_CREDIT);
    cr_expect_eq(only_episode()->count, 2);
}

Test(timeline, the_rest_of_a_send_waits_for_the_ack_of_the_packet_sent_without_a_credit)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_FIRST, 100, 1024));
    talk(&t, 1, 10 * US, mk_ack(100, 0x00, 0)); /* no credit, but the packet arrived */
    talk(&t, 0, 100, mk(OP_SEND_LAST, 101, 10));
    talk(&t, 1, 10 * US, mk_ack(101, 0x00, 1));
    talk(&t, 0, 100, mk(OP_SEND_FIRST, 102, 1024));
    talk(&t, 1, 10 * US, mk_ack(102, 0x2c, 1)); /* RNR NAK: it waited until now */
    talk(&t, 0, 700 * US, mk(OP_SEND_FIRST, 102, 1024));
    talk(&t, 1, 10 * US, mk_ack(102, 0x01, 1));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_CREDIT], 30 * US);
    cr_expect_eq(r->states[TIME_RNR], 700 * US);
}

Test(timeline, an_msn_that_counts_later_messages_does_not_hide_a_wait_for_credits)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 10 * US, mk_ack(100, 0x01, 1));
    talk(&t, 0, 0, mk_atomic(OP_FETCH_ADD, 101, 0));
    talk(&t, 0, 0, mk_reth(OP_WRITE_ONLY, 102, 10, 0, 1, 10));
    talk(&t, 1, 10 * US, mk_aeth(OP_ATOMIC_ACKNOWLEDGE, 101, 0, 0x01, 3)); /* sent after the WRITE was executed */
    talk(&t, 0, 100, mk(OP_SEND_ONLY, 103, 10));
    talk(&t, 0, 100, mk(OP_SEND_ONLY, 104, 10));
    talk(&t, 1, 10 * US, mk_ack(103, 0x00, 4));
    talk(&t, 1, 10 * US, mk_ack(104, 0x01, 5));
    talk(&t, 0, 100, mk(OP_SEND_ONLY, 105, 10));
    talk(&t, 0, 100, mk(OP_SEND_ONLY, 106, 10));
    talk(&t, 1, 10 * US, mk_ack(106, 0x01, 7));
    cr_expect_eq(account()->states[TIME_CREDIT], 30 * US);
}

/* `n` requests, one after the other, each acknowledged after 10 us. */
static void quick(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        talk(&t, 0, US, mk(OP_SEND_ONLY, 100 + i, 10));
        talk(&t, 1, 10 * US, mk_ack(100 + i, 0x1f, i + 1));
    }
}

/* Two messages are under way at a time, so that a SEND waits for room first, and then for a credit. */
Test(timeline, a_requester_that_keeps_no_more_messages_under_way_waits_for_a_credit_only_behind_one)
{
    start();
    talk(&t, 0, 0, mk_reth(OP_WRITE_ONLY, 100, 10, 0, 1, 10));
    talk(&t, 0, 0, mk_reth(OP_WRITE_ONLY, 101, 10, 0, 1, 10));
    for (unsigned i = 0; i < 4; i++) {
        talk(&t, 1, 10 * US, mk_ack(100 + i, 0x01, i + 1));
        talk(&t, 0, 0, mk_reth(OP_WRITE_ONLY, 102 + i, 10, 0, 1, 10));
    }
    talk(&t, 1, 10 * US, mk_ack(104, 0x00, 5)); /* there is room, and no credit */
    talk(&t, 1, 10 * US, mk_ack(105, 0x01, 6));
    talk(&t, 0, 100, mk(OP_SEND_ONLY, 106, 10));
    cr_expect_eq(account()->states[TIME_CREDIT], 10 * US);
    cr_expect_eq(only_episode()->why, TROUBLE_CREDIT);
}

Test(timeline, a_wait_for_a_credit_is_none_if_the_requester_turns_out_to_keep_no_more_messages_under_way)
{
    start();
    talk(&t, 0, 0, mk_reth(OP_WRITE_ONLY, 100, 10, 0, 1, 10));
    talk(&t, 0, 0, mk_reth(OP_WRITE_ONLY, 101, 10, 0, 1, 10));
    talk(&t, 1, 10 * US, mk_ack(100, 0x01, 1));
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 102, 10));
    cr_expect_eq(only_episode()->bill, 10 * US);
    talk(&t, 1, 10 * US, mk_ack(101, 0x02, 2));
    talk(&t, 0, 0, mk_reth(OP_WRITE_ONLY, 103, 10, 0, 1, 10));
    cr_expect_eq(only_episode()->bill, 10 * US); /* held back once, which may be chance */
    talk(&t, 1, 10 * US, mk_ack(102, 0x03, 3));
    talk(&t, 0, 0, mk_reth(OP_WRITE_ONLY, 104, 10, 0, 1, 10));
    cr_expect_eq(account()->states[TIME_CREDIT], 0);
    cr_expect_eq(only_episode()->bill, 0);
}

/* The same, but each WRITE comes as soon behind the request before it as behind the response: it was not held back. */
Test(timeline, a_request_right_behind_another_one_shows_no_limit_of_messages_under_way)
{
    start();
    talk(&t, 0, 0, mk_reth(OP_WRITE_ONLY, 100, 10, 0, 1, 10));
    talk(&t, 0, 0, mk_reth(OP_WRITE_ONLY, 101, 10, 0, 1, 10));
    talk(&t, 1, 10 * US, mk_ack(100, 0x01, 1));
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 102, 10));
    for (unsigned i = 1; i < 4; i++) {
        talk(&t, 1, 0, mk_ack(100 + i, 0x01 + i, i + 1));
        talk(&t, 0, 0, mk_reth(OP_WRITE_ONLY, 102 + i, 10, 0, 1, 10));
    }
    cr_expect_eq(account()->states[TIME_CREDIT], 10 * US);
    cr_expect_eq(only_episode()->bill, 10 * US);
}

/* Messages 300 us apart use up the credits; nothing but credits comes 3 ms later, and the next message `after` them. */
static void credits_alone(ns_t after)
{
    start();
    for (unsigned i = 0; i < 12; i++) {
        talk(&t, 0, 300 * US, mk(OP_SEND_ONLY, 100 + i, 10));
        talk(&t, 1, 10 * US, mk_ack(100 + i, i < 11 ? 0x01 : 0x00, i + 1));
    }
    talk(&t, 1, 3000 * US, mk_ack(111, 0x02, 12));
    talk(&t, 0, after, mk(OP_SEND_ONLY, 112, 10));
    talk(&t, 1, 10 * US, mk_ack(112, 0x02, 13));
}

Test(timeline, messages_a_century_apart_do_not_overflow)
{
    start();
    for (unsigned i = 0; i < 12; i++) {
        talk(&t, 0, i == 1 ? 100 * YEAR : 300 * US, mk(OP_SEND_ONLY, 100 + i, 10));
        talk(&t, 1, 10 * US, mk_ack(100 + i, i < 11 ? 0x01 : 0x00, i + 1));
    }
    talk(&t, 1, 3000 * US, mk_ack(111, 0x02, 12));
    talk(&t, 0, 3 * US, mk(OP_SEND_ONLY, 112, 10));
    cr_expect_eq(account()->states[TIME_CREDIT], 0);
}

Test(timeline, who_sends_nothing_without_credits_waits_for_them_since_the_next_message_was_due)
{
    credits_alone(3 * US);
    cr_expect_eq(account()->states[TIME_CREDIT], 2700 * US);
}

Test(timeline, at_a_tap_far_from_the_requester_its_message_follows_the_credits_within_the_usual_time)
{
    credits_alone(100 * US);
    cr_expect_eq(account()->states[TIME_CREDIT], 2700 * US);
}

Test(timeline, a_message_that_comes_long_after_the_credits_did_not_wait_for_them)
{
    credits_alone(400 * US);
    cr_expect_eq(account()->states[TIME_CREDIT], 0);
}

Test(timeline, a_response_late_by_several_times_the_usual_time_is_of_a_slow_peer_since_it_was_due)
{
    start();
    quick(8);
    talk(&t, 0, US, mk(OP_SEND_ONLY, 108, 10));
    talk(&t, 1, 310 * US, mk_ack(108, 0x1f, 9));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_PEER_SLOW], 300 * US);
    cr_expect_eq(r->states[TIME_RESPONSE], 90 * US);
    cr_expect_eq(only_episode()->why, TROUBLE_SLOW);
    cr_expect(only_episode()->sent == 17 && only_episode()->answer == 18);
}

/* Ten times a SEND and a READ, 5 us later, are answered after 10 us, then after `took`. The SEND has an ACK of its own,
 * or is acknowledged by the response. */
static ns_t slow_after_a_send(bool alone, ns_t took)
{
    start();
    for (unsigned i = 0; i < 10; i++) {
        talk(&t, 0, US, mk(OP_SEND_ONLY, 100 + 2 * i, 10));
        talk(&t, 0, 5 * US, mk_read(101 + 2 * i, 0, 10));
        if (alone && i < 9)
            talk(&t, 1, 5 * US, mk_ack(100 + 2 * i, 0x1f, 1 + 2 * i));
        talk(&t, 1,
             i == 9  ? took
             : alone ? 5 * US
                     : 10 * US,
             mk_aeth(OP_READ_RESP_ONLY, 101 + 2 * i, 10, 0x1f, 2 + 2 * i));
    }
    return account()->states[TIME_PEER_SLOW];
}

Test(timeline, a_response_that_acknowledges_what_was_before_is_due_after_its_own_request)
{
    cr_expect_eq(slow_after_a_send(false, NS_PER_MS), NS_PER_MS - 10 * US);
}

Test(timeline, where_each_request_has_an_ack_a_responder_is_slow_since_that_was_due)
{
    cr_expect_gt(slow_after_a_send(true, NS_PER_MS), NS_PER_MS - 6 * US);
}

Test(timeline, a_stall_inside_the_responses_to_a_read_is_a_slow_peer)
{
    start();
    quick(8);
    talk(&t, 0, US, mk_read(108, 0, 3000));
    talk(&t, 1, 10 * US, mk_aeth(OP_READ_RESP_FIRST, 108, 1024, 0x1f, 9));
    talk(&t, 1, 300 * US, mk(OP_READ_RESP_MIDDLE, 109, 1024));
    talk(&t, 1, US, mk_aeth(OP_READ_RESP_LAST, 110, 952, 0x1f, 9));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_PEER_SLOW], 300 * US);
    cr_expect_eq(r->states[TIME_RESPONSE], 90 * US);
    cr_expect_eq(r->states[TIME_TRANSFER], US);
}

Test(timeline, of_several_outstanding_requests_the_response_is_due_after_its_own)
{
    start();
    quick(8);
    talk(&t, 0, US, mk(OP_SEND_ONLY, 108, 10));
    talk(&t, 0, 4 * US, mk(OP_SEND_ONLY, 109, 10));
    talk(&t, 1, 300 * US, mk_ack(108, 0x1f, 9)); /* due 6 us after the latest request */
    talk(&t, 1, US, mk_ack(109, 0x1f, 10));
    cr_expect_eq(account()->states[TIME_PEER_SLOW], 294 * US);
}

/* The first response of all comes after `took`; the REP came `rep` after the REQ. */
static const struct timeline_row *first_response(bool active, ns_t rep, ns_t took)
{
    struct conn_known k = {.addr = {{{[15] = 1}}, {{[15] = 2}}},
                           .qpn = {0x11, 0x11},
                           .psn = {100, 900},
                           .how = PAIR_CM,
                           .params = {{.passive = !active}},
                           .setup = {{.req_ts = NS_PER_S - rep, .rep_ts = NS_PER_S}},
                           .n_setup = 1};

    talk_start(&t, false);
    cr_assert_not_null(timeline_of(t.observer));
    conn_learn(observer_conns(t.observer), &k);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, took, mk_ack(100, 0x1f, 1));
    return account();
}

Test(timeline, the_rep_tells_how_long_the_first_response_takes)
{
    cr_expect_eq(first_response(true, 10 * US, 310 * US)->states[TIME_PEER_SLOW], 300 * US);
    talk_stop(&t);
    cr_expect_eq(first_response(true, 100 * US, 310 * US)->states[TIME_PEER_SLOW], 0);
}

Test(timeline, the_side_that_sent_the_rep_knows_nothing_from_it)
{
    cr_expect_eq(first_response(false, 10 * US, 310 * US)->states[TIME_PEER_SLOW], 0);
}

Test(timeline, the_first_response_without_a_rep_is_not_slow)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 310 * US, mk_ack(100, 0x1f, 1));
    cr_expect_eq(account()->states[TIME_PEER_SLOW], 0);
}

Test(timeline, a_late_response_after_an_rnr_wait_is_no_slow_peer)
{
    start();
    for (unsigned i = 0; i < 4; i++) {
        talk(&t, 0, US, mk(OP_SEND_ONLY, 100 + i, 10));
        talk(&t, 1, 5 * US, mk_ack(100 + i, 0x1f, i + 1));
    }
    talk(&t, 0, US, mk(OP_SEND_ONLY, 104, 10));
    talk(&t, 1, 5 * US, mk_ack(104, 0x2c, 4));
    talk(&t, 0, 700 * US, mk(OP_SEND_ONLY, 104, 10));
    talk(&t, 1, 900 * US, mk_ack(104, 0x1f, 5));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_PEER_SLOW], 0);
    cr_expect_eq(r->states[TIME_RNR], 700 * US);
}

Test(timeline, one_time_stamp_for_the_first_packets_does_not_make_later_responses_slow)
{
    start();
    for (unsigned i = 0; i < 10; i++) {
        talk(&t, 0, US, mk(OP_SEND_ONLY, 100 + i, 10));
        talk(&t, 1, i ? 100 * US + i : 1, mk_ack(100 + i, 0x1f, i + 1));
    }
    talk(&t, 0, US, mk(OP_SEND_ONLY, 110, 10));
    talk(&t, 1, 350 * US, mk_ack(110, 0x1f, 11));
    cr_expect_eq(account()->states[TIME_PEER_SLOW], 0);
}

Test(timeline, without_an_agreed_depth_reads_do_not_wait_for_it)
{
    talk_start(&t, false);
    cr_assert_not_null(timeline_of(t.observer));
    talk(&t, 1, 0, mk(OP_SEND_ONLY, 900, 10));
    talk(&t, 0, US, mk_read(100, 0, 10));
    talk(&t, 0, 0, mk_read(101, 0, 10));
    for (unsigned i = 0; i < 12; i++) {
        talk(&t, 1, 10 * US, mk_aeth(OP_READ_RESP_ONLY, 100 + i, 10, 0x1f, i + 1));
        talk(&t, 0, 100, mk_read(102 + i, 0, 10));
    }
    struct timeline *l = timeline_of(t.observer);
    timeline_end(l);
    for (size_t i = 0; i < timeline_n(l); i++)
        cr_expect_eq(timeline_row(l, i)->states[TIME_READ_DEPTH], 0);
    cr_expect_eq(timeline_episodes(l), 0);
}

Test(timeline, a_read_of_several_responses_waits_until_its_first_one)
{
    start(); /* depth 2 */
    talk(&t, 0, 0, mk_read(100, 0, 10));
    talk(&t, 0, 0, mk_read(101, 0, 2000));
    talk(&t, 1, 10 * US, mk_aeth(OP_READ_RESP_ONLY, 100, 10, 0x1f, 1));
    talk(&t, 0, 100, mk_read(103, 0, 2000));
    talk(&t, 1, 20 * US, mk_aeth(OP_READ_RESP_FIRST, 101, 1024, 0x1f, 2));
    talk(&t, 1, 100, mk_aeth(OP_READ_RESP_LAST, 102, 976, 0x1f, 2));
    talk(&t, 0, 100, mk_read(105, 0, 10));
    cr_expect_eq(account()->states[TIME_READ_DEPTH], 30 * US);
}

Test(timeline, a_message_of_another_kind_that_goes_on_tells_that_the_depth_held_back_nothing)
{
    start(); /* depth 2 */
    talk(&t, 0, 0, mk_read(100, 0, 10));
    talk(&t, 0, 0, mk_read(101, 0, 10));
    talk(&t, 0, 0, mk_reth(OP_WRITE_FIRST, 102, 1024, 0, 1, 2000));
    talk(&t, 1, 10 * US, mk_aeth(OP_READ_RESP_ONLY, 100, 10, 0x1f, 1)); /* the window was full */
    talk(&t, 0, 100, mk(OP_WRITE_LAST, 103, 976));
    talk(&t, 0, 100, mk_read(104, 0, 10));
    cr_expect_eq(account()->states[TIME_READ_DEPTH], 0);
}

Test(timeline, the_rep_tells_half_a_round_trip_better_than_responses_behind_each_other)
{
    struct conn_known k = {.addr = {{{[15] = 1}}, {{[15] = 2}}},
                           .qpn = {0x11, 0x11},
                           .psn = {100, 900},
                           .how = PAIR_CM,
                           .params = {{.have_depth = true, .depth = 1}},
                           .setup = {{.req_ts = NS_PER_S - 20 * US, .rep_ts = NS_PER_S}},
                           .n_setup = 1};

    talk_start(&t, false);
    cr_assert_not_null(timeline_of(t.observer));
    conn_learn(observer_conns(t.observer), &k);
    talk(&t, 0, 0, mk_read(100, 0, 10));
    talk(&t, 1, 60 * US, mk_aeth(OP_READ_RESP_ONLY, 100, 10, 0x1f, 1));
    talk(&t, 0, 0, mk_read(101, 0, 2000));
    talk(&t, 1, 60 * US, mk_aeth(OP_READ_RESP_FIRST, 101, 1024, 0x1f, 2));
    talk(&t, 1, 15 * US, mk_aeth(OP_READ_RESP_LAST, 102, 976, 0x1f, 2)); /* longer than half of 20 us, not of 60 us */
    talk(&t, 0, 0, mk_read(103, 0, 10));
    cr_expect_eq(account()->states[TIME_READ_DEPTH], 135 * US);
}

Test(timeline, a_tap_at_the_responder_tells_no_wait_for_the_depth)
{
    start(); /* depth 2 */
    talk(&t, 0, 0, mk_read(100, 0, 2000));
    talk(&t, 0, 0, mk_read(102, 0, 2000));
    talk(&t, 1, 0, mk_aeth(OP_READ_RESP_FIRST, 100, 1024, 0x1f, 1));
    talk(&t, 1, US, mk_aeth(OP_READ_RESP_LAST, 101, 976, 0x1f, 1));
    talk(&t, 0, US, mk_read(104, 0, 10));
    cr_expect_eq(account()->states[TIME_READ_DEPTH], 0);
}

Test(timeline, a_slow_peer_is_no_wait_for_the_depth)
{
    start(); /* depth 2 */
    talk(&t, 0, 0, mk_read(100, 0, 10));
    talk(&t, 0, 0, mk_read(101, 0, 10));
    for (unsigned i = 0; i < 12; i++) {
        talk(&t, 1, i == 9 ? 900 * US : 10 * US, mk_aeth(OP_READ_RESP_ONLY, 100 + i, 10, 0x1f, i + 1));
        talk(&t, 0, 100, mk_read(102 + i, 0, 10));
    }
    const struct timeline_row *r = account();
    cr_expect_gt(r->states[TIME_PEER_SLOW], 880 * US);
    cr_expect_leq(r->states[TIME_PEER_SLOW], 900 * US);
    cr_expect_eq(r->states[TIME_PEER_SLOW] + r->states[TIME_READ_DEPTH], 1010 * US);
}

Test(timeline, one_of_the_first_responses_is_slow_while_the_depth_is_reached)
{
    start(); /* depth 2 */
    talk(&t, 0, 0, mk_read(100, 0, 10));
    talk(&t, 0, 0, mk_read(101, 0, 10));
    for (unsigned i = 0; i < 8; i++) {
        talk(&t, 1, i == 5 ? 900 * US : 10 * US, mk_aeth(OP_READ_RESP_ONLY, 100 + i, 10, 0x1f, i + 1));
        talk(&t, 0, 100, mk_read(102 + i, 0, 10));
    }
    const struct timeline_row *r = account();
    cr_expect_gt(r->states[TIME_PEER_SLOW], 880 * US);
    cr_expect_eq(r->states[TIME_PEER_SLOW] + r->states[TIME_READ_DEPTH], 970 * US);
}

/* At a tap far from the requester: `n` READs, one at a time, each `rest` after the response before. */
static void reads_one_by_one(uint32_t psn, unsigned n, ns_t rest)
{
    for (unsigned i = 0; i < n; i++) {
        talk(&t, 0, rest, mk_read(psn + i, 0, 10));
        talk(&t, 1, 0, mk_aeth(OP_READ_RESP_ONLY, psn + i, 10, 0x1f, psn + i - 99));
    }
}

static void one_read_at_a_time(void)
{
    struct conn_known k = {.addr = {{{[15] = 1}}, {{[15] = 2}}},
                           .qpn = {0x11, 0x11},
                           .psn = {100, 900},
                           .how = PAIR_CM,
                           .params = {{.have_depth = true, .depth = 1}}};

    talk_start(&t, false);
    cr_assert_not_null(timeline_of(t.observer));
    conn_learn(observer_conns(t.observer), &k);
    talk(&t, 0, 0, mk_read(100, 0, 10));
    talk(&t, 1, US, mk_aeth(OP_READ_RESP_ONLY, 100, 10, 0x1f, 1));
}

Test(timeline, far_from_the_requester_reads_that_come_a_round_trip_after_each_response_waited)
{
    one_read_at_a_time();
    reads_one_by_one(101, 20, 500 * US);
    cr_expect_eq(account()->states[TIME_READ_DEPTH], 20 * 500 * US + US);
}

Test(timeline, far_from_the_requester_reads_that_come_far_later_than_a_round_trip_did_not_wait)
{
    one_read_at_a_time();
    reads_one_by_one(101, 2, 20 * US); /* so soon can it come */
    reads_one_by_one(103, 20, 500 * US);
    cr_expect_eq(account()->states[TIME_READ_DEPTH], 0);
}

Test(timeline, a_nak_tells_how_far_the_requester_is)
{
    one_read_at_a_time();
    reads_one_by_one(101, 6, 500 * US);
    talk(&t, 0, 500 * US, mk(OP_SEND_ONLY, 107, 10));
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 108, 10)); /* lost behind the tap */
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 109, 10));
    talk(&t, 1, US, mk_ack(108, 0x60, 8)); /* NAK, PSN sequence error */
    talk(&t, 0, 30 * US, mk(OP_SEND_ONLY, 108, 10));
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 109, 10));
    talk(&t, 1, 0, mk_ack(109, 0x1f, 10));
    reads_one_by_one(110, 20, 500 * US);
    cr_expect_eq(account()->states[TIME_READ_DEPTH], 0);
}

/* A tap at the responder: no time passes between a request and its response. `every`: between two packets. */
static const struct timeline_row *stalled_once(ns_t every, ns_t stall)
{
    start();
    for (unsigned i = 0; i < 40; i++) {
        talk(&t, 0, every, mk(OP_SEND_ONLY, 100 + i, 10));
        talk(&t, 1, i == 30 ? stall : 0, mk_ack(100 + i, 0x1f, i + 1));
    }
    return account();
}

Test(timeline, a_response_is_slow_where_others_take_no_time)
{
    cr_expect_eq(stalled_once(5 * US, 20 * NS_PER_MS)->states[TIME_PEER_SLOW], 20 * NS_PER_MS - 1);
    talk_stop(&t);
    cr_expect_eq(stalled_once(NS_PER_MS, 5 * NS_PER_MS)->states[TIME_PEER_SLOW], 0, "the clock's step is 1 ms");
    talk_stop(&t);
    cr_expect_eq(stalled_once(NS_PER_MS, 20 * NS_PER_MS)->states[TIME_PEER_SLOW], 20 * NS_PER_MS - 1);
}

Test(timeline, the_answer_to_what_was_sent_again_may_be_slow)
{
    start();
    for (unsigned i = 0; i < 20; i++) {
        talk(&t, 0, US, mk(OP_SEND_ONLY, 100 + i, 10));
        talk(&t, 1, 5 * US, mk_ack(100 + i, 0x1f, i + 1));
    }
    talk(&t, 0, US, mk(OP_SEND_ONLY, 120, 10));
    talk(&t, 1, 5 * US, mk_ack(120, 0x22, 20)); /* an RNR NAK */
    talk(&t, 0, 20 * US, mk(OP_SEND_ONLY, 120, 10));
    talk(&t, 1, 900 * US, mk_ack(120, 0x1f, 21));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_RNR], 20 * US);
    cr_expect_eq(r->states[TIME_PEER_SLOW], 895 * US);
}

Test(timeline, who_is_in_the_middle_of_a_message_is_not_idle)
{
    start();
    talk(&t, 0, 0, mk_reth(OP_WRITE_FIRST, 100, 1024, 0, 1, 3000));
    talk(&t, 1, 5 * US, mk_ack(100, 0x1f, 0));
    talk(&t, 0, 80 * US, mk(OP_WRITE_MIDDLE, 101, 1024));
    talk(&t, 0, US, mk(OP_WRITE_LAST, 102, 952));
    talk(&t, 1, 5 * US, mk_ack(102, 0x1f, 1));
    talk(&t, 0, 70 * US, mk(OP_SEND_ONLY, 103, 10));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_TRANSFER], 81 * US);
    cr_expect_eq(r->states[TIME_IDLE], 70 * US);
}
