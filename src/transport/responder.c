/* layer 2 (transport): the apply half of a responder: requests executed, answers owed and sent. */
#include "src/transport/responder.h"

#include "src/transport/rsp_check.h"
#include "src/transport/tx_check.h"
#include "src/transport/uc.h"
#include "src/transport/ud.h"

void rsp_init(struct responder *r, const struct rsp_params *p, struct rsp_res *ring, uint32_t n)
{
    memset(r, 0, sizeof *r);
    r->p = *p;
    r->epsn_lo = r->epsn_hi = r->seen_hi = p->psn & PSN_MASK;
    r->resync = p->service == SVC_UC;
    r->counted = p->certain || p->from_start;
    r->avail_sent = UINT32_MAX;
    r->res_off = (int32_t)((const char *)ring - (const char *)r);
    r->res_mask = n - 1;
}

uint32_t rsp_find(const struct responder *r, uint32_t psn)
{
    if (psn_diff(psn, r->res_end) >= 0)
        return r->res_tail;
    for (uint32_t n = r->res_tail; n != r->res_head; n--) {
        const struct rsp_res *res = rsp_res(r, n - 1);
        if (psn_in(psn, res->psn, res->span))
            return n - 1;
    }
    return r->res_tail;
}

static bool is_due(const struct rsp_res *res)
{
    return res->next != res->end;
}

uint32_t rsp_pending(const struct responder *r)
{
    uint32_t n = 0;

    for (uint32_t i = r->res_next; i != r->res_tail; i++)
        n += is_due(rsp_res(r, i)) && !rsp_res(r, i)->replay;
    return n;
}

/* res_next is the oldest resource with an answer due. */
static void find_next_due(struct responder *r)
{
    while (r->res_next != r->res_tail && !is_due(rsp_res(r, r->res_next)))
        r->res_next++;
}

/* --- Requests --------------------------------------------------------------------------------- */

/* Answer `res` from its PSN number `from` on, `len` bytes (READ). */
static void answer_set(const struct responder *r, struct rsp_res *res, uint32_t from, uint32_t len)
{
    uint32_t n = res->opcode == OP_READ_REQUEST ? psn_span(len, r->p.pmtu) : 1;

    res->from = res->next = from;
    res->end = from + n;
    res->tail = len - (n - 1) * r->p.pmtu;
}

static void remember(struct responder *r, const struct pkt *p, struct effects *e)
{
    struct rsp_res *res = rsp_res(r, r->res_tail);
    bool read = p->op->flags & OPF_READ_REQ, atomic = p->op->flags & OPF_ATOMIC_REQ;
    int32_t behind;

    if (r->res_tail - r->res_head > r->res_mask) {
        if (r->res_next == r->res_head)
            r->res_next++;
        r->res_head++;
        find_next_due(r);
    }
    res->va = atomic ? p->atomiceth.va : p->reth.va;
    res->rkey = atomic ? p->atomiceth.rkey : p->reth.rkey;
    res->len = read ? p->reth.dmalen : atomic ? 8 : 0; /* ATOMIC WRITE and FLUSH: a READ response without data */
    res->psn = p->bth.psn;
    res->span = request_span(p, r->p.pmtu);
    res->opcode = p->bth.opcode & 31;
    res->executed = res->replay = false;
    res->doubtful = false;
    res->rereads = res->more = 0;
    answer_set(r, res, 0, res->len);
    behind = psn_diff(psn_add(res->psn, res->span), r->res_end);
    if (r->res_tail == 0 || behind > 0 || behind < -(1 << 20))
        r->res_end = psn_add(res->psn, res->span);
    e->msg = r->res_tail++;
    e->flags |= EFF_RESPOND;
    if (!read)
        e->flags |= EFF_ATOMIC;
}

