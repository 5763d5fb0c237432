/* layer 3 (judge) tests: the replica of a responder. */
#include "src/shadow/shadow.h"

#include <criterion/criterion.h>

#include "tests/unit/mkpkt.h"

#define ACK31 0x1f

struct block {
    struct shadow_rsp s;
    struct rsp_res ring[8];
};

static void watch(struct block *b, uint32_t psn)
{
    const struct rsp_params p = {.service = SVC_RC, .max_rd = 4, .pmtu = 256, .psn = psn};
    const struct rsp_unknown u = {.from_start = true};

    memset(b, 0, sizeof *b);
    shadow_rsp_init(&b->s, &p, &u, b->ring, 8);
}

static void rx(struct block *b, struct pkt p)
{
    shadow_rsp_rx(&b->s, &p, 0);
}

static void tx(struct block *b, struct pkt p)
{
    shadow_rsp_tx(&b->s, &p);
}

static struct verdict verdict_of(const struct block *b, struct pkt p)
{
    struct verdict v = verdict_pass();

    rsp_tx_check_all(&b->s.r, &b->s.u, &p, 0, &v, 1);
    return v;
}

static enum rule judged(const struct block *b, struct pkt p)
{
    return (enum rule)verdict_of(b, p).rule;
}

Test(shadow_rsp, nothing_is_proved_by_a_request_and_everything_by_its_ack)
{
    struct block b;

    watch(&b, 20);
    for (uint32_t i = 0; i < 5; i++)
        rx(&b, mk(OP_SEND_ONLY, 20 + i, 4));
    cr_expect(b.s.r.epsn_lo == 20 && b.s.r.epsn_hi == 25);
    cr_expect(b.s.r.msn_lo == 0 && b.s.r.msn_hi == 5);
    cr_expect_eq(judged(&b, mk_ack(22, ACK31, 3)), RULE_NONE);
    tx(&b, mk_ack(22, ACK31, 3));
    cr_expect(b.s.r.epsn_lo == 23 && b.s.r.epsn_hi == 25);
}

Test(shadow_rsp, nak_is_possible_for_any_packet_that_may_have_been_lost)
{
    struct block b;
    struct pkt nak = mk_ack(22, 0x60, 2);

    watch(&b, 20);
    b.s.u.all_seen = true;
    for (uint32_t i = 0; i < 5; i++)
        rx(&b, mk(OP_SEND_ONLY, 20 + i, 4));
    cr_expect_eq(judged(&b, nak), RULE_NONE, "22 may have been lost behind the tap");
    cr_expect_eq(judged(&b, mk_ack(26, 0x60, 2)), RULE_NAK_01);
    cr_expect_eq(judged(&b, mk_ack(24, 0x60, 4)), RULE_NAK_03, "nothing was sent after 24");
    tx(&b, nak);
    cr_expect(b.s.r.epsn_lo == 22 && b.s.r.msn_lo == 2, "what is before 22 was executed");
    cr_expect(b.s.r.epsn_hi == 25 && b.s.r.msn_hi == 5, "22 may have arrived since the NAK was made");
    cr_expect_eq(judged(&b, nak), RULE_NAK_02);
    rx(&b, mk(OP_SEND_ONLY, 22, 4));
    rx(&b, mk(OP_SEND_ONLY, 23, 4));
    cr_expect_eq(b.s.r.epsn_hi, 25);
}

Test(shadow_rsp, a_read_seen_again_takes_all_of_its_psns)
{
    struct block b;
    uint32_t pmtu;

    watch(&b, 20);
    pmtu = b.s.r.p.pmtu;
    shadow_rsp_may_expect(&b.s, 21); /* the last thing that was not known of it */
    rx(&b, mk_reth(OP_READ_REQUEST, 20, 0, 0x1000, 1, 4 * pmtu));
    cr_expect_eq(b.s.r.epsn_hi, 24);
    rx(&b, mk(OP_SEND_ONLY, 24, 4));
    cr_expect_eq(b.s.r.epsn_hi, 25);
}

Test(shadow_rsp, nak_that_may_be_old_lowers_nothing)
{
    struct block b;
    struct pkt nak = mk_ack(22, 0x60, 2);

    watch(&b, 20);
    for (uint32_t i = 0; i < 5; i++)
        rx(&b, mk(OP_SEND_ONLY, 20 + i, 4));
    tx(&b, nak);
    cr_expect(b.s.r.epsn_lo == 22 && b.s.r.epsn_hi == 25);
    cr_expect_eq(judged(&b, nak), RULE_NAK_02);
    cr_expect_eq(verdict_of(&b, nak).needs, N_TAP_RSP, "elsewhere it may be a copy made by the network");
}

Test(shadow_rsp, ack_beyond_all_that_was_sent_fails)
{
    struct block b;

    watch(&b, 20);
    rx(&b, mk(OP_SEND_ONLY, 20, 4));
    cr_expect_eq(judged(&b, mk_ack(21, ACK31, 1)), RULE_ACK_02);
    cr_expect_eq(judged(&b, mk_ack(20, ACK31, 2)), RULE_ACK_06);
}

Test(shadow_rsp, copy_of_the_block_is_a_state_of_its_own)
{
    struct block a, b;

    watch(&a, 0);
    rx(&a, mk_read(0, 64, 600));
    memcpy(&b, &a, sizeof a);
    rx(&b, mk_read(3, 64, 600));
    cr_expect_eq(rsp_res(&b.s.r, 0), &b.ring[0]);
    cr_expect(a.s.r.res_tail == 1 && b.s.r.res_tail == 2);
    cr_expect_eq(b.ring[1].psn, 3);
    cr_expect_eq(a.ring[1].psn, 0);
}
