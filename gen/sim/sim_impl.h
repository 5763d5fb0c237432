/* layer 3 (sim): what the files of the simulation share. */
#ifndef RDMATRACE_GEN_SIM_SIM_IMPL_H
#define RDMATRACE_GEN_SIM_SIM_IMPL_H

#include "gen/sim/sim.h"

/* sim_init() of a fabric; the hosts are allocated. 0, -ENOMEM, or -ENOBUFS: see fabric_new(). */
int sim_fabric_open(struct sim *s, const struct sim_config *c);
/* Free the fabric, if any. */
void sim_fabric_close(struct sim *s);
/* sim_step() of a fabric. */
bool sim_fabric_step(struct sim *s, ns_t until);

#endif
