/* layer 2b (account): where the time of each direction of requests went: go-back-N and exhausted retries; a queue pair
 * that was reset; the end of the capture. */
#include "dissect/mad/cm.h"
#include "dissect/pkt.h"
#include "src/account/timeline_impl.h"
#include "src/conn/packet.h"
#include "src/conn/retries.h"
#include "src/transport/verbs.h"

/* --- Going back ------------------------------------------------------------------------------- */

void timeline_chain(struct timeline *t, struct direction *d, uint32_t ep)
{
    struct episode *e = episode_at(t, ep), *before = episode_at(t, d->row);

    if (!e)
        return;
    if (before && d->row != ep && before->psn == e->psn) {
        e->root = before->root;
        e->tries = before->tries;
    }
    d->row = ep;
}

static void resend_from(struct timeline *t, struct direction *d, const struct event *e, uint32_t ep)
{
    struct episode *ep_at = episode_at(t, ep);
    const struct pkt *p = e->p;

    if (ep_at && !ep_at->back)
        ep_at->back = frame_u32(p);
    d->resend.ep = ep;
    d->backs += !d->rnr.open;
    d->resend.psn = e->h->next;
    d->resend.requests = psn_diff(e->h->next, psn_add(p->bth.psn, req_dir_span(e->h, p))) > 0;
    d->resend.responses = p->op->flags & OPF_READ_REQ && d->have_rsp && psn_diff(d->rsp_high, p->bth.psn) > 0;
    d->resend.rsp = d->rsp_high;
    d->resend.answered = false;
    if (d->have_rsp && p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ) && psn_diff(p->bth.psn, d->rsp_next) < 0)
        d->rsp_next = p->bth.psn;
    d->by_nak = ep_at && (ep_at->why == TROUBLE_SEQ_NAK || ep_at->why == TROUBLE_IMPLIED);
    d->nak.open = d->rnr.open = d->stuck.open = false;
    d->n_overtaken = 0;
}

#define TIMER_LEAST NS_PER_MS /* an ACK timeout that is not known is no shorter, as far as a tap can tell */
#define TAIL_DEAD   8 /* after so many tries without a response, more than any retry count, the peer counts as dead */

void timeline_sees_responses(struct timeline *t, struct direction *d, uint32_t flow)
{
    const uint32_t not_known = 1u << TIME_NOT_KNOWN;

    for (unsigned i = 0; i < d->n_blind; i++) {
        const struct blind_timeout *b = &d->blind[i];
        uint32_t ep = episode_new(t, flow, TROUBLE_TIMEOUT, b->psn, b->from);
        struct episode *x = episode_at(t, ep);
        if (!x)
            break;
        timeline_chain(t, d, ep);
        x->tries++;
        x->wait = d->wait = b->to - b->from;
        x->sent = b->sent;
        x->back = b->back;
        timeline_claim(t, d, b->from, b->to, not_known, TIME_ACK_TIMEOUT, ep);
        timeline_claim(t, d, b->to, i + 1 < d->n_blind ? b[1].from : d->spans.at, not_known, TIME_LOSS_RESEND, ep);
        d->resend.ep = ep;
    }
    d->n_blind = 0;
}

/* The requester retransmits before the tap has seen a response: a NAK may not have been captured. Its ACK timer may
 * run since it sent that packet, while it sent others: what is silent then is shorter than the timer. */
static void note_blind(struct timeline *t, struct direction *d, const struct event *e, const struct sent *s, ns_t now)
{
    ns_t from = d->spans.at, since = s && s->ts < from ? s->ts : from;

    spans_add(&d->spans, now, TIME_NOT_KNOWN, NO_EPISODE);
    if (now - since < TIMER_LEAST)
        return; /* any round trip may be as long */
    if (d->n_blind < BLIND_TIMEOUTS)
        d->blind[d->n_blind++] = (struct blind_timeout){
            .from = from, .to = now, .psn = e->p->bth.psn, .sent = s ? s->last : 0, .back = frame_u32(e->p)};
    resend_from(t, d, e, NO_EPISODE);
}

/* True if the peer counts as dead: retransmissions that follow each other sooner than any ACK timer expires were
 * overtaken on their way, and are no tries. */
