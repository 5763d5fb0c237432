/* layer 3 (measure): measurements of each connection and direction.
 *
 * Packets come in the order of time. A *row* measures one direction of a connection at one tap: the requests that one
 * end sends to a queue pair of the other, the responses to them, and their work requests. Datagrams have a row for each
 * pair of source and destination queue pair. */
#ifndef RDMATRACE_MEASURE_METER_H
#define RDMATRACE_MEASURE_METER_H

#include "src/account/account.h"
#include "src/conn/conn.h"
#include "src/conn/ud_gaps.h"
#include "src/measure/wqe.h"

#define METER_UD   4096       /* rows of datagrams; of connected queue pairs: as many as the observer has flows */
#define METER_OLD  16384      /* finished rows: the queue pair was reconnected, or the flow evicted */
#define METER_NONE UINT64_MAX /* a value that is not known */

/* Counts shown by `--interval`. */
struct meter_counts {
    uint64_t packets;    /* all packets of the row */
    uint64_t bytes;      /* bytes of them on the wire, with all headers */
    uint64_t payload;    /* bytes of InfiniBand payload in them, without pad */
    uint64_t again;      /* retransmitted request packets */
    uint64_t seq_naks;   /* sequence NAKs that answer the row's requests */
    uint64_t rnr_naks;   /* RNR NAKs, likewise */
    uint64_t timeouts;   /* retransmissions on ACK timeout */
    uint64_t ce;         /* packets of the row marked CE in their IP header */
    uint64_t fecn, becn; /* packets with these bits in their BTH, which mean nothing on RoCEv2 */
    uint64_t cnps;       /* CNPs in the row */
};
void meter_counts_add(struct meter_counts *to, const struct meter_counts *from);

/* The shortest time between two CNPs for a queue pair, by which those to expect are counted. */
enum meter_due { METER_DUE_4US, METER_DUE_50US, METER_DUE };

/* A distribution (ns); METER_NONE without values. */
struct meter_times {
    uint64_t n, min, median, p99, max;
};

/* Numbers are METER_NONE if they are not known. */
struct meter_row {
    struct conn_addr src, dst;
    const char *const *files; /* names of the capture files: meter_opts.files */
    uint64_t file, iface;     /* where it was captured, from 0 */
    uint64_t conn;            /* as in decode and check; 0: datagrams */
    uint64_t sqpn, dqpn;      /* of iWARP the TCP ports */
    bool stream;              /* of iWARP: a direction of a TCP connection */
    const char *service;      /* "RC", ... */
    const char *setup;        /* how the directions were paired: pairing_str() */
    const char *certainty;    /* of the pairing: "none", "likely", "sure" */
    const char *upper;        /* upper protocol or NULL */
    uint64_t first_frame, last_frame;
    ns_t first, last;
    struct meter_counts c;
    /* Requests. */
    uint64_t requests, request_bytes; /* packets and payload, retransmissions included */
    uint64_t responses;
    uint64_t naks_sent;                   /* NAKs of any kind among them */
    uint64_t ops[WQE_OPS];                /* messages by operation */
    uint64_t messages, completed, failed; /* work requests; status SUCCESS; other status */
    uint64_t message_bytes;               /* of completed messages; of all for unreliable services */
    uint64_t goodput; /* bits per second: message_bytes over the time from the first start to the last end */
    uint64_t again_bytes;
    uint64_t duplicates;         /* identical copies of a packet */
    uint64_t duplicate_requests; /* duplicates, and retransmissions of requests acknowledged before */
    uint64_t out_of_sequence; /* requests ahead of the expected PSN, for a responder that drops out-of-order packets */
    uint64_t late;            /* new requests that came after later ones: out of order */
    uint64_t implied_naks;
    uint64_t missing; /* PSNs skipped by later ones; datagrams: only if all others came */
    uint64_t bad_icrc;
    uint64_t restarts;
    uint64_t migrations;          /* times that the requester went to another path */
    uint64_t migrated_frame;      /* first request along another path; METER_NONE: none */
    struct conn_addr migrated[2]; /* with migrated_frame: its source and destination */
    /* Responses to them. */
    uint64_t acks, naks;                /* naks: other than sequence and RNR */
    uint64_t naks_invalid, naks_access; /* invalid request; remote access error */
    uint64_t acked;                     /* PSNs newly acknowledged by ACKs */
    uint64_t packets_per_ack;           /* in thousandths */
    uint64_t credits_min, credits_max;  /* of ACKs; METER_NONE: no end-to-end flow control */
    uint64_t rnr_wait;                  /* ns from RNR NAKs to the request's next copy */
    uint64_t rnr_timer;                 /* RNR timer of the latest RNR NAK, ns */
    uint64_t timeout_wait;              /* ns without a packet before retransmissions on ACK timeout */
    uint64_t cnps_received;             /* in the other direction */
    uint64_t ect;                       /* packets of the row whose IP header has ECT(0), ECT(1) or CE */
    uint64_t cnps_due[METER_DUE];       /* for its CE packets, by enum meter_due */
    uint64_t cnp_gap_min, cnp_gap_mean; /* ns between CNPs of the row */
    /* Bits of payload per second until the first CNP came in the other direction, and from then on; METER_NONE without
     * one. */
    uint64_t rate_before_cnp, rate_after_cnp;
    /* Negotiated by CM, and observed. */
    uint64_t pmtu_agreed, pmtu_seen;
    uint64_t depth_agreed, depth_seen;     /* READs and atomics outstanding */
    uint64_t timeout_agreed, timeout_seen; /* ns; seen: the shortest silence before a timeout */
    uint64_t retry_agreed, retry_seen;     /* seen: most ACK timeouts without progress in between */
    uint64_t rnr_retry_agreed, rnr_retry_seen;
    uint64_t in_flight; /* most PSNs outstanding */
    struct meter_times latency, ack_latency;
    uint64_t queue_median, queue_p99, queue_max; /* ns of ack_latency above its shortest */
    /* meter_command(): of commands that are over. */
    const char *carries;      /* upper protocol, as its messages or the user tell; NULL: not known */
    uint64_t commands;        /* sent in this direction */
    uint64_t commands_failed; /* of them, with a response that says so */
    uint64_t command_bytes;   /* of data that this direction moved, each byte once */
    /* The account of its requests, if the observer has a timeline. */
    bool accounted;           /* it has one */
    ns_t states[TIME_STATES]; /* with accounted: time in each, ns */
    uint64_t lost;            /* time in the states that cost, ns; METER_NONE: no account */
    void *of_user;            /* for the user of tick(), who may set it; NULL in a new row */
    /* Internal. */
    struct meter_counts before; /* at the start of the interval */
    ns_t good_first, good_last, cnp_first, cnp_last;
    ns_t cnp_due[METER_DUE]; /* the CE packet for which the latest of cnps_due would be; valid with cnps_due */
    ns_t slowed;             /* first CNP in the other direction; 0: none */
    uint64_t slowed_payload; /* c.payload then */
    /* sequence NAKs for early_psn before it was known whose requests they answer */
    uint64_t early_naks;
    uint32_t early_psn;
    struct had_sent *sent; /* of slowed.c, with the first CNP of the row: n_sent values, or NULL */
    uint32_t n_sent;
    uint32_t peer;           /* flow of the other direction when the row was identified */
    struct datagrams *grams; /* of a row of datagrams, or NULL */
    bool active, have_good, used;
};

