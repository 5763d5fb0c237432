/* layer 3 (explain): requests that are sent again, or come behind later ones: what was lost, damaged or overtaken. */
#include "src/explain/explain_impl.h"
#include "src/transport/verbs.h"

#include <stdio.h>

#define OVERTAKEN_WITHIN (4 * NS_PER_MS) /* a packet that comes behind later ones by more was sent again */

#define SHORTEST_TIMER 1 /* code of the shortest ACK timeout */
/* an answer may be on its way to the requester, and what that had sent on its way to the tap, for so long */
#define SHORT_LOOP (100 * NS_PER_US)
#define RNR_TICKS  (10 * NS_PER_MS) /* software waits for so long instead of an RNR timer that is shorter */

/* What is sent again because a packet was overtaken: its receiver dropped what came before it, and asked for it as it
 * came. */
static struct statement *about_overtaken(struct explainer *x, const struct event *e, const struct told *t)
{
    struct statement *st = statement_at(x, t->reorder);

    if (!st || !psn_in(e->p->bth.psn, st->psn, (t->reorder_end - st->psn) & PSN_MASK))
        return NULL;
    if (e->why == BACK_SEQ_NAK)
        statement_frame(st, e->h->seq.frame);
    statement_frame(st, frame_u32(e->p));
    return st;
}

/* The frame that came instead of a PSN: of one before all that was seen, the first; 0: not known. */
static uint32_t came_instead(const struct req_dir *h, uint32_t psn)
{
    uint32_t hole = 0;

    if (psn_diff(psn, h->start) < 0)
        return h->first_frame;
    req_dir_was_hole(h, psn, &hole);
    return hole;
}

/* "PSN 5 never passed the tap: frame 4 came instead." Or not when it was sent again, if `before` is the copy before. */
static void say_never_passed(struct explainer *x, struct statement *st, uint32_t psn, uint32_t hole, uint32_t before)
{
    if (hole && before)
        statement_say(x, st,
                      "PSN %u (frame %u) was lost or dropped behind a gap; sent again it never passed the tap: frame "
                      "%u came instead.",
                      psn, before, hole);
    else if (hole)
        statement_say(x, st, "PSN %u never passed the tap: frame %u came instead.", psn, hole);
    else
        statement_say(x, st, "PSN %u never passed the tap.", psn);
}

/* The statement, among the latest ones, about the loss of a packet before the tap; NULL for none. */
static struct statement *loss_before(struct explainer *x, uint32_t flow, uint32_t psn)
{
    for (uint32_t i = x->n; i > 0 && x->n - i < 16; i--) {
        struct statement *st = &x->st[i - 1];
        if (st->flow == flow && st->cause == CAUSE_PACKET_LOSS && st->where == WHERE_BEFORE && st->has_psn &&
            st->is_request && st->psn == psn)
            return st;
    }
    return NULL;
}

/* Later packets of what went by behind the gap at `psn`, for which `hole` came, were missing as well. */
static void tell_further_gaps(struct explainer *x, struct statement *st, const struct told *t, uint32_t psn,
                              uint32_t hole)
{
    char more[120];

    for (unsigned i = 0; hole && i < TOLD_GAPS; i++) {
        const unsigned at = (t->gaps_at + i) % TOLD_GAPS;
        if (t->gaps[at].frame <= hole || psn_diff(t->gaps[at].psn, psn) <= 0 ||
            !psn_in(t->gaps[at].psn, psn, (st->end - psn) & PSN_MASK))
            continue;
        statement_frame(st, t->gaps[at].frame);
        snprintf(more, sizeof more, "PSN %u was missing as well: frame %u came instead.", t->gaps[at].psn,
                 t->gaps[at].frame);
        statement_add(x, st, more);
    }
}

/* What the requester has got with which it goes back: the NAK for where it goes back to, or else the latest one. */
static const struct asked *nak_answered(const struct event *e, struct told *t)
{
    const struct asked *q = passes_asked(&t->passes, e->p->bth.psn);

    return q && !q->answered ? q : passes_asked(&t->passes, e->h->seq.psn);
}

/* The responder asked for `psn`, and then for one behind it, before anything was sent again: so the packet had arrived
 * meanwhile. */
