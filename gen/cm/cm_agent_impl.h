/* layer 3 (cm): internal: the connections of a connection manager, their indexes, and the ids of its users. */
#ifndef RDMATRACE_GEN_CM_CM_AGENT_IMPL_H
#define RDMATRACE_GEN_CM_CM_AGENT_IMPL_H

#include "gen/cm/cm_agent.h"
#include "gen/cm/multimap.h"
#include "gen/endpoint/timers.h"
#include "gen/verbs/rdmacm.h"
#include "gen/verbs/receives.h"

#define GSI_RECVS  64
#define GSI_SENDS  64
#define RECV_BYTES (UD_GRH_BYTES + MAD_LEN)
#define RECV_IOVA  0x100000
#define PATHS      256 /* unless cfg.max_paths says otherwise */
#define CHANNELS   16

/* Keys of a connection: its own communication id, the communication id of the peer (passive side), its queue pair. */
enum { BY_LOCAL, BY_REMOTE, BY_QP, KEYS };

/* An id of struct rdmacm. */
struct agent_id {
    int number;                /* in cm_agent.id: the handle */
    int channel;               /* handle */
    uint8_t ps;                /* CM_PS_TCP, CM_PS_UDP */
    uint8_t state;             /* enum id_state */
    uint16_t port;             /* active: the peer's; listening: the own one */
    uint8_t gid[16];           /* the peer's address */
    struct av av;              /* ID_RESOLVED: path there */
    ns_t until, again;         /* ID_RESOLVING: when to give up, when to ask again */
    int failed;                /* why it was not resolved: a negative errno */
    unsigned backlog;          /* ID_LISTENING: requests that may wait for an answer */
    unsigned waiting;          /* ID_LISTENING: requests that do */
    struct agent_id *listener; /* ID_ASKED: the id that the request came to; NULL: it was destroyed */
    struct agent_conn *conn;   /* ID_ASKED, ID_CONN; NULL: it is over, and was reused */
    uint32_t events;           /* mask of 1 << enum rdmacm_event_type that were not taken yet */
    struct agent_id *next;     /* in the channel's queue */
};
enum id_state {
    ID_IDLE,
    ID_RESOLVING,
    ID_RESOLVED,
    ID_LISTENING,
    ID_ASKED, /* a request waits for accept() or reject() */
    ID_CONN,  /* connecting, connected, or over */
};

/* An event channel: the ids with events. */
struct agent_channel {
    bool open;
    unsigned ids; /* that use it */
    struct agent_id *first, *last;
};

/* A connection, established or not. */
struct agent_conn {
    uint32_t number;    /* in cm_agent.conn */
    uint32_t key[KEYS]; /* values of its keys */
    bool found[KEYS];   /* the key is in the map */
    struct timer timer;
    struct cm_conn cm;
    int qp;              /* -1: not known yet (passive), or not any more */
    struct agent_id *id; /* NULL: none */
    uint8_t gid[16];     /* the peer's address, with cfg.path */
    uint16_t sgid_index; /* own address, of several */
    ns_t ask_again;      /* passive: when to ask the caller again for its answer; 0: it has given one */
    ns_t replied;        /* passive: when the REP was sent first */
    ns_t limit;          /* passive: when to stop waiting for the RTU */
    bool tell_connected; /* report CONNECTED when the RTU has been sent */
    struct ep_peer peer; /* attributes that the CM does not negotiate */
    struct av alt;       /* with `load_alt`: the alternate path of the REQ */
    bool load_alt;       /* to be loaded once the queue pair is in RTS */
    bool moved;          /* the queue pair has migrated: messages take the path `av` */
    struct av av;
};

/* A response for no connection, and its destination. */
struct answer {
    struct cm_msg m;
    uint8_t gid[16];
    uint16_t sgid_index; /* own address, of several */
};

/* An address handle of the endpoint. */
struct agent_path {
    struct av av;
    int ah;
};

