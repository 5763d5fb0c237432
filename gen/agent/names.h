/* layer 3 (agent): names of values in lines, and arguments that several commands have. */
#ifndef RDMATRACE_GEN_AGENT_NAMES_H
#define RDMATRACE_GEN_AGENT_NAMES_H

#include "gen/agent/agent.h"

/* Rights; placements of FLUSH; states and types of queue pairs; operations and flags of send work requests; migration
 * states. */
extern const struct line_name access_names[], placement_names[], state_names[], type_names[], opcode_names[],
    send_flag_names[], migration_names[];

/* The arguments of an address vector; with the prefix "alt_": of the alternate path. */
#define AV_ARGS                                                                                                        \
    "[dgid=GID] [sgid_index=N] [hop_limit=N] [tclass=N] [flow=N] [sl=N] [dlid=N] [src_path_bits=N] [static_rate=N] "   \
    "[is_global=0|1] [port_num=N]"
/* Those that are given, with the prefix `prefix`. */
bool request_av(struct request *r, const char *prefix, struct rnic_av *av);
/* Whether any of them is given. */
bool request_has_av(const struct request *r, const char *prefix);
/* vendor_id=, options= and comp_mask= of ECE, 0 where they are not given; in a reply. */
bool request_ece(struct request *r, struct rnic_ece *e);
void reply_ece(struct agent *a, const struct rnic_ece *e);

#endif
