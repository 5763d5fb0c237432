/* layer 2b (account): where the time of each direction of requests went: exhausted retries and silent hosts at the end
 * of the capture. */
#include "dissect/mad/cm.h"
#include "dissect/pkt.h"
#include "src/account/timeline_impl.h"
#include "src/conn/retries.h"
#include "src/transport/verbs.h"

/* --- Signs of life ---------------------------------------------------------------------------- */

uint32_t timeline_host(const struct conn_addr *a, uint32_t tap)
{
    uint32_t h = tap * 0x9e3779b1u;

    for (unsigned i = 0; i < sizeof a->b; i++)
        h = (h ^ a->b[i]) * 0x01000193u;
    return (h ^ h >> 16) % HOSTS_SEEN; /* taps of several files differ in the upper half only */
}

static struct host_seen *host_at(struct timeline *t, const struct conn_addr *a, uint32_t tap)
{
    return &t->hosts[timeline_host(a, tap)];
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
    if (!(p->have & H_MAD) || !cm_msg_of(&m, p) || m.mad.attr_id != CM_DREQ || !CM_HAS(&m, dreq, remote_qpn))
        return;
    flow = conn_flow_named(observer_conns(t->observer), tap, &src, &dst, m.dreq.remote_qpn);
    if (flow == FLOW_NONE)
        return;
    if (!t->seen[flow].closed)
        t->seen[flow].closed = p->frame->ts;
    t->seen[flow].closed_last = p->frame->ts;
}

/* Time of the latest frame from the destination host of `f`; 0: none. */
static ns_t last_frame_of_peer(struct timeline *t, const struct flow *f)
{
    const struct flow *flows = conn_flows(observer_conns(t->observer));
    const struct host_seen *h = host_at(t, &f->dst, f->tap);
    ns_t last = h->any && h->tap == f->tap && conn_addr_eq(&h->addr, &f->dst) ? h->last : 0;

    t->peers = true;
    for (uint32_t i = 0; i < conn_counts(observer_conns(t->observer)).flows; i++)
        if (t->seen[i].any && t->seen[i].last > last && flows[i].tap == f->tap && conn_addr_eq(&flows[i].src, &f->dst))
            last = t->seen[i].last;
    return last;
}

/* Number of retries without a response, of all connections to the destination host of `f`. */
static uint32_t tries_to(struct timeline *t, const struct flow *f)
{
    const struct flow *flows = conn_flows(observer_conns(t->observer));
    uint32_t n = 0;

    t->peers = true;
    for (uint32_t i = 0; i < conn_counts(observer_conns(t->observer)).flows; i++)
        if (t->dirs[i] && flows[i].tap == f->tap && conn_addr_eq(&flows[i].dst, &f->dst))
            n += t->dirs[i]->tail;
    return n;
}

/* True if the host sent nothing since the first ACK timeout, and at least two retries, or one and retransmitted DREQs,
 * had no response. */
static bool is_silent(struct timeline *t, const struct direction *d, uint32_t flow)
{
    const struct flow *f = conn_flow_at(observer_conns(t->observer), flow);
    const struct flow_times *s = &t->seen[flow];

    if (last_frame_of_peer(t, f) > d->expired)
        return false;
    return tries_to(t, f) >= 2 || s->closed_last > s->closed;
}

/* --- The end ---------------------------------------------------------------------------------- */

#define USUAL_TIMES 20                /* a response that is not there after so many times the usual time, */
#define USUAL_LEAST (200 * NS_PER_US) /* and at least this, is missing */

