/* layer 3 (show): chosen fields as columns, as `tshark -T fields` prints them. */
#include "dissect/pkt.h"
#include "src/show/print.h"

/* Layer of the fields rdma.*, which come from pkt.note; its index is PKT_LAYERS. */
static const struct layer note_layer = {&rdma_hdr, 0, 0};

void print_fields_header(const struct print_opts *o, struct buf *b)
{
    for (unsigned i = 0; i < o->n_columns; i++) {
        if (i)
            buf_char(b, o->separator);
        buf_puts(b, o->columns[i].name);
    }
    buf_char(b, '\n');
}

/* Append the value of a field; a header itself appends its bytes, its name or "1". False: it has no value. */
static bool print_ref(struct buf *b, const struct pkt *p, const struct layer *l, const struct field_ref *r)
{
    struct value v;

    if (!r->field) {
        if (l->hdr->type == FT_BYTES)
            buf_bytes(b, layer_bytes(p, l), l->len, 0);
        else if (strchr(l->hdr->abbrev, '.'))
            buf_char(b, '1'); /* a part of a protocol */
        else
            buf_puts(b, strcmp(l->hdr->abbrev, l->hdr->proto) == 0 ? l->hdr->abbrev : "1");
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

/* Append the values of column `c` in layer `l`. `n` counts its values in the packet so far; its text starts at
 * `start`. */
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
    size_t quote = b->len, start;
    unsigned n = 0;

    if (o->quote)
        buf_char(b, o->quote);
    start = b->len;
    for (unsigned i = 0; i < p->n_layers; i++)
        print_layer(o, b, p, &p->layers[i], c, &n, start);
    if (p->note.have)
        print_layer(o, b, p, &note_layer, c, &n, start);
    if (o->quote && n)
        buf_char(b, o->quote);
    else if (!n)
        b->len = quote;
}

/* Enter column `n` for a header; false: the map is full. */
static bool map_hdr(struct print_map *m, const struct hdr *h, unsigned n)
{
    unsigned g = 0;

    while (g < m->n && m->group[g].hdr != h)
        g++;
    if (g == PRINT_GROUPS)
        return false;
    if (g == m->n)
        m->group[m->n++] = (__typeof__(m->group[0])){.hdr = h};
    m->group[g].columns |= UINT64_C(1) << n;
    m->note |= h == &rdma_hdr ? UINT64_C(1) << n : 0;
    return true;
}

/* Write a plain column, an unsigned number that one header defines, at `q`; returns the end of the text. NULL: the
 * column is not plain. */
static char *plain_text(char *q, const struct pkt *p, const struct layer *l, const struct print_column *c)
{
    const struct field *f = c->refs[0].field;
    uint64_t v;

    if (c->n_refs != 1 || !f || !FIELD_PLAIN(f, p, l, &v))
        return NULL;
    return f->base == BASE_HEX ? fmt_hex(FMT_LITERAL(q, "0x"), v, ftype_digits(f->type)) : fmt_dec(q, v);
}

void print_fields_prepare(struct print_opts *o)
{
    o->map.n = 0;
    o->map.note = 0;
    for (unsigned i = 0; i < o->n_columns; i++)
        for (unsigned r = 0; r < o->columns[i].n_refs; r++)
            if (i >= 64 || !map_hdr(&o->map, o->columns[i].refs[r].hdr, i)) {
                o->map.n = 0;
                return;
            }
}

static inline const struct layer *layer_at(const struct pkt *p, unsigned i)
{
    return i == PKT_LAYERS ? &note_layer : &p->layers[i];
}

/* Record layer `i` as that of the columns `c` (a mask). */
static inline void enter_layer(uint8_t at[64], uint64_t c, unsigned i)
{
    for (; c; c &= c - 1)
        at[__builtin_ctzll(c)] = (uint8_t)i;
}

/* Returns the mask of columns with a value in exactly one layer, whose index is stored in `at`; *many: mask of the
 * columns that may have values in several layers. */
static uint64_t find_layers(const struct print_map *m, const struct pkt *p, uint8_t at[64], uint64_t *many)
{
    uint64_t one = 0, more = 0;

    for (unsigned g = 0; g < m->n; g++)
        for (unsigned i = 0; i < p->n_layers; i++) {
            if (LIKELY(m->group[g].hdr != p->layers[i].hdr))
                continue;
            more |= one & m->group[g].columns;
            one |= m->group[g].columns;
            enter_layer(at, m->group[g].columns, i);
        }
    if (UNLIKELY(p->note.have && m->note)) {
        more |= one & m->note;
        one |= m->note;
        enter_layer(at, m->note, PKT_LAYERS);
    }
    *many = more;
    return one & ~more;
}

/* Room for a separator and a plain number in each of at most 64 columns. */
#define MAPPED_ROOM (64 * (FMT_DEC_MAX + 1))

/* Append a column that is not plain, from layer `l`, or from all layers (NULL). Returns the end of the text. */
static char *print_other(const struct print_opts *o, struct buf *b, char *q, const struct pkt *p, const struct layer *l,
                         const struct print_column *c)
{
    unsigned n = 0;

    b->len = (size_t)(q - b->p);
    if (l)
        print_layer(o, b, p, l, c, &n, b->len);
    else
        print_column(o, b, p, c);
    return buf_need(b, MAPPED_ROOM) ? b->p + b->len : NULL;
}

/* Append all columns, each from its layer. Keeps the position in the buffer in a register, not in b->len. */
static void print_mapped(const struct print_opts *o, struct buf *b, const struct pkt *p)
{
    uint8_t at[64];
    uint64_t many, one = find_layers(&o->map, p, at, &many);
    char *q = buf_need(b, MAPPED_ROOM) ? b->p + b->len : NULL;

    for (unsigned i = 0; i < o->n_columns && q; i++) {
        const struct print_column *c = &o->columns[i];
        char *end = q;
        if (i)
            *q++ = o->separator;
        if (one >> i & 1 && (end = plain_text(q, p, layer_at(p, at[i]), c)) != NULL)
            q = end;
        else if ((one | many) >> i & 1)
            q = print_other(o, b, q, p, one >> i & 1 ? layer_at(p, at[i]) : NULL, c);
    }
    if (q)
        b->len = (size_t)(q - b->p);
}

void print_fields(const struct print_opts *o, struct buf *b, const struct pkt *p)
{
    if (o->map.n && !o->quote) {
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
