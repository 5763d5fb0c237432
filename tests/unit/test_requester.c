/* layer 2 (transport) tests: the requester, from the rules of IBTA volume 1, 9.7. */
#include "src/transport/requester.h"

#include <criterion/criterion.h>

#include "tests/unit/mkpkt.h"

#define ACK31 0x1f
#define T_TR  (4096 << 5) /* timeout code 5 */

struct block {
    struct requester r;
    struct req_msg ring[32];
};

static void start(struct block *b, uint32_t psn)
{
    struct req_params p = {
        .service = SVC_RC, .timeout = 5, .retry_cnt = 2, .rnr_retry = 1, .max_rd = 2, .pmtu = 256, .psn = psn};

    memset(b, 0, sizeof *b);
    req_init(&b->r, &p, b->ring, 32);
}

static enum rule judged(const struct block *b, struct pkt p, ns_t now)
{
    return (enum rule)req_tx_check(&b->r, &p, now).rule;
}

/* Send what the check permits. */
static void tx(struct block *b, struct pkt p, ns_t now)
{
    cr_assert_eq(judged(b, p, now), RULE_NONE, "%s", rule_str(judged(b, p, now)));
    req_tx(&b->r, &p, now);
}

static struct effects rx(struct block *b, struct pkt p, ns_t now)
{
    return req_rx(&b->r, &p, now);
}

static void sends(struct block *b, uint32_t psn, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        tx(b, mk(OP_SEND_ONLY, psn_add(psn, i), 4), 0);
}

Test(requester, packets_are_numbered_one_by_one_through_the_wrap)
{
    struct block b;

    start(&b, 0xfffffe);
    sends(&b, 0xfffffe, 4);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 3, 4), 0), RULE_SEQ_01);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 2, 4), 0), RULE_NONE);
}

Test(requester, request_after_a_read_follows_the_psns_of_its_answers)
{
    struct block b;

    start(&b, 0xffffff);
    tx(&b, mk_read(0xffffff, 0, 600), 0);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 0, 4), 0), RULE_RDA_01);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 2, 4), 0), RULE_NONE);
}

Test(requester, messages_are_first_middle_last_of_one_operation)
{
    struct block b;

    start(&b, 0);
    cr_expect_eq(judged(&b, mk(OP_SEND_MIDDLE, 0, 256), 0), RULE_SEQ_03);
    tx(&b, mk(OP_SEND_FIRST, 0, 256), 0);
    cr_expect_eq(judged(&b, mk(OP_WRITE_MIDDLE, 1, 256), 0), RULE_SEQ_02);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 1, 4), 0), RULE_SEQ_03);
    cr_expect_eq(judged(&b, mk_read(1, 0, 4), 0), RULE_SEQ_02);
    tx(&b, mk(OP_SEND_MIDDLE, 1, 256), 0);
    tx(&b, mk(OP_SEND_LAST_IMM, 2, 1), 0);
    cr_expect_eq(judged(&b, mk(OP_SEND_LAST, 3, 1), 0), RULE_SEQ_03);
}

Test(requester, payloads_fit_the_path_mtu)
{
    struct block b;
    struct pkt p = mk(OP_SEND_ONLY, 0, 5);

    start(&b, 0);
    cr_expect_eq(judged(&b, mk(OP_SEND_FIRST, 0, 252), 0), RULE_SEQ_04);
    cr_expect_eq(judged(&b, mk(OP_SEND_FIRST, 0, 512), 0), RULE_CM_08);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 0, 257), 0), RULE_SEQ_04);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 0, 0), 0), RULE_NONE);
    p.bth.padcnt = 0;
    cr_expect_eq(judged(&b, p, 0), RULE_FMT_05);
    tx(&b, mk(OP_SEND_FIRST, 0, 256), 0);
    cr_expect_eq(judged(&b, mk(OP_SEND_LAST, 1, 0), 0), RULE_SEQ_04, "a Last carries something");
}

