/* layer 3 (peers): what perftest's traffic over XRC has beside its queue pairs: on each side a shared receive queue,
 * whose number is exchanged with the keys and named by the peer's requests.
 *
 * A bandwidth test has one direction: each initiator of the client is joined with a target of the server. Programs like
 * ib_*_lat have both: each side has an initiator and a target, exchanges the keys of both, in this order, and joins its
 * initiator with the peer's target. (Sources of perftest 4.5: ctx_xrc_qp_create(), ctx_connect().) */
#ifndef RDMATRACE_GEN_PEERS_XRC_H
#define RDMATRACE_GEN_PEERS_XRC_H

#include "gen/peers/perftest.h"
#include "gen/verbs/verbs.h"

/* All zero: not opened. */
struct xrc {
    struct verbs *verbs;
    uint32_t xrcd;
    int srq;                        /* handle */
    int qp;                         /* handle of the queue pair of the other direction; -1: none */
    struct perftest_keys own, peer; /* its parameters, and those of the queue pair that it is joined with */
};

/* Open a domain with a shared receive queue of `depth` receives in `pd`, which complete in `cq`. 0 or a negative
 * errno. */
int xrc_open(struct xrc *x, struct verbs *v, uint32_t pd, int cq, uint32_t depth);
/* Number of the shared receive queue, 24 bits; 0: not opened. */
uint32_t xrc_srqn(const struct xrc *x);
/* Create the queue pair of the other direction, x->qp; x->own gets its QPN and PSN. `init`: type XRC_INI, or XRC_TGT,
 * whose domain is filled in. 0 or a negative errno. */
int xrc_add(struct xrc *x, struct verbs_qp_init init);
/* Whether the keys of the other direction's queue pair are exchanged, too. */
static inline bool xrc_both_ways(const struct xrc *x)
{
    return x->verbs && x->qp >= 0;
}
/* Join x->qp with the queue pair described by x->peer; other attributes as in `like`: from RESET to RTS. 0 or a
 * negative errno. */
int xrc_connect(const struct xrc *x, struct ep_peer like, ns_t now);
/* Destroy the queue pair and the shared receive queue; *x may be all zero. */
void xrc_close(struct xrc *x);

#endif
