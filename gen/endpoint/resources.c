/* layer 3 (endpoint): an endpoint's resources: completion queues, receive queues, memory, address handles, events. */
#include <errno.h>
#include <stdlib.h>

#include "gen/endpoint/endpoint_impl.h"

static uint32_t round_up(uint32_t n)
{
    uint32_t p = 1;

    while (p < n)
        p <<= 1;
    return p;
}

uint32_t ep_pd_alloc(struct endpoint *ep)
{
    return ++ep->pds;
}

void ep_raise(struct endpoint *ep, enum ep_event_type type, int handle, ns_t now)
{
    if (ep->ev_tail - ep->ev_head == EP_EVENTS)
        ep->ev_head++;
    ep->event[ep->ev_tail++ % EP_EVENTS] = (struct ep_event){(uint8_t)type, handle, now};
}

bool ep_event(struct endpoint *ep, struct ep_event *event)
{
    if (ep->ev_head == ep->ev_tail)
        return false;
    *event = ep->event[ep->ev_head++ % EP_EVENTS];
    return true;
}

const char *ep_event_str(enum ep_event_type t)
{
    static const char *const names[] = {"QP_FATAL",   "QP_REQ_ERR", "QP_ACCESS_ERR", "COMM_EST",
                                        "SQ_DRAINED", "SRQ_LIMIT",  "LAST_WQE",      "CQ_ERR",
                                        "CQ_NOTIFY",  "PATH_MIG",   "PATH_MIG_ERR"};
    return (unsigned)t < ARRAY_LEN(names) ? names[t] : "?";
}

/* --- Completion queues ------------------------------------------------------------------------ */

/* A free completion queue handle; those destroyed are reused. */
static int free_cq(struct endpoint *ep)
{
    struct ep_cq **grown;
    uint8_t *full;

    for (; ep->cq_used < ep->n_cq; ep->cq_used++)
        if (!ep->cq[ep->cq_used]->wc)
            return (int)ep->cq_used;
    if ((ep->n_cq & (ep->n_cq - 1)) == 0) { /* room for as many again */
        grown = realloc(ep->cq, (ep->n_cq ? 2 * (size_t)ep->n_cq : 1) * sizeof *grown);
        if (grown)
            ep->cq = grown;
        full = realloc(ep->cq_full, ep->n_cq ? 2 * (size_t)ep->n_cq : 1);
        if (full)
            ep->cq_full = full;
        if (!grown || !full)
            return -ENOMEM;
    }
    ep->cq_full[ep->n_cq] = 0;
    ep->cq[ep->n_cq] = calloc(1, sizeof *ep->cq[0]);
    return ep->cq[ep->n_cq] ? (int)ep->n_cq++ : -ENOMEM;
}

int ep_cq_create(struct endpoint *ep, uint32_t depth)
{
    struct ep_cq *cq;
    int i;

    if (depth > UINT32_C(1) << 24)
        return -EINVAL;
    i = free_cq(ep);
    if (i < 0)
        return i;
    cq = ep->cq[i];
    *cq = (struct ep_cq){.mask = round_up(depth ? depth : 1) - 1};
    cq->wc = malloc((cq->mask + 1) * sizeof *cq->wc);
    return cq->wc ? i : -ENOMEM;
}

void ep_cq_destroy(struct endpoint *ep, int cq)
{
    if (cq < 0 || (uint32_t)cq >= ep->n_cq)
        return;
    free(ep->cq[cq]->wc);
    *ep->cq[cq] = (struct ep_cq){0};
    ep->cq_full[cq] = 0;
    ep->cq_used = min_u32(ep->cq_used, (uint32_t)cq);
}

int ep_cq_next(const struct endpoint *ep, int from)
{
    const uint8_t *at =
        from >= 0 && (uint32_t)from < ep->n_cq ? memchr(ep->cq_full + from, 1, ep->n_cq - (uint32_t)from) : NULL;

    return at ? (int)(at - ep->cq_full) : -ENOENT;
}

int ep_cq_arm(struct endpoint *ep, int cq, bool solicited_only)
{
    if (cq < 0 || (uint32_t)cq >= ep->n_cq)
        return -EINVAL;
    ep->cq[cq]->armed = true;
    ep->cq[cq]->armed_solicited = solicited_only;
    return 0;
}

bool ep_complete(struct endpoint *ep, int handle, const struct wc *wc, bool solicited)
{
    struct ep_cq *cq = ep->cq[handle];

    if (cq->tail - cq->head > cq->mask) {
        if (!cq->overflowed)
            ep_raise(ep, EP_EV_CQ_ERR, handle, wc->when);
        cq->overflowed = true;
        return false;
    }
    cq->wc[cq->tail++ & cq->mask] = *wc;
    ep->cq_full[handle] = 1;
    if (cq->armed && (!cq->armed_solicited || solicited || wc->status != WC_SUCCESS)) {
        cq->armed = false;
        ep_raise(ep, EP_EV_CQ_NOTIFY, handle, wc->when);
    }
    return true;
}

