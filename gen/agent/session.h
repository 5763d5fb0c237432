/* layer 3 (agent): a client's connection: greeting, proof, then lines both ways until either side ends it. */
#ifndef RDMATRACE_GEN_AGENT_SESSION_H
#define RDMATRACE_GEN_AGENT_SESSION_H

#include "gen/agent/agent.h"
#include "gen/agent/auth.h"

#define SESSION_PROVE_NS (10 * NS_PER_S) /* longest wait for the proof */
#define SESSION_STUCK_NS (30 * NS_PER_S) /* longest time that a client may not take what it is sent */

/* How it ended; also the exit status of the process that ran it. */
enum session_end {
    SESSION_OVER,    /* the client has gone, or said `quit`; it had proved to know the token */
    SESSION_REFUSED, /* what it said proves nothing */
    SESSION_SILENT,  /* it did not try to prove that it knows the token, or another client was faster */
    SESSION_BROKEN,  /* it broke the protocol, or took nothing any more */
};

/* Who serves several clients until one has proved to know the token. */
struct session_claim {
    bool (*take)(void *user); /* it has: false: another client is served already */
    void *user;
};

/* Serve the client at the connected socket `fd` to the end, with a device that is the session's from now on. `claim`
 * NULL: there is no other client. */
enum session_end session_run(int fd, struct rnic *r, const struct auth_token *token, const struct agent_limits *limits,
                             const char *only, const struct session_claim *claim);

#endif
