/* layer 3 (trace): what went wrong outside of connections: their management, datagrams, congestion, pause frames. */
#include "src/trace/explain_impl.h"

#define COPY_WITHIN (10 * NS_PER_MS) /* a message again this soon is a copy made on the way */

/* --- Connection management ---------------------------------------------------------------------------------------------------------- */

static struct cm_sent *cm_find(struct explainer *x, const struct pkt *p, uint16_t attr, uint32_t id, bool reverse)
{
    struct conn_addr src, dst;

    conn_addr_of(p, &src, &dst);
    for (unsigned i = 0; i < CM_SENT; i++) {
        struct cm_sent *c = &x->cm[i];
        if (c->used && c->attr == attr && c->id == id && c->tap == conn_tap_of(p->frame) && memcmp(&c->src, reverse ? &dst : &src, 16) == 0 &&
            memcmp(&c->dst, reverse ? &src : &dst, 16) == 0)
            return c;
    }
    return NULL;
}

/* A message that wants an answer: remembered; told of when it comes again. */
static void cm_sent(struct explainer *x, const struct pkt *p, uint16_t attr, uint32_t id)
{
    struct cm_sent *c = cm_find(x, p, attr, id, false);
    struct statement *st;

    if (!c) {
        c = &x->cm[x->cm_at++ % CM_SENT];
        *c = (struct cm_sent){.used = true, .attr = attr, .id = id, .tap = conn_tap_of(p->frame), .statement = NO_STATEMENT, .frame = frame_u32(p), .ts = p->frame->ts};
        conn_addr_of(p, &c->src, &c->dst);
        return;
    }
    if (p->frame->ts - c->ts < COPY_WITHIN)
        return;
    st = statement_at(x, c->statement);
    if (!st) {
        st = statement_new(x, CAUSE_CM_TIMEOUT, FLOW_NONE, p);
        if (!st)
            return;
        c->statement = statement_number(x, st);
        statement_frame(st, c->frame);
        st->start = c->ts;
        st->has_psn = false;
        st->icrc = p->icrc_off + 4 <= p->caplen ? load_be32(p->data + p->icrc_off) : 0;
    }
    statement_frame(st, frame_u32(p));
    st->again++;
    st->lost = p->frame->ts - st->start;
    statement_say(x, st, "%s sent its %s (frame %u) again in frame %u, %.3f s later: the message or the answer to it was lost, or nobody answers.", addr_text(&c->src),
                  cm_attr_str(attr), c->frame, frame_u32(p), (double)(p->frame->ts - c->ts) / 1e9);
}

static void cm_answered(struct explainer *x, const struct pkt *p, uint16_t attr, uint32_t id)
{
    struct cm_sent *c = cm_find(x, p, attr, id, true);

    if (c)
        c->answered = true;
}

