/* layer 3 (judge): the judge: rules about the responses of a connection. */
#include "src/judge/judge_impl.h"

static struct found about(const struct judged *a, enum rule rule)
{
    return (struct found){.rule = rule, .severity = rule_table[rule].severity, .flow = a->flow};
}

/* --- The transport's verdicts ----------------------------------------------------------------- */

/* Whether the READ that is answered may be the rest of one that was sent before the capture began. */
static bool may_be_rest(struct req_dir *h, const struct pkt *p)
{
    const struct read_req *first = req_dir_ask(h, p->bth.psn, 0);

    return first && psn_diff(first->psn, h->start) <= 0 && !h->from_start;
}

/* N_* that are given, or lacking, for rule `v->rule` in this case. */
static void weigh(const struct judged *a, struct verdict *v, unsigned *has, unsigned *lacks)
{
    struct req_dir *h = a->h;

    *has = *lacks = 0;
    switch (v->rule) {
    case RULE_NAK_02:
        *has = h->seq.have && h->seq.icrc != icrc_of(a->p) ? N_TAP_RSP : 0; /* no copy: it was sent twice */
        *lacks = !*has && h->copies * 4 >= h->packets ? N_TAP_RSP : 0;      /* where all is captured twice */
        break;
    case RULE_NAK_03:
        *lacks = h->vague ? N_COMPLETE : 0;
        break;
    case RULE_RDA_02: /* where READs and the path MTU were learnt from the capture, it may be the rest of one READ that
                         was asked for again */
        *lacks = may_be_rest(h, a->p) || (h->heard_pmtu && req_dir_ask(h, a->p->bth.psn, 1)) ? N_REQ : 0;
        break;
    case RULE_RDA_08:
    case RULE_RDA_12:
        v->needs |= N_RSP; /* and the response is no other queue pair's */
        *lacks = may_be_rest(h, a->p) ? N_REQ : 0;
        break;
    case RULE_RDA_03:
        *lacks = may_be_rest(h, a->p) ? N_REQ : 0;
        v->needs |= h->again ? N_COMPLETE : 0; /* it may answer a READ that was asked for again, unseen */
        break;
    case RULE_ACK_03:
        *lacks = h->vague || h->late || h->gaps ? N_COMPLETE : 0; /* what is missing may have taken another path */
        break;
    case RULE_RDA_05:
        *lacks = req_dir_sent(h, a->p->bth.psn) ? 0 : N_COMPLETE;
        break;
    case RULE_SVC_03:
        v->needs |=
            req_dir_sent(h, a->p->bth.psn) ? 0 : N_COMPLETE; /* or the queue pair is another connection's by now */
        break;
    case RULE_ACK_02:
        *lacks = h->again || h->copies || h->late ? N_TAP_RSP : 0; /* an acknowledgement of what was sent again */
        *lacks |= h->vague || h->gaps ? N_COMPLETE : 0;            /* or as for ACK-03 */
        break;
    default:
        break;
    }
}

static bool tap_at_responder(const struct judge *j, uint32_t flow, const struct pkt *p)
{
    return j->o.complete && (judge_have(j, flow, p) & (N_TAP_RSP | N_COMPLETE)) == (N_TAP_RSP | N_COMPLETE);
}

/* Everything is seen in the order in which the responder took and sent it, and no packet is missing that it may have
 * got. */
static bool at_responder(const struct judge *j, const struct judged *a)
{
    const struct req_dir *h = a->h;

    return !h->unsettled && h->copies * 4 < h->packets && tap_at_responder(j, a->flow, a->p);
}

static void check_transport(struct judge *j, const struct judged *a)
{
    struct verdict v[SHADOW_FOUND];
    unsigned n = shadow_check_response(a->f->shadow, a->p, at_responder(j, a), v), has, lacks;

    for (unsigned i = 0; i < n; i++) {
        if (!judge_explains((enum rule)v[i].rule) || (i && v[i].rule == v[i - 1].rule))
            continue;
        weigh(a, &v[i], &has, &lacks);
        judge_verdict(j, a, &v[i], has, lacks);
    }
}

/* --- What the transport does not judge -------------------------------------------------------- */

static void check_credits(struct judge *j, const struct judged *a)
{
    const struct conn_params *c = &conn_flow_at(j->conns, a->flow)->params;
    unsigned code = aeth_value(a->p->aeth.syndrome);
    struct found f = about(a, RULE_CM_11);

    if (LIKELY(code == AETH_CREDIT_INVALID || !c->no_credits))
        return;
    f.cause = c->rep_frame;
    f.expected = "credit code 31";
    f.seen = say(j, "%u", code);
    f.text = "This end announced no flow control, or a shared receive queue, and yet its ACK carries credits.";
    judge_found(j, a->p, f);
}

