/* layer 2 tests: alternate paths of the connection manager: LAP and APR, and those of REQ and REP. */
#include "tests/unit/cm_pair.h"

static const uint8_t ALT_A[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 168, [14] = 78, [15] = 1};
static const uint8_t ALT_B[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 168, [14] = 78, [15] = 2};

#define TID UINT64_C(0x77)

/* The second path, as side A sees it. */
static struct cm_path second(void)
{
    struct cm_path p = pa.path;

    memcpy(p.sgid, ALT_A, 16);
    memcpy(p.dgid, ALT_B, 16);
    p.flow = 0x12345;
    p.tclass = 0x20;
    return p;
}

static void offer(void)
{
    struct cm_path p = second();

    establish();
    a.own.alternates = b.own.alternates = 1;
    cr_assert(cm_load(&a, &p, 9, TID, now));
}

/* B has the LAP, and its consumer knows. */
static void until_lap(void)
{
    offer();
    cr_assert_eq(carry(&a, &b), CM_LAP);
    cr_assert_eq(cm_poll(&b), CM_EV_LAP);
}

Test(cm_lap, the_path_crosses_and_its_apr_comes_back)
{
    until_lap();
    cr_expect_eq(memcmp(b.offered.sgid, ALT_B, 16), 0);
    cr_expect_eq(memcmp(b.offered.dgid, ALT_A, 16), 0);
    cr_expect_eq(b.offered.flow, 0x12345);
    cr_expect_eq(b.offered.tclass, 0x20);
    cr_expect_eq(b.offered_timeout, 9);
    cr_expect_eq(cm_poll(&a), CM_EV_NONE);
    cr_assert(cm_load_reply(&b, CM_APR_SUCCESS));
    cr_assert_eq(carry(&b, &a), CM_APR);
    cr_expect_eq(cm_poll(&a), CM_EV_APR);
    cr_expect_eq(a.apr_status, CM_APR_SUCCESS);
    cr_expect_eq(cm_next_expiry(&a), NS_NEVER);
    cr_expect_eq(a.state, CM_ST_ESTABLISHED);
    cr_expect_not(cm_load_reply(&b, CM_APR_SUCCESS), "it is answered");
}

Test(cm_lap, every_status_comes_back)
{
    struct cm_path p;

    until_lap();
    p = a.offered;
    for (unsigned status = 0; cm_apr_status_str(status); status++) {
        cr_assert(cm_load_reply(&b, status));
        cr_assert_eq(carry(&b, &a), CM_APR);
        cr_expect_eq(cm_poll(&a), CM_EV_APR);
        cr_expect_eq(a.apr_status, status);
        cr_assert(cm_load(&a, &p, 9, TID + 1 + status, now));
        cr_assert_eq(carry(&a, &b), CM_LAP);
        cr_expect_eq(cm_poll(&b), CM_EV_LAP);
    }
}

Test(cm_lap, a_lost_lap_is_sent_again_unchanged)
{
    struct cm_msg first, again;

    offer();
    cr_assert_eq(take(&a, &first), CM_LAP);
    expire(&a);
    cr_assert_eq(take(&a, &again), CM_LAP);
    cr_expect(verdict_ok(cm_retry_check(&first, &again, 2, 15, 20, now)));
}

Test(cm_lap, a_copy_of_an_answered_lap_is_answered_again_and_told_once)
{
    struct cm_msg lap, apr, again;

    offer();
    take(&a, &lap);
    cm_rx(&b, &lap, now);
    cr_expect_eq(cm_poll(&b), CM_EV_LAP);
    cm_rx(&b, &lap, now);
    cr_expect_eq(cm_poll(&b), CM_EV_NONE, "the consumer has not decided yet");
    cr_expect_eq(lose(&b), 0);
    cm_load_reply(&b, CM_APR_INVALID_GID);
    cr_assert_eq(take(&b, &apr), CM_APR);
    cm_rx(&b, &lap, now);
    cr_expect_eq(cm_poll(&b), CM_EV_NONE);
    cr_assert_eq(take(&b, &again), CM_APR);
    cr_expect_eq(cm_msg_hash(&apr), cm_msg_hash(&again));
    cm_rx(&a, &apr, now);
    cr_expect_eq(cm_poll(&a), CM_EV_APR);
    cm_rx(&a, &again, now);
    cr_expect_eq(cm_poll(&a), CM_EV_NONE, "told once");
}

