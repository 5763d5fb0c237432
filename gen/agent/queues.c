/* layer 3 (agent): the commands of completion channels, completion queues and shared receive queues. */
#include "gen/agent/agent.h"

#include <errno.h>

static int cmd_channel(struct agent *a, struct request *r)
{
    struct object *o = object_new(&a->objects, OBJECT_CHANNEL);

    (void)r;
    return o ? agent_made(a, o, a->rnic->ops->channel_create(a->rnic, &o->impl)) : -ENOMEM;
}

static int cmd_cq(struct agent *a, struct request *r)
{
    const struct rnic_ops *ops = a->rnic->ops;
    struct object *o, *channel;
    uint32_t n = 0, vector = 0;
    bool stamped = false;
    int e;

    if (!request_u32(r, "n", 0, UINT32_MAX, &n) || !request_u32(r, "vector", 0, UINT32_MAX, &vector) ||
        !request_bool(r, "stamps", &stamped) || !agent_object(a, r, "channel", OBJECT_CHANNEL, &channel))
        return -EINVAL;
    if (stamped && !ops->cq_create_stamped)
        return -ENOSYS;
    o = object_new(&a->objects, OBJECT_CQ);
    if (!o)
        return -ENOMEM;
    o->stamped = stamped;
    e = agent_made(
        a, o,
        (stamped ? ops->cq_create_stamped : ops->cq_create)(a->rnic, &n, agent_impl(channel), vector, o, &o->impl));
    if (e == 0)
        buf_printf(&a->reply, " n=%u", n);
    return e;
}

static int cmd_resize(struct agent *a, struct request *r)
{
    struct object *o;
    uint32_t n = 0;
    int e;

    if (!agent_object(a, r, "cq", OBJECT_CQ, &o) || !request_u32(r, "n", 0, UINT32_MAX, &n))
        return -EINVAL;
    e = a->rnic->ops->cq_resize(a->rnic, o->impl, &n);
    if (e == 0)
        buf_printf(&a->reply, " n=%u", n);
    return e;
}

static int cmd_arm(struct agent *a, struct request *r)
{
    struct object *o;
    bool solicited = false;

    if (!agent_object(a, r, "cq", OBJECT_CQ, &o) || !request_bool(r, "solicited", &solicited))
        return -EINVAL;
    return a->rnic->ops->cq_arm(a->rnic, o->impl, solicited);
}

static bool srq_sizes(struct request *r, struct rnic_srq_init *init)
{
    return request_u32(r, "max_wr", 0, UINT32_MAX, &init->max_wr) &&
           request_u32(r, "max_sge", 0, UINT32_MAX, &init->max_sge) &&
           request_u32(r, "limit", 0, UINT32_MAX, &init->limit);
}

static int cmd_srq(struct agent *a, struct request *r)
{
    struct rnic_srq_init init = {.max_wr = 64, .max_sge = 1};
    struct object *o, *pd, *xrcd, *cq;
    int e;

    if (!srq_sizes(r, &init) || !agent_object(a, r, "pd", OBJECT_PD, &pd) ||
        !agent_object(a, r, "xrcd", OBJECT_XRCD, &xrcd) || !agent_object(a, r, "cq", OBJECT_CQ, &cq))
        return -EINVAL;
    if (!request_u32(r, "max_tags", 0, UINT32_MAX, &init.max_tags) ||
        !request_u32(r, "max_tag_ops", 0, UINT32_MAX, &init.max_tag_ops))
        return -EINVAL;
    init.pd = agent_impl(pd);
    init.xrcd = agent_impl(xrcd);
    init.cq = agent_impl(cq);
    o = object_new(&a->objects, OBJECT_SRQ);
    if (!o)
        return -ENOMEM;
    e = agent_made(a, o, a->rnic->ops->srq_create(a->rnic, &init, o, &o->impl));
    if (e == 0)
        buf_printf(&a->reply, " max_wr=%u max_sge=%u", init.max_wr, init.max_sge);
    if (e == 0 && xrcd)
        buf_printf(&a->reply, " srqn=0x%x", init.srqn);
    return e;
}

static int cmd_srq_modify(struct agent *a, struct request *r)
{
    uint32_t max_wr = 0, limit = 0, mask;
    struct object *o;

    if (!agent_object(a, r, "srq", OBJECT_SRQ, &o) || !request_u32(r, "max_wr", 0, UINT32_MAX, &max_wr) ||
        !request_u32(r, "limit", 0, UINT32_MAX, &limit))
        return -EINVAL;
    mask = (request_arg(r, "max_wr") ? RNIC_SRQ_MAX_WR : 0) | (request_arg(r, "limit") ? RNIC_SRQ_LIMIT : 0);
    if (!request_u32(r, "mask", 0, UINT32_MAX, &mask))
        return -EINVAL;
    return a->rnic->ops->srq_modify(a->rnic, o->impl, mask, max_wr, limit);
}

static int cmd_srq_query(struct agent *a, struct request *r)
{
    struct rnic_srq_init is = {0};
    struct object *o;
    int e;

    if (!agent_object(a, r, "srq", OBJECT_SRQ, &o))
        return -EINVAL;
    e = a->rnic->ops->srq_query(a->rnic, o->impl, &is);
    if (e == 0)
        buf_printf(&a->reply, " max_wr=%u max_sge=%u limit=%u", is.max_wr, is.max_sge, is.limit);
    return e;
}

const struct agent_command agent_queues[] = {
    {"channel", "", "create a completion channel", cmd_channel, AGENT_DEVICE},
    {"cq", "n=ENTRIES [channel=CHANNEL] [vector=N] [stamps=0|1]", "create a completion queue", cmd_cq, AGENT_DEVICE},
    {"cq resize", "cq=CQ n=ENTRIES", "resize it", cmd_resize, AGENT_DEVICE},
    {"cq arm", "cq=CQ [solicited=0|1]", "ask for a notification, a line `! notify`", cmd_arm, AGENT_DEVICE},
    {"srq", "pd=PD [max_wr=N] [max_sge=N] [limit=N] [xrcd=XRCD] [cq=CQ] [max_tags=N] [max_tag_ops=N]",
     "create a shared receive queue", cmd_srq, AGENT_DEVICE},
    {"srq modify", "srq=SRQ [max_wr=N] [limit=N] [mask=BITS]", "change its size or its limit", cmd_srq_modify,
     AGENT_DEVICE},
    {"srq query", "srq=SRQ", "its attributes", cmd_srq_query, AGENT_DEVICE},
    {NULL, NULL, NULL, NULL, 0},
};
