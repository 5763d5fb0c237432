/* layer 3 (live): backend: an interface of this host through AF_XDP: RoCE packets pass between memory shared with the
 * kernel and the driver, without the network stack. A program of 44 instructions in front of the stack takes the
 * RoCE packets of the queues that are used; all else goes on to the kernel, and ARP and neighbour discovery come
 * through an AF_PACKET socket, as does RoCE of other queues. The program leaves with the descriptor of its link, so
 * also when this one is killed. */
#include "gen/live/backend.h"
#include "gen/live/xdp_program.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xdp/xsk.h>

#define QUEUES   16
#define CHUNK    4096 /* bytes of the shared memory for a frame */
#define RX       2048 /* frames to be received, a power of two */
#define TX       2048 /* frames to be sent, likewise */
#define HEADROOM 256  /* bytes that the kernel keeps free before a received frame */
#define TAGGED   18   /* Ethernet header with a VLAN tag */
#define KICKS    4096 /* system calls to send what is queued, before the caller waits */
#define REFUSED  16   /* of them that the kernel refused */

/* A socket of one queue of the interface, with its memory. */
struct lane {
    struct xsk_socket *xsk;
    struct xsk_umem *umem;
    uint8_t *memory; /* RX + TX chunks */
    struct xsk_ring_prod fill, tx;
    struct xsk_ring_cons completion, rx;
    int fd;
    uint64_t held; /* chunk of the frame that rx() gave out last */
    bool holds;
};

struct xdp_backend {
    struct backend b;
    struct backend *packet; /* the AF_PACKET socket */
    struct lane lane[QUEUES];
    uint32_t queue[QUEUES]; /* of the interface */
    unsigned n;             /* lanes; the first one sends */
    unsigned next;          /* lane that is asked next for a frame */
    uint64_t free_tx[TX];   /* chunks that may be filled, n_free */
    unsigned n_free, queued;
    bool waits; /* the first lane's socket is polled for writing */
    int map, program, link;
    bool copy, busy, skb; /* options */
    uint8_t frame[BACKEND_FRAME_MAX];
};

static struct xdp_backend *xdp_of(struct backend *b)
{
    return (struct xdp_backend *)b;
}

/* --- Opening ---------------------------------------------------------------------------------- */

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

static void xdp_close(struct backend *b)
{
    struct xdp_backend *x = xdp_of(b);

    close_fd(x->link); /* first: packets go to the kernel again */
    for (unsigned i = 0; i < x->n; i++) {
        struct lane *l = &x->lane[i];
        if (l->xsk)
            xsk_socket__delete(l->xsk);
        if (l->umem)
            xsk_umem__delete(l->umem);
        if (l->memory)
            munmap(l->memory, (RX + TX) * CHUNK);
    }
    close_fd(x->program);
    close_fd(x->map);
    backend_close(x->packet);
    close_fd(b->fd);
    free(x);
}

/* Options after the name: queues, and words. */
static bool parse(struct xdp_backend *x, const char *args)
{
    while (*args) {
        size_t n = strcspn(args, ",");
        char *end;
        unsigned long queue = strtoul(args, &end, 10);
        if (n == 4 && memcmp(args, "copy", n) == 0)
            x->copy = true;
        else if (n == 4 && memcmp(args, "busy", n) == 0)
            x->busy = true;
        else if (n == 3 && memcmp(args, "skb", n) == 0)
            x->skb = true;
        else if (*args >= '0' && *args <= '9' && end == args + n && queue < 65536 && x->n < QUEUES)
            x->queue[x->n++] = (uint32_t)queue;
        else
            return false;
        args += n + (args[n] == ',');
    }
    if (!x->n)
        x->n = 1; /* queue 0 */
    return true;
}

/* Give all chunks of received frames to the kernel. */
static void fill_all(struct lane *l)
{
    uint32_t at;

    if (xsk_ring_prod__reserve(&l->fill, RX, &at) != RX)
        return;
    for (uint32_t i = 0; i < RX; i++)
        *xsk_ring_prod__fill_addr(&l->fill, at + i) = (uint64_t)i * CHUNK;
    xsk_ring_prod__submit(&l->fill, RX);
}

