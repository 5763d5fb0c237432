/* layer 3 (traffic): what all perftest-like traffic has, simulated or live: kinds of operations. */
#ifndef RDMATRACE_GEN_TRAFFIC_OPS_H
#define RDMATRACE_GEN_TRAFFIC_OPS_H

#include "src/transport/verbs.h"

enum traffic_op {
    TRAFFIC_WRITE,
    TRAFFIC_SEND,
    TRAFFIC_READ,
    TRAFFIC_CAS,
    TRAFFIC_FAA,
    TRAFFIC_MIXED, /* each message one of those before, by chance */
    TRAFFIC_ATOMIC_WRITE,
    TRAFFIC_FLUSH, /* of as many bytes as a WRITE would have */
    /* Memory is lent by a key that is valid for this one message: a SEND hands it over. Simulations only, RC. */
    TRAFFIC_MW1,      /* of a type 1 window */
    TRAFFIC_MW2,      /* of a type 2 window */
    TRAFFIC_FAST_REG, /* of a fast-registered region */
    TRAFFIC_OPS
};
#define TRAFFIC_KEYS       3                   /* kinds of keys, from TRAFFIC_MW1 on */
#define TRAFFIC_LOAN_BYTES 32                  /* of the SEND of a key */
#define TRAFFIC_LENDS      (7u << TRAFFIC_MW1) /* mask of 1 << enum traffic_op: those that lend memory */
/* "write", "send", "read", "cas", "faa", "mixed", "atomic_write", "flush", "mw1", "mw2", "fastreg". */
const char *traffic_op_str(enum traffic_op op);
/* TRAFFIC_OPS: none of this name. */
enum traffic_op traffic_op_find(const char *name);
/* COMPARE & SWAP or FETCH & ADD. */
static inline bool traffic_is_atomic(enum traffic_op op)
{
    return op == TRAFFIC_CAS || op == TRAFFIC_FAA;
}
/* Operations whose messages have 8 bytes. */
static inline bool traffic_has_8_bytes(enum traffic_op op)
{
    return traffic_is_atomic(op) || op == TRAFFIC_ATOMIC_WRITE;
}
/* What queue pairs of `type` (enum qp_type) can do: mask of 1 << enum traffic_op, without TRAFFIC_MIXED. */
uint32_t traffic_of_service(enum qp_type type);
/* The work request for `op`, which is not TRAFFIC_MIXED; SEND and WRITE: with immediate data if `imm`. */
enum wr_opcode traffic_opcode(enum traffic_op op, bool imm);

#endif
