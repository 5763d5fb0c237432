/* layer 3 (explain): what went wrong outside of connections: datagrams, congestion, pause frames. */
#include "src/explain/explain_impl.h"

/* --- Datagrams -------------------------------------------------------------------------------- */

/* A datagram with a key other than that of the first one to its queue pair: told of once. */
static void tell_other_key(struct explainer *x, const struct pkt *p, const struct qkey_seen *q,
                           const struct conn_addr *dst, uint32_t *about, enum cause cause, uint32_t key, uint32_t first)
{
    struct statement *st = statement_at(x, *about);
    bool is_qkey = cause == CAUSE_QKEY_MISMATCH;

    if (st) {
        statement_frame(st, frame_u32(p));
        return;
    }
    st = statement_new(x, cause, FLOW_NONE, p);
    if (!st)
        return;
    *about = statement_number(x, st);
    statement_frame(st, frame_u32(p));
    statement_frame(st, q->frame);
    statement_say(x, st,
                  is_qkey ? "The datagram in frame %u for QP 0x%x of %s carries Q_Key 0x%08x, the one in frame %u "
                            "carried 0x%08x: one of the two is dropped."
                          : "The datagram in frame %u for QP 0x%x of %s carries P_Key 0x%04x, the one in frame %u "
                            "carried 0x%04x: one of the two is dropped.",
                  frame_u32(p), p->bth.dqpn, addr_text(x, dst), key, q->frame, first);
}

static void check_keys(struct explainer *x, const struct pkt *p)
{
    struct conn_addr src, dst;
    struct qkey_seen *q;
    uint64_t key = conn_tap_of(p->frame), a[2];

    if (p->bth.dqpn == 1)
        return;
    conn_addr_of(p, &src, &dst);
    memcpy(a, dst.b, 16);
    key = ((((key ^ a[0]) * HASH_MULTIPLIER) ^ a[1]) * HASH_MULTIPLIER ^ p->bth.dqpn) * HASH_MULTIPLIER | 1;
    q = &x->qkeys[key >> 56];
    if (q->key != key) {
        *q = (struct qkey_seen){key, p->deth.qkey, frame_u32(p), p->bth.pkey, NO_STATEMENT, NO_STATEMENT};
        return;
    }
    if (q->qkey != p->deth.qkey)
        tell_other_key(x, p, q, &dst, &q->q_statement, CAUSE_QKEY_MISMATCH, p->deth.qkey, q->qkey);
    if ((q->pkey ^ p->bth.pkey) & 0x7fff)
        tell_other_key(x, p, q, &dst, &q->p_statement, CAUSE_PKEY_MISMATCH, p->bth.pkey, q->pkey);
}

/* --- Congestion ------------------------------------------------------------------------------- */

static void explain_cnp(struct explainer *x, const struct pkt *p, uint32_t flow)
{
    uint32_t peer = flow == FLOW_NONE ? FLOW_NONE : conn_flow_at(observer_conns(x->observer), flow)->peer;
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
        statement_say(x, st, "%s frames of %02x:%02x:%02x:%02x:%02x:%02x, first in frame %u.",
                      opcode == 1 ? "Pause" : "Priority pause", q[6], q[7], q[8], q[9], q[10], q[11], frame_u32(p));
    }
    statement_frame_at(st, conn_tap_of(p->frame), frame_u32(p));
}

void explain_other(struct explainer *x, const struct pkt *p, uint32_t flow)
{
    if (!(p->have & H_BTH) || p->have & H_MAD)
        explain_way(x, p);
    if (!(p->have & H_BTH)) {
        if (p->frame->linktype == LINK_ETHERNET && p->caplen >= 18 && load_be16(p->data + 12) == 0x8808)
            explain_pause(x, p);
    } else if (p->op->flags & OPF_CNP) {
        explain_cnp(x, p, flow);
    } else if (p->have & H_MAD) {
        explain_cm(x, p);
    } else if (p->have & H_DETH && !(p->flags & PKT_MALFORMED)) {
        check_keys(x, p);
        explain_datagram(x, p);
    }
}
