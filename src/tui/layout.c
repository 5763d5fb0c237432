/* layer 3b (tui): geometry. */
#include "src/tui/layout.h"

#define HEX_COLUMNS  73u /* of the pane with the bytes: "0000  00 ...  ................" */
#define TREE_COLUMNS 60u /* of the tree, at least, beside that pane */
#define SPLIT_ROWS   16u /* rows of a screen that has room for fields and bytes */
#define LIST_ROWS    5   /* of what it shows then, at least */
#define DETAIL_ROWS  6   /* of fields and bytes, at least */

/* The packet's fields, and its bytes beside them or below. */
static void split_off(struct layout *l, struct area all, bool split, int more)
{
    int list = (int)(all.rows - 1) / 2 + more, most = (int)all.rows - 1 - DETAIL_ROWS;
    unsigned rest;

    list = all.rows < SPLIT_ROWS - 4 || !split ? (int)all.rows
           : list < LIST_ROWS                  ? LIST_ROWS
           : list > most                       ? most
                                               : list;

    l->list = (struct area){all.y, 0, (unsigned)list, all.columns};
    if (l->list.rows == all.rows)
        return;
    rest = all.rows - l->list.rows - 1;
    l->rule = (struct area){all.y + l->list.rows, 0, 1, all.columns};
    if (all.columns >= TREE_COLUMNS + 1 + HEX_COLUMNS) {
        l->tree = (struct area){l->rule.y + 1, 0, rest, all.columns - HEX_COLUMNS - 1};
        l->bytes = (struct area){l->rule.y + 1, l->tree.columns + 1, rest, HEX_COLUMNS};
        return;
    }
    l->tree = (struct area){l->rule.y + 1, 0, rest - rest / 3, all.columns};
    l->bytes = (struct area){l->tree.y + l->tree.rows, 0, rest / 3, all.columns};
}

struct layout layout_of(unsigned columns, unsigned rows, bool split, int more)
{
    struct layout l = {.too_small = columns < SCREEN_COLUMNS_MIN || rows < SCREEN_ROWS_MIN};

    if (l.too_small) {
        l.title = (struct area){0, 0, rows ? 1 : 0, columns};
        return l;
    }
    l.title = (struct area){0, 0, 1, columns};
    l.tabs = (struct area){1, 0, 1, columns};
    split_off(&l, (struct area){2, 0, rows - 4, columns}, split, more);
    l.status = (struct area){rows - 2, 0, 1, columns};
    l.hint = (struct area){rows - 1, 0, 1, columns};
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
