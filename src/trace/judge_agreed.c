/* layer 3 (trace): the judge: packets of a connection against what its CM messages agreed on. */
#include "src/trace/judge_impl.h"

static void check_first_psn(struct judge *j, const struct pkt *p, uint32_t flow, struct jflow *f)
{
    const struct flow *c = conn_flow_at(j->conns, flow);
    int32_t d = psn_diff(p->bth.psn, c->psn);
    struct found g = found_of(RULE_CM_06, flow);

    f->psn_checked = true;
    if (!c->have_psn || c->paired_by != PAIR_CM || d == 0)
        return;
    g.needs = d > 0 ? N_TAP_REQ : 0; /* the first packets may have been lost before the tap */
    g.cause = c->params.rep_frame;
    g.expected = say(j, "PSN %u", c->psn);
    g.seen = say(j, "PSN %u", p->bth.psn);
    g.text = "The starting PSN of a REQ or REP is the one from which its receiver sends. The peer expects that PSN and refuses this packet.";
    judge_found(j, p, g);
}

void judge_agreed(struct judge *j, const struct pkt *p, uint32_t flow, enum seen_as as)
{
    struct jflow *f = &j->flows[flow];
    const struct flow *c = conn_flow_at(j->conns, flow);
    struct found g = found_of(RULE_CM_08, flow);

    if (UNLIKELY(!f->psn_checked))
        check_first_psn(j, p, flow, f);
    if (UNLIKELY(c->paired_by == PAIR_CM && c->pmtu && p->payload_len > c->pmtu)) {
        g.cause = c->params.req_frame;
        g.expected = say(j, "at most %u bytes", c->pmtu);
        g.seen = say(j, "%u", p->payload_len);
        g.text = "The packet is longer than the path MTU that the REQ states.";
        judge_found(j, p, g);
    }
    if (UNLIKELY(f->closed && (as == SEEN_NEW || as == SEEN_GAP))) {
        g = found_of(RULE_CM_13, flow);
        g.needs = N_TAP_REQ; /* else it may have been overtaken */
        g.cause = f->closed_frame;
        g.expected = "silence";
        g.seen = p->op->name;
        g.text = "Its sender has said that the connection is over.";
        judge_found(j, p, g);
    }
}
