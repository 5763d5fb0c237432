/* layer 3 (explain): retransmitted READs and atomics: which part of the response was lost, corrupted or reordered. */
#include "dissect/pkt.h"
#include "src/explain/compare/taps.h"
#include "src/explain/explain_impl.h"
#include "src/transport/verbs.h"

#define SHORT_TIMER NS_PER_MS /* shortest ACK timeout assumed where none was captured */
#define LATEST      32        /* incidents to revise */

/* What is known of the response with PSN `psn`, which its requester lacks, since its latest request. */
struct response_status {
    const struct read_req *ask; /* the latest request for it */
    uint32_t psn;
    uint32_t seen; /* frame in which it passed the tap in order, 0: it did not */
    /* latest frame in which it passed the tap after a gap, or before the latest request for it; 0: none */
    uint32_t dropped;
    uint8_t place; /* enum place: where it was lost */
    /* PLACE_BEFORE: a response to a later PSN shows that it was sent, and no response to an earlier request for it can
     * be on its way */
    bool sure;
};

/* A READ response was lost after the tap: note the shortest time until the requester retransmits the READ. */
static void note_loop(const struct event *e, struct flow_notes *t, const struct response_status *f)
{
    ns_t took = e->p->frame->ts - response_slot(t, f->psn)->ts;

    if (f->place == PLACE_AFTER && !f->ask->again && (!t->responses.loop || took < t->responses.loop))
        t->responses.loop = took;
}

/* True if no response came for so long that none is on its way. */
static bool is_silent(const struct event *e)
{
    return e->p->frame->ts - e->h->rsp_ts >= (e->h->timeout ? ack_timeout(e->h->timeout) / 2 : SHORT_TIMER);
}

/* True if the responder has sent `psn` in response to request `a`, as later responses show; or most likely has, because
 * it had begun to respond before it was silent. Responses to earlier requests come first: a step back in PSN marks the
 * responses to a retransmitted READ. */
static bool was_sent(const struct event *e, const struct flow_notes *t, const struct read_req *a, uint32_t psn)
{
    if (!a->again)
        return (e->h->have_una && psn_diff(e->h->una, psn) > 0) || (a->rsp_first && is_silent(e));
    return t->responses.run_frame > a->frame && a->rsp_last >= t->responses.run_frame &&
           (psn_diff(t->responses.run_last, psn) > 0 || is_silent(e));
}

/* True if the response to a later PSN than `psn` proves that the responder sent that one, too. */
static bool is_skipped(const struct event *e, const struct flow_notes *t, const struct read_req *a, uint32_t psn)
{
    uint32_t latest = t->responses.run_last;

    if (a->again)
        return false;
    return (e->h->have_una && psn_diff(e->h->una, psn) > 0) || (latest != UINT32_MAX && psn_diff(latest, psn) > 0);
}

/* True if the retransmitted response in frame `seen` may have reached the requester: a later PSN had been acknowledged,
 * an earlier NAK made it go back to `psn`, it retransmitted sooner than it can have missed the response, or the
 * response before has not been retransmitted yet. */
static bool in_doubt(const struct event *e, const struct flow_notes *t, uint32_t psn, uint32_t seen)
{
    uint32_t last = psn_prev(psn);
    const struct read_req *before = req_dir_read(e->h, last, 0);
    bool soon = e->p->frame->ts - response_slot(t, psn)->ts < t->responses.loop / 2;

    return soon || response_slot(t, psn)->acked || (e->h->seq.have && e->h->seq.psn == psn && e->h->seq.frame < seen) ||
           (before && before->again && before->frame < seen && answer_frame(t, last) < before->frame);
}

static struct response_status status_of(const struct event *e, const struct flow_notes *t,
                                        const struct read_req *oldest, uint32_t psn)
{
    const struct read_req *latest = req_dir_read(e->h, psn, 0), *a = latest ? latest : oldest;
    uint32_t frame = answer_frame(t, psn), before = answer_frame(t, psn_prev(psn));
    /* an earlier PSN was retransmitted after it */
    bool behind = before > frame || (t->responses.run_frame > frame && psn_diff(t->responses.run_psn, psn) < 0);
    bool seen = frame > a->frame && !behind;
    bool forgotten = !frame && psn_diff(psn, psn_add(oldest->psn, oldest->got)) < 0;
    bool lost = !forgotten && (a->again || !frame) && was_sent(e, t, a, psn),
         doubt = seen && a->again && in_doubt(e, t, psn, frame);

    return (struct response_status){.ask = a,
                                    .psn = psn,
                                    .seen = seen ? frame : 0,
                                    .dropped = seen ? 0 : frame,
                                    .sure = frame <= a->frame && is_skipped(e, t, a, psn),
                                    .place = doubt  ? PLACE_UNKNOWN
                                             : seen ? PLACE_AFTER
                                             : lost ? PLACE_BEFORE
                                                    : PLACE_UNKNOWN};
}

