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

/* What stands beside ladder and packets on a large screen: to the left connections, rates and incidents; the verdicts
 * of the connection below them. */
enum side { SIDE_CONNS, SIDE_RATES, SIDE_INCIDENTS, SIDE_VERDICTS, SIDES };

/* What is to be laid out; masks of these bits. */
enum {
    LAYOUT_DETAIL = 1, /* fields and bytes of the selected packet, and half of the screen for what it shows */
    LAYOUT_BESIDE = 2, /* with it: panes beside, if there is room */
    LAYOUT_GRAPH = 4,  /* a graph above the list, if there is room */
    LAYOUT_TREE = 8,   /* the fields alone */
    LAYOUT_BYTES = 16, /* the bytes alone */
};

struct layout {
    bool too_small;               /* nothing fits but a line that says so */
    struct area title, tabs;      /* a row each */
    struct area list;             /* what the screen shows */
    struct area rule;             /* the row above fields and bytes; no row without them */
    struct area tree, bytes;      /* no rows without them */
    struct area bytes_rule;       /* the row above the bytes if they are below the fields */
    struct area graph;            /* above the list; no rows without it */
    struct area side[SIDES];      /* beside it; no rows without them */
    struct area side_rule[SIDES]; /* the row above each; the connections have none */
    struct area divider;          /* the column between */
    struct area status, hint;     /* a row each */
};

/* Lay out a screen of that size; `what`: LAYOUT_*; with LAYOUT_DETAIL, what the screen shows gets `more` rows (or fewer
 * if negative) as far as there is room. */
struct layout layout_of(unsigned columns, unsigned rows, unsigned what, int more);
/* The first row to be shown so that row `at` of `n` is visible in `rows`, if `top` was the first one. */
uint64_t layout_scroll(uint64_t top, uint64_t at, uint64_t n, unsigned rows);
/* Bytes in a line of the pane with the bytes: what print_hex() writes. */
#define BYTES_OF_LINE 16
/* The column of byte `i` of a line there, and of its character. */
unsigned layout_hex_column(unsigned i);
unsigned layout_char_column(unsigned i);

#endif