/* Ask the driver to be polled by our system calls, not by interrupts. Not all kernels and drivers can. */
static void poll_busily(const struct lane *l)
{
    int on = 1, us = 20, budget = 64;

    setsockopt(l->fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, &on, sizeof on);
    setsockopt(l->fd, SOL_SOCKET, SO_BUSY_POLL, &us, sizeof us);
    setsockopt(l->fd, SOL_SOCKET, SO_BUSY_POLL_BUDGET, &budget, sizeof budget);
}

/* 0 or a negative errno. */
static int open_lane(struct xdp_backend *x, unsigned i, const char *iface)
{
    const struct xsk_umem_config memory = {
        .fill_size = RX, .comp_size = TX, .frame_size = CHUNK, .frame_headroom = 0, .flags = 0};
    const struct xsk_socket_config socket = {.rx_size = RX,
                                             .tx_size = TX,
                                             .libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
                                             .bind_flags = (uint16_t)(XDP_USE_NEED_WAKEUP | (x->copy ? XDP_COPY : 0))};
    struct lane *l = &x->lane[i];
    int r;

    l->memory = mmap(NULL, (RX + TX) * CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (l->memory == MAP_FAILED) {
        l->memory = NULL;
        return -ENOMEM;
    }
    r = xsk_umem__create(&l->umem, l->memory, (RX + TX) * CHUNK, &l->fill, &l->completion, &memory);
    if (r == 0)
        r = xsk_socket__create(&l->xsk, iface, x->queue[i], l->umem, &l->rx, &l->tx, &socket);
    if (r < 0)
        return r;
    l->fd = xsk_socket__fd(l->xsk);
    fill_all(l);
    if (x->busy)
        poll_busily(l);
    return bpf_map_update_elem(x->map, &x->queue[i], &l->fd, BPF_ANY) < 0 ? -errno : 0;
}

/* Put the program in front of the network stack: in the driver, or else where the stack begins. */
static int attach(struct xdp_backend *x)
{
    LIBBPF_OPTS(bpf_link_create_opts, driver, .flags = XDP_FLAGS_DRV_MODE);
    LIBBPF_OPTS(bpf_link_create_opts, stack, .flags = XDP_FLAGS_SKB_MODE);

    if (!x->skb)
        x->link = bpf_link_create(x->program, x->b.index, BPF_XDP, &driver);
    if (x->link < 0)
        x->link = bpf_link_create(x->program, x->b.index, BPF_XDP, &stack);
    return x->link < 0 ? -errno : 0;
}

/* A descriptor that is readable when there is a frame, or when frames can be sent again. */
static int poll_all(struct xdp_backend *x)
{
    struct epoll_event e = {.events = EPOLLIN};
    bool ok;

    x->b.fd = epoll_create1(EPOLL_CLOEXEC);
    ok = x->b.fd >= 0 && epoll_ctl(x->b.fd, EPOLL_CTL_ADD, x->packet->fd, &e) == 0;
    for (unsigned i = 0; ok && i < x->n; i++)
        ok = epoll_ctl(x->b.fd, EPOLL_CTL_ADD, x->lane[i].fd, &e) == 0;
    return ok ? 0 : -errno;
}

/* Poll the first lane for writing, too, or no longer. */
static void wait_to_send(struct xdp_backend *x, bool wait)
{
    struct epoll_event e = {.events = EPOLLIN | (wait ? EPOLLOUT : 0)};

    if (wait != x->waits && epoll_ctl(x->b.fd, EPOLL_CTL_MOD, x->lane[0].fd, &e) == 0)
        x->waits = wait;
}

static int setup(struct xdp_backend *x, const char *iface, struct backend_error *err)
{
    uint32_t slots = 0;
    int r = backend_packet.open(&x->packet, "", iface, err);

    if (r < 0)
        return r;
    backend_on(&x->b, iface);
    for (unsigned i = 0; i < x->n; i++)
        slots = max_u32(slots, x->queue[i] + 1);
    x->map = bpf_map_create(BPF_MAP_TYPE_XSKMAP, "xsks", sizeof(uint32_t), sizeof(int), slots, NULL);
    if (x->map < 0)
        return backend_fail(err, -errno, "AF_XDP: %s%s", strerror(errno),
                            errno == EPERM ? " (CAP_BPF and CAP_NET_ADMIN are needed)" : "");
    if ((x->program = xdp_program_load(x->map)) < 0)
        return backend_fail(err, x->program, "AF_XDP: the kernel refuses the program: %s", strerror(-x->program));
    for (unsigned i = 0; i < x->n; i++)
        if ((r = open_lane(x, i, iface)) < 0)
            return backend_fail(err, r, "AF_XDP on queue %u of %s: %s", x->queue[i], iface,
                                r == -EINVAL ? "there is no such queue" : strerror(-r));
    if ((r = attach(x)) < 0)
        return backend_fail(err, r, "AF_XDP on %s: %s%s", iface, strerror(-r),
                            r == -EBUSY ? " (it has an XDP program already)" : "");
    r = poll_all(x);
    return r < 0 ? backend_fail(err, r, "%s cannot be polled", iface) : 0;
}

static int xdp_open(struct backend **out, const char *args, const char *iface, struct backend_error *err)
{
    struct xdp_backend *x = calloc(1, sizeof *x);
    int r;

    if (!x)
        return backend_fail(err, -ENOMEM, "out of memory");
    x->b = (struct backend){.ops = &backend_xdp, .fd = -1};
    x->map = x->program = x->link = -1;
    if (!parse(x, args)) {
        x->n = 0;
        r = backend_fail(
            err, -EINVAL,
            "backend xdp: only numbers of queues, copy, busy and skb may follow, not '%s'; at most %d queues", args,
            QUEUES);
    } else {
        r = setup(x, iface, err);
    }
    if (r < 0) {
        xdp_close(&x->b);
        return r;
    }
    for (x->n_free = 0; x->n_free < TX; x->n_free++)
        x->free_tx[x->n_free] = (uint64_t)(RX + x->n_free) * CHUNK;
    x->b.mtu = min_u32(x->packet->mtu, CHUNK - HEADROOM - TAGGED);
    if (x->b.mtu < x->packet->mtu)
        snprintf(x->b.note, sizeof x->b.note, "packets of at most %u bytes, not the %u of %s, fit AF_XDP", x->b.mtu,
                 x->packet->mtu, iface);
    x->b.has_mac = x->packet->has_mac;
    memcpy(x->b.mac, x->packet->mac, 6);
    *out = &x->b;
    return 0;
}

/* --- Sending ---------------------------------------------------------------------------------- */

/* Take back the chunks that have been sent. */
static void reap(struct xdp_backend *x)
{
    struct lane *l = &x->lane[0];
    uint32_t at = 0, n = xsk_ring_cons__peek(&l->completion, TX, &at);

    for (uint32_t i = 0; i < n; i++)
        x->free_tx[x->n_free++] = *xsk_ring_cons__comp_addr(&l->completion, at + i);
    xsk_ring_cons__release(&l->completion, n);
}

static uint8_t *xdp_room(struct backend *b)
{
    struct xdp_backend *x = xdp_of(b);

    if (!x->n_free)
        reap(x);
    return x->n_free ? x->frame : NULL;
}

static void xdp_push(struct backend *b, uint32_t len)
{
    struct xdp_backend *x = xdp_of(b);
    struct lane *l = &x->lane[0];
    struct xdp_desc *d;
    uint32_t at;

    if (len > CHUNK || xsk_ring_prod__reserve(&l->tx, 1, &at) != 1) {
        b->stats.unsent++;
        return;
    }
    d = xsk_ring_prod__tx_desc(&l->tx, at);
    *d = (struct xdp_desc){.addr = x->free_tx[--x->n_free], .len = len};
    memcpy(l->memory + d->addr, x->frame, len);
    x->queued++;
}

/* Whether the kernel has not taken all frames of the ring yet. */
static bool is_behind(struct lane *l)
{
    return xsk_prod_nb_free(&l->tx, TX) < TX;
}

/* Have the kernel send from the ring: with copies it takes some frames in each call. 0, or a negative errno. */
static int kick(struct xdp_backend *x)
{
    struct lane *l = &x->lane[0];
    unsigned refused = 0;

    for (unsigned i = 0; i < KICKS && refused < REFUSED && is_behind(l) && xsk_ring_prod__needs_wakeup(&l->tx); i++) {
        if (sendto(l->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0) {
            if (errno != EAGAIN && errno != EBUSY && errno != EINTR && !backend_lost(&x->b, errno))
                return -errno;
            refused++;
        }
        reap(x);
    }
    return 0;
}

static int xdp_flush(struct backend *b)
{
    struct xdp_backend *x = xdp_of(b);
    struct lane *l = &x->lane[0];
    bool behind;
    int r;

    if (x->queued)
        xsk_ring_prod__submit(&l->tx, x->queued);
    b->stats.sent += x->queued;
    x->queued = 0;
    r = kick(x);
    behind = is_behind(l) && xsk_ring_prod__needs_wakeup(&l->tx);
    wait_to_send(x, behind);
    return r < 0 ? r : behind ? -EAGAIN : 0;
}

/* --- Receiving -------------------------------------------------------------------------------- */

/* Return the chunk of the frame that was given out last. */
static void give_back(struct lane *l)
{
    uint32_t at;

    if (!l->holds || xsk_ring_prod__reserve(&l->fill, 1, &at) != 1)
        return;
    *xsk_ring_prod__fill_addr(&l->fill, at) = l->held;
    xsk_ring_prod__submit(&l->fill, 1);
    l->holds = false;
    if (xsk_ring_prod__needs_wakeup(&l->fill))
        recvfrom(l->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
}

static bool lane_rx(struct lane *l, struct backend_frame *f)
{
    const struct xdp_desc *d;
    uint32_t at;

    give_back(l);
    if (l->holds || xsk_ring_cons__peek(&l->rx, 1, &at) != 1)
        return false;
    d = xsk_ring_cons__rx_desc(&l->rx, at);
    *f = (struct backend_frame){.data = xsk_umem__get_data(l->memory, d->addr), .len = d->len};
    l->held = d->addr - d->addr % CHUNK;
    l->holds = true;
    xsk_ring_cons__release(&l->rx, 1);
    return true;
}

static int xdp_rx(struct backend *b, struct backend_frame *f)
{
    struct xdp_backend *x = xdp_of(b);
    int r;

    for (unsigned i = 0; i < x->n; i++)
        if (lane_rx(&x->lane[x->next++ % x->n], f)) {
            b->stats.received++;
            return 1;
        }
    r = backend_packet.rx(x->packet, f);
    b->stats.received += r == 1;
    return r;
}

static int xdp_join(struct backend *b, const uint8_t mac[6])
{
    return backend_packet.join(xdp_of(b)->packet, mac);
}

static void xdp_count(struct backend *b)
{
    struct xdp_backend *x = xdp_of(b);
    uint64_t dropped = 0;

    for (unsigned i = 0; i < x->n; i++) {
        struct xdp_statistics s = {0};
        socklen_t n = sizeof s;
        if (getsockopt(x->lane[i].fd, SOL_XDP, XDP_STATISTICS, &s, &n) == 0)
            dropped += s.rx_dropped + s.rx_ring_full + s.rx_fill_ring_empty_descs;
    }
    backend_packet.count(x->packet);
    b->stats.dropped = dropped + x->packet->stats.dropped;
}

const struct backend_ops backend_xdp = {
    .name = "xdp",
    .args = "[:QUEUE,...,copy,busy,skb]",
    .summary =
        "an interface through AF_XDP, past the network stack; needs CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW. RoCE "
        "packets of these queues (0) are kept from the kernel. copy: no zero copy; busy: poll the driver; skb: not in "
        "the driver",
    .needs_iface = true,
    .open = xdp_open,
    .room = xdp_room,
    .push = xdp_push,
    .flush = xdp_flush,
    .rx = xdp_rx,
    .join = xdp_join,
    .count = xdp_count,
    .close = xdp_close,
};
