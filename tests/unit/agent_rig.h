/* layer 5 (test): an agent over a device that is none: it makes objects without a meaning, and notes what it is asked
 * for. It tells how the commands call a device, and nothing of what devices do. */
#ifndef RDMATRACE_TESTS_UNIT_AGENT_RIG_H
#define RDMATRACE_TESTS_UNIT_AGENT_RIG_H

#include "gen/agent/agent.h"

#include <errno.h>
#include <stdlib.h>

struct noted {
    struct rnic base; /* first */
    bool absent;      /* no device: open() fails with -ENODEV */
    int fails;        /* what posts return from post number `good` on */
    unsigned good;
    int objects;           /* that live */
    struct buf order;      /* a letter for each that was destroyed */
    unsigned posts;        /* that came */
    struct rnic_send last; /* the last send */
    struct recv_wr last_recv;
    uint32_t mask;            /* of the last qp_modify() */
    struct rnic_qp_attr attr; /* its attributes */
    struct rnic_mr mr;        /* the last region */
    uint64_t dm_len;          /* bytes of the latest device memory */
    struct rnic_flow flow;    /* the last rule */
    struct sge advised;       /* the last piece */
    struct rnic_ece ece;
    const char *counters; /* of `counters`, or NULL */
    struct rnic_wc wc;    /* a completion that is there, if n_wc */
    unsigned n_wc;
    unsigned requests; /* CONNECT_REQUESTs that have not been told */
};
static inline struct noted *noted_of(struct rnic *r)
{
    return (struct noted *)(void *)r;
}

static int noted_made(struct rnic *r, void **to)
{
    noted_of(r)->objects++;
    *to = malloc(1);
    return 0;
}
static int noted_gone(struct rnic *r, void *o, char letter)
{
    noted_of(r)->objects--;
    buf_char(&noted_of(r)->order, letter);
    free(o);
    return 0;
}

static int noted_list(struct rnic *r, struct buf *out)
{
    if (!noted_of(r)->absent)
        buf_puts(out, " dev=none0");
    return 0;
}
static int noted_open(struct rnic *r, const char *name)
{
    return noted_of(r)->absent || (*name && strcmp(name, "none0") != 0) ? -ENODEV : 0;
}
static void noted_close(struct rnic *r)
{
    buf_char(&noted_of(r)->order, '.');
}
static int noted_query(struct rnic *r, struct buf *out)
{
    (void)r;
    (void)out;
    return 0;
}
static int noted_query_port(struct rnic *r, uint32_t port, struct buf *out)
{
    (void)out;
    (void)r;
    return port == 1 ? 0 : -EINVAL;
}
static const char *noted_device(struct rnic *r)
{
    (void)r;
    return "none0";
}
#define NOTED_GONE(name, letter)                                                                                       \
    static int name(struct rnic *r, void *o)                                                                           \
    {                                                                                                                  \
        return noted_gone(r, o, letter);                                                                               \
    }
NOTED_GONE(noted_pd_free, 'p')
NOTED_GONE(noted_xrcd_close, 'x')
NOTED_GONE(noted_channel_destroy, 'h')
NOTED_GONE(noted_cq_destroy, 'c')
NOTED_GONE(noted_srq_destroy, 's')
NOTED_GONE(noted_mr_dereg, 'm')
NOTED_GONE(noted_mw_free, 'w')
NOTED_GONE(noted_qp_destroy, 'q')
NOTED_GONE(noted_ah_destroy, 'a')
NOTED_GONE(noted_dm_free, 'd')
NOTED_GONE(noted_flow_destroy, 'f')
NOTED_GONE(noted_cm_destroy, 'i')

