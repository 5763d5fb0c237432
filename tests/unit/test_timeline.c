/* layer 2b (conn) tests: where the time of a direction of requests went; each expectation is added up by hand. */
#include "tests/unit/timeline_talk.h"

Test(timeline, requests_and_their_responses_cost_nothing)
{
    start();
    talk(&t, 0, 0, mk_reth(OP_WRITE_FIRST, 100, 1024, 0, 1, 2000));
    talk(&t, 0, US, mk(OP_WRITE_LAST, 101, 976));
    talk(&t, 1, 7 * US, mk_ack(101, 0x1f, 1));
    talk(&t, 0, 90 * US, mk(OP_SEND_ONLY, 102, 10));
    talk(&t, 1, 7 * US, mk_ack(102, 0x1f, 2));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_TRANSFER], 1 * US);
    cr_expect_eq(r->states[TIME_RESPONSE], 14 * US);
    cr_expect_eq(r->states[TIME_IDLE], 90 * US);
    cr_expect_eq(timeline_episodes(timeline_of(t.observer)), 0);
}

Test(timeline, a_lost_request_costs_from_its_sending_until_all_is_sent_again)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 0, 2 * US, mk(OP_SEND_ONLY, 101, 10)); /* is lost behind the tap */
    talk(&t, 0, 3 * US, mk(OP_SEND_ONLY, 102, 10));
    talk(&t, 1, 5 * US, mk_ack(101, 0x60, 1));
    talk(&t, 0, 7 * US, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 0, 11 * US, mk(OP_SEND_ONLY, 102, 10));
    talk(&t, 1, 13 * US, mk_ack(102, 0x1f, 3));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_TRANSFER] + r->states[TIME_RESPONSE], 15 * US);
    cr_expect_eq(r->states[TIME_LOSS_NAK], 8 * US);
    cr_expect_eq(r->states[TIME_LOSS_RETRANSMISSION], 7 * US);
    cr_expect_eq(r->states[TIME_LOSS_RESEND], 11 * US);
    const struct episode *e = only_episode();
    cr_expect_eq(e->why, TROUBLE_SEQ_NAK);
    cr_expect_eq(e->bill, 26 * US);
    cr_expect_eq(e->psn, 101);
    cr_expect(e->sent == 2 && e->nak == 4 && e->back == 5 && e->answer == 7);
}

Test(timeline, an_ack_timeout_is_told_once_and_a_second_one_about_the_same_packet_belongs_to_it)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 7 * US, mk_ack(100, 0x1f, 1));
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 0, 8 * NS_PER_MS, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 0, 9 * NS_PER_MS, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 1, 7 * US, mk_ack(101, 0x1f, 2));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_ACK_TIMEOUT], 17 * NS_PER_MS);
    cr_expect_eq(r->states[TIME_RESPONSE], 14 * US);
    struct timeline *l = timeline_of(t.observer);
    cr_assert_eq(timeline_episodes(l), 2);
    cr_expect_eq(timeline_episode(l, 1)->root, 0);
    cr_expect_eq(timeline_episode(l, 1)->tries, 2);
    cr_expect_eq(timeline_episode(l, 0)->bill, 8 * NS_PER_MS);
    cr_expect_eq(timeline_episode(l, 1)->wait, 9 * NS_PER_MS);
}

Test(timeline, a_peer_that_never_answers_again_is_dead_from_the_first_silence_on)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 7 * US, mk_ack(100, 0x1f, 1));
    talk(&t, 0, US, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 0, 8 * NS_PER_MS, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 0, 8 * NS_PER_MS, mk(OP_SEND_ONLY, 101, 10));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_PEER_DEAD], 16 * NS_PER_MS);
    cr_expect_eq(r->states[TIME_ACK_TIMEOUT], 0);
    cr_expect_eq(r->states[TIME_IDLE], US);
}

Test(timeline, an_rnr_wait_runs_from_the_nak_to_the_retransmission)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 5 * US, mk_ack(100, 0x2c, 0));
    talk(&t, 0, 700 * US, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 5 * US, mk_ack(100, 0x1f, 1));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_RNR], 700 * US);
    cr_expect_eq(r->states[TIME_RESPONSE], 10 * US);
    cr_expect_eq(only_episode()->count, 1);
}

