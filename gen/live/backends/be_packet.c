/* layer 3 (live): backend: an interface of this host through AF_PACKET: a ring shared with the kernel for receiving,
 * batches for sending. The ring is of TPACKET_V2: version 3 hands out frames by the block, at the earliest after a
 * timer of 1 ms. A batch is one call of sendmmsg(): batches of 256 frames gain 1 % over 64, a ring for sending nothing
 * (measured over veth with 64 and 1090 bytes a frame). */
#include "gen/endpoint/rewrite.h"
#include "gen/live/backends/be_filter.h"
#include "gen/live/backends/be_ring.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCH      64
#define RING_BYTES (4u << 20)
#define BLOCK      (1u << 18) /* a power of two pages of 4 KiB */
#define TAG        4          /* bytes of a VLAN tag */
#define LONG_BYTES (8 << 20)  /* for frames that are longer than a slot of the ring: joined by an offload */

struct packet_backend {
    struct backend b;
    struct ring ring;
    unsigned queued, sent; /* frames in `frame`, and how many of them are with the kernel */
    struct mmsghdr msg[BATCH];
    struct iovec iov[BATCH];
    uint8_t frame[BATCH][BACKEND_FRAME_MAX];
    /* a frame whose tag the kernel removed, or that is too long for a slot (from TAG on) */
    uint8_t tagged[65536 + 14 + TAG];
    bool bridge; /* receive every frame, whatever its destination */
};

static int query(struct packet_backend *p, const char *iface, int *index, struct backend_error *err)
{
    struct ifreq r = {0};

    if (strlen(iface) >= sizeof r.ifr_name)
        return backend_fail(err, -ENODEV, "there is no interface %s", iface);
    memcpy(r.ifr_name, iface, strlen(iface));
    if (ioctl(p->b.fd, SIOCGIFINDEX, &r) < 0)
        return backend_fail(err, -errno, "there is no interface %s", iface);
    *index = r.ifr_ifindex;
    if (ioctl(p->b.fd, SIOCGIFFLAGS, &r) < 0 || !(r.ifr_flags & IFF_UP))
        return backend_fail(err, -ENETDOWN, "interface %s is down", iface);
    if (ioctl(p->b.fd, SIOCGIFMTU, &r) < 0 || r.ifr_mtu < 0)
        return backend_fail(err, -EIO, "interface %s has no MTU", iface);
    p->b.mtu = (uint32_t)r.ifr_mtu;
    if (ioctl(p->b.fd, SIOCGIFHWADDR, &r) < 0 || r.ifr_hwaddr.sa_family != 1)
        return backend_fail(err, -EOPNOTSUPP, "interface %s is not Ethernet", iface);
    memcpy(p->b.mac, r.ifr_hwaddr.sa_data, 6);
    p->b.has_mac = true;
    return 0;
}

static int map_ring(struct packet_backend *p)
{
    uint32_t frame = p->b.mtu > 65535 ? 65535 : p->b.mtu;
    struct ring *r = &p->ring;
    struct tpacket_req req;
    void *m;

    r->block = BLOCK;
    r->slot = TPACKET_ALIGN(TPACKET2_HDRLEN + 64 + frame);
    r->per_block = BLOCK / r->slot;
    r->slots = r->per_block * (RING_BYTES / BLOCK);
    req = (struct tpacket_req){
        .tp_block_size = BLOCK, .tp_block_nr = RING_BYTES / BLOCK, .tp_frame_size = r->slot, .tp_frame_nr = r->slots};
    if (setsockopt(p->b.fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof req) < 0)
        return -errno;
    m = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, p->b.fd, 0);
    if (m == MAP_FAILED)
        return -errno;
    r->mem = m;
    return 0;
}

static int attach_filter(int fd, bool bridge, const struct backend_part *part)
{
    struct sock_filter own[BE_FILTER_LEN];
    struct sock_fprog prog = {.len = BE_FILTER_LEN, .filter = own};

    be_filter(own, part ? part->part : 0, part ? part->parts : 1);
    if (bridge)
        prog = (struct sock_fprog){.len = (unsigned short)be_filter_bridge_len,
                                   .filter = (struct sock_filter *)(uintptr_t)be_filter_bridge};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof prog) < 0 ? -errno : 0;
}

/* Receive one more kind of frames. `mac`: of PACKET_MR_UNICAST. */
static int packet_member(const struct packet_backend *p, unsigned short kind, const uint8_t *mac)
{
    struct packet_mreq m = {.mr_ifindex = p->b.index, .mr_type = kind, .mr_alen = mac ? 6 : 0};

    if (mac)
        memcpy(m.mr_address, mac, 6);
    return setsockopt(p->b.fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof m) < 0 ? -errno : 0;
}

