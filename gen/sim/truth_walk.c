/* layer 3 (sim): the truth of a simulation: the events of a direction, in order, become spans of time and incidents.
 *
 * Go-back-N after a sequence NAK (PSN 11 is lost), and the states of its time:
 *
 *   request   10 11 12 13             11 12 13   14
 *   NAK                       NAK 11
 *   state        |-- until NAK --|----|-- resend --|
 *                                until retransmission
 */
#include "gen/sim/truth_impl.h"

#include <stdlib.h>

#include "dissect/mad/cm.h"

static struct truth_incident *incident_of(const struct truth_walk *w, uint32_t number)
{
    return &w->t->incidents[number - 1];
}

void truth_walk_paint(struct truth_walk *w, enum time_state state, ns_t from, ns_t to, uint32_t incident)
{
    truth_paint(w->t, w->out, state, from, to, incident);
}

uint32_t truth_incident_new(struct truth_walk *w, enum cause cause, const struct truth_event *e, uint64_t frame)
{
    struct truth *t = w->t;

    if (!truth_grow(t, &t->incidents, &t->cap_incidents, t->n_incidents, sizeof *t->incidents))
        return 0;
    t->incidents[t->n_incidents] = (struct truth_incident){.cause = (uint8_t)cause,
                                                           .host = (uint8_t)w->host,
                                                           .conn = w->conn,
                                                           .psn = e->una,
                                                           .frame = frame,
                                                           .start = NS_NEVER,
                                                           .end = NS_NEVER};
    return (uint32_t)++t->n_incidents;
}

/* --- Time without trouble --------------------------------------------------------------------- */

/* Time since the event before: idle, or transfer until a longer gap is found. */
static void pass(struct truth_walk *w, ns_t now)
{
    truth_walk_paint(w, w->busy ? TIME_TRANSFER : TIME_IDLE, w->at, now, 0);
    w->at = now;
}

/* A packet of the direction: if the previous one is half a round trip or more ago, the requester waited for a response.
 */
static void packet(struct truth_walk *w, const struct truth_event *e)
{
    ns_t from = w->latest, now = e->at;

    if (w->busy && from < w->busy_since)
        from = w->busy_since;
    if (w->busy && from != NS_NEVER && now - from >= w->rtt / 2)
        truth_walk_paint(w, TIME_RESPONSE, from, now, 0);
    if (w->busy && from != NS_NEVER)
        truth_take_pauses(w, e, from);
    w->latest = now;
}

static void set_busy(struct truth_walk *w, bool busy, ns_t now)
{
    if (busy && !w->busy)
        w->busy_since = now;
    w->busy = busy;
}

/* --- Loss, timeouts, RNR ---------------------------------------------------------------------- */

static void resend_ends(struct truth_walk *w, ns_t now)
{
    if (w->resend.on)
        truth_walk_paint(w, TIME_LOSS_RESEND, w->resend.from, now, w->resend.incident);
    w->resend.on = false;
}

/* Time since the requester went back, until the retransmission or the failure. */
static void back_ends(struct truth_walk *w, ns_t now)
{
    const struct truth_back *b = &w->back;

    if (!b->on)
        return;
    if (b->why == WHY_TIMEOUT)
        truth_walk_paint(w, TIME_ACK_TIMEOUT, b->latest, now, b->incident);
    else if (b->why == WHY_RNR_NAK)
        truth_walk_paint(w, TIME_RNR, b->at, now, b->incident);
    else
        truth_walk_paint(w, TIME_LOSS_RETRANSMISSION, b->since, now, b->incident);
    if ((b->why == WHY_SEQUENCE_NAK || b->why == WHY_IMPLIED_NAK) && b->lost != NS_NEVER)
        truth_walk_paint(w, TIME_LOSS_NAK, b->lost, b->at, b->incident);
    w->back.on = false;
}

