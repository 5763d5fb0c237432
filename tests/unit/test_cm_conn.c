/* layer 2 tests: the connection manager's state machine, both sides, in virtual time. */
#include "dissect/pkt.h"
#include "src/transport/cm.h"
#include "src/transport/flow.h"
#include "tests/unit/cm_frames.h"

#include <criterion/criterion.h>

static const uint8_t ADDR_A[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 168, [14] = 77, [15] = 1};
static const uint8_t ADDR_B[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 168, [14] = 77, [15] = 2};

/* Two sides, what they announce, and the time. */
static struct cm_conn a, b;
static struct cm_params pa, pb;
static ns_t now;

static void params(void)
{
    cm_params_linux(&pa);
    cm_params_ip(&pa, ADDR_A, ADDR_B, CM_PS_TCP, 50374, 7174);
    pa.tid = 0x24ace69ca;
    pa.ca_guid = UINT64_C(0x505400fffe770001);
    pa.qpn = 0x11;
    pa.psn = 0x45f6c9;
    pa.path.flow = 0x7f000;
    cm_params_linux(&pb);
    pb.ca_guid = UINT64_C(0x505400fffe770002);
    pb.qpn = 0x12;
    pb.psn = 0x9724da;
    now = 1000;
}

/* Take the message that `from` has to send, as bytes; its attribute id, 0 if there is none. */
static unsigned take(struct cm_conn *from, struct cm_msg *m)
{
    uint8_t wire[MAD_LEN];

    if (!cm_tx(from, m))
        return 0;
    cm_msg_encode(wire, m);
    memset(m, 0xa5, sizeof *m);
    cr_assert(cm_msg_decode(m, wire, sizeof wire));
    return m->mad.attr_id;
}

/* Lose what `from` sends. */
static unsigned lose(struct cm_conn *from)
{
    struct cm_msg m;
    return take(from, &m);
}

/* Carry one message across; its attribute id, 0 if there was none. The receiver must find nothing wrong with it. */
static unsigned carry(struct cm_conn *from, struct cm_conn *to)
{
    struct cm_msg m;
    unsigned attr = take(from, &m);
    struct verdict v;

    if (!attr)
        return 0;
    now += NS_PER_MS;
    v = cm_rx(to, &m, now);
    cr_assert(verdict_ok(v), "%s: %s", cm_attr_str(attr), rule_str((enum rule)v.rule));
    return attr;
}

static void expire(struct cm_conn *c)
{
    cr_assert_neq(cm_next_expiry(c), NS_NEVER);
    now = cm_next_expiry(c);
    cm_expire(c, now);
}

static void until_request(void)
{
    params();
    cr_assert(cm_connect(&a, 0xca69ce4a, &pa, now));
    cm_listen(&b, 0xd292e6e0);
    cr_assert_eq(carry(&a, &b), CM_REQ);
    cr_assert_eq(cm_poll(&b), CM_EV_REQUEST);
    cr_assert_eq(b.state, CM_ST_REQ_RCVD);
}

static void until_reply(void)
{
    until_request();
    cr_assert(cm_accept(&b, &pb, now));
    cr_assert_eq(b.state, CM_ST_REP_SENT);
}

static void establish(void)
{
    until_reply();
    cr_assert_eq(carry(&b, &a), CM_REP);
    cr_assert_eq(cm_poll(&a), CM_EV_CONNECTED);
    cr_assert_eq(carry(&a, &b), CM_RTU);
    cr_assert_eq(cm_poll(&b), CM_EV_CONNECTED);
    cr_assert_eq(a.state, CM_ST_ESTABLISHED);
    cr_assert_eq(b.state, CM_ST_ESTABLISHED);
}

Test(cm_conn, three_messages_connect_and_two_disconnect)
{
    establish();
    cr_expect_eq(cm_next_expiry(&a), NS_NEVER);
    cr_expect_eq(cm_next_expiry(&b), NS_NEVER);
    cr_assert(cm_disconnect(&a, NULL, 0, now));
    cr_assert_eq(carry(&a, &b), CM_DREQ);
    cr_expect_eq(cm_poll(&b), CM_EV_DISCONNECTED);
    cr_assert_eq(carry(&b, &a), CM_DREP);
    cr_expect_eq(cm_poll(&a), CM_EV_DISCONNECTED);
    cr_expect_eq(a.state, CM_ST_TIMEWAIT);
    cr_expect_eq(b.state, CM_ST_TIMEWAIT);
    expire(&a);
    cr_expect_eq(cm_poll(&a), CM_EV_TIMEWAIT_EXIT);
    cr_expect_eq(a.state, CM_ST_CLOSED);
    cr_expect_eq(cm_next_expiry(&a), NS_NEVER);
}

