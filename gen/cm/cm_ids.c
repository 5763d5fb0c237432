/* layer 3 (cm): the connection manager as programs use it: ids and events, the table of struct rdmacm. */
#include "gen/cm/cm_agent_impl.h"
#include "gen/endpoint/endpoint_impl.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define PORT_MIN 32768 /* ports of the active side, as Linux chooses them */
#define PORTS    28000

_Static_assert(RDMACM_PRIVATE_MAX == sizeof((struct cm_params){0}.private_data), "room for what a message can carry");

static struct cm_agent *agent_of(struct rdmacm *cm)
{
    return (struct cm_agent *)(void *)((char *)cm - offsetof(struct cm_agent, rdmacm));
}

/* --- Channels and events ---------------------------------------------------------------------- */

static struct agent_channel *channel_of(struct cm_agent *a, int channel)
{
    return channel >= 0 && channel < CHANNELS && a->channel[channel].open ? &a->channel[channel] : NULL;
}

static int channel_create(struct rdmacm *cm)
{
    struct cm_agent *a = agent_of(cm);

    for (int i = 0; i < CHANNELS; i++)
        if (!a->channel[i].open) {
            a->channel[i] = (struct agent_channel){.open = true};
            return i;
        }
    return -ENOMEM;
}

static int channel_destroy(struct rdmacm *cm, int channel)
{
    struct agent_channel *ch = channel_of(agent_of(cm), channel);

    if (!ch)
        return -EINVAL;
    if (ch->ids)
        return -EBUSY;
    ch->open = false;
    return 0;
}

static void raise(struct cm_agent *a, struct agent_id *id, enum rdmacm_event_type e)
{
    struct agent_channel *ch = &a->channel[id->channel];

    a->raised++;
    if (!id->events) {
        id->next = NULL;
        *(ch->first ? &ch->last->next : &ch->first) = id;
        ch->last = id;
    }
    id->events |= 1u << e;
}

/* Take an id out of the queue of its channel. */
static void unqueue(struct cm_agent *a, struct agent_id *id)
{
    struct agent_channel *ch = &a->channel[id->channel];
    struct agent_id *before = NULL;

    if (!id->events)
        return;
    for (struct agent_id *i = ch->first; i != id; i = i->next)
        before = i;
    *(before ? &before->next : &ch->first) = id->next;
    if (ch->last == id)
        ch->last = before;
    id->events = 0;
}

/* What the connection tells of an event. */
static void describe(const struct agent_id *id, const struct cm_conn *c, struct rdmacm_event *e)
{
    bool theirs = e->type == RDMACM_CONNECT_REQUEST || e->type == RDMACM_REJECTED || e->type == RDMACM_UNREACHABLE ||
                  (e->type == RDMACM_ESTABLISHED && c->active);

    e->qpn = c->peer.qpn;
    e->responder_resources = c->peer.init_depth;
    e->initiator_depth = c->peer.resp_res;
    if (e->type == RDMACM_REJECTED)
        e->status = c->rej_reason;
    if (e->type == RDMACM_UNREACHABLE)
        e->status = c->sidr_status ? c->sidr_status : -ETIMEDOUT;
    if (e->type == RDMACM_ESTABLISHED && id->ps == CM_PS_UDP) {
        e->qkey = c->peer.qkey;
        e->av = id->av;
    }
    if (theirs) {
        e->private_len = c->peer.private_len;
        memcpy(e->private_data, c->peer.private_data, sizeof e->private_data);
    }
}

static bool get_event(struct rdmacm *cm, int channel, struct rdmacm_event *e)
{
    struct cm_agent *a = agent_of(cm);
    const struct agent_channel *ch = channel_of(a, channel);
    struct agent_id *id = ch ? ch->first : NULL;
    unsigned type;

    if (!id)
        return false;
    type = (unsigned)__builtin_ctz(id->events);
    *e = (struct rdmacm_event){.type = (uint8_t)type, .id = id->number, .listen_id = -1};
    memcpy(e->gid, id->gid, 16);
    if (type == RDMACM_CONNECT_REQUEST && id->listener)
        e->listen_id = id->listener->number;
    if (type == RDMACM_ADDR_ERROR)
        e->status = id->failed;
    if (id->conn)
        describe(id, &id->conn->cm, e);
    if (id->events == 1u << type)
        unqueue(a, id);
    else
        id->events &= ~(1u << type);
    return true;
}

