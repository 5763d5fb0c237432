/* layer 3 (agent): what a client of `rdmagen agent` has: its objects, and the commands that work on them. Text comes in
 * by agent_line() and goes out into a buffer; whoever drives the agent carries both (gen/agent/server.h). */
#ifndef RDMATRACE_GEN_AGENT_AGENT_H
#define RDMATRACE_GEN_AGENT_AGENT_H

#include "gen/agent/line.h"
#include "gen/agent/objects.h"
#include "gen/rnic/rnic.h"
#include "prng.h"

#define AGENT_PROTOCOL 1
#define AGENT_BATCH    1024 /* most lines of a batch */

struct agent;

/* What drives the agent. */
struct agent_driver {
    void *user;
    /* Wait until `until` (CLOCK_MONOTONIC, ns), or something happens; flush what the agent has said. False: the client
     * has gone. */
    bool (*pause)(void *user, struct agent *a, ns_t until);
    /* The time, where it is virtual: the clock of stamps and of limits. NULL: the host's clocks. */
    ns_t (*now)(void *user);
};

struct agent {
    struct rnic *rnic;
    struct agent_limits limits;
    struct agent_driver driver;
    struct objects objects;
    char only[64];       /* the one device that may be opened; "": any */
    bool open;           /* a device is open */
    bool ended;          /* the client said `quit` */
    uint64_t events;     /* asynchronous lines said so far */
    struct buf out;      /* what is to be sent to the client */
    struct buf reply;    /* " key=value" of the answer that is being made */
    const uint8_t *bulk; /* bytes behind the answer, which live until the next command */
    size_t n_bulk;
    struct prng random;
    struct buf counters; /* " NAME=VALUE" of each, as `counters` said them last */
    struct {
        unsigned left; /* lines that the batch still lacks; 0: no batch */
        char id[REQUEST_ID + 1];
        struct buf lines; /* each terminated by NUL */
    } batch;
};

/* Begin and end the life of a client's agent. agent_end() destroys all that the client made. */
void agent_begin(struct agent *a, struct rnic *r, const struct agent_limits *limits, const struct agent_driver *driver);
void agent_end(struct agent *a);
/* One request: the line without its newline, terminated by NUL, and the bytes behind it. */
void agent_line(struct agent *a, const char *line, size_t len, const uint8_t *data, size_t n_data);
/* Say what has happened: events, notifications, messages of RDMA-CM; a limited number of them at a time. */
void agent_events(struct agent *a);
/* Wait until done() or the end of `ms`, sending events to the client in the meantime. 0; -ETIMEDOUT; -ECANCELED: the
 * client has gone.
 */
int agent_wait(struct agent *a, uint64_t ms, bool (*done)(struct agent *a, void *arg), void *arg);
/* The time of stamps: CLOCK_MONOTONIC_RAW in ns, or virtual. */
ns_t agent_time(const struct agent *a);
/* CLOCK_MONOTONIC_RAW in ns. CLOCK_MONOTONIC: for limits of time. */
ns_t agent_clock(void);
ns_t agent_now(void);

/* --- For the commands ------------------------------------------------------------------------- */

/* A command. `args`: as help shows them, `[key=what]` if it may be left out; other keys are refused, and so is a line
 * that lacks one. run(): 0, or a negative errno; what is wrong in request.why, or the errno says it all. */
struct agent_command {
    const char *name, *args, *help;
    int (*run)(struct agent *a, struct request *r);
    unsigned flags; /* AGENT_* */
};
enum {
    AGENT_POST = 1u << 0,   /* may stand in a batch */
    AGENT_DEVICE = 1u << 1, /* needs an open device */
};

/* The tables, each ending with a NULL name. */
extern const struct agent_command agent_session[], agent_device[], agent_memory[], agent_regions[], agent_queues[],
    agent_qps[], agent_more[], agent_posts[], agent_completions[], agent_cm[], agent_counters[], agent_settings[],
    agent_walk[];
/* The command of these words, or NULL. */
const struct agent_command *agent_command_find(const struct request *r);
/* Whether the request has just the arguments that the command takes; else request.why. */
bool agent_command_args(const struct agent_command *c, struct request *r);
/* All tables, in order; NULL behind the last. */
const struct agent_command *agent_commands(unsigned table);

/* Run a request whose answer is not sent: 0 or a negative errno. */
int agent_do(struct agent *a, const char *line);
/* The object that argument `key` names, of kind `kind`. False: there is none, request.why. Without the argument: true,
 * and *o is NULL. */
bool agent_object(struct agent *a, struct request *r, const char *key, enum object_kind kind, struct object **o);
/* The provider's pointer of an object; NULL stays NULL. */
static inline void *agent_impl(const struct object *o)
{
    return o ? o->impl : NULL;
}
/* An object of object_new() was made with result `e`, which is returned: 0, it is named in the reply as KIND=NAME; or a
 * negative errno, it is freed. */
int agent_made(struct agent *a, struct object *o, int e);

#endif