static bool seems_dead(const struct direction *d, ns_t now)
{
    return d->tail >= TAIL_DEAD && !d->dead && now - d->expired >= (ns_t)(d->tail - 1) * ack_timeout(1);
}

/* The ACK timer of the requester ran out. */
static void back_by_timeout(struct timeline *t, struct direction *d, const struct event *e, ns_t now)
{
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn);
    uint32_t ep;
    struct episode *x;

    if (!e->h->rsp_packets && !observer_sees_responses(t->observer, e->flow)) {
        note_blind(t, d, e, s, now);
        return;
    }
    if (UNLIKELY(d->n_blind))
        timeline_sees_responses(t, d, e->flow);
    ep = episode_new(t, e->flow, TROUBLE_TIMEOUT, e->p->bth.psn, d->spans.at);
    timeline_chain(t, d, ep);
    x = episode_at(t, ep);
    d->wait = now - d->spans.at;
    if (!d->tail++)
        d->expired = now;
    if (x) {
        x->tries++;
        x->wait = d->wait;
        x->rtt = d->least_first;
        x->sent = s ? s->last : 0;
        x->nak = d->nak.open && d->nak.psn == e->p->bth.psn && d->nak.ep != NO_EPISODE ? t->episodes[d->nak.ep].nak : 0;
    }
    timeline_bill(t, d, now, d->dead ? TIME_PEER_DEAD : TIME_ACK_TIMEOUT, ep);
    if (UNLIKELY(e->moved))
        d->tail = 0; /* it tries along another path */
    else if (seems_dead(d, now))
        timeline_peer_failed(t, d, e->h);
    resend_from(t, d, e, ep);
}

/* A wait on RNR NAK; time stamps may run backwards. */
static void note_wait(struct episode *x, ns_t from, ns_t to)
{
    if (to > from)
        x->wait = ns_sum(x->wait, to - from);
}

/* The requester goes back on NAK `n` (sequence or RNR): the time since the NAK gets `state`.
 *
 *   request  5 6 7 ............. 5 6 7
 *   response         NAK 5
 *            |-------| loss_nak            take_seq_nak(): from the lost packet to the NAK
 *                    |---------| state     here: from the NAK to the retransmission
 *                              |---|       loss_resend, see timeline_pass()
 *
 * A retransmission under way ends with the NAK if nothing more of it is sent. */
static void back_by_nak(struct timeline *t, struct direction *d, const struct event *e, ns_t now, struct pending_nak *n,
                        enum time_state state)
{
    uint32_t ep = n->open ? n->ep : NO_EPISODE;
    bool nothing_since = n->open && n->ts >= d->spans.at && !is_resending(d), at_once = n->ts >= d->last_request;
    uint32_t over = state == TIME_RNR ? BEFORE_RNR : BEFORE_LOSS | (at_once ? 1u << TIME_LOSS_RESEND : 0);

    if (nothing_since) {
        timeline_bill(t, d, now, state, ep);
    } else {
        timeline_pass(t, d, e->h, now, false);
        if (n->open)
            timeline_claim(t, d, n->ts, now, over, state, ep);
    }
    if (d->stuck.open && state == TIME_LOSS_RETRANSMISSION) /* a response was missing before */
        timeline_claim(t, d, d->stuck.ts, now, BEFORE_LOSS | 1u << TIME_LOSS_NAK, state, ep);
    if (ep == NO_EPISODE)
        ep = episode_new(t, e->flow, state == TIME_RNR ? TROUBLE_RNR : TROUBLE_SEQ_NAK, e->p->bth.psn, now);
    if (state == TIME_RNR && ep != NO_EPISODE)
        note_wait(&t->episodes[ep], n->open ? n->ts : now, now);
    resend_from(t, d, e, ep);
}

/* When the response with PSN `psn` arrived before an earlier one and was dropped: a requester that requests it again
 * shows that. 0: it did not arrive early; *frame: its frame. */
static ns_t came_too_early(const struct direction *d, uint32_t psn, uint32_t *frame)
{
    unsigned n = d->n_overtaken < OVERTAKEN ? d->n_overtaken : OVERTAKEN;

    for (unsigned i = 0; i < n; i++)
        if (psn_diff(psn, d->overtaken[i].psn) >= 0 && psn_diff(psn, d->overtaken[i].behind) < 0) {
            *frame = d->overtaken[i].frame;
            return d->overtaken[i].ts;
        }
    return 0;
}