static struct statement *tell_overtaken(struct explainer *x, const struct event *e, struct told *t, uint32_t psn,
                                        const struct sent *s)
{
    struct statement *st = statement_new(x, CAUSE_REORDER, e->flow, e->p);
    uint32_t nak = told_rsp_frame(t, psn);

    if (!st)
        return NULL;
    statement_frame(st, s->first);
    statement_frame(st, nak);
    statement_frame(st, e->h->seq.frame);
    statement_frame(st, frame_u32(e->p));
    st->start = s->ts_first;
    st->where = WHERE_AFTER;
    statement_concerns(st, psn, s->icrc_first, true);
    t->reorder = statement_number(x, st);
    t->reorder_end = e->h->next;
    statement_say(
        x, st,
        "%s with PSN %u (frame %u) passed the tap and was overtaken behind it: %s asked for it with a NAK (frame %u), "
        "and had it before it was sent again in frame %u, for its next NAK (frame %u) asks for PSN %u.",
        request_name(s), psn, s->first, dst_text(x, e->flow), nak, frame_u32(e->p), e->h->seq.frame, e->h->seq.psn);
    return st;
}

/* The ICRC of one of the copies of a packet, as far as it is remembered. */
static uint32_t icrc_of_copy(const struct sent *s, uint32_t frame)
{
    return frame == s->last ? s->icrc : frame == s->first ? s->icrc_first : 0;
}

/* A sequence NAK brought it back. */
static struct statement *tell_loss(struct explainer *x, const struct event *e, struct told *t)
{
    const struct asked *q = nak_answered(e, t);
    uint32_t psn = q ? q->psn : e->h->seq.psn, hole = q && q->instead ? q->instead : came_instead(e->h, psn),
             bad = told_bad_frame(t, psn);
    const struct sent *s = req_dir_sent(e->h, psn);
    uint32_t copy = q ? q->copy : 0, nak = q ? q->nak : e->h->seq.frame;
    bool passed = copy != 0;
    bool late = s && s->late && q && (q->late || passes_since(&t->passes, q));
    enum cause cause = bad ? CAUSE_BAD_ICRC : late ? CAUSE_REORDER : CAUSE_PACKET_LOSS;
    struct statement *st = bad                      ? told_about_bad(x, t, bad, e->p)
                           : cause == CAUSE_REORDER ? statement_at(x, t->reorder)
                                                    : NULL;

    if (cause == CAUSE_PACKET_LOSS && passed && s && s->copies == 1 && psn_diff(e->h->seq.psn, psn) > 0 &&
        told_rsp_frame(t, psn))
        return tell_overtaken(x, e, t, psn, s);
    if (!st || (cause == CAUSE_REORDER && st->psn != psn))
        st = cause == CAUSE_REORDER ? loss_before(x, e->flow, psn) : NULL;
    if (st && st->cause == CAUSE_PACKET_LOSS) {
        statement_frame(st, frame_u32(e->p));
        return st;
    }
    if (!st)
        st = statement_new(x, cause, e->flow, e->p);
    if (!st)
        return NULL;
    statement_frame(st, bad ? bad : passed ? copy : hole);
    statement_frame(st, nak);
    statement_frame(st, frame_u32(e->p));
    st->start = s ? s->ts_first : e->h->seq.ts;
    st->end = e->h->next;
    statement_concerns(st, psn, s ? icrc_of_copy(s, copy) : 0, true);
    if (bad)
        statement_say(x, st,
                      "PSN %u (frame %u) reached %s damaged and was dropped; a NAK (frame %u) asked for it, and it was "
                      "sent again in frame %u.",
                      psn, bad, dst_text(x, e->flow), nak, frame_u32(e->p));
    else if (cause == CAUSE_REORDER)
        statement_say(x, st,
                      "PSN %u (frame %u) came behind later packets; %s dropped those, asked for it with a NAK (frame "
                      "%u), and all was sent again from frame %u on.",
                      psn, s->first, dst_text(x, e->flow), nak, frame_u32(e->p));
    else if (passed)
        statement_say(x, st,
                      "%s with PSN %u (frame %u) passed the tap and was lost, damaged or overtaken behind it: %s asked "
                      "for it with a NAK (frame %u), and it was sent again in frame %u.",
                      request_name(s), psn, copy, dst_text(x, e->flow), nak, frame_u32(e->p));
    else {
        say_never_passed(x, st, psn, hole, q ? q->dropped : 0);
        statement_say(x, st, "%s %s asked for it with a NAK (frame %u), and it was sent again in frame %u.",
                      explain_text_of(x, st), dst_text(x, e->flow), nak, frame_u32(e->p));
    }
    st->where = bad || cause == CAUSE_REORDER ? WHERE_BEFORE : passed ? WHERE_AFTER : WHERE_BEFORE;
    st->once = passed && s && s->copies == 1;
    st->repeated = cause == CAUSE_PACKET_LOSS && s && (passed ? copy != s->first : q && q->dropped);
    if (cause == CAUSE_PACKET_LOSS && !passed)
        tell_further_gaps(x, st, t, psn, hole);
    return st;
}

