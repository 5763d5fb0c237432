/* layer 3 (judge): rules about the responses of a connection. */
#include "src/judge/cm/cm.h"
#include "src/judge/judge_impl.h"

static bool check_credits(struct judge *j, const struct judged *a, struct found *f)
{
    const struct conn_params *c = &j->flow[a->flow].params;
    unsigned code = aeth_value(a->p->aeth.syndrome);

    if (LIKELY(!c->no_credits) || !psn_in(a->p->bth.psn, a->h->start, (a->h->next - a->h->start) & PSN_MASK))
        return false;
    f->cause = c->rep_frame;
    f->expected = "credit code 31";
    f->seen = say(j, "%u", code);
    f->text = "This end announced no flow control, or a shared receive queue, and yet its responses carry credits.";
    return true;
}

/* The first response since an ACK is outstanding: was it so late that the requester should have sent its request again?
 */
static bool check_overdue(struct judge *j, const struct judged *a, struct found *f)
{
    const struct conn_params *c = &j->flow[a->flow].params;
    bool went_back = a->h->back_ts > a->h->una_ts;

    if (LIKELY(went_back || !c->retry_known || !c->retry_cnt)) /* it may have used its last retry, and be in error */
        return false;
    if (LIKELY(!judge_is_not_sent_again(j, a, f)))
        return false;
    f->of_silence = true;
    f->wrong = "the requester waits {seen} for an answer, expected {expected}";
    return true;
}

/* A response of a queue pair that has received a fatal NAK to its own requests. */
static bool check_after_fatal(struct judge *j, const struct judged *a, struct found *f)
{
    if (j->flow[a->own].paired_by != PAIR_CM || !judge_is_after_fatal(j, a->p, a->own, f))
        return false;
    f->needs = N_COMPLETE; /* else another connection may have been set up meanwhile */
    return true;
}

/* True if response `p` answers the request with PSN `psn`. */
static bool answers(const struct pkt *p, uint32_t psn)
{
    return p->op->flags & OPF_ACK && response_type(p) != AETH_ACK ? p->bth.psn == psn : psn_diff(p->bth.psn, psn) >= 0;
}

/* The first response since an ACK is outstanding: was it later than the ACK timeout? A missing ACK alone proves
 * nothing, as the ACK may be lost; a late one does, unless it is a READ response: those are data, which congestion
 * control of the responder sends at its own rate, and what they acknowledge waits with them. */
static bool check_ack_wait(struct judge *j, const struct judged *a, struct found *f)
{
    const struct ack_wait k = a->f->ack_wait;
    const struct requester *r = &a->f->shadow->req.r;
    uint32_t peer = j->flow[a->flow].peer;
    ns_t wait = ack_timeout(r->p.timeout), elapsed = a->p->frame->ts - k.ts;
    /* no CLOCK_SLACK if the requester has gone back since: its own timer has expired, too */
    ns_t slack = judge_slack(j, a->p) + (a->h->back_ts > k.ts ? 0 : CLOCK_SLACK);

    a->f->ack_wait.frame = 0;
    if (LIKELY(wait == NS_NEVER || elapsed <= wait + slack) || !answers(a->p, k.psn))
        return false;
    if (a->p->op->flags & OPF_READ_RESP)
        return false;
    if (a->f->closed.frame || j->flows[peer].closed.frame || j->flows[peer].path != k.path)
        return false;
    f->has = N_CM; /* the timeout is known: from CM or the user */
    f->lacks = a->h->unsettled || a->h->disorder || j->backwards || j->n_pauser ? N_COMPLETE : 0;
    f->of_silence = true;
    f->frame = k.frame;
    f->cause = a->p->frame->number;
    f->expected = say(j, "an answer within %.6f ms", (double)wait / 1e6);
    f->seen = say(j, "silence for %.6f ms", (double)elapsed / 1e6);
    f->text = "The packet asks for an acknowledgement and is the one that its receiver expected. Nothing at all was "
              "answered on this connection for longer than its sender waits.";
    return true;
}

/* The first response since a gap was closed that the responder had said nothing about: its queue pair works. One in the
 * error state, as after retries of its own requests, says nothing at all. */
