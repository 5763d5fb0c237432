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

static unsigned slot_of(const struct hdr *h)
{
    return (unsigned)((uintptr_t)h >> 3) % PRINT_SLOTS;
}

/* Enter column `c` for the headers that its fields are in. */
static bool map_column(struct print_map *m, const struct print_column *c, unsigned n)
{
    for (unsigned r = 0; r < c->n_refs; r++) {
        unsigned s = slot_of(c->refs[r].hdr);
        if (m->slot[s].hdr && m->slot[s].hdr != c->refs[r].hdr)
            return false;
        m->slot[s].hdr = c->refs[r].hdr;
        m->slot[s].columns |= UINT64_C(1) << n;
    }
    return true;
}

/* See whether a column is a plain number, and where its bits are. */
static void column_prepare(struct print_column *c)
{
    const struct field *f = c->n_refs == 1 ? c->refs[0].field : NULL;

    c->need = 0;
    if (!f || f->get || f->when || f->flags & FLD_LE || f->type < FT_BOOL || f->type > FT_UINT64 || f->bit % 8 + f->width > 57)
        return;
    c->need = (uint16_t)((f->bit + f->width + 7) / 8);
    c->byte = f->bit / 8;
    c->shift = (uint8_t)(64 - f->bit % 8 - f->width);
    c->mask = (UINT64_C(1) << f->width) - 1;
    c->digits = f->base == BASE_HEX ? (uint8_t)ftype_digits(f->type) : 0;
}

/* The number of a column that column_prepare() found plain; false if it is not all there, or too near the end of the frame. */
static bool print_plain(struct buf *b, const struct pkt *p, const struct layer *l, const struct print_column *c)
{
    uint64_t v;
    char *q;

    if (l->len < c->need || l->off + c->byte + 8u > p->caplen || !buf_need(b, FMT_DEC_MAX))
        return false;
    v = load_be64(p->data + l->off + c->byte) >> c->shift & c->mask;
    q = b->p + b->len;
    q = c->digits ? fmt_hex(FMT_LITERAL(q, "0x"), v, c->digits) : fmt_dec(q, v);
    b->len = (size_t)(q - b->p);
    return true;
}

void print_fields_prepare(struct print_opts *o)
{
    for (unsigned i = 0; i < o->n_columns; i++)
        column_prepare(&o->columns[i]);
    o->map = (struct print_map){.usable = o->n_columns <= 64};
    for (unsigned i = 0; i < o->n_columns && o->map.usable; i++)
        o->map.usable = map_column(&o->map, &o->columns[i], i);
}

/* Columns that exactly one layer has a field of are bits of the result, and `at` says which layer; of columns in `many` several
 * layers have fields. */
static uint64_t find_layers(const struct print_map *m, const struct pkt *p, uint8_t at[64], uint64_t *many)
{
    uint64_t one = 0, more = 0;

    for (unsigned i = 0; i < p->n_layers; i++) {
        unsigned s = slot_of(p->layers[i].hdr);
        if (m->slot[s].hdr != p->layers[i].hdr)
            continue;
        more |= one & m->slot[s].columns;
        one |= m->slot[s].columns;
        for (uint64_t c = m->slot[s].columns; c; c &= c - 1)
            at[__builtin_ctzll(c)] = (uint8_t)i;
    }
    *many = more;
    return one & ~more;
}

/* Each column looks only at the layer that has it. */
static void print_mapped(const struct print_opts *o, struct buf *b, const struct pkt *p)
{
    uint8_t at[64] = {0};
    uint64_t many, one = find_layers(&o->map, p, at, &many);

    for (unsigned i = 0; i < o->n_columns; i++) {
        const struct print_column *c = &o->columns[i];
        const struct layer *l = &p->layers[at[i]];
        unsigned n = 0;
        if (i)
            buf_char(b, o->separator);
        if (one >> i & 1 && !(c->need && print_plain(b, p, l, c)))
            print_layer(o, b, p, l, c, &n, b->len);
        else if (many >> i & 1)
            print_column(o, b, p, c);
    }
}

void print_fields(const struct print_opts *o, struct buf *b, const struct pkt *p)
{
    if (o->map.usable && !o->quote && !p->note.have) {
        print_mapped(o, b, p);
    } else {
        for (unsigned i = 0; i < o->n_columns; i++) {
            if (i)
                buf_char(b, o->separator);
            print_column(o, b, p, &o->columns[i]);
        }
    }
    buf_char(b, '\n');
}
