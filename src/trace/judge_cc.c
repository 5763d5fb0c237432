/* layer 3 (trace): the judge: rules about congestion: CNPs, marks, rates. */
#include "src/trace/judge_impl.h"

/* A CNP that is not what it should be. */
static void cnp_bad(struct judge *j, const struct pkt *p, uint32_t flow, const char *expected, const char *seen, const char *text)
{
    struct found f = found_of(RULE_CC_01, flow);

    f.expected = expected;
    f.seen = seen;
    f.text = text;
    judge_found(j, p, f);
}

void judge_cnp(struct judge *j, const struct pkt *p)
{
    uint32_t flow = conn_flow_find(j->conns, p), sum = 0;
    struct jflow *f = flow == FLOW_NONE ? NULL : &j->flows[flow];

    report_judged(j->report, RULE_CC_01);
    for (uint32_t i = 0; i < p->payload_cap; i++)
        sum |= p->data[p->payload_off + i];
    if (p->bth.psn || p->bth.se || sum || (p->bth.migreq && j->o.profile != PROFILE_NV))
        cnp_bad(j, p, flow, "PSN 0, no SE, no MigReq, 16 zero bytes",
            say(j, "PSN %u, SE %u, MigReq %u%s", p->bth.psn, p->bth.se, p->bth.migreq, sum ? ", other bytes" : ""), "A CNP is empty but for the queue pair it is for.");
    if (!f)
        return;
    if (f->pkey.have && !f->pkey.pending && ((f->pkey.value ^ p->bth.pkey) & 0x7fff))
        cnp_bad(j, p, flow, say(j, "P_Key 0x%04x", f->pkey.value), say(j, "0x%04x", p->bth.pkey), "A CNP carries the P_Key of the packet that was marked.");
    if (f->cnps && (!f->cnp_gap || p->frame->ts - f->cnp_ts < f->cnp_gap))
        f->cnp_gap = p->frame->ts - f->cnp_ts;
    if (f->cnps++ == 0)
        f->cnp_frame = frame_u32(p);
    f->cnp_ts = p->frame->ts;
}

/* --- At the end ----------------------------------------------------------------------------------------------------------------- */

void judge_congestion(struct judge *j, uint32_t flow)
{
    const struct jflow *f = &j->flows[flow];
    uint32_t peer = conn_flow_at(j->conns, flow)->peer;
    const struct jflow *g = peer == FLOW_NONE ? NULL : &j->flows[peer];

    if (f->ce && f->half && g && g->has_rsp && !g->cnps)
        judge_found(j, NULL,
                    (struct found){.rule = RULE_CC_03, .severity = SEV_W, .flow = flow, .frame = f->ce_frame, .expected = "CNPs",
                                   .seen = say(j, "%llu packets marked CE and no CNP", (unsigned long long)f->ce),
                                   .text = "Its receiver does not tell the sender of congestion."});
    if (f->cnps > 1)
        judge_note(j, RULE_CC_04, flow, f->cnp_frame, say(j, "%.3f us", (double)f->cnp_gap / 1e3), "The shortest time between two CNPs for this queue pair.");
    if (f->cnps && g && !g->ce)
        judge_note(j, RULE_CC_05, flow, f->cnp_frame, say(j, "%llu CNPs", (unsigned long long)f->cnps),
                   "No packet marked CE was seen: the mark was set behind the tap, or something else made its receiver send CNPs.");
}
