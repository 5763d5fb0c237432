/* layer 3b (tui): where everything is on the screen: all geometry is here. */
#ifndef RDMATRACE_TUI_LAYOUT_H
#define RDMATRACE_TUI_LAYOUT_H

#include "types.h"

#define SCREEN_COLUMNS_MIN 40
#define SCREEN_ROWS_MIN    10
#define SCREEN_COLUMNS_MAX 400
#define SCREEN_ROWS_MAX    300

/* A rectangle of cells. */
struct area {
    unsigned y, x, rows, columns;
};

struct layout {
    bool too_small;           /* nothing fits but a line that says so */
    struct area title, tabs;  /* a row each */
    struct area list;         /* what the screen shows */
    struct area rule;         /* the row above fields and bytes; no row without them */
    struct area tree, bytes;  /* no rows without them */
    struct area status, hint; /* a row each */
};

/* Lay out a screen of that size; `split`: with fields and bytes of the selected packet, and half of it for what the
 * screen shows, and `more` rows (or fewer if negative) as far as there is room. */
struct layout layout_of(unsigned columns, unsigned rows, bool split, int more);
/* The first row to be shown so that row `at` of `n` is visible in `rows`, if `top` was the first one. */
uint64_t layout_scroll(uint64_t top, uint64_t at, uint64_t n, unsigned rows);
/* Bytes in a line of the pane with the bytes: what print_hex() writes. */
#define BYTES_OF_LINE 16
/* The column of byte `i` of a line there, and of its character. */
unsigned layout_hex_column(unsigned i);
unsigned layout_char_column(unsigned i);

#endif