int ep_poll(struct endpoint *ep, int handle, struct wc *wc, int n)
{
    struct ep_cq *cq;
    int got = 0;

    if (handle < 0 || (uint32_t)handle >= ep->n_cq)
        return -EINVAL;
    cq = ep->cq[handle];
    while (got < n && cq->head != cq->tail)
        wc[got++] = cq->wc[cq->head++ & cq->mask];
    ep->cq_full[handle] = cq->head != cq->tail;
    return got;
}

/* --- Receive queues --------------------------------------------------------------------------- */

int rq_init(struct ep_rq *rq, uint32_t depth, uint16_t max_sge)
{
    memset(rq, 0, sizeof *rq);
    if (depth > UINT32_C(1) << 20 || max_sge > RQ_SGE_MAX)
        return -EINVAL;
    rq->max = depth ? depth : 1;
    rq->mask = round_up(rq->max) - 1;
    rq->max_sge = max_sge ? max_sge : 1;
    rq->wqe = malloc((rq->mask + 1) * sizeof *rq->wqe);
    rq->sge = malloc((size_t)(rq->mask + 1) * rq->max_sge * sizeof *rq->sge);
    if (rq->wqe && rq->sge)
        return 0;
    rq_free(rq);
    return -ENOMEM;
}

void rq_free(struct ep_rq *rq)
{
    free(rq->wqe);
    free(rq->sge);
    rq->wqe = NULL;
    rq->sge = NULL;
}

int rq_post(struct ep_rq *rq, const struct recv_wr *wr)
{
    struct ep_rwqe *w = &rq->wqe[rq->tail & rq->mask];
    uint64_t len = 0;

    if (wr->num_sge > rq->max_sge)
        return -E2BIG;
    if (rq_count(rq) >= rq->max)
        return -ENOMEM;
    for (unsigned i = 0; i < wr->num_sge; i++)
        len += wr->sg_list[i].length;
    if (len > UINT32_MAX)
        return -E2BIG;
    w->wr_id = wr->wr_id;
    w->num_sge = wr->num_sge;
    w->len = (uint32_t)len;
    if (wr->num_sge)
        memcpy(&rq->sge[(size_t)(rq->tail & rq->mask) * rq->max_sge], wr->sg_list, wr->num_sge * sizeof *wr->sg_list);
    rq->tail++;
    return 0;
}

struct ep_srq *ep_srq_of(const struct endpoint *ep, int handle)
{
    return handle >= 0 && (uint32_t)handle < ep->n_srq && ep->srq[handle]->rq.wqe ? ep->srq[handle] : NULL;
}

