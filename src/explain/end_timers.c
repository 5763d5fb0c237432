/* layer 3 (explain): at the end of a capture: spurious ACK timeouts, and packets that were only reordered. */
#include "src/explain/explain_impl.h"
#include "src/transport/verbs.h"

/* True if the ACK that followed the only retransmission of a packet came too soon to be for it. */
static bool is_acked_too_soon(const struct incident *st, const struct flow_notes *t)
{
    bool once = st->once && st->n_frames == 3 && !st->silence;

    return once && st->arrived && st->arrival < t->responses.path_trip / AT_ONCE;
}

/* A packet was NAKed, then acknowledged within less than a quarter of the shortest round trip after its retransmission:
 * that ACK is for the original, which was reordered and not lost. The responder dropped the packets that overtook it,
 * so their NAKs are no further loss.
 *
 *   request, tap        5 6 7          5'
 *   request, responder  6 5 7                        5 arrives after 6
 *   response                NAK 5       ACK 5        too soon to acknowledge 5'
 */
void end_overtaken(struct explainer *x, uint32_t flow, const struct flow_notes *t)
{
    struct incident *late = NULL;

    for (uint32_t i = 0; i < x->n; i++) {
        struct incident *st = &x->incidents[i];
        bool lost_behind = !st->moot && st->cause == CAUSE_PACKET_LOSS && st->place == PLACE_AFTER;
        if (!lost_behind || st->flow != flow || st->n_frames < 3)
            continue;
        if (late && psn_in(st->psn, late->psn, (late->end - late->psn) & PSN_MASK) && st->frames[1] >= late->arrived) {
            st->moot = true;
            late->again += st->again;
            late->lost = st->start + st->lost - late->start;
            incident_frame(late, ROLE_NAK, st->frames[1]);
            incident_frame(late, ROLE_RETRANSMISSION, st->frames[2]);
        } else if (is_acked_too_soon(st, t) && !explain_lost_between(x, flow, st->psn)) {
            late = st;
            st->cause = CAUSE_REORDER;
            incident_is(st, SAY(OVERTAKEN_SOON, .psn = st->psn, .lost = st->frames[0], .nak = st->frames[1],
                                .again = st->frames[2], .answer = st->arrived, .time = st->arrival));
        }
    }
}

/* A request retransmitted on ACK timeout that was acknowledged afterwards. */
static bool is_late_answered(const struct incident *st)
{
    return (st->cause == CAUSE_LOST_LAST_PACKET || (st->cause == CAUSE_PACKET_LOSS && st->unanswered)) && !st->moot &&
           st->arrived && st->silence > 0;
}

/* True if the response came too soon after the retransmission to answer it (less than a quarter of the shortest round
 * trip): it answers the original, so the ACK timeout was spurious. */
static bool is_early(const struct incident *st, const struct flow_notes *t)
{
    return is_late_answered(st) && st->silence >= timer_earliest(ack_timeout(1)) &&
           st->arrival < t->responses.path_trip / AT_ONCE;
}

/* True if each request that solicits a response has one: nothing was lost on either side of the tap. */
static bool is_each_answered(const struct flow_notes *t, const struct req_dir *h)
{
    return t->requests.soliciting == t->requests.answers && (h->from_start || h->began == BEGAN_SEEN) && !h->seq_naks &&
           !h->rnr_naks && !h->fatal_naks;
}

/* True if the ACK timeout was shorter than the response took, and responses take as long at the end of the capture. */
static bool is_slower(const struct incident *st, const struct flow_notes *t)
{
    ns_t took = t->responses.last_ts - t->requests.solicited_ts;

    return is_late_answered(st) && !is_early(st, t) && st->lost > st->silence && took > st->lost / 4 * 3 &&
           took < st->lost / 4 * 5;
}

/* The ACK timeout is shorter than the round trip: every copy is answered, but the first response comes after some
 * retransmissions. Retransmissions that follow the response at a tap between the ends belong to the same incident. */
void end_slower(struct explainer *x, uint32_t flow, struct flow_notes *t, const struct req_dir *h)
{
    struct incident *early = NULL;
    bool lost;

    for (uint32_t i = 0; i < x->n && is_each_answered(t, h); i++) {
        struct incident *st = &x->incidents[i];
        if (st->flow != flow)
            continue;
        lost = !st->moot && (st->cause == CAUSE_LOST_ACK || st->cause == CAUSE_LOST_READ_RESPONSE);
        if (early && lost && psn_in(st->psn, early->psn, (early->end - early->psn) & PSN_MASK)) {
            st->moot = true;
            early->again += st->again;
            if (t->hypotheses.not_received == i)
                t->hypotheses.not_received = incident_number(x, early);
        } else if (is_slower(st, t)) {
            early = st;
            st->cause = CAUSE_EARLY_TIMEOUT;
            incident_frame(st, ROLE_ANSWER, st->arrived);
            incident_is(st, SAY(SLOW_ANSWER, .psn = st->psn, .lost = st->frames[0], .answer = st->arrived,
                                .time = st->lost, .time2 = st->silence));
        }
    }
}

/* Spurious ACK timeouts: one incident, however many there were. */
void end_early(struct explainer *x, uint32_t flow, const struct flow_notes *t)
{
    struct incident *first = NULL;
    uint32_t times = 1;
    bool early;

    for (uint32_t i = 0; i < x->n; i++) {
        struct incident *st = &x->incidents[i];
        early = st->flow == flow && is_early(st, t) && !explain_lost_among(x, flow, st->psn, st->end);
        if (st->flow != flow || !(early || st->cause == CAUSE_EARLY_TIMEOUT))
            continue;
        if (first) {
            first->again += st->again;
            first->lost += st->lost;
            incident_frame(first, ROLE_LOST, st->frames[0]);
            st->moot = true;
            times++;
            continue;
        }
        first = st;
        if (!early)
            continue;
        st->cause = CAUSE_EARLY_TIMEOUT;
        st->place = PLACE_UNKNOWN;
        st->n_frames = 1;
        incident_frame(st, ROLE_RETRANSMISSION, st->back);
        incident_frame(st, ROLE_ANSWER, st->arrived);
        incident_is(st, SAY(EARLY, .psn = st->psn, .lost = st->frames[0], .answer = st->arrived, .time = st->lost,
                            .time2 = st->arrival, .time3 = t->responses.path_trip));
    }
    if (times > 1)
        incident_add(first, SAY(SAME_AGAIN, .n = times - 1));
}

/* The packet retransmitted last: its responses were not captured, so perhaps it had none. */
static void note_not_received(struct explainer *x, struct incident *st, struct req_dir *h)
{
    const struct sent *s = req_dir_sent(h, st->psn);

    if (!s || s->copies < 3 || observer_tries(x->observer, h->flow)->next != h->next ||
        (s->ts - s->ts_first) / (s->copies - 1) < timer_earliest(ack_timeout(1)))
        return;
    incident_add(st, SAY(SPENT_UNHEARD, .n = s->copies, .again = s->last));
}

/* Not one response was captured. */
void cannot_tell(struct explainer *x, struct incident *st, struct req_dir *h)
{
    bool last = h && st == incident_at(x, x->notes[st->flow]->hypotheses.open);

    st->cause = CAUSE_CANNOT_TELL;
    incident_is(st, SAY(ONE_DIRECTION, .psn = st->psn, .lost = st->frames[0], .again = st->back, .time = st->silence));
    if (last)
        note_not_received(x, st, h);
}