/* A damaged answer to one of `n` requests from `psn` on, in a frame behind `since`, that came before any good one; NULL
 * for none. */
static const struct stray *stray_answer(const struct explainer *x, const struct flow *f, uint32_t psn, uint32_t n,
                                        uint32_t since)
{
    for (unsigned i = 0; i < TOLD_BAD; i++) {
        const struct stray *s = &x->strays[i];
        if (s->answer && s->frame > since && s->tap == f->tap && psn_in(s->psn, psn, n) &&
            conn_addr_eq(&s->src, &f->dst) && conn_addr_eq(&s->dst, &f->src))
            return s;
    }
    return NULL;
}

/* A packet behind what is sent again after a silence, or an answer to it, was damaged before the tap: that is why. */
static struct statement *tell_bad_silence(struct explainer *x, const struct event *e, const struct told *t,
                                          const struct sent *s)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), e->flow);
    uint32_t psn = e->p->bth.psn, n = ((e->h->next - psn) & PSN_MASK) + 1, peer = f->peer;
    const struct stray *stray = s && !t->last_rsp_frame ? stray_answer(x, f, psn, n, s->first) : NULL;
    uint32_t bad = s ? told_bad_since(t, psn, n, s->first) : 0;
    uint32_t answer = stray                                     ? stray->frame
                      : s && peer != FLOW_NONE && x->told[peer] ? told_bad_since(x->told[peer], psn, n, s->first)
                                                                : 0;
    struct statement *st = bad      ? told_about_bad(x, t, bad, e->p)
                           : stray  ? statement_at(x, stray->statement)
                           : answer ? told_about_bad(x, x->told[peer], answer, e->p)
                                    : NULL;

    if (!st)
        return NULL;
    statement_frame(st, frame_u32(e->p));
    st->by = icrc_of(e->p);
    st->start = s->ts_first;
    st->silence = silence_before(e, s);
    statement_concerns(st, psn, 0, bad != 0);
    statement_say(x, st,
                  "%s of %s (frame %u) was damaged before the tap and is dropped by its receiver; %s sent again from "
                  "frame %u on when the ACK timeout had run out.",
                  bad ? "A request" : "An answer", bad ? src_text(x, e->flow) : dst_text(x, e->flow),
                  bad ? bad : answer, src_text(x, e->flow), frame_u32(e->p));
    return st;
}

/* What is sent again after a silence was asked for with a NAK, which was lost behind the tap or came too late; NULL if
 * it was not. */
static struct statement *tell_lost_nak(struct explainer *x, const struct event *e)
{
    const struct nak *n = &e->h->seq;
    bool asked = n->have && !n->resent && n->frame == e->h->una_frame && psn_diff(n->psn, e->p->bth.psn) >= 0;
    const struct sent *s = asked ? req_dir_sent(e->h, n->psn) : NULL;
    uint32_t hole = asked ? came_instead(e->h, n->psn) : 0;
    bool passed = s && !s->late && s->ts_first <= n->ts && !req_dir_was_hole(e->h, n->psn, NULL);
    struct statement *st = passed || (asked && !s && hole) ? statement_new(x, CAUSE_PACKET_LOSS, e->flow, e->p) : NULL;

