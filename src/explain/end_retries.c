/* layer 3 (explain): at the end of a capture: requests without a response, exhausted retries, ACK timeouts that were
 * too short, and packets that were only reordered. */
#include "dissect/ib/ib.h"
#include "dissect/ib/opcode.h"
#include "src/conn/retries.h"
#include "src/explain/compare/taps.h"
#include "src/explain/explain_impl.h"
#include "src/transport/verbs.h"

#include <stdlib.h>

#define SILENT_AFTER  (500 * NS_PER_MS) /* a request that solicits a response has one long before */
#define USUAL_TIMEOUT 18                /* ACK timeout code assumed where none was captured: a long one */
#define RNR_OVERDUE   (100 * NS_PER_MS)

/* A packet was sent as often as the retry count allows; `open`: the ACK timer of the last try has not expired yet. */
static void suppose_used_up(struct explainer *x, struct incident *st, const struct req_dir *h, const struct sent *s,
                            bool open)
{
    const struct conn_params *c = &conn_flow_at(observer_conns(x->observer), st->flow)->params;
    bool known = c->retry_known || retries_used(x->observer, h) >= RETRIES_MAX;
    struct fact f = {.sentence = st->cause == CAUSE_HALF_OPEN ? SENTENCE_RETRIES_CLOSED : SENTENCE_RETRIES_USED_UP,
                     .psn = st->psn,
                     .m = !known && !open,
                     .code = open,
                     .n = s ? s->copies : h->retries + 1,
                     .lost = s ? s->first : st->frames[0],
                     .again = s ? s->last : h->last_frame,
                     .time = s && s->copies > 1 ? (s->ts - s->ts_first) / (s->copies - 1) : 0};

    incident_is(st, &f);
}

/* No packet that passed the tap solicits an ACK; `open` as above. */
static void suppose_cut(struct incident *st, const struct sent *s, uint32_t next, bool open)
{
    st->place = PLACE_BEFORE;
    incident_is(st, SAY(RETRIES_CUT, .psn = st->psn, .n = s->copies, .lost = s->first, .again = s->last,
                        .psn2 = psn_prev(next), .code = open));
}

/* The DREP by which the responder answered the requester, if any, shows that its host is alive. */
static void note_host(struct explainer *x, struct incident *st, const struct flow *c)
{
    for (unsigned i = 0; i < CM_SENT; i++) {
        const struct cm_sent *m = &x->cm[i];
        bool answered = m->n && m->attr == CM_DREQ && m->answer.attr == CM_DREP;
        if (!answered || m->tap != c->tap || m->qpn != c->dqpn || !conn_addr_eq(&m->src, &c->src))
            continue;
        incident_add(st, SAY(HOST_ALIVE, .answer = m->answer.frame));
        incident_frame(st, ROLE_EVIDENCE, m->answer.frame);
        return;
    }
}

/* The responder was silent up to the last retry. */
static void report_silent(struct explainer *x, uint32_t flow, const struct flow_notes *t, const struct req_dir *h)
{
    const struct flow *c = conn_flow_at(observer_conns(x->observer), flow);
    struct incident *st = incident_new(x, CAUSE_SILENT_PEER, flow, NULL);
    uint32_t last = t->responses.last_frame;

    if (!st)
        return;
    st->start = last ? t->responses.last_ts : h->first_ts;
    incident_frame(st, last ? ROLE_ANSWER : ROLE_LOST, last ? last : h->first_frame);
    incident_is(st, last ? SAY(LAST_RESPONSE, .answer = last) : SAY(NEVER_RESPONDED, .lost = h->first_frame));
    if (!explain_knows_answers(x, flow))
        st->certainty = POSSIBLE; /* the host sends responses of which it is not known whose they are */
    note_host(x, st, c);
}

bool explain_sees_answers(const struct explainer *x, uint32_t flow)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);

    if (f->params.rep_frame)
        return true;
    for (uint32_t i = 0; i < conn_counts(observer_conns(x->observer)).flows; i++) {
        const struct flow *g = conn_flow_at(observer_conns(x->observer), i);
        if (x->notes[i] && x->notes[i]->headers.packets && g->tap == f->tap &&
            is_same_way(&g->src, &g->dst, &f->dst, &f->src))
            return true;
    }
    return false;
}

