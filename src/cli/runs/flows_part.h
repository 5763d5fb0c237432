/* layer 4 (tool): what one of several processes finds for `flows`, and what all have found. */
#ifndef RDMATRACE_CLI_FLOWS_PART_H
#define RDMATRACE_CLI_FLOWS_PART_H

#include "src/cli/runs/hosts_part.h"
#include "src/measure/meter.h"

/* Zero-initialise. */
struct flows_part {
    struct hosts_part hosts;
    uint64_t malformed; /* meter_totals.malformed before the packet at hand */
    uint64_t others;    /* of these, counted by another part */
    bool other;         /* the packet at hand is counted by another part */
    /* what all parts have found, for trace_share.next NULL: nothing */
    struct meter_row **rows, *room;
    size_t n;
    uint64_t finished; /* finished rows of all parts */
    struct meter_totals sums;
};

/* t->share is set: note what happens, or take what all parts have found, else t->share becomes NULL. `all`: an option
 * needs all packets. False without memory. */
bool flows_part_begin(struct flows_part *f, struct trace *t, bool all);
/* Before the packet is observed. */
void flows_part_packet(struct flows_part *f, const struct trace_share *s, const struct pkt *p, const struct meter *m);
/* Write what this part has found: an exit status. */
int flows_part_save(struct flows_part *f, struct trace *t, const struct meter *m, struct meter_row *const *rows,
                    size_t n);
void flows_part_free(struct flows_part *f);

#endif
