/* layer 3 (verbs): the messages of perftest-like traffic that one queue pair sends, simulated or live: work requests
 * posted while a window has room, and completed in order. */
#ifndef RDMATRACE_GEN_VERBS_SENDER_H
#define RDMATRACE_GEN_VERBS_SENDER_H

#include "gen/verbs/traffic_ops.h"
#include "gen/verbs/verbs.h"

/* A message posted and not complete. */
struct sender_message {
    ns_t posted;     /* when */
    uint64_t expect; /* atomics: the value that it must return */
    uint32_t len;    /* bytes */
    uint8_t op;      /* enum traffic_op, not TRAFFIC_MIXED */
};

struct sender {
    /* Settings. */
    struct verbs *verbs;
    int qp, ah;                       /* handles; ah: UD */
    uint64_t id;                      /* wr_id of message 0 */
    uint64_t iters;                   /* messages; UINT64_MAX: without end */
    uint32_t depth;                   /* messages outstanding at most */
    uint32_t signal_every;            /* every n-th message is signaled, and the last one; at most depth */
    bool imm, solicited;              /* SENDs and WRITEs with immediate data: the number; with a solicited event */
    uint32_t lkey, rkey;              /* of the memory here, and at the peer */
    uint32_t remote_qpn, remote_qkey; /* UD */
    uint32_t remote_srqn;             /* XRC */
    /* State, at first zero. */
    uint64_t posted, completed;     /* messages */
    uint64_t next[2];               /* what the next FETCH & ADD, and the next COMPARE & SWAP, must return */
    struct sender_message *message; /* `depth` of them, of the caller: number k in k % depth */
};

/* Number of messages that may be posted now. */
uint64_t sender_room(const struct sender *s);
/* Post the next message, as `m` says (op, len), with its data at address `local` here and `remote` at the peer: 0, or
 * as post_send() of struct verbs_ops. */
int sender_post(struct sender *s, const struct sender_message *m, uint64_t local, uint64_t remote, ns_t now);
/* A work request completed with success, and with it all messages before: the oldest of them that was not taken yet,
 * number s->completed - 1 then; NULL: all were. */
const struct sender_message *sender_completed(struct sender *s, const struct wc *wc);

#endif
