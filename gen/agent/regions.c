/* layer 3 (agent): the commands of protection domains, memory regions, memory windows and address handles. */
#include "gen/agent/names.h"

#include <errno.h>

static int cmd_pd(struct agent *a, struct request *r)
{
    struct object *o = object_new(&a->objects, OBJECT_PD);

    (void)r;
    return o ? agent_made(a, o, a->rnic->ops->pd_alloc(a->rnic, &o->impl)) : -ENOMEM;
}

static int cmd_xrcd(struct agent *a, struct request *r)
{
    struct object *o = object_new(&a->objects, OBJECT_XRCD);

    (void)r;
    return o ? agent_made(a, o, a->rnic->ops->xrcd_open(a->rnic, &o->impl)) : -ENOMEM;
}

/* The region that pd=, mem=, off=, len=, iova= and access= describe. */
static bool region(struct agent *a, struct request *r, struct rnic_mr *mr, struct object **mem)
{
    struct object *pd;
    uint64_t off = 0, access = mr->access;

    if (!agent_object(a, r, "pd", OBJECT_PD, &pd) || !agent_object(a, r, "mem", OBJECT_MEM, mem) ||
        !request_flags(r, "access", access_names, &access))
        return false;
    mr->pd = agent_impl(pd);
    mr->access = (uint32_t)access;
    mr->has_iova = request_arg(r, "iova") != NULL;
    if (*mem) {
        if (!request_u64(r, "off", 0, (*mem)->len, &off))
            return false;
        mr->addr = (*mem)->bytes + off;
        mr->len = (*mem)->len - off;
    }
    return request_u64(r, "len", 0, mr->len, &mr->len) && request_u64(r, "iova", 0, UINT64_MAX, &mr->iova);
}

/* The region is now as `mr` says; `mem` (NULL: as before) is its memory. */
static void region_is(struct agent *a, struct object *o, const struct rnic_mr *mr, struct object *mem)
{
    if (mem) {
        mem->refs++;
        if (o->mem)
            o->mem->refs--;
        o->mem = mem;
        o->base = mr->addr;
        o->len = mr->len;
        o->addr = mr->access & RNIC_ACCESS_ZERO_BASED ? 0 : mr->has_iova ? mr->iova : (uint64_t)(uintptr_t)mr->addr;
    }
    o->lkey = mr->lkey;
    o->rkey = mr->rkey;
    buf_printf(&a->reply, " lkey=0x%x rkey=0x%x addr=0x%llx len=%llu", o->lkey, o->rkey, (unsigned long long)o->addr,
               (unsigned long long)o->len);
}

/* Register it: as memory, or as the DMA buffer that it is. */
static int reg(struct agent *a, struct rnic_mr *mr, const struct object *mem, void **handle)
{
    const struct rnic_ops *ops = a->rnic->ops;

    if (!mem->dmabuf)
        return ops->mr_reg(a->rnic, mr, handle);
    return ops->dmabuf_mr
               ? ops->dmabuf_mr(a->rnic, mr, mem->dmabuf - 1, (uint64_t)((uint8_t *)mr->addr - mem->bytes), handle)
               : -ENOSYS;
}

static int cmd_mr(struct agent *a, struct request *r)
{
    struct rnic_mr mr = {0};
    struct object *o, *mem;
    int e;

    if (!region(a, r, &mr, &mem))
        return -EINVAL;
    o = object_new(&a->objects, OBJECT_MR);
    if (!o)
        return -ENOMEM;
    e = agent_made(a, o, reg(a, &mr, mem, &o->impl));
    if (e == 0)
        region_is(a, o, &mr, mem);
    return e;
}

#define LOOP_NS   (10 * NS_PER_S) /* longest time of a loop */
#define LOOP_LOOK 64              /* after so many turns it is looked whether the client is still there */

