/* layer 3 (judge) tests: the judge, over short captures built packet by packet: what it must not report as a failure of
 * an endpoint. */
#include "gen/endpoint/build.h"
#include "src/judge/judge_impl.h"
#include "src/transport/responder.h"
#include "tests/unit/mkpkt.h"

#include <criterion/criterion.h>

#define MAX_LINES 64
#define US        NS_PER_US
#define MS        NS_PER_MS

/* A packet: from end 0 (queue pair 0x11) to end 1 (0x12), or back. */
struct line {
    ns_t ts;
    int from;
    uint8_t opcode;
    uint32_t psn;
    uint8_t syndrome; /* of an Acknowledge */
    uint32_t msn;
    uint16_t id;   /* IPv4 identification */
    uint32_t qp;   /* destination queue pair, if not that of the end */
    uint16_t pkey; /* if not ffff */
};
#define SEND(ts, psn, id)                                                                                              \
    {                                                                                                                  \
        ts, 0, OP_SEND_ONLY, psn, 0, 0, id, 0, 0                                                                       \
    }
#define SEND_BACK(ts, psn, id)                                                                                         \
    {                                                                                                                  \
        ts, 1, OP_SEND_ONLY, psn, 0, 0, id, 0, 0                                                                       \
    }
#define ACK(ts, psn, msn, id)                                                                                          \
    {                                                                                                                  \
        ts, 1, OP_ACKNOWLEDGE, psn, SYNDROME_ACK(AETH_CREDIT_INVALID), msn, id, 0, 0                                   \
    }
#define ACK_BACK(ts, psn, msn, id)                                                                                     \
    {                                                                                                                  \
        ts, 0, OP_ACKNOWLEDGE, psn, SYNDROME_ACK(AETH_CREDIT_INVALID), msn, id, 0, 0                                   \
    }
#define NAK(ts, psn, msn, id)                                                                                          \
    {                                                                                                                  \
        ts, 1, OP_ACKNOWLEDGE, psn, SYNDROME_NAK(NAK_PSN_SEQ), msn, id, 0, 0                                           \
    }
#define RNR(ts, psn, msn, code, id)                                                                                    \
    {                                                                                                                  \
        ts, 1, OP_ACKNOWLEDGE, psn, SYNDROME_RNR(code), msn, id, 0, 0                                                  \
    }

static struct link_addr end_addr(int end)
{
    struct link_addr a = {.encap = ENCAP_ROCEV2, .mac = {2, 0, 0, 0, 0, (uint8_t)end}};

    gid_from_ipv4(a.gid, 0x32323201 + (uint32_t)end);
    return a;
}

/* The parameters that CM would state: end 0 is the active side; starting PSN 10; ACK timeout 4.194304 ms, one retry. */
static void learn(struct judge *j)
{
    struct conn_known k = {.qpn = {0x11, 0x12}, .psn = {10, 10}, .pmtu = 1024, .how = PAIR_CM};

    for (int i = 0; i < 2; i++) {
        struct link_addr a = end_addr(i);
        memcpy(k.addr[i].b, a.gid, 16);
    }
    k.params[1] = (struct conn_params){
        .passive = true, .timeout_known = PARAM_STATED, .retry_known = PARAM_STATED, .timeout = 10, .retry_cnt = 1};
    conn_learn(judge_conns(j), &k);
}

/* The frame of a line, to `buf`; its length. */
static uint32_t line_frame(const struct line *l, uint8_t buf[256])
{
    struct link_addr own = end_addr(l->from), other = end_addr(!l->from);
    struct av av = {.hop_limit = 64};
    struct path path;
    struct frame_out out = {.buf = buf, .cap = 256};
    struct pkt made = l->opcode == OP_ACKNOWLEDGE ? mk_ack(l->psn, l->syndrome, l->msn) : mk(l->opcode, l->psn, 8);

    memcpy(av.dgid, other.gid, 16);
    memcpy(av.dmac, other.mac, 6);
    av.sport = 0xc001;
    made.bth.pkey = l->pkey ? l->pkey : 0xffff;
    made.bth.ackreq = l->opcode != OP_ACKNOWLEDGE;
    made.bth.dqpn = l->qp ? l->qp : l->from ? 0x11 : 0x12;
    cr_assert_eq(path_init(&path, &own, &av), 0);
    cr_assert_eq(build_begin(&out, &path, &made, made.payload_len, l->id, NULL), 0);
    memset(out.payload, 0, made.payload_len);
    build_end(&out, &path, &made, made.payload_len, NULL);
    return out.len;
}

static void decode_line(struct pkt *p, struct frame *f, const struct line *l, const uint8_t *buf, uint32_t len,
                        uint64_t number, bool verify)
{
    *f = (struct frame){.ts = NS_PER_S + l->ts,
                        .has_ts = true,
                        .data = buf,
                        .caplen = len,
                        .len = len,
                        .number = number,
                        .linktype = LINK_ETHERNET};
    pkt_decode(p, f, &(struct decode_opts){.verify = verify});
}

