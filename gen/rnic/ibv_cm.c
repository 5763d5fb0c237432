/* layer 3 (rnic): RDMA-CM over librdmacm, with queue pairs that the client brings to their states itself. */
#include "gen/rnic/ibv_lib.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>

struct address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    };
};

static struct sockaddr *address_of(struct address *a, const uint8_t gid[16], uint16_t port)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}, none[16];

    *a = (struct address){0};
    if (memcmp(gid, mapped, 12) == 0 || memcmp(gid, none, 16) == 0) {
        a->v4.sin_family = AF_INET;
        a->v4.sin_port = htons(port);
        memcpy(&a->v4.sin_addr, gid + 12, 4);
    } else {
        a->v6.sin6_family = AF_INET6;
        a->v6.sin6_port = htons(port);
        memcpy(&a->v6.sin6_addr, gid, 16);
    }
    return &a->any;
}

int ibv_be_cm_create(struct rnic *r, uint32_t ps, void *user, void **id)
{
    struct ibv_rnic *d = ibv_of(r);
    struct rdma_cm_id *made = NULL;
    int e;

    errno = 0;
    if (!d->cm) {
        d->cm = ibv.rdma_create_event_channel();
        if (!d->cm)
            return ibv_result(-1);
        ibv_unblock(d->cm->fd);
    }
    e = ibv_result(ibv.rdma_create_id(d->cm, &made, user, (enum rdma_port_space)ps));
    *id = made;
    return e;
}

void ibv_be_cm_own(struct rnic *r, void *id, void *user)
{
    (void)r;
    ((struct rdma_cm_id *)id)->context = user;
}

int ibv_be_cm_destroy(struct rnic *r, void *id)
{
    (void)r;
    return ibv_result(ibv.rdma_destroy_id(id));
}

int ibv_be_cm_bind(struct rnic *r, void *id, const uint8_t addr[16], uint16_t port)
{
    struct address a;

    (void)r;
    return ibv_result(ibv.rdma_bind_addr(id, address_of(&a, addr, port)));
}

int ibv_be_cm_listen(struct rnic *r, void *id, uint32_t backlog)
{
    (void)r;
    return ibv_result(ibv.rdma_listen(id, (int)backlog));
}

int ibv_be_cm_resolve(struct rnic *r, void *id, const uint8_t addr[16], uint16_t port, uint32_t ms)
{
    struct address a;

    (void)r;
    return ibv_result(ibv.rdma_resolve_addr(id, NULL, address_of(&a, addr, port), (int)ms));
}

int ibv_be_cm_route(struct rnic *r, void *id, uint32_t ms)
{
    (void)r;
    return ibv_result(ibv.rdma_resolve_route(id, (int)ms));
}

static struct rdma_conn_param param_of(const struct rnic_cm_param *p)
{
    return (struct rdma_conn_param){.private_data = p->n_private ? p->private_data : NULL,
                                    .private_data_len = (uint8_t)p->n_private,
                                    .responder_resources = (uint8_t)p->responder_resources,
                                    .initiator_depth = (uint8_t)p->initiator_depth,
                                    .flow_control = (uint8_t)p->flow_control,
                                    .retry_count = (uint8_t)p->retry_count,
                                    .rnr_retry_count = (uint8_t)p->rnr_retry,
                                    .srq = p->srq,
                                    .qp_num = p->qpn};
}

int ibv_be_cm_connect(struct rnic *r, void *id, const struct rnic_cm_param *p)
{
    struct rdma_conn_param c = param_of(p);

    (void)r;
    return ibv_result(ibv.rdma_connect(id, &c));
}

int ibv_be_cm_accept(struct rnic *r, void *id, const struct rnic_cm_param *p)
{
    struct rdma_conn_param c = param_of(p);

    (void)r;
    return ibv_result(ibv.rdma_accept(id, &c));
}

int ibv_be_cm_reject(struct rnic *r, void *id, const uint8_t *data, uint32_t n)
{
    (void)r;
    return ibv_result(ibv.rdma_reject(id, data, (uint8_t)n));
}

int ibv_be_cm_establish(struct rnic *r, void *id)
{
    (void)r;
    return ibv_result(ibv.rdma_establish(id));
}

int ibv_be_cm_disconnect(struct rnic *r, void *id)
{
    (void)r;
    return ibv_result(ibv.rdma_disconnect(id));
}

int ibv_be_cm_join(struct rnic *r, void *id, const uint8_t addr[16])
{
    struct address a;

    (void)r;
    return ibv_result(ibv.rdma_join_multicast(id, address_of(&a, addr, 0), ((struct rdma_cm_id *)id)->context));
}

int ibv_be_cm_leave(struct rnic *r, void *id, const uint8_t addr[16])
{
    struct address a;

    (void)r;
    return ibv_result(ibv.rdma_leave_multicast(id, address_of(&a, addr, 0)));
}

