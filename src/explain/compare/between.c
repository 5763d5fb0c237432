/* layer 3 (explain): between which two of three or more taps a packet was lost that one of them saw. */
#include "src/explain/compare/compare.h"
#include "src/explain/compare/copies.h"
#include "src/explain/compare/damaged.h"
#include "src/explain/compare/tap_way.h"

#define TAPS_MOST   8                /* of one flow */
#define PASSES_MOST (10 * NS_PER_MS) /* no packet takes longer from tap to tap */

/* Whether a tap saw the packet. */
enum saw { SAW_UNKNOWN, SAW_NOT, SAW_IT };
struct sight {
    struct tap_way way; /* first */
    enum saw saw;
    uint32_t tap, frame;
};

/* Whether a tap whose first copy of the packet of `st` is `c` saw that packet: `gone` has the copies of the tap that
 * did. Where nothing but the time of the first copy tells, the next copy must have been sent longer after it than any
 * packet is under way. */
static enum saw same_copy(struct explainer *x, const struct incident *st, const struct seen_copies *gone,
                          const struct seen_copies *c)
{
    ns_t most = st->silence / 2, ts = c->ts_first, differ;
    enum first_copies first = c->tap == st->gone.tap ? FIRST_SAME : copies_compare(x, gone, c);

    if (first != FIRST_UNKNOWN)
        return first == FIRST_SAME ? SAW_IT : first == FIRST_LATER ? SAW_NOT : SAW_UNKNOWN;
    if (most < PASSES_MOST || !explain_convert(x, c->tap, st->gone.tap, &ts))
        return SAW_UNKNOWN;
    differ = ts > st->gone.ts_first ? ts - st->gone.ts_first : st->gone.ts_first - ts;
    return differ < most ? SAW_IT : SAW_NOT;
}

/* The copies that the tap which saw the packet of `st` has of it; as far as the incident has kept them, if the tap has
 * forgotten them. */
static struct seen_copies copies_of_gone(struct explainer *x, const struct incident *st)
{
    struct conn_table *conns = observer_conns(x->observer);
    struct seen_copies c;
    uint32_t flow = explain_requests_of(x, st), i = conn_flow_alike(conns, flow, 0);

    for (; i != FLOW_NONE; i = conn_flow_alike(conns, flow, i + 1))
        if (copies_tap(x, i) == st->gone.tap && copies_at(x, i, st->gone.psn, st->gone.response, &c))
            return c;
    return (struct seen_copies){.flow = flow,
                                .tap = st->gone.tap,
                                .psn = st->gone.psn,
                                .n = st->gone.n,
                                .response = st->gone.response,
                                .doubled = st->gone.doubled,
                                .unlike = st->gone.unlike,
                                .icrc_first = st->gone.icrc_first,
                                .icrc = st->gone.icrc,
                                .ts_first = st->gone.ts_first,
                                .ts = st->gone.ts};
}

/* Whether the tap of a flow went on behind request, or response, `psn`, and so lacks it. */
static bool is_beyond(struct explainer *x, uint32_t flow, uint32_t psn, bool response)
{
    const struct req_dir *h = observer_req_dir(x->observer, flow);
    uint32_t at = response ? response_slot(x->notes[flow], psn)->psn : h->sent[psn & (h->slots - 1)].psn;

    return (response || psn_diff(h->next, psn) > 0) && (at == UINT32_MAX || psn_diff(at, psn) < 0);
}

/* Whether the first copy of the packet came to the tap of `flow` behind later ones. */
static bool came_late(struct explainer *x, uint32_t flow, const struct seen_copies *c)
{
    const struct sent *s = c->response ? NULL : req_dir_sent(observer_req_dir(x->observer, flow), c->psn);
    struct seen_copies next;

    for (unsigned i = 1; c->response && i <= BEHIND_LOOK; i++)
        if (copies_at(x, flow, psn_add(c->psn, i), true, &next) && next.frame < c->frame)
            return true;
    return s && s->late;
}

/* Whether the tap of `flow` saw the retransmission of `st`. Of three copies and more a tap keeps the first and the
 * latest one: it saw the others, too, if it has these and as many as the tap of `st`. */
static enum saw saw_again(struct explainer *x, const struct incident *st, uint32_t flow, uint32_t *frame)
{
    const struct sent *own = req_dir_sent(observer_req_dir(x->observer, st->flow), st->psn),
                      *s = req_dir_sent(observer_req_dir(x->observer, flow), st->psn);
    bool first = s && s->icrc_first == st->gone.icrc, same = own && s && own->icrc_first == s->icrc_first;

    *frame = 0;
    if (!s)
        return is_beyond(x, flow, st->psn, false) ? SAW_NOT : SAW_UNKNOWN;
    if (first || s->icrc == st->gone.icrc) {
        *frame = first ? s->first : s->last;
        return SAW_IT;
    }
    if (s->same || !s->icrc_first)
        return SAW_UNKNOWN;
    if (s->copies <= 2)
        return SAW_NOT;
    return same && !own->same && own->icrc == s->icrc && own->copies == s->copies ? SAW_IT : SAW_UNKNOWN;
}