void timeline_peer_failed(struct timeline *t, struct direction *d, const struct req_dir *h)
{
    const struct episode *x;
    ns_t last = last_frame_of_peer(t, conn_flow_at(observer_conns(t->observer), h->flow));
    ns_t since = last > d->last_rsp ? last : d->last_rsp ? d->last_rsp : d->spans.first;
    uint32_t over = (BEFORE_RNR & ~(1u << TIME_IDLE)) | 1u << TIME_RNR | 1u << TIME_PAUSED;
    uint32_t ep;

    ep = episode_new(t, h->flow, TROUBLE_DEAD, h->una, d->spans.at);
    if (ep == NO_EPISODE)
        return;
    x = episode_at(t, d->row);
    if (x) {
        t->episodes[ep].psn = x->psn;
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

/* The ACK timer of the last retry expires, and the requester gives up; `end` is the end of its connection. */
static void finish_tries(struct timeline *t, struct direction *d, const struct req_dir *h, ns_t end)
{
    ns_t expiry = d->spans.at + d->wait;
    ns_t last = *timeline_last(t, conn_flow_at(observer_conns(t->observer), h->flow)->tap);
    bool silent = !d->unheard && is_silent(t, d, h->flow);

    if (expiry > last)
        expiry = last;
    if (end > d->spans.at && end < expiry)
        expiry = end;
    timeline_bill(t, d, expiry, d->dead ? TIME_PEER_DEAD : TIME_ACK_TIMEOUT, d->row);
    if (!d->dead && silent)
        timeline_peer_failed(t, d, h);
    timeline_bill(t, d, end, TIME_GIVEN_UP, d->row);
}

/* A response skipped one to a READ, and the requester did not go back at once: it has no retry left. */
static bool is_spent(const struct timeline *t, const struct direction *d, uint32_t flow)
{
    const struct conn_params *c = &conn_flow_at(observer_conns(t->observer), flow)->params;

    return c->retry_known && d->stuck.open && d->backs > 0 && d->backs >= c->retry_cnt;
}

/* The requester gives up at once; if its last go-back-N was for a NAK, only when its ACK timer has expired. */
static void finish_spent(struct timeline *t, struct direction *d, uint32_t flow, ns_t end)
{
    uint32_t ep = episode_new(t, flow, TROUBLE_IMPLIED, d->rsp_next, d->stuck.ts);
    struct episode *x = episode_at(t, ep);

    if (x)
        x->instead = d->stuck.frame;
    if (d->by_nak && d->wait) {
        ns_t expiry = d->spans.at + d->wait;
        timeline_bill(t, d, expiry < end ? expiry : end, TIME_ACK_TIMEOUT, ep);
    } else {
        timeline_claim(t, d, d->stuck.ts, d->spans.at, BEFORE_LOSS, TIME_GIVEN_UP, ep);
    }
    timeline_bill(t, d, end, TIME_GIVEN_UP, ep);
}

/* Without a retry left the requester gives up when its ACK timer runs out, after `wait`, or at `last`. */
static void finish_without_retry(struct timeline *t, struct direction *d, struct req_dir *h, ns_t end, ns_t last,
                                 ns_t wait)
{
    ns_t expiry = d->spans.at + wait;
    uint32_t ep = episode_new(t, h->flow, TROUBLE_TIMEOUT, h->have_una ? h->una : d->first, d->spans.at);
    struct episode *x = episode_at(t, ep);

    if (x) {
        const struct sent *s = req_dir_sent(h, x->psn);
        x->sent = s ? s->last : h->last_frame;
        x->wait = wait;
        x->rtt = d->least_first;
    }
    timeline_bill(t, d, expiry < last ? expiry : last, TIME_ACK_TIMEOUT, ep);
    timeline_bill(t, d, end, TIME_GIVEN_UP, ep);
}

/* True if the latest response is an RNR NAK that its requester obeys, with a retry left, and the RNR timer still runs
 * at `last`. If it has expired and nothing was sent again, the requester may have been dead when the NAK came. */
static bool waits_for_rnr(const struct direction *d, const struct req_dir *h, const struct conn_params *c, ns_t last)
{
    return retries_left_rnr(c, h) && d->rnr.open && d->rnr.ep != NO_EPISODE && !d->rnr.dropped &&
           d->last_rsp <= d->rnr.ts && h->rnr.have && last - d->rnr.ts <= rnr_time(aeth_value(h->rnr.syndrome));
}

/* No request follows the RNR NAK before the capture ends at `last`. */
static void finish_rnr(struct timeline *t, struct direction *d, ns_t last)
{
    timeline_claim(t, d, d->rnr.ts, d->spans.at, BEFORE_RNR, TIME_RNR, d->rnr.ep);
    timeline_bill(t, d, last, TIME_RNR, d->rnr.ep);
}

/* Requests are outstanding at the end, and neither a retransmission nor a response follows. `closed`: time of the first
 * DREQ; 0: none. */
static void finish_outstanding(struct timeline *t, struct direction *d, struct req_dir *h, ns_t end, ns_t closed)
{
    const struct flow *f = conn_flow_at(observer_conns(t->observer), h->flow);
    ns_t last = closed > d->spans.at ? closed : *timeline_last(t, f->tap), left = last - d->spans.at;
    bool shut = closed > d->spans.at;
    bool usual = (left - 1) / USUAL_TIMES < d->usual || left <= USUAL_LEAST;
    bool ran_out = d->wait && left > d->wait; /* and nothing was sent again: no retry was left */

    if (!d->unheard && !h->rsp_packets && !observer_sees_responses(t->observer, h->flow))
        spans_add(&d->spans, last, TIME_NOT_KNOWN, NO_EPISODE);
    else if (d->refused != NO_EPISODE)
        timeline_bill(t, d, end, TIME_GIVEN_UP, d->refused);
    else if (is_spent(t, d, h->flow))
        finish_spent(t, d, h->flow, end);
    else if (d->tail && d->row != NO_EPISODE)
        finish_tries(t, d, h, end);
    else if (waits_for_rnr(d, h, &f->params, last))
        finish_rnr(t, d, last);
    else if (retries_timed_out(&f->params, left, shut))
        finish_without_retry(t, d, h, end, last, ack_timeout(f->params.timeout));
    else if (ran_out)
        finish_without_retry(t, d, h, end, last, d->wait);
    else
        spans_add(&d->spans, last, usual ? TIME_RESPONSE : TIME_NOT_KNOWN, NO_EPISODE);
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

#define ALL_STATES ((1u << TIME_STATES) - 1)

void timeline_finish(struct timeline *t, uint32_t flow)
{
    struct req_dir *h = observer_req_dir(t->observer, flow);
    struct direction *d = t->dirs[flow];
    ns_t end = last_packet(t, flow), seen = d->spans.at, from, to;

    closed(t, flow, &from, &to);
    if (from > end)
        end = from;
    if (h && timeline_outstanding(d, h))
        finish_outstanding(t, d, h, end, from);
    else
        spans_add(&d->spans, end, TIME_IDLE, NO_EPISODE);
    spans_add(&d->spans, to, TIME_CM, NO_EPISODE);
    if (!from)
        return;
    /* Responses after the DREQ are dropped and cost nothing; but a retransmission shows that its requester, whom the
     * DREQ did not reach, waited for the ACK timer. */
    if (seen > from)
        spans_change(&d->spans, from, seen, ALL_STATES & ~(1u << TIME_ACK_TIMEOUT), TIME_CM, NO_EPISODE);
    spans_change(&d->spans, seen > from ? seen : from, d->spans.at, ALL_STATES, TIME_CM, NO_EPISODE);
}