static void execute_send(struct responder *r, const struct pkt *p, struct effects *e)
{
    if (p->op->flags & OPF_START) {
        r->offset = 0;
        if (!r->recv_taken)
            e->flags |= EFF_RECV_START;
        r->recv_taken = true;
    }
    e->offset = r->offset;
    e->len = p->payload_len;
    e->flags |= EFF_RECV_DATA;
    r->offset += p->payload_len;
    r->open = p->op->flags & OPF_END ? OPEN_NONE : OPEN_SEND;
    if (p->op->flags & OPF_END) {
        e->flags |= EFF_RECV_DONE | (p->op->ext & H_IETH ? EFF_INVALIDATE : 0);
        r->recv_taken = false;
    }
}

static void execute_write(struct responder *r, const struct pkt *p, struct effects *e)
{
    if (p->op->flags & OPF_START) {
        r->offset = 0;
        r->va = p->reth.va;
        r->rkey = p->reth.rkey;
        r->left = p->reth.dmalen;
    }
    e->flags |= EFF_WRITE;
    e->va = r->va;
    e->rkey = r->rkey;
    e->len = p->payload_len;
    e->offset = r->offset;
    r->va += p->payload_len;
    r->left -= p->payload_len;
    r->offset += p->payload_len;
    r->open = p->op->flags & OPF_END ? OPEN_NONE : OPEN_WRITE;
    if (p->op->ext & H_IMMDT) {
        e->flags |= EFF_RECV_DONE | (r->recv_taken ? 0 : EFF_RECV_START);
        r->recv_taken = false;
    }
}

void rsp_execute(struct responder *r, const struct pkt *p, struct effects *e)
{
    uint32_t flags = p->op->flags;

    if (flags & OPF_SEND)
        execute_send(r, p, e);
    else if (flags & OPF_WRITE)
        execute_write(r, p, e);
    else
        remember(r, p, e);
    r->started = true;
    r->last_is_res = !(flags & (OPF_SEND | OPF_WRITE));
    if (flags & OPF_END) {
        e->flags |= EFF_MESSAGE;
        r->msn_hi = psn_add(r->msn_hi, 1);
        if (r->p.certain)
            r->msn_lo = r->msn_hi;
    }
}

static void owe_nak(struct responder *r, uint8_t syndrome, struct effects *e)
{
    r->nak_owed = true;
    r->nak_syndrome = syndrome;
    r->nak_psn = r->epsn_hi;
    r->hush = true;
    r->rnr_given = aeth_type(syndrome) == AETH_RNR;
    e->flags |= EFF_RESPOND;
}

static void refuse(struct responder *r, struct effects *e, uint8_t code, enum wc_status status)
{
    owe_nak(r, SYNDROME_NAK(code), e);
    r->dead = true;
    e->flags |= EFF_ERROR | (r->recv_taken ? EFF_RECV_FAIL : 0);
    e->status = (uint8_t)status;
}

/* A SEND that begins and is too long for the receive that it would take: that receive fails. */
static void waste_receive(const struct responder *r, const struct rsp_env *env, const struct pkt *p, struct effects *e)
{
    if (env && env->rq_avail && !r->recv_taken && (p->op->flags & OPF_SEND) && (p->op->flags & OPF_START) &&
        p->payload_len > env->rq_len)
        e->flags |= EFF_RECV_START | EFF_RECV_FAIL;
}

/* The expected request is here, up to PSN `behind`: what was wrong about its PSN is over. */
static void accept(struct responder *r, const struct pkt *p, uint32_t behind, struct effects *e)
{
    r->hush = r->rnr_given = false;
    r->nak_owed = false;
    rsp_execute(r, p, e);
    r->epsn_hi = behind;
    if (r->p.certain)
        r->epsn_lo = r->epsn_hi;
    r->unacked++;
    if (p->bth.ackreq && p->op->flags & (OPF_SEND | OPF_WRITE)) {
        r->ack_owed = true;
        e->flags |= EFF_RESPOND;
    }
}

/* A validator saw the expected SEND or WRITE pass by. Of memory and receives it knows nothing: it only counts. */
static void pass_by(struct responder *r, const struct pkt *p, uint32_t behind)
{
    r->started = true;
    r->msn_hi = psn_add(r->msn_hi, !!(p->op->flags & OPF_END));
    r->epsn_hi = behind;
}

