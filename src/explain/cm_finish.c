/* layer 3 (explain): what went wrong in connection management: which message was lost, and where. */
#include "src/explain/explain_impl.h"

#include <stdio.h>

#define REPEATS_WITHIN 16 /* part of the CM timeout by which a repetition may be early or late */
#define CM_RETRIES_MAX 15 /* the count has four bits */
#define PROMPT         4  /* an answer within this part of the silence before it is one to the latest copy */

const struct cm_seen *cm_latest(const struct cm_sent *c)
{
    return &c->copies[min_u32(c->n, CM_COPIES) - 1];
}

const struct req_dir *cm_requests_back(struct explainer *x, const struct cm_sent *c)
{
    struct conn_table *t = observer_conns(x->observer);
    uint32_t flow;

    if (c->attr == CM_REP)
        flow = conn_flow_named(t, c->tap, &c->dst, &c->src, c->qpn);
    else if (c->attr == CM_DREQ)
        flow = conn_flow_named(t, c->tap, &c->src, &c->dst, c->qpn);
    else
        return NULL;
    if (flow != FLOW_NONE && c->attr == CM_DREQ)
        flow = conn_flow_at(t, flow)->peer;
    return flow == FLOW_NONE ? NULL : observer_req_dir(x->observer, flow);
}

/* The same message at another tap; NULL if none. */
static struct cm_sent *elsewhere(struct explainer *x, const struct cm_sent *c)
{
    for (unsigned i = 0; i < CM_SENT; i++) {
        struct cm_sent *o = &x->cm[i];
        if (o->n && o->tap != c->tap && o->attr == c->attr && o->id == c->id && conn_addr_eq(&o->src, &c->src) &&
            conn_addr_eq(&o->dst, &c->dst))
            return o;
    }
    return NULL;
}

/* Whether `q` is the REQ that the REP `c` answers. */
static bool asks_for(const struct cm_sent *q, const struct cm_sent *c)
{
    return q->n && q->attr == CM_REQ && q->id == c->answers && conn_addr_eq(&q->src, &c->dst) &&
           conn_addr_eq(&q->dst, &c->src);
}

static const struct cm_seen *copy_at(const struct cm_sent *o, uint32_t icrc)
{
    for (unsigned i = 0; icrc && i < o->n && i < CM_COPIES; i++)
        if (o->copies[i].icrc == icrc)
            return &o->copies[i];
    return NULL;
}

/* Whether the tap of `o` was captured when `c` saw its copy `at`: the interfaces of one file are captured together;
 * another file, whose clock may be another one, has begun before. */
static bool captured_then(const struct explainer *x, const struct cm_sent *c, const struct cm_sent *o,
                          const struct cm_seen *at)
{
    uint32_t file = o->tap >> 16;

    for (unsigned i = 0; c->tap >> 16 != file && i < c->n && i < CM_COPIES; i++) {
        const struct cm_seen *same = copy_at(o, c->copies[i].icrc);
        if (same)
            return file < EXPLAIN_FILES && x->began[file] - (same->ts - c->copies[i].ts) <= at->ts;
    }
    return c->tap >> 16 == file;
}

/* A copy that the other tap has not; NULL if there is none. */
static const struct cm_seen *copy_missing(const struct explainer *x, const struct cm_sent *c, const struct cm_sent *o)
{
    for (unsigned i = 0; i < c->n && i < CM_COPIES && o->n <= CM_COPIES; i++)
        if (c->copies[i].icrc && !copy_at(o, c->copies[i].icrc) && captured_then(x, c, o, &c->copies[i]))
            return &c->copies[i];
    return NULL;
}

/* A REP that the other tap has no copy of, although it saw the REQ that the REP answers, and saw it again behind the
 * REP: that REQ there; else NULL. */
static const struct cm_sent *unheard(struct explainer *x, const struct cm_sent *c)
{
    const struct cm_sent *req = NULL;

    for (unsigned i = 0; c->attr == CM_REP && i < CM_SENT; i++)
        if (asks_for(&x->cm[i], c) && x->cm[i].tap == c->tap)
            req = &x->cm[i];
    for (unsigned i = 0; req && i < CM_SENT; i++) {
        const struct cm_sent *o = &x->cm[i];
        if (asks_for(o, c) && o->tap != c->tap && o->n >= req->n &&
            cm_latest(req)->ts > c->copies[0].ts + CM_COPY_WITHIN && captured_then(x, req, o, &c->copies[0]))
            return o;
    }
    return NULL;
}