/* An RNR NAK (timer code 12: 640 us) is the last packet of its direction; the peer still sends, `later`. */
static void last_is_an_rnr_nak(ns_t later)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 5 * US, mk_ack(100, 0x2c, 0));
    talk(&t, 1, later, mk(OP_SEND_ONLY, 500, 10));
}

Test(timeline, an_rnr_wait_at_the_end_of_the_capture_lasts_until_then)
{
    last_is_an_rnr_nak(400 * US);
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_RNR], 400 * US);
    cr_expect_eq(r->states[TIME_RESPONSE], 5 * US);
    cr_expect_eq(r->states[TIME_NOT_KNOWN], 0);
}

Test(timeline, an_rnr_timer_that_expires_without_a_retransmission_shows_no_wait)
{
    last_is_an_rnr_nak(5 * NS_PER_MS);
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_RNR], 0);
    cr_expect_eq(r->states[TIME_NOT_KNOWN], 5 * NS_PER_MS);
    cr_expect_eq(r->states[TIME_PEER_DEAD], 0);
}

Test(timeline, an_rnr_wait_that_ends_before_it_begins_is_none)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 10 * US, mk_ack(100, 0x2e, 0));
    talk(&t, 0, -100 * YEAR, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 10 * US, mk_ack(100, 0x1f, 1));
    account();
    cr_expect_eq(only_episode()->wait, 0);
}

Test(timeline, an_rnr_nak_that_skips_a_response_is_ignored_until_the_ack_timeout)
{
    start();
    talk(&t, 0, 0, mk_read(100, 0, 10));
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 1, 5 * US, mk_ack(101, 0x2c, 1)); /* timer 12: 640 us */
    talk(&t, 0, 8 * NS_PER_MS, mk_read(100, 0, 10));
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 1, 5 * US, mk_aeth(OP_READ_RESP_ONLY, 100, 10, 0x1f, 1));
    talk(&t, 1, 0, mk_ack(101, 0x1f, 2));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_RNR], 0);
    cr_expect_eq(r->states[TIME_ACK_TIMEOUT], 8 * NS_PER_MS);
}

Test(timeline, a_loss_wins_over_a_slow_response_at_the_same_time)
{
    start();
    for (unsigned i = 0; i < 4; i++) {
        talk(&t, 0, US, mk(OP_SEND_ONLY, 100 + i, 10));
        talk(&t, 1, 7 * US, mk_ack(100 + i, 0x1f, i + 1));
    }
    talk(&t, 0, US, mk(OP_SEND_ONLY, 104, 10));
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 105, 10)); /* is lost behind the tap */
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 106, 10));
    talk(&t, 1, NS_PER_MS, mk_ack(104, 0x1f, 5));
    talk(&t, 1, US, mk_ack(105, 0x60, 5));
    talk(&t, 0, US, mk(OP_SEND_ONLY, 105, 10));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_LOSS_NAK], NS_PER_MS + US);
    cr_expect_eq(r->states[TIME_PEER_SLOW], 0);
    cr_expect_eq(r->states[TIME_LOSS_RETRANSMISSION], US);
}

Test(timeline, responses_to_a_read_sent_again_come_again_though_later_ones_proved_that_it_arrived)
{
    start();
    for (unsigned i = 0; i < 3; i++)
        talk(&t, 0, 0, mk_read(100 + i, 0, 10));
    talk(&t, 1, 10 * US, mk_aeth(OP_READ_RESP_ONLY, 100, 10, 0x1f, 1));
    talk(&t, 1, 1 * US, mk_aeth(OP_READ_RESP_ONLY, 102, 10, 0x1f, 3)); /* 101 was lost */
    talk(&t, 0, 1 * US, mk_read(101, 0, 10));
    talk(&t, 0, 1 * US, mk_read(102, 0, 10));
    talk(&t, 1, 8 * US, mk_aeth(OP_READ_RESP_ONLY, 101, 10, 0x1f, 3));
    talk(&t, 1, 1 * US, mk_aeth(OP_READ_RESP_ONLY, 102, 10, 0x1f, 3));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_LOSS_RETRANSMISSION], 1 * US);
    cr_expect_eq(r->states[TIME_LOSS_RESEND], 10 * US);
    cr_expect_eq(r->states[TIME_IDLE], 0);
}

