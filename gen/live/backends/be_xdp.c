/* layer 3 (live): backend: an interface of this host through AF_XDP: RoCE packets pass between memory shared with the
 * kernel and the driver, without the network stack. A program in front of the stack takes the
 * RoCE packets of the queues that are used; all else goes on to the kernel, and ARP and neighbour discovery come
 * through an AF_PACKET socket, as does RoCE of other queues. The program leaves with the descriptor of its link, so
 * also when this one is killed. */
#include "dissect/ib/ib.h"
#include "dissect/link/eth.h"
#include "gen/live/backend.h"
#include "src/cap/xdp_lane.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
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

/* --- The program ------------------------------------------------------------------------------- */

#define INSN(c, d, s, o, i) ((struct bpf_insn){.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)})
#define MOV(d, s)           INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define SET(d, i)           INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define ADD(d, i)           INSN(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define ADD_REG(d, s)       INSN(BPF_ALU64 | BPF_ADD | BPF_X, d, s, 0, 0)
#define AND(d, i)           INSN(BPF_ALU64 | BPF_AND | BPF_K, d, 0, 0, i)
#define SHIFT(d, i)         INSN(BPF_ALU64 | BPF_LSH | BPF_K, d, 0, 0, i)
#define LOAD(size, d, s, o) INSN(BPF_LDX | BPF_MEM | (size), d, s, o, 0)
#define CALL(f)             INSN(BPF_JMP | BPF_CALL, 0, 0, 0, f)
#define EXIT                INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* Jumps name instruction `at`, where they stand, and the one that they lead to. */
#define IF_NE(at, d, i, to) INSN(BPF_JMP | BPF_JNE | BPF_K, d, 0, (int16_t)((to) - (at)-1), i)
#define IF_GT(at, d, s, to) INSN(BPF_JMP | BPF_JGT | BPF_X, d, s, (int16_t)((to) - (at)-1), 0)
#define GO(at, to)          INSN(BPF_JMP | BPF_JA, 0, 0, (int16_t)((to) - (at)-1), 0)
#define RIGHT(d, i)         INSN(BPF_ALU64 | BPF_RSH | BPF_K, d, 0, 0, i)
#define MODULO(d, i)        INSN(BPF_ALU64 | BPF_MOD | BPF_K, d, 0, 0, i)
#define TIMES(d, i)         INSN(BPF_ALU64 | BPF_MUL | BPF_K, d, 0, 0, i)
enum { TYPE = 12, IP = 15, IPV6 = 32, PASS = 41, TAKE = 43, LENGTH = 57 };
enum { DATA = 2, END, X, PORT, CONTEXT };

/* Load the program that gives RoCE packets (RoCEv1; UDP port 4791 over IPv4, no fragments, or over IPv6; with a VLAN
 * tag or without) to the AF_XDP socket at queue * parts + part, if map `map` (BPF_MAP_TYPE_XSKMAP) has one; the part is
 * that of the destination QP, qpn_part(). All else passes to the kernel. Returns its descriptor, or a negative errno.
 * Numbers in packets are compared as the host reads them. Where a header is known, DATA moves to the BTH. */
static int load_program(int map, unsigned parts)
{
    const struct bpf_insn code[LENGTH] = {
        /* 0 */ MOV(CONTEXT, BPF_REG_1),
        /* 1 */ LOAD(BPF_W, DATA, CONTEXT, offsetof(struct xdp_md, data)),
        /* 2 */ LOAD(BPF_W, END, CONTEXT, offsetof(struct xdp_md, data_end)),
        /* 3 */ MOV(X, DATA),
        /* 4 */ ADD(X, 14 + 20 + 8),
        /* 5 */ IF_GT(5, X, END, PASS),
        /* 6 */ LOAD(BPF_H, PORT, DATA, 12),
        /* 7: a VLAN tag */ IF_NE(7, PORT, htons(ETH_P_8021Q), TYPE),
        /* 8 */ ADD(DATA, 4),
        /* 9 */ ADD(X, 4),
        /* 10 */ IF_GT(10, X, END, PASS),
        /* 11 */ LOAD(BPF_H, PORT, DATA, 12),
        /* 12: TYPE */ IF_NE(12, PORT, htons(ETHERTYPE_ROCEV1), IP),
        /* 13 */ ADD(DATA, 14 + 40),
        /* 14 */ GO(14, TAKE),
        /* 15: IP; version 4: protocol, fragment offset, and the port behind a header of any length */
        IF_NE(15, PORT, htons(ETH_P_IP), IPV6),
        /* 16 */ LOAD(BPF_B, X, DATA, 14 + 9),
        /* 17 */ IF_NE(17, X, IPPROTO_UDP, PASS),
        /* 18 */ LOAD(BPF_H, X, DATA, 14 + 6),
        /* 19 */ AND(X, htons(0x1fff)),
        /* 20 */ IF_NE(20, X, 0, PASS),
        /* 21 */ LOAD(BPF_B, X, DATA, 14),
        /* 22 */ AND(X, 15),
        /* 23 */ SHIFT(X, 2),
        /* 24 */ ADD_REG(DATA, X),
        /* 25 */ MOV(X, DATA),
        /* 26 */ ADD(X, 14 + 4),
        /* 27 */ IF_GT(27, X, END, PASS),
        /* 28 */ LOAD(BPF_H, PORT, DATA, 14 + 2),
        /* 29 */ IF_NE(29, PORT, htons(UDP_PORT_ROCEV2), PASS),
        /* 30 */ ADD(DATA, 14 + 8),
        /* 31 */ GO(31, TAKE),
        /* 32: IPV6, without extension headers */ IF_NE(32, PORT, htons(ETH_P_IPV6), PASS),
        /* 33 */ ADD(X, 20),
        /* 34 */ IF_GT(34, X, END, PASS),
        /* 35 */ LOAD(BPF_B, X, DATA, 14 + 6),
        /* 36 */ IF_NE(36, X, IPPROTO_UDP, PASS),
        /* 37 */ LOAD(BPF_H, PORT, DATA, 14 + 40 + 2),
        /* 38 */ IF_NE(38, PORT, htons(UDP_PORT_ROCEV2), PASS),
        /* 39 */ ADD(DATA, 14 + 40 + 8),
        /* 40 */ GO(40, TAKE),
        /* 41: PASS */ SET(BPF_REG_0, XDP_PASS),
        /* 42 */ EXIT,
        /* 43: TAKE; the part is that of qpn_part(), by the lowest byte of the destination QP */ MOV(X, DATA),
        /* 44 */ ADD(X, 8),
        /* 45 */ IF_GT(45, X, END, PASS),
        /* 46 */ LOAD(BPF_B, PORT, DATA, 7),
        /* 47 */ RIGHT(PORT, 1),
        /* 48 */ MODULO(PORT, (int)parts),
        /* 49; without a socket of this queue and part it passes */
        INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map),
        /* 50 */ INSN(0, 0, 0, 0, 0),
        /* 51 */ LOAD(BPF_W, BPF_REG_2, CONTEXT, offsetof(struct xdp_md, rx_queue_index)),
        /* 52 */ TIMES(BPF_REG_2, (int)parts),
        /* 53 */ ADD_REG(BPF_REG_2, PORT),
        /* 54 */ SET(BPF_REG_3, XDP_PASS),
        /* 55 */ CALL(BPF_FUNC_redirect_map),
        /* 56 */ EXIT,
    };

    return bpf_prog_load(BPF_PROG_TYPE_XDP, "roce_to_xsk", "BSD", code, LENGTH, NULL);
}