/* Of the packet of `st` at the tap of `flow`: the first request, or response, with its PSN, or its retransmission. */
static struct sight sight_at(struct explainer *x, const struct incident *st, const struct seen_copies *gone,
                             uint32_t flow)
{
    const struct flow_notes *t = x->notes[flow];
    const struct req_dir *h = observer_req_dir(x->observer, flow);
    struct sight o = {.tap = copies_tap(x, flow)};
    struct seen_copies c;
    uint32_t bad;

    if (!t || !h || !h->have_next || t->responses.least_trip < 0)
        return o;
    o.way = (struct tap_way){.exact = t->responses.round_trip, .trip = t->responses.least_trip};
    if (st->gone.how == GONE_AGAIN) {
        o.saw = saw_again(x, st, flow, &o.frame);
        if (o.saw == SAW_NOT && st->cause == CAUSE_BAD_ICRC)
            o.frame = damaged_at(x, flow, st->gone.psn, false);
        return o;
    }
    bad = st->gone.how == GONE_DAMAGED ? damaged_at(x, flow, st->gone.psn, st->gone.response) : 0;
    if (copies_at(x, flow, st->gone.psn, st->gone.response, &c)) {
        o.frame = c.frame;
        o.saw = same_copy(x, st, gone, &c);
        if (st->gone.how == GONE_LATE)
            o.saw = o.saw != SAW_IT ? SAW_UNKNOWN : came_late(x, flow, &c) ? SAW_NOT : SAW_IT;
    }
    if (bad && o.saw != SAW_IT) {
        o.saw = SAW_NOT;
        o.frame = bad;
    } else if (!o.frame && is_beyond(x, flow, st->gone.psn, st->gone.response)) {
        o.saw = SAW_NOT;
    }
    return o;
}

/* The taps that know, in the order in which the packet passes them: how many. */
static unsigned sights_of(struct explainer *x, const struct incident *st, struct sight *taps)
{
    struct conn_table *conns = observer_conns(x->observer);
    struct seen_copies gone = copies_of_gone(x, st);
    uint32_t flow = explain_requests_of(x, st), i = conn_flow_alike(conns, flow, 0);
    unsigned n = 0;

    for (; i != FLOW_NONE && n < TAPS_MOST; i = conn_flow_alike(conns, flow, i + 1)) {
        taps[n] = sight_at(x, st, &gone, i);
        n += taps[n].saw != SAW_UNKNOWN;
    }
    tap_way_order(taps, n, sizeof *taps, !st->gone.response);
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
    } else if (f->sentence == SENTENCE_NAK_LOST_BETWEEN) {
        f->lost = o->frame;
    } else {
        f->other = o->frame;
    }
    incident_frame_at(st, f->sentence == SENTENCE_TAP_ANSWER ? ROLE_ANSWER : ROLE_LOST, o->tap, o->frame);
}

/* Its own tap is none of the two. */
static void tell_taps(struct incident *st, const struct sight *last, const struct sight *first)
{
    static const uint16_t sentences[] = {
        [GONE_LOST] = SENTENCE_TAPS_BETWEEN,
        [GONE_DAMAGED] = SENTENCE_TAPS_DAMAGED,
        [GONE_LATE] = SENTENCE_TAPS_LATE,
        [GONE_AGAIN] = SENTENCE_TAPS_BETWEEN,
    };
    const enum gone_how how = st->cause == CAUSE_BAD_ICRC ? GONE_DAMAGED : st->gone.how;
    const struct fact f = {.sentence = sentences[how],
                           .tap = fact_tap(last->tap),
                           .other = last->frame,
                           .lost = first->frame,
                           .m = fact_tap(first->tap)};
    struct fact *told = incident_fact(st, (enum sentence)f.sentence); /* when fewer taps knew it */

    if (told)
        *told = f;
    else
        incident_add(st, &f);
}

void explain_between(struct explainer *x, struct incident *st)
{
    struct sight taps[TAPS_MOST];
    unsigned n = st->gone.known && st->proved ? sights_of(x, st, taps) : 0, last = n, first;

    for (unsigned i = 0; i < n; i++)
        last = taps[i].saw == SAW_IT ? i : last;
    first = last + 1;
    if (last >= n || first >= n || n < st->sights)
        return; /* or fewer taps know it than did before */
    st->sights = (uint8_t)n;
    st->passed = fact_tap(taps[last].tap);
    st->missed = fact_tap(taps[first].tap);
    if (n < 3)
        return;
    if (taps[last].tap == st->tap || taps[first].tap == st->tap)
        name_nearest(st, &taps[last], &taps[first]);
    else
        tell_taps(st, &taps[last], &taps[first]);
}
