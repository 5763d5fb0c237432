/* layer 3 (explain): what a tap saw of requests and responses about an incident, kept until another tap gets there. */
#include "src/explain/compare/compare.h"

#include <stdlib.h>

static uint32_t kept_psn(uint32_t psn, unsigned i)
{
    return psn_add(psn, PSN_MASK + 1 - BEHIND_LOOK + i);
}

static void drop(struct explainer *x, unsigned i)
{
    struct incident *st = incident_at(x, x->kept[i]->incident);

    st->kept = 0;
    free(x->kept[i]);
    x->kept[i] = NULL;
}

/* A free place; if there is none, that of what was compared already; KEPT_MOST: none. */
static unsigned free_place(struct explainer *x)
{
    unsigned i = 0;

    while (i < x->n_kept && x->kept[i])
        i++;
    if (i < KEPT_MOST)
        return i;
    for (i = 0; i < KEPT_MOST; i++)
        if (x->kept[i]->compared) {
            drop(x, i);
            break;
        }
    return i;
}

void kept_take(struct explainer *x, struct incident *st, struct req_dir *h)
{
    const struct flow_notes *t = x->notes[st->flow];
    unsigned place = t ? free_place(x) : KEPT_MOST;
    struct kept_copies *k = place < KEPT_MOST ? malloc(sizeof *k) : NULL;

    if (!k)
        return;
    *k = (struct kept_copies){.incident = (uint32_t)(st - x->incidents), .flow = st->flow, .psn = st->psn};
    for (unsigned i = 0; i < KEPT; i++) { /* a later PSN in its place tells that it was forgotten already */
        k->sent[i] = h->sent[kept_psn(st->psn, i) & (h->slots - 1)];
        k->responses[i] = *response_slot(t, kept_psn(st->psn, i));
    }
    x->kept[place] = k;
    x->n_kept = place < x->n_kept ? x->n_kept : place + 1;
    st->kept = (uint16_t)(place + 1);
}

void kept_compared(struct explainer *x, const struct incident *st)
{
    if (st->kept)
        x->kept[st->kept - 1]->compared = true;
}

/* Whether a kept packet is one that `st` is about, at its own tap or at another one. */
static bool is_about(struct explainer *x, const struct kept_copies *k, const struct incident *st)
{
    int behind = psn_diff(k->psn, st->psn);

    if (st->flow == FLOW_NONE)
        return false;
    if (st->kept && k == x->kept[st->kept - 1])
        return true;
    return behind > -BEHIND_COMPARED && behind < BEHIND_COMPARED && k->flow != st->flow &&
           explain_same_flow(x, k->flow, st->flow);
}

bool kept_at(struct explainer *x, const struct incident *st, uint32_t flow)
{
    for (unsigned i = 0; i < x->n_kept; i++)
        if (x->kept[i] && x->kept[i]->flow == flow && is_about(x, x->kept[i], st))
            return true;
    return false;
}

/* Put what was kept in the place of what the tap keeps now; the other way round the second time. */
static void swap(struct explainer *x, struct kept_copies *k, bool in)
{
    struct req_dir *h = observer_req_dir(x->observer, k->flow);

    if (!h || !h->sent || !x->notes[k->flow])
        return;
    for (unsigned n = 0; n < KEPT; n++) { /* back in the opposite order: two PSNs may have one slot */
        unsigned i = in ? n : KEPT - 1 - n;
        struct sent *s = &h->sent[kept_psn(k->psn, i) & (h->slots - 1)], sent = *s;
        struct noted_response *r = response_slot(x->notes[k->flow], kept_psn(k->psn, i)), response = *r;
        *s = k->sent[i];
        *r = k->responses[i];
        k->sent[i] = sent;
        k->responses[i] = response;
    }
}

void kept_swap(struct explainer *x, const struct incident *st, bool in)
{
    for (unsigned n = 0; n < x->n_kept; n++) {
        struct kept_copies *k = x->kept[in ? n : x->n_kept - 1 - n];
        if (k && is_about(x, k, st))
            swap(x, k, in);
    }
}

void kept_free(struct explainer *x)
{
    for (unsigned i = 0; i < x->n_kept; i++)
        free(x->kept[i]);
}
