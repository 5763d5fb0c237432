/* layer 2 (cc): the notification point: when a receiver of marked packets sends a CNP. One per adapter. */
#ifndef RDMATRACE_CC_NP_H
#define RDMATRACE_CC_NP_H

#include "src/cc/params.h"

/* What the interval between two CNPs is about. */
enum np_scope {
    NP_QP,      /* one queue pair */
    NP_IP_PAIR, /* all queue pairs between two addresses */
    NP_DEST_IP, /* all that go to one address */
    NP_PORT,    /* all of the adapter */
};

#define NP_DSCP_COPY 64 /* of a DSCP: the queue pair's own */
#define NP_PRIO_COPY 8  /* of a priority: likewise */

/* How an adapter notifies; the values of np_params, in their order. */
struct np_config {
    uint64_t interval; /* ns between two CNPs, at least */
    uint64_t scope;    /* enum np_scope */
    uint64_t per_ce;   /* 1: a CNP for every marked packet, whatever the interval */
    uint64_t delay;    /* ns from the mark to the CNP */
    uint64_t reads;    /* 1: also for marked READ responses, to the responder */
    uint64_t dscp;     /* of CNPs; NP_DSCP_COPY */
    uint64_t prio;     /* 802.1p priority of CNPs, where there is a VLAN tag; NP_PRIO_COPY */
};
/* Up to one without a name. */
extern const struct cc_param np_params[];
struct np_config np_config_default(void);
/* "PARAM=VALUE,..." into *config. False: *e says what is wrong. */
bool np_parse(struct np_config *config, const char *text, struct text_error *e);

/* What was notified lately. */
struct np_slot {
    uint64_t key; /* of the addresses, by the scope */
    ns_t until;   /* no further CNP before this; 0: never used */
};

/* State of an adapter's notification point. */
struct np {
    const struct np_config *config;
    struct np_slot *slot; /* mask + 1, the caller's; only for NP_IP_PAIR and NP_DEST_IP */
    uint32_t mask;
    uint32_t crowded; /* times that a slot in use was needed: then a CNP may come too early for its former owner */
    ns_t port_until;
};

/* `n` slots, a power of two, all zero: enough for the addresses that are notified within one interval. `n` may be 0 if
 * the scope is neither NP_IP_PAIR nor NP_DEST_IP. */
void np_init(struct np *np, const struct np_config *config, struct np_slot *slot, uint32_t n);
/* A packet from the 16-byte address `src` to `dst` arrived, marked CE; it is a READ response if `read`. *qp_until is
 * state of the queue pair that it is for, from 0. Returns when a CNP is due, NS_NEVER: none is. */
ns_t np_marked(struct np *np, const uint8_t src[16], const uint8_t dst[16], ns_t *qp_until, bool read, ns_t now);

#endif