/* Whether a response answers the request of `psn`. */
static bool answers(const struct pkt *p, uint32_t psn)
{
    return p->op->flags & OPF_ACK && response_type(p) != AETH_ACK ? p->bth.psn == psn : psn_diff(p->bth.psn, psn) >= 0;
}

/* While a lost packet and what followed it are sent again: an ACK of what came only before that packet, which a
 * responder ignores, unless it puts packets in order itself, or got the lost one in another way. */
static void check_ignored(struct judge *j, const struct judged *a)
{
    const struct req_dir *h = a->h;
    struct found f = found_of(RULE_ACK_02, a->flow);

    if (LIKELY(!h->unsettled) || psn_diff(a->p->bth.psn, h->gbn) < 0 || h->vague || h->loose ||
        j->o.profile == PROFILE_NV || !tap_at_responder(j, a->flow, a->p))
        return;
    f.lacks = N_COMPLETE;
    f.expected = say(j, "PSN %u at most", psn_prev(h->gbn));
    f.seen = say(j, "%s of PSN %u", a->p->op->name, a->p->bth.psn);
    f.text = "By what has come in order a responder still expects an earlier packet, and ignores those ahead of it.";
    judge_found(j, a->p, f);
}

/* The first response since a request asked for one. Silence alone proves nothing: that the responder goes on, and
 * answers this one, does. */
static void check_wait(struct judge *j, const struct judged *a)
{
    const struct asked k = a->f->asked;
    const struct requester *r = &a->f->shadow->req.r;
    uint32_t peer = conn_flow_at(j->conns, a->flow)->peer;
    ns_t wait = ack_timeout(r->p.timeout), elapsed = a->p->frame->ts - k.ts;
    /* the requester, too, says that the time was over */
    ns_t slack = judge_slack(j, a->p) + (a->h->back_ts > k.ts ? 0 : CLOCK_SLACK);
    struct found f = about(a, RULE_ACK_04);

    a->f->asked.frame = 0;
    if (LIKELY(wait == NS_NEVER || elapsed <= wait + slack) || !answers(a->p, k.psn) || a->f->closed ||
        j->flows[peer].closed)
        return;
    f.has = N_CM; /* or the user told the timeout */
    f.lacks = a->h->unsettled || a->h->disorder || j->backwards || j->n_pauser ? N_COMPLETE : 0;
    f.frame = k.frame;
    f.cause = a->p->frame->number;
    f.expected = say(j, "an answer within %.6f ms", (double)wait / 1e6);
    f.seen = say(j, "silence for %.6f ms", (double)elapsed / 1e6);
    f.text = "The packet asks for an acknowledgement and is the one that its receiver expected. Nothing at all was "
             "answered on this connection for longer than its sender waits.";
    judge_found(j, a->p, f);
}

/* A sequence NAK for the PSN of a gap: nobody has captured it late, the requester passed it over. */
static void check_gap(struct judge *j, const struct judged *a)
{
    struct found f = about(a, (enum rule)a->f->gap.rule);

    if (LIKELY(!a->f->gap.have || a->f->gap.psn != a->p->bth.psn))
        return;
    f.frame = a->f->gap.frame;
    f.cause = a->p->frame->number;
    f.expected = say(j, "PSN %u", a->p->bth.psn);
    f.seen = say(j, "PSN %u", a->f->gap.other);
    f.text = "The requester passed over a PSN.";
    a->f->gap.have = false;
    judge_found(j, a->p, f);
}

/* Whether READ or atomic `k` is a valid request after the message that ends at `before` (NULL: not known). */
static bool is_valid_ask(const struct read_req *k, const struct sent *before)
{
    bool inside_message = before && !(opcode_table[before->opcode].flags & OPF_END);
    bool aligned = k->opcode == OP_READ_REQUEST || k->va % 8 == 0;

    return !inside_message && aligned && k->len <= UINT32_C(1) << 31 &&
           opcode_table[k->opcode].flags & (OPF_READ_REQ | OPF_ATOMIC_REQ);
}

/* A READ or atomic refused as invalid, though nothing is wrong with it and the depth agreed on was kept. An endpoint
 * knows whether it has a reason; what a capture does not show is whether the queue pair permits READs or atomics at
 * all, unless one has succeeded. */
