/* layer 5 (test): what the files of the model share. */
#ifndef RDMATRACE_TESTS_EXPERIMENTS_MODEL_IMPL_H
#define RDMATRACE_TESTS_EXPERIMENTS_MODEL_IMPL_H

#include "tests/experiments/model.h"

#define NP_SLOTS 4096
#define PROBE    100 /* bytes; no packet is that small */

enum event_kind {
    AT_SEND,   /* flow: may send */
    AT_TIMER,  /* flow: its deadline */
    AT_ARRIVE, /* packet: at the next queue of its path, or at its receiver */
    AT_LEAVE,  /* queue: its link is free again */
    AT_CNP,    /* flow: gets a CNP */
    AT_ACK,    /* packet: its ACK arrives */
    AT_PAUSE,  /* flow: told to stop */
    AT_RESUME, /* flow: told to go on */
    AT_FAIR,   /* queue: a period of its congestion point ends */
    AT_RATE,   /* flow: told the fair rate `value` by queue `from` */
    AT_ASK,    /* flow: its receiver is asked for more */
    AT_GRANT,  /* the receiver may grant */
    AT_CREDIT, /* flow: granted `value` in all */
};

struct event {
    ns_t at;
    uint64_t order; /* of events at the same time */
    uint64_t value;
    uint32_t what; /* flow, packet or queue */
    uint8_t kind;  /* enum event_kind */
    uint8_t from;  /* queue */
};

struct packet {
    uint32_t flow, next; /* next: in a queue or in the list of free ones; packet + 1 */
    uint32_t bytes;
    uint8_t hop; /* of its path */
    bool marked;
    ns_t sent;
    struct cc_hop hops[MODEL_PATH];
};

struct queue {
    uint32_t head, tail; /* packet + 1 */
    uint64_t bytes;
    bool busy;
    ns_t changed; /* when `bytes` changed */
    struct mp mp;
    struct mp_config marking;
    struct fair fair;
    struct fair_config fairness;
    uint64_t tx_bytes;
    uint32_t packets[MODEL_FLOWS]; /* of each flow */
};

struct flow {
    struct cc_config cc;
    ns_t send_at, timer_at; /* of the event that counts; NS_NEVER: none */
    uint64_t in_flight;
    uint64_t in_first;    /* bytes in the first queue of its path: at the ingress of
                             the switch */
    bool paused, stopped; /* paused: the sender stands; stopped: it was told to */
    ns_t since;           /* paused */
    ns_t notified;        /* of the notification point */
};

struct model {
    struct model_config *c;
    struct event *heap;
    size_t n, cap;
    uint64_t order;
    ns_t now, from;
    struct packet *packet;
    uint32_t n_packet, cap_packet, free;
    struct flow flow[MODEL_FLOWS];
    struct queue queue[MODEL_QUEUES];
    struct np np;
    struct np_config np_config;
    struct np_slot slot[NP_SLOTS];
    uint64_t pauses;
    struct credit credit;
    struct credit_config credit_config;
    struct credit_sender sender[MODEL_FLOWS];
    ns_t grant_at; /* of the event that counts */
};

#endif
