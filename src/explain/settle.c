/* layer 3 (explain): responses that end a retransmission, and what the first of them tells of what had arrived. */
#include "dissect/pkt.h"
#include "src/conn/packet.h"
#include "src/explain/compare/copies.h"
#include "src/explain/explain_impl.h"

/* True if the response is a fatal NAK for the request with this PSN: the request has arrived. */
static bool refuses(const struct pkt *p, uint32_t psn)
{
    return p->op->flags & OPF_ACK && p->bth.psn == psn && response_type(p) == AETH_NAK &&
           aeth_value(p->aeth.syndrome) != NAK_PSN_SEQ;
}

/* True if the packets `from` to `last` are the rest of one message, or one packet: one ACK is due for each time that
 * they are sent. In the middle of a message, and of several messages, an ACK does not tell which copies it is for; of
 * two packets in a row each duplicate may have an ACK with the same PSN. */
static bool is_acked_once(struct req_dir *h, uint32_t from, uint32_t last)
{
    bool one = true;

    for (uint32_t psn = from; one && psn != last; psn = psn_add(psn, 1)) {
        const struct sent *s = req_dir_sent(h, psn);
        one = s && !(opcode_table[s->opcode].flags & OPF_END);
    }
    return one && psn_diff(last, from) != 1 &&
           (last == from || opcode_table[req_dir_sent(h, last)->opcode].flags & OPF_END);
}

/* Response `e` ends the retransmission on ACK timeout that `st` is about: expect one more for each other copy of its
 * request, if they are told apart. */
static void await_others(struct explainer *x, const struct event *e, struct flow_notes *t, const struct incident *st)
{
    uint32_t psn = e->p->bth.psn;
    const struct read_req *a = req_dir_read(e->h, psn, 0);
    const struct sent *s = req_dir_sent(e->h, a ? a->psn : psn);
    bool told_apart = a || (s && is_acked_once(e->h, st->psn, psn)),
         twice = st->silence && told_apart && s && s->copies > 1 && !s->same;

    t->hypotheses.answered = twice ? incident_number(x, st) : NO_INCIDENT;
    t->hypotheses.answered_psn = psn;
    t->hypotheses.answers_due = twice ? s->copies - 1 : 0;
}

void explain_other_answer(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    struct incident *st = incident_at(x, t->hypotheses.answered);
    const struct noted_response *r = response_slot(t, e->p->bth.psn);
    bool ack = !(e->p->op->flags & OPF_ACK) || response_type(e->p) == AETH_ACK,
         copy = icrc_of(e->p) && r->icrc == icrc_of(e->p) && r->psn == e->p->bth.psn && frame_ip_id(e->p);

    if (!st || !ack || copy || e->p->bth.psn != t->hypotheses.answered_psn)
        return;
    if (t->hypotheses.answers_due) {
        if (!--t->hypotheses.answers_due)
            st->all_answered = frame_u32(e->p);
        return;
    }
    st->all_answered = 0; /* more than copies: each packet of a duplicate message has an ACK */
    t->hypotheses.answered = NO_INCIDENT;
}

/* --- What the first ACK after a retransmission tells ------------------------------------------- */

/* Whether response `e` came too soon to be about the latest copy `s` of its request: that copy has not passed since
 * `back`, when the requester went back, or less than a round trip ago. */
static bool is_too_soon_for(const struct event *e, const struct flow_notes *t, const struct sent *s, ns_t back)
{
    ns_t trip = t->responses.round_trip;

    return s->ts < back || (trip > 0 && e->p->frame->ts - s->ts < trip - trip / 8);
}

/* After an ACK timeout all that was sent is sent again, and a responder acknowledges a duplicate with the latest PSN
 * that it has (C9-105). The first of these ACKs, which comes before the packet with its PSN was sent again, tells what
 * had arrived:
 *
 *   request   5 6 7 8 ......... 5 6   7 8
 *   response                        7         8 was lost; 8 instead of 7: the response was
 *
 * If it comes later, a second ACK for its PSN tells as much, if that was sent again once: a packet has one ACK at most.
 *
 *   request   5 6 7 8 ......... 5 6 7   8
 *   response                        7 7       8 was lost
 */
static void note_had(const struct event *e, struct flow_notes *t, struct incident *st)
{
    uint32_t psn = e->p->bth.psn, last = psn_prev(st->end);
    const struct sent *first = req_dir_sent(e->h, st->psn), *s = req_dir_sent(e->h, psn),
                      *next = psn == last ? NULL : req_dir_sent(e->h, psn_add(psn, 1));
    ns_t trip = t->responses.round_trip;
    bool ack = e->p->op->flags & OPF_ACK && response_type(e->p) == AETH_ACK,
         asked = st->cause == CAUSE_LOST_LAST_PACKET && st->is_request && st->silence &&
                 st->facts[0].sentence == SENTENCE_NO_ANSWER,
         within = psn_diff(psn, st->psn) > 0 && psn_diff(psn, last) <= 0, needs_second;

    if (!ack || !asked || !within || !first || !s || (!next && psn != last))
        return;
    needs_second = !is_too_soon_for(e, t, s, first->ts);
    if ((needs_second && !next) || (trip > 0 && e->p->frame->ts - first->ts < trip - trip / 8))
        return;
    st->had_psn = psn;
    st->had_frame = needs_second ? 0 : frame_u32(e->p);
    st->had_once = needs_second ? frame_u32(e->p) : 0;
    st->lacked_frame = !next ? 0 : next->ts < first->ts ? next->last : next->first;
    t->hypotheses.had = next ? t->hypotheses.open : NO_INCIDENT;
    t->hypotheses.had_back = first->ts;
}

