/* layer 3 (judge) tests: what is said of a finding, and of every rule. */
#include "src/findings/findings.h"
#include "src/judge/judge.h"

#include <criterion/criterion.h>

static const char *headline(enum rule rule, const char *wrong, const char *expected, const char *seen)
{
    static struct buf b;
    struct finding f = {.rule = (uint8_t)rule, .result = V_FAIL};
    struct finding_text t = {wrong, expected, seen, "text"};
    struct findings *r = findings_new();

    b.len = 0;
    findings_add(r, &f, &t);
    cr_assert_eq(findings_n(r), 1);
    findings_headline(r, findings_at(r, 0), &b);
    findings_free(r);
    return buf_str(&b);
}

Test(findings, a_headline_says_what_is_wrong_and_no_word_twice)
{
    cr_expect_str_eq(headline(RULE_FMT_01, NULL, "ICRC 0xcfd9552b", "0x59e9525c"),
                     "wrong ICRC 0x59e9525c, expected 0xcfd9552b");
    cr_expect_str_eq(headline(RULE_SEQ_07, NULL, "at most RETH length 2147483648", "RETH length 2147483649"),
                     "the request has RETH length 2147483649, expected at most 2147483648");
    cr_expect_str_eq(headline(RULE_SEQ_10, NULL, "at most outstanding PSNs 8388607", "outstanding PSNs 8388608"),
                     "too many outstanding PSNs: 8388608, expected at most 8388607");
    cr_expect_str_eq(headline(RULE_NAK_02, NULL, "silence", "sequence NAK of PSN 20"),
                     "sequence NAK of PSN 20 was sent twice, expected silence");
    cr_expect_str_eq(headline(RULE_FMT_08, "the packet is a fragment", "a whole datagram", "a fragment"),
                     "the packet is a fragment");
    cr_expect_str_eq(headline(RULE_SEQ_01, NULL, "PSNs", ""), "the requester sent PSN , expected PSNs");
}

/* Without its {seen} and {expected} a headline has no braces, and no end of a sentence. */
Test(findings, every_rule_has_a_headline_with_known_places_for_values)
{
    for (int i = 1; i < RULE_COUNT; i++) {
        const char *s = headline((enum rule)i, NULL, "X", "Y");
        cr_expect(!strpbrk(s, "{}") && s[strlen(s) - 1] != '.', "%s: %s", rule_str((enum rule)i), s);
        if (rule_table[i].severity == SEV_I)
            cr_expect(strchr(s, 'Y'), "%s: a note names its value: %s", rule_str((enum rule)i), s);
    }
}

Test(findings, every_rule_is_explained)
{
    struct buf b = {0};

    for (int i = 1; i < RULE_COUNT; i++) {
        b.len = 0;
        catalog_rule(&b, (enum rule)i);
        cr_expect(strstr(buf_str(&b), rule_table[i].how) && strstr(buf_str(&b), rule_table[i].example), "%s",
                  rule_str((enum rule)i));
    }
    buf_free(&b);
}