static void judge_line(struct judge *j, const struct line *l, uint64_t number)
{
    uint8_t buf[256];
    struct frame f;
    struct pkt p;

    decode_line(&p, &f, l, buf, line_frame(l, buf), number, true);
    cr_assert_eq(p.icrc, CRC_GOOD);
    judge_packet(j, &p);
}

/* The worst verdict on `rule`. */
static enum result verdict(const struct line *l, size_t n, enum tap_side tap, bool cm, bool doubled, enum rule rule)
{
    struct judge_opts o = {.complete = true, .ack_timeout = 10, .retry_cnt = 1};
    struct judge *j;
    enum result worst = V_PASS;
    uint64_t number = 0;

    for (unsigned i = 0; i < JUDGE_TAPS; i++)
        o.tap[i] = tap;
    j = judge_new(&o);
    if (cm)
        learn(j);
    for (size_t i = 0; i < n; i++)
        for (int copy = 0; copy <= (int)doubled; copy++)
            judge_line(j, &l[i], ++number);
    judge_end(j);
    for (size_t i = 0; i < findings_n(judge_findings(j)); i++) {
        const struct finding *f = findings_at(judge_findings(j), i);
        if (f->rule == rule && f->result != V_PASS && worst != V_FAIL)
            worst = (enum result)f->result;
    }
    judge_free(j);
    return worst;
}
#define VERDICT(lines, ...) verdict(lines, ARRAY_LEN(lines), __VA_ARGS__)

Test(judge_trace, a_nak_that_is_there_twice_is_one_nak_where_everything_is_there_twice)
{
    static const struct line lines[] = {SEND(0, 10, 1),        ACK(0, 10, 1, 1),    SEND(US, 12, 3),
                                        NAK(2 * US, 11, 1, 2), SEND(9 * US, 11, 4), SEND(9 * US, 12, 5)};
    static const struct line twice[] = {SEND(0, 10, 1),        ACK(0, 10, 1, 1),      SEND(US, 12, 3),
                                        NAK(2 * US, 11, 1, 2), NAK(2 * US, 11, 1, 3), SEND(9 * US, 11, 4),
                                        SEND(9 * US, 12, 5)};

    cr_expect_neq(VERDICT(lines, TAP_RESPONDER, true, true, RULE_NAK_02), V_FAIL);
    cr_expect_eq(VERDICT(twice, TAP_RESPONDER, true, false, RULE_NAK_02), V_FAIL);
}

Test(judge_trace, an_ack_before_its_request_is_false_unless_clocks_may_explain_it)
{
    static const struct line late[] = {SEND(0, 10, 1), ACK(US, 10, 1, 1), ACK(2 * US, 11, 2, 2), SEND(300 * US, 11, 2),
                                       SEND(301 * US, 12, 3)};
    static const struct line close[] = {SEND(0, 10, 1), ACK(US, 10, 1, 1), ACK(2 * US, 11, 2, 2), SEND(80 * US, 11, 2),
                                        SEND(301 * US, 12, 3)};
    static const struct line other[] = {SEND(0, 10, 1), ACK(US, 10, 1, 1), ACK(2 * US, 11, 2, 2), SEND(300 * US, 12, 2),
                                        SEND(301 * US, 13, 3)};
    static const struct line good[] = {SEND(0, 10, 1), ACK(US, 10, 1, 1), SEND(2 * US, 11, 2), ACK(2 * US, 11, 2, 2),
                                       SEND(301 * US, 12, 3)};
    /* all time stamps are multiples of 10 us: two of them may be wrong by so much more */
    static const struct line tens[] = {SEND(0, 10, 1), ACK(10 * US, 10, 1, 1), ACK(20 * US, 11, 2, 2),
                                       SEND(130 * US, 11, 2)};
    static const struct line tens_late[] = {SEND(0, 10, 1), ACK(10 * US, 10, 1, 1), ACK(20 * US, 11, 2, 2),
                                            SEND(140 * US, 11, 2)};
    static const struct line first[] = {ACK(20 * US, 10, 1, 1), SEND(130 * US, 10, 1)};
    static const struct line first_late[] = {ACK(20 * US, 10, 1, 1), SEND(140 * US, 10, 1)};

    cr_expect_eq(VERDICT(tens, TAP_RESPONDER, true, false, RULE_ACK_02), V_INCONCLUSIVE);
    cr_expect_eq(VERDICT(tens_late, TAP_RESPONDER, true, false, RULE_ACK_02), V_FAIL);
    cr_expect_eq(VERDICT(first, TAP_RESPONDER, true, false, RULE_ACK_02), V_INCONCLUSIVE);
    cr_expect_eq(VERDICT(first_late, TAP_RESPONDER, true, false, RULE_ACK_02), V_FAIL);
    cr_expect_eq(VERDICT(late, TAP_RESPONDER, true, false, RULE_ACK_02), V_FAIL);
    cr_expect_eq(VERDICT(close, TAP_RESPONDER, true, false, RULE_ACK_02), V_INCONCLUSIVE);
    cr_expect_eq(VERDICT(other, TAP_RESPONDER, true, false, RULE_ACK_02), V_INCONCLUSIVE,
                 "the request may have taken another path");
    cr_expect_eq(VERDICT(good, TAP_RESPONDER, true, false, RULE_ACK_02), V_PASS);
    for (enum tap_side tap = TAP_UNKNOWN; tap <= TAP_MIDDLE; tap++) {
        if (tap == TAP_RESPONDER)
            continue;
        cr_expect_eq(VERDICT(late, tap, true, false, RULE_ACK_03), V_FAIL, "at the %s", tap_str(tap));
        cr_expect_eq(VERDICT(close, tap, true, false, RULE_ACK_03), V_INCONCLUSIVE, "at the %s", tap_str(tap));
        cr_expect_eq(VERDICT(other, tap, true, false, RULE_ACK_03), V_INCONCLUSIVE, "at the %s", tap_str(tap));
        cr_expect_eq(VERDICT(good, tap, true, false, RULE_ACK_03), V_PASS, "at the %s", tap_str(tap));
        cr_expect_eq(VERDICT(late, tap, true, false, RULE_ACK_02), V_PASS, "at the %s", tap_str(tap));
    }
    cr_expect_eq(VERDICT(late, TAP_RESPONDER, false, false, RULE_ACK_03), V_INCONCLUSIVE, "how it began is not known");
}

