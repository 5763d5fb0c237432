/* layer 3 (rnic): RDMA-CM of an endpoint of ours as a device: the calls of librdmacm over those of gen/verbs/rdmacm.h.
 * Two things differ from librdmacm: the connection manager itself brings the queue pair of a connection to its states,
 * so that it has to be in RESET, and the active side is ESTABLISHED without CONNECT_RESPONSE. */
#include "gen/rnic/ep_impl.h"

#include <errno.h>
#include <stdlib.h>

#define SPACE_TCP    0x0106 /* port spaces of librdmacm */
#define SPACE_UDP    0x0111
#define QKEY_RDMA_CM 0x01234567 /* of its datagram services */

struct twin_id {
    int number; /* of the connection manager */
    void *user;
    uint8_t ps;
    uint16_t port;
};

static struct rdmacm *cm_of(struct rnic *r)
{
    return ep_verbs(twin_ep(r))->cm;
}

static struct twin_id *id_new(struct twin *t, int number, uint8_t ps, void *user)
{
    struct twin_id *id = number >= 0 && number < TWIN_IDS ? calloc(1, sizeof *id) : NULL;

    if (!id)
        return NULL;
    *id = (struct twin_id){.number = number, .user = user, .ps = ps};
    return t->id[number] = id;
}

int twin_cm_create(struct rnic *r, uint32_t ps, void *user, void **id)
{
    struct twin *t = twin_of(r);
    struct rdmacm *cm = cm_of(r);
    uint8_t space = ps == SPACE_UDP ? CM_PS_UDP : CM_PS_TCP;
    int n;

    if (!cm)
        return -ENOSYS;
    if (ps != SPACE_TCP && ps != SPACE_UDP)
        return -EOPNOTSUPP;
    if (!t->has_channel) {
        t->channel = rdmacm_channel_create(cm);
        if (t->channel < 0)
            return t->channel;
        t->has_channel = true;
    }
    n = rdmacm_id_create(cm, t->channel, space);
    *id = id_new(t, n, space, user);
    if (!*id && n >= 0)
        rdmacm_id_destroy(cm, n, twin_now(r));
    return *id ? 0 : n < 0 ? n : -ENOMEM;
}

void twin_cm_own(struct rnic *r, void *id, void *user)
{
    (void)r;
    ((struct twin_id *)id)->user = user;
}

int twin_cm_destroy(struct rnic *r, void *handle)
{
    struct twin *t = twin_of(r);
    struct twin_id *id = handle;
    unsigned kept = 0;

    for (unsigned i = 0; i < t->n_routed; i++)
        if (t->routed[i] != id)
            t->routed[kept++] = t->routed[i];
    t->n_routed = kept;
    rdmacm_id_destroy(cm_of(r), id->number, twin_now(r));
    t->id[id->number] = NULL;
    free(id);
    return 0;
}

void twin_cm_free(struct twin *t)
{
    for (unsigned i = 0; i < TWIN_IDS; i++)
        free(t->id[i]);
}

int twin_cm_bind(struct rnic *r, void *id, const uint8_t addr[16], uint16_t port)
{
    (void)r;
    (void)addr;
    ((struct twin_id *)id)->port = port;
    return 0;
}

int twin_cm_listen(struct rnic *r, void *handle, uint32_t backlog)
{
    const struct twin_id *id = handle;

    return rdmacm_listen(cm_of(r), id->number, id->port, backlog);
}

int twin_cm_resolve(struct rnic *r, void *id, const uint8_t addr[16], uint16_t port, uint32_t ms)
{
    return rdmacm_resolve(cm_of(r), ((struct twin_id *)id)->number, addr, port, ms * NS_PER_MS, twin_now(r));
}

/* The address gave the route already. */
int twin_cm_route(struct rnic *r, void *id, uint32_t ms)
{
    struct twin *t = twin_of(r);

    (void)ms;
    if (t->n_routed == TWIN_IDS)
        return -ENOMEM;
    t->routed[t->n_routed++] = id;
    return 0;
}

static int param_of(struct rnic *r, const struct rnic_cm_param *p, struct rdmacm_param *to)
{
    *to = (struct rdmacm_param){.qp = ep_qp_find(twin_ep(r), p->qpn),
                                .qkey = QKEY_RDMA_CM,
                                .access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC,
                                .responder_resources = (uint8_t)p->responder_resources,
                                .initiator_depth = (uint8_t)p->initiator_depth,
                                .has_retry = true,
                                .retry = (uint8_t)min_u32(p->retry_count, 7),
                                .has_rnr_retry = true,
                                .rnr_retry = (uint8_t)min_u32(p->rnr_retry, 7),
                                .private_len = (uint8_t)p->n_private,
                                .private_data = p->private_data};
    return to->qp < 0 || p->n_private > RDMACM_PRIVATE_MAX ? -EINVAL : 0;
}

