/* layer 3 (replay): frames of a capture sent again as they were, to other addresses, with new checksums. Nothing that
 * arrives is looked at. */
#ifndef RDMATRACE_GEN_REPLAY_BLIND_H
#define RDMATRACE_GEN_REPLAY_BLIND_H

#include "dissect/pkt.h"
#include "src/conn/addr.h"

/* What is changed in a frame. */
struct blind_opts {
    uint8_t mac[2][6];  /* source, destination */
    uint8_t gid[2][16]; /* likewise; IPv4: mapped */
    bool has_qpn;
    uint32_t qpn; /* destination queue pair of requests and responses */
    bool has_psn;
    uint32_t shift; /* added to PSNs, modulo 2^24 */
};

/* What became of a frame. */
enum blind { BLIND_MADE, BLIND_OTHER, BLIND_CUT };

/* Copy the frame of packet `p` to `to`, p->caplen bytes, and change it. BLIND_OTHER: it is no RoCEv2 packet on Ethernet
 * of the family of the addresses, or in a tunnel; BLIND_CUT: it was not captured in full. */
enum blind blind_make(const struct blind_opts *o, const struct pkt *p, uint8_t *to);

#endif
