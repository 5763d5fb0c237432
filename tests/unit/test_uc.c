/* layer 2 (transport) tests: unreliable connections (9.8.2). */
#include "src/transport/requester.h"
#include "src/transport/responder.h"

#include <criterion/criterion.h>

#include "tests/unit/mkpkt.h"

#define UC(op) OPCODE(SVC_UC, op)

struct block {
    struct requester r;
    struct req_msg msgs[8];
    struct responder s;
    struct rsp_res ring[1];
};

static void start(struct block *b, uint32_t psn)
{
    struct req_params p = {.service = SVC_UC, .pmtu = 256, .psn = psn};
    struct rsp_params q = {.service = SVC_UC, .access = ACCESS_REMOTE, .pmtu = 256, .psn = psn};

    memset(b, 0, sizeof *b);
    req_init(&b->r, &p, b->msgs, 8);
    rsp_init(&b->s, &q, b->ring, 1);
}

static struct effects rx(struct block *b, struct pkt p)
{
    return rsp_rx(&b->s, NULL, &p, 0);
}

Test(uc, message_is_complete_when_its_last_packet_left)
{
    struct block b;
    struct pkt p = mk(UC(OP_SEND_FIRST), 0xffffff, 256);

    start(&b, 0xffffff);
    cr_expect(verdict_ok(req_tx_check(&b.r, &p, 0)));
    cr_expect_eq(req_tx(&b.r, &p, 0).completed, 0);
    p = mk(UC(OP_SEND_LAST), 0, 4);
    cr_expect(verdict_ok(req_tx_check(&b.r, &p, 0)));
    cr_expect_eq(req_tx(&b.r, &p, 0).completed, 1);
    cr_expect_eq(req_outstanding(&b.r), 0);
    cr_expect_eq(req_expiry(&b.r), NS_NEVER);
}

Test(uc, no_psn_is_used_twice_or_left_out)
{
    struct block b;
    struct pkt p = mk(UC(OP_SEND_ONLY), 10, 4);

    start(&b, 10);
    req_tx(&b.r, &p, 0);
    cr_expect_eq(req_tx_check(&b.r, &p, 0).rule, RULE_SVC_06);
    p.bth.psn = 12;
    cr_expect_eq(req_tx_check(&b.r, &p, 0).rule, RULE_SVC_06);
    p = mk(OP_SEND_ONLY, 11, 4);
    cr_expect_eq(req_tx_check(&b.r, &p, 0).rule, RULE_FMT_03);
}

Test(uc, nothing_is_ever_answered)
{
    struct block b;

    start(&b, 10);
    rx(&b, mk(UC(OP_SEND_ONLY), 10, 4));
    rx(&b, mk(UC(OP_SEND_ONLY), 15, 4));
    cr_expect_eq(rsp_due(&b.s, true).kind, DUE_NOTHING);
    cr_expect_eq(rsp_tx_check(&b.s, &(struct pkt){.op = &opcode_table[OP_ACKNOWLEDGE]}, 0).rule, RULE_SVC_03);
}

Test(uc, gap_drops_the_message_until_the_next_first_or_only)
{
    struct block b;

    start(&b, 0xfffffe);
    cr_expect(rx(&b, mk(UC(OP_SEND_FIRST), 0xfffffe, 256)).flags & EFF_RECV_DATA);
    cr_expect(rx(&b, mk(UC(OP_SEND_MIDDLE), 0, 256)).flags & EFF_DROP, "ffffff was lost");
    cr_expect(rx(&b, mk(UC(OP_SEND_MIDDLE), 1, 256)).flags & EFF_DROP);
    cr_expect(rx(&b, mk(UC(OP_SEND_LAST), 2, 4)).flags & EFF_DROP);
    cr_expect(rx(&b, mk(UC(OP_SEND_ONLY), 3, 4)).flags & EFF_RECV_DONE);
}

Test(uc, receive_of_a_broken_message_serves_the_next_one)
{
    struct block b;
    struct effects e;

    start(&b, 0);
    cr_expect(rx(&b, mk(UC(OP_SEND_FIRST), 0, 256)).flags & EFF_RECV_START);
    e = rx(&b, mk(UC(OP_SEND_ONLY), 5, 4));
    cr_expect(!(e.flags & EFF_RECV_START) && e.flags & EFF_RECV_DONE && e.offset == 0);
    cr_expect(rx(&b, mk(UC(OP_SEND_ONLY), 6, 4)).flags & EFF_RECV_START);
}

Test(uc, first_inside_a_message_begins_anew)
{
    struct block b;

    start(&b, 0);
    rx(&b, mk(UC(OP_SEND_FIRST), 0, 256));
    cr_expect(rx(&b, mk(UC(OP_SEND_FIRST), 1, 256)).flags & EFF_RECV_DATA);
    cr_expect(rx(&b, mk(UC(OP_SEND_LAST), 2, 4)).flags & EFF_RECV_DONE);
}

Test(uc, reads_and_atomics_do_not_exist)
{
    cr_expect_null(opcode_table[UC(OP_READ_REQUEST)].name);
    cr_expect_null(opcode_table[UC(OP_FETCH_ADD)].name);
}
