/* layer 2b (conn): where the time of each direction of requests went: from its latest packet to the end. */
#include "dissect/mad/cm.h"
#include "src/conn/timeline_impl.h"

/* --- Signs of life ---------------------------------------------------------------------------- */

static struct host_seen *host_at(struct timeline *t, const struct conn_addr *a, uint32_t tap)
{
    uint32_t h = tap * 0x9e3779b1u;

    for (unsigned i = 0; i < sizeof a->b; i++)
        h = (h ^ a->b[i]) * 0x01000193u;
    return &t->hosts[h % HOSTS_SEEN];
}

void timeline_other(struct timeline *t, const struct pkt *p)
{
    uint32_t tap = conn_tap_of(p->frame), flow;
    struct conn_addr src, dst;
    struct host_seen *h;
    struct cm_msg m;

    conn_addr_of(p, &src, &dst);
    h = host_at(t, &src, tap);
    *h = (struct host_seen){src, tap, p->frame->ts, true};
    if (!(p->have & H_MAD) || !cm_msg_of(&m, p) || m.mad.attr_id != CM_DREQ)
        return;
    flow = conn_flow_named(observer_conns(t->observer), tap, &src, &dst, m.dreq.remote_qpn);
    if (flow == FLOW_NONE)
        return;
    if (!t->seen[flow].closed)
        t->seen[flow].closed = p->frame->ts;
    t->seen[flow].closed_last = p->frame->ts;
}

/* When the host that the requests in `f` go to sent anything last; 0: never. */
static ns_t last_heard(struct timeline *t, const struct flow *f)
{
    const struct flow *flows = conn_flows(observer_conns(t->observer));
    const struct host_seen *h = host_at(t, &f->dst, f->tap);
    ns_t last = h->any && h->tap == f->tap && conn_addr_eq(&h->addr, &f->dst) ? h->last : 0;

    for (uint32_t i = 0; i < conn_counts(observer_conns(t->observer)).flows; i++)
        if (t->seen[i].any && t->seen[i].last > last && flows[i].tap == f->tap && conn_addr_eq(&flows[i].src, &f->dst))
            last = t->seen[i].last;
    return last;
}

/* Tries without a response, of all requests to the host that those in `f` go to. */
static uint32_t tries_to(const struct timeline *t, const struct flow *f)
{
    const struct flow *flows = conn_flows(observer_conns(t->observer));
    uint32_t n = 0;

    for (uint32_t i = 0; i < conn_counts(observer_conns(t->observer)).flows; i++)
        if (t->dirs[i] && flows[i].tap == f->tap && conn_addr_eq(&flows[i].dst, &f->dst))
            n += t->dirs[i]->tail;
    return n;
}

/* Several tries, or a try and DREQs sent again, of which the host answered none. */
static bool is_silent(struct timeline *t, const struct direction *d, uint32_t flow)
{
    const struct flow *f = conn_flow_at(observer_conns(t->observer), flow);
    const struct flow_times *s = &t->seen[flow];

    if (last_heard(t, f) > d->spans.at - d->wait)
        return false;
    return tries_to(t, f) >= 2 || s->closed_last > s->closed;
}

/* --- The end ---------------------------------------------------------------------------------- */

#define USUAL_TIMES 20                /* a response that is not there after so many times the usual time, */
#define USUAL_LEAST (200 * NS_PER_US) /* and at least this, is missing */

void timeline_die(struct timeline *t, struct direction *d, const struct req_dir *h)
{
    struct episode *x = episode_at(t, d->row);
    ns_t heard = last_heard(t, conn_flow_at(observer_conns(t->observer), h->flow));
    ns_t since = heard > d->last_rsp ? heard : d->last_rsp ? d->last_rsp : d->spans.first;
    uint32_t over = 1u << TIME_ACK_TIMEOUT | 1u << TIME_LOSS_RESEND | 1u << TIME_LOSS_RETRANSMISSION |
                    1u << TIME_TRANSFER | 1u << TIME_READ_DEPTH;
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
    d->dead = true;
    timeline_claim(t, d, since, d->spans.at, over, TIME_PEER_DEAD, ep);
}

/* The requester waits for the ACK timer of its last try, and then gives up: `end` is the end of its connection. */
static void finish_tries(struct timeline *t, struct direction *d, const struct req_dir *h, ns_t end)
{
    ns_t expiry = d->spans.at + d->wait;
    bool silent = is_silent(t, d, h->flow);

    if (expiry > t->last)
        expiry = t->last;
    if (end > d->spans.at && end < expiry)
        expiry = end;
    timeline_bill(t, d, expiry, d->dead ? TIME_PEER_DEAD : TIME_ACK_TIMEOUT, d->row);
    if (!d->dead && silent)
        timeline_die(t, d, h);
    timeline_bill(t, d, end, TIME_GIVEN_UP, d->row);
}

/* Requests are outstanding, and no packet of theirs came any more. */
static void finish_outstanding(struct timeline *t, struct direction *d, const struct req_dir *h, ns_t end)
{
    ns_t left = t->last - d->spans.at;
    bool usual = left <= USUAL_TIMES * d->usual || left <= USUAL_LEAST;

    if (!h->rsp_packets && !observer_heard(t->observer, h->flow))
        spans_add(&d->spans, t->last, TIME_NOT_KNOWN, NO_EPISODE);
    else if (d->refused != NO_EPISODE)
        timeline_bill(t, d, end, TIME_GIVEN_UP, d->refused);
    else if (d->tail && d->row != NO_EPISODE)
        finish_tries(t, d, h, end);
    else
        spans_add(&d->spans, t->last, usual ? TIME_RESPONSE : TIME_NOT_KNOWN, NO_EPISODE);
}

/* The first and the last DREQ of the connection of `flow`; 0: none. */
static void closed(const struct timeline *t, uint32_t flow, ns_t *first, ns_t *last)
{
    uint32_t peer = conn_flow_at(observer_conns(t->observer), flow)->peer;
    const struct flow_times *a = &t->seen[flow], *b = peer == FLOW_NONE ? a : &t->seen[peer];

    *first = a->closed && (!b->closed || a->closed < b->closed) ? a->closed : b->closed;
    *last = a->closed_last > b->closed_last ? a->closed_last : b->closed_last;
}

static ns_t last_packet(const struct timeline *t, uint32_t flow)
{
    uint32_t peer = conn_flow_at(observer_conns(t->observer), flow)->peer;
    ns_t own = t->seen[flow].last, other = peer == FLOW_NONE ? own : t->seen[peer].last;

    return own > other ? own : other;
}

void timeline_finish(struct timeline *t, uint32_t flow)
{
    struct req_dir *h = observer_req_dir(t->observer, flow);
    struct direction *d = t->dirs[flow];
    ns_t end = last_packet(t, flow), from, to;

    closed(t, flow, &from, &to);
    if (from > end)
        end = from;
    if (h && timeline_outstanding(d, h))
        finish_outstanding(t, d, h, end);
    else
        spans_add(&d->spans, end, TIME_IDLE, NO_EPISODE);
    spans_add(&d->spans, to, TIME_CM, NO_EPISODE);
}
