/* layer 3 (judge): failures that a packet captured out of order would refute. Skipped PSNs, or a response before its
 * request, are a failure only if packets were captured in the order in which they were on the wire. So a flow keeps
 * the first failure of each kind, and reports it after PENDING_PACKETS more packets, when another packet proves it,
 * or at the end. */
#include <stdio.h>

#include "src/judge/judge_impl.h"
#include "src/transport/transport_impl.h"

/* --- New failures ----------------------------------------------------------------------------- */

/* A request after skipped PSNs: the requests between may be captured out of order. */
void pending_gap(struct judge *j, const struct judged *a)
{
    const struct req_dir *h = a->h;
    struct jflow *f = a->f;
    /* a READ or atomic of before the capture, sent again alone: what follows it was acknowledged before */
    bool may_be_again = f->mid_stream && !f->history->msn.advanced && req_dir_read(a->h, psn_prev(h->next), 0);

    (void)j;
    if (f->has_gap && (!f->gap.told || f->gap.ack_frame))
        return;
    f->has_gap = true;
    f->gap = (struct pending_fail){.psn = h->next,
                                   .frame = frame_u32(a->p),
                                   .conn_packets = (uint32_t)f->packets,
                                   .rule = h->service == SVC_UC ? RULE_SVC_06 : RULE_SEQ_01,
                                   .needs_start = may_be_again && h->service != SVC_UC,
                                   .other = a->p->bth.psn};
}

/* The rule that a response breaks whose request was not sent. */
enum rule pending_rule(const struct pkt *p)
{
    if (!(p->op->flags & OPF_ACK))
        return RULE_RDA_05;
    if (response_type(p) == AETH_ACK)
        return RULE_ACK_02;
    return response_type(p) == AETH_NAK && aeth_value(p->aeth.syndrome) == NAK_PSN_SEQ ? RULE_NAK_01 : RULE_NAK_09;
}

/* A response before its request: the request may be captured out of order. */
void pending_early(struct judge *j, const struct judged *a)
{
    struct jflow *f = a->f;

    (void)j;
    f->unproved_rsp++; /* it fits no request: it does not prove whose responses these are */
    f->unfit_rsp++;
    /* it may be a response to a READ with an unknown number of PSNs, reordered with earlier responses */
    a->h->disorder |= a->h->loose;
    if (f->has_early)
        return;
    f->has_early = true;
    f->early = (struct pending_fail){.psn = a->p->bth.psn,
                                     .frame = frame_u32(a->p),
                                     .conn_packets = (uint32_t)f->packets,
                                     .rule = pending_rule(a->p),
                                     .calm = f->calm >= CALM_RESPONSES && !a->h->gaps && !a->h->late,
                                     .again = a->h->again,
                                     .what = response_name(a->p),
                                     .other = psn_prev(a->h->next),
                                     .ts = a->p->frame->ts};
}

/* During go-back-N recovery: an ACK that covers packets which the responder must have dropped, as they were sent
 * after the lost one. It is permitted only for a responder that reorders, or that received the lost packet unseen by
 * the tap. */
bool pending_gbn_ack(struct judge *j, const struct judged *a, struct found *f)
{
    const struct req_dir *h = a->h;

    if (psn_diff(a->p->bth.psn, h->gbn) < 0 || h->vague || h->loose || j->o.profile == PROFILE_NV ||
        !judge_tap_at_responder(j, a->flow, a->p))
        return false;
    *f = found_of(RULE_ACK_02, a->flow);
    f->lacks = N_COMPLETE;
    f->expected = say(j, "PSN %u at most", psn_prev(h->gbn));
    f->seen = say(j, "%s of PSN %u", a->p->op->name, a->p->bth.psn);
    f->text = "By what has come in order a responder still expects an earlier packet, and ignores those ahead of it.";
    return true;
}

void pending_gap_acked(struct judge *j, const struct judged *a)
{
    struct pending_fail *w = &a->f->gap;
    struct req_dir *h = a->h;
    enum rule rule = pending_rule(a->p);
    bool covered = !w->ack_frame && psn_diff(a->p->bth.psn, w->psn) >= 0, unsure = h->loose || h->vague;
    bool complete = judge_have(j, a->flow, a->p) & N_COMPLETE;

    if (rule == RULE_NAK_01)
        return; /* that of the skipped PSN asks for it, and the replica of the responder knows which one is wrong */
    if (!covered || !complete || unsure || judge_is_unreadable_near(j, frame_u32(a->p)) || req_dir_sent(h, w->psn))
        return;
    w->ack_frame = frame_u32(a->p);
    w->ack_psn = a->p->bth.psn;
    w->ack_rule = (uint8_t)rule;
    w->what = response_name(a->p);
    w->ts = a->p->frame->ts;
}