/* Which response of the retransmitted READ `a` is missing: the one with the PSN of the retransmission. If that one was
 * captured in order, and this requester is not known to resume READs in the middle: the first response known to be
 * lost. */
static struct response_status missing_of(const struct event *e, const struct flow_notes *t, const struct read_req *a)
{
    uint32_t psn = e->p->bth.psn;
    struct response_status first = status_of(e, t, a, psn);

    if (psn != a->psn || !first.seen || t->responses.rests)
        return first;
    for (uint32_t i = 1; i < a->span && i < NOTED_RESPONSES; i++) {
        struct response_status f = status_of(e, t, a, psn_add(psn, i));
        if (f.place == PLACE_BEFORE)
            return f;
        if (f.place != PLACE_AFTER)
            break;
    }
    return first;
}

/* Whether the responses to the requests in `flow` are certainly those of its responder: a pair found by PSNs may be
 * wrong while other queue pairs of the two hosts use the same PSNs. */
static bool is_pair_sure(const struct explainer *x, uint32_t flow)
{
    struct conn_table *conns = observer_conns(x->observer);

    return conn_flow_at(conns, flow)->paired_by != PAIR_PSN || !conn_has_other(conns, flow);
}

/* No response to a READ or atomic was seen. A response to a later request proves that it was executed: RC executes in
 * order. */
static struct incident *report_unanswered(struct explainer *x, const struct event *e, const struct response_status *f)
{
    const struct read_req *a = f->ask;
    bool atomic = a->opcode != OP_READ_REQUEST, executed = f->place == PLACE_BEFORE;
    enum cause lost = e->why == BACK_SILENCE ? CAUSE_LOST_LAST_PACKET : CAUSE_PACKET_LOSS,
               cause = !executed ? lost
                       : atomic  ? CAUSE_LOST_ACK
                                 : CAUSE_LOST_READ_RESPONSE;
    const struct sent *s = req_dir_sent(e->h, a->psn);
    struct incident *st = incident_new(x, cause, e->flow, e->p);

    if (!st)
        return NULL;
    incident_frame(st, executed ? ROLE_EVIDENCE : ROLE_LOST, a->frame);
    if (executed)
        incident_frame(st, ROLE_ANSWER, e->h->una_frame);
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    incident_concerns(st, a->psn, executed || !s ? 0 : s->icrc_first, !executed);
    st->place = f->place;
    st->unanswered = !executed;
    st->end = e->h->next;
    if (executed)
        incident_is(st, SAY(ANSWER_MISSED, .op = a->opcode + 1u, .psn = a->psn, .other = a->frame,
                            .answer = e->h->una_frame, .again = frame_u32(e->p)));
    if (executed && !is_pair_sure(x, e->flow))
        st->certainty = PROBABLE;
    if (!executed)
        incident_is(
            st, SAY(ANSWER_NOT_SEEN, .op = a->opcode + 1u, .psn = a->psn, .lost = a->frame, .again = frame_u32(e->p)));
    return st;
}

/* The response with PSN `missing` was corrupted before the tap, in frame `bad`. */
static struct incident *report_bad_response(struct explainer *x, const struct event *e, const struct flow_notes *own,
                                            uint32_t missing, uint32_t bad)
{
    struct incident *st = damaged_incident(x, own, bad, e->p);

    if (!st)
        return NULL;
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    incident_concerns(st, missing, 0, false);
    incident_is(st, SAY(DAMAGED_RESPONSE, .psn = missing, .lost = bad, .again = frame_u32(e->p)));
    return st;
}

