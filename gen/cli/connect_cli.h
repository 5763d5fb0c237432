/* layer 4 (tool): `rdmagen connect`: shared by its files. */
#ifndef RDMATRACE_CONNECT_CLI_H
#define RDMATRACE_CONNECT_CLI_H

#include "gen/cli/live_run.h"
#include "gen/peers/ucmatose.h"

/* A connection; with -u, a SIDR exchange. */
struct connect_node {
    struct matose m;                  /* the messages */
    int id;                           /* RDMA-CM id */
    uint8_t gid[16];                  /* GID of the peer */
    uint32_t qpn;                     /* QPN of the peer, once known */
    uint8_t data[RDMACM_PRIVATE_MAX]; /* private data of its request or reply */
    uint8_t data_len;                 /* bytes of `data` */
    /* `id` was created, and matose_init() perhaps called for `m`: connect_free() is due */
    bool used;
    bool resolved; /* client: the path is resolved */
    int lost;      /* client: error of the resolution, a negative errno; 0: none */
    bool ready;    /* receives were posted */
    bool open;     /* it is or was established */
    bool over;     /* rejected, without a response, or disconnected */
    bool reported; /* its failure is reported */
    ns_t began;    /* time of its REQ or SIDR_REQ, live_now() */
};

/* Options and state of `rdmagen connect`. */
struct connect_job {
    struct live_run run;        /* first */
    struct verbs *verbs;        /* of the endpoint */
    int channel, listener;      /* RDMA-CM: event channel; server: listening id */
    struct matose_config talk;  /* configuration of all connections */
    uint16_t port;              /* RDMA-CM port; 0: the default of ucmatose or udaddy */
    bool leave;                 /* client: disconnect when done, without waiting for the server */
    bool verbose;               /* show each connection */
    bool rejects;               /* server: reject all requests */
    uint32_t reject;            /* with `rejects`: reason of the REJ, or status of the SIDR_REP */
    uint8_t data[196];          /* private data, at most what fits into a REP */
    uint8_t data_len;           /* bytes of `data` */
    ns_t timeout;               /* longest time without progress of the peer, ns */
    ns_t hold;                  /* ns that connections are kept after the messages */
    unsigned n;                 /* number of connections to make */
    unsigned taken;             /* connections begun: the first ones of `nodes` */
    unsigned refused;           /* connections that this side rejected */
    unsigned failed;            /* connections whose failure was reported */
    struct connect_node *nodes; /* `n` of them */
};

/* Report that a connection failed, unless its failure was reported already. */
void connect_fail(struct connect_job *j, struct connect_node *n, const char *why);
/* Create the event channel; a server listens, a client resolves the path of its first connection. 0, or a negative
 * errno. */
int connect_open(struct connect_job *j);
/* Client: send the REQ of connection `n`, the next one. 0, or a negative errno. */
int connect_start(struct connect_job *j, struct connect_node *n);
/* Process all pending events of the connection manager. */
void connect_events(struct connect_job *j);
/* Destroy the RDMA-CM id of a connection, its queue pair and buffers. */
void connect_free(struct connect_job *j, struct connect_node *n);

/* Make the connections, exchange the messages, disconnect, release all, and print the result. Returns the exit status.
 * `j` has zeroed nodes, and the client the peer's address. */
int connect_run(struct connect_job *j);

#endif
