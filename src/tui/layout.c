/* layer 3b (tui): geometry. */
#include "src/tui/layout.h"

#define HEX_COLUMNS  73u  /* of the pane with the bytes: "0000  00 ...  ................" */
#define TREE_COLUMNS 50u  /* of the tree, at least, beside that pane */
#define SPLIT_ROWS   16u  /* rows of a screen that has room for fields and bytes */
#define LIST_ROWS    5    /* of what it shows then, at least */
#define DETAIL_ROWS  6    /* of fields and bytes, at least */
#define WIDE_COLUMNS 170u /* of a screen that has room for panes beside */
#define WIDE_ROWS    40u
#define LEFT_PERCENT 36u /* of its columns to the left */
#define GRAPH_ROWS   8u  /* of the graph above the rates */

/* Bytes below the fields, with a row between. */
static void stack(struct layout *l, struct area below)
{
    unsigned bytes = below.rows > 2 ? (below.rows - 1) / 3 : 0;

    l->tree = (struct area){below.y, below.x, bytes ? below.rows - 1 - bytes : below.rows, below.columns};
    if (!bytes)
        return;
    l->bytes_rule = (struct area){l->tree.y + l->tree.rows, below.x, 1, below.columns};
    l->bytes = (struct area){l->bytes_rule.y + 1, below.x, bytes, below.columns};
}

/* The packet's fields, and its bytes beside them or below. */
static void split_off(struct layout *l, struct area all, int more)
{
    int list = (int)(all.rows + 2) / 2 + more, most = (int)all.rows - 1 - DETAIL_ROWS;
    struct area below;

    list = all.rows < SPLIT_ROWS - 4 ? (int)all.rows : list < LIST_ROWS ? LIST_ROWS : list > most ? most : list;
    l->list = (struct area){all.y, all.x, (unsigned)list, all.columns};
    if (l->list.rows == all.rows)
        return;
    l->rule = (struct area){all.y + l->list.rows, all.x, 1, all.columns};
    below = (struct area){l->rule.y + 1, all.x, all.rows - l->list.rows - 1, all.columns};
    if (all.columns < TREE_COLUMNS + 1 + HEX_COLUMNS) {
        stack(l, below);
        return;
    }
    l->tree = (struct area){below.y, below.x, below.rows, below.columns - HEX_COLUMNS - 1};
    l->bytes = (struct area){below.y, below.x + l->tree.columns + 1, below.rows, HEX_COLUMNS};
}

/* A pane from row *y on, below its rule. */
static void put_side(struct layout *l, enum side s, unsigned *y, unsigned rows, unsigned x, unsigned columns)
{
    l->side_rule[s] = (struct area){*y, x, 1, columns};
    l->side[s] = (struct area){*y + 1, x, rows, columns};
    *y += rows + 1;
}

/* Panes to the left and below; *all is what remains. */
static void beside(struct layout *l, struct area *all)
{
    unsigned left = all->columns * LEFT_PERCENT / 100, rates = all->rows / 4, incidents = all->rows / 3;
    unsigned conns = all->rows - rates - incidents - 2, verdicts = all->rows / 7, y = all->y + conns;

    l->side[SIDE_CONNS] = (struct area){all->y, all->x, conns, left};
    put_side(l, SIDE_RATES, &y, rates, all->x, left);
    put_side(l, SIDE_INCIDENTS, &y, incidents, all->x, left);
    l->divider = (struct area){all->y, left, all->rows, 1};
    *all = (struct area){all->y, left + 1, all->rows - verdicts - 1, all->columns - left - 1};
    y = all->y + all->rows;
    put_side(l, SIDE_VERDICTS, &y, verdicts, all->x, all->columns);
}

/* One pane has the whole screen, below a row that names it. */
static void alone(struct layout *l, struct area all, struct area *pane)
{
    l->list = (struct area){all.y, all.x, 0, all.columns};
    l->rule = (struct area){all.y, all.x, 1, all.columns};
    *pane = (struct area){all.y + 1, all.x, all.rows - 1, all.columns};
}

struct layout layout_of(unsigned columns, unsigned rows, unsigned what, int more)
{
    struct layout l = {.too_small = columns < SCREEN_COLUMNS_MIN || rows < SCREEN_ROWS_MIN};
    struct area all = {2, 0, rows - 4, columns};

    if (l.too_small) {
        l.title = (struct area){0, 0, rows ? 1 : 0, columns};
        return l;
    }
    l.title = (struct area){0, 0, 1, columns};
    l.tabs = (struct area){1, 0, 1, columns};
    l.status = (struct area){rows - 2, 0, 1, columns};
    l.hint = (struct area){rows - 1, 0, 1, columns};
    if (what & LAYOUT_GRAPH && all.rows >= 2 * GRAPH_ROWS) {
        l.graph = (struct area){all.y, 0, GRAPH_ROWS + all.rows / 8, columns};
        all.y += l.graph.rows;
        all.rows -= l.graph.rows;
    }
    if (what & LAYOUT_DETAIL && what & LAYOUT_BESIDE && columns >= WIDE_COLUMNS && rows >= WIDE_ROWS)
        beside(&l, &all);
    if (what & LAYOUT_DETAIL)
        split_off(&l, all, more);
    else if (what & (LAYOUT_TREE | LAYOUT_BYTES))
        alone(&l, all, what & LAYOUT_TREE ? &l.tree : &l.bytes);
    else
        l.list = all;
    return l;
}

uint64_t layout_scroll(uint64_t top, uint64_t at, uint64_t n, unsigned rows)
{
    if (n <= rows)
        return 0;
    if (at < top)
        top = at;
    if (rows && at >= top + rows)
        top = at - rows + 1;
    return top > n - rows ? n - rows : top;
}

unsigned layout_hex_column(unsigned i)
{
    return 6 + 3 * i;
}

unsigned layout_char_column(unsigned i)
{
    return 6 + 3 * BYTES_OF_LINE + 1 + i;
}
