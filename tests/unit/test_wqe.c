/* layer 3 (measure) tests: work requests reconstructed from packets, and their status. */
#include "tests/unit/talk.h"

static struct talk t;

static struct wqe over(unsigned i)
{
    cr_assert_lt(i, t.n_work, "%u work requests", t.n_work);
    return t.work[i];
}

Test(wqe, first_middle_and_last_are_one_that_the_ack_completes)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk_reth(OP_WRITE_FIRST, 100, 1024, 0x7000, 0x55, 2500));
    talk(&t, 0, US, mk(OP_WRITE_MIDDLE, 101, 1024));
    talk(&t, 0, US, mk(OP_WRITE_LAST, 102, 452));
    talk(&t, 1, US, mk_ack(102, 0x1f, 1));
    talk_end(&t, 0);
    struct wqe w = over(0);
    cr_expect_eq(t.n_work, 1);
    cr_expect_eq(w.op, WQE_WRITE);
    cr_expect_eq(w.bytes, 2500);
    cr_expect_eq(w.va, 0x7000);
    cr_expect_eq(w.rkey, 0x55);
    cr_expect_eq(w.status, WC_SUCCESS);
    cr_expect(w.begun && w.ended);
    cr_expect_eq(w.first_frame, 1);
    cr_expect_eq(w.last_frame, 3);
    cr_expect_eq(w.done_frame, 4);
    cr_expect_eq(w.done - w.start, 3 * US);
}

Test(wqe, one_ack_completes_all_before_it)
{
    talk_start(&t, true);
    for (uint32_t i = 0; i < 5; i++)
        talk(&t, 0, US, mk(OP_SEND_ONLY, 100 + i, 10));
    talk(&t, 1, US, mk_ack(103, 0x1f, 4));
    talk_end(&t, 0);
    for (unsigned i = 0; i < 4; i++)
        cr_expect(over(i).status == WC_SUCCESS && over(i).done_frame == 6 && over(i).id == i + 1);
    cr_expect_eq(over(4).status, WQE_STATUS_UNKNOWN);
    cr_expect_eq(over(4).reason, WQE_CAPTURE_ENDS);
}

Test(wqe, immediate_in_the_last_packet_names_the_operation)
{
    struct pkt last = mk(OP_SEND_LAST_IMM, 101, 10), inv = mk(OP_SEND_ONLY_INV, 102, 4);

    last.immdt.data = 0xcafe;
    inv.ieth.rkey = 0x77;
    talk_start(&t, true);
    talk(&t, 0, 0, mk(OP_SEND_FIRST, 100, 1024));
    talk(&t, 0, 0, last);
    talk(&t, 0, 0, inv);
    talk_end(&t, 0);
    cr_expect_eq(over(0).op, WQE_SEND_IMM);
    cr_expect_eq(over(0).imm, 0xcafe);
    cr_expect_eq(over(0).bytes, 1034);
    cr_expect_eq(over(1).op, WQE_SEND_INV);
    cr_expect_eq(over(1).imm, 0x77);
}

Test(wqe, read_is_complete_with_its_last_response_and_not_by_an_ack)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk_read(100, 0x7000, 2500));
    talk(&t, 0, US, mk(OP_SEND_ONLY, 103, 10));
    talk(&t, 1, US, mk_aeth(OP_READ_RESP_FIRST, 100, 1024, 0x1f, 1));
    talk(&t, 1, US, mk(OP_READ_RESP_MIDDLE, 101, 1024));
    talk(&t, 1, US, mk_ack(103, 0x1f, 2)); /* completes the SEND, but part of the READ is missing */
    talk_end(&t, 0);
    cr_expect_eq(over(0).op, WQE_READ);
    cr_expect_eq(over(0).got, 2);
    cr_expect_eq(over(0).status, WQE_STATUS_UNKNOWN);
    cr_expect_eq(over(0).reason, WQE_NO_ANSWER);
    cr_expect_eq(over(1).status, WQE_STATUS_UNKNOWN);
    cr_expect_eq(over(1).reason, WQE_BEHIND);
}

