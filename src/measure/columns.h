/* layer 3 (measure): measurements as text, JSON or CSV: one table of columns. */
#ifndef RDMATRACE_MEASURE_COLUMNS_H
#define RDMATRACE_MEASURE_COLUMNS_H

#include "cell.h"
#include "src/measure/meter.h"
#include "src/measure/table.h"

enum rows_format { ROWS_TEXT, ROWS_JSON, ROWS_CSV };
/* Names of the formats, in this order, then ndjson: the same as ROWS_JSON, in lines; NULL-terminated. */
extern const char *const rows_formats[];

/* How a column's value is read and written. */
enum column_kind {
    COL_NUMBER,  /* uint64_t; METER_NONE is null */
    COL_MILLI,   /* uint64_t, in thousandths */
    COL_NS,      /* uint64_t, nanoseconds; METER_NONE is null */
    COL_TIME,    /* ns_t since the epoch */
    COL_TEXT,    /* const char *, NULL is null */
    COL_ADDR,    /* struct conn_addr */
    COL_NETWORK, /* uint64_t, as in conn_addr.network; 0 is null */
    COL_TAP,     /* name of the tap: meter_row.files, file and iface */
};
struct column {
    const char *name; /* key in JSON and CSV, --sort FIELD */
    enum column_kind kind;
    size_t off;       /* in struct meter_row */
    const char *help; /* its meaning, a phrase */
};
/* Ends with a NULL name. */
extern const struct column row_columns[];
/* The column of that name; NULL if there is none. */
const struct column *column_find(const char *name);
/* The values of a row, one for each of row_columns. */
void row_cells(const struct meter_row *r, cell_take *take, void *user);

/* Sort rows by a column, larger numbers first (texts and addresses ascending); stable. */
void rows_sort(struct meter_row **rows, size_t n, const struct column *by);
/* Keep the rows of connection `conn` in the array, all if it is 0; returns how many they are. */
size_t rows_of_conn(struct meter_row **rows, size_t n, uint32_t conn);
/* How rows are printed; all but `format` are of ROWS_TEXT. */
struct rows_opts {
    enum rows_format format;
    bool details;                       /* every known value, below each row */
    unsigned width;                     /* columns are left out until the table is so many characters wide; 0: none */
    const struct column_names *columns; /* these instead, each one for which rows_text_has(); NULL: the usual ones */
};
/* Print all rows. */
void rows_print(struct buf *b, const struct rows_opts *o, struct meter_row *const *rows, size_t n,
                const struct meter_totals *t);
/* Whether text output can have a column of this name: one of row_columns, or "ends". */
bool rows_text_has(const char *name);
/* The name of row_columns nearest to `name`; NULL: none is near. */
const char *column_nearest(const char *name);
/* The name of the column that text output shows with this title, "retrans"; `title` itself if there is none. */
const char *rows_text_name(const char *title);
/* Append the titles of the columns of text output, separated by commas. */
void rows_text_titles(struct buf *b);

/* Append the value of a column as text output has it; "-" if it is not known. */
void row_text_cell(struct buf *b, const struct meter_row *r, const struct column *c);
/* Append the ends of a row: "10.0.0.1 0x000011 > 10.0.0.2 0x000012". */
void row_ends(struct buf *b, const struct meter_row *r);
/* The same for a narrow screen: "10.0.0.1 0x11 > 10.0.0.2 0x12". */
void row_ends_short(struct buf *b, const struct meter_row *r);
/* Append its destination: "> 10.0.0.2 0x000012". */
void row_destination(struct buf *b, const struct meter_row *r);
/* Append "  tap NAME" to a line about a row, unless it is of interface 0 of the only file. */
void row_tap_after(struct buf *b, const struct meter_row *r);

/* The members of struct meter_counts, by number: the name in JSON and CSV, NULL behind the last one; the value. */
const char *count_name(unsigned i);
uint64_t count_value(const struct meter_counts *c, unsigned i);

/* Intervals, printed as they end: head, intervals, totals. */
struct ticks {
    enum rows_format format;
    unsigned width; /* of ROWS_TEXT, as in rows_opts */
    bool brief;     /* of ROWS_TEXT: the destination in place of both ends */
    /* of ROWS_TEXT: the sums of all intervals; columns in which they are 0 are left out first. NULL: not known yet */
    const struct meter_counts *sums;
    struct table table; /* of ROWS_TEXT; internal */
    uint64_t n;         /* printed so far */
    struct buf *b;
};
void ticks_begin(struct ticks *t);
void ticks_add(struct ticks *t, const struct meter_row *row, ns_t start, ns_t since, const struct meter_counts *c);
void ticks_end(struct ticks *t, const struct meter_totals *totals);

#endif
