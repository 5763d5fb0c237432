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

/* The requester has gone back; the retransmission is not sent yet. */
struct went_back {
    bool on;
    uint8_t why;       /* enum eff_reason */
    ns_t at, latest;   /* when, and the packet of the direction before */
    ns_t lost;         /* sequence NAK: when the missing frame was sent */
    uint32_t incident; /* number */
};
/* PSNs sent before are retransmitted. */
struct resend {
    bool on;
    bool responses; /* READ: until response `until` arrives */
    ns_t from;
    uint64_t request; /* serial of the first one */
    uint32_t until;
    uint32_t incident;
};

struct walk {
    struct truth *t;
    const struct truth_flow *f;
    struct truth_spans *out;
    struct truth_requests *done;
    unsigned conn, host;
    ns_t rtt;    /* shortest round trip of the connection */
    ns_t at;     /* time of the event before */
    ns_t latest; /* time of the packet of the direction before; NS_NEVER: none */
    bool busy;   /* after the event before */
    bool dead;   /* the queue pair has failed */
    ns_t busy_since;
    uint64_t response; /* serial of the latest response */
    uint64_t sent;     /* serial of the latest request; 0: none */
    bool any_response;
    uint32_t newest; /* with any_response: PSN of the newest READ response or ATOMIC ACK */
    struct went_back back;
    struct resend resend;
    uint32_t incident;   /* number of the open one; 0: none */
    uint32_t previous;   /* number of the latest one; 0: none */
    unsigned tries[2];   /* timers expired without progress: ACK timeout, RNR */
    ns_t unanswered;     /* when the first ACK timeout without progress expired; NS_NEVER: none has */
    ns_t cm_from, cm_to; /* connection management, before or after the requests; NS_NEVER: none */
    bool cm_closing;
    ns_t *start; /* of work requests, a ring: first packet */
    uint32_t start_mask;
    enum ep_wait wait;                   /* why the requester sends nothing */
    ns_t wait_from;                      /* since when that is billed */
    uint32_t wait_bill[EP_WAIT_CUT + 1]; /* incidents of the direction; 0: none yet */
    ns_t slow_from, slow_until;          /* the responder is slow; slow_from NS_NEVER: it is not */
    size_t pause;                        /* the first pause that is not over */
    uint32_t pause_bill;                 /* incident of pause `billed`; 0: none yet */
    size_t pause_billed;
    uint32_t begun, head; /* work requests begun, and complete */
    bool reliable;
};

static struct truth_incident *incident_of(const struct walk *w, uint32_t number)
{
    return &w->t->incidents[number - 1];
}

static void paint(struct walk *w, enum time_state state, ns_t from, ns_t to, uint32_t incident)
{
    truth_paint(w->t, w->out, state, from, to, incident);
}

/* Number of a new incident; 0: no memory. */
static uint32_t incident_new(struct walk *w, enum cause cause, const struct truth_event *e, uint64_t frame)
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

/* --- Waits without a loss --------------------------------------------------------------------- */

/* Whether the connection of request `serial` sent another one since request `from`. */
static bool had_turn(const struct truth *t, uint64_t from, uint64_t serial)
{
    const struct truth_frame *f = truth_frame(t, serial);

    for (uint64_t i = from; i < serial; i++) {
        const struct truth_frame *g = truth_frame(t, i);
        if (g->from == f->from && g->conn == f->conn && g->request)
            return true;
    }
    return false;
}

/* When the requester would have sent without CNPs: its port is free at w->wait_from, and each other connection of its
 * host that sends meanwhile has a turn first. To wait for those is not to wait for CNPs: queue pairs that fill a link
 * together send at the same times if each of them is slowed down to its share, and no tap tells a quarter
 * of a frame's time from that of the responses that pass the port meanwhile. */
static ns_t its_turn(const struct walk *w, const struct truth_event *e)
{
    ns_t at = w->wait_from, least = w->sent ? sim_frame_time(w->t->s, truth_frame(w->t, w->sent)->len) / 4 : 0;

    for (uint64_t i = w->sent + 1; w->sent && i <= w->t->n_frames && at < e->at; i++) {
        const struct truth_frame *f = truth_frame(w->t, i);
        if (f->sent >= e->at)
            break;
        if (f->from == w->host && f->sent >= w->wait_from && !had_turn(w->t, w->sent, i))
            at += sim_frame_time(w->t->s, f->len);
    }
    return e->at - at > least ? at : e->at;
}

