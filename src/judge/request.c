/* layer 3 (judge): the judge: rules about the requests of a connection. */
#include "src/judge/judge_impl.h"

#include <stdlib.h>

/* --- The transport's verdicts ----------------------------------------------------------------- */

static bool is_complete(const struct judge *j)
{
    return j->o.complete && !j->drops && !j->blind;
}

/* Begin the replicas anew with request `p`. */
static void begin(struct judge *j, const struct pkt *p, uint32_t flow, struct jflow *f, bool anew)
{
    const struct flow *c = conn_flow_at(j->conns, flow);
    /* the first packets may have been lost before the tap */
    bool from_start = !anew && c->have_psn && psn_in(p->bth.psn, c->psn, TRACK_SENT);
    const struct conn_params *k = &c->params;
    int timeout = k->have_timeout ? k->timeout : j->o.ack_timeout,
        retries = k->have_timeout ? k->retry_cnt : j->o.retry_cnt;
    const struct shadow_params r = {
        .service = p->bth.opcode >> 5,
        .timeout = timeout > 0 ? (uint8_t)timeout : 0,
        .retry_cnt = retries >= 0 ? (uint8_t)retries : UINT8_MAX,
        .rnr_retry = k->have_rnr ? k->rnr_retry : 7,
        .depth = k->have_depth ? k->depth : UINT8_MAX,
        .rxe = j->o.profile == PROFILE_RXE,
        .complete = is_complete(j),
        .from_start = from_start,
        .pmtu = f->dir->pmtu,
        .psn = from_start ? c->psn : p->bth.psn,
        .thorough = j->o.thorough,
    };

    shadow_begin(f->shadow, &r);
}

/* Whether the rule does not apply to adapters with out-of-order placement and adaptive retransmission. */
static bool is_void(const struct judge *j, enum rule rule)
{
    return j->o.profile == PROFILE_NV && rule_table[rule].traits & T_NOT_NV;
}

/* Whether another check reports the same failure better: a gap is reported once packets captured out of order had time
 * to arrive; lengths are compared with the path MTU that CM states (CM-08) or that packets show (FMT-20). */
static bool said_elsewhere(const struct judge *j, const struct judged *a, const struct verdict *v, enum seen_as as)
{
    bool agreed = conn_flow_at(j->conns, a->flow)->pmtu, ends = a->p->op->flags & OPF_END;

    switch (v->rule) {
    case RULE_SEQ_01:
        return as != SEEN_AGAIN;
    case RULE_SVC_06:
        return as != SEEN_AGAIN;
    case RULE_SEQ_04:
        return v->seen > v->expected && (agreed || ends || v->seen > MTU_MAX);
    case RULE_SEQ_05:
        return !agreed;
    case RULE_ACK_08:
        return conn_flow_at(j->conns, a->flow)
            ->params.no_credits; /* CM-11 reports credits where end-to-end flow control was not agreed on */
    default:
        return false;
    }
}

/* Whether request `a->p` or an earlier one may be a duplicate made by the network: without an IP identification a
 * duplicate and a retransmission look the same. */
static bool may_be_copy(const struct judged *a)
{
    return a->h->twin || (a->h->copies && !frame_ip_id(a->p));
}

bool judge_has_timeout(const struct judge *j, uint32_t flow)
{
    return conn_flow_at(j->conns, flow)->params.have_timeout || j->o.ack_timeout >= 0;
}

/* The needs (N_*) that are met, or not met, for rule `v->rule` in this case. */
static void weigh(const struct judge *j, const struct judged *a, const struct verdict *v, enum seen_as as,
                  unsigned *has, unsigned *lacks)
{
    bool timer = judge_has_timeout(j, a->flow);

    *has = *lacks = 0;
    switch (v->rule) {
    case RULE_RTX_01:
    case RULE_RTX_02:
    case RULE_RTX_03:
    case RULE_RTX_04:
    case RULE_RTX_11:
        *has = timer ? N_CM : 0;
        *lacks = !timer && v->rule != RULE_RTX_11 ? N_CM : 0;
        /* the packet may be a duplicate, or packets were captured out of order */
        *lacks |= may_be_copy(a) || a->h->disorder || as != SEEN_AGAIN || req_dir_is_unknown_read(a->h, a->p)
                      ? N_COMPLETE
                      : 0;
        break;
    case RULE_RTX_05:
    case RULE_SEQ_01:
        *lacks = a->h->disorder || may_be_copy(a) || as != SEEN_AGAIN ? N_TAP_REQ : 0;
        break;
    default:
        break;
    }
}

static void check_transport(struct judge *j, const struct judged *a, enum seen_as as)
{
    struct verdict v[SHADOW_FOUND];
    unsigned n = shadow_check_request(a->f->shadow, a->p, v), has, lacks;

    for (unsigned i = 0; i < n; i++) {
        if (!judge_explains((enum rule)v[i].rule) || is_void(j, (enum rule)v[i].rule) ||
            said_elsewhere(j, a, &v[i], as))
            continue;
        weigh(j, a, &v[i], as, &has, &lacks);
        v[i].needs |= a->h->heard_pmtu ? N_RSP : 0; /* and that response must not be another queue pair's */
        judge_verdict(j, a, &v[i], has, lacks);
    }
}

