/* layer 2b (conn) tests: where time went without a loss: pauses, first responses, taps whose clocks differ. */
#include "tests/unit/timeline_talk.h"

#define AHEAD (5 * NS_PER_MS) /* the clock of the second tap */

static void pause_frame(ns_t after, const uint8_t data[60])
{
    struct frame f = {.ts = t.now += after,
                      .number = ++t.frame,
                      .file = t.file,
                      .len = 60,
                      .caplen = 60,
                      .has_ts = true,
                      .linktype = LINK_ETHERNET,
                      .data = data};
    struct decode_opts o = {0};
    struct pkt p;

    pkt_decode(&p, &f, &o);
    observer_packet(t.observer, &p);
}

/* Station `mac` asks for `quanta` of silence, `after` ns after the packet before; 0 ends it. */
static void station_pauses(uint8_t mac, ns_t after, uint16_t quanta)
{
    pause_frame(after, (uint8_t[60]){0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, mac, 0x88, 0x08, 0, 1, quanta >> 8,
                                     quanta & 0xff});
}

/* The same of class 5 alone. */
static void class_5_pauses(ns_t after, uint16_t quanta)
{
    pause_frame(
        after, (uint8_t[60]){
                   0x01,         0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 0x08, 1, 1, 0, 1 << 5, [28] = quanta >> 8,
                   quanta & 0xff});
}

static void pause_for(ns_t after, uint16_t quanta)
{
    station_pauses(1, after, quanta);
}

/* One request, whose response waits behind a pause of 250 us of the second tap's port. */
static void paused_at_the_second_tap(void)
{
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 300 * US, mk_ack(100, 0x1f, 1));
    t.file = 1;
    t.now += AHEAD - 300 * US;
    talk(&t, 0, 10 * US, mk(OP_SEND_ONLY, 100, 10));
    pause_for(10 * US, 0xffff);
    pause_for(250 * US, 0);
    talk(&t, 1, 20 * US, mk_ack(100, 0x1f, 1));
}

static bool clock_of(void *user, uint32_t from, uint32_t to, ns_t *ts)
{
    *ts += from == to ? 0 : from ? -AHEAD : AHEAD;
    return user != NULL;
}

Test(timeline_taps, a_pause_that_another_tap_saw_explains_the_silence_at_this_one)
{
    struct timeline *l = start();

    cr_assert(timeline_several(l));
    paused_at_the_second_tap();
    timeline_share_pauses(l, clock_of, l);
    cr_expect_eq(account()->states[TIME_PAUSED], 250 * US);
    cr_expect_eq(account()->states[TIME_TRANSFER] + account()->states[TIME_RESPONSE], 50 * US);
}

Test(timeline_taps, a_pause_on_a_clock_that_is_not_known_explains_nothing)
{
    struct timeline *l = start();

    cr_assert(timeline_several(l));
    paused_at_the_second_tap();
    timeline_share_pauses(l, clock_of, NULL);
    cr_expect_eq(account()->states[TIME_PAUSED], 0);
}

Test(timeline_taps, a_pause_of_a_tap_that_never_saw_the_connection_explains_nothing)
{
    struct timeline *l = start();

    cr_assert(timeline_several(l));
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 300 * US, mk_ack(100, 0x1f, 1));
    t.file = 1;
    t.now += AHEAD - 300 * US;
    pause_for(20 * US, 0xffff);
    pause_for(250 * US, 0);
    timeline_share_pauses(l, clock_of, l);
    cr_expect_eq(account()->states[TIME_PAUSED], 0);
}

Test(timeline_taps, pauses_that_follow_each_other_hold_back_who_has_nothing_outstanding)
{
    start();

    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 10 * US, mk_ack(100, 0x1f, 1));
    pause_for(40 * US, 0xffff);
    pause_for(100 * US, 0);
    pause_for(5 * US, 0xffff);
    pause_for(200 * US, 0);
    talk(&t, 0, 5 * US, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 1, 10 * US, mk_ack(101, 0x1f, 2));
    cr_expect_eq(account()->states[TIME_PAUSED], 300 * US);
    cr_expect_eq(account()->states[TIME_IDLE], 50 * US);
}

/* A message of the DSCP waits for its response while class 5 is paused; another queue pair has DSCP 40, of that class.
 */
