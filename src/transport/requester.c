/* layer 2 (transport): the apply half of a requester: packets sent, responses received, timers. */
#include "src/transport/requester.h"

#include "src/transport/tx_check.h"
#include "src/transport/uc.h"
#include "src/transport/ud.h"

void req_init(struct requester *r, const struct req_params *p, struct req_msg *ring, uint32_t n)
{
    memset(r, 0, sizeof *r);
    r->p = *p;
    r->psn_next = r->psn_tx = r->una_lo = r->una_hi = r->rtx_end = r->heard = p->psn & PSN_MASK;
    r->counted = p->certain || p->from_start;
    r->unlimited = !p->credits || !p->certain;
    r->retry_left = p->retry_cnt;
    r->rnr_left = p->rnr_retry;
    r->timer = NS_NEVER;
    r->msg_off = (int32_t)((const char *)ring - (const char *)r);
    r->msg_mask = n - 1;
}

uint32_t req_find(const struct requester *r, uint32_t psn)
{
    uint32_t size = r->msg_mask + 1, lo, hi = r->msg_tail, mid;

    lo = r->p.certain ? r->msg_head : hi > size ? hi - size : 0;
    if (lo == hi || psn_diff(psn, req_msg(r, lo)->psn) < 0)
        return r->msg_tail;
    while (hi - lo > 1) {
        mid = lo + (hi - lo) / 2;
        if (psn_diff(psn, req_msg(r, mid)->psn) >= 0)
            lo = mid;
        else
            hi = mid;
    }
    return psn_in(psn, req_msg(r, lo)->psn, req_msg(r, lo)->span) ? lo : r->msg_tail;
}

/* --- Sending --------------------------------------------------------------------------------------------------------------- */

static bool takes_depth(const struct req_msg *m)
{
    return m->kind == MSG_READ || m->kind == MSG_ATOMIC;
}

static bool takes_response(const struct req_msg *m)
{
    return takes_depth(m) || m->kind == MSG_PLACE;
}

/* A validator's ring is full: the oldest message is taken for complete, and forgotten. */
static void forget_oldest(struct requester *r)
{
    const struct req_msg *m = req_msg(r, r->msg_head);
    uint32_t end = psn_add(m->psn, m->span);

    if (takes_depth(m))
        r->rd_out--;
    if (psn_diff(end, r->una_hi) > 0)
        r->una_hi = end;
    r->msg_head++;
}

static struct req_msg *msg_begin(struct requester *r, const struct pkt *p)
{
    struct req_msg *m;
    uint32_t flags = p->op->flags;

    if (UNLIKELY(!req_has_room(r) && !r->p.certain))
        forget_oldest(r);
    m = req_msg(r, r->msg_tail++);

    if (p->op->ext & H_RETH) {
        m->va = p->reth.va;
        m->rkey = p->reth.rkey;
        m->len = p->reth.dmalen;
    } else {
        bool atomic = p->op->ext & H_ATOMICETH;
        m->va = atomic ? p->atomiceth.va : 0;
        m->rkey = atomic ? p->atomiceth.rkey : 0;
        m->len = atomic ? 8 : 0;
    }
    m->psn = r->psn_next;
    m->span = m->sent = m->got = 0;
    m->holes = false;
    m->kind = (uint8_t)kind_of(flags);
    m->opcode = p->bth.opcode;
    m->credit = flags & OPF_SEND;
    r->ssn = psn_add(r->ssn, 1);
    m->ssn = r->ssn;
    return m;
}

/* A validator did not see the end of the message begun last, but now the next one begins. */
static void close_last(struct requester *r)
{
    struct req_msg *m;

    if (r->msg_tail == r->msg_head)
        return;
    m = req_msg(r, r->msg_tail - 1);
    if (!m->open)
        return;
    m->open = false;
    m->holes = true;
    m->span = (r->psn_next - m->psn) & PSN_MASK;
    r->counted = false;
}

void req_learn_pmtu(struct requester *r, uint16_t pmtu)
{
    uint32_t n = r->msg_tail - r->msg_head > r->msg_mask ? r->msg_tail - r->msg_mask - 1 : r->msg_head;
    bool back = req_going_back(r);

    r->p.guess = false;
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
            r->psn_tx = end; /* it was the packet sent last */
    }
    if (!back)
        r->psn_tx = r->psn_next;
}

