/* layer 4 (tool): the hosts of a capture shared out among parts of this process, for `flows` and `ops`: each is a run
 * of the command that follows the connections of its hosts (hosts_part.h), and threads bring the packets of a batch to
 * one part after the other (in_parts.h). What the parts find is made one as that of several processes is. */
#ifndef RDMATRACE_CLI_HOST_OWNERS_H
#define RDMATRACE_CLI_HOST_OWNERS_H

#include "src/cli/capture_cmd.h"

/* Parts, at most and at least. A connection of hosts of two parts is followed twice: each of n parts follows some 2 / n
 * of the packets. So two or three follow about as much as one thread does that follows all by turns with others, and
 * what eight follow is less than what one thread at a time does beside it. */
#define HOST_OWNERS_MOST  8
#define HOST_OWNERS_LEAST 4

struct host_owners;

/* Parts of command `cmd` that follow the packets in place of `t`, whose start() this is, if trace_may_apart(). `all`:
 * an option of the command needs all packets. NULL: they are not shared out, or without memory. */
struct host_owners *host_owners_new(const struct trace_cmd *cmd, struct trace *t, bool all);
void host_owners_free(struct host_owners *o); /* NULL is allowed */
/* By which the packets are brought to the parts. */
struct in_parts *host_owners_in(struct host_owners *o);
/* After all packets: what the parts have found, for t->share, or NULL: one process would find something else, which
 * then has to get all packets. *why: why that is so, or may turn out when what was found is taken. */
struct trace_share *host_owners_join(struct host_owners *o, const char **why);

#endif
