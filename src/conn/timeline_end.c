/* layer 2b (conn): where the time of each direction of requests went: from its latest packet to the end. */
#include "src/conn/timeline_impl.h"

#define USUAL_TIMES 20                /* a response that is not there after so many times the usual time, */
#define USUAL_LEAST (200 * NS_PER_US) /* and at least this, is missing */

/* No response came to the last tries: all that the requester did since the latest response was in vain. */
static void claim_dead(struct timeline *t, struct direction *d, const struct req_dir *h)
{
    struct episode *x = episode_at(t, d->row);
    ns_t since = d->last_rsp ? d->last_rsp : d->spans.first;
    uint32_t over = 1u << TIME_ACK_TIMEOUT | 1u << TIME_LOSS_RESEND | 1u << TIME_LOSS_RETRANSMISSION;
    uint32_t ep;

    ep = episode_new(t, h->flow, TROUBLE_DEAD, x ? x->psn : h->una, d->spans.at);
    if (ep == NO_EPISODE)
        return;
    if (x) {
        t->episodes[ep].root = x->root;
        t->episodes[ep].tries = x->tries;
        t->episodes[ep].wait = x->wait;
        t->episodes[ep].sent = x->sent;
        t->episodes[ep].back = h->last_frame;
    }
    d->row = ep;
    timeline_claim(t, d, since, d->spans.at, over, TIME_PEER_DEAD, ep);
}

/* The requester went on trying until `end`, or gave up before. */
static void finish_tries(struct timeline *t, struct direction *d, const struct req_dir *h, ns_t end)
{
    ns_t expiry = d->spans.at + d->wait;
    bool dead = d->tail >= 2;

    timeline_bill(t, d, expiry < end ? expiry : end, TIME_ACK_TIMEOUT, d->row);
    if (dead)
        claim_dead(t, d, h);
    if (expiry < end)
        timeline_bill(t, d, end, TIME_GIVEN_UP, d->row);
}

/* Requests are outstanding, and no packet of theirs came any more. */
static void finish_outstanding(struct timeline *t, struct direction *d, uint32_t flow, const struct req_dir *h,
                               ns_t end)
{
    ns_t left = end - d->spans.at;
    bool usual = left <= USUAL_TIMES * d->usual || left <= USUAL_LEAST;

    if (!h->rsp_packets && !observer_heard(t->observer, flow))
        spans_add(&d->spans, end, TIME_NOT_KNOWN, NO_EPISODE);
    else if (d->refused != NO_EPISODE)
        timeline_bill(t, d, end, TIME_GIVEN_UP, d->refused);
    else if (d->tail && d->row != NO_EPISODE)
        finish_tries(t, d, h, end);
    else
        spans_add(&d->spans, end, usual ? TIME_RESPONSE : TIME_NOT_KNOWN, NO_EPISODE);
}

void timeline_finish(struct timeline *t, uint32_t flow)
{
    const struct flow *f = conn_flow_at(observer_conns(t->observer), flow);
    const struct flow_times *own = &t->seen[flow], *peer = f->peer == FLOW_NONE ? own : &t->seen[f->peer];
    ns_t end = peer->any && peer->last > own->last ? peer->last : own->last;
    struct req_dir *h = observer_req_dir(t->observer, flow);
    struct direction *d = t->dirs[flow];

    if (h && timeline_outstanding(h))
        finish_outstanding(t, d, flow, h, t->last);
    else
        spans_add(&d->spans, end, TIME_IDLE, NO_EPISODE);
}
