/* layer 2 (transport) tests: the responder, from the rules of IBTA volume 1, 9.7. */
#include "src/transport/responder.h"

#include <criterion/criterion.h>

#include "tests/unit/mkpkt.h"

#define ALL   ACCESS_REMOTE
#define ACK31 0x1f

/* A responder and its ring in one block. */
struct block {
    struct responder r;
    struct rsp_res ring[8];
};

static struct rsp_params params(uint32_t psn)
{
    return (struct rsp_params){.service = SVC_RC, .access = ALL, .max_rd = 4, .rnr_timer = 12, .pmtu = 256, .psn = psn};
}

static void start(struct block *b, uint32_t psn)
{
    struct rsp_params p = params(psn);

    memset(b, 0, sizeof *b);
    rsp_init(&b->r, &p, b->ring, 8);
}

static struct effects rx(struct block *b, struct pkt p)
{
    return rsp_rx(&b->r, NULL, &p, 0);
}

/* With a receive queue of `n` receives of `len` bytes. */
static struct effects rx_rq(struct block *b, struct pkt p, uint32_t n, uint64_t len)
{
    struct mr none[1];
    struct mr_table t;
    struct rsp_env env = {.mrs = &t, .pd = 1, .rq_avail = n, .rq_len = len};

    mr_table_init(&t, none, 1);
    return rsp_rx(&b->r, &env, &p, 0);
}

/* The response due next, checked and sent. */
static struct rsp_due sent(struct block *b)
{
    struct rsp_due o = rsp_due(&b->r, true);
    struct pkt p;

    if (o.kind == DUE_NOTHING)
        return o;
    p = mk_aeth(o.opcode, o.psn, o.len, o.syndrome, o.msn);
    p.atomicacketh.orig = o.orig;
    cr_expect(verdict_ok(rsp_tx_check(&b->r, &p, 0)), "%s", rule_str(rsp_tx_check(&b->r, &p, 0).rule));
    rsp_tx(&b->r, &p, 0);
    return o;
}

static enum rule judged(struct block *b, struct pkt p)
{
    return (enum rule)rsp_tx_check(&b->r, &p, 0).rule;
}

Test(responder, expected_send_is_executed_and_acknowledged)
{
    struct block b;
    struct effects e;
    struct rsp_due o;

    start(&b, 100);
    e = rx(&b, mk(OP_SEND_ONLY, 100, 10));
    cr_expect_eq(e.flags, EFF_RECV_START | EFF_RECV_DATA | EFF_RECV_DONE | EFF_MESSAGE | EFF_RESPOND);
    o = sent(&b);
    cr_expect(o.kind == DUE_ACK && o.psn == 100 && o.msn == 1 && o.syndrome == ACK31);
    cr_expect_eq(sent(&b).kind, DUE_NOTHING);
}

Test(responder, send_without_ackreq_owes_nothing)
{
    struct block b;
    struct pkt p = mk(OP_SEND_ONLY, 100, 10);

    p.bth.ackreq = 0;
    start(&b, 100);
    cr_expect(!(rx(&b, p).flags & EFF_RESPOND));
    cr_expect_eq(sent(&b).kind, DUE_NOTHING);
}

Test(responder, one_ack_covers_all_that_came_before)
{
    struct block b;

    start(&b, 5);
    for (uint32_t i = 0; i < 3; i++)
        rx(&b, mk(OP_SEND_ONLY, 5 + i, 1));
    cr_expect_eq(sent(&b).psn, 7);
    cr_expect_eq(sent(&b).kind, DUE_NOTHING);
}

Test(responder, packet_ahead_gets_a_nak_with_the_expected_psn)
{
    struct block b;
    struct rsp_due o;

    start(&b, 100);
    rx(&b, mk(OP_SEND_ONLY, 100, 4));
    cr_expect(rx(&b, mk(OP_SEND_ONLY, 103, 4)).flags & EFF_DROP);
    o = sent(&b);
    cr_expect(o.kind == DUE_NAK && o.psn == 101 && o.syndrome == 0x60 && o.msn == 1);
}