/* READ 100 is answered after 10 us, which is the round trip; then READs 101 and 102 are sent. */
static void reads_behind_a_round_trip(void)
{
    start();
    talk(&t, 0, 0, mk_read(100, 0, 10));
    talk(&t, 1, 10 * US, mk_aeth(OP_READ_RESP_ONLY, 100, 10, 0x1f, 1)); /* the round trip */
    talk(&t, 0, 0, mk_read(101, 0, 10));
    talk(&t, 0, 0, mk_read(102, 0, 10));
}

/* READs 101 to 103 of one response each; the response to 101 is lost, so that to 102 brings all back, while that to 103
 * is under way. */
Test(timeline, a_response_under_way_does_not_answer_the_read_that_is_sent_again)
{
    reads_behind_a_round_trip();
    talk(&t, 0, 0, mk_read(103, 0, 10));
    talk(&t, 1, 10 * US, mk_aeth(OP_READ_RESP_ONLY, 102, 10, 0x1f, 3));
    for (unsigned i = 0; i < 3; i++)
        talk(&t, 0, 0, mk_read(101 + i, 0, 10));
    talk(&t, 1, 1 * US, mk_aeth(OP_READ_RESP_ONLY, 103, 10, 0x1f, 4));
    for (unsigned i = 0; i < 3; i++)
        talk(&t, 1, i ? 0 : 9 * US, mk_aeth(OP_READ_RESP_ONLY, 101 + i, 10, 0x1f, 4));
    cr_expect_eq(account()->states[TIME_LOSS_RESEND], 10 * US);
    cr_expect_eq(only_episode()->bill, 10 * US);
}

/* The first READ of a connection, of three responses: the first one is lost, and the second brings the READ again,
 * while the third is still under way. */
Test(timeline, a_response_behind_the_first_lost_one_does_not_end_the_retransmission)
{
    start();
    talk(&t, 0, 1, mk_read(9000100, 0, 3000));
    talk(&t, 1, 10 * US, mk(OP_READ_RESP_MIDDLE, 9000101, 1024));
    talk(&t, 0, 0, mk_read(9000100, 0, 3000));
    talk(&t, 1, 1 * US, mk_aeth(OP_READ_RESP_LAST, 9000102, 952, 0x1f, 1));
    talk(&t, 1, 9 * US, mk_aeth(OP_READ_RESP_FIRST, 9000100, 1024, 0x1f, 1));
    talk(&t, 1, 1 * US, mk(OP_READ_RESP_MIDDLE, 9000101, 1024));
    talk(&t, 1, 1 * US, mk_aeth(OP_READ_RESP_LAST, 9000102, 952, 0x1f, 1));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_LOSS_RESEND], 11 * US);
    cr_expect_eq(r->states[TIME_RESPONSE], 10 * US);
    cr_expect_eq(r->states[TIME_TRANSFER], 1 * US);
}

/* READ 100 of four responses: 102 overtakes 101, so that the requester drops it and the next one, and asks for 102
 * again only later. */
Test(timeline, a_response_asked_for_again_was_dropped_when_it_came_before_an_earlier_one)
{
    start();
    talk(&t, 0, 0, mk_read(100, 0, 4096));
    talk(&t, 1, 10 * US, mk_aeth(OP_READ_RESP_FIRST, 100, 1024, 0x1f, 1));
    talk(&t, 1, 1 * US, mk(OP_READ_RESP_MIDDLE, 102, 1024));
    talk(&t, 1, 1 * US, mk(OP_READ_RESP_MIDDLE, 101, 1024));
    talk(&t, 1, 1 * US, mk_aeth(OP_READ_RESP_LAST, 103, 1024, 0x1f, 1));
    talk(&t, 0, 50 * US, mk_read(102, 2048, 2048));
    talk(&t, 1, 10 * US, mk_aeth(OP_READ_RESP_FIRST, 102, 1024, 0x1f, 1));
    talk(&t, 1, 1 * US, mk_aeth(OP_READ_RESP_LAST, 103, 1024, 0x1f, 1));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_LOSS_RETRANSMISSION], 52 * US);
    cr_expect_eq(r->states[TIME_LOSS_RESEND], 11 * US);
    cr_expect_eq(r->states[TIME_IDLE], 0);
    cr_expect_eq(only_episode()->instead, 3);
}