/* The incident of a retransmission: the open one unless there was progress since it began. */
static uint32_t incident_for(struct truth_walk *w, const struct truth_event *e, uint64_t *frame)
{
    enum cause cause = truth_blame(w->t, w->conn, w->host, e, w->rtt / 2, w->response, frame);
    struct truth_incident *open = w->incident ? incident_of(w, w->incident) : NULL;

    if (cause == CAUSE_COUNT && w->previous)
        return w->incident = w->previous;
    if (cause == CAUSE_COUNT)
        cause = CAUSE_CANNOT_TELL;
    if (!open || (open->cause == CAUSE_RNR) != (cause == CAUSE_RNR))
        w->incident = truth_incident_new(w, cause, e, *frame);
    else if (cause == CAUSE_MTU_BLACK_HOLE)
        open->cause = (uint8_t)cause;
    if (cause != CAUSE_RNR)
        w->previous = w->incident;
    return w->incident;
}

static void timer_ran_out(struct truth_walk *w, const struct truth_event *e)
{
    struct truth *t = w->t;
    bool rnr = e->why == WHY_RNR_NAK;

    if (!truth_grow(t, &t->timers, &t->cap_timers, t->n_timers, sizeof *t->timers))
        return;
    t->timers[t->n_timers++] = (struct truth_timer){.conn = w->conn,
                                                    .host = (uint8_t)w->host,
                                                    .psn = e->una,
                                                    .at = e->at,
                                                    .try = (uint8_t)++w->tries[rnr],
                                                    .rnr = rnr};
}

/* If the latest response is a NAK: when the packet with its PSN was sent, if that was lost or reordered; NS_NEVER: no
 * NAK, or the packet arrived. */
static ns_t nak_seen_at(const struct truth_walk *w)
{
    const struct truth_frame *nak = w->response ? truth_frame(w->t, w->response) : NULL;
    uint64_t frame;

    if (!nak || nak->class != PC_NAK)
        return NS_NEVER;
    frame = truth_nacked(w->t, w->conn, w->host, nak->psn, w->rtt / 2, nak->sent);
    return frame && truth_is_missing(w->t, frame, nak->sent) ? truth_frame(w->t, frame)->sent : NS_NEVER;
}

static void goes_back(struct truth_walk *w, const struct truth_event *e)
{
    uint64_t frame = 0;
    uint32_t incident;

    back_ends(w, e->at);
    resend_ends(w, e->at);
    incident = incident_for(w, e, &frame);
    if (!incident)
        return;
    if (e->why == WHY_TIMEOUT)
        incident_of(w, incident)->timeouts++;
    if (e->why == WHY_TIMEOUT && w->unanswered == NS_NEVER)
        w->unanswered = e->at;
    w->back = (struct truth_back){.on = true,
                                  .why = e->why,
                                  .at = e->at,
                                  .latest = w->latest,
                                  .since = e->why == WHY_IMPLIED_NAK && w->skipped != NS_NEVER ? w->skipped : e->at,
                                  .lost = e->why == WHY_SEQUENCE_NAK && frame ? truth_frame(w->t, frame)->sent
                                          : e->why == WHY_IMPLIED_NAK         ? nak_seen_at(w)
                                                                              : NS_NEVER,
                                  .incident = incident};
    w->skipped = NS_NEVER;
}

static void progress(struct truth_walk *w, const struct truth_event *e)
{
    w->incident = 0;
    w->skipped = NS_NEVER;
    w->tries[0] = w->tries[1] = 0;
    w->unanswered = NS_NEVER;
    w->back.on &= e->going; /* else nothing remains to be retransmitted */
    w->resend.responses &= psn_diff(e->una, w->resend.until) <= 0;
    if (!e->going && (!w->resend.responses || e->una == e->next))
        resend_ends(w, e->at);
}

static void complete(struct truth_walk *w, const struct truth_event *e)
{
    struct truth_requests *d = w->done;

    for (; w->head != e->head; w->head++) {
        if (!w->reliable || w->head - w->begun < UINT32_MAX / 2 ||
            !truth_grow(w->t, &d->r, &d->cap, d->n, sizeof *d->r))
            continue; /* no response completes it, or it is a local operation */
        d->r[d->n++] = (struct truth_request){.conn = w->conn,
                                              .number = w->head,
                                              .host = (uint8_t)w->host,
                                              .start = w->start[w->head & w->start_mask],
                                              .end = e->at};
    }
}