/* The requester closed the connection after its last request. */
static bool has_left(const struct flow_notes *t, const struct req_dir *h)
{
    return t->closing.left_frame && t->closing.left_ts >= h->last_ts;
}

/* True if the requester fell silent for good: nothing follows the last retry, and the other direction was captured. */
static bool is_without_end(struct explainer *x, uint32_t flow, const struct flow_notes *t, const struct incident *st,
                           struct req_dir *h)
{
    const struct flow *c = conn_flow_at(observer_conns(x->observer), flow);
    ns_t end = explain_end_of(x, c->tap);
    bool progress = h->have_una && psn_diff(h->una, h->back_psn) > 0;

    if (!st || h->why != BACK_SILENCE || !st->has_psn || progress)
        return false;
    if (st->cause == CAUSE_LOST_ACK || st->cause == CAUSE_EARLY_TIMEOUT)
        return false;
    if (!explain_sees_answers(x, flow) && !explain_is_unreached(x, st))
        return false;
    /* else the capture may have ended before the next try */
    if (has_left(t, h) && end < h->last_ts + st->silence)
        end = h->last_ts + st->silence; /* it closed the connection: no further try comes */
    return retries_gave_up(x->observer, h, &c->params, st->silence, end);
}

/* True if the requester stopped before its retries were exhausted: some were left, or it closed the connection before
 * the last ACK timeout can have expired. The retry count in a REQ is meant for its receiver, but usually the sender
 * uses the same. */
static bool stopped_early(struct explainer *x, uint32_t flow, const struct flow_notes *t, const struct incident *st,
                          const struct req_dir *h)
{
    const struct conn_params *c = &conn_flow_at(observer_conns(x->observer), flow)->params;

    return (c->retry_known && retries_used(x->observer, h) < c->retry_cnt) ||
           (has_left(t, h) && t->closing.left_ts - h->back_ts < timer_earliest(st->silence));
}

/* The requester stopped without any response: nothing more is known. */
static void report_stopped(struct incident *st, const struct flow_notes *t, const struct req_dir *h,
                           const struct sent *s)
{
    bool left = has_left(t, h);
    uint32_t tries = s ? s->copies : h->retries + 1, first = s ? s->first : st->frames[0];

    if (st->cause != CAUSE_HALF_OPEN)
        st->cause = CAUSE_SILENT_PEER;
    incident_frame(st, ROLE_EVIDENCE, left ? t->closing.left_frame : 0);
    incident_is(st, SAY(GAVE_UP, .psn = st->psn, .n = tries, .lost = first, .again = s ? s->last : h->last_frame,
                        .other = left ? t->closing.left_frame : 0));
}

/* A response never passed the tap, and nothing was received since its READ was retransmitted: perhaps it was not lost,
 * but the responder stopped before it sent the response. */
static void doubt_lost_response(struct incident *st, const struct req_dir *h)
{
    if (st && st->cause == CAUSE_LOST_READ_RESPONSE && st->place == PLACE_BEFORE && h->why == BACK_SILENCE &&
        h->rsp_packets == h->back_rsps)
        incident_add(st, SAY(OR_STOPPED));
}

/* True if the capture ends before the ACK timer of the last try expires, and its requester did not close the
 * connection. */
static bool is_try_open(struct explainer *x, uint32_t flow, const struct flow_notes *t, const struct req_dir *h,
                        const struct incident *st)
{
    uint32_t tap = conn_flow_at(observer_conns(x->observer), flow)->tap;

    return !has_left(t, h) && explain_ends_before(x, tap, h->last_ts, st->silence);
}

