/* layer 3 (rnic): a device over libibverbs: opened and queried; protection domains, regions, windows. */
#include "gen/rnic/ibv_lib.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>

/* --- The device ------------------------------------------------------------------------------- */

static void be_close(struct rnic *r)
{
    struct ibv_rnic *d = ibv_of(r);

    if (d->cm)
        ibv.rdma_destroy_event_channel(d->cm);
    if (d->context)
        ibv.ibv_close_device(d->context);
    if (d->devices)
        ibv.ibv_free_device_list(d->devices);
    free(d);
}

static int refresh(struct ibv_rnic *d)
{
    if (d->devices)
        ibv.ibv_free_device_list(d->devices);
    errno = 0;
    d->devices = ibv.ibv_get_device_list(NULL);
    return d->devices ? 0 : ibv_result(-1);
}

static int be_list(struct rnic *r, struct buf *out)
{
    struct ibv_rnic *d = ibv_of(r);
    int e = refresh(d);

    for (unsigned i = 0; e == 0 && d->devices[i]; i++)
        buf_printf(out, " dev=%s", ibv.ibv_get_device_name(d->devices[i]));
    return e == -ENOSYS || e == -ENOENT ? 0 : e; /* no such module in the kernel: no devices */
}

static int be_open(struct rnic *r, const char *name)
{
    struct ibv_rnic *d = ibv_of(r);
    int e = refresh(d);

    for (unsigned i = 0; e == 0 && d->devices[i]; i++) {
        if (*name && strcmp(name, ibv.ibv_get_device_name(d->devices[i])) != 0)
            continue;
        errno = 0;
        d->context = ibv.ibv_open_device(d->devices[i]);
        if (!d->context)
            return ibv_result(-1);
        ibv_unblock(d->context->async_fd);
        return 0;
    }
    return -ENODEV;
}

static const char *be_device(struct rnic *r)
{
    return ibv.ibv_get_device_name(ibv_of(r)->context->device);
}

/* Numbers of struct ibv_device_attr and struct ibv_port_attr. */
struct number {
    const char *key;
    size_t at, size;
};
#define PKEYS 1024 /* entries of a table of P_Keys that are told */

#define DEVICE(member)                                                                                                 \
    {                                                                                                                  \
#member, offsetof(struct ibv_device_attr, member), sizeof(((struct ibv_device_attr *)0)->member)               \
    }
#define PORT(member)                                                                                                   \
    {                                                                                                                  \
#member, offsetof(struct ibv_port_attr, member), sizeof(((struct ibv_port_attr *)0)->member)                   \
    }

static const struct number device_numbers[] = {
    DEVICE(max_mr_size),
    DEVICE(page_size_cap),
    DEVICE(vendor_id),
    DEVICE(vendor_part_id),
    DEVICE(hw_ver),
    DEVICE(max_qp),
    DEVICE(max_qp_wr),
    DEVICE(device_cap_flags),
    DEVICE(max_sge),
    DEVICE(max_sge_rd),
    DEVICE(max_cq),
    DEVICE(max_cqe),
    DEVICE(max_mr),
    DEVICE(max_pd),
    DEVICE(max_qp_rd_atom),
    DEVICE(max_res_rd_atom),
    DEVICE(max_qp_init_rd_atom),
    DEVICE(atomic_cap),
    DEVICE(max_mw),
    DEVICE(max_mcast_grp),
    DEVICE(max_mcast_qp_attach),
    DEVICE(max_ah),
    DEVICE(max_srq),
    DEVICE(max_srq_wr),
    DEVICE(max_srq_sge),
    DEVICE(max_pkeys),
    DEVICE(local_ca_ack_delay),
    DEVICE(phys_port_cnt),
};
static const struct number port_numbers[] = {
    PORT(state),        PORT(max_mtu),      PORT(active_mtu), PORT(gid_tbl_len), PORT(port_cap_flags),
    PORT(max_msg_sz),   PORT(pkey_tbl_len), PORT(lid),        PORT(sm_lid),      PORT(lmc),
    PORT(active_width), PORT(active_speed), PORT(phys_state), PORT(link_layer),
};

