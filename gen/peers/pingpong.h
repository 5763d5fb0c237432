/* layer 3 (peers): the protocol of ibv_rc_pingpong, ibv_uc_pingpong, ibv_ud_pingpong and ibv_srq_pingpong (examples of
 * libibverbs): the sides SEND messages of equal size in turn, the client first. They exchange addresses over TCP as
 * text. */
#ifndef RDMATRACE_GEN_PEERS_PINGPONG_H
#define RDMATRACE_GEN_PEERS_PINGPONG_H

#include "gen/peers/why.h"
#include "gen/verbs/receives.h"

#define PINGPONG_PORT  18515
#define PINGPONG_QKEY  0x11111111u
#define PINGPONG_FILL  0x7b /* value of every byte of a message */
#define PINGPONG_RECVS 16   /* default of pingpong_config.recvs */
#define PINGPONG_TEXT  52   /* bytes of an exchanged address, its final zero included */

/* An exchanged address: "LID:QPN:PSN:GID", all hexadecimal. */
struct pingpong_addr {
    uint16_t lid;      /* 0 over Ethernet */
    uint32_t qpn, psn; /* psn: the starting PSN of this side */
    uint8_t gid[16];   /* of the queue pair's port */
};
/* Write PINGPONG_TEXT bytes. */
void pingpong_addr_put(char *text, const struct pingpong_addr *a);
/* False: `text` (PINGPONG_TEXT bytes) is no address. */
bool pingpong_addr_get(struct pingpong_addr *a, const char *text);

/* ibv_srq_pingpong always exchanges this many addresses; unused ones are all zero. */
#define PINGPONG_QPS 256

struct pingpong_config {
    uint8_t type;   /* enum qp_type */
    bool srq;       /* queue pairs share a receive queue */
    unsigned qps;   /* queue pairs, 1 to PINGPONG_QPS; more than one only with `srq` */
    uint32_t size;  /* bytes of a message */
    uint64_t iters; /* messages in each direction, on all queue pairs together */
    uint32_t recvs; /* receives posted at a time */
    bool client;    /* this side sends the first messages */
    bool validate;  /* every received byte must be PINGPONG_FILL (server with `srq`: or 0) */
};

/* A queue pair. */
struct pingpong_qp {
    int qp; /* handle */
    uint32_t qpn;
    uint8_t pending; /* the next message waits until the previous SEND completes, and for the message of the peer */
};

struct pingpong {
    struct verbs *verbs;
    struct pingpong_config cfg;
    struct pingpong_qp q[PINGPONG_QPS];
    int cq, srq, ah;                 /* handles */
    uint64_t posted, sent, received; /* messages */
    uint64_t mismatches;             /* messages received with wrong data or a wrong size */
    char why[WHY_MAX];               /* why it failed; "": it did not */
    uint32_t peer_qpn, key, pd;      /* peer_qpn: UD; key, pd: L_Key and protection domain of `mem` */
    struct receives receives;        /* in mem, after the message to send */
    uint8_t *mem;                    /* the message to send, then the receive buffers */
};

/* Create queue pairs (in RESET) and buffers. 0 or a negative errno; call pingpong_free() in either case. */
int pingpong_init(struct pingpong *p, struct verbs *verbs, const struct pingpong_config *cfg);
/* Free queue pairs and buffers; also after pingpong_init() failed. */
void pingpong_free(struct pingpong *p);
/* Connect queue pair number `i`: RESET to RTS. `own`: the address that the peer was sent. 0 or a negative errno. */
int pingpong_connect(struct pingpong *p, unsigned i, const struct pingpong_addr *own, const struct pingpong_addr *peer,
                     const struct av *av, uint16_t mtu, ns_t now);
/* All queue pairs are connected: post the receives. */
void pingpong_ready(struct pingpong *p, ns_t now);
/* Client: send the first messages. */
void pingpong_start(struct pingpong *p, ns_t now);
/* Poll completions, send the next messages. */
void pingpong_poll(struct pingpong *p, ns_t now);
/* Whether all messages of both directions are complete. */
bool pingpong_done(const struct pingpong *p);

#endif