/* Two taps prove it. */
static bool proved(struct explainer *x, struct cm_sent *c, struct statement *st, struct buf *b)
{
    const struct cm_sent *o = elsewhere(x, c), *deaf = o ? NULL : unheard(x, c);
    const struct cm_seen *missing = o ? copy_missing(x, c, o) : deaf ? &c->copies[0] : NULL;

    if (missing) {
        buf_printf(b, "frame %u is not there %s, it was lost between the two.", missing->frame,
                   tap_text(x, c->tap, (o ? o : deaf)->tap));
        st->where = WHERE_AFTER;
    } else if (o && o->between.frame && !c->between.frame) {
        buf_printf(b, "the %s to it, frame %u %s, was lost between the two.", cm_attr_str(o->between.attr),
                   o->between.frame, tap_text(x, c->tap, o->tap));
        c->answer_lost = true;
        statement_frame_at(st, o->tap, o->between.frame);
        st->where = WHERE_BEFORE;
    } else if (o && c->between.frame && !o->between.frame) {
        buf_printf(b, "the %s to it (frame %u) is not there %s, it was lost between the two.",
                   cm_attr_str(c->between.attr), c->between.frame, tap_text(x, c->tap, o->tap));
        c->answer_lost = true;
        statement_frame(st, c->between.frame);
        st->where = WHERE_AFTER;
    }
    return st->where != WHERE_UNKNOWN;
}

/* How long the host that sent `c` took at least to answer what was sent once, as its tap saw it; 0: not known. */
static ns_t loop_of(const struct explainer *x, const struct cm_sent *c)
{
    ns_t least = 0;

    for (unsigned i = 0; i < CM_SENT; i++) {
        const struct cm_sent *m = &x->cm[i];
        ns_t took = m->n == 1 && m->answer.frame ? m->answer.ts - m->copies[0].ts : 0;
        if (took > 0 && m->tap == c->tap && conn_addr_eq(&m->dst, &c->src) && (!least || took < least))
            least = took;
    }
    return least;
}

/* An answer was seen before the message came again. */
static void answered_before(struct explainer *x, struct cm_sent *c, struct statement *st, struct buf *b)
{
    const char *dst = addr_text(x, &c->dst), *name = cm_attr_str(c->between.attr);
    ns_t since = (c->gave_up.frame ? &c->gave_up : cm_latest(c))->ts - c->between.ts;

    statement_frame(st, c->between.frame);
    if (c->between.attr == CM_MRA) {
        buf_printf(b,
                   "%s had asked for more time (MRA, frame %u); it did not answer within that, or the MRA was lost "
                   "behind the tap.",
                   dst, c->between.frame);
    } else if (since < CM_COPY_WITHIN) {
        buf_printf(b, "the %s of %s (frame %u) was under way already.", name, dst, c->between.frame);
    } else if (since < loop_of(x, c)) {
        buf_printf(b,
                   "the %s of %s (frame %u) was most likely under way already, for it came %s before, and no answer of "
                   "%s comes sooner "
                   "than after %s.",
                   name, dst, c->between.frame, time_text(x, since), addr_text(x, &c->src),
                   time_text(x, loop_of(x, c)));
    } else {
        buf_printf(b, "the %s of %s (frame %u) passed the tap and was lost behind it.", name, dst, c->between.frame);
        c->answer_lost = true;
        st->where = WHERE_AFTER;
    }
}

/* What one tap tells: how both ends went on. */
static void inferred(struct explainer *x, struct cm_sent *c, struct statement *st, struct buf *b)
{
    const char *dst = addr_text(x, &c->dst), *name = cm_attr_str(c->attr);
    const struct req_dir *h = cm_requests_back(x, c);
    bool prompt = c->answer.frame && c->answer.ts - cm_latest(c)->ts < c->silence / PROMPT;

    st->where = WHERE_AFTER;
    if (c->between.frame) {
        st->where = WHERE_UNKNOWN;
        answered_before(x, c, st, b);
    } else if (prompt && (c->copies[0].pkey ^ cm_latest(c)->pkey) & 0x7fff) {
        st->cause = CAUSE_PKEY_MISMATCH;
        st->where = WHERE_UNKNOWN;
        buf_printf(b,
                   "it carried P_Key 0x%04x, the copy that was answered 0x%04x: its receiver drops what is not of its "
                   "partition.",
                   c->copies[0].pkey, cm_latest(c)->pkey);
    } else if (c->answer.frame && c->answered >= c->n) {
        st->where = WHERE_UNKNOWN;
        statement_frame(st, c->answer.frame);
        buf_printf(b,
                   "most likely neither was lost, for as many answers came, the first in frame %u, but %s waits for "
                   "less long than one takes.",
                   c->answer.frame, addr_text(x, &c->src));
    } else if (c->attr == CM_REP && c->used_frame) {
        st->where = WHERE_BEFORE;
        buf_printf(b, "%s had received it, for it sent requests (frame %u), so its RTU was lost before the tap.", dst,
                   c->used_frame);
        statement_frame(st, c->used_frame);
    } else if (c->used_frame) {
        buf_printf(b, "%s went on with its requests (frame %u), so the %s was lost behind the tap.", dst, c->used_frame,
                   name);
        statement_frame(st, c->used_frame);
    } else if (c->attr == CM_REQ && prompt && c->silence > c->wait) {
        buf_printf(
            b,
            "most likely it was lost behind the tap; had %s answered it, two answers would have been lost, for one "
            "comes again after %.3f s.",
            dst, (double)c->wait / 1e9);
    } else if (c->attr == CM_REP && prompt && h && h->have_next && h->first_ts >= cm_latest(c)->ts) {
        buf_printf(b,
                   "it was lost behind the tap, for %s sent its first request only after it had come again (frame %u).",
                   dst, h->first_frame);
    } else {
        st->where = WHERE_UNKNOWN;
        buf_printf(b,
                   c->answer.frame ? "it was lost behind the tap, or the first answer of %s before the tap; which of "
                                     "the two, the capture does not tell."
                                   : "no answer of %s passed the tap: it does not answer, or the message was lost "
                                     "behind the tap, or all answers before the tap.",
                   dst);
    }
}

