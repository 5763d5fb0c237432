/* layer 3 (judge): packets of a connection compared with the parameters in its CM messages. */
#include "src/judge/judge_impl.h"

static void check_first_psn(struct judge *j, const struct pkt *p, uint32_t flow, struct jflow *f)
{
    const struct flow *c = conn_flow_at(j->conns, flow);
    int32_t d = psn_diff(p->bth.psn, c->psn);
    struct found g = found_of(RULE_CM_06, flow);

    f->psn_checked = true;
    if (!c->have_psn || c->paired_by != PAIR_CM || d == 0)
        return;
    g.needs = d > 0 ? N_TAP_REQ : 0; /* the first packets may have been lost before the tap */
    /* a packet that could not be decoded may have been the first one */
    g.lacks = j->last_unreadable > c->params.rep_frame ? N_COMPLETE : 0;
    if (c->peer != FLOW_NONE && j->flows[c->peer].has_rsp)
        g.lacks |= N_COMPLETE; /* the captured REP is a retransmission: packets came before it */
    g.cause = c->params.rep_frame;
    g.expected = say(j, "PSN %u", c->psn);
    g.seen = say(j, "PSN %u", p->bth.psn);
    g.text = "The starting PSN of a REQ or REP is the one from which its receiver sends. The peer expects that PSN and "
             "refuses this packet.";
    judge_found(j, p, g);
}

static void report_too_long(struct judge *j, const struct pkt *p, uint32_t flow, const struct flow *c)
{
    struct found g = found_of(RULE_CM_08, flow);

    g.cause = c->params.req_frame;
    g.expected = say(j, "at most %u bytes", c->pmtu);
    g.seen = say(j, "%u", p->payload_len);
    g.text = "The packet is longer than the path MTU that the REQ states.";
    judge_found(j, p, g);
}

static void report_after_close(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct found g = found_of(RULE_CM_13, flow);

    g.needs = N_TAP_REQ; /* else the packet may have been reordered with the DREQ or DREP */
    g.cause = j->flows[flow].closed_frame;
    g.expected = "silence";
    g.seen = p->op->name;
    g.text = "Its sender has said that the connection is over.";
    judge_found(j, p, g);
}

void judge_cm_request(struct judge *j, const struct judged *a)
{
    const struct pkt *p = a->p;
    const struct flow *c = conn_flow_at(j->conns, a->flow);

    if (LIKELY(keeps_cm_params(a->f, c, p)))
        return;
    if (UNLIKELY(!a->f->psn_checked))
        check_first_psn(j, p, a->flow, a->f);
    if (UNLIKELY(c->paired_by == PAIR_CM && c->pmtu && p->payload_len > c->pmtu))
        report_too_long(j, p, a->flow, c);
    if (UNLIKELY(a->f->closed && (a->as == SEEN_NEW || a->as == SEEN_GAP)))
        report_after_close(j, p, a->flow);
}

/* A sequence NAK, before any request was acknowledged, with a PSN before the starting PSN that its sender announced. */
void judge_cm_response(struct judge *j, const struct judged *a)
{
    const struct pkt *p = a->p;
    const struct flow *c = &j->flow[a->flow];
    struct found g = found_of(RULE_CM_06, a->flow);

    if (!(p->have & H_AETH) || response_type(p) != AETH_NAK || aeth_value(p->aeth.syndrome) != NAK_PSN_SEQ) {
        a->f->acked = true;
        return;
    }
    if (c->paired_by != PAIR_CM || !c->have_psn || !a->f->packets || psn_diff(p->bth.psn, c->psn) >= 0)
        return;
    g.cause = c->params.rep_frame;
    g.wrong = "the NAK expects PSN {seen}, announced was {expected}";
    g.expected = say(j, "PSN %u", c->psn);
    g.seen = say(j, "PSN %u", p->bth.psn);
    g.text =
        "The NAK tells which PSN its sender expects: not the one that its own REQ or REP gave the peer to start from.";
    judge_found(j, p, g);
}

/* Flow `flow` has packets for a queue pair without a known connection. If a connection between the same hosts
 * skipped their first PSN at that time, they belong to that connection and have a wrong queue pair number. */
static void check_wrong_qpn(struct judge *j, uint32_t flow, const struct jflow *f)
{
    const struct flow *c = conn_flow_at(j->conns, flow);
    uint32_t n = conn_counts(j->conns).flows, hole;

    for (uint32_t i = 0; i < n; i++) {
        const struct flow *o = conn_flow_at(j->conns, i);
        const struct req_dir *h = j->flows[i].dir;
        struct found g = found_of(RULE_CM_07, i);
        bool same_direction = o->tap == c->tap && conn_addr_eq(&o->src, &c->src) && conn_addr_eq(&o->dst, &c->dst);
        if (i == flow || o->paired_by != PAIR_CM || !h || !same_direction)
            continue;
        if (!req_dir_was_hole(h, f->dir->start, &hole) || f->first_frame >= hole)
            continue;
        /* else a lost packet and a connection set up before the capture look the same */
        g.needs = N_COMPLETE | N_TAP_REQ;
        g.frame = f->first_frame;
        g.cause = o->params.rep_frame;
        g.expected = say(j, "QP 0x%06x for PSN %u", o->dqpn, f->dir->start);
        g.seen = say(j, "QP 0x%06x", c->dqpn);
        g.text = "The connection skips this PSN, which a packet for another queue pair carries: it was meant for "
                 "the one that CM has named.";
        judge_found(j, NULL, g);
        return;
    }
}

void judge_wrong_qpns(struct judge *j)
{
    uint32_t n = conn_counts(j->conns).flows;

    for (uint32_t i = 0; i < n && j->o.complete && judge_wants(j, RULE_CM_07); i++) {
        const struct jflow *f = &j->flows[i];
        if (f->dir && f->dir->have_next && f->packets < 16 && conn_flow_at(j->conns, i)->peer == FLOW_NONE)
            check_wrong_qpn(j, i, f);
    }
}
