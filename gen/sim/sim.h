/* layer 3 (sim): hosts, a network between them and one virtual clock: whole conversations from a seed. The network is a
 * path between two hosts (gen/net), or a fabric of many (gen/fabric). */
#ifndef RDMATRACE_GEN_SIM_SIM_H
#define RDMATRACE_GEN_SIM_SIM_H

#include "gen/cm/cm_agent.h"
#include "gen/endpoint/timers.h"
#include "gen/fabric/fabric.h"
#include "gen/net/net.h"

/* A real network in place of the virtual clock and of one host: host `local` runs in real time. The other host has a
 * replica in the simulation, which never sends; it holds what the real host has announced. Exact events and nodes
 * remain in between. */
struct sim_wire {
    unsigned local;
    bool (*ready)(void *user);                                   /* true if a frame can be sent now */
    void (*send)(void *user, const uint8_t *data, uint32_t len); /* send a frame */
    /* Pass received frames to sim_arrive(); if there are none, wait for one until `until`. 0, or a negative errno. */
    int (*wait)(void *user, ns_t until);
    ns_t (*clock)(void *user); /* time now */
    void *user;
};

/* When a host stops: from then on the host sends nothing and ignores every packet that arrives. */
struct sim_end {
    ns_t at;         /* at this time; 0: never */
    uint64_t frames; /* after it has sent this many frames; 0: never */
};

/* Configuration of a simulation. */
struct sim_config {
    uint64_t seed;
    struct ep_config ep[NET_HOSTS]; /* seeds are derived from `seed` */
    struct net_config net;
    uint64_t port_rate;               /* bit/s at which a host puts frames on the wire; 0: 100 G */
    bool no_cm;                       /* no connection manager */
    uint8_t apr[NET_HOSTS];           /* enum cm_apr_status by which the host refuses every alternate path; 0: none */
    struct event_list *events;        /* taken over; NULL: none */
    struct sim_end end[NET_HOSTS];    /* when a host stops */
    const struct sim_wire *wire;      /* NULL: everything is simulated */
    uint16_t port;                    /* of RDMA-CM, on which the passive side listens; 0: 18515 */
    struct tap_set *taps[TAP_PLACES]; /* NULL: no file there */
    /* A fabric: its hosts are all as ep[0] says, with addresses of the fabric, without connection managers; `net`,
     * `end`, `wire`, `taps` and `events` do not count. NULL: two hosts and `net`. */
    const struct topology *topology;
    bool ipv6; /* fabric: addresses */
};

/* Parameters of a connection (or of a pair of datagram queue pairs) between two hosts; index: its end, which is the
 * host unless there is a fabric. */
struct sim_conn_config {
    uint16_t host[NET_HOSTS]; /* fabric: the hosts at its ends */
    uint8_t type;             /* enum qp_type; QPT_XRC_INI: the other host has the target */
    uint8_t initiator;        /* XRC: the host with the initiator */
    uint32_t xrcd;            /* XRC: domain of the target; 0: a new one, with a shared receive queue of its own */
    uint32_t psn[NET_HOSTS];  /* first PSN that the host sends */
    uint32_t qpn[NET_HOSTS];  /* 0: the policy chooses */
    uint32_t max_send_wr, max_recv_wr;
    uint16_t max_sge;
    uint32_t max_inline;
    uint32_t cq_depth; /* 0: as many as work requests */
    bool sig_all;
    int srq[NET_HOSTS]; /* or EP_NO_SRQ; XRC: the one that requests name unless they say otherwise */
    uint32_t pd[NET_HOSTS];
    bool alternate;                 /* the other path is its alternate path from the beginning */
    struct ep_peer peer[NET_HOSTS]; /* as the host sees the other one; addresses, QPNs and PSNs are filled in */
};

#define SIM_NO_HOST    UINT16_MAX
#define SIM_PASSES_MAX 10000000 /* steps without a frame sent: more mean an endless loop */

enum sim_conn_state {
    SIM_CONN_NEW,     /* queue pairs in RESET */
    SIM_CONN_PENDING, /* the connection manager sets it up */
    SIM_CONN_UP,
    SIM_CONN_FAILED,  /* rejected, or no response */
    SIM_CONN_CLOSING, /* disconnecting */
    SIM_CONN_DOWN,
};

