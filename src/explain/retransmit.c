/* layer 3 (explain): requests that are retransmitted, or seen after later ones: lost, corrupted or reordered. */
#include "dissect/pkt.h"
#include "src/conn/packet.h"
#include "src/conn/retries.h"
#include "src/explain/explain_impl.h"
#include "src/transport/verbs.h"

#define SHORTEST_TIMER 1 /* code of the shortest ACK timeout */
/* a response may be on its way to the requester, and its retransmission on the way to the tap, for so long */
#define SHORT_LOOP (100 * NS_PER_US)

/* The incident about a reordered packet that explains this retransmission: the responder dropped the packets that had
 * overtaken it, and NAKed it. NULL: none. */
static struct incident *about_overtaken(struct explainer *x, const struct event *e, const struct flow_notes *t)
{
    struct incident *st = incident_at(x, t->hypotheses.reorder);

    if (!st || !psn_in(e->p->bth.psn, st->psn, (t->hypotheses.reorder_end - st->psn) & PSN_MASK))
        return NULL;
    if (e->why == BACK_SEQ_NAK)
        incident_frame(st, ROLE_NAK, e->h->seq.frame);
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    return st;
}

/* A response with a bad ICRC to one of `n` requests from `psn` on, captured after frame `since` and before any good
 * response; NULL: none. */
static const struct bad_packet *damaged_response(const struct explainer *x, const struct flow *f, uint32_t psn,
                                                 uint32_t n, uint32_t since)
{
    for (unsigned i = 0; i < NOTED_BAD; i++) {
        const struct bad_packet *s = &x->bad_packets[i];
        if (s->answer && s->frame > since && s->tap == f->tap && psn_in(s->psn, psn, n) &&
            is_same_way(&s->src, &s->dst, &f->dst, &f->src))
            return s;
    }
    return NULL;
}

/* The PSN of the damaged packet in this frame. */
static uint32_t damaged_psn(const struct flow_notes *t, uint32_t frame)
{
    unsigned i = 0;

    while (i < NOTED_BAD - 1 && t->requests.bad[i].frame != frame)
        i++;
    return t->requests.bad[i].psn;
}

/* True if an earlier copy than the latest was answered by a NAK for its PSN, as by an RNR NAK. */
static bool was_refused(const struct event *e, const struct sent *s)
{
    const struct req_dir *h = e->h;
    bool rnr = h->rnr.have && h->rnr.psn == s->psn && h->rnr.ts < s->ts,
         seq = h->seq.have && h->seq.psn == s->psn && h->seq.ts < s->ts;

    return s->copies > 1 && (rnr || seq);
}

/* True if a silence is shorter than the ACK timeout, or, if that is not known, than any. */
static bool is_too_short(const struct event *e, ns_t silence)
{
    return silence < timer_earliest(ack_timeout(e->h->timeout ? e->h->timeout : SHORTEST_TIMER));
}

/* True if a READ or atomic was requested again after the latest response that proved anything, which is of a later
 * request: its requester dropped that response as one before was missing, or got neither. What it retransmits now,
 * behind that READ, it has sent since, and those copies had no response.
 *
 *   request   READ 5   SEND 7 8    READ 5   SEND 7 8 ....... SEND 7 8
 *   response                     NAK 9           5 6         the NAK proves 7 and 8; it is dropped, as 5 is missing
 */
static bool was_dropped(const struct event *e)
{
    const struct req_dir *h = e->h;
    const struct read_req *a = req_dir_read(e->h, psn_prev(e->p->bth.psn), 0);

    if (is_too_short(e, e->p->frame->ts - h->last_ts))
        return false;
    return h->have_una && a && a->again && a->frame > h->una_frame && psn_diff(a->psn, h->una) < 0;
}

/* True if an earlier copy than the latest had a response, and the latest had none. */
static bool earlier_was_answered(const struct event *e, const struct sent *s)
{
    return was_refused(e, s) || (s->copies > 1 && was_dropped(e));
}

