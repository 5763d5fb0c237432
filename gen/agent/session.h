/* layer 3 (agent): a client's connection: greeting, proof, then lines both ways until either side ends it. */
#ifndef RDMATRACE_GEN_AGENT_SESSION_H
#define RDMATRACE_GEN_AGENT_SESSION_H

#include "gen/agent/agent.h"
#include "gen/agent/auth.h"

#define SESSION_PROVE_NS (10 * NS_PER_S) /* longest wait for the proof */
#define SESSION_STUCK_NS (30 * NS_PER_S) /* longest time that a client may not take what it is sent */

/* How it ended; also the exit status of the process that ran it. */
enum session_end {
    SESSION_OVER,    /* the client has gone, or said `quit` */
    SESSION_REFUSED, /* it did not prove to know the token */
    SESSION_BROKEN,  /* it broke the protocol, or took nothing any more */
};

/* Serve the client at the connected socket `fd` to the end, with a device that is the session's from now on. */
enum session_end session_run(int fd, struct rnic *r, const struct auth_token *token, const struct agent_limits *limits,
                             const char *only);

#endif
