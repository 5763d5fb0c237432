/* layer 2b (account): where the time of each direction of requests went: waits without a loss: credits, the depth of
 * READs. */
#include "dissect/pkt.h"
#include "src/account/timeline_impl.h"
#include "src/conn/packet.h"

/* --- Credits and the depth of READs ----------------------------------------------------------- */

/* Half a round trip; 0: not known. A tap at the responder sees no time between a request and its response. A REP has no
 * other packets before it, as the responses to requests sent at once have. */
static ns_t half_trip(const struct direction *d)
{
    ns_t trip = d->least ? d->least : d->usual;

    return (d->by_rep && d->by_rep < trip ? d->by_rep : trip) / 2;
}

/* A requester that may go on does so within this time. */
static ns_t reaction(const struct direction *d)
{
    ns_t half = half_trip(d);

    return half > 5 * NS_PER_US ? half : 5 * NS_PER_US;
}

static void drop_wait(struct held *w)
{
    w->to = w->over = 0;
    w->n_before = 0;
}

/* Nothing arrived between `from` and `to`, and what arrived then may not let the requester go on. */
static void note_wait(struct held *w, ns_t from, ns_t to)
{
    if (w->over)
        drop_wait(w);
    if (w->to && w->to != from && w->n_before < HELD_BEFORE) {
        w->before[w->n_before].from = w->from;
        w->before[w->n_before++].to = w->to;
    }
    w->from = w->to && w->to == from ? w->from : from;
    w->to = to;
}

/* A request in mid-message: it was posted with the packets before it, so that nothing but the wait held it back,
 * however far its requester is from the tap. */
static bool goes_on(const struct event *e)
{
    return e->kind == EVENT_REQUEST && !(e->p->op->flags & OPF_START);
}

static bool is_at_once(const struct direction *d, const struct event *e, const struct held *w, ns_t now)
{
    return now - timeline_its_turn(d, w->over) <= reaction(d) || goes_on(e);
}

/* A wait that response `e` ended, and that the request sent at `now` shows to have held it back. */
static void claim_wait(struct timeline *t, struct direction *d, const struct event *e, struct held *w, enum trouble why,
                       enum time_state state)
{
    uint32_t over = state == TIME_READ_DEPTH ? BEFORE_DEPTH : BEFORE_THROTTLED;
    struct episode *x;

    if (w->to <= w->from) {
        drop_wait(w);
        return;
    }
    if (w->ep == NO_EPISODE)
        w->ep = episode_new(t, e->flow, why, e->p->bth.psn, w->from);
    for (unsigned i = 0; i < w->n_before; i++)
        timeline_claim(t, d, w->before[i].from, w->before[i].to, over, state, w->ep);
    timeline_claim(t, d, w->from, w->to, over, state, w->ep);
    x = episode_at(t, w->ep);
    if (x)
        x->count++;
    drop_wait(w);
}

bool timeline_uses_depth(const struct pkt *p)
{
    return p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ);
}

/* A packet of a SEND: whether it is sent without a credit. */
static void note_probe(struct direction *d, const struct event *e)
{
    uint32_t msg = psn_add(e->h->msgs + (e->p->op->flags & OPF_START ? 1 : 0), d->msn_ahead);

    if (!d->have_msn || psn_diff(msg, d->limit) <= 0)
        return;
    d->probe.on = true;
    d->probe.psn = psn_add(e->p->bth.psn, 1);
    d->probe.msg = msg;
}

uint32_t timeline_messages(struct req_dir *h, uint32_t una)
{
    const struct sent *s = req_dir_sent(h, una);
    const struct read_req *a = s ? NULL : req_dir_read(h, una, 0);

    s = a ? req_dir_sent(h, a->psn) : s;
    return s && s->msg ? h->msgs - s->msg + 1 : 0;
}

#define WINDOW_SURE 2 /* twice the same number is no coincidence */

/* `window` turns out to be the requester's own limit: while that many messages were outstanding it did not wait for
 * credits. */
static void settle_unsure(struct direction *d)
{
    for (unsigned i = 0; i < d->n_unsure && i < UNSURE_WAITS; i++)
        if (d->unsure[i].window == d->window)
            spans_change(&d->spans, d->unsure[i].from, d->unsure[i].to, 1u << TIME_CREDIT, TIME_RESPONSE, NO_EPISODE);
    d->n_unsure = 0;
}