/* True if the same was reported already: a requester that sends ahead of its credits goes on in the same state until
 * it gets others. */
static bool is_told(const struct crossing *t, const struct found *f, uint32_t permitted)
{
    return t->told && rule_table[f->rule].traits & T_CREDITS && t->rule == f->rule && t->permitted == permitted &&
           t->severity <= f->severity;
}

/* The number that a later response has to permit. A packet inside a message needs the credit of the next one. */
static uint32_t crossing_number(const struct pkt *p, const struct verdict *v)
{
    return (uint32_t)v->seen + (p->op->flags & OPF_SEND && !(p->op->flags & OPF_START));
}

/* Whether the failure is that of another request without the credit that the one at hand lacks. */
static bool lacks_the_same_credit(const struct judged *a, const struct found *f, const struct verdict *v)
{
    const struct crossing *t = &a->f->history->crossing;

    return a->f->crossing && rule_table[f->rule].traits & T_CREDITS && t->rule == f->rule &&
           t->permitted == (uint32_t)v->expected && t->severity <= f->severity;
}

/* Whether the credit that the latest request at hand lacks is further on than the one that this request lacks: what
 * permits that one permits this one, too. A mere warning does not stand for an error of the same rule. */
static bool is_covered(const struct judged *a, const struct found *f, const struct verdict *v)
{
    const struct crossing *t = &a->f->history->crossing;

    return a->f->crossing && (t->last.frame ? t->last.number : t->number) >= v->seen &&
           (t->rule != f->rule || t->severity <= f->severity);
}

/* Until when a packet of the other direction may refute a failure that packet `p` shows. */
static ns_t crosses_until(const struct judge *j, const struct pkt *p)
{
    return p->frame->ts + CROSSES_WITHIN + judge_step(j, p);
}

static void add_to_crossing(const struct judge *j, struct crossing *t, const struct pkt *p, const struct verdict *v)
{
    t->last.frame = frame_u32(p);
    t->last.psn = p->bth.psn;
    t->last.number = crossing_number(p, v);
    t->last.seen = (uint32_t)v->seen;
    t->last.until = crosses_until(j, p);
}

void pending_crossing(struct judge *j, const struct judged *a, const struct found *f, const struct verdict *v)
{
    struct crossing *t = &a->f->history->crossing;

    if (is_covered(a, f, v) || is_told(t, f, (uint32_t)v->expected))
        return;
    if (lacks_the_same_credit(a, f, v)) {
        judge_is_broken(j, a->p);
        add_to_crossing(j, t, a->p, v);
        return;
    }
    a->f->crossing = true;
    judge_is_broken(j, a->p);
    *t = (struct crossing){.rule = (uint8_t)f->rule,
                           .severity = (uint8_t)f->severity,
                           .of_response = a->p->op->flags & OPF_RESPONSE,
                           .frame = frame_u32(a->p),
                           .cause = (uint32_t)f->cause,
                           .needs = f->needs,
                           .has = f->has,
                           .lacks = f->lacks,
                           .psn = a->p->bth.psn,
                           .permitted = (uint32_t)v->expected,
                           .number = crossing_number(a->p, v),
                           .ts = a->p->frame->ts,
                           .until = crosses_until(j, a->p)};
    snprintf(t->expected, sizeof t->expected, "%s", f->expected);
    snprintf(t->seen, sizeof t->seen, "%s", f->seen);
}

/* --- Failures proved or refuted --------------------------------------------------------------- */

/* A sequence NAK for the skipped PSN: its packet is not merely captured out of order. */
bool pending_nak(struct judge *j, const struct judged *a, struct found *f)
{
    if (LIKELY(!a->f->has_gap || a->f->gap.told || a->f->gap.psn != a->p->bth.psn))
        return false;
    *f = found_of((enum rule)a->f->gap.rule, a->flow);
    f->frame = a->f->gap.frame;
    f->needs = a->f->gap.needs_start ? N_START : 0;
    f->cause = a->p->frame->number;
    f->expected = say(j, "PSN %u", a->p->bth.psn);
    f->seen = say(j, "PSN %u", a->f->gap.other);
    f->text = "The requester skipped a PSN.";
    a->f->gap.told = true; /* that it is acknowledged all the same is another matter */
    return true;
}