/* The requester received no further response until the end of the capture. */
void end_silence(struct explainer *x, uint32_t flow, struct flow_notes *t, struct req_dir *h)
{
    struct incident *st = incident_at(x, t->hypotheses.open);
    const struct sent *s = st ? req_dir_sent(h, st->psn) : NULL, *burst = req_dir_sent(h, psn_prev(h->next));
    bool cut, open;

    doubt_lost_response(st, h);
    if (!is_without_end(x, flow, t, st, h))
        return;
    st->lost = h->last_ts - st->start;
    if (burst && burst->psn != st->psn)
        incident_unframe(st, burst->first);
    st->place = PLACE_UNKNOWN;
    if (stopped_early(x, flow, t, st, h)) {
        report_stopped(st, t, h, s);
        return;
    }
    if (st->cause != CAUSE_HALF_OPEN)
        st->cause = CAUSE_RETRY_EXCEEDED;
    cut = st->is_request && !t->requests.unanswered && s;
    open = is_try_open(x, flow, t, h, st);
    if (cut)
        suppose_cut(st, s, h->next, open);
    else if (st->is_request)
        suppose_used_up(x, st, h, s, open);
    else
        incident_add(st, SAY(RETRIES_READ, .n = h->retries, .lost = s ? s->first : st->frames[0], .code = open));
    if (open)
        incident_add(st, SAY(TRY_OPEN, 0));
    if (!cut && st->cause != CAUSE_HALF_OPEN)
        report_silent(x, flow, t, h);
}

/* True if the RNR retry is overdue: four times the RNR timer of the NAK, or four times the interval of earlier
 * retries. */
static bool is_overdue(const struct req_dir *h, ns_t waited)
{
    ns_t delay = rnr_time(aeth_value(h->rnr.syndrome)),
         took = h->rnr.times > 1 ? (h->rnr.ts - h->rnr.ts_first) / (h->rnr.times - 1) : 0;

    return waited > RNR_OVERDUE + 4 * (delay > took ? delay : took);
}

/* True if the request of the latest RNR NAK was neither retransmitted nor acknowledged, and no other followed. */
static bool awaits_rnr_retry(const struct req_dir *h)
{
    bool acked = h->have_una && psn_diff(h->una, h->rnr.psn) > 0;

    return h->rnr.have && !h->rnr.resent && h->last_ts <= h->rnr.ts && !acked;
}

/* An RNR NAK without a retry: the RNR retries are exhausted. If the retry count allows more, the requester stopped, or
 * the capture ended. */
void end_rnr(struct explainer *x, uint32_t flow, struct flow_notes *t, struct req_dir *h)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);
    const struct conn_params *c = &f->params;
    struct incident *st = incident_at(x, t->hypotheses.rnr);
    bool closed = st && t->closing.closed_ts > h->rnr.ts, left = retries_left_rnr(c, h);
    ns_t waited = (closed ? t->closing.closed_ts : explain_end_of(x, f->tap)) - h->rnr.ts;

    if (!st || !awaits_rnr_retry(h))
        return;
    st->lost = h->rnr.ts - st->start;
    if (left || (!c->have_rnr && !is_overdue(h, waited))) {
        incident_add(st, left ? SAY(RNR_STOPPED, .nak = h->rnr.frame) : SAY(RNR_OPEN, .nak = h->rnr.frame));
        return;
    }
    st->cause = CAUSE_RNR_EXCEEDED;
    incident_is(st, SAY(RNR_USED_UP, .psn = h->rnr.psn, .n = h->rnr.times, .nak = h->rnr.frame, .m = !c->have_rnr));
    if (c->have_rnr)
        st->certainty = CERTAIN; /* the retry count is known */
}

ns_t longest_timer(const struct conn_params *c)
{
    bool known = c->timeout_known && c->timeout;

    return timer_latest(ack_timeout(known ? c->timeout : USUAL_TIMEOUT));
}

/* How long nothing has followed a request that solicits a response and has none; 0: there is none, or another incident
 * explains it. A requester that goes on after the longest ACK timeout has responses that were not captured. */
static ns_t unanswered(struct explainer *x, const struct flow_notes *t, struct req_dir *h, struct req_dir *back,
                       ns_t longest)
{
    uint32_t tap = conn_flow_at(observer_conns(x->observer), h->flow)->tap;
    ns_t end = t->closing.closed_ts > t->requests.wanted.ts ? t->closing.closed_ts : explain_end_of(x, tap);

    if (!t->requests.wanted.frame || t->hypotheses.open != NO_INCIDENT ||
        (h->service != SVC_RC && h->service != SVC_XRC) || h->restarts)
        return 0;
    if ((h->have_una && psn_diff(h->una, t->requests.wanted.psn) > 0) || t->responses.last_ts >= t->requests.wanted.ts)
        return 0;
    if ((back && back->have_next && back->last_ts >= t->requests.wanted.ts) ||
        (t->closing.closed_ts && t->closing.closed_ts <= t->requests.wanted.ts))
        return 0;
    return h->last_ts - t->requests.wanted.ts <= longest && end > h->last_ts ? end - h->last_ts : 0;
}

