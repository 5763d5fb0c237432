/* layer 0 (base): a value of a row, whatever it is written as. What has rows gives them as cells, once: JSON, CSV,
 * tables of a database and their names are made of the same. */
#ifndef RDMATRACE_CELL_H
#define RDMATRACE_CELL_H

#include "buf.h"

enum cell_kind {
    CELL_NUMBER,
    CELL_MILLI, /* in thousandths */
    CELL_TIME,  /* ns since 1970, which may be before that */
    CELL_TEXT,
};
struct cell {
    const char *name; /* of its column: key in JSON, head of the column in CSV and SQL */
    uint8_t kind;     /* enum cell_kind, the same in all rows of a column */
    bool known;       /* else it is null */
    uint64_t number;  /* all kinds but CELL_TEXT */
    const char *text; /* CELL_TEXT; valid as long as the call that gets the cell */
};
/* Gets the cells of a row, in the order of the columns. */
typedef void cell_take(void *user, const struct cell *c);

/* Whoever gets the cells of a row, for the functions that give one each. */
struct cell_to {
    cell_take *take;
    void *user;
};
void cell_number(const struct cell_to *t, const char *name, uint64_t v, bool known);
void cell_time(const struct cell_to *t, const char *name, ns_t v, bool known);
void cell_text(const struct cell_to *t, const char *name, const char *s); /* NULL: null */

/* A row that cells are appended to, one after the other. Zero but for `b`. */
struct cell_row {
    struct buf *b;
    unsigned n; /* cells so far */
};
/* Append a cell to the struct cell_row `user`: a member of a JSON object, which the first one opens and the caller
 * closes; a field of a line of CSV; the name of its column. Each is a cell_take(). */
void cell_row_json(void *user, const struct cell *c);
void cell_row_csv(void *user, const struct cell *c);
void cell_row_name(void *user, const struct cell *c);

/* Append the value as JSON: null if it is not known. */
void cell_json(struct buf *b, const struct cell *c);
/* Append the value as a field of CSV: nothing if it is not known. */
void cell_csv(struct buf *b, const struct cell *c);

#endif