static void say_numbers(struct buf *out, const struct number *n, size_t count, const void *from)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t v = 0;
        memcpy(&v, (const char *)from + n[i].at, n[i].size); /* little endian */
        buf_printf(out, " %s=%llu", n[i].key, (unsigned long long)v);
    }
}

/* What ibv_query_device() has no room for, if the driver tells it: flags; of the time stamps of completions the bits,
 * and the ticks a second. */
static void say_more(struct ibv_context *c, struct buf *out)
{
    struct verbs_context *v = verbs_get_ctx_op(c, query_device_ex);
    struct ibv_device_attr_ex x = {0};

    if (!v || ibv_result(v->query_device_ex(c, NULL, &x, sizeof x)) != 0)
        return;
    buf_printf(out, " device_cap_flags_ex=%llu", (unsigned long long)x.device_cap_flags_ex);
    if (x.completion_timestamp_mask)
        buf_printf(out, " stamp_mask=0x%llx", (unsigned long long)x.completion_timestamp_mask);
    if (x.hca_core_clock)
        buf_printf(out, " stamp_hz=%llu", 1000 * (unsigned long long)x.hca_core_clock); /* it is in kHz */
}

static int be_query(struct rnic *r, struct buf *out)
{
    struct ibv_device_attr a = {0};
    int e = ibv_result(ibv.ibv_query_device(ibv_of(r)->context, &a));

    if (e < 0)
        return e;
    buf_puts(out, " fw_ver=");
    for (const char *p = a.fw_ver; *p && p < a.fw_ver + sizeof a.fw_ver; p++)
        buf_char(out, *p > ' ' && *p <= '~' ? *p : '_');
    buf_printf(out, " node_guid=0x%016llx", (unsigned long long)__builtin_bswap64(a.node_guid));
    say_numbers(out, device_numbers, ARRAY_LEN(device_numbers), &a);
    say_more(ibv_of(r)->context, out);
    return 0;
}

static int be_query_port(struct rnic *r, uint32_t port, struct buf *out)
{
    struct ibv_context *c = ibv_of(r)->context;
    struct verbs_context *v = verbs_get_ctx_op(c, query_port);
    struct ibv_port_attr a = {0};
    int e = v && port <= UINT8_MAX ? ibv_result(v->query_port(c, (uint8_t)port, &a, sizeof a)) : -EOPNOTSUPP;

    if (e == 0)
        say_numbers(out, port_numbers, ARRAY_LEN(port_numbers), &a);
    return e;
}

static int be_query_gids(struct rnic *r, uint32_t port, struct buf *out)
{
    static const char *const types[] = {"IB", "ROCE_V1", "ROCE_V2"};
    struct ibv_gid_entry table[256];
    ssize_t n;

    errno = 0;
    n = ibv._ibv_query_gid_table(ibv_of(r)->context, table, ARRAY_LEN(table), 0, sizeof table[0]);
    if (n < 0)
        return n == -1 ? ibv_result(-1) : (int)n;
    for (ssize_t i = 0; i < n; i++) {
        char netdev[IF_NAMESIZE] = "-";
        if (port && table[i].port_num != port)
            continue;
        if (table[i].ndev_ifindex)
            if_indextoname(table[i].ndev_ifindex, netdev);
        buf_printf(out, " gid=%u,", table[i].gid_index);
        buf_ipv6(out, table[i].gid.raw);
        buf_printf(out, ",%s,%s", table[i].gid_type < ARRAY_LEN(types) ? types[table[i].gid_type] : "?", netdev);
    }
    return 0;
}

