/* layer 3 (peers): the passive side of perftest's clients (ib_write_bw, ib_send_lat, ...; -R or not), of ibv_*_pingpong
 * and of rping: many clients at a time, one after another, without being told beforehand what they will do.
 *
 * What a client is shows in what it says and does: keys without an R_Key announce SENDs, with several READs outstanding
 * READs or atomics, else WRITEs, or READs one at a time, which shows in the first packets. ib_write_lat tells its keys
 * once more before the data than ib_write_bw with one queue pair, and so does ib_read_lat: the one waits for our first
 * WRITE, the other begins, so we wait a while before we do. ib_send_lat cannot be told from ib_send_bw: a first message
 * after which none comes for a while is answered on trial, unless `latency` says it at once; ib_send_bw has no receive
 * for that, and ib_send_lat has. The size of its messages is only needed for ib_write_lat, which does not tell it.
 * rdmagen tells all of this. ibv_srq_pingpong goes on with its addresses after the first; the others wait for an
 * answer.
 *
 * Clients are not trusted: words are bounded, so are sessions, queue pairs, memory and the time that a client may be
 * silent.
 */
#ifndef RDMATRACE_GEN_PEERS_SERVE_H
#define RDMATRACE_GEN_PEERS_SERVE_H

#include "gen/peers/oob_tcp.h"
#include "gen/peers/perf_run.h"
#include "gen/peers/rping.h"

#define SERVE_SESSIONS 16         /* clients at a time */
#define SERVE_QPS      1024       /* queue pairs of one */
#define SERVE_MEMORY   (1u << 30) /* bytes for all of them */

struct serve_config {
    uint16_t port;       /* of TCP, and of RDMA-CM; 0: neither */
    const uint8_t *tcp;  /* address of this host whose TCP port it is; NULL: of all */
    uint16_t rping_port; /* of RDMA-CM; 0: none */
    uint8_t type;        /* enum qp_type of queue pairs that are exchanged by TCP */
    uint32_t room;       /* bytes of memory for each queue pair, and of the largest message */
    uint32_t size;       /* bytes of a message of ib_write_lat */
    bool latency;        /* SENDs are answered */
    ns_t wait;           /* longest silence of a client */
};

enum serve_stage {
    SERVE_VERSION,
    SERVE_BUFFERS,
    SERVE_LINE,
    SERVE_MTU,
    SERVE_KEYS,      /* words of perftest */
    SERVE_ADDRESSES, /* of ibv_*_pingpong: the first has come */
    SERVE_PINGPONG,  /* messages of ibv_*_pingpong */
    SERVE_RPING,
    SERVE_OVER, /* acknowledges what is asked again, then it is forgotten */
};
enum serve_kind { SERVE_UNKNOWN, SERVE_WRITE, SERVE_READ, SERVE_SEND };

struct serve_qp {
    int qp, ah;
    struct perftest_keys own, peer;
    uint8_t *mem; /* room, answer, receives */
    size_t mem_len;
    struct receives recvs;              /* in mem */
    uint32_t pd, key, rkey;             /* key: for all of mem; rkey: the client's, for the room */
    bool ready;                         /* receives are posted */
    bool gone;                          /* RDMA-CM: disconnected */
    uint64_t received, answered, wrong; /* messages */
    ns_t arrived;                       /* last message */
    uint32_t len;                       /* its bytes */
};

struct serve_session {
    bool used, cm;        /* cm: by RDMA-CM */
    int fd;               /* TCP; -1: none, or closed */
    struct rchan control; /* cm */
    struct rping rping;   /* SERVE_RPING */
    bool rping_ready;
    uint8_t gid[16];     /* the client's: of its TCP connection, then of its queue pairs */
    uint8_t stage, kind; /* enum serve_stage, serve_kind */
    struct perftest_mark mark;
    uint8_t in[PERFTEST_TEXT];
    size_t got; /* bytes of the next word */
    /* the way to what that word names is asked for: since when (0: it is not), and when once more */
    ns_t asked, ask_again;
    uint16_t mtu;  /* agreed */
    unsigned told; /* keys, or addresses, of a queue pair heard */
    ns_t told_at;  /* the last of them */
    struct serve_qp *qp;
    unsigned n_qps;
    bool guessed;             /* `kind` is READ because no payload has come */
    bool trying;              /* an answer to the first SEND is on its way, to see whether one is wanted */
    bool answering;           /* WRITEs or SENDs are answered */
    bool done;                /* it came to a good end */
    ns_t slowest;             /* longest time that it took for a word */
    ns_t heard, until;        /* last sign of life; SERVE_OVER: when to forget it */
    uint64_t progress, bytes; /* packets, bytes of payload that arrived */
    char why[160];            /* what went wrong */
};

struct serve {
    struct live *live;
    struct verbs *verbs; /* of `live` */
    struct serve_config config;
    int listener, cq;
    size_t memory; /* bytes in use */
    struct serve_session session[SERVE_SESSIONS];
    ns_t look_at;            /* when TCP is looked at again: not each time that frames have come */
    uint64_t served, failed; /* sessions that are over */
    /* A session is over, `messages` as serve_messages(): told before it is forgotten. May be NULL. */
    void (*over)(void *user, const struct serve_session *s, uint64_t messages);
    void *user;
};

/* Begin to listen. live_config.request, .event and .user must have been serve_request(), serve_event() and `s`. 0 or a
 * negative errno. */
int serve_open(struct serve *s, struct live *l, const struct serve_config *config);
void serve_close(struct serve *s);
/* Do what is due. Returns when it wants to be called again at the latest. */
ns_t serve_poll(struct serve *s, ns_t now);
/* Clients being served. */
unsigned serve_active(const struct serve *s);
/* Messages of a session: SENDs, or other requests carried out. */
uint64_t serve_messages(const struct serve *s, const struct serve_session *session);
/* Messages of a session that were not what they should be. */
uint64_t serve_wrong(const struct serve_session *s);
/* "WRITE", ... */
const char *serve_kind_str(enum serve_kind k);
/* Callbacks for struct live_config. */
void serve_request(void *live, const struct cm_conn *c, struct cm_answer *a);
void serve_event(void *live, int qp, enum cm_event event, const struct cm_conn *c);

#endif
