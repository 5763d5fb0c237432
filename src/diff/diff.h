/* layer 3b (diff): two captures compared by what they mean: connections, operations, sizes, order, retransmissions,
 * latencies, broken rules, incidents.
 *
 * A side is what one capture means. Directions of connections of the two are matched, and each pair is compared by a
 * table of figures, which are columns of `flows`, by the latency of each operation, and by the sequence of its work
 * requests. Frames, PSNs, keys and times of day are not compared: two runs never have the same. */
#ifndef RDMATRACE_DIFF_DIFF_H
#define RDMATRACE_DIFF_DIFF_H

#include "src/explain/explain.h"
#include "src/findings/findings.h"
#include "src/measure/meter.h"

#define DIFF_REQUESTS (1u << 20) /* work requests of a side that are kept to name the first different one */

struct diff_side;

/* Of a capture in file `file`, whose name must outlive it. NULL: out of memory. */
struct diff_side *diff_side_new(const char *file);
void diff_side_free(struct diff_side *s);
/* For wqe_user.over(): work request `w` of `row`, in the order in which its queue pair posted them. */
void diff_request(struct diff_side *s, const struct wqe *w, struct meter_row *row);

/* After the last packet. False: out of memory. */
bool diff_side_rows(struct diff_side *s, struct meter_row *const *rows, size_t n, struct meter_totals totals);
/* Count the broken rules and the incidents, of connection `conn` only, unless it is 0. */
void diff_side_found(struct diff_side *s, const struct findings *findings, const struct explainer *explainer,
                     uint32_t conn);

/* Which directions are compared with each other. */
enum diff_match {
    DIFF_AUTO,      /* those between the same addresses; the rest in the order of their first packets */
    DIFF_ADDRESSES, /* only those between the same addresses */
    DIFF_ORDER,     /* in the order of their first packets */
};
/* "auto", "addresses", "order", NULL. */
extern const char *const diff_matches[];

struct diff_opts {
    double tolerance; /* percent of the value of the first side that a value may differ */
    enum diff_match match;
    bool verbose;     /* text: show the figures that do not differ, too */
    unsigned columns; /* text: width of paragraphs; 0: 100 */
    uint32_t conn;    /* compare only this connection of the first side, with its match; 0: all */
};

struct diff;

/* Match the directions of two sides, once, after diff_side_rows(); both must outlive the result. NULL: out of memory.
 */
struct diff *diff_new(const struct diff_side *a, const struct diff_side *b, const struct diff_opts *o);
/* With `conn`: the number of its match in the second side. False: it has none. */
bool diff_conn_of_b(const struct diff *d, uint32_t *conn);
/* Compare them; after diff_side_found() of both. */
void diff_compare(struct diff *d);
void diff_free(struct diff *d);
/* Whether they differ by more than the tolerance in any figure, in the order of the work requests, in a broken rule or
 * an incident, or whether a direction of one has no match. */
bool diff_differs(const struct diff *d);
void diff_text(const struct diff *d, struct buf *b);
void diff_json(const struct diff *d, struct buf *b);

#endif