    if (!st)
        return NULL;
    statement_frame(st, passed ? s->first : hole);
    statement_frame(st, n->frame);
    statement_frame(st, frame_u32(e->p));
    st->start = passed ? s->ts_first : n->ts;
    st->where = passed ? WHERE_AFTER : WHERE_BEFORE;
    st->end = e->h->next;
    statement_concerns(st, n->psn, passed ? s->icrc_first : 0, true);
    if (passed)
        statement_say(x, st, "%s with PSN %u (frame %u) passed the tap and was lost, damaged or overtaken behind it:",
                      request_name(s), n->psn, s->first);
    else
        say_never_passed(x, st, n->psn, hole, 0);
    statement_say(x, st,
                  "%s %s asked for it with a NAK (frame %u), which was lost behind the tap or came too late, for %s "
                  "sent again from frame %u on only after a silence.",
                  explain_text_of(x, st), dst_text(x, e->flow), n->frame, src_text(x, e->flow), frame_u32(e->p));
    return st;
}

/* Whether the answer seen may have come to the requester when it had sent the packet again already. */
static bool came_too_late(const struct event *e, const struct sent *s)
{
    ns_t since = e->p->frame->ts - e->h->una_ts;

    return s && (since < SHORT_LOOP || since < (e->p->frame->ts - s->ts_first) / 2);
}

/* All had been answered, and nothing was sent for longer than any timer runs: rather than sent again, a queue pair has
 * begun anew with the same PSN. */
static bool tell_anew(struct explainer *x, const struct event *e)
{
    ns_t since = e->p->frame->ts - e->h->una_ts,
         quiet = e->h->last_ts > e->h->una_ts ? e->p->frame->ts - e->h->last_ts : since;
    bool anew = e->h->have_una && e->h->una == e->h->next &&
                quiet > longest_timer(&conn_flow_at(observer_conns(x->observer), e->flow)->params);
    struct statement *st = anew ? statement_new(x, CAUSE_CANNOT_TELL, e->flow, e->p) : NULL;

    if (!st)
        return false;
    statement_frame(st, frame_u32(e->p));
    statement_frame(st, e->h->una_frame);
    statement_say(x, st,
                  "Frame %u has PSN %u once more, %s after frame %u, which answers it: the queue pair was most likely "
                  "set up anew with the same PSN, or the answer was lost behind the tap.",
                  frame_u32(e->p), e->p->bth.psn, time_text(x, since), e->h->una_frame);
    return true;
}

static struct statement *tell_silence(struct explainer *x, const struct event *e, struct told *t)
{
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn);
    bool answered = e->h->have_una && psn_diff(e->h->una, e->p->bth.psn) > 0;
    enum cause cause = answered ? CAUSE_LOST_ACK : t->closed_frame ? CAUSE_HALF_OPEN : CAUSE_LOST_LAST_PACKET;
    const struct sent *last = req_dir_sent(e->h, psn_prev(e->h->next));
    struct statement *st = answered                          ? tell_lost_nak(x, e)
                           : cause == CAUSE_LOST_LAST_PACKET ? tell_bad_silence(x, e, t, s)
                                                             : NULL;

    if (st)
        return st;
    st = statement_new(x, cause, e->flow, e->p);
    if (!st)
        return NULL;
    if (answered)
        statement_frame(st, e->h->una_frame);
    statement_frame(st, s ? s->first : 0);
    if (!answered && last)
        statement_frame(st, last->first);
    statement_frame(st, frame_u32(e->p));
    st->start = s ? s->ts_first : e->p->frame->ts;
    st->back = frame_u32(e->p);
    if (s)
        st->silence = silence_before(e, s);
    st->where = answered ? WHERE_AFTER : t->owed ? WHERE_UNKNOWN : WHERE_BEFORE;
    st->end = e->h->next;
    statement_concerns(st, e->p->bth.psn, s ? s->icrc_first : 0, true);
    if (cause == CAUSE_LOST_LAST_PACKET && !t->owed)
        statement_say(x, st,
                      "%s sent from PSN %u (frame %u) on again in frame %u when the ACK timeout had run out: what "
                      "passed the tap asks for no "
                      "answer, so a packet that does was lost before the tap.",
                      src_text(x, e->flow), e->p->bth.psn, s ? s->first : 0, frame_u32(e->p));
    else if (answered)
        statement_say(x, st,
                      "Frame %u answers PSN %u, but was lost or damaged behind the tap%s: %s sent the packet again in "
                      "frame %u after a silence.",
                      e->h->una_frame, e->p->bth.psn, came_too_late(e, s) ? ", or came too late" : "",
                      src_text(x, e->flow), frame_u32(e->p));
    else if (cause == CAUSE_HALF_OPEN)
        statement_say(x, st, "%s closed the connection in frame %u; requests to it go unanswered since.",
                      dst_text(x, e->flow), t->closed_frame);
    else
        statement_say(x, st,
                      "%s with PSN %u (frame %u)%s was not answered, and %s sent it again from frame %u on when the "
                      "ACK timeout had run out: a packet was lost behind the tap, or the answer before the tap.",
                      request_name(s), e->p->bth.psn, s ? s->first : 0,
                      last && last != s ? ", or what follows it," : "", src_text(x, e->flow), frame_u32(e->p));
    return st;
}

