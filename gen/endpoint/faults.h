/* layer 3 (endpoint): faults: deliberate violations, each of exactly one rule. */
#ifndef RDMATRACE_GEN_ENDPOINT_FAULTS_H
#define RDMATRACE_GEN_ENDPOINT_FAULTS_H

#include "gen/endpoint/build.h"
#include "src/transport/rules.h"

struct cm_msg;

/* Where a fault is applied. */
enum fault_hook {
    FAULT_REQUEST,  /* change a request packet, or the frame, just before it is sent */
    FAULT_RESPONSE, /* likewise, a response */
    /* the endpoint acts against a rule: depth, credits, timers, retries, retransmission */
    FAULT_CHOICE,
    FAULT_CM, /* the connection manager; applied by its agent */
};

/* Actions that a rule forbids: the code that decides asks ep_fault_choice(). */
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
    CHOICE_NO_NAK,          /* send no sequence NAK for a gap */
    CHOICE_ACK_BEFORE_READ, /* acknowledge a later request before the response of a READ */
    CHOICE_AFTER_FATAL,     /* send a new request after a fatal NAK */
    CHOICE_IN_RNR_WAIT,     /* send a new request while an RNR NAK is waited out */
    CHOICE_SWEEP,           /* send requests of many other PSNs as well */
    CHOICE_FORGE,           /* send a packet of somebody else before one's own of the same PSN */
    CHOICE_NO_CNP,          /* send no CNPs for marked packets */
    CHOICE_CNP_EACH,        /* send a CNP for each marked packet, whatever the interval */
    CHOICE_COUNT
};

/* A packet, and the state that a fault may use. */
struct fault_ctx {
    struct pkt *p;             /* the packet: headers, bth, op, payload_len */
    struct build_tweak *tweak; /* errors below the transport */
    const struct requester *req;
    const struct responder *rsp;
    ns_t now;
    bool repeat;       /* a retransmitted request */
    bool again;        /* set by the fault: send the packet a second time */
    bool again_as_ack; /* set by the fault: the second time as a plain ACK */
    uint8_t encap;     /* enum encap of the path */
    bool ip4;          /* RoCEv2 over IPv4 */
};

struct fault_info {
    enum rule rule;
    enum fault_hook hook;
    const char *what; /* one line: what the endpoint does wrong */
    /* FAULT_REQUEST, FAULT_RESPONSE: change the packet or the tweak; false if the packet does not fit. NULL for other
     * hooks. */
    bool (*change)(struct fault_ctx *c);
    bool mild;                /* this violation is a warning, though the rule is an error */
    enum fault_choice choice; /* FAULT_CHOICE */
    /* FAULT_CM: change a message about to be sent; false if it does not fit */
    bool (*change_cm)(struct cm_msg *m);
    bool repeats; /* FAULT_CM: retransmitted messages only */
    bool unsent;  /* FAULT_CM: the message is not sent */
};

/* Flaws: what an endpoint does wrong all the time, and what no rule of the wire names. Only those who know its work
 * requests and its memory can tell: the tests of conformance. */
enum flaw {
    FLAW_ANY_PKEY,        /* accept packets of any partition */
    FLAW_LIMITED_PKEY,    /* accept packets of a limited member as a limited member */
    FLAW_ANY_RKEY,        /* accept an R_Key that no region or window has */
    FLAW_EMPTY_WINDOW,    /* complete a bind of a type 2 window to no bytes with success */
    FLAW_RECEIVE_LOST,    /* UD: consume a receive that is too small */
    FLAW_RECEIVE_OVERRUN, /* UD: write behind a receive that is too small */
    FLAW_HEADER_FIRST,    /* UD: put an IPv4 header at the start of the 40 bytes */
    FLAW_PAD_COUNTED,     /* complete receives with a length that includes the pad bytes */
    FLAW_CNP_UNHEARD,     /* keep the rate whatever CNPs come */
    FLAW_CNP_FOR_ALL,     /* take a CNP as one for each queue pair */
    FLAW_RATE_STAYS,      /* never increase a rate again that a CNP has reduced */
    FLAW_COUNT
};
struct flaw_info {
    const char *name;
    const char *what; /* one line: what the endpoint does wrong */
};
extern const struct flaw_info flaw_table[FLAW_COUNT];
/* The flaw of this name; -1: there is none. */
int flaw_find(const char *name);

/* faults of one endpoint at most; a rule that can be broken in two ways counts twice */
#define FAULTS_MAX 64

/* All faults. */
extern const struct fault_info fault_table[];
extern const unsigned fault_count;
/* The first fault that breaks `rule`; NULL if none can. */
const struct fault_info *fault_find(enum rule rule);
/* Who commits it: "a requester's", "a responder's", "either end's" or "the connection manager's". */
const char *fault_whose(enum rule rule);

#endif
