/* layer 3 (cm): the paths of a connection manager: address handles of its messages, and the alternate paths that REQ,
 * LAP and APR agree on. */
#include "gen/cm/cm_agent_impl.h"

#include <errno.h>

/* --- Address handles -------------------------------------------------------------------------- */

static bool same_av(const struct av *a, const struct av *b)
{
    return a->port == b->port && a->sgid_index == b->sgid_index && a->dlid == b->dlid &&
           memcmp(a->dgid, b->dgid, 16) == 0 && memcmp(a->dmac, b->dmac, 6) == 0;
}

static int handle_of(struct cm_agent *a, const struct av *av)
{
    struct agent_path *p;

    for (p = a->paths; p < a->paths + a->n_paths; p++)
        if (same_av(&p->av, av))
            return p->ah;
    if (a->n_paths == a->cfg.max_paths && a->sending)
        return -ENOMEM; /* no free handle: the message is lost, as on the wire */
    if (a->n_paths == a->cfg.max_paths) {
        while (a->n_paths)
            ep_ah_destroy(a->cfg.ep, a->paths[--a->n_paths].ah);
        p = a->paths;
    }
    p->ah = ep_ah_create(a->cfg.ep, a->pd, av);
    if (p->ah < 0)
        return p->ah;
    p->av = *av;
    a->n_paths++;
    return p->ah;
}

int agent_path_to(struct cm_agent *a, const struct agent_conn *c, uint16_t sgid_index, const uint8_t gid[16])
{
    struct av av = {0};

    if (c && c->moved)
        return handle_of(a, &c->av);
    if (!a->cfg.path)
        return a->ah;
    if (!a->cfg.path(a->cfg.user, gid, &av))
        return -ENETUNREACH;
    av.sgid_index = sgid_index;
    return handle_of(a, &av);
}

void cm_agent_migrated(struct cm_agent *a, int qp)
{
    struct agent_conn *c = agent_of_qp(a, qp);
    const struct qp *q = ep_qp(a->cfg.ep, qp);

    if (!c || !q)
        return;
    c->moved = true;
    c->av = q->attr.av;
    c->av.sport = 0; /* that of the GSI */
}

/* --- Alternate paths -------------------------------------------------------------------------- */

/* The path in REQ or LAP for the queue pair. False: it is none from this host. */
static bool av_of(const struct cm_agent *a, const struct cm_path *path, struct av *av)
{
    *av = (struct av){0};
    if (!a->cfg.alternate || !a->cfg.alternate(a->cfg.user, path, av))
        return false;
    av->flow = path->flow;
    av->tclass = path->tclass;
    av->hop_limit = path->hop;
    av->sl = path->sl;
    av->grh = !path->subnet_local;
    return true;
}

/* A path as the other side sees it. */
static struct cm_path seen_from_other(const struct cm_path *p)
{
    struct cm_path q = *p;

    q.slid = p->dlid;
    q.dlid = p->slid;
    memcpy(q.sgid, p->dgid, 16);
    memcpy(q.dgid, p->sgid, 16);
    return q;
}

enum cm_failover agent_take_alternate(struct cm_agent *a, struct agent_conn *c)
{
    struct cm_path path = seen_from_other(&c->cm.peer.alt);

    if (!c->cm.peer.has_alt)
        return CM_FAILOVER_ACCEPTED;
    if (!a->cfg.alternate)
        return CM_FAILOVER_UNSUPPORTED;
    if (a->cfg.apr || !av_of(a, &path, &c->alt))
        return CM_FAILOVER_REJECTED;
    c->load_alt = true;
    return CM_FAILOVER_ACCEPTED;
}

void agent_load_agreed(struct cm_agent *a, struct agent_conn *c, ns_t now)
{
    const struct cm_params *own = &c->cm.own;
    uint8_t timeout = ep_qp(a->cfg.ep, c->qp)->attr.timeout;

    if (c->cm.active)
        c->load_alt = own->has_alt && c->cm.peer.failover == CM_FAILOVER_ACCEPTED && a->cfg.alternate &&
                      av_of(a, &own->alt, &c->alt);
    else if (c->load_alt)
        timeout = c->cm.peer.alt_timeout;
    if (c->load_alt)
        ep_qp_load_path(a->cfg.ep, c->qp, &c->alt, timeout, now);
    c->load_alt = false;
}

/* Load the path that a LAP offers, and say what became of it. */
static enum cm_apr_status load(struct cm_agent *a, const struct agent_conn *c, uint8_t timeout, ns_t now)
{
    struct av av;

    if (!av_of(a, &c->cm.offered, &av))
        return CM_APR_INVALID_GID;
    if (same_av(&av, &ep_qp(a->cfg.ep, c->qp)->attr.av))
        return CM_APR_IS_CURRENT;
    return ep_qp_load_path(a->cfg.ep, c->qp, &av, timeout, now) ? CM_APR_REJECT : CM_APR_SUCCESS;
}

void agent_lap_event(struct cm_agent *a, struct agent_conn *c, enum cm_event e, ns_t now)
{
    enum cm_apr_status status = (enum cm_apr_status)a->cfg.apr;

    if (e == CM_EV_LAP) {
        if (!status)
            status = load(a, c, c->cm.offered_timeout, now);
        cm_load_reply(&c->cm, status);
    } else if (e == CM_EV_APR && c->cm.apr_status == CM_APR_SUCCESS) {
        load(a, c, c->cm.offered_timeout, now);
    }
}