/* Answers of READs and atomics behind number `n` that had begun start again: for a validator, they may. In its ring one
 * that was seen late stands behind those of later PSNs. */
static void restart_behind(struct responder *r, uint32_t n)
{
    uint32_t psn = rsp_res(r, n)->psn;

    for (uint32_t i = r->p.certain ? n + 1 : r->res_head; i != r->res_tail; i++) {
        struct rsp_res *later = rsp_res(r, i);
        if (psn_diff(later->psn, psn) <= 0)
            continue;
        if (!r->p.certain)
            later->more += later->more < UINT8_MAX;
        else if (is_due(later))
            later->next = later->from;
    }
}

/* A READ or atomic again. Answers of later ones that had begun start again behind it: the requester may have gone back
 * (C9-110). */
static void replay(struct responder *r, const struct pkt *p, struct effects *e)
{
    uint32_t n = rsp_find(r, p->bth.psn);
    struct rsp_res *res = rsp_res(r, n);
    uint32_t under_way = !r->p.certain && is_due(res) ? res->next : UINT32_MAX;

    if (res->opcode == OP_READ_REQUEST) {
        uint32_t from = res->from, end = res->end;
        answer_set(r, res, (p->bth.psn - res->psn) & PSN_MASK, p->reth.dmalen);
        res->rereads += (res->from != from || res->end != end) && res->rereads < UINT8_MAX;
    } else {
        answer_set(r, res, 0, res->len);
    }
    res->replay = true;
    res->more += !r->p.certain && res->more < UINT8_MAX;
    if (under_way < res->end)
        res->next = under_way;
    restart_behind(r, n);
    if ((int32_t)(n - r->res_next) < 0)
        r->res_next = n;
    e->msg = n;
    e->flags |= EFF_DUPLICATE | EFF_RESPOND;
}

static void repeat(struct responder *r, const struct pkt *p, struct effects *e)
{
    if (!(p->op->flags & (OPF_SEND | OPF_WRITE))) {
        replay(r, p, e);
        return;
    }
    e->flags |= EFF_DUPLICATE;
    e->reason = WHY_STALE;
    if (p->bth.ackreq || r->p.rxe) {
        r->ack_owed = true;
        e->flags |= EFF_RESPOND;
    }
}

/* What lies between may have arrived without being seen, or may be seen late: the READ or atomic may be answered. */
static void remember_ahead(struct responder *r, const struct pkt *p, struct effects *e)
{
    uint32_t n;

    if (p->op->flags & (OPF_SEND | OPF_WRITE))
        return;
    n = rsp_find(r, p->bth.psn);
    if (n == r->res_tail)
        remember(r, p, e);
    else if (rsp_res(r, n)->opcode == (p->bth.opcode & 31))
        replay(r, p, e);
}

static void drop(struct responder *r, const struct pkt *p, const struct verdict *v, struct effects *e)
{
    e->flags |= EFF_DROP;
    if (r->dead)
        e->reason = WHY_STATE;
    else if (v->rule == RULE_FMT_03 || v->rule == RULE_SVC_02)
        e->reason = WHY_INVALID;
    else
        e->reason = psn_diff(p->bth.psn, r->epsn_hi) > 0    ? WHY_SILENT
                    : p->op->flags & (OPF_SEND | OPF_WRITE) ? WHY_STALE
                                                            : WHY_NO_RESOURCE;
}

/* What rsp_rx_check() would let pass: all that a validator can say of the expected request is that it is of this
 * service. */
static bool is_expected(const struct responder *r, const struct pkt *p)
{
    return !r->p.certain && !r->dead && p->bth.psn == r->epsn_hi;
}

