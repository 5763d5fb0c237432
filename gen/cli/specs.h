/* layer 4 (tool): events, network nodes and faults in options. Each function returns 0, or the exit status after a
 * message that names `option` and its argument. */
#ifndef RDMATRACE_GEN_CLI_SPECS_H
#define RDMATRACE_GEN_CLI_SPECS_H

#include "gen/endpoint/endpoint.h"
#include "gen/net/net.h"

/* Parse an event and add it to `l`. */
int specs_event(struct event_list *l, const char *option, const char *arg);
/* Parse network nodes and add them to `c`; "req:" or "rsp:" before them: for one direction. */
int specs_net(struct net_config *c, const char *option, const char *arg);
/* What a host does about congestion: --cc and --cnp, in any order. */
struct specs_cc {
    struct cc_config cc;
    bool given;      /* --cc */
    const char *cnp; /* argument of --cnp, which is right; NULL: not given */
};
int specs_cc(struct specs_cc *c, const char *arg);
/* 0, or EXIT_BAD after a message: the scheme needs what there is not. `switches`: as in ep_cc_lacks(). */
int specs_cc_lacks(const struct specs_cc *c, bool switches);
int specs_cnp(struct specs_cc *c, const char *arg);
/* What a host does by them; what they leave open is left as it is. */
void specs_cc_settle(const struct specs_cc *c, struct ep_congestion *to);
/* ECN bits of what such a host sends, which has `tclass` as its TOS or traffic class: ECT(0) where marks are obeyed. */
uint8_t specs_cc_tclass(const struct specs_cc *c, uint8_t tclass);
/* Find the rule with this id. `arg`: the whole argument of --fault. */
int specs_fault(const char *arg, const char *id, enum rule *rule);
/* Print a line on standard error: the callback of events_idle() and ep_faults_idle(). */
void specs_print(void *user, const char *line);

#endif
