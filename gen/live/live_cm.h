/* layer 3 (live): connections by RDMA-CM on a real network: parameters as in Linux, paths, failures in words. */
#ifndef RDMATRACE_GEN_LIVE_LIVE_CM_H
#define RDMATRACE_GEN_LIVE_LIVE_CM_H

#include "gen/live/live.h"

/* Parameters for a connection by RDMA-CM from queue pair `qp` of this side, which expects `psn` first, to port `port`
 * of `gid`. */
void live_cm_params(struct live *l, struct cm_params *p, int qp, uint32_t psn, const uint8_t gid[16], uint16_t port);
/* Attributes that the connection manager does not negotiate: path to `gid`, and access rights `access`. False: the host
 * is not known. */
bool live_cm_peer(struct live *l, struct ep_peer *p, const uint8_t gid[16], uint8_t access);
/* The handle of the next queue pair that a received packet moved to the error state, and the reason, *why; -1: none. */
int live_failed_qp(struct live *l, const char **why);
/* Why a connection was not established, in words. Returns a static buffer. */
const char *live_cm_why(enum cm_event e, const struct cm_conn *c);

#endif
