/* layer 1 (io): AF_XDP: the sockets of an interface's queues, their memory, and the program in front of the stack. */
#include "src/cap/xdp_lane.h"

#include "clock.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/bpf.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HUGE_PAGE (UINT32_C(2) << 20)

static int fail(char *why, int error, const char *fmt, ...) PRINTF_LIKE(3, 4);
static int fail(char *why, int error, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, XDP_WHY, fmt, ap);
    va_end(ap);
    return error;
}

/* --- Words, queues, counters ------------------------------------------------------------------ */

bool xdp_words(struct xdp_words *w, const char *text)
{
    const struct {
        const char *name;
        bool *to;
    } words[] = {{"copy", &w->copy}, {"busy", &w->busy}, {"skb", &w->skb}};

    *w = (struct xdp_words){0};
    while (*text) {
        size_t n = strcspn(text, ","), i = 0;
        char *end;
        unsigned long queue = strtoul(text, &end, 10);
        while (i < ARRAY_LEN(words) && (strlen(words[i].name) != n || memcmp(text, words[i].name, n) != 0))
            i++;
        if (i < ARRAY_LEN(words))
            *words[i].to = true;
        else if (*text >= '0' && *text <= '9' && end == text + n && queue < 65536 && w->n < XDP_QUEUES)
            w->queue[w->n++] = (uint32_t)queue;
        else
            return false;
        text += n + (text[n] == ',');
    }
    return true;
}

unsigned xdp_queues(const char *iface)
{
    struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
    struct ifreq r = {.ifr_data = (void *)&channels};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok;

    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", iface);
    ok = fd >= 0 && ioctl(fd, SIOCETHTOOL, &r) == 0;
    if (fd >= 0)
        close(fd);
    return ok && channels.rx_count + channels.combined_count ? channels.rx_count + channels.combined_count : 1;
}

#define TAGGED 18 /* bytes of an Ethernet header with a VLAN tag */

unsigned xdp_mtu_too_large(const char *iface)
{
    struct ifreq r = {.ifr_mtu = 0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok;

    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", iface);
    ok = fd >= 0 && ioctl(fd, SIOCGIFMTU, &r) == 0;
    if (fd >= 0)
        close(fd);
    return ok && r.ifr_mtu > XDP_FRAME_MAX - TAGGED ? (unsigned)r.ifr_mtu : 0;
}

/* Frames for which the interface had no buffer, since it exists. */
static uint64_t missed_by(const char *iface)
{
    struct ifaddrs *all = NULL;
    uint64_t missed = 0;

    if (getifaddrs(&all) < 0)
        return 0;
    for (const struct ifaddrs *a = all; a; a = a->ifa_next)
        if (a->ifa_addr && a->ifa_addr->sa_family == AF_PACKET && a->ifa_data && strcmp(a->ifa_name, iface) == 0) {
            const struct rtnl_link_stats *s = a->ifa_data;
            missed = (uint64_t)s->rx_missed_errors + s->rx_fifo_errors;
        }
    freeifaddrs(all);
    return missed;
}

uint64_t xdp_missed(const struct xdp *x)
{
    uint64_t missed = missed_by(x->iface);

    return missed > x->missed_from ? missed - x->missed_from : 0;
}

/* A frame for which the fill ring had no chunk counts as dropped, too, where the kernel copies. */
uint64_t xdp_dropped(const struct xdp *x)
{
    uint64_t dropped = 0;

    for (unsigned i = 0; i < x->n; i++) {
        struct xdp_statistics s = {0};
        socklen_t n = sizeof s;
        if (getsockopt(x->lane[i].fd, SOL_XDP, XDP_STATISTICS, &s, &n) == 0)
            dropped += s.rx_dropped + s.rx_ring_full;
    }
    return dropped;
}

/* --- Opening ---------------------------------------------------------------------------------- */

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

int xdp_fd(const struct xdp *x)
{
    return x->fd;
}

void xdp_gate_close(struct xdp_gate *g)
{
    close_fd(g->link);
    close_fd(g->program);
    close_fd(g->map);
    *g = (struct xdp_gate){.map = -1, .program = -1, .link = -1};
}

void xdp_close(struct xdp *x)
{
    if (!x)
        return;
    xdp_gate_close(&x->gate); /* first: packets go to the kernel again */
    for (unsigned i = 0; i < x->n; i++) {
        struct xdp_lane *l = &x->lane[i];
        if (l->xsk)
            xsk_socket__delete(l->xsk);
        if (l->umem)
            xsk_umem__delete(l->umem);
        if (l->memory)
            munmap(l->memory, l->size);
    }
    close_fd(x->promisc);
    close_fd(x->fd);
    free(x);
}

/* The program of all frames: to the socket of their queue; those of a queue without one pass on to the kernel. */
static int load_all(int map, unsigned parts)
{
    const struct bpf_insn code[] = {
        {.code = BPF_LDX | BPF_MEM | BPF_W,
         .dst_reg = BPF_REG_2,
         .src_reg = BPF_REG_1,
         .off = offsetof(struct xdp_md, rx_queue_index)},
        {.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = map},
        {0},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = XDP_PASS},
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map},
        {.code = BPF_JMP | BPF_EXIT},
    };

    (void)parts;
    return bpf_prog_load(BPF_PROG_TYPE_XDP, "all_to_xsk", "BSD", code, ARRAY_LEN(code), NULL);
}