static void effect(struct truth_walk *w, const struct truth_event *e)
{
    bool timer = e->why == WHY_TIMEOUT || (e->why == WHY_RNR_NAK && !(e->flags & EFF_WAIT));

    if (e->flags & EFF_ACKED)
        progress(w, e);
    complete(w, e);
    if (timer && e->flags & (EFF_RETRANSMIT | EFF_ERROR))
        timer_ran_out(w, e);
    if (e->flags & EFF_RETRANSMIT && !(timer && e->why == WHY_RNR_NAK))
        goes_back(w, e);
    else if (e->flags & EFF_ERROR && (timer || e->why == WHY_SEQUENCE_NAK || e->why == WHY_IMPLIED_NAK)) {
        goes_back(w, e); /* and fails at once: no retry is left */
        back_ends(w, e->at);
    }
}

/* --- Packets ---------------------------------------------------------------------------------- */

static void retransmitted(struct truth_walk *w, const struct truth_event *e, const struct truth_frame *f)
{
    uint32_t incident = w->back.incident;

    back_ends(w, e->at);
    w->resend =
        (struct truth_resend){.on = true,
                              .responses = f->class == PC_READ && w->any_response && psn_diff(w->newest, f->psn) >= 0,
                              .from = e->at,
                              .request = e->frame,
                              .until = w->newest,
                              .incident = incident};
}

static void sent(struct truth_walk *w, const struct truth_event *e)
{
    const struct truth_frame *f = truth_frame(w->t, e->frame);

    truth_wait_over(w, e);
    packet(w, e);
    w->sent = e->frame;
    if (w->back.on && w->back.why == WHY_TIMEOUT)
        w->slow_from = NS_NEVER; /* a response, if it comes, answers the retransmission */
    if (w->back.on)
        retransmitted(w, e, f);
    if (!w->resend.responses && !e->going)
        resend_ends(w, e->at);
    if (!f->repeat && e->message + 1 != w->begun) {
        w->begun = e->message + 1;
        w->start[e->message & w->start_mask] = e->at;
    }
    complete(w, e); /* UC, UD: what is sent is complete */
}

/* Whether response `f` was sent after the retransmission had arrived, or is the next READ response or ATOMIC ACK that
 * the requester accepts: an ACK in place of one is dropped. Other responses were already in flight, and the requester
 * drops them. */
static bool answers_resend(const struct truth_walk *w, const struct truth_event *e, const struct truth_frame *f)
{
    return f->sent >= truth_frame(w->t, w->resend.request)->arrived || (f->class == PC_RESP && f->psn == e->una);
}

/* Whether response `f` skips the oldest missing response to a READ or atomic. Responses that were in flight at the
 * go-back-N do not count. */
static bool skips(const struct truth_walk *w, const struct truth_event *e, const struct truth_frame *f)
{
    uint64_t request = psn_diff(f->psn, e->una) > 0 ? truth_request_of(w->t, w->conn, w->host, e->una, e->at) : 0;
    uint16_t class = request ? truth_frame(w->t, request)->class : 0;

    if (class != PC_READ && class != PC_ATOMIC)
        return false;
    return !w->resend.request || f->sent >= truth_frame(w->t, w->resend.request)->arrived;
}

static void arrived(struct truth_walk *w, const struct truth_event *e)
{
    const struct truth_frame *f = truth_frame(w->t, e->frame);

    if (f->arrived == NS_NEVER || f->arrived > e->at)
        return; /* damaged: it is no packet of the direction */
    truth_slow_ends(w, e, f);
    truth_wait_goes_on(w, e);
    packet(w, e);
    w->response = e->frame;
    if (w->skipped == NS_NEVER && skips(w, e, f))
        w->skipped = e->at;
    w->nak_lost = nak_seen_at(w);
    if (f->class == PC_RESP) {
        w->newest = !w->any_response || psn_diff(f->psn, w->newest) > 0 ? f->psn : w->newest;
        w->any_response = true;
    }
    if (w->resend.on && w->resend.responses && psn_diff(f->psn, w->resend.until) >= 0 && answers_resend(w, e, f)) {
        w->resend.responses = false;
        if (!e->going)
            resend_ends(w, e->at);
    }
}

/* --- Begin and end ---------------------------------------------------------------------------- */

