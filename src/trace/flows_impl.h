/* layer 3 (trace): internal: the table of flows. */
#ifndef RDMATRACE_FLOWS_IMPL_H
#define RDMATRACE_FLOWS_IMPL_H

#include "src/trace/flows.h"

#define FLOWS_DONE 8192 /* rows of flows that ended kept; further ones are counted */

/* A row that is complete, and whose it is. */
struct flow_done {
    struct flow flow;
    struct flow_row *row;
};

struct flows {
    struct watch *watch;
    struct flow_row *rows[WATCH_FLOWS]; /* by flow of the requests */
    struct flow_done *done;
    uint32_t n_done, cap_done;
    uint64_t lost; /* rows that found no room */
    uint64_t packets;
    ns_t interval, first, in_start;
    struct buf *series;
    bool timed;
};

/* Take a row over into the table of complete ones. */
void flows_keep(struct flows *f, uint32_t flow, struct flow_row *row);
void flows_order(struct flows *f, enum flows_sort sort);
/* "192.168.77.1 QP 0x12 -> 192.168.77.2 QP 0x15". */
void flows_end_names(struct buf *b, const struct flow *c);

#endif