Test(responder, second_nak_waits_for_progress)
{
    struct block b;

    start(&b, 0xffffff);
    rx(&b, mk(OP_SEND_ONLY, 1, 4));
    cr_expect_eq(sent(&b).psn, 0xffffff);
    rx(&b, mk(OP_SEND_ONLY, 2, 4));
    rx(&b, mk(OP_SEND_ONLY, 3, 4));
    cr_expect_eq(sent(&b).kind, DUE_NOTHING);
    rx(&b, mk(OP_SEND_ONLY, 0xffffff, 4));
    cr_expect_eq(sent(&b).kind, DUE_ACK);
    rx(&b, mk(OP_SEND_ONLY, 5, 4));
    cr_expect_eq(sent(&b).psn, 0, "a new episode, beyond the wrap");
}

Test(responder, nak_not_sent_yet_is_dropped_when_the_expected_packet_comes)
{
    struct block b;

    start(&b, 10);
    rx(&b, mk(OP_SEND_ONLY, 11, 4));
    rx(&b, mk(OP_SEND_ONLY, 10, 4));
    cr_expect_eq(sent(&b).kind, DUE_ACK);
    cr_expect_eq(sent(&b).kind, DUE_NOTHING);
}

Test(responder, duplicate_send_is_acknowledged_again_and_not_executed)
{
    struct block b;
    struct effects e;
    struct rsp_due o;

    start(&b, 0xfffffe);
    rx(&b, mk(OP_SEND_ONLY, 0xfffffe, 4));
    rx(&b, mk(OP_SEND_ONLY, 0xffffff, 4));
    rx(&b, mk(OP_SEND_ONLY, 0, 4));
    sent(&b);
    e = rx(&b, mk(OP_SEND_ONLY, 0xffffff, 4));
    cr_expect(e.flags & EFF_DUPLICATE && !(e.flags & (EFF_RECV_START | EFF_RECV_DATA | EFF_MESSAGE)));
    o = sent(&b);
    cr_expect(o.kind == DUE_ACK && o.psn == 0 && o.msn == 3, "the last PSN executed, and the MSN stays");
}

Test(responder, read_answers_first_to_last_in_its_own_psns)
{
    static const uint8_t ops[] = {OP_READ_RESP_FIRST, OP_READ_RESP_MIDDLE, OP_READ_RESP_LAST};
    struct block b;

    start(&b, 0xffffff);
    rx(&b, mk_read(0xffffff, 4096, 600));
    for (uint32_t i = 0; i < 3; i++) {
        struct rsp_due o = sent(&b);
        cr_expect(o.kind == DUE_READ && o.opcode == ops[i] && o.psn == psn_add(0xffffff, i) && o.va == 4096 + i * 256,
                  "answer %u", i);
        cr_expect_eq(o.len, i < 2 ? 256 : 88);
    }
    cr_expect_eq(sent(&b).kind, DUE_NOTHING);
    cr_expect_eq(b.r.epsn_hi, 2, "the next request follows the answers");
    cr_expect_eq(b.r.msn_hi, 1);
}

Test(responder, read_of_nothing_gets_one_empty_answer_whatever_its_key)
{
    struct block b;
    struct rsp_due o;

    start(&b, 7);
    rx_rq(&b, mk_reth(OP_READ_REQUEST, 7, 0, 123, 0xbad, 0), 0, 0);
    o = sent(&b);
    cr_expect(o.kind == DUE_READ && o.opcode == OP_READ_RESP_ONLY && o.len == 0);
}

Test(responder, read_asked_for_again_is_answered_from_there)
{
    struct block b;
    struct rsp_due o;

    start(&b, 10);
    rx(&b, mk_read(10, 4096, 1000));
    while (sent(&b).kind)
        ;
    rx(&b, mk_read(12, 4096 + 512, 488));
    o = sent(&b);
    cr_expect(o.psn == 12 && o.opcode == OP_READ_RESP_FIRST && o.va == 4096 + 512 && o.len == 256);
    o = sent(&b);
    cr_expect(o.psn == 13 && o.opcode == OP_READ_RESP_LAST && o.len == 232);
    cr_expect_eq(sent(&b).kind, DUE_NOTHING);
    cr_expect_eq(b.r.msn_hi, 1);
}

