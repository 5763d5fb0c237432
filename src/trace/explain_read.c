/* layer 3 (trace): READs and atomics that are asked for again: which part of the answer was lost, damaged or overtaken. */
#include "src/trace/explain_impl.h"
#include "src/transport/verbs.h"

#define SHORT_TIMER NS_PER_MS /* an ACK timeout that is not stated is no shorter */

/* No answer to a READ or atomic was seen. An answer to a later request proves that it was executed: RC knows no gaps. */
static struct statement *tell_unanswered(struct explainer *x, const struct watched *e, const struct ask *a)
{
    bool atomic = a->opcode != OP_READ_REQUEST, executed = e->h->have_una && psn_diff(e->h->una, a->psn) > 0;
    enum cause cause = !executed ? CAUSE_PACKET_LOSS : atomic ? CAUSE_LOST_ACK : CAUSE_LOST_READ_RESPONSE;
    const char *name = atomic ? "atomic" : "READ";
    const struct sent *s = half_sent(e->h, a->psn);
    struct statement *st = statement_new(x, cause, e->flow, e->p);

    if (!st)
        return NULL;
    statement_frame(st, a->frame);
    if (executed)
        statement_frame(st, e->h->una_frame);
    statement_frame(st, frame_u32(e->p));
    statement_concerns(st, a->psn, executed || !s ? 0 : s->icrc_first, !executed);
    st->where = executed ? WHERE_BEFORE : WHERE_UNKNOWN;
    st->unanswered = !executed;
    if (executed)
        statement_say(x, st, "The answer to the %s with PSN %u (frame %u) was lost or overtaken before the tap: frame %u, which answers a later request, shows that it was executed. It was asked for again in frame %u.",
                      name, a->psn, a->frame, e->h->una_frame, frame_u32(e->p));
    else
        statement_say(x, st, "No answer to the %s with PSN %u (frame %u) was seen: it was lost behind the tap, or its answer before it. It was asked for again in frame %u.",
                      name, a->psn, a->frame, frame_u32(e->p));
    return st;
}

/* The response with PSN `missing` was damaged before the tap, in frame `bad`. */
static struct statement *tell_bad_response(struct explainer *x, const struct watched *e, const struct told *own, uint32_t missing, uint32_t bad)
{
    struct statement *st = told_about_bad(x, own, bad, e->p);

    if (!st)
        return NULL;
    statement_frame(st, frame_u32(e->p));
    statement_concerns(st, missing, 0, false);
    statement_say(x, st, "The response with PSN %u (frame %u) reached %s damaged and was dropped; it was asked for again in frame %u.", missing, bad,
                  src_text(x, e->flow), frame_u32(e->p));
    return st;
}

/* A response is missing in the answer, of which others were seen; `seen`: the frame in which it passed the tap, 0 if it did not. */
static struct statement *tell_lost_response(struct explainer *x, const struct watched *e, const struct ask *a, uint32_t missing, uint32_t seen)
{
    struct statement *st = statement_new(x, a->opcode != OP_READ_REQUEST ? CAUSE_LOST_ACK : CAUSE_LOST_READ_RESPONSE, e->flow, e->p);

    if (!st)
        return NULL;
    statement_frame(st, seen ? seen : a->rsp_last);
    statement_frame(st, frame_u32(e->p));
    statement_concerns(st, missing, 0, false);
    st->where = seen ? WHERE_AFTER : WHERE_BEFORE;
    if (seen)
        statement_say(x, st, "The answer with PSN %u (frame %u) passed the tap and was lost, damaged or overtaken behind it: %s asked for it again in frame %u.",
                      missing, seen, src_text(x, e->flow), frame_u32(e->p));
    else
        statement_say(x, st, "The response with PSN %u to the READ in frame %u never passed the tap (frame %u is the last one of the answer): %s asked for it again in frame %u.",
                      missing, a->frame, a->rsp_last, src_text(x, e->flow), frame_u32(e->p));
    return st;
}

/* What is asked for again, from `missing` or from the start of its READ on, because a response was overtaken: its receiver dropped
 * what came before it. */
static struct statement *about_late_response(struct explainer *x, const struct watched *e, const struct told *t, uint32_t missing)
{
    struct statement *st = statement_at(x, t->rsp_reorder);
    uint32_t dropped = st ? (t->rsp_reorder_end - st->psn) & PSN_MASK : 0;

    if (!st || !(psn_in(missing, st->psn, dropped) || psn_in(e->p->bth.psn, st->psn, dropped)))
        return NULL;
    statement_frame(st, frame_u32(e->p));
    return st;
}

/* The answer was asked for before for want of it, and came no better: the statement about that goes on; NULL if there is none. */
static struct statement *lost_once_more(struct explainer *x, const struct watched *e, const struct told *t, uint32_t missing, uint32_t seen)
{
    struct statement *st = statement_at(x, t->rsp_lost);

