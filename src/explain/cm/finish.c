/* layer 3 (explain): connection management, end of the capture: which message was lost, and where. */
#include "src/explain/explain_impl.h"

#define REPEATS_WITHIN 16 /* a retransmission is early or late by this part of the CM timeout at most */
#define CM_RETRIES_MAX 15 /* the retry count has four bits */
#define PROMPT         4  /* a response within this part of the wait before it answers the latest copy */

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
        bool same = o->n && o->attr == c->attr && o->id == c->id;
        if (same && o->tap != c->tap && is_same_way(&o->src, &o->dst, &c->src, &c->dst))
            return o;
    }
    return NULL;
}

/* True if the REP `c` answers the REQ `q`. */
static bool is_answered_by(const struct cm_sent *q, const struct cm_sent *c)
{
    return q->n && q->attr == CM_REQ && q->id == c->answers && is_same_way(&q->src, &q->dst, &c->dst, &c->src);
}

static const struct cm_seen *copy_at(const struct cm_sent *o, uint32_t icrc)
{
    for (unsigned i = 0; icrc && i < o->n && i < CM_COPIES; i++)
        if (o->copies[i].icrc == icrc)
            return &o->copies[i];
    return NULL;
}

/* True if the tap of `o` was capturing when `c` saw its copy `at`. The interfaces of one file are captured together.
 * Another file may have another clock: a copy that both files have gives the offset. */
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

/* A copy that the other tap lacks; NULL if there is none. */
static const struct cm_seen *copy_missing(const struct explainer *x, const struct cm_sent *c, const struct cm_sent *o)
{
    for (unsigned i = 0; i < c->n && i < CM_COPIES && o->n <= CM_COPIES; i++)
        if (c->copies[i].icrc && !copy_at(o, c->copies[i].icrc) && captured_then(x, c, o, &c->copies[i]))
            return &c->copies[i];
    return NULL;
}

/* Find out whether another tap lacks the REP `c`: it saw the REQ, and saw it retransmitted after the REP. Returns that
 * REQ at the other tap, else NULL. */
static const struct cm_sent *not_received(struct explainer *x, const struct cm_sent *c)
{
    const struct cm_sent *req = NULL;

    for (unsigned i = 0; c->attr == CM_REP && i < CM_SENT; i++)
        if (is_answered_by(&x->cm[i], c) && x->cm[i].tap == c->tap)
            req = &x->cm[i];
    for (unsigned i = 0; req && i < CM_SENT; i++) {
        const struct cm_sent *o = &x->cm[i];
        if (is_answered_by(o, c) && o->tap != c->tap && o->n >= req->n &&
            cm_latest(req)->ts > c->copies[0].ts + CM_COPY_WITHIN && captured_then(x, req, o, &c->copies[0]))
            return o;
    }
    return NULL;
}

/* Two taps show where the message was lost; false if they do not. */
static bool proved(struct explainer *x, struct cm_sent *c, struct incident *st)
{
    const struct cm_sent *o = elsewhere(x, c), *missed = o ? NULL : not_received(x, c);
    const struct cm_seen *missing = o ? copy_missing(x, c, o) : missed ? &c->copies[0] : NULL;

    if (missing) {
        incident_add(st, SAY(CM_TAP_LACKS, .lost = missing->frame, .tap = fact_tap((o ? o : missed)->tap)));
        st->place = PLACE_AFTER;
    } else if (o && o->between.frame && !c->between.frame) {
        incident_add(st,
                     SAY(CM_TAP_ANSWER, .attr = o->between.attr, .answer = o->between.frame, .tap = fact_tap(o->tap)));
        c->answer_lost = true;
        incident_frame_at(st, ROLE_LOST, o->tap, o->between.frame);
        st->place = PLACE_BEFORE;
    } else if (o && c->between.frame && !o->between.frame) {
        incident_add(
            st, SAY(CM_TAP_LACKS_ANSWER, .attr = c->between.attr, .answer = c->between.frame, .tap = fact_tap(o->tap)));
        c->answer_lost = true;
        incident_frame(st, ROLE_LOST, c->between.frame);
        st->place = PLACE_AFTER;
    }
    return st->place != PLACE_UNKNOWN;
}

/* The shortest time that the host that sent `c` took to respond to a message sent once, as seen at its tap; 0: not
 * known. */
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

/* A response was captured before the retransmission. */
static void answered_before(struct explainer *x, struct cm_sent *c, struct incident *st)
{
    ns_t since = (c->gave_up.frame ? &c->gave_up : cm_latest(c))->ts - c->between.ts, loop = loop_of(x, c);
    struct fact f = {.attr = c->between.attr, .answer = c->between.frame, .time = since, .time2 = loop};

    incident_frame(st, ROLE_ANSWER, c->between.frame);
    if (c->between.attr == CM_MRA) {
        f.sentence = SENTENCE_CM_MORE_TIME;
    } else if (since < CM_COPY_WITHIN) {
        f.sentence = SENTENCE_CM_UNDER_WAY;
    } else if (since < loop) {
        f.sentence = SENTENCE_CM_LIKELY_UNDER_WAY;
    } else {
        f.sentence = SENTENCE_CM_ANSWER_LOST;
        c->answer_lost = true;
        st->place = PLACE_AFTER;
    }
    incident_add(st, &f);
}

