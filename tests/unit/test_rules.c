/* layer 2 tests: the rule table. */
#include "src/transport/rules.h"

#include <criterion/criterion.h>

Test(rules, every_rule_is_found_by_its_id_in_any_case)
{
    for (int i = 1; i < RULE_COUNT; i++)
        cr_expect_eq((int)rule_find(rule_str((enum rule)i)), i, "%s", rule_str((enum rule)i));
    cr_expect_eq(rule_find("nak-02"), RULE_NAK_02);
    cr_expect_eq(rule_find("NAK-99"), RULE_NONE);
    cr_expect_eq(rule_find(""), RULE_NONE);
}

Test(rules, an_observation_cannot_be_broken_on_purpose)
{
    for (int i = 1; i < RULE_COUNT; i++)
        if (rule_table[i].severity == SEV_I)
            cr_expect_eq(rule_table[i].fault, F_NONE, "%s", rule_table[i].id);
}

Test(rules, what_a_check_of_the_transport_finds_has_a_text_and_a_known_cause)
{
    cr_expect(rule_table[RULE_SEQ_01].reason.text && rule_table[RULE_SVC_06].reason.text);
    for (int i = 1; i < RULE_COUNT; i++) {
        const struct rule_reason *r = &rule_table[i].reason;
        cr_expect(r->cause < RULE_CAUSES, "%s", rule_table[i].id);
        cr_expect(r->text || (!r->cause && !r->limit && !r->instead), "%s: a cause, and no text", rule_table[i].id);
    }
}

Test(rules, a_failure_without_its_needs_is_inconclusive)
{
    struct verdict v = verdict_fail(RULE_NAK_02, "PSN", 1, 2), w;

    w = verdict_weigh(v, N_REQ | N_RSP);
    cr_expect_eq(w.result, V_INCONCLUSIVE);
    cr_expect_eq(w.missing, N_COMPLETE);
    w = verdict_weigh(v, N_REQ | N_RSP | N_COMPLETE);
    cr_expect_eq(w.result, V_FAIL);
    cr_expect_eq(verdict_weigh(verdict_pass(), 0).result, V_PASS);
}