/* A request that solicits a response, was sent once and had none. */
static void end_unanswered(struct explainer *x, uint32_t flow, const struct flow_notes *t, ns_t waited)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);
    const struct conn_params *c = &f->params;
    bool was_closed = t->closing.closed_ts > t->requests.wanted.ts, once = retries_timed_out(c, waited, was_closed);
    ns_t longest = longest_timer(c);
    struct incident *st;

    if (!once && waited < (was_closed || longest < SILENT_AFTER ? SILENT_AFTER : longest))
        return;
    for (int i = once ? 0 : 1; i < 2; i++) {
        st = incident_new(x, i ? CAUSE_SILENT_PEER : CAUSE_RETRY_EXCEEDED, flow, NULL);
        if (!st)
            return;
        incident_frame(st, ROLE_LOST, t->requests.wanted.frame);
        st->start = t->requests.wanted.ts;
        st->lost = waited;
        incident_is(st, i ? SAY(UNANSWERED, .lost = t->requests.wanted.frame, .psn = t->requests.wanted.psn,
                                .time = waited, .n = was_closed)
                          : SAY(NO_RETRY, .psn = t->requests.wanted.psn, .lost = t->requests.wanted.frame));
        if (!explain_knows_answers(x, flow))
            st->certainty = POSSIBLE;
    }
}

/* Why a request has no response, and was not retransmitted. */
void end_not_received(struct explainer *x, uint32_t flow, const struct flow_notes *t, struct req_dir *h)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);
    const struct flow_notes *o = f->peer == FLOW_NONE ? NULL : x->notes[f->peer];
    ns_t waited;

    if (!t->responses.last_frame && !(o && o->headers.seen) && end_req_key(x, flow, t))
        return;
    waited = unanswered(x, t, h, o ? observer_req_dir(x->observer, f->peer) : NULL, longest_timer(&f->params));
    if (waited && observer_sees_responses(x->observer, flow))
        end_unanswered(x, flow, t, waited);
}

/* The requester retransmitted up to its last retry although the tap saw responses. Either the last response may have
 * been lost after the tap, or all responses came only when the connection was closed. */
void end_spent(struct explainer *x, uint32_t flow, const struct flow_notes *t, struct req_dir *h)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);
    const struct tries *tries = observer_tries(x->observer, flow);
    struct incident *st = incident_at(x, t->hypotheses.not_received), *dead;
    const struct sent *s = req_dir_sent(h, tries->psn);

    if (!s || !retries_spent(x->observer, h, &f->params))
        return;
    if (st && st->psn == s->psn)
        incident_add(st, SAY(SPENT, .n = s->copies, .again = s->last));
    for (uint32_t i = 0; i < x->n; i++) {
        st = &x->incidents[i];
        if (st->flow != flow || st->moot || !st->arrived || st->psn != s->psn || !t->closing.left_frame)
            continue;
        if (st->arrived < t->closing.left_frame || t->closing.left_ts - h->back_ts < timer_earliest(st->silence))
            continue;
        if (!(dead = incident_new(x, CAUSE_RETRY_EXCEEDED, flow, NULL)))
            continue;
        st = &x->incidents[i];
        incident_concerns(dead, s->psn, s->icrc_first, true);
        dead->silence = st->silence;
        dead->start = s->ts_first;
        dead->lost = t->closing.left_ts - s->ts_first;
        incident_frame(dead, ROLE_LOST, s->first);
        incident_frame(dead, ROLE_RETRANSMISSION, s->last);
        incident_frame(dead, ROLE_EVIDENCE, t->closing.left_frame);
        incident_frame(dead, ROLE_ANSWER, st->arrived);
        incident_is(dead, SAY(CLOSED_UNHEARD, .psn = s->psn, .n = s->copies, .lost = s->first, .again = s->last,
                              .other = t->closing.left_frame, .answer = st->arrived));
        return;
    }
}