/* --- Ids -------------------------------------------------------------------------------------- */

/* The id of a handle; NULL: there is none. */
static struct agent_id *id_of(struct cm_agent *a, int handle)
{
    return handle >= 0 && (unsigned)handle < a->n_ids ? a->id[handle] : NULL;
}

/* Likewise, also NULL if it is not in state `state`. */
static struct agent_id *id_in(struct cm_agent *a, int handle, enum id_state state)
{
    struct agent_id *id = id_of(a, handle);

    return id && id->state == state ? id : NULL;
}

/* A free handle: its place in the table; NULL: out of memory. */
static struct agent_id **free_place(struct cm_agent *a)
{
    unsigned room = a->n_ids ? 2 * a->n_ids : 16;
    struct agent_id **all;

    for (unsigned i = 0; i < a->n_ids; i++)
        if (!a->id[i])
            return &a->id[i];
    all = realloc(a->id, room * sizeof *all);
    if (!all)
        return NULL;
    memset(all + a->n_ids, 0, (room - a->n_ids) * sizeof *all);
    a->id = all;
    all += a->n_ids;
    a->n_ids = room;
    return all;
}

static struct agent_id *id_new(struct cm_agent *a, int channel, uint8_t ps)
{
    struct agent_id **place = free_place(a), *id = place ? calloc(1, sizeof *id) : NULL;

    if (!id)
        return NULL;
    *place = id;
    id->number = (int)(place - a->id);
    id->channel = channel;
    id->ps = ps;
    a->channel[channel].ids++;
    return id;
}

static int id_create(struct rdmacm *cm, int channel, uint8_t ps)
{
    struct cm_agent *a = agent_of(cm);
    const struct agent_id *id;

    if (!channel_of(a, channel) || (ps != CM_PS_TCP && ps != CM_PS_UDP))
        return -EINVAL;
    id = id_new(a, channel, ps);
    return id ? id->number : -ENOMEM;
}

/* The request of an id is answered, or is not to be any more. */
static void answered(struct agent_id *id)
{
    if (id->listener)
        id->listener->waiting--;
    id->listener = NULL;
    id->state = ID_CONN;
}

/* End what a connection without an id has begun. One that was made stays, to answer the peer's DREQ. */
static void end(struct cm_agent *a, struct agent_conn *c, ns_t now)
{
    struct cm_answer refusal = {.qp = -1, .reason = CM_REJ_CONSUMER_DEFINED};

    if (c->cm.state == CM_ST_SIDR_REQ_RCVD)
        refusal.reason = CM_SIDR_UNSUPPORTED;
    c->qp = -1;
    if (!agent_answer(a, c, &refusal, now))
        cm_abort(&c->cm);
    agent_settle(a, c);
    agent_wake(a, c);
}

/* Nothing refers to the id any more. */
static void forget(struct cm_agent *a, struct agent_id *id)
{
    for (unsigned i = 0; id->state == ID_LISTENING && i < a->n_ids; i++)
        if (a->id[i] && a->id[i]->listener == id)
            a->id[i]->listener = NULL;
    if (id->state == ID_ASKED)
        answered(id);
    a->resolving -= id->state == ID_RESOLVING;
    unqueue(a, id);
    if (id->conn)
        id->conn->id = NULL;
    a->id[id->number] = NULL;
    a->channel[id->channel].ids--;
}

static int id_destroy(struct rdmacm *cm, int handle, ns_t now)
{
    struct cm_agent *a = agent_of(cm);
    struct agent_id *id = id_of(a, handle);

    if (!id)
        return -EINVAL;
    forget(a, id);
    if (id->conn)
        end(a, id->conn, now);
    free(id);
    return 0;
}

