/* layer 1 (io): the sniffer of an RDMA device, by libibverbs. */
#include "src/cap/sniffer.h"

#include <errno.h>
#include <stdio.h>

#if __has_include(<infiniband/verbs.h>)

#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

/* The functions of the library that are no inline functions of its header. */
#undef ibv_reg_mr
#define FUNCTIONS(X)                                                                                                   \
    X(ibv_get_device_list)                                                                                             \
    X(ibv_free_device_list)                                                                                            \
    X(ibv_get_device_name)                                                                                             \
    X(ibv_open_device)                                                                                                 \
    X(ibv_close_device)                                                                                                \
    X(ibv_alloc_pd)                                                                                                    \
    X(ibv_dealloc_pd)                                                                                                  \
    X(ibv_create_comp_channel)                                                                                         \
    X(ibv_destroy_comp_channel)                                                                                        \
    X(ibv_create_cq)                                                                                                   \
    X(ibv_destroy_cq)                                                                                                  \
    X(ibv_get_cq_event)                                                                                                \
    X(ibv_ack_cq_events)                                                                                               \
    X(ibv_create_qp)                                                                                                   \
    X(ibv_modify_qp)                                                                                                   \
    X(ibv_destroy_qp)                                                                                                  \
    X(ibv_reg_mr)                                                                                                      \
    X(ibv_dereg_mr)

static struct {
#define X(name) __typeof__(name) *name;
    FUNCTIONS(X)
#undef X
} lib;

struct sniffer {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;         /* that of `clocked`, if it is not NULL */
    struct ibv_cq_ex *clocked; /* with time stamps; NULL: the device has none of the wall clock */
    struct ibv_qp *qp;
    struct ibv_flow *flow;
    struct ibv_mr *mr;
    uint8_t *mem;
    uint32_t slots; /* receives of SNIFFER_FRAME_MAX bytes in mem */
    int held;       /* the slot of the frame that was returned last; -1: none */
    uint64_t lost_from;
    char counter[512]; /* the file */
};

static int fail(char *why, int error, const char *what)
{
    snprintf(why, SNIFFER_WHY, "%s: %s", what, strerror(error ? error : EIO));
    return -(error == EOPNOTSUPP || error == EINVAL || error == ENOSYS ? ENOTSUP
             : error == EACCES                                         ? EPERM
             : error                                                   ? error
                                                                       : EIO);
}

static bool load(char *why)
{
    static const struct {
        const char *name;
        void *at;
    } symbols[] = {
#define X(name) {#name, &lib.name},
        FUNCTIONS(X)
#undef X
    };
    void *handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!handle) {
        snprintf(why, SNIFFER_WHY, "%s (install the package libibverbs1)", dlerror());
        return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
        void *f = dlsym(handle, symbols[i].name);
        if (!f) {
            snprintf(why, SNIFFER_WHY, "libibverbs.so.1 has no function %s: it is too old", symbols[i].name);
            return false;
        }
        memcpy(symbols[i].at, &f, sizeof f);
    }
    return true;
}

/* --- The device ------------------------------------------------------------------------------- */

static int open_device(struct sniffer *s, const char *name, char *why)
{
    int n = 0, e = -ENODEV;
    struct ibv_device **all = lib.ibv_get_device_list(&n);

    snprintf(why, SNIFFER_WHY, "there is no such interface, and no RDMA device of this name");
    for (int i = 0; all && i < n; i++) {
        if (strcmp(lib.ibv_get_device_name(all[i]), name) != 0)
            continue;
        snprintf(s->counter, sizeof s->counter, "%.400s/ports/1/hw_counters/out_of_buffer", all[i]->ibdev_path);
        errno = 0;
        s->context = lib.ibv_open_device(all[i]);
        e = s->context ? 0 : fail(why, errno, "the device cannot be opened");
        break;
    }
    if (all)
        lib.ibv_free_device_list(all);
    return e;
}

/* A completion queue with the time of arrival, if the device has it; else one without. */
static bool make_cq(struct sniffer *s)
{
    struct verbs_context *v = verbs_get_ctx_op(s->context, create_cq_ex);
    struct ibv_cq_init_attr_ex a = {.cqe = s->slots,
                                    .channel = s->channel,
                                    .wc_flags =
                                        IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK};

    s->clocked = v ? v->create_cq_ex(s->context, &a) : NULL;
    s->cq =
        s->clocked ? ibv_cq_ex_to_cq(s->clocked) : lib.ibv_create_cq(s->context, (int)s->slots, NULL, s->channel, 0);
    return s->cq != NULL;
}