int twin_cm_connect(struct rnic *r, void *id, const struct rnic_cm_param *p)
{
    struct rdmacm_param own;
    int e = param_of(r, p, &own);

    return e ? e : rdmacm_connect(cm_of(r), ((struct twin_id *)id)->number, &own, twin_now(r));
}

int twin_cm_accept(struct rnic *r, void *id, const struct rnic_cm_param *p)
{
    struct rdmacm_param own;
    int e = param_of(r, p, &own);

    return e ? e : rdmacm_accept(cm_of(r), ((struct twin_id *)id)->number, &own, twin_now(r));
}

int twin_cm_reject(struct rnic *r, void *handle, const uint8_t *data, uint32_t n)
{
    const struct twin_id *id = handle;
    unsigned reason = id->ps == CM_PS_UDP ? CM_SIDR_UNSUPPORTED : CM_REJ_CONSUMER_DEFINED;

    return rdmacm_reject(cm_of(r), id->number, reason, data, n, twin_now(r));
}

int twin_cm_establish(struct rnic *r, void *id)
{
    (void)r;
    (void)id;
    return 0;
}

int twin_cm_disconnect(struct rnic *r, void *id)
{
    return rdmacm_disconnect(cm_of(r), ((struct twin_id *)id)->number, twin_now(r));
}

int twin_cm_no_group(struct rnic *r, void *id, const uint8_t addr[16])
{
    (void)r;
    (void)id;
    (void)addr;
    return -EOPNOTSUPP;
}

int twin_cm_no_option(struct rnic *r, void *id, uint32_t option, uint32_t value)
{
    (void)r;
    (void)id;
    (void)option;
    (void)value;
    return -EOPNOTSUPP;
}

/* What librdmacm knows of a datagram service is its Q_Key; the queue pair of a connection follows the connection. */
int twin_cm_modify(struct rnic *r, void *handle, void *qp, uint32_t state)
{
    const struct twin_id *id = handle;
    struct qp_attr a = {.state = QPS_INIT, .port = 1, .pkey = 0xffff, .qkey = QKEY_RDMA_CM};

    if (id->ps == CM_PS_TCP)
        return 0;
    return state != QPS_INIT ? -EINVAL
                             : ep_qp_modify(twin_ep(r), (int)((uintptr_t)qp - 1), &a,
                                            QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY, twin_now(r));
}

/* --- Events ----------------------------------------------------------------------------------- */

static void take_event(const struct rdmacm_event *e, struct rnic_event *to)
{
    static const char *const names[] = {[RDMACM_ADDR_ERROR] = "ADDR_ERROR",
                                        [RDMACM_ROUTE_RESOLVED] = "ADDR_RESOLVED",
                                        [RDMACM_CONNECT_REQUEST] = "CONNECT_REQUEST",
                                        [RDMACM_ESTABLISHED] = "ESTABLISHED",
                                        [RDMACM_REJECTED] = "REJECTED",
                                        [RDMACM_UNREACHABLE] = "UNREACHABLE",
                                        [RDMACM_DISCONNECTED] = "DISCONNECTED",
                                        [RDMACM_TIMEWAIT_EXIT] = "TIMEWAIT_EXIT"};

    to->what = RNIC_CM;
    to->name = names[e->type];
    to->status = e->status;
    to->qpn = e->qpn;
    to->qkey = e->qkey;
    to->responder_resources = e->responder_resources;
    to->initiator_depth = e->initiator_depth;
    to->n_private = e->private_len;
    memcpy(to->private_data, e->private_data, e->private_len);
    if (e->type == RDMACM_ESTABLISHED && e->qkey) {
        memcpy(to->av.dgid, e->av.dgid, 16);
        to->av.hop_limit = e->av.hop_limit;
        to->av.tclass = e->av.tclass;
        to->av.flow = e->av.flow;
        to->av.port = 1;
    }
}

int twin_cm_event(struct rnic *r, struct rnic_event *to)
{
    struct twin *t = twin_of(r);
    struct rdmacm_event e;
    struct twin_id *of;

    if (t->n_routed) {
        *to = (struct rnic_event){.what = RNIC_CM, .name = "ROUTE_RESOLVED", .user = t->routed[0]->user};
        memmove(t->routed, t->routed + 1, --t->n_routed * sizeof *t->routed);
        return 1;
    }
    while (t->has_channel && rdmacm_get_event(cm_of(r), t->channel, &e)) {
        of = e.listen_id >= 0 ? t->id[e.listen_id] : t->id[e.id];
        *to = (struct rnic_event){.user = of ? of->user : NULL};
        take_event(&e, to);
        if (e.type == RDMACM_CONNECT_REQUEST)
            to->id = id_new(t, e.id, of ? of->ps : CM_PS_TCP, NULL);
        if (e.type != RDMACM_CONNECT_REQUEST || to->id)
            return 1;
        rdmacm_id_destroy(cm_of(r), e.id, twin_now(r)); /* no room: it is refused */
    }
    return 0;
}