static void managed(struct truth_walk *w, const struct truth_event *e)
{
    const struct truth_frame *f = truth_frame(w->t, e->frame);
    bool closing = f->cm == CM_DREQ || f->cm == CM_DREP;

    if (!closing && w->sent)
        return; /* an RTU was lost: the requester works already */
    if (closing != w->cm_closing) {
        truth_walk_paint(w, TIME_CM, w->cm_from, w->cm_to, 0);
        w->cm_from = NS_NEVER;
        w->cm_closing = closing;
    }
    if (w->cm_from == NS_NEVER)
        w->cm_from = e->at;
    w->cm_to = e->at;
}

/* Number of tries of the requester's host, at this peer, without a response since `since`, as frames show them:
 * retransmissions on ACK timeout, and retransmitted DREQs after one of those. */
static unsigned vain_tries(const struct truth_walk *w, ns_t since)
{
    unsigned n = 0, dreqs = 0;

    for (size_t i = w->f->pair_first; i < w->f->pair_end; i++) {
        const struct truth_flow *f = &w->t->flows[w->t->pair[i].flow];
        for (size_t j = 0; j < f->n; j++) {
            const struct truth_event *e = &f->ev[j];
            if (e->at <= since || e->at > f->last)
                continue;
            n += e->what == AT_EFFECT && e->why == WHY_TIMEOUT && e->flags & EFF_RETRANSMIT;
            dreqs += e->what == AT_CM && truth_frame(w->t, e->frame)->cm == CM_DREQ;
        }
    }
    return n && dreqs > 1 ? n + dreqs - 1 : n;
}

/* The retransmissions on ACK timeout of the direction itself after `since`. */
static unsigned own_tries(const struct truth_walk *w, ns_t since)
{
    unsigned n = 0;

    for (size_t i = 0; i < w->f->n; i++) {
        const struct truth_event *e = &w->f->ev[i];
        n += e->at > since && e->what == AT_EFFECT && e->why == WHY_TIMEOUT && e->flags & EFF_RETRANSMIT;
    }
    return n;
}

/* True if the peer is dead: nothing more arrives from it, and at least two tries had no response. After a single try
 * its response may have been lost, so no tap can tell that the peer is dead. */
static bool peer_is_dead(const struct truth_walk *w)
{
    ns_t received = w->f->heard;

    if (w->unanswered == NS_NEVER)
        return false;
    if (received != NS_NEVER && received >= w->unanswered)
        return own_tries(w, received) >= 2;
    return vain_tries(w, received == NS_NEVER ? 0 : received) >= 2;
}

static void failed(struct truth_walk *w, const struct truth_event *e)
{
    enum cause cause = truth_cause_of((enum wc_status)e->why);
    struct truth_incident *open;

    truth_wait_over(w, e);
    resend_ends(w, e->at);
    back_ends(w, e->at);
    if (!w->incident)
        w->incident = truth_incident_new(w, cause, e, 0);
    if (!w->incident)
        return;
    open = incident_of(w, w->incident);
    if (open->cause != CAUSE_MTU_BLACK_HOLE)
        open->cause = (uint8_t)cause;
    truth_walk_paint(w, TIME_GIVEN_UP, e->at, w->f->last, w->incident);
    w->busy = false;
    w->dead = true;
}

/* When the oldest PSN that was never acknowledged was sent first. */
static ns_t first_sent(const struct truth_walk *w, uint32_t psn)
{
    for (size_t i = w->f->n; i > 0; i--) {
        const struct truth_event *e = &w->f->ev[i - 1];
        const struct truth_frame *f = e->what == AT_SENT ? truth_frame(w->t, e->frame) : NULL;
        if (f && !f->repeat && psn_in(psn, f->psn, f->span))
            return e->at;
    }
    return w->f->last;
}

/* When the RNR wait in which the direction ends is over: with its timer, if the requester died meanwhile. */
static ns_t rnr_wait_ends(const struct truth_walk *w)
{
    const struct requester *r = &truth_qp(w->t, w->conn, w->host)->req;

    return r->rnr_wait && r->rnr_until < w->f->last ? r->rnr_until : w->f->last;
}