/* A free shared receive queue handle; those destroyed are reused. */
static int free_srq(struct endpoint *ep)
{
    struct ep_srq **grown;

    for (uint32_t i = 0; i < ep->n_srq; i++)
        if (!ep->srq[i]->rq.wqe)
            return (int)i;
    grown = realloc(ep->srq, (ep->n_srq + 1) * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    ep->srq = grown;
    ep->srq[ep->n_srq] = calloc(1, sizeof **grown);
    return ep->srq[ep->n_srq] ? (int)ep->n_srq++ : -ENOMEM;
}

int ep_srq_create(struct endpoint *ep, uint32_t pd, uint32_t depth, uint16_t max_sge)
{
    int i, err;

    if (pd == 0 || pd > ep->pds)
        return -EINVAL;
    i = free_srq(ep);
    if (i < 0)
        return i;
    *ep->srq[i] = (struct ep_srq){.pd = pd};
    err = rq_init(&ep->srq[i]->rq, depth, max_sge);
    return err ? err : i;
}

int ep_srq_destroy(struct endpoint *ep, int srq)
{
    if (!ep_srq_of(ep, srq))
        return -EINVAL;
    for (uint32_t i = 0; i < ep->n_qp; i++) {
        const struct ep_qp *q = ep->qp[i];
        if (q && q->srq == srq && (!q->xrcd || q->qp.rsp.recv_taken))
            return -EBUSY;
    }
    for (uint32_t i = 0; i < ep->n_qp; i++)
        if (ep->qp[i] && ep->qp[i]->srq == srq)
            ep->qp[i]->srq = EP_NO_SRQ;
    rq_free(&ep->srq[srq]->rq);
    *ep->srq[srq] = (struct ep_srq){0};
    return 0;
}

uint32_t ep_xrcd_alloc(struct endpoint *ep)
{
    return ++ep->xrcds;
}

int ep_srq_to_xrc(struct endpoint *ep, int srq, uint32_t xrcd, int cq)
{
    if (!ep_srq_of(ep, srq) || xrcd == 0 || xrcd > ep->xrcds || cq < 0 || (uint32_t)cq >= ep->n_cq)
        return -EINVAL;
    ep->srq[srq]->xrcd = xrcd;
    ep->srq[srq]->cq = cq;
    return 0;
}

#define SRQN_FIRST 0x40

uint32_t ep_srq_number(const struct endpoint *ep, int srq)
{
    return ep_srq_of(ep, srq) ? SRQN_FIRST + (uint32_t)srq : 0;
}

int ep_srq_of_number(const struct endpoint *ep, uint32_t number, uint32_t xrcd)
{
    uint32_t i = number - SRQN_FIRST;

    return i < ep->n_srq && xrcd && ep->srq[i]->xrcd == xrcd ? (int)i : EP_NO_SRQ;
}

int ep_srq_limit(struct endpoint *ep, int srq, uint32_t limit)
{
    if (!ep_srq_of(ep, srq))
        return -EINVAL;
    ep->srq[srq]->limit = limit;
    return 0;
}

int ep_post_srq_recv(struct endpoint *ep, int srq, const struct recv_wr *wr, ns_t now)
{
    (void)now;
    if (!ep_srq_of(ep, srq))
        return -EINVAL;
    return rq_post(&ep->srq[srq]->rq, wr);
}

int ep_post_recv(struct endpoint *ep, int qp, const struct recv_wr *wr, ns_t now)
{
    struct ep_qp *q = qp_of(ep, qp);
    int err;

    if (!q || !has_own_receives(q) || q->qp.state == QPS_RESET)
        return -EINVAL;
    err = rq_post(&q->rq, wr);
    if (err)
        return err;
    if (q->qp.state == QPS_ERR) {
        ep_flush_recv(q, now);
    } else if (q->qp.rsp.p.credits && q->qp.rsp.avail_sent == 0 && qp_can_receive(&q->qp) && q->qp.rsp.started) {
        q->qp.rsp.ack_due = true; /* the requester waits for credits */
        q->ps.ack_due = now;
        ep_ready(q);
    }
    return 0;
}

int ep_qp_set_refill(struct endpoint *ep, int qp, const struct sge *piece)
{
    struct ep_qp *q = qp_of(ep, qp);

    if (!q || !has_own_receives(q))
        return -EINVAL;
    q->refill_sge = *piece;
    return 0;
}

void ep_refill(struct ep_qp *q, ns_t now)
{
    bool due = q->refill_at <= now;
    struct recv_wr wr = {.sg_list = &q->refill_sge, .num_sge = q->refill_sge.length ? 1 : 0};
    uint32_t n;
    ns_t when;

    if (!has_own_receives(q) || q->pol.refill == &refill_none || (!due && q->refill_at != NS_NEVER))
        return;
    q->refill_at = NS_NEVER;
    n = q->pol.refill->post(rq_count(&q->rq), q->rq.max, now, &when, q->pol.refill_arg);
    if (n && !due && when > now && q->qp.rsp.started) {
        q->refill_at = when;
        ep_timer(q, when);
        return;
    }
    for (; n; n--) {
        wr.wr_id = q->refill_id++;
        if (ep_post_recv(q->ep, q->handle, &wr, now))
            return;
    }
}

/* --- Memory ----------------------------------------------------------------------------------- */

int ep_mr_reg(struct endpoint *ep, uint32_t pd, void *mem, uint64_t len, uint64_t iova, uint8_t access, uint32_t *key)
{
    if (pd == 0 || pd > ep->pds || iova + len < iova)
        return -EINVAL;
    if (access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC) && !(access & ACCESS_LOCAL_WRITE))
        return -EINVAL;
    *key = mr_register(&ep->mrs, pd, iova, len, access & (uint8_t)~ACCESS_ZERO_BASED, access & ACCESS_ZERO_BASED);
    if (!*key)
        return -ENOMEM;
    ep->mem[*key >> 8] = mem;
    return 0;
}

int ep_mr_alloc(struct endpoint *ep, uint32_t pd, uint64_t most, uint32_t *key)
{
    if (pd == 0 || pd > ep->pds || most == 0)
        return -EINVAL;
    *key = mr_alloc(&ep->mrs, pd, most);
    return *key ? 0 : -ENOMEM;
}

int ep_mr_dereg(struct endpoint *ep, uint32_t key)
{
    return mr_deregister(&ep->mrs, key);
}

int ep_mr_access(struct endpoint *ep, uint32_t key, uint8_t access)
{
    return mr_set_access(&ep->mrs, key, access);
}