/* Infer the loss from one tap: from how both ends went on. */
static void inferred(struct explainer *x, struct cm_sent *c, struct incident *st)
{
    const struct req_dir *h = cm_requests_back(x, c);
    bool prompt = c->answer.frame && c->answer.ts - cm_latest(c)->ts < c->silence / PROMPT;

    st->place = PLACE_AFTER;
    if (c->between.frame) {
        st->place = PLACE_UNKNOWN;
        answered_before(x, c, st);
    } else if (prompt && (c->copies[0].pkey ^ cm_latest(c)->pkey) & 0x7fff) {
        st->cause = CAUSE_PKEY_MISMATCH;
        st->place = PLACE_UNKNOWN;
        incident_add(st, SAY(CM_PKEY, .key = c->copies[0].pkey, .key2 = cm_latest(c)->pkey));
    } else if (c->answer.frame && c->answered >= c->n) {
        st->place = PLACE_UNKNOWN;
        incident_frame(st, ROLE_ANSWER, c->answer.frame);
        incident_add(st, SAY(CM_TOO_SOON, .answer = c->answer.frame));
    } else if (c->attr == CM_REP && c->used_frame) {
        st->place = PLACE_BEFORE;
        incident_add(st, SAY(CM_RTU_LOST, .other = c->used_frame));
        incident_frame(st, ROLE_EVIDENCE, c->used_frame);
    } else if (c->used_frame) {
        incident_add(st, SAY(CM_WENT_ON, .other = c->used_frame, .attr = c->attr));
        incident_frame(st, ROLE_EVIDENCE, c->used_frame);
    } else if (c->attr == CM_REQ && prompt && c->wait && c->silence > c->wait) {
        incident_add(st, SAY(CM_REQ_LOST, .time = c->wait));
    } else if (c->attr == CM_REP && prompt && h && h->have_next && h->first_ts >= cm_latest(c)->ts) {
        incident_add(st, SAY(CM_REP_LOST, .other = h->first_frame));
    } else {
        st->place = PLACE_UNKNOWN;
        incident_add(st, c->answer.frame ? SAY(CM_EITHER) : SAY(CM_NO_ANSWER));
    }
}

/* True if the REP came so late after the only REQ that it must be a retransmission: its delay is a multiple of the time
 * after which the responder sends the REP again without an RTU (an MRA would have asked for more time). Linux counts in
 * units of 1.024 ms as if they were of 1 ms. */
static bool answered_by_repetition(const struct cm_sent *c)
{
    ns_t took = c->answer.ts - c->copies[0].ts, times = c->wait >= CM_COPY_WITHIN ? (took + c->wait / 2) / c->wait : 0,
         off = took - times * c->wait;

    return c->n == 1 && c->attr == CM_REQ && c->answer.attr == CM_REP && times > 0 && times <= CM_RETRIES_MAX &&
           (off < 0 ? -off : off) <= times * c->wait / REPEATS_WITHIN;
}

/* An incident about a message; NULL without room. */
static struct incident *cm_incident(struct explainer *x, struct cm_sent *c, enum cause cause)
{
    struct incident *st = incident_new(x, cause, FLOW_NONE, NULL);

    if (!st)
        return NULL;
    c->incident = incident_number(x, st);
    st->start = c->copies[0].ts;
    st->tap = c->tap;
    st->src = c->src;
    st->dst = c->dst;
    return st;
}

/* The incident about a REQ that was sent once and had a late REP. */
static void cm_report_late(struct explainer *x, struct cm_sent *c)
{
    struct incident *st = cm_incident(x, c, CAUSE_CM_TIMEOUT);

    if (!st)
        return;
    st->lost = c->answer.ts - c->copies[0].ts;
    incident_frame(st, ROLE_EVIDENCE, c->copies[0].frame);
    incident_frame(st, ROLE_ANSWER, c->answer.frame);
    incident_is(
        st, SAY(REP_LATE, .answer = c->answer.frame, .lost = c->copies[0].frame, .time = st->lost, .time2 = c->wait));
}