static void check_refused_ask(struct judge *j, const struct judged *a)
{
    const struct conn_params *c = &conn_flow_at(j->conns, a->flow)->params;
    const struct sent *before = req_dir_sent(a->h, psn_prev(a->p->bth.psn));
    const struct read_req *k = req_dir_ask(a->h, a->p->bth.psn, 0);
    struct found f = about(a, RULE_RDA_07);
    bool depth_known = c->have_depth && c->depth < TRACK_ASKS, served = false;

    if (aeth_value(a->p->aeth.syndrome) != NAK_INVALID_REQUEST || !k || k->psn != a->p->bth.psn || !depth_known)
        return;
    if (req_dir_outstanding_at(a->h, k) > c->depth || !is_valid_ask(k, before))
        return;
    for (unsigned i = 0; i < TRACK_ASKS; i++)
        served |= a->h->asks[i].span && a->h->asks[i].answered &&
                  (a->h->asks[i].opcode == OP_READ_REQUEST) == (k->opcode == OP_READ_REQUEST);
    f.severity = served ? SEV_E : SEV_W;
    f.cause = k->frame;
    f.expected = say(j, "an answer: at most %u outstanding", c->depth);
    f.seen = "NAK, invalid request";
    f.text = served ? "REQ and REP agreed on as many READs and atomics, and others like this one were answered."
                    : "REQ and REP agreed on as many READs and atomics; either the queue pair does not permit them, or "
                      "the responder refuses what it promised.";
    judge_found(j, a->p, f);
}

static void note_refusal(struct judge *j, const struct judged *a)
{
    const struct sent *s = req_dir_sent(a->h, a->p->bth.psn);

    judge_note(j, RULE_NAK_05, a->flow, a->p->frame->number, nak_code_str(aeth_value(a->p->aeth.syndrome)),
               s ? say(j, "It refuses the %s in frame %u. The connection ends here.", opcode_name(s->opcode), s->last)
                 : "The request that it refuses was not captured. The connection ends here.");
}

static void note_rnr_nak(struct judge *j, const struct judged *a)
{
    const struct sent *s = req_dir_sent(a->h, a->p->bth.psn);
    uint32_t code = aeth_value(a->p->aeth.syndrome) + 1, flags = s ? opcode_table[s->opcode].flags : 0;

    if (a->f->rnr_code && a->f->rnr_code != code && !a->f->rnr_codes_differ) {
        a->f->rnr_codes_differ = true;
        judge_note(j, RULE_RTX_07, a->flow, a->p->frame->number,
                   say(j, "code %u after %u", code - 1, a->f->rnr_code - 1), "The responder's RNR timer has changed.");
    }
    a->f->rnr_code = code;
    if (s &&
        (flags & (OPF_READ_REQ | OPF_ATOMIC_REQ) || (flags & OPF_WRITE && !(opcode_table[s->opcode].ext & H_IMMDT))))
        judge_note(j, RULE_RTX_06, a->flow, a->p->frame->number, opcode_name(s->opcode),
                   "This request takes no receive: its memory was not ready (a page fault at the responder).");
}

static void check_refusal(struct judge *j, const struct judged *a)
{
    note_refusal(j, a);
    check_refused_ask(j, a);
}

static void check_acknowledge(struct judge *j, const struct judged *a)
{
    switch (response_type(a->p)) {
    case AETH_ACK:
        check_credits(j, a);
        check_ignored(j, a);
        break;
    case AETH_RNR:
        note_rnr_nak(j, a);
        break;
    case AETH_NAK:
        if (aeth_value(a->p->aeth.syndrome) == NAK_PSN_SEQ)
            check_gap(j, a);
        else
            check_refusal(j, a);
        break;
    default:
        break;
    }
}

/* --- All of it -------------------------------------------------------------------------------- */

/* Whether the response is identical to the one before it: captured twice, or duplicated by the network. */
static bool is_twin(const struct judged *a)
{
    const struct pkt *p = a->p;
    const struct twin now = {true, p->bth.opcode, frame_ip_id(p), p->bth.psn, icrc_of(p), p->frame->ts},
                      *t = &a->f->rsp;
    bool same = t->have && t->psn == now.psn && t->icrc == now.icrc && t->opcode == now.opcode &&
                t->ip_id == now.ip_id && (now.ip_id || now.ts - t->ts < TWIN_WITHIN);

    a->f->rsp = now;
    return same;
}

