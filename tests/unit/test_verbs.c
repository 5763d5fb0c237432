/* layer 2 (transport) tests: states of queue pairs, names (10.3, 11.2.5). */
#include "src/transport/qp.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#define CONN_RTR (QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN)

static struct qp *make(enum qp_type type)
{
    struct qp *q = malloc(qp_size(8, 4));
    struct qp_options opt = {.port_mtu = 1024};

    qp_init(q, type, 5, 8, 4, &opt);
    return q;
}

static struct qp_attr attr(enum qp_state s)
{
    return (struct qp_attr){.state = (uint8_t)s,
                            .port = 1,
                            .path_mtu = 1024,
                            .timeout = 14,
                            .retry_cnt = 7,
                            .rnr_retry = 7,
                            .max_rd_atomic = 4,
                            .max_dest_rd_atomic = 4,
                            .min_rnr_timer = 12,
                            .sq_psn = 77,
                            .rq_psn = 88,
                            .dest_qpn = 9};
}

static uint32_t needed(enum qp_type type, enum qp_state from, enum qp_state to)
{
    uint32_t required, optional;

    cr_assert(qp_transition(type, from, to, &required, &optional));
    return required | QPA_STATE;
}

static void go(struct qp *q, enum qp_state to)
{
    struct qp_attr a = attr(to);

    cr_assert_eq(qp_modify(q, &a, needed((enum qp_type)q->type, (enum qp_state)q->state, to)), 0);
    cr_assert_eq(q->state, to);
}

Test(qp, every_type_walks_from_reset_to_rts)
{
    for (int type = QPT_RC; type < QP_TYPES; type++) {
        struct qp *q = make((enum qp_type)type);
        go(q, QPS_INIT);
        go(q, QPS_RTR);
        go(q, QPS_RTS);
        cr_expect_eq(q->req.psn_next, 77);
        cr_expect(type == QPT_UD || q->rsp.epsn_hi == 88);
        cr_expect_eq(q->req.p.pmtu, 1024);
        free(q);
    }
}

Test(qp, transitions_are_those_of_the_specification)
{
    /* A row a state: to which of RESET, INIT, RTR, RTS, SQD, SQE, ERR it may go by request. */
    static const char *const rc[] = {"11....1", "111...1", "1..1..1", "1..11.1", "1..11.1", "1.....1", "1.....1"};
    static const char *const ud[] = {"11....1", "111...1", "1..1..1", "1..11.1", "1..11.1", "1..1..1", "1.....1"};
    uint32_t required, optional;

    for (int type = QPT_RC; type < QP_TYPES; type++)
        for (int from = QPS_RESET; from <= QPS_ERR; from++)
            for (int to = QPS_RESET; to <= QPS_ERR; to++)
                cr_expect_eq(
                    qp_transition((enum qp_type)type, (enum qp_state)from, (enum qp_state)to, &required, &optional),
                    (qp_is_reliable((unsigned)type) ? rc : ud)[from][to] == '1', "%s: %s to %s",
                    qp_type_str((enum qp_type)type), qp_state_str((enum qp_state)from),
                    qp_state_str((enum qp_state)to));
}

Test(qp, each_required_attribute_is_required)
{
    static const enum qp_state steps[] = {QPS_INIT, QPS_RTR, QPS_RTS};

    for (int type = QPT_RC; type < QP_TYPES; type++) {
        struct qp *q = make((enum qp_type)type);
        for (unsigned i = 0; i < ARRAY_LEN(steps); i++) {
            uint32_t mask = needed((enum qp_type)type, (enum qp_state)q->state, steps[i]);
            struct qp_attr a = attr(steps[i]);
            for (uint32_t bit = 1; bit; bit <<= 1)
                if (mask & bit && bit != QPA_STATE)
                    cr_expect_eq(qp_modify(q, &a, mask & ~bit), -EINVAL, "%s to %s without %x",
                                 qp_type_str((enum qp_type)type), qp_state_str(steps[i]), bit);
            go(q, steps[i]);
        }
        free(q);
    }
}

Test(qp, what_was_given_in_init_may_be_given_again)
{
    for (int type = QPT_RC; type < QP_TYPES; type++) {
        struct qp *q = make((enum qp_type)type);
        struct qp_attr a = attr(QPS_INIT);
        go(q, QPS_INIT);
        cr_expect_eq(qp_modify(q, &a, QPA_PKEY_INDEX), 0, "%s", qp_type_str((enum qp_type)type));
        cr_expect_eq(qp_modify(q, &a, QPA_PKEY_INDEX | QPA_STATE), 0, "%s", qp_type_str((enum qp_type)type));
        cr_expect_eq(q->state, QPS_INIT);
        free(q);
    }
}

