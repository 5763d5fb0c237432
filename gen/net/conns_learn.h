/* layer 3 (net): learning connections from what passes between two hosts: CM messages, the TCP parameter exchange of
 * test programs, and, where neither was seen, the first packets of a queue pair.
 *
 * Connections are numbered in the order in which they begin to be set up: by the first REQ or SIDR_REQ, by the second
 * half of an exchange, by the first packet to an unknown queue pair. Side 0 is the active side: the sender of the REQ,
 * of the first half, of the first request.
 */
#ifndef RDMATRACE_GEN_NET_CONNS_LEARN_H
#define RDMATRACE_GEN_NET_CONNS_LEARN_H

#include "dissect/ip/tcp_exchange.h"
#include "gen/net/conn_ids.h"

#define CONNS_LEARN_MAX 65536 /* connections learnt; further ones are counted only */
/* halves of an exchange, and connections of which a queue pair is not known, that are remembered */
#define CONNS_LEARN_HALVES 256

/* One side's half of a parameter exchange. */
struct exchange_half {
    bool used, paired;
    uint8_t host;             /* that sent it */
    uint16_t sport, dport;    /* of TCP */
    uint8_t src[16], dst[16]; /* addresses of the packet that brought it */
    struct exchange end;
};

/* Zero-initialise. */
struct conns_learner {
    struct exchange_half half[CONNS_LEARN_HALVES];
    uint32_t open[CONNS_LEARN_HALVES]; /* numbers of connections whose side 0 has an unknown queue pair; 0: none */
    uint32_t half_at, open_at;
    uint64_t too_many; /* connections not learnt for lack of room */
};

/* A packet of `host` passes: what it teaches goes to `t` (which must be by_addr), what it is then to *v. */
void conns_learn(struct conns_learner *l, struct conns *t, unsigned host, const struct pkt *p, struct conns_view *v);

#endif
