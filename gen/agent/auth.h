/* layer 3 (agent): who may use the agent: a token that both sides know, and proofs of knowing it. */
#ifndef RDMATRACE_GEN_AGENT_AUTH_H
#define RDMATRACE_GEN_AGENT_AUTH_H

#include "types.h"

#define AUTH_NONCE     32 /* bytes */
#define AUTH_PROOF     32 /* bytes: HMAC-SHA256 */
#define AUTH_TOKEN_MIN 16 /* characters */
#define AUTH_TOKEN_MAX 256

struct auth_token {
    char text[AUTH_TOKEN_MAX + 1];
    size_t len;
};

/* Read the token from the first line of a file that only its owner may read; without such a file: draw one and create
 * the file (*made). 0; -EACCES: others may read it; -EINVAL: its first line is too short or too long; another errno. */
int auth_token_file(struct auth_token *t, const char *path, bool *made);
/* Draw one. */
void auth_token_draw(struct auth_token *t);
/* Random bytes, never used before. */
void auth_nonce(uint8_t nonce[AUTH_NONCE]);
/* The proof of `role` ("client", "agent"): HMAC-SHA256(token, nonce || role). */
void auth_proof(const struct auth_token *t, const uint8_t nonce[AUTH_NONCE], const char *role,
                uint8_t proof[AUTH_PROOF]);
/* Whether both are the same; takes as long for every pair. */
bool auth_same(const uint8_t a[AUTH_PROOF], const uint8_t b[AUTH_PROOF]);

#endif