static int make_qp(struct sniffer *s, char *why)
{
    struct ibv_qp_init_attr a = {.send_cq = s->cq,
                                 .recv_cq = s->cq,
                                 .cap = {.max_recv_wr = s->slots, .max_recv_sge = 1},
                                 .qp_type = IBV_QPT_RAW_PACKET};
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    int e;

    errno = 0;
    s->qp = lib.ibv_create_qp(s->pd, &a);
    if (!s->qp)
        return fail(why, errno, "an RDMA device that refuses raw packet queue pairs");
    e = lib.ibv_modify_qp(s->qp, &to, IBV_QP_STATE | IBV_QP_PORT);
    to.qp_state = IBV_QPS_RTR;
    if (e == 0)
        e = lib.ibv_modify_qp(s->qp, &to, IBV_QP_STATE);
    return e ? fail(why, e, "an RDMA device whose raw packet queue pair does not get ready") : 0;
}

static int make_flow(struct sniffer *s, char *why)
{
    struct ibv_flow_attr a = {.type = IBV_FLOW_ATTR_SNIFFER, .size = sizeof a, .port = 1};
    struct verbs_context *v = verbs_get_ctx_op(s->context, ibv_create_flow);

    errno = v ? 0 : EOPNOTSUPP;
    s->flow = v ? v->ibv_create_flow(s->qp, &a) : NULL;
    return s->flow ? 0 : fail(why, errno, "an RDMA device without a sniffer flow");
}

static int post(struct sniffer *s, uint32_t slot)
{
    struct ibv_sge piece = {.addr = (uintptr_t)(s->mem + (size_t)slot * SNIFFER_FRAME_MAX),
                            .length = SNIFFER_FRAME_MAX,
                            .lkey = s->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &piece, .num_sge = 1}, *bad;

    return ibv_post_recv(s->qp, &wr, &bad);
}

static uint64_t read_counter(const struct sniffer *s)
{
    unsigned long long v;
    FILE *f = fopen(s->counter, "re");
    int n = f ? fscanf(f, "%llu", &v) : 0;

    if (f)
        fclose(f);
    return n == 1 ? v : UINT64_MAX;
}

/* Memory, queues and the flow, with all receives posted before anything arrives. */
static int begin(struct sniffer *s, char *why)
{
    size_t bytes = (size_t)s->slots * SNIFFER_FRAME_MAX;
    int e;

    errno = 0;
    if (!(s->pd = lib.ibv_alloc_pd(s->context)) || !(s->channel = lib.ibv_create_comp_channel(s->context)) ||
        !make_cq(s))
        return fail(why, errno, "the queues of the device cannot be made");
    if (!(s->mem = aligned_alloc(64, bytes)) || !(s->mr = lib.ibv_reg_mr(s->pd, s->mem, bytes, IBV_ACCESS_LOCAL_WRITE)))
        return fail(why, errno, "memory for frames cannot be registered (`ulimit -l`, or a smaller -B)");
    e = make_qp(s, why);
    for (uint32_t i = 0; i < s->slots && e == 0; i++)
        e = post(s, i) ? fail(why, EIO, "receives cannot be posted") : 0;
    if (e == 0 && ibv_req_notify_cq(s->cq, 0))
        e = fail(why, EIO, "the completion queue cannot be armed");
    fcntl(s->channel->fd, F_SETFL, fcntl(s->channel->fd, F_GETFL) | O_NONBLOCK);
    s->lost_from = read_counter(s);
    return e ? e : make_flow(s, why);
}

int sniffer_open(struct sniffer **out, const char *device, uint32_t buffer, char why[SNIFFER_WHY])
{
    struct sniffer *s;
    int e;

    if (!load(why))
        return -ENODEV;
    s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->held = -1;
    s->slots = (buffer ? buffer : 8u << 20) / SNIFFER_FRAME_MAX + 1;
    e = open_device(s, device, why);
    if (e == 0)
        e = begin(s, why);
    if (e < 0)
        sniffer_close(s);
    else
        *out = s;
    return e;
}

static int destroy_flow(struct sniffer *s)
{
    struct verbs_context *v = verbs_get_ctx_op(s->context, ibv_destroy_flow);

    return v ? v->ibv_destroy_flow(s->flow) : 0;
}