/* The hypothesis about a lost response, by where it was seen. */
static void suppose_lost_response(struct incident *st, const struct response_status *f, uint32_t again)
{
    const struct read_req *a = f->ask;
    bool known = f->place != PLACE_UNKNOWN;

    if (f->seen && !known)
        incident_is(st, SAY(RESPONSE_IN_DOUBT, .psn = f->psn, .lost = f->seen, .again = again));
    else if (f->seen)
        incident_is(st, SAY(RESPONSE_LOST_AFTER, .psn = f->psn, .lost = f->seen, .again = again));
    else if (f->sure)
        incident_is(
            st, SAY(RESPONSE_NEVER_PASSED, .psn = f->psn, .other = a->frame, .instead = a->rsp_last, .again = again));
    else if (known)
        incident_is(st, SAY(RESPONSE_BROKEN_OFF, .psn = f->psn, .other = a->frame, .n = a->again,
                            .instead = a->rsp_last, .again = again));
    else
        incident_is(st, SAY(RESPONSE_NOT_SEEN, .op = a->opcode + 1u, .psn = f->psn, .other = a->frame, .again = again));
    if (!f->seen && f->dropped > a->frame)
        incident_add(st, SAY(DROPPED_AHEAD, .psn = f->psn, .other = f->dropped));
}

/* A response is missing: it was seen, or other responses to the same request were. */
static struct incident *report_lost_response(struct explainer *x, const struct event *e,
                                             const struct response_status *f)
{
    const struct read_req *a = f->ask;
    bool known = f->place != PLACE_UNKNOWN;
    enum cause answer = a->opcode != OP_READ_REQUEST ? CAUSE_LOST_ACK : CAUSE_LOST_READ_RESPONSE;
    struct incident *st = incident_new(x, known || f->seen ? answer : CAUSE_PACKET_LOSS, e->flow, e->p);

    if (!st)
        return NULL;
    incident_frame(st,
                   f->seen ? ROLE_LOST
                   : known ? ROLE_INSTEAD
                           : ROLE_EVIDENCE,
                   f->seen ? f->seen
                   : known ? a->rsp_last
                           : a->frame);
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    incident_concerns(st, f->psn, 0, false);
    st->place = f->place;
    st->repeated = a->again;
    suppose_lost_response(st, f, frame_u32(e->p));
    if (st->certainty == CERTAIN && !is_pair_sure(x, e->flow))
        st->certainty = PROBABLE;
    if (st->repeated && f->seen && st->place == PLACE_AFTER)
        explain_response_until_then(x, e, x->notes[e->flow], st, f->seen);
    return st;
}

/* The incident about a reordered response that explains why `missing`, or the whole READ, is retransmitted: the
 * requester dropped the responses that had overtaken it. NULL: none. */
static struct incident *about_late_response(struct explainer *x, const struct event *e, const struct flow_notes *t,
                                            uint32_t missing)
{
    struct incident *st = incident_at(x, t->hypotheses.rsp_reorder);
    uint32_t dropped = st ? (t->responses.overtaken_end - st->psn) & PSN_MASK : 0;

    if (!st || !(psn_in(missing, st->psn, dropped) || psn_in(e->p->bth.psn, st->psn, dropped)))
        return NULL;
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    return st;
}

/* The READ was retransmitted before for the same response, which was lost again: continue that incident. NULL: none. */
static struct incident *continue_lost_again(struct explainer *x, const struct event *e, const struct flow_notes *t,
                                            const struct response_status *f)
{
    struct incident *st = incident_at(x, t->hypotheses.rsp_lost);
    uint32_t seen = f->seen;
    bool same = st && (st->place == f->place || (f->place == PLACE_UNKNOWN && !seen));

    if (!same || e->why != BACK_SILENCE || st->moot || st->cause == CAUSE_REORDER || st->psn != f->psn)
        return NULL;
    if (seen && seen < st->frames[st->n_frames - 1])
        return NULL;
    if (seen)
        incident_add(st, SAY(CAME_AND_AGAIN, .lost = seen, .again = frame_u32(e->p)));
    incident_frame(st, ROLE_LOST, seen);
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    return st;
}

/* The response had passed before the READ was retransmitted behind another one whose response was missing, so that its
 * requester dropped it. No response to that retransmission can have come yet: nothing more was lost, and it belongs to
 * the same incident. NULL: it is not so.
 *
 *   READ           1 2         1 2         2
 *   response           - 2         1   3           1 was lost; 3 is an ACK for what was retransmitted between 1 and 2
 */
