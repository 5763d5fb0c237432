/* layer 3 (peers): the out-of-band channel on which programs exchange the parameters of their queue pairs, by TCP or by
 * SENDs. The endpoint keeps working: every function that waits runs the event loop. The caller bounds the data, `wait`
 * bounds the time. */
#ifndef RDMATRACE_GEN_PEERS_OOB_TCP_H
#define RDMATRACE_GEN_PEERS_OOB_TCP_H

#include "gen/live/record_tcp.h"
#include "gen/peers/oob_rdma.h"

#define CHAN_WAIT (20 * NS_PER_S) /* for one message, unless the caller sets another time */

struct chan {
    struct live *live;        /* its event loop runs while a call waits; NULL: there is none */
    int fd;                   /* of the TCP connection; -1: none */
    struct rchan *rdma;       /* SENDs instead of TCP; NULL: TCP. Owned by the caller */
    ns_t wait;                /* longest time that a call may take */
    struct tcp_stream stream; /* of the TCP connection in the capture */
};

/* Connect to `port` of `host` (name or address). 0; -EADDRNOTAVAIL: no such host; -ETIMEDOUT; the errno of the system
 * call that failed; or as live_step(). */
int chan_dial(struct chan *c, struct live *l, const char *host, uint16_t port, ns_t wait);
/* A socket that listens on `port` of this host's address `gid`, or of all its addresses (NULL): the descriptor, or a
 * negative errno. */
int chan_listen(const uint8_t *gid, uint16_t port);
/* Wait for a client of `listener`, without a limit, and accept it. 0 or a negative errno. */
int chan_accept(struct chan *c, struct live *l, int listener, ns_t wait);
/* Receive exactly `len` bytes; with `rdma` one message of that length. 0; -ETIMEDOUT; -ECONNRESET: the peer closed the
 * connection; -EPROTO: the message has another length; another negative errno. */
int chan_recv(struct chan *c, void *data, size_t len);
/* Send a few KiB at most: as much as fits into an empty socket buffer. 0 or a negative errno. */
int chan_send(struct chan *c, const void *data, size_t len);
/* Exchange `len` bytes each way: the client sends `mine` first, the server receives first. */
int chan_swap(struct chan *c, bool client, const void *mine, void *theirs, size_t len);
/* Close the TCP connection, if there is one; `rdma` belongs to the caller. */
void chan_close(struct chan *c);

#endif
