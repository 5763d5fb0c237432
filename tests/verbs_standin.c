/* layer 5 (test): a stand-in for libibverbs with one device, stand0, whose sniffer delivers the frames of the file
 * STANDIN_FRAMES: of each its length (4 bytes) and time (8 bytes, ns), in this host's byte order, and the bytes. With
 * STANDIN_LACKS=raw the device refuses raw packet queue pairs, as soft-RoCE does; =flow: it has no sniffer; =clock: it
 * stamps no times; =end: after the last frame the first one comes again, and so on. What finds no receive is counted in
 * STANDIN_SYSFS/ports/1/hw_counters/out_of_buffer. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#undef ibv_reg_mr
#define SLOTS 65536

static struct ibv_device device;
static struct verbs_context context;
static struct ibv_comp_channel channel;
static struct ibv_cq_ex queue;
static struct ibv_qp pair;
static struct ibv_pd domain;
static struct ibv_mr region;
static struct {
    uint64_t id;
    uint8_t *at;
} slot[SLOTS];
static unsigned posted, taken;
static struct ibv_wc done[SLOTS];
static uint64_t times[SLOTS];
static unsigned ready, polled;

static int lacks(const char *what)
{
    const char *l = getenv("STANDIN_LACKS");

    return l && strcmp(l, what) == 0;
}

static void count_lost(unsigned n)
{
    char path[512];
    FILE *f;

    snprintf(path, sizeof path, "%s/ports/1/hw_counters/out_of_buffer", getenv("STANDIN_SYSFS"));
    f = fopen(path, "w");
    if (f)
        fprintf(f, "%u\n", 7 + n);
    if (f)
        fclose(f);
}

/* All frames arrive at once. */
static void deliver(void)
{
    FILE *f = fopen(getenv("STANDIN_FRAMES"), "r");
    uint8_t frame[9344];
    unsigned lost = 0;
    uint32_t len;
    uint64_t ts;

    while (f && fread(&len, 4, 1, f) == 1 && fread(&ts, 8, 1, f) == 1 && fread(frame, 1, len, f) == len) {
        if (taken == posted) {
            lost++;
            continue;
        }
        memcpy(slot[taken].at, frame, len);
        done[ready] = (struct ibv_wc){.wr_id = slot[taken].id, .byte_len = len, .status = IBV_WC_SUCCESS};
        times[ready++] = ts;
        taken++;
    }
    if (f)
        fclose(f);
    count_lost(lost);
    eventfd_write(channel.fd, 1);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    (void)qp;
    *bad = wr;
    if (ready && lacks("end")) /* the slots stay where they are */
        return 0;
    if (posted == SLOTS)
        return ENOMEM;
    slot[posted].id = wr->wr_id;
    slot[posted++].at = (uint8_t *)(uintptr_t)wr->sg_list->addr;
    return 0;
}

static int is_empty(void)
{
    if (polled == ready && lacks("end"))
        polled = 0;
    return polled == ready;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    (void)cq;
    if (is_empty() || n < 1)
        return 0;
    *wc = done[polled++];
    return 1;
}

static int req_notify(struct ibv_cq *cq, int solicited)
{
    (void)cq;
    (void)solicited;
    return 0;
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *a)
{
    (void)a;
    if (is_empty())
        return ENOENT;
    cq->wr_id = done[polled].wr_id;
    cq->status = done[polled++].status;
    return 0;
}
static void end_poll(struct ibv_cq_ex *cq)
{
    (void)cq;
}
static uint32_t byte_len(struct ibv_cq_ex *cq)
{
    (void)cq;
    return done[polled - 1].byte_len;
}
static uint64_t wallclock(struct ibv_cq_ex *cq)
{
    (void)cq;
    return times[polled - 1];
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *a)
{
    if (lacks("clock") || !(a->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    queue = (struct ibv_cq_ex){.context = c,
                               .start_poll = start_poll,
                               .end_poll = end_poll,
                               .read_byte_len = byte_len,
                               .read_completion_wallclock_ns = wallclock};
    return &queue;
}

static struct ibv_flow *create_flow(struct ibv_qp *qp, struct ibv_flow_attr *a)
{
    static struct ibv_flow flow;

    (void)qp;
    if (lacks("flow") || a->type != IBV_FLOW_ATTR_SNIFFER) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    deliver();
    return &flow;
}

static int destroy_flow(struct ibv_flow *flow)
{
    (void)flow;
    return 0;
}

/* --- What the library exports ----------------------------------------------------------------- */

struct ibv_device **ibv_get_device_list(int *n)
{
    static struct ibv_device *all[2] = {&device};

    strcpy(device.name, "stand0");
    snprintf(device.ibdev_path, sizeof device.ibdev_path, "%s", getenv("STANDIN_SYSFS"));
    *n = 1;
    return all;
}
void ibv_free_device_list(struct ibv_device **list)
{
    (void)list;
}
const char *ibv_get_device_name(struct ibv_device *d)
{
    return d->name;
}
struct ibv_context *ibv_open_device(struct ibv_device *d)
{
    context.context.device = d;
    context.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    context.context.ops.post_recv = post_recv;
    context.context.ops.poll_cq = poll_cq;
    context.context.ops.req_notify_cq = req_notify;
    context.sz = sizeof context;
    context.create_cq_ex = create_cq_ex;
    context.ibv_create_flow = create_flow;
    context.ibv_destroy_flow = destroy_flow;
    return &context.context;
}
int ibv_close_device(struct ibv_context *c)
{
    (void)c;
    return 0;
}
struct ibv_pd *ibv_alloc_pd(struct ibv_context *c)
{
    domain.context = c;
    return &domain;
}
int ibv_dealloc_pd(struct ibv_pd *pd)
{
    (void)pd;
    return 0;
}
struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *c)
{
    channel.context = c;
    channel.fd = eventfd(0, EFD_CLOEXEC);
    return &channel;
}
int ibv_destroy_comp_channel(struct ibv_comp_channel *c)
{
    return close(c->fd);
}
struct ibv_cq *ibv_create_cq(struct ibv_context *c, int n, void *user, struct ibv_comp_channel *ch, int vector)
{
    (void)n;
    (void)user;
    (void)ch;
    (void)vector;
    queue.context = c;
    return ibv_cq_ex_to_cq(&queue);
}
int ibv_destroy_cq(struct ibv_cq *cq)
{
    (void)cq;
    return 0;
}
int ibv_get_cq_event(struct ibv_comp_channel *c, struct ibv_cq **cq, void **user)
{
    eventfd_t v;

    *cq = ibv_cq_ex_to_cq(&queue);
    *user = NULL;
    return eventfd_read(c->fd, &v);
}
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
    (void)cq;
    (void)n;
}
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
    if (a->qp_type != IBV_QPT_RAW_PACKET || lacks("raw")) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    pair.context = pd->context;
    return &pair;
}
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
    enum ibv_qp_state next = qp->state == IBV_QPS_RESET ? IBV_QPS_INIT : IBV_QPS_RTR;

    if (!(mask & IBV_QP_STATE) || a->qp_state != next)
        return EINVAL;
    qp->state = next;
    return 0;
}
int ibv_destroy_qp(struct ibv_qp *qp)
{
    (void)qp;
    return 0;
}
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
    (void)access;
    region = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = len, .lkey = 5, .rkey = 5};
    return &region;
}
int ibv_dereg_mr(struct ibv_mr *mr)
{
    (void)mr;
    return 0;
}
