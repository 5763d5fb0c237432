/* layer 1 (wire): the opcode table: extended headers, in order, and meaning of each opcode (IBTA volume 1, 9.2). */
#ifndef RDMATRACE_DISSECT_IB_OPCODE_H
#define RDMATRACE_DISSECT_IB_OPCODE_H

#include "types.h"

/* Transport services: the upper three bits of an opcode. */
enum service {
    SVC_RC = 0,
    SVC_UC = 1,
    SVC_RD = 2, /* ConnectX adapters use the same code points for DC */
    SVC_UD = 3,
    SVC_CNP = 4, /* 0x80-0x9f: only 0x81 is defined, the congestion notification packet of RoCEv2 */
    SVC_XRC = 5,
    SVC_MANUF0 = 6, /* 0xc0-0xff: manufacturer specific */
    SVC_MANUF1 = 7,
};

/* Operations: the lower five bits of an opcode. */
enum operation {
    OP_SEND_FIRST = 0x00,
    OP_SEND_MIDDLE = 0x01,
    OP_SEND_LAST = 0x02,
    OP_SEND_LAST_IMM = 0x03,
    OP_SEND_ONLY = 0x04,
    OP_SEND_ONLY_IMM = 0x05,
    OP_WRITE_FIRST = 0x06,
    OP_WRITE_MIDDLE = 0x07,
    OP_WRITE_LAST = 0x08,
    OP_WRITE_LAST_IMM = 0x09,
    OP_WRITE_ONLY = 0x0a,
    OP_WRITE_ONLY_IMM = 0x0b,
    OP_READ_REQUEST = 0x0c,
    OP_READ_RESP_FIRST = 0x0d,
    OP_READ_RESP_MIDDLE = 0x0e,
    OP_READ_RESP_LAST = 0x0f,
    OP_READ_RESP_ONLY = 0x10,
    OP_ACKNOWLEDGE = 0x11,
    OP_ATOMIC_ACKNOWLEDGE = 0x12,
    OP_COMPARE_SWAP = 0x13,
    OP_FETCH_ADD = 0x14,
    OP_RESYNC = 0x15, /* RD only */
    OP_SEND_LAST_INV = 0x16,
    OP_SEND_ONLY_INV = 0x17,
    OP_FLUSH = 0x1c,
    OP_ATOMIC_WRITE = 0x1d,
};

#define OPCODE(service, operation) ((uint8_t)((service) << 5 | (operation)))
#define OPCODE_CNP                 0x81

/* Headers of a packet; masks of these bits. H_LRH to H_IETH are in the order of the packet. */
enum {
    H_LRH = 1u << 0,
    H_GRH = 1u << 1,
    H_BTH = 1u << 2,
    H_RDETH = 1u << 3,
    H_DETH = 1u << 4,
    H_DCCETH = 1u << 5, /* DC on ConnectX: 8 bytes, opaque */
    H_XRCETH = 1u << 6,
    H_FETH = 1u << 7,
    H_RETH = 1u << 8,
    H_ATOMICETH = 1u << 9,
    H_AETH = 1u << 10,
    H_ATOMICACKETH = 1u << 11,
    H_IMMDT = 1u << 12,
    H_IETH = 1u << 13,
    H_IP4 = 1u << 16,
    H_IP6 = 1u << 17,
    H_UDP = 1u << 18,
    H_ETH = 1u << 19,
    H_VLAN = 1u << 20,
    H_MAD = 1u << 21,
};
/* Extended headers of known layout: X(bit, name, bytes, arg). Their lengths are defined only here. */
#define EXT_HEADERS(X, arg)                                                                                            \
    X(H_RDETH, rdeth, 4, arg)                                                                                          \
    X(H_DETH, deth, 8, arg)                                                                                            \
    X(H_XRCETH, xrceth, 4, arg)                                                                                        \
    X(H_FETH, feth, 4, arg)                                                                                            \
    X(H_RETH, reth, 16, arg)                                                                                           \
    X(H_ATOMICETH, atomiceth, 28, arg)                                                                                 \
    X(H_AETH, aeth, 4, arg)                                                                                            \
    X(H_ATOMICACKETH, atomicacketh, 8, arg)                                                                            \
    X(H_IMMDT, immdt, 4, arg)                                                                                          \
    X(H_IETH, ieth, 4, arg)
#define DCCETH_LEN 8 /* bytes; the layout is not public */
/* All extended headers, H_* bits. */
#define EXT_HEADER_BIT(bit, name, bytes, arg) | (bit)
#define H_EXT                                 (H_DCCETH EXT_HEADERS(EXT_HEADER_BIT, ))
/* Bytes of the extended headers `ext` (H_* bits); a constant expression if `ext` is one. */
#define EXT_HEADER_LEN(bit, name, bytes, ext) +((ext) & (bit) ? (bytes) : 0)
#define EXT_LEN(ext)                          (((ext)&H_DCCETH ? DCCETH_LEN : 0)EXT_HEADERS(EXT_HEADER_LEN, ext))

/* What the packet of an opcode is; masks of these bits. */
enum {
    OPF_FIRST = 1u << 0,
    OPF_MIDDLE = 1u << 1,
    OPF_LAST = 1u << 2,
    OPF_ONLY = 1u << 3, /* a message of one packet: OPF_FIRST, OPF_MIDDLE and OPF_LAST are not set */
    OPF_SEND = 1u << 4,
    OPF_WRITE = 1u << 5,
    OPF_READ_REQ = 1u << 6,
    OPF_READ_RESP = 1u << 7,
    OPF_ATOMIC_REQ = 1u << 8, /* COMPARE & SWAP, FETCH & ADD */
    OPF_ATOMIC_ACK = 1u << 9,
    OPF_ACK = 1u << 10, /* Acknowledge: ACK, NAK or RNR NAK */
    OPF_FLUSH = 1u << 11,
    OPF_ATOMIC_WRITE = 1u << 12,
    OPF_CNP = 1u << 13,
    OPF_RESYNC = 1u << 14,
    OPF_REQUEST = 1u << 15,  /* sent by a requester */
    OPF_RESPONSE = 1u << 16, /* sent by a responder */
    OPF_PAYLOAD = 1u << 17,  /* may carry payload */
};
#define OPF_START (OPF_FIRST | OPF_ONLY) /* begins a message */
#define OPF_END   (OPF_LAST | OPF_ONLY)  /* ends a message */

struct opinfo {
    const char *name; /* "RDMA WRITE First"; NULL if the opcode is not defined */
    uint32_t ext;     /* extended headers, H_* within H_EXT */
    uint32_t flags;   /* OPF_* */
    uint8_t ext_len;  /* bytes of all extended headers */
};

/* By opcode. 0x40-0x5f are described as RD. */
extern const struct opinfo opcode_table[256];
/* Opcodes 0x40-0x5f as DC, by their lower five bits: the operations of RC after an opaque DCCETH of 8 bytes. */
extern const struct opinfo opcode_dc_table[32];

/* True for the opcodes 0xc0 to 0xff, which belong to manufacturers: nothing is known of their headers. */
static inline bool opcode_is_manufacturers(uint8_t opcode)
{
    return opcode >= SVC_MANUF0 << 5;
}
/* Name of a service: "RC", "UC", "RD", "UD", "CNP", "XRC", "manufacturer specific". */
const char *service_str(enum service s);

#endif