static struct incident *dropped_behind(struct explainer *x, const struct event *e, const struct flow_notes *t,
                                       const struct response_status *f)
{
    struct incident *st = incident_at(x, t->hypotheses.rsp_lost);
    const struct read_req *a = f->ask;
    bool under_way = e->why == BACK_IMPLIED && e->p->frame->ts - a->ts < e->h->rtt;
    bool before = f->dropped && f->dropped < a->frame && a->again;
    struct fact *told;

    if (!st || st->moot || !under_way || !before || psn_diff(f->psn, st->psn) <= 0)
        return NULL;
    told = incident_fact(st, SENTENCE_DROPPED_BEHIND);
    if (told)
        told->n++;
    else
        incident_add(st, SAY(DROPPED_BEHIND, .psn = f->psn, .other = f->dropped, .again = frame_u32(e->p)));
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    return st;
}

/* Time from a response at the tap to the retransmitted READ; 0 if the ACK timeout may have expired meanwhile. */
static ns_t loop_behind(const struct event *e, ns_t answer)
{
    ns_t took = e->p->frame->ts - answer, timer = e->h->timeout ? ack_timeout(e->h->timeout) / 2 : SHORT_TIMER;

    return took < timer ? took : 0;
}

/* The next retransmitted READ begins one PSN later, sooner than the response to the first can have come: the response
 * that seemed lost has arrived, reordered.
 *
 *   response       1 2 3 4
 *   READ again             2       response 2 seems lost after the tap
 *   READ again              3      much sooner than a round trip: 2 has arrived, after 3 and 4, which were dropped */
static struct incident *arrived_reordered(struct explainer *x, const struct event *e, struct flow_notes *t,
                                          uint32_t missing)
{
    struct incident *st = incident_at(x, t->hypotheses.rsp_lost);
    bool lost_behind = st && !st->moot && st->cause == CAUSE_LOST_READ_RESPONSE && st->place == PLACE_AFTER;

    if (!lost_behind || st->n_frames != 2 || missing != psn_add(st->psn, 1))
        return NULL;
    if (e->p->frame->ts - t->responses.lost_ts >= t->responses.lost_loop / AT_ONCE)
        return NULL;
    st->cause = CAUSE_REORDER;
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    t->hypotheses.rsp_reorder = incident_number(x, st);
    t->responses.overtaken_end = t->responses.next;
    incident_is(st, SAY(RESPONSE_OVERTAKEN_BEHIND, .psn = st->psn, .lost = st->frames[0], .again = st->frames[1],
                        .psn2 = missing, .other = st->frames[2]));
    return st;
}

/* A response was reordered: it came in frame `came`, behind later ones. `st`: the incident so far, or NULL. Returns
 * the number of its incident. */
static uint32_t report_late_response(struct explainer *x, const struct event *e, struct flow_notes *t, uint32_t late,
                                     uint32_t came, struct incident *st)
{
    uint32_t again = st ? st->frames[st->n_frames - 1] : 0;

    if (!st)
        st = incident_new(x, CAUSE_REORDER, e->flow, e->p);
    if (!st)
        return NO_INCIDENT;
    st->cause = CAUSE_REORDER;
    st->place = PLACE_BEFORE;
    st->n_frames = 0;
    incident_frame(st, ROLE_LOST, came);
    incident_frame(st, ROLE_RETRANSMISSION, again);
    incident_concerns(st, late, 0, false);
    incident_is(st, SAY(RESPONSE_OVERTAKEN, .psn = late, .lost = came, .again = again));
    t->hypotheses.rsp_reorder = incident_number(x, st);
    t->responses.overtaken_end = t->responses.next;
    return t->hypotheses.rsp_reorder;
}

/* The response that is requested again passed the tap after the latest request for it, just before the one that is due
 * first: that one was reordered, and its requester dropped what came before it. NULL: it did not.
 *
 *   READ again     2
 *   response         2 4 3 5 6     4 is dropped, as 3 is missing; 3 is accepted; 5 and 6 are dropped
 *   READ again                 4
 *
 * The one that was due may also be the response to the READ or atomic before.
 */
static struct incident *came_ahead(struct explainer *x, const struct event *e, struct flow_notes *t,
                                   const struct response_status *f)
{
    uint32_t late = psn_prev(f->psn), came = answer_frame(t, late);
    bool ahead = f->dropped > f->ask->frame && came > f->dropped && came == t->responses.run_frame;
    const struct read_req *other = psn_diff(late, f->ask->psn) < 0 ? req_dir_read(e->h, late, 0) : NULL;
    bool own = psn_diff(late, f->ask->psn) > 0, before = other && !other->again && other->frame < f->dropped;
    struct incident *st;

    if (!ahead || t->responses.run_psn != late || !(own || before))
        return NULL;
    st = incident_at(x, report_late_response(x, e, t, late, came, NULL));
    if (!st)
        return NULL;
    st->repeated = f->ask->again;
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    return st;
}