static bool check_gap_ignored(struct judge *j, const struct judged *a, struct found *f)
{
    struct gap_seen *g = &a->f->history->gap;

    a->f->history->ignored = false;
    f->of_silence = true;
    f->frame = g->frame;
    f->cause = g->again;
    f->expected = say(j, "sequence NAK %u", g->psn);
    f->seen = say(j, "nothing for %.3f ms", (double)g->silence / 1e6);
    f->text = say(j, "PSN %u was missing, and %s behind it came. The requester had to wait for its timer.", g->psn,
                  count_str(g->behind, "PSN"));
    g->frame = 0;
    return true;
}

/* True if READ or atomic `k` is a valid request; `before`: the packet of the PSN before it, NULL: not known. */
static bool is_valid_read(const struct read_req *k, const struct sent *before)
{
    bool inside_message = before && !(opcode_table[before->opcode].flags & OPF_END);
    bool aligned = k->opcode == OP_READ_REQUEST || k->va % 8 == 0;

    return !inside_message && aligned && k->len <= UINT32_C(1) << 31 &&
           opcode_table[k->opcode].flags & (OPF_READ_REQ | OPF_ATOMIC_REQ);
}

/* A READ or atomic was rejected with NAK "invalid request", although it is valid and within the depth that CM
 * negotiated. A capture does not show whether the queue pair permits READs or atomics at all: an error only if
 * another one succeeded. */
static bool check_refused_read(struct judge *j, const struct judged *a, struct found *f)
{
    const struct conn_params *c = &j->flow[a->flow].params;
    const struct sent *before = req_dir_sent(a->h, psn_prev(a->p->bth.psn));
    const struct read_req *k = req_dir_read(a->h, a->p->bth.psn, 0);
    bool depth_known = c->have_depth && c->depth < TRACK_READS, served = false;

    if (aeth_value(a->p->aeth.syndrome) != NAK_INVALID_REQUEST || !k || k->psn != a->p->bth.psn || !depth_known)
        return false;
    if (req_dir_outstanding_at(a->h, k) > c->depth || !is_valid_read(k, before))
        return false;
    for (uint32_t i = 0; i < a->h->read_slots; i++)
        served |= a->h->reads[i].span && a->h->reads[i].answered &&
                  (a->h->reads[i].opcode == OP_READ_REQUEST) == (k->opcode == OP_READ_REQUEST);
    f->severity = served ? SEV_E : SEV_W;
    f->cause = k->frame;
    f->expected = say(j, "an answer: at most %u outstanding", c->depth);
    f->seen = "NAK, invalid request";
    f->text = served
                  ? "REQ and REP agreed on as many READs and atomics, and others like this one were answered."
                  : "REQ and REP agreed on as many READs and atomics; either the queue pair does not permit them, or "
                    "the responder refuses what it promised.";
    return true;
}

