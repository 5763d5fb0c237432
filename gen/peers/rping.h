/* layer 3 (peers): both sides of rping's protocol (rdmacm-utils) over a connected RC queue pair.
 *
 * Each ping has four steps:
 *
 *     client  SEND: address of the source buffer        server  READ it, SEND: done
 *     client  SEND: address of the sink buffer          server  WRITE the data there, SEND: done
 *
 * A SEND carries struct rping_rdma_info: address (8 bytes), R_Key (4), size (4), all big-endian; the client ignores
 * the content of the server's messages. */
#ifndef RDMATRACE_GEN_PEERS_RPING_H
#define RDMATRACE_GEN_PEERS_RPING_H

#include "gen/verbs/receives.h"

#define RPING_PORT     7174
#define RPING_SIZE_MIN 26 /* room for "rdma-ping-2147483647: " */
#define RPING_SIZE_MAX 65536
#define RPING_INFO     16
#define RPING_RECVS    2

enum rping_state {
    RPING_IDLE,       /* not started, or between pings */
    RPING_WAIT_READ,  /* client: waits until the server has READ */
    RPING_WAIT_WRITE, /* client: waits until the server has written */
    RPING_READING,    /* server: READ under way */
    RPING_READ,       /* server: waits for the address of the sink buffer */
    RPING_WRITING,    /* server: WRITE under way */
    RPING_FAILED,
};

struct rping {
    struct verbs *verbs;
    bool server;
    bool validate;       /* verify the data: the client against what it sent, the server against rping's pattern */
    uint32_t size;       /* client: data bytes of a ping */
    int qp, cq;          /* handles */
    uint8_t state;       /* enum rping_state */
    uint64_t done;       /* pings completed */
    uint64_t mismatches; /* of them with wrong data */
    uint32_t got;        /* data bytes of the last ping */
    ns_t began, took;    /* client: when the ping began, and the duration of the last one */
    char why[120];       /* in RPING_FAILED */
    uint8_t first;       /* first character of the pattern */
    uint32_t data_key, sink_key, info_key;     /* keys of `data`, `sink`, `info` */
    struct receives receives;                  /* info[1] and up */
    uint8_t info[1 + RPING_RECVS][RPING_INFO]; /* sent, received */
    uint8_t *data;                             /* client: source buffer, which the server READs */
    uint8_t *sink; /* client: sink buffer, to which the server WRITEs; server: its buffer for both */
};

/* Create the queue pair (in RESET) and buffers. 0 or a negative errno; call rping_free() in either case. */
int rping_init(struct rping *r, struct verbs *verbs, bool server, uint32_t size, bool validate);
/* Post the receives, once the queue pair has left RESET. */
void rping_ready(struct rping *r, ns_t now);
/* Free the queue pair and buffers; also after rping_init() failed. */
void rping_free(struct rping *r);
/* Client: begin the next ping. The queue pair is connected and the state RPING_IDLE. */
void rping_start(struct rping *r, ns_t now);
/* Poll completions. Returns true if they completed a ping: r->done, r->got, r->took. */
bool rping_poll(struct rping *r, ns_t now);
/* Fail with a reason given by the caller, unless it has failed already. */
void rping_fail(struct rping *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Copy the text of the last ping, at most `max` bytes, up to the first byte that is not printable. */
uint32_t rping_text(const struct rping *r, const char **text, uint32_t max);

#endif
