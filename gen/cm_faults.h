/* layer 3 (gen): deliberate mistakes of a connection manager. */
#ifndef RDMATRACE_CM_FAULTS_H
#define RDMATRACE_CM_FAULTS_H

#include "dissect/cm.h"
#include "gen/endpoint.h"

/* Break the rules asked of `ep` in a message about to be sent, perhaps `again`. False: it is not to be sent at all. */
bool cm_fault_apply(struct endpoint *ep, struct cm_msg *m, bool again);

#endif
