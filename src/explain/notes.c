/* layer 3 (explain): what is remembered of a flow. */
#include "src/explain/notes.h"

#include <stdlib.h>

struct flow_notes *notes_new(void)
{
    struct flow_notes *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    rounds_init(&t->rounds);
    for (unsigned i = 0; i < NOTED_RESPONSES; i++)
        t->responses.by_psn[i].psn = UINT32_MAX;
    for (unsigned i = 0; i < NOTED_BAD; i++)
        t->requests.bad[i].psn = UINT32_MAX;
    t->hypotheses = (struct hypotheses){.open = NO_INCIDENT,
                                        .cost = NO_INCIDENT,
                                        .dup = NO_INCIDENT,
                                        .reorder = NO_INCIDENT,
                                        .rnr = NO_INCIDENT,
                                        .soon = NO_INCIDENT,
                                        .dup_rsp = NO_INCIDENT,
                                        .late = NO_INCIDENT,
                                        .late_alone = NO_INCIDENT,
                                        .follows = UINT32_MAX,
                                        .silent = NO_INCIDENT,
                                        .unheard = NO_INCIDENT,
                                        .rsp_missing = NO_INCIDENT,
                                        .rsp_lost = NO_INCIDENT,
                                        .rsp_reorder = NO_INCIDENT};
    t->responses.late = t->responses.next = t->responses.run_last = UINT32_MAX;
    t->responses.round_trip = t->responses.least_trip = -1;
    return t;
}

uint32_t response_frame(const struct flow_notes *t, uint32_t psn)
{
    unsigned at = psn % NOTED_RESPONSES;

    return t->responses.by_psn[at].psn == psn ? t->responses.by_psn[at].frame : 0;
}

uint32_t answer_frame(const struct flow_notes *t, uint32_t psn)
{
    unsigned at = psn % NOTED_RESPONSES;

    return t->responses.by_psn[at].psn == psn ? t->responses.by_psn[at].answer : 0;
}

uint32_t damaged_frame(const struct flow_notes *t, uint32_t psn)
{
    for (unsigned i = 0; i < NOTED_BAD; i++)
        if (t->requests.bad[i].psn == psn)
            return t->requests.bad[i].frame;
    return 0;
}

uint32_t damaged_since(const struct flow_notes *t, uint32_t psn, uint32_t n, uint32_t since)
{
    for (unsigned i = 0; i < NOTED_BAD; i++)
        if (t->requests.bad[i].psn != UINT32_MAX && psn_in(t->requests.bad[i].psn, psn, n) &&
            t->requests.bad[i].frame > since)
            return t->requests.bad[i].frame;
    return 0;
}
