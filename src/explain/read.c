/* layer 3 (explain): READs and atomics that are asked for again: which part of the answer was lost, damaged or
 * overtaken. */
#include "src/explain/explain_impl.h"
#include "src/transport/verbs.h"

#include <stdio.h>

#define SHORT_TIMER NS_PER_MS /* an ACK timeout that is not stated is no shorter */
#define LATEST      32        /* statements to look at again */

/* What became of the response with PSN `psn`, which its requester misses, since it was asked for last. */
struct fate {
    const struct read_req *ask; /* the latest one for it */
    uint32_t psn;
    uint32_t seen; /* frame in which it passed the tap in its turn, 0: it did not */
    /* latest frame in which it passed the tap ahead of others that were missing, or before it was asked for again; 0:
     * none */
    uint32_t dropped;
    uint8_t where; /* enum where it was lost */
};

/* The first answer to a READ was lost behind the tap: so long does it take its requester to ask again, at least. */
static void note_loop(const struct event *e, struct told *t, const struct fate *f)
{
    ns_t took = e->p->frame->ts - t->rsp[f->psn % TOLD_RESPONSES].ts;

    if (f->where == WHERE_AFTER && !f->ask->again && (!t->loop || took < t->loop))
        t->loop = took;
}

/* Nothing has come for so long that more of an answer is not on its way. */
static bool is_silent(const struct event *e)
{
    return e->p->frame->ts - e->h->rsp_ts >= (e->h->timeout ? ack_timeout(e->h->timeout) / 2 : SHORT_TIMER);
}

/* Whether the responder has sent `psn` in answer to `a`, as what came behind it shows. Answers to what was asked for
 * before come first: one to a repetition is known by the responses' going back. */
static bool was_sent(const struct event *e, const struct told *t, const struct read_req *a, uint32_t psn)
{
    if (!a->again)
        return (e->h->have_una && psn_diff(e->h->una, psn) > 0) || (a->rsp_first && is_silent(e));
    return t->run_frame > a->frame && a->rsp_last >= t->run_frame && (psn_diff(t->run_last, psn) > 0 || is_silent(e));
}

/* Whether the repeated answer in frame `seen` may have come to the requester all the same, or before it wanted it: an
 * earlier ACK or NAK made that go back to `psn`, it did so too soon to have missed the answer, or the response before
 * has not passed since it was asked for again. */
static bool in_doubt(const struct event *e, const struct told *t, uint32_t psn, uint32_t seen)
{
    uint32_t last = psn_prev(psn);
    const struct read_req *before = req_dir_ask(e->h, last, 0);
    bool soon = e->p->frame->ts - t->rsp[psn % TOLD_RESPONSES].ts < t->loop / 2;

    return soon || t->rsp[psn % TOLD_RESPONSES].acked ||
           (e->h->seq.have && e->h->seq.psn == psn && e->h->seq.frame < seen) ||
           (before && before->again && before->frame < seen && told_answer_frame(t, last) < before->frame);
}

static struct fate fate_of(const struct event *e, const struct told *t, const struct read_req *oldest, uint32_t psn)
{
    const struct read_req *latest = req_dir_ask(e->h, psn, 0), *a = latest ? latest : oldest;
    uint32_t frame = told_answer_frame(t, psn), before = told_answer_frame(t, psn_prev(psn));
    /* what comes before it came once more */
    bool behind = before > frame || (t->run_frame > frame && psn_diff(t->run_psn, psn) < 0);
    bool seen = frame > a->frame && !behind;
    bool forgotten = !frame && psn_diff(psn, psn_add(oldest->psn, oldest->got)) < 0;
    bool lost = !forgotten && (a->again || !frame) && was_sent(e, t, a, psn),
         doubt = seen && a->again && in_doubt(e, t, psn, frame);

    return (struct fate){.ask = a,
                         .psn = psn,
                         .seen = seen ? frame : 0,
                         .dropped = seen ? 0 : frame,
                         .where = doubt  ? WHERE_UNKNOWN
                                  : seen ? WHERE_AFTER
                                  : lost ? WHERE_BEFORE
                                         : WHERE_UNKNOWN};
}

