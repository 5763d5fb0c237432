/* layer 2 tests: the connection manager when messages are lost, late, refused or not answered. */
#include "tests/unit/cm_pair.h"

Test(cm_loss, a_lost_req_is_sent_again_unchanged)
{
    struct cm_msg first, again;

    params();
    cm_connect(&a, 1, &pa, now);
    cm_listen(&b, 2);
    take(&a, &first);
    /* 4.295 s for the peer, twice 1.074 s for the network: soft-RoCE was measured to wait 6.17 s. */
    cr_expect_eq(cm_next_expiry(&a) - now, 4294967296 + INT64_C(2147483648));
    cm_expire(&a, cm_next_expiry(&a) - 1);
    cr_expect_eq(lose(&a), 0, "not before its time");
    expire(&a);
    cr_assert_eq(take(&a, &again), CM_REQ);
    cr_expect(verdict_ok(cm_retry_check(&first, &again, 2, 15, 20, now)));
    cm_rx(&b, &again, now);
    cr_expect_eq(cm_poll(&b), CM_EV_REQUEST);
}

Test(cm_loss, req_is_sent_once_and_retried_as_often_as_said_then_given_up)
{
    unsigned sent = 0;
    struct cm_msg m;

    params();
    pa.max_retries = 3;
    cm_connect(&a, 1, &pa, now);
    for (unsigned i = 0; i < 10 && a.state == CM_ST_REQ_SENT; i++) {
        sent += lose(&a) == CM_REQ;
        expire(&a);
    }
    cr_expect_eq(sent, 4);
    cr_expect_eq(cm_poll(&a), CM_EV_UNREACHABLE);
    cr_expect_eq(a.state, CM_ST_CLOSED);
    cr_assert_eq(take(&a, &m), CM_REJ, "the peer is told");
    cr_expect_eq(m.rej.reason, CM_REJ_TIMEOUT);
    cr_expect_eq(m.rej.remote_id, 0);
    cr_expect_eq(load_be64(m.rej.info), pa.ca_guid);
    cr_expect_eq(cm_next_expiry(&a), NS_NEVER);
}

Test(cm_loss, a_rej_that_knows_only_the_channel_adapter_finds_the_request)
{
    struct cm_conn conns[2] = {0}, *c;
    struct cm_msg m;

    params();
    pa.max_retries = 0;
    cm_connect(&a, 1, &pa, now);
    cm_listen(&conns[1], 2);
    take(&a, &m);
    cm_rx(&conns[1], &m, now);
    expire(&a);
    cr_assert_eq(take(&a, &m), CM_REJ);
    cr_assert_eq(cm_route(conns, 2, &m, &c), CM_ROUTE_CONN);
    cr_assert_eq(c, &conns[1]);
    cr_expect(verdict_ok(cm_rx(c, &m, now)));
    cr_expect_eq(cm_poll(c), CM_EV_REQUEST);
    cr_expect_eq(cm_poll(c), CM_EV_REJECTED);
}

Test(cm_loss, a_lost_rep_is_sent_again_by_its_own_timer)
{
    until_reply();
    cr_expect_eq(cm_next_expiry(&b) - now, 4294967296, "the REQ's local CM response timeout");
    lose(&b);
    expire(&b);
    cr_assert_eq(carry(&b, &a), CM_REP);
    cr_expect_eq(cm_poll(&a), CM_EV_CONNECTED);
}

Test(cm_loss, a_req_again_gets_the_same_rep)
{
    struct cm_msg first, again, req;

    until_reply();
    take(&b, &first);
    expire(&a);
    take(&a, &req);
    cr_expect(verdict_ok(cm_rx(&b, &req, now)));
    cr_assert_eq(take(&b, &again), CM_REP);
    cr_expect(verdict_ok(cm_retry_check(&first, &again, 2, 15, 20, NS_PER_S * 5)));
    cr_expect_eq(cm_poll(&b), CM_EV_NONE, "the caller is not asked twice");
}