int ibv_be_cm_option(struct rnic *r, void *id, uint32_t option, uint32_t value)
{
    uint8_t byte = (uint8_t)value;
    int number = (int)value;
    bool is_byte = option == RDMA_OPTION_ID_TOS || option == RDMA_OPTION_ID_ACK_TIMEOUT;

    (void)r;
    return ibv_result(ibv.rdma_set_option(id, RDMA_OPTION_ID, (int)option, is_byte ? (void *)&byte : &number,
                                          is_byte ? sizeof byte : sizeof number));
}

int ibv_be_cm_ece_set(struct rnic *r, void *id, const struct rnic_ece *ece)
{
    struct ibv_ece e = {.vendor_id = ece->vendor_id, .options = ece->options, .comp_mask = ece->comp_mask};

    (void)r;
    return ibv.rdma_set_local_ece ? ibv_result(ibv.rdma_set_local_ece(id, &e)) : -ENOSYS;
}

int ibv_be_cm_ece(struct rnic *r, void *id, struct rnic_ece *ece)
{
    struct ibv_ece e = {0};
    int result = ibv.rdma_get_remote_ece ? ibv_result(ibv.rdma_get_remote_ece(id, &e)) : -ENOSYS;

    (void)r;
    *ece = (struct rnic_ece){.vendor_id = e.vendor_id, .options = e.options, .comp_mask = e.comp_mask};
    return result;
}

int ibv_be_cm_modify(struct rnic *r, void *id, void *qp, uint32_t state)
{
    struct ibv_qp_attr a = {.qp_state = (enum ibv_qp_state)state};
    int mask = 0, e = ibv_result(ibv.rdma_init_qp_attr(id, &a, &mask));

    (void)r;
    return e < 0 ? e : ibv_result(ibv.ibv_modify_qp(qp, &a, mask));
}

/* --- Events ----------------------------------------------------------------------------------- */

static void take_private(struct rnic_event *to, const void *data, uint8_t n)
{
    to->n_private = data ? n : 0;
    if (to->n_private)
        memcpy(to->private_data, data, n);
}

static void take_connection(struct rnic_event *to, const struct rdma_conn_param *c)
{
    to->qpn = c->qp_num;
    to->responder_resources = c->responder_resources;
    to->initiator_depth = c->initiator_depth;
    to->retry_count = c->retry_count;
    to->rnr_retry = c->rnr_retry_count;
    take_private(to, c->private_data, c->private_data_len);
}

static void take_datagram(struct rnic_event *to, const struct rdma_ud_param *u)
{
    to->qpn = u->qp_num;
    to->qkey = u->qkey;
    memcpy(to->av.dgid, u->ah_attr.grh.dgid.raw, 16);
    to->av.sgid_index = u->ah_attr.grh.sgid_index;
    to->av.hop_limit = u->ah_attr.grh.hop_limit;
    to->av.tclass = u->ah_attr.grh.traffic_class;
    to->av.flow = u->ah_attr.grh.flow_label;
    to->av.port = u->ah_attr.port_num;
    take_private(to, u->private_data, u->private_data_len);
}

/* Which events carry parameters. */
static bool has_param(enum rdma_cm_event_type e)
{
    return e == RDMA_CM_EVENT_CONNECT_REQUEST || e == RDMA_CM_EVENT_CONNECT_RESPONSE ||
           e == RDMA_CM_EVENT_ESTABLISHED || e == RDMA_CM_EVENT_REJECTED || e == RDMA_CM_EVENT_MULTICAST_JOIN;
}

/* Without its prefix. */
static const char *event_name(enum rdma_cm_event_type e)
{
    const char *name = ibv.rdma_event_str(e);
    size_t n = sizeof "RDMA_CM_EVENT_" - 1;

    return strncmp(name, "RDMA_CM_EVENT_", n) == 0 ? name + n : "UNKNOWN";
}

int ibv_be_cm_event(struct ibv_rnic *r, struct rnic_event *to)
{
    struct rdma_cm_event *e;
    struct rdma_cm_id *id;
    bool asked;

    if (ibv.rdma_get_cm_event(r->cm, &e) != 0)
        return 0;
    asked = e->event == RDMA_CM_EVENT_CONNECT_REQUEST;
    id = asked ? e->listen_id : e->id;
    to->what = RNIC_CM;
    to->name = event_name(e->event);
    to->user = id->context;
    to->id = asked ? e->id : NULL;
    to->status = e->status;
    if (has_param(e->event)) {
        if (e->id->ps == RDMA_PS_TCP || e->id->ps == RDMA_PS_IB)
            take_connection(to, &e->param.conn);
        else
            take_datagram(to, &e->param.ud);
    }
    ibv.rdma_ack_cm_event(e);
    return 1;
}
