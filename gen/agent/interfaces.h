/* layer 3 (agent): the network interfaces of the device that is open. */
#ifndef RDMATRACE_GEN_AGENT_INTERFACES_H
#define RDMATRACE_GEN_AGENT_INTERFACES_H

#include "gen/agent/agent.h"

/* Call `say` for each interface that a GID of the device belongs to, once. */
void each_interface(struct rnic *r, void (*say)(struct buf *out, const char *iface), struct buf *out);
/* Have the driver of an interface carry out a command of ethtool, which begins with its number. 0 or a negative errno.
 */
int interface_ethtool(const char *iface, void *command);

#endif