    if (!st || e->why != BACK_SILENCE || st->moot || st->cause == CAUSE_REORDER || st->psn != missing || st->where != (seen ? WHERE_AFTER : WHERE_BEFORE))
        return NULL;
    if (seen && seen < st->frames[st->n_frames - 1])
        return NULL;
    if (seen && st->n_frames < STATEMENT_FRAMES)
        statement_say(x, st, "%s It came again (frame %u), and was asked for once more in frame %u.", explain_text_of(x, st), seen, frame_u32(e->p));
    statement_frame(st, seen);
    statement_frame(st, frame_u32(e->p));
    return st;
}

/* How long after an answer had passed the tap its requester asked again; 0 if the ACK timeout may have run out meanwhile. */
static ns_t loop_behind(const struct watched *e, ns_t answer)
{
    ns_t took = e->p->frame->ts - answer, timer = e->h->timeout ? ack_timeout(e->h->timeout) / 2 : SHORT_TIMER;

    return took < timer ? took : 0;
}

/* What is asked for now lies right behind what was asked for before, and no answer to that can have come so soon: the response that seemed lost
 * has come meanwhile. */
static struct statement *had_meanwhile(struct explainer *x, const struct watched *e, struct told *t, uint32_t missing)
{
    struct statement *st = statement_at(x, t->rsp_lost);

    if (!st || st->moot || st->cause != CAUSE_LOST_READ_RESPONSE || st->where != WHERE_AFTER || st->n_frames != 2 || missing != psn_add(st->psn, 1))
        return NULL;
    if (e->p->frame->ts - t->rsp_lost_ts >= t->rsp_loop / AT_ONCE)
        return NULL;
    st->cause = CAUSE_REORDER;
    statement_frame(st, frame_u32(e->p));
    t->rsp_reorder = statement_number(x, st);
    t->rsp_reorder_end = t->rsp_next;
    statement_say(x, st, "The READ response with PSN %u (frame %u) passed the tap and was most likely overtaken behind it: %s asked for it again in frame %u, but only from PSN %u on in frame %u, before an answer to frame %u can have come.",
                  st->psn, st->frames[0], src_text(x, e->flow), st->frames[1], missing, st->frames[2], st->frames[1]);
    return st;
}

/* A READ or atomic is asked for again, in whole or from a missing response on. */
struct statement *explain_read(struct explainer *x, const struct watched *e, struct told *t, struct ask *a)
{
    uint32_t psn = e->p->bth.psn, missing = psn == a->psn && a->got < a->span ? psn_add(a->psn, a->got) : psn, seen = told_rsp_frame(t, missing);
    uint32_t peer = conn_flow_at(watch_conns(x->watch), e->flow)->peer;
    const struct told *own = peer == FLOW_NONE ? NULL : x->told[peer];
    uint32_t bad = own && !seen ? told_bad_frame(own, missing) : 0;
    struct statement *st = about_late_response(x, e, t, missing);
    const struct sent *before = half_sent(e->h, psn), *s = before ? before : half_sent(e->h, a->psn);

    if (!st)
        st = lost_once_more(x, e, t, missing, seen);
    if (!st)
        st = had_meanwhile(x, e, t, missing);
    if (st)
        return st;
    st = bad ? tell_bad_response(x, e, own, missing, bad) : NULL;
    if (!st)
        st = a->rsp_first || seen ? tell_lost_response(x, e, a, missing, seen) : tell_unanswered(x, e, a);
    if (st)
        st->start = a->ts;
    if (st && s && e->why == BACK_SILENCE)
        st->silence = silence_before(e, s);
    if (st && st->cause == CAUSE_LOST_READ_RESPONSE && st->where == WHERE_BEFORE)
        t->rsp_missing = statement_number(x, st);
    t->rsp_lost_ts = e->p->frame->ts;
    t->rsp_loop = seen ? loop_behind(e, t->rsp[missing % TOLD_RESPONSES].ts) : 0;
    t->rsp_lost = st && !st->is_request && st->cause != CAUSE_BAD_ICRC ? statement_number(x, st) : NO_STATEMENT;
    return st;
}

/* The READ of which request `p` asks for the rest; NULL for none. */
static const struct ask *read_of_rest(const struct half *h, const struct pkt *p)
{
    for (unsigned i = 0; i < TRACK_ASKS; i++) {
        const struct ask *a = &h->asks[i];
        if (a->span && a->opcode == OP_READ_REQUEST && a->rkey == p->reth.rkey && a->va < p->reth.va && a->va + a->len == p->reth.va + p->reth.dmalen)
            return a;
    }
    return NULL;
}

