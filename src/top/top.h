/* layer 3b (top): what passes now, as a table, as JSON, or as metrics. */
#ifndef RDMATRACE_TOP_TOP_H
#define RDMATRACE_TOP_TOP_H

#include "src/measure/adapter.h"
#include "src/measure/rates.h"

/* What is shown at one time. */
struct top {
    const char *source;                     /* name of the interface or of the files */
    ns_t at;                                /* ns since 1970 */
    ns_t since;                             /* ns since the first packet */
    uint64_t packets;                       /* all so far */
    bool live;                              /* the next four are known */
    uint64_t received, dropped, if_dropped; /* packets: counts of the kernel; dropped by it, by the interface */
    uint32_t ring;                          /* bytes of the kernel's ring of packets */
    ns_t behind;                            /* age of the packet that was read last, ns; 0: all were read */
    uint64_t bytes_per_s;                   /* of the last second, as recorded; for the use of the ring */
    uint64_t file_drops;                    /* packets that the files state as dropped, as far as they were read */
    struct rate **rates;                    /* as sorted */
    size_t n;                               /* of `rates` */
    size_t connections, datagrams;          /* as rates_connections() counts them */
    uint64_t refused;                       /* connections left out, rates_refused() */
};

/* What share of the ring is in use, in thousandths: an estimate by the age of the packet read last. */
unsigned top_ring_use(const struct top *t);

/* The name of column `i` of the table, to sort by; NULL: there are fewer. */
const char *top_column(unsigned i);

/* How a table is shown. */
struct top_look {
    unsigned width;   /* columns are left out until lines are so long; 0: any */
    unsigned rows;    /* lines at most, the lines above the table included; 0: any */
    const char *sort; /* column that is marked; NULL: none */
    bool paused;      /* is said above the table */
};
void top_text(struct buf *b, const struct top *t, const struct top_look *look);
/* A line of type "top", then one of type "rate" for each connection. */
void top_ndjson(struct buf *b, const struct top *t);
/* A line of type "counter" for each row of adapter_cells(). */
void top_counters_ndjson(struct buf *b, struct adapter *a);
/* OpenMetrics text; the TOP_METRICS first of the rates, the rest is counted. */
#define TOP_METRICS 1000
void top_prom(struct buf *b, const struct top *t);

#endif