/* What the connection managers of a connection do besides, and what they were told. */
struct sim_cm {
    bool gives[NET_HOSTS];        /* the host sends private data of its own in REQ, REP or REJ: bytes 1, 2, 3 ... */
    uint8_t len[NET_HOSTS];       /* of how many bytes */
    bool refuses;                 /* the passive side rejects the REQ: consumer reject */
    uint8_t mra;                  /* with `hold`: exponent of the MRA that the passive side sends first */
    ns_t hold;                    /* by how much its answer to the REQ comes later; 0: it comes at once */
    uint8_t told[NET_HOSTS][224]; /* private data of the other side, with the zeros behind it */
    uint16_t reason[NET_HOSTS];   /* of the REJ that it got, enum cm_rej_reason */
};
#define SIM_PRIVATE_BYTE(i) ((uint8_t)((i) + 1)) /* number i, from 0, of private data */

/* Arrays are by its end. */
struct sim_conn {
    uint16_t host[NET_HOSTS];       /* 0 and 1, or in a fabric any two */
    unsigned number;                /* from 1; what events call conn=N */
    uint8_t type;                   /* enum qp_type, of the queue pair that `initiator` has */
    uint8_t initiator;              /* XRC: the host whose queue pair sends requests */
    uint8_t state[NET_HOSTS];       /* enum sim_conn_state, as the host sees it */
    uint16_t sgid_index[NET_HOSTS]; /* which of its addresses the host uses */
    int qp[NET_HOSTS];              /* handles */
    int cq[NET_HOSTS];              /* sends and receives of the queue pair */
    int srq[NET_HOSTS];             /* handle of the shared queue that receives are posted to; or EP_NO_SRQ */
    int ah[NET_HOSTS];              /* UD: address handle of the other host */
    uint32_t remote_qpn[NET_HOSTS]; /* UD: queue pair to send to */
    uint32_t remote_qkey[NET_HOSTS];
    uint32_t remote_srqn; /* XRC: number of the target's shared receive queue */
    bool alternate;       /* as in struct sim_conn_config */
    struct sim_cm *cm;    /* NULL: nothing of the kind; freed with the connection */
    struct ep_peer peer[NET_HOSTS];
};

/* Whether `host` sends requests on the connection: an XRC target does not. */
static inline bool sim_conn_requests(const struct sim_conn *c, unsigned host)
{
    return c->type != QPT_XRC_INI || c->initiator == host;
}

/* The application; each member may be NULL. */
struct sim_app {
    /* Called at `now`, after everything due in the hosts: poll completions, post work. Returns when it must be called
     * again at the latest; NS_NEVER: only when something happens. */
    ns_t (*run)(void *user, ns_t now);
    /* Fabric: something may have happened at this host: poll its completions, post work to its queue pairs. */
    void (*host)(void *user, unsigned host, ns_t now);
    /* A host sent a frame. */
    void (*sent)(void *user, unsigned host, const uint8_t *data, uint32_t len, ns_t now);
    /* A host raised an asynchronous event. */
    void (*event)(void *user, unsigned host, const struct ep_event *event);
    void *user;
};

/* A host of a fabric. */
struct sim_host {
    struct timer timer;    /* when it has work to do */
    ns_t port_free;        /* when its port can send the next frame */
    bool touched;          /* it has work to do now */
    uint16_t next_touched; /* next one of this kind */
};

struct sim {
    ns_t now;
    unsigned n_hosts;
    struct endpoint **ep;              /* by host */
    struct cm_agent **cm;              /* NULL: no connection manager */
    struct link_addr *addr;            /* first addresses */
    struct fabric *fabric;             /* NULL: `net` */
    struct sim_host *host;             /* fabric: by host */
    struct timers timers;              /* fabric: of the hosts */
    uint32_t frame_most;               /* fabric: bytes of the longest frame that a host sends */
    uint16_t touched, touched_end;     /* fabric: first and last host that has work to do now; SIM_NO_HOST: none */
    struct link_addr port2[NET_HOSTS]; /* of the second ports; there are any if net.port2 */
    uint16_t addrs[NET_HOSTS];         /* consecutive ones from `addr` on, 1 and up; connections take them in turn */
    bool credits[NET_HOSTS];           /* end-to-end flow control */
    struct net net;
    struct event_list *events;
    struct sim_app app;
    struct sim_conn **conn; /* by number - 1 */
    uint8_t *news;          /* by number - 1: 1: new, or its state changed; the application clears it */
    unsigned n_conns;
    uint64_t port_rate;
    ns_t port_free[NET_HOSTS];
    struct sim_end end[NET_HOSTS];
    uint64_t sent[NET_HOSTS]; /* frames */
    uint64_t frames;          /* sent by both hosts */
    ns_t idle_until;          /* set by app.run: unless a host works it need not be called before; 0: after each step */
    uint32_t passes;          /* steps since the last frame */
    const struct sim_wire *wire;
    int wire_err;    /* first error of the wire */
    ns_t last_frame; /* wire: time of the last frame sent or received */
    uint16_t port;
    bool foreign[NET_HOSTS]; /* the host's endpoint is driven by another program: its events and faults are not
                                simulated */
};

