/* layer 3 (conform): the twin, a simulated device under test: the agent's commands on a host's endpoint, in virtual
 * time. */
#ifndef RDMATRACE_GEN_CONFORM_TWIN_H
#define RDMATRACE_GEN_CONFORM_TWIN_H

#include "gen/script/dut.h"

/* A twin at `host`, as what script_opts.dut names; *dut is to live until the scenario has ended. NULL: no memory. One
 * twin serves any number of scenarios, one after the other. */
struct twin_dut;
struct twin_dut *twin_dut_new(struct script_dut *dut, unsigned host);
void twin_dut_free(struct twin_dut *t);

#endif