/* The responder acknowledges the request whose PSN is far from those before. */
bool pending_leap(struct judge *j, const struct judged *a, struct found *f)
{
    const struct leap k = a->f->leap;

    if (a->p->bth.psn != k.psn)
        return false;
    a->f->leap.frame = 0;
    *f = found_of(RULE_SEQ_01, a->flow);
    f->frame = k.frame;
    f->cause = k.cause;
    f->expected = say(j, "PSN %u", k.next);
    f->seen = say(j, "PSN %u", k.psn);
    f->text = "The requester skipped a PSN, and the responder took the request nevertheless.";
    return true;
}

/* True if so many packets followed that a packet captured out of order would have refuted the failure. */
static bool has_waited(const struct jflow *f, const struct pending_fail *w, bool now)
{
    return now || (uint32_t)f->packets - w->conn_packets > PENDING_PACKETS;
}

/* True if a request may still follow `p` that was sent before response `w`: the clocks of the directions may differ. */
static bool may_cross(const struct judge *j, const struct pkt *p, const struct pending_fail *w)
{
    ns_t since = p->frame->ts - w->ts;

    return p->frame->has_ts && since >= 0 && since <= CROSSES_WITHIN + judge_step(j, p);
}

/* True if no later packet shows that the capture went on behind the response: its request may come after the end. */
static bool ends_behind(const struct judge *j, uint32_t flow, const struct pending_fail *w)
{
    return !has_waited(&j->flows[flow], w, false) && !stamps_go_on(&j->stamps, j->flow[flow].tap, w->ts, CLOCK_SLACK);
}

/* The failures that are reported at once: the functions below write them to `out`, and return their number. */
#define FAILURES 2

/* An ACK covers the skipped PSN, or an RNR NAK or a fatal NAK refuses it or a later one. Its packet has never come,
 * though the capture lacks nothing. */
static struct found gap_acked(struct judge *j, uint32_t flow, const struct pending_fail *w)
{
    bool ack = w->ack_rule == RULE_ACK_02, at_responder = judge_tap_at_responder(j, flow, NULL);
    struct found f = found_of(ack && !at_responder ? RULE_ACK_03 : (enum rule)w->ack_rule, flow);

    f.frame = w->ack_frame;
    f.cause = w->frame;
    f.needs = N_START; /* else the PSN may have been sent, and arrived, before the capture */
    f.lacks = ends_behind(j, flow, w) ? N_COMPLETE : 0;
    f.expected = say(j, "PSN %u at most", psn_prev(w->psn));
    f.seen = say(j, "%s of PSN %u", w->what, w->ack_psn);
    f.text = say(j, "PSN %u has not arrived, neither before the %s nor behind it.", w->psn, ack ? "ACK" : "NAK");
    return f;
}

/* The skipped PSN comes late, as packet `p`: behind a response that covers it, which is wrong unless the clocks are. */
static unsigned gap_closes(struct judge *j, const struct pkt *p, uint32_t flow, const struct pending_fail *w,
                           struct found out[FAILURES])
{
    const struct req_dir *h = j->flows[flow].dir;
    ns_t later;

    j->flows[flow].has_gap = false;
    if (!w->ack_frame || !p)
        return 0;
    later = p->frame->ts - w->ts;
    if (later <= CROSSES_WITHIN + judge_step(j, p))
        return 0;
    out[0] = gap_acked(j, flow, w);
    out[0].needs |= N_CLOCK;
    out[0].lacks = later <= CLOCK_SLACK + judge_step(j, p) || j->backwards || h->copies || h->loose ? N_CLOCK : 0;
    out[0].text = say(j, "PSN %u arrived only %.3f ms later.", w->psn, (double)later / 1e6);
    return 1;
}

/* The skipped PSNs have not come. */
static unsigned gap_is_real(struct judge *j, uint32_t flow, struct pending_fail *w, struct found out[FAILURES])
{
    struct found f = found_of((enum rule)w->rule, flow);
    unsigned n = 0;

    j->flows[flow].has_gap = false;
    if (w->ack_frame)
        out[n++] = gap_acked(j, flow, w);
    if (w->told)
        return n;
    f.frame = w->frame;
    f.needs = w->needs_start ? N_START : 0;
    f.expected = say(j, "PSN %u", w->psn);
    f.seen = say(j, "PSN %u", w->other);
    f.text = "The requester skipped a PSN.";
    out[n++] = f;
    return n;
}

