/* layer 3 (explain): NAKs: which request a sequence NAK asks for: lost, corrupted or reordered; why a request was
 * refused; receivers that were not ready. */
#include "dissect/pkt.h"
#include "src/conn/copies.h"
#include "src/conn/packet.h"
#include "src/conn/retries.h"
#include "src/explain/compare/taps.h"
#include "src/explain/explain_impl.h"

#define STAMPED_WITHIN (100 * NS_PER_US) /* time stamps of the two directions differ by no more */
/* a wait after an RNR NAK is a long one: so many times the RNR timer, and longer than it by so much */
#define RNR_LONG_TIMES 2
#define RNR_LONG_LEAST (200 * NS_PER_US)
/* a NAK is slow: so long after the latest request, and so many times the shortest time to a response */
#define NAK_SLOW_LEAST (200 * NS_PER_US)
#define NAK_SLOW_TIMES 16
#define LATEST_LOSSES  1024 /* incidents, of all flows, among which the loss of a packet is looked for */

uint32_t came_instead(const struct req_dir *h, uint32_t psn)
{
    uint32_t hole = 0;

    if (psn_diff(psn, h->start) < 0)
        return h->first_frame;
    req_dir_was_hole(h, psn, &hole);
    return hole;
}

/* The incident about the loss of this packet before the tap: the latest of the flow, or among the latest of all; NULL:
 * none. */
static struct incident *loss_before(struct explainer *x, const struct flow_notes *t, uint32_t flow, uint32_t psn)
{
    struct incident *missed = incident_at(x, t->hypotheses.missed);

    if (missed && missed->psn == psn)
        return missed;
    for (uint32_t i = x->n; i > 0 && x->n - i < LATEST_LOSSES; i--) {
        struct incident *st = &x->incidents[i - 1];
        bool is_loss = st->cause == CAUSE_PACKET_LOSS && st->place == PLACE_BEFORE;
        if (is_loss && st->flow == flow && st->has_psn && st->is_request && st->psn == psn)
            return st;
    }
    return NULL;
}

/* Report further gaps in the burst that followed the gap at `psn` (first noticed at frame `hole`). */
static void report_further_gaps(struct incident *st, const struct flow_notes *t, uint32_t psn, uint32_t hole)
{
    const struct noted_requests *r = &t->requests;

    for (unsigned i = 0; hole && i < NOTED_GAPS; i++) {
        const unsigned at = (r->gaps_at + i) % NOTED_GAPS;
        if (r->gaps[at].frame <= hole || psn_diff(r->gaps[at].psn, psn) <= 0 ||
            !psn_in(r->gaps[at].psn, psn, (st->end - psn) & PSN_MASK))
            continue;
        incident_frame(st, ROLE_INSTEAD, r->gaps[at].frame);
        incident_add(st, SAY(MISSING_AS_WELL, .psn = r->gaps[at].psn, .instead = r->gaps[at].frame));
    }
}

/* The NAK that triggered this retransmission: the one for its PSN, else the latest. */
static const struct noted_nak *nak_answered(const struct event *e, struct flow_notes *t)
{
    const struct noted_nak *q = rounds_nak_of(&t->rounds, e->p->bth.psn);

    return q && !q->answered ? q : rounds_nak_of(&t->rounds, e->h->seq.psn);
}

/* The responder NAKed `psn`, then a later PSN, before any retransmission: the packet had arrived meanwhile, reordered.
 *
 *   request at the tap            4 5 6 7
 *   request at the responder      4 6 5 7      6 overtakes 5 and is dropped: NAK 5; 5 arrives; 7 is dropped: NAK 6
 */
static struct incident *report_overtaken(struct explainer *x, const struct event *e, struct flow_notes *t, uint32_t psn,
                                         const struct sent *s)
{
    struct incident *st = incident_new(x, CAUSE_REORDER, e->flow, e->p);
    uint32_t nak = response_frame(t, psn), again = frame_u32(e->p);

    if (!st)
        return NULL;
    incident_frame(st, ROLE_LOST, s->first);
    incident_frame(st, ROLE_NAK, nak);
    incident_frame(st, ROLE_NAK, e->h->seq.frame);
    incident_frame(st, ROLE_RETRANSMISSION, again);
    st->start = s->ts_first;
    st->place = PLACE_AFTER;
    incident_concerns(st, psn, s->icrc_first, true);
    t->hypotheses.reorder = incident_number(x, st);
    t->hypotheses.reorder_end = e->h->next;
    incident_is(st, SAY(OVERTAKEN_BEHIND, .op = op_of(s), .psn = psn, .lost = s->first, .nak = nak, .again = again,
                        .other = e->h->seq.frame, .psn2 = e->h->seq.psn));
    return st;
}

