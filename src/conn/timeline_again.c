/* layer 2b (conn): where the time of each direction of requests went: a queue pair that is used again from its first
 * PSN on, without connection management. */
#include "src/conn/timeline_impl.h"

/* All was acknowledged, by more than one response, and then nothing came for long: neither a lost request nor a lost
 * ACK explains the first PSN. */
bool timeline_begins_again(const struct timeline *t, const struct direction *d, const struct event *e, ns_t now)
{
    const struct flow *f = conn_flow_at(observer_conns(t->observer), e->flow);
    bool done = e->h->have_una && e->h->service == SVC_RC && d->progress > 1 && !timeline_outstanding(d, e->h);

    return done && d->have_first && e->p->bth.psn == d->first && timeline_is_silence(f, d, now - d->spans.at);
}

void timeline_again(struct direction *d, const struct event *e, ns_t now)
{
    ns_t from = d->spans.at;
    uint32_t psn = e->p->bth.psn;

    spans_add(&d->spans, now, TIME_IDLE, NO_EPISODE);
    direction_reset(d);
    d->again.on = d->again.unsure = true;
    d->again.from = from;
    d->again.to = now;
    d->again.next = d->again.una = psn;
}

void timeline_note_request(struct direction *d, const struct event *e)
{
    uint32_t end = psn_add(e->p->bth.psn, req_dir_span(e->h, e->p));

    if (UNLIKELY(!d->have_first)) {
        d->have_first = true;
        d->first = e->p->bth.psn;
    }
    if (LIKELY(!d->again.on))
        return;
    d->again.msgs += (e->p->op->flags & OPF_START) != 0;
    if (psn_diff(end, d->again.next) > 0)
        d->again.next = end;
    if (psn_diff(end, e->h->next) > 0)
        d->again.on = false;
}

/* The MSN counts on: these were retransmissions all the same. */
static void refute(struct timeline *t, struct direction *d, const struct event *e)
{
    uint32_t ep = episode_new(t, e->flow, TROUBLE_TIMEOUT, d->first, d->again.from);
    struct episode *x = episode_at(t, ep);

    timeline_claim(t, d, d->again.from, d->again.to, 1u << TIME_IDLE, TIME_ACK_TIMEOUT, ep);
    if (x) {
        x->tries = 1;
        x->wait = d->again.to - d->again.from;
        x->answer = frame_u32(e->p);
    }
    d->again.on = false;
}

void timeline_note_response(struct timeline *t, struct direction *d, const struct event *e)
{
    uint32_t proved = response_proves(e->p), una = d->again.on ? d->again.una : e->h->una;
    bool more = (!e->h->have_una && !d->again.on) || psn_diff(proved, una) > 0;

    if (UNLIKELY(d->again.on && d->again.unsure && e->p->have & H_AETH)) {
        d->again.unsure = false;
        if (e->p->aeth.msn > d->again.msgs)
            refute(t, d, e);
    }
    if (!more)
        return;
    d->progress += e->p->op->flags & (OPF_ACK | OPF_END) && d->progress < UINT32_MAX;
    if (UNLIKELY(d->again.on))
        d->again.una = proved;
}
