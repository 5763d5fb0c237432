/* layer 3 (live): backend: Ethernet frames as datagrams between two UNIX sockets, as QEMU's `-netdev dgram` carries
 * them. */
#include "gen/live/backend.h"
#include "opt.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define QUEUE       64
#define MTU_DEFAULT 1500
#define FRAME_TAKE  65536

struct unix_backend {
    struct backend b;
    struct sockaddr_un own, peer;
    unsigned head, n; /* frames queued: n from head */
    uint32_t len[QUEUE];
    uint8_t queue[QUEUE][BACKEND_FRAME_MAX];
    uint8_t frame[FRAME_TAKE];
};

static int set_path(struct sockaddr_un *a, const char *path, size_t n)
{
    memset(a, 0, sizeof *a);
    a->sun_family = AF_UNIX;
    if (n == 0 || n >= sizeof a->sun_path)
        return -ENAMETOOLONG;
    memcpy(a->sun_path, path, n);
    return 0;
}

/* Remove the socket file of an earlier run, but neither a socket on which a program listens nor another kind of
 * file. */
static int bind_own(int fd, const struct sockaddr_un *own)
{
    const struct sockaddr *a = (const struct sockaddr *)own;
    struct stat there;
    int probe, used;

    if (bind(fd, a, sizeof *own) == 0)
        return 0;
    if (errno != EADDRINUSE)
        return -errno;
    if (lstat(own->sun_path, &there) < 0 || !S_ISSOCK(there.st_mode))
        return -ENOTSOCK;
    probe = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    used = probe < 0 || connect(probe, a, sizeof *own) == 0 || errno != ECONNREFUSED;
    if (probe >= 0)
        close(probe);
    if (used)
        return -EADDRINUSE;
    unlink(own->sun_path);
    return bind(fd, a, sizeof *own) == 0 ? 0 : -errno;
}

static int unix_open(struct backend **out, const char *args, const char *iface, struct backend_error *err)
{
    const char *comma = strchr(args, ','), *second = comma ? strchr(comma + 1, ',') : NULL;
    size_t peer_len = second ? (size_t)(second - comma - 1) : comma ? strlen(comma + 1) : 0;
    struct unix_backend *u;
    uint64_t mtu = MTU_DEFAULT;
    int size = 1 << 20, on = 1, r;

    (void)iface;
    if (!comma)
        return backend_fail(err, -EINVAL, "backend unix needs two paths: unix:OWN,PEER");
    if (second && !opt_number(second + 1, 68, 65535, &mtu))
        return backend_fail(err, -EINVAL, "backend unix: '%s' is no MTU", second + 1);
    u = calloc(1, sizeof *u);
    if (!u)
        return backend_fail(err, -ENOMEM, "out of memory");
    if (set_path(&u->own, args, (size_t)(comma - args)) || set_path(&u->peer, comma + 1, peer_len)) {
        free(u);
        return backend_fail(err, -EINVAL, "backend unix: a path has 1 to %zu bytes", sizeof u->own.sun_path - 1);
    }
    u->b = (struct backend){.ops = &backend_unix, .mtu = (uint32_t)mtu};
    u->b.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    r = u->b.fd < 0 ? -errno : bind_own(u->b.fd, &u->own);
    if (r < 0) {
        backend_fail(err, r, "%s: %s", u->own.sun_path,
                     r == -ENOTSOCK ? "this file is there already, and is no socket" : strerror(-r));
        if (u->b.fd >= 0)
            close(u->b.fd);
        free(u);
        return r;
    }
    setsockopt(u->b.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    if (setsockopt(u->b.fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) == 0)
        u->b.stamps = BACKEND_STAMPS_KERNEL;
    *out = &u->b;
    return 0;
}

static uint8_t *unix_room(struct backend *b)
{
    struct unix_backend *u = (struct unix_backend *)b;

    return u->n < QUEUE ? u->queue[(u->head + u->n) % QUEUE] : NULL;
}

static void unix_push(struct backend *b, uint32_t len)
{
    struct unix_backend *u = (struct unix_backend *)b;

    u->len[(u->head + u->n++) % QUEUE] = len;
}

static int unix_flush(struct backend *b)
{
    struct unix_backend *u = (struct unix_backend *)b;

    for (; u->n; u->n--, u->head = (u->head + 1) % QUEUE) {
        if (sendto(b->fd, u->queue[u->head], u->len[u->head], 0, (struct sockaddr *)&u->peer, sizeof u->peer) >= 0) {
            b->stats.sent++;
            continue;
        }
        if (errno == EAGAIN || errno == ENOBUFS)
            return -EAGAIN;
        if (errno != ENOENT && errno != ECONNREFUSED)
            return -errno;
        b->stats.unsent++; /* no peer: lost, as on an unplugged cable */
    }
    return 0;
}

/* When the kernel took the datagram from its sender, ns since 1970; 0: it does not say. */
static ns_t stamp_of(struct msghdr *m)
{
    struct timespec t;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS && c->cmsg_len >= CMSG_LEN(sizeof t)) {
            memcpy(&t, CMSG_DATA(c), sizeof t);
            return t.tv_sec * NS_PER_S + t.tv_nsec;
        }
    return 0;
}

static int unix_rx(struct backend *b, struct backend_frame *f)
{
    struct unix_backend *u = (struct unix_backend *)b;
    char said[CMSG_SPACE(sizeof(struct timespec))] __attribute__((aligned(8)));
    struct iovec v = {.iov_base = u->frame, .iov_len = sizeof u->frame};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = said, .msg_controllen = sizeof said};
    ssize_t n = recvmsg(b->fd, &m, 0);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    b->stats.received++;
    *f = (struct backend_frame){
        .data = u->frame, .len = (uint32_t)n, .ts = stamp_of(&m), .stamp = BACKEND_STAMPS_KERNEL};
    return 1;
}

static void unix_close(struct backend *b)
{
    struct unix_backend *u = (struct unix_backend *)b;

    close(b->fd);
    unlink(u->own.sun_path);
    free(u);
}

const struct backend_ops backend_unix = {
    .name = "unix",
    .args = ":OWN,PEER[,MTU]",
    .summary = "datagrams between two UNIX sockets, as QEMU's -netdev dgram; needs no privileges",
    .open = unix_open,
    .room = unix_room,
    .push = unix_push,
    .flush = unix_flush,
    .rx = unix_rx,
    .close = unix_close,
};