void explain_misses(struct explainer *x, const struct event *e)
{
    for (uint32_t i = x->n; i > 0 && x->n - i < LATEST; i--) {
        struct incident *st = &x->incidents[i - 1];
        bool lost = st->cause == CAUSE_LOST_READ_RESPONSE || st->cause == CAUSE_LOST_ACK,
             of_response = st->has_psn && !st->is_request;
        if (lost && of_response && st->flow == e->flow && st->place == PLACE_AFTER &&
            psn_diff(st->psn, e->p->bth.psn) > 0)
            st->moot = true;
    }
}

/* A READ or atomic is retransmitted, in whole or from a missing response on. */
struct incident *explain_read(struct explainer *x, const struct event *e, struct flow_notes *t, struct read_req *a)
{
    uint32_t psn = e->p->bth.psn, peer = conn_flow_at(observer_conns(x->observer), e->flow)->peer;
    const struct flow_notes *own = peer == FLOW_NONE ? NULL : x->notes[peer];
    struct response_status f;
    uint32_t bad;
    struct incident *st;
    const struct sent *before = req_dir_sent(e->h, psn), *s = before ? before : req_dir_sent(e->h, a->psn);

    t->responses.rests |= psn != a->psn;
    f = missing_of(e, t, a);
    note_loop(e, t, &f);
    bad = own && !f.seen ? damaged_frame(own, f.psn) : 0;
    st = about_late_response(x, e, t, f.psn);
    if (!st)
        st = continue_lost_again(x, e, t, &f);
    if (!st)
        st = arrived_reordered(x, e, t, f.psn);
    if (!st)
        st = came_ahead(x, e, t, &f);
    if (!st)
        st = dropped_behind(x, e, t, &f);
    if (st)
        return st;
    st = bad ? report_bad_response(x, e, own, f.psn, bad) : NULL;
    if (!st)
        st = f.seen || f.ask->rsp_first || f.ask->again ? report_lost_response(x, e, &f) : report_unanswered(x, e, &f);
    if (st)
        st->start = a->ts;
    if (st && s && e->why == BACK_SILENCE)
        st->silence = silence_before(e, s);
    if (st && st->cause == CAUSE_LOST_READ_RESPONSE && st->place == PLACE_BEFORE)
        t->hypotheses.rsp_missing = incident_number(x, st);
    t->responses.lost_ts = e->p->frame->ts;
    t->responses.lost_loop = f.seen ? loop_behind(e, response_slot(t, f.psn)->ts) : 0;
    t->hypotheses.rsp_lost =
        st && !st->is_request && st->cause != CAUSE_BAD_ICRC ? incident_number(x, st) : NO_INCIDENT;
    return st;
}

/* The READ of which request `p` repeats the rest; NULL: none. */
static const struct read_req *read_of_rest(const struct req_dir *h, const struct pkt *p)
{
    for (uint32_t i = 0; i < h->read_slots; i++) {
        const struct read_req *a = &h->reads[i];
        if (a->span && a->opcode == OP_READ_REQUEST && a->rkey == p->reth.rkey && a->va < p->reth.va &&
            a->va + a->len == p->reth.va + p->reth.dmalen)
            return a;
    }
    return NULL;
}

bool explain_rest(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    const struct read_req *a = read_of_rest(e->h, e->p);
    struct incident *st = a ? incident_new(x, CAUSE_LOST_READ_RESPONSE, e->flow, e->p) : NULL;

    if (!st)
        return false;
    incident_frame(st, ROLE_EVIDENCE, a->frame);
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    incident_concerns(st, e->p->bth.psn, 0, false);
    st->start = a->ts;
    t->hypotheses.open = incident_number(x, st);
    incident_is(st, SAY(REST_REQUESTED, .again = frame_u32(e->p), .other = a->frame, .address = e->p->reth.va - a->va));
    return true;
}

