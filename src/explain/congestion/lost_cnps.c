/* layer 3 (explain): CNPs that do not reach the sender in time: lost between two taps, or in a class that is paused. */
#include "src/explain/compare/taps.h"
#include "src/explain/congestion/congestion_impl.h"

#include <stdlib.h>

#define LOST_LEAST 2 /* one may have been on its way when a capture ended, */
#define ROUNDS     2 /* unless packets came so many round trips after the latest one */

/* --- Lost between two taps -------------------------------------------------------------------- */

/* A flow at one tap. */
struct at_tap {
    const struct flow *f;
    uint32_t flow;
};

static int by_flow(const void *a, const void *b)
{
    return flow_order(((const struct at_tap *)a)->f, ((const struct at_tap *)b)->f);
}

/* CNPs for the requests of a flow, those included that came before it was known which flow they are for. */
static uint32_t cnps_of(const struct explainer *x, uint32_t flow)
{
    uint32_t peer = conn_flow_at(observer_conns(x->observer), flow)->peer;
    const struct flow_notes *o = peer == FLOW_NONE ? NULL : x->notes[peer];

    return (uint32_t)(x->notes[flow]->marks.cnps + (o ? o->marks.early_cnps : 0));
}

/* Whether a third tap lies between two taps of one flow. */
static bool is_one_between(struct explainer *x, uint32_t near, uint32_t far)
{
    struct conn_table *conns = observer_conns(x->observer);

    for (uint32_t k = 0; (k = conn_flow_alike(conns, near, k)) != FLOW_NONE; k++)
        if (k != near && k != far && x->notes[k] && x->notes[k]->headers.seen && passes_first(x, near, k) &&
            passes_first(x, k, far))
            return true;
    return false;
}

/* When the latest packet of a flow, or response to it, passed: CNPs take the way of the responses. */
static ns_t latest_of(const struct flow_notes *t)
{
    return t->headers.last_ts > t->responses.last_ts ? t->headers.last_ts : t->responses.last_ts;
}

/* Whether responses to the requests of a flow passed its tap: if none did, CNPs take another way, too. */
static bool sees_responses(const struct flow_notes *t)
{
    return t->responses.last_frame != 0;
}

/* The receiver's tap `far` has CNPs that the tap `near` its sender lacks, which saw the packets of that whole time. */
static void compare(struct explainer *x, uint32_t near, uint32_t far)
{
    struct conn_table *conns = observer_conns(x->observer);
    const struct marks *m = &x->notes[far]->marks;
    uint32_t tap = conn_flow_at(conns, near)->tap, sent = cnps_of(x, far), came = cnps_of(x, near);
    ns_t trip = x->notes[near]->responses.least_trip,
         seen = sent > came ? explain_clock(x, tap, conn_flow_at(conns, far)->tap, latest_of(x->notes[near])) : 0;
    bool settled = trip >= 0 && seen >= m->latest_cnp + ROUNDS * trip,
         fewer = sent >= came + (settled ? 1 : LOST_LEAST),
         missing = fewer && sees_responses(x->notes[near]) && seen >= m->latest_cnp && passes_first(x, near, far) &&
                   !is_one_between(x, near, far);
    struct incident *st = missing ? incident_new(x, CAUSE_LOST_CNP, far, NULL) : NULL;

    if (!st)
        return;
    incident_frame(st, ROLE_EVIDENCE, m->cnp_frame);
    st->start = m->cnp_ts;
    st->times = sent - came - 1;
    st->place = PLACE_AFTER;
    st->passed = fact_tap(conn_flow_at(conns, far)->tap);
    st->missed = fact_tap(tap);
    incident_is(st, SAY(CNP_LOST, .n = sent - came, .m = sent, .k = came, .other = m->cnp_frame, .tap = fact_tap(tap)));
}

static void between_taps(struct explainer *x)
{
    struct conn_table *conns = observer_conns(x->observer);
    uint32_t flows = conn_counts(conns).flows, n = 0;
    struct at_tap *all = x->several_taps ? calloc(flows + 1u, sizeof *all) : NULL;

    for (uint32_t i = 0; all && i < flows; i++)
        if (x->notes[i] && x->notes[i]->headers.seen && observer_req_dir(x->observer, i))
            all[n++] = (struct at_tap){conn_flow_at(conns, i), i};
    if (n)
        qsort(all, n, sizeof *all, by_flow);
    for (uint32_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && !by_flow(&all[i], &all[k]);)
            k++;
        for (uint32_t a = i; a < k; a++)
            for (uint32_t b = i; b < k; b++)
                if (all[a].f->tap != all[b].f->tap)
                    compare(x, all[a].flow, all[b].flow);
    }
    free(all);
}

/* --- Paused ----------------------------------------------------------------------------------- */

/* The port that pauses the class of the CNPs for requests of a flow, ahead of them; NULL: none. */
static const struct pauser *blocker_of(const struct explainer *x, uint32_t flow)
{
    uint32_t peer = conn_flow_at(observer_conns(x->observer), flow)->peer;

    for (uint32_t i = 0; peer != FLOW_NONE && i < x->congestion->n_pausers; i++) {
        const struct pauser *a = &x->congestion->pausers[i];
        bool of_class = !a->classes || a->classes >> x->notes[flow]->marks.cnp_class & 1;
        if (of_class && a->paused >= PAUSE_LONG && pause_is_ahead(x, a, peer))
            return a;
    }
    return NULL;
}

static void report_blocked(struct explainer *x, uint32_t flow, const struct pauser *a)
{
    const struct marks *m = &x->notes[flow]->marks;
    struct incident *st = incident_new(x, CAUSE_BLOCKED_CNP, flow, NULL);

    if (!st)
        return;
    incident_frame(st, ROLE_EVIDENCE, m->cnp_frame);
    incident_frame(st, ROLE_EVIDENCE, a->frame);
    st->start = m->cnp_ts;
    incident_is(st, SAY(CNP_BLOCKED, .n = (uint32_t)m->cnps, .other = m->cnp_frame,
                        .code = (uint8_t)(1u << m->cnp_class), .address = a->mac, .time = a->paused));
}

void explain_lost_cnps(struct explainer *x)
{
    uint32_t flows = conn_counts(observer_conns(x->observer)).flows;
    const struct pauser *a;

    between_taps(x);
    for (uint32_t i = 0; x->congestion && i < flows; i++)
        if (x->notes[i] && x->notes[i]->marks.cnps && (a = blocker_of(x, i)))
            report_blocked(x, i, a);
}
