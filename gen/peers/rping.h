/* layer 3 (peers): both sides of rping's conversation (rdmacm-utils) over a connected RC queue pair.
 *
 * For each ping the client SENDs where its data is; the server READs it and SENDs that it has; the client SENDs where
 * it wants the data back; the server WRITEs it there and SENDs that it has. What is sent is struct rping_rdma_info:
 * address (8 bytes), R_Key (4), size (4), all big-endian; in the server's messages the content is not looked
 * at. */
#ifndef RDMATRACE_GEN_PEERS_RPING_H
#define RDMATRACE_GEN_PEERS_RPING_H

#include "gen/verbs/receives.h"

#define RPING_PORT     7174
#define RPING_SIZE_MIN 26 /* room for "rdma-ping-2147483647: " */
#define RPING_SIZE_MAX 65536
#define RPING_INFO     16
#define RPING_RECVS    2

enum rping_state {
    RPING_IDLE,       /* not started, or between two pings */
    RPING_WAIT_READ,  /* client: until the server has read */
    RPING_WAIT_WRITE, /* client: until the server has written */
    RPING_READING,    /* server: READ under way */
    RPING_READ,       /* server: until the client says where the data is to go */
    RPING_WRITING,    /* server: WRITE under way */
    RPING_FAILED,
};

struct rping {
    struct verbs *verbs;
    bool server;
    bool validate; /* compare the data: client, with what was sent; server, with rping's pattern */
    uint32_t size; /* client: bytes of a ping */
    int qp, cq;
    uint8_t state;       /* enum rping_state */
    uint64_t done;       /* pings completed */
    uint64_t mismatches; /* of them: data was wrong */
    uint32_t got;        /* bytes of the last ping */
    ns_t began, took;    /* client: start of the ping, and how long the last one took */
    char why[120];       /* in RPING_FAILED */
    uint8_t first;       /* first character of the pattern */
    uint32_t data_key, sink_key, info_key;
    struct receives receives;                  /* info[1] and up */
    uint8_t info[1 + RPING_RECVS][RPING_INFO]; /* sent, received */
    uint8_t *data;                             /* client: what the server reads */
    uint8_t *sink; /* client: where the server writes; server: where it reads to and writes from */
};

/* Make queue pair (in RESET) and buffers. 0, or a negative errno; rping_free() in any case. */
int rping_init(struct rping *r, struct verbs *verbs, bool server, uint32_t size, bool validate);
/* Post the receives: the queue pair has left RESET. */
void rping_ready(struct rping *r, ns_t now);
void rping_free(struct rping *r);
/* Client: begin the next ping; the queue pair is connected, the state is RPING_IDLE. */
void rping_start(struct rping *r, ns_t now);
/* Take completions. Returns true when a ping was completed by them: r->done, r->got, r->took. */
bool rping_poll(struct rping *r, ns_t now);
/* Fail for a reason of the caller's, unless it has failed already. */
void rping_fail(struct rping *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The text of the last ping, up to its end or the first byte that is not printable; at most `max` bytes. */
uint32_t rping_text(const struct rping *r, const char **text, uint32_t max);

#endif
