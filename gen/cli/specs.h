/* layer 4 (tool): events, network nodes and faults as options give them. Each returns 0, or the exit status after a
 * message that names `option` and its argument. */
#ifndef RDMATRACE_GEN_CLI_SPECS_H
#define RDMATRACE_GEN_CLI_SPECS_H

#include "gen/net/net.h"

/* Add the event of --event. */
int words_event(struct event_list *l, const char *option, const char *arg);
/* Add the nodes of --net, with "req:" or "rsp:" before them for one direction. */
int words_net(struct net_config *c, const char *option, const char *arg);
/* The rule `id` of --fault `arg`. */
int words_fault(const char *arg, const char *id, enum rule *rule);
/* Prints `line` on stderr: the callback of events_idle() and ep_faults_idle(). */
void words_told(void *user, const char *line);

#endif
