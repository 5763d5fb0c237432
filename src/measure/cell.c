/* layer 3 (measure): values of rows as JSON and CSV. */
#include "src/measure/cell.h"

/* A number of any kind; both formats have the same. */
static void put_number(struct buf *b, const struct cell *c)
{
    if (c->kind == CELL_TIME)
        buf_time(b, (ns_t)c->number);
    else if (c->kind == CELL_MILLI)
        buf_printf(b, "%llu.%03llu", (unsigned long long)(c->number / 1000), (unsigned long long)(c->number % 1000));
    else
        buf_dec(b, c->number);
}

void cell_json(struct buf *b, const struct cell *c)
{
    if (!c->known)
        buf_puts(b, "null");
    else if (c->kind == CELL_TEXT)
        buf_json(b, c->text, strlen(c->text));
    else
        put_number(b, c);
}

void cell_csv(struct buf *b, const struct cell *c)
{
    if (c->known && c->kind == CELL_TEXT)
        buf_csv(b, c->text);
    else if (c->known)
        put_number(b, c);
}