/* Entries of the table that are not used have the value 0, and are left out. */
static int be_query_pkeys(struct rnic *r, uint32_t port, struct buf *out)
{
    struct ibv_context *c = ibv_of(r)->context;
    struct verbs_context *v = verbs_get_ctx_op(c, query_port);
    struct ibv_port_attr a = {0};
    __be16 key;
    int e = v && port <= UINT8_MAX ? ibv_result(v->query_port(c, (uint8_t)port, &a, sizeof a)) : -EOPNOTSUPP;

    for (int i = 0; e == 0 && i < a.pkey_tbl_len && i < PKEYS; i++) {
        errno = 0;
        e = ibv_result(ibv.ibv_query_pkey(c, (uint8_t)port, i, &key));
        if (e == 0 && key)
            buf_printf(out, " pkey=%d,0x%04x", i, __builtin_bswap16(key));
    }
    return e;
}

/* --- Protection domains, regions, windows ----------------------------------------------------- */

/* A pointer that a call returned, in *to. */
static int made(void *p, void **to)
{
    *to = p;
    return p ? 0 : ibv_result(-1);
}

static int be_pd_alloc(struct rnic *r, void **pd)
{
    errno = 0;
    return made(ibv.ibv_alloc_pd(ibv_of(r)->context), pd);
}

static int be_pd_free(struct rnic *r, void *pd)
{
    (void)r;
    return ibv_result(ibv.ibv_dealloc_pd(pd));
}

static int be_xrcd_open(struct rnic *r, void **xrcd)
{
    struct ibv_xrcd_init_attr a = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = 0100};

    errno = 0;
    return made(ibv_open_xrcd(ibv_of(r)->context, &a), xrcd);
}

static int be_xrcd_close(struct rnic *r, void *xrcd)
{
    (void)r;
    return ibv_result(ibv_close_xrcd(xrcd));
}

static int be_mr_reg(struct rnic *r, struct rnic_mr *mr, void **handle)
{
    uint64_t iova = mr->has_iova ? mr->iova : (uint64_t)(uintptr_t)mr->addr;
    struct ibv_mr *m;

    (void)r;
    errno = 0;
    m = ibv.ibv_reg_mr_iova2(mr->pd, mr->addr, mr->len, iova, mr->access);
    if (m) {
        mr->lkey = m->lkey;
        mr->rkey = m->rkey;
    }
    return made(m, handle);
}

static int be_mr_rereg(struct rnic *r, void *handle, uint32_t flags, struct rnic_mr *mr)
{
    struct ibv_mr *m = handle;
    int e;

    (void)r;
    errno = 0;
    e = ibv.ibv_rereg_mr(m, (int)flags, mr->pd, mr->addr, mr->len, (int)mr->access);
    mr->lkey = m->lkey;
    mr->rkey = m->rkey;
    return e == 0 ? 0 : errno ? -errno : -EIO; /* the value says only how far it came */
}

static int be_mr_dereg(struct rnic *r, void *handle)
{
    (void)r;
    return ibv_result(ibv.ibv_dereg_mr(handle));
}

static int be_mw_alloc(struct rnic *r, void *pd, uint32_t type, uint32_t *rkey, void **mw)
{
    struct ibv_mw *w;

    (void)r;
    errno = 0;
    w = ibv_alloc_mw(pd, (enum ibv_mw_type)type);
    if (w)
        *rkey = w->rkey;
    return made(w, mw);
}

static int be_mw_free(struct rnic *r, void *mw)
{
    (void)r;
    return ibv_result(ibv_dealloc_mw(mw));
}

static int be_fds(struct rnic *r, int fd[RNIC_FDS])
{
    struct ibv_rnic *d = ibv_of(r);
    int n = 0;

    if (d->context)
        fd[n++] = d->context->async_fd;
    if (d->cm)
        fd[n++] = d->cm->fd;
    return n;
}

