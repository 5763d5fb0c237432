/* layer 3 (agent): the commands of RDMA-CM: the calls of librdmacm, one each. */
#include "gen/agent/cm.h"
#include "gen/agent/names.h"

#include <errno.h>

/* Of rdma/rdma_cma.h. */
static const struct line_name space_names[] = {
    {"ipoib", 0x0002}, {"tcp", 0x0106}, {"udp", 0x0111}, {"ib", 0x013f}, {NULL, 0}};
static const struct line_name option_names[] = {
    {"tos", 0}, {"reuseaddr", 1}, {"afonly", 2}, {"ack_timeout", 3}, {NULL, 0}};

void agent_cm_event(struct agent *a, const struct rnic_event *e)
{
    struct object *o = e->user, *made = NULL;

    buf_printf(&a->out, "! cm name=%s", e->name);
    if (o)
        buf_printf(&a->out, " id=id%u", o->number);
    buf_printf(&a->out, " status=%d", e->status);
    if (e->id) {
        made = object_new(&a->objects, OBJECT_ID);
        if (made) {
            made->impl = e->id;
            a->rnic->ops->cm_own(a->rnic, e->id, made);
            buf_printf(&a->out, " new=id%u", made->number);
        } else {
            a->rnic->ops->cm_destroy(a->rnic, e->id);
        }
    }
    buf_printf(&a->out, " qpn=0x%x qkey=0x%x responder_resources=%u initiator_depth=%u retry_count=%u rnr_retry=%u",
               e->qpn, e->qkey, e->responder_resources, e->initiator_depth, e->retry_count, e->rnr_retry);
    if (e->av.port) {
        buf_puts(&a->out, " dgid=");
        buf_ipv6(&a->out, e->av.dgid);
        buf_printf(&a->out, " sgid_index=%u hop_limit=%u tclass=%u flow=%u", e->av.sgid_index, e->av.hop_limit,
                   e->av.tclass, e->av.flow);
    }
    if (e->n_private) {
        buf_puts(&a->out, " private=");
        buf_bytes(&a->out, e->private_data, e->n_private, 0);
    }
}

static bool id_of(struct agent *a, struct request *r, void **id)
{
    struct object *o;
    bool good = agent_object(a, r, "id", OBJECT_ID, &o);

    *id = agent_impl(o);
    return good;
}

static int cmd_create(struct agent *a, struct request *r)
{
    uint64_t ps = 0x0106;
    struct object *o;

    if (!request_name(r, "ps", space_names, &ps))
        return -EINVAL;
    if (!a->rnic->ops->cm_create)
        return -ENOSYS;
    o = object_new(&a->objects, OBJECT_ID);
    return o ? agent_made(a, o, a->rnic->ops->cm_create(a->rnic, (uint32_t)ps, o, &o->impl)) : -ENOMEM;
}

static int cmd_bind(struct agent *a, struct request *r)
{
    uint8_t addr[16] = {0};
    uint32_t port = 0;
    void *id;

    if (!id_of(a, r, &id) || !request_gid(r, "addr", addr) || !request_u32(r, "port", 0, 65535, &port))
        return -EINVAL;
    return a->rnic->ops->cm_bind(a->rnic, id, addr, (uint16_t)port);
}

static int cmd_listen(struct agent *a, struct request *r)
{
    uint32_t backlog = 8;
    void *id;

    if (!id_of(a, r, &id) || !request_u32(r, "backlog", 0, 65535, &backlog))
        return -EINVAL;
    return a->rnic->ops->cm_listen(a->rnic, id, backlog);
}

static int cmd_resolve(struct agent *a, struct request *r)
{
    uint8_t addr[16] = {0};
    uint32_t port = 0, ms = 2000;
    void *id;

    if (!id_of(a, r, &id) || !request_gid(r, "addr", addr) || !request_u32(r, "port", 0, 65535, &port) ||
        !request_u32(r, "ms", 1, 60000, &ms))
        return -EINVAL;
    return a->rnic->ops->cm_resolve(a->rnic, id, addr, (uint16_t)port, ms);
}

static int cmd_route(struct agent *a, struct request *r)
{
    uint32_t ms = 2000;
    void *id;

    if (!id_of(a, r, &id) || !request_u32(r, "ms", 1, 60000, &ms))
        return -EINVAL;
    return a->rnic->ops->cm_route(a->rnic, id, ms);
}

static bool announced_bytes(struct request *r, struct rnic_cm_param *p)
{
    return request_u32(r, "responder_resources", 0, 255, &p->responder_resources) &&
           request_u32(r, "initiator_depth", 0, 255, &p->initiator_depth) &&
           request_u32(r, "flow_control", 0, 255, &p->flow_control) &&
           request_u32(r, "retry_count", 0, 255, &p->retry_count) && request_u32(r, "rnr_retry", 0, 255, &p->rnr_retry);
}

static bool announced(struct agent *a, struct request *r, struct rnic_cm_param *p)
{
    struct object *qp;
    size_t n = 0;

    if (!agent_object(a, r, "qp", OBJECT_QP, &qp) || !announced_bytes(r, p) || !request_bool(r, "srq", &p->srq) ||
        !request_hex(r, "private", p->private_data, RNIC_PRIVATE - 1, &n))
        return false;
    p->qpn = qp ? qp->qpn : 0;
    p->n_private = (uint32_t)n;
    return request_u32(r, "qpn", 0, UINT32_MAX, &p->qpn);
}

static int join_ends(struct agent *a, struct request *r, bool accept)
{
    struct rnic_cm_param p = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry = 7};
    void *id;

    if (!id_of(a, r, &id) || !announced(a, r, &p))
        return -EINVAL;
    return accept ? a->rnic->ops->cm_accept(a->rnic, id, &p) : a->rnic->ops->cm_connect(a->rnic, id, &p);
}

