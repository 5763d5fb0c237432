/* layer 3b (diff): what its files share. */
#ifndef RDMATRACE_DIFF_DIFF_IMPL_H
#define RDMATRACE_DIFF_DIFF_IMPL_H

#include "hist.h"
#include "src/diff/diff.h"
#include "src/transport/rules.h"

#define DIFF_FIGURES 80 /* of a direction at most */

/* A value; `name` is that of a column of flows, or of a latency. */
struct figure {
    char name[48];
    bool known;
    bool milli;   /* in thousandths */
    bool setting; /* any difference counts */
    uint64_t value;
};

/* One direction of a connection at one tap. */
struct direction {
    struct meter_row row; /* without `files` and `of_user`; after diff_side_end() */
    struct hist *latency[WQE_OPS];
    uint64_t *requests; /* the first `kept` of `total` whose first packet was seen: operation << 56 | bytes */
    size_t kept, room;
    uint64_t total;
    uint64_t hash; /* of those that are not kept */
    struct figure figure[DIFF_FIGURES];
    unsigned n_figures;
    size_t at; /* in diff_side.dir */
    bool matched;
    bool left_out; /* of a connection that is not asked for */
};

/* How often something happened, and what it cost. */
struct tally {
    uint64_t times;
    ns_t lost;
};

struct diff_side {
    const char *file;
    struct direction **dir;
    size_t n, room;
    size_t n_rows;   /* the first of them, which are compared */
    size_t requests; /* kept, of all directions */
    bool no_memory;
    struct meter_totals totals;
    uint32_t connections;
    struct tally rules[RULE_COUNT];   /* found broken: errors and warnings */
    struct tally causes[CAUSE_COUNT]; /* incidents */
};

/* Two directions that are compared. */
struct matched {
    struct direction *a, *b;
    bool by_order;        /* not by their addresses */
    unsigned differ;      /* figures */
    bool other_order;     /* the work requests differ */
    uint64_t first_other; /* with other_order: number of the first different one, from 1; 0: one that was not kept */
};

struct diff {
    struct diff_opts o;
    const struct diff_side *a, *b;
    struct matched *pair;
    size_t n_pairs;
    size_t only_a, only_b;     /* directions without a match */
    unsigned compared, differ; /* figures of all pairs; of them those that differ */
    unsigned orders;           /* pairs whose work requests differ */
    unsigned rules, causes;    /* that differ */
};

/* figures.c: fill the figures of a direction. Two directions have the same ones, in the same order. */
void figures_of(struct direction *d);
/* Whether `b` differs from `a` by more than `tolerance` percent. Nothing is said of a value that one of them lacks,
 * unless it is a setting. */
bool figure_differs(const struct figure *a, const struct figure *b, double tolerance);
/* Whether a count or a time does. */
bool tally_differs(const struct tally *a, const struct tally *b, double tolerance);
/* Append the value with its unit; "-" if it is not known. */
void figure_put(struct buf *b, const struct figure *f);

/* match.c: fill d->pair with those that are asked for. False: out of memory. */
bool match_directions(struct diff *d, const struct diff_side *a, const struct diff_side *b);
/* Whether a direction is asked for, and has no match. */
static inline bool is_alone(const struct direction *d)
{
    return !d->matched && !d->left_out;
}

#endif
