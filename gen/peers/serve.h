/* layer 3 (peers): the server for the clients of perftest (ib_write_bw, ib_send_lat, ...; with -R or without), of
 * ibv_*_pingpong and of rping: many clients at a time and one after another, without being told their operation.
 *
 * The server infers the operation of a client:
 *
 * - Keys without an R_Key announce SENDs. Some adapters have an R_Key for all memory: a first SEND shows it. Keys with
 * several READs outstanding announce READs or atomics; other keys announce WRITEs, or READs one at a time: the first
 * packets show which.
 * - ib_write_lat and ib_read_lat send their keys once more before the data than ib_write_bw with one queue pair.
 *   ib_write_lat waits for our first WRITE, ib_read_lat sends first: so we wait for a while before we WRITE.
 * - ib_send_lat looks like ib_send_bw. If no second message follows the first one for a while, the server answers it on
 *   trial (at once with `latency`): ib_send_lat has posted a receive for the answer, ib_send_bw has not.
 * - Only ib_write_lat requires the size of its messages to be known; it does not send it.
 * - ibv_srq_pingpong sends all its addresses at once; the other pingpongs wait for an answer after the first one.
 * - Over XRC ib_*_lat has two queue pairs, one in each direction: only `latency` tells these from two initiators.
 * - rdmagen announces all of this.
 *
 * Clients are not trusted: their messages, sessions, queue pairs, memory, and the time that a client may be silent are
 * bounded. */
#ifndef RDMATRACE_GEN_PEERS_SERVE_H
#define RDMATRACE_GEN_PEERS_SERVE_H

#include "gen/peers/oob_tcp.h"
#include "gen/peers/perf.h"
#include "gen/peers/rping.h"

#define SERVE_SESSIONS 16         /* clients at a time */
#define SERVE_QPS      1024       /* queue pairs of one */
#define SERVE_MEMORY   (1u << 30) /* bytes of memory for all sessions */

struct serve_config {
    uint16_t port;       /* port of TCP, and of RDMA-CM; 0: neither */
    const uint8_t *tcp;  /* address of this host to listen on; NULL: all */
    uint16_t rping_port; /* port of RDMA-CM; 0: none */
    /* enum qp_type of queue pairs whose parameters are exchanged by TCP; QPT_XRC_INI: the clients have the initiators
     */
    uint8_t type;
    uint32_t room; /* bytes of memory for each queue pair, which is the size of the largest message */
    uint32_t size; /* bytes of a message of ib_write_lat */
    bool latency;  /* SENDs are answered; XRC: all clients are like ib_*_lat */
    ns_t wait;     /* longest silence of a client */
    uint64_t max;  /* clients in all; a further one is refused; 0: no limit */
    /* Of one of several processes, which share a listening TCP socket, `listener`, and take clients in turn; NULL: it
     * is alone. It says whether it is this one's turn, and is told (`over`) that this one took a client, or has no
     * room for it. */
    bool (*turn)(void *user, bool over);
    /* Likewise: whether all processes together have as many clients, over or not, as are wanted; `take`: this one
     * takes one more (1), unless they have; gives back one that it could not serve (-1); only asks (0). NULL: `max`
     * says it. */
    bool (*full)(void *user, int take);
    void *turns;  /* argument of turn() and full() */
    int listener; /* with turn(): the socket */
    bool no_cm;   /* no RDMA-CM: another one listens */
};

enum serve_stage {
    SERVE_VERSION,
    SERVE_BUFFERS,
    SERVE_LINE,
    SERVE_MTU,
    SERVE_KEYS,      /* keys, reports and "done" of perftest */
    SERVE_ADDRESSES, /* ibv_*_pingpong: its first message has arrived */
    SERVE_PINGPONG,  /* messages of ibv_*_pingpong */
    SERVE_RPING,
    SERVE_OVER, /* acknowledges retransmitted requests for a while, then it is freed */
};
enum serve_kind { SERVE_UNKNOWN, SERVE_WRITE, SERVE_READ, SERVE_SEND };