/* The tap of a row: conn_tap_of() of its packets. */
static inline uint32_t row_tap(const struct meter_row *r)
{
    return (uint32_t)(r->file << 16 | r->iface);
}

/* One interval of a row: `added` has its counts, `start` is its start, `since` likewise, from the first frame. */
typedef void meter_tick(void *user, struct meter_row *row, ns_t start, ns_t since, const struct meter_counts *added);

struct meter_opts {
    ns_t interval;            /* 0: none */
    meter_tick *tick;         /* called in the order of time, for rows with packets in the interval */
    const char *const *files; /* names of the capture files, by frame.file; NULL: none */
    struct wqe_user work;     /* work.over and work.packet may be NULL */
    void *user;               /* of tick */
    bool no_latency;          /* rows tell no latencies: a connection takes a third of the memory */
};

struct meter;

/* Subscribe to `observer`, which must outlive the meter. NULL: no memory. */
struct meter *meter_new(struct observer *observer, const struct meter_opts *o);
void meter_free(struct meter *m);
/* No more packets: report the open work requests. */
void meter_end(struct meter *m);
/* After meter_end(), and timeline_end() if there is a timeline: the rows, by connection; NULL without memory or rows.
 * Sets *n. They live as long as `m`. Before, they lack what meter_row_so_far() adds. */
struct meter_row **meter_rows(struct meter *m, size_t *n);
/* While packets come: *to is `r`, a row of meter_rows(), as it would be if the capture ended here; its account is that
 * of timeline_so_far(). */
void meter_row_so_far(struct meter *m, const struct meter_row *r, struct meter_row *to);
/* Connection (0: datagrams) and queue pairs of a flow that wqe_user.over() names; *row is valid until the next
 * packet. */
struct meter_row *meter_row_of(struct meter *m, uint32_t flow);
/* The row of what an end of iWARP connection number `conn` sends: the initiator, or the responder. */
struct meter_row *meter_row_of_stream(struct meter *m, uint32_t conn, bool initiator);
/* The account of a work request of an iWARP connection, from its start to `end`: what TCP lost. While wqe_user.over()
 * runs; false: it is none of iWARP, or its connection is forgotten. */
bool meter_stream_account(const struct meter *m, const struct wqe *w, uint32_t flow, ns_t end,
                          ns_t states[TIME_STATES]);
/* Append a line for each of the `n` rows whose requester migrated, in lines of `width` columns (0: of any width). */
void meter_migrations_put(struct buf *b, struct meter_row *const *rows, size_t n, unsigned width);
struct ulp_command;
/* A command of an upper protocol is over: count it in the rows of its connection. */
void meter_command(struct meter *m, const struct ulp_command *c);
/* Intervals are longer from now on: `interval` is a multiple of the length so far. They begin at multiples of it from
 * the first one. tick() may call it. */
void meter_lengthen(struct meter *m, ns_t interval);
/* No packet before `now` follows: report the intervals that have ended by then. */
void meter_time(struct meter *m, ns_t now);

/* Before meter_end(): a later frame, of another host, was read by somebody else. */
void meter_last_frame(struct meter *m, ns_t ts);
/* Work requests that have a number, the latest one's. */
uint64_t meter_requests(const struct meter *m);
/* Finished rows, METER_OLD at most. */
uint64_t meter_finished(const struct meter *m);

struct meter_totals {
    uint64_t packets;   /* all */
    uint64_t counted;   /* InfiniBand packets that are in rows */
    uint64_t malformed; /* not in rows: malformed, or a bad ICRC in no row */
    uint64_t lost_rows; /* rows evicted */
    uint64_t forgotten; /* evicted flows; their later packets are in new rows */
    ns_t first, last;   /* times of all frames */
};
struct meter_totals meter_totals(const struct meter *m);

#endif
