/* layer 3 (explain): what went wrong outside of connections: datagrams, congestion, pause frames. */
#include "dissect/ip/mpa.h"
#include "dissect/pkt.h"
#include "src/explain/explain_impl.h"

/* --- Datagrams -------------------------------------------------------------------------------- */

/* A datagram with another Q_Key or P_Key than the first datagram to its queue pair: one incident for all of them. */
static void tell_other_key(struct explainer *x, const struct pkt *p, const struct qkey_seen *q, uint32_t *about,
                           enum cause cause, uint32_t key, uint32_t first)
{
    struct incident *st = incident_at(x, *about);

    if (st) {
        incident_frame(st, ROLE_LOST, frame_u32(p));
        return;
    }
    st = incident_new(x, cause, FLOW_NONE, p);
    if (!st)
        return;
    *about = incident_number(x, st);
    incident_frame(st, ROLE_LOST, frame_u32(p));
    incident_frame(st, ROLE_EVIDENCE, q->frame);
    if (cause == CAUSE_QKEY_MISMATCH)
        incident_is(st, SAY(QKEY_DATAGRAM, .lost = frame_u32(p), .key = key, .other = q->frame, .key2 = first));
    else
        incident_is(st, SAY(PKEY_DATAGRAM, .lost = frame_u32(p), .key = key, .other = q->frame, .key2 = first));
}

static void check_keys(struct explainer *x, const struct pkt *p)
{
    struct conn_addr src, dst;
    struct qkey_seen *q;
    uint64_t key = conn_tap_of(p->frame), a[CONN_ADDR_WORDS];

    if (p->bth.dqpn == 1)
        return;
    conn_addr_of(p, &src, &dst);
    conn_addr_words(&dst, a);
    for (unsigned i = 0; i < CONN_ADDR_WORDS; i++)
        key = (key ^ a[i]) * HASH_MULTIPLIER;
    key = (key ^ p->bth.dqpn) * HASH_MULTIPLIER | 1;
    q = &x->qkeys[key >> 56];
    if (q->key != key) {
        *q = (struct qkey_seen){key, p->deth.qkey, frame_u32(p), p->bth.pkey, NO_INCIDENT, NO_INCIDENT};
        return;
    }
    if (q->qkey != p->deth.qkey)
        tell_other_key(x, p, q, &q->q_incident, CAUSE_QKEY_MISMATCH, p->deth.qkey, q->qkey);
    if ((q->pkey ^ p->bth.pkey) & 0x7fff)
        tell_other_key(x, p, q, &q->p_incident, CAUSE_PKEY_MISMATCH, p->bth.pkey, q->pkey);
}

/* --- Congestion ------------------------------------------------------------------------------- */

/* The requests of the latest slices, and the time since the first of these began, or since the first request. */
static void first_cnp(struct marks *m, const struct pkt *p)
{
    uint64_t at = (uint64_t)p->frame->ts / CNP_SLICE, first = at - (CNP_SLICES - 1);
    ns_t from = (ns_t)(first * CNP_SLICE);

    m->cnp_frame = frame_u32(p);
    m->cnp_ts = p->frame->ts;
    if (!m->first_ts)
        return;
    m->look = p->frame->ts - (m->first_ts > from ? m->first_ts : from);
    for (unsigned i = 0; i < CNP_SLICES; i++)
        if (m->slices[i].n && (uint32_t)at - m->slices[i].at < CNP_SLICES)
            m->before_cnp += m->slices[i].n;
}

static void explain_cnp(struct explainer *x, const struct pkt *p, uint32_t flow)
{
    uint32_t peer = flow == FLOW_NONE ? FLOW_NONE : conn_flow_at(observer_conns(x->observer), flow)->peer;
    struct flow_notes *t = peer == FLOW_NONE ? NULL : notes_of(x, peer);

    if (!t)
        return;
    if (t->marks.cnps++ == 0)
        first_cnp(&t->marks, p);
}

void explain_other(struct explainer *x, const struct pkt *p, uint32_t flow)
{
    if (!(p->have & H_BTH) || p->have & H_MAD) {
        explain_way(x, p);
        explain_host(x, p);
    }
    if (!(p->have & H_BTH)) {
        if (p->addr_len && mpa_is_request(p))
            x->mpa_frame = x->mpa++ ? x->mpa_frame : frame_u32(p);
        else if (p->addr_len)
            explain_icmp(x, p);
        else
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