Test(qp, attribute_that_does_not_belong_is_refused_and_nothing_changes)
{
    struct qp *q = make(QPT_UC);
    struct qp_attr a = attr(QPS_RTR);

    go(q, QPS_INIT);
    cr_expect_eq(qp_modify(q, &a, CONN_RTR | QPA_TIMEOUT), -EINVAL);
    cr_expect_eq(qp_modify(q, &a, CONN_RTR | QPA_MIN_RNR_TIMER), -EINVAL, "UC has no RNR NAKs");
    cr_expect_eq(q->state, QPS_INIT);
    cr_expect_eq(qp_modify(q, &a, CONN_RTR), 0);
    free(q);
}

Test(qp, values_out_of_range_are_refused)
{
    struct qp *q = make(QPT_RC);
    struct qp_attr a;
    uint32_t mask;

    go(q, QPS_INIT);
    mask = needed(QPT_RC, QPS_INIT, QPS_RTR);
    a = attr(QPS_RTR);
    a.path_mtu = 1500;
    cr_expect_eq(qp_modify(q, &a, mask), -EINVAL);
    a = attr(QPS_RTR);
    a.rq_psn = 0x1000000;
    cr_expect_eq(qp_modify(q, &a, mask), -EINVAL);
    a = attr(QPS_RTR);
    a.max_dest_rd_atomic = 5;
    cr_expect_eq(qp_modify(q, &a, mask), -EINVAL, "more than the queue pair can remember");
    go(q, QPS_RTR);
    mask = needed(QPT_RC, QPS_RTR, QPS_RTS);
    a = attr(QPS_RTS);
    a.retry_cnt = 8;
    cr_expect_eq(qp_modify(q, &a, mask), -EINVAL);
    a = attr(QPS_RTS);
    a.timeout = 32;
    cr_expect_eq(qp_modify(q, &a, mask), -EINVAL);
    free(q);
}

Test(qp, wrong_assumption_about_the_state_is_refused)
{
    struct qp *q = make(QPT_RC);
    struct qp_attr a = attr(QPS_RTS);

    go(q, QPS_INIT);
    go(q, QPS_RTR);
    go(q, QPS_RTS);
    a.cur_state = QPS_SQD;
    cr_expect_eq(qp_modify(q, &a, QPA_STATE | QPA_CUR_STATE), -EINVAL);
    a.cur_state = QPS_RTS;
    cr_expect_eq(qp_modify(q, &a, QPA_STATE | QPA_CUR_STATE), 0);
    free(q);
}

Test(qp, copy_of_its_block_is_a_queue_pair_of_its_own)
{
    struct qp *q = make(QPT_RC), *copy = malloc(qp_size(8, 4));

    go(q, QPS_INIT);
    go(q, QPS_RTR);
    go(q, QPS_RTS);
    memcpy(copy, q, qp_size(8, 4));
    req_local(&copy->req);
    cr_expect(req_msg(&copy->req, 0) == (struct req_msg *)(copy + 1));
    cr_expect_eq(q->req.msg_tail, 0);
    free(q);
    free(copy);
}

Test(verbs, names_are_those_of_ibverbs)
{
    cr_expect_str_eq(wc_status_str(WC_SUCCESS), "SUCCESS");
    cr_expect_str_eq(wc_status_str(WC_WR_FLUSH_ERR), "WR_FLUSH_ERR");
    cr_expect_str_eq(wc_status_str(WC_RETRY_EXC_ERR), "RETRY_EXC_ERR");
    cr_expect_str_eq(wc_status_str(WC_RNR_RETRY_EXC_ERR), "RNR_RETRY_EXC_ERR");
    cr_expect_str_eq(wc_status_str(WC_GENERAL_ERR), "GENERAL_ERR");
    cr_expect_str_eq(wr_opcode_str(WR_ATOMIC_FETCH_AND_ADD), "ATOMIC_FETCH_AND_ADD");
    cr_expect_str_eq(qp_state_str(QPS_SQD), "SQD");
    cr_expect_str_eq(wc_status_str((enum wc_status)99), "?");
}

Test(verbs, ack_timeout_doubles_with_each_code)
{
    cr_expect_eq(ack_timeout(0), NS_NEVER);
    cr_expect_eq(ack_timeout(1), 8192);
    cr_expect_eq(ack_timeout(14), 67108864);
    cr_expect_eq(ack_timeout(31), INT64_C(8796093022208));
}

Test(verbs, credit_codes_never_promise_more_than_there_is)
{
    cr_expect_eq(credit_code(0), 0);
    cr_expect_eq(credit_code(5), 4);
    cr_expect_eq(aeth_credits(credit_code(7)), 6);
    for (uint32_t n = 0; n < 40000; n += 7)
        cr_expect_leq(aeth_credits(credit_code(n)), n);
    cr_expect_eq(credit_code(UINT32_MAX), 30);
}

Test(qp, a_state_that_is_kept_needs_no_attribute)
{
    static const enum qp_type types[] = {QPT_RC, QPT_UC, QPT_UD, QPT_XRC_INI, QPT_XRC_TGT};

    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        cr_expect_eq(needed(types[i], QPS_INIT, QPS_INIT), QPA_STATE);
        cr_expect_eq(needed(types[i], QPS_RTS, QPS_RTS), QPA_STATE);
    }
}
