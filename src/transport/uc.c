/* layer 2 (transport): unreliable connections: no responses, no retransmissions; a gap discards the message (IBTA
 * volume 1, 9.8.2). */
#include "src/transport/transport_impl.h"

static const tx_rule uc_rules[] = {breaks_service, breaks_count,     breaks_order,    breaks_length,
                                   breaks_reth,    breaks_tx_format, breaks_solicited};

static unsigned tx_check(struct tx_view *t, struct verdict *out, unsigned max)
{
    const struct requester *r = t->r;

    if (r->msg_tail != r->msg_head && req_msg(r, r->msg_tail - 1)->open)
        t->m = req_msg(r, r->msg_tail - 1);
    return tx_run(uc_rules, ARRAY_LEN(uc_rules), t, out, max);
}

/* True if a gap before `p` discarded the message in progress. */
static bool lost_its_place(const struct responder *r, const struct pkt *p)
{
    return p->bth.psn != r->epsn_hi || r->resync;
}

static struct verdict rx_check(const struct responder *r, const struct rsp_env *env, const struct pkt *p)
{
    struct verdict v = {0};

    if (rsp_wrong_service(r, p, &v))
        return v;
    if (lost_its_place(r, p) && !(p->op->flags & OPF_START)) {
        v.answer = ANS_DROP;
        return v;
    }
    if (r->open != OPEN_NONE && p->op->flags & OPF_START) {
        struct responder fresh = *r; /* without its ring, which no predicate for SEND and WRITE reads */
        fresh.open = OPEN_NONE;
        fresh.offset = 0;
        rsp_validate(&fresh, env, p, &v);
    } else {
        rsp_validate(r, env, p, &v);
    }
    if (v.answer != ANS_EXECUTE)
        v.answer = ANS_DROP;
    return v;
}

static struct effects rx(struct responder *r, const struct rsp_env *env, const struct pkt *p)
{
    struct verdict v = rx_check(r, env, p);
    struct effects e = {0};
    bool starts = p->op->flags & OPF_START, ours = rsp_right_service(r, p);

    if (!ours) {
        e.flags = EFF_DROP;
        e.reason = WHY_INVALID;
        return e;
    }
    if ((lost_its_place(r, p) || starts) && r->open != OPEN_NONE)
        r->open = OPEN_NONE; /* its receive, if any, is used by the next message */
    r->epsn_lo = r->epsn_hi = psn_add(p->bth.psn, 1);
    if (v.answer != ANS_EXECUTE) {
        r->open = OPEN_NONE;
        r->resync = true;
        e.flags = EFF_DROP;
        e.reason = v.rule ? WHY_INVALID : !starts ? WHY_GAP : WHY_NOT_READY;
        if (v.rule == RULE_NONE && env && env->rq_avail)
            e.reason = WHY_ACCESS;
        return e;
    }
    r->resync = false;
    rsp_execute(r, p, &e);
    return e;
}

const struct unreliable_ops uc_ops = {tx_check, rx_check, rx};