/* The copy of `s` that had no response: the first, or the latest if others had one; 0: not known. */
static uint32_t copy_in_vain(const struct event *e, const struct sent *s)
{
    return !s ? 0 : earlier_was_answered(e, s) ? s->last : s->first;
}

/* Retransmission on ACK timeout because a later packet, or a response, was corrupted before the tap; NULL: none was. */
static struct incident *report_bad_silence(struct explainer *x, const struct event *e, const struct flow_notes *t,
                                           const struct sent *s)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), e->flow);
    uint32_t psn = e->p->bth.psn, n = ((e->h->next - psn) & PSN_MASK) + 1, peer = f->peer, since = copy_in_vain(e, s);
    const struct bad_packet *stray = s && !t->responses.last_frame ? damaged_response(x, f, psn, n, since) : NULL;
    uint32_t bad = s ? damaged_since(t, psn, n, since) : 0;
    uint32_t answer = stray                                      ? stray->frame
                      : s && peer != FLOW_NONE && x->notes[peer] ? damaged_since(x->notes[peer], psn, n, since)
                                                                 : 0;
    struct incident *st = bad      ? damaged_incident(x, t, bad, e->p)
                          : stray  ? incident_at(x, stray->incident)
                          : answer ? damaged_incident(x, x->notes[peer], answer, e->p)
                                   : NULL;

    if (!st)
        return NULL;
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    st->by = icrc_of(e->p);
    st->start = since == s->first ? s->ts_first : s->ts;
    st->silence = silence_before(e, s);
    incident_concerns(st, bad ? psn : stray ? stray->psn : damaged_psn(x->notes[peer], answer), 0, bad != 0);
    if (bad)
        incident_is(st, SAY(DAMAGED_REQUEST, .lost = bad, .again = frame_u32(e->p)));
    else
        incident_is(st, SAY(DAMAGED_ANSWER, .lost = answer, .again = frame_u32(e->p)));
    return st;
}

/* Retransmission on ACK timeout although a NAK was seen: the NAK was lost after the tap, or arrived too late. NULL: no
 * NAK was seen. */
static struct incident *report_lost_nak(struct explainer *x, const struct event *e)
{
    const struct nak *n = &e->h->seq;
    bool by_nak = n->have && !n->resent && n->frame == e->h->una_frame && psn_diff(n->psn, e->p->bth.psn) >= 0;
    const struct sent *s = by_nak ? req_dir_sent(e->h, n->psn) : NULL;
    uint32_t hole = by_nak ? came_instead(e->h, n->psn) : 0;
    bool passed = s && !s->late && s->ts_first <= n->ts && !req_dir_was_hole(e->h, n->psn, NULL);
    struct incident *st = passed || (by_nak && !s && hole) ? incident_new(x, CAUSE_LOST_ACK, e->flow, e->p) : NULL;

    if (!st)
        return NULL;
    incident_frame(st, ROLE_LOST, n->frame);
    incident_frame(st, passed ? ROLE_LOST : ROLE_INSTEAD, passed ? s->first : hole);
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    st->start = passed ? s->ts_first : n->ts;
    st->place = PLACE_AFTER;
    st->end = e->h->next;
    incident_concerns(st, n->psn, passed ? s->icrc_first : 0, true);
    st->has_nak = true;
    st->nak_psn = n->psn;
    incident_is(st, SAY(LOST_NAK, .psn = n->psn, .lost = n->frame, .again = frame_u32(e->p)));
    incident_add(st,
                 passed ? SAY(NAKED_BEHIND, .op = op_of(s), .lost = s->first) : SAY(NAKED_MISSING, .instead = hole));
    return st;
}

/* True if the response that was seen may have reached the requester after the retransmission. */
static bool came_too_late(const struct event *e, const struct sent *s)
{
    ns_t since = e->p->frame->ts - e->h->una_ts;

    return s && (since < SHORT_LOOP || since < (e->p->frame->ts - s->ts_first) / 2);
}