void sniffer_close(struct sniffer *s)
{
    if (s->flow)
        destroy_flow(s);
    if (s->qp)
        lib.ibv_destroy_qp(s->qp);
    if (s->mr)
        lib.ibv_dereg_mr(s->mr);
    if (s->cq)
        lib.ibv_destroy_cq(s->cq);
    if (s->channel)
        lib.ibv_destroy_comp_channel(s->channel);
    if (s->pd)
        lib.ibv_dealloc_pd(s->pd);
    if (s->context)
        lib.ibv_close_device(s->context);
    free(s->mem);
    free(s);
}

/* --- Frames ----------------------------------------------------------------------------------- */

struct completion {
    uint64_t slot;
    uint32_t len;
    bool good;
    ns_t ts;
};

/* Take a completion: 1, 0, or a negative errno. */
static int take(struct sniffer *s, struct completion *c)
{
    struct ibv_poll_cq_attr none = {0};
    struct ibv_wc wc;
    int n;

    if (!s->clocked) {
        n = ibv_poll_cq(s->cq, 1, &wc);
        if (n == 1)
            *c = (struct completion){.slot = wc.wr_id, .len = wc.byte_len, .good = wc.status == IBV_WC_SUCCESS};
        return n < 0 ? -EIO : n;
    }
    n = ibv_start_poll(s->clocked, &none);
    if (n)
        return n == ENOENT ? 0 : -EIO;
    *c = (struct completion){.slot = s->clocked->wr_id,
                             .len = ibv_wc_read_byte_len(s->clocked),
                             .good = s->clocked->status == IBV_WC_SUCCESS,
                             .ts = (ns_t)ibv_wc_read_completion_wallclock_ns(s->clocked)};
    ibv_end_poll(s->clocked);
    return 1;
}

/* Nothing is there: ask for a notification, of all that comes from now on. */
static int rearm(struct sniffer *s)
{
    struct ibv_cq *cq;
    void *user;

    while (lib.ibv_get_cq_event(s->channel, &cq, &user) == 0)
        lib.ibv_ack_cq_events(cq, 1);
    return ibv_req_notify_cq(s->cq, 0) ? -EIO : 0;
}

int sniffer_next(struct sniffer *s, struct sniffed *f)
{
    struct completion c;
    int n, e;

    if (s->held >= 0 && post(s, (uint32_t)s->held))
        return -EIO;
    s->held = -1;
    n = take(s, &c);
    if (n == 0) {
        e = rearm(s);
        n = e < 0 ? e : take(s, &c); /* what came before it was armed */
    }
    if (n != 1)
        return n;
    if (!c.good || c.slot >= s->slots || c.len > SNIFFER_FRAME_MAX)
        return -EIO;
    s->held = (int)c.slot;
    *f = (struct sniffed){.data = s->mem + (size_t)c.slot * SNIFFER_FRAME_MAX, .len = c.len, .ts = c.ts};
    return 1;
}

int sniffer_fd(const struct sniffer *s)
{
    return s->channel->fd;
}

bool sniffer_has_clock(const struct sniffer *s)
{
    return s->clocked != NULL;
}

uint64_t sniffer_lost(const struct sniffer *s)
{
    uint64_t now = s->lost_from == UINT64_MAX ? UINT64_MAX : read_counter(s);

    return now == UINT64_MAX ? UINT64_MAX : (now - s->lost_from) & UINT32_MAX; /* mlx5 counts in 32 bits */
}

#else

int sniffer_open(struct sniffer **out, const char *device, uint32_t buffer, char why[SNIFFER_WHY])
{
    (void)out;
    (void)device;
    (void)buffer;
    snprintf(why, SNIFFER_WHY, "this program was built without the headers of libibverbs");
    return -ENODEV;
}
void sniffer_close(struct sniffer *s)
{
    (void)s;
}
int sniffer_next(struct sniffer *s, struct sniffed *f)
{
    (void)s;
    (void)f;
    return -EIO;
}
int sniffer_fd(const struct sniffer *s)
{
    (void)s;
    return -1;
}
bool sniffer_has_clock(const struct sniffer *s)
{
    (void)s;
    return false;
}
uint64_t sniffer_lost(const struct sniffer *s)
{
    (void)s;
    return UINT64_MAX;
}

#endif