Test(cm_lap, without_an_apr_the_connection_goes_on)
{
    struct cm_path p = second();
    unsigned sent = 0;

    offer();
    a.own.max_retries = 3;
    for (unsigned i = 0; i < 10 && a.lap == CM_LAP_SENT; i++) {
        sent += lose(&a) == CM_LAP;
        expire(&a);
    }
    cr_expect_eq(sent, 4);
    cr_expect_eq(cm_poll(&a), CM_EV_LAP_ERROR);
    cr_expect_eq(a.state, CM_ST_ESTABLISHED);
    cr_expect_eq(cm_next_expiry(&a), NS_NEVER);
    cr_expect(cm_load(&a, &p, 9, TID + 1, now), "another one may follow");
}

Test(cm_lap, an_mra_prolongs_the_wait)
{
    ns_t before;

    until_lap();
    before = cm_next_expiry(&a);
    cr_assert(cm_mra(&b, 24));
    cr_assert_eq(carry(&b, &a), CM_MRA);
    cr_expect_gt(cm_next_expiry(&a), before);
    cr_assert(cm_load_reply(&b, CM_APR_SUCCESS));
    cr_assert_eq(carry(&b, &a), CM_APR);
    cr_expect_eq(cm_poll(&a), CM_EV_APR);
}

Test(cm_lap, only_the_answer_to_the_latest_lap_counts)
{
    struct cm_path p;
    struct cm_msg old;

    until_lap();
    p = a.offered;
    cm_load_reply(&b, CM_APR_REJECT);
    take(&b, &old);
    cm_rx(&a, &old, now);
    cr_expect_eq(cm_poll(&a), CM_EV_APR);
    cr_expect_not(cm_load(&b, &p, 9, 1, now) && cm_load(&b, &p, 9, 2, now), "one at a time");
    cr_assert(cm_load(&a, &p, 9, TID + 1, now));
    cm_rx(&a, &old, now);
    cr_expect_eq(cm_poll(&a), CM_EV_NONE);
    cr_expect_eq(a.lap, CM_LAP_SENT);
}

Test(cm_lap, a_lap_that_names_another_queue_pair_is_refused)
{
    struct cm_msg m;

    offer();
    take(&a, &m);
    m.lap.remote_qpn++;
    cm_rx(&b, &m, now);
    cr_expect_eq(cm_poll(&b), CM_EV_NONE);
    cr_assert_eq(carry(&b, &a), CM_APR);
    cr_expect_eq(a.apr_status, CM_APR_INVALID_QPN_EECN);
}

Test(cm_lap, a_lap_of_no_connection_is_refused)
{
    struct cm_msg lap, apr;

    offer();
    take(&a, &lap);
    cr_assert(cm_stray(&lap, &apr));
    cr_expect_eq(apr.mad.attr_id, CM_APR);
    cr_expect_eq(apr.mad.tid, lap.mad.tid);
    cr_expect_eq(apr.apr.status, CM_APR_INVALID_COMM_ID);
    cr_expect_eq(apr.apr.remote_id, a.local_id);
}

Test(cm_lap, there_is_none_before_and_after_the_connection)
{
    struct cm_path p;
    struct cm_msg m;

    until_request();
    p = second();
    cr_expect_not(cm_load(&a, &p, 9, TID, now));
    cr_expect_not(cm_load_reply(&b, CM_APR_SUCCESS));
    offer();
    take(&a, &m);
    cr_assert(cm_disconnect(&a, NULL, 0, now));
    cr_assert_eq(carry(&a, &b), CM_DREQ);
    cr_expect(verdict_ok(cm_rx(&b, &m, now)), "it is late, not wrong");
    cr_expect_eq(b.lap, CM_LAP_IDLE);
    cr_assert_eq(lose(&b), CM_DREP);
    cr_expect_eq(lose(&b), 0, "and gets no answer");
}

Test(cm_lap, a_req_offers_a_path_and_the_rep_says_what_becomes_of_it)
{
    for (uint8_t failover = CM_FAILOVER_ACCEPTED; failover <= CM_FAILOVER_REJECTED; failover++) {
        params();
        pa.has_alt = 1;
        pa.alt = second();
        pa.alt_timeout = 9;
        pb.failover = failover;
        cr_assert(cm_connect(&a, 1, &pa, now));
        cm_listen(&b, 2);
        cr_assert_eq(carry(&a, &b), CM_REQ);
        cr_expect(b.peer.has_alt);
        cr_expect_eq(b.peer.alt_timeout, 9);
        cr_expect_eq(memcmp(&b.peer.alt.sgid, ALT_A, 16), 0);
        cr_expect_eq(b.peer.alt.flow, 0x12345);
        cm_poll(&b);
        cr_assert(cm_accept(&b, &pb, now));
        cr_assert_eq(carry(&b, &a), CM_REP);
        cr_expect_eq(a.peer.failover, failover);
    }
    until_request();
    cr_expect_not(b.peer.has_alt, "without one nothing is offered");
}