/* --- ACK timeouts that were too short, and reordering ------------------------------------------ */

/* True if the ACK that followed the only retransmission of a packet came too soon to be for it. `reorders`: the path is
 * known to reorder packets; a queue that was full whenever a round trip was measured may be empty after a loss. */
static bool is_acked_too_soon(const struct incident *st, const struct flow_notes *t, bool reorders)
{
    bool one = (st->once || (st->renewed && reorders)) && st->n_frames == 3 && !st->silence;

    return one && st->arrived && st->arrival < t->responses.path_trip / AT_ONCE;
}

/* A packet was NAKed, then acknowledged within less than a quarter of the shortest round trip after its retransmission:
 * that ACK is for the original, which was reordered and not lost. The responder dropped the packets that overtook it,
 * so their NAKs are no further loss; nor are they if another tap showed that it was reordered.
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
        bool behind = !st->moot && st->place == PLACE_AFTER, proved = st->cause == CAUSE_REORDER && st->compared;
        if (!behind || !(proved || st->cause == CAUSE_PACKET_LOSS) || st->flow != flow || st->n_frames < 3)
            continue;
        if (late && psn_in(st->psn, late->psn, (late->end - late->psn) & PSN_MASK) && st->frames[1] >= late->arrived) {
            st->moot = true;
            late->again += st->again;
            late->lost = st->start + st->lost - late->start;
            incident_frame(late, ROLE_NAK, st->frames[1]);
            incident_frame(late, ROLE_RETRANSMISSION, st->frames[2]);
        } else if (proved) {
            late = st->arrived ? st : late;
        } else if (is_acked_too_soon(st, t, late) && !explain_lost_between(x, flow, st->psn)) {
            late = st;
            st->cause = CAUSE_REORDER;
            incident_is(st, SAY(OVERTAKEN_SOON, .psn = st->psn, .lost = st->frames[0], .nak = st->frames[1],
                                .again = st->frames[2], .answer = st->arrived, .time = st->arrival));
        }
    }
}

/* Where packets of a connection were reordered so often, neither a sequence NAK nor a repeated READ request tells a
 * lost packet from a reordered one. */
#define REORDERS 2

static bool may_be_reordered(const struct incident *st)
{
    unsigned said = st->facts[0].sentence;
    bool naked = said == SENTENCE_LOST_AFTER || said == SENTENCE_SENT_AGAIN_MISSED;
    bool response =
        said == SENTENCE_RESPONSE_LOST_AFTER && (st->cause == CAUSE_LOST_READ_RESPONSE || st->cause == CAUSE_LOST_ACK);

    return !st->moot && st->n_facts && ((st->cause == CAUSE_PACKET_LOSS && naked) || response) &&
           st->certainty == PROBABLE;
}

/* The part of the path, as seen from the requester of its flow: 0 from there to the tap, 1 behind the tap; 2: not
 * known.
 */
static unsigned part_of(const struct incident *st)
{
    if (st->place == PLACE_UNKNOWN)
        return 2;
    return (st->place == PLACE_BEFORE) != st->is_request;
}