/* PSN 11 is lost before the tap, and retransmitted with the packets after it. */
#define LOSS SEND(0, 10, 1), ACK(US, 10, 1, 1), SEND(2 * US, 12, 2), NAK(2 * US, 11, 1, 2), SEND(9 * US, 11, 3)

Test(judge_trace, a_loss_before_the_responder_hides_its_faults_only_until_all_has_come_again)
{
    static const struct line under_way[] = {LOSS, NAK(10 * US, 10, 2, 3), SEND(11 * US, 12, 4)};
    static const struct line late_nak[] = {LOSS, SEND(10 * US, 12, 4), ACK(11 * US, 12, 3, 3), NAK(12 * US, 11, 3, 4)};
    static const struct line no_gap[] = {LOSS, SEND(10 * US, 12, 4), NAK(12 * US, 13, 3, 3)};
    static const struct line good[] = {LOSS, SEND(10 * US, 12, 4), ACK(11 * US, 12, 3, 3), SEND(12 * US, 14, 5),
                                       NAK(12 * US, 13, 3, 4)};

    cr_expect_neq(VERDICT(under_way, TAP_RESPONDER, true, false, RULE_NAK_01), V_FAIL);
    cr_expect_eq(VERDICT(late_nak, TAP_RESPONDER, true, false, RULE_NAK_01), V_FAIL);
    cr_expect_eq(VERDICT(no_gap, TAP_RESPONDER, true, false, RULE_NAK_03), V_FAIL);
    cr_expect_eq(VERDICT(no_gap, TAP_MIDDLE, true, false, RULE_NAK_03), V_INCONCLUSIVE);
    cr_expect_eq(VERDICT(good, TAP_RESPONDER, true, false, RULE_NAK_01), V_PASS);
    cr_expect_eq(VERDICT(good, TAP_RESPONDER, true, false, RULE_NAK_03), V_PASS);
}

Test(judge_trace, an_ack_of_what_a_responder_ignores_is_doubtful)
{
    static const struct line ignored[] = {LOSS, ACK(10 * US, 12, 3, 3), SEND(11 * US, 12, 4)};
    static const struct line good[] = {LOSS, ACK(10 * US, 11, 2, 3), SEND(11 * US, 12, 4), ACK(12 * US, 12, 3, 4)};

    cr_expect_eq(VERDICT(ignored, TAP_RESPONDER, true, false, RULE_ACK_02), V_INCONCLUSIVE);
    cr_expect_eq(VERDICT(ignored, TAP_MIDDLE, true, false, RULE_ACK_02), V_PASS,
                 "elsewhere 12 may have come behind 11");
    cr_expect_eq(VERDICT(good, TAP_RESPONDER, true, false, RULE_ACK_02), V_PASS);
}

Test(judge_trace, retries_count_only_while_nothing_answers)
{
    static const struct line answered[] = {SEND(0, 10, 1),       SEND(5 * MS, 10, 2),    ACK(6 * MS, 10, 1, 1),
                                           SEND(12 * MS, 10, 3), ACK(13 * MS, 10, 1, 2), SEND(20 * MS, 10, 4)};
    static const struct line silent[] = {SEND(0, 10, 1),      ACK(US, 10, 1, 1),    SEND(US, 11, 2),
                                         SEND(5 * MS, 11, 3), SEND(10 * MS, 11, 4), SEND(15 * MS, 11, 5)};

    cr_expect_neq(VERDICT(answered, TAP_MIDDLE, true, false, RULE_RTX_04), V_FAIL,
                  "the answers may have been lost behind the tap");
    cr_expect_eq(VERDICT(silent, TAP_REQUESTER, true, false, RULE_RTX_04), V_FAIL);
    cr_expect_eq(VERDICT(silent, TAP_MIDDLE, true, false, RULE_RTX_04), V_INCONCLUSIVE,
                 "a duplicate may have been held back on the way");
}

