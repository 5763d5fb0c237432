/* layer 2b (account): where the time of each direction of requests went: go-back-N; a queue pair that was reset. */
#include "dissect/pkt.h"
#include "src/account/timeline_impl.h"
#include "src/conn/packet.h"
#include "src/conn/retries.h"
#include "src/transport/verbs.h"

/* --- Going back ------------------------------------------------------------------------------- */

void timeline_chain(struct timeline *t, struct direction *d, uint32_t ep)
{
    struct episode *e = episode_at(t, ep), *before = episode_at(t, d->row);
    bool arrived = before && t->episodes[before->root].why == TROUBLE_RNR && e && e->why == TROUBLE_TIMEOUT;

    if (!e)
        return;
    if (before && d->row != ep && before->psn == e->psn && e->why != TROUBLE_RNR && !arrived) {
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
    d->backs += !d->rnr.open || d->rnr.dropped;
    d->resend.psn = d->damaged.on ? d->damaged.end : e->h->next;
    d->damaged.on = false;
    d->resend.requests = psn_diff(d->resend.psn, psn_add(p->bth.psn, req_dir_span(e->h, p))) > 0;
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
        x->cut = d->resend.requests;
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
    if (state == TIME_RNR && ep != NO_EPISODE) {
        note_wait(&t->episodes[ep], n->open ? n->ts : now, now);
        d->row = ep;
    }
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
        x->ahead = since && !d->stuck.open;
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

/* --- Damaged requests ------------------------------------------------------------------------- */

/* The ACK timer of a requester expired for the damaged requests: the first of them comes again, in frame `back`. */
static void back_to_damaged(struct timeline *t, struct direction *d, uint32_t flow, uint32_t back, ns_t now)
{
    uint32_t ep = episode_new(t, flow, TROUBLE_TIMEOUT, d->damaged.psn, d->spans.at);
    struct episode *x = episode_at(t, ep);

    timeline_chain(t, d, ep);
    d->wait = now - d->spans.at;
    if (x) {
        x->tries++;
        x->wait = d->wait;
        x->sent = d->damaged.frame;
        x->back = back;
    }
    timeline_bill(t, d, now, TIME_ACK_TIMEOUT, ep);
    d->resend.ep = ep;
}

/* The first request of its flow came damaged: keep it until the flow is known. */
static void keep_damaged(struct timeline *t, const struct pkt *p)
{
    struct early_damaged *k = &t->damaged[t->n_damaged++ % EARLY_DAMAGED];

    *k = (struct early_damaged){.on = true,
                                .tap = conn_tap_of(p->frame),
                                .dqpn = p->bth.dqpn,
                                .psn = p->bth.psn,
                                .frame = frame_u32(p),
                                .ts = p->frame->ts};
    conn_addr_of(p, &k->src, &k->dst);
}

ns_t timeline_early_damaged(struct timeline *t, struct direction *d, uint32_t flow, ns_t now)
{
    const struct flow *f = conn_flow_at(observer_conns(t->observer), flow);

    for (unsigned i = 0; i < EARLY_DAMAGED; i++) {
        struct early_damaged *k = &t->damaged[i];
        if (!k->on || k->tap != f->tap || k->dqpn != f->dqpn || !is_same_way(&k->src, &k->dst, &f->src, &f->dst))
            continue;
        k->on = false;
        if (k->ts > now)
            continue;
        if (!d->damaged.on || psn_diff(k->psn, d->damaged.psn) < 0) {
            d->damaged.psn = k->psn;
            d->damaged.frame = k->frame;
            now = k->ts;
        }
        if (!d->damaged.on || psn_diff(k->psn, d->damaged.end) >= 0)
            d->damaged.end = psn_add(k->psn, 1);
        d->damaged.on = true;
    }
    return now;
}

void timeline_damaged(struct timeline *t, const struct event *e)
{
    const struct pkt *p = e->p;
    bool request = p->have & H_BTH && p->op->flags & OPF_REQUEST && !(p->op->ext & H_DETH);
    struct direction *d = request && e->own != FLOW_NONE ? t->dirs[e->own] : NULL;
    struct req_dir *h = d ? observer_req_dir(t->observer, e->own) : NULL;
    ns_t now = p->frame->ts;
    const struct flow *f;

    if (request && !d)
        keep_damaged(t, p);
    if (!h || !h->have_next || h->service != SVC_RC || now < d->spans.at)
        return;
    f = conn_flow_at(observer_conns(t->observer), e->own);
    if (d->damaged.on && p->bth.psn == d->damaged.psn && timeline_is_silence(f, d, now - d->spans.at)) {
        back_to_damaged(t, d, e->own, frame_u32(p), now); /* damaged once more */
        d->damaged.frame = frame_u32(p);
    } else if (p->bth.psn == (d->damaged.on ? d->damaged.end : h->next)) {
        timeline_pass_request(t, d, e->own, h, now);
        if (!d->damaged.on) {
            d->damaged.psn = p->bth.psn;
            d->damaged.frame = frame_u32(p);
        }
        d->damaged.on = true;
        d->damaged.end = psn_add(p->bth.psn, 1); /* the length of a READ may be what was damaged */
    }
}

void timeline_came_damaged(struct timeline *t, struct direction *d, const struct event *e, ns_t now)
{
    const struct flow *f = conn_flow_at(observer_conns(t->observer), e->flow);
    bool again = e->as == SEEN_NEW && e->p->bth.psn == d->damaged.psn;

    if (e->why != BACK_NONE)
        return; /* an earlier one comes again: see resend_from() */
    d->damaged.on = false;
    if (!again || !timeline_is_silence(f, d, now - d->spans.at))
        return;
    back_to_damaged(t, d, e->flow, frame_u32(e->p), now);
    d->resend.psn = d->damaged.end;
    d->resend.requests = true; /* until settle_requests() */
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
