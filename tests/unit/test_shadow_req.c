/* layer 3 (judge) tests: the replica of a requester. */
#include "src/shadow/shadow.h"

#include <criterion/criterion.h>

#include "tests/unit/mkpkt.h"

#define ACK31 0x1f
#define T_TR  (4096 << 5) /* timeout code 5 */

struct block {
    struct shadow_req s;
    struct req_msg ring[32];
};

static enum rule judged(const struct block *b, struct pkt p, ns_t now)
{
    struct verdict v;

    return req_tx_check_all(&b->s.r, &b->s.u, &p, now, &v, 1) ? (enum rule)v.rule : RULE_NONE;
}

/* Send what the check permits. */
static void tx(struct block *b, struct pkt p, ns_t now)
{
    cr_assert_eq(judged(b, p, now), RULE_NONE, "%s", rule_str(judged(b, p, now)));
    shadow_req_tx(&b->s, &p, now);
}

static void rx(struct block *b, struct pkt p, ns_t now)
{
    shadow_req_rx(&b->s, &p, now);
}

static void sends(struct block *b, uint32_t psn, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        tx(b, mk(OP_SEND_ONLY, psn_add(psn, i), 4), 0);
}

static void watch(struct block *b, uint32_t psn)
{
    const struct req_params p = {
        .service = SVC_RC, .timeout = 5, .retry_cnt = 2, .rnr_retry = 1, .max_rd = 2, .pmtu = 256, .psn = psn};
    const struct req_unknown u = {0};

    memset(b, 0, sizeof *b);
    shadow_req_init(&b->s, &p, &u, b->ring, 32);
}

Test(shadow_req, after_a_nak_it_may_go_on_or_resume)
{
    struct block b;

    watch(&b, 0);
    sends(&b, 0, 4);
    rx(&b, mk_ack(2, 0x60, 2), 0);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 4, 4), 1), RULE_NONE, "the NAK is still on its way, or lost");
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 2, 4), 1), RULE_NONE, "the NAK arrived");
    cr_expect_neq(judged(&b, mk(OP_SEND_ONLY, 3, 4), 1), RULE_NONE);
    tx(&b, mk(OP_SEND_ONLY, 2, 4), 1);
    cr_expect_eq(b.s.r.una_lo, 2, "which proves that it arrived");
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 3, 4), 1), RULE_NONE);
}

Test(shadow_req, lost_ack_permits_an_old_packet_after_the_timeout)
{
    struct block b;

    watch(&b, 0);
    sends(&b, 0, 3);
    rx(&b, mk_ack(2, ACK31, 3), 10);
    sends(&b, 3, 1);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 0, 4), 20), RULE_RTX_02);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 0, 4), 2 * T_TR), RULE_NONE);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 3, 4), 2 * T_TR), RULE_NONE);
}

Test(shadow_req, full_ring_forgets_the_oldest_message)
{
    struct block b;

    watch(&b, 0);
    sends(&b, 0, 100);
    cr_expect_eq(b.s.r.msg_tail - b.s.r.msg_head, 32);
    cr_expect_eq(req_outstanding(&b.s.r), 32);
    cr_expect_eq(req_find_remembered(&b.s.r, 99), 99);
    cr_expect_eq(req_find_remembered(&b.s.r, 10), b.s.r.msg_tail, "unknown");
    rx(&b, mk_ack(99, ACK31, 100), 0);
    cr_expect_eq(b.s.r.msg_tail, b.s.r.msg_head, "all of the others are complete");
}

Test(shadow_req, rnr_retry_before_its_time_fails)
{
    struct block b;

    watch(&b, 0);
    sends(&b, 0, 1);
    rx(&b, mk_ack(0, 0x20 | 12, 0), 0);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 0, 4), 100 * NS_PER_US), RULE_RTX_05);
    cr_expect_eq(judged(&b, mk(OP_SEND_ONLY, 0, 4), 640 * NS_PER_US), RULE_NONE);
}
