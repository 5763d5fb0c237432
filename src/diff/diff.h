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

/* What was found in a capture; after the end of each. */
struct diff_found {
    struct meter_row *const *rows; /* those to be compared */
    size_t n_rows;
    struct meter_totals totals;
    const struct findings *findings;
    const struct explainer *explainer;
    uint32_t conn; /* only this connection was selected; 0: all */
};
/* After the last packet. False: out of memory. */
bool diff_side_end(struct diff_side *s, const struct diff_found *f);

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
};

struct diff;

/* Compare `b` with `a`, once; both must outlive the result. NULL: out of memory. */
struct diff *diff_new(const struct diff_side *a, const struct diff_side *b, const struct diff_opts *o);
void diff_free(struct diff *d);
/* Whether they differ by more than the tolerance in any figure, in the order of the work requests, in a broken rule or
 * an incident, or whether a direction of one has no match. */
bool diff_differs(const struct diff *d);
void diff_text(const struct diff *d, struct buf *b);
void diff_json(const struct diff *d, struct buf *b);

#endif
