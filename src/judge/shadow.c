/* layer 3 (judge): replicas of a requester and of a responder. */
#include "src/judge/shadow.h"

#define PMTU_MAX 4096

void replay_begin(struct replay *r, const struct replay_params *k)
{
    const struct req_params q = {
        .service = k->service,
        .timeout = k->timeout,
        .retry_cnt = k->retry_cnt,
        .rnr_retry = k->rnr_retry,
        .max_rd = k->depth,
        .credits = true,
        .rxe = k->rxe,
        .complete = k->complete,
        .from_start = k->from_start,
        .guess = !k->pmtu,
        .pmtu = k->pmtu ? k->pmtu : PMTU_MAX,
        .psn = k->psn,
    };
    const struct rsp_params s = {
        .service = k->service,
        .max_rd = k->depth,
        .credits = true,
        .rxe = k->rxe,
        .from_start = k->from_start,
        .guess = q.guess,
        .pmtu = q.pmtu,
        .psn = k->psn,
    };

    r->thorough = k->thorough;
    r->start = k->psn;
    req_init(&r->req, &q, r->msgs, REPLAY_MSGS);
    rsp_init(&r->rsp, &s, r->res, REPLAY_RES);
    memset(&r->msgs[REPLAY_MSGS - 1], 0, sizeof r->msgs[0]); /* stands before the first message */
}

void replay_learn_pmtu(struct replay *r, uint16_t pmtu)
{
    req_learn_pmtu(&r->req, pmtu);
    rsp_learn_pmtu(&r->rsp, pmtu);
}

unsigned replay_check_request(const struct replay *r, const struct pkt *p, struct verdict *out)
{
    return req_tx_check_all(&r->req, p, p->frame->ts, out, REPLAY_FOUND);
}

/* Whether the requester is about to send `p` again: not seen before, it is no packet overtaken, but one lost on the way
 * to the tap. */
static bool is_due_again(const struct requester *q, const struct pkt *p)
{
    return (q->alt && psn_diff(p->bth.psn, q->alt_low) >= 0 && psn_diff(p->bth.psn, q->una_hi) <= 0) ||
           (req_going_back(q) && p->bth.psn == q->psn_tx);
}

/* A request is first seen behind later ones, maybe in a place that a READ of unknown length was thought to fill: as
 * long as it was missed, no count was right, and the responder's packets do not come as they left. */
static void take_late(struct replay *r, const struct pkt *p)
{
    r->req.counted = false;
    r->rsp.p.all_seen = false;
    if (p->bth.psn != r->rsp.epsn_hi)
        r->rsp.counted = false;
}

/* A request reaches the responder, for all that is known. */
static inline void arrive(struct replay *r, const struct pkt *p, enum seen_as as, const struct req_dir *h)
{
    if (UNLIKELY(r->rsp.p.guess && as == SEEN_NEW && psn_diff(p->bth.psn, r->rsp.epsn_hi) > 0))
        r->rsp.epsn_hi = p->bth.psn; /* the READ before it takes so many PSNs, for all that is known */
    rsp_rx(&r->rsp, NULL, p, p->frame->ts);
    if (UNLIKELY(!r->rsp.p.all_seen && psn_diff(h->contig, r->rsp.epsn_hi) > 0))
        rsp_may_expect(&r->rsp, h->contig);
}

void replay_request(struct replay *r, const struct pkt *p, enum seen_as as, const struct req_dir *h)
{
    if (UNLIKELY(as == SEEN_LATE))
        take_late(r, p);
    if (LIKELY(as != SEEN_COPY && as != SEEN_LATE) || (as == SEEN_LATE && is_due_again(&r->req, p)))
        req_tx(&r->req, p, p->frame->ts);
    arrive(r, p, as, h);
}

void replay_usual_request(struct replay *r, const struct pkt *p, const struct req_dir *h)
{
    req_tx_usual(&r->req, p, p->frame->ts);
    arrive(r, p, SEEN_NEW, h);
}

unsigned replay_check_response(struct replay *r, const struct pkt *p, bool at_responder, struct verdict *out)
{
    unsigned n;

    r->rsp.p.all_seen = at_responder;
    n = LIKELY(rsp_tx_is_usual(&r->rsp, p) && !r->thorough)
            ? 0
            : rsp_tx_check_all(&r->rsp, p, p->frame->ts, out, REPLAY_FOUND - 1);
    out[n] = req_rx_check_msn(&r->req, p);
    return n + !verdict_ok(out[n]);
}

void replay_response(struct replay *r, const struct pkt *p)
{
    rsp_tx(&r->rsp, p, p->frame->ts);
    req_rx(&r->req, p, p->frame->ts);
}

void replay_settle(struct replay *r)
{
    rsp_settle(&r->rsp);
}
