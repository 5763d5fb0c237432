/* layer 2 (transport) tests: unreliable datagrams (9.8.3). */
#include "src/transport/ud.h"

#include "src/transport/requester.h"
#include "src/transport/responder.h"

#include <criterion/criterion.h>

#include "tests/unit/mkpkt.h"

#define UD(op) OPCODE(SVC_UD, op)

struct block {
    struct requester r;
    struct req_msg msgs[8];
    struct responder s;
    struct rsp_res ring[1];
};

static void start(struct block *b)
{
    struct req_params p = {.service = SVC_UD, .pmtu = 1024, .psn = 0xffffff};
    struct rsp_params q = {.service = SVC_UD, .pmtu = 1024, .qkey = 0x1234};

    memset(b, 0, sizeof *b);
    req_init(&b->r, &p, b->msgs, 8);
    rsp_init(&b->s, &q, b->ring, 1);
}

static struct effects rx(struct block *b, uint32_t qkey, uint32_t psn, uint32_t len, uint32_t posted, uint64_t room)
{
    struct rsp_env env = {.rq_avail = posted, .rq_len = room};
    struct pkt p = mk(UD(OP_SEND_ONLY), psn, len);

    p.deth.qkey = qkey;
    return rsp_rx(&b->s, &env, &p, 0);
}

Test(ud, datagrams_are_numbered_one_by_one_whatever_their_destination)
{
    struct block b;
    struct pkt p = mk(UD(OP_SEND_ONLY), 0xffffff, 4);

    start(&b);
    p.bth.dqpn = 5;
    cr_expect(verdict_ok(req_tx_check(&b.r, &p, 0)));
    cr_expect_eq(req_tx(&b.r, &p, 0).completed, 1);
    p.bth.dqpn = 6;
    cr_expect_eq(req_tx_check(&b.r, &p, 0).rule, RULE_SVC_06);
    p.bth.psn = 0;
    cr_expect(verdict_ok(req_tx_check(&b.r, &p, 0)));
}

Test(ud, datagram_is_one_packet_of_the_mtu_at_most)
{
    struct block b;
    struct pkt p = mk(UD(OP_SEND_ONLY), 0xffffff, 1025);

    start(&b);
    cr_expect_eq(req_tx_check(&b.r, &p, 0).rule, RULE_SVC_01);
    p = mk(OP_SEND_ONLY, 0xffffff, 4);
    cr_expect_eq(req_tx_check(&b.r, &p, 0).rule, RULE_SVC_02);
}

Test(ud, gsi_answers_to_its_own_qkey_only)
{
    struct block b;
    struct pkt p = mk(UD(OP_SEND_ONLY), 0xffffff, 256);

    start(&b);
    p.bth.dqpn = 1;
    p.deth.qkey = 0x1234;
    cr_expect_eq(req_tx_check(&b.r, &p, 0).rule, RULE_FMT_16);
    p.deth.qkey = QKEY_GSI;
    cr_expect(verdict_ok(req_tx_check(&b.r, &p, 0)));
}

Test(ud, any_psn_is_taken)
{
    struct block b;

    start(&b);
    cr_expect(rx(&b, 0x1234, 7, 100, 1, 140).flags & EFF_RECV_DONE);
    cr_expect(rx(&b, 0x1234, 3, 100, 1, 140).flags & EFF_RECV_DONE);
}

Test(ud, payload_goes_behind_the_network_header)
{
    struct block b;
    struct effects e;

    start(&b);
    e = rx(&b, 0x1234, 0, 100, 1, 140);
    cr_expect(e.offset == 40 && e.len == 100);
}

Test(ud, wrong_qkey_no_receive_or_a_small_one_drops_silently)
{
    struct block b;

    start(&b);
    cr_expect_eq(rx(&b, 0x1235, 0, 100, 1, 140).flags, EFF_DROP);
    cr_expect_eq(rx(&b, 0x1234, 0, 100, 0, 0).flags, EFF_DROP);
    cr_expect_eq(rx(&b, 0x1234, 0, 101, 1, 140).flags, EFF_DROP);
    cr_expect_eq(rsp_due(&b.s, true).kind, DUE_NOTHING);
}