/* True if the queue pair was reset and begins with the same PSN: everything was acknowledged, and nothing was sent for
 * longer than any ACK timeout, so that this is no retransmission. */
static bool report_qp_reset(struct explainer *x, const struct event *e, const struct flow_notes *t)
{
    ns_t since = e->p->frame->ts - e->h->una_ts,
         quiet = e->h->last_ts > e->h->una_ts ? e->p->frame->ts - e->h->last_ts : since;
    bool anew = e->h->have_una && e->h->una == e->h->next &&
                quiet > longest_timer(&conn_flow_at(observer_conns(x->observer), e->flow)->params);
    bool closed = t->closing.closed_ts > e->h->una_ts && t->closing.closed_ts < e->p->frame->ts;
    struct incident *st = anew && !closed ? incident_new(x, CAUSE_CANNOT_TELL, e->flow, e->p) : NULL;

    if (!st)
        return anew && closed;
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    incident_frame(st, ROLE_ANSWER, e->h->una_frame);
    incident_is(
        st, SAY(QP_RESET, .other = frame_u32(e->p), .psn = e->p->bth.psn, .time = since, .answer = e->h->una_frame));
    return true;
}

/* True if the requester sent nothing between the packet before and this retransmission: their IP IDs are
 * consecutive. */
static bool nothing_between(const struct event *e, const struct sent *last)
{
    uint16_t id = frame_ip_id(e->p);

    return last && last->ip_id && id && id == (uint16_t)(last->ip_id + 1);
}

/* The hypothesis about a retransmission on ACK timeout, by whether a response passed the tap. */
static void suppose_silence(struct incident *st, const struct event *e, const struct flow_notes *t,
                            const struct sent *s)
{
    const struct sent *last = req_dir_sent(e->h, psn_prev(e->h->next));
    struct fact f = {.op = op_of(s), .psn = e->p->bth.psn, .again = frame_u32(e->p), .lost = copy_in_vain(e, s)};

    if (st->cause == CAUSE_LOST_ACK) {
        f.sentence = SENTENCE_LOST_ACK;
        f.lost = e->h->una_frame;
        f.n = came_too_late(e, s);
    } else if (st->cause == CAUSE_HALF_OPEN) {
        f.sentence = SENTENCE_CLOSED;
        f.other = t->closing.closed_frame;
    } else if (st->cause == CAUSE_EARLY_TIMEOUT) {
        f.sentence = SENTENCE_SENT_LATE;
    } else if (!t->requests.unanswered) {
        f.sentence = SENTENCE_NOTHING_ASKS;
    } else {
        f.sentence = SENTENCE_NO_ANSWER;
        f.n = last && last != s;
        f.time = st->silence;
    }
    incident_is(st, &f);
}

static enum cause cause_of_silence(const struct event *e, const struct flow_notes *t)
{
    if (e->h->have_una && psn_diff(e->h->una, e->p->bth.psn) > 0 && !was_dropped(e))
        return CAUSE_LOST_ACK;
    if (t->closing.closed_frame)
        return CAUSE_HALF_OPEN;
    if (!t->requests.unanswered && nothing_between(e, req_dir_sent(e->h, psn_prev(e->h->next))))
        return CAUSE_EARLY_TIMEOUT;
    return CAUSE_LOST_LAST_PACKET;
}

/* True if the requester fell silent before the end of a message, `last` being its latest packet. */
static bool broke_off(const struct incident *st, const struct sent *last)
{
    bool within = last && !(opcode_table[last->opcode].flags & OPF_END);

    return within && (st->place == PLACE_BEFORE || st->cause == CAUSE_LOST_ACK);
}