/* Whether the SEND at `now` follows the credits at once. At a tap far from its requester: far sooner than it usually
 * follows the end of the message before, or no later, after far longer than usual. */
static bool follows_credits(const struct direction *d, const struct event *e, ns_t now)
{
    ns_t took = now - d->credit.over, rest = timeline_rest(d);
    bool outlasts = (d->credit.to - d->credit.from) / (REST_OUTLASTS - 1) >= rest;
    bool soon = took <= (outlasts ? rest : rest / REST_OUTLASTS);

    return (d->credit.probe && soon) || is_at_once(d, e, &d->credit, now);
}

/* The SEND at `now` had waited for a credit. Part of that time may be due to the requester's own limit of outstanding
 * messages; settle_unsure() corrects it later. */
static void claim_credit(struct timeline *t, struct direction *d, const struct event *e, ns_t now)
{
    ns_t from = d->credit.from, freed = d->credit.freed;

    if (now > d->credit.to && timeline_awaits_turn(d, now)) {
        drop_wait(&d->credit); /* when the credits came, other queue pairs of the host were still due first */
        return;
    }
    if (follows_credits(d, e, now))
        claim_wait(t, d, e, &d->credit, TROUBLE_CREDIT, TIME_CREDIT);
    else
        drop_wait(&d->credit);
    if (freed)
        d->unsure[d->n_unsure++ % UNSURE_WAITS] = (struct unsure){.from = from, .to = freed, .window = d->window};
}

/* Find the requester's own limit of outstanding messages. A WRITE needs no credit and no READ depth, nor does a READ
 * below the agreed depth. If such a request nevertheless follows a response at once, and WINDOW_SURE times with the
 * same number of messages outstanding, that number is the limit.
 *
 *   WRITE 1 2 3 4 ......... 5 ......... 6       window 4: each new one waits until one is complete
 *   ACK                   1           2
 */
static void note_window(struct direction *d, const struct event *e, ns_t now)
{
    uint32_t n = e->h->have_una ? timeline_messages(e->h, e->h->una) + 1 : 0;
    bool free = e->p->op->flags & OPF_WRITE || (timeline_uses_depth(e->p) && !d->full);
    bool at_once = !d->waits && now - d->last_rsp <= reaction(d);

    if (n > d->window) {
        d->window = n;
        d->window_times = 0;
    }
    if (UNLIKELY(free && at_once && n == d->window && d->window_times < WINDOW_SURE) &&
        timeline_is_stalled(d, now, reaction(d))) {
        if (++d->window_times == WINDOW_SURE)
            settle_unsure(d);
    }
    d->freed = n < d->window ? now : 0;
}

#define TIMER_SHORTEST 4096 /* half the ACK timeout of code 1, ns: a shorter silence is no ACK timeout */

/* A READ or atomic is sent. If a response seemed skipped and the requester did not go back, it has received that
 * response: only the tap missed it. */
static void note_read(struct direction *d, const struct event *e, ns_t now)
{
    bool missed = e->as == SEEN_NEW && d->stuck.open && now - d->stuck.ts > reaction(d);

    if (!d->have_rsp) {
        d->rsp_next = d->rsp_high = e->p->bth.psn;
        d->rsp_latest = psn_prev(d->rsp_next); /* else the first response may seem to be a repeated one */
    } else if (missed)
        d->rsp_next = d->rsp_high;
    d->stuck.open &= !missed;
    d->resend.responses &= !missed;
    d->have_rsp = true;
}

#define FAR_PART 8 /* of the time from a response to the next READ or atomic: so much it may differ */
#define FAR_LOOPS                                                                                                      \
    2 /* a READ or atomic that comes after so many times the way to its requester and back was not held                \
       */

/* A packet of the requester came `took` after one that it had to wait for: its way to the requester and back takes no
 * longer. */
void timeline_note_loop(const struct direction *d, ns_t took)
{
    ns_t *loop = d->host ? &d->host->loop : NULL;

    if (loop && took > 0 && (!*loop || took < *loop))
        *loop = took;
}

/* Whether `took` is far longer than the way to the requester and back. */
static bool outlasts_loop(const struct direction *d, ns_t took)
{
    return d->host && d->host->loop && took / FAR_LOOPS >= d->host->loop;
}

/* Whether a READ or atomic at `now` follows the response that made room for it after the same time as those before, in
 * which mostly nothing came: else it was the path that was busy. What takes far longer than the way to the requester
 * and back did not wait for that response. */