/* The requester stops waiting for something other than a response. */
static void wait_ends(struct walk *w, const struct truth_event *e)
{
    static const struct {
        uint8_t state, cause;
    } as[] = {[EP_WAIT_DEPTH] = {TIME_READ_DEPTH, CAUSE_READ_DEPTH},
              [EP_WAIT_CREDIT] = {TIME_CREDIT, CAUSE_CREDIT_WAIT},
              [EP_WAIT_CUT] = {TIME_THROTTLED, CAUSE_THROTTLED}};
    uint32_t *bill = &w->wait_bill[w->wait];
    bool counts = w->wait != EP_WAIT_DEPTH || e->at - w->wait_from >= w->rtt / 2;

    if (w->wait == EP_WAIT_CUT)
        w->wait_from = its_turn(w, e);
    if (w->wait == EP_WAIT_NONE || w->wait_from >= e->at || !counts)
        return;
    if (!*bill)
        *bill = incident_new(w, (enum cause)as[w->wait].cause, e, 0);
    paint(w, (enum time_state)as[w->wait].state, w->wait_from, e->at, *bill);
}

/* If the spacing after CNPs ended without a request, there was none that it held back. */
static void wait_begins(struct walk *w, const struct truth_event *e)
{
    if (w->wait != EP_WAIT_CUT)
        wait_ends(w, e);
    w->wait = (enum ep_wait)e->why;
    w->wait_from = e->other;
}

/* A request is sent, or the queue pair fails. */
static void wait_over(struct walk *w, const struct truth_event *e)
{
    wait_ends(w, e);
    w->wait = EP_WAIT_NONE;
}

/* A response arrives: if READs limit the requester, its wait starts again. */
static void wait_goes_on(struct walk *w, const struct truth_event *e)
{
    if (w->wait != EP_WAIT_DEPTH)
        return;
    wait_ends(w, e);
    w->wait_from = e->at;
}

static void slow_begins(struct walk *w, const struct truth_event *e)
{
    if (w->slow_from == NS_NEVER)
        w->slow_from = e->at;
    w->slow_until = e->other;
}

/* The first response after the responder was slow: the time by which it was delayed, since the last packet of the
 * direction. */
static void slow_ends(struct walk *w, const struct truth_event *e, const struct truth_frame *f)
{
    ns_t from = w->slow_from + (e->at - f->sent);

    if (w->slow_from == NS_NEVER || f->sent < w->slow_until)
        return;
    if (w->latest != NS_NEVER && from < w->latest)
        from = w->latest;
    if (w->busy && e->at - from >= w->rtt / 2)
        paint(w, TIME_PEER_SLOW, from, e->at, incident_new(w, CAUSE_PEER_SLOW, e, 0));
    w->slow_from = NS_NEVER;
}

/* Number of the incident of pause `i`. */
static uint32_t bill_of_pause(struct walk *w, const struct truth_event *e, size_t i)
{
    if (!w->pause_bill || w->pause_billed != i)
        w->pause_bill = incident_new(w, CAUSE_PAUSE, e, 0);
    w->pause_billed = i;
    return w->pause_bill;
}

/* Paused time from `from` to event `e`; no packet of the direction was seen in between. */
static void take_pauses(struct walk *w, const struct truth_event *e, ns_t from)
{
    const struct truth *t = w->t;

    while (w->pause < t->n_pauses && t->pauses[w->pause].to <= from)
        w->pause++;
    for (size_t i = w->pause; i < t->n_pauses && t->pauses[i].from < e->at; i++) {
        ns_t a = t->pauses[i].from > from ? t->pauses[i].from : from;
        ns_t b = t->pauses[i].to < e->at ? t->pauses[i].to : e->at;
        if (a < b)
            paint(w, TIME_PAUSED, a, b, bill_of_pause(w, e, i));
    }
}

/* --- Time without trouble --------------------------------------------------------------------- */

/* Time since the event before: idle, or transfer until a longer gap is found. */
static void pass(struct walk *w, ns_t now)
{
    paint(w, w->busy ? TIME_TRANSFER : TIME_IDLE, w->at, now, 0);
    w->at = now;
}

/* A packet of the direction: a gap of half a round trip or more since the packet before was time waiting for a
 * response. */
static void packet(struct walk *w, const struct truth_event *e)
{
    ns_t from = w->latest, now = e->at;

    if (w->busy && from < w->busy_since)
        from = w->busy_since;
    if (w->busy && from != NS_NEVER && now - from >= w->rtt / 2) {
        paint(w, TIME_RESPONSE, from, now, 0);
        take_pauses(w, e, from);
    }
    w->latest = now;
}

static void set_busy(struct walk *w, bool busy, ns_t now)
{
    if (busy && !w->busy)
        w->busy_since = now;
    w->busy = busy;
}

/* --- Loss, timeouts, RNR ---------------------------------------------------------------------- */

static void resend_ends(struct walk *w, ns_t now)
{
    if (w->resend.on)
        paint(w, TIME_LOSS_RESEND, w->resend.from, now, w->resend.incident);
    w->resend.on = false;
}

