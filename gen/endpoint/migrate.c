/* layer 3 (endpoint): path migration (17.2.8): the path that a packet must have come along, and a queue pair that
 * changes to its alternate path.
 *
 * States, and what leads from one to the next; packets carry MigReq 1 in MIGRATED only:
 *
 *   MIGRATED --- a path is loaded, and the verb rearms --> REARM --- a packet with MigReq 0 --> ARMED
 *      ^                                                                                          |
 *      +--- retries exhausted, the verb, or a packet with MigReq 1 along the alternate path ------+
 */
#include <errno.h>

#include "gen/endpoint/endpoint_impl.h"

const struct link_addr *ep_port(const struct endpoint *ep, unsigned port)
{
    if (port <= 1)
        return &ep->cfg.addr;
    return port == 2 && ep->cfg.two_ports ? &ep->cfg.port2 : NULL;
}

static bool same_gid(const struct pkt *p, const uint8_t *addr, const uint8_t gid[16])
{
    return p->addr_len == 4 ? gid_is_ipv4(gid) && memcmp(addr, gid + 12, 4) == 0 : memcmp(addr, gid, 16) == 0;
}

static bool is_at(const struct link_addr *own, const struct pkt *p)
{
    if (p->encap == ENCAP_IB && p->lrh.dlid != own->lid)
        return false;
    return p->addr_len == 0 || same_gid(p, p->dst, own->gid);
}

int ep_sgid_index(const struct endpoint *ep, const uint8_t gid[16])
{
    const uint8_t *first = ep->cfg.addr.gid;
    uint32_t n = load_be32(gid + 12) - load_be32(first + 12);

    return memcmp(gid, first, 12) == 0 && n < max_u32(ep->cfg.addrs, 1) ? (int)n : -1;
}

/* Which of several own addresses a packet is addressed to; -1: none. */
static int index_addressed(const struct endpoint *ep, const struct pkt *p)
{
    uint8_t gid[16];

    if (p->addr_len == 4)
        gid_from_ipv4(gid, load_be32(p->dst));
    return p->addr_len ? ep_sgid_index(ep, p->addr_len == 4 ? gid : p->dst) : -1;
}

unsigned ep_port_addressed(const struct endpoint *ep, const struct pkt *p)
{
    if (LIKELY(is_at(&ep->cfg.addr, p)))
        return 1;
    if (UNLIKELY(ep->cfg.addrs > 1) && index_addressed(ep, p) >= 0)
        return 1;
    return ep->cfg.two_ports && is_at(&ep->cfg.port2, p) ? 2 : 0;
}

bool ep_source(const struct endpoint *ep, const struct av *av, struct link_addr *own)
{
    const struct link_addr *first = ep_port(ep, av->port);

    if (!first || av->sgid_index >= max_u32(ep->cfg.addrs, 1))
        return false;
    *own = link_addr_nth(first, av->sgid_index);
    return true;
}

int ep_path_init(const struct endpoint *ep, const struct av *av, struct path *path)
{
    struct link_addr own;
    int err = ep_source(ep, av, &own) ? path_init(path, &own, av) : -EINVAL;

    path->no_icrc = ep->cfg.no_icrc;
    return err;
}

static bool asks_to_migrate(const struct ep_qp *q, const struct pkt *p)
{
    return q->qp.attr.mig_state == MIG_ARMED && p->bth.migreq && !(p->op->flags & OPF_CNP);
}

bool ep_path_ok(const struct ep_qp *q, const struct pkt *p)
{
    const struct av *av = UNLIKELY(asks_to_migrate(q, p)) ? &q->qp.attr.alt_av : &q->qp.attr.av;

    if (UNLIKELY(q->ep->cfg.two_ports) &&
        (!is_at(ep_port(q->ep, av->port), p) || (p->encap == ENCAP_IB && p->lrh.slid != av->dlid)))
        return false;
    if (UNLIKELY(q->ep->cfg.addrs > 1) && index_addressed(q->ep, p) != av->sgid_index)
        return false;
    return p->addr_len == 0 || same_gid(p, p->src, av->dgid);
}

void ep_path_refused(struct ep_qp *q, const struct pkt *p, ns_t now)
{
    if (!asks_to_migrate(q, p) || q->mig_err)
        return;
    q->mig_err = true;
    ep_raise(q->ep, EP_EV_PATH_MIG_ERR, q->handle, now);
}

void ep_migrated(struct ep_qp *q, enum ep_migration why, ns_t now)
{
    const struct ep_watch *w = q->ep->watch;

    ep_set_path(q);
    q->qp.req.retry_left = q->qp.req.p.retry_cnt;
    q->st.migrated++;
    q->ep->st.migrated++;
    ep_raise(q->ep, EP_EV_PATH_MIG, q->handle, now);
    if (w)
        w->migrated(w->user, q->handle, why, now);
}

void ep_path_confirmed(struct ep_qp *q, const struct pkt *p, ns_t now)
{
    if (asks_to_migrate(q, p)) {
        qp_migrate(&q->qp);
        ep_migrated(q, EP_MIG_ASKED, now);
    } else if (q->qp.attr.mig_state == MIG_REARM && !p->bth.migreq && !(p->op->flags & OPF_CNP)) {
        q->qp.attr.mig_state = MIG_ARMED;
    }
}

bool ep_migrate_instead(struct ep_qp *q, const struct effects *e, ns_t now)
{
    struct requester *r = &q->qp.req;

    if (LIKELY(q->qp.attr.mig_state != MIG_ARMED) || e->status != WC_RETRY_EXC_ERR)
        return false;
    qp_migrate(&q->qp);
    ep_migrated(q, EP_MIG_RETRIES, now);
    r->dead = false;
    r->retry_left = (uint8_t)(r->p.retry_cnt + 1); /* the first try along the new path is none */
    if (r->timer == NS_NEVER)
        r->timer = INT64_MIN / 2; /* the timer had expired: expire again at once */
    return true;
}
