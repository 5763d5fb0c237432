/* layer 3 tests: two endpoints: how work fails, and the states of queue pairs. */
#include "dissect/pkt.h"
#include "tests/unit/ep_pair.h"

#include <criterion/criterion.h>

/* --- Errors ----------------------------------------------------------------------------------- */

Test(ep_errors, failure_flushes_everything_behind_it_in_order)
{
    struct pair *p = rc_pair();
    struct send_wr bad = write_wr(p, PAIR_MEM - 5);
    struct ep_event ev;

    pair_recv(p, 0, 9, 0, 10);
    pair_post(p, 0, write_wr(p, 0), 0, 10);
    pair_post(p, 0, bad, 0, 10);
    pair_post(p, 0, write_wr(p, 0), 0, 10);
    pair_run(p, NS_NEVER);
    cr_expect_eq(status(p, 0), WC_SUCCESS);
    cr_expect_eq(status(p, 0), WC_REM_ACCESS_ERR);
    cr_expect_eq(status(p, 0), WC_WR_FLUSH_ERR);
    cr_expect_eq(pair_wc(p, 0).wr_id, 9, "the receive, flushed");
    cr_expect_eq(ep_qp(p->ep[0], p->qp[0])->state, QPS_ERR);
    cr_expect_eq(ep_qp(p->ep[1], p->qp[1])->state, QPS_ERR);
    cr_assert(ep_event(p->ep[1], &ev));
    cr_expect_eq(ev.type, EP_EV_QP_ACCESS_ERR);
    pair_post(p, 0, write_wr(p, 0), 0, 10);
    cr_expect_eq(status(p, 0), WC_WR_FLUSH_ERR, "posted in ERR");
    no_own_failures(p);
    pair_free(p);
}

Test(ep_errors, local_key_is_checked_before_anything_is_sent)
{
    struct pair *p = rc_pair();
    struct sge sge = pair_sge(p, 0, 0, 10);
    struct send_wr wr = write_wr(p, 0);

    sge.lkey ^= 1;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ep_post_send(p->ep[0], p->qp[0], &wr, 0);
    pair_run(p, NS_NEVER);
    cr_expect_eq(p->n_log, 0);
    cr_expect_eq(status(p, 0), WC_LOC_PROT_ERR);
    pair_free(p);
}

Test(ep_errors, earlier_work_completes_before_a_local_error)
{
    struct pair *p = rc_pair();
    struct sge sge = pair_sge(p, 0, PAIR_MEM - 1, 10);
    struct send_wr wr = write_wr(p, 0);

    pair_post(p, 0, wr, 0, 5000);
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ep_post_send(p->ep[0], p->qp[0], &wr, 0);
    pair_run(p, NS_NEVER);
    cr_expect_eq(status(p, 0), WC_SUCCESS);
    cr_expect_eq(status(p, 0), WC_LOC_PROT_ERR);
    pair_free(p);
}

Test(ep_errors, atomic_needs_eight_bytes)
{
    struct pair *p = rc_pair();

    pair_post(p, 0, (struct send_wr){.opcode = WR_ATOMIC_FETCH_AND_ADD, .remote_addr = PAIR_IOVA(1), .rkey = p->key[1]},
              0, 4);
    pair_run(p, NS_NEVER);
    cr_expect_eq(status(p, 0), WC_LOC_LEN_ERR);
    pair_free(p);
}

Test(ep_errors, message_longer_than_the_receive_fails_both_ends)
{
    struct pair *p = rc_pair();
    struct wc wc;

    pair_recv(p, 1, 3, 0, 100);
    pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 101);
    pair_run(p, NS_NEVER);
    cr_expect_eq(status(p, 0), WC_REM_INV_REQ_ERR);
    wc = pair_wc(p, 1);
    cr_expect(wc.status == WC_WR_FLUSH_ERR || wc.status == WC_LOC_LEN_ERR);
    pair_free(p);
}

Test(ep_errors, receive_without_right_to_its_memory_is_a_remote_operational_error)
{
    struct pair *p = rc_pair();
    struct sge sge = pair_sge(p, 1, 0, 100);
    struct recv_wr wr = {.wr_id = 4, .sg_list = &sge, .num_sge = 1};

    sge.lkey ^= 1;
    ep_post_recv(p->ep[1], p->qp[1], &wr, 0);
    pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 10);
    pair_run(p, NS_NEVER);
    cr_expect_eq(status(p, 0), WC_REM_OP_ERR);
    cr_expect_eq(status(p, 1), WC_LOC_PROT_ERR);
    no_own_failures(p);
    pair_free(p);
}

