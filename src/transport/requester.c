/* layer 2 (transport): the apply half of a requester that sends: messages begun, continued and retransmitted. */
#include "fetch.h"
#include "src/transport/transport_impl.h"

void req_init(struct requester *r, const struct req_params *p, struct req_msg *ring, uint32_t n)
{
    memset(r, 0, sizeof *r);
    r->p = *p;
    r->psn_next = r->psn_tx = r->una_lo = r->una_hi = r->rtx_end = p->psn & PSN_MASK;
    r->unlimited = !p->credits;
    r->retry_left = p->retry_cnt;
    r->rnr_left = p->rnr_retry;
    r->timer = NS_NEVER;
    r->msg_off = (int32_t)((const char *)ring - (const char *)r);
    r->msg_mask = n - 1;
}

/* The message of PSN `psn` among numbers `lo` to msg_tail, by binary search. */
static uint32_t find_from(const struct requester *r, uint32_t psn, uint32_t lo)
{
    uint32_t hi = r->msg_tail, mid;

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

uint32_t req_find(const struct requester *r, uint32_t psn)
{
    return find_from(r, psn, r->msg_head);
}

uint32_t req_find_remembered(const struct requester *r, uint32_t psn)
{
    uint32_t size = r->msg_mask + 1;

    return find_from(r, psn, r->msg_tail > size ? r->msg_tail - size : 0);
}

bool req_next_response(const struct requester *r, uint32_t *psn)
{
    for (uint32_t n = r->msg_head; req_resources(r) && n != r->msg_tail; n++) {
        const struct req_msg *m = req_msg(r, n);
        if (req_takes_response(m) && m->got < m->span) {
            *psn = psn_add(m->psn, m->got);
            return true;
        }
    }
    return false;
}

/* --- Sending ---------------------------------------------------------------------------------- */

/* The ring is full, which happens to a validator only: treat the oldest message as complete and remove it. */
static void forget_oldest(struct requester *r)
{
    const struct req_msg *m = req_msg(r, r->msg_head);
    uint32_t end = psn_add(m->psn, m->span);

    req_release(r, m);
    if (psn_diff(end, r->una_hi) > 0)
        r->una_hi = end;
    r->msg_head++;
}

struct req_msg *req_begin(struct requester *r, const struct pkt *p)
{
    struct req_msg *m;
    uint32_t flags = p->op->flags;

    if (UNLIKELY(!req_has_room(r)))
        forget_oldest(r);
    m = req_msg(r, r->msg_tail++);
    fetch_to_write(req_msg(r, r->msg_tail), sizeof *m);

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

/* Begin a message with `p`, or continue the open one. */
static struct req_msg *append(struct requester *r, const struct pkt *p)
{
    struct req_msg *m = req_starts(r, p) ? req_begin(r, p) : req_msg(r, r->msg_tail - 1);

    req_extend(r, m, p, request_span(p, r->p.pmtu));
    return m;
}

void req_count(struct requester *r, const struct req_msg *m, const struct pkt *p)
{
    if (p->op->flags & (OPF_READ_REQ | OPF_ATOMIC_REQ))
        r->rd_out++;
    if (UNLIKELY(p->op->flags & (OPF_ATOMIC_WRITE | OPF_FLUSH)))
        r->place_out++;
    if (UNLIKELY(!r->unlimited) && m->credit && psn_diff(m->ssn, r->limit) > 0) {
        r->probing = true;
        r->probe_end = psn_add(p->bth.psn, 1);
    }
}

void req_resent(struct requester *r, const struct pkt *p, uint32_t n)
{
    const struct req_msg *m;
    uint32_t end;

    r->psn_tx = psn_add(p->bth.psn, request_span(p, r->p.pmtu));
    if (psn_diff(r->psn_tx, r->psn_next) > 0)
        r->psn_tx = r->psn_next;
    r->msg_tx = r->msg_tail;
    if (n == r->msg_tail)
        return;
    m = req_msg(r, n);
    end = psn_add(m->psn, m->span);
    r->msg_tx = psn_diff(r->psn_tx, end) < 0 || m->open ? n : n + 1;
    req_skip_local(r);
    if (UNLIKELY(r->p.selective && (r->cause == WHY_SEQUENCE_NAK || r->cause == WHY_IMPLIED_NAK))) {
        r->psn_tx = r->psn_next;
        r->msg_tx = req_msg(r, r->msg_tail - 1)->open ? r->msg_tail - 1 : r->msg_tail;
    }
}

struct effects req_unreliable_sent(struct requester *r)
{
    struct effects e = req_settle(r);

    r->una_lo = r->una_hi = r->psn_next;
    return e;
}

static void rc_tx(struct requester *r, const struct pkt *p, ns_t now)
{
    uint32_t psn = p->bth.psn;

    if (r->timer == NS_NEVER || psn_diff(psn, r->psn_tx) < 0)
        r->timer = now;
    if (UNLIKELY(psn_diff(psn, r->psn_next) < 0))
        req_resent(r, p, psn == r->psn_tx ? r->msg_tx : req_find(r, psn));
    else
        req_count(r, append(r, p), p);
}

struct effects req_tx(struct requester *r, const struct pkt *p, ns_t now)
{
    if (UNLIKELY(is_unreliable(r->p.service))) {
        append(r, p);
        return req_unreliable_sent(r);
    }
    rc_tx(r, p, now);
    return (struct effects){0};
}

void req_local(struct requester *r)
{
    struct req_msg *m = req_msg(r, r->msg_tail);

    *m = (struct req_msg){.psn = r->psn_next, .kind = MSG_LOCAL};
    r->msg_tail++;
    if (!req_going_back(r))
        r->msg_tx = r->msg_tail;
}
