/* layer 2 (transport): internal: the parts of requesters and responders of all services, and of a validator's replicas
 * of them (src/shadow). */
#ifndef RDMATRACE_TRANSPORT_IMPL_H
#define RDMATRACE_TRANSPORT_IMPL_H

#include "dissect/pkt.h"
#include "src/transport/requester.h"
#include "src/transport/responder.h"
#include "src/transport/unknown.h"

/* --- Checks of what a requester or responder sends -------------------------------------------- */

/* A request about to be sent, as the predicates see it. */
struct tx_view {
    const struct requester *r;
    const struct req_unknown *u; /* never NULL; all zero at an endpoint */
    const struct pkt *p;
    const struct req_msg *m; /* message of this PSN, or the open one that it continues; NULL: none */
    ns_t now;
    uint32_t flags; /* OPF_* */
    uint32_t len;   /* payload bytes */
    uint32_t span;  /* PSNs that it uses */
    uint32_t off;   /* repeat: PSNs after the message's first one */
    bool repeat;    /* the PSN was used before */
    bool watched;   /* validator: packets before this one may have been missed, responses may have been lost */
};

/* A predicate: true, and *v filled, if the rule is broken. */
typedef bool (*tx_rule)(const struct tx_view *, struct verdict *v);

/* View of packet `p` for predicates that need no message; `u` NULL: at an endpoint. */
struct tx_view tx_view_of(const struct requester *r, const struct req_unknown *u, const struct pkt *p);
/* A reserved field is not zero: its name, its value without and with the reserved bits; always true. */
bool reserved_is_set(const char *about, uint64_t expected, uint64_t seen, struct verdict *v);
/* BTH and its fields: version, reserved bits, headers, pad count. */
bool breaks_format(const struct pkt *p, struct verdict *v);
/* Likewise, of a request. */
bool breaks_tx_format(const struct tx_view *t, struct verdict *v);
/* Opcode not of this service, or not a request. */
bool breaks_service(const struct tx_view *t, struct verdict *v);
/* UC and UD: consecutive PSNs, none twice. */
bool breaks_count(const struct tx_view *t, struct verdict *v);
/* First, Middle, Last of one operation (new packets). */
bool breaks_order(const struct tx_view *t, struct verdict *v);
/* The rule that a request of `service` breaks by its opcode, and both values; always true. */
bool wrong_opcode(unsigned service, const struct pkt *p, struct verdict *v);
/* The opcode of `p` is undefined, or not one of its service: `expected` is a valid one; always true. */
bool wrong_operation(const struct pkt *p, uint32_t expected, struct verdict *v);
/* The address of an atomic. */
bool breaks_alignment(const struct pkt *p, struct verdict *v);
/* The pad count, of a packet that is neither First nor Middle. */
bool breaks_pad(const struct pkt *p, struct verdict *v);
/* Payload against path MTU. */
bool breaks_length(const struct tx_view *t, struct verdict *v);
/* RETH against payload. */
bool breaks_reth(const struct tx_view *t, struct verdict *v);
/* Solicited Event. */
bool breaks_solicited(const struct tx_view *t, struct verdict *v);

/* Run `rules`; write the failures, at most `max`, to `out`; returns their number. */
static inline unsigned tx_run(const tx_rule *rules, unsigned n, const struct tx_view *t, struct verdict *out,
                              unsigned max)
{
    unsigned found = 0;

    for (unsigned i = 0; i < n && found < max; i++)
        if (UNLIKELY(rules[i](t, &out[found])))
            found++;
    return found;
}
static inline bool fail(struct verdict *v, enum rule rule, const char *about, uint64_t expected, uint64_t seen)
{
    *v = verdict_fail(rule, about, expected, seen);
    return true;
}
/* PSNs that request `p` uses at `pmtu`. */
static inline uint32_t request_span(const struct pkt *p, uint32_t pmtu)
{
    return p->op->flags & OPF_READ_REQ && p->have & H_RETH ? psn_span(p->reth.dmalen, pmtu) : 1;
}
/* True if `psn` may be the next one: the latest request is a READ, whose PSNs are not known without the path MTU. */
static inline bool may_follow(const struct requester *r, const struct req_unknown *u, uint32_t psn)
{
    const struct req_msg *m = req_msg(r, r->msg_tail - 1);

    return u->pmtu_unknown && r->msg_tail && m->kind == MSG_READ && psn_in(psn, m->psn, psn_span(m->len, 256) + 1);
}

/* --- Unreliable services ---------------------------------------------------------------------- */

