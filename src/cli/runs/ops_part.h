/* layer 4 (tool): what one of several processes finds for `ops`, and what all have found. */
#ifndef RDMATRACE_CLI_OPS_PART_H
#define RDMATRACE_CLI_OPS_PART_H

#include "src/cli/runs/hosts_part.h"
#include "src/measure/meter.h"

/* A work request that is over. Of `row` its ends, its tap and its connection are set. */
struct ops_row {
    struct wqe w;
    const struct meter_row *row;
    ns_t length, states[TIME_STATES]; /* of its time, which the states add up to */
    bool accounted;                   /* they say something */
    bool late;                        /* it was over when the capture ended */
};

/* Zero-initialise. */
struct ops_part {
    struct hosts_part hosts;
    bool begun;   /* there was a packet, */
    ns_t first;   /* at this time */
    uint32_t nth; /* work requests that were over at the packet at hand */
    struct buf rows;
    uint64_t n;
    struct number_place *places; /* by number, from 0: the packet at which it was given */
    uint32_t n_places;
    /* what all parts have found */
    struct ops_place *all;
    size_t n_all;
    bool taken;
};

/* t->share is set: note what happens, or take what all parts have found, else t->share becomes NULL. `all`: an option
 * needs all packets. */
void ops_part_begin(struct ops_part *o, struct trace *t, bool all);
/* Before the packet is observed. */
void ops_part_packet(struct ops_part *o, const struct pkt *p, const struct meter *m);
/* A work request of this part, or of another one, is over. */
void ops_part_over(struct ops_part *o, const struct trace_share *s, const struct ops_row *r, const struct meter *m);
/* Write what this part has found: an exit status. */
int ops_part_save(struct ops_part *o, struct trace *t);
/* What all parts have found: call `put` for each work request, those that are late behind all others. False: it is
 * damaged. */
bool ops_part_replay(struct ops_part *o, const struct trace *t, void (*put)(void *user, const struct ops_row *r),
                     void *user);
void ops_part_free(struct ops_part *o);

#endif