/* Receive frames that are longer than a slot through the socket's own queue. */
static int take_long_frames(const struct packet_backend *p)
{
    int on = 1, size = LONG_BYTES;

    if (setsockopt(p->b.fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) < 0) /* needs CAP_NET_ADMIN */
        setsockopt(p->b.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    return setsockopt(p->b.fd, SOL_PACKET, PACKET_COPY_THRESH, &on, sizeof on) < 0 ? -errno : 0;
}

/* Use time stamps of the interface, if it has them. Enabling them needs CAP_NET_ADMIN; they may be enabled already. */
static void use_hardware_clock(struct packet_backend *p, const char *iface)
{
    struct hwtstamp_config want = {.tx_type = HWTSTAMP_TX_OFF, .rx_filter = HWTSTAMP_FILTER_ALL}, now = {0};
    struct ifreq r = {.ifr_data = (void *)&want};
    int source = SOF_TIMESTAMPING_RAW_HARDWARE, failed = 0;

    memcpy(r.ifr_name, iface, strlen(iface)); /* query() has seen that it fits */
    if (ioctl(p->b.fd, SIOCSHWTSTAMP, &r) < 0) {
        failed = errno;
        r.ifr_data = (void *)&now;
        if (ioctl(p->b.fd, SIOCGHWTSTAMP, &r) == 0 && now.rx_filter == HWTSTAMP_FILTER_ALL)
            failed = 0;
    }
    if (!failed && setsockopt(p->b.fd, SOL_PACKET, PACKET_TIMESTAMP, &source, sizeof source) < 0)
        failed = errno;
    if (!failed)
        p->b.stamps = BACKEND_STAMPS_HARDWARE;
    else
        snprintf(p->b.note, sizeof p->b.note, "no time stamps by interface %s: %s; those of the kernel are used", iface,
                 failed == EOPNOTSUPP ? "it cannot make them"
                 : failed == EPERM    ? "CAP_NET_ADMIN is needed to switch them on"
                                      : strerror(failed));
}

/* Options after the name. */
struct choices {
    bool bypass, hardware, bridge;
};

static bool parse(struct choices *c, const char *args)
{
    while (*args) {
        size_t n = strcspn(args, ",");
        if (n == 6 && memcmp(args, "bypass", n) == 0)
            c->bypass = true;
        else if (n == 2 && memcmp(args, "hw", n) == 0)
            c->hardware = true;
        else if (n == 6 && memcmp(args, "bridge", n) == 0)
            c->bridge = true;
        else
            return false;
        args += n + (args[n] == ',');
    }
    return true;
}

/* Set up the socket. The filter is set before bind(): no other frame is ever received. */
static int setup(struct packet_backend *p, const char *iface, const struct choices *c, const struct backend_part *part,
                 struct backend_error *err)
{
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    int version = TPACKET_V2, on = 1, r;

    r = query(p, iface, &at.sll_ifindex, err);
    if (r < 0)
        return r;
    backend_on(&p->b, iface);
    if (setsockopt(p->b.fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) < 0)
        return backend_fail(err, -errno, "AF_PACKET: this kernel has no TPACKET_V2");
    setsockopt(p->b.fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);
    if (c->bypass && setsockopt(p->b.fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on) < 0)
        return backend_fail(err, -errno, "AF_PACKET: this kernel cannot pass queueing by");
    if (c->hardware)
        use_hardware_clock(p, iface);
    r = attach_filter(p->b.fd, p->bridge, part);
    if (r == 0)
        r = map_ring(p);
    if (r == 0 && bind(p->b.fd, (struct sockaddr *)&at, sizeof at) < 0)
        r = -errno;
    if (r == 0 && p->bridge)
        r = take_long_frames(p);
    if (r == 0 && p->bridge)
        r = packet_member(p, PACKET_MR_PROMISC, NULL);
    return r < 0 ? backend_fail(err, r, "AF_PACKET on %s: %s", iface, strerror(-r)) : 0;
}

static void packet_close(struct backend *b)
{
    struct packet_backend *p = (struct packet_backend *)b;

    if (p->ring.mem)
        munmap(p->ring.mem, RING_BYTES);
    if (b->fd >= 0)
        close(b->fd);
    free(p);
}

static int packet_open_part(struct backend **out, const char *args, const char *iface, const struct backend_part *part,
                            struct backend_error *err)
{
    struct choices choices = {0};
    struct packet_backend *p;
    int r;

    if (!parse(&choices, args))
        return backend_fail(err, -EINVAL, "backend packet: only bypass, hw and bridge may follow, not '%s'", args);
    p = calloc(1, sizeof *p);
    if (!p)
        return backend_fail(err, -ENOMEM, "out of memory");
    p->b = (struct backend){.ops = &backend_packet, .stamps = BACKEND_STAMPS_KERNEL};
    p->bridge = choices.bridge;
    for (unsigned i = 0; i < BATCH; i++) {
        p->iov[i].iov_base = p->frame[i];
        p->msg[i].msg_hdr = (struct msghdr){.msg_iov = &p->iov[i], .msg_iovlen = 1};
    }
    p->b.fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (p->b.fd < 0)
        r = backend_fail(err, -errno, "AF_PACKET: %s%s", strerror(errno),
                         errno == EPERM ? " (CAP_NET_RAW is needed)" : "");
    else
        r = setup(p, iface, &choices, part, err);
    if (r < 0)
        packet_close(&p->b);
    else
        *out = &p->b;
    return r;
}

static int packet_open(struct backend **out, const char *args, const char *iface, struct backend_error *err)
{
    return packet_open_part(out, args, iface, NULL, err);
}

static uint8_t *packet_room(struct backend *b)
{
    struct packet_backend *p = (struct packet_backend *)b;

    return p->queued < BATCH ? p->frame[p->queued] : NULL;
}

static void packet_push(struct backend *b, uint32_t len)
{
    struct packet_backend *p = (struct packet_backend *)b;

    p->iov[p->queued++].iov_len = len;
}

static int packet_flush(struct backend *b)
{
    struct packet_backend *p = (struct packet_backend *)b;

    while (p->sent < p->queued) {
        int n = sendmmsg(b->fd, p->msg + p->sent, p->queued - p->sent, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return -EAGAIN;
        if (n < 0 && !backend_lost(b, errno))
            return -errno;
        if (n > 0)
            b->stats.sent += (unsigned)n;
        else
            b->stats.unsent += n = 1;
        p->sent += (unsigned)n;
    }
    p->sent = p->queued = 0;
    return 0;
}

/* Put the tag back that the kernel removed. */
static void retag(struct packet_backend *p, const struct tpacket2_hdr *h, struct backend_frame *f)
{
    bool tpid = h->tp_status & TP_STATUS_VLAN_TPID_VALID;

    if (f->len < 12)
        return;
    memmove(p->tagged, f->data, 12);
    memmove(p->tagged + 12 + TAG, f->data + 12, f->len - 12);
    store_be16(p->tagged + 12, tpid ? h->tp_vlan_tpid : ETH_P_8021Q);
    store_be16(p->tagged + 14, h->tp_vlan_tci);
    f->data = p->tagged;
    f->len += TAG;
}

/* Read the whole frame of which the slot has only the beginning. */
static void take_whole(struct packet_backend *p, struct backend_frame *f)
{
    ssize_t n = recv(p->b.fd, p->tagged + TAG, sizeof p->tagged - TAG, MSG_DONTWAIT | MSG_TRUNC);

    if (n != (ssize_t)(f->len + f->lost) || n > (ssize_t)(sizeof p->tagged - TAG))
        return;
    f->data = p->tagged + TAG;
    f->len = (uint32_t)n;
    f->lost = 0;
}

static int packet_rx(struct backend *b, struct backend_frame *f)
{
    struct packet_backend *p = (struct packet_backend *)b;
    uint32_t status;
    struct tpacket2_hdr *h = ring_next(&p->ring, f, &status);

    if (!h)
        return 0;
    if (UNLIKELY(status & TP_STATUS_COPY))
        take_whole(p, f);
    if (status & TP_STATUS_CSUMNOTREADY && p->bridge && !f->lost)
        frame_fix_l4((uint8_t *)(uintptr_t)f->data, f->len);
    if (status & TP_STATUS_VLAN_VALID)
        retag(p, h, f);
    b->stats.received++;
    b->stats.late_stamps += b->stamps == BACKEND_STAMPS_HARDWARE && f->stamp != BACKEND_STAMPS_HARDWARE;
    return 1;
}

static int packet_join(struct backend *b, const uint8_t mac[6])
{
    struct packet_backend *p = (struct packet_backend *)b;
    int r = packet_member(p, PACKET_MR_UNICAST, mac);

    return r < 0 ? r : packet_member(p, PACKET_MR_ALLMULTI, NULL);
}

static void packet_count(struct backend *b)
{
    struct tpacket_stats s;
    socklen_t n = sizeof s;

    if (getsockopt(b->fd, SOL_PACKET, PACKET_STATISTICS, &s, &n) == 0) /* each call resets the kernel's counters */
        b->stats.dropped += s.tp_drops;
}

const struct backend_ops backend_packet = {
    .name = "packet",
    .args = "[:bypass,hw,bridge]",
    .summary =
        "an interface through AF_PACKET; needs CAP_NET_RAW. bypass: past queueing disciplines and local captures; "
        "hw: the interface's time stamps; bridge: takes every frame",
    .needs_iface = true,
    .open = packet_open,
    .open_part = packet_open_part,
    .room = packet_room,
    .push = packet_push,
    .flush = packet_flush,
    .rx = packet_rx,
    .join = packet_join,
    .count = packet_count,
    .close = packet_close,
};