Test(ep_errors, other_protection_domain_is_refused)
{
    struct pair *p = rc_pair();
    struct send_wr wr = write_wr(p, 0);

    cr_assert_eq(ep_mr_reg(p->ep[1], ep_pd_alloc(p->ep[1]), p->mem[1], 100, PAIR_IOVA(1),
                           ACCESS_LOCAL_WRITE | ACCESS_REMOTE, &wr.rkey),
                 0);
    pair_post(p, 0, wr, 0, 10);
    pair_run(p, NS_NEVER);
    cr_expect_eq(status(p, 0), WC_REM_ACCESS_ERR);
    pair_free(p);
}

Test(ep_errors, region_gone_while_it_is_read_is_refused)
{
    struct pair *p = rc_pair();
    uint8_t buf[EP_FRAME_MAX];
    int len;

    pair_post(p, 0, (struct send_wr){.opcode = WR_RDMA_READ, .remote_addr = PAIR_IOVA(1), .rkey = p->key[1]}, 0, 4000);
    len = ep_tx(p->ep[0], buf, sizeof buf, 0);
    ep_rx(p->ep[1], buf, (uint32_t)len, 0);
    ep_mr_dereg(p->ep[1], p->key[1]);
    pair_run(p, NS_NEVER);
    cr_expect_eq(status(p, 0), WC_REM_ACCESS_ERR);
    pair_free(p);
}

Test(ep_errors, silent_peer_ends_in_retry_exceeded)
{
    struct pair_opts o = pair_defaults();
    struct pair *p;

    o.peer.timeout = 10;
    p = pair_new(&o);
    ep_qp_destroy(p->ep[1], p->qp[1]);
    pair_post(p, 0, write_wr(p, 0), 0, 10);
    pair_run(p, NS_NEVER);
    cr_expect_eq(status(p, 0), WC_RETRY_EXC_ERR);
    cr_expect_eq(p->n_log, 8);
    cr_expect_eq(p->now, 8 * ack_timeout(10));
    pair_free(p);
}

Test(ep_errors, rnr_retries_end_as_agreed)
{
    struct pair_opts o = pair_defaults();
    struct pair *p;

    o.peer.rnr_retry = 2;
    p = pair_new(&o);
    pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 10);
    pair_run(p, NS_NEVER);
    cr_expect_eq(status(p, 0), WC_RNR_RETRY_EXC_ERR);
    cr_expect_eq(pair_count(p, 0, OP_SEND_ONLY), 3);
    pair_free(p);
}

/* One frame of `from`, taken by the other side; its length, 0: nothing is sent. */
static int one_frame(struct pair *p, int from, ns_t now)
{
    uint8_t buf[EP_FRAME_MAX];
    int len = ep_tx(p->ep[from], buf, sizeof buf, now);

    if (len > 0)
        ep_rx(p->ep[!from], buf, (uint32_t)len, now);
    return len;
}

Test(ep_errors, rnr_wait_that_is_over_ends_with_the_retry_even_if_its_timer_was_not_looked_at)
{
    struct pair *p = rc_pair();
    ns_t later = NS_PER_S;

    pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 10);
    for (int i = 0; i < 2; i++) {
        cr_expect_gt(one_frame(p, 0, i * later), 0, "the SEND; i = %d", i);
        cr_expect_gt(one_frame(p, 1, i * later), 0, "its RNR NAK; i = %d", i);
        cr_expect_lt(ep_next_expiry(p->ep[0]) - i * later, NS_PER_S, "an RNR wait begins; i = %d", i);
    }
    pair_recv(p, 1, 1, 0, 10);
    ep_expire(p->ep[0], 2 * later);
    cr_expect_gt(one_frame(p, 0, 2 * later), 0);
    cr_expect_gt(one_frame(p, 1, 2 * later), 0);
    cr_expect_eq(status(p, 0), WC_SUCCESS);
    cr_expect_eq(ep_stats(p->ep[0])->local_ack_timeout_err, 0);
    no_own_failures(p);
    pair_free(p);
}

Test(ep_errors, refill_policy_posts_late_and_provokes_rnr)
{
    struct pair_opts o = pair_defaults();
    struct pair *p;

    o.cfg[1].policies.refill = &refill_late;
    o.cfg[1].policies.refill_arg = 100 * NS_PER_US;
    o.init.max_recv_wr = 2;
    p = pair_new(&o);
    for (int i = 0; i < 10; i++)
        pair_post(p, 0, (struct send_wr){.opcode = WR_SEND}, 0, 0);
    pair_run(p, NS_NEVER);
    for (int i = 0; i < 10; i++)
        cr_expect_eq(status(p, 0), WC_SUCCESS);
    cr_expect_gt(ep_stats(p->ep[0])->rnr_nak_retry_err, 3);
    no_own_failures(p);
    pair_free(p);
}