/* The incident about an RTU that was not captured, although requests follow the REP. */
static void cm_report_rtu(struct explainer *x, struct cm_sent *c)
{
    const struct req_dir *h = c->n == 1 && c->attr == CM_REP && !c->answer.frame ? cm_requests_back(x, c) : NULL;
    const struct cm_sent *o = h ? elsewhere(x, c) : NULL;
    struct incident *st =
        h && h->have_next && h->first_ts >= c->copies[0].ts ? cm_incident(x, c, CAUSE_LOST_RTU) : NULL;
    bool there = o && o->answer.attr == CM_RTU;

    if (!st)
        return;
    st->place = PLACE_BEFORE;
    incident_frame(st, ROLE_EVIDENCE, c->copies[0].frame);
    incident_frame(st, ROLE_INSTEAD, h->first_frame);
    if (there)
        incident_frame_at(st, ROLE_LOST, o->tap, o->answer.frame);
    incident_is(st, SAY(RTU_LOST, .lost = c->copies[0].frame, .other = there ? o->answer.frame : 0,
                        .tap = there ? fact_tap(o->tap) : 0, .instead = h->first_frame));
    if (!there && explain_lacks(x, h->flow))
        incident_doubt(st);
}

void cm_report(struct explainer *x, struct cm_sent *c)
{
    struct incident *st = c->n ? incident_at(x, c->incident) : NULL;
    uint32_t copies = min_u32(c->n, CM_COPIES);

    if (!st && answered_by_repetition(c))
        cm_report_late(x, c);
    else if (!st)
        cm_report_rtu(x, c);
    if (!st)
        return;
    st->again = c->n - 1;
    st->lost = (c->gave_up.frame ? &c->gave_up : cm_latest(c))->ts - st->start;
    st->src = c->src;
    st->dst = c->dst;
    incident_frame(st, ROLE_LOST, c->copies[0].frame);
    incident_frame(st, ROLE_RETRANSMISSION, c->again.frame);
    for (unsigned i = 1; i < copies; i++)
        incident_frame(st, ROLE_RETRANSMISSION, c->copies[i].frame);
    st->times = c->n > st->n_frames ? c->n - st->n_frames : 0;
    incident_is(st, SAY(CM_AGAIN, .attr = c->attr, .lost = c->copies[0].frame, .again = c->again.frame,
                        .time = c->again.frame ? c->again.ts - c->copies[0].ts : 0));
    if (!proved(x, c, st))
        inferred(x, c, st);
    if (c->gave_up.frame)
        incident_add(st, SAY(CM_REJ_TIMEOUT, .other = c->gave_up.frame));
    incident_frame(st, ROLE_EVIDENCE, c->gave_up.frame);
}

/* Two taps report the same message: keep the incident that knows where the message was lost, else that of the tap
 * nearer to the sender. */
static void cm_merge(struct explainer *x, const struct cm_sent *c, const struct cm_sent *o)
{
    struct incident *st = incident_at(x, c->incident), *other = incident_at(x, o->incident), *keep;

    if (!st || !other || st == other || st->moot || other->moot)
        return;
    if ((st->place == PLACE_UNKNOWN) != (other->place == PLACE_UNKNOWN))
        keep = st->place == PLACE_UNKNOWN ? other : st;
    else
        keep = st->start <= other->start ? st : other;
    (keep == st ? other : st)->moot = true;
}

/* A REP retransmitted at another tap explains why it came late at this one. */
static void late_is_known(struct explainer *x, const struct cm_sent *c)
{
    struct incident *st = c->n == 1 && c->attr == CM_REQ ? incident_at(x, c->incident) : NULL;

    for (unsigned i = 0; st && i < CM_SENT; i++) {
        const struct cm_sent *rep = &x->cm[i];
        if (rep->n > 1 && rep->attr == CM_REP && rep->tap != c->tap && is_answered_by(c, rep) &&
            incident_at(x, rep->incident))
            st->moot = true;
    }
}

/* The REP was lost, so both REQ and REP were retransmitted: report it once, with the REP. */
static void consequence(struct explainer *x, const struct cm_sent *c)
{
    struct incident *st = c->answer_lost && c->attr == CM_REQ && !c->gave_up.frame ? incident_at(x, c->incident) : NULL,
                    *rep = NULL;
    uint32_t tap = c->tap;

    for (unsigned i = 0; st && !st->moot && i < CM_SENT && (!rep || rep->moot); i++)
        if (is_answered_by(c, &x->cm[i]) && x->cm[i].n > 1) {
            rep = incident_at(x, x->cm[i].incident);
            tap = x->cm[i].tap;
        }
    if (!rep || rep->moot || !rep->place)
        return;
    st->moot = true;
    incident_frame_at(rep, ROLE_EVIDENCE, c->tap, c->again.frame);
    rep->again += st->again;
    incident_add(rep, SAY(CM_REQ_AGAIN, .again = c->again.frame, .tap = tap == c->tap ? 0 : fact_tap(c->tap)));
}

void explain_cm_end(struct explainer *x)
{
    for (unsigned i = 0; i < CM_SENT; i++)
        cm_report(x, &x->cm[i]);
    for (unsigned i = 0; i < CM_SENT; i++) {
        struct cm_sent *o = x->cm[i].n ? elsewhere(x, &x->cm[i]) : NULL;
        if (o)
            cm_merge(x, &x->cm[i], o);
        late_is_known(x, &x->cm[i]);
    }
    for (unsigned i = 0; i < CM_SENT; i++)
        consequence(x, &x->cm[i]);
}
