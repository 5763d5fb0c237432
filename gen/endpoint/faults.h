/* layer 3 (endpoint): deliberate mistakes, each breaking exactly one rule. */
#ifndef RDMATRACE_GEN_ENDPOINT_FAULTS_H
#define RDMATRACE_GEN_ENDPOINT_FAULTS_H

#include "gen/endpoint/build.h"
#include "src/transport/rules.h"

/* Where a fault takes hold of the endpoint. */
enum fault_hook {
    FAULT_REQUEST,  /* change a request packet, or the frame, just before it is sent */
    FAULT_RESPONSE, /* the same for a response */
    /* the chooser goes on where the named check would stop it: depth, credits, timers, retries, resumption */
    FAULT_CHOICE,
    FAULT_CM, /* the connection manager; applied by its agent */
};

/* What a fault may look at and change. */
struct fault_ctx {
    struct pkt *p;             /* the packet: headers, bth, op, payload_len */
    struct build_tweak *tweak; /* departures below the transport */
    const struct requester *req;
    const struct responder *rsp;
    ns_t now;
    bool repeat;       /* a request sent again */
    bool again;        /* set: the packet is sent a second time */
    bool again_as_ack; /* set: that time as a plain ACK */
    uint8_t encap;     /* enum encap of the path */
    bool ip4;          /* RoCEv2 over IPv4 */
};

struct fault_info {
    enum rule rule;
    enum fault_hook hook;
    const char *what; /* one line: what the endpoint does wrong */
    /* FAULT_REQUEST, FAULT_RESPONSE: change the packet or the tweak; false if this packet is not suited. NULL for the
     * others. */
    bool (*change)(struct fault_ctx *c);
    bool mild; /* this way of breaking the rule is a warning, though the rule is an error */
};

/* Faults that an endpoint can be asked for; a rule that can be broken in two ways counts twice. */
#define FAULTS_MAX 64

/* All faults. */
extern const struct fault_info fault_table[];
extern const unsigned fault_count;
/* The first fault that breaks `rule`; NULL if none can. */
const struct fault_info *fault_find(enum rule rule);
/* Whose mistake it is: "a requester's", "a responder's", "either end's" or "the connection manager's". */
const char *fault_whose(enum rule rule);

#endif
