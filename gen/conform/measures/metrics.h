/* layer 3 (conform): what a battery measures of a device, times and other values: samples by name, their order
 * statistics, and what is published of other devices. A time ends or begins with a packet of the device as this side
 * sees it: it includes the way there and back, and the error of two time stamps. */
#ifndef RDMATRACE_GEN_CONFORM_METRICS_H
#define RDMATRACE_GEN_CONFORM_METRICS_H

#include "buf.h"
#include "tokens.h"

#define METRICS        256                /* most metrics of a battery */
#define METRIC_NAME    24                 /* bytes of a name, with its NUL */
#define METRIC_SAMPLES 100000             /* most samples of a metric; what comes later is left out */
#define METRIC_MOST    (INT64_C(1) << 60) /* most of a sample, either way: sums of four do not overflow */
#define METRIC_LINK    "link" /* the metric that calibrates: a WRITE of no bytes to its ACK, on an idle queue pair */

enum metric_unit {
    METRIC_NS,       /* a time */
    METRIC_COUNT,    /* packets, PSNs */
    METRIC_BPS,      /* bit/s */
    METRIC_PERMILLE, /* a part, or a ratio */
    METRIC_PER_S,    /* so many a second: requests, answers, pause quanta of 512 bit times each */
    METRIC_UNITS
};
/* As it stands in the names of members of JSON: "ns", "count", "bps", "permille", "per_s". */
const char *metric_unit_str(enum metric_unit u);
/* The unit of this name; METRIC_UNITS: there is none. */
enum metric_unit metric_unit_find(const char *name);
/* Append a value with its unit, in a few characters. */
void metric_value(struct buf *b, enum metric_unit u, int64_t v);

struct metric {
    char name[METRIC_NAME];
    uint8_t unit;    /* enum metric_unit, of the first sample */
    int64_t *sample; /* in the order in which they were taken */
    unsigned n, room;
    unsigned left_out; /* samples that are not there, as the tester was late while they were taken */
    ns_t taken, idle;  /* of a rate: how long its samples took together, and how long the tester waited meanwhile */
};

/* Zero-initialise it. */
struct metrics {
    struct metric metric[METRICS];
    unsigned n;
};

/* Add a sample of the metric `name`. False: it is no name (lower-case letters, digits and _), the value is beyond
 * METRIC_MOST, there are too many metrics or samples, or no memory. */
bool metrics_add(struct metrics *m, const struct token *name, enum metric_unit u, int64_t value);
/* Count a sample of the metric that is left out. */
void metrics_leave_out(struct metrics *m, const struct token *name, enum metric_unit u);
/* A sample of a rate was taken in the time `taken`, ns, in which the tester waited for `idle` ns, with nothing to do.
 */
void metrics_bound(struct metrics *m, const struct token *name, ns_t taken, ns_t idle);
/* Which end bounds a rate. A tester that took no time at all would find a rate of at most one over the part of the time
 * in which it waits. What it waits for is the device, the way, or the program that posts. */
enum metric_end {
    END_UNKNOWN, /* it is no rate of the device */
    END_DEVICE,  /* the tester waits nine tenths of the time or more: without it the rate would be a ninth higher */
    END_TESTER,  /* it waits a tenth of the time or less: the device may do more */
    END_BOTH,    /* neither */
};
struct metric_bound {
    uint8_t end;      /* enum metric_end */
    int64_t permille; /* of the time the tester waited */
};
struct metric_bound metric_bound(const struct metric *m);
/* "unknown", "device", "tester", "both". */
const char *metric_end_str(enum metric_end e);
/* Append a line about it, the members `"idle_permille":...,"bound":"..."` of a JSON object with a comma before them;
 * nothing if it is not known. `median`: of the rate. */
void metric_bound_text(const struct metric *m, int64_t median, struct buf *b);
void metric_bound_json(const struct metric *m, struct buf *b);
/* The ratio of the medians of two metrics. */
struct metric_ratio {
    int64_t permille; /* 0: one of them has no sample, or a median of 0 */
    bool above;       /* more than 1, beyond chance: the interval of the upper median is above that of the lower one */
};
/* That of two metrics of *m; it is also added as a sample of the metric `name`. */
struct metric_ratio metrics_ratio(struct metrics *m, const struct token *name, const struct token *of,
                                  const struct token *over);
/* Move all of `from`, also what is left out, behind what *m has, and empty `from`. */
void metrics_gather(struct metrics *m, struct metrics *from);
/* Move all samples of `from` behind those of *m, and empty `from`: what has no samples is no metric. */
void metrics_move(struct metrics *m, struct metrics *from);
void metrics_free(struct metrics *m);