/* Whether a REQ, sent once, was answered as late as its receiver sends the REP again for want of an RTU: then this one
 * is a repetition, as a rule. An MRA would have asked for the time. Linux counts in units of 1.024 ms as if they were
 * of 1 ms. */
static bool answered_by_repetition(const struct cm_sent *c)
{
    ns_t took = c->answer.ts - c->copies[0].ts, times = c->wait >= CM_COPY_WITHIN ? (took + c->wait / 2) / c->wait : 0,
         off = took - times * c->wait;

    return c->n == 1 && c->attr == CM_REQ && c->answer.attr == CM_REP && times > 0 && times <= CM_RETRIES_MAX &&
           (off < 0 ? -off : off) <= times * c->wait / REPEATS_WITHIN;
}

/* The statement about a REQ that was answered late, though it was sent once. */
static void cm_tell_late(struct explainer *x, struct cm_sent *c)
{
    struct statement *st = statement_new(x, CAUSE_CM_TIMEOUT, FLOW_NONE, NULL);

    if (!st)
        return;
    c->statement = statement_number(x, st);
    st->start = c->copies[0].ts;
    st->tap = c->tap;
    st->lost = c->answer.ts - c->copies[0].ts;
    statement_frame(st, c->copies[0].frame);
    statement_frame(st, c->answer.frame);
    statement_say(x, st,
                  "The REP (frame %u) to the REQ of %s (frame %u) came after %.3f s. By the REQ, %s sends a REP again "
                  "after %.3f s without an "
                  "RTU: most likely it had sent one before, which was lost before the tap; or it was slow, and did not "
                  "ask for the time (MRA).",
                  c->answer.frame, addr_text(x, &c->src), c->copies[0].frame, (double)st->lost / 1e9,
                  addr_text(x, &c->dst), (double)c->wait / 1e9);
}

/* The statement about an RTU that was not seen, although requests came behind the REP. */
static void cm_tell_rtu(struct explainer *x, struct cm_sent *c)
{
    const struct req_dir *h = c->n == 1 && c->attr == CM_REP && !c->answer.frame ? cm_requests_back(x, c) : NULL;
    const struct cm_sent *o = h ? elsewhere(x, c) : NULL;
    struct statement *st =
        h && h->have_next && h->first_ts >= c->copies[0].ts ? statement_new(x, CAUSE_LOST_RTU, FLOW_NONE, NULL) : NULL;

    if (!st)
        return;
    c->statement = statement_number(x, st);
    st->start = c->copies[0].ts;
    st->tap = c->tap;
    st->where = WHERE_BEFORE;
    statement_frame(st, c->copies[0].frame);
    statement_frame(st, h->first_frame);
    if (o && o->answer.attr == CM_RTU) {
        statement_frame_at(st, o->tap, o->answer.frame);
        statement_say(x, st,
                      "The RTU to the REP of %s (frame %u), frame %u %s, was lost between the two; frame %u, the first "
                      "request, came instead.",
                      addr_text(x, &c->src), c->copies[0].frame, o->answer.frame, tap_text(x, c->tap, o->tap),
                      h->first_frame);
    } else {
        statement_say(
            x, st,
            "The RTU to the REP of %s (frame %u) never passed the tap; frame %u, the first request, came instead.",
            addr_text(x, &c->src), c->copies[0].frame, h->first_frame);
    }
}

