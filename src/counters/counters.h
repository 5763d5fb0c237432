/* layer 2b (counters): counters of adapters, by the names that their drivers use, and their meaning. */
#ifndef RDMATRACE_COUNTERS_COUNTERS_H
#define RDMATRACE_COUNTERS_COUNTERS_H

#include "buf.h"

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
    COUNTED_SEQ_NAK_SENT,
    COUNTED_OUT_OF_SEQUENCE, /* requests ahead of the PSN expected */
    COUNTED_DUPLICATE_REQUEST,
    COUNTED_NO_RECEIVE,    /* dropped because no receive was posted */
    COUNTED_ICRC_RECEIVED, /* with a wrong ICRC */
    COUNTED_CE_RECEIVED,
    COUNTED_CNP_SENT,
    COUNTED_CNP_RECEIVED,
    COUNTED_READ_SENT,     /* requests */
    COUNTED_READ_RECEIVED, /* likewise */
    COUNTED_ATOMIC_RECEIVED,
    COUNTED_ACCESS_ERROR,
    COUNTED_INVALID_REQUEST,
    COUNTED_OPERATION_ERROR,
    COUNTED_RETRIES_EXCEEDED,
    COUNTED_RNR_RETRIES_EXCEEDED,
    COUNTED_ADAPTIVE,    /* retransmitted by adaptive retransmission */
    COUNTED_NIC_DISCARD, /* lost in the adapter or at its port */
    COUNTED_PAUSE,
    COUNTED_PRIORITY_DISCARD, /* lost at its port, of one priority */
    COUNTED_PAUSE_TIME,       /* and what comes of pauses */
    COUNTED_WRITE_RECEIVED,   /* requests */
    COUNTED_SEND_RECEIVED,
    COUNTED_BYTES_SENT,
    COUNTED_BYTES_RECEIVED,
    COUNTED_CONCEPTS
};

/* Relation of a counter to the packets at the port of its host. */
enum counter_relation {
    RELATION_EQUAL,
    RELATION_AGAIN, /* likewise, by another name: for texts that lack the EQUAL one */
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

/* The counter whose name, or node_exporter's name for it, begins at `s` (the longest) and is not followed by a letter,
 * digit or underscore, and *n characters of it; NULL: none. `len`: characters at `s`. */
const struct counter_info *counter_find(const char *s, size_t len, size_t *n);

/* A counter and its value, taken from a text. */
struct counter_value {
    const struct counter_info *counter;
    uint64_t value;
};
/* The next known counter in *s to `end` that has a value; *s moves past it. False: none. The text may be the output of
 * `rdma statistic`, plain or JSON, of `ethtool -S` or node_exporter, or lines "name:value"; unknown names, and values
 * that are no numbers ("N/A"), are skipped. */
bool counter_next(const char **s, const char *end, struct counter_value *v);

#define COUNTERS_MAX 192 /* entries of counter_table, at most */

/* The counters of a text, by their place in counter_table: each the sum of what the text says of ports and devices. */
struct counter_reading {
    uint64_t value[COUNTERS_MAX];
    bool have[COUNTERS_MAX];
};
/* Read a text. A name that several drivers use is that of the driver that knows most of the text's names. tx_packets,
 * tx_bytes and the like, by which `ethtool -S` gives all that passes an interface, count only for a driver that the
 * other names show. False: there is no known counter in it. */
bool counter_read(struct counter_reading *r, const char *text, size_t len);

/* What the counters of a concept have added. */
struct counter_sum {
    struct buf names; /* "rp_cnp_handled + rp_cnp_ignored"; empty: there is none */
    uint64_t added;
    bool exact; /* what passes the port is as much */
};
/* Sum up the counters of a concept that both readings have; `before` NULL: they began at 0. Those that count exactly
 * hide the other ones, and local ones count only where there are no others. A narrow counter may have wrapped once. The
 * caller frees sum->names. */
void counter_added(const struct counter_reading *before, const struct counter_reading *after,
                   enum counter_concept concept, struct counter_sum *sum);

#endif
