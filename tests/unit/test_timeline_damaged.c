/* layer 2b (conn) tests: the time of requests that came damaged; added up by hand. */
#include "tests/unit/timeline_talk.h"

/* A request that came with a wrong ICRC. */
static struct pkt damaged(struct pkt p)
{
    p.icrc = CRC_BAD;
    return p;
}

Test(timeline, a_damaged_last_request_is_outstanding_until_the_ack_timeout)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 5 * US, mk_ack(100, 0x1f, 1));
    talk(&t, 0, US, damaged(mk(OP_SEND_ONLY, 101, 10)));
    talk(&t, 0, US, damaged(mk(OP_SEND_ONLY, 102, 10)));
    talk(&t, 0, 8 * NS_PER_MS, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 0, US, mk(OP_SEND_ONLY, 102, 10));
    talk(&t, 1, 5 * US, mk_ack(102, 0x1f, 3));
    const struct timeline_row *r = account();
    cr_expect_eq(r->states[TIME_ACK_TIMEOUT], 8 * NS_PER_MS);
    cr_expect_eq(r->states[TIME_LOSS_RESEND], US);
    cr_expect(only_episode()->sent == 3 && only_episode()->back == 5);
}

Test(timeline, a_request_that_comes_damaged_twice_waits_for_two_ack_timeouts)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 5 * US, mk_ack(100, 0x1f, 1));
    talk(&t, 0, US, damaged(mk(OP_SEND_ONLY, 101, 10)));
    talk(&t, 0, 8 * NS_PER_MS, damaged(mk(OP_SEND_ONLY, 101, 10)));
    talk(&t, 0, 8 * NS_PER_MS, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 1, 5 * US, mk_ack(101, 0x1f, 2));
    cr_expect_eq(account()->states[TIME_ACK_TIMEOUT], 16 * NS_PER_MS);
}

Test(timeline, a_first_request_that_comes_damaged_begins_the_account)
{
    start();
    talk(&t, 0, 0, damaged(mk(OP_SEND_ONLY, 100, 10)));
    talk(&t, 0, 8 * NS_PER_MS, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 5 * US, mk_ack(100, 0x1f, 1));
    cr_expect_eq(account()->states[TIME_ACK_TIMEOUT], 8 * NS_PER_MS);
}

Test(timeline, a_damaged_request_with_another_psn_is_not_the_one_that_comes)
{
    start();
    talk(&t, 0, 0, mk(OP_SEND_ONLY, 100, 10));
    talk(&t, 1, 5 * US, mk_ack(100, 0x1f, 1));
    talk(&t, 0, US, damaged(mk(OP_SEND_ONLY, 90, 10)));
    talk(&t, 0, 8 * NS_PER_MS, mk(OP_SEND_ONLY, 101, 10));
    talk(&t, 1, 5 * US, mk_ack(101, 0x1f, 2));
    cr_expect_eq(account()->states[TIME_ACK_TIMEOUT], 0);
}
