/* layer 3 (explain): what a tap saw of requests and responses about an incident, kept until another tap gets there. */
#include "src/explain/explain_impl.h"

#include <stdlib.h>

static uint32_t kept_psn(const struct incident *st, unsigned i)
{
    return psn_add(st->psn, PSN_MASK + 1 - BEHIND_LOOK + i);
}

void kept_take(struct explainer *x, struct incident *st, struct req_dir *h)
{
    const struct flow_notes *t = x->notes[st->flow];
    struct kept_copies *k;
    unsigned free_one = 0;

    while (free_one < KEPT_MOST && x->kept[free_one])
        free_one++;
    k = t && free_one < KEPT_MOST ? malloc(sizeof *k) : NULL;
    if (!k)
        return;
    for (unsigned i = 0; i < KEPT; i++) {
        uint32_t psn = kept_psn(st, i);
        const struct sent *s = req_dir_sent(h, psn);
        const struct noted_response *r = response_slot(t, psn);
        k->sent[i] = s ? *s : (struct sent){.psn = UINT32_MAX};
        k->responses[i] = r->psn == psn ? *r : (struct noted_response){.psn = UINT32_MAX};
    }
    x->kept[free_one] = k;
    st->kept = (uint16_t)(free_one + 1);
}

void kept_drop(struct explainer *x, struct incident *st)
{
    if (!st->kept)
        return;
    free(x->kept[st->kept - 1]);
    x->kept[st->kept - 1] = NULL;
    st->kept = 0;
}

void kept_swap(struct explainer *x, const struct incident *st, bool in)
{
    struct kept_copies *k = st->kept ? x->kept[st->kept - 1] : NULL;
    struct req_dir *h = k ? observer_req_dir(x->observer, st->flow) : NULL;

    if (!h || !h->sent || !x->notes[st->flow])
        return;
    for (unsigned n = 0; n < KEPT; n++) { /* back in the opposite order: two PSNs may have one slot */
        unsigned i = in ? n : KEPT - 1 - n;
        struct sent *s = &h->sent[kept_psn(st, i) & (h->slots - 1)], sent = *s;
        struct noted_response *r = response_slot(x->notes[st->flow], kept_psn(st, i)), response = *r;
        *s = k->sent[i];
        *r = k->responses[i];
        k->sent[i] = sent;
        k->responses[i] = response;
    }
}

void kept_free(struct explainer *x)
{
    for (unsigned i = 0; i < KEPT_MOST; i++)
        free(x->kept[i]);
}
