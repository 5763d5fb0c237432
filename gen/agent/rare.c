/* layer 3 (agent): the commands of verbs that few devices have: device memory, regions without memory and of a DMA
 * buffer, advice, enhanced connection establishment, flow steering. A provider that has none of them is -ENOSYS. */
#include "gen/agent/names.h"

#include <errno.h>

/* --- Regions ---------------------------------------------------------------------------------- */

static int cmd_null_mr(struct agent *a, struct request *r)
{
    struct rnic_mr mr = {0};
    struct object *o, *pd;
    int e;

    if (!agent_object(a, r, "pd", OBJECT_PD, &pd))
        return -EINVAL;
    if (!a->rnic->ops->null_mr)
        return -ENOSYS;
    o = object_new(&a->objects, OBJECT_MR);
    if (!o)
        return -ENOMEM;
    mr.pd = agent_impl(pd);
    e = agent_made(a, o, a->rnic->ops->null_mr(a->rnic, &mr, &o->impl));
    if (e < 0)
        return e;
    o->lkey = mr.lkey;
    buf_printf(&a->reply, " lkey=0x%x", o->lkey);
    return 0;
}

static int cmd_advise(struct agent *a, struct request *r)
{
    static const struct line_name advices[] = {
        {"prefetch", 0}, {"prefetch_write", 1}, {"prefetch_no_fault", 2}, {NULL, 0}}; /* IB_UVERBS_ADVISE_MR_* */
    struct object *pd, *mr;
    uint64_t off = 0, len, advice = 0;
    bool flush = true;

    if (!agent_object(a, r, "pd", OBJECT_PD, &pd) || !agent_object(a, r, "mr", OBJECT_MR, &mr) ||
        !request_u64(r, "off", 0, mr->len, &off))
        return -EINVAL;
    len = mr->len - off;
    if (!request_u64(r, "len", 0, len < UINT32_MAX ? len : UINT32_MAX, &len) ||
        !request_name(r, "advice", advices, &advice) || !request_bool(r, "flush", &flush))
        return -EINVAL;
    struct sge piece = {.addr = mr->addr + off, .length = (uint32_t)len, .lkey = mr->lkey};
    return a->rnic->ops->advise ? a->rnic->ops->advise(a->rnic, agent_impl(pd), (uint32_t)advice, flush, &piece)
                                : -ENOSYS;
}

/* --- Device memory ---------------------------------------------------------------------------- */

static int cmd_dm(struct agent *a, struct request *r)
{
    uint64_t len = 0;
    uint32_t align = 0;
    struct object *o;
    int e;

    if (!request_u64(r, "len", 1, UINT32_MAX, &len) || !request_u32(r, "align", 0, 31, &align))
        return -EINVAL;
    if (!a->rnic->ops->dm_alloc)
        return -ENOSYS;
    o = len <= a->limits.max_mem - a->objects.mem ? object_new(&a->objects, OBJECT_DM) : NULL;
    if (!o)
        return -ENOMEM;
    e = agent_made(a, o, a->rnic->ops->dm_alloc(a->rnic, len, align, &o->impl));
    if (e < 0)
        return e;
    o->len = len;
    a->objects.mem += o->held = len;
    return 0;
}

static int cmd_dm_write(struct agent *a, struct request *r)
{
    struct object *o;
    uint64_t off = 0;

    if (!agent_object(a, r, "dm", OBJECT_DM, &o) || !request_u64(r, "off", 0, o->len, &off))
        return -EINVAL;
    if (r->data_len > o->len - off)
        return request_wrong(r, "more bytes than the memory has there"), -EINVAL;
    return r->data_len ? a->rnic->ops->dm_write(a->rnic, o->impl, off, r->data, r->data_len) : 0;
}

/* The bytes go into memory of the client's: device memory cannot be pointed at. */
static int cmd_dm_read(struct agent *a, struct request *r)
{
    struct object *o, *mem;
    uint64_t off = 0, len, to = 0;

    if (!agent_object(a, r, "dm", OBJECT_DM, &o) || !agent_object(a, r, "mem", OBJECT_MEM, &mem) ||
        !request_u64(r, "off", 0, o->len, &off) || !request_u64(r, "to", 0, mem->len, &to))
        return -EINVAL;
    len = o->len - off < mem->len - to ? o->len - off : mem->len - to;
    if (!request_u64(r, "len", 0, len, &len))
        return -EINVAL;
    return len ? a->rnic->ops->dm_read(a->rnic, o->impl, off, mem->bytes + to, len) : 0;
}

static int cmd_dm_mr(struct agent *a, struct request *r)
{
    struct object *o, *pd, *dm;
    uint64_t off = 0, access = 0;
    struct rnic_mr mr;
    int e;

    if (!agent_object(a, r, "pd", OBJECT_PD, &pd) || !agent_object(a, r, "dm", OBJECT_DM, &dm) ||
        !request_u64(r, "off", 0, dm->len, &off) || !request_flags(r, "access", access_names, &access))
        return -EINVAL;
    mr = (struct rnic_mr){.pd = agent_impl(pd), .len = dm->len - off, .access = (uint32_t)access};
    if (!request_u64(r, "len", 0, mr.len, &mr.len))
        return -EINVAL;
    o = object_new(&a->objects, OBJECT_MR);
    if (!o)
        return -ENOMEM;
    e = agent_made(a, o, a->rnic->ops->dm_mr(a->rnic, &mr, dm->impl, off, &o->impl));
    if (e < 0)
        return e;
    dm->refs++;
    o->mem = dm;
    o->len = mr.len;
    o->lkey = mr.lkey;
    o->rkey = mr.rkey;
    buf_printf(&a->reply, " lkey=0x%x rkey=0x%x addr=0x0 len=%llu", o->lkey, o->rkey, (unsigned long long)o->len);
    return 0;
}