/* Order statistics, in the unit of the metric. Of 20 samples and more the first five are left out: caches were cold. */
struct metric_summary {
    unsigned n; /* samples, without those left out */
    int64_t min, p5, median, p95, p99, max;
    int64_t mad;       /* median of the distances from the median */
    int64_t low, high; /* the median lies between them with a probability of 95 %: bootstrap of 1,000 drawings; see
                        * metric_has_interval() */
};
/* Whether it says how certain the median is: one sample does not. */
static inline bool metric_has_interval(const struct metric_summary *s)
{
    return s->n > 1;
}
#define METRIC_NO_INTERVAL "n=1, no interval" /* what is said in its place */
/* The summary of a metric; `seed`: of the bootstrap. All 0 without a sample or memory. */
void metric_summarise(const struct metric *m, uint64_t seed, struct metric_summary *s);

/* The link, from the samples of METRIC_LINK. */
struct metric_link {
    bool known;
    ns_t least; /* shortest time of a WRITE of no bytes to its ACK: the way, and the device when it is idle */
    ns_t error; /* half the distance of its percentiles 5 and 95: what a time stamp may be wrong by, and how steady the
                 * device is, together */
};
struct metric_link metrics_link(const struct metrics *m, uint64_t seed);
/* Whether it is a time so short that it cannot be distinguished from the error of the time stamps: less than three
 * times that error. */
static inline bool metric_is_below_resolution(const struct metric *m, const struct metric_summary *s,
                                              const struct metric_link *l)
{
    return l->known && m->unit == METRIC_NS && s->median < 3 * l->error;
}

/* How long a device waits for an ACK, by the medians of rto_N and rto_first_N, N being the ACK timeout code. */
enum metric_timeouts_class {
    TIMEOUTS_UNKNOWN,  /* nothing was measured */
    TIMEOUTS_IBTA,     /* once to four times the nominal time, 4.096 us x 2^N */
    TIMEOUTS_FLOORED,  /* the same for several codes */
    TIMEOUTS_ADAPTIVE, /* shorter than the nominal time, at least at first */
    TIMEOUTS_LONG      /* longer than four times the nominal time */
};
struct metric_timeouts {
    uint8_t class;       /* enum metric_timeouts_class */
    unsigned codes;      /* that were measured */
    unsigned floor;      /* the largest code that waits as long as a smaller one; 0: none */
    int64_t least, most; /* of rto_N over its nominal time, permille */
};
struct metric_timeouts metrics_timeouts(const struct metrics *m, uint64_t seed);
/* "unknown", "ibta", "floored", "adaptive", "long". */
const char *metric_timeouts_str(enum metric_timeouts_class c);
/* Append a line about them; the member `"ack_timeouts":{...}` of a JSON object, with a comma before it. Nothing if
 * nothing was measured. */
void metrics_timeouts_text(const struct metrics *m, uint64_t seed, struct buf *b);
void metrics_timeouts_json(const struct metrics *m, uint64_t seed, struct buf *b);

/* What the interval between CNPs holds for, by the metrics cnp_off_packet, cnp_off_qp and cnp_off_shared: "packet",
 * "queue_pair", "shared", "none" (no model is right in most runs); NULL: nothing was measured. */
const char *metrics_cnp_scope(const struct metrics *m, uint64_t seed);
/* Append a line about it; the member `"cnp_scope":"..."` of a JSON object, with a comma before it. Nothing if nothing
 * was measured. */
void metrics_cnp_scope_text(const struct metrics *m, uint64_t seed, struct buf *b);
void metrics_cnp_scope_json(const struct metrics *m, uint64_t seed, struct buf *b);

/* A published value of a metric, text of the table. */
struct metric_published {
    struct token device, value, source;
};
/* The published value with number `i` of a metric, from 0 on. False: there is none. */
bool metric_published(const char *name, unsigned i, struct metric_published *p);
/* Append the member `"published":[...]` of a JSON object, with a comma before it. */
void metric_published_json(const char *name, struct buf *b);

/* Append the metrics as a table with the published values below; nothing without samples. */
void metrics_print_text(const struct metrics *m, uint64_t seed, struct buf *b);
/* Append the members `"ack_timeouts":..., "cnp_scope":..., "metrics":[...]` of a JSON object, with a comma before
 * them. */
void metrics_print_json(const struct metrics *m, uint64_t seed, struct buf *b);

#endif