/* Time since the requester went back, until the retransmission or the failure. */
static void back_ends(struct walk *w, ns_t now)
{
    const struct went_back *b = &w->back;

    if (!b->on)
        return;
    if (b->why == WHY_TIMEOUT)
        paint(w, TIME_ACK_TIMEOUT, b->latest, now, b->incident);
    else if (b->why == WHY_RNR_NAK)
        paint(w, TIME_RNR, b->at, now, b->incident);
    else
        paint(w, TIME_LOSS_RETRANSMISSION, b->at, now, b->incident);
    if (b->why == WHY_SEQUENCE_NAK && b->lost != NS_NEVER)
        paint(w, TIME_LOSS_NAK, b->lost, b->at, b->incident);
    w->back.on = false;
}

/* The incident of a retransmission: the open one unless there was progress since it began. */
static uint32_t incident_for(struct walk *w, const struct truth_event *e, uint64_t *frame)
{
    enum cause cause = truth_blame(w->t, w->conn, w->host, e, w->response, frame);
    struct truth_incident *open = w->incident ? incident_of(w, w->incident) : NULL;

    if (cause == CAUSE_COUNT && w->previous)
        w->incident = w->previous;
    else if (cause == CAUSE_COUNT)
        cause = CAUSE_CANNOT_TELL;
    if (!w->incident || (open && (open->cause == CAUSE_RNR) != (cause == CAUSE_RNR)))
        w->incident = incident_new(w, cause, e, *frame);
    else if (cause == CAUSE_MTU_BLACK_HOLE)
        open->cause = (uint8_t)cause;
    w->previous = w->incident;
    return w->incident;
}

static void timer_ran_out(struct walk *w, const struct truth_event *e)
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

static void goes_back(struct walk *w, const struct truth_event *e)
{
    uint64_t frame = 0;
    uint32_t incident;

    back_ends(w, e->at);
    resend_ends(w, e->at);
    w->slow_from = NS_NEVER; /* a response, if it comes, answers the retransmission */
    incident = incident_for(w, e, &frame);
    if (!incident)
        return;
    if (e->why == WHY_TIMEOUT)
        incident_of(w, incident)->timeouts++;
    if (e->why == WHY_TIMEOUT && w->unanswered == NS_NEVER)
        w->unanswered = e->at;
    w->back = (struct went_back){.on = true,
                                 .why = e->why,
                                 .at = e->at,
                                 .latest = w->latest,
                                 .lost = frame ? truth_frame(w->t, frame)->sent : NS_NEVER,
                                 .incident = incident};
}

static void progress(struct walk *w, const struct truth_event *e)
{
    w->incident = 0;
    w->tries[0] = w->tries[1] = 0;
    w->unanswered = NS_NEVER;
    w->back.on &= e->going; /* else nothing remains to be retransmitted */
    if (!e->going && (!w->resend.responses || e->una == e->next))
        resend_ends(w, e->at);
}

static void complete(struct walk *w, const struct truth_event *e)
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

static void effect(struct walk *w, const struct truth_event *e)
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

static void retransmitted(struct walk *w, const struct truth_event *e, const struct truth_frame *f)
{
    uint32_t incident = w->back.incident;

    back_ends(w, e->at);
    w->resend = (struct resend){.on = true,
                                .responses = f->class == PC_READ && w->any_response && psn_diff(w->newest, f->psn) >= 0,
                                .from = e->at,
                                .request = e->frame,
                                .until = w->newest,
                                .incident = incident};
}

