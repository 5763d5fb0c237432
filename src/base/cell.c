/* layer 0 (base): values of rows as JSON and CSV. */
#include "cell.h"

void cell_number(const struct cell_to *t, const char *name, uint64_t v, bool known)
{
    t->take(t->user, &(struct cell){.name = name, .kind = CELL_NUMBER, .known = known, .number = v});
}

void cell_time(const struct cell_to *t, const char *name, ns_t v, bool known)
{
    t->take(t->user, &(struct cell){.name = name, .kind = CELL_TIME, .known = known, .number = (uint64_t)v});
}

void cell_text(const struct cell_to *t, const char *name, const char *s)
{
    t->take(t->user, &(struct cell){.name = name, .kind = CELL_TEXT, .known = s != NULL, .text = s});
}

/* A number of any kind; both formats have the same. */
static void put_number(struct buf *b, const struct cell *c)
{
    if (c->kind == CELL_TIME)
        buf_printf(b, "%lld", (long long)c->number);
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

void cell_row_json(void *user, const struct cell *c)
{
    struct cell_row *r = user;

    buf_printf(r->b, "%s\"%s\":", r->n++ ? "," : "{", c->name);
    cell_json(r->b, c);
}

void cell_row_csv(void *user, const struct cell *c)
{
    struct cell_row *r = user;

    if (r->n++)
        buf_char(r->b, ',');
    cell_csv(r->b, c);
}

void cell_row_name(void *user, const struct cell *c)
{
    struct cell_row *r = user;

    buf_printf(r->b, "%s%s", r->n++ ? "," : "", c->name);
}
