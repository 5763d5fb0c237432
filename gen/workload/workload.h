/* layer 3 (workload): what the hosts of a fabric send each other: flows, a schedule of tasks, or the steps of a
 * collective operation. A message takes one of the connections between the two hosts, over RC. Unless its protocol says
 * otherwise it is an RDMA WRITE with Immediate: it has arrived when the receiver gets the immediate data, and is done
 * when the sender gets its completion. */
#ifndef RDMATRACE_GEN_WORKLOAD_WORKLOAD_H
#define RDMATRACE_GEN_WORKLOAD_WORKLOAD_H

#include "buf.h"
#include "gen/sim/sim.h"
#include "tokens.h"

struct workload;
struct collective;
struct schedule;

/* A workload by name. */
struct workload_kind {
    const char *name;
    const char *args; /* what follows the name, for lists; "": nothing */
    const char *what; /* one line */
    /* Flows: add them with workload_flow(); `args`: behind the colon, or "". False with *e filled. */
    bool (*flows)(struct workload *w, const char *args, struct text_error *e);
    const struct collective *collective; /* NULL: none */
    /* Take the arguments before anything else is done; NULL: whoever adds flows or tasks does. */
    bool (*prepare)(struct workload *w, const char *args, struct text_error *e);
    /* A schedule: add its tasks. */
    bool (*tasks)(struct workload *w, struct schedule *s, const char *args, struct text_error *e);
    /* The file that `args` name, whose text becomes that of the configuration; NULL: none. */
    const char *(*file)(const char *args);
    /* `file` names several, NAME.N with this behind it, N from 0: each of them is text up to a WORKLOAD_NEXT_FILE;
     * NULL: one. */
    const char *numbered;
    /* Likewise, if the first of these files is not there: other files, which `to_text` makes such text of; false: it
     * cannot. NULL: none. */
    const char *binary;
    bool (*to_text)(const struct buf *file, struct buf *text);
};
#define WORKLOAD_NEXT_FILE '\f'
/* All kinds; the last row has no name. */
extern const struct workload_kind workload_kinds[];
/* A trace of Chakra, as protobuf, as the JSON of its jsonizer, without what no workload needs. False: it is none. */
bool chakra_et_text(const struct buf *et, struct buf *text);
/* NULL: none. `spec`: NAME or NAME:ARGS. */
const struct workload_kind *workload_find(const char *spec);
/* True if its hosts read the data that they get: collectives. */
bool workload_reads_data(const struct workload_kind *k);

struct workload_config {
    const struct workload_kind *kind;
    const char *args;            /* behind the name and its colon; "": none */
    const char *text;            /* of the file that `args` name; NULL: none */
    uint64_t size;               /* bytes of a message, or the data of a rank */
    uint64_t iters;              /* messages of a flow, or rounds of a collective */
    uint32_t qps;                /* connections between two hosts; messages take them in turn */
    uint32_t depth;              /* messages of a flow under way at a time */
    struct sim_conn_config conn; /* of all connections; PSNs and queue depths are filled in */
    uint64_t seed;
    ns_t time_limit; /* give up at this time; 0: never */
};

/* What a work request does. */
enum workload_op { STEP_SEND, STEP_WRITE, STEP_WRITE_IMM, STEP_READ };

#define WORKLOAD_WHOLE UINT64_MAX /* bytes: those of the message */
#define WORKLOAD_STEPS 4

/* A step of a protocol: one work request. */
struct workload_step {
    uint8_t op;     /* enum workload_op */
    bool back;      /* the destination of the message posts it, not the source */
    bool at_once;   /* behind the step before it; else when its host learns that that step is over */
    uint64_t bytes; /* or WORKLOAD_WHOLE */
};