Test(wqe, what_is_behind_a_missing_answer_is_complete_once_its_requester_has_gone_on)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk_read(100, 0x7000, 2500));
    talk(&t, 0, US, mk(OP_SEND_ONLY, 103, 10));
    talk(&t, 1, US, mk_ack(103, 0x1f, 2)); /* the response to the READ was lost or not captured */
    talk(&t, 0, US, mk(OP_SEND_ONLY, 104, 10));
    talk_end(&t, 0);
    cr_expect_eq(over(0).status, WQE_STATUS_UNKNOWN);
    cr_expect_eq(over(1).status, WC_SUCCESS);
}

Test(wqe, read_asked_for_again_in_part_is_one_work_request)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk_read(100, 0x7000, 2500));
    talk(&t, 1, US, mk_aeth(OP_READ_RESP_FIRST, 100, 1024, 0x1f, 1));
    talk(&t, 1, US, mk_aeth(OP_READ_RESP_LAST, 102, 452, 0x1f, 1)); /* the middle is missing */
    talk(&t, 0, US, mk_read(101, 0x7400, 1476));
    talk(&t, 1, US, mk_aeth(OP_READ_RESP_FIRST, 101, 1024, 0x1f, 1));
    talk(&t, 1, US, mk_aeth(OP_READ_RESP_LAST, 102, 452, 0x1f, 1));
    talk_end(&t, 0);
    cr_expect_eq(t.n_work, 1);
    cr_expect_eq(over(0).again, 1);
    cr_expect_eq(over(0).status, WC_SUCCESS);
    cr_expect_eq(over(0).done_frame, 6);
    cr_expect_eq(over(0).bytes, 2500);
}

Test(wqe, atomic_is_complete_with_its_answer)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk_atomic(OP_FETCH_ADD, 100, 0x7008));
    talk(&t, 1, US, mk_aeth(OP_ATOMIC_ACKNOWLEDGE, 100, 0, 0x1f, 1));
    talk_end(&t, 0);
    cr_expect_eq(over(0).op, WQE_FETCH_ADD);
    cr_expect_eq(over(0).va, 0x7008);
    cr_expect_eq(over(0).bytes, 8);
    cr_expect_eq(over(0).status, WC_SUCCESS);
}

Test(wqe, refused_work_request_has_the_status_of_its_nak_and_those_behind_are_flushed)
{
    static const struct {
        uint8_t syndrome, status;
    } rows[] = {
        {0x61, WC_REM_INV_REQ_ERR}, {0x62, WC_REM_ACCESS_ERR}, {0x63, WC_REM_OP_ERR}, {0x64, WC_REM_INV_RD_REQ_ERR}};

    for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
        t = (struct talk){0};
        talk_start(&t, true);
        talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
        talk(&t, 0, US, mk_reth(OP_WRITE_ONLY, 101, 10, 0, 1, 10));
        talk(&t, 0, US, mk(OP_SEND_ONLY, 102, 10));
        talk(&t, 1, US, mk_ack(101, rows[i].syndrome, 1));
        talk_end(&t, 0);
        cr_expect_eq(over(0).status, WC_SUCCESS, "the NAK acknowledges what lies before it");
        cr_expect_eq(over(1).status, rows[i].status);
        cr_expect_eq(over(1).done_frame, 4);
        cr_expect_eq(over(2).status, WC_WR_FLUSH_ERR);
        talk_stop(&t);
    }
}

Test(wqe, what_is_sent_again_is_the_same_work_request)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk(OP_SEND_FIRST, 100, 1024));
    talk(&t, 0, US, mk(OP_SEND_LAST, 101, 10));
    talk(&t, 1, US, mk_ack(100, 0x60, 0));
    talk(&t, 0, US, mk(OP_SEND_FIRST, 100, 1024));
    talk(&t, 0, US, mk(OP_SEND_LAST, 101, 10));
    talk(&t, 1, US, mk_ack(101, 0x1f, 1));
    talk_end(&t, 0);
    cr_expect_eq(t.n_work, 1);
    cr_expect_eq(over(0).bytes, 1034);
    cr_expect_eq(over(0).packets, 4);
    cr_expect_eq(over(0).again, 2);
    cr_expect_eq(over(0).seq_naks, 1);
    cr_expect_eq(over(0).done - over(0).start, 5 * US);
}

Test(wqe, acknowledged_and_sent_again_was_not_complete_for_its_sender)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, US, mk_ack(100, 0x1f, 1)); /* lost after the tap */
    talk(&t, 0, 5000 * US, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, US, mk_ack(100, 0x1f, 1));
    talk_end(&t, 0);
    cr_expect_eq(t.n_work, 1);
    cr_expect_eq(over(0).done_frame, 4);
    cr_expect_eq(over(0).done - over(0).start, 5002 * US);
}

