/* layer 3 (endpoint): internal: the connections of a connection manager, and how they are found. */
#ifndef RDMATRACE_GEN_ENDPOINT_CM_AGENT_IMPL_H
#define RDMATRACE_GEN_ENDPOINT_CM_AGENT_IMPL_H

#include "gen/endpoint/cm_agent.h"
#include "gen/endpoint/multimap.h"
#include "gen/endpoint/timers.h"
#include "gen/verbs/receives.h"

#define GSI_RECVS  64
#define GSI_SENDS  64
#define RECV_BYTES (UD_GRH_BYTES + MAD_LEN)
#define RECV_IOVA  0x100000
#define PATHS      256

/* What connections are found by: their own id, the peer's if the peer began, and the queue pair. */
enum { BY_LOCAL, BY_REMOTE, BY_QP, KEYS };

/* A connection, or an attempt at one. */
struct agent_conn {
    uint32_t number;    /* in cm_agent.conn */
    uint32_t key[KEYS]; /* under which it can be found */
    bool found[KEYS];   /* whether it can be */
    struct timer timer;
    struct cm_conn cm;
    int qp;              /* -1: not known yet (passive) */
    uint8_t gid[16];     /* the peer's address, with cfg.path */
    ns_t replied;        /* passive: when the REP was sent first */
    ns_t limit;          /* and until when the RTU is waited for */
    bool tell_connected; /* CONNECTED is told when the RTU has left */
    struct ep_peer peer; /* what the CM does not negotiate */
};

/* An answer that belongs to no connection, and where it goes. */
struct answer {
    struct cm_msg m;
    uint8_t gid[16];
};

/* An address handle of the endpoint. */
struct agent_path {
    uint8_t gid[16], mac[6];
    int ah;
};

struct cm_agent {
    struct cm_agent_config cfg;
    struct prng prng;
    uint32_t last_id; /* communication id given last */
    struct agent_conn **conn;
    uint32_t n, cap;
    uint32_t reuse; /* where to look next for a connection that is over, once all are in use */
    struct chains by[KEYS];
    struct timers timers;
    uint8_t *news;   /* of each connection: 1 if it may have something to send or to tell */
    uint8_t *unsent; /* of each: 1 if it waits for room to send */
    struct agent_path paths[PATHS];
    unsigned n_paths;
    uint64_t ignored;
    int gsi, cq, ah;
    uint32_t lkey, pd;
    uint32_t sending; /* sends posted and not complete */
    ns_t look_again;  /* not before this: see make_room() */
    bool dirty;       /* there is something to do now */
    struct answer answers[8];
    unsigned n_answers;
    uint64_t sent[16];
    uint8_t mem[GSI_RECVS][RECV_BYTES];
    struct receives receives; /* in mem */
};

/* Room for connections: a->cap is set. False: out of memory, and agent_tables_free() is still due. */
bool agent_tables(struct cm_agent *a);
void agent_tables_free(struct cm_agent *a);
/* Whether nothing will come of a connection any more. */
bool agent_is_over(const struct agent_conn *c);
/* Whether our REP waits for the RTU. */
bool agent_half_open(const struct agent_conn *c);
/* Something was done to a connection: its numbers may be others now, and its timer. */
void agent_settle(struct cm_agent *a, struct agent_conn *c);
/* All zero, not to be found, without a timer; qp is -1. */
void agent_clear(struct cm_agent *a, struct agent_conn *c);
/* The connection of a queue pair, the newest if there are several, and one that is over only if all are; NULL: none. */
struct agent_conn *agent_of_qp(const struct cm_agent *a, int qp);
/* The connection that a message is for; NULL: none. */
struct agent_conn *agent_of_msg(const struct cm_agent *a, const struct cm_msg *m);

#endif
