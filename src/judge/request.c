/* layer 3 (judge): rules about the requests of a connection. */
#include "src/judge/judge_impl.h"

#include <stdlib.h>

/* --- The replicas ----------------------------------------------------------------------------- */

static bool is_complete(const struct judge *j)
{
    return j->o.complete && !j->drops && !j->incomplete;
}

/* Initialise the replicas of flow `f` with request `p`; `new_conn`: of a new connection. */
static void begin_replicas(struct judge *j, const struct pkt *p, uint32_t flow, struct jflow *f, bool new_conn)
{
    const struct flow *c = conn_flow_at(j->conns, flow);
    /* the first packets may have been lost before the tap: `p` need not have the first PSN */
    bool from_start = !new_conn && c->have_psn && psn_in(p->bth.psn, c->psn, TRACK_SENT);
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

/* --- A request -------------------------------------------------------------------------------- */

/* Count a retransmitted packet for the notes at the end. */
static void note_retransmission(struct judge *j, const struct judged *a)
{
    const struct pkt *p = a->p;
    struct jflow *f = a->f;
    struct req_dir *h = a->h;

    (void)j;
    if (h->have_una && psn_diff(p->bth.psn, h->una) < 0 && !req_dir_read(h, p->bth.psn, 0) && f->spurious++ == 0)
        f->spurious_frame = frame_u32(p);
    if (a->why == BACK_SEQ_NAK && p->frame->ts - h->seq.ts > f->nak_reaction)
        f->nak_reaction = p->frame->ts - h->seq.ts;
}

/* The first request of a flow; false: out of memory. */
static bool begin_flow(struct judge *j, const struct event *e, struct jflow *f)
{
    f->shadow = calloc(1, sizeof *f->shadow);
    if (!f->shadow || !history_begin(f)) {
        free(f->shadow);
        f->shadow = NULL;
        return false;
    }
    f->dir = e->h;
    f->mid_stream = !e->h->from_start;
    begin_replicas(j, e->p, e->flow, f, false);
    return true;
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

/* A request with AckReq: from now on the responder owes an ACK, if the request has the expected PSN and breaks no
 * rule. */
static void begin_ack_wait(struct judge *j, const struct judged *a)
{
    const struct jflow *f = a->f;
    bool sound = j->last_found_frame != a->p->frame->number && !f->pkey.pending && !f->service.pending;

    if (a->h->service == SVC_UC || !is_expected(a) || !sound)
        return;
    a->f->ack_wait = (struct ack_wait){a->p->bth.psn, frame_u32(a->p), a->p->frame->ts};
}

/* Request `p` may be the first one of a new connection: reset the state of the old one. */
static void begin_new_conn(struct judge *j, const struct pkt *p, uint32_t flow, struct jflow *f)
{
    begin_replicas(j, p, flow, f, true);
    history_begin(f);
    f->ack_wait.frame = 0;
    f->closed = false;
    f->mtu.have = f->mtu.pending = false;
}

/* The checks of a request, in the order of their findings, for requests classified as one of `as` (enum seen_as);
 * they run before the observer updates its state. */
#define AS(what) (1u << SEEN_##what)
#define AS_ANY   (~0u)
static const struct {
    unsigned as;
    void (*check)(struct judge *j, const struct judged *a);
} checks[] = {
    {AS_ANY, judge_cm_request},                   /* parameters of CM (cm_params.c) */
    {AS_ANY & ~AS(COPY), judge_request_verdicts}, /* the transport's checks of a requester (verdict.c) */
    {AS(GAP), pending_gap},                       /* skipped PSNs (pending.c) */
    {AS(AGAIN), note_retransmission},             /* retransmissions: notes */
    {AS_ANY, history_request},                    /* invalidated R_Keys, order, duplicates (history.c) */
};

/* True if no row of checks[] would find or remember anything about the request. */
static inline bool is_unremarkable(const struct judge *j, const struct judged *a)
{
    return a->usual && !a->f->history->keys_at && !(a->p->have & H_IETH) &&
           keeps_cm_params(a->f, &j->flow[a->flow], a->p);
}

static void run_checks(struct judge *j, const struct judged *a)
{
    for (unsigned i = 0; i < ARRAY_LEN(checks); i++)
        if (checks[i].as >> a->as & 1)
            checks[i].check(j, a);
}

/* Apply the request to the replicas; `unsettled`: a->h->unsettled before the request. */
static inline void take(const struct judged *a, bool unsettled)
{
    struct shadow *r = a->f->shadow;

    shadow_request(r, a->p, (enum seen_as)a->as, a->h, a->usual);
    if (UNLIKELY(unsettled && !a->h->unsettled))
        shadow_rsp_settle(&r->rsp);
}

void judge_request(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct jflow *f = &j->flows[flow];
    struct judged a = {.p = p, .flow = flow, .f = f};
    struct event e;
    bool unsettled;

    observer_request(j->observer, p, flow, &e);
    if (UNLIKELY(!e.h || (!f->dir && !begin_flow(j, &e, f))))
        return;
    a.h = e.h;
    a.as = e.as;
    a.why = e.why;
    if (UNLIKELY(a.as == SEEN_RESTART))
        begin_new_conn(j, p, flow, f);
    else if (UNLIKELY(f->shadow->req.u.pmtu_unknown && a.h->pmtu))
        shadow_learn_pmtu(f->shadow, a.h->pmtu);
    a.usual = a.as == SEEN_NEW && shadow_is_usual(f->shadow, p);
    if (UNLIKELY(!is_unremarkable(j, &a)))
        run_checks(j, &a);
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
