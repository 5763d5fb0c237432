/* layer 3 (explain): compare taps: ACKs, NAKs, RNR NAKs and READ responses that one tap saw and another one lacks. */
#include "src/explain/compare/answers.h"

#include "src/explain/compare/compare.h"
#include "src/explain/compare/copies.h"

/* The first response to one of `n` requests from `o` on, if the other tap saw it before the latest copy of that
 * request; NULL: none. A sequence NAK for the PSN itself is not such a response. */
static const struct noted_response *answer_before(const struct flow_notes *t, const struct sent *o, unsigned n)
{
    for (unsigned i = 0; t && o->copies > 1 && i < n; i++) {
        const struct noted_response *r = response_noted(t, psn_add(o->psn, i));
        if (r && r->first < o->last && r->kind != RESPONSE_SEQ_NAK)
            return r;
    }
    return NULL;
}

/* Whether a tap may have seen a response to one of `n` requests from `psn` on that it has forgotten. */
static bool may_be_answered(const struct flow_notes *t, uint32_t psn, unsigned n)
{
    for (unsigned i = 0; t && i < n; i++) {
        uint32_t at = response_slot(t, psn_add(psn, i))->psn;
        if (at != UINT32_MAX && psn_diff(at, psn_add(psn, i)) > 0)
            return true;
    }
    return false;
}

/* Whether a response that the tap of a flow lacks did not pass it: it captures responses, and knows whose they are. */
static bool knows_what_it_lacks(const struct explainer *x, uint32_t flow)
{
    return explain_sees_answers(x, flow) && explain_knows_answers(x, flow);
}

bool answers_are_one(const struct explainer *x, uint32_t flow, uint32_t other, const struct noted_response *r)
{
    const struct noted_response *own = response_noted(x->notes[flow], r->psn);
    struct seen_copies here, there;

    if (!own)
        return false;
    here = copies_of_response(x, flow, own);
    there = copies_of_response(x, other, r);
    return copies_compare(x, &here, &there) == FIRST_SAME;
}

bool answer_came_later(const struct explainer *x, const struct incident *st, uint32_t other,
                       const struct noted_response *r)
{
    return st->silence && answers_are_one(x, st->flow, other, r);
}

/* --- NAKs ------------------------------------------------------------------------------------- */

/* Whether the tap of a flow lacks the NAK `r` of another tap: it has no response with its PSN, or none that is such a
 * NAK. What it may have forgotten it does not lack. */
static bool lacks_nak(const struct flow_notes *t, const struct noted_response *r)
{
    const struct noted_response *own = response_slot(t, r->psn);

    if (own->psn == r->psn)
        return own->kind != r->kind;
    return own->psn == UINT32_MAX || psn_diff(own->psn, r->psn) < 0;
}

/* The first NAK for one of `n` requests from that of `st` on, which the other tap saw before the retransmission; NULL:
 * none. */
static const struct noted_response *nak_before(struct explainer *x, const struct incident *st, uint32_t other,
                                               unsigned n)
{
    const struct flow_notes *t = x->notes[other];
    const struct sent *o = req_dir_sent(observer_req_dir(x->observer, other), st->psn);

    for (unsigned i = 0; t && o && i < n; i++) {
        const struct noted_response *r = response_noted(t, psn_add(st->psn, i));
        if (r && r->kind != RESPONSE_OTHER && r->first < o->last)
            return r;
    }
    return NULL;
}

/* What became of the request that the lost NAK is for, as far as this tap and the one of `other` tell; true: they do.
 */
static bool tell_request(struct explainer *x, struct incident *st, uint32_t other)
{
    struct req_dir *a = observer_req_dir(x->observer, st->flow), *b = observer_req_dir(x->observer, other);
    struct missing_copy copy = copies_lost_between(x, a, b, st->nak_psn);
    uint32_t bad = x->notes[other] ? damaged_frame(x->notes[other], st->nak_psn) : 0,
             tap = fact_tap(copies_tap(x, other));

    if (!copy.frame || copy.other)
        return false;
    incident_frame(st, ROLE_LOST, copy.frame);
    incident_role(st, copy.frame, ROLE_LOST);
    if (bad)
        incident_frame_at(st, ROLE_LOST, copies_tap(x, other), bad);
    incident_add(st, bad ? SAY(NAKED_DAMAGED, .lost = copy.frame, .other = bad, .tap = tap)
                         : SAY(NAKED_LACKING, .lost = copy.frame, .tap = tap));
    return true;
}

