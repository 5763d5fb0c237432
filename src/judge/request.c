/* layer 3 (judge): rules about the requests of a connection. */
#include "src/conn/copies.h"
#include "src/judge/cm/cm.h"
#include "src/judge/judge_impl.h"

/* --- A request -------------------------------------------------------------------------------- */

/* Count a retransmitted packet for the notes at the end. */
static void note_retransmission(struct judge *j, const struct judged *a)
{
    const struct pkt *p = a->p;
    struct jflow *f = a->f;
    struct req_dir *h = a->h;

    (void)j;
    if (!a->forged && h->have_una && psn_diff(p->bth.psn, h->una) < 0 && !req_dir_read(h, p->bth.psn, 0) &&
        f->spurious++ == 0)
        f->spurious_frame = frame_u32(p);
    if (a->why == BACK_SEQ_NAK && p->frame->ts - h->seq.ts > f->nak_reaction)
        f->nak_reaction = p->frame->ts - h->seq.ts;
}

/* True if request `a->p` certainly has the responder's expected PSN, also if the responder reorders: an earlier
 * request was acknowledged, all requests since then were seen, and no NAK is outstanding. */
static bool is_expected(const struct judged *a)
{
    const struct shadow *r = a->f->shadow;
    const struct req_dir *h = a->h;
    uint32_t psn = a->p->bth.psn;
    bool all_seen = h->have_una && !h->vague && !h->unsettled && h->gbn == psn;
    bool epsn_known = psn == r->rsp.r.epsn_hi && psn_diff(r->rsp.r.epsn_lo, r->start) > 0;

    return a->as == SEEN_NEW && all_seen && epsn_known && !r->rsp.u.nak_seen && !r->rsp.u.fatal_seen;
}

/* A request with AckReq: its ACK is outstanding from now on, if the request has the expected PSN and breaks no rule. */
static void begin_ack_wait(struct judge *j, const struct judged *a)
{
    const struct jflow *f = a->f;
    bool sound = !judge_was_broken(j, a->p) && !f->pkey.pending && !f->service.pending;
    uint32_t peer = j->flow[a->flow].peer;
    ns_t wait;

    if (a->h->service == SVC_UC || !is_expected(a) || !sound)
        return;
    if (peer != FLOW_NONE && j->flows[peer].packets && j->flows[peer].path != f->path)
        return; /* the responder takes another path by now, and drops what comes along this one */
    wait = judge_has_timeout(j, a->flow) ? ack_timeout(f->shadow->req.r.p.timeout) : NS_NEVER;
    a->f->ack_wait = (struct ack_wait){.psn = a->p->bth.psn,
                                       .frame = frame_u32(a->p),
                                       .path = f->path,
                                       .ts = a->p->frame->ts,
                                       .overdue = wait == NS_NEVER ? NS_NEVER : a->p->frame->ts + 4 * wait};
}

/* --- Requests that follow a NAK --------------------------------------------------------------- */

bool judge_is_after_fatal(struct judge *j, const struct pkt *p, uint32_t own, struct found *f)
{
    struct jflow *of = &j->flows[own];
    const struct nak *n = &of->dir->fatal;

    if (!n->have || aeth_is_undefined(n->syndrome) || of->history->after_fatal == n->frame ||
        p->frame->ts - n->ts_first <= NAK_TAKES_EFFECT + judge_slack(j, p))
        return false;
    of->history->after_fatal = n->frame;
    *f = found_of(RULE_NAK_08, own);
    f->cause = n->frame;
    f->lacks = j->backwards ? N_CLOCK : 0;
    f->expected = "silence";
    f->seen = say(j, "%s of PSN %u", p->op->flags & OPF_RESPONSE ? response_name(p) : p->op->name, p->bth.psn);
    f->text = say(j, "%.3f ms before, the responder refused PSN %u for good (%s). The queue pair is in error.",
                  (double)(p->frame->ts - n->ts_first) / 1e6, n->psn, nak_code_str(aeth_value(n->syndrome)));
    return true;
}

/* A request although the requester has received a fatal NAK. One that is sent again may be of another connection, which
 * begins as this one did, unless the connection manager would have opened it. */