/* What is missing of `a`, which is asked for again: that from which it is asked for, or, if this came in its turn and
 * the requester is not known to ask for a part, the first that is known to be lost. */
static struct fate missing_of(const struct event *e, const struct told *t, const struct read_req *a)
{
    uint32_t psn = e->p->bth.psn;
    struct fate first = fate_of(e, t, a, psn);

    if (psn != a->psn || !first.seen || t->rests)
        return first;
    for (uint32_t i = 1; i < a->span && i < TOLD_RESPONSES; i++) {
        struct fate f = fate_of(e, t, a, psn_add(psn, i));
        if (f.where == WHERE_BEFORE)
            return f;
        if (f.where != WHERE_AFTER)
            break;
    }
    return first;
}

/* No answer to a READ or atomic was seen. An answer to a later request proves that it was executed: RC knows no
 * gaps. */
static struct statement *tell_unanswered(struct explainer *x, const struct event *e, const struct fate *f)
{
    const struct read_req *a = f->ask;
    bool atomic = a->opcode != OP_READ_REQUEST, executed = f->where == WHERE_BEFORE;
    enum cause cause = !executed ? CAUSE_PACKET_LOSS : atomic ? CAUSE_LOST_ACK : CAUSE_LOST_READ_RESPONSE;
    const char *name = atomic ? "atomic" : "READ";
    const struct sent *s = req_dir_sent(e->h, a->psn);
    struct statement *st = statement_new(x, cause, e->flow, e->p);

    if (!st)
        return NULL;
    statement_frame(st, a->frame);
    if (executed)
        statement_frame(st, e->h->una_frame);
    statement_frame(st, frame_u32(e->p));
    statement_concerns(st, a->psn, executed || !s ? 0 : s->icrc_first, !executed);
    st->where = f->where;
    st->unanswered = !executed;
    if (executed)
        statement_say(x, st,
                      "The answer to the %s with PSN %u (frame %u) was lost or overtaken before the tap: frame %u, "
                      "which answers a later request, shows that it was executed. It was asked for again in frame %u.",
                      name, a->psn, a->frame, e->h->una_frame, frame_u32(e->p));
    else
        statement_say(x, st,
                      "No answer to the %s with PSN %u (frame %u) was seen: it was lost behind the tap, or its answer "
                      "before it. It was asked for again in frame %u.",
                      name, a->psn, a->frame, frame_u32(e->p));
    return st;
}

/* The response with PSN `missing` was damaged before the tap, in frame `bad`. */
static struct statement *tell_bad_response(struct explainer *x, const struct event *e, const struct told *own,
                                           uint32_t missing, uint32_t bad)
{
    struct statement *st = told_about_bad(x, own, bad, e->p);

    if (!st)
        return NULL;
    statement_frame(st, frame_u32(e->p));
    statement_concerns(st, missing, 0, false);
    statement_say(
        x, st,
        "The response with PSN %u (frame %u) reached %s damaged and was dropped; it was asked for again in frame %u.",
        missing, bad, src_text(x, e->flow), frame_u32(e->p));
    return st;
}

/* " PSN 5 passed the tap in frame 4, but was dropped, ..." */
static const char *dropped_text(const struct fate *f, char *to, size_t size)
{
    to[0] = '\0';
    if (f->dropped > f->ask->frame)
        snprintf(to, size, " PSN %u passed the tap in frame %u, but was dropped, for what comes before it was missing.",
                 f->psn, f->dropped);
    return to;
}

/* A response is missing in the answer, of which others were seen, or it was seen. */
static struct statement *tell_lost_response(struct explainer *x, const struct event *e, const struct fate *f)
{
    const struct read_req *a = f->ask;
    bool known = f->where != WHERE_UNKNOWN;
    enum cause answer = a->opcode != OP_READ_REQUEST ? CAUSE_LOST_ACK : CAUSE_LOST_READ_RESPONSE;
    struct statement *st = statement_new(x, known || f->seen ? answer : CAUSE_PACKET_LOSS, e->flow, e->p);
    char dropped[120];

