/* layer 2b (counters): the counters of an RDMA device of this host. */
#ifndef RDMATRACE_COUNTERS_DEVICE_H
#define RDMATRACE_COUNTERS_DEVICE_H

#include "buf.h"
#include "src/conn/addr.h"

#define DEVICE_ADDRS 64 /* addresses of a device that are kept */

struct device {
    char path[256];                      /* its directory, as in sysfs */
    struct conn_addr addr[DEVICE_ADDRS]; /* its GIDs that are not 0, IPv4 addresses as mapped ones */
    unsigned n_addr;
    ns_t lifespan; /* ns for which the driver may return what it read before; at least 10 ms */
};

/* `name`: as in /sys/class/infiniband, or a directory laid out so, which contains a slash. 0 or a negative errno:
 * -ENOENT if there is none. */
int device_open(struct device *d, const char *name);
/* Likewise, for device_read() alone: the addresses are not read, of which there may be a thousand. */
int device_find(struct device *d, const char *name);
/* Append a line "name:value" for each counter of its ports: hw_counters and counters. Values are as the files have
 * them, also such as "N/A (no PMA)". */
void device_read(const struct device *d, struct buf *text);

#endif