/* The responses to 103 and 104 are under way for much longer than a round trip when 101 is asked for again. */
Test(timeline, responses_in_a_queue_before_those_to_a_read_sent_again_come_in_vain)
{
    reads_behind_a_round_trip();
    talk(&t, 0, 0, mk_read(103, 0, 10));
    talk(&t, 0, 0, mk_read(104, 0, 10));
    talk(&t, 1, 10 * US, mk_aeth(OP_READ_RESP_ONLY, 102, 10, 0x1f, 3));
    for (unsigned i = 0; i < 4; i++)
        talk(&t, 0, 0, mk_read(101 + i, 0, 10));
    talk(&t, 1, 30 * US, mk_aeth(OP_READ_RESP_ONLY, 103, 10, 0x1f, 4));
    talk(&t, 1, 30 * US, mk_aeth(OP_READ_RESP_ONLY, 104, 10, 0x1f, 5));
    for (unsigned i = 0; i < 4; i++)
        talk(&t, 1, 5 * US, mk_aeth(OP_READ_RESP_ONLY, 101 + i, 10, 0x1f, 5));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_LOSS_RESEND], 70 * US); /* until 102 has come again */
    cr_expect_eq(r->states[TIME_IDLE], 0);
}

Test(timeline, a_nak_that_passes_the_answer_to_a_repeated_read_does_not_end_the_repetition)
{
    reads_behind_a_round_trip();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 103, 10));
    talk(&t, 1, 10 * US, mk_aeth(OP_READ_RESP_ONLY, 102, 10, 0x1f, 3)); /* the response to 101 is lost */
    talk(&t, 0, 0, mk_read(101, 0, 10));
    talk(&t, 0, 0, mk_read(102, 0, 10));
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 103, 10));
    talk(&t, 1, 20 * US, mk_ack(103, 0x60, 3)); /* for the first copy of 103 */
    talk(&t, 1, 30 * US, mk_aeth(OP_READ_RESP_ONLY, 101, 10, 0x1f, 2));
    talk(&t, 1, 0, mk_aeth(OP_READ_RESP_ONLY, 102, 10, 0x1f, 3));
    cr_expect_eq(account()->states[TIME_LOSS_RESEND], 50 * US);
}

Test(timeline, a_sequence_nak_changes_nothing_in_an_rnr_wait)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 1, 5 * US, mk_ack(100, 0x2c, 0));
    talk(&t, 1, US, mk_ack(101, 0x60, 0));
    talk(&t, 0, 700 * US, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 1, 5 * US, mk_ack(101, 0x1f, 2));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_RNR], 701 * US);
    cr_expect_eq(r->states[TIME_LOSS_NAK], 0);
}

Test(timeline, a_further_rnr_nak_changes_nothing_in_an_rnr_wait)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 5 * US, mk_ack(100, 0x2c, 0));
    talk(&t, 1, 300 * US, mk_ack(100, 0x2c, 0)); /* for a copy that was sent before */
    talk(&t, 0, 400 * US, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 5 * US, mk_ack(100, 0x1f, 1));
    cr_expect_eq(account()->states[TIME_RNR], 700 * US);
    cr_expect_eq(only_episode()->count, 2);
}

Test(timeline, who_requests_a_missing_response_before_the_rnr_timer_expires_did_not_wait_for_it)
{
    start();
    talk(&t, 0, 0, mk_read(100, 0, 10));
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 102, 10));
    talk(&t, 1, 5 * US, mk_ack(102, 0x2c, 2)); /* timer 12: 640 us */
    talk(&t, 0, 30 * US, mk_read(100, 0, 10));
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 102, 10));
    talk(&t, 1, 5 * US, mk_aeth(OP_READ_RESP_ONLY, 100, 10, 0x1f, 1));
    talk(&t, 1, 0, mk_ack(102, 0x1f, 3));
    cr_expect_eq(account()->states[TIME_RNR], 0);
}

Test(timeline, one_direction_alone_cannot_tell_a_timeout)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 0, 8 * NS_PER_MS, mk(OP_SEND_ONLY, 100, 10));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_NOT_KNOWN], 8 * NS_PER_MS);
    cr_expect_eq(r->states[TIME_ACK_TIMEOUT], 0);
}

