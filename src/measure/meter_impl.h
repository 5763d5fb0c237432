/* layer 3 (measure): what the files of the measurements share. */
#ifndef RDMATRACE_MEASURE_METER_IMPL_H
#define RDMATRACE_MEASURE_METER_IMPL_H

#include "hist.h"
#include "src/conn/observer.h"
#include "src/measure/meter.h"

#define UD_SLOTS      (METER_UD * 2) /* of the table of datagram rows, a power of two */
#define UD_FLOW(slot) (UINT32_C(0x80000000) | (slot))

#define STREAM_FLOW(i) (UINT32_C(0xc0000000) | (i)) /* a direction of an iWARP connection */
#define METER_STREAMS  65536                        /* of them, at most */

#define ACTIVE_MAX(m) ((size_t)(m)->flows + METER_UD)

/* Latencies of completed messages, and of ACKs. */
struct side_times {
    struct hist message, ack;
};

/* State of rows with requests. */
struct side {
    struct side_times *times; /* NULL with meter_opts.no_latency */
    struct wqe_ring ring;
};

struct stream_row;

struct meter {
    struct meter_opts o;
    struct wqe_user work; /* callbacks of the ring */
    struct observer *observer;
    struct conn_table *conns; /* of `observer` */
    uint32_t flows;           /* observer_flows() */
    struct meter_row *rows;   /* by flow */
    struct side **sides;
    struct meter_row **ud; /* UD_SLOTS */
    uint32_t n_ud;
    struct stream_row **streams; /* iWARP: both directions of each connection */
    uint32_t n_streams, cap_streams;
    struct meter_row **old; /* METER_OLD */
    size_t n_old;
    struct meter_row **active; /* ACTIVE_MAX() */
    size_t n_active;
    struct meter_row **all;       /* made by meter_rows() */
    ns_t tick_origin, tick_start; /* of the first interval, and of this one */
    bool ticking;
    uint32_t una_before; /* req_dir.una before the current response */
    uint64_t next_id;
    struct meter_totals t;
};

/* A new row, begun by `p`. */
void row_init(struct meter_row *r, const struct pkt *p, const char *const *files);
/* A new row at `tap` of which nothing is known. */
void row_blank(struct meter_row *r, const char *const *files, uint32_t tap);
struct meter_times row_times(const struct hist *h);
/* Copy what is known of the connection into the row. */
void row_identify(struct meter_row *r, const struct flow *f);
/* A work request of the row is over; `s` as below. */
void row_work(struct meter_row *r, struct side *s, const struct wqe *w);
/* Compute derived values; `s` is NULL for rows without requests. */
void row_finish(struct meter_row *r, const struct side *s);
/* `bytes` in `time`, which is not 0, in bits per second. */
uint64_t rate_of(uint64_t bytes, ns_t time);

/* Environment of the work requests of a flow with a side. */
struct wqe_env meter_env(struct meter *m, uint32_t flow);
/* Close the row of a flow, for reason `why` of its open work requests: keep a copy. */
void meter_retire(struct meter *m, uint32_t flow, enum wqe_reason why);

/* The row has packets in this interval. */
void meter_activate(struct meter *m, struct meter_row *r);
/* Report the intervals that end before `now`. */
void meter_tick_to(struct meter *m, ns_t now);
/* The last interval ends. */
void meter_tick_all(struct meter *m);

/* --- slowed.c --------------------------------------------------------------------------------- */

/* Packet `p` of `flow` is a CNP, and its row has counted it. */
void slowed_note(struct meter *m, const struct pkt *p, uint32_t flow);
/* CNPs of the direction that answers `flow`: how many, and the rates before and after the first one, into the row of
 * `flow` or a copy of it. */
void slowed_finish(const struct meter *m, uint32_t flow, struct meter_row *r);

/* The row is over: release what it kept. */
void slowed_free(struct meter_row *r);

/* --- meter_iwarp.c ---------------------------------------------------------------------------- */

bool meter_streams_begin(struct meter *m);
/* No more packets: hand over the open operations, complete the rows. */
void meter_streams_end(struct meter *m);
/* *to is row `r` of an iWARP connection, complete. */
void meter_stream_finish(struct meter *m, const struct meter_row *r, struct meter_row *to);
struct meter_row *meter_stream(struct meter *m, uint32_t i);
void meter_streams_free(struct meter *m);

#endif