Test(cm_conn, passive_side_may_disconnect_too)
{
    establish();
    cr_assert(cm_disconnect(&b, NULL, 0, now));
    cr_assert_eq(carry(&b, &a), CM_DREQ);
    cr_expect_eq(cm_poll(&a), CM_EV_DISCONNECTED);
    cr_assert_eq(carry(&a, &b), CM_DREP);
    cr_expect_eq(cm_poll(&b), CM_EV_DISCONNECTED);
}

/* The oracle is a real exchange: with its parameters our messages are its bytes. */
static void expect_bytes(const struct cm_frame *f, struct cm_conn *from, struct cm_conn *to)
{
    uint8_t frame[400], ours[MAD_LEN];
    struct cm_msg m;

    cm_frame_bytes(f, frame);
    cr_assert(cm_tx(from, &m));
    cm_msg_encode(ours, &m);
    for (unsigned i = 0; i < MAD_LEN; i++)
        cr_assert_eq(ours[i], frame[f->mad_off + i], "%s byte %u: 0x%02x, captured 0x%02x", cm_attr_str(m.mad.attr_id),
                     i, ours[i], frame[f->mad_off + i]);
    cr_assert(verdict_ok(cm_rx(to, &m, now)));
}

Test(cm_conn, with_the_parameters_of_a_real_exchange_every_byte_is_the_same)
{
    params();
    pb.qpn = 0x11;
    cm_connect(&a, 0xca69ce4a, &pa, now);
    cm_listen(&b, 0xd292e6e0);
    expect_bytes(&CM_FRAME_REQ, &a, &b);
    cm_accept(&b, &pb, now);
    expect_bytes(&CM_FRAME_REP, &b, &a);
    expect_bytes(&CM_FRAME_RTU, &a, &b);
    cm_disconnect(&a, NULL, 0, now);
    expect_bytes(&CM_FRAME_DREQ, &a, &b);
    expect_bytes(&CM_FRAME_DREP, &b, &a);
}

static void decode_frame(const struct cm_frame *f, struct cm_msg *m)
{
    uint8_t frame[400];

    cm_frame_bytes(f, frame);
    cr_assert(cm_msg_decode(m, frame + f->mad_off, MAD_LEN));
}

Test(cm_conn, a_real_exchange_is_followed_and_agreed_upon_as_it_went_on)
{
    static const struct cm_frame *const frames[] = {&CM_FRAME_REQ, &CM_FRAME_RTU, &CM_FRAME_DREQ};
    struct cm_msg m;
    struct qp_attr q;

    params();
    pb.qpn = 0x11;
    cm_listen(&b, 0xd292e6e0);
    decode_frame(frames[0], &m);
    cr_assert(verdict_ok(cm_rx(&b, &m, now)));
    cr_assert_eq(cm_poll(&b), CM_EV_REQUEST);
    cm_accept(&b, &pb, now);
    decode_frame(frames[1], &m);
    cr_assert(verdict_ok(cm_rx(&b, &m, now)));
    cr_assert_eq(cm_poll(&b), CM_EV_CONNECTED);
    cm_qp_attr(&b, &q);
    /* Frames 6 and 8 of that capture: A sends from 9905370, B from 4585161; the UDP source port of both is 61471. */
    cr_expect_eq(q.rq_psn, 9905370);
    cr_expect_eq(q.sq_psn, 4585161);
    cr_expect_eq(q.av.sport, 61471);
    cr_expect_eq(q.path_mtu, 1024);
    decode_frame(frames[2], &m);
    cr_assert(verdict_ok(cm_rx(&b, &m, now)));
    cr_assert_eq(cm_poll(&b), CM_EV_DISCONNECTED);
}

Test(cm_conn, a_starting_psn_is_the_one_that_its_receiver_sends_from)
{
    struct qp_attr qa, qb;

    establish();
    cm_qp_attr(&a, &qa);
    cm_qp_attr(&b, &qb);
    cr_expect_eq(qa.sq_psn, pb.psn);
    cr_expect_eq(qa.rq_psn, pa.psn);
    cr_expect_eq(qb.sq_psn, pa.psn);
    cr_expect_eq(qb.rq_psn, pb.psn);
    cr_expect_eq(qa.dest_qpn, pb.qpn);
    cr_expect_eq(qb.dest_qpn, pa.qpn);
}

