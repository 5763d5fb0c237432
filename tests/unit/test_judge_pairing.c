/* layer 3 (judge) tests: what speaks against a pairing of two directions by their PSNs, and what does not. */
#include "tests/unit/judge_rig.h"

#include <limits.h>

/* A READ response Middle, where an Only is due. */
#define MIDDLE(ts, psn, id)                                                                                            \
    {                                                                                                                  \
        ts, 1, OP_READ_RESP_MIDDLE, psn, 0, 0, id, 0, 0                                                                \
    }

Test(judge_pairing, a_fault_that_comes_again_and_again_is_the_responders_once_its_other_responses_fit)
{
    struct line l[3 * 40];
    size_t n = 0;

    for (unsigned i = 0; i < 40; i++) {
        const ns_t at = 20 * US * i;
        l[n++] = (struct line)READ(at, 10 + i, (uint16_t)i);
        if (i % 10 == 0)
            l[n++] = (struct line)MIDDLE(at + US, 10 + i, (uint16_t)(100 + i));
        l[n++] = (struct line)READ_RESPONSE(at + 2 * US, 10 + i, i + 1, (uint16_t)(200 + i));
        if (i == 15)
            cr_expect_eq(verdict(l, n, TAP_MIDDLE, false, false, RULE_RDA_02), V_INCONCLUSIVE, "too few fit");
    }
    cr_expect_eq(verdict(l, n, TAP_MIDDLE, false, false, RULE_RDA_02), V_FAIL);
}

/* What a capture that may be incomplete lacks for the finding of `rule`: N_*; UINT_MAX: there is none. */
static unsigned missing(const struct line *l, size_t n, enum rule rule)
{
    struct judge *j = judge_new(&(struct judge_opts){.ack_timeout = -1, .retry_cnt = -1});
    unsigned lacks = UINT_MAX;

    for (size_t i = 0; i < n; i++)
        judge_line(j, &l[i], i + 1);
    judge_end(j);
    for (size_t i = 0; i < findings_n(judge_findings(j)); i++)
        if (findings_at(judge_findings(j), i)->rule == rule)
            lacks = findings_at(judge_findings(j), i)->missing;
    judge_free(j);
    return lacks;
}

Test(judge_pairing, a_response_after_a_silence_fits_its_requests)
{
    /* PSN 12 is missing, which the responder says nothing about; what it refuses for good it acknowledges later */
    static const struct line lines[] = {SEND(0, 10, 1),
                                        ACK(US, 10, 1, 1),
                                        {2 * US, 0, OP_SEND_FIRST, 11, 0, 0, 2, 0, 0},
                                        {3 * US, 0, OP_SEND_MIDDLE, 13, 0, 0, 4, 0, 0},
                                        {4 * US, 0, OP_SEND_LAST, 14, 0, 0, 5, 0, 0},
                                        {20 * MS, 0, OP_SEND_MIDDLE, 12, 0, 0, 3, 0, 0},
                                        ACK(21 * MS, 14, 2, 2),
                                        SEND(22 * MS, 15, 6),
                                        ACK(23 * MS, 15, 3, 3),
                                        SEND(24 * MS, 16, 7),
                                        {25 * MS, 1, OP_ACKNOWLEDGE, 16, SYNDROME_NAK(NAK_INVALID_REQUEST), 3, 4, 0, 0},
                                        ACK(26 * MS, 16, 4, 5)};

    cr_assert_neq(missing(lines, ARRAY_LEN(lines), RULE_NAK_10), UINT_MAX);
    cr_expect(missing(lines, ARRAY_LEN(lines), RULE_NAK_10) & N_PAIRED, "too few have fitted");
    cr_expect_eq(missing(lines, ARRAY_LEN(lines), RULE_NAK_04), 0);
}
