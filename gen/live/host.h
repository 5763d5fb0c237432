/* layer 3 (live): this host: addresses of its interfaces, routes, RoCE devices, UDP ports, capabilities. */
#ifndef RDMATRACE_GEN_LIVE_HOST_H
#define RDMATRACE_GEN_LIVE_HOST_H

#include "gen/live/live.h"

/* Name of the interface through which the host reaches `peer`. 0, or a negative errno. */
int host_route(const uint8_t peer[16], char *iface, size_t size);
/* True for an IPv6 address valid on one link only (fe80::/10). */
bool host_link_local(const uint8_t gid[16]);
/* An address of the interface; IPv6: one with the scope (link-local or not) of `peer`, if given; else a link-local one
 * only if there is no other. -EADDRNOTAVAIL: none. */
int host_address(const char *iface, bool v6, const uint8_t *peer, uint8_t gid[16]);
/* Name of the interface of this host with this address. 0; -ENODEV: none; another negative errno. */
int host_owner(const uint8_t gid[16], char *iface, size_t size);
/* GID of a socket address; false: neither IPv4 nor IPv6. */
struct sockaddr;
bool host_gid(const struct sockaddr *s, uint8_t gid[16]);
/* bit/s of an interface; 0: not known, as of virtual ones. */
uint64_t host_speed(const char *iface);
/* Bind UDP port 4791 of an address; datagrams to it are dropped without an ICMP error. The descriptor, or a negative
 * errno. */
int host_hold_port(const uint8_t gid[16], const char *iface);
/* Give up all capabilities; or all but `keep`, bits by their numbers (capabilities(7)), as far as they are there. */
void host_drop_capabilities(void);
void host_keep_capabilities(uint64_t keep);

#endif
