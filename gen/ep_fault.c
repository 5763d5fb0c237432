/* layer 3 (gen): committing faults, each once for every queue pair, and judging what is sent. */
#include "gen/ep_impl.h"

static void commit(struct ep_qp *q, unsigned i)
{
    q->faults_done |= UINT64_C(1) << i;
    q->st.faults++;
    q->ep->st.faults++;
}

bool ep_fault_choice(struct ep_qp *q, enum rule rule)
{
    struct endpoint *ep = q->ep;

    if (LIKELY(!ep_faulty(ep, rule)))
        return false;
    for (unsigned i = 0; i < ep->n_fault; i++)
        if (ep->fault[i]->rule == rule && ep->fault[i]->hook == FAULT_CHOICE && !(q->faults_done >> i & 1)) {
            commit(q, i);
            return true;
        }
    return false;
}

bool ep_one_more_try(struct ep_qp *q, const struct effects *e)
{
    struct requester *r = &q->qp.req;
    enum rule rule = e->status == WC_RNR_RETRY_EXC_ERR ? RULE_RTX_08 : e->status == WC_RETRY_EXC_ERR ? RULE_RTX_04 : RULE_NONE;

    if (LIKELY(!rule || !ep_fault_choice(q, rule)))
        return false;
    r->dead = false;
    r->retry_left = r->rnr_left = 1;
    if (r->timer == NS_NEVER)
        r->timer = INT64_MIN / 2; /* it had expired */
    return true;
}

enum rule ep_fault_packet(struct ep_qp *q, enum fault_hook hook, struct fault_ctx *c)
{
    struct endpoint *ep = q->ep;

    if (q->spurious)
        return RULE_NONE;
    for (unsigned i = 0; i < ep->n_fault; i++) {
        if (ep->fault[i]->hook != hook || q->faults_done >> i & 1 || !ep->fault[i]->change(c))
            continue;
        commit(q, i);
        return ep->fault[i]->rule;
    }
    return RULE_NONE;
}

void ep_self_check(struct ep_qp *q, struct verdict v)
{
    struct endpoint *ep = q->ep;

    if (LIKELY(verdict_ok(v)))
        return;
    if (!ep->refused.rule)
        ep->refused = v;
    if (ep->n_fault && q->st.faults)
        return;
    q->st.own_check_failures++;
    ep->st.own_check_failures++;
}