/* Whether `p` goes on with the message begun last, or begins one behind its end. */
static inline bool in_sequence(const struct requester *r, const struct req_msg *last, const struct pkt *p)
{
    uint32_t flags = p->op->flags;

    if (p->bth.psn != r->psn_next)
        return false;
    return flags & OPF_START ? !last->open : last->open && last->kind == kind_of(flags) && r->msg_tail != r->msg_head;
}

/* A validator has not seen what was sent before `p`. Returns whether a message begins with it, of which *holes may be missing. */
static bool pass_over(struct requester *r, const struct pkt *p, bool *holes)
{
    bool starts = p->op->flags & OPF_START || r->msg_tail == r->msg_head, gap = p->bth.psn != r->psn_next;
    const struct req_msg *last = req_msg(r, r->msg_tail - 1);

    if (gap) { /* what lies between was not seen */
        r->counted = r->counted && may_follow(r, p->bth.psn);
        r->psn_next = p->bth.psn;
    }
    starts = starts || !last->open || last->kind != kind_of(p->op->flags);
    if (starts)
        close_last(r);
    *holes = !(p->op->flags & OPF_START) && (gap || starts);
    return starts;
}

/* Packet `p` with `span` PSNs is the next one of message `m`, the latest. */
static inline void extend(struct requester *r, struct req_msg *m, const struct pkt *p, uint32_t span)
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

struct req_msg *req_append(struct requester *r, const struct pkt *p)
{
    bool starts = p->op->flags & OPF_START || r->msg_tail == r->msg_head, holes = false;
    struct req_msg *m = req_msg(r, r->msg_tail - 1);
    uint32_t span = request_span(p, r->p.pmtu);

    if (UNLIKELY(!r->p.certain && !in_sequence(r, m, p)))
        starts = pass_over(r, p, &holes);
    if (starts)
        m = msg_begin(r, p);
    if (UNLIKELY(holes))
        m->holes = true;
    if (UNLIKELY(m->holes))
        m->span = (p->bth.psn - m->psn) & PSN_MASK;
    extend(r, m, p, span);
    return m;
}

void req_tx_usual(struct requester *r, const struct pkt *p, ns_t now)
{
    struct req_msg *m = p->op->flags & OPF_START ? msg_begin(r, p) : req_msg(r, r->msg_tail - 1);

    if (UNLIKELY(r->timer == NS_NEVER))
        r->timer = now;
    if (UNLIKELY(m->holes))
        m->span = (p->bth.psn - m->psn) & PSN_MASK;
    extend(r, m, p, 1);
}

/* msg_tx is the message of psn_tx: local ones, which have no PSN, are passed over. */
static void skip_local(struct requester *r)
{
    while (r->msg_tx != r->msg_tail && (req_msg(r, r->msg_tx)->kind == MSG_LOCAL || req_msg(r, r->msg_tx)->span == 0))
        r->msg_tx++;
}

/* A packet sent again. */
static void tx_repeat(struct requester *r, const struct pkt *p)
{
    uint32_t psn = p->bth.psn, n = r->p.certain && psn == r->psn_tx ? r->msg_tx : req_find(r, psn), end;
    const struct req_msg *m;

    if (r->alt && psn_diff(psn, r->alt_low) >= 0 && psn_diff(psn, r->una_hi) <= 0) {
        r->alt = false;
        r->cause = r->alt_why;
        if (psn_diff(psn, r->una_lo) > 0)
            r->una_lo = psn;
        if (r->alt_why == WHY_RNR_NAK && r->rnr_left)
            r->rnr_left--;
    } else if (!r->p.certain && psn_diff(psn, r->psn_tx) < 0 && r->retry_left) {
        r->retry_left--;
    }
    if (psn_diff(psn, r->psn_tx) < 0)
        r->back_psn = psn;
    r->psn_tx = psn_add(psn, request_span(p, r->p.pmtu));
    if (psn_diff(r->psn_tx, r->psn_next) > 0)
        r->psn_tx = r->psn_next;
    r->msg_tx = r->msg_tail;
    if (n == r->msg_tail)
        return;
    m = req_msg(r, n);
    end = psn_add(m->psn, m->span);
    r->msg_tx = psn_diff(r->psn_tx, end) < 0 || m->open ? n : n + 1;
    skip_local(r);
}

