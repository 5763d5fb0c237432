/* layer 3 (trace): what went wrong in connection management: refusals, and messages that had to be sent again. */
#include "src/trace/explain_impl.h"

#define COPY_WITHIN                                                                                                    \
    (10 * NS_PER_MS) /* a message again this soon is a copy made on the way; an answer this late crosses a repetition  \
                      */
#define PROMPT 4     /* an answer within this part of the silence before it is one to the latest copy */

/* --- Messages that want an answer
 * ------------------------------------------------------------------------------------------------------ */

static struct cm_sent *cm_find(struct explainer *x, const struct pkt *p, uint16_t attr, uint32_t id, bool reverse)
{
    struct conn_addr src, dst;

    conn_addr_of(p, &src, &dst);
    for (unsigned i = 0; i < CM_SENT; i++) {
        struct cm_sent *c = &x->cm[i];
        if (c->n && c->attr == attr && c->id == id && c->tap == conn_tap_of(p->frame) &&
            memcmp(&c->src, reverse ? &dst : &src, 16) == 0 && memcmp(&c->dst, reverse ? &src : &dst, 16) == 0)
            return c;
    }
    return NULL;
}

static struct cm_seen cm_seen_of(const struct pkt *p, uint16_t attr)
{
    return (struct cm_seen){.attr = attr, .frame = frame_u32(p), .icrc = icrc_of(p), .ts = p->frame->ts};
}

static const struct cm_seen *latest(const struct cm_sent *c)
{
    return &c->copies[min_u32(c->n, CM_COPIES) - 1];
}

/* Flow of the requests that the receiver of a message sends to its sender's queue pair, and what is known of them. */
static const struct half *requests_back(struct explainer *x, const struct cm_sent *c)
{
    struct conn_table *t = watch_conns(x->watch);
    uint32_t flow;

    if (c->attr == CM_REP)
        flow = conn_flow_named(t, c->tap, &c->dst, &c->src, c->qpn);
    else if (c->attr == CM_DREQ)
        flow = conn_flow_named(t, c->tap, &c->src, &c->dst, c->qpn);
    else
        return NULL;
    if (flow != FLOW_NONE && c->attr == CM_DREQ)
        flow = conn_flow_at(t, flow)->peer;
    return flow == FLOW_NONE ? NULL : watch_half(x->watch, flow);
}

/* What the tap saw between the copy before and this one tells which message did not arrive. */
static void note_evidence(struct explainer *x, struct cm_sent *c, const struct cm_seen *again)
{
    const struct half *h = requests_back(x, c);
    ns_t since = latest(c)->ts;

    if (!c->between.frame || (c->between.attr == CM_MRA && c->answer.frame))
        c->between = c->answer;
    c->answer = (struct cm_seen){0};
    if (c->between.frame || !h || !h->have_next)
        return;
    if (c->attr == CM_REP && h->first_ts >= c->copies[0].ts)
        c->used_frame = h->first_frame;
    else if (c->attr == CM_DREQ && h->last_ts > since + COPY_WITHIN && h->last_ts < again->ts)
        c->used_frame = h->last_frame;
}

/* --- Which message was lost, and where
 * -------------------------------------------------------------------------------------------------- */

/* The same message at another tap; NULL if none. */
static struct cm_sent *elsewhere(struct explainer *x, const struct cm_sent *c)
{
    for (unsigned i = 0; i < CM_SENT; i++) {
        struct cm_sent *o = &x->cm[i];
        if (o->n && o->tap != c->tap && o->attr == c->attr && o->id == c->id && memcmp(&o->src, &c->src, 16) == 0 &&
            memcmp(&o->dst, &c->dst, 16) == 0)
            return o;
    }
    return NULL;
}

