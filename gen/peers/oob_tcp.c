/* layer 3 (peers): the out-of-band channel: exchanging the parameters of queue pairs by TCP or SENDs. */
#include "gen/peers/oob_tcp.h"
#include "gen/live/host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define STEP (2 * NS_PER_MS) /* interval at which the TCP connection is polled */

/* Wait for a socket to become readable or writable: 0, -ETIMEDOUT, or as live_step(). */
static int wait_socket(struct live *l, int s, short events, ns_t end)
{
    struct pollfd p = {.fd = s, .events = events};

    while (poll(&p, 1, 0) <= 0) { /* or interrupted: live_step() decides whether to stop */
        int r = live_now() > end ? -ETIMEDOUT
                : l              ? live_look(l, live_now() + STEP, NS_NEVER)
                                 : live_wait(&p, 1, live_now() + STEP);
        if (r < 0)
            return r;
    }
    return 0;
}

static int recv_message(struct chan *c, void *data, size_t len)
{
    ns_t end = live_now() + c->wait;
    uint8_t message[RCHAN_MAX];
    int r, n;

    for (;;) {
        rchan_poll(c->rdma, live_now());
        n = rchan_take(c->rdma, message, live_now());
        if (n >= 0)
            break;
        if (c->rdma->failed)
            return -ECONNRESET;
        r = live_now() > end ? -ETIMEDOUT : live_step(c->live, end);
        if (r < 0)
            return r;
    }
    if ((size_t)n != len)
        return -EPROTO;
    memcpy(data, message, len);
    return 0;
}

int chan_recv(struct chan *c, void *data, size_t len)
{
    ns_t end = live_now() + c->wait;

    if (c->rdma)
        return recv_message(c, data, len);

    for (size_t got = 0; got < len;) {
        int r = wait_socket(c->live, c->fd, POLLIN, end);
        ssize_t n = r < 0 ? 0 : recv(c->fd, (uint8_t *)data + got, len - got, 0);
        if (r < 0)
            return r;
        if (n <= 0)
            return n == 0 ? -ECONNRESET : -errno;
        got += (size_t)n;
    }
    record_tcp(&c->stream, c->fd, false, data, len);
    return 0;
}

int chan_send(struct chan *c, const void *data, size_t len)
{
    ssize_t n;

    if (c->rdma)
        return rchan_send(c->rdma, data, len, live_now());
    n = send(c->fd, data, len, MSG_NOSIGNAL);
    if (n != (ssize_t)len)
        return n < 0 ? -errno : -EIO;
    record_tcp(&c->stream, c->fd, true, data, len);
    return 0;
}

int chan_swap(struct chan *c, bool client, const void *mine, void *theirs, size_t len)
{
    int r = client ? chan_send(c, mine, len) : chan_recv(c, theirs, len);

    if (r == 0)
        r = client ? chan_recv(c, theirs, len) : chan_send(c, mine, len);
    return r;
}

/* A link-local address needs a scope: the interface of the RDMA traffic. */
static void set_scope(const struct live *l, struct sockaddr_in6 *a)
{
    uint8_t gid[16];

    if (l && !a->sin6_scope_id && host_gid((struct sockaddr *)a, gid) && host_link_local(gid))
        a->sin6_scope_id = (uint32_t)l->backend->index;
}

int chan_dial(struct chan *c, struct live *l, const char *host, uint16_t port, ns_t wait)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *a = NULL;
    int err = 0, r;
    socklen_t len = sizeof err;
    char text[8];

    *c = (struct chan){.live = l, .fd = -1, .wait = wait, .stream.live = l};
    snprintf(text, sizeof text, "%u", port);
    if (getaddrinfo(host, text, &hints, &a) != 0)
        return -EADDRNOTAVAIL;
    if (a->ai_family == AF_INET6)
        set_scope(l, (struct sockaddr_in6 *)(void *)a->ai_addr);
    c->fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    r = c->fd < 0 || (connect(c->fd, a->ai_addr, a->ai_addrlen) < 0 && errno != EINPROGRESS) ? -errno : 0;
    freeaddrinfo(a);
    if (r == 0)
        r = wait_socket(l, c->fd, POLLOUT, live_now() + wait);
    if (r == 0 && getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len) == 0 && err)
        r = -err;
    if (r < 0)
        chan_close(c);
    return r;
}

int chan_listen(const uint8_t *gid, uint16_t port)
{
    /* any address, IPv4 included (mapped, as in GIDs) */
    struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    int l = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, off = 0, r;

    if (l < 0)
        return -errno;
    if (gid)
        memcpy(&at.sin6_addr, gid, 16);
    setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(l, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(l, (struct sockaddr *)&at, sizeof at) == 0 && listen(l, 8) == 0)
        return l;
    r = -errno;
    close(l);
    return r;
}

int chan_accept(struct chan *c, struct live *l, int listener, ns_t wait)
{
    int r;

    *c = (struct chan){.live = l, .fd = -1, .wait = wait, .stream.live = l};
    r = wait_socket(l, listener, POLLIN, NS_NEVER);
    if (r == 0)
        c->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (r == 0 && c->fd < 0)
        r = -errno;
    return r;
}

void chan_close(struct chan *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}
