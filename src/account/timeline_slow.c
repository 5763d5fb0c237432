/* layer 2b (account): where the time of each direction of requests went: slow responses. */
#include "bits.h"
#include "dissect/pkt.h"
#include "src/account/timeline_impl.h"
#include "src/conn/packet.h"

#include <stdlib.h>

/* --- The first responses ---------------------------------------------------------------------- */

static int by_length(const void *a, const void *b)
{
    const struct early_response *x = a, *y = b;
    ns_t p = x->to - x->from, q = y->to - y->from;

    return p < q ? -1 : p > q;
}

static void early_was_slow(struct timeline *t, struct direction *d, uint32_t flow, const struct early_response *r,
                           ns_t usual)
{
    ns_t least = usual > d->least ? usual : d->least, due = r->sent_ts ? r->sent_ts + least : 0;
    ns_t from = due > r->from ? due : r->from;
    uint32_t ep = episode_new(t, flow, TROUBLE_SLOW, r->psn, from);
    struct episode *x = episode_at(t, ep);

    timeline_claim(t, d, from, r->to, BEFORE_SLOW, TIME_PEER_SLOW, ep);
    if (x) {
        x->answer = r->answer;
        x->sent = r->sent;
    }
}

/* The mean distance of the first `n` responses from the usual time. */
static ns_t early_spread(const struct early_response *r, unsigned n, ns_t usual)
{
    ns_t sum = 0;

    for (unsigned i = 0; i < n; i++)
        sum += llabs(r[i].to - r[i].from - usual) / (ns_t)n;
    return sum;
}

/* The shortest round trip: from REQ to REP, if all of the first responses were slow. */
static ns_t shortest_trip(const struct direction *d)
{
    return d->by_rep && d->by_rep < d->least_first ? d->by_rep : d->least_first;
}

/* True if an early response is slow. Responses to requests sent back to back follow each other closely, which makes
 * `usual` too short: less than two round trips is never slow. */
static bool early_is_slow(const struct timeline *t, const struct direction *d, const struct early_response *r,
                          ns_t usual, ns_t spread)
{
    ns_t took = r->to - r->from;

    return timeline_is_slow(took, usual, spread) && took - shortest_trip(d) > shortest_trip(d) &&
           took > SLOW_TICKS * t->tick;
}

/* Decide which of the first responses were slow: sort them by length; the usual time is their median. Going up from the
 * median, the first response that is slow by the median and the mean distance of all shorter ones makes itself and all
 * longer ones slow. Returns whether any was.
 *
 *   lengths, us   5 5 6 [6] 7 8 | 900 950      usual 6; 900 and 950 are slow
 */
static bool settle_early(struct timeline *t, struct direction *d, uint32_t flow)
{
    struct early_response r[SLOW_AFTER];
    unsigned k = SLOW_AFTER / 2;
    ns_t usual, spread;
    bool gap;

    memcpy(r, d->early, sizeof r);
    qsort(r, SLOW_AFTER, sizeof *r, by_length);
    usual = r[SLOW_AFTER / 2 - 1].to - r[SLOW_AFTER / 2 - 1].from;
    usual = usual ? usual : 1;
    for (spread = early_spread(r, k, usual); k < SLOW_AFTER; spread = early_spread(r, ++k, usual))
        if (early_is_slow(t, d, &r[k], usual, spread))
            break;
    gap = early_is_slow(t, d, &d->early_gap, usual, spread);
    if (gap)
        early_was_slow(t, d, flow, &d->early_gap, usual);
    if (k == SLOW_AFTER)
        return gap;
    for (unsigned i = k; i < SLOW_AFTER; i++)
        early_was_slow(t, d, flow, &r[i], usual);
    d->usual = usual;
    d->spread = spread + usual / 2;
    return true;
}

#define ASKS         0x80       /* AckReq in sent.ackreq */
#define ANSWERED_MAX TRACK_SENT /* at most so many requests are searched for the first one that a response answers */