Test(judge_trace, the_wait_after_an_rnr_nak_begins_with_its_first_copy)
{
    static const struct line right[] = {SEND(0, 10, 1), RNR(10 * US, 10, 0, 12, 1), RNR(60 * US, 10, 0, 12, 1),
                                        SEND(650 * US, 10, 2)};
    static const struct line early[] = {SEND(0, 10, 1), RNR(10 * US, 10, 0, 12, 1), SEND(600 * US, 10, 2)};

    cr_expect_eq(VERDICT(right, TAP_REQUESTER, true, false, RULE_RTX_05), V_PASS);
    cr_expect_eq(VERDICT(early, TAP_REQUESTER, true, false, RULE_RTX_05), V_FAIL);
}

Test(judge_trace, a_new_request_in_an_rnr_wait_is_wrong_until_clocks_may_have_ended_the_wait)
{
    /* 2.56 ms, less 100 us of clocks, 3 us of the tap, and 1 us of the time stamps */
    static const struct line in_time[] = {SEND(0, 10, 1), RNR(10 * US, 10, 0, 16, 1), SEND(2466 * US, 11, 2)};
    static const struct line early[] = {SEND(0, 10, 1), RNR(10 * US, 10, 0, 16, 1), SEND(2465 * US, 11, 2)};

    cr_expect_eq(VERDICT(in_time, TAP_REQUESTER, true, false, RULE_RTX_15), V_PASS);
    cr_expect_neq(VERDICT(early, TAP_REQUESTER, true, false, RULE_RTX_15), V_PASS);
}

Test(judge_trace, an_ack_on_the_heels_of_a_nak_moves_the_place_to_resume)
{
    static const struct line lines[] = {SEND(0, 10, 1),         SEND(1, 11, 2),         SEND(2, 12, 3),
                                        NAK(10 * US, 11, 1, 1), ACK(10 * US, 11, 2, 2), SEND(10 * US, 12, 4)};
    static const struct line none[] = {SEND(0, 10, 1), SEND(1, 11, 2), SEND(2, 12, 3), ACK(10 * US, 11, 2, 2),
                                       SEND(20 * US, 12, 4)};

    cr_expect_eq(VERDICT(lines, TAP_REQUESTER, true, false, RULE_RTX_02), V_PASS);
    cr_expect_eq(VERDICT(none, TAP_REQUESTER, true, false, RULE_RTX_02), V_FAIL);
}

/* Without CM the requester is the end that sent the first request; if the capture begins later, it is not known. */
Test(judge_trace, ends_are_told_apart_only_where_the_capture_shows_how_they_began)
{
    static const struct line start[] = {SEND(0, 10, 1), ACK(US, 10, 1, 1), SEND(2 * US, 12, 2), NAK(3 * US, 11, 1, 2)};
    static const struct line later[] = {SEND(0, 10, 1), ACK(US, 10, 7, 1), SEND(2 * US, 12, 2), NAK(3 * US, 11, 7, 2)};
    static const struct line answers[] = {ACK_BACK(0, 10, 4, 1), SEND(0, 10, 1), ACK(US, 10, 1, 1), SEND(2 * US, 12, 2),
                                          NAK(3 * US, 11, 1, 2)};

    cr_expect_eq(VERDICT(start, TAP_REQUESTER, false, false, RULE_SEQ_01), V_FAIL);
    cr_expect_eq(VERDICT(later, TAP_REQUESTER, false, false, RULE_SEQ_01), V_INCONCLUSIVE);
    cr_expect_eq(VERDICT(answers, TAP_REQUESTER, false, false, RULE_SEQ_01), V_INCONCLUSIVE);
}

/* Responses to a third queue pair: its peer may be the one whose responses were paired with another queue pair. */
Test(judge_trace, a_pairing_by_psn_is_doubtful_where_another_queue_pair_waits_for_its_peer)
{
    static const struct line alone[] = {SEND(0, 10, 1), ACK(US, 10, 1, 1), SEND(2 * US, 12, 2), NAK(3 * US, 11, 1, 2)};
    static const struct line two[] = {SEND(0, 10, 1),
                                      ACK(US, 10, 1, 1),
                                      {US, 0, OP_ACKNOWLEDGE, 50, SYNDROME_ACK(AETH_CREDIT_INVALID), 1, 1, 0x13, 0},
                                      SEND(2 * US, 12, 2),
                                      NAK(3 * US, 11, 1, 2)};

    cr_expect_eq(VERDICT(alone, TAP_REQUESTER, false, false, RULE_SEQ_01), V_FAIL);
    cr_expect_eq(VERDICT(two, TAP_REQUESTER, false, false, RULE_SEQ_01), V_INCONCLUSIVE);
}