/* A response to what was not sent yet: its request may have been recorded late. */
static void early_begins(const struct judged *a)
{
    struct jflow *f = a->f;

    if (f->early.have)
        return;
    f->early = (struct pending_fail){.have = true,
                                     .psn = a->p->bth.psn,
                                     .frame = frame_u32(a->p),
                                     .conn_packets = (uint32_t)f->packets,
                                     .rule = a->p->op->flags & OPF_ACK ? RULE_ACK_02 : RULE_RDA_05,
                                     .opcode = a->p->bth.opcode,
                                     .other = psn_prev(a->h->next),
                                     .ts = a->p->frame->ts};
}

void judge_response(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct judged a = {.p = p};
    struct event e;
    bool early, twin, unsettled;

    if (UNLIKELY(!j->flows[flow].has_rsp))
        j->flows[flow].rsp_frame = frame_u32(p);
    j->flows[flow].has_rsp = true;
    observer_response(j->observer, p, flow, &e);
    if (e.flow == FLOW_NONE)
        return;
    a.flow = e.flow;
    a.f = &j->flows[a.flow];
    a.h = a.f->dir;
    if (!a.h || !a.h->have_next)
        return;
    if (UNLIKELY(p->have & H_AETH && p->aeth.msn > a.h->msgs))
        a.h->began = BEGAN_BEFORE;
    if (UNLIKELY(a.f->shadow->req.u.pmtu_unknown && a.h->pmtu))
        shadow_learn_pmtu(a.f->shadow, a.h->pmtu);
    twin = is_twin(&a);
    if (UNLIKELY(a.f->asked.frame))
        check_wait(j, &a);
    early = psn_diff(p->bth.psn, a.h->next) >= 0 && !(p->op->flags & OPF_ACK && response_type(p) != AETH_ACK);
    if (UNLIKELY(early && a.h->service != SVC_UC)) {
        early_begins(&a);
        /* it may answer the READ whose PSNs are not known yet, behind a response that is still to come */
        a.h->disorder |= a.h->loose;
    } else if (UNLIKELY(psn_diff(response_proves(p), a.f->shadow->start) < 0 && a.h->service != SVC_UC &&
                        !req_dir_sent(a.h, p->bth.psn))) {
        a.h->began = BEGAN_BEFORE;
        return; /* it answers what was sent before the capture began */
    } else if (LIKELY(!twin) || a.h->service == SVC_UC) {
        check_transport(j, &a);
    }
    if (p->op->flags & OPF_ACK && p->have & H_AETH && !early)
        check_acknowledge(j, &a);
    if (LIKELY(!early && !twin))
        past_response(j, &a);
    unsettled = a.h->unsettled;
    observer_take(j->observer, &e);
    if (LIKELY(!early && !twin)) {
        a.f->shadow->req.u.slack = judge_slack(j, p);
        shadow_response(a.f->shadow, p);
    }
    if (UNLIKELY(unsettled && !a.h->unsettled))
        shadow_settle(a.f->shadow);
}

/* --- What a packet recorded late would refute ------------------------------------------------- */

/* Whether enough packets have passed since: a packet captured out of order would have refuted the failure by now. */
static bool has_waited(const struct jflow *f, const struct pending_fail *w, bool now)
{
    return now || (uint32_t)f->packets - w->conn_packets > PENDING_PACKETS;
}

static void gap_report(struct judge *j, const struct pkt *p, uint32_t flow, struct pending_fail *w)
{
    struct found f = found_of((enum rule)w->rule, flow);

    w->have = false;
    f.frame = w->frame;
    f.expected = say(j, "PSN %u", w->psn);
    f.seen = say(j, "PSN %u", w->other);
    f.text = "The requester passed over a PSN.";
    judge_found(j, p, f);
}

/* A response that was captured before its request. At the responder's tap an ACK for a PSN that had not arrived breaks
 * ACK-02; at other taps it breaks ACK-03. */
static struct found early_found(struct judge *j, const struct pkt *p, uint32_t flow, const struct pending_fail *w)
{
    struct found f =
        found_of(w->rule == RULE_ACK_02 && !tap_at_responder(j, flow, p) ? RULE_ACK_03 : (enum rule)w->rule, flow);

    f.frame = w->frame;
    f.needs = N_START; /* else its request may be from before the capture, and only the rest is retransmitted */
    f.expected = say(j, "PSN %u at most", w->other);
    f.seen = say(j, "%s of PSN %u", opcode_table[w->opcode].name, w->psn);
    return f;
}