/* Implied NAK: the requester goes back because a later response skipped the one with this PSN. */
static void back_by_skip(struct timeline *t, struct direction *d, const struct event *e, ns_t now)
{
    uint32_t ep = episode_new(t, e->flow, TROUBLE_IMPLIED, e->p->bth.psn, now);
    struct episode *x = episode_at(t, ep);
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn);
    uint32_t instead = d->stuck.open ? d->stuck.frame : 0;
    ns_t since = d->stuck.open ? d->stuck.ts : came_too_early(d, e->p->bth.psn, &instead);
    bool at_once = since >= d->last_request; /* a retransmission under way ends: nothing more of it was sent */

    timeline_chain(t, d, ep);
    timeline_pass(t, d, e->h, now, false);
    if (since)
        timeline_claim(t, d, since, now, BEFORE_LOSS | (at_once ? 1u << TIME_LOSS_RESEND : 0), TIME_LOSS_RETRANSMISSION,
                       ep);
    if (x) {
        x->sent = s ? s->last : 0;
        x->instead = instead;
    }
    resend_from(t, d, e, ep);
}

/* If the ACK timeout is not known, it may have expired after a silence of TIMER_LEAST, and of TIMER_TIMES the usual
 * time to a response. */
#define NAK_HEEDED   (20 * NS_PER_MS) /* even a slow host acts on a NAK within this time */
#define HEEDED_TIMES 8                /* and within so many times the usual time to a response */
#define RNR_HEEDED   4                /* and on an RNR NAK within so many times the RNR timer */
#define TIMER_TIMES  20

bool timeline_is_silence(const struct flow *f, const struct direction *d, ns_t silence)
{
    const struct conn_params *c = &f->params;
    bool known = c->timeout_known && c->timeout;

    if (known)
        return silence >= ack_timeout(c->timeout) / 2;
    return silence >= TIMER_LEAST && silence > d->patient && silence / TIMER_TIMES >= d->usual;
}

/* True if the requester ignored the RNR NAK: it goes back long after the RNR timer, and at an ACK timeout, so that the
 * NAK was lost after the tap; or a response to an earlier READ or atomic was missing, so that it had dropped the NAK.
 * That one may have come since. */
static bool ignored_rnr(const struct flow *f, const struct direction *d, const struct event *e, ns_t silence)
{
    const struct pending_nak *n = &d->rnr;
    ns_t timer = rnr_time(aeth_value(e->h->rnr.syndrome));

    bool earlier = psn_diff(e->p->bth.psn, n->psn) < 0 && req_dir_read(e->h, e->p->bth.psn, 0);
    unsigned timeout = f->params.timeout_known ? f->params.timeout : 0;
    bool missed = retries_timer_of_rnr(e->h, timeout, e->p->frame->ts) > 0;

    return n->open && (missed || ((earlier || n->dropped) && silence > RNR_HEEDED * timer));
}

/* Whether the ACK timer may have run out before the requester went back at `now`. It runs since the latest request, or
 * since one was acknowledged; responses that the requester drops do not restart it. */
static bool timer_ran_out(const struct flow *f, const struct direction *d, const struct event *e, ns_t now)
{
    ns_t silence = now - d->spans.at, since = d->last_request > e->h->una_ts ? d->last_request : e->h->una_ts;

    if (f->params.timeout_known)
        return timeline_is_silence(f, d, silence);
    return silence > (now - since) / 2 && now - since >= TIMER_LEAST && (now - since) / HEEDED_TIMES >= d->usual;
}

/* Whether the requester dropped the sequence NAK that is open, and goes back for a response that skipped another one
 * since: that one is the PSN of request `e`. */
static bool was_passed_over(const struct direction *d, const struct event *e)
{
    return d->nak.open && d->nak.dropped && d->stuck.open && d->stuck.ts > d->nak.ts && d->rsp_next == e->p->bth.psn &&
           d->nak.psn != e->p->bth.psn;
}

/* A requester acts on a NAK at once: after a silence as long as its ACK timeout only that explains a retransmission. A
 * NAK for another PSN came while an earlier response was missing, and was dropped. */
