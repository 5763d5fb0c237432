/* layer 3 (gen): the table of deliberate mistakes. */
#include "gen/faults.h"

static bool wrong_icrc(struct fault_ctx *c)
{
    c->tweak->icrc_xor = 1;
    return true;
}

const struct fault_info fault_table[] = {
    {RULE_FMT_01, FAULT_REQUEST, "a request with a wrong ICRC", wrong_icrc},
};
const unsigned fault_count = ARRAY_LEN(fault_table);

const struct fault_info *fault_find(enum rule rule)
{
    for (unsigned i = 0; i < fault_count; i++)
        if (fault_table[i].rule == rule)
            return &fault_table[i];
    return NULL;
}