/* Two messages of the first host, each acknowledged; MSNs from `msn` on. */
static void job(ns_t after, uint32_t msn)
{
    talk(&t, 0, after, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 5 * US, mk_ack(100, 0x1f, msn));
    talk(&t, 0, US, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 1, 5 * US, mk_ack(101, 0x1f, msn + 1));
}

Test(timeline, a_queue_pair_used_again_from_its_first_psn_on_was_idle_before)
{
    start();
    job(0, 1);
    job(NS_PER_S, 1);
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_IDLE], NS_PER_S + 2 * US);
    cr_expect_eq(r->states[TIME_RESPONSE], 20 * US);
    cr_expect_eq(timeline_episodes(timeline_of(t.observer)), 0);
}

Test(timeline, an_msn_that_counts_on_tells_a_retransmission_from_another_use)
{
    start();
    job(0, 1);
    talk(&t, 0, NS_PER_S, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 5 * US, mk_ack(101, 0x1f, 2));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_ACK_TIMEOUT], NS_PER_S);
    cr_expect_eq(r->states[TIME_IDLE], US);
    cr_expect_eq(only_episode()->why, TROUBLE_TIMEOUT);
    cr_expect_eq(only_episode()->bill, NS_PER_S);
}

Test(timeline, one_lost_ack_may_bring_back_the_first_psn)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 5 * US, mk_ack(100, 0x1f, 1));
    talk(&t, 0, NS_PER_S, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 5 * US, mk_ack(100, 0x1f, 1));
    cr_expect_eq(account()->states[TIME_ACK_TIMEOUT], NS_PER_S);
}

Test(timeline, one_try_does_not_tell_a_dead_peer)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 7 * US, mk_ack(100, 0x1f, 1));
    talk(&t, 0, US, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 0, 8 * NS_PER_MS, mk(OP_SEND_ONLY, 101, 10));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_PEER_DEAD], 0);
    cr_expect_eq(r->states[TIME_ACK_TIMEOUT], 8 * NS_PER_MS);
}

/* ACK timeout code 10: 4.194304 ms. */
Test(timeline, without_a_retry_the_requester_gives_up_at_the_first_ack_timeout)
{
    static const struct conn_known k = {
        .addr = {{{[15] = 1}}, {{[15] = 2}}},
        .qpn = {0x11, 0x11},
        .psn = {100, 900},
        .pmtu = 1024,
        .how = PAIR_CM,
        .params = {{.passive = true, .timeout_known = PARAM_STATED, .retry_known = PARAM_STATED, .timeout = 10}}};
    talk_start(&t, false);
    conn_learn(observer_conns(t.observer), &k);
    timeline_of(t.observer);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 7 * US, mk_ack(100, 0x1f, 1));
    talk(&t, 0, US, mk(OP_SEND_ONLY, 101, 10));
    talk_end(&t, 20 * NS_PER_MS);
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_ACK_TIMEOUT], 4194304);
    cr_expect_eq(r->states[TIME_GIVEN_UP], 0); /* its account ends there: no packet of the connection follows */
    cr_expect_eq(r->states[TIME_NOT_KNOWN], 0);
    cr_expect_eq(only_episode()->sent, 3);
}

Test(timeline, a_dead_peer_after_any_number_of_episodes_has_the_tries_of_the_last_one)
{
    for (unsigned before = 250; before < 260; before++) {
        start();
        for (unsigned i = 0; i < before; i++) {
            talk(&t, 0, US, mk(OP_SEND_ONLY, i, 10));
            talk(&t, 1, 5 * US, mk_ack(i, 0x2c, i));
            talk(&t, 0, 700 * US, mk(OP_SEND_ONLY, i, 10));
            talk(&t, 1, 5 * US, mk_ack(i, 0x1f, i + 1));
        }
        for (unsigned i = 0; i < 3; i++)
            talk(&t, 0, 8 * NS_PER_MS, mk(OP_SEND_ONLY, before, 10));
        account();
        struct timeline *l = timeline_of(t.observer);
        const struct episode *e = timeline_episode(l, timeline_episodes(l) - 1);
        cr_assert_eq(e->why, TROUBLE_DEAD);
        cr_expect_eq(e->psn, before);
        cr_expect_eq(e->tries, 2);
        cr_expect_eq(timeline_episode(l, e->root)->why, TROUBLE_TIMEOUT);
        talk_stop(&t);
    }
}