/* The ICRC of a copy of a packet; 0: not known. */
static uint32_t icrc_of_copy(const struct sent *s, uint32_t frame)
{
    return frame == s->last ? s->icrc : frame == s->first ? s->icrc_first : 0;
}

/* Report the packet that a sequence NAK found missing, once the requester goes back. */
struct missing {
    uint32_t psn, nak;
    uint32_t copy;    /* frame of the copy that was lost after the tap; 0: none passed */
    uint32_t hole;    /* frame that came in its place; 0: not known */
    uint32_t bad;     /* frame in which it was corrupted; 0: it was not */
    uint32_t dropped; /* an earlier copy that passed and was dropped; 0: none */
    bool alone;       /* it is the only copy that the responder can have received */
    /* what came in place of the packet, or the packet that came then, may have been held back; or the requester may not
     * have retransmitted it */
    bool stray;
    const struct sent *s;
    enum cause cause;
};

/* True if the packet that is taken for a retransmission was sent before the one that came in its place: it was held
 * back. */
static bool was_sent_before(const struct event *e, const struct missing *m)
{
    const struct sent *o = req_dir_sent(e->h, psn_add(m->psn, 1));

    return m->psn == e->p->bth.psn && o && o->last == m->hole && sent_order(frame_ip_id(e->p), o->ip_id) < 0;
}

static struct missing missing_by_nak(const struct event *e, struct flow_notes *t)
{
    const struct noted_nak *q = nak_answered(e, t);
    struct missing m = {.psn = q ? q->psn : e->h->seq.psn,
                        .nak = q ? q->nak : e->h->seq.frame,
                        .copy = q ? q->copy : 0,
                        .dropped = q ? q->dropped : 0,
                        .stray = q && q->dropped && (q->stray || q->skipped)};
    bool late;

    m.hole = q && q->instead ? q->instead : came_instead(e->h, m.psn);
    m.bad = damaged_frame(t, m.psn);
    m.alone = q && q->alone;
    m.s = req_dir_sent(e->h, m.psn);
    m.stray = m.stray || was_sent_before(e, &m);
    late = m.s && m.s->late && q && (q->late || rounds_since(&t->rounds, q));
    m.cause = m.bad ? CAUSE_BAD_ICRC : late ? CAUSE_REORDER : CAUSE_PACKET_LOSS;
    return m;
}

/* The incident that reports this packet already, or a new one; NULL without room. *known: only frames are to be
 * added. */
static struct incident *incident_of_missing(struct explainer *x, const struct event *e, const struct flow_notes *t,
                                            const struct missing *m, bool *known)
{
    struct incident *st = NULL;

    if (m->bad)
        st = damaged_incident(x, t, m->bad, e->p);
    else if (m->cause == CAUSE_REORDER)
        st = incident_at(x, t->hypotheses.reorder);
    if (!st || (m->cause == CAUSE_REORDER && st->psn != m->psn))
        st = m->cause == CAUSE_REORDER ? loss_before(x, t, e->flow, m->psn) : NULL;
    *known = st && (st->cause == CAUSE_PACKET_LOSS || st->facts[0].sentence == SENTENCE_DAMAGED_COPIES);
    return st ? st : incident_new(x, m->cause, e->flow, e->p);
}

