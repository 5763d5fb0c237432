/* layer 4 (tool): `rdmagen connect`: what its files share. */
#ifndef RDMATRACE_CONNECT_CLI_H
#define RDMATRACE_CONNECT_CLI_H

#include "gen/cli/live_run.h"
#include "gen/peers/ucmatose.h"

/* A connection, or with -u a service. */
struct connect_node {
    struct matose m;
    uint8_t gid[16]; /* the peer's */
    bool used;       /* `m` is made, or was tried to: matose_free() is due */
    bool ready;      /* receives are posted */
    bool open;       /* it stands, or stood */
    bool over;       /* refused, not answered, or disconnected */
    bool reported;   /* its failure was reported */
    ns_t began;      /* when its request came or was sent */
};

/* Options and state of `rdmagen connect`. */
struct connect_job {
    struct live_run run;
    struct matose_config talk;  /* of all connections */
    uint16_t port;              /* of RDMA-CM; 0: that of the program */
    bool leave;                 /* client: disconnect when done, without waiting for the server */
    bool verbose;               /* show each connection */
    bool rejects;               /* server: refuse all requests */
    uint32_t reject;            /* rejects: reason or status to refuse them with */
    uint8_t data[196];          /* private data: what fits into a REP */
    uint8_t data_len;           /* bytes of it */
    ns_t timeout;               /* longest time without a sign of the peer */
    ns_t hold;                  /* keep the connections for so long after the messages */
    unsigned n;                 /* connections wanted */
    unsigned taken;             /* begun: the first of `nodes` */
    unsigned refused;           /* refused by us */
    unsigned failed;            /* failures reported */
    struct connect_node *nodes; /* `n` of them */
};

/* The connection, among those in use, of queue pair `qp`; NULL: none. */
struct connect_node *connect_find(struct connect_job *j, int qp);
/* Report the first failure of a connection. */
void connect_fail(struct connect_job *j, struct connect_node *n, const char *why);
/* Client: ask the server for connection `n`, the next one. 0, or a negative errno. */
int connect_start(struct connect_job *j, struct connect_node *n);
/* Callbacks for live_config.request and live_config.event; the user of the struct live is the job. */
void connect_request(void *user, const struct cm_conn *c, struct cm_answer *a);
void connect_event(void *user, int qp, enum cm_event e, const struct cm_conn *c);

/* Make the connections, use them as asked, end and release them, and show the result: the exit status. `j` has its
 * nodes, all zero, and the client the peer's address. */
int connect_run(struct connect_job *j);

#endif
