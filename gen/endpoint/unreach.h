/* layer 3 (endpoint): ICMP errors that say a host, or its RoCE port, cannot be reached (RFC 792, RFC 4443).
 *
 * No I/O: frames go in. Anybody on the way can send such a message, so it is believed only while nothing has come from
 * the host yet: that is the caller's to know. */
#ifndef RDMATRACE_GEN_ENDPOINT_UNREACH_H
#define RDMATRACE_GEN_ENDPOINT_UNREACH_H

#include "types.h"

struct unreachable {
    bool known;       /* there was one; of several the latest */
    uint8_t gid[16];  /* whom we had sent to; IPv4 as IPv4-mapped */
    uint8_t from[16]; /* who says so: the host, or a router */
    bool v6;          /* `code` is of ICMPv6 */
    uint8_t code;     /* of the ICMP message */
};

/* Whether a frame, which may be hostile and has no VLAN tag or one, is an ICMP or ICMPv6 message "destination
 * unreachable". Then *u is filled if it quotes a RoCEv2 packet of `own`. */
bool unreachable_rx(struct unreachable *u, const uint8_t own[16], const uint8_t *frame, uint32_t len);
/* What the message says: "port unreachable", "host unreachable", ... */
const char *unreachable_str(const struct unreachable *u);

#endif