struct cm_agent {
    struct cm_agent_config cfg;
    struct prng prng;
    uint32_t last_id; /* communication id used last */
    struct agent_conn **conn;
    uint32_t n, cap;
    uint32_t reuse; /* all in use: where to continue the search for a closed connection */
    struct chains by[KEYS];
    struct timers timers;
    uint8_t *news;            /* by connection: 1 if it may have a message to send or an event to report */
    uint8_t *unsent;          /* by connection: 1 if its message waits for a free send */
    struct agent_path *paths; /* cfg.max_paths */
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
    struct rdmacm rdmacm;
    struct agent_id **id; /* by handle; NULL: free */
    unsigned n_ids;
    struct agent_channel channel[CHANNELS];
    unsigned resolving; /* ids in ID_RESOLVING */
    uint64_t raised;    /* events of ids */
};

/* Room for connections: a->cap is set. False: out of memory, and agent_tables_free() is still due. */
bool agent_tables(struct cm_agent *a);
void agent_tables_free(struct cm_agent *a);
/* True if a connection has ended or will never be established. */
bool agent_is_over(const struct agent_conn *c);
/* True if a passive connection has sent its REP and waits for the RTU. */
bool agent_half_open(const struct agent_conn *c);
/* True if the caller is to be asked again for its answer to a REQ, at c->ask_again. */
bool agent_undecided(const struct agent_conn *c);
/* A connection was changed: update its keys and its timer. */
void agent_settle(struct cm_agent *a, struct agent_conn *c);
/* Clear a connection: no keys, no timer, qp -1. */
void agent_clear(struct cm_agent *a, struct agent_conn *c);
/* The newest connection of a queue pair that is not closed, else the newest one. NULL: none. */
struct agent_conn *agent_of_qp(const struct cm_agent *a, int qp);
/* The connection that a message is for; NULL: none. */
struct agent_conn *agent_of_msg(const struct cm_agent *a, const struct cm_msg *m);

/* Mark a connection that may have a message to send or an event to report. */
void agent_wake(struct cm_agent *a, struct agent_conn *c);
/* Send a REQ, or a SIDR_REQ if `sidr`, as cm_agent_connect(); NULL: no room, or the private data is too long. */
struct agent_conn *agent_start(struct cm_agent *a, bool sidr, int qp, const struct cm_params *own,
                               const struct ep_peer *peer, ns_t now);
/* --- Alternate paths: cm_paths.c --- */

/* The address handle for messages of `c` (NULL: of no connection) to the host `gid` from the own address `sgid_index`;
 * negative: no path is known now. */
int agent_path_to(struct cm_agent *a, const struct agent_conn *c, uint16_t sgid_index, const uint8_t gid[16]);
/* A REQ with an alternate path is accepted: load it later, if it can be; returns enum cm_failover for the REP. */
enum cm_failover agent_take_alternate(struct cm_agent *a, struct agent_conn *c);
/* The connection is in RTS: load the alternate path that REQ and REP agreed on. */
void agent_load_agreed(struct cm_agent *a, struct agent_conn *c, ns_t now);
/* A LAP, or the answer to an own one. */
void agent_lap_event(struct cm_agent *a, struct agent_conn *c, enum cm_event e, ns_t now);

/* Answer the request of a connection. False: the private data is too long; it is still unanswered. */
bool agent_answer(struct cm_agent *a, struct agent_conn *c, const struct cm_answer *ans, ns_t now);

/* The table of struct rdmacm. */
extern const struct rdmacm_ops cm_ids_ops;
void cm_ids_free(struct cm_agent *a);
/* Pass a request to the id that listens for it. False: none does. */
bool cm_ids_request(struct cm_agent *a, struct agent_conn *c, ns_t now);
/* An event of a connection with an id. */
void cm_ids_tell(struct cm_agent *a, const struct agent_conn *c, enum cm_event e);
/* See which paths are known now. */
void cm_ids_run(struct cm_agent *a, ns_t now);
/* When cm_ids_run() must be called next. */
ns_t cm_ids_next(const struct cm_agent *a);

/* Apply the faults of `ep` to a message about to be sent; `again`: retransmitted. False: do not send the message. */
bool cm_fault_apply(struct endpoint *ep, struct cm_msg *m, bool again);

#endif
