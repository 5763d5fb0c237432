/* layer 2 (transport): the apply half of a responder: requests.
 *
 * One sequence NAK per gap (C9-114), S is a SEND:
 *     requester  S0  S1  S2  S3 ....... S1  S2  S3
 *     responder      lost    NAK 1      S1 is expected: nak_sent ends
 *                            nak_sent; S3 is dropped silently
 * READ restart (C9-110), R4 is a READ whose responses are r4 to r7, R8 one of a single response:
 *     requester  R4  R8 ............... R6  R8          r6 was lost: go-back-N, the rest of R4 is read again
 *     responder         r4 r5 r6 r7 r8      r6 r7 r8    `from` of R4 is 2; the response to R8 starts again after it */
#include "src/transport/responder.h"

#include "src/transport/transport_impl.h"

void rsp_init(struct responder *r, const struct rsp_params *p, struct rsp_res *ring, uint32_t n)
{
    memset(r, 0, sizeof *r);
    r->p = *p;
    r->epsn_lo = r->epsn_hi = r->seen_hi = p->psn & PSN_MASK;
    r->resync = p->service == SVC_UC;
    r->avail_sent = UINT32_MAX;
    r->res_off = (int32_t)((const char *)ring - (const char *)r);
    r->res_mask = n - 1;
}

/* --- Requests --------------------------------------------------------------------------------- */

void rsp_set_answer(const struct responder *r, struct rsp_res *res, uint32_t from, uint32_t len)
{
    uint32_t n = res->opcode == OP_READ_REQUEST ? psn_span(len, r->p.pmtu) : 1;

    res->from = res->next = from;
    res->end = from + n;
    res->tail = len - (n - 1) * r->p.pmtu;
}

void rsp_remember(struct responder *r, const struct pkt *p, struct effects *e)
{
    struct rsp_res *res = rsp_res(r, r->res_tail);
    bool read = p->op->flags & OPF_READ_REQ, atomic = p->op->flags & OPF_ATOMIC_REQ;
    int32_t further;

    if (r->res_tail - r->res_head > r->res_mask) {
        if (r->res_next == r->res_head)
            r->res_next++;
        r->res_head++;
        rsp_find_next_due(r);
    }
    res->va = atomic ? p->atomiceth.va : p->reth.va;
    res->rkey = atomic ? p->atomiceth.rkey : p->reth.rkey;
    res->len = read ? p->reth.dmalen : atomic ? 8 : 0; /* ATOMIC WRITE and FLUSH: a READ response without data */
    res->psn = p->bth.psn;
    res->span = request_span(p, r->p.pmtu);
    res->opcode = p->bth.opcode & 31;
    res->executed = res->replay = false;
    res->u = (struct rsp_res_unknown){0};
    rsp_set_answer(r, res, 0, res->len);
    further = psn_diff(psn_add(res->psn, res->span), r->res_end);
    if (r->res_tail == 0 || further > 0 || further < -(1 << 20))
        r->res_end = psn_add(res->psn, res->span);
    e->msg = r->res_tail++;
    e->flags |= EFF_RESPOND | (atomic ? EFF_ATOMIC : 0);
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
        rsp_remember(r, p, e);
    if (UNLIKELY(flags & OPF_ATOMIC_WRITE)) {
        e->flags |= EFF_WRITE;
        e->va = p->reth.va;
        e->rkey = p->reth.rkey;
        e->len = p->payload_len;
    }
    r->started = true;
    r->last_is_res = !(flags & (OPF_SEND | OPF_WRITE));
    if (flags & OPF_END) {
        e->flags |= EFF_MESSAGE;
        r->msn_lo = r->msn_hi = psn_add(r->msn_hi, 1);
    }
}

static void set_nak_due(struct responder *r, uint8_t syndrome, struct effects *e)
{
    r->nak_due = true;
    r->nak_syndrome = syndrome;
    r->nak_psn = r->epsn_hi;
    r->nak_sent = true;
    r->rnr_sent = aeth_type(syndrome) == AETH_RNR;
    e->flags |= EFF_RESPOND;
}

static void refuse(struct responder *r, struct effects *e, uint8_t code, enum wc_status status)
{
    set_nak_due(r, SYNDROME_NAK(code), e);
    r->dead = true;
    e->flags |= EFF_ERROR | (r->recv_taken ? EFF_RECV_FAIL : 0);
    e->status = (uint8_t)status;
}

/* A First or Only SEND that is too long for the next receive: that receive completes in error. */
static void waste_receive(const struct responder *r, const struct rsp_env *env, const struct pkt *p, struct effects *e)
{
    bool begins_send = p->op->flags & OPF_SEND && p->op->flags & OPF_START;

    if (env && env->rq_avail && !r->recv_taken && begins_send && p->payload_len > env->rq_len)
        e->flags |= EFF_RECV_START | EFF_RECV_FAIL;
}