/* --- States ----------------------------------------------------------------------------------- */

static int modify(struct pair *p, int side, enum qp_state to)
{
    struct qp_attr a = {.state = (uint8_t)to};

    return ep_qp_modify(p->ep[side], p->qp[side], &a, QPA_STATE, p->now);
}

Test(ep_errors, drained_queue_finishes_what_was_begun_and_waits)
{
    struct pair *p = rc_pair();
    struct ep_event ev;
    uint8_t buf[EP_FRAME_MAX];

    pair_post(p, 0, write_wr(p, 0), 0, 3000);
    pair_post(p, 0, write_wr(p, 0), 0, 10);
    pair_put(p, 1, buf, (uint32_t)ep_tx(p->ep[0], buf, sizeof buf, 0), PAIR_DELAY);
    memcpy(p->queue[0].data, buf, p->queue[0].len);
    cr_assert_eq(modify(p, 0, QPS_SQD), 0);
    pair_run(p, NS_PER_MS);
    cr_expect_eq(status(p, 0), WC_SUCCESS);
    cr_expect_eq(status(p, 0), 0xff, "the second was not begun");
    cr_assert(ep_event(p->ep[0], &ev));
    cr_expect_eq(ev.type, EP_EV_SQ_DRAINED);
    cr_assert_eq(modify(p, 0, QPS_RTS), 0);
    pair_run(p, NS_NEVER);
    cr_expect_eq(status(p, 0), WC_SUCCESS);
    pair_free(p);
}

Test(ep_errors, responder_that_is_not_ready_is_tried_again)
{
    struct pair_opts o = pair_defaults();
    struct pair *p = pair_new(&o);
    struct ep_peer peer = o.peer;

    peer.av = pair_av(&o, 0);
    peer.qpn = ep_qp(p->ep[0], p->qp[0])->qpn;
    peer.rq_psn = ep_qp(p->ep[0], p->qp[0])->attr.sq_psn;
    modify(p, 1, QPS_RESET);
    pair_post(p, 0, write_wr(p, 0), 0, 10);
    pair_run(p, 10 * NS_PER_MS);
    cr_assert_eq(ep_qp_to_rtr(p->ep[1], p->qp[1], &peer, p->now), 0);
    pair_run(p, NS_NEVER);
    cr_expect_eq(status(p, 0), WC_SUCCESS);
    pair_free(p);
}

Test(ep_errors, first_request_in_rtr_is_an_event)
{
    struct pair_opts o = pair_defaults();
    struct pair *p = pair_new(&o);
    struct ep_peer peer = o.peer;
    struct ep_event ev;

    peer.av = pair_av(&o, 0);
    peer.qpn = ep_qp(p->ep[0], p->qp[0])->qpn;
    peer.rq_psn = ep_qp(p->ep[0], p->qp[0])->attr.sq_psn;
    modify(p, 1, QPS_RESET);
    ep_qp_to_rtr(p->ep[1], p->qp[1], &peer, 0);
    pair_post(p, 0, write_wr(p, 0), 0, 10);
    pair_run(p, NS_NEVER);
    cr_assert(ep_event(p->ep[1], &ev));
    cr_expect_eq(ev.type, EP_EV_COMM_EST);
    pair_free(p);
}

Test(ep_errors, reset_queue_pair_can_be_used_again)
{
    struct pair_opts o = pair_defaults();
    struct pair *p = pair_new(&o);

    pair_post(p, 0, write_wr(p, 0), 0, 10);
    pair_run(p, NS_NEVER);
    pair_wc(p, 0);
    for (int side = 0; side < 2; side++)
        modify(p, side, QPS_RESET);
    for (int side = 0; side < 2; side++) {
        struct ep_peer peer = o.peer;
        peer.av = pair_av(&o, !side);
        peer.qpn = ep_qp(p->ep[!side], p->qp[!side])->qpn;
        peer.rq_psn = peer.sq_psn = 0xffffff;
        cr_assert_eq(ep_qp_connect(p->ep[side], p->qp[side], &peer, p->now), 0);
    }
    pair_post(p, 0, write_wr(p, 0), 0, 5000);
    pair_run(p, NS_NEVER);
    cr_expect_eq(status(p, 0), WC_SUCCESS);
    no_own_failures(p);
    pair_free(p);
}