/* A response that was captured before its request. At the responder's tap an ACK for a PSN that had not arrived breaks
 * ACK-02; at other taps it breaks ACK-03. */
static struct found early_found(struct judge *j, const struct pkt *p, uint32_t flow, const struct pending_fail *w)
{
    struct found f = found_of(
        w->rule == RULE_ACK_02 && !judge_tap_at_responder(j, flow, p) ? RULE_ACK_03 : (enum rule)w->rule, flow);

    f.frame = w->frame;
    f.needs = N_START; /* else it may answer a request from before the capture */
    if (w->rule == RULE_NAK_01)
        f.has = N_TAP_RSP; /* at any tap: a responder cannot expect a PSN after one that was not sent */
    f.expected = say(j, "PSN %u at most", w->other);
    f.seen = say(j, "%s of PSN %u", w->what, w->psn);
    return f;
}

#define PAUSE 8 /* times the time between the two requests before */

/* True if the first request since the response may be retransmitted for an ACK timeout: the copy before was missed. `p`
 * NULL: the capture has ended. Where the timeout is not known, that takes a pause. */
static bool may_be_again(const struct judge *j, const struct pkt *p, uint32_t flow, const struct pending_fail *w)
{
    struct req_dir *h = j->flows[flow].dir;
    const struct sent *before = req_dir_sent(h, psn_prev(w->other)), *last = req_dir_sent(h, w->other),
                      *next = req_dir_sent(h, psn_add(w->other, 1));
    ns_t took = (next ? next->ts_first : h->last_ts) - (last ? last->ts : w->ts);

    if (judge_has_timeout(j, flow))
        return judge_timed_out(j, flow, took, p);
    return !last || !before || took > PAUSE * (last->ts_first - before->ts_first) + CROSSES_WITHIN;
}

/* True if responses before had acknowledged all that had been seen, and new requests since then have lower PSNs than
 * the response, and none was retransmitted: no request was missed, the clocks of the two directions agree, and they
 * belong together. The latest of them must be captured so late that it was not sent before the response. */
static bool goes_on(const struct judge *j, const struct pkt *p, uint32_t flow, const struct pending_fail *w)
{
    const struct req_dir *h = j->flows[flow].dir;

    bool new_requests = h->next != psn_add(w->other, 1), ahead = psn_diff(w->psn, w->other) > 1;
    bool all_seen = !h->gaps && !h->late && !h->loose && !h->vague && !j->backwards;
    bool went_back = h->again != w->again; /* what seems new may be sent again as well: its first copy was missed */
    bool soon = h->last_ts - w->ts <= (p ? judge_slack(j, p) : CROSSES_WITHIN);

    return w->calm && j->flow[flow].paired_by != PAIR_PSN && new_requests && ahead && all_seen && !went_back && !soon &&
           !may_be_again(j, p, flow, w);
}

/* The request of the response has not come. */
static unsigned early_is_real(struct judge *j, const struct pkt *p, uint32_t flow, struct pending_fail *w,
                              struct found out[FAILURES])
{
    struct found f = early_found(j, p, flow, w);

    j->flows[flow].has_early = false;
    if (goes_on(j, p, flow, w))
        f.has |= N_COMPLETE | N_START;
    f.lacks = ends_behind(j, flow, w) ? N_COMPLETE : 0;
    f.text = "No such request was seen.";
    out[0] = f;
    return 1;
}

/* The PSN of a READ response or ATOMIC ACK was used since: if by a SEND or WRITE, there never was a READ or atomic. */
static unsigned no_read_was_sent(struct judge *j, const struct pkt *p, uint32_t flow, const struct pending_fail *w,
                                 struct found out[FAILURES])
{
    const struct sent *s = req_dir_data(j->flows[flow].dir, w->psn);
    struct found f = early_found(j, p, flow, w);

    if (!s)
        return 0;
    f.has = N_COMPLETE | N_START;
    f.cause = s->first;
    f.text = say(j, "The PSN is that of a later %s, which asks for no data.", opcode_name(s->opcode));
    out[0] = f;
    return 1;
}

/* The first frame of the request that has a PSN; 0: none is known. */
static uint32_t request_frame(struct req_dir *h, uint32_t psn)
{
    const struct read_req *k = req_dir_read(h, psn, 0);
    const struct sent *s = k ? NULL : req_dir_sent(h, psn);

    return k ? k->frame : s ? s->first : 0;
}

/* The acknowledged request, or a later one, was captured after its ACK: as packet `p`. Sent and received packets go
 * through different queues and are stamped separately, so two packets close together may be captured in the wrong
 * order. That a request follows the sequence NAK that asks for it says nothing of the clocks. */
