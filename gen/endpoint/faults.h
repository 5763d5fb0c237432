/* layer 3 (endpoint): deliberate mistakes, each breaking exactly one rule. */
#ifndef RDMATRACE_GEN_ENDPOINT_FAULTS_H
#define RDMATRACE_GEN_ENDPOINT_FAULTS_H

#include "gen/endpoint/build.h"
#include "src/transport/rules.h"

struct cm_msg;

/* Where a fault acts. */
enum fault_hook {
    FAULT_REQUEST,  /* change a request packet, or the frame, just before it is sent */
    FAULT_RESPONSE, /* the same for a response */
    /* the endpoint sends although the rule forbids it: depth, credits, timers, retries, resumption */
    FAULT_CHOICE,
    FAULT_CM, /* the connection manager; applied by its agent */
};

/* What an endpoint does where a rule forbids it: the code that decides asks ep_fault_choice(). */
enum fault_choice {
    CHOICE_NONE,
    CHOICE_EXTRA_READ,      /* exceed the depth of READs and atomics */
    CHOICE_NO_CREDIT,       /* send a message without a credit */
    CHOICE_SPURIOUS,        /* retransmit without a reason */
    CHOICE_EXTRA_RETRY,     /* exceed the retry count */
    CHOICE_EXTRA_RNR_RETRY, /* exceed the RNR retry count */
    CHOICE_EARLY_RNR_RETRY, /* retransmit before the RNR timer expires */
    CHOICE_MUTE,            /* send no responses */
    CHOICE_UC_ACK,          /* acknowledge a UC packet */
    CHOICE_ACK_BEFORE_READ, /* acknowledge a later request before the response of a READ */
    CHOICE_COUNT
};

/* The packet, and the state that a fault may look at. */
struct fault_ctx {
    struct pkt *p;             /* the packet: headers, bth, op, payload_len */
    struct build_tweak *tweak; /* departures below the transport */
    const struct requester *req;
    const struct responder *rsp;
    ns_t now;
    bool repeat;       /* a retransmitted request */
    bool again;        /* set: the packet is sent a second time */
    bool again_as_ack; /* set: the second time as a plain ACK */
    uint8_t encap;     /* enum encap of the path */
    bool ip4;          /* RoCEv2 over IPv4 */
};

struct fault_info {
    enum rule rule;
    enum fault_hook hook;
    const char *what; /* one line: what the endpoint does wrong */
    /* FAULT_REQUEST, FAULT_RESPONSE: change the packet or the tweak; false if the packet does not suit. NULL for other
     * hooks. */
    bool (*change)(struct fault_ctx *c);
    bool mild;                /* this way of breaking the rule is a warning, though the rule is an error */
    enum fault_choice choice; /* FAULT_CHOICE */
    /* FAULT_CM: change a message about to be sent; false if it does not suit */
    bool (*change_cm)(struct cm_msg *m);
    bool repeats; /* FAULT_CM: only messages that are retransmitted */
    bool unsent;  /* FAULT_CM: the message is not sent */
};

/* Faults that an endpoint can be asked for; a rule that can be broken in two ways counts twice. */
#define FAULTS_MAX 64

/* All faults. */
extern const struct fault_info fault_table[];
extern const unsigned fault_count;
/* The first fault that breaks `rule`; NULL if none can. */
const struct fault_info *fault_find(enum rule rule);
/* Who commits it: "a requester's", "a responder's", "either end's" or "the connection manager's". */
const char *fault_whose(enum rule rule);

#endif