/* Functions of UC and UD, called by req_tx_check_all(), rsp_rx_check() and rsp_rx(). */
struct unreliable_ops {
    unsigned (*tx_check)(struct tx_view *t, struct verdict *out, unsigned max);
    struct verdict (*rx_check)(const struct responder *r, const struct rsp_env *env, const struct pkt *p);
    struct effects (*rx)(struct responder *r, const struct rsp_env *env, const struct pkt *p);
};
/* UC: a gap discards the message in progress; a First or Only begins the next one (IBTA volume 1, 9.8.2). */
extern const struct unreliable_ops uc_ops;
/* UD: one sequence of PSNs for all destinations. Dropped silently: wrong Q_Key, no receive, receive too small (it
 * remains posted). */
extern const struct unreliable_ops ud_ops;
/* NULL: a reliable service. */
static inline const struct unreliable_ops *unreliable_ops(unsigned service)
{
    return service == SVC_UC ? &uc_ops : service == SVC_UD ? &ud_ops : NULL;
}

/* --- A requester's messages ------------------------------------------------------------------- */

/* Kind of the message that an opcode belongs to. */
static inline enum msg_kind kind_of(uint32_t flags)
{
    if (flags & (OPF_SEND | OPF_WRITE))
        return flags & OPF_SEND ? MSG_SEND : MSG_WRITE;
    return flags & OPF_READ_REQ ? MSG_READ : flags & OPF_ATOMIC_REQ ? MSG_ATOMIC : MSG_PLACE;
}
/* True if the message uses a responder resource: READs and atomics. */
static inline bool req_takes_depth(const struct req_msg *m)
{
    return m->kind == MSG_READ || m->kind == MSG_ATOMIC;
}
/* True if only its own response completes the message. */
static inline bool req_takes_response(const struct req_msg *m)
{
    return req_takes_depth(m) || m->kind == MSG_PLACE;
}
/* The message is complete: it uses no responder resource any more. */
static inline void req_release(struct requester *r, const struct req_msg *m)
{
    r->rd_out -= req_takes_depth(m);
    r->place_out -= m->kind == MSG_PLACE;
}
/* Skip local messages, which have no PSN: msg_tx is the message of psn_tx. */
static inline void req_skip_local(struct requester *r)
{
    while (r->msg_tx != r->msg_tail && (req_msg(r, r->msg_tx)->kind == MSG_LOCAL || req_msg(r, r->msg_tx)->span == 0))
        r->msg_tx++;
}
/* True if `p` begins a message: First or Only, or no message is open that it could continue. */
static inline bool req_starts(const struct requester *r, const struct pkt *p)
{
    return p->op->flags & OPF_START || r->msg_tail == r->msg_head;
}
/* Begin a message with `p`, without its PSNs: req_extend() adds them. A full ring drops its oldest message. */
struct req_msg *req_begin(struct requester *r, const struct pkt *p);
/* Add packet `p` with `span` PSNs to message `m`, the latest. */
static inline void req_extend(struct requester *r, struct req_msg *m, const struct pkt *p, uint32_t span)
{
    m->span += span;
    m->sent += p->payload_len;
    if (m->kind == MSG_SEND)
        m->len = m->sent;
    m->last_opcode = p->bth.opcode;
    m->open = !(p->op->flags & OPF_END);
    if (p->op->ext & H_IMMDT)
        m->credit = true;
    r->psn_next = psn_add(p->bth.psn, span);
    r->psn_tx = r->psn_next;
    r->msg_tx = m->open ? r->msg_tail - 1 : r->msg_tail;
}
/* True if retries after a timeout, sequence NAK or implied NAK are exhausted. At soft-RoCE 7 means no limit. */
static inline bool req_no_retry_left(const struct requester *r)
{
    return r->retry_left == 0 && !(r->p.rxe && r->p.retry_cnt == 7);
}
/* RC: message `m` was begun or continued with `p`: READs and atomics outstanding, end-to-end credits. */
void req_count(struct requester *r, const struct req_msg *m, const struct pkt *p);
/* RC: `p`, of message number `n` (msg_tail: none), was retransmitted: set the next PSN due. */
void req_resent(struct requester *r, const struct pkt *p, uint32_t n);
/* UC and UD: no acknowledgements. RC and XRC are reliable. */
static inline bool is_unreliable(unsigned service)
{
    return service == SVC_UC || service == SVC_UD;
}
/* UC, UD: messages sent are complete, without acknowledgement. */
struct effects req_unreliable_sent(struct requester *r);

/* --- A requester's responses ------------------------------------------------------------------ */