static void ends(struct truth_walk *w)
{
    ns_t from, received = w->f->heard;

    pass(w, w->f->last);
    /* a requester that dies in the middle of a retransmission retransmits nothing more */
    resend_ends(w, w->latest == NS_NEVER ? w->f->last : w->latest);
    if (w->back.why == WHY_RNR_NAK)
        back_ends(w, rnr_wait_ends(w));
    if (w->cm_from != NS_NEVER)
        truth_walk_paint(w, TIME_CM, w->cm_from, w->cm_to, 0);
    if (!peer_is_dead(w) || !w->incident)
        return;
    from = first_sent(w, incident_of(w, w->incident)->psn);
    if (received != NS_NEVER && from < received)
        from = received;
    truth_walk_paint(w, TIME_PEER_DEAD, from, w->f->last, w->incident);
    if (incident_of(w, w->incident)->cause != CAUSE_MTU_BLACK_HOLE)
        incident_of(w, w->incident)->cause = CAUSE_SILENT_PEER;
}

/* --- All events ------------------------------------------------------------------------------- */

/* The shortest transit time of a frame of `host`, of connection `conn`. */
static ns_t shortest_way(const struct truth *t, unsigned conn, unsigned host)
{
    size_t i = (size_t)(conn - 1) * NET_HOSTS + host;
    ns_t way = i < t->n_flows ? t->flows[i].shortest : NS_NEVER;

    return way == NS_NEVER ? 0 : way;
}

/* The NAK of the event before leads to nothing, if `e` is no go-back-N for it: its requester has gone back already, or
 * misses an earlier response. The packet was lost nevertheless. */
static void pass_unheeded(struct truth_walk *w, const struct truth_event *e)
{
    bool heeded = e->what == AT_EFFECT && e->flags & (EFF_RETRANSMIT | EFF_ERROR) && !w->back.on && !w->resend.on;
    uint32_t incident = w->back.on ? w->back.incident : w->resend.on ? w->resend.incident : w->previous;

    if (w->nak_lost != NS_NEVER && !heeded && incident)
        truth_walk_paint(w, TIME_LOSS_NAK, w->nak_lost, w->at, incident);
    w->nak_lost = NS_NEVER;
}

static void step(struct truth_walk *w, const struct truth_event *e)
{
    pass_unheeded(w, e);
    truth_undecided_pass(w, e);
    pass(w, e->at);
    switch ((enum truth_what)e->what) {
    case AT_SENT:
        sent(w, e);
        break;
    case AT_ARRIVED:
        arrived(w, e);
        break;
    case AT_CM:
        managed(w, e);
        break;
    case AT_EFFECT:
        effect(w, e);
        break;
    case AT_FAILED:
        failed(w, e);
        break;
    case AT_WAITS:
        truth_wait_begins(w, e);
        break;
    case AT_SLOW:
        truth_slow_begins(w, e);
        break;
    case AT_POSTED:
        w->posted = e->at;
        break;
    }
    if (!w->dead)
        set_busy(w, e->busy, e->at);
}

void truth_walk(struct truth *t, unsigned conn, unsigned host, struct truth_spans *out, struct truth_requests *done)
{
    const struct truth_flow *f = &t->flows[(size_t)(conn - 1) * NET_HOSTS + host];
    const struct qp *qp = truth_qp(t, conn, host);
    struct truth_walk w = {.t = t,
                           .f = f,
                           .out = out,
                           .done = done,
                           .conn = conn,
                           .host = host,
                           .rtt = shortest_way(t, conn, 0) + shortest_way(t, conn, 1),
                           .at = f->first,
                           .latest = NS_NEVER,
                           .unanswered = NS_NEVER,
                           .skipped = NS_NEVER,
                           .nak_lost = NS_NEVER,
                           .slow_from = NS_NEVER,
                           .cm_from = NS_NEVER,
                           .start_mask = qp->req.msg_mask,
                           .reliable = qp_is_reliable(qp->type)};

    w.start = calloc((size_t)w.start_mask + 1, sizeof *w.start);
    if (!w.start || f->first == NS_NEVER)
        t->failed |= !w.start;
    else {
        for (size_t i = 0; i < f->n; i++)
            step(&w, &f->ev[i]);
        ends(&w);
    }
    free(w.start);
}
