/* layer 4 (tool): events, network nodes and faults in options. Each function returns 0, or the exit status after a
 * message that names `option` and its argument. */
#ifndef RDMATRACE_GEN_CLI_SPECS_H
#define RDMATRACE_GEN_CLI_SPECS_H

#include "gen/net/net.h"

/* Parse an event and add it to `l`. */
int specs_event(struct event_list *l, const char *option, const char *arg);
/* Parse network nodes and add them to `c`; "req:" or "rsp:" before them: for one direction. */
int specs_net(struct net_config *c, const char *option, const char *arg);
/* Find the rule with this id. `arg`: the whole argument of --fault. */
int specs_fault(const char *arg, const char *id, enum rule *rule);
/* Print a line on standard error: the callback of events_idle() and ep_faults_idle(). */
void specs_print(void *user, const char *line);

#endif
