/* layer 3 (live): addresses, routes and ports of this host. */
#include "gen/live/host.h"

#include "dissect/ib/ib.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

bool live_parse_host(const char *text, uint8_t gid[16])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:-_%";
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *a = NULL;
    bool ok = true;

    if (text[strspn(text, letters)]) /* not a host name: do not query name servers */
        return false;
    if (getaddrinfo(text, NULL, &hints, &a) != 0)
        return false;
    if (a->ai_family == AF_INET)
        gid_from_ipv4(gid, ntohl(((struct sockaddr_in *)(void *)a->ai_addr)->sin_addr.s_addr));
    else if (a->ai_family == AF_INET6)
        memcpy(gid, &((struct sockaddr_in6 *)(void *)a->ai_addr)->sin6_addr, 16);
    else
        ok = false;
    freeaddrinfo(a);
    return ok;
}

const char *live_addr_str(const uint8_t gid[16])
{
    static char text[INET6_ADDRSTRLEN];

    if (gid_is_ipv4(gid))
        return inet_ntop(AF_INET, gid + 12, text, sizeof text);
    return inet_ntop(AF_INET6, gid, text, sizeof text);
}

/* Socket address of a GID; its length. */
static socklen_t to_sockaddr(struct sockaddr_storage *s, const uint8_t gid[16], uint16_t port, unsigned scope)
{
    struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_scope_id = scope};

    memset(s, 0, sizeof *s);
    if (gid_is_ipv4(gid)) {
        memcpy(&a4.sin_addr, gid + 12, 4);
        memcpy(s, &a4, sizeof a4);
        return sizeof a4;
    }
    memcpy(&a6.sin6_addr, gid, 16);
    memcpy(s, &a6, sizeof a6);
    return sizeof a6;
}

bool host_gid(const struct sockaddr *s, uint8_t gid[16])
{
    if (s && s->sa_family == AF_INET)
        gid_from_ipv4(gid, ntohl(((const struct sockaddr_in *)(const void *)s)->sin_addr.s_addr));
    else if (s && s->sa_family == AF_INET6)
        memcpy(gid, &((const struct sockaddr_in6 *)(const void *)s)->sin6_addr, 16);
    else
        return false;
    return true;
}

int host_owner(const uint8_t gid[16], char *iface, size_t size)
{
    struct ifaddrs *all = NULL, *i;
    uint8_t other[16];
    int r = -ENODEV;

    if (getifaddrs(&all) < 0)
        return -errno;
    for (i = all; i && r == -ENODEV; i = i->ifa_next)
        if (host_gid(i->ifa_addr, other) && memcmp(gid, other, 16) == 0)
            r = snprintf(iface, size, "%s", i->ifa_name) < (int)size ? 0 : -ENAMETOOLONG;
    freeifaddrs(all);
    return r;
}

int host_route(const uint8_t peer[16], char *iface, size_t size)
{
    struct sockaddr_storage to, own;
    socklen_t n = to_sockaddr(&to, peer, UDP_PORT_ROCEV2, 0), own_len = sizeof own;
    int s = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), r = 0;
    uint8_t gid[16];

    if (s < 0)
        return -errno;
    if (connect(s, (struct sockaddr *)&to, n) < 0 || getsockname(s, (struct sockaddr *)&own, &own_len) < 0)
        r = -errno;
    close(s);
    return r < 0 || !host_gid((struct sockaddr *)&own, gid) ? r : host_owner(gid, iface, size);
}

bool host_link_local(const uint8_t gid[16])
{
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

/* The first address of an interface with this family and, for IPv6, this scope. */
static int first_address(const struct ifaddrs *i, const char *iface, bool v6, bool local, uint8_t gid[16])
{
    uint8_t a[16];

    for (; i; i = i->ifa_next) {
        if (strcmp(i->ifa_name, iface) != 0 || !host_gid(i->ifa_addr, a) || gid_is_ipv4(a) == v6 ||
            (v6 && host_link_local(a) != local))
            continue;
        memcpy(gid, a, 16);
        return 0;
    }
    return -EADDRNOTAVAIL;
}

int host_address(const char *iface, bool v6, const uint8_t *peer, uint8_t gid[16])
{
    struct ifaddrs *all = NULL;
    int r;

    if (getifaddrs(&all) < 0)
        return -errno;
    r = first_address(all, iface, v6, peer && host_link_local(peer), gid);
    if (r < 0 && v6 && !peer)
        r = first_address(all, iface, v6, true, gid);
    freeifaddrs(all);
    return r;
}

int host_hold_port(const uint8_t gid[16], const char *iface)
{
    struct sock_filter nothing[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
    struct sock_fprog prog = {.len = ARRAY_LEN(nothing), .filter = nothing};
    struct sockaddr_storage at;
    socklen_t n = to_sockaddr(&at, gid, UDP_PORT_ROCEV2, host_link_local(gid) ? if_nametoindex(iface) : 0);
    int s = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;

    if (s < 0)
        return -errno;
    if (setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof prog) < 0 || bind(s, (struct sockaddr *)&at, n) < 0) {
        r = -errno;
        close(s);
        return r;
    }
    return s;
}

void host_keep_capabilities(uint64_t keep)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct own[2] = {{0}};

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    syscall(SYS_capget, &head, own);
    for (unsigned i = 0; i < 2; i++, keep >>= 32) {
        own[i].permitted &= (uint32_t)keep;
        own[i].effective = own[i].permitted;
        own[i].inheritable = 0;
    }
    syscall(SYS_capset, &head, own);
}

void host_drop_capabilities(void)
{
    host_keep_capabilities(0);
}

/* True if a small file has this text, without the newline. */
static bool file_is(const char *path, const char *text)
{
    char got[64] = "";
    FILE *f = fopen(path, "r");

    if (!f)
        return false;
    if (!fgets(got, sizeof got, f))
        got[0] = 0;
    fclose(f);
    got[strcspn(got, "\n")] = 0;
    return strcmp(got, text) == 0;
}

uint64_t host_speed(const char *iface)
{
    char path[64];
    unsigned long long mbps = 0;
    FILE *f;

    if (snprintf(path, sizeof path, "/sys/class/net/%s/speed", iface) >= (int)sizeof path || !(f = fopen(path, "r")))
        return 0;
    if (fscanf(f, "%llu", &mbps) != 1 || mbps > 10000000) /* unknown: -1 */
        mbps = 0;
    fclose(f);
    return mbps * 1000000;
}

/* True if a file in the folder has this text. */
static bool any_file_is(const char *folder, const char *text)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    char path[600];
    bool found = false;

    while (d && !found && (e = readdir(d)))
        if (e->d_name[0] != '.' && snprintf(path, sizeof path, "%s/%s", folder, e->d_name) < (int)sizeof path)
            found = file_is(path, text);
    if (d)
        closedir(d);
    return found;
}

bool live_roce_device(const char *sysfs, const char *iface, char *name, size_t size)
{
    DIR *d = opendir(sysfs);
    struct dirent *e;
    char folder[600];
    bool found = false;

    while (d && !found && (e = readdir(d))) {
        for (unsigned port = 1; e->d_name[0] != '.' && port <= 4 && !found; port++)
            found = snprintf(folder, sizeof folder, "%s/%s/ports/%u/gid_attrs/ndevs", sysfs, e->d_name, port) <
                        (int)sizeof folder &&
                    any_file_is(folder, iface);
        if (found)
            snprintf(name, size, "%s", e->d_name);
    }
    if (d)
        closedir(d);
    return found;
}
