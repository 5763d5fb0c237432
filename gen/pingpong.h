/* layer 3 (gen): the conversation of ibv_rc_pingpong, ibv_uc_pingpong and ibv_ud_pingpong (libibverbs' examples):
 * messages of equal size go to and fro by SEND, the client begins. Addresses are exchanged over TCP as text.
 */
#ifndef RDMATRACE_PINGPONG_H
#define RDMATRACE_PINGPONG_H

#include "gen/endpoint.h"

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

struct pingpong {
    struct endpoint *ep;
    uint8_t type;   /* enum qp_type */
    uint32_t size;  /* bytes of a message */
    uint64_t iters; /* messages each way */
    bool client;    /* sends the first message */
    bool validate;  /* every byte that arrives must be PINGPONG_FILL */
    int qp, cq, ah;
    uint64_t posted, sent, received; /* messages */
    uint64_t mismatches;             /* messages received with other bytes, or of another size */
    bool failed;
    char why[120]; /* of the failure */
    uint32_t peer_qpn, key, pd;
    uint32_t slot; /* bytes of a receive */
    uint8_t *mem;  /* the message sent, then the receives */
};

/* Make queue pair (in RESET) and buffers. 0, or a negative errno; pingpong_free() in any case. */
int pingpong_init(struct pingpong *p, struct endpoint *ep, enum qp_type type, uint32_t size, uint64_t iters,
                  bool validate);
void pingpong_free(struct pingpong *p);
/* Connect: RESET to RTS, receives posted. `own`: what was told to the peer. 0, or a negative errno. */
int pingpong_connect(struct pingpong *p, const struct pingpong_addr *own, const struct pingpong_addr *peer,
                     const struct av *av, uint16_t mtu, ns_t now);
/* This side is the client: send the first message. */
void pingpong_start(struct pingpong *p, ns_t now);
/* Take completions, answer messages. */
void pingpong_poll(struct pingpong *p, ns_t now);
/* Whether all messages have gone both ways. */
bool pingpong_done(const struct pingpong *p);

#endif
