/* layer 3 (measure) tests: the measures of a connection. */
#include "tests/unit/talk.h"

static struct talk t;

Test(meter, row_counts_packets_messages_and_goodput)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk_reth(OP_WRITE_FIRST, 100, 1024, 0, 1, 2000));
    talk(&t, 0, US, mk(OP_WRITE_LAST, 101, 976));
    talk(&t, 1, 7 * US, mk_ack(101, 0x1f, 1));
    talk_end(&t, NS_PER_S);
    const struct meter_row *r = talk_row(&t, 0), *back = talk_row(&t, 1);
    cr_expect_eq(r->c.packets, 2);
    cr_expect_eq(r->c.bytes, 2 * 60 + 2000);
    cr_expect_eq(r->c.payload, 2000);
    cr_expect_eq(r->messages, 1);
    cr_expect_eq(r->ops[WQE_WRITE], 1);
    cr_expect_eq(r->goodput, 2000 * 8 * UINT64_C(1000000) / 8, "2000 bytes in 8 us");
    cr_expect_eq(r->acks, 1);
    cr_expect_eq(r->packets_per_ack, 2000);
    cr_expect_eq(r->pmtu_seen, 1024);
    cr_expect_eq(back->responses, 1);
    cr_expect_eq(back->requests, 0);
    cr_expect_eq(back->goodput, METER_NONE);
}

Test(meter, row_says_how_the_directions_were_paired)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, US, mk_ack(100, 0x1f, 1));
    talk_end(&t, 0);
    cr_expect_str_eq(talk_row(&t, 0)->setup, "CM");
    cr_expect_str_eq(talk_row(&t, 0)->certainty, "sure");
    cr_expect_eq(talk_row(&t, 0)->sqpn, 0x11);
    talk_stop(&t);
    t = (struct talk){0};
    talk_start(&t, false);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 101, 10));
    talk_end(&t, 0);
    cr_expect_str_eq(talk_row(&t, 0)->certainty, "none");
    cr_expect_eq(talk_row(&t, 0)->sqpn, METER_NONE);
}

Test(meter, agreed_values_stand_beside_observed_ones)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk_read(100, 0, 10));
    talk(&t, 0, US, mk_read(101, 0, 10));
    talk(&t, 0, US, mk_read(102, 0, 10));
    talk_end(&t, 0);
    const struct meter_row *r = talk_row(&t, 0);
    cr_expect_eq(r->depth_agreed, 2);
    cr_expect_eq(r->depth_seen, 3);
    cr_expect_eq(r->timeout_agreed, 4096 << 10);
    cr_expect_eq(r->retry_agreed, 2);
    cr_expect_eq(r->rnr_retry_agreed, 1);
    cr_expect_eq(r->pmtu_agreed, 1024);
}

Test(meter, what_the_other_end_was_promised_is_not_known)
{
    talk_start(&t, false);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk_end(&t, 0);
    const struct meter_row *r = talk_row(&t, 0);
    cr_expect(r->depth_agreed == METER_NONE && r->timeout_agreed == METER_NONE && r->retry_agreed == METER_NONE &&
              r->pmtu_agreed == METER_NONE);
}

Test(meter, rnr_wait_runs_from_the_nak_to_the_next_copy)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, US, mk_ack(100, 0x2c, 0)); /* code 12: 0.64 ms */
    talk(&t, 0, 700 * US, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, US, mk_ack(100, 0x2c, 0));
    talk(&t, 0, 800 * US, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, US, mk_ack(100, 0x1f, 1));
    talk_end(&t, 0);
    const struct meter_row *r = talk_row(&t, 0);
    cr_expect_eq(r->c.rnr_naks, 2);
    cr_expect_eq(r->rnr_wait, 1500 * US);
    cr_expect_eq(r->rnr_timer, 640 * US);
    cr_expect_eq(r->rnr_retry_seen, 2);
    cr_expect_eq(r->c.timeouts, 0, "an RNR wait is no timeout");
    cr_expect_eq(talk_row(&t, 1)->naks_sent, 2);
}