static void cm_rejected(struct explainer *x, const struct pkt *p, const struct cm_rej *r)
{
    const struct cm_sent *c = cm_find(x, p, CM_REQ, r->remote_id, true);
    bool none = r->reason == CM_REJ_INVALID_SERVICE_ID;
    struct statement *st = statement_new(x, none ? CAUSE_NO_SUCH_SERVICE : CAUSE_CM_REJECT, FLOW_NONE, p);
    const char *why = cm_rej_reason_str(r->reason);
    struct conn_addr src, dst;

    if (!st)
        return;
    conn_addr_of(p, &src, &dst);
    statement_frame(st, c ? c->frame : 0);
    statement_frame(st, frame_u32(p));
    statement_say(x, st, "%s refuses the connection that %s asks for: reason %u, %s (frame %u).", addr_text(&src), addr_text(&dst), r->reason, why ? why : "not defined",
                  frame_u32(p));
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
    if (flow == FLOW_NONE || conn_flow_at(t, flow)->peer == FLOW_NONE)
        return;
    told = told_of(x, conn_flow_at(t, flow)->peer);
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

static void explain_cm(struct explainer *x, const struct pkt *p)
{
    struct cm_msg m;

    if (!cm_msg_of(&m, p))
        return;
    switch (m.mad.attr_id) {
    case CM_REQ:
        cm_sent(x, p, CM_REQ, m.req.local_id);
        break;
    case CM_REP:
        cm_answered(x, p, CM_REQ, m.rep.remote_id);
        cm_sent(x, p, CM_REP, m.rep.local_id);
        break;
    case CM_RTU:
        cm_answered(x, p, CM_REP, m.rtu.remote_id);
        break;
    case CM_REJ:
        cm_rejected(x, p, &m.rej);
        break;
    case CM_DREQ:
        cm_sent(x, p, CM_DREQ, m.dreq.local_id);
        cm_closed(x, p, m.dreq.remote_qpn);
        break;
    case CM_SIDR_REQ:
        cm_sent(x, p, CM_SIDR_REQ, m.sidr_req.request_id);
        break;
    case CM_SIDR_REP:
        explain_sidr(x, p, &m.sidr_rep);
        break;
    default:
        break;
    }
}

/* --- Datagrams ------------------------------------------------------------------------------------------------------------------------ */

static void explain_datagram(struct explainer *x, const struct pkt *p)
{
    struct conn_addr src, dst;
    struct qkey_seen *q;
    uint64_t key = conn_tap_of(p->frame), a[2];
    struct statement *st;

    if (p->bth.dqpn == 1)
        return;
    conn_addr_of(p, &src, &dst);
    memcpy(a, dst.b, 16);
    key = ((((key ^ a[0]) * UINT64_C(0x9e3779b97f4a7c15)) ^ a[1]) * UINT64_C(0x9e3779b97f4a7c15) ^ p->bth.dqpn) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    q = &x->qkeys[key >> 56];
    if (q->key == key && q->qkey != p->deth.qkey) {
        st = statement_new(x, CAUSE_QKEY_MISMATCH, FLOW_NONE, p);
        if (st) {
            statement_frame(st, frame_u32(p));
            statement_frame(st, q->frame);
            statement_say(x, st, "The datagram in frame %u for QP 0x%x of %s carries Q_Key 0x%08x, the one in frame %u carried 0x%08x: one of the two is dropped.",
                          frame_u32(p), p->bth.dqpn, addr_text(&dst), p->deth.qkey, q->frame, q->qkey);
        }
        return;
    }
    *q = (struct qkey_seen){key, p->deth.qkey, frame_u32(p)};
}

/* --- Congestion --------------------------------------------------------------------------------------------------------------------------- */

static void explain_cnp(struct explainer *x, const struct pkt *p, uint32_t flow)
{
    uint32_t peer = flow == FLOW_NONE ? FLOW_NONE : conn_flow_at(watch_conns(x->watch), flow)->peer;
    struct told *t = peer == FLOW_NONE ? NULL : told_of(x, peer);

    if (!t)
        return;
    if (t->cnps++ == 0) {
        t->cnp_frame = frame_u32(p);
        t->cnp_ts = p->frame->ts;
        for (unsigned i = 0; i < ARRAY_LEN(t->recent) && i < t->recent_at; i++)
            t->before_cnp += p->frame->ts - t->recent[i] < CNP_LOOK;
    }
}

/* IEEE 802.3x and 802.1Qbb. */
static void explain_pause(struct explainer *x, const struct pkt *p)
{
    const uint8_t *q = p->data;
    unsigned opcode = load_be16(q + 14);
    struct statement *st = statement_at(x, x->pause);

    if (opcode != 0x0001 && opcode != 0x0101)
        return;
    if (!st) {
        st = statement_new(x, CAUSE_PAUSE, FLOW_NONE, p);
        if (!st)
            return;
        x->pause = statement_number(x, st);
        statement_say(x, st, "%s frames of %02x:%02x:%02x:%02x:%02x:%02x, first in frame %u.", opcode == 1 ? "Pause" : "Priority pause", q[6], q[7], q[8], q[9], q[10], q[11],
                      frame_u32(p));
    }
    statement_frame(st, frame_u32(p));
}

void explain_other(struct explainer *x, const struct pkt *p, uint32_t flow)
{
    if (!(p->have & H_BTH)) {
        if (p->frame->linktype == LINK_ETHERNET && p->caplen >= 18 && load_be16(p->data + 12) == 0x8808)
            explain_pause(x, p);
    } else if (p->op->flags & OPF_CNP) {
        explain_cnp(x, p, flow);
    } else if (p->have & H_MAD) {
        explain_cm(x, p);
    } else if (p->have & H_DETH && !(p->flags & PKT_MALFORMED)) {
        explain_datagram(x, p);
    }
}
