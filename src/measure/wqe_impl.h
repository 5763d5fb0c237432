/* layer 3 (measure): work requests: what its parts share. */
#ifndef RDMATRACE_MEASURE_WQE_IMPL_H
#define RDMATRACE_MEASURE_WQE_IMPL_H

#include "src/measure/wqe.h"

/* True if a response of its own completes it, not an ACK. */
static inline bool work_has_answer(const struct work *w)
{
    return w->op == WORK_READ || w->op == WORK_CMP_SWAP || w->op == WORK_FETCH_ADD || w->op == WORK_FLUSH ||
           w->op == WORK_ATOMIC_WRITE;
}
/* True if `psn` is one of its requests or responses. */
static inline bool work_covers(const struct req_dir *h, const struct work *w, uint32_t psn)
{
    return psn_in(psn, w->psn, (work_end(h, w) - w->psn) & PSN_MASK);
}

/* Set the status of `w`, the oldest of its ring, or the reason why the status is unknown. */
void work_decide(struct work_ring *r, const struct work_env *e, struct work *w, enum work_reason why, ns_t now);

#endif