bool explain_rest(struct explainer *x, const struct watched *e, struct told *t)
{
    const struct ask *a = read_of_rest(e->h, e->p);
    struct statement *st = a ? statement_new(x, CAUSE_LOST_READ_RESPONSE, e->flow, e->p) : NULL;

    if (!st)
        return false;
    statement_frame(st, a->frame);
    statement_frame(st, frame_u32(e->p));
    statement_concerns(st, e->p->bth.psn, 0, false);
    st->start = a->ts;
    t->open = statement_number(x, st);
    statement_say(x, st, "%s asks in frame %u for the rest of the READ in frame %u, from byte %llu on: the response there was lost or overtaken. The capture has no answers to this READ.",
                  src_text(x, e->flow), frame_u32(e->p), a->frame, (unsigned long long)(e->p->reth.va - a->va));
    return true;
}

/* A response was overtaken: it came in frame `came`, behind that with the PSN before `end`. */
static void tell_late_response(struct explainer *x, const struct watched *e, struct told *t, uint32_t late, uint32_t came, struct statement *st)
{
    uint32_t asked = st ? st->frames[st->n_frames - 1] : 0;

    if (!st)
        st = statement_new(x, CAUSE_REORDER, e->flow, e->p);
    if (!st)
        return;
    st->cause = CAUSE_REORDER;
    st->where = WHERE_BEFORE;
    st->n_frames = 0;
    statement_frame(st, came);
    statement_frame(st, asked);
    statement_concerns(st, late, 0, false);
    if (asked)
        statement_say(x, st, "The READ response with PSN %u (frame %u) was overtaken by later ones; %s had asked for it again before it came (frame %u).", late, came,
                      src_text(x, e->flow), asked);
    else
        statement_say(x, st, "The READ response with PSN %u (frame %u) was overtaken by later ones.", late, came);
    t->rsp_reorder = statement_number(x, st);
    t->rsp_reorder_end = t->rsp_next;
}

/* Whether a READ response that was missed comes behind later ones. */
static bool comes_late(const struct told *t, const struct watched *e)
{
    uint32_t psn = e->p->bth.psn;

    return t->rsp_next != UINT32_MAX && psn_in(psn, psn_add(t->rsp_next, PSN_MASK + 1 - TOLD_RESPONSES), TOLD_RESPONSES) && !told_rsp_frame(t, psn);
}

void explain_read_response(struct explainer *x, const struct watched *e, struct told *t)
{
    uint32_t psn = e->p->bth.psn, late = t->rsp_late;
    struct statement *st = statement_at(x, t->rsp_missing);
    struct ask *a;

    t->rsp_late = UINT32_MAX;
    if (late != UINT32_MAX && psn == t->rsp_next && psn != psn_add(late, 1) && st && st->cause == CAUSE_LOST_READ_RESPONSE && st->psn == late) {
        t->rsp_next = psn_add(psn, 1);
        tell_late_response(x, e, t, late, t->last_rsp_frame, st);
    }
    if (!comes_late(t, e)) {
        t->rsp_next = psn_add(psn, 1);
        return;
    }
    a = half_ask(e->h, psn, 0);
    if (a && !a->again && a->opcode == OP_READ_REQUEST)
        tell_late_response(x, e, t, psn, frame_u32(e->p), NULL);
    else if (a && a->span > 1)
        t->rsp_late = psn;
}

/* Whether messages are counted from the first one of the queue pair on: message n completes with MSN n. */
static bool is_counted(const struct half *h)
{
    return h->counted || (h->began == BEGAN_SEEN && !h->gaps);
}

void explain_repeated_answer(struct explainer *x, const struct watched *e, const struct told *t)
{
    struct statement *st = statement_at(x, t->open);
    const struct ask *a = st && st->unanswered && st->has_psn && st->cause == CAUSE_PACKET_LOSS ? half_ask(e->h, st->psn, 0) : NULL;
    const struct sent *s = a && e->p->bth.psn == st->psn ? half_sent(e->h, st->psn) : NULL;

    if (!s || e->p->op->flags & OPF_ACK || !s->msg || !is_counted(e->h) || psn_diff(e->p->aeth.msn, s->msg & PSN_MASK) <= 0)
        return;
    st->cause = a->opcode != OP_READ_REQUEST ? CAUSE_LOST_ACK : CAUSE_LOST_READ_RESPONSE;
    st->where = WHERE_BEFORE;
    st->is_request = false;
    statement_frame(st, frame_u32(e->p));
    statement_say(x, st, "The answer to the %s with PSN %u (frame %u) was lost or overtaken before the tap: the answer to its repetition (frame %u) has MSN %u, so a later request had been executed as well. It was asked for again in frame %u.",
                  a->opcode != OP_READ_REQUEST ? "atomic" : "READ", st->psn, s->first, frame_u32(e->p), e->p->aeth.msn, st->frames[st->n_frames - 2]);
}
