/* layer 3 (measure): work requests as text, JSON or CSV. */
#ifndef RDMATRACE_MEASURE_WQE_PRINT_H
#define RDMATRACE_MEASURE_WQE_PRINT_H

#include "src/measure/columns.h"

/* A work request to be written. */
struct wqe_row {
    const struct wqe *w;
    const struct meter_row *row; /* names connection and ends */
    ns_t origin;                 /* time that counts as 0 in text */
    bool accounted;              /* lost is known */
    ns_t lost;                   /* time in states that cost */
};

/* The columns of ROWS_TEXT: the `named` ones, for each of which wqe_text_has(), or if it is NULL those that fit into
 * `width` characters (0: all). */
void wqe_table(struct table *t, const struct column_names *named, unsigned width);
bool wqe_text_has(const char *name);
/* The name of the column of ROWS_TEXT with this title, "time lost"; `title` itself if there is none. */
const char *wqe_text_name(const char *title);
/* The name of the cell by which the column of ROWS_TEXT with this name or title is sorted; `name` itself if there is
 * none. */
const char *wqe_text_sorts_by(const char *name);
/* The column of ROWS_TEXT whose name is nearest to `name`; NULL: none is near. */
const char *wqe_text_nearest(const char *name);
/* Append the names of all columns of ROWS_TEXT. */
void wqe_text_names(struct buf *b);

/* The values of a work request; wqe_columns(): only their names and kinds, the values mean nothing. */
void wqe_cells(const struct wqe_row *q, cell_take *take, void *user);
void wqe_columns(cell_take *take, void *user);

/* The head before the first row ("" for JSON, whose array the caller writes); `t` is of ROWS_TEXT. */
void wqe_print_head(struct buf *b, enum rows_format format, const struct table *t);
/* One row. No newline at the end of JSON's object. */
void wqe_print(struct buf *b, enum rows_format format, const struct table *t, const struct wqe_row *q);
/* The verbs' name of the status, or "unknown". */
const char *wqe_status_str(const struct wqe *w);

#endif
