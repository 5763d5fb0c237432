/* layer 3 (explain): what lost time that no incident explains is, by what ended it: causes, sentences, frames. */
#include "src/conn/retries.h"
#include "src/explain/explain_impl.h"

const struct bill_kind bill_kinds[TROUBLES] = {
    [TROUBLE_SEQ_NAK] = {CAUSE_PACKET_LOSS, SENTENCE_TIME_NAK, false},
    [TROUBLE_IMPLIED] = {CAUSE_LOST_READ_RESPONSE, SENTENCE_TIME_IMPLIED, false},
    [TROUBLE_RNR] = {CAUSE_RNR, SENTENCE_TIME_RNR, false},
    [TROUBLE_TIMEOUT] = {CAUSE_LOST_LAST_PACKET, SENTENCE_TIME_TIMEOUT, false},
    [TROUBLE_DEAD] = {CAUSE_SILENT_PEER, SENTENCE_TIME_DEAD, false},
    [TROUBLE_REFUSED] = {CAUSE_OPERATION_ERROR, SENTENCE_TIME_REFUSED, false},
    [TROUBLE_SLOW] = {CAUSE_PEER_SLOW, SENTENCE_TIME_SLOW, true},
    [TROUBLE_PAUSE] = {CAUSE_PAUSE, SENTENCE_TIME_PAUSE, true},
    [TROUBLE_THROTTLED] = {CAUSE_THROTTLED, SENTENCE_TIME_THROTTLED, true},
    [TROUBLE_CREDIT] = {CAUSE_CREDIT_WAIT, SENTENCE_TIME_CREDIT, true},
    [TROUBLE_DEPTH] = {CAUSE_READ_DEPTH, SENTENCE_TIME_DEPTH, true},
    [TROUBLE_STOPPED] = {CAUSE_LOST_LAST_PACKET, SENTENCE_TIME_STOPPED, false},
};

static uint32_t depth_agreed(const struct explainer *x, uint32_t flow)
{
    const struct conn_params *c = &conn_flow_at(observer_conns(x->observer), flow)->params;

    return c->have_depth ? c->depth : 0;
}

bool bill_is_failure(const struct episode *e)
{
    return e->why == TROUBLE_DEAD || (e->why == TROUBLE_TIMEOUT && e->states[TIME_GIVEN_UP] > 0);
}

/* True if the requester used its last retry for the packet that the episode is about. */
static bool has_spent(const struct explainer *x, const struct episode *e)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), e->flow);
    const struct req_dir *h = observer_req_dir(x->observer, e->flow);

    return h && f->conn == e->conn && retries_spent(x->observer, h, &f->params);
}

/* No response comes sooner: to the request of this flow, or of others to that host. */
static ns_t least_trip(const struct explainer *x, const struct episode *e)
{
    const struct flow_notes *t = x->notes[e->flow];
    ns_t path = t ? t->responses.path_trip : -1;

    return path >= 0 && path < e->rtt ? path : e->rtt;
}

const struct bill_kind *bill_kind_of(const struct explainer *x, const struct episode *e)
{
    static const struct bill_kind no_reason = {CAUSE_CANNOT_TELL, SENTENCE_TIME_NO_REASON, false},
                                  rnr = {CAUSE_RNR, SENTENCE_TIME_RNR_UNSEEN, false},
                                  early = {CAUSE_EARLY_TIMEOUT, SENTENCE_TIME_EARLY, false},
                                  late = {CAUSE_EARLY_TIMEOUT, SENTENCE_TIME_LATE, false},
                                  spent = {CAUSE_RETRY_EXCEEDED, SENTENCE_TIME_SPENT, false},
                                  far = {CAUSE_READ_DEPTH, SENTENCE_TIME_DEPTH_FAR, true},
                                  stopped = {CAUSE_LOST_LAST_PACKET, SENTENCE_TIME_STOPPED_LOST, false},
                                  unsure = {CAUSE_LOST_LAST_PACKET, SENTENCE_TIME_STOPPED_UNSURE, false},
                                  ahead = {CAUSE_REORDER, SENTENCE_TIME_AHEAD, false};
    ns_t rtt;

    if (e->why == TROUBLE_RNR && !e->nak)
        return &rnr;
    if (bill_is_failure(e))
        return has_spent(x, e) ? &spent : &bill_kinds[TROUBLE_DEAD];
    if (e->why == TROUBLE_DEPTH && e->wait)
        return &far;
    if (e->why == TROUBLE_IMPLIED && e->ahead)
        return &ahead;
    if (e->why == TROUBLE_STOPPED && (e->others || e->timed))
        return e->others && e->timed ? &stopped : &unsure;
    if (e->why != TROUBLE_TIMEOUT)
        return &bill_kinds[e->why];
    if (e->wait < BILL_TIMER_LEAST)
        return &no_reason;
    rtt = least_trip(x, e);
    return e->wait < rtt - rtt / 8 ? &early : e->slow > 2 * rtt ? &late : &bill_kinds[e->why];
}

struct fact bill_fact(const struct explainer *x, const struct episode *e, const struct bill_kind *kind)
{
    return (struct fact){.sentence = (uint16_t)kind->sentence,
                         .psn = e->psn,
                         .lost = e->sent,
                         .instead = e->instead,
                         .nak = e->nak,
                         .again = e->back,
                         .answer = e->answer,
                         .time = e->wait ? e->wait : e->bill,
                         .time2 = e->why == TROUBLE_DEPTH ? e->wait : least_trip(x, e),
                         .time3 = e->slow,
                         .n = bill_is_failure(e) ? e->tries + 1 : e->others,
                         .m = e->why == TROUBLE_DEPTH ? depth_agreed(x, e->flow) : e->timed};
}

void bill_take_frames(struct incident *s, const struct episode *e)
{
    bool late = e->why >= TROUBLE_SLOW;                /* nothing that the tap saw was lost */
    bool answered = late || e->why == TROUBLE_IMPLIED; /* nor was the request: a response to it is missing */

    s->n_frames = 0;
    incident_frame(s, answered ? ROLE_EVIDENCE : ROLE_LOST, e->sent);
    incident_frame(s, ROLE_INSTEAD, e->instead);
    incident_frame(s, late ? ROLE_EVIDENCE : ROLE_NAK, e->nak);
    incident_frame(s, ROLE_RETRANSMISSION, e->back);
    incident_frame(s, ROLE_ANSWER, e->answer);
    s->own = s->n_frames;
}
