/* layer 3 (workload): what the files of the workloads share. */
#ifndef RDMATRACE_GEN_WORKLOAD_WORKLOAD_IMPL_H
#define RDMATRACE_GEN_WORKLOAD_WORKLOAD_IMPL_H

#include "gen/workload/collective.h"
#include "gen/workload/workload.h"

#define WORKLOAD_IOVA       UINT64_C(0x10000000)
#define WORKLOAD_MESSAGES   (1u << 26)     /* at most */
#define WORKLOAD_CONNS      (1u << 17)     /* at most */
#define WORKLOAD_TIME       (NS_NEVER / 2) /* a run ends here at the latest */
#define WORKLOAD_NONE       UINT32_MAX
#define WORKLOAD_SEND_DEPTH 48                  /* work requests of a queue pair */
#define WORKLOAD_RECV_DEPTH 16                  /* posted anew at once */
#define WORKLOAD_MEMORY_MAX (UINT64_C(1) << 36) /* bytes of all hosts */

#define SPARKS 64

/* Two curves over the time of a run, for reports: points are merged in pairs as it gets longer. */
struct sparks {
    uint64_t queue[SPARKS]; /* longest queue, bytes */
    uint64_t sent[SPARKS];  /* bytes that all hosts sent since the point before */
    unsigned n;
    ns_t interval, next; /* of points; time of the next */
    uint64_t sent_before;
};

/* A connection between two hosts; index: its end. */
struct workload_conn {
    struct sim_conn *c;
    uint8_t class;             /* of its packets, see struct workload_flow */
    uint32_t next;             /* 1 + first of those of another class; 0: none */
    uint32_t head[2], tail[2]; /* messages that wait; WORKLOAD_NONE */
    uint32_t posted[2];        /* work requests in the send queue */
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
    struct workload_message *message;
    uint32_t n_messages;
    struct workload_flow *flow; /* by number */
    uint32_t n_flows;
    uint32_t *by_start; /* numbers of the flows, by their start */
    uint32_t started;   /* of these */
    struct coll *coll;  /* NULL: flows */
    struct prng prng;
    bool over;
    struct workload_result r;
    struct sparks sparks;
    struct buf *stats;     /* NULL: not wanted */
    ns_t interval, sample; /* of rows; the next one */
    uint64_t *told;        /* by port, and by queue pair: a sum of its counters when its last row was written */
};

/* Add a flow (hosts, class, bytes, count, start): false with *e filled: no such hosts, or no memory. */
bool workload_flow(struct workload *w, const struct workload_flow *f, struct text_error *e);
/* Hand over a message; false: no memory, or the connection refused it, which fails the run. */
bool workload_send(struct workload *w, const struct workload_message *m, ns_t now);
/* The messages that were under way are done or failed: flows go on. */
void workload_fail(struct workload *w, enum wc_status status);

/* The connections of a class between two hosts are to be made: 0 or a negative errno; -E2BIG: they would be too many,
 * and *e says so. */
int workload_connect(struct workload *w, unsigned a, unsigned b, uint8_t class, struct text_error *e);

/* Collectives: coll.c. */
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

/* Patterns of flows. */
bool incast_flows(struct workload *w, const char *args, struct text_error *e);
bool permutation_flows(struct workload *w, const char *args, struct text_error *e);
bool alltoall_flows(struct workload *w, const char *args, struct text_error *e);
bool listed_flows(struct workload *w, const char *args, struct text_error *e);

#endif