static unsigned why_back(struct timeline *t, const struct direction *d, const struct event *e, ns_t now)
{
    const struct flow *f = conn_flow_at(observer_conns(t->observer), e->flow);
    ns_t silence = now - d->spans.at;
    bool asked =
        e->why == BACK_SEQ_NAK || e->why == BACK_IMPLIED || (e->why == BACK_RNR && ignored_rnr(f, d, e, silence));
    bool known = f->params.timeout_known;
    bool obeyed = e->why == BACK_SEQ_NAK && d->nak.open && d->nak.psn == e->p->bth.psn;

    if (e->why == BACK_SEQ_NAK && was_passed_over(d, e))
        return BACK_IMPLIED;
    if (e->why == BACK_RNR && !d->rnr.open && e->p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ))
        return BACK_IMPLIED; /* the RNR wait is over: a response is missing, as no NAK is for this request */
    if (obeyed)
        timeline_note_loop(d, now - d->nak.ts);
    if (obeyed && !known && silence < NAK_HEEDED)
        return e->why;
    return asked && timer_ran_out(f, d, e, now) ? BACK_SILENCE : e->why;
}

bool timeline_ends_rnr(const struct timeline *t, const struct direction *d, const struct event *e, ns_t now)
{
    const struct flow *f = conn_flow_at(observer_conns(t->observer), e->flow);

    return e->as == SEEN_AGAIN && e->p->bth.psn == d->rnr.psn && !d->rnr.dropped &&
           !timeline_is_silence(f, d, now - d->spans.at);
}

void timeline_rnr_over(struct timeline *t, struct direction *d, ns_t now)
{
    timeline_claim(t, d, d->rnr.ts, now, BEFORE_RNR, TIME_RNR, d->rnr.ep);
    if (d->rnr.ep != NO_EPISODE)
        note_wait(&t->episodes[d->rnr.ep], d->rnr.ts, now);
    d->rnr.open = false;
}

void timeline_back(struct timeline *t, struct direction *d, const struct event *e, ns_t now)
{
    switch (e->why == BACK_NONE ? BACK_RNR : why_back(t, d, e, now)) {
    case BACK_SEQ_NAK:
        back_by_nak(t, d, e, now, &d->nak, TIME_LOSS_RETRANSMISSION);
        break;
    case BACK_RNR:
        back_by_nak(t, d, e, now, &d->rnr, TIME_RNR);
        break;
    case BACK_IMPLIED:
        back_by_skip(t, d, e, now);
        break;
    default:
        back_by_timeout(t, d, e, now);
    }
}

void timeline_late(struct timeline *t, struct direction *d, const struct event *e, ns_t now)
{
    const struct flow *f = conn_flow_at(observer_conns(t->observer), e->flow);

    if (timeline_is_silence(f, d, now - d->spans.at))
        back_by_timeout(t, d, e, now);
    else
        back_by_nak(t, d, e, now, &d->nak, TIME_LOSS_RETRANSMISSION);
}

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

    for (uint32_t i = 0; i < conn_counts(observer_conns(t->observer)).flows; i++)
        if (t->seen[i].any && t->seen[i].last > last && flows[i].tap == f->tap && conn_addr_eq(&flows[i].src, &f->dst))
            last = t->seen[i].last;
    return last;
}

/* Number of retries without a response, of all connections to the destination host of `f`. */
static uint32_t tries_to(const struct timeline *t, const struct flow *f)
{
    const struct flow *flows = conn_flows(observer_conns(t->observer));
    uint32_t n = 0;

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

/* --- Used again ------------------------------------------------------------------------------- */

/* A request has the first PSN again. It is a reset of the queue pair, not a retransmission, if several responses had
 * acknowledged everything and a long silence followed: neither a lost request nor a lost ACK explains that. */
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
    d->reads_from = e->h->reads_at;
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

/* The MSN continues, so the queue pair was not reset: the requests since then were retransmissions. */
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
    if (!d->stuck.open && !req_dir_is_under_way(e->h, e->p)) {
        d->backs = 0;
        d->by_nak = false;
    }
    d->progress += e->p->op->flags & (OPF_ACK | OPF_END) && d->progress < UINT32_MAX;
    if (UNLIKELY(d->again.on))
        d->again.una = proved;
}
