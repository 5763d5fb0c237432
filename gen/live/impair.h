/* layer 3 (live): exact events and network nodes for the traffic of a live endpoint, in both directions. */
#ifndef RDMATRACE_GEN_LIVE_IMPAIR_H
#define RDMATRACE_GEN_LIVE_IMPAIR_H

#include "gen/net/net.h"

struct live;

struct live_net;

/* `side`: number of the endpoint's host, 0 (requester) or 1; `conf` may be NULL. The caller frees the events. `seed`:
 * of the random numbers. NULL: out of memory, or too many nodes. */
struct live_net *live_net_new(const struct net_config *conf, struct event_list *events, unsigned side, uint64_t seed);
/* NULL is allowed. */
void live_net_free(struct live_net *n);
/* Pass the endpoint's new connections to the events. */
void live_net_learn(struct live_net *n, const struct endpoint *ep);
/* Pass a frame of this host (`out`) or of the peer through the nodes, which call live_net_out() or live_net_in() for
 * each frame that leaves them, now or in live_net_run(). */
void live_net_pass(struct live_net *n, struct live *l, bool out, const uint8_t *data, uint32_t len, ns_t now);
void live_net_run(struct live_net *n, struct live *l, ns_t now);
/* True if no frame waits for the backend; the endpoint sends nothing while one does. */
bool live_net_ready(const struct live_net *n);
/* When live_net_run() must be called next; NS_NEVER: no frame is held. */
ns_t live_net_next(struct live_net *n);

/* Defined by the loop: send a frame (false: the queue is full), or deliver it to the endpoint. */
bool live_net_out(struct live *l, const uint8_t *data, uint32_t len);
void live_net_in(struct live *l, const uint8_t *data, uint32_t len, ns_t now);

#endif