/* A repetition that goes on with the silence of the one before. */
static bool goes_on(struct explainer *x, const struct event *e, struct told *t)
{
    uint32_t number = t->open == NO_STATEMENT ? t->unheard : t->open;
    struct statement *st = statement_at(x, number);

    if (!st || e->why != BACK_SILENCE || !st->has_psn || st->psn != e->p->bth.psn)
        return false;
    if (st->where == WHERE_BEFORE && st->cause != CAUSE_LOST_LAST_PACKET)
        return false;
    if (st->cause == CAUSE_LOST_ACK)
        statement_frame(st, e->h->una_frame);
    statement_frame(st, frame_u32(e->p));
    t->open = number;
    return true;
}

/* Its sender went back, but the packet that is missing was lost again before the tap: what comes first is one behind
 * it. */
static struct statement *tell_lost_again(struct explainer *x, const struct event *e, struct told *t)
{
    uint32_t gap = e->h->gbn, hole = 0;
    const struct sent *s = req_dir_sent(e->h, gap);
    struct statement *st = statement_at(x, t->open);

    if (psn_diff(e->p->bth.psn, gap) <= 0 || !req_dir_was_hole(e->h, gap, &hole))
        return NULL;
    if (!st || !st->has_psn || st->psn != gap || st->cause != CAUSE_PACKET_LOSS) {
        st = statement_new(x, CAUSE_PACKET_LOSS, e->flow, e->p);
        if (!st)
            return NULL;
        st->where = WHERE_BEFORE;
        statement_concerns(st, gap, 0, true);
        statement_frame(st, s ? s->last : hole);
        if (s)
            statement_say(x, st,
                          "PSN %u (frame %u) was sent again, but did not pass the tap then: frame %u came instead.",
                          gap, s->last, frame_u32(e->p));
        else
            statement_say(x, st, "PSN %u never passed the tap: frame %u came instead, and frame %u when %s sent again.",
                          gap, hole, frame_u32(e->p), src_text(x, e->flow));
    } else if (st->n_frames < STATEMENT_FRAMES) {
        statement_say(x, st, "%s Sent again it was lost once more: frame %u came instead.", explain_text_of(x, st),
                      frame_u32(e->p));
    }
    statement_frame(st, frame_u32(e->p));
    return st;
}

/* A NAK tells what was lost: that its sender went back before, for want of an answer, is no further loss, and the NAK
 * itself was not lost. */
static void tell_once(struct explainer *x, struct told *t, struct statement *st)
{
    struct statement *before[] = {statement_at(x, t->silent), statement_at(x, t->unheard)};

    for (unsigned i = 0; i < ARRAY_LEN(before); i++) {
        struct statement *o = before[i];
        bool same = o && o != st && !o->moot &&
                    (o->cause == CAUSE_LOST_LAST_PACKET
                         ? psn_in(st->psn, o->psn, (o->end - o->psn) & PSN_MASK)
                         : o->cause == CAUSE_LOST_ACK && st->n_frames > 1 && o->frames[0] == st->frames[1]);
        if (!same)
            continue;
        o->moot = true;
        st->again += o->again;
        st->start = o->start < st->start ? o->start : st->start;
        statement_frame(st, o->frames[o->n_frames - 1]);
    }
    t->silent = NO_STATEMENT;
}

