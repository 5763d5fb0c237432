/* layer 2 tests: the connection manager's state machine: what is agreed upon, messages as real ones, datagram
 * services. */
#include "src/transport/flow_label.h"
#include "tests/unit/cm_pair.h"

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
