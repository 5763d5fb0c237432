/* layer 3 (scan): the frames of a shard that tell of a whole tap, and not only of their two addresses: those by which
 * the resolution of its time stamps is learnt, that are longer than all before, the first one with a right ICRC of a
 * sender, the first one with a priority beside a DSCP. All processes that share out a run read them, so that each knows
 * of the taps what one process knows that reads all. */
#ifndef RDMATRACE_SCAN_FIRST_H
#define RDMATRACE_SCAN_FIRST_H

#include "dissect/pkt.h"
#include "src/taps/step.h"

#define FIRST_RECENT 256

/* Zero-initialise. */
struct first {
    bool lost; /* there were more interfaces or senders than are kept */
    /* internal */
    struct first_tap {
        struct ts_step step;
        uint32_t longest, longest_rdma; /* bytes of its longest frame, and of its longest RDMA frame */
        ns_t last;                      /* time of its latest frame */
    } * taps;
    uint32_t n_taps;
    uint64_t *senders; /* hash set */
    uint32_t n_senders;
    uint64_t recent[FIRST_RECENT]; /* of them */
    uint8_t priorities[64];        /* by DSCP: those seen, a mask */
};
/* Whether the frame of `p` tells anything of its tap; `sender`: a hash of its source address. */
bool first_seen(struct first *f, const struct pkt *p, uint64_t sender);
/* Whether the packet concerns its two addresses only. CNPs concern all to whom their sender may send some. */
bool is_of_pair(const struct pkt *p);
/* Number of the highest interface of which there was a frame, plus 1. */
static inline uint32_t first_taps(const struct first *f)
{
    return f->n_taps;
}
/* The time of the latest frame of each of `n` interfaces, INT64_MIN: it has none. The caller frees it. NULL without
 * memory. */
int64_t *first_last(const struct first *f, uint32_t n);
void first_free(struct first *f);

#endif
