/* layer 3 (sim): the truth of a simulation: waits of a requester without a loss: READs, credits, CNPs, slow responses,
 * pauses. */
#include "gen/sim/truth_impl.h"

/* Whether the connection of request `serial` sent another one since request `from`. */
static bool had_turn(const struct truth *t, uint64_t from, uint64_t serial)
{
    const struct truth_frame *f = truth_frame(t, serial);

    for (uint64_t i = from; i < serial; i++) {
        const struct truth_frame *g = truth_frame(t, i);
        if (g->host == f->host && g->conn == f->conn && g->request)
            return true;
    }
    return false;
}

/* When the requester would have sent without CNPs: its port is free at w->wait_from, and each other connection of its
 * host that sends meanwhile has one turn first. Waiting for those turns is not waiting because of CNPs: queue pairs
 * that share a link send at the same times when each is slowed down to its share. Up to a quarter of a frame's time
 * counts as on time, as no tap can tell it from the responses that pass the port meanwhile.
 *
 *   port          own  A  B  own            A and B have one turn each: on time
 *   port          own  A  B  ......  own    the time after B is due to CNPs
 */
static ns_t its_turn(const struct truth_walk *w, const struct truth_event *e)
{
    unsigned host = truth_host_of(w->t, w->conn, w->host);
    ns_t at = w->wait_from, least = w->sent ? sim_frame_time(w->t->s, host, truth_frame(w->t, w->sent)->len) / 4 : 0;

    for (uint64_t i = w->sent + 1; w->sent && i <= w->t->n_frames && at < e->at; i++) {
        const struct truth_frame *f = truth_frame(w->t, i);
        if (f->sent >= e->at)
            break;
        if (f->host == host && f->sent >= w->wait_from && !had_turn(w->t, w->sent, i))
            at += sim_frame_time(w->t->s, host, f->len);
    }
    return e->at - at > least ? at : e->at;
}

/* Whether the latest request has left the port at `at`, or `quarters` of the time that it takes later: before, nothing
 * can be sent, with or without credits. */
static bool has_left(const struct truth_walk *w, ns_t at, unsigned quarters)
{
    const struct truth_frame *f = w->sent ? truth_frame(w->t, w->sent) : NULL;
    ns_t takes = f ? sim_frame_time(w->t->s, f->host, f->len) : 0;

    return !f || at > f->sent + takes + takes * quarters / 4;
}

/* The requester ends a wait for the READ depth, credits or the pacer. If a response came meanwhile, it has ended the
 * wait; after it, the requester waited for its port only. */
static void wait_ends(struct truth_walk *w, const struct truth_event *e)
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
    if (w->wait != EP_WAIT_CUT && w->wait_answered && e->what != AT_ARRIVED)
        return;
    if (w->wait == EP_WAIT_CREDIT && !has_left(w, e->at, 1))
        return; /* as in its_turn(): no tap can tell that it was late */
    if (w->wait == EP_WAIT_NONE || w->wait_from >= e->at || !counts)
        return;
    if (!*bill)
        *bill = truth_incident_new(w, (enum cause)as[w->wait].cause, e, 0);
    truth_walk_paint(w, (enum time_state)as[w->wait].state, w->wait_from, e->at, *bill);
}

/* When a wait began that the endpoint reported at `e`, after it had looked for work: if work was already posted then,
 * the requester waited already while its latest request, and others after it, were on the port. A response in between
 * starts a new wait for the READ depth. */
static ns_t waits_since(const struct truth_walk *w, const struct truth_event *e)
{
    const struct truth_frame *f = w->sent ? truth_frame(w->t, w->sent) : NULL;
    ns_t since = f && e->why == EP_WAIT_CREDIT ? f->sent : w->latest;

    if (!f || e->why == EP_WAIT_CUT)
        return e->other;
    return w->posted <= since || !has_left(w, e->at, 0) ? since : e->other;
}

void truth_wait_begins(struct truth_walk *w, const struct truth_event *e)
{
    if (w->wait != EP_WAIT_CUT)
        wait_ends(w, e);
    w->wait = (enum ep_wait)e->why;
    w->wait_from = waits_since(w, e);
    w->wait_answered = false;
}

void truth_wait_over(struct truth_walk *w, const struct truth_event *e)
{
    wait_ends(w, e);
    w->wait = EP_WAIT_NONE;
}

void truth_wait_goes_on(struct truth_walk *w, const struct truth_event *e)
{
    bool held = w->wait == EP_WAIT_DEPTH ? e->full : e->spent; /* by the responses before */

    if (w->wait != EP_WAIT_DEPTH && w->wait != EP_WAIT_CREDIT)
        return;
    if (w->wait_answered && !held) { /* the one before let it go on: since then it waits for its port */
        w->wait = EP_WAIT_NONE;
        return;
    }
    wait_ends(w, e);
    w->wait_from = e->at;
    w->wait_answered = true;
}

#define AT_ONCE (5 * NS_PER_US) /* a requester that may go on does so within this time, or a round trip */

