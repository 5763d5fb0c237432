/* layer 3 (measure): work requests: shared by their files. */
#ifndef RDMATRACE_MEASURE_WQE_IMPL_H
#define RDMATRACE_MEASURE_WQE_IMPL_H

#include "src/measure/wqe.h"

/* True if a READ response or ATOMIC ACK completes it, not an ACK. */
static inline bool wqe_has_answer(const struct wqe *w)
{
    return w->op == WQE_READ || w->op == WQE_CMP_SWAP || w->op == WQE_FETCH_ADD || w->op == WQE_FLUSH ||
           w->op == WQE_ATOMIC_WRITE;
}
/* True if `psn` is one of its PSNs. */
static inline bool wqe_covers(const struct req_dir *h, const struct wqe *w, uint32_t psn)
{
    return psn_in(psn, w->psn, (wqe_end(h, w) - w->psn) & PSN_MASK);
}

/* Set the status of `w`, the oldest of its ring, or the reason why the status is unknown. */
void wqe_decide(struct wqe_ring *r, const struct wqe_env *e, struct wqe *w, enum wqe_reason why, ns_t now);

#endif
