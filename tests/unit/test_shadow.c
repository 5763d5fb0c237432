/* layer 3 (judge) tests: replicas of both ends, driven by the packets that a tap saw. */
#include "src/shadow/shadow.h"

#include "src/conn/go_back.h"
#include "src/conn/packet.h"

#include <criterion/criterion.h>

#include "tests/unit/mkpkt.h"

static struct shadow *shadow;
static struct req_dir dir;
static struct go_backs go_backs;
static struct frame frame;
static struct verdict found[SHADOW_FOUND];

static void start_as(uint16_t pmtu, bool rxe)
{
    const struct shadow_params k = {.timeout = 14,
                                    .retry_cnt = 7,
                                    .rnr_retry = 7,
                                    .depth = 4,
                                    .complete = true,
                                    .from_start = true,
                                    .pmtu = pmtu,
                                    .psn = 100,
                                    .rxe = rxe};

    req_dir_end(&dir);
    memset(&dir, 0, sizeof dir);
    cr_assert(req_dir_init(&dir, 0));
    go_backs = (struct go_backs){0};
    shadow_free(shadow);
    shadow = shadow_new(NULL);
    shadow_begin(shadow, &k);
}

static void start(uint16_t pmtu)
{
    start_as(pmtu, false);
}

/* The first rule that request `p` breaks; it is taken. */
static enum rule request(struct pkt p)
{
    enum seen_as as;
    unsigned n;

    frame.number++;
    frame.ts += 1000;
    p.frame = &frame;
    as = req_dir_classify(&dir, &p);
    n = shadow_check_request(shadow, &p, found);
    req_dir_request(&dir, &p, as, as == SEEN_AGAIN ? go_back_why(&go_backs, &dir, &p) : BACK_NONE);
    if (shadow_is_full(shadow))
        shadow = shadow_grow(shadow);
    shadow_request(shadow, &p, as, &dir, false);
    return n ? (enum rule)found[0].rule : RULE_NONE;
}

static enum rule response(struct pkt p, bool at_responder)
{
    unsigned n;

    frame.number++;
    frame.ts += 1000;
    p.frame = &frame;
    n = shadow_check_response(shadow, &p, at_responder, found);
    req_dir_response(&dir, &p);
    shadow_response(shadow, &p);
    return n ? (enum rule)found[0].rule : RULE_NONE;
}

Test(shadow, a_path_mtu_learnt_late_gives_reads_their_psns)
{
    start(0);
    cr_expect_eq(request(mk_read(100, 0x1000, 3000)), RULE_NONE);
    cr_expect_eq(request(mk_read(103, 0x2000, 100)), RULE_NONE, "where the READ ends is not known");
    shadow_learn_pmtu(shadow, 1024);
    req_dir_set_pmtu(&dir, 1024);
    cr_expect_eq(response(mk_aeth(OP_READ_RESP_FIRST, 100, 1024, 0x1f, 1), true), RULE_NONE);
    cr_expect_eq(response(mk(OP_READ_RESP_MIDDLE, 101, 1024), true), RULE_NONE);
    cr_expect_eq(response(mk_aeth(OP_READ_RESP_LAST, 102, 900, 0x1f, 1), true), RULE_RDA_03);
    cr_expect_eq(request(mk_read(104, 0, 64)), RULE_NONE);
}

Test(shadow, a_read_lost_before_the_tap_is_known_when_it_is_sent_again)
{
    start(0);
    request(mk_read(100, 0x1000, 2048));
    cr_expect_eq(request(mk_read(104, 0x3000, 2048)), RULE_NONE,
                 "the READ of 102 was lost: this seems to take four PSNs");
    cr_expect_eq(request(mk_read(106, 0x4000, 2048)), RULE_NONE);
    shadow_learn_pmtu(shadow, 1024);
    req_dir_set_pmtu(&dir, 1024);
    cr_expect_eq(response(mk_aeth(OP_READ_RESP_FIRST, 100, 1024, 0x1f, 1), true), RULE_NONE);
    cr_expect_eq(response(mk_aeth(OP_READ_RESP_LAST, 101, 1024, 0x1f, 1), true), RULE_NONE);
    cr_expect_eq(response(mk_ack(102, 0x60, 1), true), RULE_NONE);
    request(mk_read(102, 0x2000, 2048));
    request(mk_read(104, 0x3000, 2048));
    request(mk_read(106, 0x4000, 2048));
    for (uint32_t i = 0; i < 3; i++) {
        cr_expect_eq(response(mk_aeth(OP_READ_RESP_FIRST, 102 + 2 * i, 1024, 0x1f, 2 + i), dir.late == 0), RULE_NONE);
        cr_expect_eq(response(mk_aeth(OP_READ_RESP_LAST, 103 + 2 * i, 1024, 0x1f, 2 + i), dir.late == 0), RULE_NONE);
    }
}

