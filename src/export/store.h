/* layer 3b (export): an SQLite database that is written once, from its first table to its last.
 *
 * It is written beside its name and renamed when it is complete: a reader never sees half of it, and after an error the
 * file that was there before is still there. */
#ifndef RDMATRACE_EXPORT_STORE_H
#define RDMATRACE_EXPORT_STORE_H

#include "buf.h"

struct store;

/* A table and the rows that will be inserted next: several at a time. */
struct store_table;

enum store_type { STORE_INTEGER, STORE_REAL, STORE_TEXT };
struct store_column {
    const char *name;
    enum store_type type;
};

/* Begin the database that store_commit() will give the name `path`. `threads`: as in struct turns_opts; with several,
 * one of its own inserts the rows while the caller makes the next ones. NULL without memory; any other error is that
 * of store_error(). */
struct store *store_new(const char *path, unsigned threads);
/* Release it; without store_commit() nothing is left of it. */
void store_free(struct store *s);
/* The first error, a line of text without line end; NULL: none so far. After an error all other calls do nothing. */
const char *store_error(const struct store *s);

/* Execute SQL that returns no rows. Rows that were inserted before are there. */
void store_sql(struct store *s, const char *sql);
/* Create a table. `key`: its primary key, the first column or several, by which it is stored then; NULL: it has none.
 * A key that is a number is best inserted in its order. The table lives as long as `s`; NULL after an error, and then
 * the calls below do nothing. */
struct store_table *store_table(struct store *s, const char *name, const struct store_column *columns, unsigned n,
                                const char *key);
/* The next value of a row, in the order of the columns. Numbers above INT64_MAX are stored as negative ones, of the
 * same 64 bits: SQLite has no others. */
void store_number(struct store_table *t, uint64_t number);
void store_real(struct store_table *t, double real);
void store_text(struct store_table *t, const char *text); /* NULL: null */
/* A text that is never freed nor changed; NULL: null. */
void store_word(struct store_table *t, const char *word);
void store_null(struct store_table *t);
/* The number if `known`, else null. */
void store_if(struct store_table *t, bool known, uint64_t v);
/* Insert the row. The values that were not set are null. */
void store_insert(struct store_table *t);

/* All is written: give the file its name. False after any error. */
bool store_commit(struct store *s);

#endif