static void rc_tx(struct requester *r, const struct pkt *p, ns_t now)
{
    struct req_msg *m;

    if (r->timer == NS_NEVER || (psn_diff(p->bth.psn, r->psn_tx) < 0 && !(r->alt && r->alt_moved)))
        r->timer = now;
    if (UNLIKELY(psn_diff(p->bth.psn, r->psn_next) < 0)) {
        tx_repeat(r, p);
        return;
    }
    m = req_append(r, p);
    if (p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ))
        r->rd_out++;
    if (UNLIKELY(!r->unlimited) && m->credit && psn_diff(m->ssn, r->limit) > 0)
        r->probing = true;
}

struct effects req_tx(struct requester *r, const struct pkt *p, ns_t now)
{
    struct effects e = {0};

    if (UNLIKELY(r->p.service == SVC_UC))
        e = uc_tx(r, p);
    else if (UNLIKELY(r->p.service == SVC_UD))
        e = ud_tx(r, p);
    else
        rc_tx(r, p, now);
    return e;
}

void req_local(struct requester *r)
{
    struct req_msg *m = req_msg(r, r->msg_tail);

    *m = (struct req_msg){.psn = r->psn_next, .kind = MSG_LOCAL};
    r->msg_tail++;
    if (!req_going_back(r))
        r->msg_tx = r->msg_tail;
}

/* --- Acknowledgement --------------------------------------------------------------------------------------------------------- */

/* Responses may have been missed: those before `to` count as received. */
static void take_for_heard(struct req_msg *m, uint32_t to)
{
    int32_t n = psn_diff(to, m->psn);

    if (n > 0)
        m->got = max_u32(m->got, min_u32((uint32_t)n, m->span));
}

/* Acknowledge everything before `to`, as far as no READ or atomic still lacks its answer. Returns whether it got there. */
static bool advance(struct requester *r, uint32_t to, struct effects *e)
{
    uint32_t start = r->una_hi;
    bool there = true;

    while (r->msg_head != r->msg_tail) {
        struct req_msg *m = req_msg(r, r->msg_head);
        uint32_t end;
        if (UNLIKELY(!r->p.certain && !r->p.complete && takes_response(m)))
            take_for_heard(m, to);
        end = psn_add(m->psn, takes_response(m) ? m->got : m->span);
        if (takes_response(m) && m->got < m->span) {
            r->una_hi = end;
            there = psn_diff(to, end) <= 0;
            break;
        }
        if (m->kind != MSG_LOCAL && (m->open || psn_diff(to, end) < 0)) {
            r->una_hi = psn_diff(to, end) < 0 ? to : end;
            break;
        }
        if (takes_depth(m))
            r->rd_out--;
        r->una_hi = end;
        r->msg_head++;
        e->completed++;
    }
    if (r->una_hi != start)
        e->flags |= EFF_ACKED;
    return there;
}

/* The transport timer, the retry counters and the point of resumption after progress. */
static void progress(struct requester *r, struct effects *e, ns_t now)
{
    if (!(e->flags & EFF_ACKED))
        return;
    r->retry_left = r->p.retry_cnt;
    r->rnr_left = r->p.rnr_retry;
    r->went_back = false;
    r->rnr_wait = false;
    r->timer = r->una_hi == r->psn_next ? NS_NEVER : now;
    if (r->probing && (r->unlimited || r->msg_head == r->msg_tail || r->una_hi != req_msg(r, r->msg_tail - 1)->psn)) {
        r->probing = false;
        e->flags |= EFF_CREDITS;
    }
    if (!r->p.certain) {
        if (UNLIKELY(r->alt)) {
            r->alt_moved = true;
            r->alt_from = INT64_MIN;
        }
        return;
    }
    r->una_lo = r->una_hi;
    if (UNLIKELY(psn_diff(r->psn_tx, r->una_hi) < 0)) {
        r->psn_tx = r->una_hi;
        r->msg_tx = r->msg_head;
        skip_local(r);
    }
}

static void die(struct requester *r, struct effects *e, enum wc_status status)
{
    e->flags |= EFF_ERROR;
    e->status = (uint8_t)status;
    e->msg = r->msg_head;
    if (!r->p.certain) /* the response may have been lost behind the tap */
        return;
    r->dead = true;
    r->timer = NS_NEVER;
    r->rnr_wait = false;
}