Test(cm_conn, both_sides_agree_on_depths_timers_and_path)
{
    struct qp_attr qa, qb;

    params();
    pa.resp_res = 4;
    pa.init_depth = 16;
    pa.retry_count = 3;
    pa.rnr_retry = 5;
    pa.mtu = 4;
    pa.ack_timeout = 17;
    pa.path.tclass = 0x68;
    pb.resp_res = 8;
    pb.init_depth = 32;
    pb.rnr_retry = 6;
    pb.flow_ctrl = 1;
    pb.srq = 1;
    cm_connect(&a, 1, &pa, now);
    cm_listen(&b, 2);
    carry(&a, &b);
    cm_accept(&b, &pb, now);
    cr_expect_eq(b.out.rep.init_depth, 4, "at most the REQ's responder resources");
    carry(&b, &a);
    cm_qp_attr(&a, &qa);
    cm_qp_attr(&b, &qb);
    cr_expect_eq(qa.max_rd_atomic, 8);
    cr_expect_eq(qb.max_dest_rd_atomic, 8);
    cr_expect_eq(qb.max_rd_atomic, 4);
    cr_expect_eq(qa.max_dest_rd_atomic, 4);
    cr_expect_eq(qa.path_mtu, 2048);
    cr_expect_eq(qb.path_mtu, 2048);
    cr_expect_eq(qb.retry_cnt, 3, "the REQ's retry count is for the passive side");
    cr_expect_eq(qb.rnr_retry, 5);
    cr_expect_eq(qa.rnr_retry, 6, "the REP's RNR retry count is for the active side");
    cr_expect_eq(qb.timeout, 17);
    cr_expect_eq(qa.timeout, 19, "twice a life time of 18");
    cr_expect_eq(a.peer.flow_ctrl, 1);
    cr_expect_eq(a.peer.srq, 1);
    cr_expect_arr_eq(qa.av.dgid, ADDR_B, 16);
    cr_expect_arr_eq(qb.av.dgid, ADDR_A, 16);
    cr_expect_eq(qb.av.tclass, 0x68);
    cr_expect_eq(qa.av.sport, qb.av.sport);
}

/* 61471 and 52872 were measured: see a_real_exchange... and a soft-RoCE connection of QPs 0x3c and 0x3e without CM. */
Test(cm_conn, udp_source_port_comes_from_the_flow_label_or_from_both_qpns)
{
    cr_expect_eq(flow_sport(0x7f000), 61471);
    cr_expect_eq(flow_sport(flow_of_qpns(0x3c, 0x3e)), 52872);
    cr_expect_eq(flow_of_qpns(0xfffffe, 0x123456), flow_of_qpns(0x123456, 0xfffffe));
}

Test(cm_conn, a_lost_req_is_sent_again_unchanged)
{
    struct cm_msg first, again;

    params();
    cm_connect(&a, 1, &pa, now);
    cm_listen(&b, 2);
    take(&a, &first);
    /* 4.295 s for the peer, twice 1.074 s for the way: soft-RoCE was seen to wait 6.17 s. */
    cr_expect_eq(cm_next_expiry(&a) - now, 4294967296 + INT64_C(2147483648));
    cm_expire(&a, cm_next_expiry(&a) - 1);
    cr_expect_eq(lose(&a), 0, "not before its time");
    expire(&a);
    cr_assert_eq(take(&a, &again), CM_REQ);
    cr_expect(verdict_ok(cm_retry_check(&first, &again, 2, 15, 20, now)));
    cm_rx(&b, &again, now);
    cr_expect_eq(cm_poll(&b), CM_EV_REQUEST);
}

Test(cm_conn, req_is_sent_once_and_retried_as_often_as_said_then_given_up)
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

Test(cm_conn, a_rej_that_knows_only_the_channel_adapter_finds_the_request)
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

Test(cm_conn, a_lost_rep_is_sent_again_by_its_own_timer)
{
    until_reply();
    cr_expect_eq(cm_next_expiry(&b) - now, 4294967296, "the REQ's local CM response timeout");
    lose(&b);
    expire(&b);
    cr_assert_eq(carry(&b, &a), CM_REP);
    cr_expect_eq(cm_poll(&a), CM_EV_CONNECTED);
}

Test(cm_conn, a_req_again_gets_the_same_rep)
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

Test(cm_conn, a_lost_rtu_is_sent_again_when_the_rep_is)
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

Test(cm_conn, data_before_the_rtu_establishes_the_connection)
{
    until_reply();
    carry(&b, &a);
    lose(&a);
    cr_assert(cm_established(&b));
    cr_expect_eq(cm_poll(&b), CM_EV_CONNECTED);
    cr_expect_eq(cm_next_expiry(&b), NS_NEVER);
    cr_expect_not(cm_established(&b));
}

Test(cm_conn, passive_side_gives_up_without_an_rtu)
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

Test(cm_conn, an_mra_extends_the_timer_and_is_repeated_for_a_copy)
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