/* By pointer: a result of this size is returned slowly. */
static void rc_rx(struct responder *r, const struct rsp_env *env, const struct pkt *p, ns_t now, struct effects *e)
{
    struct verdict v;
    uint32_t behind;

    if (UNLIKELY(r->told && p->bth.psn == r->told_psn))
        r->told = false;
    behind = psn_add(p->bth.psn, p->op->name ? request_span(p, r->p.pmtu) : 1);
    if (LIKELY(is_expected(r, p) && rsp_right_service(r, p))) {
        if (UNLIKELY(psn_diff(behind, r->seen_hi) > 0 || psn_diff(r->seen_hi, r->epsn_hi) < 0))
            r->seen_hi = behind;
        if (LIKELY(p->op->flags & (OPF_SEND | OPF_WRITE)))
            pass_by(r, p, behind);
        else
            accept(r, p, behind, e);
        return;
    }
    v = rsp_rx_check(r, env, p, now);
    if (!r->p.certain && psn_diff(p->bth.psn, r->epsn_hi) < 0)
        rsp_may_expect(r, behind); /* a READ whose length was forgotten: all of its PSNs are taken at once */
    if (psn_diff(behind, r->epsn_hi) > 0 && (psn_diff(behind, r->seen_hi) > 0 || psn_diff(r->seen_hi, r->epsn_hi) < 0))
        r->seen_hi = behind;
    switch (v.answer) {
    case ANS_EXECUTE:
        accept(r, p, behind, e);
        break;
    case ANS_DUPLICATE:
        repeat(r, p, e);
        break;
    case ANS_NAK_SEQ:
        e->reason = WHY_GAP;
        e->flags |= EFF_DROP;
        if (r->p.certain && !r->nak_owed) /* an RNR NAK that is about to leave goes first */
            owe_nak(r, SYNDROME_NAK(NAK_PSN_SEQ), e);
        if (!r->p.certain && !r->p.all_seen) {
            remember_ahead(r, p, e);
            r->counted = false;
        }
        break;
    case ANS_RNR:
        e->reason = WHY_NOT_READY;
        e->flags |= EFF_DROP;
        owe_nak(r, SYNDROME_RNR(r->p.rnr_timer), e);
        break;
    case ANS_NAK_INVALID:
        e->reason = WHY_INVALID;
        refuse(r, e, NAK_INVALID_REQUEST, WC_LOC_LEN_ERR);
        waste_receive(r, env, p, e);
        break;
    case ANS_NAK_ACCESS:
        e->reason = WHY_ACCESS;
        refuse(r, e, NAK_REMOTE_ACCESS, WC_LOC_ACCESS_ERR);
        break;
    case ANS_NAK_OPERATIONAL:
        e->reason = WHY_INVALID;
        refuse(r, e, NAK_REMOTE_OPERATIONAL, WC_LOC_LEN_ERR);
        waste_receive(r, env, p, e);
        break;
    default:
        drop(r, p, &v, e);
        if (!r->p.certain && !r->p.all_seen && e->reason == WHY_NO_RESOURCE)
            remember_ahead(r, p, e);
    }
}

struct effects rsp_rx(struct responder *r, const struct rsp_env *env, const struct pkt *p, ns_t now)
{
    struct effects e = {0};

    if (UNLIKELY(r->p.service == SVC_UC))
        e = uc_rx(r, env, p);
    else if (UNLIKELY(r->p.service == SVC_UD))
        e = ud_rx(r, env, p);
    else
        rc_rx(r, env, p, now, &e);
    return e;
}

void rsp_atomic_done(struct responder *r, uint32_t res, uint64_t orig)
{
    rsp_res(r, res)->orig = orig;
    rsp_res(r, res)->executed = true;
}

void rsp_undo(struct responder *r, const struct effects *e)
{
    r->epsn_lo = r->epsn_hi = psn_prev(r->epsn_hi);
    if (e->flags & EFF_MESSAGE)
        r->msn_lo = r->msn_hi = psn_prev(r->msn_hi);
    r->open = OPEN_NONE;
}

void rsp_fail(struct responder *r, uint8_t syndrome)
{
    r->nak_owed = true;
    r->nak_syndrome = syndrome;
    r->nak_psn = r->epsn_hi;
    r->hush = r->dead = true;
    if (r->res_next != r->res_tail) {
        r->nak_psn = psn_add(rsp_res(r, r->res_next)->psn, rsp_res(r, r->res_next)->next);
        r->res_next = r->res_tail;
    }
}

