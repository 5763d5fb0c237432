/* layer 3 (peers): an out-of-band channel by SENDs on a separate RC queue pair, as of perftest -R. */
#ifndef RDMATRACE_GEN_PEERS_OOB_RDMA_H
#define RDMATRACE_GEN_PEERS_OOB_RDMA_H

#include "gen/verbs/receives.h"

#define RCHAN_MAX   64 /* bytes of a message */
#define RCHAN_SLOTS 8  /* received messages kept, and SENDs outstanding, at most */

struct rchan {
    struct verbs *verbs;
    int qp, cq;                              /* handles */
    uint32_t key;                            /* L_Key of mem */
    struct receives receives;                /* the first half of mem */
    uint8_t mem[2 * RCHAN_SLOTS][RCHAN_MAX]; /* received, sent */
    struct {
        uint8_t slot, len;         /* slot: of the receive; len: bytes */
    } got[RCHAN_SLOTS];            /* received and not read yet, oldest first */
    unsigned n_got, sent, sending; /* n_got: messages in got; sent: SENDs so far; sending: SENDs without a completion */
    bool ready;                    /* receives were posted */
    bool failed;                   /* a work request completed with an error */
};

/* Create the queue pair (in RESET). 0 or a negative errno; call rchan_free() in either case. */
int rchan_init(struct rchan *c, struct verbs *verbs);
/* Destroy the queue pair; also after rchan_init() failed. */
void rchan_free(struct rchan *c);
/* Post the receives once the queue pair has left RESET; poll completions. */
void rchan_poll(struct rchan *c, ns_t now);
/* Copy the oldest received message to `data` (RCHAN_MAX bytes). Returns its length; -1: none was received. */
int rchan_take(struct rchan *c, void *data, ns_t now);
/* Send a message. 0; -EAGAIN: too many SENDs are outstanding; -EMSGSIZE; -EIO. */
int rchan_send(struct rchan *c, const void *data, size_t len, ns_t now);

#endif