Test(shadow, a_path_mtu_learnt_while_reads_are_sent_again_leaves_the_next_one_due)
{
    start(0);
    for (uint32_t i = 0; i < 3; i++)
        cr_expect_eq(request(mk_read(100 + 2 * i, 0x1000, 2048)), RULE_NONE);
    cr_expect_eq(response(mk_ack(100, 0x60, 0), true), RULE_NONE);
    frame.ts += 2 * DUPLICATE_WITHIN; /* no copies */
    cr_expect_eq(request(mk_read(100, 0x1000, 2048)), RULE_NONE);
    cr_expect_eq(request(mk_read(102, 0x1000, 2048)), RULE_NONE);
    shadow_learn_pmtu(shadow, 1024);
    req_dir_set_pmtu(&dir, 1024);
    cr_expect_eq(response(mk_aeth(OP_READ_RESP_FIRST, 100, 1024, 0x1f, 1), true), RULE_NONE);
    cr_expect_eq(request(mk_read(104, 0x1000, 2048)), RULE_NONE);
    cr_expect_eq(shadow->req.r.psn_next, 106);
}

Test(shadow, a_read_that_a_nak_asks_for_is_still_expected_when_the_path_mtu_becomes_known)
{
    start(0);
    request(mk_read(100, 0x1000, 2048));
    request(mk_read(102, 0x1000, 2048));
    response(mk_ack(102, 0x60, 1), true);
    cr_expect_eq(dir.gbn, 102);
    req_dir_set_pmtu(&dir, 1024);
    cr_expect_eq(dir.gbn, 102, "its first PSN has not arrived");
    start(0);
    request(mk_read(100, 0x1000, 2048));
    cr_expect_eq(dir.gbn, 101, "the second PSN of the READ, whose span is not known");
    req_dir_set_pmtu(&dir, 1024);
    cr_expect_eq(dir.gbn, 102);
}

Test(shadow, a_read_whose_psns_are_not_known_may_be_all_that_lies_before_the_next_one)
{
    start(0);
    request(mk_read(100, 0x1000, 900));
    request(mk_read(102, 0x2000, 400));
    cr_expect_eq(request(mk_read(105, 0x3000, 400)), RULE_SEQ_01, "103 and 104 were lost");
    shadow_learn_pmtu(shadow, 512);
    req_dir_set_pmtu(&dir, 512);
    cr_expect_eq(response(mk_aeth(OP_READ_RESP_FIRST, 100, 512, 0x1f, 2), true), RULE_NONE);
    cr_expect_eq(response(mk_aeth(OP_READ_RESP_LAST, 101, 388, 0x1f, 2), true), RULE_NONE);
    cr_expect_eq(response(mk_aeth(OP_READ_RESP_ONLY, 102, 400, 0x1f, 2), true), RULE_NONE);
    cr_expect_eq(response(mk_ack(103, 0x60, 2), true), RULE_NONE);
}

Test(shadow, profile_rxe_permits_what_other_requesters_do_about_a_hole_in_an_answer)
{
    for (int rxe = 0; rxe < 2; rxe++) {
        start_as(1024, rxe);
        cr_expect_eq(request(mk_read(100, 0x1000, 3000)), RULE_NONE);
        cr_expect_eq(response(mk_aeth(OP_READ_RESP_FIRST, 100, 1024, 0x1f, 1), false), RULE_NONE);
        cr_expect_eq(request(mk_read(101, 0x1400, 1976)), RULE_RTX_02, "nothing asks for it");
        cr_expect_eq(response(mk_aeth(OP_READ_RESP_LAST, 102, 952, 0x1f, 1), false), RULE_NONE);
        cr_expect_eq(request(mk_read(101, 0x1400, 1976)), RULE_NONE, "PSN 101 is missing");
    }
}