/* True if a missing READ response comes after later ones. */
static bool comes_late(const struct flow_notes *t, const struct event *e)
{
    uint32_t psn = e->p->bth.psn;

    return t->responses.next != UINT32_MAX &&
           psn_in(psn, psn_add(t->responses.next, PSN_MASK + 1 - NOTED_RESPONSES), NOTED_RESPONSES) &&
           !response_frame(t, psn);
}

/* The response after a late response is late, too: the responder executes the READ again, for a request that was not
 * captured. No response was reordered; drop that incident. */
static void drop_run(struct explainer *x, struct flow_notes *t)
{
    struct incident *st = incident_at(x, t->responses.late_incident);

    if (st)
        st->moot = true;
    t->responses.late_incident = NO_INCIDENT;
    t->responses.repeats = true;
}

/* True if the late response is the one that its requester asked for again, as its responder sent it after one that came
 * before, or as it came no sooner than such a response can: what is repeated behind it is lost once more.
 *
 *   READ again         2
 *   response       1 3   2   4       2 was lost; 3, repeated behind it, as well
 */
static bool is_repeated(const struct event *e, const struct flow_notes *t, uint32_t late)
{
    const struct noted_response *r = response_slot(t, late), *before = response_noted(t, psn_prev(t->responses.next));
    const struct read_req *a = req_dir_read(e->h, late, 0);
    int order = before ? sent_order(r->ip_id, before->ip_id) : 0;

    return order ? order > 0 : a && a->again && e->h->rtt && r->ts - a->ts >= e->h->rtt;
}

void explain_read_response(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    uint32_t psn = e->p->bth.psn, late = t->responses.late;
    struct incident *st = incident_at(x, t->hypotheses.rsp_missing);
    bool behind = t->responses.next != UINT32_MAX && psn_diff(psn, t->responses.next) < 0;
    /* After a single late response, the responses go on where they had been. */
    bool goes_on = late != UINT32_MAX && psn == t->responses.next && psn != psn_add(late, 1);
    struct read_req *a;

    if (behind && t->responses.behind == psn)
        drop_run(x, t);
    else
        t->responses.repeats = false;
    t->responses.behind = psn_add(psn, 1);
    t->responses.late_incident = NO_INCIDENT;
    t->responses.late = UINT32_MAX;
    if (goes_on && st && st->cause == CAUSE_LOST_READ_RESPONSE && st->psn == late && !is_repeated(e, t, late)) {
        t->responses.next = psn_add(psn, 1);
        report_late_response(x, e, t, late, t->responses.last_frame, st);
        return; /* it is in its turn itself */
    }
    if (!comes_late(t, e)) {
        t->responses.next = psn_add(psn, 1);
        return;
    }
    a = req_dir_read(e->h, psn, 0);
    if (a && !a->again && a->opcode == OP_READ_REQUEST && !t->responses.repeats)
        t->responses.late_incident = report_late_response(x, e, t, psn, frame_u32(e->p), NULL);
    else if (a && a->span > 1)
        t->responses.late = psn;
}

/* True if all messages of the queue pair are counted: message n completes with MSN n. */
static bool is_counted(const struct req_dir *h)
{
    return h->counted || (h->began == BEGAN_SEEN && !h->gaps);
}

void explain_repeated_answer(struct explainer *x, const struct event *e, const struct flow_notes *t)
{
    struct incident *st = incident_at(x, t->hypotheses.open);
    const struct read_req *a =
        st && st->unanswered && st->has_psn && st->is_request ? req_dir_read(e->h, st->psn, 0) : NULL;
    const struct sent *s = a && e->p->bth.psn == st->psn ? req_dir_sent(e->h, st->psn) : NULL;

    if (!s || e->p->op->flags & OPF_ACK || !s->msg || !is_counted(e->h) ||
        psn_diff(e->p->aeth.msn, s->msg & PSN_MASK) <= 0)
        return;
    st->cause = a->opcode != OP_READ_REQUEST ? CAUSE_LOST_ACK : CAUSE_LOST_READ_RESPONSE;
    st->place = PLACE_BEFORE;
    st->is_request = false;
    if (st->roles[0] == ROLE_LOST)
        st->roles[0] = ROLE_EVIDENCE; /* the request arrived */
    incident_frame(st, ROLE_ANSWER, frame_u32(e->p));
    incident_is(st, SAY(ANSWER_BY_MSN, .op = a->opcode + 1u, .psn = st->psn, .other = s->first,
                        .answer = frame_u32(e->p), .n = e->p->aeth.msn, .again = st->frames[st->n_frames - 2]));
}