/* How a message moves. */
struct workload_protocol {
    const char *name;
    uint8_t steps;
    uint8_t there; /* the step that ends when the data are there and the receiver knows it */
    struct workload_step step[WORKLOAD_STEPS];
};
enum workload_protocol_id {
    PROTOCOL_WRITE,          /* RDMA WRITE with Immediate */
    PROTOCOL_EAGER,          /* SEND */
    PROTOCOL_GET,            /* rendezvous: RTS, the receiver READs, ATS */
    PROTOCOL_PUT,            /* rendezvous: RTS, RTR, WRITE, ATP */
    PROTOCOL_READ,           /* the receiver READs */
    PROTOCOL_WRITE_THEN_IMM, /* WRITE, and an empty WRITE with Immediate */
    PROTOCOL_NVME_READ,
    PROTOCOL_NVME_WRITE,
};
/* By enum workload_protocol_id. */
extern const struct workload_protocol workload_protocols[];

/* A message. */
struct workload_message {
    uint16_t src, dst;  /* hosts */
    uint32_t flow;      /* its number; a collective: the step; a schedule: the task */
    uint32_t next;      /* of those that wait for a place in the send queue */
    uint32_t next_sent; /* of those whose SEND is under way */
    uint32_t conn;      /* that of its flow */
    uint8_t protocol;   /* enum workload_protocol_id */
    uint8_t class;      /* as of its flow */
    uint8_t step;       /* of its protocol, to be posted next */
    uint64_t bytes;
    uint64_t from, to;  /* offsets in the memory of the two hosts */
    ns_t posted;        /* handed over */
    ns_t arrived, done; /* 0: not yet */
};

#define WORKLOAD_CLASS 0xff

/* A flow: messages from one host to another, one behind the other. */
struct workload_flow {
    uint16_t src, dst;
    uint8_t class;       /* priority, 0 to 7; WORKLOAD_CLASS: that of the connections' configuration */
    uint64_t bytes;      /* of a message */
    uint64_t count;      /* messages */
    uint8_t protocol;    /* enum workload_protocol_id */
    uint8_t other;       /* likewise, of some messages */
    uint8_t others;      /* how many, in percent, by chance */
    ns_t start;          /* of the first one */
    uint16_t port;       /* UDP port of the destination, as flow.txt has it; 0: none */
    bool own;            /* it has a connection of its own; else those of its two hosts, in turn */
    uint32_t conn;       /* with `own`: its number + 1; else 0 */
    uint64_t sent, done; /* messages */
    ns_t first, last;    /* the first one was handed over, the last one is done */
};

struct workload_result {
    uint64_t posted, completed, failed; /* messages */
    uint64_t bytes;                     /* of the completed ones */
    uint8_t first_error;                /* enum wc_status */
    ns_t start, end;                    /* first message handed over, last one done */
    bool gave_up;                       /* at the time limit, or because nothing happened any more */
    uint64_t wrong;                     /* collectives: ranks whose result was wrong */
};

/* Prepare a workload for `s`, a fabric, whose application becomes workload_app(). NULL with *e filled. */
struct workload *workload_new(struct sim *s, const struct workload_config *c, struct text_error *e);
struct sim_app workload_app(struct workload *w);
void workload_free(struct workload *w);
/* Run until all is done. */
void workload_run(struct workload *w);
const struct workload_result *workload_result(const struct workload *w);
/* Bytes of the largest message of the flows; or of data that a rank has in a collective: the size, rounded up so that
 * it can be cut. */
uint64_t workload_bytes(const struct workload *w);

/* --- Statistics over time --------------------------------------------------------------------- */

/* Append to `b`, every `interval`, a row of CSV for each port and each queue pair that changed. `b` begins with the
 * names of the columns. */
void workload_stats(struct workload *w, struct buf *b, ns_t interval);

/* --- Reports ---------------------------------------------------------------------------------- */

void workload_text(struct buf *b, const struct workload *w);
void workload_json(struct buf *b, const struct workload *w);
/* A row of CSV for the whole, for the messages of a size, for each collective and each flow. */
void workload_summary_csv(struct buf *b, const struct workload *w);
/* A row of CSV for each message. */
void workload_messages_csv(struct buf *b, const struct workload *w);
/* A line for each message that is done, as fct.txt of the HPCC simulator: addresses in hexadecimal (IPv6: the last 32
 * bits), ports of source (10000 and the number of the flow) and destination (that of flow.txt; else 100), bytes, and
 * ns: when it was posted, how long it took, how long it would have taken through empty queues. */
void workload_fct(struct buf *b, const struct workload *w);

#endif