static void note_refusal(struct judge *j, const struct judged *a)
{
    const struct sent *s = req_dir_sent(a->h, a->p->bth.psn);

    a->f->is_refused = true;
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

/* --- A response ------------------------------------------------------------------------------- */

/* True if the request of the response was retransmitted after `ts`: then it may have been answered once more. */
static bool was_asked_again(const struct judged *a, ns_t ts)
{
    const struct read_req *k = req_dir_read(a->h, a->p->bth.psn, 0);
    const struct sent *s = req_dir_sent(a->h, k ? k->psn : a->p->bth.psn);

    return s && s->copies > 1 && s->ts > ts;
}

/* True if the response is identical to the previous one: captured twice, or duplicated by the network. If it is
 * identical to an older one, the responder may have repeated it: the order of responses is then uncertain for a while
 * (`alike`). */
static bool is_identical_copy(const struct judged *a)
{
    const struct pkt *p = a->p;
    struct jflow *f = a->f;
    const struct rsp_id now = {++f->n_rsp, p->bth.opcode, frame_ip_id(p), p->bth.psn, icrc_of(p), p->frame->ts},
                        was = f->history->rsp[p->bth.psn % RSP_IDS];
    bool same_bits = was.psn == now.psn && was.icrc == now.icrc && was.opcode == now.opcode && was.ip_id == now.ip_id;
    bool same = was.number && same_bits && (now.ip_id || now.ts - was.ts < DUPLICATE_WITHIN);

    f->history->rsp[p->bth.psn % RSP_IDS] = now;
    if (UNLIKELY(same)) {
        f->alike = now.number;
        f->unproved_rsp++; /* it proves no more than the one before whose responses these are */
        f->unfit_rsp++;
    }
    return same && was.number + 1 == now.number && !was_asked_again(a, was.ts);
}

/* A response with a PSN before the capture's first request, after responses to captured requests: a late duplicate, a
 * response to a retransmission that was not captured, or wrong. */
static bool check_of_before(struct judge *j, const struct judged *a, struct found *f)
{
    if (!a->f->acked || a->h->from_start)
        return false;
    *f = found_of(pending_rule(a->p), a->flow);
    f->needs = N_START;
    f->expected = say(j, "PSN %u at least", a->h->start);
    f->seen = say(j, "%s of PSN %u", response_name(a->p), a->p->bth.psn);
    f->text = "It answers none of the requests that were captured, and what they ask for was answered before.";
    return true;
}

/* Kinds of a response, which select its checks. */
enum {
    AWAITED = 1u << 0,        /* the first one since an ACK is outstanding */
    EARLY = 1u << 1,          /* its request was not seen yet */
    BEFORE_CAPTURE = 1u << 2, /* its request was sent before the capture */
    JUDGED = 1u << 3,         /* neither of the two, and no identical copy: the transport's checks apply */
    CREDITS = 1u << 4,        /* an ACK, READ response or ATOMIC ACK with a credit count */
    UNSETTLED = 1u << 5,      /* an ACK during go-back-N recovery */
    RNR_NAK = 1u << 6,
    SEQ_NAK = 1u << 7,
    FATAL_NAK = 1u << 8, /* any other NAK code */
    FRESH = 1u << 9,     /* neither early nor an identical copy */
    FIRST = 1u << 10,    /* no request of its flow was acknowledged before */
    GAP = 1u << 11,      /* an ACK or NAK while a PSN is skipped */
    BAD_ICRC = 1u << 12, /* a request before it had a wrong ICRC */
    CLOSED = 1u << 13,   /* its sender has closed or refused the connection */
    ANOTHER = 1u << 14,  /* another connection of the same queue pairs may have begun */
    IGNORED = 1u << 15,  /* the first one since a gap that nothing was said about */
    LEAPT = 1u << 16,    /* an ACK while a request with a PSN far from those before was not acknowledged */
    ENDED = 1u << 17,    /* requests of its sender were refused for good */
};

/* The checks of a response, in the order of their findings, for responses of one of `kinds`; they run before the
 * observer updates its state. */
static const struct judge_check checks[] = {
    {BAD_ICRC, .takes = judge_icrc_answered},     /* what it acknowledges had a right ICRC on the wire (damaged.c) */
    {CLOSED, .takes = judge_cm_late_response},    /* the connection was closed long before (cm/ends.c) */
    {ANOTHER, .takes = judge_another_answered},   /* does its MSN show which connection it belongs to? (begin.c) */
    {BEFORE_CAPTURE, RULE_NONE, check_of_before}, /* does it come behind one to a request in the capture? */
    {ENDED, RULE_NAK_08, check_after_fatal},      /* its queue pair is in error */
    {AWAITED, RULE_NONE, check_overdue},          /* was it so late that the request was due again? */
    {AWAITED, RULE_ACK_04, check_ack_wait},       /* was the ACK later than the ACK timeout? */
    {IGNORED, RULE_NAK_10, check_gap_ignored},    /* was the responder silent about a gap, and able to speak? */
    {EARLY, .takes = pending_early},              /* its request may be captured out of order (pending.c) */
    {EARLY, .takes = msn_early},                  /* or it was sent before the capture (msn.c) */
    {LEAPT, RULE_NONE, pending_leap},             /* it acknowledges a request far from those before (pending.c) */
    {GAP, .takes = pending_gap_acked},            /* does it cover, or refuse, a PSN that never came? (pending.c) */
    {JUDGED, .takes = judge_response_verdicts},   /* the transport's checks of a responder (verdict.c) */
    {CREDITS, RULE_CM_11, check_credits},         /* credits without end-to-end flow control */
    {UNSETTLED, RULE_NONE, pending_gbn_ack},      /* an ACK during go-back-N recovery (pending.c) */
    {RNR_NAK, .takes = note_rnr_nak},             /* notes */
    {SEQ_NAK, RULE_NONE, pending_nak},            /* it proves that a PSN was skipped (pending.c) */
    {FATAL_NAK, .takes = note_refusal},           /* notes */
    {FATAL_NAK, .takes = judge_refused},          /* is one R_Key after another tried? (security.c) */
    {FATAL_NAK, RULE_RDA_07, check_refused_read}, /* a READ or atomic rejected without reason */
    {FRESH, .takes = history_response},           /* data of READs, R_Keys, duplicates, MSN (history.c) */
    {FIRST, RULE_NONE, judge_cm_response},        /* parameters of CM (cm/params.c) */
};

static unsigned acknowledge_kind(const struct judged *a, const struct pkt *p)
{
    unsigned gap = UNLIKELY(a->f->has_gap) ? GAP : 0;

    switch (response_type(p)) {
    case AETH_ACK:
        return gap | (a->h->unsettled ? UNSETTLED : 0) | (UNLIKELY(a->f->leap.frame) ? LEAPT : 0);
    case AETH_RNR:
        return gap | RNR_NAK;
    case AETH_NAK:
        return gap | (aeth_value(p->aeth.syndrome) == NAK_PSN_SEQ ? SEQ_NAK : FATAL_NAK);
    default:
        return 0;
    }
}

/* True if the response has a credit count. */
static inline bool has_credits(const struct pkt *p)
{
    return p->have & H_AETH && response_type(p) == AETH_ACK && aeth_value(p->aeth.syndrome) != AETH_CREDIT_INVALID;
}

/* True for a sequence NAK, whose PSN need not have been sent. */
static bool expects_psn(const struct pkt *p)
{
    return p->op->flags & OPF_ACK && response_type(p) == AETH_NAK && aeth_value(p->aeth.syndrome) == NAK_PSN_SEQ;
}

/* The kinds that follow from the flow of the requests alone; `a->h` may be NULL. */
static unsigned kinds_by_flow(const struct judged *a)
{
    return (UNLIKELY(a->f->bad_icrc) ? BAD_ICRC : 0) | (a->f->acked ? 0 : FIRST);
}

static unsigned kinds_of(const struct judge *j, const struct judged *a, bool copy)
{
    const struct pkt *p = a->p;
    bool ack = p->op->flags & OPF_ACK, reliable = a->h->service != SVC_UC;
    bool early = psn_diff(p->bth.psn, a->h->next) >= (expects_psn(p) ? 1 : 0);
    unsigned kinds = kinds_by_flow(a) | (a->f->ack_wait.frame ? AWAITED : 0);

    kinds |= UNLIKELY(a->f->history->ignored) ? IGNORED : 0;
    kinds |= UNLIKELY(j->flows[a->own].closed.frame) ? CLOSED : 0;
    kinds |= UNLIKELY(j->flows[a->own].is_refused) ? ENDED : 0;
    kinds |= UNLIKELY(a->f->another.is == ANOTHER_MAYBE || a->f->another.leapt) ? ANOTHER : 0;
    if (UNLIKELY(early && reliable))
        kinds |= EARLY;
    else if (UNLIKELY(psn_diff(response_proves(p), a->f->shadow->start) < 0 && reliable &&
                      !(a->h->from_start && a->f->acked) && !req_dir_sent(a->h, p->bth.psn)))
        return kinds | BEFORE_CAPTURE;
    else if (LIKELY(!copy || !reliable))
        kinds |= JUDGED;
    if (ack && p->have & H_AETH && !early)
        kinds |= acknowledge_kind(a, p);
    if (has_credits(p) && !early)
        kinds |= CREDITS;
    return LIKELY(!early && !copy) ? kinds | FRESH : kinds;
}

/* Apply the response to the replicas; `unsettled`: a->h->unsettled before the response. */
static inline void take(const struct judge *j, const struct judged *a, unsigned kinds, bool unsettled)
{
    struct shadow *r = a->f->shadow;

    if (LIKELY(kinds & FRESH)) {
        r->req.u.slack = judge_slack(j, a->p);
        shadow_response(r, a->p);
    }
    if (UNLIKELY(unsettled && !a->h->unsettled))
        shadow_rsp_settle(&r->rsp);
}

/* A response before any request was seen. */
static void note_unsolicited(struct jflow *f, const struct pkt *p)
{
    f->unsolicited_psn = p->bth.psn;
    f->unsolicited_ts = p->frame->ts;
    f->unsolicited_asks = expects_psn(p);
    if (!f->unsolicited.frame)
        f->unsolicited =
            (struct unsolicited){frame_u32(p), p->bth.psn, p->frame->ts, response_name(p), (uint8_t)pending_rule(p)};
}

/* A response whose requests are not known. */
static void note_unmatched(struct jflow *f, const struct pkt *p)
{
    if (f->unmatched++ == 0)
        f->unmatched_first = p->bth.psn;
    f->unmatched_last = p->bth.psn;
    note_unsolicited(f, p);
}

/* The path MTU, known from a READ response only now, shows that a SEND or WRITE before has one of the READ's PSNs. */
static void find_inside_read(struct judge *j, const struct judged *a)
{
    const struct read_req *k = req_dir_read(a->h, a->p->bth.psn, 0);
    struct found f = found_of(RULE_RDA_01, a->flow);
    const struct sent *s = NULL;
    uint32_t n = 0;

    while (k && !s && ++n < min_u32(k->span, TRACK_SENT))
        s = req_dir_data(a->h, psn_add(k->psn, n));
    if (!s)
        return;
    f.needs = N_RSP;
    f.frame = s->first;
    f.cause = k->frame;
    f.expected = say(j, "PSN %u", psn_add(k->psn, k->span));
    f.seen = say(j, "PSN %u", s->psn);
    f.text = rule_table[RULE_RDA_01].reason.text;
    judge_found(j, a->p, f);
}

void judge_response(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct judged a = {.p = p, .own = flow};
    struct event e;
    unsigned kinds;
    bool unsettled;

    if (UNLIKELY(!j->flows[flow].has_rsp))
        j->flows[flow].rsp_frame = frame_u32(p);
    j->flows[flow].has_rsp = true;
    observer_response(j->observer, p, flow, &e);
    if (UNLIKELY(j->n_sweeps))
        judge_sweep_response(j, p, j->flow[flow].peer);
    if (UNLIKELY(e.flow == FLOW_NONE)) {
        note_unmatched(&j->flows[flow], p);
        return;
    }
    a.flow = e.flow;
    a.f = &j->flows[a.flow];
    a.h = a.f->dir;
    if (!a.h || !a.h->have_next) {
        note_unsolicited(&j->flows[flow], p);
        judge_run_checks(j, &a, checks, ARRAY_LEN(checks), kinds_by_flow(&a));
        return;
    }
    if (UNLIKELY(p->have & H_AETH && p->aeth.msn > a.h->msgs))
        a.h->began = BEGAN_BEFORE;
    if (UNLIKELY(a.f->shadow->req.u.pmtu_unknown && a.h->pmtu)) {
        shadow_learn_pmtu(a.f->shadow, a.h->pmtu);
        find_inside_read(j, &a);
    }
    kinds = kinds_of(j, &a, is_identical_copy(&a));
    judge_run_checks(j, &a, checks, ARRAY_LEN(checks), kinds);
    if (UNLIKELY(kinds & BEFORE_CAPTURE)) {
        a.h->began = BEGAN_BEFORE;
        return;
    }
    unsettled = a.h->unsettled;
    observer_take(j->observer, &e);
    a.f->calm += a.h->have_una && a.h->una == a.h->next;
    take(j, &a, kinds, unsettled);
    if (UNLIKELY(a.f->crossing))
        pending_crossed(j, p, a.flow);
}
