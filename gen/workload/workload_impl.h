/* layer 3 (workload): what the files of the workloads share. */
#ifndef RDMATRACE_GEN_WORKLOAD_WORKLOAD_IMPL_H
#define RDMATRACE_GEN_WORKLOAD_WORKLOAD_IMPL_H

#include "gen/workload/collective.h"
#include "gen/workload/workload.h"

#define WORKLOAD_IOVA       UINT64_C(0x10000000)
#define WORKLOAD_MESSAGES   (1u << 26)          /* at most */
#define WORKLOAD_CONNS      (1u << 20)          /* at most */
#define WORKLOAD_BYTES      (UINT64_C(1) << 30) /* of a message, at most */
#define WORKLOAD_HEAD       58 /* bytes around the payload: Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4 */
#define WORKLOAD_ACK        62 /* of an ACK: with its AETH, 4 */
#define WORKLOAD_HEADER     64 /* bytes of the SENDs of protocols, at most; an eager message has those of the message */
#define WORKLOAD_WORDS      32 /* of a line of a file, at most */
#define WORKLOAD_TIME       (NS_NEVER / 2) /* a run ends here at the latest */
#define WORKLOAD_NONE       UINT32_MAX
#define WORKLOAD_SEND_DEPTH 48                  /* work requests of a queue pair */
#define WORKLOAD_SEND_FEW   8                   /* likewise, if no flow has more messages */
#define WORKLOAD_RECV_DEPTH 16                  /* posted anew at once */
#define WORKLOAD_MEMORY_MAX (UINT64_C(1) << 36) /* bytes of all hosts */

#define SPARKS 64

/* Two curves from the first message to the end of a run, for reports: points are merged in pairs as it gets longer. */
struct sparks {
    uint64_t queue[SPARKS]; /* longest queue, bytes */
    uint64_t sent[SPARKS];  /* bytes that all hosts sent since the point before */
    unsigned n;
    ns_t interval, next; /* of points; time of the next */
    uint64_t sent_before;
};

/* Messages in a list, by their numbers; WORKLOAD_NONE: empty. */
struct workload_list {
    uint32_t head, tail;
};

/* A connection between two hosts; index: its end. */
struct workload_conn {
    uint16_t host[2];
    struct sim_conn *c;                     /* NULL: its queue pairs are not there yet */
    uint8_t class;                          /* of its packets, see struct workload_flow */
    uint32_t next;                          /* 1 + first of those of another class; 0: none */
    struct workload_list waits[2], sent[2]; /* messages that wait; whose SEND is under way */
    uint32_t posted[2];                     /* work requests in the send queue */
};

struct workload {
    struct sim *s;
    struct workload_config c;
    unsigned n;                 /* hosts */
    uint64_t region;            /* bytes of memory of a host */
    uint8_t **mem;              /* by host; flows: the same for all */
    uint32_t *lkey, *rkey, *pd; /* by host */
    uint32_t *pair;             /* by lower and higher host: 1 + first of its connections; 0: none */
    struct workload_conn *conn;
    uint32_t n_conns;
    uint32_t send_depth; /* work requests of a queue pair */
    struct workload_message *message;
    uint32_t n_messages;
    struct workload_flow *flow; /* by number */
    uint32_t n_flows;
    uint64_t listed;    /* flows of a list that says how many it has; 0: all of it */
    uint32_t *by_start; /* numbers of the flows, by their start */
    uint32_t started;   /* of these */
    struct coll *coll;  /* the one being played, of `colls`; NULL: none */
    struct coll *colls;
    struct schedule *schedule; /* NULL: none */
    struct nccl *nccl;         /* NULL: not this workload */
    struct goal *goal;         /* being read */
    struct requests *requests; /* being read */
    struct matrix *matrix;     /* NULL: not this workload */
    uint32_t triggered;        /* flows that others have started */
    struct sizes *sizes;       /* read from a file; NULL: none */
    uint64_t threshold;        /* messages: bytes from which on they are sent by rendezvous; 0: no such workload */
    uint64_t copy;             /* bit/s at which a receiver copies eager messages; 0: as fast as they come */
    uint64_t under_way;        /* work requests, and messages being copied */
    struct copies *copies;     /* eager messages that are being copied; NULL: none ever was */
    uint32_t bounce_bytes;     /* longest SEND; 0: no SENDs */
    uint8_t *bounce;           /* memory of all receives of SENDs; NULL: none */
    uint32_t *bounce_key;      /* by host */
    struct prng prng;
    bool over;
    struct workload_result r;
    struct sparks sparks;
    struct buf *stats;     /* NULL: not wanted */
    ns_t interval, sample; /* of rows; the next one */
    uint64_t *told;        /* by port, and by queue pair: a sum of its counters when its last row was written */
};