/* Memory that is shared with the kernel: of huge pages, if the host has set some apart. */
static bool get_memory(struct xdp_lane *l, size_t size)
{
    const int how = MAP_PRIVATE | MAP_ANONYMOUS;
    void *p = MAP_FAILED;

    if (size % HUGE_PAGE == 0)
        p = mmap(NULL, size, PROT_READ | PROT_WRITE, how | MAP_HUGETLB, -1, 0);
    if (p == MAP_FAILED)
        p = mmap(NULL, size, PROT_READ | PROT_WRITE, how, -1, 0);
    if (p == MAP_FAILED)
        return false;
    l->memory = p;
    l->size = size;
    return true;
}

/* Give all chunks of received frames to the kernel. */
static void fill_all(struct xdp_lane *l, uint32_t n)
{
    uint32_t at;

    if (xsk_ring_prod__reserve(&l->fill, n, &at) != n)
        return;
    for (uint32_t i = 0; i < n; i++)
        *xsk_ring_prod__fill_addr(&l->fill, at + i) = (uint64_t)i * XDP_CHUNK;
    xsk_ring_prod__submit(&l->fill, n);
}

/* Ask the driver to be polled by our system calls, not by interrupts. Not all kernels and drivers can. */
static void poll_busily(const struct xdp_lane *l)
{
    int on = 1, us = 20, budget = 64;

    setsockopt(l->fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, &on, sizeof on);
    setsockopt(l->fd, SOL_SOCKET, SO_BUSY_POLL, &us, sizeof us);
    setsockopt(l->fd, SOL_SOCKET, SO_BUSY_POLL_BUDGET, &budget, sizeof budget);
}