static struct incident *report_silence(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn), *last = req_dir_sent(e->h, psn_prev(e->h->next));
    enum cause cause = cause_of_silence(e, t);
    bool answered = cause == CAUSE_LOST_ACK, before = cause == CAUSE_LOST_LAST_PACKET && !t->requests.unanswered;
    enum frame_role sent = answered || before ? ROLE_EVIDENCE : ROLE_LOST; /* before: these passed the tap */
    struct incident *st = answered                          ? report_lost_nak(x, e)
                          : cause == CAUSE_LOST_LAST_PACKET ? report_bad_silence(x, e, t, s)
                                                            : NULL;

    if (st)
        return st;
    st = incident_new(x, cause, e->flow, e->p);
    if (!st)
        return NULL;
    if (answered)
        incident_frame(st, ROLE_LOST, e->h->una_frame);
    incident_frame(st, sent, copy_in_vain(e, s));
    if (!answered && last)
        incident_frame(st, sent, copy_in_vain(e, last));
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    st->start = !s ? e->p->frame->ts : earlier_was_answered(e, s) ? s->ts : s->ts_first;
    st->back = frame_u32(e->p);
    if (s)
        st->silence = silence_before(e, s);
    st->place = answered ? PLACE_AFTER : before ? PLACE_BEFORE : PLACE_UNKNOWN;
    st->end = e->h->next;
    incident_concerns(st, e->p->bth.psn, s ? s->icrc_first : 0, true);
    suppose_silence(st, e, t, s);
    if (broke_off(st, last) && timeline_others_sent(x->timeline, e->flow, last->ts))
        incident_add(st, SAY(OTHERS_SENT, .time = e->p->frame->ts - last->ts));
    if (st->cause == CAUSE_LOST_ACK && is_too_short(e, st->silence))
        incident_add(st, SAY(OR_EARLIER));
    return st;
}

/* The same packet is retransmitted on ACK timeout once more: continue its incident. */
static bool goes_on(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    uint32_t number = t->hypotheses.open == NO_INCIDENT ? t->hypotheses.not_received : t->hypotheses.open;
    struct incident *st = incident_at(x, number);

    if (!st || e->why != BACK_SILENCE || !st->has_psn || st->psn != e->p->bth.psn)
        return false;
    if (st->cause == CAUSE_LOST_ACK && st->is_request)
        incident_frame(st, ROLE_LOST, e->h->una_frame);
    else if (st->cause == CAUSE_LOST_ACK && !is_too_short(e, e->p->frame->ts - e->h->last_ts))
        incident_frame(st, ROLE_LOST, answer_frame(t, st->psn)); /* sooner, the response before it is the one */
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    t->hypotheses.open = number;
    return true;
}

/* The requester heeds an RNR NAK: the copy that it retransmitted on ACK timeout before has arrived, and a further ACK
 * timeout is other trouble.
 *
 *   request   5 ......... 5'           5" ......... 5"'
 *   response                 RNR NAK                       one ACK timeout before the RNR NAK, one after it
 */
static void settle_by_rnr(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    struct incident *st = incident_at(x, t->hypotheses.open);
    uint32_t psn = e->p->bth.psn;
    const struct sent *s = req_dir_sent(e->h, psn);

    if (e->h->rnr.psn != psn || retries_timer_of_rnr(e->h, e->h->timeout, e->p->frame->ts))
        return;
    t->hypotheses.not_received = t->hypotheses.silent = NO_INCIDENT;
    if (!st || !st->has_psn || st->psn != psn || !st->is_request)
        return;
    st->lost = e->h->rnr.ts - st->start;
    st->arrived = e->h->rnr.frame;
    st->arrival = s && s->ts < e->h->rnr.ts ? e->h->rnr.ts - s->ts : st->arrival;
    t->hypotheses.open = t->hypotheses.rnr_psn == psn ? t->hypotheses.rnr : NO_INCIDENT;
}

