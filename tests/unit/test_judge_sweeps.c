/* layer 3 (judge) tests: requests whose PSNs are tried one after another, and when it is certain that they are. */
#include "tests/unit/judge_rig.h"

#define TRIES 64
#define FAR   4000000

/* What becomes of requests far from the PSNs of a connection between its own ones, which `behind` come after. */
static enum result of_sweep(bool complete, bool cm, const struct line *behind, size_t n)
{
    static const struct line before[] = {SEND(0, 10, 1), ACK(US, 10, 1, 2)};
    struct judge *j = judge_new(&(struct judge_opts){.complete = complete});
    enum result r = V_PASS;
    uint64_t number = 0;

    if (cm)
        learn(j);
    for (size_t i = 0; i < ARRAY_LEN(before); i++)
        judge_line(j, &before[i], ++number);
    for (uint32_t i = 0; i < TRIES; i++)
        judge_line(j, &(struct line)SEND((2 + i) * US, FAR + i, (uint16_t)(3 + i)), ++number);
    for (size_t i = 0; i < n; i++)
        judge_line(j, &behind[i], ++number);
    judge_end(j);
    for (size_t i = 0; i < findings_n(judge_findings(j)); i++)
        if (findings_at(judge_findings(j), i)->rule == RULE_SEC_02)
            r = (enum result)findings_at(judge_findings(j), i)->result;
    judge_free(j);
    return r;
}
#define OF_SWEEP(complete, cm, behind) of_sweep(complete, cm, behind, ARRAY_LEN(behind))

Test(judge_sweeps, a_response_where_the_connection_was_proves_that_it_goes_on)
{
    static const struct line answered[] = {SEND(MS, 11, 90), SEND(MS, 12, 91), ACK(2 * MS, 12, 3, 92)};

    cr_expect_eq(OF_SWEEP(true, true, answered), V_FAIL);
    cr_expect_eq(OF_SWEEP(false, true, answered), V_FAIL, "CM said which responses are those to its requests");
    cr_expect_eq(OF_SWEEP(false, false, answered), V_INCONCLUSIVE);
}

Test(judge_sweeps, requests_alone_do_not_decide_before_a_response_comes)
{
    static const struct line elsewhere[] = {SEND(MS, 11, 90), SEND(MS, 12, 91), ACK(2 * MS, FAR + 63, 65, 92)};
    static const struct line unanswered[] = {SEND(MS, 11, 90), SEND(MS, 12, 91)};
    static const struct line later[] = {SEND(MS, 11, 90), SEND(MS, 12, 91), SEND(1100 * MS, 13, 92),
                                        ACK(1101 * MS, FAR + 63, 65, 93)};

    cr_expect_eq(OF_SWEEP(false, true, elsewhere), V_PASS, "another connection has begun there");
    cr_expect_eq(OF_SWEEP(false, true, unanswered), V_INCONCLUSIVE);
    cr_expect_eq(OF_SWEEP(true, true, unanswered), V_FAIL);
    cr_expect_eq(OF_SWEEP(false, true, later), V_INCONCLUSIVE, "a second is over");
}

Test(judge_sweeps, a_late_response_does_not_show_that_the_connection_goes_on)
{
    static const struct line late[] = {ACK(MS, 10, 1, 90), SEND(2 * MS, 10, 1), ACK(3 * MS, 10, 1, 91)};

    cr_expect_eq(OF_SWEEP(false, true, late), V_INCONCLUSIVE);
}
