/* layer 3 (peers): what the parts of the server share: sessions (serve.c), words (serve_msg.c), queue pairs and data
 * (serve_qp.c). */
#ifndef RDMATRACE_GEN_PEERS_SERVE_IMPL_H
#define RDMATRACE_GEN_PEERS_SERVE_IMPL_H

#include "gen/peers/serve.h"

/* End a session: with the reason if it fails. */
void session_fail(struct serve_session *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
void session_over(struct serve_session *s, bool done, ns_t now);

/* Bytes that the word has to which s->got bytes at s->in belong, as far as these tell. */
size_t word_wanted(const struct serve_session *s);
/* Whether the whole word at s->in may be taken: the way to the queue pair that it names, if it names one, is known, or
 * has been asked for in vain for long enough. */
bool word_ripe(struct serve *v, struct serve_session *s, ns_t now);
/* A word of a client: answer it. */
void word_take(struct serve *v, struct serve_session *s, const uint8_t *p, size_t len, ns_t now);
/* No word has come: for a client of ibv_*_pingpong that may mean that it waits for an answer. */
void word_silence(struct serve_session *s, ns_t now);
/* The session whose RDMA-CM client at `gid` now connects queue pairs for data; NULL: none. */
struct serve_session *word_awaits_qp(struct serve *v, const uint8_t gid[16]);

/* Make a queue pair for `peer`, in RESET: NULL with the session failed. */
struct serve_qp *sqp_new(struct serve *v, struct serve_session *s, const struct perftest_keys *peer);
/* Connect it by what the peer said, to which the way must be known. */
void sqp_connect(struct serve *v, struct serve_session *s, struct serve_qp *q, ns_t now);
/* The session's kind is known: post receives. */
void sqp_ready(struct serve *v, struct serve_session *s, struct serve_qp *q, ns_t now);
/* Take completions of all sessions. */
void sqp_poll(struct serve *v, ns_t now);
/* Answer what is to be answered, and begin where the client waits for us; notes progress, and what it shows of the
 * kind. */
void sqp_work(struct serve *v, struct serve_session *s, ns_t now);
void sqp_free_all(struct serve *v, struct serve_session *s);
/* Bytes of payload that arrived. */
uint64_t sqp_payload(const struct serve *v, const struct serve_session *s);

#endif