Test(responder, read_asked_for_again_outside_its_range_is_ignored)
{
    struct block b;

    start(&b, 10);
    rx(&b, mk_read(10, 4096, 1000));
    while (sent(&b).kind)
        ;
    rx(&b, mk_read(12, 4096 + 512, 489));
    rx(&b, mk_read(12, 4096, 256));
    cr_expect_eq(sent(&b).kind, DUE_NOTHING);
}

Test(responder, duplicate_atomic_is_answered_from_the_saved_result)
{
    struct block b;
    struct effects e;

    start(&b, 0xffffff);
    e = rx(&b, mk_atomic(OP_FETCH_ADD, 0xffffff, 64));
    cr_assert(e.flags & EFF_ATOMIC);
    rsp_atomic_done(&b.r, e.msg, 42);
    cr_expect_eq(sent(&b).orig, 42);
    e = rx(&b, mk_atomic(OP_FETCH_ADD, 0xffffff, 64));
    cr_expect(!(e.flags & EFF_ATOMIC) && e.flags & EFF_DUPLICATE);
    cr_expect_eq(sent(&b).orig, 42);
}

Test(responder, atomic_that_is_no_longer_remembered_is_dropped)
{
    struct block b;

    start(&b, 0);
    for (uint32_t i = 0; i < 9; i++) {
        struct effects e = rx(&b, mk_atomic(OP_FETCH_ADD, i, 64));
        rsp_atomic_done(&b.r, e.msg, i);
        sent(&b);
    }
    cr_expect_eq(rx(&b, mk_atomic(OP_FETCH_ADD, 0, 64)).reason, WHY_NO_RESOURCE);
    cr_expect_eq(sent(&b).kind, DUE_NOTHING);
    rx(&b, mk_atomic(OP_FETCH_ADD, 1, 64));
    cr_expect_eq(sent(&b).orig, 1);
}

Test(responder, no_receive_gets_an_rnr_nak_and_then_silence)
{
    struct block b;
    struct rsp_due o;

    start(&b, 50);
    rx_rq(&b, mk(OP_SEND_FIRST, 50, 256), 0, 0);
    o = sent(&b);
    cr_expect(o.kind == DUE_NAK && o.psn == 50 && o.syndrome == (0x20 | 12) && o.msn == 0);
    rx_rq(&b, mk(OP_SEND_LAST, 51, 4), 0, 0);
    cr_expect_eq(sent(&b).kind, DUE_NOTHING, "no sequence NAK for what was behind it");
    cr_expect(rx_rq(&b, mk(OP_SEND_FIRST, 50, 256), 1, 1000).flags & EFF_RECV_START);
}

Test(responder, soft_roce_adds_a_sequence_nak_after_an_rnr_nak)
{
    struct block b;

    start(&b, 50);
    b.r.p.rxe = true;
    rx_rq(&b, mk(OP_SEND_FIRST, 50, 256), 0, 0);
    sent(&b);
    rx_rq(&b, mk(OP_SEND_LAST, 51, 4), 0, 0);
    cr_expect_eq(sent(&b).syndrome, 0x60);
}

Test(responder, plain_write_needs_no_receive_but_write_with_immediate_does)
{
    struct block b;
    struct pkt p = mk_reth(OP_WRITE_ONLY_IMM, 1, 0, 0, 0, 0);

    start(&b, 0);
    cr_expect(rx_rq(&b, mk_reth(OP_WRITE_ONLY, 0, 0, 0, 0, 0), 0, 0).flags & EFF_WRITE);
    sent(&b);
    rx_rq(&b, p, 0, 0);
    cr_expect_eq(sent(&b).syndrome >> 5, AETH_RNR);
    cr_expect(rx_rq(&b, p, 1, 0).flags & EFF_RECV_DONE);
}

