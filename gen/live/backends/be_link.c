/* layer 3 (live): backends: the state of the interface while it is in use. */
#include "gen/live/backend.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

void backend_on(struct backend *b, const char *iface)
{
    snprintf(b->iface, sizeof b->iface, "%s", iface);
    b->index = (int)if_nametoindex(iface);
}

/* Find the interface by its index: its name may have changed, or belong to another interface. */
static enum backend_link look(const struct backend *b)
{
    int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r = {.ifr_ifindex = b->index};
    enum backend_link link = BACKEND_UP;

    if (s < 0)
        return (enum backend_link)b->link;
    if (ioctl(s, SIOCGIFNAME, &r) < 0 || ioctl(s, SIOCGIFFLAGS, &r) < 0)
        link = errno == ENODEV || errno == ENXIO ? BACKEND_GONE : (enum backend_link)b->link;
    else if (!(r.ifr_flags & IFF_UP))
        link = BACKEND_DOWN;
    close(s);
    return link;
}

static void tell(struct backend *b, const char *what)
{
    char line[64];

    snprintf(line, sizeof line, "interface %s %s", b->iface, what);
    if (b->say)
        b->say(line);
}

static int look_again(struct backend *b)
{
    static const char *const became[] = {"is up again", "is down: frames are lost until it is up", "is gone"};
    enum backend_link link;
    socklen_t n = sizeof(int);
    int error = 0;

    b->trouble = false;
    if (b->fd >= 0 && getsockopt(b->fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
        error = errno;
    if (!b->index)
        return -error;
    link = look(b);
    if (link != b->link)
        tell(b, became[link]);
    else if (link == BACKEND_UP && error == ENETDOWN)
        tell(b, "was down for a moment");
    b->link = (uint8_t)link;
    return link == BACKEND_GONE ? -ENODEV : error == ENETDOWN || error == ENXIO ? 0 : -error;
}

int backend_check(struct backend *b)
{
    return b->trouble || b->link != BACKEND_UP ? look_again(b) : 0;
}

int backend_why(struct backend *b, int error)
{
    return b->index && look_again(b) == -ENODEV ? -ENODEV : error;
}

void backend_polled(struct backend *b, short revents)
{
    if (revents & (POLLERR | POLLHUP | POLLNVAL))
        b->trouble = true;
}

bool backend_lost(struct backend *b, int error)
{
    bool down = error == ENETDOWN || error == ENXIO;

    if (down && b->index)
        b->trouble = true;
    return error == ENOBUFS || error == EMSGSIZE || (down && b->index);
}