    if (!st)
        return NULL;
    statement_frame(st, f->seen ? f->seen : known ? a->rsp_last : a->frame);
    statement_frame(st, frame_u32(e->p));
    statement_concerns(st, f->psn, 0, false);
    st->where = f->where;
    st->repeated = a->again;
    if (f->seen && !known)
        statement_say(x, st,
                      "The answer with PSN %u (frame %u) passed the tap; %s asked for it again in frame %u. It was "
                      "lost, damaged or overtaken behind the tap, dropped there for want of an earlier one, or still "
                      "on its way when an earlier response made its requester go back.",
                      f->psn, f->seen, src_text(x, e->flow), frame_u32(e->p));
    else if (f->seen)
        statement_say(x, st,
                      "The answer with PSN %u (frame %u) passed the tap and was lost, damaged or overtaken behind it: "
                      "%s asked for it again in frame %u.",
                      f->psn, f->seen, src_text(x, e->flow), frame_u32(e->p));
    else if (known)
        statement_say(x, st,
                      "The response with PSN %u to the READ in frame %u%s never passed the tap (frame %u is the last "
                      "one of the answer): %s asked for it again in frame %u.%s",
                      f->psn, a->frame, a->again ? ", which asks for it again," : "", a->rsp_last, src_text(x, e->flow),
                      frame_u32(e->p), dropped_text(f, dropped, sizeof dropped));
    else
        statement_say(x, st,
                      "The answer with PSN %u was not seen in its turn since it was asked for in frame %u: that "
                      "request was lost behind the tap, or its answer before it. It was asked for again in frame %u.%s",
                      f->psn, a->frame, frame_u32(e->p), dropped_text(f, dropped, sizeof dropped));
    return st;
}

/* What is asked for again, from `missing` or from the start of its READ on, because a response was overtaken: its
 * receiver dropped what came before it. */
static struct statement *about_late_response(struct explainer *x, const struct event *e, const struct told *t,
                                             uint32_t missing)
{
    struct statement *st = statement_at(x, t->rsp_reorder);
    uint32_t dropped = st ? (t->rsp_reorder_end - st->psn) & PSN_MASK : 0;

    if (!st || !(psn_in(missing, st->psn, dropped) || psn_in(e->p->bth.psn, st->psn, dropped)))
        return NULL;
    statement_frame(st, frame_u32(e->p));
    return st;
}

/* The answer was asked for before for want of it, and came no better: the statement about that goes on; NULL if there
 * is none. */
static struct statement *lost_once_more(struct explainer *x, const struct event *e, const struct told *t,
                                        const struct fate *f)
{
    struct statement *st = statement_at(x, t->rsp_lost);
    uint32_t seen = f->seen;
    bool same = st && (st->where == f->where || (f->where == WHERE_UNKNOWN && !seen));

    if (!same || e->why != BACK_SILENCE || st->moot || st->cause == CAUSE_REORDER || st->psn != f->psn)
        return NULL;
    if (seen && seen < st->frames[st->n_frames - 1])
        return NULL;
    if (seen && st->n_frames < STATEMENT_FRAMES)
        statement_say(x, st, "%s It came again (frame %u), and was asked for once more in frame %u.",
                      explain_text_of(x, st), seen, frame_u32(e->p));
    statement_frame(st, seen);
    statement_frame(st, frame_u32(e->p));
    return st;
}

/* How long after an answer had passed the tap its requester asked again; 0 if the ACK timeout may have run out
 * meanwhile. */
static ns_t loop_behind(const struct event *e, ns_t answer)
{
    ns_t took = e->p->frame->ts - answer, timer = e->h->timeout ? ack_timeout(e->h->timeout) / 2 : SHORT_TIMER;

    return took < timer ? took : 0;
}

/* What is asked for now lies right behind what was asked for before, and no answer to that can have come so soon: the
 * response that seemed lost has come meanwhile. */
static struct statement *had_meanwhile(struct explainer *x, const struct event *e, struct told *t, uint32_t missing)
{
    struct statement *st = statement_at(x, t->rsp_lost);

