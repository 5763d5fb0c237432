/* layer 3 (agent): events of RDMA-CM. */
#ifndef RDMATRACE_GEN_AGENT_CM_H
#define RDMATRACE_GEN_AGENT_CM_H

#include "gen/agent/agent.h"

/* Append the line of such an event, without its end; a new id becomes an object of the client's, or is destroyed if
 * there is no room for it. */
void agent_cm_event(struct agent *a, const struct rnic_event *e);

#endif
