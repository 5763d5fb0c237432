/* layer 3 (peers): the conversation of ibv_rc_pingpong, ibv_uc_pingpong, ibv_ud_pingpong and ibv_srq_pingpong
 * (libibverbs' examples): messages of equal size go to and fro by SEND, the client begins. Addresses are exchanged over
 * TCP as text.
 */
#ifndef RDMATRACE_GEN_PEERS_PINGPONG_H
#define RDMATRACE_GEN_PEERS_PINGPONG_H

#include "gen/verbs/receives.h"

#define PINGPONG_PORT  18515
#define PINGPONG_QKEY  0x11111111u
#define PINGPONG_FILL  0x7b /* every byte of their messages */
#define PINGPONG_RECVS 16
#define PINGPONG_TEXT  52 /* bytes of an address as exchanged, with the zero at its end */

/* What is exchanged: "LID:QPN:PSN:GID", all hexadecimal. */
struct pingpong_addr {
    uint16_t lid;
    uint32_t qpn, psn; /* psn: the first that this side sends */
    uint8_t gid[16];
};
/* Write PINGPONG_TEXT bytes. */
void pingpong_addr_put(char *text, const struct pingpong_addr *a);
/* False: not such a text. `text` has PINGPONG_TEXT bytes. */
bool pingpong_addr_get(struct pingpong_addr *a, const char *text);

/* ibv_srq_pingpong always exchanges as many addresses; those that it does not use are all zero. */
#define PINGPONG_QPS 256

struct pingpong_config {
    uint8_t type;   /* enum qp_type */
    bool srq;       /* queue pairs share a receive queue */
    unsigned qps;   /* queue pairs, 1 to PINGPONG_QPS; more than one only with `srq` */
    uint32_t size;  /* bytes of a message */
    uint64_t iters; /* messages each way, on all queue pairs together */
    uint32_t recvs; /* receives posted at a time */
    bool client;    /* sends the first messages */
    bool validate;  /* every byte that arrives must be PINGPONG_FILL (server, with `srq`: or 0) */
};

/* One of the queue pairs. */
struct pingpong_qp {
    int qp;
    uint32_t qpn;
    uint8_t pending; /* what the next message waits for: its predecessor's end, the peer's message */
};

struct pingpong {
    struct verbs *verbs;
    struct pingpong_config cfg;
    struct pingpong_qp q[PINGPONG_QPS];
    int cq, srq, ah;
    uint64_t posted, sent, received; /* messages */
    uint64_t mismatches;             /* messages received with other bytes, or of another size */
    bool failed;
    char why[120]; /* of the failure */
    uint32_t peer_qpn, key, pd;
    struct receives receives; /* in mem, behind the message sent */
    uint8_t *mem;             /* the message sent, then the receives */
};

/* Make queue pairs (in RESET) and buffers. 0, or a negative errno; pingpong_free() in any case. */
int pingpong_init(struct pingpong *p, struct verbs *verbs, const struct pingpong_config *cfg);
void pingpong_free(struct pingpong *p);
/* Connect queue pair number `i`: RESET to RTS. `own`: what was told to the peer. 0, or a negative errno. */
int pingpong_connect(struct pingpong *p, unsigned i, const struct pingpong_addr *own, const struct pingpong_addr *peer,
                     const struct av *av, uint16_t mtu, ns_t now);
/* All are connected: post the receives. */
void pingpong_ready(struct pingpong *p, ns_t now);
/* The client: send the first messages. */
void pingpong_start(struct pingpong *p, ns_t now);
/* Take completions, answer messages. */
void pingpong_poll(struct pingpong *p, ns_t now);
/* Whether all messages have gone both ways. */
bool pingpong_done(const struct pingpong *p);

#endif