Test(requester, write_that_is_too_long_is_told_once)
{
    struct block b;
    struct pkt p = mk(OP_WRITE_MIDDLE, 1, 256);

    start(&b, 0);
    tx(&b, mk_reth(OP_WRITE_FIRST, 0, 256, 64, 1, 300), 0);
    cr_expect_eq(judged(&b, p, 0), RULE_SEQ_06);
    req_tx(&b.r, &p, 0);
    cr_expect_eq(judged(&b, mk(OP_WRITE_MIDDLE, 2, 256), 0), RULE_NONE);
    cr_expect_eq(judged(&b, mk(OP_WRITE_LAST, 2, 44), 0), RULE_NONE);
}

Test(requester, write_carries_what_its_reth_announces)
{
    struct block b;

    start(&b, 0);
    cr_expect_eq(judged(&b, mk_reth(OP_WRITE_ONLY, 0, 8, 0, 1, 9), 0), RULE_SEQ_06);
    tx(&b, mk_reth(OP_WRITE_FIRST, 0, 256, 64, 1, 300), 0);
    cr_expect_eq(judged(&b, mk(OP_WRITE_MIDDLE, 1, 256), 0), RULE_SEQ_06);
    cr_expect_eq(judged(&b, mk(OP_WRITE_LAST, 1, 43), 0), RULE_SEQ_06);
    cr_expect_eq(judged(&b, mk(OP_WRITE_LAST, 1, 44), 0), RULE_NONE);
    cr_expect_eq(judged(&b, mk_read(2, 0, UINT32_C(0x80000004)), 0), RULE_SEQ_01);
}

Test(requester, depth_window_and_alignment_are_limits)
{
    struct block b;

    start(&b, 0);
    cr_expect_eq(judged(&b, mk_reth(OP_READ_REQUEST, 0, 0, 0, 0, UINT32_C(1) << 31), 0), RULE_SEQ_10);
    cr_expect_eq(judged(&b, mk_atomic(OP_FETCH_ADD, 0, 12), 0), RULE_RDA_08);
    tx(&b, mk_read(0, 0, 4), 0);
    tx(&b, mk_atomic(OP_FETCH_ADD, 1, 8), 0);
    cr_expect_eq(judged(&b, mk_read(2, 0, 4), 0), RULE_RDA_06);
    cr_expect_eq(rx(&b, mk_aeth(OP_READ_RESP_ONLY, 0, 4, ACK31, 1), 0).completed, 1);
    cr_expect_eq(judged(&b, mk_read(2, 0, 4), 0), RULE_NONE);
}

Test(requester, one_ack_completes_all_before_it)
{
    struct block b;

    start(&b, 0xffffff);
    sends(&b, 0xffffff, 4);
    cr_expect_eq(rx(&b, mk_ack(1, ACK31, 3), 0).completed, 3);
    cr_expect_eq(rx(&b, mk_ack(2, ACK31, 4), 0).completed, 1);
    cr_expect_eq(req_expiry(&b.r), NS_NEVER);
}

Test(requester, ack_inside_a_message_completes_nothing)
{
    struct block b;
    struct effects e;

    start(&b, 0);
    tx(&b, mk(OP_SEND_FIRST, 0, 256), 0);
    tx(&b, mk(OP_SEND_MIDDLE, 1, 256), 0);
    tx(&b, mk(OP_SEND_LAST, 2, 4), 0);
    e = rx(&b, mk_ack(1, ACK31, 0), 0);
    cr_expect(e.flags & EFF_ACKED && e.completed == 0);
    cr_expect_eq(req_outstanding(&b.r), 1);
}

Test(requester, sequence_nak_acknowledges_what_is_before_it_and_sends_from_there_again)
{
    struct block b;
    struct effects e;

    start(&b, 0xfffffe);
    sends(&b, 0xfffffe, 5);
    e = rx(&b, mk_ack(0, 0x60, 2), 0);
    cr_expect(e.completed == 2 && e.flags & EFF_RETRANSMIT && e.reason == WHY_SEQUENCE_NAK);
    cr_expect_eq(b.r.psn_tx, 0);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 1, 4), 0), RULE_RTX_01);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 3, 4), 0), RULE_RTX_01);
    sends(&b, 0, 3);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 3, 4), 0), RULE_NONE);
}

