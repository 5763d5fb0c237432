/* layer 2b (account): where the time of each direction of requests went: what a NAK says of the time before it. */
#include "dissect/pkt.h"
#include "src/account/timeline_impl.h"
#include "src/conn/packet.h"

/* No response to a request comes sooner: the shortest round trip, or half of the usual one. Queues only make it longer.
 */
static ns_t least_trip(const struct direction *d, const struct req_dir *h)
{
    ns_t trip = d->by_rep && d->by_rep < h->rtt ? d->by_rep : h->rtt, usual = d->usual_rtt / 2;

    return usual > trip ? usual : trip;
}

#define TRIP_PART 16 /* taken to be the most that the length of frames makes of a round trip */
#define TRIPS_FAR 16 /* a NAK later than that is taken to report a later copy */

/* Whether a NAK that came `latest` after the latest copy of a packet, a little less than the shortest round trip
 * `least`, reports that copy nevertheless: shorter frames make a shorter round trip, and a NAK for the copy before
 * would have come far too late, `before` after it. */
static bool is_almost_due(ns_t least, ns_t latest, ns_t before)
{
    return latest >= least - least / TRIP_PART && before / TRIPS_FAR > least && before > SLOW_LEAST;
}

/* When the copy that a sequence NAK at `now` reports missing was sent. If the NAK comes too soon after the latest copy,
 * it reports the copy before.
 *
 *   request  5 6 7   5 6 7                5 is lost, and retransmitted
 *   response            ^ NAK 5           within a round trip of the second 5: reports the first 5
 *   response                   ^ NAK 5    later: the second 5 is lost as well
 */
static ns_t asked_copy(const struct direction *d, const struct req_dir *h, const struct sent *s, ns_t now)
{
    ns_t least = least_trip(d, h);

    if (now - s->ts >= least)
        return s->ts;
    for (uint32_t i = 1; i <= COPIES && i <= d->n_copies; i++) {
        const struct copy *c = &d->copies[(d->n_copies - i) % COPIES];
        if (c->psn == s->psn && now - c->ts >= least)
            return is_almost_due(least, now - s->ts, now - c->ts) ? s->ts : c->ts;
    }
    return s->ts;
}

/* When the latest request that may have brought about a sequence NAK at `now` for `psn` was sent: one behind `psn`, and
 * not so late that the NAK comes too soon for it. `from`: no such request. */
static ns_t brought_about(const struct direction *d, struct req_dir *h, uint32_t psn, ns_t from, ns_t now)
{
    ns_t least = least_trip(d, h), latest = from;

    for (uint32_t i = 1; i <= TRACK_SENT && psn_diff(psn_add(psn, i), h->next) < 0; i++) {
        const struct sent *s = req_dir_sent(h, psn_add(psn, i));
        if (s && s->ts > latest && now - s->ts >= least)
            latest = s->ts;
    }
    return latest;
}

/* Whether the response to a READ or atomic before NAK `e` is missing: its requester may drop the NAK. */
static bool may_be_dropped(const struct direction *d, const struct event *e)
{
    return d->have_rsp && psn_diff(e->p->bth.psn, d->rsp_next) > 0 && timeline_reads(d, e->h) > 0;
}

/* A sequence NAK: the requester has sent in vain since the lost packet, so that time becomes loss_nak. */
static void take_seq_nak(struct timeline *t, struct direction *d, const struct event *e, ns_t now)
{
    const struct flow *flow = conn_flow_at(observer_conns(t->observer), e->flow);
    uint32_t psn = e->p->bth.psn;
    const struct sent *s = req_dir_sent(e->h, psn);
    bool gap = d->gap.frame && d->gap.psn == psn;
    ns_t from = gap ? d->gap.ts : s && !s->late ? asked_copy(d, e->h, s, now) : now;
    struct episode *x;
    uint32_t ep;

    if ((d->nak.open && d->nak.psn == psn) || d->rnr.open)
        return; /* in an RNR wait it changes nothing */
    if (timeline_is_silence(flow, d, brought_about(d, e->h, psn, from, now) - from))
        from = now; /* that copy is too old: another one, sent just before the NAK was due, was lost before the tap */
    ep = episode_new(t, e->flow, TROUBLE_SEQ_NAK, psn, from);
    d->nak = (struct pending_nak){.open = true, .dropped = may_be_dropped(d, e), .psn = psn, .ts = now, .ep = ep};
    timeline_chain(t, d, ep);
    x = episode_at(t, ep);
    if (!x)
        return;
    x->nak = frame_u32(e->p);
    x->sent = s ? s->last : 0;
    x->instead = gap ? d->gap.frame : 0;
    timeline_claim(t, d, from, now, BEFORE_LOSS, TIME_LOSS_NAK, ep);
}

/* An RNR NAK: the requester waits. A further one for a copy that it sent before that changes nothing of it.
 *
 *   request  5 6   5 6                                5        the second 5 was sent for another reason
 *   response           RNR NAK 5 .. RNR NAK 5 ....             for the second 5
 *                      |------------------------------|        rnr
 */
static void take_rnr(struct timeline *t, struct direction *d, const struct event *e, ns_t now)
{
    uint32_t psn = e->p->bth.psn;
    struct episode *x = episode_at(t, d->rnr.ep);
    const struct sent *s = req_dir_sent(e->h, psn);
    const struct episode *row = episode_at(t, d->row);
    bool waits = d->rnr.open && d->rnr.psn == psn && !d->rnr.dropped;

    if (!x || d->rnr.psn != psn) {
        d->rnr.ep = episode_new(t, e->flow, TROUBLE_RNR, psn, now);
        if (!row || row->psn != psn)
            timeline_chain(t, d, d->rnr.ep); /* else when the requester heeds it */
        x = episode_at(t, d->rnr.ep);
        if (x) {
            x->nak = frame_u32(e->p);
            x->sent = s ? s->last : 0;
        }
    }
    d->rnr.open = true;
    d->rnr.psn = psn;
    if (!waits)
        d->rnr.ts = now;
    d->rnr.dropped = !waits && may_be_dropped(d, e);
    if (x)
        x->count++;
}

/* The queue pair of the requester goes into the error state. */
static void take_fatal_nak(struct timeline *t, struct direction *d, const struct event *e, ns_t now)
{
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn);
    struct episode *x;

    d->refused = episode_new(t, e->flow, TROUBLE_REFUSED, e->p->bth.psn, now);
    x = episode_at(t, d->refused);
    if (!x)
        return;
    x->nak = frame_u32(e->p);
    x->sent = s ? s->last : 0;
}

void timeline_nak(struct timeline *t, struct direction *d, const struct event *e, ns_t now)
{
    unsigned type = response_type(e->p);

    if (type == AETH_RNR)
        take_rnr(t, d, e, now);
    else if (type == AETH_NAK && aeth_value(e->p->aeth.syndrome) == NAK_PSN_SEQ)
        take_seq_nak(t, d, e, now);
    else if (type == AETH_NAK && d->refused == NO_EPISODE)
        take_fatal_nak(t, d, e, now);
}