static bool is_in_step(struct direction *d, ns_t now)
{
    ns_t took = now - d->far.over, least = d->far.loop - d->far.loop / FAR_PART;
    bool quiet = now - d->last_answer >= took / 2 && !outlasts_loop(d, took),
         same = quiet && d->far.times && took >= least && took <= d->far.loop + d->far.loop / FAR_PART;

    if (!same) {
        d->far.loop = took;
        d->far.times = 0;
    }
    d->far.times += quiet;
    return quiet;
}

/* The time from `from` to `to`, in which a READ waited that is in step. */
static void claim_step(struct timeline *t, struct direction *d, const struct event *e, ns_t from, ns_t to)
{
    struct episode *x;

    if (d->depth.ep == NO_EPISODE)
        d->depth.ep = episode_new(t, e->flow, TROUBLE_DEPTH, e->p->bth.psn, from);
    timeline_claim(t, d, from, to, BEFORE_DEPTH, TIME_READ_DEPTH, d->depth.ep);
    x = episode_at(t, d->depth.ep);
    if (!x)
        return;
    x->count++;
    x->wait = d->far.loop;
}

/* A tap far from the requester: READs or atomics in step with the responses that made room for them. */
static void claim_far(struct timeline *t, struct direction *d, const struct event *e, ns_t now)
{
    ns_t from = d->depth.to ? d->depth.from : d->far.over;
    bool in_step = is_in_step(d, now);
    uint32_t n = d->far.times;

    d->far.over = 0;
    drop_wait(&d->depth);
    if (!in_step)
        return;
    if (n <= FAR_TIMES) {
        d->far.kept[n - 1].from = from;
        d->far.kept[n - 1].to = now;
    }
    for (unsigned i = 0; n == FAR_TIMES && i < n; i++)
        claim_step(t, d, e, d->far.kept[i].from, d->far.kept[i].to);
    if (n > FAR_TIMES)
        claim_step(t, d, e, from, now);
}

/* A READ or atomic is sent that the maximum of those outstanding had held back, as it seems: it follows the response
 * that made room for it at once, or, at a tap far from its requester, always after the same time. */
static void claim_depth(struct timeline *t, struct direction *d, const struct event *e, ns_t now)
{
    if (d->far.over)
        timeline_note_loop(d, now - d->far.over);
    if (d->depth.over && is_at_once(d, e, &d->depth, now)) {
        d->far.over = 0;
        d->far.near = true;
        claim_wait(t, d, e, &d->depth, TROUBLE_DEPTH, TIME_READ_DEPTH);
    } else if (d->far.over && !d->far.near) {
        claim_far(t, d, e, now);
    } else {
        d->far.over = 0;
        drop_wait(&d->depth);
    }
}

void timeline_pass_request(struct timeline *t, struct direction *d, uint32_t flow, const struct req_dir *h, ns_t now)
{
    const struct flow *f = conn_flow_at(observer_conns(t->observer), flow);
    ns_t silence = now - d->spans.at;

    if (UNLIKELY(silence >= TIMER_SHORTEST) && timeline_is_silence(f, d, silence) && timeline_outstanding(d, h))
        spans_add(&d->spans, now, TIME_NOT_KNOWN, NO_EPISODE); /* or its first copy was lost before the tap */
    else
        timeline_pass(t, d, h, now, false);
}

void timeline_request(struct timeline *t, struct direction *d, const struct event *e, ns_t now)
{
    ns_t from = d->spans.at;
    struct stop stop = {0};
    bool held;

    if (UNLIKELY(now - from >= STOP_LEAST))
        stop = timeline_stop(d, e, now);
    timeline_pass_request(t, d, e->flow, e->h, now);
    if (UNLIKELY(e->as == SEEN_GAP))
        d->have_msn = false; /* messages may have begun in the gap */
    if (UNLIKELY(timeline_uses_depth(e->p)))
        note_read(d, e, now);
    if (e->as != SEEN_NEW)
        return;
    if (UNLIKELY((d->depth.to || d->far.over) && !timeline_uses_depth(e->p))) {
        drop_wait(&d->depth); /* work requests start in order: the depth did not hold back the next one */
        d->far.over = 0;
    }
    if (UNLIKELY((d->depth.over || d->far.over) && timeline_uses_depth(e->p)))
        claim_depth(t, d, e, now);
    held = d->credit.over && e->p->op->flags & OPF_SEND;
    if (UNLIKELY(held))
        claim_credit(t, d, e, now);
    d->credit.over = 0; /* a SEND behind another request did not wait */
    if (UNLIKELY(d->have_limit && e->p->op->flags & OPF_SEND))
        note_probe(d, e);
    if (UNLIKELY(d->have_limit && e->p->op->flags & OPF_START))
        note_window(d, e, now);
    timeline_pace(t, d, e, from, now, held);
    if (UNLIKELY(stop.on))
        timeline_claim_stop(t, d, e, &stop, now);
}