/* The first request with AckReq among those that response `e` acknowledges; NULL: none. */
static const struct sent *first_answered(const struct event *e)
{
    uint32_t psn = e->p->bth.psn, from = e->h->have_una ? e->h->una : psn;
    const struct sent *s = NULL;

    if (psn_diff(psn, from) >= ANSWERED_MAX || psn_diff(psn, from) < 0)
        from = psn;
    for (; psn_diff(psn, from) >= 0; from = psn_add(from, 1)) {
        s = req_dir_sent(e->h, from);
        if (s && s->ackreq & ASKS)
            break;
    }
    return s;
}

/* Whether response `e` is one to a READ or atomic. */
static bool is_of_read(const struct event *e)
{
    return !(e->p->op->flags & OPF_ACK) || e->p->have & H_ATOMICACKETH;
}

/* Learn whether the responder sends no ACK for a request with AckReq if it can acknowledge it with a later response. */
static void note_joined(struct direction *d, const struct event *e)
{
    bool several = e->h->have_una && psn_diff(e->p->bth.psn, e->h->una) > 0;
    const struct sent *s = several && is_of_read(e) && !d->joins ? first_answered(e) : NULL;

    if (s && s->psn != e->p->bth.psn)
        d->joins = true;
    else if (!several && !is_of_read(e))
        d->joins = false;
}

/* When the request that response `e` waited for was sent: the first one that it answers; or its own READ or atomic, if
 * its responder would not have acknowledged those before sooner. 0: not known. */
static ns_t asked_ts(const struct direction *d, const struct event *e)
{
    const struct read_req *a = d->joins && is_of_read(e) ? req_dir_read(e->h, e->p->bth.psn, 0) : NULL;
    const struct sent *s = a && a->psn == e->p->bth.psn ? NULL : first_answered(e);

    if (s)
        return s->ts;
    return a && a->psn == e->p->bth.psn ? a->ts : 0;
}

static struct early_response early_response(const struct direction *d, const struct event *e, ns_t from, ns_t now)
{
    return (struct early_response){.from = from,
                                   .to = now,
                                   .sent_ts = asked_ts(d, e),
                                   .psn = e->p->bth.psn,
                                   .sent = e->h->last_frame,
                                   .answer = frame_u32(e->p)};
}

/* Response `e` is the first packet of the direction since `from`: keep it if it is one of the first responses, or ends
 * the longest gap within one. */
static void note_early(struct direction *d, const struct event *e, ns_t from, ns_t now)
{
    if (d->waits && d->n_early < SLOW_AFTER)
        d->early[d->n_early++] = early_response(d, e, from, now);
    else if (!d->waits && now - from > d->early_gap.to - d->early_gap.from)
        d->early_gap = early_response(d, e, from, now);
}

/* After SLOW_AFTER responses, decide which of them were slow. All of them may have been delayed by the first one:
 * decide again when a later response shows a round trip of less than half. */
static void decide_early(struct timeline *t, struct direction *d, uint32_t flow)
{
    bool sooner = !d->early_rtt || d->least_first <= d->early_rtt / 2;

    if (d->n_early < SLOW_AFTER)
        return;
    d->early_decided = d->by_rep || d->progress > EARLY_PROGRESS || (sooner && settle_early(t, d, flow));
    if (sooner)
        d->early_rtt = d->least_first;
}

/* --- Slow responses --------------------------------------------------------------------------- */

#define USUAL_EARLY 8 /* so many responses bring the usual time near at once */
/* A longer time, of stamps that are far apart, counts as this, so that sums stay in range. */
#define USUAL_MOST (NS_NEVER / 4)

/* Move the usual time to a response towards the median: up after a longer one, down after a shorter one, by an eighth.
 * `counts`: nothing went wrong, so the time is representative. */
static void note_usual(struct direction *d, ns_t took, bool counts)
{
    ns_t off;

    took = took < USUAL_MOST ? took : USUAL_MOST;
    off = took > d->usual ? took - d->usual : d->usual - took;
    if (off > 2 * d->usual)
        off = 2 * d->usual; /* a slow response does not make others usual */
    if (d->usual)
        d->spread += (off - d->spread) / 4;
    if (!d->usual)
        d->usual = took;
    else if (took > d->usual && d->waited < USUAL_EARLY && took < SLOW_LEAST)
        d->usual += (took - d->usual) / 2; /* the first time may have been 0: two packets with one time stamp */
    else if (took > d->usual)
        d->usual += d->usual / 8 + 1;
    else if (took < d->usual)
        d->usual -= d->usual / 8;
    d->waited += counts && d->waited < UINT16_MAX;
}

