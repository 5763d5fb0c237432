/* layer 2b (counters): the counters of an RDMA device of this host. */
#include "src/counters/device.h"

#include <arpa/inet.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define VALUE_MAX   64   /* bytes read of a file */
#define FILES_MAX   4096 /* files read of a device */
#define LIFESPAN_NS (10 * NS_PER_MS)

/* The first line of a file, without its end; false: it cannot be read. */
static bool read_line(const char *path, char line[VALUE_MAX])
{
    FILE *f = fopen(path, "re");
    bool good = f && fgets(line, VALUE_MAX, f);

    if (f)
        fclose(f);
    if (good)
        line[strcspn(line, "\n")] = '\0';
    return good;
}

/* Call `take` for each file that matches a pattern below the device. */
static void each_file(const struct device *d, const char *pattern, void (*take)(void *user, const char *path),
                      void *user)
{
    char full[sizeof d->path + 64];
    glob_t found;

    snprintf(full, sizeof full, "%s/%s", d->path, pattern);
    if (glob(full, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc && i < FILES_MAX; i++)
        take(user, found.gl_pathv[i]);
    globfree(&found);
}

static void take_gid(void *user, const char *path)
{
    struct device *d = user;
    struct conn_addr a = {0};
    char line[VALUE_MAX];

    if (d->n_addr == DEVICE_ADDRS || !read_line(path, line) || inet_pton(AF_INET6, line, a.b) != 1)
        return;
    if (load_be64(a.b + 8)) /* entries that are not used are 0, or a prefix alone */
        d->addr[d->n_addr++] = a;
}

static void take_lifespan(void *user, const char *path)
{
    struct device *d = user;
    char line[VALUE_MAX];
    long ms = read_line(path, line) ? strtol(line, NULL, 10) : 0;

    if (ms > 0 && ms < 60000 && ms * NS_PER_MS > d->lifespan)
        d->lifespan = ms * NS_PER_MS;
}

int device_find(struct device *d, const char *name)
{
    bool path = strchr(name, '/') != NULL;
    char ports[sizeof d->path + 8];

    *d = (struct device){.lifespan = LIFESPAN_NS};
    if ((size_t)snprintf(d->path, sizeof d->path, "%s%s", path ? "" : "/sys/class/infiniband/", name) >= sizeof d->path)
        return -ENAMETOOLONG;
    snprintf(ports, sizeof ports, "%s/ports", d->path);
    return access(ports, R_OK | X_OK) < 0 ? -errno : 0;
}

int device_open(struct device *d, const char *name)
{
    int e = device_find(d, name);

    if (e < 0)
        return e;
    each_file(d, "ports/*/gids/*", take_gid, d);
    each_file(d, "ports/*/hw_counters/lifespan", take_lifespan, d);
    return 0;
}

static void take_counter(void *user, const char *path)
{
    char line[VALUE_MAX];

    if (read_line(path, line))
        buf_printf(user, "%s:%s\n", strrchr(path, '/') + 1, line);
}

void device_read(const struct device *d, struct buf *text)
{
    static const char *const patterns[] = {"ports/*/hw_counters/*", "ports/*/counters/*", "hw_counters/*"};

    for (unsigned i = 0; i < ARRAY_LEN(patterns); i++)
        each_file(d, patterns[i], take_counter, text);
}