static bool no_retry_left(const struct requester *r)
{
    return r->retry_left == 0 && !(r->p.rxe && r->p.retry_cnt == 7);
}

/* Send again from the oldest PSN without an answer. */
static void go_back(struct requester *r, enum eff_reason why, struct effects *e)
{
    e->reason = (uint8_t)why;
    if (!r->p.certain) {
        if (!r->alt || psn_diff(r->una_hi, r->alt_low) < 0)
            r->alt_low = r->una_hi;
        r->alt = true;
        r->alt_moved = false;
        r->alt_why = (uint8_t)why;
        r->alt_psn = r->una_hi;
        r->alt_from = INT64_MIN;
        return;
    }
    if (why != WHY_RNR_NAK) {
        if (no_retry_left(r)) {
            die(r, e, WC_RETRY_EXC_ERR);
            return;
        }
        if (r->retry_left)
            r->retry_left--;
    }
    r->cause = (uint8_t)why;
    r->went_back = why == WHY_SEQUENCE_NAK || why == WHY_IMPLIED_NAK;
    r->rtx_end = r->psn_next;
    r->psn_tx = r->una_hi;
    r->msg_tx = r->msg_head;
    skip_local(r);
    r->timer = NS_NEVER;
    e->flags |= EFF_RETRANSMIT;
}

/* A response passed over a READ or atomic without answer. Once per episode: responses on their way say the same again. */
static void implied_nak(struct requester *r, struct effects *e, ns_t now)
{
    progress(r, e, now);
    if (r->went_back) {
        e->flags |= EFF_DROP;
        e->reason = WHY_STALE;
        return;
    }
    go_back(r, WHY_IMPLIED_NAK, e);
}

static void take_credits(struct requester *r, const struct pkt *p, struct effects *e)
{
    unsigned code = p->aeth.syndrome & 31;
    uint32_t limit;

    if (!r->p.certain && r->p.credits && !r->credited && p->aeth.syndrome >> 5 == AETH_ACK) {
        r->credited = true; /* from here on, its credits are known */
        r->unlimited = code == AETH_CREDIT_INVALID;
    }
    if (LIKELY(r->unlimited) || p->aeth.syndrome >> 5 != AETH_ACK)
        return;
    if (code == AETH_CREDIT_INVALID) {
        r->unlimited = true;
        e->flags |= EFF_CREDITS;
        return;
    }
    limit = psn_add(p->aeth.msn, aeth_credits(code));
    if (psn_diff(limit, r->limit) > 0) {
        r->limit = limit;
        e->flags |= EFF_CREDITS;
        if (r->probing && psn_diff(r->ssn, limit) <= 0)
            r->probing = false;
    }
}

/* --- Responses --------------------------------------------------------------------------------------------------------------- */

static void rx_rnr(struct requester *r, const struct pkt *p, struct effects *e, ns_t now)
{
    bool again = r->alt && r->alt_why == WHY_RNR_NAK && r->alt_psn == r->una_hi; /* a copy: the earlier one may count */
    ns_t from = r->alt_from;

    if (r->rnr_wait) {
        e->flags |= EFF_DROP;
        e->reason = WHY_STALE;
        return;
    }
    if (r->p.rnr_retry != 7 && r->p.certain) {
        if (r->rnr_left == 0) {
            die(r, e, WC_RNR_RETRY_EXC_ERR);
            return;
        }
        r->rnr_left--;
    }
    go_back(r, WHY_RNR_NAK, e);
    r->rnr_until = now + rnr_time(p->aeth.syndrome & 31);
    if (r->p.certain)
        r->rnr_wait = true;
    else
        r->alt_from = again ? from : r->rnr_until - r->p.slack;
    r->alt_at = again ? r->alt_at : now;
    e->flags |= EFF_WAIT;
}

static void rx_sequence_nak(struct requester *r, struct effects *e, ns_t now)
{
    bool waits = !r->p.certain && r->alt && r->alt_why == WHY_RNR_NAK && r->alt_psn == r->una_hi && now < r->alt_from;

    if (r->went_back || r->rnr_wait || waits) {
        e->flags |= EFF_DROP;
        e->reason = WHY_STALE;
        return;
    }
    go_back(r, WHY_SEQUENCE_NAK, e);
}

