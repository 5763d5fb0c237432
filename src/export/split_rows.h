/* layer 3b (export): rows of cells of which many have the same names: those are stored once, and a view shows both. */
#ifndef RDMATRACE_EXPORT_SPLIT_ROWS_H
#define RDMATRACE_EXPORT_SPLIT_ROWS_H

#include "cell.h"
#include "src/export/store.h"

/* What has cells: give those of `row`, in the order of the columns; a NULL row has values of any kind. */
typedef void split_cells(const void *row, cell_take *take, void *user);

struct split_rows;

/* Create the tables NAME_row, whose key is the first column, and NAME_kind, and the view NAME, whose columns are those
 * of `cells`. Those that `common` names, ended by NULL, are in NAME_kind. NULL without memory. */
struct split_rows *split_rows_new(struct store *s, const char *name, split_cells *cells, const char *const *common);
void split_rows_free(struct split_rows *r);
/* Store a row. */
void split_rows_put(struct split_rows *r, const void *row);

#endif