Test(timeline, a_flow_whose_place_was_given_to_another_one_keeps_its_account)
{
    uint32_t flows;

    start();
    flows = observer_flows(t.observer) + 20;
    for (uint32_t i = 0; i < flows; i++)
        for (uint32_t psn = 0; psn < 2; psn++)
            talk_to(&t, 0, US, 0x100 + i, mk(psn ? OP_SEND_MIDDLE : OP_SEND_FIRST, psn, 1024));
    struct timeline *l = timeline_of(t.observer);
    timeline_end(l);
    cr_assert_eq(timeline_n(l), flows);
    for (uint32_t i = 0; i < flows; i++) {
        const struct timeline_row *r = timeline_row(l, i);
        cr_assert_eq(r->conn, i + 1);
        cr_assert_eq(r->dqpn, 0x100 + i);
    }
}

Test(timeline, a_peer_is_dead_only_since_its_latest_packet)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 7 * US, mk_ack(100, 0x1f, 1));
    talk(&t, 0, US, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 1, 3 * US, mk(OP_SEND_ONLY, 900, 10));
    talk(&t, 0, 0, mk_ack(900, 0x1f, 1));
    talk(&t, 0, 8 * NS_PER_MS, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 0, 8 * NS_PER_MS, mk(OP_SEND_ONLY, 101, 10));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_PEER_DEAD], 16 * NS_PER_MS);
    cr_expect_eq(r->states[TIME_ACK_TIMEOUT], 3 * US);
}

/* The REP was captured, but the place of its host may have been given to another one since. */
Test(timeline, a_peer_without_any_packet_is_dead_since_the_first_request)
{
    static const struct conn_known k = {.addr = {{{[15] = 1}}, {{[15] = 2}}},
                                        .qpn = {0x11, 0x11},
                                        .psn = {100, 900},
                                        .pmtu = 1024,
                                        .how = PAIR_CM,
                                        .params = {{.rep_frame = 1, .passive = true}}};
    talk_start(&t, false);
    conn_learn(observer_conns(t.observer), &k);
    timeline_of(t.observer);
    ns_t first = t.now;
    for (unsigned i = 0; i < 3; i++)
        talk(&t, 0, i ? 8 * NS_PER_MS : 0, mk(OP_SEND_ONLY, 100, 10));
    const struct timeline_row *r = account();
    struct timeline *l = timeline_of(t.observer);
    cr_expect_eq(r->states[TIME_PEER_DEAD], 16 * NS_PER_MS);
    const struct episode *e = timeline_episode(l, timeline_episodes(l) - 1);
    cr_expect_eq(e->why, TROUBLE_DEAD);
    cr_expect_eq(e->start, first);
}

Test(timeline, a_host_that_is_silent_since_the_first_ack_timeout_is_dead_on_every_queue_pair)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 7 * US, mk_ack(100, 0x1f, 1));
    talk(&t, 0, US, mk(OP_SEND_ONLY, 101, 10));
    talk_to(&t, 0, US, 0x13, mk(OP_SEND_ONLY, 700, 10));
    talk_to(&t, 1, 3 * US, 0x14, mk(OP_SEND_ONLY, 800, 10)); /* it still sends during the first wait */
    talk(&t, 0, 8 * NS_PER_MS, mk(OP_SEND_ONLY, 101, 10));
    talk_to(&t, 0, 0, 0x13, mk(OP_SEND_ONLY, 700, 10));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_PEER_DEAD], 8 * NS_PER_MS);
    cr_expect_eq(r->states[TIME_ACK_TIMEOUT], 4 * US);
}

Test(timeline, a_host_that_was_heard_after_the_first_ack_timeout_is_not_dead)
{
    talk_start(&t, false);
    cr_assert_not_null(timeline_of(t.observer));
    talk_to(&t, 0, 0, 0x11, mk(OP_SEND_ONLY, 100, 10));
    talk_to(&t, 1, 7 * US, 0x12, mk_ack(100, 0x1f, 1));
    talk_to(&t, 0, US, 0x11, mk(OP_SEND_ONLY, 101, 10));
    talk_to(&t, 0, 8 * NS_PER_MS, 0x11, mk(OP_SEND_ONLY, 101, 10));
    talk_to(&t, 1, 3 * US, 0x14, mk(OP_SEND_ONLY, 900, 10));
    talk_to(&t, 0, 8 * NS_PER_MS - 3 * US, 0x11, mk(OP_SEND_ONLY, 101, 10));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_PEER_DEAD], 0);
    cr_expect_eq(r->states[TIME_ACK_TIMEOUT], 16 * NS_PER_MS);
}

