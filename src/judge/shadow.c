/* layer 3 (judge): replicas of a requester and of a responder. */
#include "src/judge/shadow.h"

#include "dissect/pkt.h"

#define PMTU_MAX 4096

void shadow_begin(struct shadow *r, const struct shadow_params *k)
{
    const struct req_params q = {
        .service = k->service,
        .timeout = k->timeout,
        .retry_cnt = k->retry_cnt,
        .rnr_retry = k->rnr_retry,
        .max_rd = k->depth,
        .credits = true,
        .rxe = k->rxe,
        .pmtu = k->pmtu ? k->pmtu : PMTU_MAX,
        .psn = k->psn,
    };
    const struct req_unknown u = {.complete = k->complete, .from_start = k->from_start, .pmtu_unknown = !k->pmtu};
    const struct rsp_params s = {
        .service = k->service,
        .max_rd = k->depth,
        .credits = true,
        .rxe = k->rxe,
        .pmtu = q.pmtu,
        .psn = k->psn,
    };
    const struct rsp_unknown w = {.from_start = k->from_start, .pmtu_unknown = !k->pmtu};

    r->thorough = k->thorough;
    r->start = k->psn;
    shadow_req_init(&r->req, &q, &u, r->msgs, SHADOW_MSGS);
    shadow_rsp_init(&r->rsp, &s, &w, r->res, SHADOW_RES);
    memset(&r->msgs[SHADOW_MSGS - 1], 0, sizeof r->msgs[0]); /* the entry before the first message: no open message */
}

unsigned shadow_check_request(const struct shadow *r, const struct pkt *p, struct verdict *out)
{
    return req_tx_check_all(&r->req.r, &r->req.u, p, p->frame->ts, out, SHADOW_FOUND);
}

/* A request was captured after requests of later PSNs. The messages were counted without it until now, and responses
 * may be captured out of order, too. */
static void take_late(struct shadow *r, const struct pkt *p)
{
    r->req.u.counted = false;
    r->rsp.u.all_seen = false;
    if (p->bth.psn != r->rsp.r.epsn_hi)
        r->rsp.u.counted = false;
}

/* Apply a request to the responder's replica: it may have arrived. */
static inline void arrive(struct shadow *r, const struct pkt *p, enum seen_as as, const struct req_dir *h)
{
    if (UNLIKELY(r->rsp.u.pmtu_unknown && as == SEEN_NEW && psn_diff(p->bth.psn, r->rsp.r.epsn_hi) > 0))
        r->rsp.r.epsn_hi = p->bth.psn; /* the READ before it may take all PSNs up to this one */
    shadow_rsp_rx(&r->rsp, p, p->frame->ts);
    if (UNLIKELY(!r->rsp.u.all_seen && psn_diff(h->contig, r->rsp.r.epsn_hi) > 0))
        shadow_rsp_may_expect(&r->rsp, h->contig);
}

void shadow_request(struct shadow *r, const struct pkt *p, enum seen_as as, const struct req_dir *h, bool usual)
{
    if (UNLIKELY(as == SEEN_LATE))
        take_late(r, p);
    /* SEEN_LATE while a retransmission is due: it was lost before the tap and is retransmitted, not reordered */
    if (LIKELY(usual))
        shadow_req_tx_usual(&r->req, p, p->frame->ts);
    else if ((as != SEEN_COPY && as != SEEN_LATE) || (as == SEEN_LATE && shadow_req_is_due_again(&r->req, p->bth.psn)))
        shadow_req_tx(&r->req, p, p->frame->ts);
    arrive(r, p, as, h);
}

unsigned shadow_check_response(struct shadow *r, const struct pkt *p, bool at_responder, struct verdict *out)
{
    unsigned n;

    r->rsp.u.all_seen = at_responder;
    n = LIKELY(shadow_rsp_tx_is_usual(&r->rsp, p) && !r->thorough)
            ? 0
            : rsp_tx_check_all(&r->rsp.r, &r->rsp.u, p, p->frame->ts, out, SHADOW_FOUND - 1);
    out[n] = req_rx_check_msn(&r->req.r, &r->req.u, p);
    return n + !verdict_ok(out[n]);
}

void shadow_response(struct shadow *r, const struct pkt *p)
{
    shadow_rsp_tx(&r->rsp, p);
    shadow_req_rx(&r->req, p, p->frame->ts);
}
