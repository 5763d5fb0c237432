/* layer 3 (measure): tables in text output: which columns, and how many of them fit. */
#ifndef RDMATRACE_MEASURE_TABLE_H
#define RDMATRACE_MEASURE_TABLE_H

#include "buf.h"

#include <stdbool.h>
#include <stdint.h>

#define TABLE_COLUMNS 32 /* at most */
#define TABLE_GAP     2  /* spaces between two columns */

/* A column that a command shows unless --columns names others. */
struct text_column {
    const char *name;  /* as in -T csv, or "ends" */
    const char *title; /* its head */
    uint8_t rank;      /* 0: always shown; else the columns with the highest rank are left out first */
    bool left;         /* aligned to the left */
    uint16_t width;    /* least width of its values; 0: that of the title */
    bool rare;         /* of flows: left out if no row has a value other than 0 */
};

/* The columns of a table that is about to be written. */
struct table {
    const struct text_column *columns[TABLE_COLUMNS];
    unsigned widths[TABLE_COLUMNS]; /* of title and values, in characters */
    bool idle[TABLE_COLUMNS];       /* no row has a value other than 0: such columns are left out first */
    unsigned n;
    unsigned width; /* table_fit(): of a line; 0: any */
    bool folds;     /* a row that is longer is continued on the next line; else it is cut */
};

/* All of `columns`, of which there are `n`, with their least widths. */
void table_of(struct table *t, const struct text_column *columns, unsigned n);
/* Leave out columns until the table is at most `width` characters wide (0: any width), the idle ones first; those of
 * rank 0 remain. */
void table_fit(struct table *t, unsigned width);
/* A cell of column `i`, of which the text was appended to `b` from `at` on, or its title: aligned, with the gap to the
 * next column. Nothing follows the last column if it is aligned to the left. */
void table_cell(const struct table *t, unsigned i, struct buf *b, size_t at);
/* Cut the line that began at `at` so that it fits, and `more` characters after it. */
void table_cut(const struct table *t, struct buf *b, size_t at, size_t more);
/* Append the line of a row: `put` appends the cell of column `column`, counted in the array of table_of(), without
 * alignment; `after` follows the last column, and is never cut. */
void table_row(const struct table *t, struct buf *b, const struct text_column *columns,
               void (*put)(struct buf *b, const void *row, unsigned column), const void *row, struct buf *after);
/* The line with the titles. */
void table_head(const struct table *t, struct buf *b);

/* The argument of --columns: names separated by commas. */
struct column_names {
    char text[512];
    const char *names[TABLE_COLUMNS]; /* in `text` */
    unsigned n;
};
/* False if there are too many, or one is empty. */
bool column_names_parse(struct column_names *c, const char *arg);

/* "1.18 Mbit/s" */
void table_rate(struct buf *b, uint64_t bits_per_s);

#endif