Test(meter, timeout_costs_the_silence_since_the_last_progress)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 0, US, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 1, 100 * US, mk_ack(100, 0x1f, 1)); /* progress: the ACK timer restarts */
    talk(&t, 0, 4200 * US, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 0, 4300 * US, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 1, US, mk_ack(101, 0x1f, 2));
    talk_end(&t, 0);
    const struct meter_row *r = talk_row(&t, 0);
    cr_expect_eq(r->c.timeouts, 2);
    cr_expect_eq(r->timeout_wait, 8500 * US);
    cr_expect_eq(r->timeout_seen, 4200 * US);
    cr_expect_eq(r->retry_seen, 2);
    cr_expect_eq(r->c.again, 2);
}

Test(meter, sequence_nak_is_no_timeout)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 0, US, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 1, US, mk_ack(100, 0x60, 0));
    talk(&t, 0, US, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 0, US, mk(OP_SEND_ONLY, 101, 10));
    talk_end(&t, 0);
    const struct meter_row *r = talk_row(&t, 0);
    cr_expect_eq(r->c.seq_naks, 1);
    cr_expect_eq(r->c.timeouts, 0);
    cr_expect_eq(r->implied_naks, 0);
    cr_expect_eq(r->c.again, 2);
    cr_expect_eq(r->again_bytes, 20);
}

Test(meter, response_that_passes_over_a_read_is_an_implied_nak)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk_read(100, 0, 10));
    talk(&t, 0, US, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 1, US, mk_ack(101, 0x1f, 2));
    talk(&t, 0, US, mk_read(100, 0, 10));
    talk_end(&t, 0);
    cr_expect_eq(talk_row(&t, 0)->implied_naks, 1);
    cr_expect_eq(talk_row(&t, 0)->c.timeouts, 0);
    cr_expect_eq(talk_row(&t, 0)->duplicate_requests, 1, "its delivery had been shown");
}

/* A response skips an atomic, which is retransmitted `after` ns later. */
static const struct meter_row *go_back_after(bool paired, ns_t after)
{
    talk_start(&t, paired);
    talk(&t, 0, 0, mk_atomic(OP_FETCH_ADD, 100, 0));
    talk(&t, 0, US, mk_atomic(OP_FETCH_ADD, 101, 0));
    talk(&t, 1, US, mk_aeth(OP_ATOMIC_ACKNOWLEDGE, 101, 0, 0x1f, 2));
    talk(&t, 0, after, mk_atomic(OP_FETCH_ADD, 100, 0));
    talk_end(&t, 0);
    return talk_row(&t, 0);
}

Test(meter, implied_nak_that_was_let_pass_until_the_timeout_is_a_timeout)
{
    const struct meter_row *r = go_back_after(true, 4096 * 1024); /* as agreed on */

    cr_expect_eq(r->implied_naks, 0);
    cr_expect_eq(r->c.timeouts, 1);
}

Test(meter, implied_nak_acted_on_before_half_the_timeout_is_one)
{
    const struct meter_row *r = go_back_after(true, 2048 * 1024 - 1);

    cr_expect_eq(r->implied_naks, 1);
    cr_expect_eq(r->c.timeouts, 0);
}

Test(meter, implied_nak_is_one_however_late_where_no_timeout_is_known)
{
    const struct meter_row *r = go_back_after(false, 4096 * 1024);

    cr_expect_eq(r->implied_naks, 1);
    cr_expect_eq(r->c.timeouts, 0);
}

/* The response to PSN 101 arrives before that to PSN 100. */
static void overtaken_answers(uint32_t more)
{
    talk_start(&t, true);
    for (uint32_t psn = 100; psn <= 101 + more; psn++)
        talk(&t, 0, US, mk_atomic(OP_FETCH_ADD, psn, 0));
    for (uint32_t psn = 101; psn <= 101 + more; psn++)
        talk(&t, 1, US, mk_aeth(OP_ATOMIC_ACKNOWLEDGE, psn, 0, 0x1f, psn - 99));
    talk(&t, 1, US, mk_aeth(OP_ATOMIC_ACKNOWLEDGE, 100, 0, 0x1f, 1));
}

Test(meter, requester_goes_on_behind_an_answer_that_was_overtaken_by_an_implied_nak)
{
    overtaken_answers(0);
    talk(&t, 0, US, mk_atomic(OP_FETCH_ADD, 101, 0)); /* its response came early, and the requester dropped it */
    talk_end(&t, 0);
    cr_expect_eq(talk_row(&t, 0)->implied_naks, 1);
    cr_expect_eq(talk_row(&t, 0)->c.timeouts, 0);
}

