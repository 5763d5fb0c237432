/* layer 3 (live): backend: receives by the sniffer of an RDMA device, with its time stamps, and sends by a packet
 * socket of its interface. What the adapter keeps from its interface is received so; ARP and neighbour discovery come
 * twice. */
#include "gen/live/backend.h"
#include "src/cap/sniffer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define BUFFER     (8u << 20) /* bytes of frames that the device may keep for us */
#define OTHERS_MAX 256 /* frames of the interface in a row that find no neighbours, until others have their turn */

struct verbs_backend {
    struct backend b;
    struct backend *packet; /* sends, and receives what no sniffer needs to see */
    struct sniffer *sniffer;
    bool joined;
    uint8_t own[6]; /* if joined: the MAC address of --addr */
};

static struct verbs_backend *verbs_of(struct backend *b)
{
    return (struct verbs_backend *)b;
}

static void verbs_close(struct backend *b)
{
    struct verbs_backend *v = verbs_of(b);

    if (v->sniffer)
        sniffer_close(v->sniffer);
    backend_close(v->packet);
    if (b->fd >= 0)
        close(b->fd);
    free(v);
}

/* One descriptor for both. */
static int poll_both(struct verbs_backend *v)
{
    struct epoll_event e = {.events = EPOLLIN};

    v->b.fd = epoll_create1(EPOLL_CLOEXEC);
    if (v->b.fd < 0 || epoll_ctl(v->b.fd, EPOLL_CTL_ADD, sniffer_fd(v->sniffer), &e) < 0 ||
        epoll_ctl(v->b.fd, EPOLL_CTL_ADD, v->packet->fd, &e) < 0)
        return -errno;
    return 0;
}

static int verbs_open(struct backend **out, const char *args, const char *iface, struct backend_error *err)
{
    struct verbs_backend *v = calloc(1, sizeof *v);
    char why[SNIFFER_WHY] = "";
    int r;

    if (!v)
        return backend_fail(err, -ENOMEM, "out of memory");
    v->b = (struct backend){.ops = &backend_verbs, .fd = -1};
    if (!*args)
        r = backend_fail(err, -EINVAL, "backend verbs needs an RDMA device: verbs:DEVICE");
    else if ((r = backend_packet.open(&v->packet, "", iface, err)) == 0 &&
             (r = sniffer_open(&v->sniffer, args, BUFFER, why)) < 0)
        backend_fail(err, r, "%s: %s", args, why);
    if (r == 0 && (r = poll_both(v)) < 0)
        backend_fail(err, r, "%s cannot be polled", args);
    if (r < 0) {
        verbs_close(&v->b);
        return r;
    }
    v->b.mtu = v->packet->mtu;
    v->b.has_mac = v->packet->has_mac;
    memcpy(v->b.mac, v->packet->mac, 6);
    v->b.stamps = sniffer_has_clock(v->sniffer) ? BACKEND_STAMPS_HARDWARE : BACKEND_STAMPS_NONE;
    backend_on(&v->b, iface);
    *out = &v->b;
    return 0;
}

static uint8_t *verbs_room(struct backend *b)
{
    return backend_packet.room(verbs_of(b)->packet);
}

static void verbs_push(struct backend *b, uint32_t len)
{
    backend_packet.push(verbs_of(b)->packet, len);
}

static int verbs_flush(struct backend *b)
{
    struct backend *p = verbs_of(b)->packet;
    int r = backend_packet.flush(p);

    b->stats.sent = p->stats.sent;
    b->stats.unsent = p->stats.unsent;
    return r;
}

static int verbs_join(struct backend *b, const uint8_t mac[6])
{
    struct verbs_backend *v = verbs_of(b);

    v->joined = true;
    memcpy(v->own, mac, 6);
    return backend_packet.join(v->packet, mac);
}

/* A sniffer sees what this host sends as well. */
static bool is_own(const struct verbs_backend *v, const struct sniffed *f)
{
    if (f->len < 12)
        return false;
    return (v->b.has_mac && memcmp(f->data + 6, v->b.mac, 6) == 0) ||
           (v->joined && memcmp(f->data + 6, v->own, 6) == 0);
}

/* ARP, or IPv6 without UDP: the device may keep these from its sniffer. */
static bool finds_neighbours(const struct backend_frame *f)
{
    uint16_t type = f->len >= 14 ? load_be16(f->data + 12) : 0;

    return type == 0x0806 || (type == 0x86dd && f->len > 20 && f->data[20] == 58);
}

static int verbs_rx(struct backend *b, struct backend_frame *f)
{
    struct verbs_backend *v = verbs_of(b);
    struct sniffed got;
    int r;

    while ((r = sniffer_next(v->sniffer, &got)) == 1) {
        if (is_own(v, &got))
            continue;
        *f = (struct backend_frame){.data = got.data,
                                    .len = got.len,
                                    .ts = got.ts,
                                    .stamp = got.ts ? BACKEND_STAMPS_HARDWARE : BACKEND_STAMPS_NONE};
        b->stats.received++;
        return 1;
    }
    for (unsigned n = 0; n < OTHERS_MAX && r == 0; n++) {
        r = backend_packet.rx(v->packet, f);
        if (r != 1)
            break;
        r = finds_neighbours(f);
    }
    b->stats.received += r == 1;
    return r;
}

static void verbs_count(struct backend *b)
{
    uint64_t lost = sniffer_lost(verbs_of(b)->sniffer);

    b->stats.dropped = lost == UINT64_MAX ? 0 : lost;
}

const struct backend_ops backend_verbs = {
    .name = "verbs",
    .args = ":DEVICE",
    .summary = "receives by the sniffer of an RDMA device, such as mlx5_0, with its time stamps; sends as packet does",
    .needs_iface = true,
    .open = verbs_open,
    .room = verbs_room,
    .push = verbs_push,
    .flush = verbs_flush,
    .rx = verbs_rx,
    .join = verbs_join,
    .count = verbs_count,
    .close = verbs_close,
};