/* --- Responses -------------------------------------------------------------------------------- */

static void owed_res(const struct responder *r, struct rsp_owed *o)
{
    const struct rsp_res *res = rsp_res(r, r->res_next);
    bool first = res->next == res->from && !(r->p.rxe && res->from), last = res->next + 1 == res->end;

    o->res = r->res_next;
    o->psn = psn_add(res->psn, res->next);
    o->syndrome = SYNDROME_ACK(AETH_CREDIT_INVALID);
    o->rkey = res->rkey;
    if (res->opcode != OP_READ_REQUEST) {
        o->kind = OWED_ATOMIC;
        o->opcode = OP_ATOMIC_ACKNOWLEDGE;
        o->orig = res->orig;
        return;
    }
    o->kind = OWED_READ;
    o->opcode = first && last ? OP_READ_RESP_ONLY
                : first       ? OP_READ_RESP_FIRST
                : last        ? OP_READ_RESP_LAST
                              : OP_READ_RESP_MIDDLE;
    o->va = res->va + (uint64_t)res->next * r->p.pmtu;
    o->len = last ? res->tail : r->p.pmtu;
}

struct rsp_owed rsp_owed(const struct responder *r, bool ack)
{
    struct rsp_owed o = {0};

    o.msn = r->msn_lo;
    if (r->res_next != r->res_tail) {
        owed_res(r, &o);
    } else if (r->nak_owed) {
        o.kind = OWED_NAK;
        o.opcode = OP_ACKNOWLEDGE;
        o.syndrome = r->nak_syndrome;
        o.psn = r->nak_psn;
    } else if (ack && r->ack_owed && !r->dead) {
        o.kind = OWED_ACK;
        o.opcode = OP_ACKNOWLEDGE;
        o.syndrome = SYNDROME_ACK(AETH_CREDIT_INVALID);
        o.psn = psn_prev(r->epsn_lo);
    }
    return o;
}

/* A READ response or ATOMIC ACK left. */
static void sent_answer(struct responder *r, const struct pkt *p)
{
    uint32_t n = r->res_next, behind, off;
    struct rsp_res *res = rsp_res(r, n);

    if (n == r->res_tail || p->bth.psn != psn_add(res->psn, res->next)) {
        n = rsp_find(r, p->bth.psn);
        if (n == r->res_tail)
            return;
        res = rsp_res(r, n);
    }
    if (!r->p.certain)
        for (; r->res_next != r->res_tail && (int32_t)(r->res_next - n) < 0; r->res_next++)
            rsp_res(r, r->res_next)->next = rsp_res(r, r->res_next)->end;
    off = (p->bth.psn - res->psn) & PSN_MASK;
    if (off == res->from && off != res->next && res->more && !res->doubtful)
        res->more--;
    res->doubtful = false;
    res->next = off + 1;
    if (res->next > res->end || p->op->flags & OPF_END)
        res->next = res->end;
    if (p->op->flags & OPF_ATOMIC_ACK && !res->executed && p->have & H_ATOMICACKETH) {
        res->executed = true;
        res->orig = p->atomicacketh.orig;
    }
    find_next_due(r);
    behind = psn_add(res->psn, res->span);
    if (!is_due(res) && behind == r->epsn_hi) {
        r->ack_owed = false;
        r->unacked = 0;
    }
    if (!r->p.certain && psn_diff(behind, r->epsn_lo) > 0) {
        r->epsn_lo = behind;
        rsp_may_expect(r, behind);
    }
}

/* It may have been dropped when it came: no answer is due, but one may come. */
static void doubt_answer(struct rsp_res *res)
{
    res->doubtful = true;
    res->next = res->end;
}