bool answers_compare_naks(struct explainer *x, struct incident *st, uint32_t other, unsigned n)
{
    const struct noted_response *nak = st->silence ? nak_before(x, st, other, n) : NULL;
    uint32_t there = copies_tap(x, other), again = incident_frame_of(st, ROLE_RETRANSMISSION);

    if (!nak || !x->notes[st->flow] || !lacks_nak(x->notes[st->flow], nak) || !knows_what_it_lacks(x, st->flow))
        return false;
    st->cause = CAUSE_LOST_ACK;
    st->place = PLACE_BEFORE;
    st->proved = true;
    st->has_nak = st->nak_gone = true;
    st->nak_psn = nak->psn;
    incident_is(st, SAY(NAK_LOST_BETWEEN, .psn = nak->psn, .lost = nak->first, .tap = fact_tap(there), .again = again,
                        .time = st->silence, .n = nak->kind == RESPONSE_RNR_NAK));
    copies_response_gone(x, st, other, nak);
    copies_between(x, st, other, st->flow);
    copies_only_lost(st, there, nak->first);
    for (uint32_t k = 0; nak->kind == RESPONSE_SEQ_NAK && (k = explain_elsewhere(x, st->flow, k)) != FLOW_NONE; k++)
        if (tell_request(x, st, k))
            break;
    return true;
}

/* --- Other responses -------------------------------------------------------------------------- */

/* A READ whose length was not captured: it may ask for the rest of an earlier one, again. */
static bool may_be_rest(const struct sent *s)
{
    return (s->opcode & 31) == OP_READ_REQUEST && !s->reth;
}

/* The cause if the response `r`, which the tap of a flow saw, was lost. */
static enum cause cause_of_answer(struct explainer *x, uint32_t flow, const struct noted_response *r)
{
    const struct read_req *read = req_dir_read(observer_req_dir(x->observer, flow), r->psn, 0);

    return r->answer && read && read->opcode == OP_READ_REQUEST ? CAUSE_LOST_READ_RESPONSE : CAUSE_LOST_ACK;
}

/* Whether a tap saw the response `r` more than once, and no two of these copies differ. */
static bool are_alike(const struct explainer *x, uint32_t flow, const struct noted_response *r)
{
    struct seen_copies c = copies_of_response(x, flow, r);

    return c.n > 1 && !c.unlike;
}

/* The other tap saw the response `r`, which this one lacks. */
static void answer_is_gone(struct explainer *x, struct incident *st, const struct sent *o, uint32_t other,
                           const struct noted_response *r)
{
    uint32_t there = copies_tap(x, other);

    incident_add(st, SAY(TAP_ANSWERED, .other = o->first, .tap = fact_tap(there), .answer = r->first));
    copies_response_gone(x, st, other, r);
    copies_between(x, st, other, st->flow);
    copies_only_lost(st, there, r->first);
    st->proved = true;
    st->cause = cause_of_answer(x, other, r);
    st->place = PLACE_BEFORE;
}

/* The other tap saw the response `r` before the retransmission. Its copies are alike, so that nothing tells which of
 * them came here: it was lost between the two, or late. */
static void answer_gone_or_late(struct explainer *x, struct incident *st, const struct sent *o, uint32_t other,
                                const struct noted_response *r)
{
    uint32_t there = copies_tap(x, other);

    incident_add(st, SAY(TAP_ANSWERED_OR_LATE, .other = o->first, .tap = fact_tap(there), .answer = r->first));
    incident_frame_at(st, ROLE_ANSWER, there, r->first);
    copies_between(x, st, other, st->flow);
    st->cause = cause_of_answer(x, other, r);
    st->place = PLACE_BEFORE;
}

void answers_compare(struct explainer *x, struct incident *st, const struct sent *s, const struct sent *o,
                     uint32_t other, unsigned n)
{
    const struct noted_response *answer = answer_before(x->notes[other], o, n),
                                *here = s ? answer_before(x->notes[st->flow], s, n) : NULL;
    uint32_t there = copies_tap(x, other), tap = fact_tap(there);

    incident_frame_at(st, ROLE_EVIDENCE, there, o->first);
    if (o->late && (may_be_rest(o) || !copies_are_one(x, st->flow, other, o, st->psn)))
        return; /* it is late as a retransmission is */
    if (o->late) {
        incident_add(st, SAY(TAP_OVERTAKEN_COPY, .other = o->first, .tap = tap));
        copies_request_late(x, st, st->flow, s);
        copies_between(x, st, st->flow, other);
        st->cause = CAUSE_REORDER;
        st->proved = true;
    } else if (here || (answer && !knows_what_it_lacks(x, st->flow))) {
        incident_add(st, SAY(TAP_TOO, .other = o->first, .tap = tap));
    } else if (answer && answer_came_later(x, st, other, answer) && are_alike(x, other, answer)) {
        answer_gone_or_late(x, st, o, other, answer);
    } else if (answer && answer_came_later(x, st, other, answer)) {
        incident_add(st, SAY(TAP_ANSWERED_LATE, .other = o->first, .tap = tap, .answer = answer->first));
        incident_frame_at(st, ROLE_ANSWER, there, answer->first);
        st->cause = CAUSE_EARLY_TIMEOUT;
        st->place = PLACE_UNKNOWN;
    } else if (answer) {
        answer_is_gone(x, st, o, other, answer);
    } else if (incident_frame_of(st, ROLE_NAK)) {
        incident_add(st, SAY(TAP_TOO, .other = o->first, .tap = tap));
    } else if (!may_be_answered(x->notes[other], o->psn, n)) {
        incident_add(st, SAY(TAP_UNANSWERED, .other = o->first, .tap = tap));
    }
}
