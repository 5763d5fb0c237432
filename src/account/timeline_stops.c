/* layer 2b (account): where the time of each direction of requests went: silences within a message.
 *
 * Nothing that a program does comes between the packets of a message. If all before the silence was acknowledged, and
 * then a packet comes whose PSN the tap has not seen before, that packet was sent before and lost before the tap, and
 * the ACK timeout brought it again; or its sender stood still.
 *
 *   request, sent    First Middle Last ................. Last       ACK timeout
 *   request, tap     First Middle                        Last       here it comes for the first time
 *   response                 ACK                                    of First and Middle
 */
#include "dissect/pkt.h"
#include "src/account/timeline_impl.h"
#include "src/transport/verbs.h"

#define STOP_LONG (10 * NS_PER_MS) /* a silence within a message that is told even if nothing explains it */
#define SAME_PART 16               /* ACK timeouts of one requester differ by at most such a part */

/* Whether other queue pairs of the requester's host sent most of the time since `from`. */
static bool others_sent(const struct direction *d, ns_t from, ns_t now)
{
    ns_t most = (now - from) / 2, latest, still, awake;

    if (!d->host)
        return false;
    latest = d->host->ts;
    still = d->host->still > from ? d->host->still : from;
    awake = d->host->awake;
    return latest > from && now - latest < most && awake - still < most;
}

struct stop timeline_stop(const struct direction *d, const struct event *e, ns_t now)
{
    bool within = e->as == SEEN_NEW && e->h->service == SVC_RC && !(e->p->op->flags & OPF_START) && !d->between;
    struct stop s = {.on = within, .from = d->spans.at};

    s.others = s.on && others_sent(d, s.from, now);
    return s;
}

static bool is_same_time(ns_t a, ns_t b)
{
    return b && a >= b - b / SAME_PART && a <= b + b / SAME_PART;
}

/* Whether a silence is as long as the ACK timeout that connection management told, or that the requester has shown. */
static bool is_timed(const struct flow *f, const struct direction *d, ns_t silence)
{
    const struct conn_params *c = &f->params;
    ns_t timer = c->timeout_known && c->timeout ? ack_timeout(c->timeout) : 0;

    if (timer)
        return silence >= timer_earliest(timer) && silence <= timer_latest(timer);
    return is_same_time(silence, d->wait) || is_same_time(silence, d->stopped);
}

/* Whether the ACK timer may have run out in a silence. */
static bool may_be_timer(const struct flow *f, const struct direction *d, ns_t silence)
{
    bool known = f->params.timeout_known && f->params.timeout;

    return known ? silence >= timer_earliest(ack_timeout(f->params.timeout)) : timeline_is_silence(f, d, silence);
}

/* The latest stop that nothing explained was as long as this one, or as an ACK timeout: it was one, too. */
static void settle_stop(struct timeline *t, struct direction *d)
{
    struct episode *x = episode_at(t, d->stop_ep);

    d->stop_ep = NO_EPISODE;
    if (!x || !(is_same_time(x->wait, d->wait) || is_same_time(x->wait, d->stopped)))
        return;
    timeline_claim(t, d, x->start, x->end, 1u << TIME_NOT_KNOWN, TIME_ACK_TIMEOUT, (uint32_t)(x - t->episodes));
    x->timed = x->states[TIME_ACK_TIMEOUT] > 0; /* else its time is not kept any more */
}

void timeline_claim_stop(struct timeline *t, struct direction *d, const struct event *e, const struct stop *s, ns_t now)
{
    const struct flow *f = conn_flow_at(observer_conns(t->observer), e->flow);
    const uint32_t good = 1u << TIME_TRANSFER | 1u << TIME_NOT_KNOWN;
    ns_t silence = now - s->from, states[TIME_STATES];
    bool lost = !timeline_outstanding(d, e->h) && may_be_timer(f, d, silence), timed = lost && is_timed(f, d, silence);
    bool told = lost && (s->others || timed);
    struct episode *x;
    uint32_t ep;

    spans_between(&d->spans, s->from, now, states);
    d->stopped = lost ? silence : d->stopped;
    if ((!told && silence < STOP_LONG) || states[TIME_TRANSFER] + states[TIME_NOT_KNOWN] < silence / 2)
        return;
    if (timed)
        settle_stop(t, d);
    ep = episode_new(t, e->flow, TROUBLE_STOPPED, e->p->bth.psn, s->from);
    x = episode_at(t, ep);
    if (!x)
        return;
    d->stop_ep = lost && !told ? ep : NO_EPISODE;
    x->others = told && s->others;
    x->timed = timed;
    x->wait = silence;
    x->sent = e->h->last_frame;
    x->answer = lost ? e->h->una_frame : 0;
    x->back = frame_u32(e->p);
    timeline_claim(t, d, s->from, now, good, told ? TIME_ACK_TIMEOUT : TIME_NOT_KNOWN, ep);
}