/* The flow of a packet from end `from` to queue pair `qp`. */
static uint32_t flow_to(struct conn_table *t, uint32_t qp, int from)
{
    static const uint8_t zero[64], addr[2][4] = {{50, 50, 50, 1}, {50, 50, 50, 2}};
    struct frame f = {.data = zero, .caplen = 64, .len = 64, .linktype = LINK_ETHERNET};
    struct pkt p = mk(OP_SEND_ONLY, 10, 8);

    p.frame = &f;
    p.data = zero;
    p.have |= H_IP4;
    p.addr_len = 4;
    p.src = addr[from];
    p.dst = addr[!from];
    p.bth.dqpn = qp;
    return conn_flow(t, &p);
}

Test(judge_trace, a_queue_pair_used_again_has_the_path_mtu_of_its_new_connection)
{
    struct conn_table *t = conn_table_new(8);
    struct conn_known k = {.qpn = {0x11, 0x12}, .pmtu = 2048, .how = PAIR_CM};
    uint32_t flow[2];

    for (int i = 0; i < 2; i++)
        gid_from_ipv4(k.addr[i].b, 0x32323201 + (uint32_t)i);
    conn_learn(t, &k);
    for (int i = 0; i < 2; i++)
        flow[i] = flow_to(t, i ? 0x11 : 0x12, i);
    for (int i = 0; i < 2; i++)
        cr_expect_eq(conn_flow_at(t, flow[i])->pmtu, 2048);
    k.pmtu = 256;
    k.psn[0] = k.psn[1] = 77;
    conn_learn(t, &k);
    for (int i = 0; i < 2; i++)
        cr_expect_eq(conn_flow_at(t, flow[i])->pmtu, 256);
    k.pmtu = 512;
    conn_learn(t, &k);
    cr_expect_eq(conn_flow_at(t, flow[0])->pmtu, 256, "the same exchange once more");
    k.id[0] = 0x4430001;
    conn_learn(t, &k);
    cr_expect_eq(conn_flow_at(t, flow[0])->pmtu, 512, "another one, which happens to begin with the same PSNs");
    cr_expect_eq(conn_flow_at(t, flow[0])->paired_by, PAIR_CM);
    conn_unlearn(t, flow[0]);
    for (int i = 0; i < 2; i++)
        cr_expect(conn_flow_at(t, flow[i])->pmtu == 0 && !conn_flow_at(t, flow[i])->have_psn &&
                  conn_flow_at(t, flow[i])->paired_by == PAIR_PSN && conn_flow_at(t, flow[i])->peer == flow[!i]);
    conn_table_free(t);
}

Test(judge_trace, what_is_far_from_all_that_is_remembered_may_be_another_connection)
{
#define SEND_FIRST(ts, psn, id)                                                                                        \
    {                                                                                                                  \
        ts, 0, OP_SEND_FIRST, psn, 0, 0, id, 0, 0                                                                      \
    }
    static const struct line ahead[] = {SEND(0, 5000, 1), ACK(US, 5000, 1, 1), SEND_FIRST(2 * US, 5001, 2),
                                        SEND(NS_PER_S, 9000, 3)};
    static const struct line behind[] = {SEND(0, 5000, 1), ACK(US, 5000, 1, 1), SEND_FIRST(2 * US, 5001, 2),
                                         SEND(NS_PER_S, 100, 3), SEND(NS_PER_S, 101, 4)};
    static const struct line anew[] = {SEND(0, 5000, 1), SEND(NS_PER_S, 100, 3), SEND_FIRST(NS_PER_S, 101, 3),
                                       SEND(NS_PER_S, 102, 4)};
    static const struct line near[] = {SEND(0, 5000, 1), SEND(NS_PER_S, 5001, 3), SEND_FIRST(NS_PER_S, 5002, 3),
                                       SEND(NS_PER_S, 5003, 4)};

    cr_expect_eq(VERDICT(ahead, TAP_REQUESTER, false, false, RULE_SEQ_03), V_PASS);
    cr_expect_eq(VERDICT(behind, TAP_REQUESTER, false, false, RULE_SEQ_03), V_PASS);
    cr_expect_eq(VERDICT(anew, TAP_REQUESTER, false, false, RULE_SEQ_03), V_FAIL,
                 "the new one is judged like the old one");
    cr_expect_eq(VERDICT(near, TAP_REQUESTER, false, false, RULE_SEQ_03), V_FAIL);
}

Test(judge_trace, a_flow_whose_peer_cm_knows_is_not_paired_with_another)
{
    struct conn_table *t = conn_table_new(8);
    struct conn_known k = {.qpn = {0x11, 0x12}, .how = PAIR_CM, .any_psn = {true, true}};
    uint32_t request, response;

    for (int i = 0; i < 2; i++)
        gid_from_ipv4(k.addr[i].b, 0x32323201 + (uint32_t)i);
    conn_learn(t, &k);
    request = flow_to(t, 0x12, 0);
    response = flow_to(t, 0x99, 1);
    conn_pair_by_psn(t, response, 10);
    cr_expect_eq(conn_flow_at(t, request)->peer, FLOW_NONE);
    conn_table_free(t);
}