void explain_had_twice(struct explainer *x, const struct event *e, const struct flow_notes *t)
{
    struct incident *st = incident_at(x, t->hypotheses.had);
    const struct sent *s = st ? req_dir_sent(e->h, st->had_psn) : NULL;
    const struct noted_response *r = response_slot(t, e->p->bth.psn);
    bool ack = e->p->op->flags & OPF_ACK && response_type(e->p) == AETH_ACK,
         another = frame_ip_id(e->p) && icrc_of(e->p) && r->psn == e->p->bth.psn && r->icrc != icrc_of(e->p);

    if (!st || st->had_frame || !ack || e->p->bth.psn != st->had_psn || !another)
        return;
    if (s && s->ts <= st->start + st->lost) /* no further copy since the first of them */
        st->had_frame = frame_u32(e->p);
}

void explain_had_more(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    struct incident *st = incident_at(x, t->hypotheses.had);
    const struct sent *s = st ? req_dir_sent(e->h, psn_add(st->had_psn, 1)) : NULL;

    if (st && psn_diff(response_proves(e->p), psn_add(st->had_psn, 1)) <= 0)
        return;
    t->hypotheses.had = NO_INCIDENT;
    if (st && (!s || is_too_soon_for(e, t, s, t->hypotheses.had_back)))
        st->had_frame = 0; /* it had that packet as well, and was slow to acknowledge it */
}

bool explain_lacked_again(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    struct incident *st = incident_at(x, t->hypotheses.had);
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn);

    if (!st || !st->had_frame || !s || e->why != BACK_SILENCE || e->p->bth.psn != psn_add(st->had_psn, 1))
        return false;
    if (x->several_taps) /* another tap tells which copy was lost */
        return false;
    incident_frame(st, ROLE_EVIDENCE, s->last);
    incident_frame(st, ROLE_RETRANSMISSION, frame_u32(e->p));
    st->tried_frame = s->last;
    st->tried_again = frame_u32(e->p);
    return true;
}

/* Whether nothing else is known of an incident than that nothing came in time. */
static bool is_undecided(const struct incident *st)
{
    bool told = st->moot || st->superseded_by || st->passed || st->proved || !st->had_frame ||
                st->place != PLACE_UNKNOWN || st->cause != CAUSE_LOST_LAST_PACKET || !st->n_facts ||
                st->facts[0].sentence != SENTENCE_NO_ANSWER;

    for (unsigned i = 0; i < st->n_facts; i++)
        told |= st->facts[i].tap != 0;
    return !told;
}

void explain_had(struct explainer *x)
{
    for (uint32_t i = 0; i < x->n; i++) {
        struct incident *st = &x->incidents[i];
        bool alone = st->own == st->n_frames; /* no other tap has frames of it */
        struct fact f;
        if (!is_undecided(st))
            continue;
        f = (struct fact){.psn = st->psn,
                          .psn2 = st->had_psn,
                          .again = st->back,
                          .answer = st->had_frame,
                          .lost = st->lacked_frame,
                          .time = st->silence,
                          .n = st->lacked_frame && psn_add(st->had_psn, 2) != st->end};
        f.other = st->had_once;
        f.sentence = !st->lacked_frame ? SENTENCE_RESPONSE_GONE
                     : st->had_once    ? SENTENCE_TAIL_LOST_TWICE
                                       : SENTENCE_TAIL_LOST;
        st->cause = st->lacked_frame ? CAUSE_LOST_LAST_PACKET : CAUSE_LOST_ACK;
        st->place = st->lacked_frame ? PLACE_AFTER : PLACE_BEFORE;
        copies_only_lost(st, st->tap, st->lacked_frame);
        incident_frame(st, ROLE_ANSWER, st->had_once);
        incident_frame(st, ROLE_ANSWER, st->had_frame);
        st->own = alone ? st->n_frames : st->own;
        incident_is(st, &f);
        if (st->tried_frame)
            incident_add(st, SAY(TAIL_AGAIN, .lost = st->tried_frame, .again = st->tried_again));
    }
}

/* --- The end of an episode --------------------------------------------------------------------- */

/* A response that acknowledges or refuses the PSN of the incident ends the episode. */
void explain_settle(struct explainer *x, const struct event *e, struct flow_notes *t)
{
    struct incident *st = incident_at(x, t->hypotheses.open);
    uint32_t psn, proves = response_proves(e->p);

    if (!st)
        return;
    psn = st->has_psn ? st->psn : t->hypotheses.rnr_psn;
    if ((psn_diff(proves, psn) <= 0 && !refuses(e->p, psn)) ||
        (e->p->op->flags & OPF_ACK && response_type(e->p) != AETH_ACK && st->cause == CAUSE_RNR))
        return;
    st->lost = e->p->frame->ts - st->start;
    if (st->has_psn && st->is_request && req_dir_sent(e->h, st->psn)) {
        st->arrived = frame_u32(e->p);
        st->arrival = e->p->frame->ts - req_dir_sent(e->h, st->psn)->ts;
        await_others(x, e, t, st);
    }
    note_had(e, t, st);
    t->hypotheses.open = NO_INCIDENT;
}