static unsigned early_arrives(struct judge *j, const struct pkt *p, uint32_t flow, struct pending_fail *w,
                              struct found out[FAILURES])
{
    struct found f = early_found(j, p, flow, w);
    struct req_dir *h = j->flows[flow].dir;
    ns_t later = p->frame->ts - w->ts;

    j->flows[flow].has_early = false;
    if ((w->rule != RULE_RDA_05 || req_dir_read(h, w->psn, 0)) && later <= CROSSES_WITHIN + judge_step(j, p)) {
        j->skewed[tap_slot(j->flow[flow].tap)] = true;
        j->skewed_before[tap_slot(j->flow[flow].tap)] |= w->rule != RULE_NAK_01 && request_frame(h, w->psn) > w->frame;
    }
    if (w->rule == RULE_RDA_05)
        return no_read_was_sent(j, p, flow, w, out);
    if (later <= 0)
        return 0;
    f.cause = frame_u32(p);
    f.has |= goes_on(j, p, flow, w) ? N_COMPLETE | N_START : 0;
    f.needs |= N_CLOCK;
    f.lacks = later <= CLOCK_SLACK + judge_step(j, p) || j->backwards || h->copies || h->loose ? N_CLOCK : 0;
    /* `p` is a later request: the acknowledged one may have taken another path */
    f.lacks |= req_dir_sent(h, w->psn) || req_dir_read(h, w->psn, 0) ? 0 : N_COMPLETE;
    f.text = f.rule == RULE_ACK_02 ? "What it acknowledges had not arrived then."
                                   : "What it acknowledges was sent only later.";
    out[0] = f;
    return 1;
}

/* Number of outstanding READs and atomics up to PSN `psn`. */
static uint32_t unanswered_to(const struct shadow_req *q, uint32_t psn)
{
    uint32_t n = 0;

    for (uint32_t i = q->r.msg_tail; i != q->r.msg_head; i--) {
        const struct req_msg *m = req_msg(&q->r, i - 1);
        if (psn_diff(psn_add(m->psn, m->span), q->u.answered) <= 0)
            break;
        n += psn_diff(m->psn, psn) <= 0 && req_takes_depth(m);
    }
    return n;
}

/* True if since then a NAK, or a response after the first one of the READ or atomic, has demanded the retransmission.
 * RTX-11, a go-back-N that began after the first missing PSN: true if the missing packets were acknowledged meanwhile.
 */
static bool is_demanded_now(const struct crossing *t, const struct jflow *f)
{
    struct req_dir *h = f->dir;
    const struct read_req *k = req_dir_read(h, t->psn, 0);
    bool naked = (h->seq.have && h->seq.ts >= t->ts && psn_diff(h->seq.psn, t->psn) <= 0) ||
                 (h->rnr.have && h->rnr.ts >= t->ts && psn_diff(h->rnr.psn, t->psn) <= 0);

    if (t->rule == RULE_RTX_11)
        return psn_diff(t->psn, f->shadow->req.r.una_hi) <= 0;
    return naked || (k && h->rsp_ts >= t->ts && (k->early || psn_diff(h->proves, psn_add(t->psn, 1)) > 0));
}

/* True if the request rejected by the latest RNR NAK was retransmitted, and captured just after the response that
 * completes it. */
static bool has_come_again(const struct crossing *t, struct jflow *f)
{
    const struct sent *s = req_dir_sent(f->dir, f->dir->rnr.psn);

    return s && s->ts >= t->ts && s->ts <= t->until;
}

/* True if packets of the other direction, captured since then, would have permitted the request or response. */
static bool is_permitted_now(const struct crossing *t, struct jflow *f)
{
    const struct shadow_req *q = &f->shadow->req;

    if (t->of_response)
        return has_come_again(t, f);
    if (rule_table[t->rule].traits & T_AGAIN)
        return is_demanded_now(t, f);
    if (rule_table[t->rule].traits & T_CREDITS)
        return q->r.unlimited || psn_diff(t->number, q->r.limit) <= 1;
    return unanswered_to(q, t->psn) <= q->r.p.max_rd;
}

/* A response permits the first of several requests: what is left is the latest one. */
static void go_on_to_last(struct crossing *t)
{
    t->frame = t->last.frame;
    t->psn = t->last.psn;
    t->number = t->last.number;
    t->until = t->last.until;
    snprintf(t->seen, sizeof t->seen, "SSN %u", t->last.seen);
    t->last.frame = 0;
}