/* The hypothesis, by which copies passed. */
static void suppose_missing(struct incident *st, const struct missing *m, uint32_t again)
{
    struct fact f = {.op = op_of(m->s), .psn = m->psn, .nak = m->nak, .again = again};

    st->place = m->bad || m->cause == CAUSE_REORDER || !m->copy ? PLACE_BEFORE : PLACE_AFTER;
    if (m->bad || m->cause == CAUSE_REORDER) {
        f.sentence = m->bad ? SENTENCE_DAMAGED_NAK : SENTENCE_LATE_NAK;
        f.lost = m->bad ? m->bad : m->copy ? m->copy : m->s->first;
        incident_is(st, &f);
        if (!m->bad && f.lost != m->s->first)
            st->certainty = PROBABLE; /* several copies passed: another one may have come late */
    } else if (m->copy) {
        f.sentence = SENTENCE_LOST_AFTER;
        f.lost = m->copy;
        incident_is(st, &f);
    } else {
        incident_is(st, SAY(NEVER_PASSED, .psn = m->psn, .instead = m->hole, .lost = m->hole ? m->dropped : 0));
        f.sentence = SENTENCE_NAK_AND_RETRANSMISSION;
        incident_add(st, &f);
        if (m->stray)
            st->certainty = PROBABLE;
    }
}

/* True if the packet may have passed before the capture began: it comes before all that were captured, and is not known
 * to be the first one of its connection or a later one. */
static bool may_have_passed(const struct explainer *x, const struct event *e, uint32_t psn)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), e->flow);

    return psn_diff(psn, e->h->start) < 0 && !(f->have_psn && psn_diff(psn, f->psn) >= 0);
}

/* True if one copy of the packet passed, in its order, and was acknowledged, and the NAK requests a later PSN: the
 * packet arrived. */
static bool is_overtaken(const struct missing *m, const struct event *e, const struct flow_notes *t)
{
    bool passed_once = m->cause == CAUSE_PACKET_LOSS && m->copy && m->s && m->s->copies == 1 && !m->s->late;

    return passed_once && psn_diff(e->h->seq.psn, m->psn) > 0 && response_frame(t, m->psn);
}

/* The request before the NAKed one that passed behind it, although it was sent before it; NULL: it did not.
 *
 *   request   4 5 6 7 8 9 . 4 5 7 6 8 9 . 7 8 9      4 was lost, then 7 overtakes 6 and is dropped
 *   response        NAK 4           NAK 7
 */
static const struct sent *overtaken_before(const struct event *e, const struct missing *m)
{
    const struct sent *o = req_dir_sent(e->h, psn_prev(m->psn));
    bool latest = m->cause == CAUSE_PACKET_LOSS && m->copy && m->s && m->s->last == m->copy;

    return latest && o && o->last > m->copy && sent_order(o->ip_id, m->s->ip_id) < 0 ? o : NULL;
}

static struct incident *report_overtaken_before(struct explainer *x, const struct event *e, struct flow_notes *t,
                                                const struct missing *m, const struct sent *o)
{
    struct incident *soon = incident_at(x, t->hypotheses.soon), *st;
    bool told = soon && incident_has(soon, soon->tap, o->last), alone = told && soon->n_frames == 1;

    if (told && !alone)
        incident_unframe(soon, o->last);
    st = alone ? soon : incident_new(x, CAUSE_REORDER, e->flow, e->p);
    if (!st)
        return NULL;
    if (alone)
        t->hypotheses.soon = NO_INCIDENT;
    st->n_frames = 0;
    incident_frame(st, ROLE_LOST, o->last);
    incident_frame(st, ROLE_INSTEAD, m->copy);
    incident_frame(st, ROLE_NAK, m->nak);
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    st->start = m->s->ts;
    st->place = PLACE_BEFORE;
    incident_concerns(st, o->psn, o->icrc, true);
    t->hypotheses.reorder = incident_number(x, st);
    t->hypotheses.reorder_end = e->h->next;
    incident_is(st, SAY(OVERTAKEN, .psn = o->psn, .lost = o->last));
    return st;
}

/* The NAK for the loss of `st` came long after all requests that may have brought it about: say so. */
static void report_slow_nak(struct incident *st, const struct event *e, const struct flow_notes *t)
{
    const struct nak *n = &e->h->seq;
    ns_t trip = t->responses.round_trip, took = n->ts - e->h->last_ts;

    if (n->have && n->psn == st->nak_psn && trip >= 0 && took >= NAK_SLOW_LEAST && took / NAK_SLOW_TIMES >= trip)
        incident_add(st, SAY(NAK_SLOW, .time = took, .time2 = trip));
}