Test(meter, answer_overtaken_once_explains_one_implied_nak)
{
    overtaken_answers(0);
    talk(&t, 0, US, mk_atomic(OP_FETCH_ADD, 101, 0));
    talk(&t, 0, 50 * US, mk_atomic(OP_FETCH_ADD, 101, 0));
    talk_end(&t, 0);
    cr_expect_eq(talk_row(&t, 0)->implied_naks, 1);
    cr_expect_eq(talk_row(&t, 0)->c.timeouts, 1);
}

Test(meter, answer_that_came_early_and_comes_again_behind_a_later_one_is_overtaken_too)
{
    overtaken_answers(1);
    talk(&t, 0, US, mk_atomic(OP_FETCH_ADD, 101, 0));
    talk(&t, 0, US, mk_atomic(OP_FETCH_ADD, 102, 0));
    talk(&t, 1, US,
         mk_aeth(OP_ATOMIC_ACKNOWLEDGE, 101, 0, 0x1f,
                 2)); /* the requester takes it now; the response to PSN 102 came before it */
    talk(&t, 0, US, mk_atomic(OP_FETCH_ADD, 102, 0));
    talk_end(&t, 0);
    cr_expect_eq(talk_row(&t, 0)->implied_naks, 2);
    cr_expect_eq(talk_row(&t, 0)->c.timeouts, 0);
}

Test(meter, requests_ahead_of_the_first_psn_agreed_on_are_out_of_sequence)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 101, 10)); /* 100 was lost before the tap */
    talk(&t, 0, US, mk(OP_SEND_ONLY, 102, 10));
    talk(&t, 1, US, mk_ack(100, 0x60, 0));
    for (uint32_t psn = 100; psn <= 102; psn++)
        talk(&t, 0, US, mk(OP_SEND_ONLY, psn, 10));
    talk_end(&t, 0);
    cr_expect_eq(talk_row(&t, 0)->out_of_sequence, 2);
    cr_expect_eq(talk_row(&t, 0)->missing, 1);
    cr_expect_eq(talk_row(&t, 0)->late, 1);
    cr_expect_eq(talk_row(&t, 0)->c.seq_naks, 1);
}

Test(meter, first_request_of_which_nothing_was_agreed_on_is_in_sequence)
{
    talk_start(&t, false);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 0, US, mk(OP_SEND_ONLY, 102, 10));
    talk_end(&t, 0);
    cr_expect_eq(talk_row(&t, 0)->out_of_sequence, 0);
    cr_expect_eq(talk_row(&t, 0)->missing, 0);
}

Test(meter, gap_and_what_comes_late_are_told_apart)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 0, US, mk(OP_SEND_ONLY, 102, 10));
    talk(&t, 0, US, mk(OP_SEND_ONLY, 101, 10));
    talk_end(&t, 0);
    const struct meter_row *r = talk_row(&t, 0);
    cr_expect_eq(r->missing, 1);
    cr_expect_eq(r->late, 1);
    cr_expect_eq(r->out_of_sequence, 1);
    cr_expect_eq(r->c.again, 0);
}

Test(meter, credits_are_those_of_acks_that_have_any)
{
    talk_start(&t, true);
    for (uint32_t i = 0; i < 3; i++)
        talk(&t, 0, 0, mk(OP_SEND_ONLY, 100 + i, 10));
    talk(&t, 1, US, mk_ack(100, 5, 1));    /* code 5: 6 credits */
    talk(&t, 1, US, mk_ack(101, 12, 2));   /* code 12: 64 */
    talk(&t, 1, US, mk_ack(102, 0x1f, 3)); /* none announced */
    talk_end(&t, 0);
    cr_expect_eq(talk_row(&t, 0)->credits_min, 6);
    cr_expect_eq(talk_row(&t, 0)->credits_max, 64);
    cr_expect_eq(talk_row(&t, 1)->credits_min, METER_NONE);
}

