/* layer 2 (transport): the check half of a responder: requests received. */
#include "src/transport/transport_impl.h"

/* A request as the predicates see it. */
struct rx_view {
    const struct responder *r;
    const struct rsp_env *env;
    const struct pkt *p;
    uint32_t flags; /* OPF_* */
    uint32_t len;   /* payload bytes */
};

/* A predicate: true if the request fails it; then *v has the rule and the reaction. */
typedef bool (*rx_rule)(const struct rx_view *, struct verdict *v);

static bool refuse(struct verdict *v, enum rsp_answer answer, enum rule rule, const char *about, uint64_t expected,
                   uint64_t seen)
{
    *v = rule ? verdict_fail(rule, about, expected, seen) : verdict_pass();
    v->answer = (uint8_t)answer;
    return true;
}

/* A request that is malformed: NAK, invalid request. */
static bool nak_invalid(struct verdict *v)
{
    v->answer = ANS_NAK_INVALID;
    return true;
}

/* True for a request with a manufacturer's opcode, such as an extended atomic, whose headers are not known here. With
 * the expected PSN, a reliable service responds to it with NAK invalid request. */
static bool is_foreign(const struct responder *r, const struct pkt *p)
{
    return opcode_is_manufacturers(p->bth.opcode) && !is_unreliable(r->p.service) && !r->dead &&
           p->bth.psn == r->epsn_hi;
}

bool rsp_wrong_service(const struct responder *r, const struct pkt *p, struct verdict *v)
{
    if (LIKELY(rsp_right_service(r, p)))
        return false;
    if (is_foreign(r, p))
        return nak_invalid(v);
    wrong_opcode(r->p.service, p, v);
    v->answer = ANS_DROP;
    return true;
}

static bool bad_sequence(const struct rx_view *t, struct verdict *v)
{
    unsigned kind = t->flags & OPF_SEND ? OPEN_SEND : t->flags & OPF_WRITE ? OPEN_WRITE : OPEN_NONE;

    if (t->flags & OPF_START)
        return LIKELY(t->r->open == OPEN_NONE) ? false
                                               : refuse(v, ANS_NAK_INVALID, RULE_SEQ_03, "opcode", 0, t->p->bth.opcode);
    if (LIKELY(t->r->open == kind))
        return false;
    return refuse(v, ANS_NAK_INVALID, t->r->open == OPEN_NONE ? RULE_SEQ_03 : RULE_SEQ_02, "opcode", 0,
                  t->p->bth.opcode);
}

/* Rights that a request needs; ACCESS_*. */
static uint8_t rights_of(const struct rx_view *t)
{
    if (t->flags & (OPF_WRITE | OPF_ATOMIC_WRITE))
        return ACCESS_REMOTE_WRITE;
    if (t->flags & OPF_FLUSH)
        return (t->p->feth.plt & FLUSH_GLOBAL ? ACCESS_FLUSH_GLOBAL : 0) |
               (t->p->feth.plt & FLUSH_PERSISTENT ? ACCESS_FLUSH_PERSISTENT : 0);
    return t->flags & OPF_READ_REQ ? ACCESS_REMOTE_READ : t->flags & OPF_ATOMIC_REQ ? ACCESS_REMOTE_ATOMIC : 0;
}

static bool not_supported(const struct rx_view *t, struct verdict *v)
{
    return rights_of(t) & ~t->r->p.access ? refuse(v, ANS_NAK_INVALID, RULE_NONE, NULL, 0, 0) : false;
}

/* ATOMIC WRITE and FLUSH: at an endpoint they use a responder resource; a validator lets them pass, because not every
 * requester counts them. */
static bool is_place(const struct rx_view *t)
{
    return t->flags & (OPF_ATOMIC_WRITE | OPF_FLUSH);
}

static bool no_resource(const struct rx_view *t, struct verdict *v)
{
    if (UNLIKELY(is_place(t)) && !t->env)
        return false;
    if (t->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ | OPF_ATOMIC_WRITE | OPF_FLUSH)) {
        if (LIKELY(rsp_pending(t->r) < t->r->p.max_rd))
            return false;
        return refuse(v, ANS_NAK_INVALID, RULE_RDA_06, "READs and atomics outstanding", t->r->p.max_rd,
                      rsp_pending(t->r) + 1u);
    }
    if (!t->env || t->r->recv_taken || t->env->rq_avail)
        return false;
    if (t->flags & OPF_SEND || t->p->op->ext & H_IMMDT) /* the NAK code for a wrong XRCETH is unconfirmed */
        return refuse(v, t->env->no_srq ? ANS_NAK_INVALID : ANS_RNR, RULE_NONE, NULL, 0, 0);
    return false;
}

static bool bad_length(const struct rx_view *t, struct verdict *v)
{
    uint32_t pmtu = t->r->p.pmtu, pad = t->p->bth.padcnt;

    if (t->flags & (OPF_FIRST | OPF_MIDDLE) ? t->len != pmtu || pad
                                            : t->len > pmtu || (t->flags & OPF_LAST && t->len == 0))
        return refuse(v, ANS_NAK_INVALID, RULE_SEQ_04, "payload bytes", pmtu, t->len);
    if (UNLIKELY(breaks_pad(t->p, v)))
        return nak_invalid(v);
    if (t->p->op->ext & H_RETH && UNLIKELY(t->p->reth.dmalen > UINT32_C(1) << 31))
        return refuse(v, ANS_NAK_INVALID, RULE_SEQ_07, "RETH length", UINT32_C(1) << 31, t->p->reth.dmalen);
    return UNLIKELY(breaks_alignment(t->p, v)) ? nak_invalid(v) : false;
}