Test(judge_trace, progress_behind_a_nak_ends_its_wait_and_starts_the_timer_anew)
{
    static const struct line lifted[] = {SEND(0, 10, 1),         SEND(1, 11, 2),
                                         SEND(2, 12, 3),         RNR(10 * US, 11, 1, 12, 1),
                                         ACK(20 * US, 11, 2, 2), SEND(20 * US, 12, 4)};
    static const struct line waits[] = {SEND(0, 10, 1), SEND(1, 11, 2), SEND(2, 12, 3), RNR(10 * US, 11, 1, 12, 1),
                                        SEND(20 * US, 11, 4)};
    static const struct line again[] = {
        SEND(0, 10, 1),         SEND(1, 11, 2),       SEND(2, 12, 3),       NAK(10 * US, 10, 0, 1),
        ACK(10 * US, 10, 1, 2), SEND(60 * US, 11, 4), SEND(61 * US, 12, 5), SEND(10 * US + 4194304, 11, 6)};
    static const struct line early[] = {SEND(0, 10, 1),
                                        SEND(1, 11, 2),
                                        SEND(2, 12, 3),
                                        NAK(10 * US, 11, 1, 1),
                                        SEND(60 * US, 11, 4),
                                        SEND(61 * US, 12, 5),
                                        SEND(10 * US + 4194304, 11, 6)};

    cr_expect_eq(VERDICT(lifted, TAP_REQUESTER, true, false, RULE_RTX_02), V_PASS);
    cr_expect_eq(VERDICT(waits, TAP_REQUESTER, true, false, RULE_RTX_05), V_FAIL);
    cr_expect_eq(VERDICT(again, TAP_REQUESTER, true, false, RULE_RTX_02), V_PASS,
                 "an endpoint's timer may run since the ACK");
    cr_expect_eq(VERDICT(early, TAP_REQUESTER, true, false, RULE_RTX_02), V_FAIL,
                 "it runs since the first packet that was sent again");
}

Test(judge_trace, time_stamps_may_be_rounded_to_what_all_of_them_are_multiples_of)
{
    /* the timeout is 4194.304 us; the clocks of the two directions may differ by 3 us */
    static const struct line rounded[] = {SEND(0, 10, 1), ACK(US, 10, 1, 1), SEND(US, 11, 2), SEND(4192 * US, 11, 3)};
    static const struct line precise[] = {SEND(0, 10, 1), ACK(US - 1, 10, 1, 1), SEND(US, 11, 2),
                                          SEND(4192 * US, 11, 3)};
    static const struct line early[] = {SEND(0, 10, 1), ACK(US, 10, 1, 1), SEND(US, 11, 2), SEND(4191 * US, 11, 3)};

    cr_expect_eq(VERDICT(rounded, TAP_REQUESTER, true, false, RULE_RTX_02), V_PASS);
    cr_expect_eq(VERDICT(precise, TAP_REQUESTER, true, false, RULE_RTX_02), V_FAIL);
    cr_expect_eq(VERDICT(early, TAP_REQUESTER, true, false, RULE_RTX_02), V_FAIL);
}

Test(judge_trace, how_fine_time_stamps_are_is_known_of_each_file_though_two_are_read_together)
{
    struct judge *j = judge_new(&(struct judge_opts){.ack_timeout = -1, .retry_cnt = -1});
    struct frame fine = {.ts = 1234567891, .has_ts = true}, coarse = {.ts = 5 * NS_PER_US, .has_ts = true, .file = 1};
    struct pkt a = {.frame = &fine}, b = {.frame = &coarse};

    cr_expect_eq(judge_step(j, &a), 1000 * NS_PER_MS, "nothing was seen yet");
    for (int i = 0; i < 3; i++) {
        judge_step_learn(j, &fine);
        judge_step_learn(j, &coarse);
        cr_expect_eq(judge_step(j, &a), 0);
        cr_expect_eq(judge_step(j, &b), NS_PER_US);
        coarse.ts = 7 * NS_PER_MS; /* an accident: the step stays what it was */
        fine.ts = 8 * NS_PER_MS;
    }
    judge_free(j);
}