/* A validator learns from a NAK what arrived: everything before its PSN. */
static void proved_by_nak(struct responder *r, const struct pkt *p)
{
    unsigned type = aeth_type(p->aeth.syndrome);

    r->told = type == AETH_RNR || aeth_value(p->aeth.syndrome) == NAK_PSN_SEQ;
    r->told_rnr = type == AETH_RNR;
    r->told_psn = p->bth.psn;
    if (type == AETH_NAK && !r->told && !r->refused) {
        r->refused = true;
        r->dead_psn = p->bth.psn;
    }
    if (!r->p.all_seen) {
        if (psn_diff(p->bth.psn, r->epsn_lo) > 0)
            r->epsn_lo = p->bth.psn;
        return;
    }
    /* What is before it was executed. What is behind was not when the NAK was made; if it was seen by now, it may have
     * been since. */
    if (psn_diff(p->bth.psn, r->epsn_lo) > 0)
        r->epsn_lo = p->bth.psn;
    rsp_may_expect(r, p->bth.psn);
    for (uint32_t n = r->res_tail; n != r->res_head && psn_diff(rsp_res(r, n - 1)->psn, p->bth.psn) >= 0; n--)
        doubt_answer(rsp_res(r, n - 1));
    find_next_due(r);
}

static void sent_ack(struct responder *r, const struct pkt *p)
{
    uint32_t behind = psn_add(p->bth.psn, 1);

    if (aeth_type(p->aeth.syndrome) == AETH_ACK) {
        r->ack_owed = false;
        if (r->p.certain || r->p.all_seen || !r->acked || psn_diff(p->bth.psn, r->ack_psn) >= 0) {
            r->ack_psn = p->bth.psn;
            r->ack_msn = p->aeth.msn;
        }
        r->acked = true;
        if (!r->p.certain) {
            if (psn_diff(behind, r->epsn_lo) > 0)
                r->epsn_lo = behind;
            rsp_may_expect(r, behind);
        }
    } else {
        r->nak_owed = false;
        r->ack_owed = false;
        if (!r->p.certain)
            proved_by_nak(r, p);
    }
    r->unacked = 0;
}

struct effects rsp_tx(struct responder *r, const struct pkt *p, ns_t now)
{
    struct effects e = {0};

    (void)now;
    if (p->have & H_AETH) {
        if (!r->p.certain && psn_diff(p->aeth.msn, r->msn_lo) > 0)
            r->msn_lo = p->aeth.msn;
        if (!r->p.certain && psn_diff(r->msn_lo, r->msn_hi) > 0)
            r->msn_hi = r->msn_lo;
        r->msn_sent = p->aeth.msn;
    }
    if (p->op->flags & OPF_ACK)
        sent_ack(r, p);
    else if (p->op->flags & (OPF_READ_RESP | OPF_ATOMIC_ACK))
        sent_answer(r, p);
    return e;
}

void rsp_may_expect(struct responder *r, uint32_t psn)
{
    if (LIKELY(psn_diff(psn, r->epsn_hi) <= 0))
        return;
    r->epsn_hi = psn;
    r->counted = false;
}

void rsp_settle(struct responder *r)
{
    for (; r->res_next != r->res_tail; r->res_next++)
        if (is_due(rsp_res(r, r->res_next)))
            doubt_answer(rsp_res(r, r->res_next));
}

void rsp_learn_pmtu(struct responder *r, uint16_t pmtu)
{
    r->p.guess = false;
    r->p.pmtu = pmtu;
    for (uint32_t n = r->res_head; n != r->res_tail; n++) {
        struct rsp_res *res = rsp_res(r, n);
        uint32_t end;
        if (res->opcode != OP_READ_REQUEST)
            continue;
        res->span = psn_span(res->len, pmtu);
        if (is_due(res))
            answer_set(r, res, 0, res->len);
        end = psn_add(res->psn, res->span);
        if (psn_in(r->epsn_hi, res->psn, res->span))
            r->epsn_hi = end;
        if (psn_diff(end, r->seen_hi) > 0)
            r->seen_hi = end;
        if (psn_diff(end, r->res_end) > 0)
            r->res_end = end;
    }
}

uint8_t credit_code(uint32_t n)
{
    uint8_t code = 0;

    while (code < 30 && aeth_credits(code + 1u) <= n)
        code++;
    return code;
}