static uint8_t fatal(struct pkt p, bool rxe)
{
    struct block b;
    struct rsp_due o;

    start(&b, 0);
    b.r.p.rxe = rxe;
    rx_rq(&b, p, 4, 300);
    o = sent(&b);
    cr_expect_eq(o.kind, DUE_NAK);
    cr_expect_eq(o.psn, 0);
    cr_expect_eq(o.msn, 0, "the message refused does not count");
    rx_rq(&b, mk(OP_SEND_ONLY, 0, 4), 4, 300);
    cr_expect_eq(sent(&b).kind, DUE_NOTHING, "dead");
    return o.syndrome;
}

Test(responder, invalid_requests_are_refused_for_good)
{
    struct pkt late = mk(OP_SEND_LAST, 0, 4), pad = mk(OP_SEND_ONLY, 0, 4);

    pad.bth.padcnt = 1;
    cr_expect_eq(fatal(late, false), 0x61, "Last without First");
    cr_expect_eq(fatal(mk(OP_WRITE_MIDDLE, 0, 256), false), 0x61, "Middle without First");
    cr_expect_eq(fatal(mk(OP_SEND_ONLY, 0, 257), false), 0x61, "Only longer than the path MTU");
    cr_expect_eq(fatal(mk(OP_SEND_FIRST, 0, 100), false), 0x61, "First shorter than the path MTU");
    cr_expect_eq(fatal(mk_atomic(OP_COMPARE_SWAP, 0, 4), false), 0x61, "address not a multiple of 8");
    cr_expect_eq(fatal(mk_reth(OP_WRITE_FIRST, 0, 256, 0, 0, UINT32_C(0x80000001)), false), 0x61, "longer than 2^31");
    cr_expect_eq(fatal(mk_reth(OP_WRITE_ONLY, 0, 8, 0, 0, 12), false), 0x61, "RETH and payload disagree");
    cr_expect_eq(fatal(pad, false), 0x61, "pad count");
}

Test(responder, message_longer_than_its_receive_is_refused)
{
    struct block b;
    struct effects e;

    for (int rxe = 0; rxe < 2; rxe++) {
        start(&b, 0);
        b.r.p.rxe = rxe;
        rx_rq(&b, mk(OP_SEND_FIRST, 0, 256), 1, 300);
        e = rx_rq(&b, mk(OP_SEND_LAST, 1, 45), 0, 300);
        cr_expect(e.flags & EFF_RECV_FAIL && e.status == WC_LOC_LEN_ERR);
        cr_expect_eq(sent(&b).syndrome, rxe ? 0x63 : 0x61);
    }
}

Test(responder, right_that_the_queue_pair_does_not_grant_is_an_invalid_request)
{
    static const uint8_t rights[] = {ALL & ~ACCESS_REMOTE_WRITE, ALL & ~ACCESS_REMOTE_READ,
                                     ALL & ~ACCESS_REMOTE_ATOMIC};
    struct pkt p[3] = {mk_reth(OP_WRITE_ONLY, 0, 4, 0, 0, 4), mk_read(0, 0, 4), mk_atomic(OP_FETCH_ADD, 0, 8)};
    struct block b;

    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            start(&b, 0);
            b.r.p.access = rights[i];
            rx(&b, p[k]);
            cr_expect_eq(b.r.dead, i == k, "right %d, request %d", i, k);
        }
}

Test(responder, wrong_key_is_a_remote_access_error)
{
    cr_expect_eq(fatal(mk_reth(OP_WRITE_ONLY, 0, 4, 0, 0xbad, 4), false), 0x62);
    cr_expect_eq(fatal(mk_reth(OP_READ_REQUEST, 0, 0, 0, 0xbad, 4), false), 0x62);
}

Test(responder, more_reads_than_resources_are_refused)
{
    struct block b;

    start(&b, 0);
    for (uint32_t i = 0; i < 4; i++)
        cr_expect(!(rx(&b, mk_read(i, 0, 10)).flags & EFF_ERROR));
    cr_expect(rx(&b, mk_read(4, 0, 10)).flags & EFF_ERROR);
    for (uint32_t i = 0; i < 4; i++)
        cr_expect_eq(sent(&b).kind, DUE_READ, "what was accepted is answered");
    cr_expect_eq(sent(&b).syndrome, 0x61);
}