/* Go-back-N, and the tap saw copies of the first packet, but all of them damaged: one incident. */
static struct incident *report_damaged_again(struct explainer *x, const struct event *e, struct flow_notes *t,
                                             uint32_t gap)
{
    uint32_t first = damaged_frame(t, gap), nak = e->h->seq.have && e->h->seq.psn == gap ? e->h->seq.frame : 0;
    struct incident *st = damaged_incident(x, t, first, e->p);

    if (!st)
        return NULL;
    if (!st->has_psn) {
        incident_concerns(st, gap, 0, true);
        incident_frame(st, ROLE_NAK, nak);
        incident_is(st, SAY(DAMAGED_COPIES, .psn = gap, .lost = first, .nak = nak, .again = frame_u32(e->p)));
    }
    if (!explain_damaged_copies(x, t, st, gap, e->p))
        incident_add(st, SAY(LOST_ONCE_MORE, .instead = frame_u32(e->p)));
    return st;
}

/* Go-back-N, but the retransmission of the missing packet was lost before the tap: the first packet seen has a later
 * PSN.
 *
 *   request, sent     5 6 7   5' 6' 7'
 *   request, tap        6 7      6' 7'      5 was lost twice
 */
static struct incident *report_lost_again(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    uint32_t gap = e->h->gbn, hole = 0;
    const struct sent *s = req_dir_sent(e->h, gap);
    struct incident *st = incident_at(x, t->hypotheses.open);

    if (psn_diff(e->p->bth.psn, gap) <= 0 || !req_dir_was_hole(e->h, gap, &hole))
        return NULL;
    if (damaged_frame(t, gap))
        return report_damaged_again(x, e, t, gap);
    if (!st || !st->has_psn || st->psn != gap || st->cause != CAUSE_PACKET_LOSS) {
        st = incident_new(x, CAUSE_PACKET_LOSS, e->flow, e->p);
        if (!st)
            return NULL;
        st->place = PLACE_BEFORE;
        incident_concerns(st, gap, 0, true);
        incident_frame(st, s ? ROLE_EVIDENCE : ROLE_INSTEAD, s ? s->last : hole);
        if (s)
            incident_is(st, SAY(SENT_AGAIN_MISSED, .psn = gap, .lost = s->last, .instead = frame_u32(e->p)));
        else
            incident_is(st, SAY(NEVER_PASSED_TWICE, .psn = gap, .instead = hole, .other = frame_u32(e->p)));
    } else {
        incident_add(st, SAY(LOST_ONCE_MORE, .instead = frame_u32(e->p)));
    }
    incident_frame(st, ROLE_INSTEAD, frame_u32(e->p));
    return st;
}

/* True if the packet of `st`, which passed the tap and was lost, was sent after `o` led to a retransmission: it is
 * another loss, even if it is of one of the same PSNs. */
static bool is_lost_since(const struct incident *st, const struct incident *o)
{
    uint32_t lost = incident_frame_of(st, ROLE_LOST), again = incident_frame_of(o, ROLE_RETRANSMISSION);

    return st->place == PLACE_AFTER && lost && again && lost > again;
}

/* The NAK explains this loss. Drop the timeout or lost ACK reported earlier for the same PSNs: it is the same event. */
static void report_once(struct explainer *x, struct flow_notes *t, struct incident *st)
{
    struct incident *before[] = {incident_at(x, t->hypotheses.silent), incident_at(x, t->hypotheses.not_received)};

    for (unsigned i = 0; i < ARRAY_LEN(before); i++) {
        struct incident *o = before[i];
        bool same = o && o != st && !o->moot && !is_lost_since(st, o) &&
                    (o->cause == CAUSE_LOST_LAST_PACKET
                         ? psn_in(st->psn, o->psn, (o->end - o->psn) & PSN_MASK)
                         : o->cause == CAUSE_LOST_ACK && st->n_frames > 1 && o->frames[0] == st->frames[1]);
        if (!same)
            continue;
        o->moot = true;
        st->again += o->again;
        st->start = o->start < st->start ? o->start : st->start;
        incident_frame(st, ROLE_RETRANSMISSION, o->frames[o->n_frames - 1]);
    }
    t->hypotheses.silent = NO_INCIDENT;
}

/* True if a copy comes sooner than its ACK timeout can expire, without a NAK for it or an earlier packet. With READs
 * and atomics outstanding it may follow an implied NAK, so only if its IP identification lies before that of the copy
 * that passed already. */