Test(cm_conn, the_active_side_may_ask_for_time_as_well)
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

Test(cm_conn, the_active_side_may_refuse_a_rep)
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

Test(cm_conn, a_rejected_request_tells_reason_information_and_private_data)
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

Test(cm_conn, a_lost_rej_is_sent_again_for_the_next_req)
{
    until_request();
    cm_reject(&b, CM_REJ_CONSUMER_DEFINED, NULL, 0, NULL, 0);
    lose(&b);
    expire(&a);
    cr_assert_eq(carry(&a, &b), CM_REQ);
    cr_assert_eq(carry(&b, &a), CM_REJ);
    cr_expect_eq(cm_poll(&a), CM_EV_REJECTED);
}

Test(cm_conn, nobody_listens_is_answered_as_soft_roce_does)
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

Test(cm_conn, crossing_dreqs_end_both_sides_once)
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

Test(cm_conn, a_lost_dreq_is_sent_again)
{
    establish();
    cm_disconnect(&a, "bye", 3, now);
    lose(&a);
    expire(&a);
    cr_assert_eq(carry(&a, &b), CM_DREQ);
    cr_expect_eq(carry(&b, &a), CM_DREP);
    cr_expect_eq(a.state, CM_ST_TIMEWAIT);
}

Test(cm_conn, a_lost_drep_is_sent_again_from_timewait)
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

Test(cm_conn, a_dreq_that_nobody_answers_ends_in_timewait)
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

Test(cm_conn, a_dreq_instead_of_a_lost_rtu_is_taken)
{
    until_reply();
    carry(&b, &a);
    lose(&a);
    cm_disconnect(&a, NULL, 0, now);
    cr_assert_eq(carry(&a, &b), CM_DREQ);
    cr_expect_eq(cm_poll(&b), CM_EV_DISCONNECTED);
    cr_expect_eq(carry(&b, &a), CM_DREP);
}

Test(cm_conn, a_dreq_of_no_connection_is_answered_and_a_rep_refused)
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

Test(cm_conn, a_req_from_a_qp_that_is_still_connected_is_stale)
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

Test(cm_conn, a_req_again_in_timewait_is_stale)
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

Test(cm_conn, messages_find_their_connection_among_many)
{
    struct cm_conn conns[8] = {0}, *c;
    struct cm_msg m;

    for (uint32_t i = 0; i < 8; i++) {
        params();
        pa.qpn = 100 + i;
        cm_connect(&a, 1000 + i, &pa, now);
        take(&a, &m);
        cr_assert_eq(cm_route(conns, 8, &m, &c), CM_ROUTE_NEW);
        cm_listen(&conns[i], 2000 + i);
        cm_rx(&conns[i], &m, now);
        cr_assert_eq(cm_route(conns, 8, &m, &c), CM_ROUTE_CONN);
        cr_assert_eq(c, &conns[i]);
    }
    decode_frame(&CM_FRAME_DREP, &m);
    cr_expect_eq(cm_route(conns, 8, &m, &c), CM_ROUTE_STRAY);
    m.drep.remote_id = 2005;
    cr_expect_eq(cm_route(conns, 8, &m, &c), CM_ROUTE_CONN);
    cr_expect_eq(c, &conns[5]);
}

Test(cm_conn, sidr_resolves_a_service_and_repeats_its_answer)
{
    struct cm_params service = {.qpn = 0x32, .qkey = 0x01234567};
    struct cm_msg req;

    params();
    cm_params_ip(&pa, ADDR_A, ADDR_B, CM_PS_UDP, 41226, 7174);
    cr_assert(cm_sidr_connect(&a, 5, &pa, now));
    cm_listen(&b, 9);
    cr_assert_eq(take(&a, &req), CM_SIDR_REQ);
    cr_expect(verdict_ok(cm_rx(&b, &req, now)));
    cr_expect_eq(cm_poll(&b), CM_EV_SIDR_REQUEST);
    cr_assert(cm_sidr_reply(&b, CM_SIDR_SUCCESS, &service));
    cr_assert_eq(lose(&b), CM_SIDR_REP);
    expire(&a);
    cr_assert_eq(carry(&a, &b), CM_SIDR_REQ);
    cr_assert_eq(carry(&b, &a), CM_SIDR_REP);
    cr_expect_eq(cm_poll(&a), CM_EV_SIDR_RESPONSE);
    cr_expect_eq(a.sidr_status, CM_SIDR_SUCCESS);
    cr_expect_eq(a.peer.qpn, 0x32);
    cr_expect_eq(a.peer.qkey, 0x01234567);
    cr_expect_eq(cm_next_expiry(&a), NS_NEVER);
}