void end_reordering_paths(struct explainer *x, uint32_t flows)
{
    uint32_t(*reordered)[2] = calloc(flows + 1u, sizeof *reordered); /* by flow and part; NULL: losses stay likely */

    for (uint32_t i = 0; reordered && i < x->n; i++) {
        const struct incident *st = &x->incidents[i];
        if (!st->moot && st->cause == CAUSE_REORDER && st->flow != FLOW_NONE && part_of(st) < 2)
            reordered[st->flow][part_of(st)]++;
    }
    for (uint32_t i = 0; reordered && i < x->n; i++) {
        struct incident *st = &x->incidents[i];
        unsigned part = part_of(st);
        uint32_t n, peer;
        if (st->flow == FLOW_NONE || part == 2 || !may_be_reordered(st))
            continue;
        peer = conn_flow_at(observer_conns(x->observer), st->flow)->peer;
        n = reordered[st->flow][part] + (peer == FLOW_NONE ? 0 : reordered[peer][!part]);
        if (n >= REORDERS)
            incident_add(st, SAY(PATH_REORDERS, .n = n));
    }
    free(reordered);
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

/* True if anything else in the flow was lost, damaged or reordered: then a response may be missing that only seems to
 * have come late. */
static bool is_disturbed(const struct explainer *x, uint32_t flow, const struct incident *but)
{
    static const bool disturbs[CAUSE_COUNT] = {
        [CAUSE_PACKET_LOSS] = true,        [CAUSE_LOST_LAST_PACKET] = true, [CAUSE_LOST_ACK] = true,
        [CAUSE_LOST_READ_RESPONSE] = true, [CAUSE_REORDER] = true,          [CAUSE_BAD_ICRC] = true,
    };

    for (uint32_t i = 0; i < x->n; i++) {
        const struct incident *o = &x->incidents[i];
        if (o != but && o->flow == flow && !o->moot && disturbs[o->cause])
            return true;
    }
    return false;
}

/* Each copy has a response, and the first of these came as soon after the last copy as a response usually does, long
 * after the ACK timer expired: it is for that copy, and what came after it is for an earlier one, which a responder
 * answers first.
 *
 *   request    5         5'
 *   response                  5'  5     5 was reordered
 */
static bool is_answer_overtaken(const struct incident *st, const struct flow_notes *t)
{
    ns_t trip = t->responses.path_trip;

    return st->all_answered && trip > 0 && !is_early(st, t) && st->arrival <= 2 * trip && st->silence / AT_ONCE > trip;
}

static void answer_overtaken(struct incident *st)
{
    uint32_t request = st->frames[0];

    st->cause = CAUSE_REORDER;
    st->place = PLACE_BEFORE;
    st->n_frames = 0;
    incident_frame(st, ROLE_LOST, st->all_answered);
    incident_frame(st, ROLE_RETRANSMISSION, st->back);
    incident_frame(st, ROLE_ANSWER, st->arrived);
    incident_frame(st, ROLE_EVIDENCE, request);
    incident_concerns(st, st->psn, 0, false);
    incident_is(st, SAY(ANSWER_OVERTAKEN, .psn = st->psn, .lost = st->all_answered, .again = st->back,
                        .answer = st->arrived, .other = request, .time = st->arrival));
}

static void spurious(struct incident *st, const struct flow_notes *t)
{
    st->cause = CAUSE_EARLY_TIMEOUT;
    st->place = PLACE_UNKNOWN;
    st->n_frames = 1;
    incident_frame(st, ROLE_RETRANSMISSION, st->back);
    incident_frame(st, ROLE_ANSWER, st->arrived);
    if (st->all_answered)
        incident_is(st, SAY(SLOW_ANSWER, .psn = st->psn, .lost = st->frames[0], .answer = st->arrived, .time = st->lost,
                            .time2 = st->silence));
    else
        incident_is(st, SAY(EARLY, .psn = st->psn, .lost = st->frames[0], .answer = st->arrived, .time = st->lost,
                            .time2 = st->arrival, .time3 = t->responses.path_trip));
}

/* Spurious ACK timeouts: one incident, however many there were. */
void end_early(struct explainer *x, uint32_t flow, const struct flow_notes *t)
{
    struct incident *first = NULL;
    uint32_t times = 1;

    for (uint32_t i = 0; i < x->n; i++) {
        struct incident *st = &x->incidents[i];
        bool early = st->flow == flow && (is_early(st, t) || (is_late_answered(st) && st->all_answered)) &&
                     !explain_lost_among(x, flow, st->psn, st->end);
        if (early && is_answer_overtaken(st, t)) {
            answer_overtaken(st);
            continue;
        }
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
        if (early)
            spurious(st, t);
    }
    if (first && first->certainty == PROBABLE && is_disturbed(x, flow, first))
        first->certainty = POSSIBLE;
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
    for (unsigned i = 0; i < st->n_frames && !st->back; i++)
        st->back = st->roles[i] == ROLE_RETRANSMISSION ? st->frames[i] : 0;
    incident_is(st, SAY(ONE_DIRECTION, .psn = st->psn, .lost = st->frames[0], .again = st->back, .time = st->silence));
    if (last)
        note_not_received(x, st, h);
}
