/* layer 3 (endpoint): deliberate mistakes of a connection manager. */
#ifndef RDMATRACE_GEN_ENDPOINT_CM_FAULTS_H
#define RDMATRACE_GEN_ENDPOINT_CM_FAULTS_H

#include "dissect/mad/cm.h"
#include "gen/endpoint/endpoint.h"

/* Break the rules asked of `ep` in a message about to be sent, perhaps `again`. False: it is not to be sent at all. */
bool cm_fault_apply(struct endpoint *ep, struct cm_msg *m, bool again);

#endif
