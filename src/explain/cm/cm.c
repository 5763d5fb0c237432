/* layer 3 (explain): connection management: messages as they pass, retransmissions and rejects. */
#include "dissect/pkt.h"
#include "src/conn/packet.h"
#include "src/explain/explain_impl.h"
#include "src/explain/security/security.h"

/* --- Messages that expect a response ---------------------------------------------------------- */

static struct cm_sent *cm_find(struct explainer *x, const struct pkt *p, uint16_t attr, uint32_t id, bool reverse)
{
    struct conn_addr src, dst;

    conn_addr_of(p, reverse ? &dst : &src, reverse ? &src : &dst);
    for (unsigned i = 0; i < CM_SENT; i++) {
        struct cm_sent *c = &x->cm[i];
        bool named = c->n && c->attr == attr && c->id == id && c->tap == conn_tap_of(p->frame);
        if (named && conn_addr_alike(&c->src, &src) && conn_addr_alike(&c->dst, &dst))
            return c;
    }
    return NULL;
}

static struct cm_seen cm_seen_of(const struct pkt *p, uint16_t attr)
{
    return (struct cm_seen){
        .attr = attr, .pkey = p->bth.pkey, .frame = frame_u32(p), .icrc = icrc_of(p), .ts = p->frame->ts};
}

/* Note what the tap saw between the previous copy of the message and this one, as evidence whether the message or its
 * response was lost. */
static void note_evidence(struct explainer *x, struct cm_sent *c, const struct cm_seen *again)
{
    const struct req_dir *h = cm_requests_back(x, c);
    ns_t since = cm_latest(c)->ts;

    if (!c->between.frame || (c->between.attr == CM_MRA && c->answer.frame))
        c->between = c->answer;
    c->answer = (struct cm_seen){0};
    if (c->between.frame || !h || !h->have_next)
        return;
    if (c->attr == CM_REP && h->first_ts >= c->copies[0].ts)
        c->used_frame = h->first_frame;
    else if (c->attr == CM_DREQ && h->last_ts > since + CM_COPY_WITHIN && h->last_ts < again->ts)
        c->used_frame = h->last_frame;
}

/* --- Messages as they come -------------------------------------------------------------------- */

/* The response to a message; the first response after each copy counts. */
static void cm_answered(struct explainer *x, const struct pkt *p, uint16_t to, uint16_t attr, uint32_t id)
{
    struct cm_sent *c = cm_find(x, p, to, id, true);

    if (!c)
        return;
    if (!c->answer.frame)
        c->answer = cm_seen_of(p, attr);
    c->answered += !c->answered || p->frame->ts - c->answered_ts >= CM_COPY_WITHIN;
    c->answered_ts = p->frame->ts;
}

