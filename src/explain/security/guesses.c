/* layer 3 (explain): somebody tries PSNs, R_Keys or queue pair numbers, one after another. */
#include "src/conn/packet.h"
#include "src/explain/explain_impl.h"
#include "src/explain/security/security.h"

#include <stdlib.h>

static struct flow *flow_at(const struct explainer *x, uint32_t flow)
{
    return conn_flow_at(observer_conns(x->observer), flow);
}

static unsigned owner_of(const struct explainer *x, uint32_t flow)
{
    return conn_owner(&flow_at(x, flow)->src, &flow_at(x, flow)->dst);
}

/* --- PSNs ------------------------------------------------------------------------------------- */

static void end_sweep(struct explainer *x, struct psn_sweep *w)
{
    x->tried.n_psns -= w->frame != 0;
    w->frame = 0;
}

static void report_sweep(struct explainer *x, struct psn_sweep *w)
{
    struct incident *st = incident_new(x, CAUSE_SWEEP, w->flow, NULL);
    struct fact f = {.sentence = w->paired && psn_sweep_goes_on(w) ? SENTENCE_PSNS_TRIED : SENTENCE_PSNS_TRIED_OPEN,
                     .n = w->tries,
                     .psn = w->start,
                     .time = w->last_ts - w->ts,
                     .other = w->frame,
                     .again = w->home_frame};

    if (st) {
        st->start = w->ts;
        st->is_request = true;
        incident_frame(st, ROLE_EVIDENCE, w->frame);
        incident_frame(st, ROLE_EVIDENCE, w->home_frame);
        incident_is(st, &f);
    }
    end_sweep(x, w);
}

/* Nothing more will tell whether it is a sweep. */
static void settle_sweep(struct explainer *x, struct psn_sweep *w)
{
    if (psn_sweep_is_one(w))
        report_sweep(x, w);
    else
        end_sweep(x, w);
}

void guesses_request(struct explainer *x, const struct event *e)
{
    struct psn_sweep *w = &x->tried.psns[owner_of(x, e->flow)];
    bool used;

    if (psn_sweep_is_over(w, e->flow, e->p->frame->ts))
        settle_sweep(x, w);
    used = w->frame != 0;
    if (psn_sweep_request(w, e->h, e->flow, e->p))
        report_sweep(x, w);
    else
        x->tried.n_psns += !used && w->frame;
}

void guesses_response(struct explainer *x, const struct event *e)
{
    uint32_t flow = e->own == FLOW_NONE ? FLOW_NONE : flow_at(x, e->own)->peer;
    struct psn_sweep *w = flow == FLOW_NONE ? NULL : &x->tried.psns[owner_of(x, flow)];

    if (!w || !w->frame || w->flow != flow)
        return;
    if (psn_sweep_is_over(w, flow, e->p->frame->ts))
        settle_sweep(x, w);
    else if (psn_sweep_response(w, e->p))
        report_sweep(x, w);
    else
        x->tried.n_psns -= !w->frame;
}

void guesses_forget(struct explainer *x, uint32_t flow)
{
    for (unsigned i = 0; x->tried.n_psns && i < CONN_OWNERS; i++)
        if (x->tried.psns[i].frame && x->tried.psns[i].flow == flow)
            end_sweep(x, &x->tried.psns[i]);
}

/* --- R_Keys and addresses --------------------------------------------------------------------- */

void guesses_refused(struct explainer *x, const struct event *e, const struct flow_notes *t)
{
    struct refuser *r = &x->tried.keys[owner_of(x, e->flow)];
    const struct flow *c = flow_at(x, e->flow);
    ns_t first = t->headers.ts, connected = first > c->params.req_ts ? first : c->params.req_ts;
    struct incident *st;

    if (!refuser_refused(r, c, req_dir_sent(e->h, e->p->bth.psn), e->p, connected))
        return;
    st = incident_new(x, CAUSE_SWEEP, e->flow, NULL);
    if (!st)
        return;
    st->start = r->ts;
    st->is_request = true;
    incident_frame(st, ROLE_NAK, r->frame);
    incident_frame(st, ROLE_NAK, frame_u32(e->p));
    incident_is(st, SAY(KEYS_TRIED, .n = r->n, .time = r->last_ts - r->ts, .other = r->frame, .nak = frame_u32(e->p)));
}

/* --- Queue pair numbers ------------------------------------------------------------------------ */

/* True if nothing but a few requests of this flow was seen, long before the end, and nothing is known of its queue
 * pair. */
static bool is_probe(const struct explainer *x, uint32_t flow, const struct req_dir *h)
{
    const struct flow *c = flow_at(x, flow);
    const struct flow_notes *t = x->notes[flow];
    bool alone = c->peer == FLOW_NONE && c->paired_by == PAIR_NONE && !c->have_sqpn;

    return alone && h && h->have_next && h->service == SVC_RC && !h->rsp_packets && t &&
           t->headers.packets <= PROBE_MOST && explain_end_of(x, c->tap) - h->last_ts > PROBE_WAITS;
}

static void report_qpns(void *user, const struct qpn_probe *p, uint32_t silent)
{
    struct explainer *x = user;
    const struct qpn_probe *last = p + SWEEP_MANY - 1;
    struct incident *st = incident_new(x, CAUSE_SWEEP, p->flow, NULL);

    if (!st)
        return;
    st->start = p->ts;
    st->is_request = true;
    incident_frame(st, ROLE_EVIDENCE, p->frame);
    incident_frame(st, ROLE_EVIDENCE, last->frame);
    incident_is(st, SAY(QPNS_TRIED, .n = silent, .m = SWEEP_MANY, .time = last->ts - p->ts, .other = p->frame,
                        .again = last->frame));
}

static void end_qpns(struct explainer *x)
{
    struct conn_table *conns = observer_conns(x->observer);
    uint32_t flows = conn_counts(conns).flows, n = 0;
    struct qpn_probe *p = flows >= SWEEP_MANY ? malloc(flows * sizeof *p) : NULL;

    for (uint32_t i = 0; p && i < flows; i++) {
        const struct req_dir *h = observer_req_dir(x->observer, i);
        bool answers = h && h->rsp_packets;
        if (answers || is_probe(x, i, h))
            p[n++] = (struct qpn_probe){i, h->first_frame, h->first_ts, answers};
    }
    if (p)
        qpn_sweeps(p, n, conn_flows(conns), report_qpns, x);
    free(p);
}

void guesses_end(struct explainer *x)
{
    for (unsigned i = 0; x->tried.n_psns && i < CONN_OWNERS; i++)
        if (x->tried.psns[i].frame)
            settle_sweep(x, &x->tried.psns[i]);
    end_qpns(x);
}