static void sent(struct walk *w, const struct truth_event *e)
{
    const struct truth_frame *f = truth_frame(w->t, e->frame);

    wait_over(w, e);
    packet(w, e);
    w->sent = e->frame;
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

/* Whether response `f` was sent when the retransmission had arrived, or is the next one that the requester accepts:
 * others that were under way come in vain. */
static bool answers_resend(const struct walk *w, const struct truth_event *e, const struct truth_frame *f)
{
    return f->sent >= truth_frame(w->t, w->resend.request)->arrived || f->psn == e->una;
}

static void arrived(struct walk *w, const struct truth_event *e)
{
    const struct truth_frame *f = truth_frame(w->t, e->frame);

    slow_ends(w, e, f);
    wait_goes_on(w, e);
    packet(w, e);
    if (f->arrived == NS_NEVER || f->arrived > e->at)
        return; /* damaged */
    w->response = e->frame;
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

static void managed(struct walk *w, const struct truth_event *e)
{
    const struct truth_frame *f = truth_frame(w->t, e->frame);
    bool closing = f->cm == CM_DREQ || f->cm == CM_DREP;

    if (closing != w->cm_closing) {
        paint(w, TIME_CM, w->cm_from, w->cm_to, 0);
        w->cm_from = NS_NEVER;
        w->cm_closing = closing;
    }
    if (w->cm_from == NS_NEVER)
        w->cm_from = e->at;
    w->cm_to = e->at;
}

/* How often the connections of the requester's host tried in vain since `since`, as far as frames show it: requests
 * sent again on timeout, and DREQs sent again behind such a request. */
static unsigned vain_tries(const struct walk *w, ns_t since)
{
    unsigned n = 0, dreqs = 0;

    for (size_t i = w->host; i < w->t->n_flows; i += NET_HOSTS) {
        const struct truth_flow *f = &w->t->flows[i];
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

/* True for an incident that was never repaired: the peer is not heard any more, and at least two tries were in vain.
 * Where only one was, its response may have been lost, and no tap tells that the peer is dead. */
static bool peer_is_dead(const struct walk *w)
{
    ns_t heard = w->t->heard[w->host];

    return w->unanswered != NS_NEVER && (heard == NS_NEVER || heard < w->unanswered) &&
           vain_tries(w, heard == NS_NEVER ? 0 : heard) >= 2;
}

static void failed(struct walk *w, const struct truth_event *e)
{
    enum cause cause = truth_cause_of((enum wc_status)e->why);
    struct truth_incident *open;

    wait_over(w, e);
    resend_ends(w, e->at);
    back_ends(w, e->at);
    if (!w->incident)
        w->incident = incident_new(w, cause, e, 0);
    if (!w->incident)
        return;
    open = incident_of(w, w->incident);
    if (open->cause != CAUSE_MTU_BLACK_HOLE)
        open->cause = (uint8_t)cause;
    paint(w, TIME_GIVEN_UP, e->at, w->f->last, w->incident);
    w->busy = false;
    w->dead = true;
}

/* When the oldest PSN that was never acknowledged was sent first. */
static ns_t first_sent(const struct walk *w, uint32_t psn)
{
    for (size_t i = w->f->n; i > 0; i--) {
        const struct truth_event *e = &w->f->ev[i - 1];
        const struct truth_frame *f = e->what == AT_SENT ? truth_frame(w->t, e->frame) : NULL;
        if (f && !f->repeat && psn_in(psn, f->psn, f->span))
            return e->at;
    }
    return w->f->last;
}

static void ends(struct walk *w)
{
    ns_t from, heard = w->t->heard[w->host];

    pass(w, w->f->last);
    resend_ends(w, w->f->last);
    if (w->back.why == WHY_RNR_NAK)
        back_ends(w, w->f->last);
    if (w->cm_from != NS_NEVER)
        paint(w, TIME_CM, w->cm_from, w->cm_to, 0);
    if (!peer_is_dead(w) || !w->incident)
        return;
    from = first_sent(w, incident_of(w, w->incident)->psn);
    if (heard != NS_NEVER && from < heard)
        from = heard;
    paint(w, TIME_PEER_DEAD, from, w->f->last, w->incident);
    if (incident_of(w, w->incident)->cause != CAUSE_MTU_BLACK_HOLE)
        incident_of(w, w->incident)->cause = CAUSE_SILENT_PEER;
}

/* --- All events ------------------------------------------------------------------------------- */

/* The shortest transit time of a frame of `host`, of connection `conn`. */
static ns_t shortest_way(const struct truth *t, unsigned conn, unsigned host)
{
    ns_t best = NS_NEVER;

    for (size_t i = 0; i < t->n_frames; i++) {
        const struct truth_frame *f = &t->frames[i];
        if (f->conn == conn && f->from == host && f->arrived != NS_NEVER && f->arrived - f->sent < best)
            best = f->arrived - f->sent;
    }
    return best == NS_NEVER ? 0 : best;
}

static void step(struct walk *w, const struct truth_event *e)
{
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
        wait_begins(w, e);
        break;
    case AT_SLOW:
        slow_begins(w, e);
        break;
    case AT_POSTED:
        break;
    }
    if (!w->dead)
        set_busy(w, e->busy, e->at);
}

void truth_walk(struct truth *t, unsigned conn, unsigned host, struct truth_spans *out, struct truth_requests *done)
{
    const struct truth_flow *f = &t->flows[(size_t)(conn - 1) * NET_HOSTS + host];
    const struct qp *qp = ep_qp(t->s->ep[host], t->s->conn[conn - 1]->qp[host]);
    struct walk w = {.t = t,
                     .f = f,
                     .out = out,
                     .done = done,
                     .conn = conn,
                     .host = host,
                     .rtt = shortest_way(t, conn, 0) + shortest_way(t, conn, 1),
                     .at = f->first,
                     .latest = NS_NEVER,
                     .unanswered = NS_NEVER,
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
