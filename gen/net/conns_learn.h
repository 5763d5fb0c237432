/* layer 3 (net): learning connections from the packets between two hosts: from CM messages, from the TCP parameter
 * exchange of test programs and, if neither was seen, from the first packets of a queue pair.
 *
 * Connections are numbered in the order in which they begin to be set up: by the first REQ or SIDR_REQ, by the second
 * half of an exchange, by the first packet to an unknown queue pair. Side 0 is the active side: the sender of the REQ,
 * of the first half, of the first request.
 */
#ifndef RDMATRACE_GEN_NET_CONNS_LEARN_H
#define RDMATRACE_GEN_NET_CONNS_LEARN_H

#include "gen/net/conn_ids.h"
#include "src/conn/setup.h"

#define CONNS_LEARN_MAX  65536 /* connections learnt; further ones are counted only */
#define CONNS_LEARN_OPEN 256   /* connections with an unknown queue pair of side 0 that are remembered */

/* Zero-initialise. */
struct conns_learner {
    struct setup_exchanges exchanges;
    uint32_t open[CONNS_LEARN_OPEN]; /* numbers of connections whose side 0 has an unknown queue pair; 0: none */
    uint32_t open_at;                /* open[open_at % CONNS_LEARN_OPEN] is the oldest */
    uint64_t too_many;               /* connections not learnt: CONNS_LEARN_MAX reached, or no memory */
};

/* `host` sends a packet: learn from it (`t` must be by_addr), then set *v to its view. */
void conns_learn(struct conns_learner *l, struct conns *t, unsigned host, const struct pkt *p, struct conns_view *v);

#endif
