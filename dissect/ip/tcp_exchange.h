/* layer 1 (wire): the TCP parameter exchange of test programs: what each side says about its queue pair, in text.
 *
 *   ibv_*_pingpong   "lid:qpn:psn:gid"                          (libibverbs/examples)
 *   perftest         "lid:reads:qpn:psn:rkey:va[:gid]:srqn"     (perftest_communication.c), gid as 16
 * bytes */
#ifndef RDMATRACE_DISSECT_IP_TCP_EXCHANGE_H
#define RDMATRACE_DISSECT_IP_TCP_EXCHANGE_H

#include "types.h"

/* One side's half of a parameter exchange. */
struct exchange {
    uint8_t addr[16]; /* GID; or zeros and the LID in the last two bytes */
    uint32_t qpn;
    uint32_t psn;   /* first PSN that this side sends */
    bool have_addr; /* false: the addresses of the TCP connection count */
};

/* Parse one side's line, which is all of a segment's payload; false: it is none. */
bool exchange_parse(struct exchange *e, const uint8_t *p, size_t len);

#endif