/* An ATOMIC WRITE or FLUSH whose headers request something undefined. */
static bool bad_place(const struct rx_view *t, struct verdict *v)
{
    const struct pkt *p = t->p;
    bool flush = t->flags & OPF_FLUSH, write = t->flags & OPF_ATOMIC_WRITE;

    if (LIKELY(!is_place(t)))
        return false;
    flush = flush && (p->feth.sel > 1 || !p->feth.plt || p->feth.plt & ~(FLUSH_GLOBAL | FLUSH_PERSISTENT));
    write = write && (t->len != 8 || p->reth.dmalen != 8 || p->reth.va % 8);
    return flush || write ? nak_invalid(v) : false;
}

static bool bad_write_length(const struct rx_view *t, struct verdict *v)
{
    uint32_t left;

    if (!(t->flags & OPF_WRITE))
        return false;
    left = t->flags & OPF_START ? t->p->reth.dmalen : t->r->left;
    if (LIKELY(t->flags & OPF_END ? t->len == left : t->len < left))
        return false;
    return refuse(v, ANS_NAK_INVALID, RULE_SEQ_06, "bytes", left, t->len);
}

static bool receive_too_short(const struct rx_view *t, struct verdict *v)
{
    uint64_t need = (uint64_t)(t->flags & OPF_START ? 0 : t->r->offset) + t->len;

    if (!(t->flags & OPF_SEND) || !t->env || LIKELY(need <= t->env->rq_len))
        return false;
    return refuse(v, t->r->p.rxe ? ANS_NAK_OPERATIONAL : ANS_NAK_INVALID, RULE_NONE, NULL, 0, 0);
}

static bool bad_key(const struct rx_view *t, struct verdict *v)
{
    const struct pkt *p = t->p;
    uint8_t access = rights_of(t);
    struct mr_hit hit;

    if (!t->env)
        return false;
    if (UNLIKELY(t->flags & OPF_FLUSH))
        hit = mr_check_flush(t->env->mrs, p->reth.rkey, t->env->pd, t->env->qpn, p->reth.va, p->reth.dmalen,
                             p->feth.sel == 1, access);
    else if (p->op->ext & H_RETH)
        hit = mr_check(t->env->mrs, p->reth.rkey, t->env->pd, t->env->qpn, p->reth.va, p->reth.dmalen, access);
    else if (p->op->ext & H_ATOMICETH)
        hit = mr_check(t->env->mrs, p->atomiceth.rkey, t->env->pd, t->env->qpn, p->atomiceth.va, 8, access);
    else
        return false;
    return LIKELY(hit.status == MR_OK) ? false : refuse(v, ANS_NAK_ACCESS, RULE_NONE, mr_status_str(hit.status), 0, 0);
}

/* Order in which the specification validates a request, after its PSN. */
static const rx_rule validation[] = {bad_sequence, not_supported,    no_resource,       bad_length,
                                     bad_place,    bad_write_length, receive_too_short, bad_key};

void rsp_validate(const struct responder *r, const struct rsp_env *env, const struct pkt *p, struct verdict *v)
{
    struct rx_view t = {.r = r, .env = env, .p = p, .flags = p->op->flags, .len = p->payload_len};

    for (unsigned i = 0; i < ARRAY_LEN(validation); i++)
        if (UNLIKELY(validation[i](&t, v)))
            return;
    v->answer = ANS_EXECUTE;
}

/* READ restart of an executed READ: must be inside the original range, with the address of its PSN. */
static bool bad_reread(const struct responder *r, const struct rsp_res *res, const struct pkt *p, struct verdict *v)
{
    uint64_t skip = (uint64_t)((p->bth.psn - res->psn) & PSN_MASK) * r->p.pmtu;

    if (p->reth.va != res->va + skip)
        return refuse(v, ANS_DROP, RULE_RDA_04, "address", res->va + skip, p->reth.va);
    if (skip + p->reth.dmalen > res->len || p->reth.rkey != res->rkey)
        return refuse(v, ANS_DROP, RULE_RDA_04, "RETH length", res->len - skip, p->reth.dmalen);
    return false;
}

static struct verdict duplicate(const struct responder *r, const struct pkt *p)
{
    struct verdict v = {.answer = ANS_DUPLICATE};
    const struct rsp_res *res;
    uint32_t n;

    if (p->op->flags & (OPF_SEND | OPF_WRITE)) {
        if (!r->started && !r->p.rxe)
            v.answer = ANS_DROP;
        return v;
    }
    n = rsp_find(r, p->bth.psn);
    res = rsp_res(r, n);
    if (n == r->res_tail ||
        !(p->op->flags & OPF_READ_REQ ? (res->opcode == OP_READ_REQUEST) : res->opcode == (p->bth.opcode & 31)))
        v.answer = ANS_DROP;
    else if (p->op->flags & OPF_READ_REQ)
        bad_reread(r, res, p, &v);
    return v;
}

struct verdict rsp_rx_check(const struct responder *r, const struct rsp_env *env, const struct pkt *p, ns_t now)
{
    struct verdict v = {0};
    int32_t ahead;

    (void)now;
    if (is_unreliable(r->p.service))
        return unreliable_ops(r->p.service)->rx_check(r, env, p);
    if (rsp_wrong_service(r, p, &v))
        return v;
    if (UNLIKELY(r->dead)) {
        v.answer = ANS_DROP;
        return v;
    }
    ahead = psn_diff(p->bth.psn, r->epsn_hi);
    if (UNLIKELY(ahead > 0)) {
        v.answer = r->nak_sent && !(r->p.rxe && r->rnr_sent) ? ANS_DROP : ANS_NAK_SEQ;
        return v;
    }
    if (UNLIKELY(ahead < 0))
        return duplicate(r, p);
    rsp_validate(r, env, p, &v);
    return v;
}