static void noted_counters(struct rnic *r, struct buf *out)
{
    buf_puts(out, noted_of(r)->counters ? noted_of(r)->counters : "");
}
static int noted_channel_fd(struct rnic *r, void *channel)
{
    (void)r;
    (void)channel;
    return -1;
}
static int noted_cq(struct rnic *r, uint32_t *entries, void *channel, uint32_t vector, void *user, void **cq)
{
    (void)entries;
    (void)channel;
    (void)vector;
    (void)user;
    return noted_made(r, cq);
}
static int noted_cq_resize(struct rnic *r, void *cq, uint32_t *entries)
{
    (void)r;
    (void)cq;
    (void)entries;
    return -EOPNOTSUPP;
}
static int noted_cq_arm(struct rnic *r, void *cq, bool solicited)
{
    (void)r;
    (void)cq;
    (void)solicited;
    return 0;
}
static int noted_poll(struct rnic *r, void *cq, struct rnic_wc *wc, int n)
{
    struct noted *d = noted_of(r);

    (void)cq;
    if (!d->n_wc || n < 1)
        return 0;
    d->n_wc--;
    *wc = d->wc;
    return 1;
}
static int noted_poll_stamped(struct rnic *r, void *cq, struct rnic_wc *wc, int n)
{
    int got = noted_poll(r, cq, wc, n);

    if (got > 0)
        wc->stamp = UINT64_MAX;
    return got;
}
static int noted_srq(struct rnic *r, struct rnic_srq_init *init, void *user, void **srq)
{
    (void)init;
    (void)user;
    return noted_made(r, srq);
}
static int noted_srq_modify(struct rnic *r, void *srq, uint32_t mask, uint32_t max_wr, uint32_t limit)
{
    (void)srq;
    (void)max_wr;
    (void)limit;
    noted_of(r)->mask = mask;
    return 0;
}
static int noted_srq_query(struct rnic *r, void *srq, struct rnic_srq_init *out)
{
    (void)r;
    (void)srq;
    out->max_wr = 7;
    return 0;
}
static int noted_mr(struct rnic *r, struct rnic_mr *mr, void **handle)
{
    mr->lkey = mr->rkey = 0x1234;
    noted_of(r)->mr = *mr;
    return noted_made(r, handle);
}
static int noted_null_mr(struct rnic *r, struct rnic_mr *mr, void **handle)
{
    return noted_mr(r, mr, handle);
}
static int noted_advise(struct rnic *r, void *pd, uint32_t advice, bool flush, const struct sge *piece)
{
    (void)pd, (void)advice, (void)flush;
    noted_of(r)->advised = *piece;
    return 0;
}
static int noted_dm(struct rnic *r, uint64_t len, uint32_t align, void **dm)
{
    (void)align;
    noted_of(r)->dm_len = len;
    return noted_made(r, dm);
}
/* Beyond the end of the latest memory nothing may be asked for, nor of the client's bytes. */
static int noted_dm_write(struct rnic *r, void *dm, uint64_t off, const void *from, uint64_t n)
{
    volatile uint8_t sum = 0;

    (void)dm;
    for (uint64_t i = 0; i < n; i++)
        sum ^= ((const uint8_t *)from)[i];
    (void)sum;
    return off + n <= noted_of(r)->dm_len ? 0 : -ERANGE;
}
static int noted_dm_read(struct rnic *r, void *dm, uint64_t off, void *to, uint64_t n)
{
    (void)dm;
    memset(to, 0x77, n);
    return off + n <= noted_of(r)->dm_len ? 0 : -ERANGE;
}
static int noted_dm_mr(struct rnic *r, struct rnic_mr *mr, void *dm, uint64_t off, void **handle)
{
    (void)dm, (void)off;
    return noted_mr(r, mr, handle);
}
static int noted_ece_query(struct rnic *r, void *qp, struct rnic_ece *ece)
{
    (void)qp;
    *ece = noted_of(r)->ece;
    return 0;
}
static int noted_ece_set(struct rnic *r, void *qp, const struct rnic_ece *ece)
{
    (void)qp;
    noted_of(r)->ece = *ece;
    return 0;
}
static int noted_flow(struct rnic *r, void *qp, const struct rnic_flow *f, void **flow)
{
    (void)qp;
    noted_of(r)->flow = *f;
    return noted_made(r, flow);
}
static int noted_mw(struct rnic *r, void *pd, uint32_t type, uint32_t *rkey, void **mw)
{
    (void)pd;
    (void)type;
    *rkey = 0x5678;
    return noted_made(r, mw);
}
static int noted_qp(struct rnic *r, struct rnic_qp_init *init, void *user, void **qp)
{
    (void)user;
    init->qpn = 0x11;
    return noted_made(r, qp);
}
static int noted_modify(struct rnic *r, void *qp, uint32_t mask, const struct rnic_qp_attr *a)
{
    (void)qp;
    noted_of(r)->mask = mask;
    noted_of(r)->attr = *a;
    return 0;
}
static int noted_query_qp(struct rnic *r, void *qp, struct rnic_qp_attr *a)
{
    (void)qp;
    *a = noted_of(r)->attr;
    return 0;
}
static int noted_ah(struct rnic *r, void *pd, const struct rnic_av *av, void **ah)
{
    (void)pd;
    noted_of(r)->attr.av = *av;
    return noted_made(r, ah);
}
static int noted_mcast(struct rnic *r, void *qp, const uint8_t gid[16], uint16_t lid, bool attach)
{
    (void)r;
    (void)qp;
    (void)gid;
    (void)lid;
    return attach ? 0 : -EINVAL;
}
static int noted_posted(struct noted *d)
{
    return d->fails && d->posts++ >= d->good ? d->fails : 0;
}
static int noted_send(struct rnic *r, void *qp, const struct rnic_send *s)
{
    (void)qp;
    noted_of(r)->last = *s;
    return noted_posted(noted_of(r));
}
static int noted_bind(struct rnic *r, void *qp, const struct rnic_send *s, uint32_t *rkey)
{
    *rkey = 0x5679;
    return noted_send(r, qp, s);
}
static int noted_recv(struct rnic *r, void *qp, const struct recv_wr *wr)
{
    (void)qp;
    noted_of(r)->last_recv = *wr;
    return noted_posted(noted_of(r));
}
static int noted_fds(struct rnic *r, int fd[RNIC_FDS])
{
    (void)r;
    (void)fd;
    return 0;
}
static int noted_event(struct rnic *r, void *channel, struct rnic_event *e)
{
    struct noted *d = noted_of(r);

    if (channel || !d->requests)
        return 0;
    d->requests--;
    *e = (struct rnic_event){.what = RNIC_CM, .name = "CONNECT_REQUEST", .n_private = RNIC_PRIVATE - 1};
    noted_made(r, &e->id);
    return 1;
}
static void noted_own(struct rnic *r, void *id, void *user)
{
    (void)r;
    (void)id;
    (void)user;
}
static int noted_id(struct rnic *r, uint32_t ps, void *user, void **id)
{
    (void)ps;
    (void)user;
    return noted_made(r, id);
}
static int noted_cm(struct rnic *r, void *id)
{
    (void)r;
    (void)id;
    return -ENOTCONN;
}
static int noted_cm_number(struct rnic *r, void *id, uint32_t n)
{
    (void)n;
    return noted_cm(r, id);
}
static int noted_cm_address(struct rnic *r, void *id, const uint8_t addr[16], uint16_t port)
{
    (void)addr;
    (void)port;
    return noted_cm(r, id);
}
static int noted_cm_resolve(struct rnic *r, void *id, const uint8_t addr[16], uint16_t port, uint32_t ms)
{
    (void)ms;
    return noted_cm_address(r, id, addr, port);
}
static int noted_cm_param(struct rnic *r, void *id, const struct rnic_cm_param *p)
{
    (void)p;
    return noted_cm(r, id);
}
static int noted_cm_reject(struct rnic *r, void *id, const uint8_t *data, uint32_t n)
{
    (void)data;
    (void)n;
    return noted_cm(r, id);
}
static int noted_cm_group(struct rnic *r, void *id, const uint8_t addr[16])
{
    (void)addr;
    return noted_cm(r, id);
}
static int noted_cm_option(struct rnic *r, void *id, uint32_t option, uint32_t value)
{
    (void)option;
    (void)value;
    return noted_cm(r, id);
}
static int noted_cm_modify(struct rnic *r, void *id, void *qp, uint32_t state)
{
    (void)qp;
    (void)state;
    return noted_cm(r, id);
}

