/* layer 3 (judge): the judge: what a capture gives of what a rule needs. */
#include "src/judge/judge_impl.h"

#define PAIRING_PROVED 16    /* responses with a fitting PSN that prove a pairing by PSN agreement in mid-stream */
#define SIMILAR_PSNS   65536 /* queue pairs whose PSNs are closer than this may be confused */

enum opener { OPENER_UNKNOWN, OPENER_THIS, OPENER_PEER };

/* Whether the capture shows the first of the requests in `flow`; `peer` carries the answers. */
static bool began_here(const struct judge *j, uint32_t flow, uint32_t peer)
{
    const struct req_dir *h = j->flows[flow].dir;

    return h->began == BEGAN_SEEN && !(j->flows[peer].has_rsp && j->flows[peer].rsp_frame < h->first_frame);
}

/* Whether only `flow` carries requests of the connection: then its sender opened it, unless it answers requests that
 * were not captured. */
static bool opens(const struct judge *j, uint32_t flow, uint32_t peer)
{
    const struct req_dir *h = j->flows[flow].dir;

    if (!h || !h->have_next || j->flows[flow].has_rsp)
        return false;
    return h->service == SVC_UC || (peer != FLOW_NONE && began_here(j, flow, peer));
}

/* Which end opened the connection: the sender of the requests in `flow`, or its peer. Without CM it is the end that
 * sent requests first, if the capture shows how that began, and if the other one had answered before it sent its
 * own. */
static enum opener opener(const struct judge *j, uint32_t flow)
{
    const struct flow *f = conn_flow_at(j->conns, flow);
    const struct req_dir *a = j->flows[flow].dir, *b = f->peer == FLOW_NONE ? NULL : j->flows[f->peer].dir;

    if (f->paired_by == PAIR_CM)
        return f->params.have_timeout ? OPENER_PEER : OPENER_THIS;
    if (f->peer == FLOW_NONE && conn_has_reverse(j->conns, flow))
        return OPENER_UNKNOWN;
    if (!a || !a->have_next)
        return b && opens(j, f->peer, flow) ? OPENER_PEER : OPENER_UNKNOWN;
    if (!b || !b->have_next)
        return opens(j, flow, f->peer) ? OPENER_THIS : OPENER_UNKNOWN;
    if (j->malformed || j->said_cm)
        return OPENER_UNKNOWN; /* CM states it, but could not be read */
    if (!began_here(j, flow, f->peer) || !began_here(j, f->peer, flow))
        return OPENER_UNKNOWN;
    if (a->first_rsp_ts <= b->first_ts)
        return OPENER_THIS;
    return b->first_rsp_ts <= a->first_ts ? OPENER_PEER : OPENER_UNKNOWN;
}

enum tap_side judge_side(const struct judge *j, uint32_t tap)
{
    uint32_t iface = tap & 0xffff;

    for (unsigned i = 0; i < j->o.n_taps; i++)
        if (j->o.taps[i].tap == tap)
            return j->o.taps[i].side;
    return iface < JUDGE_TAPS ? j->o.tap[iface] : TAP_UNKNOWN;
}

static unsigned have_tap(const struct judge *j, uint32_t flow)
{
    enum tap_side side = judge_side(j, conn_flow_at(j->conns, flow)->tap);
    enum opener who;

    if (side != TAP_REQUESTER && side != TAP_RESPONDER)
        return 0;
    who = opener(j, flow);
    return who == OPENER_UNKNOWN ? 0 : (side == TAP_REQUESTER) == (who == OPENER_THIS) ? N_TAP_REQ : N_TAP_RSP;
}

unsigned judge_have(const struct judge *j, uint32_t flow, const struct pkt *p)
{
    unsigned have = j->o.complete && !j->drops && !j->blind ? N_COMPLETE : 0;
    const struct flow *f;
    const struct req_dir *h;

    if (!p || !(p->flags & PKT_CUT))
        have |= N_PAYLOAD;
    if (p && p->have & H_BTH)
        have |= p->op->flags & OPF_RESPONSE ? N_RSP : N_REQ;
    if (!j->untimed && !j->backwards)
        have |= N_CLOCK;
    if (flow == FLOW_NONE)
        return have | N_REQ;
    f = conn_flow_at(j->conns, flow);
    h = j->flows[flow].dir;
    have |= have_tap(j, flow);
    have |= j->flows[flow].packets ? N_REQ : 0;
    have |= h && h->from_start ? N_START : 0;
    have |=
        (f->peer != FLOW_NONE && j->flows[f->peer].packets) || (have & N_COMPLETE && f->params.rep_frame) ? N_RSP : 0;
    have |= f->paired_by == PAIR_CM ? N_CM : 0;
    return have;
}

static bool same_way(const struct flow *a, const struct flow *b)
{
    return a->tap == b->tap && conn_addr_eq(&a->src, &b->src) && conn_addr_eq(&a->dst, &b->dst);
}

static bool opposite_way(const struct flow *a, const struct flow *b)
{
    return a->tap == b->tap && conn_addr_eq(&a->src, &b->dst) && conn_addr_eq(&a->dst, &b->src);
}

bool judge_pairing_doubtful(const struct judge *j, uint32_t flow)
{
    const struct flow *f = conn_flow_at(j->conns, flow);
    const struct req_dir *h = j->flows[flow].dir;
    uint32_t n = conn_counts(j->conns).flows;
    uint64_t fit;

    if (f->paired_by != PAIR_PSN || !h)
        return false;
    fit = h->rsp_packets > j->flows[flow].doubted ? h->rsp_packets - j->flows[flow].doubted : 0;
    if (fit < (h->began != BEGAN_SEEN ? PAIRING_PROVED : j->o.complete && !j->blind ? 1 : 3))
        return true; /* the only fitting response may be the one that is judged */
    if (fit < PAIRING_PROVED && j->said_cm)
        return true; /* CM was captured, but not this connection's: other connections began before the capture, too */
    if (fit < PAIRING_PROVED && f->peer != FLOW_NONE && j->flows[f->peer].rsp_frame < h->first_rsp_frame)
        return true; /* responses came before the two flows were paired */
    for (uint32_t i = 0; i < n; i++) {
        const struct flow *g = conn_flow_at(j->conns, i);
        const struct req_dir *o = j->flows[i].dir;
        bool unpaired =
            g->peer == FLOW_NONE && j->flows[i].has_rsp; /* carries responses to requests that are not known */
        bool similar =
            o && o->have_next && psn_in(o->next, psn_add(h->next, (uint32_t)-SIMILAR_PSNS), 2 * SIMILAR_PSNS);
        if (i != flow && (similar || unpaired) && same_way(g, f))
            return true; /* the peer of this flow may be that of `g` */
        if (unpaired && opposite_way(g, f))
            return true;
    }
    return false;
}