/* Whether `q` is the REQ that the REP `c` answers. */
static bool asks_for(const struct cm_sent *q, const struct cm_sent *c)
{
    return q->n && q->attr == CM_REQ && q->id == c->answers && memcmp(&q->src, &c->dst, 16) == 0 &&
           memcmp(&q->dst, &c->src, 16) == 0;
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

/* A REP that the other tap has no copy of, although it saw the REQ that the REP answers, and saw it again behind the REP:
 * that REQ there; else NULL. */
static const struct cm_sent *unheard(struct explainer *x, const struct cm_sent *c)
{
    const struct cm_sent *req = NULL;

    for (unsigned i = 0; c->attr == CM_REP && i < CM_SENT; i++)
        if (asks_for(&x->cm[i], c) && x->cm[i].tap == c->tap)
            req = &x->cm[i];
    for (unsigned i = 0; req && i < CM_SENT; i++) {
        const struct cm_sent *o = &x->cm[i];
        if (asks_for(o, c) && o->tap != c->tap && o->n >= req->n && latest(req)->ts > c->copies[0].ts + COPY_WITHIN &&
            captured_then(x, req, o, &c->copies[0]))
            return o;
    }
    return NULL;
}

/* Two taps prove it. */
static bool proved(struct explainer *x, const struct cm_sent *c, struct statement *st, struct buf *b)
{
    const struct cm_sent *o = elsewhere(x, c), *deaf = o ? NULL : unheard(x, c);
    const struct cm_seen *missing = o ? copy_missing(x, c, o) : deaf ? &c->copies[0] : NULL;

    if (missing) {
        buf_printf(b, "frame %u is not there %s, it was lost between the two.", missing->frame,
                   tap_text(c->tap, (o ? o : deaf)->tap));
        st->where = WHERE_AFTER;
    } else if (o && o->between.frame && !c->between.frame) {
        buf_printf(b, "the %s to it, frame %u %s, was lost between the two.", cm_attr_str(o->between.attr),
                   o->between.frame, tap_text(c->tap, o->tap));
        statement_frame(st, o->between.frame);
        st->where = WHERE_BEFORE;
    } else if (o && c->between.frame && !o->between.frame) {
        buf_printf(b, "the %s to it (frame %u) is not there %s, it was lost between the two.",
                   cm_attr_str(c->between.attr), c->between.frame, tap_text(c->tap, o->tap));
        statement_frame(st, c->between.frame);
        st->where = WHERE_AFTER;
    }
    return st->where != WHERE_UNKNOWN;
}

/* An answer was seen before the message came again. */
static void answered_before(const struct cm_sent *c, struct statement *st, struct buf *b)
{
    const char *dst = addr_text(&c->dst), *name = cm_attr_str(c->between.attr);

    statement_frame(st, c->between.frame);
    if (c->between.attr == CM_MRA) {
        buf_printf(b,
                   "%s had asked for more time (MRA, frame %u); it did not answer within that, or the MRA was lost "
                   "behind the tap.",
                   dst, c->between.frame);
    } else if ((c->gave_up.frame ? &c->gave_up : latest(c))->ts - c->between.ts < COPY_WITHIN) {
        buf_printf(b, "the %s of %s (frame %u) was under way already.", name, dst, c->between.frame);
    } else {
        buf_printf(b, "the %s of %s (frame %u) passed the tap and was lost behind it.", name, dst, c->between.frame);
        st->where = WHERE_AFTER;
    }
}

/* What one tap tells: how both ends went on. */
static void inferred(struct explainer *x, const struct cm_sent *c, struct statement *st, struct buf *b)
{
    const char *dst = addr_text(&c->dst), *name = cm_attr_str(c->attr);
    const struct half *h = requests_back(x, c);
    bool prompt = c->answer.frame && c->answer.ts - latest(c)->ts < c->silence / PROMPT;

    st->where = WHERE_AFTER;
    if (c->between.frame) {
        st->where = WHERE_UNKNOWN;
        answered_before(c, st, b);
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
        buf_printf(b, "it was lost behind the tap; had %s answered it, the answer would have come again after %.3f s.",
                   dst, (double)c->wait / 1e9);
    } else if (c->attr == CM_REP && prompt && h && h->have_next && h->first_ts >= latest(c)->ts) {
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

/* The statement about a message that came again, or that its sender gave up. */
static void cm_tell(struct explainer *x, struct cm_sent *c)
{
    struct statement *st = c->n ? statement_at(x, c->statement) : NULL;
    uint32_t copies = min_u32(c->n, CM_COPIES);
    struct buf b = {0};

    if (!st)
        return;
    st->again = c->n - 1;
    st->lost = (c->gave_up.frame ? &c->gave_up : latest(c))->ts - st->start;
    statement_frame(st, c->copies[0].frame);
    statement_frame(st, c->again.frame);
    for (unsigned i = 1; i < copies; i++)
        statement_frame(st, c->copies[i].frame);
    buf_printf(&b, "%s sent its %s (frame %u) ", addr_text(&c->src), cm_attr_str(c->attr), c->copies[0].frame);
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

/* Two taps tell of the same message: the one that knows where it was lost remains, else the one nearer to its sender.
 */
static void cm_merge(struct explainer *x, struct cm_sent *c, struct cm_sent *o)
{
    struct statement *st = statement_at(x, c->statement), *other = statement_at(x, o->statement), *keep;

    if (!st || !other || st->moot || other->moot)
        return;
    if ((st->where == WHERE_UNKNOWN) != (other->where == WHERE_UNKNOWN))
        keep = st->where == WHERE_UNKNOWN ? other : st;
    else
        keep = st->start <= other->start ? st : other;
    (keep == st ? other : st)->moot = true;
}

void explain_cm_end(struct explainer *x)
{
    for (unsigned i = 0; i < CM_SENT; i++)
        cm_tell(x, &x->cm[i]);
    for (unsigned i = 0; i < CM_SENT; i++) {
        struct cm_sent *o = x->cm[i].n ? elsewhere(x, &x->cm[i]) : NULL;
        if (o)
            cm_merge(x, &x->cm[i], o);
    }
}

/* --- Messages as they come
 * ---------------------------------------------------------------------------------------------------------------- */

/* The answer to a message; the first one to each copy counts. */
static void cm_answered(struct explainer *x, const struct pkt *p, uint16_t to, uint16_t attr, uint32_t id)
{
    struct cm_sent *c = cm_find(x, p, to, id, true);

    if (c && !c->answer.frame)
        c->answer = cm_seen_of(p, attr);
}

/* There is something to tell of a message; false without room. */
static bool cm_trouble(struct explainer *x, struct cm_sent *c, const struct pkt *p)
{
    struct statement *st = statement_at(x, c->statement);

    if (!st) {
        st = statement_new(x, CAUSE_CM_TIMEOUT, FLOW_NONE, p);
        if (!st)
            return false;
        c->statement = statement_number(x, st);
        st->start = c->copies[0].ts;
    }
    return true;
}

static void copy_add(struct cm_sent *c, const struct cm_seen *seen)
{
    c->copies[min_u32(c->n++, CM_COPIES - 1)] = *seen;
}

static void cm_again(struct explainer *x, struct cm_sent *c, const struct pkt *p)
{
    struct cm_seen seen = cm_seen_of(p, c->attr);

    if (seen.ts - latest(c)->ts < COPY_WITHIN)
        return;
    note_evidence(x, c, &seen);
    if (!cm_trouble(x, c, p))
        return;
    if (!c->again.frame)
        c->again = seen;
    c->silence = seen.ts - latest(c)->ts;
    copy_add(c, &seen);
}

/* A message that wants an answer: remembered; told of when it comes again. */
static struct cm_sent *cm_sent(struct explainer *x, const struct pkt *p, uint16_t attr, uint32_t id)
{
    struct cm_sent *c = cm_find(x, p, attr, id, false);

    if (c) {
        cm_again(x, c, p);
        return c;
    }
    c = &x->cm[x->cm_at++ % CM_SENT];
    cm_tell(x, c);
    *c = (struct cm_sent){.attr = attr,
                          .id = id,
                          .tap = conn_tap_of(p->frame),
                          .statement = NO_STATEMENT,
                          .n = 1,
                          .copies = {cm_seen_of(p, attr)}};
    conn_addr_of(p, &c->src, &c->dst);
    return c;
}

/* A REP. One that answers a REQ sent again is no repetition of its own: what was lost is told of with the REQ. */
static void cm_rep(struct explainer *x, const struct pkt *p, const struct cm_rep *m)
{
    struct cm_sent *req = cm_find(x, p, CM_REQ, m->remote_id, true), *c = cm_find(x, p, CM_REP, m->local_id, false);

    if (c && req && latest(req)->ts > latest(c)->ts)
        copy_add(c, &(const struct cm_seen){CM_REP, frame_u32(p), icrc_of(p), p->frame->ts});
    else
        c = cm_sent(x, p, CM_REP, m->local_id);
    c->qpn = m->qpn;
    c->answers = m->remote_id;
    cm_answered(x, p, CM_REQ, CM_REP, m->remote_id);
}

/* A REJ for want of an answer: its sender gives up what it sent itself; it refuses nothing. */
static void cm_gave_up(struct explainer *x, const struct pkt *p, const struct cm_rej *r)
{
    struct cm_sent *rep = cm_find(x, p, CM_REP, r->local_id, false);
    struct cm_sent *c = rep ? rep : cm_find(x, p, CM_REQ, r->local_id, false);
    struct conn_addr src, dst;
    struct statement *st;

    if (c && cm_trouble(x, c, p)) {
        if (!c->between.frame)
            c->between = c->answer;
        if (!c->gave_up.frame)
            c->gave_up = cm_seen_of(p, CM_REJ);
        return;
    }
    st = c ? NULL : statement_new(x, CAUSE_CM_TIMEOUT, FLOW_NONE, p);
    if (!st)
        return;
    conn_addr_of(p, &src, &dst);
    statement_frame(st, frame_u32(p));
    statement_say(x, st, "%s gives up the connection with %s, which did not answer in time (REJ, timeout, frame %u).",
                  addr_text(&src), addr_text(&dst), frame_u32(p));
}

static void cm_rejected(struct explainer *x, const struct pkt *p, const struct cm_rej *r)
{
    const struct cm_sent *c = cm_find(x, p, CM_REQ, r->remote_id, true), *own = cm_find(x, p, CM_REQ, r->local_id, false);
    bool none = r->reason == CM_REJ_INVALID_SERVICE_ID;
    struct statement *st = statement_new(x, none ? CAUSE_NO_SUCH_SERVICE : CAUSE_CM_REJECT, FLOW_NONE, p);
    const char *why = cm_rej_reason_str(r->reason);
    struct conn_addr src, dst;

    if (!st)
        return;
    conn_addr_of(p, &src, &dst);
    c = c ? c : own;
    statement_frame(st, c ? c->copies[0].frame : 0);
    statement_frame(st, frame_u32(p));
    statement_say(x, st, "%s refuses the connection that %s %s: reason %u, %s (frame %u).", addr_text(&src),
                  c && c == own ? "it asked of" : addr_text(&dst), c && c == own ? addr_text(&dst) : "asks for", r->reason,
                  why ? why : "not defined", frame_u32(p));
}

static struct told *closed(struct explainer *x, uint32_t flow, ns_t ts)
{
    struct told *t = told_of(x, flow);

    if (t && t->closed_ts <= t->wanted.ts)
        t->closed_ts = ts;
    return t;
}

/* A DREQ: the requests of its receiver to the sender will find nobody. */
static void cm_closed(struct explainer *x, const struct pkt *p, uint32_t qpn)
{
    struct conn_table *t = watch_conns(x->watch);
    struct conn_addr src, dst;
    uint32_t flow;
    struct told *told;

    conn_addr_of(p, &src, &dst);
    flow = conn_flow_named(t, conn_tap_of(p->frame), &src, &dst, qpn);
    if (flow == FLOW_NONE)
        return;
    closed(x, flow, p->frame->ts);
    if (conn_flow_at(t, flow)->peer == FLOW_NONE)
        return;
    told = closed(x, conn_flow_at(t, flow)->peer, p->frame->ts);
    if (told)
        told->closed_frame = frame_u32(p);
}

static void explain_sidr(struct explainer *x, const struct pkt *p, const struct cm_sidr_rep *r)
{
    const char *why = cm_sidr_status_str(r->status);
    struct statement *st;
    struct conn_addr src, dst;

    if (r->status == CM_SIDR_SUCCESS)
        return;
    st = statement_new(x, r->status == CM_SIDR_UNSUPPORTED ? CAUSE_NO_SUCH_SERVICE : CAUSE_CM_REJECT, FLOW_NONE, p);
    if (!st)
        return;
    conn_addr_of(p, &src, &dst);
    statement_frame(st, frame_u32(p));
    statement_say(x, st, "%s answers the SIDR_REQ of %s with status %u, %s (frame %u).", addr_text(&src), addr_text(&dst), r->status, why ? why : "not defined", frame_u32(p));
}

void explain_cm(struct explainer *x, const struct pkt *p)
{
    struct cm_msg m;

    if (!cm_msg_of(&m, p))
        return;
    switch (m.mad.attr_id) {
    case CM_REQ:
        cm_sent(x, p, CM_REQ, m.req.local_id)->wait = cm_time(m.req.local_timeout);
        break;
    case CM_MRA:
        cm_answered(x, p, m.mra.about == CM_ABOUT_REQ ? CM_REQ : CM_REP, CM_MRA, m.mra.remote_id);
        break;
    case CM_REP:
        cm_rep(x, p, &m.rep);
        break;
    case CM_RTU:
        cm_answered(x, p, CM_REP, CM_RTU, m.rtu.remote_id);
        break;
    case CM_REJ:
        cm_answered(x, p, m.rej.about == CM_ABOUT_REP ? CM_REP : CM_REQ, CM_REJ, m.rej.remote_id);
        (m.rej.reason == CM_REJ_TIMEOUT ? cm_gave_up : cm_rejected)(x, p, &m.rej);
        break;
    case CM_DREQ:
        cm_sent(x, p, CM_DREQ, m.dreq.local_id)->qpn = m.dreq.remote_qpn;
        cm_closed(x, p, m.dreq.remote_qpn);
        break;
    case CM_DREP:
        cm_answered(x, p, CM_DREQ, CM_DREP, m.drep.remote_id);
        break;
    case CM_SIDR_REQ:
        cm_sent(x, p, CM_SIDR_REQ, m.sidr_req.request_id);
        break;
    case CM_SIDR_REP:
        cm_answered(x, p, CM_SIDR_REQ, CM_SIDR_REP, m.sidr_rep.request_id);
        explain_sidr(x, p, &m.sidr_rep);
        break;
    default:
        break;
    }
}
