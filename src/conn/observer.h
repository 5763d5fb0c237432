/* layer 2b (conn): connections as they pass by: each packet with the half of a connection that it belongs to. */
#ifndef RDMATRACE_CONN_OBSERVER_H
#define RDMATRACE_CONN_OBSERVER_H

#include "src/conn/requests.h"
#include "src/conn/setup.h"

#define WATCH_FLOWS 4096

struct watch;

/* The latest requests that were sent again for want of an answer, whatever answers the tap has seen. */
struct tries {
    uint32_t psn;  /* where they began */
    uint32_t n;    /* times in a row; 0: the latest had another reason */
    uint32_t next; /* half.next at the latest */
};

/* A packet of a connection. */
struct watched {
    const struct pkt *p;
    uint32_t own;      /* flow of the packet itself */
    uint32_t flow;     /* of the requests: the packet's own, or for a response its peer */
    struct req_dir *h; /* likewise; NULL: a response whose requests were not seen */
    uint8_t as;        /* request: enum seen_as */
    uint8_t why;       /* request that goes back: enum why_back; else BACK_NONE */
};

/* What is to be told; any member but `request` and `response` may be NULL. */
struct watch_user {
    void *user;
    void (*fresh)(void *user, uint32_t flow); /* what was known of the flow is about to be forgotten */
    /* first of all: any request or response, and its own flow */
    void (*packet)(void *user, const struct pkt *p, uint32_t flow);
    /* Before the packet changes the evidence, and behind it. */
    void (*request)(void *user, const struct watched *w);
    void (*requested)(void *user, const struct watched *w);
    void (*response)(void *user, const struct watched *w);
    void (*responded)(void *user, const struct watched *w);           /* not without w->h */
    void (*bad_icrc)(void *user, const struct pkt *p, uint32_t flow); /* flow FLOW_NONE: not known */
    /* all else; flow of a CNP's destination, or FLOW_NONE */
    void (*other)(void *user, const struct pkt *p, uint32_t flow);
};

/* NULL without memory. *u is copied. */
struct watch *watch_new(const struct watch_user *u);
void watch_free(struct watch *w);
void watch_packet(struct watch *w, const struct pkt *p);
/* Take a packet that is not to be told: it only teaches which queue pairs belong together. */
void watch_learn(struct watch *w, const struct pkt *p);
struct conn_table *watch_conns(struct watch *w);
/* Evidence about the requests of a flow; NULL if it carried none. */
struct req_dir *watch_half(struct watch *w, uint32_t flow);
const struct tries *watch_tries(const struct watch *w, uint32_t flow);
/* Whether packets of the other direction are captured: of the connection, of its setup, or of others between the two
 * ends. */
bool watch_heard(const struct watch *w, uint32_t flow);

#endif
