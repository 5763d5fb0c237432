/* layer 1 (wire): the TCP parameter exchange of test programs: each side describes its queue pair in one line of text.
 *
 *   ibv_*_pingpong   "lid:qpn:psn:gid"                          (libibverbs/examples)
 *   perftest         "lid:reads:qpn:psn:rkey:va[:gid]:srqn"     (perftest_communication.c)
 *
 * The gid of perftest is 16 words of one byte each. */
#ifndef RDMATRACE_DISSECT_IP_TCP_EXCHANGE_H
#define RDMATRACE_DISSECT_IP_TCP_EXCHANGE_H

#include "types.h"

/* What one side of a parameter exchange tells about its queue pair. Numbers are in host order. */
struct exchange {
    uint8_t addr[16]; /* the GID, or the LID, big-endian, in the last two bytes after zeros */
    uint32_t qpn;     /* number of the queue pair */
    uint32_t psn;     /* PSN of the first request that this side sends */
    uint32_t srqn;    /* perftest: number of its shared receive queue, with XRC; else 0 */
    bool have_addr;   /* `addr` is set; false: use the addresses of the TCP connection */
};

/* Parse the payload of a TCP segment, `len` bytes, as the line of one side; false if it is not such a line, or
 * one of zeros: ibv_srq_pingpong sends 256 lines, of which only the first ones are of queue pairs. */
bool exchange_parse(struct exchange *e, const uint8_t *p, size_t len);

#endif