/* True if the requester ignores response `p`: not a response of its service, or to no PSN sent. Fills *e. */
bool req_rx_ignores(const struct requester *r, const struct pkt *p, struct effects *e);
/* Apply response `p`, which must not be one to be ignored: acknowledge, complete, take its data. What the caller must
 * do is in *e: retransmit from una_hi on (`reason` WHY_SEQUENCE_NAK, WHY_IMPLIED_NAK, WHY_RNR_NAK, without EFF_DROP),
 * or fail the queue pair (EFF_ERROR). `missed`: responses may have been missed, so that a READ is complete when a later
 * request is acknowledged. */
void req_rx_take(struct requester *r, const struct pkt *p, bool missed, ns_t now, struct effects *e);
/* Take the credits of the AETH of response `p`; adds EFF_CREDITS to *e if they permit more. */
void req_take_credits(struct requester *r, const struct pkt *p, struct effects *e);
/* True if *e requires a retransmission. */
static inline bool req_rx_demands(const struct effects *e)
{
    return !(e->flags & EFF_DROP) && e->reason >= WHY_SEQUENCE_NAK && e->reason <= WHY_RNR_NAK;
}

/* --- A responder ------------------------------------------------------------------------------ */

/* True if the packet is a request of this service. */
static inline bool rsp_right_service(const struct responder *r, const struct pkt *p)
{
    return r->p.service == p->bth.opcode >> 5 && p->op->name && p->op->flags & OPF_REQUEST &&
           (p->have & p->op->ext) == p->op->ext;
}
/* True if the MSN of response `p` is defined: with an undefined AETH syndrome it is not. */
static inline bool rsp_has_msn(const struct pkt *p)
{
    return p->have & H_AETH && LIKELY(!aeth_is_undefined(p->aeth.syndrome));
}
/* The rule about the MSN of response `p`. */
enum rule rsp_msn_rule(const struct pkt *p);
/* True if the packet is no request of this service; then *v has the rule and the reaction ANS_DROP, or ANS_NAK_INVALID
 * for a manufacturer's opcode. */
bool rsp_wrong_service(const struct responder *r, const struct pkt *p, struct verdict *v);
/* Run the predicates after that of the PSN: opcode sequence, opcode, resources, length, R_Key. v->answer becomes
 * ANS_EXECUTE or what the first failure requires. */
void rsp_validate(const struct responder *r, const struct rsp_env *env, const struct pkt *p, struct verdict *v);
/* Execute the expected request: message state, MSN, resources, effects. The caller advances epsn. */
void rsp_execute(struct responder *r, const struct pkt *p, struct effects *e);
/* Add a resource for READ or atomic `p`; its response is due. */
void rsp_remember(struct responder *r, const struct pkt *p, struct effects *e);
/* Make the response of `res` due from its PSN number `from` on, `len` bytes (READ). */
void rsp_set_answer(const struct responder *r, struct rsp_res *res, uint32_t from, uint32_t len);
/* READ or atomic `p` is a duplicate of number `n`: its response is due again. */
void rsp_answer_again(struct responder *r, const struct pkt *p, uint32_t n);
/* Number of the READ or atomic of response `p`: the one due, else as rsp_find(). */
uint32_t rsp_answered(const struct responder *r, const struct pkt *p);
/* Response `p` of READ or atomic `res` was sent. */
void rsp_advance_answer(struct responder *r, struct rsp_res *res, const struct pkt *p);
/* A request whose last PSN is before `end` was seen. */
static inline void rsp_note_seen(struct responder *r, uint32_t end)
{
    if (psn_diff(end, r->epsn_hi) > 0 && (psn_diff(end, r->seen_hi) > 0 || psn_diff(r->seen_hi, r->epsn_hi) < 0))
        r->seen_hi = end;
}
/* True if `res` is of a COMPARE & SWAP or FETCH & ADD. */
static inline bool rsp_is_atomic(const struct rsp_res *res)
{
    return res->opcode == OP_COMPARE_SWAP || res->opcode == OP_FETCH_ADD;
}
/* True if a response of `res` is due. */
static inline bool rsp_is_due(const struct rsp_res *res)
{
    return res->next != res->end;
}
/* Set res_next to the oldest resource with a response due. */
static inline void rsp_find_next_due(struct responder *r)
{
    while (r->res_next != r->res_tail && !rsp_is_due(rsp_res(r, r->res_next)))
        r->res_next++;
}
/* Number of the READ or atomic in the ring whose PSNs include `psn`; r->res_tail: none. */
static inline uint32_t rsp_find(const struct responder *r, uint32_t psn)
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
/* READs and atomics without a response yet. Repeated responses do not count: the requester may have received the
 * first. */
static inline uint32_t rsp_pending(const struct responder *r)
{
    uint32_t n = 0;

    for (uint32_t i = r->res_next; i != r->res_tail; i++)
        n += rsp_is_due(rsp_res(r, i)) && !rsp_res(r, i)->replay;
    return n;
}

#endif