/* What was to be tried again after an RNR NAK is, but only when the ACK timeout had run out. */
static void tell_late_try(struct explainer *x, const struct event *e, const struct told *t)
{
    ns_t waited = e->p->frame->ts - e->h->rnr.ts, asked = rnr_time(aeth_value(e->h->rnr.syndrome)),
         timer = ack_timeout(e->h->timeout);
    struct statement *st = statement_at(x, t->rnr);

    if (!st || waited < timer_earliest(timer) || waited < RNR_TICKS + 4 * asked)
        return;
    if (st->n_frames < STATEMENT_FRAMES)
        statement_say(x, st,
                      "%s It came again only in frame %u, %.3f ms later, when the ACK timeout had run out: the RNR NAK "
                      "in frame %u was most likely lost behind the tap.",
                      explain_text_of(x, st), frame_u32(e->p), (double)waited / 1e6, e->h->rnr.frame);
    statement_frame(st, frame_u32(e->p));
}

/* A copy so soon after the one before that no ACK timeout can have run out, and no NAK asked for it. With READs and
 * atomics an implied NAK may have. */
static bool too_soon(const struct event *e, const struct told *t)
{
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn);

    return e->why == BACK_SILENCE && t->last_rsp_frame && s && !e->h->asks_at && psn_diff(s->psn, e->h->start) >= 0 &&
           e->p->frame->ts - s->ts < ack_timeout(SHORTEST_TIMER);
}

/* So it was overtaken; gathered in one statement. */
static void tell_too_soon(struct explainer *x, const struct event *e, struct told *t)
{
    const struct sent *s = req_dir_sent(e->h, e->p->bth.psn);
    struct statement *st = statement_at(x, t->soon);

    if (!st) {
        st = statement_new(x, CAUSE_REORDER, e->flow, e->p);
        if (!st)
            return;
        t->soon = statement_number(x, st);
        st->where = WHERE_BEFORE;
        statement_say(x, st,
                      "PSN %u (frame %u) came behind later packets, %s after its copy before (frame %u): sooner than "
                      "any ACK timeout runs out, and no NAK that asks for it was captured. Most likely what %s had "
                      "sent again was overtaken.",
                      s->psn, frame_u32(e->p), time_text(x, e->p->frame->ts - s->ts), s->last, src_text(x, e->flow));
    }
    statement_frame(st, frame_u32(e->p));
}

void explain_back(struct explainer *x, const struct event *e, struct told *t)
{
    struct read_req *a = req_dir_ask(e->h, e->p->bth.psn, 0), *older;
    struct statement *st;

    for (unsigned n = 1; a && n < 8 && (older = req_dir_ask(e->h, e->p->bth.psn, n)) != NULL; n++)
        a = older;
    if (e->why == BACK_RNR)
        tell_late_try(x, e, t);
    if (e->why == BACK_RNR || goes_on(x, e, t))
        return;
    if (e->why == BACK_SEQ_NAK && e->h->rnr.have && e->h->rnr.psn == e->h->seq.psn)
        return; /* part of the RNR */
    if (too_soon(e, t)) {
        tell_too_soon(x, e, t);
        return;
    }
    st = tell_lost_again(x, e, t);
    if (!st)
        st = e->why == BACK_SEQ_NAK ||
                     (e->why == BACK_SILENCE && (!t->last_rsp_frame || psn_diff(e->p->bth.psn, e->h->start) < 0))
                 ? about_overtaken(x, e, t)
                 : NULL;
    if (!st)
        st = e->why == BACK_SEQ_NAK ? tell_loss(x, e, t)
             : tell_anew(x, e)      ? NULL
             : a                    ? explain_read(x, e, t, a)
                                    : tell_silence(x, e, t);
    if (st && e->why == BACK_SEQ_NAK)
        tell_once(x, t, st);
    t->open = statement_number(x, st);
    if (st && st->cause == CAUSE_LOST_LAST_PACKET && e->why == BACK_SILENCE)
        t->silent = t->open;
    t->unheard = st && st->cause == CAUSE_LOST_ACK && e->why == BACK_SILENCE ? t->open : NO_STATEMENT;
}

/* A request that goes on right behind what was answered before something was sent again, and not since: its sender has
 * that answer by now, which had only been too late for its timer. */
