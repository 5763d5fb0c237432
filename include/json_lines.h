/* layer 0 (base): a JSON document as lines of JSON: one for each row, as programs load them. */
#ifndef RDMATRACE_JSON_LINES_H
#define RDMATRACE_JSON_LINES_H

#include "buf.h"

/* What is written of a document that arrives in parts. It is an array of objects, or an object some of whose members
 * are such arrays: each of these objects is a row. Zero-initialise and set the types. */
struct json_lines {
    const char *rows; /* type of the rows of a document that is an array */
    const char *rest; /* type of the last line, with the members of the document that are no rows */
    /* Internal. */
    struct buf head; /* the document without the rows, as far as it came */
    size_t member;   /* where in `head` the member at hand begins */
    unsigned depth;  /* brackets open */
    unsigned row;    /* their number within a row, 0: no row is at hand */
    bool array;      /* the document is an array */
    bool in_rows;    /* the brackets around rows are open */
    bool plain;      /* but they hold something else */
    bool first;      /* nothing of the row came yet */
    bool text, escaped;
};

/* Replace the next part of a document in `b` by the lines that are complete with it: {"type":"finding",...}. The type
 * of a row is the name of its array without its s; line ends and blanks between values are left out. The document is
 * well-formed. `all`: no part follows, and the last line is added, unless the document is an array; then `l` is as at
 * first. */
void json_lines_take(struct json_lines *l, struct buf *b, bool all);

#endif