static ns_t paused_with_dscp(uint8_t dscp)
{
    struct pkt other = mk(OP_SEND_ONLY, 7, 10), first = mk(OP_SEND_ONLY, 100, 10), p = mk(OP_SEND_ONLY, 101, 10);

    start();
    other.tos = 40 << 2;
    first.tos = p.tos = (uint8_t)(dscp << 2);
    talk(&t, 0, 0, first);
    talk(&t, 1, 10 * US, mk_ack(100, 0x1f, 1));
    talk_to(&t, 0, US, 0x99, other);
    talk(&t, 0, US, p);
    class_5_pauses(5 * US, 0xffff);
    class_5_pauses(250 * US, 0);
    talk(&t, 1, 10 * US, mk_ack(101, 0x1f, 2));
    return account()->states[TIME_PAUSED];
}

Test(timeline_taps, a_pause_of_another_class_holds_nothing_back)
{
    cr_expect_eq(paused_with_dscp(40), 250 * US);
    talk_stop(&t);
    cr_expect_eq(paused_with_dscp(0), 0);
}

Test(timeline_taps, a_pause_that_ended_long_before_the_next_request_held_nothing_back)
{
    start();

    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 10 * US, mk_ack(100, 0x1f, 1));
    pause_for(40 * US, 0xffff);
    pause_for(100 * US, 0);
    talk(&t, 0, 200 * US, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 1, 10 * US, mk_ack(101, 0x1f, 2));
    cr_expect_eq(account()->states[TIME_PAUSED], 0);
    cr_expect_eq(account()->states[TIME_IDLE], 340 * US);
}

Test(timeline_taps, what_a_pause_leaves_of_a_slow_response_is_not_slow)
{
    start();

    for (unsigned i = 0; i < 10; i++) {
        talk(&t, 0, US, mk(OP_SEND_ONLY, 100 + i, 10));
        talk(&t, 1, 10 * US, mk_ack(100 + i, 0x1f, i + 1));
    }
    talk(&t, 0, US, mk(OP_SEND_ONLY, 110, 10));
    pause_for(5 * US, 0xffff);
    pause_for(250 * US, 0);
    talk(&t, 1, 30 * US, mk_ack(110, 0x1f, 11));
    cr_expect_eq(account()->states[TIME_PAUSED], 250 * US);
    cr_expect_eq(account()->states[TIME_PEER_SLOW], 0);
}

Test(timeline_taps, the_last_try_waits_until_the_end_of_its_own_file)
{
    start();

    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 7 * US, mk_ack(100, 0x1f, 1));
    talk(&t, 0, US, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 0, 8 * NS_PER_MS, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 0, 8 * NS_PER_MS, mk(OP_SEND_ONLY, 101, 10));
    t.file = 1;
    talk_to(&t, 0, NS_PER_S, 0x31, mk(OP_SEND_ONLY, 700, 10)); /* its clock is a second ahead */
    cr_expect_eq(account()->states[TIME_PEER_DEAD], 16 * NS_PER_MS);
    cr_expect_eq(account()->last - account()->first, 16 * NS_PER_MS + 8 * US);
}

/* Requests one after the other, acknowledged after `us[i]`; 0 ends the list. */
static void answered_after(const unsigned *us)
{
    for (unsigned i = 0; us[i]; i++) {
        talk(&t, 0, US, mk(OP_SEND_ONLY, 100 + i, 10));
        talk(&t, 1, us[i] * US, mk_ack(100 + i, 0x1f, i + 1));
    }
}

Test(timeline_taps, the_first_response_was_slow_as_the_ones_after_it_tell)
{
    start();

    answered_after((unsigned[]){900, 10, 11, 9, 10, 12, 10, 10, 10, 0});
    cr_expect_eq(account()->states[TIME_PEER_SLOW], 890 * US);
    cr_expect_eq(only_episode()->why, TROUBLE_SLOW);
    cr_expect_eq(only_episode()->answer, 2);
}

Test(timeline_taps, of_fewer_responses_none_is_known_to_be_slow)
{
    start();

    answered_after((unsigned[]){10, 900, 11, 9, 10, 12, 10, 0});
    cr_expect_eq(account()->states[TIME_PEER_SLOW], 0);
}

Test(timeline_taps, first_responses_that_differ_much_are_not_slow)
{
    start();

    answered_after((unsigned[]){900, 10, 300, 9, 150, 12, 10, 10, 10, 0});
    cr_expect_eq(account()->states[TIME_PEER_SLOW], 0);
}

Test(timeline_taps, a_slow_first_response_hides_no_later_one)
{
    start();

    answered_after((unsigned[]){900, 10, 11, 9, 10, 12, 10, 10, 10, 10, 700, 10, 0});
    cr_expect_eq(account()->states[TIME_PEER_SLOW], 890 * US + 690 * US);
}