static bool check_after_fatal(struct judge *j, const struct judged *a, struct found *f)
{
    const struct nak *n = &a->h->fatal;
    bool again = a->as == SEEN_AGAIN;

    if (LIKELY(!n->have) || psn_diff(a->p->bth.psn, n->psn) < (again ? 0 : 1) ||
        (again && j->flow[a->flow].paired_by != PAIR_CM) || !judge_is_after_fatal(j, a->p, a->flow, f))
        return false;
    f->needs = again ? N_COMPLETE : 0;
    return true;
}

/* A requester that has received a NAK goes back within this time: soft-RoCE goes on with what is posted for tens of ms
 * when its completer runs late. */
#define NAK_IS_HEEDED NS_PER_S

/* A request with a new PSN while the requester waits out an RNR NAK, or long after, though the request that it is about
 * was not sent again. */
static bool check_rnr_wait(struct judge *j, const struct judged *a, struct found *f)
{
    const struct nak *n = &a->h->rnr;
    ns_t elapsed = a->p->frame->ts - n->ts_first, slack = judge_slack(j, a->p) + CLOCK_SLACK, wait;
    const struct sent *s;
    bool over;

    if (LIKELY(!n->have) || n->resent || a->f->history->in_rnr_wait == n->frame || psn_diff(a->p->bth.psn, n->psn) <= 0)
        return false;
    if (a->h->have_una && psn_diff(a->h->una, n->psn) > 0)
        return false; /* a copy made by the network has come late, and was taken */
    wait = rnr_time(aeth_value(n->syndrome));
    over = elapsed >= wait + NAK_IS_HEEDED && a->h->have_una && a->h->una == n->psn && j->o.profile != PROFILE_NV;
    if (!over && (elapsed <= NAK_TAKES_EFFECT + slack || elapsed >= wait - slack))
        return false;
    s = req_dir_sent(a->h, n->psn);
    if (s && s->copies > n->times)
        return false; /* it may be the answer to a copy before the latest one, which is taken */
    a->f->history->in_rnr_wait = n->frame;
    f->cause = n->frame;
    f->needs = over ? N_COMPLETE : 0;
    f->expected = over ? say(j, "PSN %u again", n->psn) : say(j, "silence for %.3f ms", (double)wait / 1e6);
    f->seen = say(j, "%s of PSN %u after %.3f ms", a->p->op->name, a->p->bth.psn, (double)elapsed / 1e6);
    f->text = "The responder drops whatever comes before the request that it was not ready for.";
    return true;
}

/* True if a request has had no answer for four times the ACK timeout. */
static inline bool is_overdue(const struct judged *a)
{
    return a->f->ack_wait.frame && a->p->frame->ts > a->f->ack_wait.overdue;
}

bool judge_is_not_sent_again(struct judge *j, const struct judged *a, struct found *f)
{
    struct ack_wait *k = &a->f->ack_wait;
    bool paused;

    if (!is_overdue(a) || k->told || a->p->frame->ts <= k->overdue + judge_slack(j, a->p) + CLOCK_SLACK)
        return false;
    if (a->h->back_ts >= k->ts || k->path != a->f->path || a->f->closed.frame)
        return false;
    paused = judge_paused_since(j, j->flow[a->flow].tap, k->ts);
    k->told = true;
    *f = found_of(RULE_RTX_03, a->flow);
    f->cause = k->frame;
    f->has = N_CM; /* the timeout is known: from CM or the user */
    f->needs = judge_may_be_paced(j, a) ? N_PACE : 0;
    f->lacks = a->h->vague || a->h->disorder || j->backwards || paused ? N_COMPLETE : 0;
    f->expected = say(j, "PSN %u again within %.6f ms", k->psn, (double)(k->overdue - k->ts) / 1e6);
    f->seen = say(j, "%.6f ms", (double)(a->p->frame->ts - k->ts) / 1e6);
    f->text = "Nothing was answered since the request of that PSN, whose ACK timeout had run out long ago.";
    return true;
}

/* New requests, although the oldest one without an answer should have been sent again long ago. */
static bool check_overdue(struct judge *j, const struct judged *a, struct found *f)
{
    if (LIKELY(!judge_is_not_sent_again(j, a, f)))
        return false;
    f->wrong = "the requester goes on with {seen}, expected {expected}";
    f->seen = say(j, "PSN %u after %s", a->p->bth.psn, f->seen);
    return true;
}

