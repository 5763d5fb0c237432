/* layer 3 (explain): packets that are neither request nor response, each to where it is explained; those whose ICRC is
 * wrong, also before their flow is known. */
#include "dissect/ip/tcp.h"
#include "dissect/pkt.h"
#include "dissect/socket/smc.h"
#include "src/conn/packet.h"
#include "src/explain/compare/taps.h"
#include "src/explain/congestion/congestion.h"
#include "src/explain/explain_impl.h"

/* A TCP segment: CLC messages about SMC-R are noted. */
static void note_clc(struct explainer *x, const struct pkt *p)
{
    struct tcp h;
    uint32_t len;
    const uint8_t *b = tcp_payload(p, &h, &len);
    unsigned type = b && len && b[0] == SMC_CLC_FIRST ? smc_clc_type(b, len) : 0;

    if (!type || type >= ARRAY_LEN(x->clc))
        return;
    if (!smc_clc_is_rdma(b)) {
        if (type == SMC_CONFIRM && !x->clc_d)
            x->clc_d = frame_u32(p);
        return;
    }
    if (type == SMC_DECLINE && !x->clc[SMC_PROPOSAL] && !x->clc[SMC_ACCEPT])
        return; /* it may be SMC-D that was declined */
    if (!x->clc[type])
        x->clc[type] = frame_u32(p);
}

/* What the ends agreed on over TCP, and what is missing then. */
static void put_clc(const struct explainer *x, struct buf *b)
{
    if (x->clc[SMC_DECLINE])
        buf_printf(b,
                   " SMC-R was declined in frame %u (rdma.smc.decline.diagnosis says why): its connection goes on over "
                   "TCP.",
                   x->clc[SMC_DECLINE]);
    else if (x->clc[SMC_CONFIRM])
        buf_printf(b,
                   " SMC-R was agreed on over TCP until frame %u (CLC Confirm), and no packet of it followed: none was "
                   "sent, or they passed elsewhere.",
                   x->clc[SMC_CONFIRM]);
    else if (x->clc_d)
        buf_printf(b, " SMC-D was agreed on over TCP (CLC Confirm, frame %u): no network carries it.", x->clc_d);
    else if (x->clc[SMC_PROPOSAL] || x->clc[SMC_ACCEPT])
        buf_printf(b, " SMC-R was proposed over TCP (CLC, frame %u); no CLC Confirm followed.",
                   x->clc[SMC_PROPOSAL] ? x->clc[SMC_PROPOSAL] : x->clc[SMC_ACCEPT]);
}

void explain_foreign_put(const struct explainer *x, struct buf *b)
{
    buf_puts(b, "There is no RoCE, InfiniBand or iWARP traffic in this capture.");
    put_clc(x, b);
}

void explain_other(struct explainer *x, const struct pkt *p, uint32_t flow)
{
    if (!(p->have & H_BTH) || p->have & H_MAD) {
        explain_at_taps(x, p);
        explain_host(x, p);
    }
    if (!(p->have & H_BTH)) {
        if (p->addr_len) {
            note_clc(x, p);
            explain_icmp(x, p);
        } else {
            explain_pause(x, p);
        }
    } else if (p->op->flags & OPF_CNP) {
        explain_cnp(x, p, flow);
    } else if (p->have & H_MAD) {
        explain_cm(x, p);
    } else if (p->have & H_DETH && !(p->flags & PKT_MALFORMED)) {
        explain_datagram(x, p);
    }
}

/* --- Wrong ICRCs ---------------------------------------------------------------------------- */

static void bad_put(struct flow_notes *t, uint32_t psn, uint32_t frame, uint32_t incident)
{
    unsigned at = t->requests.bad_at++ % NOTED_BAD;

    t->requests.bad[at].psn = psn;
    t->requests.bad[at].frame = frame;
    t->requests.bad[at].incident = incident;
}