Test(responder, replay_under_way_takes_no_resource)
{
    struct block b;

    start(&b, 0);
    b.r.p.max_rd = 1;
    rx(&b, mk_read(0, 0, 600));
    while (sent(&b).kind)
        ;
    rx(&b, mk_read(0, 0, 600));
    sent(&b);
    cr_expect(!(rx(&b, mk_atomic(OP_FETCH_ADD, 3, 64)).flags & EFF_ERROR), "its requester had the answer already");
}

Test(responder, answered_read_frees_its_resource)
{
    struct block b;

    start(&b, 0);
    for (uint32_t i = 0; i < 20; i++) {
        cr_expect(!(rx(&b, mk_read(i, 0, 10)).flags & EFF_ERROR));
        sent(&b);
    }
}

Test(responder, reads_are_answered_before_a_later_send_is_acknowledged)
{
    struct block b;

    start(&b, 0);
    rx(&b, mk_read(0, 0, 600));
    rx(&b, mk(OP_SEND_ONLY, 3, 4));
    cr_expect_eq(judged(&b, mk_ack(3, ACK31, 2)), RULE_RDA_11);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(sent(&b).kind, DUE_READ);
    cr_expect_eq(sent(&b).psn, 3);
}

Test(responder, earlier_duplicate_comes_before_answers_that_had_begun)
{
    struct block b;

    start(&b, 0);
    rx(&b, mk_read(0, 0, 600));
    rx(&b, mk_read(3, 0, 600));
    for (int i = 0; i < 4; i++)
        sent(&b);
    rx(&b, mk_read(0, 0, 600));
    for (uint32_t i = 0; i < 6; i++)
        cr_expect_eq(sent(&b).psn, i);
    cr_expect_eq(sent(&b).kind, DUE_NOTHING);
}

Test(responder, request_of_another_service_is_dropped_silently)
{
    struct block b;

    start(&b, 0);
    cr_expect(rx(&b, mk(OPCODE(SVC_UC, OP_SEND_ONLY), 0, 4)).flags & EFF_DROP);
    cr_expect(rx(&b, mk(0x1f, 0, 4)).flags & EFF_DROP);
    cr_expect_eq(sent(&b).kind, DUE_NOTHING);
    cr_expect_eq(b.r.epsn_hi, 0);
}

Test(responder, checks_name_the_rule_that_a_wrong_response_breaks)
{
    struct block b;

    start(&b, 10);
    rx(&b, mk(OP_SEND_ONLY, 10, 4));
    cr_expect_eq(judged(&b, mk_ack(10, ACK31, 1)), RULE_NONE);
    cr_expect_eq(judged(&b, mk_ack(11, ACK31, 1)), RULE_ACK_02);
    cr_expect_eq(judged(&b, mk_ack(10, ACK31, 2)), RULE_ACK_06);
    cr_expect_eq(judged(&b, mk_ack(10, 0x40, 1)), RULE_ACK_01);
    cr_expect_eq(judged(&b, mk_ack(10, 5, 1)), RULE_CM_11);
    cr_expect_eq(judged(&b, mk_ack(10, 0x64, 1)), RULE_NAK_06);
    cr_expect_eq(judged(&b, mk_ack(11, 0x60, 1)), RULE_NAK_03);
    cr_expect_eq(judged(&b, mk_aeth(OP_READ_RESP_ONLY, 10, 4, ACK31, 1)), RULE_RDA_05);
    rx(&b, mk(OP_SEND_ONLY, 15, 4));
    cr_expect_eq(judged(&b, mk_ack(12, 0x60, 1)), RULE_NAK_01);
    cr_expect_eq(sent(&b).psn, 11);
    cr_expect_eq(judged(&b, mk_ack(11, 0x60, 1)), RULE_NAK_02);
}