void pending_crossed(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct jflow *f = &j->flows[flow];
    struct crossing *t = &f->history->crossing;
    bool near = p && p->frame->ts <= t->until, permitted;
    struct found g = found_of((enum rule)t->rule, flow);

    if (near && p->op->flags & OPF_REQUEST)
        return;
    permitted = (near || t->of_response) && is_permitted_now(t, f);
    if (permitted && t->last.frame) {
        go_on_to_last(t);
        permitted = is_permitted_now(t, f);
    }
    f->crossing = near && !permitted;
    if (near || permitted)
        return;
    t->told = true;
    g.severity = (enum severity)t->severity;
    g.frame = t->frame;
    g.cause = t->cause;
    g.needs = t->needs;
    g.has = t->has;
    g.lacks = t->lacks;
    g.expected = t->expected;
    g.seen = t->seen;
    g.text = rule_table[g.rule].reason.text;
    judge_found(j, NULL, g);
}

/* Whether several responses were captured before the first request of PSN `psn`, and all may answer what follows it:
 * not a lost request, but the clocks. */
static bool precede_requests(const struct jflow *f, uint32_t psn)
{
    return psn_diff(f->unsolicited.psn, psn) >= 0 && psn_diff(f->unsolicited_psn, f->unsolicited.psn) > 0;
}

void pending_first_request(struct judge *j, const struct pkt *p, uint32_t flow)
{
    const struct flow *c = &j->flow[flow];
    const struct unsolicited *u = c->peer == FLOW_NONE ? NULL : &j->flows[c->peer].unsolicited;
    struct found f;
    ns_t later;

    if (LIKELY(!u || !u->frame) || !c->have_psn || j->flows[flow].before_rep.have)
        return; /* with before_rep the first one came before the REP */
    if (u->frame < c->params.req_frame)
        return; /* it is of an earlier connection of the same queue pairs */
    later = p->frame->ts - u->ts;
    if (later <= CROSSES_WITHIN + judge_step(j, p))
        return;
    f = found_of(u->rule == RULE_ACK_02 && !judge_tap_at_responder(j, flow, p) ? RULE_ACK_03 : (enum rule)u->rule,
                 flow);
    f.frame = u->frame;
    f.cause = frame_u32(p);
    f.needs = N_COMPLETE | N_CLOCK;
    f.has = N_START | N_REQ | (u->rule == RULE_NAK_01 ? N_TAP_RSP : 0);
    if (later <= SKEW_MOST && precede_requests(&j->flows[c->peer], p->bth.psn))
        judge_skewed(j, c->tap);
    f.lacks = (later <= CLOCK_SLACK + judge_step(j, p) || j->backwards ? N_CLOCK : 0) |
              (p->bth.psn == c->psn ? 0 : N_COMPLETE);
    f.expected = "silence until a request comes";
    f.seen = say(j, "%s of PSN %u", u->what, u->psn);
    f.text = "Nothing was asked on this connection until then.";
    judge_found(j, p, f);
}

/* The failures of `flow` that no packet will refute any more. */
static unsigned take_decided(struct judge *j, const struct pkt *p, uint32_t flow, bool now,
                             struct found out[2 * FAILURES])
{
    struct jflow *f = &j->flows[flow];
    unsigned n = 0;

    if (f->has_gap && req_dir_sent(f->dir, f->gap.psn))
        n += gap_closes(j, p, flow, &f->gap, &out[n]);
    if (f->has_gap && has_waited(f, &f->gap, now))
        n += gap_is_real(j, flow, &f->gap, &out[n]);
    if (f->has_early && psn_diff(f->early.psn, f->dir->next) < 0) {
        if (p)
            n += early_arrives(j, p, flow, &f->early, &out[n]);
        f->has_early = false;
    }
    if (f->has_early && has_waited(f, &f->early, now) && !(p && may_cross(j, p, &f->early)))
        n += early_is_real(j, p, flow, &f->early, &out[n]);
    return n;
}

void pending_review(struct judge *j, const struct pkt *p, uint32_t flow, bool now)
{
    struct jflow *f = &j->flows[flow];
    struct found decided[2 * FAILURES];
    unsigned n;

    if (!f->dir)
        return;
    if (f->crossing && now)
        pending_crossed(j, NULL, flow);
    n = take_decided(j, p, flow, now, decided);
    for (unsigned i = 0; i < n; i++)
        judge_found(j, p, decided[i]);
}
