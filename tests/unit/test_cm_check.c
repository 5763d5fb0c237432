/* layer 2 tests: verdicts on connection management. */
#include "dissect/pkt.h"
#include "tests/unit/cm_pair.h"

static void expect_rule(struct verdict v, enum rule rule)
{
    cr_expect_eq(v.rule, rule, "expected %s, got %s", rule_str(rule), rule_str((enum rule)v.rule));
    cr_expect_eq(v.result, V_FAIL);
}

Test(cm_check, an_rtu_before_the_rep_breaks_the_order)
{
    struct cm_msg m;

    until_request();
    decode_frame(&CM_FRAME_RTU, &m);
    expect_rule(cm_rx(&b, &m, now), RULE_CM_01);
    cr_expect_eq(b.state, CM_ST_REQ_RCVD, "and changes nothing");
    decode_frame(&CM_FRAME_DREP, &m);
    expect_rule(cm_rx(&a, &m, now), RULE_CM_01);
}

Test(cm_check, a_message_of_the_wrong_side_breaks_the_order)
{
    struct cm_msg m;

    establish();
    decode_frame(&CM_FRAME_RTU, &m);
    m.rtu.local_id = b.local_id;
    m.rtu.remote_id = a.local_id;
    expect_rule(cm_rx(&a, &m, now), RULE_CM_01);
}

Test(cm_check, a_foreign_comm_id_breaks_the_order)
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

Test(cm_check, a_copy_that_differs_is_noticed)
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

Test(cm_check, more_copies_than_announced_are_noticed)
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

Test(cm_check, an_initiator_depth_beyond_the_offer_is_noticed)
{
    struct cm_msg m;

    until_reply();
    take(&b, &m);
    m.rep.init_depth = pa.resp_res + 1;
    expect_rule(cm_rx(&a, &m, now), RULE_CM_09);
    cr_expect_eq(a.state, CM_ST_ESTABLISHED);
}

Test(cm_check, a_dreq_for_another_queue_pair_is_not_obeyed)
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

Test(cm_check, real_messages_break_no_rule)
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

Test(cm_check, each_rule_of_a_single_message_is_noticed)
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

Test(cm_check, retries_are_judged_by_content_number_and_spacing)
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
Test(cm_check, a_listener_knows_why_it_must_refuse)
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
Test(cm_check, any_message_in_any_state_is_survived)
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