/* --- All of it -------------------------------------------------------------------------------- */

/* Notes about a retransmitted packet. */
static void note_again(const struct event *e, struct jflow *f)
{
    const struct pkt *p = e->p;
    struct req_dir *h = f->dir;

    if (h->have_una && psn_diff(p->bth.psn, h->una) < 0 && !req_dir_ask(h, p->bth.psn, 0) && f->spurious++ == 0)
        f->spurious_frame = frame_u32(p);
    if (e->why == BACK_SEQ_NAK && p->frame->ts - h->seq.ts > f->nak_reaction)
        f->nak_reaction = p->frame->ts - h->seq.ts;
}

/* The first request of a flow; false without memory. */
static bool begin_flow(struct judge *j, const struct event *e, struct jflow *f)
{
    f->shadow = calloc(1, sizeof *f->shadow);
    if (!f->shadow || !past_begin(f)) {
        free(f->shadow);
        f->shadow = NULL;
        return false;
    }
    f->dir = e->h;
    f->mid_stream = !e->h->from_start;
    begin(j, e->p, e->flow, f, false);
    return true;
}

/* Whether the responder certainly expects request `a->p`, whether it reorders packets or not: it has acknowledged
 * something, all requests since then were seen, and no NAK is open. */
static bool is_expected(const struct judged *a, enum seen_as as)
{
    const struct shadow *r = a->f->shadow;
    const struct req_dir *h = a->h;
    uint32_t psn = a->p->bth.psn;
    bool all_seen = h->have_una && !h->vague && !h->unsettled && h->gbn == psn;
    bool epsn_known = psn == r->rsp.r.epsn_hi && psn_diff(r->rsp.r.epsn_lo, r->start) > 0;

    return as == SEEN_NEW && all_seen && epsn_known && !r->rsp.u.nak_seen && !r->rsp.u.fatal_seen;
}

/* A request with AckReq: from now on the responder owes an ACK, if it expects the request and nothing is wrong with
 * it. */
static void begin_to_wait(const struct judge *j, const struct judged *a, enum seen_as as)
{
    bool sound = j->objected != a->p->frame->number && !a->f->pkey.pending && !a->f->service.pending;

    if (a->h->service == SVC_UC || !is_expected(a, as) || !sound)
        return;
    a->f->asked = (struct asked){a->p->bth.psn, frame_u32(a->p), a->p->frame->ts};
}

/* Request `p` may be the first one of a new connection: what was kept of the old one no longer counts. */
static void begin_anew(struct judge *j, const struct pkt *p, uint32_t flow, struct jflow *f)
{
    begin(j, p, flow, f, true);
    past_begin(f);
    f->asked.frame = 0;
    f->closed = false;
    f->mtu.have = f->mtu.pending = false;
}

static void gap_begins(struct jflow *f, const struct pkt *p, const struct req_dir *h)
{
    if (f->gap.have)
        return;
    f->gap = (struct pending_fail){.have = true,
                                   .psn = h->next,
                                   .frame = frame_u32(p),
                                   .conn_packets = (uint32_t)f->packets,
                                   .rule = h->service == SVC_UC ? RULE_SVC_06 : RULE_SEQ_01,
                                   .other = p->bth.psn};
}

void judge_request(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct jflow *f = &j->flows[flow];
    struct judged a = {p, flow, f, NULL};
    struct req_dir *h;
    struct event e;
    enum seen_as as;
    bool usual, unsettled;

    observer_request(j->observer, p, flow, &e);
    if (UNLIKELY(!e.h || (!f->dir && !begin_flow(j, &e, f))))
        return;
    h = a.h = e.h;
    as = (enum seen_as)e.as;
    if (UNLIKELY(as == SEEN_RESTART)) {
        begin_anew(j, p, flow, f);
    } else if (UNLIKELY(f->shadow->req.u.pmtu_unknown && h->pmtu)) {
        shadow_learn_pmtu(f->shadow, h->pmtu);
    }
    if (UNLIKELY(!judge_agrees(f, &j->flow[flow], p)))
        judge_agreed(j, p, flow, as);
    usual = as == SEEN_NEW && shadow_is_usual(f->shadow, p);
    if (UNLIKELY(!usual && as != SEEN_COPY)) {
        f->shadow->req.u.slack = judge_slack(j, p);
        check_transport(j, &a, as);
    }
    if (UNLIKELY(as == SEEN_GAP))
        gap_begins(f, p, h);
    else if (UNLIKELY(as == SEEN_AGAIN))
        note_again(&e, f);
    f->ackreq_run = p->bth.ackreq ? 0 : f->ackreq_run + 1;
    f->ackreq_run_max = max_u32(f->ackreq_run_max, f->ackreq_run);
    /* other requests have nothing to compare or to remember */
    if (UNLIKELY(as != SEEN_NEW || f->past->keys_at || p->have & H_IETH))
        past_request(&a, as);
    if (p->bth.ackreq && !f->asked.frame)
        begin_to_wait(j, &a, as);
    unsettled = h->unsettled;
    observer_take(j->observer, &e);
    if (LIKELY(usual))
        shadow_usual_request(f->shadow, p, h);
    else
        shadow_request(f->shadow, p, as, h);
    if (UNLIKELY(unsettled && !h->unsettled))
        shadow_settle(f->shadow);
}
