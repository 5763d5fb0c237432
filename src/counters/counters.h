/* layer 2b (counters): counters of adapters, by the names that their drivers use, and their meaning. */
#ifndef RDMATRACE_COUNTERS_COUNTERS_H
#define RDMATRACE_COUNTERS_COUNTERS_H

#include "types.h"

enum counter_driver {
    DRIVER_MLX5,
    DRIVER_BNXT_RE,
    DRIVER_IRDMA,
    DRIVER_RXE,
    DRIVER_MANA,
    DRIVER_HNS,
    DRIVER_EFA,
    DRIVERS
};
/* "mlx5", "bnxt_re", ... */
const char *counter_driver_str(enum counter_driver d);

/* What a counter counts, at the host with the adapter. */
enum counter_concept {
    COUNTED_SENT, /* RDMA packets */
    COUNTED_RECEIVED,
    COUNTED_SEQ_NAK_RECEIVED,
    COUNTED_IMPLIED_NAK,
    COUNTED_ACK_TIMEOUT,
    COUNTED_RNR_NAK_RECEIVED,
    COUNTED_RNR_NAK_SENT,
    COUNTED_OUT_OF_SEQUENCE, /* requests ahead of the PSN expected */
    COUNTED_DUPLICATE_REQUEST,
    COUNTED_NO_RECEIVE,    /* dropped because no receive was posted */
    COUNTED_ICRC_RECEIVED, /* with a wrong ICRC */
    COUNTED_CE_RECEIVED,
    COUNTED_CNP_SENT,
    COUNTED_CNP_RECEIVED,
    COUNTED_READ_RECEIVED, /* requests */
    COUNTED_ATOMIC_RECEIVED,
    COUNTED_ACCESS_ERROR,
    COUNTED_INVALID_REQUEST,
    COUNTED_OPERATION_ERROR,
    COUNTED_RETRIES_EXCEEDED,
    COUNTED_RNR_RETRIES_EXCEEDED,
    COUNTED_ADAPTIVE,    /* retransmitted by adaptive retransmission */
    COUNTED_NIC_DISCARD, /* lost in the adapter or at its port */
    COUNTED_PAUSE,
    COUNTED_CONCEPTS
};

/* Relation of a counter to the packets at the port of its host. */
enum counter_relation {
    RELATION_EQUAL,
    RELATION_ABOVE, /* it may count what the wire does not show */
    RELATION_LOCAL, /* nothing on the wire corresponds to it */
};

/* A row of counters.def. */
struct counter_info {
    const char *name; /* may contain spaces */
    uint8_t driver;   /* enum counter_driver */
    uint8_t concept;  /* enum counter_concept */
    uint8_t bits;     /* width in the adapter: 32 or 64 */
    uint8_t relation; /* enum counter_relation */
};
/* Ends with a NULL name. */
extern const struct counter_info counter_table[];

/* The counter whose name begins at `s` (the longest) and is not followed by a letter, digit or underscore; NULL: none.
 * `len`: characters at `s`. */
const struct counter_info *counter_find(const char *s, size_t len);

/* A counter and its value, taken from a text. */
struct counter_value {
    const struct counter_info *counter;
    uint64_t value;
};
/* The next known counter in *s to `end` that has a value; *s moves past it. False: none. The text may be the output of
 * `rdma statistic`, plain or JSON, of `ethtool -S`, or lines "name:value"; unknown names, and values that are no
 * numbers ("N/A"), are skipped. */
bool counter_next(const char **s, const char *end, struct counter_value *v);

#endif
