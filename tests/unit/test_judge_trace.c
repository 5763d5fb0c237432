/* layer 3 (judge) tests: the judge, over short captures built packet by packet: what it must not report as a failure of
 * an endpoint. */
#include "src/judge/cm/cm.h"
#include "src/judge/share/part.h"
#include "src/transport/responder.h"
#include "tests/unit/judge_rig.h"

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

Test(judge_trace, a_read_response_may_be_paced_and_with_it_what_it_acknowledges)
{
    static const struct line read[] = {SEND(0, 10, 1), ACK(US, 10, 1, 1), READ(2 * US, 11, 2), READ(5 * MS, 11, 3),
                                       READ_RESPONSE(5 * MS, 11, 2, 2)};
    static const struct line before[] = {SEND(0, 10, 1), ACK(US, 10, 1, 1), SEND(2 * US, 11, 2), READ(3 * US, 12, 3),
                                         READ_RESPONSE(5 * MS, 12, 3, 2)};
    static const struct line behind[] = {SEND(0, 10, 1),
                                         ACK(US, 10, 1, 1),
                                         READ(2 * US, 11, 2),
                                         SEND(3 * US, 12, 3),
                                         READ_RESPONSE(5 * MS, 11, 2, 2),
                                         ACK(5 * MS + US, 12, 3, 3)};
    static const struct line ack[] = {SEND(0, 10, 1),      ACK(US, 10, 1, 1),
                                      READ(2 * US, 11, 2), READ_RESPONSE(3 * US, 11, 2, 2),
                                      SEND(4 * US, 12, 3), ACK(5 * MS, 12, 3, 3)};

    cr_expect_eq(VERDICT(read, TAP_RESPONDER, true, false, RULE_ACK_04), V_PASS);
    cr_expect_eq(VERDICT(before, TAP_RESPONDER, true, false, RULE_ACK_04), V_PASS, "it answers the SEND, too");
    cr_expect_eq(VERDICT(behind, TAP_RESPONDER, true, false, RULE_ACK_04), V_PASS);
    cr_expect_eq(VERDICT(ack, TAP_RESPONDER, true, false, RULE_ACK_04), V_FAIL, "no data is left that could be paced");
}

/* Findings of all rules, or of one, that are no notes. */
static unsigned accusations(struct judge *j, enum rule rule)
{
    unsigned n = 0;

    for (size_t i = 0; i < findings_n(judge_findings(j)); i++) {
        const struct finding *f = findings_at(judge_findings(j), i);
        n += f->severity != SEV_I && f->result != V_PASS && (rule == RULE_NONE || f->rule == rule);
    }
    return n;
}

Test(judge_trace, an_ack_with_the_time_stamp_of_its_request_may_have_come_behind_it)
{
    static const struct line l[] = {SEND(0, 10, 1), ACK(US, 10, 1, 1), ACK(5 * US, 11, 2, 2), SEND(5 * US, 11, 2)};
    struct judge *j = judge_new(&(struct judge_opts){.complete = true, .tap[0] = TAP_RESPONDER});

    for (size_t i = 0; i < ARRAY_LEN(l); i++)
        judge_line(j, &l[i], i + 1);
    judge_end(j);
    cr_expect_eq(accusations(j, RULE_NONE), 0);
    judge_free(j);
}

Test(judge_trace, one_frame_that_is_shorter_than_its_packet_is_damaged)
{
    static const struct line whole = SEND(0, 10, 1), cut = SEND(US, 11, 2);
    struct judge *j = judge_new(&(struct judge_opts){.complete = true});
    uint8_t buf[256];
    uint32_t len = line_frame(&cut, buf) - 8;
    struct frame f;
    struct pkt p;

    judge_line(j, &whole, 1);
    decode_line(&p, &f, &cut, buf, len, 2, true);
    cr_assert_eq(p.flags & (PKT_SHORT | PKT_CUT), PKT_SHORT | PKT_CUT);
    judge_packet(j, &p);
    judge_end(j);
    cr_expect_eq(accusations(j, RULE_FMT_07), 1);
    judge_free(j);
}

