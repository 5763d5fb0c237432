/* layer 4 (tool): the packets of a command shared out among parts of this process: threads bring the packets of a batch
 * to one part after the other (src/cores/turns.h). Of check, parts are judges with some pairs of addresses each
 * (owners.h); of flows and ops, whole runs of the command with some hosts each (host_owners.h). */
#ifndef RDMATRACE_CLI_IN_PARTS_H
#define RDMATRACE_CLI_IN_PARTS_H

#include "dissect/pkt.h"
#include "src/conn/numbers_log.h"

#include <stdatomic.h>

/* The first member of what has the parts. */
struct in_parts {
    unsigned n; /* parts, 2 to TURNS_PARTS */
    /* Those of a packet, TURNS_PART() of each, TURNS_ALL or TURNS_ENOUGH. All packets, in their order, as one process
     * would get them. */
    uint64_t (*parts_of)(struct in_parts *in, const struct pkt *p);
    void (*take)(struct in_parts *in, unsigned part, struct pkt *p); /* a packet of a part */
    bool (*go_on)(struct in_parts *in, unsigned part); /* after some packets of a part: whether it goes on */
    void (*fetch)(struct in_parts *in, unsigned part); /* as judge_fetch() */
    /* as judge_expect(); NULL: that is of no use */
    void (*ahead)(struct in_parts *in, unsigned part, const struct frame *f);
};

/* For parts_of(): whether a packet follows the one before, `latest`, which it becomes, in the order in which what parts
 * find is sorted. `latest` is zero at first. */
static inline bool in_parts_follows(struct number_place *latest, const struct frame *f)
{
    struct number_place at = {f->ts, f->file, f->number};
    bool follows = f->has_ts && (!latest->frame || number_place_compare(&at, latest) > 0);

    *latest = at;
    return follows;
}

/* For go_on(): add what a part uses now, and did not `before`, to what all use. False: that has not changed. */
static inline bool in_parts_count(_Atomic uint64_t *all, uint64_t *before, const uint64_t *now, unsigned n)
{
    bool changed = false;

    for (unsigned i = 0; i < n; i++)
        if (now[i] != before[i]) {
            atomic_fetch_add(&all[i], now[i] - before[i]);
            before[i] = now[i];
            changed = true;
        }
    return changed;
}

#endif
