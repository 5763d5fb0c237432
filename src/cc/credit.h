/* layer 2 (cc): the receiver of Shaped-Quota: who may send how much to an adapter. One per adapter. */
#ifndef RDMATRACE_CC_CREDIT_H
#define RDMATRACE_CC_CREDIT_H

#include "src/cc/cc.h"

/* Parameters of a receiver. */
struct credit_config {
    uint64_t quantum; /* packets granted at a time */
    uint64_t eta;     /* of CC_ONE: share of the line that is granted */
    uint64_t most;    /* bytes granted and not arrived, of all senders together */
    uint64_t charge;  /* 1: what comes unasked counts as granted */
};
/* Those of the scheme `sq`. */
struct credit_config credit_config_of(const struct cc_config *config);

/* A sender: bytes in all, since its start. Its first quota comes unasked, and is in `arrived` only. */
struct credit_sender {
    uint64_t asked, granted, arrived;
    uint64_t quota; /* what comes unasked */
};

/* State of a receiver. */
struct credit {
    const struct credit_config *config;
    struct credit_sender *sender; /* n, the caller's; all zero at first */
    uint32_t n, turn;             /* turn: whose it is next */
    uint32_t wanting;             /* senders that asked for more than was granted */
    uint64_t line;                /* bit/s */
    uint64_t open;                /* bytes granted and not arrived */
    ns_t moved;                   /* the latest grant or arrival */
    ns_t next;                    /* when the next grant is due; NS_NEVER: nobody asks */
    uint32_t mtu;                 /* wire bytes of a full packet */
    ns_t paid;                    /* until when the line is given away, in ns and 2^-16 ns */
    uint32_t paid_fraction;
};

void credit_init(struct credit *c, const struct credit_config *config, struct credit_sender *sender, uint32_t n,
                 uint64_t line, uint32_t mtu);
/* Sender `i` has asked for `bytes` in all beyond its first `quota`; fewer than before are ignored. */
void credit_asked(struct credit *c, uint32_t i, uint64_t bytes, uint64_t quota, ns_t now);
/* `bytes` of sender `i` have arrived. */
void credit_arrived(struct credit *c, uint32_t i, uint32_t bytes, ns_t now);
/* Sender `i` had sent `bytes` in all before it asked: what has not arrived of them by now was lost. */
void credit_sent(struct credit *c, uint32_t i, uint64_t bytes, ns_t now);
/* Sender `i` is gone, or begins again. */
void credit_forget(struct credit *c, uint32_t i, ns_t now);
/* The time is c->next: whom to grant; *granted: what it has been granted in all. -1: nobody. */
int credit_grant(struct credit *c, uint64_t *granted, ns_t now);

#endif