Test(cm_conn, sidr_messages_are_those_of_udaddy)
{
    struct cm_params service = {.qpn = 0x32, .qkey = 0x01234567};
    struct cm_msg real;

    params();
    decode_frame(&CM_FRAME_SIDR_REQ, &real);
    pa.tid = real.mad.tid;
    cm_params_ip(&pa, ADDR_A, ADDR_B, CM_PS_UDP, load_be16(real.sidr_req.private_data + 2), 7174);
    cm_sidr_connect(&a, real.sidr_req.request_id, &pa, now);
    cm_listen(&b, 9);
    expect_bytes(&CM_FRAME_SIDR_REQ, &a, &b);
    cm_sidr_reply(&b, CM_SIDR_SUCCESS, &service);
    expect_bytes(&CM_FRAME_SIDR_REP, &b, &a);
}

Test(cm_conn, sidr_without_a_service_or_without_an_answer)
{
    struct cm_msg m, out;

    params();
    cm_params_ip(&pa, ADDR_A, ADDR_B, CM_PS_UDP, 41226, 7174);
    cm_sidr_connect(&a, 5, &pa, now);
    take(&a, &m);
    cm_refuse(&m, CM_SIDR_UNSUPPORTED, NULL, 0, &out);
    cr_expect(verdict_ok(cm_rx(&a, &out, now)));
    cr_expect_eq(cm_poll(&a), CM_EV_SIDR_RESPONSE);
    cr_expect_eq(a.sidr_status, CM_SIDR_UNSUPPORTED);

    cm_sidr_connect(&a, 6, &pa, now);
    for (unsigned i = 0; i < 40 && a.state == CM_ST_SIDR_REQ_SENT; i++) {
        lose(&a);
        expire(&a);
    }
    cr_expect_eq(cm_poll(&a), CM_EV_UNREACHABLE);
    cr_expect_eq(lose(&a), 0, "there is nobody to tell");
}

Test(cm_conn, a_closed_connection_repeats_only_what_was_asked_for)
{
    struct cm_msg m = {0};

    until_request();
    cm_abort(&a);
    carry(&a, &b);
    cr_assert_eq(b.state, CM_ST_CLOSED);
    cr_expect_eq(lose(&b), 0);
    m.mad = a.out.mad;
    m.mad.attr_id = CM_SIDR_REQ;
    m.sidr_req.request_id = b.remote_id;
    cm_rx(&b, &m, now);
    cr_expect_eq(lose(&b), 0, "it has no SIDR_REP to repeat");
}

Test(cm_conn, an_alternate_path_is_declined)
{
    struct cm_msg m = {0};

    establish();
    m.mad = b.out.mad;
    m.mad.attr_id = CM_LAP;
    m.lap.local_id = b.local_id;
    m.lap.remote_id = a.local_id;
    cr_expect(verdict_ok(cm_rx(&a, &m, now)));
    cr_assert_eq(take(&a, &m), CM_APR);
    cr_expect_eq(m.apr.status, CM_APR_UNSUPPORTED);
    cr_expect_eq(a.state, CM_ST_ESTABLISHED);
}

Test(cm_conn, private_data_crosses_behind_the_rdma_cm_header)
{
    params();
    pa.private_len = 57;
    cr_expect_not(cm_connect(&a, 1, &pa, now), "56 bytes fit beside the header");
    pa.private_len = 56;
    memset(pa.private_data, 'q', 56);
    cr_assert(cm_connect(&a, 1, &pa, now));
    cm_listen(&b, 2);
    carry(&a, &b);
    cr_expect_eq(b.peer.has_ip, 1);
    cr_expect_eq(b.peer.ip.sport, 50374);
    cr_expect_eq(b.peer.private_len, 56);
    cr_expect_arr_eq(b.peer.private_data, pa.private_data, 56);
    pb.private_len = 197;
    cr_expect_not(cm_accept(&b, &pb, now));
    pb.private_len = 196;
    memset(pb.private_data, 'p', 196);
    cr_assert(cm_accept(&b, &pb, now));
    carry(&b, &a);
    cr_expect_arr_eq(a.peer.private_data, pb.private_data, 196);
}

Test(cm_conn, ipv6_addresses_go_whole_into_header_and_gids)
{
    static const uint8_t src[16] = {0xfd, 0x77, [15] = 1}, dst[16] = {0xfd, 0x77, [15] = 2};
    uint8_t frame[400];
    struct cm_msg real, m;

    params();
    cm_frame_bytes(&CM_FRAME_REQ6, frame);
    cr_assert(cm_msg_decode(&real, frame + CM_FRAME_REQ6.mad_off, MAD_LEN));
    cm_params_ip(&pa, src, dst, CM_PS_TCP, 48614, 7174);
    pa.tid = real.mad.tid;
    pa.qpn = real.req.qpn;
    pa.psn = real.req.psn;
    pa.path.flow = real.req.prim_flow;
    cm_connect(&a, real.req.local_id, &pa, now);
    cm_listen(&b, 2);
    expect_bytes(&CM_FRAME_REQ6, &a, &b);
    cm_connect(&a, 3, &pa, now);
    take(&a, &m);
    cr_expect(verdict_ok(cm_msg_check(&m, NULL)));
}