/* 0 or a negative errno. */
static int open_lane(struct xdp *x, unsigned i, const struct xdp_opts *o)
{
    const struct xdp_words *w = &o->words;
    const struct xsk_umem_config memory = {
        .fill_size = o->rx, .comp_size = o->tx ? o->tx : 64, .frame_size = XDP_CHUNK, .frame_headroom = 0, .flags = 0};
    const struct xsk_socket_config socket = {.rx_size = o->rx,
                                             .tx_size = o->tx,
                                             .libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
                                             .bind_flags = (uint16_t)(XDP_USE_NEED_WAKEUP | (w->copy ? XDP_COPY : 0))};
    struct xdp_lane *l = &x->lane[i];
    uint32_t key = w->queue[i] * (o->parts ? o->parts : 1) + o->part;
    int r;

    if (!get_memory(l, ((size_t)o->rx + o->tx) * XDP_CHUNK))
        return -ENOMEM;
    r = xsk_umem__create(&l->umem, l->memory, l->size, &l->fill, &l->completion, &memory);
    if (r == 0)
        r = xsk_socket__create(&l->xsk, o->iface, w->queue[i], l->umem, &l->rx, o->tx ? &l->tx : NULL, &socket);
    if (r < 0)
        return r;
    l->fd = xsk_socket__fd(l->xsk);
    fill_all(l, o->rx);
    if (w->busy)
        poll_busily(l);
    return bpf_map_update_elem((o->gate ? o->gate : &x->gate)->map, &key, &l->fd, BPF_ANY) < 0 ? -errno : 0;
}

/* Put the program in front of the network stack: in the driver, or else where the stack begins. */
static int attach(struct xdp_gate *g, int index, bool skb)
{
    LIBBPF_OPTS(bpf_link_create_opts, driver, .flags = XDP_FLAGS_DRV_MODE);
    LIBBPF_OPTS(bpf_link_create_opts, stack, .flags = XDP_FLAGS_SKB_MODE);

    if (!skb)
        g->link = bpf_link_create(g->program, index, BPF_XDP, &driver);
    if (g->link < 0)
        g->link = bpf_link_create(g->program, index, BPF_XDP, &stack);
    return g->link < 0 ? -errno : 0;
}

static int poll_all(struct xdp *x)
{
    struct epoll_event e = {.events = EPOLLIN};
    bool ok;

    x->fd = epoll_create1(EPOLL_CLOEXEC);
    ok = x->fd >= 0;
    for (unsigned i = 0; ok && i < x->n; i++)
        ok = epoll_ctl(x->fd, EPOLL_CTL_ADD, x->lane[i].fd, &e) == 0;
    return ok ? 0 : -errno;
}

/* As long as the socket is open. */
static int be_promiscuous(struct xdp *x, int index)
{
    struct packet_mreq m = {.mr_ifindex = index, .mr_type = PACKET_MR_PROMISC};

    x->promisc = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (x->promisc < 0 || setsockopt(x->promisc, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof m) < 0)
        return -errno;
    return 0;
}

/* The map and the program, which sees no frame yet. */
static int gate_load(struct xdp_gate *g, const struct xdp_opts *o, char *why)
{
    unsigned parts = o->parts ? o->parts : 1;
    uint32_t slots = 0;

    *g = (struct xdp_gate){.map = -1, .program = -1, .link = -1};
    for (unsigned i = 0; i < o->words.n; i++)
        slots = max_u32(slots, (o->words.queue[i] + 1) * parts);
    g->map = bpf_map_create(BPF_MAP_TYPE_XSKMAP, "xsks", sizeof(uint32_t), sizeof(int), slots, NULL);
    if (g->map < 0)
        return fail(why, -errno, "AF_XDP: %s%s", strerror(errno),
                    errno == EPERM ? " (CAP_BPF and CAP_NET_ADMIN are needed)" : "");
    g->program = (o->load ? o->load : load_all)(g->map, parts);
    return g->program < 0 ? fail(why, g->program, "AF_XDP: the kernel refuses the program: %s", strerror(-g->program))
                          : 0;
}

static int gate_attach(struct xdp_gate *g, const struct xdp_opts *o, char *why)
{
    int r = attach(g, (int)if_nametoindex(o->iface), o->words.skb);

    return r < 0 ? fail(why, r, "AF_XDP on %s: %s%s", o->iface, strerror(-r),
                        r == -EBUSY ? " (it has an XDP program already)" : "")
                 : 0;
}

