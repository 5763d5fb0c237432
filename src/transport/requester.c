/* layer 2 (transport): the apply half of a requester that sends: messages begun, continued and sent again. */
#include "src/transport/req_apply.h"

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

/* --- Sending ---------------------------------------------------------------------------------- */

/* A validator's ring is full: the oldest message is taken for complete, and forgotten. */
static void forget_oldest(struct requester *r)
{
    const struct req_msg *m = req_msg(r, r->msg_head);
    uint32_t end = psn_add(m->psn, m->span);

    if (req_takes_depth(m))
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

/* A validator has not seen what was sent before `p`. Returns whether a message begins with it, of which *holes may be
 * missing. */
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
    req_skip_local(r);
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