static const struct rnic_ops ops = {
    .name = "ibverbs",
    .close = be_close,
    .list = be_list,
    .open = be_open,
    .query = be_query,
    .query_port = be_query_port,
    .query_gids = be_query_gids,
    .query_pkeys = be_query_pkeys,
    .device = be_device,
    .device_clock = ibv_be_device_clock,
    .pd_alloc = be_pd_alloc,
    .pd_free = be_pd_free,
    .xrcd_open = be_xrcd_open,
    .xrcd_close = be_xrcd_close,
    .channel_create = ibv_be_channel_create,
    .channel_destroy = ibv_be_channel_destroy,
    .channel_fd = ibv_be_channel_fd,
    .cq_create = ibv_be_cq_create,
    .cq_resize = ibv_be_cq_resize,
    .cq_arm = ibv_be_cq_arm,
    .cq_poll = ibv_be_cq_poll,
    .cq_destroy = ibv_be_cq_destroy,
    .cq_create_stamped = ibv_be_cq_create_stamped,
    .cq_poll_stamped = ibv_be_cq_poll_stamped,
    .srq_create = ibv_be_srq_create,
    .srq_modify = ibv_be_srq_modify,
    .srq_query = ibv_be_srq_query,
    .srq_destroy = ibv_be_srq_destroy,
    .mr_reg = be_mr_reg,
    .mr_rereg = be_mr_rereg,
    .mr_dereg = be_mr_dereg,
    .mw_alloc = be_mw_alloc,
    .mw_bind = ibv_be_mw_bind,
    .mw_free = be_mw_free,
    .null_mr = ibv_be_null_mr,
    .dmabuf_mr = ibv_be_dmabuf_mr,
    .advise = ibv_be_advise,
    .dm_alloc = ibv_be_dm_alloc,
    .dm_free = ibv_be_dm_free,
    .dm_write = ibv_be_dm_write,
    .dm_read = ibv_be_dm_read,
    .dm_mr = ibv_be_dm_mr,
    .ece_query = ibv_be_ece_query,
    .ece_set = ibv_be_ece_set,
    .flow_create = ibv_be_flow_create,
    .flow_destroy = ibv_be_flow_destroy,
    .qp_create = ibv_be_qp_create,
    .qp_modify = ibv_be_qp_modify,
    .qp_query = ibv_be_qp_query,
    .qp_destroy = ibv_be_qp_destroy,
    .ah_create = ibv_be_ah_create,
    .ah_destroy = ibv_be_ah_destroy,
    .mcast = ibv_be_mcast,
    .post_send = ibv_be_post_send,
    .post_recv = ibv_be_post_recv,
    .post_srq = ibv_be_post_srq,
    .fds = be_fds,
    .next_event = ibv_be_next_event,
    .cm_create = ibv_be_cm_create,
    .cm_own = ibv_be_cm_own,
    .cm_destroy = ibv_be_cm_destroy,
    .cm_bind = ibv_be_cm_bind,
    .cm_listen = ibv_be_cm_listen,
    .cm_resolve = ibv_be_cm_resolve,
    .cm_route = ibv_be_cm_route,
    .cm_connect = ibv_be_cm_connect,
    .cm_accept = ibv_be_cm_accept,
    .cm_reject = ibv_be_cm_reject,
    .cm_establish = ibv_be_cm_establish,
    .cm_disconnect = ibv_be_cm_disconnect,
    .cm_join = ibv_be_cm_join,
    .cm_leave = ibv_be_cm_leave,
    .cm_option = ibv_be_cm_option,
    .cm_ece_set = ibv_be_cm_ece_set,
    .cm_ece = ibv_be_cm_ece,
    .cm_modify = ibv_be_cm_modify,
};

int ibv_rnic_open(struct rnic **r, char why[RNIC_WHY])
{
    struct ibv_rnic *d;
    int e = ibv_lib_load(why);

    if (e < 0)
        return e;
    d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    d->base.ops = &ops;
    *r = &d->base;
    return 0;
}
