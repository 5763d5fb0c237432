/* layer 2 (cc): the marking point: whether a packet that leaves a switch's queue is marked CE. One per queue. */
#ifndef RDMATRACE_CC_MP_H
#define RDMATRACE_CC_MP_H

#include "src/cc/params.h"

/* By what the probability of a mark is found. */
enum mp_kind {
    MP_OFF,
    MP_RED, /* 0 up to kmin; rises to pmax at kmax; 1 above */
    MP_PI,  /* a controller that holds the queue at `reference` (CoNEXT 2016) */
};

/* How a queue marks; the values of mp_params, in their order. */
struct mp_config {
    uint64_t kind;       /* enum mp_kind */
    uint64_t kmin, kmax; /* MP_RED: bytes */
    uint64_t pmax;       /* MP_RED: of CC_ONE */
    uint64_t reference;  /* MP_PI: bytes */
    uint64_t k1;         /* MP_PI: change of the probability for 1000 bytes of change; of CC_ONE */
    uint64_t k2;         /* MP_PI: for 1000 bytes away from the reference, in a second; of CC_ONE */
    uint64_t step;       /* MP_PI: ns between two steps */
    uint64_t all;        /* 1: packets that are not ECN-capable are marked, too, which no switch may */
    uint64_t drop;       /* 1: they are dropped instead; else they pass as they are */
};
extern const struct cc_param mp_params[];
struct mp_config mp_config_default(void);
/* "PARAM=VALUE,..." into *config. False: *e says what is wrong. */
bool mp_parse(struct mp_config *config, const char *text, struct text_error *e);

/* State of a queue's marking point. */
struct mp {
    const struct mp_config *config;
    uint64_t seed;
    uint64_t n;      /* packets decided */
    uint64_t marked; /* of these: marked */
    /* MP_PI: probability, of CC_ONE x 2^16; queue at the latest step; when the next step is */
    int64_t p;
    uint64_t queue;
    ns_t next;
};

/* The same seed marks the same packets. */
void mp_init(struct mp *mp, const struct mp_config *config, uint64_t seed, ns_t now);
/* A packet leaves the queue, in which `queue` bytes stay behind: true if it is to be marked. Only packets with ECT(0)
 * or ECT(1) may be; what becomes of others is the caller's choice. */
bool mp_marks(struct mp *mp, uint64_t queue, ns_t now);

#endif