static bool too_soon(const struct event *e, const struct flow_notes *t)
{
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn);
    bool by_nak = e->h->seq.have && !e->h->seq.resent && psn_diff(e->h->seq.psn, e->p->bth.psn) < 0;
    bool held = s && sent_order(frame_ip_id(e->p), s->ip_id) < 0, alone = e->why == BACK_SILENCE && !e->h->reads_at;
    ns_t least = held && e->h->timeout ? timer_earliest(ack_timeout(e->h->timeout)) : ack_timeout(SHORTEST_TIMER);

    return s && !by_nak && t->responses.last_frame && psn_diff(s->psn, e->h->start) >= 0 &&
           e->p->frame->ts - s->ts < least && (alone || (held && (e->why == BACK_SILENCE || e->why == BACK_IMPLIED)));
}

/* Such a copy was reordered; gathered in one incident. */
static void report_too_soon(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn);
    struct incident *st = incident_at(x, t->hypotheses.soon);

    if (!st) {
        st = incident_new(x, CAUSE_REORDER, e->flow, e->p);
        if (!st)
            return;
        t->hypotheses.soon = incident_number(x, st);
        st->place = PLACE_BEFORE;
        incident_is(st, SAY(TOO_SOON, .psn = s->psn, .again = frame_u32(e->p), .time = e->p->frame->ts - s->ts,
                            .lost = s->last, .n = sent_order(frame_ip_id(e->p), s->ip_id) < 0));
    }
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    t->hypotheses.hasty.psn = s->psn;
    t->hypotheses.hasty.lost = s->last;
    t->hypotheses.hasty.again = frame_u32(e->p);
    t->hypotheses.hasty.sent = s->ts;
    t->hypotheses.hasty.ts = e->p->frame->ts;
}

/* True if nothing is said of an incident about a missing packet but what came instead of it, and of others. */
static bool is_missing_once(const struct incident *st)
{
    unsigned n = st->n_facts;

    while (n > 2 && st->facts[n - 1].sentence == SENTENCE_MISSING_AS_WELL)
        n--;
    return n <= 2;
}

/* True if a request that seems to be retransmitted for a NAK may belong to a go-back-N under way, and was overtaken by
 * more than one of its packets: it is the copy that seems to have been lost before the tap, or comes instead of that
 * one, or it is part of a reordering already reported. The next request tells (explain_reordered()). */
static bool is_perhaps_overtaken(const struct event *e, const struct incident *st)
{
    bool lost = st->cause == CAUSE_PACKET_LOSS && st->place == PLACE_BEFORE && is_missing_once(st) &&
                (st->psn == e->p->bth.psn ||
                 (st->facts[0].sentence == SENTENCE_SENT_AGAIN_MISSED && req_dir_span(e->h, e->p) == 1));

    return e->why == BACK_SEQ_NAK && (lost || st->cause == CAUSE_REORDER) &&
           psn_diff(e->h->cursor, psn_add(e->p->bth.psn, 1)) > 0;
}