Test(timeline, taps_of_several_files_know_their_hosts_apart)
{
    struct conn_addr a = {{[15] = 1}};

    for (uint32_t file = 1; file < 8; file++)
        cr_expect_neq(timeline_host(&a, 0), timeline_host(&a, file << 16));
}

Test(timeline, what_a_host_sends_is_kept_apart_of_every_host_and_tap)
{
    struct conn_addr a = {{0}};
    struct port *first;

    start();
    first = timeline_port(timeline_of(t.observer), &a, 0);
    first->pace = 5;
    for (uint32_t i = 1; i < 5000; i++) { /* more than 4,096 */
        store_be32(a.b + 12, i / 50);
        struct port *p = timeline_port(timeline_of(t.observer), &a, (i % 50) << 16);
        cr_assert(p->pace == 0, "%u", i);
        p->pace = i;
    }
    store_be32(a.b + 12, 99);
    cr_expect_eq(timeline_port(timeline_of(t.observer), &a, 7 << 16)->pace, 99 * 50 + 7);
}

/* A round trip takes 20 us; the ACK of a SEND comes 5 ms late, and an RNR NAK with it, after which all is
 * retransmitted; `after` its retransmission comes the NAK for the last packet. */
static void nak_behind_a_late_answer(ns_t after)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 20 * US, mk_ack(100, 0x1f, 1));
    for (unsigned i = 101; i <= 104; i++)
        talk(&t, 0, 0, mk(OP_SEND_ONLY, i, 10));
    talk(&t, 1, 5000 * US, mk_ack(101, 0x1f, 2));
    talk(&t, 1, 0, mk_ack(102, 0x2c, 2)); /* timer 12: 640 us */
    for (unsigned i = 102; i <= 104; i++)
        talk(&t, 0, i == 102 ? 640 * US : 0, mk(OP_SEND_ONLY, i, 10));
    talk(&t, 1, after, mk_ack(103, 0x60, 3));
}

Test(timeline, a_nak_a_little_sooner_than_a_round_trip_reports_the_latest_copy)
{
    nak_behind_a_late_answer(19 * US);
    cr_expect_eq(account()->states[TIME_LOSS_NAK], 19 * US);
}

Test(timeline, a_nak_much_sooner_than_a_round_trip_reports_the_copy_before)
{
    nak_behind_a_late_answer(5 * US);
    cr_expect_geq(account()->states[TIME_LOSS_NAK], 5000 * US);
}

/* A NAK comes while a READ is sent again, so its requester drops it. It goes back for the response that is missing
 * next. */
Test(timeline, a_nak_that_came_while_a_response_was_missing_does_not_explain_a_later_go_back)
{
    start();
    for (unsigned again = 0; again < 2; again++) {
        talk(&t, 0, again ? 0 : US, mk_read(100, 0, 10));
        talk(&t, 0, US, mk_atomic(OP_FETCH_ADD, 101, 0));
        for (unsigned i = 0; i < 3; i++)
            talk(&t, 0, US, mk(OP_SEND_ONLY, 102 + i, 10)); /* 103 is lost on its way, the first time */
        if (!again)
            talk(&t, 1, 60 * US,
                 mk_aeth(OP_ATOMIC_ACKNOWLEDGE, 101, 0, 0x1f, 2)); /* the response to the READ was lost */
    }
    talk(&t, 1, US, mk_ack(103, 0x60, 3));
    talk(&t, 1, 59 * US, mk_aeth(OP_READ_RESP_ONLY, 100, 10, 0x1f, 3));
    talk(&t, 1, US, mk_ack(102, 0x1f, 3)); /* and the one to the atomic */
    talk(&t, 0, 0, mk_atomic(OP_FETCH_ADD, 101, 0));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_LOSS_RETRANSMISSION], 0, "%lld", (long long)r->states[TIME_LOSS_RETRANSMISSION]);
    cr_expect_gt(r->states[TIME_LOSS_NAK], 0);
}
