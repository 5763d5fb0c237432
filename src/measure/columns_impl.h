/* layer 3 (measure): internal: values of rows, as the writers of text, JSON, CSV and intervals use them. */
#ifndef RDMATRACE_MEASURE_COLUMNS_IMPL_H
#define RDMATRACE_MEASURE_COLUMNS_IMPL_H

#include "src/measure/columns.h"

/* The value of a column of numbers, METER_NONE: not known; of one of texts, NULL: none. */
uint64_t column_number(const struct meter_row *r, const struct column *c);
const char *column_text(const struct meter_row *r, const struct column *c);
/* Append a value as JSON or CSV, a missing one as cell_json() and cell_csv() do; false if there is none. */
bool column_put(struct buf *b, const struct meter_row *r, const struct column *c, bool json);
/* Pass the value of a column. */
void column_cell(const struct meter_row *r, const struct column *c, cell_take *take, void *user);

/* Append the member "totals" and the brace that ends the object. */
void totals_json(struct buf *b, const struct meter_totals *t);

/* rows_text.c: ROWS_TEXT of rows_print(). */
void rows_text(struct buf *b, const struct rows_opts *o, struct meter_row *const *rows, size_t n,
               const struct meter_totals *t);

#endif