Test(timeline_taps, several_of_the_first_responses_were_slow)
{
    start();

    answered_after((unsigned[]){900, 10, 11, 9, 950, 12, 10, 10, 10, 0});
    cr_expect_eq(account()->states[TIME_PEER_SLOW], 890 * US + 940 * US);
}

/* Two READs; the response to the first one is lost before the tap, so that its requester drops the other one. */
static void first_response_lost(void)
{
    talk(&t, 0, 0, mk_read(100, 0, 10));
    talk(&t, 0, 0, mk_read(101, 0, 10));
    talk(&t, 1, 20 * US, mk_aeth(OP_READ_RESP_ONLY, 101, 10, 0x1f, 2));
}

Test(timeline_taps, a_dropped_response_lets_no_read_go_on)
{
    start(); /* depth 2 */

    first_response_lost();
    talk(&t, 0, 0, mk_read(100, 0, 10));
    talk(&t, 0, 0, mk_read(101, 0, 10));
    talk(&t, 1, 20 * US, mk_aeth(OP_READ_RESP_ONLY, 100, 10, 0x1f, 1));
    talk(&t, 0, 100, mk_read(102, 0, 10));
    talk(&t, 1, 10 * US, mk_aeth(OP_READ_RESP_ONLY, 101, 10, 0x1f, 2));
    talk(&t, 1, 10 * US, mk_aeth(OP_READ_RESP_ONLY, 102, 10, 0x1f, 3));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_READ_DEPTH], 20 * US); /* until the response that was dropped */
    cr_expect_eq(r->states[TIME_LOSS_RESEND], 30 * US + 100);
    cr_expect_eq(r->states[TIME_IDLE], 0);
}

Test(timeline_taps, a_read_is_outstanding_though_a_later_response_was_seen)
{
    start();

    first_response_lost();
    talk(&t, 0, 8 * NS_PER_MS, mk_read(100, 0, 10));
    cr_expect_eq(account()->states[TIME_IDLE], 0);
    cr_expect_eq(account()->states[TIME_ACK_TIMEOUT], 8 * NS_PER_MS);
}

Test(timeline_taps, who_reads_on_has_the_response_that_the_tap_lacks)
{
    start();

    first_response_lost();
    talk(&t, 0, 100 * US, mk_read(102, 0, 10));
    talk(&t, 1, 10 * US, mk_aeth(OP_READ_RESP_ONLY, 102, 10, 0x1f, 3));
    talk(&t, 0, 700 * US, mk_read(103, 0, 10));
    talk(&t, 1, 10 * US, mk_aeth(OP_READ_RESP_ONLY, 103, 10, 0x1f, 4));
    cr_expect_eq(account()->states[TIME_IDLE], 700 * US);
    cr_expect_eq(account()->states[TIME_READ_DEPTH], 0);
}

/* The first READ never gets its response: its requester goes back `times` times, and the last response skips it again.
 */
static void skipped_each_time(unsigned times)
{
    first_response_lost();
    for (unsigned i = 0; i < times; i++) {
        talk(&t, 0, 100, mk_read(100, 0, 10));
        talk(&t, 0, 0, mk_read(101, 0, 10));
        talk(&t, 1, 20 * US, mk_aeth(OP_READ_RESP_ONLY, 101, 10, 0x1f, 2));
    }
    talk_to(&t, 1, 8 * NS_PER_MS, 0x11, mk(OP_SEND_ONLY, 900, 10));
}

Test(timeline_taps, who_has_gone_back_as_often_as_agreed_and_does_not_again_has_given_up)
{
    start(); /* 2 retries */

    skipped_each_time(2);
    cr_expect_eq(account()->states[TIME_GIVEN_UP], 8 * NS_PER_MS);
    cr_expect_eq(account()->states[TIME_NOT_KNOWN], 0);
}

Test(timeline_taps, who_went_back_for_a_nak_waits_for_its_timer_before_it_gives_up)
{
    start(); /* 2 retries */

    first_response_lost();
    talk(&t, 0, 8 * NS_PER_MS, mk_read(100, 0, 10)); /* the ACK timer ran out */
    talk(&t, 0, 0, mk_read(101, 0, 10));
    talk(&t, 1, 20 * US, mk_aeth(OP_READ_RESP_ONLY, 101, 10, 0x1f, 2));
    talk(&t, 0, 100, mk_read(100, 0, 10)); /* an implied NAK */
    talk(&t, 0, 0, mk_read(101, 0, 10));
    talk(&t, 1, 20 * US, mk_aeth(OP_READ_RESP_ONLY, 101, 10, 0x1f, 2));
    talk_to(&t, 1, 20 * NS_PER_MS, 0x11, mk(OP_SEND_ONLY, 900, 10));
    cr_expect_eq(account()->states[TIME_ACK_TIMEOUT], 16 * NS_PER_MS);
    cr_expect_eq(account()->states[TIME_GIVEN_UP], 12 * NS_PER_MS);
}

