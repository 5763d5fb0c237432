/* layer 3 (live): the table of backends, and their common functions. */
#include "gen/live/backend.h"

#include "buf.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

const struct backend_ops *const backends[] = {
    &backend_packet, &backend_xdp, &backend_libnet, &backend_unix, &backend_file, &backend_memory, &backend_verbs, NULL,
};

int backend_fail(struct backend_error *err, int error, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    return error;
}

const char *backend_stamps_str(enum backend_stamps s)
{
    static const char *const names[] = {"the program", "the kernel", "the interface"};

    return names[s];
}

const struct backend_ops *backend_find(const char *spec)
{
    size_t n = strcspn(spec, ":");

    for (const struct backend_ops *const *k = backends; *k; k++)
        if (strlen((*k)->name) == n && memcmp((*k)->name, spec, n) == 0)
            return *k;
    return NULL;
}

/* Append the names of the interfaces with the flag, but for loopback; returns how many they are. */
static unsigned put_ifaces(struct buf *b, const struct ifaddrs *all, unsigned flag)
{
    unsigned n = 0;

    for (const struct ifaddrs *i = all; i; i = i->ifa_next)
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_PACKET && (i->ifa_flags & (flag | IFF_LOOPBACK)) == flag)
            buf_printf(b, "%s%s", n++ ? ", " : "", i->ifa_name);
    return n;
}

/* Say which interfaces can be given: those that are up, else any. */
static int needs_iface(struct backend_error *err)
{
    struct ifaddrs *all = NULL;
    struct buf names = {0};
    unsigned n = getifaddrs(&all) == 0 ? put_ifaces(&names, all, IFF_UP) : 0;

    if (!n)
        n = put_ifaces(&names, all, 0);
    if (all)
        freeifaddrs(all);
    backend_fail(err, -EINVAL, "-I needed: the interface to use%s%.120s",
                 n > 1 ? ", one of "
                 : n   ? ", here -I "
                       : "",
                 buf_str(&names));
    buf_free(&names);
    return -EINVAL;
}

/* The kind of a specification that can be opened: 0 with *k and *args set. */
static int find(const char *spec, const char *iface, const struct backend_ops **k, const char **args,
                struct backend_error *err)
{
    size_t n = strcspn(spec, ":");

    *k = backend_find(spec);
    *args = spec[n] ? spec + n + 1 : "";
    if (!*k)
        return backend_fail(err, -ENOENT, "there is no backend '%.*s'", (int)n, spec);
    return (*k)->needs_iface && !iface ? needs_iface(err) : 0;
}

int backend_open_part(struct backend **out, const char *spec, const char *iface, const struct backend_part *part,
                      struct backend_error *err)
{
    const struct backend_ops *k;
    const char *args;
    int r = find(spec, iface, &k, &args, err);

    if (r < 0 || !part)
        return r < 0 ? r : k->open(out, args, iface, err);
    return k->open_part(out, args, iface, part, err);
}

int backend_open(struct backend **out, const char *spec, const char *iface, struct backend_error *err)
{
    return backend_open_part(out, spec, iface, NULL, err);
}

int backend_share(struct backend_shared *s, const char *spec, const char *iface, unsigned parts,
                  struct backend_error *err)
{
    const struct backend_ops *k;
    const char *args;
    int r = find(spec, iface, &k, &args, err);

    if (r == 0 && !k->open_part)
        return backend_fail(err, -ENOTSUP, "backend %s is for one process: -j needs packet or xdp", k->name);
    return r < 0 || !k->share ? r : k->share(s, args, iface, parts, err);
}

void backend_unshare(struct backend_shared *s)
{
    const int fds[] = {s->link, s->program, s->map};

    for (unsigned i = 0; i < ARRAY_LEN(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

void backend_close(struct backend *b)
{
    if (b)
        b->ops->close(b);
}

int backend_send(struct backend *b, const uint8_t *frame, uint32_t len)
{
    uint8_t *room;

    if (len > BACKEND_FRAME_MAX)
        return -EMSGSIZE;
    room = b->ops->room(b);
    if (!room)
        return -EAGAIN;
    memcpy(room, frame, len);
    b->ops->push(b, len);
    return 0;
}

const struct backend_stats *backend_stats(struct backend *b)
{
    if (b->ops->count)
        b->ops->count(b);
    return &b->stats;
}
