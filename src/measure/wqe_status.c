/* layer 3 (measure): work requests: their status when they are over. */
#include "dissect/ib/opcode.h"
#include "src/conn/retries.h"
#include "src/measure/wqe_impl.h"

/* True if `w` was sent once, its ACK timeout passed without a response, and the retry count is 0. */
static bool timed_out(const struct wqe_ring *r, const struct wqe_env *e, const struct wqe *w, ns_t now)
{
    const struct req_dir *h = e->dir;
    ns_t since = h->have_una && h->una_ts > h->last_ts ? h->una_ts : h->last_ts;
    bool closed = r->closed > since;

    return w->ended && !w->again && retries_timed_out(e->params, (closed ? r->closed : now) - since, closed) &&
           observer_sees_rdma_responses(e->observer, h->flow);
}

/* True if the requester exhausted its retries. Without an RDMA packet of the responder the capture may lack its RNR
 * NAKs, which also lead to retransmissions and to the error state. */
static bool gave_up(const struct wqe_ring *r, const struct wqe_env *e, ns_t now)
{
    const struct req_dir *h = e->dir;

    if (!h->rsp_packets && !observer_sees_rdma_responses(e->observer, h->flow))
        return false;
    return r->left ? r->gave_up : retries_gave_up(e->observer, h, e->params, r->silence, now);
}

/* Status or reason of `w`, without a response that completed it. */
static void decide_open(struct wqe_ring *r, const struct wqe_env *e, struct wqe *w, enum wqe_reason why, ns_t now)
{
    const struct req_dir *h = e->dir;
    const struct conn_params *c = e->params;
    bool passed = h->have_una && psn_diff(wqe_end(h, w), h->una) <= 0,
         before = psn_diff(wqe_end(h, w), h->back_psn) <= 0;

    w->reason = (uint8_t)(why == WQE_TOO_MANY && !h->rsp_packets ? WQE_NO_ACK : why);
    if (why != WQE_CAPTURE_ENDS)
        return;
    if (wqe_has_answer(w) && passed && w->last <= h->una_ts && !r->left)
        w->reason = WQE_NO_ANSWER;
    else if (h->rnr.have && !h->rnr.resent && wqe_covers(h, w, h->rnr.psn)) {
        w->reason = WQE_RNR_WAIT;
        if (c->have_rnr && c->rnr_retry < RETRIES_MAX && h->rnr.times > c->rnr_retry)
            w->status = WC_RNR_RETRY_EXC_ERR;
    } else if (!before && gave_up(r, e, now))
        w->status = WC_RETRY_EXC_ERR;
    else if (!passed && timed_out(r, e, w, now))
        w->status = WC_RETRY_EXC_ERR;
    else if (!h->rsp_packets)
        w->reason = WQE_NO_ACK;
    else if (r->closed)
        w->reason = WQE_LEFT;
    if (w->status == WQE_STATUS_UNKNOWN)
        return;
    w->reason = WQE_KNOWN;
    r->dead = true;
    r->dead_psn = w->psn;
}

/* True if the requester sent nothing for as long as its latest ACK timeout: with retries left it would have
 * retransmitted. */
static bool fell_silent(const struct wqe_ring *r, const struct req_dir *h, ns_t now)
{
    return r->silence > 0 && (r->closed ? r->closed : now) - h->back_ts >= timer_earliest(r->silence);
}

/* True if the requester sent a new request after the response that completed `w`, or would have completed it. */
static bool went_on(const struct wqe_ring *r, const struct wqe *w)
{
    ns_t done = w->done_frame ? w->done : w->proof;

    return r->fresh > done || (r->fresh == done && r->fresh_frame > (w->done_frame ? w->done_frame : w->proof_frame));
}

/* True if the READ or atomic `w` was answered only after the requester's last known retry, and the requester sent
 * nothing new. */
static bool is_last_try(const struct wqe_ring *r, const struct wqe_env *e, const struct wqe *w)
{
    const struct conn_params *c = e->params;
    bool in_last_go_back = w->again && psn_diff(wqe_end(e->dir, w), r->backs_psn) > 0;

    if (!wqe_has_answer(w) || !c->retry_known || r->backs < c->retry_cnt)
        return false;
    return in_last_go_back && !went_on(r, w);
}

/* True if `w` was answered, but the response may not have reached the requester: it retransmitted up to its last
 * retry. */
static bool is_repeated(const struct wqe_ring *r, const struct wqe_env *e, const struct wqe *w, ns_t now)
{
    const struct req_dir *h = e->dir;
    uint32_t psn = observer_tries(e->observer, h->flow)->psn;

    if (is_last_try(r, e, w) || r->in_vain)
        return true;
    if (!w->again || psn_diff(wqe_end(h, w), psn) <= 0 || !retries_spent(e->observer, h, e->params))
        return false;
    return (r->unheeded && r->unheeded_psn == psn) || (wqe_has_answer(w) && fell_silent(r, h, now));
}

void wqe_decide(struct wqe_ring *r, const struct wqe_env *e, struct wqe *w, enum wqe_reason why, ns_t now)
{
    if (w->refused)
        return;
    if (why == WQE_CAPTURE_ENDS && (w->done_frame || w->proof_frame) && is_repeated(r, e, w, now)) {
        w->done_frame = 0;
        w->reason = r->in_vain && !w->again ? WQE_BEHIND : WQE_REPEATED;
        r->in_vain = true;
        return;
    }
    if (r->stopped && !w->done_frame) {
        w->status = WC_WR_FLUSH_ERR;
    } else if (w->done_frame) {
        w->status = WC_SUCCESS;
    } else if (w->service == SVC_UC) {
        w->reason = WQE_UNRELIABLE;
    } else if (r->dead && psn_diff(w->psn, r->dead_psn) > 0) {
        w->status = WC_WR_FLUSH_ERR;
    } else if (w->proof_frame && (!went_on(r, w) || (r->blocked && (w->again || r->blocked_at > w->proof)))) {
        w->reason = WQE_BEHIND;
    } else if (w->proof_frame) { /* only the capture lacks the earlier response: the requester continued */
        w->done_frame = w->proof_frame;
        w->done = w->proof;
        w->status = WC_SUCCESS;
    } else {
        decide_open(r, e, w, why, now);
        r->blocked = w->missed;
        r->blocked_at = w->last;
    }
}
