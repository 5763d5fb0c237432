/* layer 3 (explain): which taps are at the link of a receiver: all packets there, of several peers, are to or from it.
 */
#include "src/explain/congestion/congestion_impl.h"

#include <stdlib.h>

struct tapped {
    const struct flow *f;
    uint32_t flow;
};

static int by_tap(const void *a, const void *b)
{
    const struct tapped *s = a, *o = b;

    if (s->f->tap != o->f->tap)
        return s->f->tap < o->f->tap ? -1 : 1;
    return s->flow < o->flow ? -1 : s->flow > o->flow;
}

/* An end of the first flow of a tap. */
struct hub {
    const struct conn_addr *end, *peer; /* peer: the other end of its latest flow; NULL: none yet */
    bool of_all, several;               /* it is an end of all flows; they have several other ends */
};

static void hub_add(struct hub *h, const struct flow *f)
{
    bool to = conn_addr_eq(&f->dst, h->end), from = conn_addr_eq(&f->src, h->end);
    const struct conn_addr *peer = to ? &f->src : &f->dst;

    h->of_all &= to || from;
    h->several |= h->peer && !conn_addr_eq(h->peer, peer);
    h->peer = peer;
}

/* The flows of one tap, `n`. */
static void mark_receivers(struct explainer *x, const struct tapped *of, uint32_t n)
{
    struct hub hubs[2] = {{.end = &of->f->src, .of_all = true}, {.end = &of->f->dst, .of_all = true}};

    for (uint32_t i = 0; i < n; i++)
        for (unsigned k = 0; k < ARRAY_LEN(hubs); k++)
            hub_add(&hubs[k], of[i].f);
    for (uint32_t i = 0; i < n; i++)
        for (unsigned k = 0; k < ARRAY_LEN(hubs) && x->notes[of[i].flow]; k++)
            x->notes[of[i].flow]->marks.at_receiver |=
                hubs[k].of_all && hubs[k].several && conn_addr_eq(hubs[k].end, &of[i].f->dst);
}

/* Whether it matters to any flow: it has CNPs without marks. */
static bool matters(const struct explainer *x, uint32_t flows)
{
    for (uint32_t i = 0; i < flows; i++)
        if (x->notes[i] && x->notes[i]->marks.unmarked_cnps)
            return true;
    return false;
}

void explain_receiver_taps(struct explainer *x)
{
    struct conn_table *conns = observer_conns(x->observer);
    uint32_t flows = conn_counts(conns).flows;
    struct tapped *all = matters(x, flows) ? malloc(flows * sizeof *all) : NULL;

    for (uint32_t i = 0; all && i < flows; i++)
        all[i] = (struct tapped){conn_flow_at(conns, i), i};
    if (all)
        qsort(all, flows, sizeof *all, by_tap);
    for (uint32_t i = 0, k; all && i < flows; i = k) {
        for (k = i + 1; k < flows && all[k].f->tap == all[i].f->tap;)
            k++;
        mark_receivers(x, &all[i], k - i);
    }
    free(all);
}
