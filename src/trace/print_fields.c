/* layer 3 (trace): chosen fields as columns, as `tshark -T fields` prints them. */
#include "src/trace/print.h"

void print_fields_header(const struct print_opts *o, struct buf *b)
{
    for (unsigned i = 0; i < o->n_columns; i++) {
        if (i)
            buf_char(b, o->separator);
        buf_puts(b, o->columns[i].name);
    }
    buf_char(b, '\n');
}

/* Print a value of a column; the header itself prints its bytes. */
static bool print_ref(struct buf *b, const struct pkt *p, const struct layer *l, const struct field_ref *r)
{
    struct value v;

    if (!r->field) {
        if (l->hdr->type == FT_BYTES)
            buf_bytes(b, p->data + l->off, l->len, 0);
        else if (strchr(l->hdr->abbrev, '.'))
            buf_char(b, '1'); /* a part of a protocol */
        else
            buf_puts(b, strcmp(l->hdr->abbrev, l->hdr->proto) == 0 ? l->hdr->abbrev : "1"); /* a part of a protocol */
        return true;
    }
    if (!field_value(r->field, p, l, &v))
        return false;
    if (v.type == FT_NONE)
        buf_char(b, '1');
    else
        value_print(b, r->field, &v);
    return true;
}

/* The values of column `c` in layer `l`. `n` counts those of the packet so far; `start` is where the column began. */
static void print_layer(const struct print_opts *o, struct buf *b, const struct pkt *p, const struct layer *l,
                        const struct print_column *c, unsigned *n, size_t start)
{
    for (unsigned r = 0; r < c->n_refs; r++) {
        size_t before = b->len;
        if (c->refs[r].hdr != l->hdr || (*n && o->occurrence == 'f'))
            continue;
        if (*n && o->occurrence == 'a')
            buf_char(b, o->aggregator);
        else if (*n)
            b->len = start;
        if (print_ref(b, p, l, &c->refs[r]))
            ++*n;
        else
            b->len = before;
    }
}

static void print_column(const struct print_opts *o, struct buf *b, const struct pkt *p, const struct print_column *c)
{
    const struct layer note = {&rdma_hdr, 0, 0};
    size_t quote = b->len, start;
    unsigned n = 0;

    if (o->quote)
        buf_char(b, o->quote);
    start = b->len;
    for (unsigned i = 0; i < p->n_layers; i++)
        print_layer(o, b, p, &p->layers[i], c, &n, start);
    if (p->note.have)
        print_layer(o, b, p, &note, c, &n, start);
    if (o->quote && n)
        buf_char(b, o->quote);
    else if (!n)
        b->len = quote;
}

void print_fields(const struct print_opts *o, struct buf *b, const struct pkt *p)
{
    for (unsigned i = 0; i < o->n_columns; i++) {
        if (i)
            buf_char(b, o->separator);
        print_column(o, b, p, &o->columns[i]);
    }
    buf_char(b, '\n');
}
