/* layer 3 (peers): the conversations of ucmatose and udaddy (rdmacm-utils) over one connection.
 *
 * Over RC (ucmatose) the passive side SENDs all its messages; when the active side has them all it SENDs as many back.
 * Over UD (udaddy) the active side begins, with its queue pair number as immediate data, to which the answers go. The
 * second side sends what it last received, as those programs do: over UD with the 40 bytes in front of a datagram, cut
 * to the size of a message. So the first side can compare.
 */
#ifndef RDMATRACE_GEN_PEERS_UCMATOSE_H
#define RDMATRACE_GEN_PEERS_UCMATOSE_H

#include "gen/verbs/receives.h"

#define MATOSE_PORT    7471        /* ucmatose's */
#define MATOSE_UD_PORT 7174        /* udaddy's */
#define MATOSE_QKEY    0x01234567u /* of RDMA-CM's port space UDP */
#define MATOSE_COUNT   10
#define MATOSE_SIZE    100

struct matose_config {
    bool ud;        /* datagrams */
    bool passive;   /* this side listens */
    bool validate;  /* the first side compares what comes back */
    uint32_t size;  /* bytes of a message, 1 and up */
    uint32_t count; /* messages each way */
    uint32_t recvs; /* receives posted at a time; 0: `count` */
    /* UD, passive: path to who sent a datagram; false: unknown. */
    bool (*path)(void *user, const uint8_t gid[16], struct av *av);
    void *user;
};

struct matose {
    struct matose_config cfg;
    struct verbs *verbs;
    int qp, cq, ah;
    uint32_t pd, key;
    uint32_t peer_qpn, peer_qkey; /* UD */
    struct receives receives;     /* in mem, behind the message sent */
    uint32_t recvs;               /* receives posted so far */
    uint32_t posted;              /* messages posted */
    uint64_t sent, received;      /* completed */
    uint64_t mismatches;          /* of those received */
    bool begun;                   /* messages were posted */
    bool failed;
    char why[120]; /* of the failure */
    uint8_t *mem;  /* the message sent, then the receives */
};

/* Make queue pair (in RESET) and buffers. 0, or a negative errno; matose_free() in any case. */
int matose_init(struct matose *m, struct verbs *verbs, const struct matose_config *cfg);
void matose_free(struct matose *m);
/* Post the receives: the queue pair has left RESET. */
void matose_ready(struct matose *m, ns_t now);
/* UD: take the queue pair from RESET to RTS, and post the receives. 0, or a negative errno. */
int matose_open_ud(struct matose *m, uint32_t sq_psn, ns_t now);
/* UD, active: whom to send to. 0, or a negative errno. */
int matose_peer(struct matose *m, const struct av *av, uint32_t qpn, uint32_t qkey);
/* The connection stands: the first side sends. */
void matose_start(struct matose *m, ns_t now);
/* Take completions; the second side answers. */
void matose_poll(struct matose *m, ns_t now);
/* Whether all messages have gone both ways. */
bool matose_done(const struct matose *m);

#endif