/* Half a round trip, or half of the time that response `e` took if it is the first. */
static ns_t half_trip_at(const struct direction *d, const struct event *e)
{
    ns_t half = half_trip(d);
    const struct sent *s = half ? NULL : req_dir_sent(e->h, e->p->bth.psn);

    return s && s->copies == 1 ? (e->p->frame->ts - s->ts) / 2 : half;
}

/* The maximum of READs and atomics is outstanding: note a long wait, or its end when one of them completes. */
static void watch_depth(const struct timeline *t, struct direction *d, const struct event *e, ns_t from, ns_t now)
{
    const struct conn_params *c = &conn_flow_at(observer_conns(t->observer), e->flow)->params;
    ns_t half = half_trip_at(d, e);
    uint32_t depth = c->have_depth ? c->depth : UINT32_MAX; /* without further READs it would look the same */
    bool done = !(e->p->op->flags & OPF_ACK && !(e->p->have & H_ATOMICACKETH)) && e->p->op->flags & OPF_END;
    bool full = timeline_reads(d, e->h) >= depth;

    d->full = full;
    if (full && half && now - from >= half)
        note_wait(&d->depth, from, now);
    if (!done || !full || psn_diff(e->p->bth.psn, d->rsp_next) < 0 || timeline_skips(d, e))
        return;
    d->depth.over = d->depth.to ? now : d->depth.over;
    d->far.over = now;
}

/* The message that request `psn` belongs to is a SEND, and goes on behind it. */
static bool is_open_send(struct req_dir *h, uint32_t psn)
{
    const struct sent *s = req_dir_sent(h, psn);

    return s && (opcode_table[s->opcode].flags & (OPF_SEND | OPF_END)) == OPF_SEND;
}

/* Whether credits up to message `limit` permit the next packet of a SEND: one of the message in progress, or the first
 * one of the next message. One packet may be sent without credit unless such a `probe` is outstanding. */
static bool may_send(const struct direction *d, struct req_dir *h, uint32_t limit, bool probe)
{
    uint32_t latest = psn_add(h->msgs, d->msn_ahead);

    if (is_open_send(h, psn_prev(h->next)))
        return !probe || psn_diff(latest, limit) <= 0;
    return psn_diff(psn_add(latest, 1), limit) <= (probe ? 0 : 1);
}

/* Learn msn_ahead, the MSN minus the number of messages seen. A responder may have counted messages after the
 * acknowledged one, but never fewer than that: the minimum is right. */
static void watch_msn(struct direction *d, const struct event *e)
{
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn);
    bool before_gap = d->gap.frame && psn_diff(e->p->bth.psn, d->gap.psn) < 0;
    uint32_t ahead;

    if (!s || !s->msg || before_gap)
        return;
    ahead = psn_add(e->p->aeth.msn - s->msg, !(opcode_table[s->opcode].flags & OPF_END));
    if (!d->have_msn && psn_diff(e->p->aeth.msn, e->h->msgs) <= 0)
        ahead = 0; /* no more messages than were seen: it is a new queue pair */
    if (!d->have_msn || psn_diff(ahead, d->msn_ahead) < 0)
        d->msn_ahead = ahead;
    d->have_msn = true;
}

/* The first response with a credit count starts flow control. A new queue pair has no credits. */
static void begin_credits(struct direction *d, struct req_dir *h, uint32_t limit)
{
    bool whole = d->have_msn && d->msn_ahead == 0;

    d->have_limit = true;
    d->limit = whole ? 0 : limit;
    d->window = h->have_una ? timeline_messages(h, h->una) : h->msgs;
    d->probe.on = whole;
    d->probe.psn = h->next;
    d->probe.msg = h->msgs;
}

/* A response: whether the requester has room for one more message now. */
static void note_freed(struct direction *d, const struct event *e, ns_t now)
{
    uint32_t una = response_proves(e->p);

    if (e->h->have_una && psn_diff(e->h->una, una) > 0)
        una = e->h->una;
    if (!d->freed && timeline_messages(e->h, una) < d->window)
        d->freed = now;
}

