/* layer 2 (transport): unreliable connections: no answers, no repeats; a gap loses the message (IBTA volume 1,
 * 9.8.2). */
#ifndef RDMATRACE_UC_H
#define RDMATRACE_UC_H

#include "src/transport/requester.h"
#include "src/transport/responder.h"

struct tx_view;

/* The same halves as for RC; req_tx_check_all() and the others call these for SVC_UC. */
unsigned uc_tx_check(struct tx_view *t, struct verdict *out, unsigned max);
struct verdict uc_rx_check(const struct responder *r, const struct rsp_env *env, const struct pkt *p);
/* A packet ahead of the expected one drops the message in progress; the next First or Only begins anew. */
struct effects uc_rx(struct responder *r, const struct rsp_env *env, const struct pkt *p);

#endif
