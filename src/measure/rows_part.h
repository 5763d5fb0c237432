/* layer 3 (measure): rows of the meter as bytes: what one of several processes that share out a capture has measured.
 */
#ifndef RDMATRACE_MEASURE_ROWS_PART_H
#define RDMATRACE_MEASURE_ROWS_PART_H

#include "pack.h"
#include "src/measure/meter.h"

/* Write a row, or read one: its texts then are allocated, row_part_free() releases them. `files` is not set. */
void row_pack(struct pack *k, struct meter_row *r);
void row_part_free(struct meter_row *r);
/* Sort rows as meter_rows() does. */
void rows_order(struct meter_row **rows, size_t n);

#endif
