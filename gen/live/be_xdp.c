/* layer 3 (live): backend: an interface of this host through AF_XDP: RoCE packets pass between memory shared with the
 * kernel and the driver, without the network stack. A program of 44 instructions in front of the stack takes the
 * RoCE packets of the queues that are used; all else goes on to the kernel, and ARP and neighbour discovery come
 * through an AF_PACKET socket, as does RoCE of other queues. The program leaves with the descriptor of its link, so
 * also when this one is killed. */
#include "gen/live/backend.h"
#include "gen/live/xdp_program.h"
#include "src/cap/xdp_lane.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define RX      2048 /* frames to be received, a power of two */
#define TX      2048 /* frames to be sent, likewise */
#define TAGGED  18   /* Ethernet header with a VLAN tag */
#define KICKS   4096 /* system calls to send what is queued, before the caller waits */
#define REFUSED 16   /* of them that the kernel refused */

struct xdp_backend {
    struct backend b;
    struct backend *packet; /* the AF_PACKET socket */
    struct xdp *x;          /* the first lane sends */
    uint64_t free_tx[TX];   /* chunks that may be filled, n_free */
    unsigned n_free, queued;
    bool waits; /* the first lane's socket is polled for writing */
    uint8_t frame[BACKEND_FRAME_MAX];
};

static struct xdp_backend *xdp_of(struct backend *b)
{
    return (struct xdp_backend *)b;
}

/* --- Opening ---------------------------------------------------------------------------------- */

static void xdp_backend_close(struct backend *b)
{
    struct xdp_backend *x = xdp_of(b);

    xdp_close(x->x);
    backend_close(x->packet);
    free(x);
}

/* Poll the other socket, too. */
static int poll_packets(struct xdp_backend *x)
{
    struct epoll_event e = {.events = EPOLLIN};

    return epoll_ctl(x->x->fd, EPOLL_CTL_ADD, x->packet->fd, &e) == 0 ? 0 : -errno;
}

/* Poll the first lane for writing, too, or no longer. */
static void wait_to_send(struct xdp_backend *x, bool wait)
{
    struct epoll_event e = {.events = EPOLLIN | (wait ? EPOLLOUT : 0)};

    if (wait != x->waits && epoll_ctl(x->x->fd, EPOLL_CTL_MOD, x->x->lane[0].fd, &e) == 0)
        x->waits = wait;
}

static int setup(struct xdp_backend *x, const char *args, const char *iface, struct backend_error *err)
{
    struct xdp_opts o = {.iface = iface, .rx = RX, .tx = TX, .load = xdp_program_load};
    char why[XDP_WHY] = "";
    int r;

    if (!xdp_words(&o.words, args))
        return backend_fail(
            err, -EINVAL,
            "backend xdp: only numbers of queues, copy, busy and skb may follow, not '%s'; at most %d queues", args,
            XDP_QUEUES);
    if (!o.words.n)
        o.words.n = 1; /* queue 0 */
    if ((r = backend_packet.open(&x->packet, "", iface, err)) < 0)
        return r;
    backend_on(&x->b, iface);
    if ((r = xdp_open(&x->x, &o, why)) < 0)
        return backend_fail(err, r, "%s", why);
    x->b.fd = x->x->fd;
    r = poll_packets(x);
    return r < 0 ? backend_fail(err, r, "%s cannot be polled", iface) : 0;
}

static int xdp_backend_open(struct backend **out, const char *args, const char *iface, struct backend_error *err)
{
    struct xdp_backend *x = calloc(1, sizeof *x);
    int r;

    if (!x)
        return backend_fail(err, -ENOMEM, "out of memory");
    x->b = (struct backend){.ops = &backend_xdp, .fd = -1};
    r = setup(x, args, iface, err);
    if (r < 0) {
        xdp_backend_close(&x->b);
        return r;
    }
    for (x->n_free = 0; x->n_free < TX; x->n_free++)
        x->free_tx[x->n_free] = (uint64_t)(RX + x->n_free) * XDP_CHUNK;
    x->b.mtu = min_u32(x->packet->mtu, XDP_FRAME_MAX - TAGGED);
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
    struct xdp_lane *l = &x->x->lane[0];
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
    struct xdp_lane *l = &x->x->lane[0];
    struct xdp_desc *d;
    uint32_t at;

    if (len > XDP_CHUNK || xsk_ring_prod__reserve(&l->tx, 1, &at) != 1) {
        b->stats.unsent++;
        return;
    }
    d = xsk_ring_prod__tx_desc(&l->tx, at);
    *d = (struct xdp_desc){.addr = x->free_tx[--x->n_free], .len = len};
    memcpy(l->memory + d->addr, x->frame, len);
    x->queued++;
}

/* Whether the kernel has not taken all frames of the ring yet. */
static bool is_behind(struct xdp_lane *l)
{
    return xsk_prod_nb_free(&l->tx, TX) < TX;
}

/* Have the kernel send from the ring: with copies it takes some frames in each call. 0, or a negative errno. */
static int kick(struct xdp_backend *x)
{
    struct xdp_lane *l = &x->x->lane[0];
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
    struct xdp_lane *l = &x->x->lane[0];
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

static int xdp_rx(struct backend *b, struct backend_frame *f)
{
    struct xdp_backend *x = xdp_of(b);
    struct xdp_frame got;
    int r = 1;

    if (xdp_next(x->x, &got))
        *f = (struct backend_frame){.data = got.data, .len = got.len};
    else
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

    backend_packet.count(x->packet);
    b->stats.dropped = xdp_dropped(x->x) + x->packet->stats.dropped;
}

const struct backend_ops backend_xdp = {
    .name = "xdp",
    .args = "[:QUEUE,...,copy,busy,skb]",
    .summary =
        "an interface through AF_XDP, past the network stack; needs CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW. RoCE "
        "packets of these queues (0) are kept from the kernel. copy: no zero copy; busy: poll the driver; skb: not in "
        "the driver",
    .needs_iface = true,
    .open = xdp_backend_open,
    .room = xdp_room,
    .push = xdp_push,
    .flush = xdp_flush,
    .rx = xdp_rx,
    .join = xdp_join,
    .count = xdp_count,
    .close = xdp_backend_close,
};