struct serve_qp {
    int qp, ah;                         /* handles; ah: of UD */
    struct perftest_keys own, peer;     /* parameters of both sides */
    uint8_t *mem;                       /* memory of the client, answer, receives */
    size_t mem_len;                     /* bytes of `mem` */
    struct receives recvs;              /* in mem */
    struct xrc xrc;                     /* XRC; with latency the initiator that sends the answers */
    int id;                             /* RDMA-CM id; -1: none */
    uint32_t pd, key, rkey;             /* key: of all of mem; rkey: for the client, of its part */
    bool ready;                         /* receives were posted */
    bool gone;                          /* RDMA-CM: disconnected */
    uint64_t received, answered, wrong; /* messages */
    ns_t arrived;                       /* last message */
    uint32_t len;                       /* bytes of that message */
};

struct serve_session {
    bool used, cm;             /* cm: the control channel is an RDMA-CM connection */
    int fd;                    /* TCP; -1: none, or closed */
    struct tcp_stream stream;  /* of it in the capture */
    int id;                    /* RDMA-CM id of `control` or `rping`; -1: none */
    struct rchan control;      /* cm */
    struct rping rping;        /* SERVE_RPING */
    bool rping_ready;          /* its receives were posted */
    uint8_t gid[16];           /* address of the client: of its TCP connection, then of its queue pairs */
    uint8_t stage, kind;       /* enum serve_stage, serve_kind */
    struct perftest_mark mark; /* properties that an rdmagen client states */
    uint8_t in[PERFTEST_TEXT]; /* the current message, over TCP */
    size_t got;                /* bytes received of the current message, in `in` */
    /* resolution of the address in the current message: when it began (0: it did not), and when to send the next
     * request */
    ns_t resolve_from, resolve_next;
    uint16_t mtu;    /* path MTU in bytes, the smaller of both sides' */
    unsigned n_keys; /* keys, or addresses, received for queue pairs */
    ns_t keys_at;    /* when the last of them was received */
    struct serve_qp *qp;
    unsigned n_qps;    /* of `qp` */
    bool kind_guessed; /* `kind` is READ because no packet has carried payload */
    bool on_trial;     /* the first SEND is being answered on trial */
    bool answering;    /* the server answers WRITEs or SENDs */
    bool done;         /* the session ended without an error */
    ns_t slowest;      /* longest silence of the client before a message */
    /* last_rx: latest packet or message of the client; until: in SERVE_OVER, when to free the session */
    ns_t last_rx, until;
    uint64_t progress, bytes; /* packets, and bytes of payload, that arrived */
    char why[160];            /* reason of the failure */
};

struct serve {
    struct live *live;
    struct verbs *verbs; /* of `live` */
    struct serve_config config;
    int listener, cq;          /* listener: TCP socket, -1: none; cq: handle, of all sessions */
    int channel;               /* RDMA-CM: event channel */
    int perftest_id, rping_id; /* RDMA-CM: listening ids; -1: none */
    size_t memory;             /* bytes in use */
    struct serve_session session[SERVE_SESSIONS];
    ns_t look_at;            /* when TCP is polled next: less often than frames arrive */
    uint64_t served, failed; /* number of sessions that ended */
    /* Called when a session ends, before it is freed; `messages` as serve_messages(). May be NULL. */
    void (*over)(void *user, const struct serve_session *s, uint64_t messages);
    /* Called when a queue pair is connected to `peer`; NULL: by RDMA-CM. May be NULL. */
    void (*joined)(void *user, int qp, const struct perftest_keys *peer);
    void *user; /* argument of over() and joined() */
};

/* Listen on TCP port config->port: the socket, for config->listener; -1: port 0; another negative errno. */
int serve_listen(const struct serve_config *config);
/* Listen. 0 or a negative errno. */
int serve_open(struct serve *s, struct live *l, const struct serve_config *config);
/* End all sessions, without waiting, and stop listening. */
void serve_close(struct serve *s);
/* Process messages and completions, and act on timeouts. Returns the time by which it must be called again. */
ns_t serve_poll(struct serve *s, ns_t now);
/* Number of clients being served. */
unsigned serve_active(const struct serve *s);
/* Messages of a session: SENDs received, or WRITEs, or READs and atomics executed. */
uint64_t serve_messages(const struct serve *s, const struct serve_session *session);
/* Messages of a session with wrong data. */
uint64_t serve_wrong(const struct serve_session *s);
/* "WRITE", "READ or atomics", "SEND", "nothing". */
const char *serve_kind_str(enum serve_kind k);

#endif