/* Register memory and deregister it, again and again: what a program does that registers each buffer anew. */
static int cmd_mr_loop(struct agent *a, struct request *r)
{
    ns_t begin = agent_time(a);
    struct rnic_mr mr = {0};
    struct object *mem;
    uint32_t n = 1, done = 0;
    void *handle;
    int e = 0;

    if (!region(a, r, &mr, &mem) || !request_u32(r, "n", 1, 1000000, &n))
        return -EINVAL;
    while (done < n && e == 0 && agent_time(a) - begin < LOOP_NS) {
        e = reg(a, &mr, mem, &handle);
        if (e == 0)
            e = a->rnic->ops->mr_dereg(a->rnic, handle);
        if (++done % LOOP_LOOK == 0 && !a->driver.pause(a->driver.user, a, 0))
            e = -ECANCELED;
    }
    if (e == 0)
        buf_printf(&a->reply, " n=%u t=%lld", done, (long long)agent_time(a));
    return e;
}

static int cmd_rereg(struct agent *a, struct request *r)
{
    struct object *o, *mem;
    struct rnic_mr mr;
    uint32_t flags;
    int e;

    if (!agent_object(a, r, "mr", OBJECT_MR, &o))
        return -EINVAL;
    mr = (struct rnic_mr){.addr = o->base, .len = o->len};
    if (!region(a, r, &mr, &mem))
        return -EINVAL;
    if (!mem && (request_arg(r, "len") || request_arg(r, "off")))
        return request_wrong(r, "off= and len= need mem="), -EINVAL;
    flags = (mem ? RNIC_REREG_TRANSLATION : 0) | (request_arg(r, "pd") ? RNIC_REREG_PD : 0) |
            (request_arg(r, "access") ? RNIC_REREG_ACCESS : 0);
    if (!a->rnic->ops->mr_rereg)
        return -ENOSYS;
    e = a->rnic->ops->mr_rereg(a->rnic, o->impl, flags, &mr);
    if (e == 0)
        region_is(a, o, &mr, mem);
    return e;
}

static int cmd_mw(struct agent *a, struct request *r)
{
    struct object *o, *pd;
    uint32_t type = 2;
    int e;

    if (!agent_object(a, r, "pd", OBJECT_PD, &pd) || !request_u32(r, "type", 0, UINT32_MAX, &type))
        return -EINVAL;
    o = object_new(&a->objects, OBJECT_MW);
    if (!o)
        return -ENOMEM;
    o->type = type;
    e = agent_made(a, o, a->rnic->ops->mw_alloc(a->rnic, pd->impl, type, &o->rkey, &o->impl));
    if (e == 0)
        buf_printf(&a->reply, " rkey=0x%x", o->rkey);
    return e;
}

static int cmd_ah(struct agent *a, struct request *r)
{
    struct rnic_av av = {.hop_limit = 64, .port = 1, .is_global = 1};
    struct object *o, *pd;

    if (!agent_object(a, r, "pd", OBJECT_PD, &pd) || !request_av(r, "", &av))
        return -EINVAL;
    o = object_new(&a->objects, OBJECT_AH);
    return o ? agent_made(a, o, a->rnic->ops->ah_create(a->rnic, pd->impl, &av, &o->impl)) : -ENOMEM;
}

const struct agent_command agent_regions[] = {
    {"pd", "", "allocate a protection domain", cmd_pd, AGENT_DEVICE},
    {"xrcd", "", "open an XRC domain", cmd_xrcd, AGENT_DEVICE},
    {"mr", "pd=PD mem=MEM [off=N] [len=N] [access=RIGHTS] [iova=ADDR]", "register memory", cmd_mr, AGENT_DEVICE},
    {"mr loop", "pd=PD mem=MEM n=N [off=N] [len=N] [access=RIGHTS]",
     "register and deregister memory so often, for 10 s at most", cmd_mr_loop, AGENT_DEVICE},
    {"mr rereg", "mr=MR [pd=PD] [mem=MEM] [off=N] [len=N] [access=RIGHTS]",
     "change a region: its memory, its protection domain or its rights", cmd_rereg, AGENT_DEVICE},
    {"mw", "pd=PD [type=1|2]", "allocate a memory window", cmd_mw, AGENT_DEVICE},
    {"ah", "pd=PD " AV_ARGS, "create an address handle", cmd_ah, AGENT_DEVICE},
    {NULL, NULL, NULL, NULL, 0},
};
