/* layer 3 (live): an identity on a network: own addresses, replies to ARP and neighbour discovery, MAC addresses of
 * neighbours.
 *
 * No I/O: frames go in, frames come out. Neighbours requested with identity_ask() are in a table from which no other
 * station can evict a neighbour that has replied; a later reply changes its MAC address. Senders of RoCE packets are
 * in a second table of fixed size, in which newer entries replace older ones. */
#ifndef RDMATRACE_GEN_LIVE_NEIGH_H
#define RDMATRACE_GEN_LIVE_NEIGH_H

#include "types.h"

#define IDENTITY_NEIGHBOURS 64  /* neighbours that can be requested */
#define IDENTITY_SEEN       256 /* senders remembered */
#define IDENTITY_FRAME_MAX  96  /* bytes that a frame made here takes at most */

struct neighbour {
    uint8_t gid[16]; /* address; IPv4 as IPv4-mapped */
    uint8_t mac[6];
    bool used, known; /* known: mac is valid */
};

struct identity {
    uint8_t mac[6];
    uint8_t gid[16];    /* own address; IPv4 as IPv4-mapped */
    uint32_t more;      /* so many more own addresses follow `gid`, each with the MAC address that follows; else 0 */
    bool has_vlan;      /* frames carry an 802.1Q tag; others are not ours */
    uint16_t vlan;      /* its VLAN id, 1 to 4094 */
    uint8_t pcp;        /* its priority, 0 to 7 */
    bool answer;        /* reply to requests for `gid` (false: the host's own stack does) */
    uint64_t answered;  /* requests replied to */
    uint64_t conflicts; /* frames in which another station claims our address */
    struct neighbour neighbours[IDENTITY_NEIGHBOURS];
    struct neighbour seen[IDENTITY_SEEN];
};

/* All zero but the addresses and `answer`. */
void identity_init(struct identity *id, const uint8_t mac[6], const uint8_t gid[16]);
/* The MAC address of the own address with number `n`, 0: `gid`. */
void identity_own_mac(const struct identity *id, uint32_t n, uint8_t mac[6]);
/* A locally administered unicast MAC address that depends on `gid` alone. */
void identity_derive_mac(uint8_t mac[6], const uint8_t gid[16]);
/* Receive a frame, which may be hostile: learn MAC addresses, and write the reply to a request for our address to `out`
 * (IDENTITY_FRAME_MAX bytes). Returns the length of the reply; 0: none. */
uint32_t identity_rx(struct identity *id, const uint8_t *frame, uint32_t len, uint8_t *out);
/* Write a request for the MAC address of `gid` to `out`: its length. 0: none, the address is multicast, of another
 * family, or too many were requested. */
uint32_t identity_ask(struct identity *id, const uint8_t gid[16], uint8_t *out);
/* Write a broadcast frame that announces our MAC address (gratuitous ARP, unsolicited neighbour advertisement): its
 * length. */
uint32_t identity_announce(struct identity *id, uint8_t *out);
/* The MAC address of `gid`, if it is known; that of a multicast address always is. */
bool identity_lookup(const struct identity *id, const uint8_t gid[16], uint8_t mac[6]);

#endif