void explain_assign_bad_icrcs(struct explainer *x, uint32_t flow, struct flow_notes *t)
{
    const struct flow *f = conn_flow_at(observer_conns(x->observer), flow);

    for (unsigned i = 0; i < NOTED_BAD; i++) {
        struct bad_packet *s = &x->bad_packets[i];
        struct incident *st = s->frame ? incident_at(x, s->incident) : NULL;
        if (!st || s->tap != f->tap || s->dqpn != f->dqpn || !is_same_way(&s->src, &s->dst, &f->src, &f->dst))
            continue;
        bad_put(t, s->psn, s->frame, s->incident);
        st->flow = flow;
        st->conn = f->conn;
        s->frame = 0;
    }
}

/* A packet with a bad ICRC whose flow is not known yet: before the first good packet of the flow. */
static void bad_packet_put(struct explainer *x, const struct pkt *p, uint32_t incident)
{
    struct bad_packet *s = &x->bad_packets[x->bad_packets_at++ % NOTED_BAD];

    *s = (struct bad_packet){.tap = conn_tap_of(p->frame),
                             .dqpn = p->bth.dqpn,
                             .psn = p->bth.psn,
                             .frame = frame_u32(p),
                             .incident = incident,
                             .answer = !(p->op->flags & OPF_REQUEST)};
    conn_addr_of(p, &s->src, &s->dst);
}

void explain_bad_icrc(struct explainer *x, const struct pkt *p, uint32_t flow)
{
    struct incident *st = incident_new(x, CAUSE_BAD_ICRC, flow, p);
    struct flow_notes *t = flow == FLOW_NONE ? NULL : notes_of(x, flow);

    if (p->have & H_BTH)
        icrc_sources_count(&x->icrcs, p);
    if (st) {
        incident_frame(st, ROLE_LOST, frame_u32(p));
        st->place = PLACE_BEFORE;
        st->is_request = p->op->flags & OPF_REQUEST;
        st->psn = p->bth.psn;
        incident_is(st, SAY(DAMAGED, .lost = frame_u32(p), .key = p->icrc_got, .key2 = p->icrc_want));
    }
    if (t && p->have & H_BTH)
        bad_put(t, p->bth.psn, frame_u32(p), incident_number(x, st));
    else if (st && p->have & H_BTH && !(p->op->flags & OPF_CNP))
        bad_packet_put(x, p, incident_number(x, st));
}

bool explain_damaged_copies(struct explainer *x, const struct flow_notes *t, struct incident *st, uint32_t psn,
                            const struct pkt *p)
{
    bool once_more = false;

    for (unsigned i = 0; i < NOTED_BAD; i++) {
        uint32_t frame = t->requests.bad[i].psn == psn ? t->requests.bad[i].frame : 0;
        struct incident *other = frame ? damaged_incident(x, t, frame, p) : NULL;
        if (!other || other == st || other->moot)
            continue;
        other->moot = once_more = true;
        incident_add(st, SAY(DAMAGED_ONCE_MORE, .lost = frame));
        incident_frame(st, ROLE_LOST, frame);
    }
    return once_more;
}

void explain_came_damaged(struct explainer *x, const struct event *e, const struct flow_notes *t)
{
    uint32_t psn = e->p->bth.psn, frame = damaged_frame(t, psn), again = frame_u32(e->p);
    struct incident *st = frame ? damaged_incident(x, t, frame, e->p) : NULL;
    ns_t silence;
    bool late;

    if (!st || st->has_psn || st->moot || !st->is_request)
        return;
    silence = e->p->frame->ts - (e->h->have_next && e->h->last_ts > st->start ? e->h->last_ts : st->start);
    late = silence >= timer_earliest(ack_timeout(e->h->timeout ? e->h->timeout : 1));
    incident_concerns(st, psn, 0, true);
    st->again++;
    if (late) {
        st->silence = silence;
        incident_is(st, SAY(DAMAGED_REQUEST, .lost = frame, .again = again));
    } else {
        incident_is(st, SAY(DAMAGED_BEFORE, .psn = psn, .lost = frame, .again = again));
    }
    explain_damaged_copies(x, t, st, psn, e->p);
    incident_frame(st, ROLE_RETRANSMISSION, again);
}