void cm_tell(struct explainer *x, struct cm_sent *c)
{
    struct statement *st = c->n ? statement_at(x, c->statement) : NULL;
    uint32_t copies = min_u32(c->n, CM_COPIES);
    struct buf b = {0};

    if (!st && answered_by_repetition(c))
        cm_tell_late(x, c);
    else if (!st)
        cm_tell_rtu(x, c);
    if (!st)
        return;
    st->again = c->n - 1;
    st->lost = (c->gave_up.frame ? &c->gave_up : cm_latest(c))->ts - st->start;
    statement_frame(st, c->copies[0].frame);
    statement_frame(st, c->again.frame);
    for (unsigned i = 1; i < copies; i++)
        statement_frame(st, c->copies[i].frame);
    st->times = c->n > st->n_frames ? c->n - st->n_frames : 0;
    buf_printf(&b, "%s sent its %s (frame %u) ", addr_text(x, &c->src), cm_attr_str(c->attr), c->copies[0].frame);
    if (c->again.frame)
        buf_printf(&b, "again in frame %u, %.3f s later: ", c->again.frame,
                   (double)(c->again.ts - c->copies[0].ts) / 1e9);
    else
        buf_puts(&b, "and got no answer in time: ");
    if (!proved(x, c, st, &b))
        inferred(x, c, st, &b);
    if (c->gave_up.frame)
        buf_printf(&b, " It gave up in frame %u (REJ, timeout).", c->gave_up.frame);
    statement_frame(st, c->gave_up.frame);
    statement_say(x, st, "%s", buf_str(&b));
    buf_free(&b);
}

/* Two taps tell of the same message: the one that knows where it was lost remains, else the one nearer to its
 * sender. */
static void cm_merge(struct explainer *x, const struct cm_sent *c, const struct cm_sent *o)
{
    struct statement *st = statement_at(x, c->statement), *other = statement_at(x, o->statement), *keep;

    if (!st || !other || st == other || st->moot || other->moot)
        return;
    if ((st->where == WHERE_UNKNOWN) != (other->where == WHERE_UNKNOWN))
        keep = st->where == WHERE_UNKNOWN ? other : st;
    else
        keep = st->start <= other->start ? st : other;
    (keep == st ? other : st)->moot = true;
}

/* A REP that came again at another tap explains the late answer at this one. */
static void late_is_told(struct explainer *x, const struct cm_sent *c)
{
    struct statement *st = c->n == 1 && c->attr == CM_REQ ? statement_at(x, c->statement) : NULL;

    for (unsigned i = 0; st && i < CM_SENT; i++) {
        const struct cm_sent *rep = &x->cm[i];
        if (rep->n > 1 && rep->attr == CM_REP && rep->tap != c->tap && asks_for(c, rep) &&
            statement_at(x, rep->statement))
            st->moot = true;
    }
}

/* A REQ that came again for want of the REP, which came again itself, for it was lost: told of once, with the REP. */
static void consequence(struct explainer *x, const struct cm_sent *c)
{
    struct statement *st = c->answer_lost && c->attr == CM_REQ && !c->gave_up.frame ? statement_at(x, c->statement)
                                                                                    : NULL,
                     *rep = NULL;
    uint32_t tap = c->tap;
    char more[160];

    for (unsigned i = 0; st && !st->moot && i < CM_SENT && (!rep || rep->moot); i++)
        if (asks_for(c, &x->cm[i]) && x->cm[i].n > 1) {
            rep = statement_at(x, x->cm[i].statement);
            tap = x->cm[i].tap;
        }
    if (!rep || rep->moot || !rep->where)
        return;
    st->moot = true;
    statement_frame_at(rep, c->tap, c->again.frame);
    rep->again += st->again;
    snprintf(more, sizeof more, "For want of it %s sent its REQ again (frame %u%s%s).", addr_text(x, &c->src),
             c->again.frame, tap == c->tap ? "" : " ", tap == c->tap ? "" : tap_text(x, tap, c->tap));
    statement_add(x, rep, more);
}

void explain_cm_end(struct explainer *x)
{
    for (unsigned i = 0; i < CM_SENT; i++)
        cm_tell(x, &x->cm[i]);
    for (unsigned i = 0; i < CM_SENT; i++) {
        struct cm_sent *o = x->cm[i].n ? elsewhere(x, &x->cm[i]) : NULL;
        if (o)
            cm_merge(x, &x->cm[i], o);
        late_is_told(x, &x->cm[i]);
    }
    for (unsigned i = 0; i < CM_SENT; i++)
        consequence(x, &x->cm[i]);
}
