/* layer 3 (agent): the commands of devices: listed, opened, queried; what the host says of itself. */
#include "gen/agent/agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

static int cmd_list(struct agent *a, struct request *r)
{
    (void)r;
    return a->rnic->ops->list(a->rnic, &a->reply);
}

static int cmd_open(struct agent *a, struct request *r)
{
    char name[64];
    int e;

    strcpy(name, a->only);
    if (!request_text(r, "name", name, sizeof name))
        return -EINVAL;
    if (*a->only && strcmp(name, a->only) != 0)
        return request_wrong(r, "this agent serves %s only", a->only), -EACCES;
    if (a->open)
        return -EBUSY;
    e = a->rnic->ops->open(a->rnic, name);
    if (e < 0)
        return e;
    a->open = true;
    buf_printf(&a->reply, " dev=%s", a->rnic->ops->device(a->rnic));
    return 0;
}

static int cmd_query(struct agent *a, struct request *r)
{
    (void)r;
    return a->rnic->ops->query(a->rnic, &a->reply);
}

static bool port_of(struct request *r, uint32_t *port)
{
    *port = 1;
    return request_u32(r, "port", 0, 255, port);
}

static int cmd_port(struct agent *a, struct request *r)
{
    uint32_t port;

    return port_of(r, &port) ? a->rnic->ops->query_port(a->rnic, port, &a->reply) : -EINVAL;
}

static int cmd_gid(struct agent *a, struct request *r)
{
    uint32_t port;

    return port_of(r, &port) ? a->rnic->ops->query_gids(a->rnic, port, &a->reply) : -EINVAL;
}

static int cmd_pkey(struct agent *a, struct request *r)
{
    uint32_t port;

    if (!port_of(r, &port))
        return -EINVAL;
    return a->rnic->ops->query_pkeys ? a->rnic->ops->query_pkeys(a->rnic, port, &a->reply) : -ENOSYS;
}

/* A text as a value of a line: what is not printable, and blanks, become _. */
static void say_text(struct buf *b, const char *key, const char *text)
{
    buf_printf(b, " %s=", key);
    for (; *text; text++)
        buf_char(b, *text > ' ' && *text <= '~' ? *text : '_');
}

/* The last part of what a link of the device's directory points to. */
static void say_link(struct agent *a, const char *key, const char *link)
{
    char path[256], to[256];
    ssize_t n;

    snprintf(path, sizeof path, "/sys/class/infiniband/%s/%s", a->rnic->ops->device(a->rnic), link);
    n = readlink(path, to, sizeof to - 1);
    if (n <= 0)
        return;
    to[n] = '\0';
    say_text(&a->reply, key, strrchr(to, '/') ? strrchr(to, '/') + 1 : to);
}

static int cmd_info(struct agent *a, struct request *r)
{
    struct utsname u;
    struct rlimit l;

    (void)r;
    buf_printf(&a->reply, " protocol=%d provider=%s", AGENT_PROTOCOL, a->rnic->ops->name);
    if (uname(&u) == 0) {
        say_text(&a->reply, "kernel", u.release);
        say_text(&a->reply, "machine", u.machine);
    }
    if (getrlimit(RLIMIT_MEMLOCK, &l) == 0)
        buf_printf(&a->reply, " memlock=%llu", (unsigned long long)l.rlim_cur);
    buf_printf(&a->reply, " max_mem=%llu max_qp=%u", (unsigned long long)a->limits.max_mem, a->limits.max_qp);
    if (a->open) {
        buf_printf(&a->reply, " dev=%s", a->rnic->ops->device(a->rnic));
        say_link(a, "driver", "device/driver");
        say_link(a, "pci", "device");
    }
    return 0;
}

const struct agent_command agent_device[] = {
    {"info", "", "the host, and the limits of a client", cmd_info, 0},
    {"dev list", "", "list the RDMA devices", cmd_list, 0},
    {"dev open", "[name=DEVICE]", "open a device; the first one without name=", cmd_open, 0},
    {"dev query", "", "its attributes", cmd_query, AGENT_DEVICE},
    {"port", "[port=N]", "the attributes of a port", cmd_port, AGENT_DEVICE},
    {"gid", "[port=N]", "the GIDs of a port (0: of all): index, GID, type, network interface", cmd_gid, AGENT_DEVICE},
    {"pkey", "[port=N]", "the P_Keys of a port: index, P_Key", cmd_pkey, AGENT_DEVICE},
    {NULL, NULL, NULL, NULL, 0},
};