Test(cm_loss, a_lost_rtu_is_sent_again_when_the_rep_is)
{
    until_reply();
    carry(&b, &a);
    lose(&a);
    expire(&b);
    cr_assert_eq(carry(&b, &a), CM_REP);
    cr_expect_eq(cm_poll(&a), CM_EV_CONNECTED);
    cr_expect_eq(cm_poll(&a), CM_EV_NONE, "connected once");
    cr_assert_eq(carry(&a, &b), CM_RTU);
    cr_expect_eq(cm_poll(&b), CM_EV_CONNECTED);
}

Test(cm_loss, data_before_the_rtu_establishes_the_connection)
{
    until_reply();
    carry(&b, &a);
    lose(&a);
    cr_assert(cm_established(&b));
    cr_expect_eq(cm_poll(&b), CM_EV_CONNECTED);
    cr_expect_eq(cm_next_expiry(&b), NS_NEVER);
    cr_expect_not(cm_established(&b));
}

Test(cm_loss, passive_side_gives_up_without_an_rtu)
{
    struct cm_msg m;

    until_reply();
    for (unsigned i = 0; i < 40 && b.state == CM_ST_REP_SENT; i++) {
        lose(&b);
        expire(&b);
    }
    cr_expect_eq(cm_poll(&b), CM_EV_UNREACHABLE);
    cr_assert_eq(take(&b, &m), CM_REJ);
    cr_expect_eq(m.rej.reason, CM_REJ_TIMEOUT);
    cr_expect_eq(m.rej.remote_id, a.local_id);
}

Test(cm_loss, an_mra_extends_the_timer_and_is_repeated_for_a_copy)
{
    until_request();
    cr_assert(cm_mra(&b, 24));
    cr_assert_eq(carry(&b, &a), CM_MRA);
    cr_expect_eq(cm_poll(&a), CM_EV_DELAYED);
    cr_expect_eq(cm_next_expiry(&a) - now, 4096 * (INT64_C(1) << 24) + INT64_C(2147483648), "68.7 s and the way");
    cr_expect_eq(a.state, CM_ST_MRA_REQ_RCVD);
    expire(&a);
    cr_assert_eq(carry(&a, &b), CM_REQ, "when it is over the REQ is sent again");
    cr_assert_eq(carry(&b, &a), CM_MRA);
    cr_assert(cm_accept(&b, &pb, now));
    cr_assert_eq(carry(&b, &a), CM_REP);
    cr_expect_eq(carry(&a, &b), CM_RTU);
}

Test(cm_loss, the_active_side_may_ask_for_time_as_well)
{
    params();
    pa.ask = 1;
    cm_connect(&a, 1, &pa, now);
    cm_listen(&b, 2);
    carry(&a, &b);
    cm_accept(&b, &pb, now);
    carry(&b, &a);
    cr_assert_eq(cm_poll(&a), CM_EV_REPLY);
    cr_assert(cm_mra(&a, 22));
    cr_assert_eq(carry(&a, &b), CM_MRA);
    cr_expect_eq(b.state, CM_ST_MRA_REP_RCVD);
    expire(&b);
    cr_assert_eq(carry(&b, &a), CM_REP);
    cr_assert_eq(carry(&a, &b), CM_MRA, "a copy of the REP gets the MRA again");
    cr_assert(cm_ready(&a));
    cr_assert_eq(carry(&a, &b), CM_RTU);
    cr_expect_eq(b.state, CM_ST_ESTABLISHED);
}

Test(cm_loss, the_active_side_may_refuse_a_rep)
{
    struct cm_msg m;

    params();
    pa.ask = 1;
    cm_connect(&a, 1, &pa, now);
    cm_listen(&b, 2);
    carry(&a, &b);
    cm_accept(&b, &pb, now);
    carry(&b, &a);
    cr_assert(cm_reject(&a, CM_REJ_CONSUMER_DEFINED, NULL, 0, "no", 2));
    cr_assert_eq(take(&a, &m), CM_REJ);
    cr_expect_eq(m.rej.about, CM_ABOUT_REP);
    cm_rx(&b, &m, now);
    cr_expect_eq(cm_poll(&b), CM_EV_REQUEST);
    cr_expect_eq(cm_poll(&b), CM_EV_REJECTED);
    cr_expect_eq(b.rej_reason, CM_REJ_CONSUMER_DEFINED);
    cr_expect_eq(memcmp(b.peer.private_data, "no", 2), 0);
}

