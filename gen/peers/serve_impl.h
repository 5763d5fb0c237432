/* layer 3 (peers): internal: shared by the parts of the server: sessions (serve.c), messages of the exchange
 * (serve_msg.c), queue pairs and data (serve_qp.c). */
#ifndef RDMATRACE_GEN_PEERS_SERVE_IMPL_H
#define RDMATRACE_GEN_PEERS_SERVE_IMPL_H

#include "gen/peers/serve.h"

/* Fail a session with a reason; the next serve_poll() ends it. */
void session_fail(struct serve_session *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* End a session; without `done` it has failed. */
void session_over(struct serve_session *s, bool done, ns_t now);

/* Length of the message whose first s->got bytes are at s->in, as far as these bytes determine it. */
size_t msg_wanted(const struct serve_session *s);
/* Whether the complete message at s->in can be processed: the MAC address for a queue pair in it is known, or its
 * resolution has timed out; and messages that a request for counts asks about have had time to arrive. */
bool msg_is_ready(struct serve *v, struct serve_session *s, ns_t now);
/* Process a message of a client, and respond. */
void msg_take(struct serve *v, struct serve_session *s, const uint8_t *p, size_t len, ns_t now);
/* Without a message for a while: a client of ibv_*_pingpong may be waiting for a response. */
void msg_timeout(struct serve_session *s, ns_t now);
/* The session of the RDMA-CM client at `gid` if it is about to connect queue pairs for data; NULL: none. */
struct serve_session *msg_awaits_qp(struct serve *v, const uint8_t gid[16]);

/* Create a queue pair for `peer`, in RESET; NULL: the session has failed. */
struct serve_qp *sqp_new(struct serve *v, struct serve_session *s, const struct perftest_keys *peer);
/* Connect the queue pair to the one that the peer named, whose MAC address must be known. */
void sqp_connect(struct serve *v, struct serve_session *s, struct serve_qp *q, ns_t now);
/* XRC with latency: connect the initiator to the target described by q->xrc.peer, likewise. */
void sqp_connect_back(struct serve *v, struct serve_session *s, struct serve_qp *q, ns_t now);
/* Whether the session is one over XRC with a queue pair in each direction. */
bool sqp_xrc_both_ways(const struct serve *v, const struct serve_session *s);
/* The operation of the session is known: post receives. */
void sqp_ready(struct serve *v, struct serve_session *s, struct serve_qp *q, ns_t now);
/* Poll the completions of all sessions. */
void sqp_poll(struct serve *v, ns_t now);
/* Send the answers that are due, and the first message if the client waits for it; record progress, and infer the
 * operation. */
void sqp_work(struct serve *v, struct serve_session *s, ns_t now);
/* Free all queue pairs of a session. */
void sqp_free_all(struct serve *v, struct serve_session *s);
/* Bytes of payload that a session received. */
uint64_t sqp_payload(const struct serve *v, const struct serve_session *s);

#endif
