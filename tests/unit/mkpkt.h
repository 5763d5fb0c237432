/* layer 2 (transport) tests: packets without bytes, as the transport's functions take them. */
#ifndef RDMATRACE_TEST_MKPKT_H
#define RDMATRACE_TEST_MKPKT_H

#include "dissect/pkt.h"

/* A packet with opcode, PSN and payload length; pad count and presence of headers are right, all else is zero. */
static inline struct pkt mk(uint8_t opcode, uint32_t psn, uint32_t len)
{
    struct pkt p;

    memset(&p, 0, sizeof p);
    p.op = &opcode_table[opcode];
    p.have = H_BTH | p.op->ext;
    p.bth.opcode = opcode;
    p.bth.psn = psn;
    p.bth.padcnt = -len & 3;
    p.bth.ackreq = (p.op->flags & OPF_END) != 0;
    p.payload_len = len;
    return p;
}

static inline struct pkt mk_reth(uint8_t opcode, uint32_t psn, uint32_t len, uint64_t va, uint32_t rkey,
                                 uint32_t dmalen)
{
    struct pkt p = mk(opcode, psn, len);

    p.reth.va = va;
    p.reth.rkey = rkey;
    p.reth.dmalen = dmalen;
    return p;
}

static inline struct pkt mk_read(uint32_t psn, uint64_t va, uint32_t len)
{
    return mk_reth(OP_READ_REQUEST, psn, 0, va, 0, len);
}

static inline struct pkt mk_atomic(uint8_t opcode, uint32_t psn, uint64_t va)
{
    struct pkt p = mk(opcode, psn, 0);

    p.atomiceth.va = va;
    return p;
}

static inline struct pkt mk_aeth(uint8_t opcode, uint32_t psn, uint32_t len, uint8_t syndrome, uint32_t msn)
{
    struct pkt p = mk(opcode, psn, len);

    p.bth.ackreq = 0;
    p.aeth.syndrome = syndrome;
    p.aeth.msn = msn;
    return p;
}

static inline struct pkt mk_ack(uint32_t psn, uint8_t syndrome, uint32_t msn)
{
    return mk_aeth(OP_ACKNOWLEDGE, psn, 0, syndrome, msn);
}

#endif