void explain_skips(struct explainer *x, const struct event *e, struct told *t)
{
    struct statement *st = statement_at(x, t->unheard);
    uint32_t psn = e->p->bth.psn, answer = told_rsp_frame(t, psn_prev(psn));

    if (!st || psn_diff(psn, e->h->cursor) <= 0 || !answer || answer >= st->back || e->h->back_psn != st->psn)
        return;
    if (e->p->frame->ts - t->rsp[psn_prev(psn) % TOLD_RESPONSES].ts >= SHORT_LOOP || e->h->seq.have || e->h->late ||
        e->h->gaps || e->h->disorder)
        return; /* what is skipped may have been overtaken or lost */
    t->unheard = NO_STATEMENT;
    st->cause = CAUSE_EARLY_TIMEOUT;
    st->where = WHERE_UNKNOWN;
    st->silence = 0; /* its sender heard nothing for longer than the tap */
    statement_frame(st, answer);
    statement_frame(st, frame_u32(e->p));
    statement_say(x, st,
                  "Frame %u answers up to PSN %u, and was not lost: %s had sent again from PSN %u on (frame %u) when "
                  "the ACK timeout had run out, and goes on with PSN %u in frame %u, as it can only with that answer. "
                  "The ACK timeout was too short for it.",
                  answer, psn_prev(psn), src_text(x, e->flow), st->psn, st->back, psn, frame_u32(e->p));
}

/* The NAK for the first packets of a flow, which came before it was known whose requests it is about; 0 for none. */
static uint32_t stray_nak(const struct explainer *x, const struct flow *f, uint32_t psn, uint32_t since)
{
    for (unsigned i = 0; i < STRAY_NAKS; i++) {
        const struct stray_nak *n = &x->naks[i];
        if (n->frame > since && n->tap == f->tap && n->psn == psn && conn_addr_eq(&n->src, &f->dst) &&
            conn_addr_eq(&n->dst, &f->src))
            return n->frame;
    }
    return 0;
}

/* A PSN before all that was seen, and no NAK is known to ask for it: whose NAK it was is often not known that early. It
 * was sent again, or overtaken; explain_overtaken() finds out. */
static void tell_missed(struct explainer *x, const struct event *e, struct told *t)
{
    const struct flow *c = conn_flow_at(observer_conns(x->observer), e->flow);
    struct statement *st = statement_at(x, t->open);
    uint32_t psn = e->p->bth.psn, bad = told_bad_frame(t, psn), frame = frame_u32(e->p);
    uint32_t nak = stray_nak(x, c, psn, e->h->first_frame);
    bool certain = c->have_psn && psn_diff(psn, c->psn) >= 0;

    if (st && psn == e->h->cursor && psn_diff(psn, st->psn) > 0)
        return; /* goes on what is being sent again */
    st = bad ? told_about_bad(x, t, bad, e->p) : statement_new(x, CAUSE_PACKET_LOSS, e->flow, e->p);
    if (!st)
        return;
    statement_frame(st, bad ? bad : e->h->first_frame);
    statement_frame(st, nak);
    statement_frame(st, frame);
    st->start = e->h->first_ts;
    st->where = bad || certain ? WHERE_BEFORE : WHERE_UNKNOWN;
    statement_concerns(st, psn, 0, true);
    t->open = t->late = statement_number(x, st);
    if (bad)
        statement_say(x, st, "PSN %u (frame %u) reached %s damaged and was dropped; it was sent again in frame %u.",
                      psn, bad, dst_text(x, e->flow), frame);
    else if (nak)
        statement_say(x, st,
                      "PSN %u was not seen before frame %u and what follows it; %s asked for it with a NAK (frame %u), "
                      "and it was sent again in frame %u: it was lost%s.",
                      psn, e->h->first_frame, dst_text(x, e->flow), nak, frame,
                      certain ? " before the tap" : " before the tap, or behind it before the capture began");
    else
        statement_say(x, st,
                      certain
                          ? "PSN %u never passed the tap: frame %u came instead. It was sent again from frame %u on."
                          : "PSN %u was not seen before frame %u and what follows it, and is sent again from frame %u "
                            "on: it was lost "
                            "before the tap, or passed before the capture began.",
                      psn, e->h->first_frame, frame);
}