struct incident *explain_loss(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    const struct missing m = missing_by_nak(e, t);
    uint32_t again = frame_u32(e->p);
    struct incident *st;
    bool known, passed = m.copy != 0, lost = m.cause == CAUSE_PACKET_LOSS;
    const struct sent *o = overtaken_before(e, &m);

    if (o)
        return report_overtaken_before(x, e, t, &m, o);
    if (is_overtaken(&m, e, t))
        return report_overtaken(x, e, t, m.psn, m.s);
    st = incident_of_missing(x, e, t, &m, &known);
    if (!st)
        return NULL;
    if (known) {
        if (m.bad)
            incident_add(st, SAY(CAME, .again = again));
        incident_frame(st, ROLE_RETRANSMISSION, again);
        return st;
    }
    incident_frame(st, m.bad || passed ? ROLE_LOST : ROLE_INSTEAD, m.bad ? m.bad : passed ? m.copy : m.hole);
    incident_frame(st, ROLE_NAK, m.nak);
    incident_frame(st, ROLE_RETRANSMISSION, again);
    st->start = m.s ? m.s->ts_first : e->h->seq.ts;
    st->end = e->h->next;
    incident_concerns(st, m.psn, m.s ? icrc_of_copy(m.s, m.copy) : 0, true);
    suppose_missing(st, &m, again);
    if (st->certainty == CERTAIN && !passed && !m.bad && may_have_passed(x, e, m.psn))
        st->certainty = PROBABLE;
    st->once = passed && m.s && m.s->copies == 1;
    st->renewed = passed && m.alone;
    st->has_nak = m.nak != 0;
    st->nak_psn = m.psn;
    st->repeated = lost && m.s && (passed ? m.copy != m.s->first : m.dropped != 0);
    if (lost && !passed) {
        t->hypotheses.missed = incident_number(x, st);
        report_further_gaps(st, t, m.psn, m.hole);
    }
    if (st->has_nak)
        report_slow_nak(st, e, t);
    if (st->repeated && passed && st->place == PLACE_AFTER)
        explain_request_until_then(x, e, st, m.copy);
    return st;
}

/* A retransmission too soon for an ACK timeout had been taken for a reordered packet. This NAK, captured after it, is
 * its reason: report a loss instead.
 *
 *   captured   5 6 7   5'   NAK 5        the clocks of the two directions differ a little
 *   in truth   5 6 7   NAK 5   5'
 */
static void report_early_retransmission(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    struct incident *st = incident_at(x, t->hypotheses.soon);
    const uint32_t psn = t->hypotheses.hasty.psn, lost = t->hypotheses.hasty.lost, again = t->hypotheses.hasty.again;
    const struct sent *s = req_dir_sent(e->h, psn);
    bool alone = st && st->n_frames == 1;

    if (st && !alone)
        incident_unframe(st, again);
    st = alone ? st : incident_new(x, CAUSE_PACKET_LOSS, e->flow, e->p);
    if (!st)
        return;
    if (alone)
        t->hypotheses.soon = NO_INCIDENT;
    st->cause = CAUSE_PACKET_LOSS;
    st->place = PLACE_AFTER;
    st->n_frames = 0;
    st->start = t->hypotheses.hasty.sent;
    st->end = e->h->next;
    incident_frame(st, ROLE_LOST, lost);
    incident_frame(st, ROLE_NAK, frame_u32(e->p));
    incident_frame(st, ROLE_RETRANSMISSION, again);
    incident_concerns(st, psn, s ? icrc_of_copy(s, lost) : 0, true);
    incident_is(st, SAY(LOST_AFTER, .op = op_of(s), .psn = psn, .lost = lost, .nak = frame_u32(e->p), .again = again));
    incident_add(st, SAY(NAK_STAMPED_LATE, .nak = frame_u32(e->p), .time = e->p->frame->ts - t->hypotheses.hasty.ts));
}

void explain_nak_obeyed(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    bool late = t->hypotheses.hasty.again && t->hypotheses.hasty.psn == e->p->bth.psn &&
                e->p->frame->ts - t->hypotheses.hasty.ts <= STAMPED_WITHIN;
    struct noted_nak *q;

    rounds_nak(&t->rounds, e, t->responses.least_trip, t->responses.round_trip);
    if (!late)
        return;
    q = rounds_nak_of(&t->rounds, e->p->bth.psn);
    if (q)
        q->answered = true;
    report_early_retransmission(x, e, t);
    t->hypotheses.hasty.again = 0;
}