/* 50.50.50.1 and 50.50.50.2 over RoCEv2, MTU 1024, one way delay 1 us. With ep.two_ports sim_init() gives the second
 * ports addresses like those of the first: 50.50.51.1 and 50.50.51.2, 2001:db8:0:1::1 ..., LIDs 17 and 18. */
void sim_config_init(struct sim_config *c, uint64_t seed);
/* A reliable connection, PSNs from the seed. */
void sim_conn_config_init(struct sim_conn_config *c, enum qp_type type, uint16_t mtu);
#define SIM_ADDRS_MAX 4096 /* addresses of a host */
/* Addresses of host `h` when it has several (addrs of struct ep_config): from 50.51.0.1 on for the first
 * host, 50.52.0.1 for the second one, or from 2001:db8:0:2::1 and 2001:db8:0:3::1 on if `ipv6`. */
void sim_config_many(struct sim_config *c, unsigned h, uint16_t addrs, bool ipv6);
/* 0; -ENOMEM; -EINVAL: addresses or node counts do not fit. */
int sim_init(struct sim *s, const struct sim_config *c, const struct sim_app *app);
void sim_free(struct sim *s);

/* Create the queue pairs of a connection; NULL with *err set. */
struct sim_conn *sim_conn_add(struct sim *s, const struct sim_conn_config *c, int *err);
/* Bring both queue pairs of a connection to RTS without a connection manager. 0 or a negative errno. */
int sim_conn_join(struct sim *s, struct sim_conn *c);
/* Connect through the connection manager of host `from`; c->state is the progress, c->cm what is special about it. */
int sim_conn_connect(struct sim *s, struct sim_conn *c, unsigned from);
/* Send so many REQs at once, each for a queue pair of its own that nobody has, with numbers from SIM_FLOOD_QPN on; what
 * comes of them is not told. */
#define SIM_FLOOD_QPN 0x800000u
int sim_conn_flood(struct sim *s, const struct sim_conn *c, unsigned from, uint32_t times);
/* Propose the path that host `from` does not use now as the alternate one, by a LAP; without second ports one from an
 * address beside its own. */
int sim_conn_load(struct sim *s, struct sim_conn *c, unsigned from);
/* Disconnect, by a DREQ of host `from`. */
int sim_conn_disconnect(struct sim *s, struct sim_conn *c, unsigned from);

/* Report each event and fault that never happened; `who`: names of the hosts. Returns their number. */
unsigned sim_idle(const struct sim *s, const char *const who[NET_HOSTS], report_fn *report, void *user);

/* The path from host `from` to the other one, between their ports with the number `port`: 1, or 2 if both have two. */
struct av sim_path(const struct sim *s, unsigned from, unsigned port);
/* The addresses that end `end` of connection `c` (NULL: the host `end`, its first) uses at its port `port`. */
struct link_addr sim_addr(const struct sim *s, const struct sim_conn *c, unsigned end, unsigned port);
/* sim_path() between the addresses of connection `c`. */
struct av sim_conn_path(const struct sim *s, const struct sim_conn *c, unsigned from, unsigned port);
/* The port that the queue pair of `host` does not use now. */
unsigned sim_other_port(const struct sim *s, const struct sim_conn *c, unsigned host);
/* The path that a packet of host `from` takes, 1 or 2. */
unsigned sim_path_taken(const struct sim *s, unsigned from, const struct pkt *p);
/* Give both hosts a connection manager (sim_init() does). 0; -ENOMEM. */
int sim_cm_open(struct sim *s, const struct sim_config *c);
/* True if the last sim_step() gave up because time did not advance. */
static inline bool sim_stuck(const struct sim *s)
{
    return s->passes > SIM_PASSES_MAX;
}

/* Fabric: `host` has work to do: something was posted to it. */
void sim_touch(struct sim *s, unsigned host);
/* With a wire: a frame of the other host arrived at time `when`. */
void sim_arrive(struct sim *s, const uint8_t *data, uint32_t len, ns_t when);
/* When the last frame has left, or leaves, the port of a host (0 or 1); 0: none was sent, a fabric or a wire. */
ns_t sim_port_left(const struct sim *s, unsigned host);
/* How long the port of `host` takes for a frame of `len` bytes, ns. */
ns_t sim_frame_time(const struct sim *s, unsigned host, uint32_t len);
/* Do what is due, then advance to the next time at which something is due, at most `until`. False: nothing is due
 * before `until`; the time is unchanged. With a wire: `until` has come, or the wire failed. */
bool sim_step(struct sim *s, ns_t until);

#endif
