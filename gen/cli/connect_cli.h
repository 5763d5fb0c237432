/* layer 4 (tool): `rdmagen connect`: shared by its files. */
#ifndef RDMATRACE_CONNECT_CLI_H
#define RDMATRACE_CONNECT_CLI_H

#include "gen/cli/live_run.h"
#include "gen/peers/ucmatose.h"

/* A connection; with -u, a SIDR exchange. */
struct connect_node {
    struct matose m;
    int id;                           /* of RDMA-CM */
    uint8_t gid[16];                  /* the peer's */
    uint32_t qpn;                     /* the peer's queue pair, once known */
    uint8_t data[RDMACM_PRIVATE_MAX]; /* private data of its request or reply */
    uint8_t data_len;                 /* bytes of it */
    bool used;                        /* `id` is made, and `m` was tried to be: connect_free() is due */
    bool resolved;                    /* client: the path is known */
    int lost;                         /* client: why it is not, a negative errno */
    bool ready;                       /* receives are posted */
    bool open;                        /* it stands, or stood */
    bool over;                        /* refused, not answered, or disconnected */
    bool reported;                    /* its failure was reported */
    ns_t began;                       /* when its request came or was sent */
};

/* Options and state of `rdmagen connect`. */
struct connect_job {
    struct live_run run;
    struct verbs *verbs;
    int channel, listener;      /* of RDMA-CM: event channel; server: id that listens */
    struct matose_config talk;  /* of all connections */
    uint16_t port;              /* of RDMA-CM; 0: that of the program */
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

/* Report the first failure of a connection. */
void connect_fail(struct connect_job *j, struct connect_node *n, const char *why);
/* Open the event channel; a server listens, a client finds the path to the server for its first connection. 0, or a
 * negative errno. */
int connect_open(struct connect_job *j);
/* Client: ask the server for connection `n`, the next one. 0, or a negative errno. */
int connect_start(struct connect_job *j, struct connect_node *n);
/* Take all events. */
void connect_events(struct connect_job *j);
/* Give everything of a connection back. */
void connect_free(struct connect_job *j, struct connect_node *n);

/* Make the connections, exchange the messages, disconnect, release all, and print the result. Returns the exit status.
 * `j` has zeroed nodes, and the client the peer's address. */
int connect_run(struct connect_job *j);

#endif
