/* layer 2b (conn): what set a connection up: CM messages and the TCP parameter exchange of test programs. */
#ifndef RDMATRACE_CONN_SETUP_H
#define RDMATRACE_CONN_SETUP_H

#include "dissect/ip/tcp_exchange.h"
#include "src/conn/conn.h"

#define LEARN_PENDING 256 /* REQs, and halves of an exchange, that wait for their answer */

/* A half that waits for the other. */
struct pending {
    bool used;
    uint32_t tap;
    struct conn_addr src, dst; /* of the packet that brought it */
    uint32_t id;               /* REQ: local communication id; exchange: the two TCP ports */
    struct exchange end;
    uint32_t pmtu;
    const char *upper;
    struct conn_params peer; /* REQ: what it says about the requests of the passive side */
    uint8_t depth;           /* REQ: initiator depth asked for */
    /* REQ: of the primary path, local and remote: packets with a GRH carry them, though the REQ may have none */
    struct conn_addr gid[2];
};

/* Zero-initialise. */
struct learner {
    struct pending req[LEARN_PENDING];
    struct pending exchange[LEARN_PENDING];
    uint32_t req_at, exchange_at;
};

/* Look at any packet; what it teaches goes to `t`. */
void learn_packet(struct learner *l, struct conn_table *t, const struct pkt *p);

#endif