static void rx_nak(struct requester *r, const struct pkt *p, struct effects *e, ns_t now)
{
    static const uint8_t status[] = {
        [NAK_INVALID_REQUEST] = WC_REM_INV_REQ_ERR,
        [NAK_REMOTE_ACCESS] = WC_REM_ACCESS_ERR,
        [NAK_REMOTE_OPERATIONAL] = WC_REM_OP_ERR,
        [NAK_INVALID_RD_REQUEST] = WC_REM_INV_RD_REQ_ERR,
    };
    unsigned type = p->aeth.syndrome >> 5 & 3, code = p->aeth.syndrome & 31;

    if (type == AETH_NAK && code >= ARRAY_LEN(status)) {
        e->flags |= EFF_DROP;
        e->reason = WHY_INVALID;
        return;
    }
    if (!advance(r, p->bth.psn, e)) {
        implied_nak(r, e, now);
        return;
    }
    progress(r, e, now);
    if (type == AETH_RNR)
        rx_rnr(r, p, e, now);
    else if (code == NAK_PSN_SEQ)
        rx_sequence_nak(r, e, now);
    else
        die(r, e, (enum wc_status)status[code]);
}

static void rx_ack(struct requester *r, const struct pkt *p, struct effects *e, ns_t now)
{
    bool there;

    switch (p->aeth.syndrome >> 5 & 3) {
    case AETH_ACK:
        there = advance(r, psn_add(p->bth.psn, 1), e);
        take_credits(r, p, e);
        if (there)
            progress(r, e, now);
        else
            implied_nak(r, e, now);
        break;
    case AETH_RNR:
    case AETH_NAK:
        rx_nak(r, p, e, now);
        break;
    default:
        e->flags |= EFF_DROP;
        e->reason = WHY_INVALID;
    }
}

/* Whether a READ response or ATOMIC ACK is of the kind that message `m` asks for. */
static bool is_answered_by(const struct req_msg *m, const struct pkt *p)
{
    return p->op->flags & OPF_ATOMIC_ACK ? m->kind == MSG_ATOMIC : m->kind == MSG_READ || m->kind == MSG_PLACE;
}

/* Whether a READ response is what its place demands; `m` is its message, whose next response it is. */
static bool bad_read_response(const struct requester *r, const struct req_msg *m, const struct pkt *p, struct verdict *v)
{
    bool last = m->got + 1 == m->span;
    uint32_t want = last ? m->len - m->got * r->p.pmtu : r->p.pmtu;

    if (last != !!(p->op->flags & OPF_END))
        return fail(v, RULE_RDA_02, "opcode", last ? OP_READ_RESP_LAST : OP_READ_RESP_MIDDLE, p->bth.opcode & 31);
    return p->payload_len == want ? false : fail(v, RULE_RDA_03, "payload bytes", want, p->payload_len);
}

static void rx_data(struct requester *r, const struct pkt *p, struct effects *e, ns_t now)
{
    struct req_msg *m;
    struct verdict v;

    if (!advance(r, p->bth.psn, e)) {
        if (r->p.rxe && r->p.certain && psn_in(p->bth.psn, req_msg(r, r->msg_head)->psn, req_msg(r, r->msg_head)->span)) {
            progress(r, e, now);
            e->flags |= EFF_DROP;
            e->reason = WHY_GAP;
        } else {
            implied_nak(r, e, now);
        }
        return;
    }
    m = r->msg_head != r->msg_tail ? req_msg(r, r->msg_head) : NULL;
    if (!m || r->una_hi != p->bth.psn || !is_answered_by(m, p)) {
        progress(r, e, now);
        e->flags |= EFF_DROP;
        e->reason = WHY_GHOST;
        return;
    }
    if (m->kind == MSG_READ && UNLIKELY(bad_read_response(r, m, p, &v))) {
        progress(r, e, now);
        die(r, e, WC_BAD_RESP_ERR);
        return;
    }
    e->flags |= m->kind == MSG_READ ? EFF_READ_DATA : EFF_ATOMIC_DATA;
    e->msg = r->msg_head;
    e->offset = m->got * r->p.pmtu;
    e->len = m->kind == MSG_READ ? p->payload_len : 8;
    m->got++;
    advance(r, psn_add(p->bth.psn, 1), e);
    if (p->have & H_AETH)
        take_credits(r, p, e);
    progress(r, e, now);
}