/* The requester goes back. */
static void report_back(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    struct read_req *a = req_dir_read(e->h, e->p->bth.psn, 0), *older;
    struct incident *st;

    for (unsigned n = 1; a && n < 8 && (older = req_dir_read(e->h, e->p->bth.psn, n)) != NULL; n++)
        a = older;
    if (e->why == BACK_RNR) {
        explain_late_try(x, e, t);
        settle_by_rnr(x, e, t);
    }
    if (e->why == BACK_RNR || goes_on(x, e, t) || explain_lacked_again(x, e, t))
        return;
    if (e->why == BACK_SEQ_NAK && e->h->rnr.have && e->h->rnr.psn == e->h->seq.psn)
        return; /* part of the RNR NAK's incident */
    if (too_soon(e, t)) {
        report_too_soon(x, e, t);
        return;
    }
    st = report_lost_again(x, e, t);
    if (!st)
        st = e->why == BACK_SEQ_NAK ||
                     (e->why == BACK_SILENCE && (!t->responses.last_frame || psn_diff(e->p->bth.psn, e->h->start) < 0))
                 ? about_overtaken(x, e, t)
                 : NULL;
    if (!st)
        st = e->why == BACK_SEQ_NAK     ? explain_loss(x, e, t)
             : report_qp_reset(x, e, t) ? NULL
             : a                        ? explain_read(x, e, t, a)
                                        : report_silence(x, e, t);
    if (st && e->why == BACK_SEQ_NAK)
        report_once(x, t, st);
    t->hypotheses.open = incident_number(x, st);
    if (st && is_perhaps_overtaken(e, st))
        explain_comes_late(x, e, t, st, e->h->cursor);
    if (st && st->cause == CAUSE_LOST_LAST_PACKET && e->why == BACK_SILENCE)
        t->hypotheses.silent = t->hypotheses.open;
    t->hypotheses.not_received =
        st && st->cause == CAUSE_LOST_ACK && e->why == BACK_SILENCE ? t->hypotheses.open : NO_INCIDENT;
}

/* True if a later response, or one out of order, made the requester go back: no NAK came, and no ACK timer can have
 * expired. */
static bool is_implied(const struct event *e)
{
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn);

    return e->why == BACK_IMPLIED || (e->why == BACK_SILENCE && s && is_too_short(e, e->p->frame->ts - s->ts));
}

void explain_back(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    struct incident *st;

    if (is_implied(e))
        t->responses.implied = e->p->bth.psn;
    if (t->hypotheses.answers_due && psn_diff(t->hypotheses.answered_psn, e->p->bth.psn) >= 0)
        t->hypotheses.answered = NO_INCIDENT; /* one more copy: which of them the next response is for is not known */
    report_back(x, e, t);
    st = e->moved && e->why == BACK_SILENCE ? incident_at(x, t->hypotheses.open) : NULL;
    if (st)
        incident_add(st, SAY(MIGRATED, .again = frame_u32(e->p)));
}

/* Whether the latest retransmission of `psn` was so long after the first copy that the ACK timer may have run out. */
static bool may_be_timeout(struct req_dir *h, uint32_t psn)
{
    const struct sent *s = req_dir_sent(h, psn);

    return s && s->ts - s->ts_first >= timer_earliest(ack_timeout(h->timeout ? h->timeout : 1));
}

/* The requester continues after PSN n although no ACK of n was seen since it retransmitted: it did get the earlier ACK,
 * only after its ACK timeout had expired (spurious timeout).
 *
 *   request   4 5           4 .  6        4 is retransmitted on ACK timeout, then new requests follow
 *   ACK            5                      no other ACK: this one arrived, after the timeout */
void explain_skips(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    struct incident *st = incident_at(x, t->hypotheses.not_received);
    uint32_t psn = e->p->bth.psn, answer = response_frame(t, psn_prev(psn));

    if (!st || psn_diff(psn, e->h->cursor) <= 0 || !answer || answer >= st->back || e->h->back_psn != st->psn)
        return;
    if (!may_be_timeout(e->h, st->psn))
        return;
    if (e->p->frame->ts - response_slot(t, psn_prev(psn))->ts >= SHORT_LOOP || e->h->seq.have || e->h->late ||
        e->h->gaps || e->h->disorder)
        return; /* the packets skipped may have been reordered or lost */
    t->hypotheses.not_received = NO_INCIDENT;
    st->cause = CAUSE_EARLY_TIMEOUT;
    st->place = PLACE_UNKNOWN;
    st->silence = 0; /* the ACK timeout was longer than the silence at the tap */
    incident_frame(st, ROLE_ANSWER, answer);
    incident_frame(st, ROLE_EVIDENCE, frame_u32(e->p));
    incident_is(st, SAY(ANSWER_ARRIVED, .answer = answer, .psn = psn_prev(psn), .psn2 = st->psn, .again = st->back,
                        .n = psn, .other = frame_u32(e->p)));
}
