/* layer 3 (workload): schedules: tasks of hosts, sends, receives and computation, that wait for each other. */
#ifndef RDMATRACE_GEN_WORKLOAD_SCHEDULE_H
#define RDMATRACE_GEN_WORKLOAD_SCHEDULE_H

#include "gen/endpoint/timers.h"
#include "gen/workload/workload.h"

enum task_kind { TASK_SEND, TASK_RECV, TASK_CALC };

struct task {
    uint8_t kind; /* enum task_kind */
    bool begun;   /* it waits for no other task */
    bool arrived; /* receive: the message is there */
    bool over;
    uint16_t rank, peer; /* hosts; `peer`: of a send or receive */
    uint32_t tag;
    uint32_t match;     /* send: the receive of its message */
    uint32_t left;      /* tasks that it waits for */
    uint32_t then;      /* first of its edges; WORKLOAD_NONE */
    uint32_t next;      /* the next one that may begin; WORKLOAD_NONE */
    uint64_t bytes;     /* send, receive */
    ns_t time;          /* computation */
    struct timer timer; /* computation */
};

/* `task` waits until another one is over; or, `begun`, has begun. */
struct task_edge {
    uint32_t task, next;
    bool begun;
};

struct schedule {
    struct task *task;
    uint32_t n;
    struct task_edge *edge;
    uint32_t n_edges;
    uint32_t over;              /* tasks */
    uint32_t ready, last_ready; /* tasks that may begin, a list; WORKLOAD_NONE: none */
    bool started;
    struct timers timers;
};

/* Add a task; WORKLOAD_NONE: no memory, or too many. */
uint32_t schedule_add(struct schedule *s, const struct task *t);
/* `task` waits for `other`. False: no memory. */
bool schedule_after(struct schedule *s, uint32_t task, uint32_t other, bool begun);

#endif
