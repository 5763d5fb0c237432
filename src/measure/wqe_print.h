/* layer 3 (measure): work requests as text, JSON or CSV. */
#ifndef RDMATRACE_MEASURE_WQE_PRINT_H
#define RDMATRACE_MEASURE_WQE_PRINT_H

#include "src/measure/columns.h"

/* The head before the first row ("" for JSON, whose array the caller writes). */
void wqe_print_head(struct buf *b, enum rows_format format);
/* One row; `row` names connection and ends, `origin` is the time that counts as 0 in text. No newline at the end of
 * JSON's object. */
void wqe_print(struct buf *b, enum rows_format format, const struct wqe *w, const struct meter_row *row, ns_t origin);
/* The verbs' name of the status, or "unknown". */
const char *wqe_status_str(const struct wqe *w);

#endif
