/* layer 3 (measure): rows of work requests in the order of a value. */
#ifndef RDMATRACE_MEASURE_WQE_SORT_H
#define RDMATRACE_MEASURE_WQE_SORT_H

#include "src/measure/wqe_print.h"

#define WQE_SORT_MAX (1u << 20) /* rows that are kept: of more, those that come first */

/* Rows that wait for the others. Zero-initialise; release it with wqe_sort_free(). */
struct wqe_sort {
    const char *by;    /* the column, a name of wqe_columns(); NULL: rows are not sorted */
    uint32_t max;      /* rows that are kept; 0: WQE_SORT_MAX */
    uint64_t left_out; /* rows that were not kept */
    bool failed;       /* no memory: rows are missing */
    /* internal */
    struct wqe_sorted *rows; /* when all places are taken a heap, whose root comes last of them */
    uint32_t n, cap;         /* of `rows` */
};

/* The column that `name` means: a name of wqe_columns(), or a name or title of text output; NULL: there is none, and
 * *near is the nearest name, NULL without one. */
const char *wqe_sort_column(const char *name, const char **near);
/* Keep the row `text` (`len` bytes) of a work request. */
void wqe_sort_put(struct wqe_sort *s, const struct wqe_row *q, const char *text, size_t len);
/* Give all rows kept: the largest numbers first, texts ascending, those without a value at the end, and equal ones in
 * the order of their numbers. */
void wqe_sort_end(struct wqe_sort *s, void (*put)(void *user, const char *text, size_t len), void *user);
void wqe_sort_free(struct wqe_sort *s);

#endif
