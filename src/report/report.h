/* layer 3b (report): what the analyses found, as one HTML page that needs nothing else: verdict, tables, figures.
 *
 * The files are read twice. The first reading is that of check, explain and flows: report_overview() keeps what they
 * say, and chooses the connections that are drawn, the worst first. The second one collects the points of their
 * figures: it knows by then how long the capture is, and which frames matter, so that its memory is bounded and every
 * spike is kept.
 *
 *     first:   judge, explainer, meter         -> report_overview()
 *     second:  observer -> report_watch()      meter -> report_tick(), report_request()     -> report_page()
 *
 * The page is src/report/page.sh's: a frame, a style, a script, and the data as one JSON object, which report_page()
 * puts in. Nothing is computed here that a command does not print. */
#ifndef RDMATRACE_REPORT_REPORT_H
#define RDMATRACE_REPORT_REPORT_H

#include "src/commands/rows.h"
#include "src/explain/explain.h"
#include "src/findings/findings.h"
#include "src/measure/meter.h"
#include "src/measure/wqe_print.h"

#define REPORT_CONNS     8   /* connections that are drawn, each at one tap */
#define REPORT_LADDERS   16  /* incidents with a ladder */
#define REPORT_INCIDENTS 200 /* incidents, findings, rows of flows and of accounts in tables, at most */
#define REPORT_INTERVALS 400 /* of rates, at least half of it */
#define REPORT_DETAIL    100 /* report_opts.detail, at most */

struct report;

struct report_opts {
    const char *const *files; /* names of the captures */
    size_t n_files;
    uint32_t conn;             /* only this connection; 0: all */
    struct decode_opts decode; /* how packets are decoded */
    unsigned detail;           /* how many times as many points are drawn as would do, 1 to REPORT_DETAIL */
};

/* What the first reading found. All analyses have ended. */
struct report_found {
    struct explainer *explainer;
    const struct findings *findings;
    struct timeline *timeline;
    struct conn_table *conns;
    struct meter_row **rows;
    size_t n_rows;
    struct meter_totals totals;
    uint32_t ifaces;    /* largest number of interfaces of a file */
    const char *unread; /* which files could not be read to their ends, and why; NULL: all were */
};

/* NULL without memory. What `o` points to must outlive it. */
struct report *report_new(const struct report_opts *o);
void report_free(struct report *r);

/* A command of an upper protocol, in the first reading. */
void report_command(struct report *r, const struct command_row *q);
/* After the first reading. Rows are sorted again. */
void report_overview(struct report *r, const struct report_found *f);
/* Put what the first reading of other captures found beside it; before report_page(). `other` must outlive the report.
 */
void report_baseline(struct report *r, const struct report *other);
/* The length of an interval of rates, ns; after report_overview(). */
ns_t report_interval(const struct report *r);

/* Before the second reading: subscribe to `o`. False without memory. */
bool report_watch(struct report *r, struct observer *o);
/* A packet of the second reading, before the observer gets it. */
void report_packet(struct report *r, const struct pkt *p);
/* For meter_opts.tick of the second reading; `user` is the report. */
meter_tick report_tick;
/* A work request of the second reading whose status is decided. */
void report_request(struct report *r, const struct wqe_row *q);
/* The rate of the link, bits per second; 0: not known, so that figures have no line for it. Before report_page(). */
void report_link(struct report *r, uint64_t bps);
/* After the second reading: append the page. False if memory was missing. */
bool report_page(struct report *r, struct buf *b);
/* Append a page of results that were stored: `json` is what explain or all print with -T json. */
void report_stored(struct buf *b, const struct buf *json);
/* Append a page of `n` score cards beside each other: what `rdmagen conformance -T json` prints. */
void report_cards(struct buf *b, const struct buf *json, unsigned n);
/* Append the page of rdma-on-the-wire(7). */
void report_tutorial(struct buf *b);

#endif
