/* layer 3 (peers): what the files of the active side of perftest-like traffic share. */
#ifndef RDMATRACE_GEN_PEERS_PERF_IMPL_H
#define RDMATRACE_GEN_PEERS_PERF_IMPL_H

#include "gen/peers/perf_run.h"

#define WR_QP 48 /* and from this bit on the queue pair; below, the message or the slot */
#define RECVS 16 /* receives posted for responses of the peer */

enum stage { STAGE_IDLE, STAGE_LEARN, STAGE_RUN, STAGE_CHECK, STAGE_DONE };

static inline bool is_atomic(const struct load *l)
{
    return traffic_is_atomic(l->config.op);
}

/* SEND and WRITE with `latency`: the peer sends each message back. */
static inline bool is_pong(const struct load *l)
{
    return l->config.latency && (l->config.op == TRAFFIC_SEND || l->config.op == TRAFFIC_WRITE);
}

static inline uint8_t *slot_mem(const struct load *l, const struct load_qp *q, uint64_t n)
{
    return q->mem + (n % l->slots) * l->slot;
}

/* Where the first message of the peer arrives. */
static inline uint8_t *answer_mem(const struct load_qp *q)
{
    return q->recvs.mem;
}

#endif