/* --- Opening ----------------------------------------------------------------------------------- */

/* The options of one or of several processes: each has one of the queues, or more. */
static int options(struct xdp_opts *o, const char *args, unsigned parts, struct backend_error *err)
{
    if (!xdp_words(&o->words, args))
        return backend_fail(
            err, -EINVAL,
            "backend xdp: only numbers of queues, copy, busy and skb may follow, not '%s'; at most %d queues", args,
            XDP_QUEUES);
    for (bool named = o->words.n; !named && o->words.n < parts; o->words.n++)
        o->words.queue[o->words.n] = o->words.n;
    if (o->words.n < parts)
        return backend_fail(err, -EINVAL, "backend xdp: %u queues are not enough for -j %u: each thread has its own",
                            o->words.n, parts);
    return 0;
}

static int xdp_share(struct backend_shared *s, const char *args, const char *iface, unsigned parts,
                     struct backend_error *err)
{
    struct xdp_opts o = {.iface = iface, .parts = parts, .load = load_program};
    struct xdp_gate gate;
    char why[XDP_WHY] = "";
    int r = options(&o, args, parts, err);

    if (r < 0)
        return r;
    r = xdp_gate_open(&gate, &o, why);
    *s = (struct backend_shared){.map = gate.map, .program = gate.program, .link = gate.link};
    return r < 0 ? backend_fail(err, r, "%s", why) : 0;
}

/* Leave the queues of other processes out. */
static void choose(struct xdp_words *w, const struct backend_part *part)
{
    unsigned all = w->n;

    w->n = 0;
    for (unsigned i = part->part; i < all; i += part->parts)
        w->queue[w->n++] = w->queue[i];
}

static int setup(struct xdp_backend *x, const char *args, const char *iface, const struct backend_part *part,
                 struct backend_error *err)
{
    struct xdp_opts o = {.iface = iface, .rx = RX, .tx = TX, .load = load_program};
    struct xdp_gate shared = {.map = part ? part->map : -1};
    char why[XDP_WHY] = "";
    int r = options(&o, args, part ? part->parts : 1, err);

    if (r < 0 || (r = backend_packet.open_part(&x->packet, "", iface, part, err)) < 0)
        return r;
    if (part) {
        choose(&o.words, part);
        o.part = part->part;
        o.parts = part->parts;
        o.gate = &shared;
    }
    backend_on(&x->b, iface);
    if ((r = xdp_open(&x->x, &o, why)) < 0)
        return backend_fail(err, r, "%s", why);
    x->b.fd = x->x->fd;
    r = poll_packets(x);
    return r < 0 ? backend_fail(err, r, "%s cannot be polled", iface) : 0;
}

static int xdp_open_part(struct backend **out, const char *args, const char *iface, const struct backend_part *part,
                         struct backend_error *err)
{
    struct xdp_backend *x = calloc(1, sizeof *x);
    int r;

    if (!x)
        return backend_fail(err, -ENOMEM, "out of memory");
    x->b = (struct backend){.ops = &backend_xdp, .fd = -1};
    r = setup(x, args, iface, part, err);
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

static int xdp_backend_open(struct backend **out, const char *args, const char *iface, struct backend_error *err)
{
    return xdp_open_part(out, args, iface, NULL, err);
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
    .open_part = xdp_open_part,
    .share = xdp_share,
    .room = xdp_room,
    .push = xdp_push,
    .flush = xdp_flush,
    .rx = xdp_rx,
    .join = xdp_join,
    .count = xdp_count,
    .close = xdp_backend_close,
};
