/* layer 3 (live): backend: an interface of this host through libnet for sending and libpcap for receiving, for systems
 * without AF_PACKET. The only file that knows libnet. */
#include "gen/live/backend.h"
#include "src/cap/live.h"

#include <errno.h>
#include <libnet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUEUE   64
#define BUFFER  (4u << 20)
#define HEADERS 18 /* Ethernet's, with a tag */
/* Frames for an endpoint, as in be_filter.h, also with a VLAN tag. */
#define WORDS  "(arp or ether proto 0x8915 or udp dst port 4791 or (icmp6 and (ip6[40] = 135 or ip6[40] = 136)))"
#define FILTER WORDS " or (vlan and " WORDS ")"

struct libnet_backend {
    struct backend b;
    libnet_t *out;
    struct cap *in;
    unsigned queued, done; /* frames in `frame`, and how many of them are sent */
    uint32_t len[QUEUE];
    uint8_t frame[QUEUE][BACKEND_FRAME_MAX];
};

/* -ENETDOWN: the interface is down, or has no MTU. */
static int query_mtu(struct libnet_backend *n, const char *iface)
{
    struct ifreq r = {0};
    int s = socket(AF_INET, SOCK_DGRAM, 0), ok;

    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", iface);
    ok = s >= 0 && ioctl(s, SIOCGIFFLAGS, &r) == 0 && r.ifr_flags & IFF_UP && ioctl(s, SIOCGIFMTU, &r) == 0;
    if (s >= 0)
        close(s);
    n->b.mtu = ok ? (uint32_t)r.ifr_mtu : 0;
    return ok ? 0 : -ENETDOWN;
}

/* libnet's socket also receives frames, which are never read: drop them in the kernel. */
static void receive_nothing(int fd)
{
    int least = 1;

    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
}

static int setup(struct libnet_backend *n, const char *iface, struct backend_error *err)
{
    struct cap_live_opts opts = {.filter = FILTER, .buffer = BUFFER, .inbound = true, .no_wait = true};
    struct libnet_ether_addr *mac;
    char text[LIBNET_ERRBUF_SIZE] = "";
    struct cap_error why = {0};
    int r;

    if (strlen(iface) >= IFNAMSIZ || !if_nametoindex(iface))
        return backend_fail(err, -ENODEV, "there is no interface %s", iface);
    if (query_mtu(n, iface) < 0)
        return backend_fail(err, -ENETDOWN, "interface %s is down", iface);
    opts.snaplen = n->b.mtu + HEADERS; /* slots of this size fill libpcap's buffer */
    r = cap_live_open(&n->in, iface, 0, &opts, &why);
    if (r < 0)
        return backend_fail(err, r, "libpcap on %s: %s", iface, why.msg);
    if (cap_info(n->in)->ifaces[0].linktype != LINK_ETHERNET)
        return backend_fail(err, -EOPNOTSUPP, "interface %s is not Ethernet", iface);
    n->out = libnet_init(LIBNET_LINK_ADV, iface, text);
    if (!n->out)
        return backend_fail(err, -EPERM, "libnet on %s: %s", iface, text);
    receive_nothing(libnet_getfd(n->out));
    mac = libnet_get_hwaddr(n->out);
    if (!mac)
        return backend_fail(err, -EOPNOTSUPP, "interface %s has no MAC address", iface);
    memcpy(n->b.mac, mac->ether_addr_octet, 6);
    n->b.has_mac = true;
    n->b.fd = cap_live_fd(n->in);
    backend_on(&n->b, iface);
    return 0;
}

static void libnet_backend_close(struct backend *b)
{
    struct libnet_backend *n = (struct libnet_backend *)b;

    if (n->out)
        libnet_destroy(n->out);
    if (n->in)
        cap_close(n->in);
    free(n);
}

static int libnet_backend_open(struct backend **out, const char *args, const char *iface, struct backend_error *err)
{
    struct libnet_backend *n;
    int r;

    if (*args)
        return backend_fail(err, -EINVAL, "nothing may follow backend libnet");
    n = calloc(1, sizeof *n);
    if (!n)
        return backend_fail(err, -ENOMEM, "out of memory");
    n->b = (struct backend){.ops = &backend_libnet, .fd = -1, .stamps = BACKEND_STAMPS_KERNEL};
    r = setup(n, iface, err);
    if (r < 0)
        libnet_backend_close(&n->b);
    else
        *out = &n->b;
    return r;
}

static uint8_t *libnet_room(struct backend *b)
{
    struct libnet_backend *n = (struct libnet_backend *)b;

    return n->queued < QUEUE ? n->frame[n->queued] : NULL;
}

static void libnet_push(struct backend *b, uint32_t len)
{
    struct libnet_backend *n = (struct libnet_backend *)b;

    n->len[n->queued++] = len;
}

static int libnet_flush(struct backend *b)
{
    struct libnet_backend *n = (struct libnet_backend *)b;

    for (; n->done < n->queued; n->done++) {
        if (libnet_adv_write_link(n->out, n->frame[n->done], n->len[n->done]) >= 0) {
            b->stats.sent++;
            continue;
        }
        if (errno == EAGAIN || errno == EINTR)
            return -EAGAIN;
        if (!backend_lost(b, errno))
            return -errno;
        b->stats.unsent++;
    }
    n->done = n->queued = 0;
    return 0;
}

static int libnet_rx(struct backend *b, struct backend_frame *f)
{
    struct libnet_backend *n = (struct libnet_backend *)b;
    struct frame got;
    int r = cap_live_poll(n->in, &got);

    if (r <= 0)
        return r;
    *f = (struct backend_frame){.data = got.data, .len = got.caplen, .ts = got.ts};
    b->stats.received++;
    return 1;
}

/* libpcap has opened the interface in promiscuous mode. */
static int libnet_join(struct backend *b, const uint8_t mac[6])
{
    (void)b, (void)mac;
    return 0;
}

static void libnet_count(struct backend *b)
{
    struct libnet_backend *n = (struct libnet_backend *)b;
    struct cap_live_stats s;

    if (cap_live_stats(n->in, &s) == 0)
        b->stats.dropped = s.dropped;
}

const struct backend_ops backend_libnet = {
    .name = "libnet",
    .args = "",
    .summary = "an interface through libnet (sending) and libpcap (receiving): portable, but slower",
    .needs_iface = true,
    .open = libnet_backend_open,
    .room = libnet_room,
    .push = libnet_push,
    .flush = libnet_flush,
    .rx = libnet_rx,
    .join = libnet_join,
    .count = libnet_count,
    .close = libnet_backend_close,
};