/* True if nothing that was seen since makes the retransmission needless that is demanded. */
static bool is_still_due(const struct judged *a, const struct req_unknown *u)
{
    const struct read_req *k = req_dir_read(a->h, u->resume_psn_lo, 0);

    if (u->resume_why == WHY_SEQUENCE_NAK)
        return a->h->have_una && a->h->una == u->resume_psn_lo && a->h->seq.psn == u->resume_psn_lo;
    return u->resume_why == WHY_IMPLIED_NAK && k && !k->answered;
}

/* New requests, although a NAK or an implied NAK demands that the requester goes back. */
static bool check_demand(struct judge *j, const struct judged *a, struct found *f)
{
    const struct req_unknown *u = &a->f->shadow->req.u;
    struct demand *t = &a->f->history->demand;
    bool implied = u->resume_why == WHY_IMPLIED_NAK;

    if (LIKELY(!u->may_resume) || !is_still_due(a, u) || j->o.profile == PROFILE_NV) {
        t->have = false;
        return false;
    }
    if (!t->have || t->psn != u->resume_psn_lo)
        *t = (struct demand){.have = true, .psn = u->resume_psn_lo, .ts = a->p->frame->ts};
    if (t->reported || a->p->frame->ts - t->ts <= NAK_IS_HEEDED + judge_slack(j, a->p))
        return false;
    t->reported = true;
    *f = found_of(req_demand_rule(u->resume_why), a->flow);
    f->cause = implied ? req_dir_read(a->h, t->psn, 0)->frame : a->h->seq.frame;
    if (j->backwards || a->h->disorder || a->h->vague || a->h->loose ||
        (implied && judge_may_have_come(j, a->flow, t->psn)))
        f->lacks = N_COMPLETE;
    f->wrong = "the requester goes on with {seen}, expected {expected}";
    f->expected = say(j, "PSN %u again", t->psn);
    f->seen = say(j, "PSN %u", a->p->bth.psn);
    f->text = implied ? "What follows the READ or atomic was acknowledged and its own response was lost: it has to be "
                        "requested again."
                      : rule_table[f->rule].reason.text;
    return true;
}

/* --- Gaps ------------------------------------------------------------------------------------- */

/* a sequence NAK is sent within this time, or else the requester had to wait for its timer */
#define NAK_COMES_WITHIN (10 * NS_PER_MS)

/* A request behind missing ones: a responder that receives it sends a sequence NAK. */
static void note_gap(struct judge *j, const struct judged *a)
{
    struct gap_seen *g = &a->f->history->gap;

    (void)j;
    if (a->h->service == SVC_UC || a->h->gbn != a->h->next || a->f->history->ignored)
        return;
    if (g->frame && g->psn == a->h->gbn)
        return;
    *g = (struct gap_seen){.psn = a->h->gbn, .frame = frame_u32(a->p), .ts = a->p->frame->ts};
}

/* True if a NAK explains that the responder was silent about gap `g`: one for its PSN, or one for an earlier PSN that
 * was still missing, or that the responder named behind the gap. */
static bool nak_explains(const struct nak *n, const struct gap_seen *g)
{
    return n->have && psn_diff(n->psn, g->psn) <= 0 && (!n->resent || n->psn == g->psn || n->ts >= g->ts);
}

/* True if a READ or atomic before the gap is not answered in full: a NAK waits behind its responses, which congestion
 * control may hold back. */
static bool waits_for_read(const struct req_dir *h, const struct gap_seen *g)
{
    for (uint32_t i = 0; h->have_una && i < h->read_slots; i++) {
        const struct read_req *k = &h->reads[i];
        if (k->span && psn_diff(psn_add(k->psn, k->span), h->una) > 0 && psn_diff(k->psn, g->psn) < 0)
            return true;
    }
    return false;
}

/* True if a response explains that no sequence NAK came for gap `g`. */
static bool is_answered(const struct req_dir *h, const struct gap_seen *g)
{
    bool acked = h->have_una && psn_diff(h->una, g->psn) > 0;
    /* a READ that was answered before is answered again: the NAK waits behind these responses, too */
    bool repeats = h->have_una && h->rsp_ts >= g->ts && psn_diff(h->proves, h->una) < 0;

    return acked || repeats || waits_for_read(h, g) || h->fatal.have || nak_explains(&h->seq, g) ||
           nak_explains(&h->rnr, g);
}

