/* layer 2 (transport): internal: what both parts of a requester's apply half ask of messages. */
#ifndef RDMATRACE_REQ_APPLY_H
#define RDMATRACE_REQ_APPLY_H

#include "src/transport/requester.h"

/* Whether the message takes one of the responder's resources: READs and atomics. */
static inline bool req_takes_depth(const struct req_msg *m)
{
    return m->kind == MSG_READ || m->kind == MSG_ATOMIC;
}
/* Whether only a response of its own completes the message. */
static inline bool req_takes_response(const struct req_msg *m)
{
    return req_takes_depth(m) || m->kind == MSG_PLACE;
}
/* msg_tx is the message of psn_tx: local ones, which have no PSN, are passed over. */
static inline void req_skip_local(struct requester *r)
{
    while (r->msg_tx != r->msg_tail && (req_msg(r, r->msg_tx)->kind == MSG_LOCAL || req_msg(r, r->msg_tx)->span == 0))
        r->msg_tx++;
}

#endif