Test(timeline_taps, who_has_a_retry_left_may_wait_for_its_timer)
{
    start();

    skipped_each_time(1);
    cr_expect_eq(account()->states[TIME_GIVEN_UP], 0);
    cr_expect_eq(account()->states[TIME_NOT_KNOWN], 8 * NS_PER_MS);
}

/* Ten requests, each 300 us behind the response before; then the port is paused for 9 ms, and the next request comes
 * `after` the end of that. */
static void rests_until(ns_t after)
{
    start();
    for (unsigned i = 0; i < 10; i++) {
        talk(&t, 0, 300 * US, mk(OP_SEND_ONLY, 100 + i, 10));
        talk(&t, 1, 10 * US, mk_ack(100 + i, 0x1f, i + 1));
    }
    pause_for(200 * US, 0xffff);
    pause_for(9000 * US, 0);
    talk(&t, 0, after, mk(OP_SEND_ONLY, 110, 10));
    talk(&t, 1, 10 * US, mk_ack(110, 0x1f, 11));
}

Test(timeline_taps, a_request_that_is_due_in_a_pause_and_comes_behind_it_was_most_likely_held_back)
{
    const struct episode *e;

    rests_until(100 * US);
    cr_expect_eq(account()->states[TIME_PAUSED], 9000 * US);
    e = only_episode();
    cr_expect_eq(e->rests, 1);
    cr_expect_eq(e->rest, 9000 * US);
}

Test(timeline_taps, a_request_that_comes_later_behind_a_pause_than_it_usually_does_was_not_held_back)
{
    rests_until(400 * US);
    cr_expect_eq(account()->states[TIME_PAUSED], 0);
}

Test(timeline_taps, a_pause_shorter_than_the_longest_rest_did_not_hold_back_who_rested_for_90_years)
{
    start();
    for (unsigned i = 0; i < 10; i++) {
        talk(&t, 0, i == 1 ? 90 * YEAR : 300 * US, mk(OP_SEND_ONLY, 100 + i, 10));
        talk(&t, 1, 10 * US, mk_ack(100 + i, 0x1f, i + 1));
    }
    pause_for(200 * US, 0xffff);
    pause_for(9000 * US, 0);
    talk(&t, 0, 100 * US, mk(OP_SEND_ONLY, 110, 10));
    cr_expect_eq(account()->states[TIME_PAUSED], 0);
}

Test(timeline_taps, a_pause_that_begins_after_a_request_was_due_did_not_hold_it_back)
{
    start();
    for (unsigned i = 0; i < 10; i++) {
        talk(&t, 0, 300 * US, mk(OP_SEND_ONLY, 100 + i, 10));
        talk(&t, 1, 10 * US, mk_ack(100 + i, 0x1f, i + 1));
    }
    pause_for(900 * US, 0xffff);
    pause_for(9000 * US, 0);
    talk(&t, 0, 100 * US, mk(OP_SEND_ONLY, 110, 10));
    cr_expect_eq(account()->states[TIME_PAUSED], 0);
}

/* A request, whose response comes 10 us later; then the port is paused for 10 ms, 100 us after that, and the next
 * request comes `after` the end of that. */
static void first_rest_until(ns_t after)
{
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 10 * US, mk_ack(100, 0x1f, 1));
    pause_for(100 * US, 0xffff);
    pause_for(10000 * US, 0);
    talk(&t, 0, after, mk(OP_SEND_ONLY, 101, 10));
}

Test(timeline_taps, a_pause_that_takes_almost_all_of_a_silence_most_likely_held_a_request_back)
{
    start();

    first_rest_until(200 * US);
    cr_expect_eq(account()->states[TIME_PAUSED], 10000 * US);
    cr_expect_eq(only_episode()->rest, 10000 * US);
}

Test(timeline_taps, a_silence_that_outlasts_a_pause_may_be_the_requesters_own)
{
    start();

    first_rest_until(400 * US);
    cr_expect_eq(account()->states[TIME_PAUSED], 0);
}

Test(timeline_taps, pauses_that_follow_each_other_closely_are_one)
{
    start();

    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 10 * US, mk_ack(100, 0x1f, 1));
    for (unsigned i = 0; i < 5; i++) {
        pause_for(10 * US, 0xffff);
        pause_for(2000 * US, 0);
    }
    talk(&t, 0, 200 * US, mk(OP_SEND_ONLY, 101, 10));
    cr_expect_eq(account()->states[TIME_PAUSED], 10000 * US);
}