Test(requester, same_nak_again_changes_nothing)
{
    struct block b;

    start(&b, 0);
    sends(&b, 0, 3);
    rx(&b, mk_ack(1, 0x60, 1), 0);
    sends(&b, 1, 2);
    cr_expect_eq(rx(&b, mk_ack(1, 0x60, 1), 0).flags, EFF_DROP);
    cr_expect_eq(b.r.psn_tx, 3);
}

Test(requester, retransmission_is_the_original_packet)
{
    struct block b;

    start(&b, 0);
    tx(&b, mk(OP_SEND_FIRST, 0, 256), 0);
    tx(&b, mk(OP_SEND_LAST, 1, 8), 0);
    tx(&b, mk_reth(OP_WRITE_ONLY, 2, 8, 64, 7, 8), 0);
    rx(&b, mk_ack(0, 0x60, 0), 0);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 0, 256), 0), RULE_SEQ_11);
    tx(&b, mk(OP_SEND_FIRST, 0, 256), 0);
    cr_expect_eq(judged(&b, mk(OP_SEND_LAST, 1, 4), 0), RULE_SEQ_11);
    tx(&b, mk(OP_SEND_LAST, 1, 8), 0);
    cr_expect_eq(judged(&b, mk_reth(OP_WRITE_ONLY, 2, 8, 65, 7, 8), 0), RULE_SEQ_11);
    tx(&b, mk_reth(OP_WRITE_ONLY, 2, 8, 64, 7, 8), 0);
}

Test(requester, rnr_nak_waits_its_time_and_counts)
{
    struct block b;
    struct effects e;

    start(&b, 0xffffff);
    sends(&b, 0xffffff, 2);
    e = rx(&b, mk_ack(0xffffff, 0x20 | 12, 0), 1000);
    cr_expect(e.flags & EFF_WAIT && e.reason == WHY_RNR_NAK);
    cr_expect_eq(req_expiry(&b.r), 1000 + 640 * NS_PER_US);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 0xffffff, 4), 1000 + 639 * NS_PER_US), RULE_RTX_05);
    req_expire(&b.r, 1000 + 640 * NS_PER_US);
    tx(&b, mk(OP_SEND_ONLY, 0xffffff, 4), 1000 + 640 * NS_PER_US);
    e = rx(&b, mk_ack(0xffffff, 0x20 | 12, 0), NS_PER_MS);
    cr_expect(e.flags & EFF_ERROR && e.status == WC_RNR_RETRY_EXC_ERR, "one retry was granted");
}

Test(requester, a_sequence_nak_after_the_rnr_wait_is_heeded)
{
    struct block b;
    struct effects e;

    start(&b, 0);
    sends(&b, 0, 2);
    rx(&b, mk_ack(0, 0x20 | 12, 0), 0);
    req_expire(&b.r, 640 * NS_PER_US);
    tx(&b, mk(OP_SEND_ONLY, 0, 4), 640 * NS_PER_US);
    tx(&b, mk(OP_SEND_ONLY, 1, 4), 640 * NS_PER_US);
    e = rx(&b, mk_ack(0, 0x60, 0), 650 * NS_PER_US);
    cr_expect(e.flags & EFF_RETRANSMIT && e.reason == WHY_SEQUENCE_NAK, "it was lost on its way again");
}

Test(requester, rnr_retry_seven_never_ends)
{
    struct block b;
    ns_t now = 0;

    start(&b, 0);
    b.r.p.rnr_retry = b.r.rnr_left = 7;
    sends(&b, 0, 1);
    for (int i = 0; i < 50; i++) {
        cr_assert(!(rx(&b, mk_ack(0, 0x21, 0), now).flags & EFF_ERROR));
        now = req_expiry(&b.r);
        req_expire(&b.r, now);
        tx(&b, mk(OP_SEND_ONLY, 0, 4), now);
    }
}

