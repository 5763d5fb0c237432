/* layer 3 (endpoint): faults of a connection manager. */
#ifndef RDMATRACE_GEN_ENDPOINT_CM_FAULTS_H
#define RDMATRACE_GEN_ENDPOINT_CM_FAULTS_H

#include "dissect/mad/cm.h"
#include "gen/endpoint/endpoint.h"

/* Apply the faults of `ep` to a message about to be sent; `again`: retransmitted. False: do not send the message. */
bool cm_fault_apply(struct endpoint *ep, struct cm_msg *m, bool again);

#endif