Test(wqe, a_copy_to_the_last_bit_is_not_sent_again)
{
    struct pkt p = mk(OP_SEND_ONLY, 100, 10);

    talk_start(&t, true);
    talk(&t, 0, 0, p);
    t.frame--; /* the same ICRC, and frame number: captured twice */
    talk(&t, 0, US, p);
    talk(&t, 1, US, mk_ack(100, 0x1f, 1));
    talk_end(&t, 0);
    cr_expect_eq(over(0).again, 0);
    cr_expect_eq(over(0).packets, 2);
    cr_expect_eq(talk_row(&t, 0)->duplicates, 1);
}

Test(wqe, silence_after_all_retries_is_retry_exceeded)
{
    talk_start(&t, true); /* the retry count is two */
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, US, mk_ack(100, 0x1f, 1));
    for (int i = 0; i < 3; i++)
        talk(&t, 0, 4200 * US, mk(OP_SEND_ONLY, 101, 10));
    talk_end(&t, 4200 * US);
    cr_expect_eq(over(1).status, WC_RETRY_EXC_ERR);
    cr_expect_eq(over(1).again, 2);
}

Test(wqe, silence_of_an_end_that_was_not_captured_says_nothing)
{
    talk_start(&t, true);
    for (int i = 0; i < 3; i++)
        talk(&t, 0, 4200 * US, mk(OP_SEND_ONLY, 100, 10));
    talk_end(&t, 42000 * US);
    cr_expect_eq(over(0).status, WQE_STATUS_UNKNOWN);
    cr_expect_eq(over(0).reason, WQE_NO_ACK);
}

Test(wqe, one_timeout_before_the_capture_ends_says_nothing)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 0, 4200 * US, mk(OP_SEND_ONLY, 100, 10));
    talk_end(&t, 4200 * US);
    cr_expect_eq(over(0).status, WQE_STATUS_UNKNOWN);
    cr_expect_eq(over(0).reason, WQE_NO_ACK);
}

Test(wqe, rnr_naks_beyond_the_retries_are_rnr_retry_exceeded)
{
    talk_start(&t, true); /* the RNR retry count is one */
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, US, mk_ack(100, 0x2c, 0));
    talk(&t, 0, 1000 * US, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, US, mk_ack(100, 0x2c, 0));
    talk_end(&t, 5000 * US);
    cr_expect_eq(over(0).status, WC_RNR_RETRY_EXC_ERR);
    cr_expect_eq(over(0).rnr_naks, 2);
}

Test(wqe, rnr_nak_that_nothing_follows_is_not_decided)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, US, mk_ack(100, 0x2c, 0));
    talk_end(&t, 0);
    cr_expect_eq(over(0).status, WQE_STATUS_UNKNOWN);
    cr_expect_eq(over(0).reason, WQE_RNR_WAIT);
}

Test(wqe, beginning_that_came_late_joins_the_end_seen_before)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 0, US, mk(OP_WRITE_LAST, 103, 20)); /* 101 and 102 were lost before the tap */
    talk(&t, 1, US, mk_ack(101, 0x60, 1));
    talk(&t, 0, US, mk_reth(OP_WRITE_FIRST, 101, 1024, 0x7000, 5, 2068));
    talk(&t, 0, US, mk(OP_WRITE_MIDDLE, 102, 1024));
    talk(&t, 0, US, mk(OP_WRITE_LAST, 103, 20));
    talk(&t, 1, US, mk_ack(103, 0x1f, 2));
    talk_end(&t, 0);
    cr_expect_eq(t.n_work, 2);
    cr_expect_eq(over(1).bytes, 2068);
    cr_expect(over(1).begun && over(1).ended);
    cr_expect_eq(over(1).status, WC_SUCCESS);
}

Test(wqe, capture_that_begins_in_the_middle_has_a_work_request_that_is_not_begun)
{
    talk_start(&t, false);
    talk(&t, 0, 0, mk(OP_WRITE_MIDDLE, 5000, 1024));
    talk(&t, 0, US, mk(OP_WRITE_LAST, 5001, 20));
    talk(&t, 1, US, mk_ack(5001, 0x1f, 7));
    talk_end(&t, 0);
    cr_expect_not(over(0).begun);
    cr_expect_eq(over(0).status, WC_SUCCESS);
    cr_expect_eq(talk_row(&t, 0)->latency.n, 0, "when it began is not known");
}