/* The expected request arrived, up to PSN `end`: the gap, if any, is closed. */
static void accept(struct responder *r, const struct pkt *p, uint32_t end, struct effects *e)
{
    r->nak_sent = r->rnr_sent = false;
    r->nak_due = false;
    rsp_execute(r, p, e);
    r->epsn_lo = r->epsn_hi = end;
    if (p->bth.ackreq && p->op->flags & (OPF_SEND | OPF_WRITE)) {
        r->ack_due = true;
        e->flags |= EFF_RESPOND;
    }
}

void rsp_answer_again(struct responder *r, const struct pkt *p, uint32_t n)
{
    struct rsp_res *res = rsp_res(r, n);

    if (res->opcode == OP_READ_REQUEST)
        rsp_set_answer(r, res, (p->bth.psn - res->psn) & PSN_MASK, p->reth.dmalen);
    else
        rsp_set_answer(r, res, 0, res->len);
    res->replay = true;
    if ((int32_t)(n - r->res_next) < 0)
        r->res_next = n;
}

/* Restart the responses to READs and atomics after number `n` that had begun: the requester may have gone back
 * (C9-110). */
static void restart_after(struct responder *r, uint32_t n)
{
    uint32_t psn = rsp_res(r, n)->psn;

    for (uint32_t i = n + 1; i != r->res_tail; i++) {
        struct rsp_res *later = rsp_res(r, i);
        if (psn_diff(later->psn, psn) > 0 && rsp_is_due(later))
            later->next = later->from;
    }
}

static void repeat(struct responder *r, const struct pkt *p, struct effects *e)
{
    if (!(p->op->flags & (OPF_SEND | OPF_WRITE))) {
        e->msg = rsp_find(r, p->bth.psn);
        e->flags |= EFF_DUPLICATE | EFF_RESPOND;
        rsp_answer_again(r, p, e->msg);
        restart_after(r, e->msg);
        return;
    }
    e->flags |= EFF_DUPLICATE;
    e->reason = WHY_STALE;
    if (p->bth.ackreq || r->p.rxe) {
        r->ack_due = true;
        e->flags |= EFF_RESPOND;
    }
}

static void drop(const struct responder *r, const struct pkt *p, struct effects *e)
{
    e->flags |= EFF_DROP;
    if (r->dead)
        e->reason = WHY_STATE;
    else if (!rsp_right_service(r, p))
        e->reason = WHY_INVALID;
    else
        e->reason = psn_diff(p->bth.psn, r->epsn_hi) > 0    ? WHY_SILENT
                    : p->op->flags & (OPF_SEND | OPF_WRITE) ? WHY_STALE
                                                            : WHY_NO_RESOURCE;
}

/* `e` by pointer: returning a structure of this size is slow. */
static void rc_rx(struct responder *r, const struct rsp_env *env, const struct pkt *p, ns_t now, struct effects *e)
{
    struct verdict v = rsp_rx_check(r, env, p, now);
    uint32_t end = psn_add(p->bth.psn, p->op->name ? request_span(p, r->p.pmtu) : 1);

    rsp_note_seen(r, end);
    switch (v.answer) {
    case ANS_EXECUTE:
        accept(r, p, end, e);
        break;
    case ANS_DUPLICATE:
        repeat(r, p, e);
        break;
    case ANS_NAK_SEQ:
        e->reason = WHY_GAP;
        e->flags |= EFF_DROP;
        if (!r->nak_due) /* an RNR NAK that is due goes first */
            set_nak_due(r, SYNDROME_NAK(NAK_PSN_SEQ), e);
        break;
    case ANS_RNR:
        e->reason = WHY_NOT_READY;
        e->flags |= EFF_DROP;
        set_nak_due(r, SYNDROME_RNR(r->p.rnr_timer), e);
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
        drop(r, p, e);
    }
}

struct effects rsp_rx(struct responder *r, const struct rsp_env *env, const struct pkt *p, ns_t now)
{
    struct effects e = {0};

    if (UNLIKELY(is_unreliable(r->p.service)))
        return unreliable_ops(r->p.service)->rx(r, env, p);
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

void rsp_skip(struct responder *r, uint32_t res)
{
    rsp_res(r, res)->next = rsp_res(r, res)->end;
    rsp_find_next_due(r);
}

void rsp_fail(struct responder *r, uint8_t syndrome)
{
    r->nak_due = true;
    r->nak_syndrome = syndrome;
    r->nak_psn = r->epsn_hi;
    r->nak_sent = r->dead = true;
    if (r->res_next != r->res_tail) {
        r->nak_psn = psn_add(rsp_res(r, r->res_next)->psn, rsp_res(r, r->res_next)->next);
        r->res_next = r->res_tail;
    }
}