Test(meter, cnps_belong_to_their_direction_and_are_told_to_the_other)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, US, mk_ack(100, 0x1f, 1));
    talk(&t, 1, 10 * US, mk(OPCODE_CNP, 0, 16));
    talk(&t, 1, 50 * US, mk(OPCODE_CNP, 0, 16));
    talk(&t, 1, 70 * US, mk(OPCODE_CNP, 0, 16));
    talk_end(&t, 0);
    const struct meter_row *r = talk_row(&t, 1);
    cr_expect_eq(r->c.cnps, 3);
    cr_expect_eq(r->cnp_gap_min, 50 * US);
    cr_expect_eq(r->cnp_gap_mean, 60 * US);
    cr_expect_eq(r->c.payload, 0, "a CNP's bytes are reserved");
    cr_expect_eq(talk_row(&t, 0)->cnps_received, 3);
}

Test(meter, ack_latency_counts_from_the_latest_copy)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 0, 5000 * US, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 30 * US, mk_ack(100, 0x1f, 1));
    talk_end(&t, 0);
    const struct meter_row *r = talk_row(&t, 0);
    cr_expect_eq(r->ack_latency.n, 1);
    cr_expect_eq(r->ack_latency.max, 30 * US);
    cr_expect_eq(r->latency.max, 5030 * US, "the message's counts from the first");
}

Test(meter, packet_with_a_wrong_icrc_counts_as_that_only)
{
    struct pkt bad = mk(OP_SEND_ONLY, 101, 10);

    bad.icrc = CRC_BAD;
    talk_start(&t, true);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 0, US, bad);
    talk_end(&t, 0);
    cr_expect_eq(talk_row(&t, 0)->bad_icrc, 1);
    cr_expect_eq(talk_row(&t, 0)->c.packets, 1);
}

Test(meter, responses_without_their_requests_are_counted)
{
    talk_start(&t, true);
    talk(&t, 1, 0, mk_ack(100, 0x1f, 1));
    talk(&t, 1, US, mk_ack(101, 0x60, 1));
    talk_end(&t, 0);
    cr_expect_eq(talk_row(&t, 1)->responses, 2);
    cr_expect_eq(talk_row(&t, 1)->naks_sent, 1);
    cr_expect_eq(t.n_work, 0);
}

Test(meter, queue_pair_agreed_on_anew_gets_a_new_row)
{
    struct conn_known k = {
        .addr = {{{[15] = 1}}, {{[15] = 2}}}, .qpn = {0x11, 0x11}, .psn = {7000, 8000}, .how = PAIR_CM};
    size_t n;

    talk_start(&t, true);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    conn_learn(observer_conns(t.observer), &k);
    talk(&t, 0, US, mk(OP_SEND_ONLY, 7000, 10));
    talk_end(&t, 0);
    meter_rows(t.meter, &n);
    cr_expect_eq(n, 2);
    cr_expect_eq(t.work[0].reason, WQE_RESTART);
    cr_expect_eq(meter_totals(t.meter).lost_rows, 0);
}

/* --- Intervals -------------------------------------------------------------------------------- */

static struct {
    ns_t since;
    struct meter_counts c;
} ticks[8];
static unsigned n_ticks;

static void on_tick(void *user, struct meter_row *row, ns_t start, ns_t since, const struct meter_counts *added)
{
    (void)user;
    cr_expect_eq(start - since, NS_PER_S, "counted from the first frame");
    if (row->src.b[15] == 1 && n_ticks < ARRAY_LEN(ticks)) {
        ticks[n_ticks].since = since;
        ticks[n_ticks++].c = *added;
    }
}

Test(meter, intervals_are_counted_from_the_first_frame_and_empty_ones_left_out)
{
    t.o = (struct meter_opts){.interval = NS_PER_MS, .tick = on_tick};
    talk_start(&t, true);
    talk(&t, 1, 0, mk_ack(99, 0x1f, 1));
    talk(&t, 0, 2500 * US, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 0, 100 * US, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 0, 2000 * US, mk(OP_SEND_ONLY, 102, 10));
    talk(&t, 1, 500 * US, mk_ack(102, 0x60, 1)); /* of the next interval, and counted in the row of the requests */
    talk_end(&t, 0);
    cr_assert_eq(n_ticks, 3);
    cr_expect(ticks[0].since == 2 * NS_PER_MS && ticks[0].c.packets == 2);
    cr_expect(ticks[1].since == 4 * NS_PER_MS && ticks[1].c.packets == 1);
    cr_expect(ticks[2].since == 5 * NS_PER_MS && ticks[2].c.packets == 0 && ticks[2].c.seq_naks == 1);
}
