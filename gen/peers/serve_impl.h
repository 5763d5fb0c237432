/* layer 3 (peers): what the parts of the server share: sessions (serve.c), messages of the exchange (serve_msg.c),
 * queue pairs and data (serve_qp.c). */
#ifndef RDMATRACE_GEN_PEERS_SERVE_IMPL_H
#define RDMATRACE_GEN_PEERS_SERVE_IMPL_H

#include "gen/peers/serve.h"

/* End a session; `reason` if it fails. */
void session_fail(struct serve_session *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
void session_over(struct serve_session *s, bool done, ns_t now);

/* Length of the message of which s->got bytes at s->in have arrived, as far as these show it. */
size_t word_wanted(const struct serve_session *s);
/* Whether the complete message at s->in can be processed: the MAC address for the queue pair in it, if there is one, is
 * known, or its resolution has timed out. */
bool word_ripe(struct serve *v, struct serve_session *s, ns_t now);
/* Process a message of a client, and answer it. */
void word_take(struct serve *v, struct serve_session *s, const uint8_t *p, size_t len, ns_t now);
/* No message has come: a client of ibv_*_pingpong may be waiting for an answer. */
void word_silence(struct serve_session *s, ns_t now);
/* The session whose RDMA-CM client at `gid` now connects queue pairs for data; NULL: none. */
struct serve_session *word_awaits_qp(struct serve *v, const uint8_t gid[16]);

/* Create a queue pair for `peer`, in RESET; NULL: the session has failed. */
struct serve_qp *sqp_new(struct serve *v, struct serve_session *s, const struct perftest_keys *peer);
/* Connect the queue pair to the one that the peer named, whose MAC address must be known. */
void sqp_connect(struct serve *v, struct serve_session *s, struct serve_qp *q, ns_t now);
/* The operation of the session is known: post receives. */
void sqp_ready(struct serve *v, struct serve_session *s, struct serve_qp *q, ns_t now);
/* Poll the completions of all sessions. */
void sqp_poll(struct serve *v, ns_t now);
/* Send the answers that are due, and the first message where the client waits for it; note progress, and what it shows
 * of the operation. */
void sqp_work(struct serve *v, struct serve_session *s, ns_t now);
void sqp_free_all(struct serve *v, struct serve_session *s);
/* Bytes of payload that arrived. */
uint64_t sqp_payload(const struct serve *v, const struct serve_session *s);

#endif