/* A request, its response 10 us later, a pause 40 us after that, and behind 2 ms the next request, which passes. */
static void passes_a_pause(void)
{
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 10 * US, mk_ack(100, 0x1f, 1));
    pause_for(40 * US, 0xffff);
    talk(&t, 0, 2000 * US, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 1, 10 * US, mk_ack(101, 0x1f, 2));
}

Test(timeline_taps, a_request_that_passes_ends_a_pause_whose_end_was_not_seen)
{
    start();

    passes_a_pause();
    talk(&t, 0, 5000 * US, mk(OP_SEND_ONLY, 102, 10));
    talk(&t, 1, 10 * US, mk_ack(102, 0x1f, 3));
    cr_expect_eq(account()->states[TIME_PAUSED], 2000 * US);
    cr_expect_eq(account()->states[TIME_IDLE], 5040 * US);
}

Test(timeline_taps, a_request_that_passes_ends_the_pauses_of_two_stations)
{
    start();

    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 10 * US, mk_ack(100, 0x1f, 1));
    pause_for(30 * US, 0xffff);
    station_pauses(2, 10 * US, 0xffff);
    talk(&t, 0, 2000 * US, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 1, 10 * US, mk_ack(101, 0x1f, 2));
    talk(&t, 0, 5000 * US, mk(OP_SEND_ONLY, 102, 10));
    talk(&t, 1, 10 * US, mk_ack(102, 0x1f, 3));
    cr_expect_eq(account()->states[TIME_PAUSED], 2010 * US);
    cr_expect_eq(account()->states[TIME_IDLE], 5030 * US);
}

Test(timeline_taps, what_passes_before_a_pause_takes_effect_does_not_end_it)
{
    start();

    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 10 * US, mk_ack(100, 0x1f, 1));
    pause_for(40 * US, 1000);
    talk(&t, 0, 5 * US, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 1, 400 * US, mk_ack(101, 0x1f, 2));
    cr_expect_gt(account()->states[TIME_PAUSED], 404 * US);
}

Test(timeline_taps, a_pause_frame_behind_requests_that_passed_holds_back_the_next_ones)
{
    start();

    passes_a_pause();
    pause_for(1000 * US, 0xffff);
    pause_for(300 * US, 0);
    talk(&t, 0, 5 * US, mk(OP_SEND_ONLY, 102, 10));
    cr_expect_geq(account()->states[TIME_PAUSED], 2300 * US);
}

Test(timeline_taps, a_pause_that_another_tap_saw_most_likely_held_a_request_back)
{
    struct timeline *l = start();

    cr_assert(timeline_several(l));
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 10 * US, mk_ack(100, 0x1f, 1));
    talk(&t, 0, 10300 * US, mk(OP_SEND_ONLY, 101, 10));
    t.file = 1;
    t.now += AHEAD - 10310 * US;
    first_rest_until(200 * US);
    timeline_share_pauses(l, clock_of, l);
    cr_expect_eq(account()->states[TIME_PAUSED], 10000 * US);
}

Test(timeline_taps, a_pause_of_another_tap_ends_with_the_request_that_passed_there)
{
    struct timeline *l = start();
    ns_t begin;

    cr_assert(timeline_several(l));
    begin = t.now;
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 10 * US, mk_ack(100, 0x1f, 1));
    talk(&t, 0, 2040 * US, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 1, 10 * US, mk_ack(101, 0x1f, 2));
    talk(&t, 0, 5000 * US, mk(OP_SEND_ONLY, 102, 10));
    t.file = 1;
    t.now = begin + AHEAD;
    passes_a_pause();
    timeline_share_pauses(l, clock_of, l);
    cr_expect_eq(account()->states[TIME_PAUSED], 2000 * US);
}

/* More hosts than the table has places at first, each at two taps: some meet where they are looked for. */
Test(timeline_taps, each_host_has_a_port_of_its_own_at_each_tap)
{
    static struct timeline l;
    struct port *of[2][200];

    for (uint32_t again = 0; again < 2; again++)
        for (uint32_t tap = 0; tap < 2; tap++)
            for (uint32_t i = 0; i < 200; i++) {
                struct conn_addr a = {.b = {10, [15] = (uint8_t)i}};
                struct port *p = timeline_port(&l, &a, tap);
                cr_assert(p->tap == tap && conn_addr_eq(&p->addr, &a), "host %u at tap %u", i, tap);
                cr_assert(!again || p == of[tap][i]);
                of[tap][i] = p;
            }
    cr_expect_eq(l.n_ports, 400);
    timeline_ports_free(&l);
}
