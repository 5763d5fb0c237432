/* layer 3 (endpoint): committing faults, once per queue pair, and checking the packets sent. */
#include "gen/endpoint/endpoint_impl.h"

void ep_count_fault(struct endpoint *ep, enum rule rule)
{
    ep->st.faults++;
    ep->fault_met[rule / 64] |= UINT64_C(1) << (rule % 64);
}

static void commit(struct ep_qp *q, unsigned i)
{
    q->faults_done |= UINT64_C(1) << i;
    q->st.faults++;
    ep_count_fault(q->ep, q->ep->fault[i]->rule);
}

static bool is_set(const uint64_t *rules, enum rule r)
{
    return rules[r / 64] >> (r % 64) & 1;
}

unsigned ep_faults_idle(const struct endpoint *ep, const struct endpoint *partner, const char *who, report_fn *report,
                        void *user)
{
    struct buf b = {0};
    unsigned n = 0;

    for (enum rule r = RULE_NONE + 1; r < RULE_COUNT; r++) {
        if (!is_set(ep->fault_rules, r) || is_set(ep->fault_met, r) ||
            (partner && rule_table[r].fault == F_CM && is_set(partner->fault_met, r)))
            continue;
        b.len = 0;
        buf_printf(&b, "fault %s, %s, never triggered: %s sent %s", rule_str(r), fault_whose(r), who,
                   count_str(ep->st.tx_packets, "packet"));
        report(user, buf_str(&b));
        n++;
    }
    buf_free(&b);
    return n;
}

bool ep_fault_choice(struct ep_qp *q, enum fault_choice c)
{
    struct endpoint *ep = q->ep;

    if (LIKELY(!ep_may_choose(ep, c)))
        return false;
    for (unsigned i = 0; i < ep->n_fault; i++)
        if (ep->fault[i]->choice == c && !(q->faults_done >> i & 1)) {
            commit(q, i);
            return true;
        }
    return false;
}

#define STRAY_AFTER (2 * NS_PER_MS) /* sooner the NAK may not have taken effect */

static bool is_fatal_nak(unsigned status)
{
    return status == WC_REM_INV_REQ_ERR || status == WC_REM_ACCESS_ERR || status == WC_REM_OP_ERR;
}

void ep_plan_stray(struct ep_qp *q, const struct effects *e, ns_t now)
{
    const struct requester *r = &q->qp.req;
    bool whole = r->msg_tail == r->msg_head || !req_msg(r, r->msg_tail - 1)->open;
    bool fatal = e->flags & EFF_ERROR && is_fatal_nak(e->status) && whole;
    bool rnr = e->flags & EFF_WAIT && r->rnr_wait && r->rnr_until - now > 2 * STRAY_AFTER;

    if (!(fatal && ep_may_choose(q->ep, CHOICE_AFTER_FATAL)) && !(rnr && ep_may_choose(q->ep, CHOICE_IN_RNR_WAIT)))
        return;
    q->stray_at = now + STRAY_AFTER;
    q->stray_psn = r->psn_next;
    ep_timer(q, q->stray_at);
}

bool ep_one_more_try(struct ep_qp *q, const struct effects *e)
{
    struct requester *r = &q->qp.req;
    enum fault_choice c = e->status == WC_RNR_RETRY_EXC_ERR ? CHOICE_EXTRA_RNR_RETRY
                          : e->status == WC_RETRY_EXC_ERR   ? CHOICE_EXTRA_RETRY
                                                            : CHOICE_NONE;

    if (LIKELY(c == CHOICE_NONE || !ep_fault_choice(q, c)))
        return false;
    r->dead = false;
    r->retry_left = r->rnr_left = 1;
    if (r->timer == NS_NEVER)
        r->timer = INT64_MIN / 2; /* the timer had expired: expire again at once */
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