void cm_ids_free(struct cm_agent *a)
{
    for (unsigned i = 0; i < a->n_ids; i++)
        free(a->id[i]);
    free(a->id);
}

/* What this side announces for an id. */
static void announce(struct cm_agent *a, const struct agent_id *id, const struct rdmacm_param *p, struct cm_params *own)
{
    struct endpoint *ep = a->cfg.ep;
    const struct link_addr *addr = &ep->cfg.addr;
    const uint8_t *mac = addr->mac;
    uint8_t guid[8] = {mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
    uint32_t psn = ep_pick_psn(ep), chance = ep_pick_psn(ep);

    cm_params_linux(own);
    cm_params_ip(own, addr->gid, id->gid, id->ps, (uint16_t)(PORT_MIN + chance % PORTS), id->port);
    own->ca_guid = load_be64(guid);
    own->qpn = verbs_qp_num(ep_verbs(ep), p->qp);
    own->psn = psn;
    own->qkey = p->qkey;
    own->mtu = (uint8_t)cm_mtu_code(p->path_mtu ? p->path_mtu : ep->cfg.mtu);
    own->resp_res = p->responder_resources;
    own->init_depth = p->initiator_depth;
    if (p->has_retry)
        own->retry_count = p->retry;
    if (p->has_rnr_retry)
        own->rnr_retry = p->rnr_retry;
    own->path.flow = chance & 0xfffff;
    own->path.tclass = id->av.tclass;
    own->path.hop = id->av.hop_limit ? id->av.hop_limit : own->path.hop;
    own->path.sl = id->av.sl;
    own->path.slid = addr->encap == ENCAP_IB ? addr->lid : own->path.slid;
    own->path.dlid = addr->encap == ENCAP_IB ? id->av.dlid : own->path.dlid;
    own->path.subnet_local = addr->encap == ENCAP_IB && !id->av.grh;
    own->private_len = p->private_len;
    if (p->private_len)
        memcpy(own->private_data, p->private_data, p->private_len);
}

/* The attributes of the queue pair that connection management does not negotiate. */
static struct ep_peer peer_of(const struct agent_id *id, const struct rdmacm_param *p)
{
    struct ep_peer peer = ep_peer_default();

    peer.access = p->access;
    peer.av = id->av;
    return peer;
}

/* --- The active side -------------------------------------------------------------------------- */

/* Whether the path to the peer is known now; if so, it is in id->av. */
static bool path_known(struct cm_agent *a, struct agent_id *id)
{
    if (!a->cfg.path) {
        id->av = a->cfg.peer;
        return memcmp(id->av.dgid, id->gid, 16) == 0;
    }
    return (!a->cfg.resolve || a->cfg.resolve(a->cfg.user, id->gid, &id->again)) &&
           a->cfg.path(a->cfg.user, id->gid, &id->av);
}

/* Go on resolving. */
static void look(struct cm_agent *a, struct agent_id *id, ns_t now)
{
    bool may_wait = a->cfg.path && a->cfg.resolve;

    if (path_known(a, id)) {
        id->state = ID_RESOLVED;
        raise(a, id, RDMACM_ROUTE_RESOLVED);
    } else if (!may_wait || now >= id->until) {
        id->state = ID_IDLE;
        id->failed = may_wait ? -ETIMEDOUT : -EHOSTUNREACH;
        raise(a, id, RDMACM_ADDR_ERROR);
    }
    a->resolving -= id->state != ID_RESOLVING;
}

static int resolve(struct rdmacm *cm, int handle, const uint8_t gid[16], uint16_t port, ns_t timeout, ns_t now)
{
    struct cm_agent *a = agent_of(cm);
    struct agent_id *id = id_in(a, handle, ID_IDLE);

    if (!id)
        return -EINVAL;
    memcpy(id->gid, gid, 16);
    id->port = port;
    id->until = now + timeout;
    id->again = 0;
    id->state = ID_RESOLVING;
    a->resolving++;
    look(a, id, now);
    return 0;
}

void cm_ids_run(struct cm_agent *a, ns_t now)
{
    for (unsigned i = 0; a->resolving && i < a->n_ids; i++)
        if (id_in(a, (int)i, ID_RESOLVING))
            look(a, a->id[i], now);
}

ns_t cm_ids_next(const struct cm_agent *a)
{
    ns_t next = NS_NEVER;

    for (unsigned i = 0; a->resolving && i < a->n_ids; i++) {
        const struct agent_id *id = a->id[i];
        if (id && id->state == ID_RESOLVING) {
            next = id->until < next ? id->until : next;
            next = id->again < next ? id->again : next;
        }
    }
    return next;
}

static int connect(struct rdmacm *cm, int handle, const struct rdmacm_param *p, ns_t now)
{
    struct cm_agent *a = agent_of(cm);
    struct agent_id *id = id_in(a, handle, ID_RESOLVED);
    bool udp = id && id->ps == CM_PS_UDP;
    struct ep_peer peer;
    struct cm_params own;

    if (!id || !ep_qp(a->cfg.ep, p->qp) || p->private_len > cm_private_max(udp ? CM_SIDR_REQ : CM_REQ) - CM_IP_LEN)
        return -EINVAL;
    peer = peer_of(id, p);
    announce(a, id, p, &own);
    id->conn = agent_start(a, udp, p->qp, &own, &peer, now);
    if (!id->conn)
        return -ENOMEM;
    id->conn->id = id;
    id->state = ID_CONN;
    return 0;
}

/* --- The passive side ------------------------------------------------------------------------- */

static int listen(struct rdmacm *cm, int handle, uint16_t port, unsigned backlog)
{
    struct cm_agent *a = agent_of(cm);
    struct agent_id *id = id_in(a, handle, ID_IDLE);

    if (!id)
        return -EINVAL;
    for (unsigned i = 0; i < a->n_ids; i++)
        if (id_in(a, (int)i, ID_LISTENING) && a->id[i]->port == port && a->id[i]->ps == id->ps)
            return -EADDRINUSE;
    id->port = port;
    id->backlog = backlog;
    id->state = ID_LISTENING;
    return 0;
}

/* The address that a request comes from: in a SIDR_REQ it is in RDMA-CM's header only. */
static void source_of(const struct cm_conn *c, uint8_t gid[16])
{
    if (c->state != CM_ST_SIDR_REQ_RCVD)
        memcpy(gid, c->peer.path.sgid, 16);
    else if (c->peer.ip.ip_version == 4)
        gid_from_ipv4(gid, load_be32(c->peer.ip.src + 12));
    else
        memcpy(gid, c->peer.ip.src, 16);
}

/* Why a listener must refuse a request; 0: it need not. */
static unsigned refusal(const struct cm_agent *a, const struct agent_id *l, const struct cm_conn *c)
{
    const struct ep_config *ep = &a->cfg.ep->cfg;
    struct cm_params own;

    if (l->waiting >= l->backlog)
        return l->ps == CM_PS_UDP ? CM_SIDR_REJECT : CM_REJ_NO_RESOURCES;
    if (l->ps == CM_PS_UDP)
        return 0;
    cm_params_linux(&own);
    cm_params_ip(&own, ep->addr.gid, ep->addr.gid, l->ps, 0, l->port);
    own.mtu = (uint8_t)cm_mtu_code(ep->mtu);
    return cm_refusal(c, &own);
}

static struct agent_id *listener_of(struct cm_agent *a, const struct cm_conn *c)
{
    uint8_t ps = c->state == CM_ST_SIDR_REQ_RCVD ? CM_PS_UDP : CM_PS_TCP;

    for (unsigned i = 0; i < a->n_ids; i++) {
        struct agent_id *l = id_in(a, (int)i, ID_LISTENING);
        if (l && l->ps == ps && c->peer.service_id == cm_service_ip(ps, l->port))
            return l;
    }
    return NULL;
}

bool cm_ids_request(struct cm_agent *a, struct agent_conn *c, ns_t now)
{
    struct agent_id *l = listener_of(a, &c->cm), *id = NULL;
    struct cm_answer no = {.qp = -1, .reason = l ? refusal(a, l, &c->cm) : 0};

    if (!l)
        return false;
    if (!no.reason && !(id = id_new(a, l->channel, l->ps)))
        no.reason = l->ps == CM_PS_UDP ? CM_SIDR_REJECT : CM_REJ_NO_RESOURCES;
    if (!id)
        return agent_answer(a, c, &no, now);
    source_of(&c->cm, id->gid);
    id->port = l->port;
    id->state = ID_ASKED;
    id->listener = l;
    id->conn = c;
    c->id = id;
    l->waiting++;
    raise(a, id, RDMACM_CONNECT_REQUEST);
    return true;
}

static int accept(struct rdmacm *cm, int handle, const struct rdmacm_param *p, ns_t now)
{
    struct cm_agent *a = agent_of(cm);
    struct agent_id *id = id_in(a, handle, ID_ASKED);
    bool udp = id && id->ps == CM_PS_UDP;
    struct cm_answer ans = {.qp = p->qp};

    if (!id || !ep_qp(a->cfg.ep, p->qp) || p->private_len > cm_private_max(udp ? CM_SIDR_REP : CM_REP))
        return -EINVAL;
    if (!udp && !path_known(a, id))
        return -EHOSTUNREACH;
    ans.peer = peer_of(id, p);
    announce(a, id, p, &ans.own);
    ans.own.has_ip = 0;
    if (!agent_answer(a, id->conn, &ans, now))
        return -EINVAL;
    answered(id);
    return 0;
}

static int reject(struct rdmacm *cm, int handle, unsigned reason, const void *data, unsigned len, ns_t now)
{
    struct cm_agent *a = agent_of(cm);
    struct agent_id *id = id_in(a, handle, ID_ASKED);
    struct cm_answer ans = {.qp = -1, .reason = reason};

    if (!id || len > cm_private_max(id->ps == CM_PS_UDP ? CM_SIDR_REP : CM_REJ))
        return -EINVAL;
    ans.own.private_len = (uint8_t)len;
    if (len)
        memcpy(ans.own.private_data, data, len);
    if (!agent_answer(a, id->conn, &ans, now))
        return -EINVAL;
    answered(id);
    return 0;
}

/* --- Both sides ------------------------------------------------------------------------------- */

static int disconnect(struct rdmacm *cm, int handle, ns_t now)
{
    struct cm_agent *a = agent_of(cm);
    const struct agent_id *id = id_of(a, handle);

    if (!id)
        return -EINVAL;
    if (!id->conn || !cm_disconnect(&id->conn->cm, NULL, 0, now))
        return -ENOTCONN;
    agent_settle(a, id->conn);
    agent_wake(a, id->conn);
    return 0;
}

void cm_ids_tell(struct cm_agent *a, const struct agent_conn *c, enum cm_event e)
{
    static const uint8_t types[CM_EV_COUNT] = {
        [CM_EV_CONNECTED] = RDMACM_ESTABLISHED,     [CM_EV_SIDR_RESPONSE] = RDMACM_ESTABLISHED,
        [CM_EV_REJECTED] = RDMACM_REJECTED,         [CM_EV_UNREACHABLE] = RDMACM_UNREACHABLE,
        [CM_EV_DISCONNECTED] = RDMACM_DISCONNECTED, [CM_EV_TIMEWAIT_EXIT] = RDMACM_TIMEWAIT_EXIT};
    bool refused = e == CM_EV_SIDR_RESPONSE && c->cm.sidr_status != CM_SIDR_SUCCESS;

    if (types[e])
        raise(a, c->id, refused ? RDMACM_UNREACHABLE : (enum rdmacm_event_type)types[e]);
}

const struct rdmacm_ops cm_ids_ops = {
    .channel_create = channel_create,
    .channel_destroy = channel_destroy,
    .get_event = get_event,
    .id_create = id_create,
    .id_destroy = id_destroy,
    .resolve = resolve,
    .connect = connect,
    .listen = listen,
    .accept = accept,
    .reject = reject,
    .disconnect = disconnect,
};