/* A queue pair on which one of two READs was answered refuses the other, which is within the depth. */
Test(judge_trace, a_read_within_the_depth_is_refused_without_reason)
{
    static const struct line l[] = {
        SEND(0, 10, 1),      ACK(US, 10, 1, 1),
        READ(2 * US, 11, 2), READ_RESPONSE(3 * US, 11, 2, 2),
        READ(4 * US, 12, 3), {5 * US, 1, OP_ACKNOWLEDGE, 12, SYNDROME_NAK(NAK_INVALID_REQUEST), 2, 3, 0, 0}};
    struct judge *j = judge_new(&(struct judge_opts){.complete = true, .tap[0] = TAP_RESPONDER});
    struct conn_known k = {.qpn = {0x11, 0x12}, .psn = {10, 10}, .pmtu = 1024, .how = PAIR_CM};

    for (int i = 0; i < 2; i++) {
        memcpy(k.addr[i].b, end_addr(i).gid, 16);
        k.params[i] = (struct conn_params){.passive = i == 1, .have_depth = true, .depth = 1};
    }
    conn_learn(judge_conns(j), &k);
    for (size_t i = 0; i < ARRAY_LEN(l); i++)
        judge_line(j, &l[i], i + 1);
    judge_end(j);
    cr_expect_eq(accusations(j, RULE_RDA_07), 1);
    judge_free(j);
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

static void judge_in_file(struct judge *j, const struct line *l, uint64_t number, uint16_t file, bool damaged)
{
    uint8_t buf[256];
    uint32_t len = line_frame(l, buf);
    struct frame f;
    struct pkt p;

    buf[len - 1] ^= damaged; /* its ICRC */
    decode_line(&p, &f, l, buf, len, number, true);
    cr_assert_eq(p.icrc, damaged ? CRC_BAD : CRC_GOOD);
    f.file = file;
    judge_packet(j, &p);
}

/* What is wrong with a response follows from no other fault: the damaged frame of that number is of another file. */
Test(judge_trace, a_fault_in_a_frame_of_the_same_number_hides_nothing)
{
    static const struct line send[] = {SEND(0, 10, 1), SEND(US, 11, 2)}, ack = ACK(3 * US, 11, 7, 9);

    for (uint16_t other = 0; other < 2; other++) {
        struct judge *j = judge_new(&(struct judge_opts){.complete = true, .ack_timeout = 10, .retry_cnt = 1});
        learn(j);
        for (unsigned i = 0; i < 2; i++)
            judge_in_file(j, &send[i], i + 1, 1, false);
        judge_in_file(j, &send[0], 3, other, true);
        judge_in_file(j, &ack, other ? 4 : 3, 1, false);
        judge_end(j);
        cr_expect_eq(accusations(j, RULE_ACK_06), 1, "a damaged frame 3 in file %u", other);
        judge_free(j);
    }
}

/* --- Failures that rest on the clocks of a tap ------------------------------------------------ */

/* A failure that concerns no flow, in a frame of file 1 that counts for interface 0 of file 0. */
static void find_joined(struct judge *j)
{
    static const struct line line = SEND(0, 10, 1);
    uint8_t buf[256];
    struct frame f;
    struct pkt p;

    decode_line(&p, &f, &line, buf, line_frame(&line, buf), 1, true);
    f.file = 1;
    f.counts_for = 1;
    stamps_take(&j->stamps, &f);
    judge_found(j, &p,
                (struct found){.rule = RULE_CM_13,
                               .severity = SEV_E,
                               .flow = FLOW_NONE,
                               .has = ~0u,
                               .by_clock = true,
                               .expected = "another",
                               .seen = "one"});
    cr_assert_eq(findings_n(judge_findings(j)), 1);
}

Test(judge_trace, a_failure_is_doubted_by_the_clocks_of_the_tap_that_its_interface_counts_for)
{
    struct judge *j = judge_new(&(struct judge_opts){.complete = true});

    find_joined(j);
    judge_doubt_clocks(j);
    cr_expect_eq(findings_at(judge_findings(j), 0)->result, V_FAIL);
    judge_skewed(j, 0);
    judge_doubt_clocks(j);
    cr_expect_eq(findings_at(judge_findings(j), 0)->result, V_INCONCLUSIVE);
    judge_free(j);
}

Test(judge_trace, a_failure_without_flow_that_rests_on_clocks_is_one_that_other_parts_may_refute)
{
    struct judge *j = judge_new(&(struct judge_opts){.complete = true});

    cr_assert(judge_share(j, &(struct conn_owners){{1}}, true));
    cr_expect_not(j->share->compares[0]);
    find_joined(j);
    cr_expect(j->share->compares[0]);
    judge_free(j);
}

Test(judge_trace, ways_of_other_pairs_of_addresses_are_not_taken_for_a_way_that_was_captured)
{
    struct judge *j = judge_new(&(struct judge_opts){.complete = true});
    struct conn_addr a = {.b = {1}}, b = {.b = {2}}, other = b;
    struct found f = found_of(RULE_CM_01, FLOW_NONE);

    for (uint32_t i = 0; i < 1000000; i++) {
        memcpy(other.b + 12, &i, sizeof i);
        if (conn_owner(&a, &other) != conn_owner(&a, &b))
            judge_hear(j, 0, &other, &a);
    }
    judge_needs_peer(j, &f, 0, &b, &a, false);
    cr_expect_eq(f.needs, N_REQ);
    judge_hear(j, 0, &b, &a);
    f.needs = 0;
    judge_needs_peer(j, &f, 0, &b, &a, false);
    cr_expect_eq(f.needs, 0);
    judge_free(j);
}

/* At a tap that has one direction only, nothing is said of what the other host sent. */
Test(judge_trace, the_way_back_is_not_taken_for_a_way_that_was_captured)
{
    struct judge *j = judge_new(&(struct judge_opts){.complete = true});
    struct conn_addr a = {.b = {1}}, b = {.b = {2}};

    for (uint32_t i = 0; i < 4096; i++) {
        struct found f = found_of(RULE_CM_01, FLOW_NONE);
        memcpy(b.b + 12, &i, sizeof i);
        memset(&j->heard, 0, sizeof j->heard);
        judge_hear(j, i % 8, &a, &b);
        judge_needs_peer(j, &f, i % 8, &b, &a, false);
        cr_assert_eq(f.needs, N_REQ, "%u", i);
    }
    judge_free(j);
}

Test(judge_trace, a_dreq_without_drep_is_found_at_its_interface)
{
    struct judge *j = judge_new(&(struct judge_opts){.complete = true});
    struct cm_exchange *s = cm_exchange_place(j, 7);

    cr_assert_not_null(s);
    j->cm_used[j->n_cm_used++] = (uint16_t)(s - j->cm);
    s->key = 7;
    s->tap = 3;
    s->dreq[1] = (struct cm_copies){.frame = 9, .copies = 2};
    judge_cm_end(j);
    cr_assert_eq(findings_n(judge_findings(j)), 1);
    cr_expect_eq(findings_at(judge_findings(j), 0)->tap, 3);
    judge_free(j);
}

Test(judge_trace, numbers_of_cm_messages_of_more_than_16_bits_are_hexadecimal)
{
    struct judge *j = judge_new(&(struct judge_opts){.complete = true});
    struct cm_msg m = {.mad.attr_id = CM_RTU};
    struct found f = cm_found_of(j, &m, verdict_fail(RULE_CM_01, "remote comm id", 0x10000, 0xffff), 0);

    cr_expect_str_eq(f.expected, "remote comm id 0x10000");
    cr_expect_str_eq(f.seen, "remote comm id 65535");
    judge_free(j);
}

/* The severity of what is said of FMT-09 about a SEND with this UDP checksum; -1: nothing. */
static int udp_checksum_severity(uint16_t sum)
{
    static const struct line send = SEND(0, 10, 1);
    struct judge *j = judge_new(&(struct judge_opts){.complete = true});
    uint8_t buf[256];
    uint32_t len = line_frame(&send, buf);
    struct frame f;
    struct pkt p;
    int severity = -1;

    store_be16(buf + 14 + 20 + 6, sum);
    decode_line(&p, &f, &send, buf, len, 1, true);
    judge_packet(j, &p);
    judge_end(j);
    for (size_t i = 0; i < findings_n(judge_findings(j)); i++)
        if (findings_at(judge_findings(j), i)->rule == RULE_FMT_09)
            severity = findings_at(judge_findings(j), i)->severity;
    judge_free(j);
    return severity;
}

Test(judge_trace, a_udp_checksum_that_offload_left_partial_is_an_observation)
{
    static const struct line send = SEND(0, 10, 1);
    uint8_t buf[256], *ip = buf + 14;
    uint32_t len = line_frame(&send, buf) - 34, sum = 17 + len;

    for (int i = 12; i < 20; i += 2) /* both addresses */
        sum += load_be16(ip + i);
    sum = (sum & 0xffff) + (sum >> 16);
    cr_expect_eq(udp_checksum_severity(0), -1);
    cr_expect_eq(udp_checksum_severity((uint16_t)sum), SEV_I);
    cr_expect_eq(udp_checksum_severity((uint16_t)(sum + 1)), SEV_W);
}
