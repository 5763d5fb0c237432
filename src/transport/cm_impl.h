/* layer 2 (transport): shared by the files of Communication Management. */
#ifndef RDMATRACE_CM_IMPL_H
#define RDMATRACE_CM_IMPL_H

#include "src/transport/cm.h"

/* Build a message from a connection's state, into c->out; the caller sets `pending`. */
void cm_build_req(struct cm_conn *c);
void cm_build_rep(struct cm_conn *c);
void cm_build_rtu(struct cm_conn *c);
void cm_build_mra(struct cm_conn *c, enum cm_about about, unsigned n);
void cm_build_rej(struct cm_conn *c, enum cm_about about, unsigned reason, const void *info, unsigned info_len,
                  const void *data, unsigned len);
void cm_build_dreq(struct cm_conn *c, const void *data, unsigned len);
void cm_build_drep(struct cm_conn *c, uint64_t tid);
void cm_build_lap(struct cm_conn *c);
void cm_build_apr(struct cm_conn *c, uint64_t tid, unsigned status);
void cm_build_sidr_req(struct cm_conn *c);
void cm_build_sidr_rep(struct cm_conn *c, unsigned status);

/* The peer's parameters in a message. */
void cm_params_of_req(struct cm_params *p, const struct cm_msg *m);
void cm_params_of_rep(struct cm_params *p, const struct cm_msg *m);
/* The path in a LAP, as its receiver sees it. */
void cm_path_of_lap(struct cm_path *p, const struct cm_msg *m);
void cm_params_of_sidr_req(struct cm_params *p, const struct cm_msg *m);
void cm_params_of_sidr_rep(struct cm_params *p, const struct cm_msg *m);

/* What a message does in a state (12.9.7, and the handlers of the kernel's cm.c). */
enum cm_act {
    CM_ACT_BAD,            /* not permitted */
    CM_ACT_IGNORE,         /* late, or a duplicate without effect */
    CM_ACT_REPEAT,         /* duplicate: send the last message again */
    CM_ACT_RTU_AGAIN,      /* duplicate REP: send the RTU again */
    CM_ACT_DREP_AGAIN,     /* duplicate DREQ: send the DREP again */
    CM_ACT_REJ_AGAIN,      /* send the last message again if it is a REJ */
    CM_ACT_SIDR_REP_AGAIN, /* likewise, if it is a SIDR_REP */
    CM_ACT_STALE,          /* a REQ for a connection in timewait */
    CM_ACT_REQ,            /* process it */
    CM_ACT_REP,
    CM_ACT_RTU,
    CM_ACT_MRA,
    CM_ACT_REJ,
    CM_ACT_DREQ,
    CM_ACT_DREP,
    CM_ACT_LAP,
    CM_ACT_APR,
    CM_ACT_SIDR_REQ,
    CM_ACT_SIDR_REP,
};
enum cm_act cm_act_of(const struct cm_conn *c, const struct cm_msg *m);

/* True if the receiver ignores a message with this verdict: out of order, wrong header, wrong queue pair. */
bool cm_is_ignored(struct verdict v);

#endif