static int cmd_connect(struct agent *a, struct request *r)
{
    return join_ends(a, r, false);
}

static int cmd_accept(struct agent *a, struct request *r)
{
    return join_ends(a, r, true);
}

static int cmd_reject(struct agent *a, struct request *r)
{
    uint8_t data[RNIC_PRIVATE];
    size_t n = 0;
    void *id;

    if (!id_of(a, r, &id) || !request_hex(r, "private", data, RNIC_PRIVATE - 1, &n))
        return -EINVAL;
    return a->rnic->ops->cm_reject(a->rnic, id, data, (uint32_t)n);
}

static int cmd_establish(struct agent *a, struct request *r)
{
    void *id;

    return id_of(a, r, &id) ? a->rnic->ops->cm_establish(a->rnic, id) : -EINVAL;
}

static int cmd_disconnect(struct agent *a, struct request *r)
{
    void *id;

    return id_of(a, r, &id) ? a->rnic->ops->cm_disconnect(a->rnic, id) : -EINVAL;
}

static int member(struct agent *a, struct request *r, bool join)
{
    uint8_t addr[16] = {0};
    void *id;

    if (!id_of(a, r, &id) || !request_gid(r, "addr", addr))
        return -EINVAL;
    return join ? a->rnic->ops->cm_join(a->rnic, id, addr) : a->rnic->ops->cm_leave(a->rnic, id, addr);
}

static int cmd_join(struct agent *a, struct request *r)
{
    return member(a, r, true);
}

static int cmd_leave(struct agent *a, struct request *r)
{
    return member(a, r, false);
}

static int cmd_option(struct agent *a, struct request *r)
{
    uint64_t option = 0;
    uint32_t value = 0;
    void *id;

    if (!id_of(a, r, &id) || !request_name(r, "name", option_names, &option) ||
        !request_u32(r, "value", 0, UINT32_MAX, &value))
        return -EINVAL;
    return a->rnic->ops->cm_option(a->rnic, id, (uint32_t)option, value);
}

static int cmd_local_ece(struct agent *a, struct request *r)
{
    struct rnic_ece to;
    void *id;

    if (!id_of(a, r, &id) || !request_ece(r, &to))
        return -EINVAL;
    return a->rnic->ops->cm_ece_set ? a->rnic->ops->cm_ece_set(a->rnic, id, &to) : -ENOSYS;
}

static int cmd_remote_ece(struct agent *a, struct request *r)
{
    struct rnic_ece is;
    void *id;
    int e;

    if (!id_of(a, r, &id))
        return -EINVAL;
    e = a->rnic->ops->cm_ece ? a->rnic->ops->cm_ece(a->rnic, id, &is) : -ENOSYS;
    if (e == 0)
        reply_ece(a, &is);
    return e;
}

static int cmd_modify(struct agent *a, struct request *r)
{
    uint64_t state = 0;
    struct object *qp;
    void *id;

    if (!id_of(a, r, &id) || !agent_object(a, r, "qp", OBJECT_QP, &qp) ||
        !request_name(r, "state", state_names, &state))
        return -EINVAL;
    return a->rnic->ops->cm_modify(a->rnic, id, qp->impl, (uint32_t)state);
}

#define PARAM                                                                                                          \
    "id=ID [qp=QP] [qpn=N] [responder_resources=N] [initiator_depth=N] [flow_control=N] [retry_count=N] "              \
    "[rnr_retry=N] "                                                                                                   \
    "[srq=0|1] [private=HEX]"

const struct agent_command agent_cm[] = {
    {"cm create", "[ps=tcp|udp|ib|ipoib]", "create an id", cmd_create, AGENT_DEVICE},
    {"cm option", "id=ID name=tos|reuseaddr|afonly|ack_timeout value=N", "set an option", cmd_option, AGENT_DEVICE},
    {"cm bind", "id=ID [addr=ADDR] [port=N]", "bind it to an address of this host", cmd_bind, AGENT_DEVICE},
    {"cm listen", "id=ID [backlog=N]", "listen", cmd_listen, AGENT_DEVICE},
    {"cm resolve", "id=ID addr=ADDR [port=N] [ms=N]", "resolve an address", cmd_resolve, AGENT_DEVICE},
    {"cm route", "id=ID [ms=N]", "resolve the route", cmd_route, AGENT_DEVICE},
    {"cm connect", PARAM, "send a REQ or SIDR_REQ", cmd_connect, AGENT_DEVICE},
    {"cm accept", PARAM, "send a REP or SIDR_REP", cmd_accept, AGENT_DEVICE},
    {"cm reject", "id=ID [private=HEX]", "send a REJ", cmd_reject, AGENT_DEVICE},
    {"cm establish", "id=ID", "send the RTU of a queue pair brought to RTS by `cm modify`", cmd_establish,
     AGENT_DEVICE},
    {"cm local_ece", "id=ID [vendor_id=N] [options=N] [comp_mask=N]", "the ECE that its REQ or REP announces",
     cmd_local_ece, AGENT_DEVICE},
    {"cm remote_ece", "id=ID", "the ECE that its peer announced", cmd_remote_ece, AGENT_DEVICE},
    {"cm modify", "id=ID qp=QP state=INIT|RTR|RTS", "modify a queue pair as the connection says", cmd_modify,
     AGENT_DEVICE},
    {"cm disconnect", "id=ID", "send a DREQ", cmd_disconnect, AGENT_DEVICE},
    {"cm join", "id=ID addr=ADDR", "join a multicast group", cmd_join, AGENT_DEVICE},
    {"cm leave", "id=ID addr=ADDR", "leave it", cmd_leave, AGENT_DEVICE},
    {NULL, NULL, NULL, NULL, 0},
};