/* Likewise, the usual time from a request to its own response. */
static void note_usual_rtt(struct direction *d, ns_t rtt)
{
    rtt = rtt < USUAL_MOST ? rtt : USUAL_MOST;
    d->usual_rtt += rtt > d->usual_rtt ? (d->usual_rtt ? d->usual_rtt / 8 + 1 : rtt) : -(d->usual_rtt / 8);
}

/* Whether response `e` came far later after its request than others do. */
static bool is_late(const struct direction *d, const struct event *e)
{
    const struct sent *s = first_answered(e);

    return s && timeline_is_long(e->p->frame->ts - s->ts_first, d->usual_rtt);
}

/* Whether a retransmission is due or in progress when response `e` arrives, or because of it. */
static bool in_recovery(const struct direction *d, const struct event *e)
{
    bool nak = e->p->op->flags & OPF_ACK && response_type(e->p) == AETH_NAK;

    return nak || is_resending(d) || d->nak.open || d->rnr.open;
}

/* Likewise, or until a retransmission is acknowledged. */
static bool in_trouble(const struct direction *d, const struct event *e)
{
    return in_recovery(d, e) || d->row != NO_EPISODE;
}

/* When response `e` was due with the usual time; not before the latest packet of the direction. */
static ns_t due(const struct direction *d, const struct event *e)
{
    ns_t trip = d->by_rep && d->by_rep < d->least ? d->by_rep : d->least, usual = d->usual > trip ? d->usual : trip;
    ns_t asked = asked_ts(d, e), at = asked ? asked + usual : 0;

    return at > d->spans.at ? at : d->spans.at;
}

/* Whether a response `took` after the latest packet, without a retransmission since, is slow. Less than two round trips
 * is never slow, since responses to requests sent back to back follow each other closely; nor is a time that coarse
 * time stamps cannot resolve. */
static bool is_slow(const struct timeline *t, const struct direction *d, const struct event *e, ns_t took)
{
    bool known = d->progress >= SLOW_AFTER || d->n_early == SLOW_AFTER || d->by_rep;

    return timeline_is_long(took, d->usual) && known && took > 2 * shortest_trip(d) && took > SLOW_TICKS * t->tick &&
           (took > d->usual + SLOW_SPREAD * d->spread || is_late(d, e)) && !in_recovery(d, e) &&
           timeline_outstanding(d, e->h);
}

static void slow_response(struct timeline *t, struct direction *d, const struct event *e, ns_t now)
{
    ns_t from = due(d, e);
    uint32_t ep = episode_new(t, e->flow, TROUBLE_SLOW, e->p->bth.psn, from);
    struct episode *x = episode_at(t, ep);

    spans_add(&d->spans, from, TIME_RESPONSE, NO_EPISODE);
    d->spread += d->usual / 2; /* a responder that often takes so long is not slow */
    timeline_bill(t, d, now, TIME_PEER_SLOW, ep);
    if (x) {
        x->answer = frame_u32(e->p);
        x->sent = e->h->last_frame;
    }
}

void timeline_pass_response(struct timeline *t, struct direction *d, const struct event *e, ns_t now)
{
    ns_t from = d->spans.at, took = now - from;

    if (now - d->last_request > d->patient && timeline_outstanding(d, e->h))
        d->patient = now - d->last_request;
    if (UNLIKELY(is_slow(t, d, e, took))) {
        slow_response(t, d, e, now);
        return;
    }
    note_joined(d, e);
    timeline_pass(t, d, e->h, now, true);
    if (took < 0 || (!took && !d->waits))
        return;
    if (d->waits) {
        bool counts = !in_trouble(d, e);
        note_usual(d, took ? took : 1, counts);
        if (LIKELY(counts && e->h->rtt_latest > 0))
            note_usual_rtt(d, e->h->rtt_latest);
    }
    if (LIKELY(d->early_decided) || in_trouble(d, e))
        return;
    note_early(d, e, from, now);
    if (d->waits)
        decide_early(t, d, e->flow);
}