Test(requester, silence_is_broken_after_the_timeout_and_given_up_after_the_retries)
{
    struct block b;
    ns_t now = 500;

    start(&b, 0);
    tx(&b, mk(OP_SEND_ONLY, 0, 4), now);
    for (int retry = 0; retry < 2; retry++) {
        cr_expect_eq(req_expiry(&b.r), now + T_TR);
        cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 0, 4), now + T_TR - 1), RULE_RTX_02);
        cr_expect_eq(req_expire(&b.r, now + T_TR - 1).flags, 0);
        cr_expect_eq(req_expire(&b.r, now + T_TR).reason, WHY_TIMEOUT);
        now += T_TR + 7;
        tx(&b, mk(OP_SEND_ONLY, 0, 4), now);
    }
    cr_expect_eq(req_expire(&b.r, now + T_TR).status, WC_RETRY_EXC_ERR);
}

Test(requester, progress_restarts_the_timer_and_the_counter)
{
    struct block b;

    start(&b, 0);
    sends(&b, 0, 2);
    req_expire(&b.r, T_TR);
    cr_expect_eq(b.r.retry_left, 1);
    sends(&b, 0, 2);
    rx(&b, mk_ack(0, ACK31, 1), T_TR + 100);
    cr_expect_eq(b.r.retry_left, 2);
    cr_expect_eq(req_expiry(&b.r), T_TR + 100 + T_TR);
}

Test(requester, no_timeout_with_code_zero)
{
    struct block b;

    start(&b, 0);
    b.r.p.timeout = 0;
    sends(&b, 0, 1);
    cr_expect_eq(req_expiry(&b.r), NS_NEVER);
}

Test(requester, ack_that_passes_over_a_read_refuses_it)
{
    struct block b;
    struct effects e;

    start(&b, 0);
    sends(&b, 0, 1);
    tx(&b, mk_read(1, 4096, 600), 0);
    tx(&b, mk(OP_SEND_ONLY, 4, 4), 0);
    e = rx(&b, mk_ack(4, ACK31, 3), 0);
    cr_expect(e.completed == 1 && e.reason == WHY_IMPLIED_NAK && e.flags & EFF_RETRANSMIT);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 4, 4), 0), RULE_RTX_11);
    tx(&b, mk_read(1, 4096, 600), 0);
    cr_expect(!(rx(&b, mk_ack(4, ACK31, 3), 0).flags & EFF_RETRANSMIT), "once");
}

Test(requester, read_is_asked_for_again_from_the_first_missing_byte)
{
    struct block b;
    struct effects e;

    start(&b, 0xffffff);
    tx(&b, mk_read(0xffffff, 4096, 1000), 0);
    e = rx(&b, mk_aeth(OP_READ_RESP_FIRST, 0xffffff, 256, ACK31, 1), 0);
    cr_expect(e.flags & EFF_READ_DATA && e.offset == 0 && e.len == 256);
    e = rx(&b, mk(OP_READ_RESP_MIDDLE, 1, 256), 0);
    cr_expect(!(e.flags & EFF_READ_DATA) && e.reason == WHY_IMPLIED_NAK, "a hole");
    cr_expect_eq(judged(&b, mk_read(0, 4096, 1000), 0), RULE_RDA_04);
    cr_expect_eq(judged(&b, mk_read(0xffffff, 4096, 1000), 0), RULE_RTX_01);
    tx(&b, mk_read(0, 4096 + 256, 744), 0);
    rx(&b, mk_aeth(OP_READ_RESP_FIRST, 0, 256, ACK31, 1), 0);
    rx(&b, mk(OP_READ_RESP_MIDDLE, 1, 256), 0);
    e = rx(&b, mk_aeth(OP_READ_RESP_LAST, 2, 232, ACK31, 1), 0);
    cr_expect(e.flags & EFF_READ_DATA && e.offset == 768 && e.len == 232 && e.completed == 1);
}

Test(requester, soft_roces_answer_that_goes_on_with_a_middle_is_taken)
{
    struct block b;

    start(&b, 0);
    tx(&b, mk_read(0, 4096, 600), 0);
    rx(&b, mk_aeth(OP_READ_RESP_FIRST, 0, 256, ACK31, 1), 0);
    req_expire(&b.r, T_TR);
    tx(&b, mk_read(1, 4096 + 256, 344), T_TR);
    cr_expect(rx(&b, mk(OP_READ_RESP_MIDDLE, 1, 256), T_TR).flags & EFF_READ_DATA);
}

