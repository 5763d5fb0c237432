/* layer 3 (explain): end of the capture: incidents that never ended, and the order of all. */
#include "src/explain/explain_impl.h"
#include "src/transport/verbs.h"

#include <stdlib.h>

#define THROTTLED_PART 10 /* of the time behind the first CNP: less is no slowdown */

/* True if the account of the flow says that CNPs, the first at `since`, slowed it down for a good part of the time. */
static bool is_throttled(const struct explainer *x, uint32_t flow, ns_t since)
{
    for (size_t i = 0; i < timeline_n(x->timeline); i++) {
        const struct timeline_row *r = timeline_row(x->timeline, i);
        if (r->flow == flow)
            return r->states[TIME_THROTTLED] > (r->last - since) / THROTTLED_PART;
    }
    return false;
}

/* `heard`: packets of the other direction were captured; CNPs come in that direction. */
static void end_congestion(struct explainer *x, uint32_t flow, const struct flow_notes *t, bool heard)
{
    struct incident *st;

    if (t->marks.ce_packets && !t->marks.cnps && heard) {
        st = incident_new(x, CAUSE_CE_WITHOUT_CNP, flow, NULL);
        if (!st)
            return;
        for (unsigned i = 0; i < t->marks.ce_packets && i < NOTED_CE; i++)
            incident_frame(st, ROLE_EVIDENCE, t->marks.ce_frames[i]);
        st->times = (uint32_t)t->marks.ce_packets - st->n_frames;
        st->start = t->headers.ts;
        incident_is(st, SAY(CE_UNHEEDED, .n = (uint32_t)t->marks.ce_packets));
    }
    if (t->marks.look >= CNP_LOOK && t->marks.before_cnp >= 16 && t->marks.after_cnp >= t->marks.before_cnp &&
        !is_throttled(x, flow, t->marks.cnp_ts)) {
        st = incident_new(x, CAUSE_CNP_WITHOUT_SLOWDOWN, flow, NULL);
        if (!st)
            return;
        incident_frame(st, ROLE_EVIDENCE, t->marks.cnp_frame);
        st->start = t->marks.cnp_ts;
        incident_is(st, SAY(CNP_UNHEEDED, .n = t->marks.before_cnp, .other = t->marks.cnp_frame,
                            .m = t->marks.after_cnp, .time = t->marks.look));
    }
}

static void end_flow(struct explainer *x, uint32_t flow)
{
    uint32_t peer = conn_flow_at(observer_conns(x->observer), flow)->peer;
    struct flow_notes *t = x->notes[flow], *o = peer == FLOW_NONE ? NULL : x->notes[peer];
    struct req_dir *h = observer_req_dir(x->observer, flow);

    if (!t)
        return;
    for (uint32_t i = 0; !t->responses.last_frame && i < x->n; i++)
        if (x->incidents[i].flow == flow && x->incidents[i].cause == CAUSE_LOST_LAST_PACKET)
            cannot_tell(x, &x->incidents[i], h);
    if (h && h->have_next) {
        end_silence(x, flow, t, h);
        end_rnr(x, flow, t, h);
    }
    end_odd_key(x, flow, t, o);
    end_overtaken(x, flow, t);
    if (h && h->have_next)
        end_slower(x, flow, t, h);
    end_early(x, flow, t);
    if (h && h->have_next)
        end_spent(x, flow, t, h);
    if (h && h->have_next)
        end_unheard(x, flow, t, h);
    if (o && t->headers.seen && o->headers.seen && flow < peer)
        end_keys(x, flow, t, o);
    end_congestion(x, flow, t, o && o->headers.seen);
}

/* --- The end ---------------------------------------------------------------------------------- */

/* Failures first, then by lost time. */
static int by_weight(const void *a, const void *b)
{
    const struct incident *s = a, *t = b;
    int v = cause_table[s->cause].weight, w = cause_table[t->cause].weight;

    if (incident_failure(s) != incident_failure(t))
        return incident_failure(t) - incident_failure(s);
    if (s->bill != t->bill)
        return s->bill < t->bill ? 1 : -1;
    if (v != w)
        return w - v;
    return s->frames[0] < t->frames[0] ? -1 : s->frames[0] > t->frames[0];
}

static void drop_moot(struct explainer *x)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < x->n; i++)
        if (!x->incidents[i].moot)
            x->incidents[n++] = x->incidents[i];
    x->n = n;
}

/* Sort incidents, worst first, and renumber the references between them. */
static void sort(struct explainer *x)
{
    uint32_t *place = x->n ? malloc((x->n + 1) * sizeof *place) : NULL;

    if (!place)
        return;
    for (uint32_t i = 0; i < x->n; i++)
        x->incidents[i].number = i + 1;
    qsort(x->incidents, x->n, sizeof *x->incidents, by_weight);
    place[0] = 0;
    for (uint32_t i = 0; i < x->n; i++)
        place[x->incidents[i].number] = i + 1;
    for (uint32_t i = 0; i < x->n; i++) {
        x->incidents[i].superseded_by = place[x->incidents[i].superseded_by];
        x->incidents[i].number = i + 1;
    }
    free(place);
}

/* What was not seen may have passed where the capture lacks packets of the connection. */
static void doubt(struct explainer *x)
{
    for (uint32_t i = 0; i < x->n; i++) {
        struct incident *s = &x->incidents[i];
        uint32_t peer = s->flow == FLOW_NONE ? FLOW_NONE : conn_flow_at(observer_conns(x->observer), s->flow)->peer;
        if (explain_lacks(x, s->flow) || explain_lacks(x, peer))
            incident_doubt(s);
    }
}

void explain_end(struct explainer *x)
{
    struct conn_table *conns = observer_conns(x->observer);
    uint32_t flows = conn_counts(conns).flows;

    if (x->taps) {
        taps_end(x->taps);
        timeline_share_pauses(x->timeline, explain_convert, x);
    }
    timeline_end(x->timeline);
    for (uint32_t i = 0; i < x->n; i++)
        x->incidents[i].conn = conn_number_now(conns, x->incidents[i].conn);
    for (uint32_t i = 0; i < flows; i++)
        end_flow(x, i);
    explain_taps(x);
    explain_cm_end(x);
    explain_datagrams_end(x);
    explain_early_icrcs(x);
    explain_stranger_naks(x);
    drop_moot(x);
    explain_once(x);
    explain_bill(x);
    explain_cross(x);
    doubt(x);
    sort(x);
    explain_events(x);
    explain_set_clocks(x);
}