Test(cm_conn, ece_vendor_and_options_cross_in_both_directions)
{
    params();
    pa.vendor_id = pb.vendor_id = 0x123456;
    pa.options = 0xdead;
    pb.options = 0xbeef;
    cm_connect(&a, 1, &pa, now);
    cm_listen(&b, 2);
    carry(&a, &b);
    cr_expect_eq(b.peer.vendor_id, 0x123456);
    cr_expect_eq(b.peer.options, 0xdead);
    cm_accept(&b, &pb, now);
    carry(&b, &a);
    cr_expect_eq(a.peer.vendor_id, 0x123456);
    cr_expect_eq(a.peer.options, 0xbeef);
}

Test(cm_conn, calls_in_the_wrong_state_do_nothing)
{
    struct cm_conn before;

    establish();
    before = a;
    cr_expect_not(cm_accept(&a, &pb, now));
    cr_expect_not(cm_reject(&a, 28, NULL, 0, NULL, 0));
    cr_expect_not(cm_mra(&a, 20));
    cr_expect_not(cm_ready(&a));
    cr_expect_not(cm_established(&a));
    cr_expect_not(cm_sidr_reply(&a, 0, &pb));
    cr_expect_not(cm_abort(&a));
    cr_expect_eq(memcmp(&before, &a, sizeof a), 0);
    cm_disconnect(&a, NULL, 0, now);
    cr_expect_not(cm_disconnect(&a, NULL, 0, now));
}

Test(cm_conn, aborting_tells_the_peer)
{
    until_request();
    cm_abort(&a);
    cr_assert_eq(carry(&a, &b), CM_REJ);
    cr_expect_eq(cm_poll(&b), CM_EV_REJECTED);
    cr_expect_eq(b.rej_reason, CM_REJ_TIMEOUT);
    cr_expect_eq(cm_poll(&a), CM_EV_NONE);
}

/* A copy of the state is a state of its own: no pointers. */
Test(cm_conn, a_copied_state_goes_on_independently)
{
    struct cm_conn copy;

    until_reply();
    copy = b;
    lose(&b);
    expire(&b);
    cr_expect_eq(copy.tries, 1);
    cr_expect_eq(carry(&copy, &a), CM_REP);
    cr_expect_eq(a.state, CM_ST_ESTABLISHED);
}

/* --- Verdicts --- */

static void expect_rule(struct verdict v, enum rule rule)
{
    cr_expect_eq(v.rule, rule, "expected %s, got %s", rule_str(rule), rule_str((enum rule)v.rule));
    cr_expect_eq(v.result, V_FAIL);
}

Test(cm_conn, an_rtu_before_the_rep_breaks_the_order)
{
    struct cm_msg m;

    until_request();
    decode_frame(&CM_FRAME_RTU, &m);
    expect_rule(cm_rx(&b, &m, now), RULE_CM_01);
    cr_expect_eq(b.state, CM_ST_REQ_RCVD, "and changes nothing");
    decode_frame(&CM_FRAME_DREP, &m);
    expect_rule(cm_rx(&a, &m, now), RULE_CM_01);
}

Test(cm_conn, a_message_of_the_wrong_side_breaks_the_order)
{
    struct cm_msg m;

    establish();
    decode_frame(&CM_FRAME_RTU, &m);
    m.rtu.local_id = b.local_id;
    m.rtu.remote_id = a.local_id;
    expect_rule(cm_rx(&a, &m, now), RULE_CM_01);
}

Test(cm_conn, a_foreign_comm_id_breaks_the_order)
{
    struct cm_msg m;

    until_reply();
    take(&b, &m);
    m.rep.remote_id++;
    expect_rule(cm_rx(&a, &m, now), RULE_CM_01);
    m.rep.remote_id--;
    cr_expect(verdict_ok(cm_rx(&a, &m, now)));
    m.rep.local_id++;
    expect_rule(cm_rx(&a, &m, now), RULE_CM_01);
}