static void early_report(struct judge *j, const struct pkt *p, uint32_t flow, struct pending_fail *w)
{
    struct found f = early_found(j, p, flow, w);

    w->have = false;
    if (!has_waited(&j->flows[flow], w, false) &&
        j->last_ts[conn_flow_at(j->conns, flow)->tap % JUDGE_TAPS] - w->ts < CLOCK_SLACK)
        f.lacks = N_COMPLETE; /* its request may be captured after the end of the file */
    f.text = "No such request was seen.";
    judge_found(j, p, f);
}

/* Request `p`, or a later one, was captured after its ACK. Sent and received packets have time stamps and queues of
 * their own, so two packets close together may have changed places in the capture. */
static void early_arrives(struct judge *j, const struct pkt *p, uint32_t flow, struct pending_fail *w)
{
    struct found f = early_found(j, p, flow, w);
    struct req_dir *h = j->flows[flow].dir;
    ns_t later = p->frame->ts - w->ts;

    w->have = false;
    if (w->rule == RULE_RDA_05 || later <= 0)
        return;
    f.cause = frame_u32(p);
    f.needs |= N_CLOCK;
    f.lacks = later <= CLOCK_SLACK + judge_step(j, p) || j->backwards || h->copies || h->loose ? N_CLOCK : 0;
    /* another request came: this one may have taken another path */
    f.lacks |= req_dir_sent(h, w->psn) || req_dir_ask(h, w->psn, 0) ? 0 : N_COMPLETE;
    f.text = f.rule == RULE_ACK_02 ? "What it acknowledges had not arrived then."
                                   : "What it acknowledges was sent only later.";
    judge_found(j, p, f);
}

static void pending_look(struct judge *j, const struct pkt *p, uint32_t flow, bool now)
{
    struct jflow *f = &j->flows[flow];

    if (!f->dir)
        return;
    if (f->gap.have && req_dir_sent(f->dir, f->gap.psn))
        f->gap.have = false;
    if (f->gap.have && has_waited(f, &f->gap, now))
        gap_report(j, p, flow, &f->gap);
    if (f->early.have && psn_diff(f->early.psn, f->dir->next) < 0) {
        if (p)
            early_arrives(j, p, flow, &f->early);
        f->early.have = false;
    }
    if (f->early.have && has_waited(f, &f->early, now))
        early_report(j, p, flow, &f->early);
}

void judge_pending(struct judge *j, const struct pkt *p, uint32_t flow, bool now)
{
    pending_look(j, p, flow, now);
}

/* --- Notes at the end ------------------------------------------------------------------------- */

static void note_requests(struct judge *j, uint32_t flow, const struct jflow *f)
{
    const struct req_dir *h = f->dir;

    if (f->spurious)
        judge_note(j, RULE_RTX_14, flow, f->spurious_frame, count_str(f->spurious, "packet"),
                   "They were sent again although an answer to them had passed the tap: it was lost, or came late.");
    if (f->nak_reaction)
        judge_note(j, RULE_RTX_12, flow, h->seq.frame, say(j, "%.3f us", (double)f->nak_reaction / 1e3), "");
    if (h->service == SVC_RC && f->ackreq_run_max > 1)
        judge_note(j, RULE_SEQ_09, flow, 0, count_str(f->ackreq_run_max, "packet"), "");
    if (h->acks)
        judge_note(j, RULE_ACK_10, flow, 0, say(j, "%.1f packets", (double)h->packets / (double)h->acks), "");
    if (f->mid_stream)
        judge_note(j, RULE_CAP_04, flow, h->first_frame, say(j, "PSN %u", h->start),
                   "How this queue pair began was not captured: its state is learnt as far as packets show it.");
}

void judge_flow_end(struct judge *j, uint32_t flow)
{
    const struct jflow *f = &j->flows[flow];
    uint32_t peer = conn_flow_at(j->conns, flow)->peer;

    judge_congestion(j, flow);
    judge_flow_silent(j, flow);
    if (!f->dir)
        return;
    note_requests(j, flow, f);
    past_end(j, flow);
    if (f->dir->service == SVC_RC && (peer == FLOW_NONE || !j->flows[peer].packets))
        judge_note_as(j, RULE_CAP_02, flow, f->first_frame, "only {seen} was captured", "one direction",
                      "No packet of the other direction was seen.");
    if (f->dir->copies)
        judge_note_as(j, RULE_CAP_02, flow, 0, "{seen} captured twice", count_str(f->dir->copies, "packet"),
                      "They are there twice, to the last bit: captured, or duplicated on their way.");
}
