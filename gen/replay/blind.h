/* layer 3 (replay): packets of a capture sent again as they were, to other addresses, with new Ethernet headers and
 * checksums. Nothing that arrives is looked at. */
#ifndef RDMATRACE_GEN_REPLAY_BLIND_H
#define RDMATRACE_GEN_REPLAY_BLIND_H

#include "dissect/pkt.h"
#include "src/conn/addr.h"

/* What is changed in a frame. */
struct blind_opts {
    uint8_t mac[2][6];  /* source, destination */
    uint16_t vlan;      /* of the 802.1Q tag; 0: none */
    uint8_t pcp;        /* its priority */
    uint8_t gid[2][16]; /* likewise; IPv4: mapped */
    bool has_qpn;
    uint32_t qpn; /* destination queue pair of requests and responses */
    bool has_psn;
    uint32_t shift; /* added to PSNs, modulo 2^24 */
};

/* What became of a frame. */
enum blind { BLIND_MADE, BLIND_OTHER, BLIND_CUT };

#define BLIND_HEAD 18 /* bytes of the new Ethernet header, at most */

/* Make at `to` a frame of packet `p`, of *len bytes: at most p->caplen + BLIND_HEAD. BLIND_OTHER: it is no RoCEv2
 * packet of the family of the addresses, or in a tunnel; BLIND_CUT: it was not captured in full. */
enum blind blind_make(const struct blind_opts *o, const struct pkt *p, uint8_t *to, uint32_t *len);

#endif