/* Whether a request is sent at once after a limit was lifted at `lifted`, and its port was free. */
static bool is_at_once(const struct truth_walk *w, const struct truth_event *e, ns_t lifted)
{
    unsigned host = truth_host_of(w->t, w->conn, w->host);
    ns_t since = lifted;

    for (uint64_t i = e->frame - 1; i > 0; i--) {
        const struct truth_frame *f = truth_frame(w->t, i);
        ns_t over = f->sent + sim_frame_time(w->t->s, f->host, f->len);
        if (f->host != host)
            continue;
        since = over > since ? over : since;
        break;
    }
    return e->at - since <= (w->rtt > AT_ONCE ? w->rtt : AT_ONCE);
}

void truth_undecided_pass(struct truth_walk *w, const struct truth_event *e)
{
    const struct truth_frame *f = e->what == AT_SENT ? truth_frame(w->t, e->frame) : NULL;
    ns_t from = w->latest == NS_NEVER ? w->at : w->latest;

    if (w->full && (e->what == AT_SENT || e->what == AT_ARRIVED) && e->at - from >= w->rtt / 2)
        w->maybe[0] += e->at - from;
    if (w->spent)
        w->maybe[1] += e->at - w->at;
    w->lifted[0] = w->full ? e->at : w->lifted[0];
    w->lifted[1] = w->spent ? e->at : w->lifted[1];
    w->full = e->full;
    w->spent = e->spent;
    if (!f)
        return;
    if ((f->class == PC_READ || f->class == PC_ATOMIC) && is_at_once(w, e, w->lifted[0]))
        w->done->undecided[TIME_READ_DEPTH] += w->maybe[0];
    if (f->class == PC_SEND && is_at_once(w, e, w->lifted[1]))
        w->done->undecided[TIME_CREDIT] += w->maybe[1];
    w->maybe[0] = w->maybe[1] = 0;
}

void truth_slow_begins(struct truth_walk *w, const struct truth_event *e)
{
    if (w->slow_from == NS_NEVER)
        w->slow_from = e->at;
    w->slow_until = e->other;
}

void truth_slow_ends(struct truth_walk *w, const struct truth_event *e, const struct truth_frame *f)
{
    ns_t again = w->resend.request ? truth_frame(w->t, w->resend.request)->arrived : NS_NEVER;
    ns_t from = w->slow_from;

    if (from == NS_NEVER || f->sent < w->slow_until)
        return;
    if (again != NS_NEVER && again > from && again < f->sent)
        from = again; /* before that arrival the responder had no request to respond to */
    from += e->at - f->sent;
    if (w->latest != NS_NEVER && from < w->latest)
        from = w->latest;
    if (w->busy && e->at - from >= w->rtt / 2)
        truth_walk_paint(w, TIME_PEER_SLOW, from, e->at, truth_incident_new(w, CAUSE_PEER_SLOW, e, 0));
    w->slow_from = NS_NEVER;
}

/* Number of the incident of pause `i`. */
static uint32_t bill_of_pause(struct truth_walk *w, const struct truth_event *e, size_t i)
{
    if (!w->pause_bill || w->pause_billed != i)
        w->pause_bill = truth_incident_new(w, CAUSE_PAUSE, e, 0);
    if (w->pause_bill)
        w->t->incidents[w->pause_bill - 1].paused = w->t->pauses[i].host;
    w->pause_billed = i;
    return w->pause_bill;
}

/* Whether a pause stops the class of frames of the direction at one of its ends. */
static bool concerns(const struct truth_walk *w, const struct truth_pause *p, const struct truth_event *e)
{
    unsigned priority = e->frame ? truth_frame(w->t, e->frame)->priority : 0;

    return p->classes >> priority & 1 &&
           (p->host == truth_host_of(w->t, w->conn, 0) || p->host == truth_host_of(w->t, w->conn, 1));
}

#define PAUSE_LEAST (2 * NS_PER_US) /* shorter waits look like the spacing of packets */

void truth_take_pauses(struct truth_walk *w, const struct truth_event *e, ns_t from)
{
    const struct truth_frame *last = w->sent ? truth_frame(w->t, w->sent) : NULL;
    const struct truth *t = w->t;

    if (last && last->sent == from) /* meanwhile its port sends it */
        from += sim_frame_time(t->s, last->host, last->len);
    while (w->pause < t->n_pauses && t->pauses[w->pause].to <= from)
        w->pause++;
    for (size_t i = w->pause; i < t->n_pauses && t->pauses[i].from < e->at; i++) {
        ns_t a = t->pauses[i].from > from ? t->pauses[i].from : from;
        ns_t b = t->pauses[i].to < e->at ? t->pauses[i].to : e->at;
        if (b - a >= PAUSE_LEAST && concerns(w, &t->pauses[i], e))
            truth_walk_paint(w, TIME_PAUSED, a, b, bill_of_pause(w, e, i));
    }
}
