/* layer 2b (shadow): the replica of a requester. */
#include "src/shadow/shadow.h"

#include "src/transport/transport_impl.h"

void shadow_req_init(struct shadow_req *s, const struct req_params *p, const struct req_unknown *u,
                     struct req_msg *ring, uint32_t n)
{
    memset(s, 0, sizeof *s);
    req_init(&s->r, p, ring, n);
    s->r.unlimited = true;
    s->r.learn_credits = p->credits;
    s->u = *u;
    s->u.counted = u->from_start;
    s->u.answered = s->r.psn_next;
}

void shadow_req_learn_pmtu(struct shadow_req *s, uint16_t pmtu)
{
    struct requester *r = &s->r;
    uint32_t n = r->msg_tail - r->msg_head > r->msg_mask ? r->msg_tail - r->msg_mask - 1 : r->msg_head;
    bool back = req_going_back(r);

    s->u.pmtu_unknown = false;
    r->p.pmtu = pmtu;
    for (; n != r->msg_tail; n++) {
        struct req_msg *m = req_msg(r, n);
        uint32_t end;
        if (m->kind != MSG_READ)
            continue;
        m->span = psn_span(m->len, pmtu);
        end = psn_add(m->psn, m->span);
        if (psn_diff(end, r->psn_next) > 0)
            r->psn_next = end;
        if (r->psn_tx != m->psn && psn_in(r->psn_tx, m->psn, m->span))
            r->psn_tx = end; /* the READ was sent last: the next packet follows its responses' PSNs */
    }
    if (!back)
        r->psn_tx = r->psn_next;
}

/* --- Requests --------------------------------------------------------------------------------- */

/* True if RETH length and payload of a WRITE agree; its place in the message is checked elsewhere. */
static bool is_usual_write(const struct pkt *p, const struct req_msg *m)
{
    uint32_t len = p->payload_len;

    if (p->op->flags & OPF_START)
        return p->op->flags & OPF_ONLY ? p->reth.dmalen == len
                                       : p->reth.dmalen > len && p->reth.dmalen <= UINT32_C(1) << 31;
    return m->holes || (p->op->flags & OPF_LAST ? m->sent + len == m->len : m->sent + len < m->len);
}

/* True if `p` is a SEND or WRITE of RC without pad, solicited event or reserved bits. */
static inline bool has_usual_headers(const struct pkt *p)
{
    const struct bth *h = &p->bth;

    return !(h->opcode >> 5 != SVC_RC || h->tver | h->resv6 | h->resv7 | h->padcnt | h->se || p->payload_len & 3 ||
             !(p->op->flags & (OPF_SEND | OPF_WRITE)) || p->op->ext & ~p->have);
}

bool shadow_req_tx_is_usual(const struct shadow_req *s, const struct pkt *p)
{
    const struct requester *r = &s->r;
    const struct req_msg *m = req_msg(r, r->msg_tail - 1);
    uint32_t psn = p->bth.psn, flags = p->op->flags, len = p->payload_len;

    if (UNLIKELY(psn != r->psn_next || psn != r->psn_tx || !r->unlimited || req_outstanding(r) + 1 >= PSN_HALF))
        return false;
    if (UNLIKELY(!has_usual_headers(p) || r->p.service != SVC_RC))
        return false;
    if (r->msg_tail && m->open ? flags & OPF_START || m->kind != kind_of(flags) : !(flags & OPF_START))
        return false;
    if (flags & (OPF_FIRST | OPF_MIDDLE) ? len != r->p.pmtu : len > r->p.pmtu || (flags & OPF_LAST && !len))
        return false;
    return flags & OPF_SEND || is_usual_write(p, m);
}

/* Packet `p` continues or begins message `m`, of which packets may be missing. */
static inline void extend(struct requester *r, struct req_msg *m, const struct pkt *p, uint32_t span)
{
    if (UNLIKELY(m->holes))
        m->span = (p->bth.psn - m->psn) & PSN_MASK;
    req_extend(r, m, p, span);
}

void shadow_req_tx_usual(struct shadow_req *s, const struct pkt *p, ns_t now)
{
    struct requester *r = &s->r;
    struct req_msg *m = p->op->flags & OPF_START ? req_begin(r, p) : req_msg(r, r->msg_tail - 1);

    if (UNLIKELY(r->timer == NS_NEVER))
        r->timer = now;
    extend(r, m, p, 1);
}

