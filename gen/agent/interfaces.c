/* layer 3 (agent): the network interfaces of the device that is open. */
#include "gen/agent/interfaces.h"

#include <errno.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define INTERFACES 16 /* most interfaces of a device */

void each_interface(struct rnic *r, void (*say)(struct buf *out, const char *iface), struct buf *out)
{
    char seen[INTERFACES][IF_NAMESIZE];
    struct buf gids = {0};
    unsigned n_seen = 0, k;

    r->ops->query_gids(r, 0, &gids);
    for (const char *p = strstr(buf_str(&gids), " gid="); p && n_seen < INTERFACES; p = strstr(p + 1, " gid=")) {
        if (sscanf(p, " gid=%*u,%*[^, ],%*[^, ],%15[^ ]", seen[n_seen]) != 1 || strcmp(seen[n_seen], "-") == 0)
            continue;
        for (k = 0; strcmp(seen[k], seen[n_seen]) != 0; k++)
            continue;
        if (k == n_seen)
            say(out, seen[n_seen++]);
    }
    buf_free(&gids);
}

int interface_ethtool(const char *iface, void *command)
{
    struct ifreq r = {.ifr_data = command};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), e;

    if (fd < 0)
        return -errno;
    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", iface);
    e = ioctl(fd, SIOCETHTOOL, &r) < 0 ? -errno : 0;
    close(fd);
    return e;
}