struct effects req_rx(struct requester *r, const struct pkt *p, ns_t now)
{
    struct effects e = {0};

    if (UNLIKELY(r->dead || p->op->name == NULL || !(p->op->flags & OPF_RESPONSE) || p->bth.opcode >> 5 != r->p.service)) {
        e.flags = EFF_DROP;
        e.reason = r->dead ? WHY_STATE : WHY_INVALID;
        return e;
    }
    if (UNLIKELY(psn_diff(p->bth.psn, r->psn_next) >= 0)) {
        e.flags = EFF_DROP;
        e.reason = WHY_GHOST;
        return e;
    }
    if (!r->p.certain) {
        uint32_t heard = p->op->flags & OPF_ACK && p->aeth.syndrome >> 5 != AETH_ACK ? p->bth.psn : psn_add(p->bth.psn, 1);
        if (psn_diff(heard, r->heard) > 0)
            r->heard = heard;
        if (req_going_back(r) && psn_diff(heard, r->back_psn) > 0)
            r->retry_left = r->p.retry_cnt; /* it answers the last try, and may have been lost behind the tap the times before */
    }
    if (UNLIKELY(psn_diff(p->bth.psn, r->una_hi) < 0)) {
        e.flags = EFF_DROP;
        e.reason = WHY_STALE;
        if (p->op->flags & OPF_ACK && p->bth.psn == psn_add(r->una_hi, PSN_MASK))
            take_credits(r, p, &e);
        return e;
    }
    if (p->op->flags & OPF_ACK)
        rx_ack(r, p, &e, now);
    else
        rx_data(r, p, &e, now);
    return e;
}

struct verdict req_rx_check_msn(const struct requester *r, const struct pkt *p)
{
    bool nak = p->op->flags & OPF_ACK && p->aeth.syndrome >> 5 != AETH_ACK, open;
    uint32_t n, low, high, msn = p->aeth.msn;
    const struct req_msg *m;
    struct verdict v;
    enum rule rule = p->op->flags & OPF_READ_RESP ? RULE_ACK_07 : RULE_ACK_06;

    if (!r->counted || !(p->have & H_AETH) || r->msg_tail == r->msg_head)
        return verdict_pass();
    n = req_find(r, p->bth.psn);
    if (n == r->msg_tail)
        return verdict_pass();
    m = req_msg(r, n);
    open = req_msg(r, r->msg_tail - 1)->open;
    low = psn_add(m->ssn, PSN_MASK);
    high = open ? psn_add(r->ssn, PSN_MASK) : r->ssn;
    if (nak)
        high = low;
    else if (!(p->op->flags & OPF_READ_RESP) && !m->open && (takes_response(m) || p->bth.psn == psn_add(m->psn, m->span - 1)))
        low = m->ssn;
    if (LIKELY(psn_diff(msn, low) >= 0 && psn_diff(msn, high) <= 0))
        return verdict_pass();
    v = verdict_fail(rule, "MSN", psn_diff(msn, low) < 0 ? low : high, msn);
    v.needs = psn_diff(msn, low) < 0 || r->p.certain ? 0 : N_COMPLETE; /* requests that were not seen count, too */
    return v;
}

struct effects req_settle(struct requester *r)
{
    struct effects e = {0};

    if (r->p.service == SVC_RC) {
        advance(r, r->una_hi, &e);
        return e;
    }
    while (r->msg_head != r->msg_tail && !req_msg(r, r->msg_head)->open) {
        r->msg_head++;
        e.completed++;
    }
    return e;
}

/* --- Time -------------------------------------------------------------------------------------------------------------------- */

ns_t req_expiry(const struct requester *r)
{
    ns_t wait;

    if (r->dead)
        return NS_NEVER;
    if (r->rnr_wait)
        return r->rnr_until;
    wait = ack_timeout(r->p.timeout);
    return r->timer == NS_NEVER || wait == NS_NEVER ? NS_NEVER : r->timer + wait;
}

struct effects req_expire(struct requester *r, ns_t now)
{
    struct effects e = {0};

    if (r->dead || now < req_expiry(r))
        return e;
    if (r->rnr_wait) {
        r->rnr_wait = false;
        r->went_back = false;
        e.flags = EFF_RETRANSMIT;
        e.reason = WHY_RNR_NAK;
        return e;
    }
    go_back(r, WHY_TIMEOUT, &e);
    return e;
}
