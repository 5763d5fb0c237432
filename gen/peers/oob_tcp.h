/* layer 3 (peers): a channel on which programs tell each other their queue pairs, by TCP or by SENDs, while the
 * endpoint goes on working: everything that waits here runs the event loop. Data is bounded by what the caller asks
 * for, time by `wait`. */
#ifndef RDMATRACE_GEN_PEERS_OOB_TCP_H
#define RDMATRACE_GEN_PEERS_OOB_TCP_H

#include "gen/live/live.h"
#include "gen/peers/oob_rdma.h"

#define CHAN_WAIT (20 * NS_PER_S) /* for one message, when nothing else is known */

struct chan {
    struct live *live;
    int fd;             /* of the TCP connection; -1: none */
    struct rchan *rdma; /* messages instead of TCP; NULL: TCP. The caller's */
    ns_t wait;          /* longest time for one call */
};

/* Connect to `port` of `host` (name or address): 0, -EADDRNOTAVAIL: no such host, -ETIMEDOUT, the errno of what failed,
 * or as live_step(). */
int chan_dial(struct chan *c, struct live *l, const char *host, uint16_t port, ns_t wait);
/* A socket that listens on `port` of this host's address `gid`, or of all its addresses (NULL): the descriptor, or a
 * negative errno. */
int chan_listen(const uint8_t *gid, uint16_t port);
/* Wait for a client of `listener`, without end, and take it. 0 or a negative errno. */
int chan_accept(struct chan *c, struct live *l, int listener, ns_t wait);
/* Exactly `len` bytes; with `rdma` one message of that length. 0; -ETIMEDOUT; -ECONNRESET: the peer closed; -EPROTO: a
 * message of another length; another negative errno. */
int chan_recv(struct chan *c, void *data, size_t len);
/* A few KiB at most, which fit into an empty queue. 0 or a negative errno. */
int chan_send(struct chan *c, const void *data, size_t len);
/* The client says `mine` first, the server listens first: `len` bytes each way. */
int chan_swap(struct chan *c, bool client, const void *mine, void *theirs, size_t len);
void chan_close(struct chan *c);

#endif
