/* layer 3 (peers): short messages to and fro by SEND on an RC queue pair of their own, as perftest -R exchanges its
 * words. */
#ifndef RDMATRACE_GEN_PEERS_OOB_RDMA_H
#define RDMATRACE_GEN_PEERS_OOB_RDMA_H

#include "gen/verbs/receives.h"

#define RCHAN_MAX   64 /* bytes of a message */
#define RCHAN_SLOTS 8  /* messages that wait to be taken, and that are on their way */

struct rchan {
    struct verbs *verbs;
    int qp, cq; /* handles */
    uint32_t key;
    struct receives receives;                /* the first half of mem */
    uint8_t mem[2 * RCHAN_SLOTS][RCHAN_MAX]; /* received, sent */
    struct {
        uint8_t slot, len;
    } got[RCHAN_SLOTS];            /* received and not taken, the oldest first */
    unsigned n_got, sent, sending; /* sent: in all; sending: without a completion yet */
    bool ready;                    /* receives are posted */
    bool failed;                   /* a completion with an error */
};

/* Make the queue pair (in RESET). 0 or a negative errno; rchan_free() in any case. */
int rchan_init(struct rchan *c, struct verbs *verbs);
void rchan_free(struct rchan *c);
/* Post the receives once the queue pair has left RESET, take completions. */
void rchan_poll(struct rchan *c, ns_t now);
/* The oldest message received, to `data` (RCHAN_MAX bytes): its length, or -1 if there is none. */
int rchan_take(struct rchan *c, void *data, ns_t now);
/* Send. 0; -EAGAIN: too many are on their way; -EMSGSIZE; -EIO. */
int rchan_send(struct rchan *c, const void *data, size_t len, ns_t now);

#endif
