/* layer 3 (trace): what each connection did and how well: a row for the requests of each direction. */
#ifndef RDMATRACE_FLOWS_H
#define RDMATRACE_FLOWS_H

#include "src/trace/watch.h"

/* A distribution: exact up to DIST_KEPT values, of more a random sample of that size (minimum and maximum stay exact). */
#define DIST_KEPT 1024
struct dist {
    uint64_t n;
    ns_t min, max;
    uint64_t seed;
    ns_t kept[DIST_KEPT];
};
void dist_add(struct dist *d, ns_t v);
/* Value at `permille` of the values kept in order (0: the smallest, 1000: the largest), the nearest rank; 0 if there are none. Sorts. */
ns_t dist_at(struct dist *d, unsigned permille);

#define FLOW_OPEN 64 /* messages whose answer is awaited, for their latency; older ones are given up */

/* A message on its way. */
struct flow_msg {
    uint32_t end; /* PSN behind its last packet; valid when `whole` */
    uint32_t psn; /* first PSN of a READ */
    uint32_t len; /* READ: bytes */
    ns_t ts;      /* of its first packet */
    bool used, whole, read;
};

/* One direction. */
struct flow_row {
    bool used;
    uint64_t packets, bytes;    /* requests and payload in them, all copies */
    uint64_t fresh_bytes;       /* payload moved for the first time: of requests, and of READ responses */
    uint64_t rsp_packets, rsp_bytes;
    uint64_t sends, writes, reads, atomics, others; /* messages begun, not those sent again */
    uint64_t again, again_bytes;
    uint64_t seq_naks, rnr_naks, fatal_naks, acks, acked_packets;
    ns_t rnr_cost;              /* from each first RNR NAK to progress */
    uint64_t timeouts, implied; /* goings back without NAK; because of an implied one */
    uint64_t copies, late;
    uint64_t ce, cnps;          /* packets marked CE; CNPs for the sender of these requests */
    ns_t cnp_gap, cnp_last;     /* shortest spacing */
    uint64_t bad_icrc;
    uint32_t max_reads;         /* READs and atomics outstanding at most */
    uint32_t pmtu;              /* longest payload of a First or Middle */
    uint8_t credit;             /* credit code seen last */
    uint8_t service;
    ns_t first, last;           /* of all packets counted here */
    bool in_rnr;
    ns_t rnr_since;
    ns_t least_wait;            /* shortest silence before a repetition without NAK */
    uint32_t first_frame;
    struct flow_msg open[FLOW_OPEN];
    uint32_t open_at;
    struct dist msg_latency, ack_latency;
    uint64_t in_packets, in_bytes; /* of the current interval */
};

struct flows;

enum flows_sort { SORT_CONN, SORT_BYTES, SORT_PACKETS, SORT_GOODPUT, SORT_AGAIN };
bool flows_sort_parse(const char *s, enum flows_sort *sort);

/* NULL without memory. With `interval` (ns) above 0, a line for each flow active in each interval goes to `series`. */
struct flows *flows_new(ns_t interval, struct buf *series);
void flows_free(struct flows *f);
struct conn_table *flows_conns(struct flows *f);
void flows_packet(struct flows *f, const struct pkt *p);
void flows_end(struct flows *f, enum flows_sort sort);

void flows_text(struct flows *f, struct buf *b);
void flows_json(struct flows *f, struct buf *b);
void flows_csv(struct flows *f, struct buf *b);

#endif