/* The request that was missing. Seen is not delivered: but of several packets behind the gap one will have been. */
static void note_gap_closed(struct judge *j, const struct judged *a)
{
    struct gap_seen *g = &a->f->history->gap;
    const struct kind_state *k = &a->f->kind[KIND_REQ];
    const struct req_dir *h = a->h;
    ns_t elapsed = a->p->frame->ts - g->ts;
    /* a responder that has migrated drops what still takes the old path */
    bool migrated = k->path_changed && k->path_ts >= g->ts;

    if (!g->frame || g->psn != a->p->bth.psn)
        return;
    a->f->history->ignored = false;
    if (elapsed < NAK_COMES_WITHIN || psn_diff(h->next, a->p->bth.psn) < 3 || j->o.profile == PROFILE_NV || h->loose ||
        h->vague || j->backwards || migrated || is_answered(h, g)) {
        g->frame = 0;
        return;
    }
    a->f->history->ignored = true;
    g->again = frame_u32(a->p);
    g->behind = (h->next - g->psn - 1) & PSN_MASK;
    g->silence = elapsed;
}

/* --- Retransmissions that differ -------------------------------------------------------------- */

/* What the replicas do not remember of a request: operands of an atomic, immediate, key to invalidate. */
static bool check_args(struct judge *j, const struct judged *a, struct found *f)
{
    const struct sent *s = req_dir_sent(a->h, a->p->bth.psn);

    (void)j;
    if (!s || a->forged || s->opcode != a->p->bth.opcode || LIKELY(s->args == request_args(a->p)))
        return false;
    f->cause = s->first;
    f->expected = "the same";
    f->seen = a->p->have & H_XRCETH      ? "another SRQ number, immediate, key or operand"
              : a->p->have & H_ATOMICETH ? "other operands"
              : a->p->have & H_IMMDT     ? "another immediate"
                                         : "another R_Key";
    f->text = "A packet that is retransmitted is the same packet.";
    return true;
}

/* True if the latest copy `s` may have taken another path than the requests do now. */
static bool took_other_path(const struct judge *j, const struct kind_state *k, const struct sent *s)
{
    return k->path_changed && (j->backwards || s->ts <= k->path_ts);
}

/* The application may have changed its buffer before the request was complete, or the adapter read another one. */
static bool check_payload(struct judge *j, const struct judged *a, struct found *f)
{
    const struct pkt *p = a->p;
    const struct sent *s = req_dir_sent(a->h, p->bth.psn);

    if (!s || a->forged || !copy_has_same_headers(p, s) || !copy_has_other_payload(p, s))
        return false;
    if (took_other_path(j, &a->f->kind[KIND_REQ], s)) /* other addresses are in its ICRC */
        return false;
    if (judge_needs_of_another(j, a->flow))
        return false;
    f->cause = s->last;
    f->expected = "the same";
    f->seen = "other bytes";
    f->text = "Headers and length are those of the copy before, but for the payload their ICRCs would be the same.";
    return true;
}

/* True if `a`, which has the PSN of an earlier request and another operation, is of the same connection by the messages
 * of CM. The first PSN of another one may be the same: then a REP came between the two. */
static bool is_reuse(const struct judge *j, const struct judged *a)
{
    const struct flow *c = &j->flow[a->flow];
    const struct sent *s = req_dir_sent(a->h, a->p->bth.psn);
    bool closed = a->f->closed.frame || (c->peer != FLOW_NONE && j->flows[c->peer].closed.frame);

    if (!s || c->paired_by != PAIR_CM || !c->have_psn || s->opcode >> 5 != a->p->bth.opcode >> 5)
        return false;
    return a->p->bth.psn != c->psn ||
           (!closed && a->h->from_start && c->params.rep_frame && c->params.rep_frame < s->first);
}

/* A PSN that was acknowledged comes with another operation. Another connection of the same queue pairs may begin there,
 * but not inside a connection of the connection manager, unless its messages were missed. */
