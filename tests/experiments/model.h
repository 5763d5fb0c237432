/* layer 5 (test): a packet-level model for the schemes of congestion control: senders, queues on their paths,
 * receivers.
 *
 * * It drives the objects of src/cc and nothing else: there is no transport, nothing is retransmitted, and a packet
 * has 1000 bytes unless said otherwise. Each sender has a link to the first queue of its path; a packet takes its
 * serialization and the delay of a link per hop, what comes back takes the delays only. Packets are marked as they
 * leave a queue. */
#ifndef RDMATRACE_TESTS_MODEL_H
#define RDMATRACE_TESTS_MODEL_H

#include "src/cc/cc.h"
#include "src/cc/credit.h"
#include "src/cc/fair.h"
#include "src/cc/mp.h"
#include "src/cc/np.h"

#define MODEL_FLOWS  256
#define MODEL_QUEUES 8
#define MODEL_PATH   4

/* A flow without an end. */
struct model_flow {
    const char *cc; /* "dcqcn:ai=10M" */
    uint64_t link;  /* bit/s of its link */
    ns_t start;
    uint64_t rate;            /* bit/s that it begins with; 0: the scheme's choice */
    uint8_t path[MODEL_PATH]; /* queues */
    uint8_t hops;             /* of `path`; 0: queue 0 only */

    /* Results. */
    uint64_t bytes; /* that arrived since the latest model_begin() */
    uint64_t cnps;  /* that it got since then */
    ns_t paused;    /* time since then */
    struct cc state;
};

/* A queue in front of a link. */
struct model_queue {
    uint64_t link;       /* bit/s */
    uint64_t limit;      /* bytes; more are dropped; 0: no limit */
    const char *marking; /* parameters of the marking point; NULL: no marks */
    const char *fair;    /* parameters of RoCC's congestion point beyond those for
                            the link; NULL: none */

    /* Results since the latest model_begin(). */
    double area, square;         /* integrals of bytes and of their square over time in ns */
    uint64_t most;               /* bytes */
    uint64_t left, marks, drops; /* packets */
    uint64_t left_bytes;
};

struct model_config {
    struct model_flow flow[MODEL_FLOWS];
    unsigned n_flow;
    struct model_queue queue[MODEL_QUEUES];
    unsigned n_queue;
    ns_t delay;         /* of a link; 0: 1 us */
    ns_t feedback;      /* more delay of what comes back */
    uint32_t packet;    /* bytes; 0: 1000 */
    uint64_t xoff, xon; /* pause a sender with so many bytes in its first queue,
                           and release it; 0: no pause */
    const char *np;     /* parameters of the notification point; NULL: those of the
                           first flow's scheme */
    uint64_t seed;
};

struct model;
/* The model at time 0; the configuration stays the caller's, and gets the results. NULL after a message: a parameter
 * is wrong. */
struct model *model_new(struct model_config *config);
void model_free(struct model *m);
ns_t model_now(const struct model *m);
/* Measure from now on. */
void model_begin(struct model *m);
/* Go on until `until`. */
void model_run(struct model *m, ns_t until);

/* The same, and the mean of a quantity of the schemes' state over flows and time. */
double model_run_mean(struct model *m, ns_t until, const char *name);

/* Since model_begin(): bit/s of a flow, and of all; mean and standard deviation of a queue in bytes; the queue's use
 * of its link, 0 to 1; marked packets, 0 to 1; how alike the flows' rates are: Jain's index, up to 1; pauses. */
double model_rate(const struct model *m, unsigned flow);
double model_queue_mean(const struct model *m, unsigned queue);
double model_queue_deviation(const struct model *m, unsigned queue);
double model_use(const struct model *m, unsigned queue);
double model_marked(const struct model *m, unsigned queue);
double model_jain(const struct model *m);
uint64_t model_pauses(const struct model *m);

#endif