Test(judge_trace, silence_is_judged_once_the_responder_goes_on)
{
    static const struct line late[] = {SEND(0, 10, 1), ACK(US, 10, 1, 1), SEND(2 * US, 11, 2), SEND(5 * MS, 11, 3),
                                       ACK(5 * MS, 11, 2, 2)};
    static const struct line gone[] = {SEND(0, 10, 1), ACK(US, 10, 1, 1), SEND(2 * US, 11, 2), SEND(5 * MS, 11, 3)};
    static const struct line first[] = {SEND(0, 10, 1), SEND(5 * MS, 10, 2), ACK(5 * MS, 10, 1, 1)};
    static const struct line ahead[] = {SEND(0, 10, 1),       ACK(US, 10, 1, 1),     SEND(2 * US, 12, 2),
                                        SEND(5 * MS, 11, 3),  ACK(5 * MS, 11, 2, 2), SEND(6 * MS, 12, 3),
                                        ACK(6 * MS, 12, 3, 3)};
    static const struct line settled[] = {SEND(0, 10, 1),      ACK(US, 10, 1, 1),   SEND(2 * US, 12, 2),
                                          SEND(3 * US, 11, 3), SEND(4 * US, 12, 4), ACK(5 * US, 12, 3, 2),
                                          SEND(6 * US, 13, 5), SEND(5 * MS, 13, 6), ACK(5 * MS, 13, 4, 3)};
    static const struct line unsettled[] = {SEND(0, 10, 1),       ACK(US, 10, 1, 1),   SEND(2 * US, 12, 2),
                                            SEND(3 * US, 11, 3),  SEND(4 * US, 13, 4), SEND(5 * MS, 13, 5),
                                            ACK(5 * MS, 13, 4, 2)};
    static const struct line in_time[] = {SEND(0, 10, 1), ACK(US, 10, 1, 1), SEND(2 * US, 11, 2),
                                          ACK(4 * MS, 11, 2, 2)};
    static const struct line other_key[] = {SEND(0, 10, 1),
                                            ACK(US, 10, 1, 1),
                                            {2 * US, 0, OP_SEND_ONLY, 11, 0, 0, 2, 0, 0x8001},
                                            SEND(5 * MS, 11, 3),
                                            ACK(5 * MS, 11, 2, 2)};

    cr_expect_eq(VERDICT(late, TAP_RESPONDER, true, false, RULE_ACK_04), V_FAIL);
    cr_expect_eq(VERDICT(late, TAP_REQUESTER, true, false, RULE_ACK_04), V_INCONCLUSIVE,
                 "the packet may have been lost");
    cr_expect_eq(VERDICT(gone, TAP_RESPONDER, true, false, RULE_ACK_04), V_PASS, "the responder may be gone");
    cr_expect_eq(VERDICT(first, TAP_RESPONDER, true, false, RULE_ACK_04), V_PASS, "it may not have been ready");
    cr_expect_eq(VERDICT(ahead, TAP_RESPONDER, true, false, RULE_ACK_04), V_PASS, "what comes before it is missing");
    cr_expect_eq(VERDICT(settled, TAP_RESPONDER, true, false, RULE_ACK_04), V_FAIL,
                 "what was missing has come, and what followed it came again");
    cr_expect_eq(VERDICT(unsettled, TAP_RESPONDER, true, false, RULE_ACK_04), V_PASS,
                 "by what came in order 12 is expected, and it never came again");
    cr_expect_eq(VERDICT(in_time, TAP_RESPONDER, true, false, RULE_ACK_04), V_PASS);
    cr_expect_eq(VERDICT(other_key, TAP_RESPONDER, true, false, RULE_ACK_04), V_PASS,
                 "the responder drops it without a word");
}

Test(judge_trace, a_queue_pair_that_begins_anew_may_have_other_values)
{
    static const struct line anew[] = {SEND(0, 10, 1),
                                       SEND(US, 11, 2),
                                       {2 * US, 0, OP_SEND_ONLY, 5000000, 0, 0, 3, 0, 0x8001},
                                       {3 * US, 0, OP_SEND_ONLY, 5000001, 0, 0, 4, 0, 0x8001}};
    static const struct line same[] = {SEND(0, 10, 1),
                                       SEND(US, 11, 2),
                                       {2 * US, 0, OP_SEND_ONLY, 12, 0, 0, 3, 0, 0x8001},
                                       {3 * US, 0, OP_SEND_ONLY, 13, 0, 0, 4, 0, 0x8001}};

    cr_expect_eq(VERDICT(anew, TAP_MIDDLE, false, false, RULE_FMT_15), V_PASS);
    cr_expect_eq(VERDICT(same, TAP_MIDDLE, false, false, RULE_FMT_15), V_FAIL);
}

/* --- The fast path: packets that are like earlier ones ------------------------------------------ */

#define MID_FRAMES 16

/* The added rule is about the reserved flag of IPv4: no rule of ours reads it. */
static bool flag_is_checked;

static void check_flag(struct judge *j, const struct pkt *p)
{
    if (flag_is_checked && p->data[p->ip_off + 6] & 0x80)
        judge_bad(j, p, RULE_FMT_08, "the reserved flag clear", "set", "");
}

/* A judge that has seen some SENDs and their ACKs; with a rule of its own that states to read `reads`. */
static struct judge *mid_flow(uint64_t reads)
{
    static struct header_rule rules[64];
    struct judge_opts o = {.complete = true, .ack_timeout = -1, .retry_cnt = -1};
    struct judge *j = judge_new(&o);

    cr_assert(n_header_rules < ARRAY_LEN(rules));
    memcpy(rules, header_rules, n_header_rules * sizeof *rules);
    rules[n_header_rules] = (struct header_rule){RULE_FMT_08, reads, 0, check_flag};
    judge_use_header_rules(j, rules, n_header_rules + 1);
    for (unsigned i = 0; i < MID_FRAMES; i += 2) {
        judge_line(j, &(struct line)SEND(i * US, 10 + i / 2, (uint16_t)(i + 1)), i + 1);
        judge_line(j, &(struct line)ACK(i * US + 1, 10 + i / 2, i / 2 + 1, (uint16_t)(i + 2)), i + 2);
    }
    return j;
}