Test(cm_loss, a_rejected_request_tells_reason_information_and_private_data)
{
    until_request();
    cr_assert(cm_reject(&b, CM_REJ_INVALID_GID, ADDR_B, 16, "why", 3));
    cr_assert_eq(carry(&b, &a), CM_REJ);
    cr_expect_eq(cm_poll(&a), CM_EV_REJECTED);
    cr_expect_eq(a.rej_reason, CM_REJ_INVALID_GID);
    cr_expect_eq(a.about, CM_ABOUT_REQ);
    cr_expect_eq(a.info_len, 16);
    cr_expect_arr_eq(a.info, ADDR_B, 16);
    cr_expect_eq(memcmp(a.peer.private_data, "why", 3), 0);
    cr_expect_eq(a.state, CM_ST_CLOSED);
    cr_expect_eq(cm_next_expiry(&a), NS_NEVER);
}

Test(cm_loss, a_lost_rej_is_sent_again_for_the_next_req)
{
    until_request();
    cm_reject(&b, CM_REJ_CONSUMER_DEFINED, NULL, 0, NULL, 0);
    lose(&b);
    expire(&a);
    cr_assert_eq(carry(&a, &b), CM_REQ);
    cr_assert_eq(carry(&b, &a), CM_REJ);
    cr_expect_eq(cm_poll(&a), CM_EV_REJECTED);
}

Test(cm_loss, nobody_listens_is_answered_as_soft_roce_does)
{
    uint8_t ours[MAD_LEN], captured[MAD_LEN];
    struct cm_msg req, rej, real;

    params();
    decode_frame(&CM_FRAME_REJ, &real);
    pa.tid = real.mad.tid;
    cm_connect(&a, real.rej.remote_id, &pa, now);
    take(&a, &req);
    memset(&rej, 0xa5, sizeof rej);
    cm_refuse(&req, CM_REJ_INVALID_SERVICE_ID, NULL, 0, &rej);
    cm_msg_encode(ours, &rej);
    cm_msg_encode(captured, &real);
    cr_expect_arr_eq(ours, captured, MAD_LEN);
    cr_expect(verdict_ok(cm_rx(&a, &rej, now)));
    cr_expect_eq(a.rej_reason, CM_REJ_INVALID_SERVICE_ID);
}

Test(cm_loss, crossing_dreqs_end_both_sides_once)
{
    struct cm_msg from_a, from_b;

    establish();
    cm_disconnect(&a, NULL, 0, now);
    cm_disconnect(&b, NULL, 0, now);
    take(&a, &from_a);
    take(&b, &from_b);
    cr_expect(verdict_ok(cm_rx(&a, &from_b, now)));
    cr_expect(verdict_ok(cm_rx(&b, &from_a, now)));
    cr_expect_eq(carry(&a, &b), CM_DREP);
    cr_expect_eq(carry(&b, &a), CM_DREP);
    cr_expect_eq(cm_poll(&a), CM_EV_DISCONNECTED);
    cr_expect_eq(cm_poll(&a), CM_EV_NONE);
    cr_expect_eq(cm_poll(&b), CM_EV_DISCONNECTED);
    cr_expect_eq(cm_poll(&b), CM_EV_NONE);
    cr_expect_eq(a.state, CM_ST_TIMEWAIT);
    cr_expect_eq(b.state, CM_ST_TIMEWAIT);
}

Test(cm_loss, a_lost_dreq_is_sent_again)
{
    establish();
    cm_disconnect(&a, "bye", 3, now);
    lose(&a);
    expire(&a);
    cr_assert_eq(carry(&a, &b), CM_DREQ);
    cr_expect_eq(carry(&b, &a), CM_DREP);
    cr_expect_eq(a.state, CM_ST_TIMEWAIT);
}

