/* layer 3 (live): what a live endpoint's own traffic meets on its way out and in: exact events and network nodes. */
#ifndef RDMATRACE_GEN_LIVE_IMPAIR_H
#define RDMATRACE_GEN_LIVE_IMPAIR_H

#include "gen/net/net.h"

struct live;

struct live_net;

/* `side`: number of the endpoint's host, 0 (requester) or 1; `conf` may be NULL. The events stay the caller's. `seed`:
 * of what happens by chance. NULL: out of memory, or too many nodes. */
struct live_net *live_net_new(const struct net_config *conf, struct event_list *events, unsigned side, uint64_t seed);
/* NULL is allowed. */
void live_net_free(struct live_net *n);
/* Tell the events of the endpoint's connections: those that have come about are found by themselves. */
void live_net_learn(struct live_net *n, const struct endpoint *ep);
/* A frame of this host (`out`) or of the peer sets out; live_net_out() and live_net_in() are called for what is left of
 * it, now or in live_net_run(). */
void live_net_pass(struct live_net *n, struct live *l, bool out, const uint8_t *data, uint32_t len, ns_t now);
void live_net_run(struct live_net *n, struct live *l, ns_t now);
/* Whether all that is to leave has left: while the backend has no room for it, the endpoint is not to send more. */
bool live_net_ready(const struct live_net *n);
/* When live_net_run() wants to be called; NS_NEVER: nothing is under way. */
ns_t live_net_next(struct live_net *n);

/* Of the loop: a frame goes to the wire (false: there is no room for it now), or to the endpoint. */
bool live_net_out(struct live *l, const uint8_t *data, uint32_t len);
void live_net_in(struct live *l, const uint8_t *data, uint32_t len, ns_t now);

#endif
