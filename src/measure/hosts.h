/* layer 3 (measure): host by host: what one host sent to another, at each tap. */
#ifndef RDMATRACE_MEASURE_HOSTS_H
#define RDMATRACE_MEASURE_HOSTS_H

#include "src/measure/meter.h"

#define HOST_PAIRS 256

/* Sums of the rows with its tap, source and destination. */
struct host_pair {
    const struct meter_row *row; /* the first of them */
    uint64_t packets, bytes, again, ce;
    uint64_t lost; /* ns */
    uint64_t p99;  /* of the latency of messages, ns: the largest of its rows; 0: none */
};

struct host_pairs {
    struct host_pair of[HOST_PAIRS]; /* in the order of the rows */
    unsigned n;
    uint64_t left_out; /* bytes of rows that found no room */
};

/* Sum up rows, which must outlive *x; *x is zero-initialised. */
void host_pairs_add(struct host_pairs *x, struct meter_row *const *rows, size_t n);

#endif
