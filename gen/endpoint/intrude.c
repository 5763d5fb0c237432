/* layer 3 (endpoint): faults by which a requester plays somebody else as well: packets that are none of its queue
 * pair's. */
#include "gen/endpoint/endpoint_impl.h"
#include "gen/endpoint/faults.h"

#include <errno.h>

#define TRIES    80       /* requests that try a PSN */
#define TRY_FROM 0x400000 /* PSNs before the next one; so far back everything is a duplicate */
#define HOPS     3        /* that the packets of somebody else have passed */

static int build(struct ep_qp *q, const struct path *path, struct pkt *p, uint8_t *buf, uint32_t cap,
                 const struct build_tweak *tweak)
{
    struct frame_out out = {.buf = buf, .cap = cap};

    if (build_begin(&out, path, p, p->payload_len, q->ep->ip_id, tweak))
        return -ENOSPC;
    memset(out.payload, 0xff, p->payload_len);
    build_end(&out, path, p, p->payload_len, tweak);
    q->ep->ip_id++;
    q->ep->sent = (struct ep_sent){.request = true, .psn = p->bth.psn};
    return (int)out.len;
}

/* Fault CHOICE_SWEEP: empty SENDs of PSNs far from those of the connection, between two of its requests. */
static int try_psn(struct ep_qp *q, uint8_t *buf, uint32_t cap)
{
    const struct requester *r = &q->qp.req;
    const struct build_tweak tweak = {0};
    struct pkt *p = &q->ep->tx;

    if (q->tried == TRIES || (!q->tried && !ep_fault_choice(q, CHOICE_SWEEP)))
        return 0;
    ep_fill_bth(q, p, OPCODE(r->p.service, OP_SEND_ONLY), psn_add(r->psn_tx, PSN_MASK + 1 - TRY_FROM + q->tried++));
    return build(q, &q->path, p, buf, cap, &tweak);
}

/* Fault CHOICE_FORGE: the packet at (`n`, `off`) with other bytes, from further away, before that of the requester. */
static int forge(struct ep_qp *q, uint32_t n, uint32_t off, uint8_t *buf, uint32_t cap)
{
    const struct build_tweak tweak = {.has_ttl = true, .ttl = (uint8_t)(q->qp.attr.av.hop_limit - HOPS)};
    uint32_t since = q->ps.since_ackreq, skip;
    struct pkt *p = &q->ep->tx;

    ep_fill_request(q, p, n, off, &skip);
    q->ps.since_ackreq = since;
    return p->payload_len && q->path.net_off && ep_fault_choice(q, CHOICE_FORGE)
               ? build(q, &q->path, p, buf, cap, &tweak)
               : 0;
}

int ep_intrude(struct ep_qp *q, uint32_t n, uint32_t off, uint8_t *buf, uint32_t cap)
{
    const struct requester *r = &q->qp.req;
    int sent = 0;

    if (!qp_is_reliable(q->qp.type) || req_going_back(r) || r->psn_tx == r->p.psn)
        return 0;
    if (ep_may_choose(q->ep, CHOICE_SWEEP))
        sent = try_psn(q, buf, cap);
    return sent || !ep_may_choose(q->ep, CHOICE_FORGE) ? sent : forge(q, n, off, buf, cap);
}