int ep_mw_alloc(struct endpoint *ep, uint32_t pd, enum mr_kind kind, uint32_t *key)
{
    if (pd == 0 || pd > ep->pds || (kind != MR_WINDOW1 && kind != MR_WINDOW2))
        return -EINVAL;
    *key = mw_alloc(&ep->mrs, pd, kind);
    return *key ? 0 : -ENOMEM;
}

struct mr_table *ep_mr_table(struct endpoint *ep)
{
    return &ep->mrs;
}

/* Host memory of an SGE: a region, not a window. NULL: the check failed. */
static uint8_t *local_mem(const struct endpoint *ep, uint32_t pd, uint32_t lkey, uint64_t addr, uint32_t len,
                          uint8_t access)
{
    struct mr_hit hit = mr_check(&ep->mrs, lkey, pd, 0, addr, len, access);

    if (hit.status != MR_OK || ep->mrs.mr[hit.index].kind != MR_REGION || hit.index != lkey >> 8)
        return NULL;
    return ep->mem[hit.index] + hit.offset;
}

bool sge_check(const struct endpoint *ep, uint32_t pd, const struct sge *sge, unsigned n, uint8_t access)
{
    for (unsigned i = 0; i < n; i++)
        if (sge[i].length && !local_mem(ep, pd, sge[i].lkey, sge[i].addr, sge[i].length, access))
            return false;
    return true;
}

bool sge_copy(const struct endpoint *ep, uint32_t pd, const struct sge *sge, unsigned n, uint32_t offset, uint8_t *data,
              uint32_t len, bool to_memory)
{
    for (unsigned i = 0; i < n && len; i++) {
        uint32_t part;
        uint8_t *mem;
        if (offset >= sge[i].length) {
            offset -= sge[i].length;
            continue;
        }
        part = min_u32(len, sge[i].length - offset);
        mem = local_mem(ep, pd, sge[i].lkey, sge[i].addr + offset, part, to_memory ? ACCESS_LOCAL_WRITE : 0);
        if (!mem)
            return false;
        if (to_memory)
            ep_copy(ep, mem, data, part);
        else
            ep_copy(ep, data, mem, part);
        data += part;
        len -= part;
        offset = 0;
    }
    return len == 0;
}

uint8_t *ep_remote_mem(const struct endpoint *ep, const struct ep_qp *q, uint32_t rkey, uint64_t va, uint64_t len,
                       uint8_t access)
{
    struct mr_hit hit = mr_check(&ep->mrs, rkey, q->pd, q->qp.qpn, va, len, access);

    return hit.status == MR_OK ? ep->mem[hit.index] + hit.offset : NULL;
}

/* --- Multicast groups ------------------------------------------------------------------------- */

#define GROUPS_MAX 4096 /* most memberships of all queue pairs */

static uint32_t group_find(const struct endpoint *ep, int qp, const uint8_t gid[16])
{
    uint32_t i;

    for (i = 0; i < ep->n_group; i++)
        if (ep->group[i].qp == qp && memcmp(ep->group[i].gid, gid, 16) == 0)
            break;
    return i;
}

int ep_qp_attach(struct endpoint *ep, int qp, const uint8_t gid[16])
{
    const struct ep_qp *q = qp_of(ep, qp);
    struct ep_group *grown;

    if (!q || q->qp.type != QPT_UD || !gid_is_group(gid))
        return -EINVAL;
    if (group_find(ep, qp, gid) < ep->n_group)
        return 0;
    grown = ep->n_group < GROUPS_MAX ? realloc(ep->group, (ep->n_group + 1) * sizeof *grown) : NULL;
    if (!grown)
        return -ENOMEM;
    ep->group = grown;
    memcpy(grown[ep->n_group].gid, gid, 16);
    grown[ep->n_group++].qp = qp;
    return 0;
}

/* --- Address handles -------------------------------------------------------------------------- */

int ep_ah_create(struct endpoint *ep, uint32_t pd, const struct av *av)
{
    struct ep_ah *grown;
    uint32_t i;
    int err;

    if (pd == 0 || pd > ep->pds)
        return -EINVAL;
    for (i = 0; i < ep->n_ah && ep->ah[i].used; i++)
        ;
    if (i == ep->n_ah) {
        grown = realloc(ep->ah, (ep->n_ah + 1) * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        ep->ah = grown;
        ep->n_ah++;
    }
    err = ep_path_init(ep, av, &ep->ah[i].path);
    ep->ah[i].pd = pd;
    ep->ah[i].used = !err;
    ep->ah[i].auto_sport = !av->sport;
    return err ? err : (int)i;
}

int ep_ah_destroy(struct endpoint *ep, int ah)
{
    if (ah < 0 || (uint32_t)ah >= ep->n_ah || !ep->ah[ah].used)
        return -EINVAL;
    ep->ah[ah].used = false;
    return 0;
}
