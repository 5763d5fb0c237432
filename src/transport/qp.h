/* layer 2 (transport): a queue pair: its states, and a requester and a responder (IBTA volume 1, 10.3). */
#ifndef RDMATRACE_QP_H
#define RDMATRACE_QP_H

#include "src/transport/requester.h"
#include "src/transport/responder.h"

/* Options that are not part of the verbs. */
struct qp_options {
    bool credits_rx;   /* announce end-to-end credits to the peer */
    bool credits_tx;   /* honour those of the peer */
    bool rxe;          /* behaviour of soft-RoCE */
    bool selective;    /* a sequence NAK asks for one packet only */
    uint16_t port_mtu; /* UD: largest payload, bytes */
};

/* Plain data; both rings follow in the same block, so that memcpy() of the block copies everything. */
struct qp {
    uint8_t type;  /* enum qp_type */
    uint8_t state; /* enum qp_state */
    uint32_t qpn;
    uint32_t attr_set;   /* QPA_*: attributes given so far */
    struct qp_attr attr; /* current values */
    struct qp_options opt;
    uint32_t n_msg; /* entries of the requester's ring, a power of two */
    uint32_t n_res; /* entries of the responder's ring, a power of two */
    struct requester req;
    struct responder rsp;
};

/* Bytes of a queue pair with rings of `n_msg` and `n_res` entries. */
size_t qp_size(uint32_t n_msg, uint32_t n_res);
/* Begin in RESET; `qp` is a block of qp_size(n_msg, n_res) bytes, aligned to 8. */
void qp_init(struct qp *qp, enum qp_type type, uint32_t qpn, uint32_t n_msg, uint32_t n_res,
             const struct qp_options *opt);
/* Change state and attributes. 0; -EINVAL: the transition does not exist for this type, a required attribute is
 * missing, one is not allowed, or a value is out of range (nothing is changed then). Tables as in 10.3.1 and
 * 11.2.5.2. MIG_REARM needs an alternate path, loaded before or at once; MIG_MIGRATED makes an armed queue pair
 * migrate: see qp_migrate(). */
int qp_modify(struct qp *qp, const struct qp_attr *attr, uint32_t mask);
/* True if the transition exists for `type`; sets its required and optional attributes. */
bool qp_transition(enum qp_type type, enum qp_state from, enum qp_state to, uint32_t *required, uint32_t *optional);
/* Migrate: the alternate path becomes the primary one, with its timeout and partition key; there is no alternate path
 * any more, and the state is MIG_MIGRATED. The caller makes sure that the queue pair is armed. */
void qp_migrate(struct qp *qp);
/* To the error state, from any state. */
void qp_error(struct qp *qp);

/* States in which requests are received. */
static inline bool qp_can_receive(const struct qp *qp)
{
    return qp->state >= QPS_RTR && qp->state <= QPS_SQE;
}
/* States in which the requester may send; in SQD it only completes what was begun. */
static inline bool qp_can_send(const struct qp *qp)
{
    return qp->state == QPS_RTS || qp->state == QPS_SQD;
}

#endif