/* --- Refused, not ready ----------------------------------------------------------------------- */

/* The memory that the request with this PSN accesses: its place in `keys`, NOTED_KEYS if none of the latest requests
 * has this PSN. */
static uint32_t key_of(const struct noted_requests *r, uint32_t psn)
{
    uint32_t best = NOTED_KEYS;

    for (uint32_t i = 0; i < NOTED_KEYS; i++)
        if (r->keys[i].len && psn_diff(psn, r->keys[i].psn) >= 0 && psn_diff(psn, r->keys[i].psn) < TRACK_SENT &&
            (best == NOTED_KEYS || psn_diff(r->keys[i].psn, r->keys[best].psn) >= 0))
            best = i;
    return best;
}

/* A NAK that moves the requester's queue pair to the error state. */
static void suppose_refused(struct incident *st, const struct event *e, const struct flow_notes *t,
                            const struct sent *s)
{
    uint32_t at = st->cause == CAUSE_ACCESS_ERROR ? key_of(&t->requests, e->p->bth.psn) : NOTED_KEYS;
    struct fact f = {.sentence = SENTENCE_REFUSED_REQUEST,
                     .op = op_of(s),
                     .n = !s,
                     .psn = e->p->bth.psn,
                     .code = aeth_value(e->p->aeth.syndrome),
                     .nak = frame_u32(e->p)};

    if (at < NOTED_KEYS) {
        f.key = t->requests.keys[at].rkey;
        f.address = t->requests.keys[at].va;
        f.m = t->requests.keys[at].len;
    }
    incident_is(st, &f);
}

enum cause explain_refusal(unsigned code)
{
    return code == NAK_REMOTE_ACCESS     ? CAUSE_ACCESS_ERROR
           : code == NAK_INVALID_REQUEST ? CAUSE_INVALID_REQUEST
                                         : CAUSE_OPERATION_ERROR;
}

void explain_refused(struct explainer *x, const struct event *e, const struct flow_notes *t)
{
    const struct conn_params *c = &conn_flow_at(observer_conns(x->observer), e->flow)->params;
    uint32_t pmtu = conn_flow_at(observer_conns(x->observer), e->flow)->pmtu;
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn);
    unsigned code = aeth_value(e->p->aeth.syndrome);
    enum cause cause = explain_refusal(code);
    struct incident *st;

    if (cause == CAUSE_INVALID_REQUEST && t->requests.deep && t->requests.deep_psn == e->p->bth.psn)
        cause = CAUSE_DEPTH_EXCEEDED;
    else if (cause == CAUSE_INVALID_REQUEST && s && pmtu && s->len > pmtu)
        cause = CAUSE_PMTU_MISMATCH;
    st = incident_new(x, cause, e->flow, e->p);
    if (!st)
        return;
    incident_frame(st, ROLE_LOST, s ? s->last : 0);
    incident_frame(st, ROLE_NAK, frame_u32(e->p));
    if (cause == CAUSE_DEPTH_EXCEEDED)
        incident_is(st, SAY(REFUSED_DEPTH, .op = op_of(s), .lost = s ? s->last : 0, .nak = frame_u32(e->p),
                            .n = t->requests.deep, .m = c->depth));
    else
        suppose_refused(st, e, t, s);
    if (s && sent_came_elsewhere(e->h, s))
        incident_add(st, SAY(CAME_ELSEWHERE, .other = s->last));
}

void explain_forged(struct explainer *x, const struct event *e)
{
    const struct sent *s = e->forged;
    struct incident *st = incident_new(x, CAUSE_FORGED_REQUEST, e->flow, e->p);
    struct fact f = {
        .op = (uint16_t)(e->p->bth.opcode + 1), .psn = e->p->bth.psn, .other = s->last, .again = frame_u32(e->p)};

    if (!st)
        return;
    incident_frame(st, ROLE_EVIDENCE, s->last);
    incident_frame(st, ROLE_EVIDENCE, frame_u32(e->p));
    st->start = s->ts;
    f.sentence = copy_was_executed(e->h, s) ? SENTENCE_FORGED_TAKEN : SENTENCE_FORGED_FIRST;
    incident_is(st, &f);
}