static bool check_reuse(struct judge *j, const struct judged *a, struct found *f)
{
    const struct sent *s = req_dir_sent(a->h, a->p->bth.psn);

    if (!is_reuse(j, a))
        return false;
    f->cause = s->first;
    f->needs = N_COMPLETE;
    f->expected = opcode_name(s->opcode);
    f->seen = a->p->op->name;
    f->text = "This PSN was used, and acknowledged, for another operation of the same connection.";
    return true;
}

/* A PSN so far from the others that it would be another connection's, though this one was begun by the connection
 * manager and not closed: a fault, once the responder has taken the request. */
static void note_leap(struct judge *j, const struct judged *a)
{
    const struct flow *c = &j->flow[a->flow];
    bool closed = a->f->closed.frame || (c->peer != FLOW_NONE && j->flows[c->peer].closed.frame);
    bool begun = a->h->from_start && c->paired_by == PAIR_CM && c->have_psn && a->h->start == c->psn;

    a->f->leap.frame = 0;
    if (begun && !closed && a->p->bth.psn != c->psn && a->p->bth.opcode >> 5 == a->h->service && !is_reuse(j, a))
        a->f->leap = (struct leap){frame_u32(a->p), a->h->last_frame, a->h->next, a->p->bth.psn};
}

/* A PSN before the first one, which CM has named: no request of the connection has it. */
static bool check_before_first(struct judge *j, const struct judged *a, struct found *f)
{
    const struct flow *c = &j->flow[a->flow];
    const struct req_dir *h = a->h;

    bool begun_as_named = h->from_start && c->paired_by == PAIR_CM && h->start == c->psn;
    bool another = a->f->another.is == ANOTHER_LIKELY || a->f->closed.frame;

    if (!begun_as_named || another || psn_diff(a->p->bth.psn, c->psn) >= 0 || psn_diff(h->next, h->start) < 0)
        return false;
    f->cause = c->params.rep_frame;
    f->wrong = "a request has PSN {seen}, expected {expected}";
    f->expected = say(j, "PSN %u or later", c->psn);
    f->seen = say(j, "%u", a->p->bth.psn);
    f->text = "The requests of a connection begin with the PSN that the REQ or REP of their receiver has named.";
    return true;
}

/* --- The checks ------------------------------------------------------------------------------- */

/* The checks of a request, in the order of their findings, for requests classified as one of `as` (enum seen_as);
 * they run before the observer updates its state. */
#define AS(what) (1u << SEEN_##what)
#define AS_ANY   (~0u)
static const struct judge_check checks[] = {
    {AS_ANY, .takes = judge_cm_request},                   /* parameters of CM (cm/params.c) */
    {AS_ANY & ~AS(COPY), .takes = judge_request_verdicts}, /* the transport's checks of a requester (verdict.c) */
    {AS(GAP), .takes = pending_gap},                       /* skipped PSNs (pending.c) */
    {AS(AGAIN), .takes = note_retransmission},             /* retransmissions: notes */
    {AS(NEW) | AS(AGAIN), RULE_NAK_08, check_after_fatal}, /* requests after a fatal NAK */
    {AS(NEW), RULE_RTX_15, check_rnr_wait},                /* new requests while an RNR NAK is waited out */
    {AS(NEW), RULE_NONE, check_overdue},                   /* new requests although an old one is due again */
    {AS(NEW), RULE_NONE, check_demand},                    /* new requests although a NAK demands others */
    {AS(LATE) | AS(OLD), RULE_CM_06, check_before_first},  /* PSNs before the first one that CM has named */
    {AS(AGAIN), RULE_SEC_03, judge_forged},                /* another sender's packet was taken for it (security.c) */
    {AS(AGAIN), RULE_SEQ_13, check_payload},               /* retransmissions: payload */
    {AS(AGAIN), RULE_SEQ_11, check_args},                  /* retransmissions: immediate, keys, operands */
    {AS(GAP), .takes = note_gap},                          /* a gap that the responder has to answer */
    {AS(LATE), .takes = note_gap_closed},                  /* and whether it did */
    {AS_ANY, .takes = history_request},                    /* invalidated R_Keys, order, duplicates (history.c) */
};
/* The check of a request that may begin a new connection; before the state of the old one is reset. */
static const struct judge_check before_reset[] = {
    {AS(RESTART), RULE_SEQ_11, check_reuse},
    {AS(RESTART), .takes = note_leap},
};