Test(shadow, each_copy_of_a_read_may_be_answered_and_no_more)
{
    start(1024);
    request(mk_read(100, 0x1000, 2000));
    request(mk_read(100, 0x1000, 2000));
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(response(mk_aeth(OP_READ_RESP_FIRST, 100, 1024, 0x1f, 1), true), RULE_NONE);
        cr_expect_eq(response(mk_aeth(OP_READ_RESP_LAST, 101, 976, 0x1f, 1), true), RULE_NONE);
    }
    cr_expect_eq(response(mk_aeth(OP_READ_RESP_FIRST, 100, 1024, 0x1f, 1), true), RULE_RDA_02);
}

Test(shadow, elsewhere_than_at_the_responder_only_the_form_of_an_answer_is_judged)
{
    start(1024);
    request(mk_read(100, 0x1000, 3000));
    cr_expect_eq(response(mk(OP_READ_RESP_MIDDLE, 101, 1024), false), RULE_NONE, "the first one may be lost, or late");
    cr_expect_eq(response(mk(OP_READ_RESP_MIDDLE, 102, 1024), false), RULE_RDA_02,
                 "it is the Last, wherever the tap is");
}

Test(shadow, credits_count_from_the_first_ack_that_tells_them)
{
    start(1024);
    for (uint32_t i = 0; i < 4; i++)
        cr_expect_eq(request(mk(OP_SEND_ONLY, 100 + i, 8)), RULE_NONE, "how many there are is not known");
    response(mk_ack(103, 1, 4), true); /* one */
    cr_expect_eq(request(mk(OP_SEND_ONLY, 104, 8)), RULE_NONE);
    cr_expect_eq(request(mk(OP_SEND_ONLY, 105, 8)), RULE_NONE, "the probe");
    cr_expect_eq(request(mk(OP_SEND_ONLY, 106, 8)), RULE_ACK_08);
    cr_expect_eq(found[0].needs, N_TAP_REQ);
    response(mk_ack(106, 0x1f, 7), true);
    for (uint32_t i = 0; i < 9; i++)
        cr_expect_eq(request(mk(OP_SEND_ONLY, 107 + i, 8)), RULE_NONE, "without limit from now on");
}

Test(shadow, credits_count_of_responses_that_pass_the_tap_out_of_order)
{
    start(1024);
    response(mk_ack(99, 0, 0), true);
    request(mk(OP_SEND_ONLY, 100, 8));
    response(mk_ack(100, 2, 1), true);
    cr_expect_eq(request(mk_read(101, 0x1000, 8)), RULE_NONE);
    cr_expect_eq(request(mk_read(102, 0x1000, 8)), RULE_NONE);
    response(mk_aeth(OP_READ_RESP_ONLY, 102, 8, 2, 3), true); /* up to SSN 5, before the response of PSN 101 */
    cr_expect_eq(request(mk(OP_SEND_ONLY, 103, 8)), RULE_NONE);
    cr_expect_eq(request(mk(OP_SEND_ONLY, 104, 8)), RULE_NONE);
    cr_expect_eq(request(mk(OP_SEND_ONLY, 105, 8)), RULE_NONE, "the probe");
    cr_expect_eq(request(mk(OP_SEND_ONLY, 106, 8)), RULE_ACK_08);
}

Test(shadow, what_takes_no_receive_gives_its_credit_to_the_next_message)
{
    start(1024);
    request(mk(OP_SEND_ONLY, 100, 8));
    response(mk_ack(100, 1, 1), true); /* up to SSN 2 */
    request(mk_reth(OP_WRITE_ONLY, 101, 8, 0, 0, 8));
    request(mk_reth(OP_WRITE_FIRST, 102, 1024, 0, 0, 1032));
    cr_expect_eq(request(mk(OP_WRITE_LAST, 103, 8)), RULE_NONE);
    cr_expect_eq(request(mk_reth(OP_WRITE_ONLY_IMM, 104, 8, 0, 0, 8)), RULE_NONE, "SSN 4 of 4");
    cr_expect_eq(request(mk(OP_SEND_ONLY, 105, 8)), RULE_NONE, "the probe");
    cr_expect_eq(request(mk(OP_SEND_ONLY, 106, 8)), RULE_ACK_08);
}

Test(shadow, nothing_succeeds_from_a_refused_request_on)
{
    start(1024);
    for (uint32_t i = 0; i < 4; i++)
        request(mk(OP_SEND_ONLY, 100 + i, 8));
    cr_expect_eq(response(mk_ack(102, 0x62, 2), false), RULE_NONE);
    cr_expect_eq(response(mk_ack(101, 0x1f, 2), false), RULE_NONE, "an earlier one, late");
    cr_expect_eq(response(mk_ack(103, 0x1f, 4), false), RULE_NAK_04);
}