/* The connections of a pair of hosts. */
static inline uint32_t *workload_pair(const struct workload *w, unsigned a, unsigned b)
{
    return &w->pair[a < b ? (size_t)a * w->n + b : (size_t)b * w->n + a];
}

/* Add a flow (hosts, class, bytes, count, start): false with *e filled: no such hosts, or no memory. */
bool workload_flow(struct workload *w, const struct workload_flow *f, struct text_error *e);
/* Hand over a message; false: no memory, or the connection refused it, which fails the run. */
bool workload_send(struct workload *w, const struct workload_message *m, ns_t now);
/* A message of the flow is done. */
void workload_flow_done(struct workload *w, uint32_t number, ns_t now);
/* A flow that waits for others begins. */
void workload_flow_start(struct workload *w, uint32_t number, ns_t now);
/* The run fails. */
void workload_fail(struct workload *w, enum wc_status status);

/* The connections of a class between two hosts are to be made once all are known: 0 or a negative errno; -E2BIG: they
 * would be too many, and *e says so. */
int workload_connect(struct workload *w, unsigned a, unsigned b, uint8_t class, struct text_error *e);

/* transfer.c */
/* Add message `i` to the end of a list, of those whose SEND is under way (`sent`) or of others. */
void workload_list_add(struct workload *w, struct workload_list *l, uint32_t i, bool sent);
/* The next step of message `i` is due: post it as soon as there is room. False: the run fails. */
bool workload_go_on(struct workload *w, uint32_t i, ns_t now);
/* A completion at `host`. */
void workload_completed(struct workload *w, unsigned host, const struct wc *wc, ns_t now);

/* Eager messages whose copying ends by now have arrived; returns the earlier of `next` and the end of another one. */
ns_t workload_copied(struct workload *w, ns_t now, ns_t next);
void copies_free(struct copies *c);

/* protocols.c */
/* True if the source of a message learns by the last SEND that it is done; else by a completion. */
bool workload_ends_at_source(const struct workload_protocol *p);
/* How long the message takes through empty queues until it is done. */
ns_t workload_ideal(const struct workload *w, const struct workload_message *m);

/* words.c */
/* The next word of arguments that commas separate; false: there is none. */
bool workload_word(const char **args, struct token *t);
/* A flow as the configuration has them; it starts within the time of a packet: hosts that start at exactly the same
 * moment are an artefact. */
struct workload_flow workload_flow_between(struct workload *w, unsigned src, unsigned dst);
/* A host, by its name, or by its number (fabric_host_numbered()); -1: none. */
int workload_host(const struct workload *w, const struct token *t);
/* Take line `number` of the configuration's text, which has `n` words. False with *e filled. */
typedef bool workload_line_fn(struct workload *w, unsigned number, const struct token *t, unsigned n,
                              struct text_error *e);
/* Hand each line of the configuration's text that has words to `line`: its number, its words, at most WORKLOAD_WORDS.
 * False with *e filled. */
bool workload_lines(struct workload *w, struct text_error *e, workload_line_fn line);
/* Likewise, `len` bytes of line `number`. */
bool workload_statement(struct workload *w, unsigned number, const char *text, size_t len, workload_line_fn line,
                        struct text_error *e);

/* files/matrix.c: a flow has arrived, or is done: others may begin. */
void matrix_arrived(struct workload *w, uint32_t flow, ns_t now);
void matrix_done(struct workload *w, uint32_t flow, ns_t now);
void matrix_free(struct matrix *m);

/* Schedules: schedule.c. */
int schedule_open(struct workload *w, struct text_error *e);
void schedule_free(struct schedule *s);
/* Do what is due; returns when to call it again. */
ns_t schedule_run(struct workload *w, ns_t now);
void schedule_arrived(struct workload *w, const struct workload_message *m, ns_t now);
void schedule_done(struct workload *w, const struct workload_message *m, ns_t now);

