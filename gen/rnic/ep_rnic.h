/* layer 3 (rnic): an endpoint of gen/endpoint as a device in virtual time, for the same commands as a real one (the
 * "twin"). RC, UC, UD and XRC initiators; no XRC targets, and no multicast. */
#ifndef RDMATRACE_GEN_RNIC_EP_RNIC_H
#define RDMATRACE_GEN_RNIC_EP_RNIC_H

#include "gen/endpoint/endpoint.h"
#include "gen/rnic/rnic.h"

struct ep_rnic_config {
    struct endpoint *ep; /* the caller's; it must outlive the device */
    const ns_t *now;     /* virtual time, which the caller advances */
    /* The MAC address of a GID, as ARP or neighbour discovery would find it; false: no host has the GID. */
    bool (*resolve)(void *user, const uint8_t gid[16], uint8_t mac[6]);
    /* A request arrived on this queue pair before the RTU; NULL: nobody wants to know. */
    void (*established)(void *user, int qp);
    void *user;
};

/* The device "twin", not open yet. Its close() leaves the endpoint as it is. NULL: no memory. */
struct rnic *ep_rnic_new(const struct ep_rnic_config *c);

#endif
