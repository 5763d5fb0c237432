/* layer 3 (endpoint): flaws: what the endpoint does wrong with its keys, its memory and its rate, which packets need
 * not show. */
#include "gen/endpoint/endpoint_impl.h"
#include "gen/endpoint/faults.h"

const struct flaw_info flaw_table[FLAW_COUNT] = {
    [FLAW_ANY_PKEY] = {"any-pkey", "takes packets of other partitions"},
    [FLAW_LIMITED_PKEY] = {"limited-pkey", "as a limited member of a partition takes packets of another limited one"},
    [FLAW_ANY_RKEY] = {"any-rkey", "a READ or WRITE with an unknown R_Key gets the region that has its address"},
    [FLAW_EMPTY_WINDOW] = {"empty-window", "binds a type 2 window to no bytes, without an error"},
    [FLAW_RECEIVE_LOST] = {"receive-lost", "a datagram longer than its receive takes the receive all the same"},
    [FLAW_RECEIVE_OVERRUN] = {"receive-overrun", "a datagram longer than its receive is written on behind it"},
    [FLAW_HEADER_FIRST] = {"header-first", "the IPv4 header of a datagram is in the first 20 of the 40 bytes"},
    [FLAW_PAD_COUNTED] = {"pad-counted", "the length of a receive counts the pad bytes"},
    [FLAW_CNP_UNHEARD] = {"cnp-unheard", "a CNP does not reduce the rate"},
    [FLAW_CNP_FOR_ALL] = {"cnp-for-all", "a CNP reduces the rate of all queue pairs"},
    [FLAW_RATE_STAYS] = {"rate-stays", "a rate that was reduced for a CNP is not increased again"},
};

int flaw_find(const char *name)
{
    for (int i = 0; i < FLAW_COUNT; i++)
        if (strcmp(flaw_table[i].name, name) == 0)
            return i;
    return -1;
}

/* The key of a region in which these bytes can be accessed by `q`; 0: there is none. */
static uint32_t key_of(const struct ep_qp *q, const struct reth *h, uint8_t access)
{
    const struct mr_table *t = &q->ep->mrs;

    for (uint32_t i = 1; i < t->used; i++) {
        uint32_t key = i << 8 | t->mr[i].variant;
        if (mr_check(t, key, q->pd, q->qp.qpn, h->va, h->dmalen, access).status == MR_OK)
            return key;
    }
    return 0;
}

const struct pkt *ep_flaw_request(const struct ep_qp *q, const struct pkt *p, struct pkt *changed)
{
    uint8_t access = p->op->flags & OPF_WRITE ? ACCESS_REMOTE_WRITE : ACCESS_REMOTE_READ;
    uint32_t key;

    if (!ep_has_flaw(q->ep, FLAW_ANY_RKEY) || !(p->have & H_RETH) || mr_kind_of(&q->ep->mrs, p->reth.rkey) != MR_FREE ||
        !(key = key_of(q, &p->reth, access)))
        return p;
    *changed = *p;
    changed->reth.rkey = key;
    return changed;
}

void ep_flaw_receive(struct ep_qp *q, const struct pkt *p)
{
    struct ep_rq *rq = rq_of(q);
    uint32_t slot = rq->head & rq->mask, want = p->payload_len + UD_GRH_BYTES;
    struct ep_rwqe *w = &rq->wqe[slot];

    if (q->qp.type != QPT_UD || rq_count(rq) == 0 || !w->num_sge || w->len >= want ||
        !ep_has_flaw(q->ep, FLAW_RECEIVE_OVERRUN))
        return;
    rq->sge[(size_t)slot * rq->max_sge + w->num_sge - 1].length += want - w->len;
    w->len = want;
}

bool ep_flaw_cnp(struct ep_qp *q, ns_t now)
{
    struct endpoint *ep = q->ep;

    if (ep_has_flaw(ep, FLAW_CNP_UNHEARD))
        return true;
    if (!ep_has_flaw(ep, FLAW_CNP_FOR_ALL))
        return false;
    for (uint32_t i = 0; i < ep->n_qp; i++)
        if (ep->qp[i])
            ep_cc_slow_down(ep->qp[i], now);
    return true;
}

void ep_flaw_rate(struct ep_qp *q)
{
    if (ep_has_flaw(q->ep, FLAW_RATE_STAYS) && q->cc->kept && q->cc->c.rate > q->cc->kept)
        q->cc->c.rate = q->cc->kept;
}
