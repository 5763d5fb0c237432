/* layer 3 (peers): the protocols of ucmatose and udaddy (rdmacm-utils) over one connection.
 *
 *     ucmatose (RC)   the passive side SENDs all its messages; once the active side has received all, it SENDs as many
 *     udaddy (UD)     the active side sends first, with its QPN as immediate data; the passive side replies to that QPN
 *
 * The side that sends second sends the message that it received last, as those programs do; over UD the 40 bytes before
 * a datagram included, cut to the size of a message. So the side that sent first can verify it. */
#ifndef RDMATRACE_GEN_PEERS_UCMATOSE_H
#define RDMATRACE_GEN_PEERS_UCMATOSE_H

#include "gen/peers/why.h"
#include "gen/verbs/receives.h"

#define MATOSE_PORT    7471        /* ucmatose's */
#define MATOSE_UD_PORT 7174        /* udaddy's */
#define MATOSE_QKEY    0x01234567u /* of the RDMA-CM port space UDP */
#define MATOSE_COUNT   10
#define MATOSE_SIZE    100

struct matose_config {
    bool ud;        /* datagrams */
    bool passive;   /* this side listens */
    bool validate;  /* the side that sent first verifies the messages that it gets back */
    uint32_t size;  /* bytes of a message, at least 1 */
    uint32_t count; /* messages each way */
    uint32_t recvs; /* receives posted together; 0: `count` */
    /* UD, passive side: path to the sender of a datagram; false: not known. */
    bool (*path)(void *user, const uint8_t gid[16], struct av *av);
    void *user; /* argument of path() */
};

struct matose {
    struct matose_config cfg;
    struct verbs *verbs;
    int qp, cq, ah;               /* handles; ah: of UD */
    uint32_t pd, key;             /* protection domain and L_Key of `mem` */
    uint32_t peer_qpn, peer_qkey; /* UD */
    struct receives receives;     /* in mem, after the message to send */
    uint32_t recvs;               /* receives posted so far */
    uint32_t posted;              /* messages posted */
    uint64_t sent, received;      /* completed */
    uint64_t mismatches;          /* of those received */
    bool begun;                   /* messages were posted */
    char why[WHY_MAX];            /* why it failed; "": it did not */
    uint8_t *mem;                 /* the message to send, then the receive buffers */
};

/* Create the queue pair (in RESET) and buffers. 0 or a negative errno; call matose_free() in either case. */
int matose_init(struct matose *m, struct verbs *verbs, const struct matose_config *cfg);
/* Free the queue pair and buffers; also after matose_init() failed. */
void matose_free(struct matose *m);
/* Post the receives, once the queue pair has left RESET. */
void matose_ready(struct matose *m, ns_t now);
/* UD: take the queue pair from RESET to RTS, and post the receives. 0, or a negative errno. */
int matose_open_ud(struct matose *m, uint32_t sq_psn, ns_t now);
/* UD, active side: the destination. 0 or a negative errno. */
int matose_peer(struct matose *m, const struct av *av, uint32_t qpn, uint32_t qkey);
/* The connection is established: the side that sends first begins. */
void matose_start(struct matose *m, ns_t now);
/* Poll completions; the second side replies. */
void matose_poll(struct matose *m, ns_t now);
/* Whether all messages of both directions are complete. */
bool matose_done(const struct matose *m);

#endif