Test(cm_conn, a_copy_that_differs_is_noticed)
{
    struct cm_msg m;

    params();
    cm_connect(&a, 1, &pa, now);
    cm_listen(&b, 2);
    take(&a, &m);
    cm_rx(&b, &m, now);
    cr_expect(verdict_ok(cm_rx(&b, &m, now)));
    m.req.psn++;
    expect_rule(cm_rx(&b, &m, now), RULE_CM_03);
    m.req.psn--;
    m.mad.tid++;
    expect_rule(cm_rx(&b, &m, now), RULE_CM_02);
}

Test(cm_conn, more_copies_than_announced_are_noticed)
{
    struct cm_msg m;

    params();
    pa.max_retries = 2;
    cm_connect(&a, 1, &pa, now);
    cm_listen(&b, 2);
    take(&a, &m);
    for (unsigned i = 0; i < 3; i++)
        cr_expect(verdict_ok(cm_rx(&b, &m, now)), "copy %u", i);
    expect_rule(cm_rx(&b, &m, now), RULE_CM_03);
}

Test(cm_conn, an_initiator_depth_beyond_the_offer_is_noticed)
{
    struct cm_msg m;

    until_reply();
    take(&b, &m);
    m.rep.init_depth = pa.resp_res + 1;
    expect_rule(cm_rx(&a, &m, now), RULE_CM_09);
    cr_expect_eq(a.state, CM_ST_ESTABLISHED);
}

Test(cm_conn, a_dreq_for_another_queue_pair_is_not_obeyed)
{
    struct cm_msg m;

    establish();
    cm_disconnect(&a, NULL, 0, now);
    take(&a, &m);
    m.dreq.remote_qpn++;
    expect_rule(cm_rx(&b, &m, now), RULE_CM_07);
    cr_expect_eq(b.state, CM_ST_ESTABLISHED);
}

static struct pkt pkt;
static struct frame frame;
static uint8_t frame_bytes[400];

static void wire(const struct cm_frame *f, struct cm_msg *m, struct cm_wire *w)
{
    static const struct decode_opts opts = {0};
    unsigned n = cm_frame_bytes(f, frame_bytes);

    frame = (struct frame){.data = frame_bytes, .caplen = n, .len = n, .number = 1, .linktype = LINK_ETHERNET};
    pkt_decode(&pkt, &frame, &opts);
    cr_assert(cm_msg_of(m, &pkt));
    cm_wire_of(w, &pkt);
}

Test(cm_conn, real_messages_break_no_rule)
{
    static const struct cm_frame *const frames[] = {&CM_FRAME_REQ,      &CM_FRAME_REP,      &CM_FRAME_RTU,
                                                    &CM_FRAME_DREQ,     &CM_FRAME_DREP,     &CM_FRAME_REJ,
                                                    &CM_FRAME_SIDR_REQ, &CM_FRAME_SIDR_REP, &CM_FRAME_REQ6};
    struct cm_msg m;
    struct cm_wire w;

    for (unsigned i = 0; i < ARRAY_LEN(frames); i++) {
        wire(frames[i], &m, &w);
        cr_expect(w.roce && w.addr);
        cr_expect(verdict_ok(cm_msg_check(&m, &w)), "%s: %s", cm_attr_str(m.mad.attr_id),
                  rule_str((enum rule)cm_msg_check(&m, &w).rule));
    }
}

Test(cm_conn, each_rule_of_a_single_message_is_noticed)
{
    struct cm_msg m, ok;
    struct cm_wire w, good;

    wire(&CM_FRAME_REQ, &ok, &good);
#define BROKEN(rule, change)                                                                                           \
    do {                                                                                                               \
        m = ok;                                                                                                        \
        w = good;                                                                                                      \
        change;                                                                                                        \
        expect_rule(cm_msg_check(&m, &w), rule);                                                                       \
    } while (0)
    BROKEN(RULE_CM_02, m.mad.class_version = 1);
    BROKEN(RULE_CM_02, m.mad.method = 0x01);
    BROKEN(RULE_CM_02, m.mad.base_version = 2);
    BROKEN(RULE_CM_02, w.mad_len = 232);
    BROKEN(RULE_CM_02, w.qkey = 0x11111111);
    BROKEN(RULE_CM_16, m.req.private_data[0] = 0x10);
    BROKEN(RULE_CM_16, m.req.private_data[1] = 0x50);
    BROKEN(RULE_CM_16, m.req.private_data[4] = 1);
    BROKEN(RULE_CM_16, m.req.private_data[19]++);
    BROKEN(RULE_CM_16, m.req.private_data[35]++);
    BROKEN(RULE_CM_17, m.req.prim_lgid[15]++);
    BROKEN(RULE_CM_17, m.req.prim_rgid[15]++);
    wire(&CM_FRAME_REJ, &ok, &good);
    BROKEN(RULE_CM_05, m.rej.reason = 34);
    BROKEN(RULE_CM_05, m.rej.reason = CM_REJ_INVALID_LID);
    BROKEN(RULE_CM_05, m.rej.info_len = 73);
    m = ok;
    w = good;
    w.roce = false;
    m.rej.reason = CM_REJ_INVALID_LID;
    cr_expect(verdict_ok(cm_msg_check(&m, &w)), "native InfiniBand has LIDs");
#undef BROKEN
}