    if (!st || st->moot || st->cause != CAUSE_LOST_READ_RESPONSE || st->where != WHERE_AFTER || st->n_frames != 2 ||
        missing != psn_add(st->psn, 1))
        return NULL;
    if (e->p->frame->ts - t->rsp_lost_ts >= t->rsp_loop / AT_ONCE)
        return NULL;
    st->cause = CAUSE_REORDER;
    statement_frame(st, frame_u32(e->p));
    t->rsp_reorder = statement_number(x, st);
    t->rsp_reorder_end = t->rsp_next;
    statement_say(
        x, st,
        "The READ response with PSN %u (frame %u) passed the tap and was most likely overtaken behind it: %s asked for "
        "it again in frame %u, but only from PSN %u on in frame %u, before an answer to frame %u can have come.",
        st->psn, st->frames[0], src_text(x, e->flow), st->frames[1], missing, st->frames[2], st->frames[1]);
    return st;
}

void explain_misses(struct explainer *x, const struct event *e)
{
    for (uint32_t i = x->n; i > 0 && x->n - i < LATEST; i--) {
        struct statement *st = &x->st[i - 1];
        bool lost = st->cause == CAUSE_LOST_READ_RESPONSE || st->cause == CAUSE_LOST_ACK;
        if (lost && st->flow == e->flow && st->where == WHERE_AFTER && st->has_psn && !st->is_request &&
            psn_diff(st->psn, e->p->bth.psn) > 0)
            st->moot = true;
    }
}

/* A READ or atomic is asked for again, in whole or from a missing response on. */
struct statement *explain_read(struct explainer *x, const struct event *e, struct told *t, struct read_req *a)
{
    uint32_t psn = e->p->bth.psn, peer = conn_flow_at(observer_conns(x->observer), e->flow)->peer;
    const struct told *own = peer == FLOW_NONE ? NULL : x->told[peer];
    struct fate f;
    uint32_t bad;
    struct statement *st;
    const struct sent *before = req_dir_sent(e->h, psn), *s = before ? before : req_dir_sent(e->h, a->psn);

    t->rests |= psn != a->psn;
    f = missing_of(e, t, a);
    note_loop(e, t, &f);
    bad = own && !f.seen ? told_bad_frame(own, f.psn) : 0;
    st = about_late_response(x, e, t, f.psn);
    if (!st)
        st = lost_once_more(x, e, t, &f);
    if (!st)
        st = had_meanwhile(x, e, t, f.psn);
    if (st)
        return st;
    st = bad ? tell_bad_response(x, e, own, f.psn, bad) : NULL;
    if (!st)
        st = f.seen || f.ask->rsp_first || f.ask->again ? tell_lost_response(x, e, &f) : tell_unanswered(x, e, &f);
    if (st)
        st->start = a->ts;
    if (st && s && e->why == BACK_SILENCE)
        st->silence = silence_before(e, s);
    if (st && st->cause == CAUSE_LOST_READ_RESPONSE && st->where == WHERE_BEFORE)
        t->rsp_missing = statement_number(x, st);
    t->rsp_lost_ts = e->p->frame->ts;
    t->rsp_loop = f.seen ? loop_behind(e, t->rsp[f.psn % TOLD_RESPONSES].ts) : 0;
    t->rsp_lost = st && !st->is_request && st->cause != CAUSE_BAD_ICRC ? statement_number(x, st) : NO_STATEMENT;
    return st;
}

/* The READ of which request `p` asks for the rest; NULL for none. */
static const struct read_req *read_of_rest(const struct req_dir *h, const struct pkt *p)
{
    for (unsigned i = 0; i < TRACK_ASKS; i++) {
        const struct read_req *a = &h->asks[i];
        if (a->span && a->opcode == OP_READ_REQUEST && a->rkey == p->reth.rkey && a->va < p->reth.va &&
            a->va + a->len == p->reth.va + p->reth.dmalen)
            return a;
    }
    return NULL;
}

bool explain_rest(struct explainer *x, const struct event *e, struct told *t)
{
    const struct read_req *a = read_of_rest(e->h, e->p);
    struct statement *st = a ? statement_new(x, CAUSE_LOST_READ_RESPONSE, e->flow, e->p) : NULL;

    if (!st)
        return false;
    statement_frame(st, a->frame);
    statement_frame(st, frame_u32(e->p));
    statement_concerns(st, e->p->bth.psn, 0, false);
    st->start = a->ts;
    t->open = statement_number(x, st);
    statement_say(x, st,
                  "%s asks in frame %u for the rest of the READ in frame %u, from byte %llu on: the response there was "
                  "lost or overtaken. The capture has no answers to this READ.",
                  src_text(x, e->flow), frame_u32(e->p), a->frame, (unsigned long long)(e->p->reth.va - a->va));
    return true;
}

