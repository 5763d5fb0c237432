/* layer 2 (cc): RoCC's congestion point: the fair rate of a switch's queue. One per queue. */
#ifndef RDMATRACE_CC_FAIR_H
#define RDMATRACE_CC_FAIR_H

#include "src/cc/params.h"

/* The values of fair_params, in their order. */
struct fair_config {
    uint64_t period;                 /* ns between two steps */
    uint64_t reference, middle, top; /* bytes: the queue that is held; a rise that halves; a queue that resets */
    uint64_t alpha, beta;            /* of CC_ONE: weights of the error and of its change */
    uint64_t least, most;            /* bit/s */
};
extern const struct cc_param fair_params[];
struct fair_config fair_config_default(void);
/* The published values for a line of `bps`: those of 100G from 70G on, else those of 40G; `most` is `bps`. */
struct fair_config fair_config_for(uint64_t bps);
/* "PARAM=VALUE,..." into *config. False: *e says what is wrong. */
bool fair_parse(struct fair_config *config, const char *text, struct text_error *e);

/* State of a congestion point. */
struct fair {
    const struct fair_config *config;
    int64_t rate;   /* of 10 Mbit/s, 2^-16 */
    uint64_t queue; /* bytes at the latest step */
    ns_t next;      /* when the next step is due */
};

void fair_init(struct fair *f, const struct fair_config *config, ns_t now);
/* Whether the queue was empty, and the rate that of the line. */
bool fair_is_idle(const struct fair *f);
/* A period has ended, with `queue` bytes in the queue: the rate in bit/s that is to be told to every flow with a packet
 * in it. */
uint64_t fair_step(struct fair *f, uint64_t queue);

#endif