Test(cm_loss, a_lost_drep_is_sent_again_from_timewait)
{
    establish();
    cm_disconnect(&a, NULL, 0, now);
    carry(&a, &b);
    lose(&b);
    expire(&a);
    cr_assert_eq(carry(&a, &b), CM_DREQ);
    cr_assert_eq(carry(&b, &a), CM_DREP);
    cr_expect_eq(cm_poll(&b), CM_EV_DISCONNECTED);
    cr_expect_eq(cm_poll(&b), CM_EV_NONE, "told once");
}

Test(cm_loss, a_dreq_that_nobody_answers_ends_in_timewait)
{
    establish();
    cm_disconnect(&a, NULL, 0, now);
    for (unsigned i = 0; i < 40 && a.state == CM_ST_DREQ_SENT; i++) {
        lose(&a);
        expire(&a);
    }
    cr_expect_eq(a.tries, 16, "once and 15 retries");
    cr_expect_eq(cm_poll(&a), CM_EV_DISCONNECTED);
    cr_expect_eq(a.state, CM_ST_TIMEWAIT);
}

Test(cm_loss, a_dreq_instead_of_a_lost_rtu_is_taken)
{
    until_reply();
    carry(&b, &a);
    lose(&a);
    cm_disconnect(&a, NULL, 0, now);
    cr_assert_eq(carry(&a, &b), CM_DREQ);
    cr_expect_eq(cm_poll(&b), CM_EV_DISCONNECTED);
    cr_expect_eq(carry(&b, &a), CM_DREP);
}

Test(cm_loss, a_dreq_of_no_connection_is_answered_and_a_rep_refused)
{
    struct cm_conn none[1] = {0}, *c;
    struct cm_msg m, out;

    establish();
    cm_disconnect(&a, NULL, 0, now);
    take(&a, &m);
    cr_assert_eq(cm_route(none, 1, &m, &c), CM_ROUTE_STRAY);
    cr_assert(cm_stray(&m, &out));
    cr_expect_eq(out.mad.attr_id, CM_DREP);
    cr_expect(verdict_ok(cm_rx(&a, &out, now)), "and the answer is accepted");
    cr_expect_eq(a.state, CM_ST_TIMEWAIT);

    decode_frame(&CM_FRAME_REP, &m);
    cr_assert(cm_stray(&m, &out));
    cr_expect_eq(out.rej.reason, CM_REJ_INVALID_COMM_ID);
    decode_frame(&CM_FRAME_DREP, &m);
    cr_expect_not(cm_stray(&m, &out));
}

Test(cm_loss, a_req_from_a_qp_that_is_still_connected_is_stale)
{
    struct cm_conn conns[3] = {0}, *c;
    struct cm_msg m, out;

    establish();
    conns[1] = b;
    cm_connect(&a, 77, &pa, now); /* the peer has forgotten the connection */
    take(&a, &m);
    cr_assert_eq(cm_route(conns, 3, &m, &c), CM_ROUTE_STALE);
    cr_assert_eq(c, &conns[1]);
    cm_refuse(&m, CM_REJ_STALE_CONN, NULL, 0, &out);
    cr_expect(verdict_ok(cm_rx(&a, &out, now)));
    cr_expect_eq(a.rej_reason, CM_REJ_STALE_CONN);
    cr_expect(cm_disconnect(c, NULL, 0, now));
}

Test(cm_loss, a_req_again_in_timewait_is_stale)
{
    struct cm_msg req, m;

    params();
    cm_connect(&a, 1, &pa, now);
    cm_listen(&b, 2);
    take(&a, &req);
    cm_rx(&b, &req, now);
    cm_accept(&b, &pb, now);
    carry(&b, &a);
    carry(&a, &b);
    cm_disconnect(&a, NULL, 0, now);
    carry(&a, &b);
    lose(&b);
    cr_expect(verdict_ok(cm_rx(&b, &req, now)));
    cr_assert_eq(take(&b, &m), CM_REJ);
    cr_expect_eq(m.rej.reason, CM_REJ_STALE_CONN);
}