/* The last packet of the latest message was not seen, and the next message begins: close it. */
static void close_last(struct shadow_req *s)
{
    struct requester *r = &s->r;
    struct req_msg *m;

    if (r->msg_tail == r->msg_head)
        return;
    m = req_msg(r, r->msg_tail - 1);
    if (!m->open)
        return;
    m->open = false;
    m->holes = true;
    m->span = (r->psn_next - m->psn) & PSN_MASK;
    s->u.counted = false;
}

/* True if `p` continues the latest message, or begins a message after its end. */
static bool is_in_sequence(const struct requester *r, const struct req_msg *last, const struct pkt *p)
{
    uint32_t flags = p->op->flags;

    if (p->bth.psn != r->psn_next)
        return false;
    return flags & OPF_START ? !last->open : last->open && last->kind == kind_of(flags) && r->msg_tail != r->msg_head;
}

/* Packets before `p` were not seen. True if `p` is the first seen packet of a message; *holes: packets of that
 * message were missed. */
static bool skip_psns(struct shadow_req *s, const struct pkt *p, bool *holes)
{
    struct requester *r = &s->r;
    const struct req_msg *last = req_msg(r, r->msg_tail - 1);
    bool gap = p->bth.psn != r->psn_next, starts;

    if (gap) {
        s->u.counted = s->u.counted && may_follow(r, &s->u, p->bth.psn);
        r->psn_next = p->bth.psn;
    }
    starts = req_starts(r, p) || !last->open || last->kind != kind_of(p->op->flags);
    if (starts)
        close_last(s);
    *holes = !(p->op->flags & OPF_START) && (gap || starts);
    return starts;
}

static struct req_msg *append(struct shadow_req *s, const struct pkt *p)
{
    struct requester *r = &s->r;
    struct req_msg *m = req_msg(r, r->msg_tail - 1);
    bool starts = req_starts(r, p), holes = false;

    if (UNLIKELY(!is_in_sequence(r, m, p)))
        starts = skip_psns(s, p, &holes);
    if (starts)
        m = req_begin(r, p);
    m->holes |= holes;
    extend(r, m, p, request_span(p, r->p.pmtu));
    return m;
}

/* True if `psn` is the PSN from which a NAK or implied NAK demands a retransmission, or was acknowledged after it. */
static bool is_demanded(const struct shadow_req *s, uint32_t psn)
{
    return s->u.may_resume && psn_diff(psn, s->u.resume_psn_lo) >= 0 && psn_diff(psn, s->r.una_hi) <= 0;
}

bool shadow_req_is_due_again(const struct shadow_req *s, uint32_t psn)
{
    return is_demanded(s, psn) || (req_going_back(&s->r) && psn == s->r.psn_tx);
}

/* Request `p` is retransmitted: the requester received the NAK that demands it, or its timer expired. */
static void take_retransmission(struct shadow_req *s, const struct pkt *p)
{
    struct requester *r = &s->r;
    uint32_t psn = p->bth.psn, n = req_find_remembered(r, psn);
    bool goes_back = psn_diff(psn, r->psn_tx) < 0;

    if (is_demanded(s, psn)) {
        s->u.may_resume = false;
        r->cause = s->u.resume_why;
        if (psn_diff(psn, r->una_lo) > 0)
            r->una_lo = psn;
        if (r->cause == WHY_RNR_NAK && r->rnr_left)
            r->rnr_left--;
    } else if (goes_back && r->retry_left && !s->u.overdue) { /* the response since then has begun the count anew */
        r->retry_left--;
    }
    if (goes_back) {
        s->back_psn = psn;
        s->resent = true;
    }
    req_resent(r, p, n);
}

/* The end of a request that takes no receive: Linux' rdmavt gives its place to the next message. */
static void give_credit_on(struct requester *r, const struct pkt *p)
{
    if (p->op->flags & OPF_END && !(p->op->flags & OPF_SEND || p->op->ext & H_IMMDT))
        r->limit = psn_add(r->limit, 1);
}

/* A request restarts the timer. One that was overdue was retransmitted for a timer that had run out before: the next
 * one may run since the response that came meanwhile. */
static void restart_timer(struct shadow_req *s, ns_t now)
{
    struct requester *r = &s->r;
    bool late = UNLIKELY(s->u.overdue) && r->timer != NS_NEVER && now - r->timer < ack_timeout(r->p.timeout);

    s->u.overdue = late ? r->timer : 0;
    r->timer = now;
}