/* --- Queue pairs ------------------------------------------------------------------------------ */

static int cmd_ece(struct agent *a, struct request *r)
{
    struct rnic_ece is;
    struct object *o;
    int e;

    if (!agent_object(a, r, "qp", OBJECT_QP, &o))
        return -EINVAL;
    if (!a->rnic->ops->ece_query)
        return -ENOSYS;
    e = a->rnic->ops->ece_query(a->rnic, o->impl, &is);
    if (e == 0)
        reply_ece(a, &is);
    return e;
}

static int cmd_ece_set(struct agent *a, struct request *r)
{
    struct rnic_ece to;
    struct object *o;

    if (!agent_object(a, r, "qp", OBJECT_QP, &o) || !request_ece(r, &to))
        return -EINVAL;
    return a->rnic->ops->ece_set ? a->rnic->ops->ece_set(a->rnic, o->impl, &to) : -ENOSYS;
}

/* Whether it is IPv4-mapped. */
static bool is_ipv4(const uint8_t gid[16])
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(gid, prefix, sizeof prefix) == 0;
}

/* Which frames: mac=, ip= and udp_port= of their destination. */
static bool flow_frames(struct request *r, struct rnic_flow *f)
{
    uint8_t gid[16] = {0};
    size_t n = 0;

    if (!request_hex(r, "mac", f->mac, sizeof f->mac, &n) || !request_gid(r, "ip", gid) ||
        !request_u32(r, "udp_port", 1, 65535, &f->udp_port))
        return false;
    f->has_mac = request_arg(r, "mac") != NULL;
    f->has_ip = request_arg(r, "ip") != NULL;
    memcpy(f->ip, gid + 12, sizeof f->ip);
    if (f->has_mac && n != sizeof f->mac)
        return request_wrong(r, "mac= has 6 bytes");
    return !f->has_ip || is_ipv4(gid) || request_wrong(r, "ip= is an IPv4 address");
}

static int cmd_flow(struct agent *a, struct request *r)
{
    static const struct line_name types[] = {
        {"normal", 0}, {"all_default", 1}, {"mc_default", 2}, {"sniffer", 3}, {NULL, 0}}; /* IBV_FLOW_ATTR_* */
    struct rnic_flow f = {.port = 1};
    struct object *o, *qp;
    uint64_t type = 0;

    if (!agent_object(a, r, "qp", OBJECT_QP, &qp) || !request_name(r, "type", types, &type) ||
        !request_u32(r, "port_num", 0, 255, &f.port) || !request_u32(r, "priority", 0, 65535, &f.priority) ||
        !flow_frames(r, &f))
        return -EINVAL;
    f.type = (uint32_t)type;
    if (!a->rnic->ops->flow_create)
        return -ENOSYS;
    o = object_new(&a->objects, OBJECT_FLOW);
    return o ? agent_made(a, o, a->rnic->ops->flow_create(a->rnic, qp->impl, &f, &o->impl)) : -ENOMEM;
}

const struct agent_command agent_more[] = {
    {"null_mr", "pd=PD", "a region without memory: what is written there is dropped", cmd_null_mr, AGENT_DEVICE},
    {"advise", "pd=PD mr=MR [off=N] [len=N] [advice=prefetch|prefetch_write|prefetch_no_fault] [flush=0|1]",
     "advise the device about a region on demand", cmd_advise, AGENT_DEVICE},
    {"dm", "len=N [align=LOG2]", "allocate memory of the device", cmd_dm, AGENT_DEVICE},
    {"dm write", "dm=DM [off=N] [data=N]", "copy bytes to it", cmd_dm_write, AGENT_DEVICE},
    {"dm read", "dm=DM mem=MEM [off=N] [to=N] [len=N]", "copy bytes of it to memory", cmd_dm_read, AGENT_DEVICE},
    {"dm mr", "pd=PD dm=DM [off=N] [len=N] [access=RIGHTS]", "register it, with addresses from 0", cmd_dm_mr,
     AGENT_DEVICE},
    {"ece", "qp=QP", "the options of enhanced connection establishment", cmd_ece, AGENT_DEVICE},
    {"ece set", "qp=QP [vendor_id=N] [options=N] [comp_mask=N]", "set them, before the queue pair is RTR", cmd_ece_set,
     AGENT_DEVICE},
    {"flow",
     "qp=QP [type=normal|all_default|mc_default|sniffer] [port_num=N] [priority=N] [mac=HEX] [ip=ADDR] [udp_port=N]",
     "steer frames to a raw queue pair", cmd_flow, AGENT_DEVICE},
    {NULL, NULL, NULL, NULL, 0},
};