/* Make the incident about a retransmitted message, if it has none; false without room. */
static bool cm_trouble(struct explainer *x, struct cm_sent *c, const struct pkt *p)
{
    struct incident *st = incident_at(x, c->incident);

    if (!st) {
        st = incident_new(x, CAUSE_CM_TIMEOUT, FLOW_NONE, p);
        if (!st)
            return false;
        c->incident = incident_number(x, st);
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

    if (seen.ts - cm_latest(c)->ts < CM_COPY_WITHIN)
        return;
    note_evidence(x, c, &seen);
    if (!cm_trouble(x, c, p))
        return;
    if (!c->again.frame)
        c->again = seen;
    c->silence = seen.ts - cm_latest(c)->ts;
    copy_add(c, &seen);
}

/* True if a message belongs to the connection that REQ `q` sets up. */
static bool is_of_connection(const struct cm_sent *c, const struct cm_sent *q, uint32_t rep_id)
{
    bool forth = is_same_way(&c->src, &c->dst, &q->src, &q->dst),
         back = is_same_way(&c->src, &c->dst, &q->dst, &q->src);

    if (!c->n || c->tap != q->tap)
        return false;
    return (forth && c->id == q->id) || (back && (c->attr == CM_REP ? c->answers == q->id : c->id == rep_id));
}

/* True if a REQ reuses the ids of a connection that was closed since: it sets up a new connection. The incidents of the
 * old one are made first, then its messages are removed. */
static bool is_new_exchange(struct explainer *x, struct cm_sent *q)
{
    uint32_t rep_id = 0;
    bool closed = false;

    for (unsigned i = 0; i < CM_SENT; i++)
        if (x->cm[i].attr == CM_REP && is_of_connection(&x->cm[i], q, 0))
            rep_id = x->cm[i].id;
    for (unsigned i = 0; i < CM_SENT; i++)
        closed |= x->cm[i].attr == CM_DREQ && is_of_connection(&x->cm[i], q, rep_id) && x->cm[i].answer.frame;
    for (unsigned i = 0; closed && i < CM_SENT; i++)
        if (&x->cm[i] != q && is_of_connection(&x->cm[i], q, rep_id)) {
            cm_report(x, &x->cm[i]);
            x->cm[i].n = 0;
        }
    if (closed) {
        cm_report(x, q);
        q->n = 0;
    }
    return closed;
}

/* A message that expects a response: remember it; a retransmission becomes an incident. */
static struct cm_sent *cm_sent(struct explainer *x, const struct pkt *p, uint16_t attr, uint32_t id)
{
    struct cm_sent *c = cm_find(x, p, attr, id, false);

    if (c && !(attr == CM_REQ && is_new_exchange(x, c))) {
        cm_again(x, c, p);
        return c;
    }
    c = &x->cm[x->cm_at++ % CM_SENT];
    cm_report(x, c);
    *c = (struct cm_sent){.attr = attr,
                          .id = id,
                          .tap = conn_tap_of(p->frame),
                          .incident = NO_INCIDENT,
                          .n = 1,
                          .copies = {cm_seen_of(p, attr)}};
    conn_addr_of(p, &c->src, &c->dst);
    return c;
}

/* Find the RTU that was captured before its REP `c`. */
static void find_early_rtu(const struct explainer *x, struct cm_sent *c)
{
    for (unsigned i = 0; i < EARLY_RTUS; i++) {
        const struct early_rtu *r = &x->rtus[i];
        if (r->seen.frame && r->tap == c->tap && r->id == c->id && is_same_way(&r->src, &r->dst, &c->dst, &c->src))
            c->answer = r->seen;
    }
}

/* A REP. A REP to a retransmitted REQ is not a retransmission by its own timer: the loss is reported with the REQ.
 * `known`: its queue pair and PSN were captured. */
static void cm_rep(struct explainer *x, const struct pkt *p, const struct cm_rep *m, bool known)
{
    struct cm_sent *req = cm_find(x, p, CM_REQ, m->remote_id, true), *c = cm_find(x, p, CM_REP, m->local_id, false);

    if (c && req && cm_latest(req)->ts > cm_latest(c)->ts)
        copy_add(c, &(const struct cm_seen){CM_REP, p->bth.pkey, frame_u32(p), icrc_of(p), p->frame->ts});
    else
        c = cm_sent(x, p, CM_REP, m->local_id);
    c->qpn = cm_rep_qpn(m);
    c->answers = m->remote_id;
    if (c->n == 1 && !c->answer.frame)
        find_early_rtu(x, c);
    if (c->n == 1)
        chosen_by_cm(x, p, known, c->qpn, known, m->psn);
    cm_answered(x, p, CM_REQ, CM_REP, m->remote_id);
}

/* An RTU. One captured before its REP is kept until the REP comes. */
static void cm_rtu(struct explainer *x, const struct pkt *p, uint32_t id)
{
    struct early_rtu *r;

    if (cm_find(x, p, CM_REP, id, true)) {
        cm_answered(x, p, CM_REP, CM_RTU, id);
        return;
    }
    r = &x->rtus[x->rtus_at++ % EARLY_RTUS];
    *r = (struct early_rtu){.tap = conn_tap_of(p->frame), .id = id, .seen = cm_seen_of(p, CM_RTU)};
    conn_addr_of(p, &r->src, &r->dst);
}

/* A REJ with reason Timeout: its sender gives up after it had no response to its own message; nothing is rejected. */
static void cm_gave_up(struct explainer *x, const struct pkt *p, const struct cm_rej *r)
{
    struct cm_sent *rep = cm_find(x, p, CM_REP, r->local_id, false);
    struct cm_sent *c = rep ? rep : cm_find(x, p, CM_REQ, r->local_id, false);
    struct incident *st;

    if (c && cm_trouble(x, c, p)) {
        if (!c->between.frame)
            c->between = c->answer;
        if (!c->gave_up.frame)
            c->gave_up = cm_seen_of(p, CM_REJ);
        return;
    }
    st = c ? NULL : incident_new(x, CAUSE_CM_TIMEOUT, FLOW_NONE, p);
    if (!st)
        return;
    incident_frame(st, ROLE_EVIDENCE, frame_u32(p));
    incident_is(st, SAY(CM_GAVE_UP, .other = frame_u32(p)));
}

/* The incident about a reject seen before, retransmitted or at another tap. NULL if there is none: then the reject is
 * remembered, with the number of the next incident. */
static struct incident *refused_before(struct explainer *x, const struct pkt *p, const struct refusal *r)
{
    for (unsigned i = 0; i < REFUSALS; i++) {
        struct refusal *o = &x->refusals[i];
        struct incident *st = incident_at(x, o->incident);
        if (o->attr != r->attr || o->local != r->local || o->remote != r->remote || !conn_addr_eq(&o->src, &r->src) ||
            !conn_addr_eq(&o->dst, &r->dst))
            continue;
        if (st && o->tap == r->tap)
            incident_frame(st, ROLE_EVIDENCE, frame_u32(p));
        return st;
    }
    x->refusals[x->refusals_at] = *r;
    x->refusals[x->refusals_at++].incident = x->n;
    x->refusals_at %= REFUSALS;
    return NULL;
}

static struct refusal refusal_of(const struct pkt *p, uint16_t attr, uint32_t local, uint32_t remote)
{
    struct refusal r = {.attr = attr, .tap = conn_tap_of(p->frame), .local = local, .remote = remote};

    conn_addr_of(p, &r.src, &r.dst);
    return r;
}

static void cm_rejected(struct explainer *x, const struct pkt *p, const struct cm_rej *r)
{
    const struct cm_sent *c = cm_find(x, p, CM_REQ, r->remote_id, true),
                         *own = cm_find(x, p, CM_REQ, r->local_id, false);
    const struct refusal ref = refusal_of(p, CM_REJ, r->local_id, r->remote_id);
    bool none = r->reason == CM_REJ_INVALID_SERVICE_ID;
    struct incident *st;

    if (refused_before(x, p, &ref))
        return;
    st = incident_new(x, none ? CAUSE_NO_SUCH_SERVICE : CAUSE_CM_REJECT, FLOW_NONE, p);
    if (!st)
        return;
    c = c ? c : own;
    incident_frame(st, ROLE_EVIDENCE, c ? c->copies[0].frame : 0);
    incident_frame(st, ROLE_ANSWER, frame_u32(p));
    if (c && c == own)
        incident_is(st, SAY(CM_WITHDRAWN, .n = r->reason, .other = frame_u32(p)));
    else
        incident_is(st, SAY(CM_REFUSED, .n = r->reason, .other = frame_u32(p)));
}

static struct flow_notes *closed(struct explainer *x, uint32_t flow, ns_t ts)
{
    struct flow_notes *t = notes_of(x, flow);

    if (t && t->closing.closed_ts <= t->requests.wanted.ts)
        t->closing.closed_ts = ts;
    return t;
}

/* A DREQ: from now on requests of its receiver to its sender find no queue pair. */
static void cm_closed(struct explainer *x, const struct pkt *p, uint32_t qpn)
{
    struct conn_table *t = observer_conns(x->observer);
    struct conn_addr src, dst;
    uint32_t flow;
    struct flow_notes *notes;

    conn_addr_of(p, &src, &dst);
    flow = conn_flow_named(t, conn_tap_of(p->frame), &src, &dst, qpn);
    if (flow == FLOW_NONE)
        return;
    notes = closed(x, flow, p->frame->ts);
    if (notes && !notes->closing.left_frame) {
        notes->closing.left_frame = frame_u32(p);
        notes->closing.left_ts = p->frame->ts;
    }
    if (conn_flow_at(t, flow)->peer == FLOW_NONE)
        return;
    notes = closed(x, conn_flow_at(t, flow)->peer, p->frame->ts);
    if (notes)
        notes->closing.closed_frame = frame_u32(p);
}

static void explain_sidr(struct explainer *x, const struct pkt *p, const struct cm_sidr_rep *r)
{
    const struct refusal ref = refusal_of(p, CM_SIDR_REP, 0, r->request_id);
    struct incident *st;

    if (r->status == CM_SIDR_SUCCESS || refused_before(x, p, &ref))
        return;
    st = incident_new(x, r->status == CM_SIDR_UNSUPPORTED ? CAUSE_NO_SUCH_SERVICE : CAUSE_CM_REJECT, FLOW_NONE, p);
    if (!st)
        return;
    incident_frame(st, ROLE_ANSWER, frame_u32(p));
    incident_is(st, SAY(SIDR_REFUSED, .n = r->status, .other = frame_u32(p)));
}

void explain_cm(struct explainer *x, const struct pkt *p)
{
    struct cm_sent *req;
    struct cm_msg m;

    if (!cm_msg_of(&m, p))
        return;
    switch (m.mad.attr_id) {
    case CM_REQ:
        req = cm_sent(x, p, CM_REQ, m.req.local_id);
        req->wait = CM_HAS(&m, req, local_timeout) ? cm_time(m.req.local_timeout) : 0;
        req->qpn = m.req.qpn;
        if (req->n == 1)
            chosen_by_cm(x, p, CM_HAS(&m, req, qpn), m.req.qpn, CM_HAS(&m, req, psn), m.req.psn);
        break;
    case CM_MRA:
        if (CM_HAS(&m, mra, about))
            cm_answered(x, p, m.mra.about == CM_ABOUT_REQ ? CM_REQ : CM_REP, CM_MRA, m.mra.remote_id);
        break;
    case CM_REP:
        cm_rep(x, p, &m.rep, CM_HAS(&m, rep, psn));
        break;
    case CM_RTU:
        cm_rtu(x, p, m.rtu.remote_id);
        break;
    case CM_REJ:
        if (!CM_HAS(&m, rej, reason))
            break;
        cm_answered(x, p, m.rej.about == CM_ABOUT_REP ? CM_REP : CM_REQ, CM_REJ, m.rej.remote_id);
        (m.rej.reason == CM_REJ_TIMEOUT ? cm_gave_up : cm_rejected)(x, p, &m.rej);
        break;
    case CM_DREQ:
        cm_sent(x, p, CM_DREQ, m.dreq.local_id)->qpn = m.dreq.remote_qpn;
        if (CM_HAS(&m, dreq, remote_qpn))
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