/* True if no row of checks[] would find or remember anything about the request. */
static inline bool is_unremarkable(const struct judge *j, const struct judged *a)
{
    return a->usual && LIKELY(!is_overdue(a)) && !a->f->history->keys_at && !(a->p->have & (H_IETH | H_XRCETH)) &&
           keeps_cm_params(a->f, &j->flow[a->flow], a->p);
}

/* Apply the request to the replicas; `unsettled`: a->h->unsettled before the request. */
static inline void take(const struct judged *a, bool unsettled)
{
    struct shadow *r = a->f->shadow;

    if (UNLIKELY(shadow_is_full(r)))
        a->f->shadow = r = shadow_grow(r);
    shadow_request(r, a->p, (enum seen_as)a->as, a->h, a->usual);
    if (UNLIKELY(unsettled && !a->h->unsettled))
        shadow_rsp_settle(&r->rsp);
}

/* True if the responder has refused a request for good, or for now. */
static inline bool ends_or_waits(const struct req_dir *h)
{
    return h->fatal_naks || (h->rnr_naks && !h->rnr.resent);
}

static inline uint32_t request_key(const struct pkt *p)
{
    return p->have & H_RETH ? p->reth.rkey : p->atomiceth.rkey;
}

/* Another R_Key than in the request before: the receiver has chosen it. */
static void take_key(struct judge *j, const struct pkt *p, uint32_t flow)
{
    j->flows[flow].rkey = request_key(p);
    judge_chosen(j, j->flow[flow].tap, &j->flow[flow].dst, CHOSE_RKEY, request_key(p));
}

void judge_request(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct jflow *f = &j->flows[flow];
    struct judged a = {.p = p, .flow = flow, .own = flow, .f = f};
    struct event e;
    bool unsettled, reused = false;

    observer_request(j->observer, p, flow, &e);
    if (UNLIKELY(!e.h || (!f->dir && !judge_begin(j, &e, f))))
        return;
    a.h = e.h;
    a.as = e.as;
    a.why = e.why;
    a.forged = e.forged;
    if (UNLIKELY(p->have & (H_RETH | H_ATOMICETH) && f->rkey != request_key(p)))
        take_key(j, p, flow);
    if (UNLIKELY(f->crossing))
        pending_crossed(j, p, flow);
    if (UNLIKELY(j->n_sweeps || a.as == SEEN_RESTART || a.as == SEEN_GAP || a.as == SEEN_OLD))
        judge_sweep_request(j, &a);
    if (UNLIKELY(a.as == SEEN_RESTART)) {
        judge_run_checks(j, &a, before_reset, ARRAY_LEN(before_reset), 1u << a.as);
        reused = is_reuse(j, &a) && judge_is_complete(j); /* no new connection begins */
        a.as = e.as = reused ? SEEN_AGAIN : SEEN_RESTART;
    }
    if (UNLIKELY(a.as != SEEN_NEW || e.moved || f->another.is || f->closed.frame || f->shadow->req.u.pmtu_unknown))
        judge_follow_conn(j, &a, e.moved);
    a.usual = a.as == SEEN_NEW && shadow_is_usual(f->shadow, p) && !ends_or_waits(a.h) && !f->shadow->req.u.may_resume;
    if (UNLIKELY(reused))
        history_request(j, &a);
    else if (UNLIKELY(!is_unremarkable(j, &a)))
        judge_run_checks(j, &a, checks, ARRAY_LEN(checks), 1u << a.as);
    f->ackreq_run = p->bth.ackreq ? 0 : f->ackreq_run + 1;
    f->ackreq_run_max = max_u32(f->ackreq_run_max, f->ackreq_run);
    if (p->bth.ackreq && !f->ack_wait.frame)
        begin_ack_wait(j, &a);
    unsettled = a.h->unsettled;
    observer_take(j->observer, &e);
    take(&a, unsettled);
}

/* --- The end ---------------------------------------------------------------------------------- */

void judge_request_end(struct judge *j, uint32_t flow)
{
    const struct jflow *f = &j->flows[flow];
    const struct req_dir *h = f->dir;

    if (f->spurious)
        judge_note(
            j, RULE_RTX_14, flow, f->spurious_frame, count_str(f->spurious, "packet"),
            "They were retransmitted although a response to them had passed the tap: it was lost, or came late.");
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
