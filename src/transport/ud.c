/* layer 2 (transport): unreliable datagrams. */
#include "src/transport/ud.h"

#include "src/transport/transport_impl.h"

static bool breaks_datagram(const struct tx_view *t, struct verdict *v)
{
    if (UNLIKELY(t->len > t->r->p.pmtu))
        return fail(v, RULE_SVC_01, "payload bytes", t->r->p.pmtu, t->len);
    if (UNLIKELY(!(t->p->have & H_DETH)))
        return fail(v, RULE_SVC_01, "headers", H_DETH, t->p->have & H_EXT);
    if (UNLIKELY(t->p->deth.resv))
        return reserved_is_set("reserved bits", 0, t->p->deth.resv, v);
    return false;
}

/* The GSI has one Q_Key; QP 0 does not exist on RoCE; 0xffffff is for multicast. */
static bool breaks_qkey(const struct tx_view *t, struct verdict *v)
{
    if (UNLIKELY(t->p->bth.dqpn == 1 && t->p->deth.qkey != QKEY_GSI))
        return fail(v, RULE_FMT_16, "Q_Key", QKEY_GSI, t->p->deth.qkey);
    return false;
}

static const tx_rule ud_rules[] = {breaks_service,   breaks_count,     breaks_datagram,
                                   breaks_tx_format, breaks_solicited, breaks_qkey};

static unsigned tx_check(struct tx_view *t, struct verdict *out, unsigned max)
{
    return tx_run(ud_rules, ARRAY_LEN(ud_rules), t, out, max);
}

static struct verdict rx_check(const struct responder *r, const struct rsp_env *env, const struct pkt *p)
{
    struct verdict v = {0};

    if (rsp_wrong_service(r, p, &v))
        return v;
    v.answer = ANS_DROP;
    if (!(p->have & H_DETH) || p->payload_len > r->p.pmtu) {
        v.rule = RULE_SVC_01;
        v.result = V_FAIL;
    } else if (p->deth.qkey != r->p.qkey) {
        v.rule = RULE_FMT_16;
        v.result = V_FAIL;
        v.expected = r->p.qkey;
        v.seen = p->deth.qkey;
        v.about = "Q_Key";
    } else if (!env || (env->rq_avail && env->rq_len >= (uint64_t)p->payload_len + UD_GRH_BYTES)) {
        v.answer = ANS_EXECUTE;
    }
    return v;
}

static struct effects rx(struct responder *r, const struct rsp_env *env, const struct pkt *p)
{
    struct verdict v = rx_check(r, env, p);
    struct effects e = {0};

    if (v.answer != ANS_EXECUTE) {
        e.flags = EFF_DROP;
        e.reason = v.rule == RULE_FMT_16 ? WHY_ACCESS : v.rule ? WHY_INVALID : WHY_NOT_READY;
        return e;
    }
    e.flags = EFF_RECV_START | EFF_RECV_DATA | EFF_RECV_DONE | EFF_MESSAGE;
    e.offset = UD_GRH_BYTES;
    e.len = p->payload_len;
    return e;
}

const struct unreliable_ops ud_ops = {tx_check, rx_check, rx};