void shadow_req_tx(struct shadow_req *s, const struct pkt *p, ns_t now)
{
    struct requester *r = &s->r;
    uint32_t psn = p->bth.psn;

    if (UNLIKELY(is_unreliable(r->p.service))) {
        append(s, p);
        req_unreliable_sent(r);
        return;
    }
    if (r->timer == NS_NEVER || (psn_diff(psn, r->psn_tx) < 0 && !(s->u.may_resume && s->acked_since)))
        restart_timer(s, now);
    if (UNLIKELY(psn_diff(psn, r->psn_next) < 0)) {
        take_retransmission(s, p);
        return;
    }
    req_count(r, append(s, p), p);
    if (UNLIKELY(!r->unlimited))
        give_credit_on(r, p);
}

/* --- Responses -------------------------------------------------------------------------------- */

/* A response: if it answers packets of the latest retransmission, the requester may reset its retry count, though
 * the response may be lost. */
static void note_answered(struct shadow_req *s, const struct pkt *p)
{
    bool nak = p->op->flags & OPF_ACK && aeth_type(p->aeth.syndrome) != AETH_ACK;
    uint32_t end = nak ? p->bth.psn : psn_add(p->bth.psn, 1);

    if (psn_diff(end, s->u.answered) > 0)
        s->u.answered = end;
    if (s->resent && psn_diff(end, s->back_psn) > 0) {
        s->r.retry_left = s->r.p.retry_cnt;
        s->resent = false;
    }
}

/* A response demands a retransmission from una_hi on: the requester may resume there, from time `from` on. */
static void note_demand(struct shadow_req *s, enum eff_reason why, ns_t from)
{
    struct req_unknown *u = &s->u;

    if (!u->may_resume || psn_diff(s->r.una_hi, u->resume_psn_lo) < 0)
        u->resume_psn_lo = s->r.una_hi;
    u->may_resume = true;
    u->resume_why = (uint8_t)why;
    u->resume_psn = s->r.una_hi;
    u->resume_from = from;
    s->acked_since = false;
}

static void note_nak(struct shadow_req *s, const struct pkt *p, enum eff_reason why, ns_t now)
{
    struct req_unknown *u = &s->u;
    bool rnr = u->may_resume && u->resume_why == WHY_RNR_NAK && u->resume_psn == s->r.una_hi;

    if (why == WHY_RNR_NAK && !rnr) { /* a further RNR NAK may be ignored: it does not restart the wait */
        u->rnr_seen = now;
        u->rnr_time = rnr_time(aeth_value(p->aeth.syndrome));
        note_demand(s, why, now + u->rnr_time - u->slack);
    } else if (why == WHY_RNR_NAK) {
        note_demand(s, why, u->resume_from);
    } else if (why == WHY_IMPLIED_NAK || !rnr || now >= u->resume_from) { /* else dropped during the RNR wait */
        note_demand(s, why, INT64_MIN);
    }
}

/* A response has restarted the timer that ran since `began`. */
static void note_overdue(struct shadow_req *s, ns_t began, ns_t now)
{
    ns_t wait = ack_timeout(s->r.p.timeout);

    if (UNLIKELY(wait != NS_NEVER && now - began >= wait - s->u.slack && !s->u.overdue))
        s->u.overdue = began;
}

void shadow_req_rx(struct shadow_req *s, const struct pkt *p, ns_t now)
{
    struct effects e = {0};
    ns_t began = s->r.timer;

    if (req_rx_ignores(&s->r, p, &e))
        return;
    note_answered(s, p);
    req_rx_take(&s->r, p, !s->u.complete, now, &e);
    if (began != NS_NEVER && s->r.timer != NS_NEVER && s->r.timer != began)
        note_overdue(s, began, now);
    if (p->have & H_AETH) /* out of order here, it may have come to the requester in order */
        req_take_credits(&s->r, p, &e);
    if (LIKELY(s->r.una_hi == s->r.psn_next)) { /* perhaps once more, after a retransmission */
        s->r.timer = NS_NEVER;
        s->u.idle_since = now;
        s->u.overdue = 0;
    }
    if (UNLIKELY(s->u.may_resume) && e.flags & EFF_ACKED) {
        s->acked_since = true;
        s->u.resume_from = INT64_MIN;
    }
    if (UNLIKELY(req_rx_demands(&e)))
        note_nak(s, p, (enum eff_reason)e.reason, now);
}
