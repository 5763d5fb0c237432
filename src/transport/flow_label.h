/* layer 2 (transport): flow labels and the UDP source ports made from them (kernel rdma/ib_verbs.h; A17.9.4). */
#ifndef RDMATRACE_TRANSPORT_FLOW_LABEL_H
#define RDMATRACE_TRANSPORT_FLOW_LABEL_H

#include "types.h"

/* UDP source port of RoCEv2 for a 20-bit flow label: 0xc000 to 0xffff. */
static inline uint16_t flow_sport(uint32_t flow)
{
    flow &= 0xfffff;
    return (uint16_t)(0xc000 | ((flow & 0x3fff) ^ flow >> 14));
}

/* Flow label of a connection without one of its own, from both queue pairs: the same in both directions. */
static inline uint32_t flow_of_qpns(uint32_t a, uint32_t b)
{
    uint64_t v = (uint64_t)a * b;

    v ^= v >> 20;
    v ^= v >> 40;
    return (uint32_t)(v & 0xfffff);
}

#endif