/* nccl.c: messages of a rank to the next one wait until it has announced a buffer. */
bool nccl_parse(struct workload *w, const char *args, struct text_error *e);
/* Bytes of inline data of the queue pairs. */
uint32_t nccl_inline(const struct workload *w);
/* Memory of the announcements. 0 or a negative errno. */
int nccl_open(struct workload *w);
void nccl_free(struct nccl *n);
/* Messages that `bytes` take, UINT32_MAX at most; also without nccl. */
uint32_t nccl_parts(const struct workload *w, uint64_t bytes);
/* Make `m`, which is all that is to be sent, part number `part` of it. */
void nccl_cut(const struct workload *w, uint32_t part, struct workload_message *m);
/* `src` will send `bytes` so many times. */
void nccl_expect(struct workload *w, unsigned src, uint64_t bytes, uint64_t times);
/* The first buffers are announced. */
void nccl_start(struct workload *w, ns_t now);
/* Whether message `i` may go; else it waits. */
bool nccl_may_send(struct workload *w, uint32_t i);
/* Look at the announcements that a host has got. */
void nccl_poll(struct workload *w, unsigned host, ns_t now);
void nccl_arrived(struct workload *w, const struct workload_message *m, ns_t now);
/* True for the completion of an announcement. */
bool nccl_is_cts(const struct wc *wc);

/* Collectives: coll.c. */
/* Add a collective behind those that there are: false with *e filled. */
bool coll_append(struct workload *w, const struct workload_kind *kind, uint64_t size, uint64_t rounds,
                 struct text_error *e);
/* Begin with the first one; if none was added, it is that of the configuration. */
int coll_open(struct workload *w, struct text_error *e);
void coll_free(struct coll *c);
/* Begin the next round. */
void coll_start(struct workload *w, ns_t now);
void coll_arrived(struct workload *w, const struct workload_message *m, ns_t now);
/* A message is done at its sender. */
void coll_done(struct workload *w, const struct workload_message *m, ns_t now);

/* stats.c */
/* Write the rows of statistics that are due; NS_NEVER: all that is left. */
void stats_rows(struct workload *w, ns_t now);
/* Note the points of the curves that are due. */
void sparks_note(struct workload *w, ns_t now);
/* Append the two curves. */
void sparks_text(struct buf *b, const struct workload *w);

/* paths.c */
/* By number of the port, which flows so far took which of equal-cost paths; to be freed. NULL: no memory. */
struct path_counts *paths_count(const struct workload *w);
/* Append a line for each switch whose ports carry flows unevenly by the choice of their hashes. */
void paths_text(struct buf *b, const struct workload *w);

/* Patterns of flows. */
bool incast_flows(struct workload *w, const char *args, struct text_error *e);
bool permutation_flows(struct workload *w, const char *args, struct text_error *e);
bool alltoall_flows(struct workload *w, const char *args, struct text_error *e);
bool matrix_flows(struct workload *w, const char *args, struct text_error *e);
bool requests_flows(struct workload *w, const char *args, struct text_error *e);
bool listed_flows(struct workload *w, const char *args, struct text_error *e);
bool messages_flows(struct workload *w, const char *args, struct text_error *e);
bool shuffle_flows(struct workload *w, const char *args, struct text_error *e);
bool storage_flows(struct workload *w, const char *args, struct text_error *e);
bool poisson_flows(struct workload *w, const char *args, struct text_error *e);
/* Time by chance until the next of events that are `gap` ns apart on the average, in an open loop: added to *start.
 * False with *e filled: that is beyond the end of all time. */
bool poisson_next(struct workload *w, uint64_t gap, ns_t *start, struct text_error *e);
/* ns between events that bring `bits` each, if they are to make a load of `ppb` parts per billion of `rate` (bit/s). */
uint64_t poisson_gap(uint64_t bits, uint64_t rate, uint32_t ppb);
const char *poisson_file(const char *args);

/* Collectives of a list. */
bool listed_collectives(struct workload *w, const char *args, struct text_error *e);

/* Schedules. */
bool server_tasks(struct workload *w, struct schedule *s, const char *args, struct text_error *e);
bool goal_tasks(struct workload *w, struct schedule *s, const char *args, struct text_error *e);
bool chakra_tasks(struct workload *w, struct schedule *s, const char *args, struct text_error *e);

#endif
