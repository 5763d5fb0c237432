/* layer 2b (conn): facts about one packet of a connection, which need no packet before it. */
#ifndef RDMATRACE_CONN_PACKET_H
#define RDMATRACE_CONN_PACKET_H

#include "dissect/pkt.h"
#include "psn.h"

/* A retransmission without an IP identification is identical to the original; one that follows within this time is
 * taken for a duplicate. */
#define DUPLICATE_WITHIN NS_PER_MS

/* Hash of a packet's RETH, or of address and R_Key of its AtomicETH; 0: it has neither. */
static inline uint32_t request_reth(const struct pkt *p)
{
    uint64_t v = p->have & H_RETH        ? p->reth.va ^ (uint64_t)p->reth.rkey << 32 ^ (uint64_t)p->reth.dmalen << 13
                 : p->have & H_ATOMICETH ? p->atomiceth.va ^ (uint64_t)p->atomiceth.rkey << 32
                                         : 0;
    v *= HASH_MULTIPLIER;
    return (uint32_t)(v >> 32);
}
/* Hash of what a packet carries besides address and key: `v` is made of all of it. */
static inline uint32_t args_hash(uint64_t v)
{
    return (uint32_t)(v * HASH_MULTIPLIER >> 32) | 1;
}
/* What the SRQ number of an XRCETH adds to that; other bits than those of an immediate or a key. */
static inline uint64_t srq_args(const struct pkt *p)
{
    return (uint64_t)p->xrceth.srqn << 3 | 4;
}
/* Hash of the operands of an atomic, an immediate, the R_Key of an IETH and the SRQ number of an XRCETH; 0: the packet
 * has none of them. */
static inline uint32_t request_args(const struct pkt *p)
{
    const uint32_t with_args = H_XRCETH | H_ATOMICETH | H_IMMDT | H_IETH;
    uint64_t v = p->have & H_ATOMICETH ? p->atomiceth.swap ^ (p->atomiceth.cmp << 7 | p->atomiceth.cmp >> 57) : 0;

    if (LIKELY(!(p->have & with_args)))
        return 0;
    v ^= p->have & H_XRCETH ? srq_args(p) : 0;
    v ^= p->have & H_IMMDT ? (uint64_t)p->immdt.data << 32 | 1 : 0;
    v ^= p->have & H_IETH ? (uint64_t)p->ieth.rkey << 32 | 2 : 0;
    return args_hash(v);
}
/* IPv4 identification, 0 for other packets. */
static inline uint16_t frame_ip_id(const struct pkt *p)
{
    return p->have & H_IP4 ? load_be16(p->data + p->ip_off + 4) : 0;
}
/* Hash of what shows the way that a packet took: TTL or hop limit, and source MAC address. Packets of one sender have
 * the same, until a route changes. */
static inline uint8_t packet_way(const struct pkt *p)
{
    uint64_t v = (p->addr_len ? p->ttl : 0u) | (p->have & H_ETH ? (uint64_t)load_le32(p->data + 8) << 8 : 0);

    return (uint8_t)(v * HASH_MULTIPLIER >> 56);
}
/* ICRC field of the packet, 0 if it was not captured. */
static inline uint32_t icrc_of(const struct pkt *p)
{
    return p->icrc == CRC_GOOD || p->icrc == CRC_BAD ? p->icrc_got
           : p->icrc_off + 4 <= p->caplen            ? load_be32(p->data + p->icrc_off)
                                                     : 0;
}
/* First PSN that response `p` does not acknowledge: every request before it arrived. */
static inline uint32_t response_proves(const struct pkt *p)
{
    return p->op->flags & OPF_ACK && response_type(p) != AETH_ACK ? p->bth.psn : psn_add(p->bth.psn, 1);
}

#endif