int xdp_gate_open(struct xdp_gate *g, const struct xdp_opts *o, char why[XDP_WHY])
{
    int r = gate_load(g, o, why);

    return r < 0 ? r : gate_attach(g, o, why);
}

static int setup(struct xdp *x, const struct xdp_opts *o, char *why)
{
    int index = (int)if_nametoindex(o->iface);
    int r;

    if (!index)
        return fail(why, -ENODEV, "there is no such interface");
    if (!o->gate && (r = gate_load(&x->gate, o, why)) < 0)
        return r;
    for (unsigned i = 0; i < o->words.n; i++) {
        x->n = i + 1;
        if ((r = open_lane(x, i, o)) < 0)
            return fail(why, r, "AF_XDP on queue %u of %s: %s", o->words.queue[i], o->iface,
                        r == -EINVAL ? "there is no such queue" : strerror(-r));
    }
    if ((r = poll_all(x)) < 0)
        return fail(why, r, "%s cannot be polled", o->iface);
    if (o->promisc && (r = be_promiscuous(x, index)) < 0)
        return fail(why, r, "%s: no promiscuous mode: %s", o->iface, strerror(-r));
    return o->gate ? 0 : gate_attach(&x->gate, o, why);
}

int xdp_open(struct xdp **out, const struct xdp_opts *o, char why[XDP_WHY])
{
    struct xdp *x = malloc(sizeof *x);
    int r;

    if (!x)
        return fail(why, -ENOMEM, "out of memory");
    *x = (struct xdp){.gate = {.map = -1, .program = -1, .link = -1}, .promisc = -1, .fd = -1};
    snprintf(x->iface, sizeof x->iface, "%s", o->iface);
    x->missed_from = missed_by(x->iface);
    r = setup(x, o, why);
    if (r < 0)
        xdp_close(x);
    else
        *out = x;
    return r;
}

/* --- Receiving -------------------------------------------------------------------------------- */

/* Return the chunks of a batch to the kernel. */
static void give_back(struct xdp_lane *l)
{
    uint32_t at;

    if (!l->got || xsk_ring_prod__reserve(&l->fill, l->got, &at) != l->got)
        return;
    for (uint32_t i = 0; i < l->got; i++)
        *xsk_ring_prod__fill_addr(&l->fill, at + i) = l->batch[i].addr - l->batch[i].addr % XDP_CHUNK;
    xsk_ring_prod__submit(&l->fill, l->got);
    l->got = l->at = 0;
    if (xsk_ring_prod__needs_wakeup(&l->fill))
        recvfrom(l->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
}

/* Take the frames that have arrived, up to a batch, from the ring. */
static void take(struct xdp *x, struct xdp_lane *l)
{
    uint32_t at, n;

    give_back(l);
    if (l->got || !(n = xsk_ring_cons__peek(&l->rx, XDP_BATCH, &at)))
        return;
    for (uint32_t i = 0; i < n; i++)
        l->batch[i] = *xsk_ring_cons__rx_desc(&l->rx, at + i);
    xsk_ring_cons__release(&l->rx, n);
    l->got = n;
    x->now = clock_ns(CLOCK_REALTIME);
}

/* The lane whose batch is read, or else the next one that has frames; NULL: none. */
static struct xdp_lane *ready(struct xdp *x)
{
    struct xdp_lane *l = &x->lane[x->next];

    for (unsigned i = 0; l->at == l->got && i < x->n; i++) {
        x->next = (x->next + 1) % x->n;
        l = &x->lane[x->next];
        take(x, l);
    }
    return l->at < l->got ? l : NULL;
}

bool xdp_next(struct xdp *x, struct xdp_frame *f)
{
    struct xdp_lane *l = ready(x);
    const struct xdp_desc *d;

    if (!l)
        return false;
    d = &l->batch[l->at++];
    *f = (struct xdp_frame){.data = xsk_umem__get_data(l->memory, d->addr), .len = d->len, .ts = x->now};
    return true;
}