Test(requester, answer_of_a_wrong_length_is_a_bad_response)
{
    struct block b;
    struct effects e;

    start(&b, 0);
    tx(&b, mk_read(0, 4096, 600), 0);
    e = rx(&b, mk_aeth(OP_READ_RESP_FIRST, 0, 252, ACK31, 1), 0);
    cr_expect(e.flags & EFF_ERROR && e.status == WC_BAD_RESP_ERR);
}

Test(requester, fatal_naks_end_the_message_with_their_status)
{
    static const struct {
        uint8_t syndrome, status;
    } t[] = {{0x61, WC_REM_INV_REQ_ERR}, {0x62, WC_REM_ACCESS_ERR}, {0x63, WC_REM_OP_ERR}};

    for (unsigned i = 0; i < ARRAY_LEN(t); i++) {
        struct block b;
        struct effects e;
        start(&b, 0);
        sends(&b, 0, 3);
        e = rx(&b, mk_ack(1, t[i].syndrome, 1), 0);
        cr_expect(e.completed == 1 && e.flags & EFF_ERROR && e.status == t[i].status && e.msg == 1);
        cr_expect_eq(rx(&b, mk_ack(2, ACK31, 3), 0).reason, WHY_STATE);
    }
}

Test(requester, ghosts_and_stale_responses_have_no_effect)
{
    struct block b;

    start(&b, 0);
    cr_expect_eq(rx(&b, mk_ack(0, ACK31, 1), 0).reason, WHY_GHOST);
    sends(&b, 0, 2);
    rx(&b, mk_ack(0, ACK31, 1), 0);
    cr_expect_eq(rx(&b, mk_ack(2, ACK31, 1), 0).reason, WHY_GHOST);
    cr_expect_eq(rx(&b, mk_ack(0, ACK31, 1), 0).reason, WHY_STALE);
    cr_expect_eq(rx(&b, mk_ack(0, 0x60, 1), 0).reason, WHY_STALE);
    cr_expect_eq(rx(&b, mk_aeth(OP_READ_RESP_ONLY, 1, 4, ACK31, 1), 0).reason, WHY_GHOST);
    cr_expect_eq(req_outstanding(&b.r), 1);
}

Test(requester, credits_limit_sends_but_for_one_probe)
{
    struct block b;

    start(&b, 0);
    b.r.unlimited = false;
    sends(&b, 0, 1);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 1, 4), 0), RULE_ACK_08);
    cr_expect_eq(judged(&b, mk_reth(OP_WRITE_ONLY, 1, 0, 0, 0, 0), 0), RULE_NONE, "a plain WRITE needs none");
    cr_expect_eq(judged(&b, mk_reth(OP_WRITE_ONLY_IMM, 1, 0, 0, 0, 0), 0), RULE_ACK_08);
    cr_expect(rx(&b, mk_ack(0, 2, 1), 0).flags & EFF_CREDITS);
    sends(&b, 1, 3);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 4, 4), 0), RULE_ACK_08);
    rx(&b, mk_ack(1, ACK31, 2), 0);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 4, 4), 0), RULE_NONE, "31: no limit");
}

Test(requester, a_probe_is_over_once_it_is_acknowledged)
{
    struct block b;

    start(&b, 0);
    b.r.unlimited = false;
    sends(&b, 0, 1);
    rx(&b, mk_ack(0, 2, 1), 0);
    sends(&b, 1, 3); /* the last one without credit */
    rx(&b, mk_ack(1, 1, 2), 0);
    cr_expect(b.r.probing, "an earlier packet is acknowledged, and there is no further credit");
    rx(&b, mk_ack(3, 0, 3), 0);
    cr_expect_not(b.r.probing, "it is acknowledged");
}

Test(requester, local_operation_completes_in_its_turn)
{
    struct block b;

    start(&b, 0);
    sends(&b, 0, 1);
    req_local(&b.r);
    sends(&b, 1, 1);
    cr_expect_eq(req_settle(&b.r).completed, 0);
    cr_expect_eq(rx(&b, mk_ack(0, ACK31, 1), 0).completed, 2);
    cr_expect_eq(rx(&b, mk_ack(1, ACK31, 2), 0).completed, 1);
}
