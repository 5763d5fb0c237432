/* layer 3 (live): what this host knows: its interfaces' addresses, routes, RoCE devices, UDP ports, capabilities. */
#ifndef RDMATRACE_GEN_LIVE_HOST_H
#define RDMATRACE_GEN_LIVE_HOST_H

#include "gen/live/live.h"

/* Name of the interface through which the host reaches `peer`. 0, or a negative errno. */
int host_route(const uint8_t peer[16], char *iface, size_t size);
/* Whether an address is IPv6 and holds on one link only (fe80::/10). */
bool host_link_local(const uint8_t gid[16]);
/* The interface's own address of a family; with IPv6 one of the same scope (link-local or not) as `peer`, if that is
 * given; else a link-local one only if there is no other. -EADDRNOTAVAIL: it has none. */
int host_address(const char *iface, bool v6, const uint8_t *peer, uint8_t gid[16]);
/* Name of the interface of this host that has this address. 0; -ENODEV: none has; another negative errno. */
int host_owner(const uint8_t gid[16], char *iface, size_t size);
/* GID of a socket address; false: of neither family. */
struct sockaddr;
bool host_gid(const struct sockaddr *s, uint8_t gid[16]);
/* Bind UDP port 4791 of an address; datagrams to it are dropped without an ICMP error. The descriptor, or a negative
 * errno. */
int host_hold_port(const uint8_t gid[16], const char *iface);
/* Give up all capabilities. */
void host_drop_capabilities(void);

#endif