void explain_rnr(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    struct incident *st = t->hypotheses.rnr_psn == e->p->bth.psn ? incident_at(x, t->hypotheses.rnr) : NULL;
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn);

    if (!st) {
        st = incident_new(x, CAUSE_RNR, e->flow, e->p);
        if (!st)
            return;
        t->hypotheses.rnr = t->hypotheses.open = incident_number(x, st);
        t->hypotheses.rnr_psn = st->psn = e->p->bth.psn;
        st->has_psn = false;
        st->nak_psn = st->psn;
        incident_frame(st, ROLE_LOST, s ? s->first : 0);
        if (s)
            st->start = s->ts_first;
        incident_is(st,
                    SAY(NOT_READY, .op = op_of(s), .psn = e->p->bth.psn,
                        .time = rnr_time(aeth_value(e->p->aeth.syndrome)), .code = aeth_value(e->p->aeth.syndrome)));
    }
    st->has_nak = !st->has_nak && st->n_frames <= 1; /* of several it tells more than one NAK does */
    incident_frame(st, ROLE_NAK, frame_u32(e->p));
}

/* The retry after an RNR NAK came only when the ACK timeout, `timer`, had expired: the RNR NAK was lost; or, if both
 * timers have run, a retry that never passed the tap. */
static void report_lost_rnr_nak(struct explainer *x, const struct event *e, ns_t waited, ns_t timer)
{
    ns_t over = waited - timer;
    bool both = over >= timer_earliest(rnr_time(aeth_value(e->h->rnr.syndrome)));
    struct incident *st = incident_new(x, both ? CAUSE_LOST_LAST_PACKET : CAUSE_LOST_ACK, e->flow, e->p);
    uint32_t nak = e->h->rnr.frame, again = frame_u32(e->p);

    if (!st)
        return;
    incident_frame(st, both ? ROLE_NAK : ROLE_LOST, nak);
    incident_frame(st, ROLE_RETRANSMISSION, again);
    st->start = e->h->rnr.ts;
    st->back = again;
    st->silence = st->lost = waited;
    st->place = both ? PLACE_UNKNOWN : PLACE_AFTER;
    st->end = e->h->next;
    incident_concerns(st, e->p->bth.psn, 0, true);
    st->has_nak = true;
    st->nak_psn = e->h->rnr.psn;
    incident_is(st, both ? SAY(RETRY_OR_NAK, .nak = nak, .psn = e->h->rnr.psn, .again = again, .time = waited)
                         : SAY(LOST_RNR_NAK, .lost = nak, .psn = e->h->rnr.psn, .again = again, .time = waited));
}

/* The requester waited longer than the RNR timer demands: how much, in all. */
static void note_long_wait(struct incident *st, ns_t waited, ns_t demanded)
{
    struct fact *f = st->facts, *end = f + st->n_facts;

    if (waited < RNR_LONG_TIMES * demanded || waited - demanded < RNR_LONG_LEAST)
        return;
    while (f < end && f->sentence != SENTENCE_RNR_LONG)
        f++;
    if (f == end)
        incident_add(st, SAY(RNR_LONG));
    if (f == st->facts + st->n_facts) /* no room */
        return;
    f->n++;
    f->time = ns_sum(f->time, waited);
    f->time2 = ns_sum(f->time2, demanded);
    f->time3 = f->time - f->time2;
}

void explain_late_try(struct explainer *x, const struct event *e, const struct flow_notes *t)
{
    ns_t now = e->p->frame->ts, waited = now - e->h->rnr.ts, timer;
    struct incident *st = incident_at(x, t->hypotheses.rnr);

    if (!st)
        return;
    if (!retries_outlast_rnr(e->h, now)) {
        note_long_wait(st, waited, rnr_time(aeth_value(e->h->rnr.syndrome)));
        return;
    }
    timer = retries_timer_of_rnr(e->h, e->h->timeout, now);
    if (timer) {
        report_lost_rnr_nak(x, e, waited, timer);
        return;
    }
    incident_add(st, SAY(RNR_LATE, .again = frame_u32(e->p), .time = waited, .nak = e->h->rnr.frame));
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    st->certainty = PROBABLE;
}