/* The credits arrive at `now`: since when the next packet of a SEND waited for them. Before the requester had room for
 * one more message, it did not wait for credits. */
static ns_t waits_since(struct direction *d, struct req_dir *h, ns_t now)
{
    ns_t own = d->paces == PACE_EARLY ? timeline_frame_takes(d, d->last_len) : 0;
    ns_t freed = d->freed ? d->freed : now;

    d->credit.freed = 0;
    if (freed <= d->last_new + own || is_open_send(h, psn_prev(h->next)))
        return d->last_new;
    if (d->window_times == WINDOW_SURE)
        return freed;
    d->credit.freed = freed;
    return d->last_new;
}

/* An RNR NAK for the probe (the packet sent without credit): the rest of its message waited until now. */
static void claim_held(struct timeline *t, struct direction *d, const struct event *e, ns_t now)
{
    d->credit.over = 0;
    if (psn_add(e->p->bth.psn, 1) != d->probe.psn || !is_open_send(e->h, e->p->bth.psn))
        return;
    d->credit.from = waits_since(d, e->h, now);
    d->credit.to = d->credit.over = now;
    claim_wait(t, d, e, &d->credit, TROUBLE_CREDIT, TIME_CREDIT);
}

/* Response `e` does nothing but bring credits: the requester could have sent one packet without, and has sent none. The
 * next message was due when the usual rest since the latest response was over.
 *
 *   SEND ... ACK, no credits |---- rest ----|      waits     | ACK with credits, SEND
 */
static void watch_rest(struct direction *d, const struct event *e, uint32_t limit, bool probe, ns_t now)
{
    bool idle = !timeline_outstanding(d, e->h) && d->between && !probe && d->last_rsp;
    bool spent = d->have_msn && !may_send(d, e->h, d->limit, true);

    if (!idle || !spent || !may_send(d, e->h, limit, true) || d->credit.over)
        return;
    d->credit.from = ns_sum(d->last_rsp, timeline_rest(d));
    d->credit.to = d->credit.over = now;
    d->credit.freed = 0;
    d->credit.probe = true;
}

/* The last message that may be sent is MSN plus credits of the latest response. */
static void watch_credits(struct timeline *t, struct direction *d, const struct event *e, ns_t now)
{
    unsigned code = aeth_value(e->p->aeth.syndrome);
    uint32_t limit = psn_add(e->p->aeth.msn, aeth_credits(code));
    ns_t own = timeline_frame_takes(d, d->last_len);
    bool held, probe;

    if (UNLIKELY(response_type(e->p) == AETH_RNR && d->probe.on))
        claim_held(t, d, e, now);
    if (code == AETH_CREDIT_INVALID || response_type(e->p) != AETH_ACK)
        return;
    watch_msn(d, e);
    if (!d->have_limit)
        begin_credits(d, e->h, limit);
    if (psn_diff(limit, d->limit) < 0)
        limit = d->limit;
    probe = d->probe.on && psn_diff(response_proves(e->p), d->probe.psn) < 0 && psn_diff(d->probe.msg, limit) > 0;
    held = d->have_msn && !may_send(d, e->h, d->limit, d->probe.on);
    held &= now > d->last_new + own + own / 4; /* else its port was busy meanwhile */
    if (held && d->last_new && may_send(d, e->h, limit, probe)) {
        d->credit.from = waits_since(d, e->h, now);
        d->credit.to = d->credit.over = now;
        d->credit.probe = false;
    }
    watch_rest(d, e, limit, probe, now);
    d->limit = limit;
    d->probe.on = probe;
}

/* The requester drops READ or atomic response `e`, with its credits, while an earlier response is missing. It takes the
 * credits of an ACK. */
static bool is_dropped(const struct direction *d, const struct event *e)
{
    if (e->p->op->flags & OPF_ACK)
        return false;
    return timeline_skips(d, e) || (d->stuck.open && psn_diff(e->p->bth.psn, d->rsp_next) > 0);
}

void timeline_response(struct timeline *t, struct direction *d, const struct event *e, ns_t from, ns_t now)
{
    if (d->have_rsp)
        watch_depth(t, d, e, from, now);
    if (d->have_limit)
        note_freed(d, e, now);
    if (UNLIKELY(d->cnp.got.n))
        timeline_note_answer(d, e);
    if (e->p->have & H_AETH && !is_dropped(d, e))
        watch_credits(t, d, e, now);
}