static void tell_late(struct explainer *x, const struct event *e, struct told *t)
{
    bool nak = e->h->seq.have && !e->h->seq.resent && e->h->seq.psn == e->p->bth.psn;
    struct statement *st = statement_at(x, t->open);

    if (nak && st && st->has_psn && st->psn == e->p->bth.psn && st->cause == CAUSE_PACKET_LOSS &&
        st->where == WHERE_BEFORE) {
        if (st->n_frames > 1 && st->frames[1] == e->h->seq.frame)
            statement_say(x, st, "%s It came in frame %u.", explain_text_of(x, st), frame_u32(e->p));
        else
            statement_say(x, st, "%s %s asked for it with a NAK (frame %u), and it came in frame %u.",
                          explain_text_of(x, st), dst_text(x, e->flow), e->h->seq.frame, frame_u32(e->p));
        statement_frame(st, e->h->seq.frame);
        statement_frame(st, frame_u32(e->p));
    } else if (nak) {
        t->open = t->late = statement_number(x, tell_loss(x, e, t));
    } else if (e->h->seq.have && psn_diff(e->p->bth.psn, e->h->seq.psn) >= 0) {
        return; /* goes on what the NAK asked for */
    } else if (psn_diff(e->p->bth.psn, e->h->start) < 0) {
        tell_missed(x, e, t);
    } else if (e->p->frame->ts - e->h->last_ts < OVERTAKEN_WITHIN && !e->h->back) {
        st = statement_overtaken(x, e);
        if (!st)
            return;
        t->reorder = t->late_alone = statement_number(x, st);
        statement_say(x, st, "PSN %u (frame %u) was overtaken by later packets.", e->p->bth.psn, frame_u32(e->p));
    }
}

/* Whether the request seen with the PSN next below is a READ. */
static bool follows_read(const struct event *e)
{
    const struct sent *s = NULL;

    for (uint32_t n = 1, psn = e->p->bth.psn; !s && n < TRACK_SENT && psn_diff(psn, e->h->start) > 0; n++)
        s = req_dir_sent(e->h, psn = psn_prev(psn));
    return s && (s->opcode & 31) == OP_READ_REQUEST;
}

/* A PSN that comes for the first time behind later ones. */
void explain_late(struct explainer *x, const struct event *e, struct told *t)
{
    if (e->p->op->flags & OPF_READ_REQ && !(e->p->have & H_RETH) && follows_read(e))
        return; /* most likely it asks for the rest of the READ before, but how long that is was not captured */
    if (!e->h->pmtu && e->p->op->flags & OPF_READ_REQ && explain_rest(x, e, t))
        return;
    tell_late(x, e, t);
}

/* What follows a packet that came late is sent again as well, and no NAK asks for that: the packet was not overtaken,
 * but sent again. */
void explain_resent(struct explainer *x, const struct event *e, struct told *t)
{
    struct statement *st = statement_at(x, t->late_alone);
    bool asked = e->h->seq.have && !e->h->seq.resent && e->h->seq.psn == e->p->bth.psn;

    t->late_alone = NO_STATEMENT;
    if (!st || st->cause != CAUSE_REORDER || e->as != SEEN_AGAIN || e->p->bth.psn != e->h->cursor || asked)
        return;
    st->cause = CAUSE_PACKET_LOSS;
    st->again++;
    t->open = statement_number(x, st);
    t->reorder = NO_STATEMENT;
    statement_frame(st, frame_u32(e->p));
    statement_say(x, st,
                  "PSN %u was not there before frame %u, to which %s went back: what follows it is sent again as well, "
                  "from frame %u on. It was lost before the tap, and no NAK was captured.",
                  st->psn, st->frames[0], src_text(x, e->flow), frame_u32(e->p));
}

/* Its sender did not go back with the PSN that came late: it goes on where it was, or comes back to that PSN. So the
 * packet was overtaken, and the NAK came before it. */
void explain_overtaken(struct explainer *x, const struct event *e, struct told *t)
{
    struct statement *st = statement_at(x, t->late);

    t->late = NO_STATEMENT;
    if (!st || st->cause != CAUSE_PACKET_LOSS || !(e->as == SEEN_NEW || e->as == SEEN_GAP || e->p->bth.psn == st->psn))
        return;
    st->cause = CAUSE_REORDER;
    st->where = WHERE_BEFORE;
    st->again = 0;
    t->reorder = statement_number(x, st);
    t->reorder_end = e->h->next;
    if (e->h->seq.have && e->h->seq.psn == st->psn)
        statement_say(
            x, st, "PSN %u (frame %u) was overtaken by later packets; %s had asked for it before it came (frame %u).",
            st->psn, e->h->last_frame, dst_text(x, e->flow), e->h->seq.frame);
    else
        statement_say(x, st, "PSN %u (frame %u) was overtaken by later packets.", st->psn, e->h->last_frame);
}
