/* layer 3 (explain): between which two of three or more taps a packet was lost that one of them saw. */
#include "src/explain/explain_impl.h"

#include <stdlib.h>

#define TAPS_MOST   8                /* of one flow */
#define PASSES_MOST (10 * NS_PER_MS) /* no packet takes longer from tap to tap */

/* Whether a tap saw the packet. */
enum saw { SAW_UNKNOWN, SAW_NOT, SAW_IT };
struct sight {
    enum saw saw;
    uint32_t tap, frame;
    ns_t way; /* the longer, the later the packet passes the tap */
};

/* Whether the copy with that ICRC (0: not captured) and time at `tap` is the packet of `st`. */
static enum saw same_copy(struct explainer *x, const struct incident *st, uint32_t tap, uint32_t icrc, ns_t ts)
{
    ns_t most = st->silence ? st->silence / 2 : PASSES_MOST, differ;

    if (icrc && st->gone.icrc)
        return icrc == st->gone.icrc ? SAW_IT : SAW_NOT;
    if (!explain_convert(x, tap, st->gone.tap, &ts))
        return SAW_UNKNOWN;
    differ = ts > st->gone.ts ? ts - st->gone.ts : st->gone.ts - ts;
    return differ < (most < PASSES_MOST ? most : PASSES_MOST) ? SAW_IT : SAW_NOT;
}

/* The first request, or response, with its PSN that the tap of `flow` saw. */
static struct sight sight_at(struct explainer *x, const struct incident *st, uint32_t flow)
{
    uint32_t psn = st->gone.psn;
    struct flow_notes *t = x->notes[flow];
    struct req_dir *h = observer_req_dir(x->observer, flow);
    const struct noted_response *r = t ? response_slot(t, psn) : NULL;
    const struct sent *s = h && h->have_next ? req_dir_sent(h, psn) : NULL;
    struct sight o = {.tap = conn_flow_at(observer_conns(x->observer), flow)->tap};
    bool later;

    if (!t || !h || !h->have_next || t->responses.least_trip < 0)
        return o;
    o.way = st->gone.response ? t->responses.least_trip : -t->responses.least_trip;
    if (st->gone.response) {
        later = r->psn == UINT32_MAX || psn_diff(r->psn, psn) < 0;
        o.frame = r->psn == psn ? r->first : 0;
        o.saw = r->psn == psn ? same_copy(x, st, o.tap, r->icrc_first, r->ts_first) : later ? SAW_NOT : SAW_UNKNOWN;
        return o;
    }
    later = psn_diff(h->next, psn) > 0 &&
            (h->sent[psn & (h->slots - 1)].psn == UINT32_MAX || psn_diff(h->sent[psn & (h->slots - 1)].psn, psn) < 0);
    o.frame = s ? s->first : 0;
    o.saw = s ? same_copy(x, st, o.tap, s->icrc_first, s->ts_first) : later ? SAW_NOT : SAW_UNKNOWN;
    return o;
}

static int by_way(const void *a, const void *b)
{
    const struct sight *s = a, *o = b;

    return s->way < o->way ? -1 : s->way > o->way;
}

/* The taps that know, in the order in which the packet passes them: how many. */
static unsigned sights_of(struct explainer *x, const struct incident *st, struct sight *taps)
{
    struct conn_table *conns = observer_conns(x->observer);
    uint32_t i = conn_flow_alike(conns, st->flow, 0);
    unsigned n = 0;

    for (; i != FLOW_NONE && n < TAPS_MOST; i = conn_flow_alike(conns, st->flow, i + 1)) {
        taps[n] = sight_at(x, st, i);
        n += taps[n].saw != SAW_UNKNOWN;
    }
    qsort(taps, n, sizeof *taps, by_way);
    return n;
}

/* The fact that names one other tap names the nearest one. */
static void name_nearest(struct incident *st, const struct sight *last, const struct sight *first)
{
    struct fact *f = &st->facts[st->gone.fact];
    const struct sight *o = last->tap == st->tap ? first : last;

    if (f->tap == fact_tap(o->tap))
        return;
    f->tap = fact_tap(o->tap);
    if (f->sentence == SENTENCE_TAP_ANSWERED) {
        f->sentence = SENTENCE_TAP_ANSWER;
        f->answer = o->frame;
    } else if (f->sentence == SENTENCE_TAP_HAS) {
        f->lost = o->frame;
    } else if (f->sentence == SENTENCE_TAP_LOST) {
        f->other = o->frame;
    }
    incident_frame_at(st, f->sentence == SENTENCE_TAP_ANSWER ? ROLE_ANSWER : ROLE_LOST, o->tap, o->frame);
}

void explain_between(struct explainer *x, struct incident *st)
{
    struct sight taps[TAPS_MOST];
    unsigned n = st->gone.known && st->proved ? sights_of(x, st, taps) : 0, last = n, first;

    for (unsigned i = 0; i < n; i++)
        last = taps[i].saw == SAW_IT ? i : last;
    first = last + 1;
    if (last >= n || first >= n)
        return;
    st->passed = fact_tap(taps[last].tap);
    st->missed = fact_tap(taps[first].tap);
    if (n < 3)
        return;
    if (taps[last].tap == st->tap || taps[first].tap == st->tap)
        name_nearest(st, &taps[last], &taps[first]);
    else
        incident_add(st, SAY(TAPS_BETWEEN, .tap = fact_tap(taps[last].tap), .other = taps[last].frame,
                             .m = fact_tap(taps[first].tap)));
}