static const struct line next_send = SEND(MID_FRAMES * US, 10 + MID_FRAMES / 2, MID_FRAMES + 1);

/* Whether the next SEND is on the fast path, with a bit of its headers changed. */
static bool is_usual(struct judge *j, int bit)
{
    uint8_t buf[256];
    uint32_t len = line_frame(&next_send, buf);
    struct frame f;
    struct pkt p;

    if (bit >= 0)
        buf[14 + bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
    decode_line(&p, &f, &next_send, buf, len, MID_FRAMES + 1, false);
    return judge_usual_flow(j, &p) != FLOW_NONE;
}

static const struct {
    const char *name;
    int bit, bits;
} fields[] = {
#define X(name, bit, bits) {#name, bit, bits},
    HEADER_FIELDS(X)
#undef X
};

Test(judge_trace, the_fields_of_a_header_tile_it)
{
    int at = 0;

    for (unsigned i = 0; i < ARRAY_LEN(fields); at += fields[i++].bits)
        cr_expect_eq(fields[i].bit, at, "%s", fields[i].name);
    cr_expect_eq(at, 8 * HEADER_BYTES);
}

Test(judge_trace, a_changed_bit_that_a_header_rule_reads_ends_the_fast_path)
{
    /* what is_plain() looks at: with one bit changed, the lengths contradict each other */
    const uint64_t lengths = READS(IP_LEN) | READS(UDP_LEN) | READS(BTH_PAD);
    uint64_t reads = 0, plain = 0;

    for (unsigned i = 0; i < n_header_rules; i++)
        if (rule_table[header_rules[i].rule].applies & (ON_BTH | ON_UDP | ON_CONN | ON_RC)) {
            reads |= header_rules[i].reads & ~header_rules[i].plain;
            plain |= header_rules[i].plain;
        }
    cr_expect_eq(plain & lengths, lengths);
    reads |= lengths;
    cr_expect(reads & READS(UDP_SUM) && !(reads & READS(IP_RESV)));
    for (unsigned i = 0; i < ARRAY_LEN(fields); i++)
        for (int bit = fields[i].bit; bit < fields[i].bit + fields[i].bits && reads >> i & 1; bit++) {
            struct judge *j = mid_flow(0);
            cr_expect(is_usual(j, -1));
            cr_expect(!is_usual(j, bit), "bit %d of %s", bit - fields[i].bit, fields[i].name);
            judge_free(j);
        }
}

Test(judge_trace, what_no_rule_reads_leaves_a_packet_on_the_fast_path_until_one_does)
{
    struct judge *j = mid_flow(0), *k = mid_flow(READS(IP_RESV));

    for (unsigned i = 0; i < ARRAY_LEN(fields); i++)
        if (i == FIELD_IP_ID || i == FIELD_IP_RESV || i == FIELD_IP_SUM)
            cr_expect(is_usual(j, fields[i].bit), "%s", fields[i].name);
    cr_expect(is_usual(k, -1));
    cr_expect(!is_usual(k, fields[FIELD_IP_RESV].bit));
    judge_free(j);
    judge_free(k);
}

/* Findings of the added rule about a SEND in mid-flow with the flag set. */
static size_t flag_findings(uint64_t reads)
{
    struct judge *j = mid_flow(reads);
    uint8_t buf[256];
    uint32_t len = line_frame(&next_send, buf);
    struct frame f;
    struct pkt p;
    size_t n = 0;

    buf[14 + 6] |= 0x80;
    store_le32(buf + len - 4, icrc_rocev2(buf + 14, buf + 34, len - 34 - 4));
    decode_line(&p, &f, &next_send, buf, len, MID_FRAMES + 1, true);
    cr_assert_eq(p.icrc, CRC_GOOD);
    flag_is_checked = true;
    judge_packet(j, &p);
    flag_is_checked = false;
    for (size_t i = 0; i < findings_n(judge_findings(j)); i++)
        n += findings_at(judge_findings(j), i)->rule == RULE_FMT_08;
    judge_free(j);
    return n;
}

Test(judge_trace, an_added_header_rule_fires_in_mid_flow_by_what_it_states_to_read)
{
    cr_expect_eq(flag_findings(READS(IP_RESV)), 1);
    cr_expect_eq(flag_findings(READS(LINK)), 1, "outside of the bytes compared: no fast path");
    cr_expect_eq(flag_findings(READS(IP_IHL)), 0, "it states to read something else");
}

Test(judge_trace, a_reserved_bit_of_a_syndrome_is_found_in_mid_flow)
{
    static const struct line lines[] = {SEND(0, 10, 1),      ACK(1, 10, 1, 2),
                                        SEND(US, 11, 3),     ACK(US + 1, 11, 2, 4),
                                        SEND(2 * US, 12, 5), ACK(2 * US + 1, 12, 3, 6),
                                        SEND(3 * US, 13, 7), {3 * US + 1, 1, OP_ACKNOWLEDGE, 13, 0x9f, 4, 8, 0, 0}};

    cr_expect_eq(VERDICT(lines, TAP_UNKNOWN, false, false, RULE_ACK_01), V_FAIL);
}