Test(wqe, psns_wrap)
{
    talk_start(&t, false);
    talk(&t, 0, 0, mk(OP_SEND_FIRST, 0xfffffe, 1024));
    talk(&t, 0, 0, mk(OP_SEND_MIDDLE, 0xffffff, 1024));
    talk(&t, 0, 0, mk(OP_SEND_LAST, 0, 1));
    talk(&t, 1, US, mk_ack(0, 0x1f, 1));
    talk_end(&t, 0);
    cr_expect_eq(t.n_work, 1);
    cr_expect_eq(over(0).status, WC_SUCCESS);
    cr_expect_eq(over(0).bytes, 2049);
}

Test(wqe, queue_pair_set_up_anew_ends_what_was_open)
{
    talk_start(&t, true);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 0, US, mk(OP_SEND_ONLY, 0x900000, 10)); /* far away */
    talk_end(&t, 0);
    cr_expect_eq(over(0).reason, WQE_RESTART);
    cr_expect_eq(over(1).reason, WQE_NO_ACK);
    cr_expect_eq(talk_row(&t, 0)->restarts, 1);
}

Test(wqe, unreliable_services_never_complete)
{
    struct pkt ud = mk(OPCODE(SVC_UD, OP_SEND_ONLY), 7, 30);

    ud.deth.srcqp = 0x99;
    talk_start(&t, true);
    talk(&t, 0, 0, mk(OPCODE(SVC_UC, OP_SEND_ONLY), 100, 10));
    talk(&t, 0, 0, ud);
    talk_end(&t, 0);
    cr_expect(over(0).service == SVC_UD && over(0).status == WQE_STATUS_UNKNOWN && over(0).reason == WQE_UNRELIABLE);
    cr_expect(over(1).service == SVC_UC && over(1).status == WQE_STATUS_UNKNOWN && over(1).reason == WQE_UNRELIABLE);
    cr_expect_eq(over(0).bytes, 30);
}

Test(wqe, more_than_are_remembered_are_handed_over_with_a_reason)
{
    struct talk *many = calloc(1, sizeof *many);

    talk_start(many, true);
    talk(many, 0, US, mk(OP_SEND_ONLY, 100, 10));
    talk(many, 1, US, mk_ack(100, 0x1f, 1));
    for (uint32_t i = 1; i < WQE_MAX + 5; i++)
        talk(many, 0, US, mk(OP_SEND_ONLY, 100 + i, 10));
    cr_expect_eq(many->n_work, 5);
    cr_expect_eq(many->work[4].reason, WQE_TOO_MANY);
    cr_expect_eq(many->work[4].id, 5);
    talk_stop(many);
    free(many);
}

Test(wqe, those_open_at_a_time_keep_their_order_however_many_they_are)
{
    struct talk *many = calloc(1, sizeof *many);

    talk_start(many, true);
    for (uint32_t i = 0; i < 5; i++)
        talk(many, 0, US, mk(OP_SEND_ONLY, 100 + i, 10));
    for (uint32_t i = 0; i < 40; i++) /* far away: the queue pair was reset */
        talk(many, 0, US, mk(OP_SEND_ONLY, 0x900000 + i, 10));
    talk_end(many, 0);
    cr_expect_eq(many->n_work, 45);
    for (uint32_t i = 0; i < 45; i++) {
        cr_expect_eq(many->work[i].id, i + 1);
        cr_expect_eq(many->work[i].psn, i < 5 ? 100 + i : 0x900000 + i - 5);
        cr_expect_eq(many->work[i].reason == WQE_RESTART, i < 5);
    }
    talk_stop(many);
    free(many);
}

Test(wqe, packets_of_one_are_told_in_both_directions)
{
    t.follow = 2;
    talk_start(&t, true);
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 0, US, mk_read(101, 0, 2000));
    talk(&t, 1, US, mk_aeth(OP_READ_RESP_FIRST, 101, 1024, 0x1f, 2));
    talk(&t, 1, US, mk_aeth(OP_READ_RESP_LAST, 102, 976, 0x1f, 2));
    talk_end(&t, 0);
    cr_expect_eq(t.followed, 3, "request and two responses");
}
