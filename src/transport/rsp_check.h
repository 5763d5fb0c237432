/* layer 2 (transport): internal: how RC and UC responders judge and execute requests. */
#ifndef RDMATRACE_RSP_CHECK_H
#define RDMATRACE_RSP_CHECK_H

#include "src/transport/responder.h"

/* Whether the packet is a request of this service. */
static inline bool rsp_right_service(const struct responder *r, const struct pkt *p)
{
    return r->p.service == p->bth.opcode >> 5 && p->op->name && p->op->flags & OPF_REQUEST &&
           (p->have & p->op->ext) == p->op->ext;
}
/* If it is not, *v says FMT-03 or SVC-02, answer ANS_DROP. */
bool rsp_wrong_service(const struct responder *r, const struct pkt *p, struct verdict *v);
/* The predicates behind the PSN: opcode sequence, opcode, resources, length, R_Key. v->answer becomes ANS_EXECUTE or
 * what the first failing one demands. */
void rsp_validate(const struct responder *r, const struct rsp_env *env, const struct pkt *p, struct verdict *v);
/* Carry out the expected request: message state, MSN, resources, effects. epsn is the caller's. */
void rsp_execute(struct responder *r, const struct pkt *p, struct effects *e);
/* Number of the remembered READ or atomic whose PSNs include `psn`; r->res_tail if there is none. */
uint32_t rsp_find(const struct responder *r, uint32_t psn);
/* READs and atomics not answered yet. One that is answered again does not count: its requester may have its answer, and
 * go on. */
uint32_t rsp_pending(const struct responder *r);

#endif