Test(cm_conn, retries_are_judged_by_content_number_and_spacing)
{
    struct cm_msg first, again;

    decode_frame(&CM_FRAME_REQ, &first);
    again = first;
    cr_expect(verdict_ok(cm_retry_check(&first, &again, 2, 15, 20, 6169823456)), "as soft-RoCE repeats");
    expect_rule(cm_retry_check(&first, &again, 2, 15, 20, 1000000000), RULE_CM_03);
    expect_rule(cm_retry_check(&first, &again, 17, 15, 20, 6169823456), RULE_CM_03);
    again.req.qpn++;
    expect_rule(cm_retry_check(&first, &again, 2, 15, 20, 6169823456), RULE_CM_03);
    again = first;
    again.mad.tid++;
    expect_rule(cm_retry_check(&first, &again, 2, 15, 20, 6169823456), RULE_CM_02);
}

/* The reasons are those that Linux gave to such requests. */
Test(cm_conn, a_listener_knows_why_it_must_refuse)
{
    struct cm_params l;

    until_request();
    cm_params_linux(&l);
    cm_params_ip(&l, ADDR_B, ADDR_A, CM_PS_TCP, 0, 7174);
    cr_expect_eq(cm_refusal(&b, &l), 0);
    l.service_id++;
    cr_expect_eq(cm_refusal(&b, &l), CM_REJ_INVALID_SERVICE_ID);
    l.service_id--;
    b.peer.pkey = 0x8001;
    cr_expect_eq(cm_refusal(&b, &l), CM_REJ_INVALID_GID);
    b.peer.pkey = 0xffff;
    b.peer.transport = CM_TRANSPORT_UC;
    cr_expect_eq(cm_refusal(&b, &l), CM_REJ_CONSUMER_DEFINED);
    b.peer.transport = CM_TRANSPORT_RC;
    b.peer.ip.ip_version = 6;
    cr_expect_eq(cm_refusal(&b, &l), CM_REJ_CONSUMER_DEFINED);
    b.peer.ip.ip_version = 4;
    b.peer.ip.dst[15] = 9;
    cr_expect_eq(cm_refusal(&b, &l), CM_REJ_CONSUMER_DEFINED);
    b.peer.ip.dst[15] = 2;
    b.peer.mtu = 6;
    cr_expect_eq(cm_refusal(&b, &l), CM_REJ_INVALID_MTU);
    b.peer.mtu = 4;
    cr_expect_eq(cm_refusal(&b, &l), CM_REJ_INVALID_MTU);
    l.mtu = 0;
    cr_expect_eq(cm_refusal(&b, &l), 0);
    l.path.sgid[15] = 7;
    cr_expect_eq(cm_refusal(&b, &l), CM_REJ_INVALID_GID);
}

/* Every message in every state, with random content: nothing but a legal transition happens, and nothing reads out of
 * bounds. */
Test(cm_conn, any_message_in_any_state_is_survived)
{
    uint32_t seed = 5;
    uint8_t bytes[MAD_LEN];
    struct cm_msg m;

    for (unsigned round = 0; round < 200; round++)
        for (unsigned state = 0; state < CM_ST_COUNT; state++)
            for (unsigned attr = CM_REQ; attr <= CM_APR; attr++) {
                establish();
                a.state = (uint8_t)state;
                a.active = round & 1;
                for (unsigned i = 0; i < sizeof bytes; i++) {
                    seed = seed * 1103515245u + 12345u;
                    bytes[i] = (uint8_t)(seed >> 16);
                }
                memcpy(bytes, (const uint8_t[]){1, CM_CLASS, CM_CLASS_VERSION, CM_METHOD_SEND}, 4);
                store_be16(bytes + 16, (uint16_t)attr);
                store_be32(bytes + MAD_HDR_LEN, a.remote_id);
                store_be32(bytes + MAD_HDR_LEN + 4, a.local_id);
                cr_assert(cm_msg_decode(&m, bytes, sizeof bytes));
                cm_rx(&a, &m, now);
                cr_assert_lt(a.state, CM_ST_COUNT);
                while (cm_poll(&a) != CM_EV_NONE) {
                }
                cm_tx(&a, &m);
                cm_expire(&a, now + NS_PER_S);
            }
}