/* A response was overtaken: it came in frame `came`, behind that with the PSN before `end`. */
static void tell_late_response(struct explainer *x, const struct event *e, struct told *t, uint32_t late, uint32_t came,
                               struct statement *st)
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
        statement_say(x, st,
                      "The READ response with PSN %u (frame %u) was overtaken by later ones; %s had asked for it again "
                      "before it came (frame %u).",
                      late, came, src_text(x, e->flow), asked);
    else
        statement_say(x, st, "The READ response with PSN %u (frame %u) was overtaken by later ones.", late, came);
    t->rsp_reorder = statement_number(x, st);
    t->rsp_reorder_end = t->rsp_next;
}

/* Whether a READ response that was missed comes behind later ones. */
static bool comes_late(const struct told *t, const struct event *e)
{
    uint32_t psn = e->p->bth.psn;

    return t->rsp_next != UINT32_MAX &&
           psn_in(psn, psn_add(t->rsp_next, PSN_MASK + 1 - TOLD_RESPONSES), TOLD_RESPONSES) && !told_rsp_frame(t, psn);
}

void explain_read_response(struct explainer *x, const struct event *e, struct told *t)
{
    uint32_t psn = e->p->bth.psn, late = t->rsp_late;
    struct statement *st = statement_at(x, t->rsp_missing);
    struct read_req *a;

    t->rsp_late = UINT32_MAX;
    if (late != UINT32_MAX && psn == t->rsp_next && psn != psn_add(late, 1) && st &&
        st->cause == CAUSE_LOST_READ_RESPONSE && st->psn == late) {
        t->rsp_next = psn_add(psn, 1);
        tell_late_response(x, e, t, late, t->last_rsp_frame, st);
    }
    if (!comes_late(t, e)) {
        t->rsp_next = psn_add(psn, 1);
        return;
    }
    a = req_dir_ask(e->h, psn, 0);
    if (a && !a->again && a->opcode == OP_READ_REQUEST)
        tell_late_response(x, e, t, psn, frame_u32(e->p), NULL);
    else if (a && a->span > 1)
        t->rsp_late = psn;
}

/* Whether messages are counted from the first one of the queue pair on: message n completes with MSN n. */
static bool is_counted(const struct req_dir *h)
{
    return h->counted || (h->began == BEGAN_SEEN && !h->gaps);
}

void explain_repeated_answer(struct explainer *x, const struct event *e, const struct told *t)
{
    struct statement *st = statement_at(x, t->open);
    const struct read_req *a =
        st && st->unanswered && st->has_psn && st->cause == CAUSE_PACKET_LOSS ? req_dir_ask(e->h, st->psn, 0) : NULL;
    const struct sent *s = a && e->p->bth.psn == st->psn ? req_dir_sent(e->h, st->psn) : NULL;

    if (!s || e->p->op->flags & OPF_ACK || !s->msg || !is_counted(e->h) ||
        psn_diff(e->p->aeth.msn, s->msg & PSN_MASK) <= 0)
        return;
    st->cause = a->opcode != OP_READ_REQUEST ? CAUSE_LOST_ACK : CAUSE_LOST_READ_RESPONSE;
    st->where = WHERE_BEFORE;
    st->is_request = false;
    statement_frame(st, frame_u32(e->p));
    statement_say(x, st,
                  "The answer to the %s with PSN %u (frame %u) was lost or overtaken before the tap: the answer to its "
                  "repetition (frame %u) has MSN %u, so a later request had been executed as well. It was asked for "
                  "again in frame %u.",
                  a->opcode != OP_READ_REQUEST ? "atomic" : "READ", st->psn, s->first, frame_u32(e->p), e->p->aeth.msn,
                  st->frames[st->n_frames - 2]);
}