static const struct rnic_ops noted_ops = {
    .name = "none",
    .close = noted_close,
    .list = noted_list,
    .open = noted_open,
    .query = noted_query,
    .query_port = noted_query_port,
    .query_gids = noted_query_port,
    .device = noted_device,
    .pd_alloc = noted_made,
    .pd_free = noted_pd_free,
    .xrcd_open = noted_made,
    .xrcd_close = noted_xrcd_close,
    .channel_create = noted_made,
    .channel_destroy = noted_channel_destroy,
    .channel_fd = noted_channel_fd,
    .cq_create = noted_cq,
    .cq_resize = noted_cq_resize,
    .cq_arm = noted_cq_arm,
    .cq_poll = noted_poll,
    .cq_create_stamped = noted_cq,
    .cq_poll_stamped = noted_poll_stamped,
    .cq_destroy = noted_cq_destroy,
    .srq_create = noted_srq,
    .srq_modify = noted_srq_modify,
    .srq_query = noted_srq_query,
    .srq_destroy = noted_srq_destroy,
    .mr_reg = noted_mr,
    .mr_dereg = noted_mr_dereg,
    .null_mr = noted_null_mr,
    .advise = noted_advise,
    .dm_alloc = noted_dm,
    .dm_free = noted_dm_free,
    .dm_write = noted_dm_write,
    .dm_read = noted_dm_read,
    .dm_mr = noted_dm_mr,
    .ece_query = noted_ece_query,
    .ece_set = noted_ece_set,
    .flow_create = noted_flow,
    .flow_destroy = noted_flow_destroy,
    .mw_alloc = noted_mw,
    .mw_bind = noted_bind,
    .mw_free = noted_mw_free,
    .qp_create = noted_qp,
    .qp_modify = noted_modify,
    .qp_query = noted_query_qp,
    .qp_destroy = noted_qp_destroy,
    .ah_create = noted_ah,
    .ah_destroy = noted_ah_destroy,
    .mcast = noted_mcast,
    .post_send = noted_send,
    .post_recv = noted_recv,
    .post_srq = noted_recv,
    .fds = noted_fds,
    .next_event = noted_event,
    .cm_create = noted_id,
    .cm_destroy = noted_cm_destroy,
    .cm_own = noted_own,
    .cm_bind = noted_cm_address,
    .cm_listen = noted_cm_number,
    .cm_resolve = noted_cm_resolve,
    .cm_route = noted_cm_number,
    .cm_connect = noted_cm_param,
    .cm_accept = noted_cm_param,
    .cm_reject = noted_cm_reject,
    .cm_establish = noted_cm,
    .cm_disconnect = noted_cm,
    .cm_join = noted_cm_group,
    .cm_leave = noted_cm_group,
    .cm_option = noted_cm_option,
    .counters = noted_counters,
    .cm_ece = noted_ece_query,
    .cm_ece_set = noted_ece_set,
    .cm_modify = noted_cm_modify,
};

/* The client has gone as soon as the agent would wait. */
static bool noted_pause(void *user, struct agent *a, ns_t until)
{
    (void)user;
    (void)a;
    (void)until;
    return false;
}

/* The client has time. */
static inline bool noted_patience(void *user, struct agent *a, ns_t until)
{
    (void)user;
    (void)a;
    (void)until;
    return true;
}

/* Begin an agent over *d. */
static inline void noted_begin(struct agent *a, struct noted *d, const struct agent_limits *limits)
{
    const struct agent_driver driver = {.pause = noted_pause};

    d->base.ops = &noted_ops;
    agent_begin(a, &d->base, limits, &driver);
}

#endif
