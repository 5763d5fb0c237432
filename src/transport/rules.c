/* layer 2 (transport): the rule table. */
#include "src/transport/rules.h"

#include <strings.h>

_Static_assert(RULE_COUNT <= 256, "struct verdict holds a rule in 8 bits");

/* Every row has all texts. */
#define RULE(name, id, severity, anchor, needs, fault, applies, traits, meaning, wrong, reason, how, example)          \
    _Static_assert(sizeof(anchor) > 1 && sizeof(meaning) > 1, id ": an anchor and what holds");                        \
    _Static_assert(sizeof(wrong) > 1, id ": the headline of a finding");                                               \
    _Static_assert(sizeof(how) > 1 && sizeof(example) > 1, id ": how it is judged, and an example");                   \
    _Static_assert((applies) != 0, id ": what it is judged by");
#include "src/transport/rules.def"
#undef RULE

const struct rule_info rule_table[RULE_COUNT] = {
    [RULE_NONE] = {"", "", "", "", "", "", {CAUSE_NONE}, 0, 0, SEV_I, F_NONE, 0},
#define NO_REASON                                                                                                      \
    {                                                                                                                  \
        CAUSE_NONE                                                                                                     \
    }
#define REASON(...)                                                                                                    \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define RULE(name, id, severity, anchor, needs, fault, applies, traits, meaning, wrong, reason, how, example)          \
    [RULE_##name] = {id, anchor, meaning, wrong, how, example, reason, needs, applies, SEV_##severity, fault, traits},
#include "src/transport/rules.def"
#undef RULE
};

const char *rule_str(enum rule rule)
{
    return rule < RULE_COUNT ? rule_table[rule].id : "";
}

enum rule rule_find(const char *id)
{
    for (unsigned i = 1; i < RULE_COUNT; i++)
        if (strcasecmp(rule_table[i].id, id) == 0)
            return (enum rule)i;
    return RULE_NONE;
}

const char *severity_str(enum severity s)
{
    static const char *const names[] = {[SEV_E] = "error", [SEV_W] = "warning", [SEV_I] = "note"};
    return names[s];
}

const char *result_str(enum result r)
{
    static const char *const names[] = {[V_PASS] = "pass", [V_FAIL] = "fail", [V_INCONCLUSIVE] = "inconclusive"};
    return names[r];
}

const char *need_str(unsigned need)
{
    switch (need) {
    case N_REQ:
        return "the requester's direction";
    case N_RSP:
        return "the responder's direction";
    case N_START:
        return "the start of the connection";
    case N_COMPLETE:
        return "a complete capture";
    case N_PAYLOAD:
        return "packets captured in full";
    case N_CM:
        return "the connection's parameters";
    case N_TAP_REQ:
        return "a tap at the requester";
    case N_TAP_RSP:
        return "a tap at the responder";
    case N_CLOCK:
        return "time stamps that can be trusted";
    case N_PAIRED:
        return "a certain pairing of the two directions";
    case N_SAME:
        return "certainty that no other connection began";
    case N_OPENER:
        return "which end opened the connection";
    case N_ORDER:
        return "packets once each, in the order of that end";
    case N_PACE:
        return "certainty that no congestion control held it back";
    default:
        return "";
    }
}
