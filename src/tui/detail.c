/* layer 3b (tui): fields and bytes of the selected packet: the selected field lights its bytes, a byte its field. */
#include "src/tui/tui_impl.h"

/* --- The tree --------------------------------------------------------------------------------- */

/* The bits of a field in the frame: none if a function computes it. */
static void set_bits(struct tree_line *l)
{
    if (!l->layer)
        return;
    l->bit = l->layer->off * 8;
    l->bits = l->layer->len * 8;
    if (!l->field)
        return;
    if (l->field->get || l->field->bit >= l->bits) {
        l->bits = 0;
        return;
    }
    l->bit += l->field->bit;
    l->bits -= l->field->bit;
    if (l->field->width && l->field->width < l->bits)
        l->bits = l->field->width;
}

static void on_tree_line(void *user, const struct layer *layer, const struct field *field)
{
    struct detail *d = user;
    bool own = layer >= d->pkt.layers && layer < d->pkt.layers + d->pkt.n_layers;

    if (d->n == TREE_LINES)
        return;
    d->lines[d->n] = (struct tree_line){
        .at = d->text.len, .hdr = layer ? layer->hdr : NULL, .layer = own ? layer : NULL, .field = field};
    set_bits(&d->lines[d->n++]);
}

/* Read the packet again: its bytes are valid until another one is read. */
static bool reload(struct tui *t)
{
    struct detail *d = &t->detail;

    return d->index != UINT64_MAX && load_into(t, d->index, &d->stored, &d->pkt);
}

/* The first line of the first header of InfiniBand, or else the last header: what the user came for. */
static unsigned first_shown(const struct detail *d)
{
    unsigned last = 0;

    for (unsigned i = 0; i < d->n; i++) {
        if (d->lines[i].layer && !d->lines[i].field)
            last = i;
        if (d->lines[i].layer && hdr_is_infiniband(d->lines[i].layer->hdr))
            return i;
    }
    return last;
}

/* The line of the same header and field as in the packet before, so that one can walk along packets. */
static unsigned same_line(const struct detail *d, const struct hdr *hdr, const struct field *field)
{
    for (unsigned i = 0; hdr && i < d->n; i++)
        if (d->lines[i].layer && d->lines[i].layer->hdr == hdr && d->lines[i].field == field)
            return i;
    return first_shown(d);
}

void detail_show(struct tui *t, uint64_t i)
{
    struct detail *d = &t->detail;
    const struct tree_line *was = d->at < d->n ? &d->lines[d->at] : NULL;
    const struct hdr *hdr = was && was->layer ? was->layer->hdr : NULL;
    const struct field *field = was ? was->field : NULL;
    struct print_opts o = {.ascii = t->o.term.ascii, .tree_line = on_tree_line, .user = d};

    if (i == d->index)
        return;
    d->index = i;
    d->n = 0;
    d->text.len = 0;
    if (!reload(t)) {
        d->index = UINT64_MAX;
        return;
    }
    print_tree(&o, &d->text, &d->pkt);
    d->at = same_line(d, hdr, field);
    fold_lines(d, t->layout.tree.rows);
    d->top = fold_row(d, d->at);
    d->byte = d->n ? d->lines[d->at].bit / 8 : 0;
}

bool detail_comment(struct tui *t, struct buf *b)
{
    const struct frame *f = &t->detail.stored.frame;

    if (!reload(t) || !f->comment)
        return false;
    buf_puts(b, "comment: ");
    buf_printable(b, f->comment, f->comment_len);
    return true;
}

/* --- Drawing ---------------------------------------------------------------------------------- */

static void draw_rule(struct tui *t)
{
    const struct area *a = &t->layout.rule;
    const struct detail *d = &t->detail;
    struct buf text = {0};
    unsigned x = 2;

    term_rule(a->y, a->x, a->columns);
    if (d->index == UINT64_MAX)
        return;
    buf_printf(&text, " frame %llu, %u B ", (unsigned long long)d->stored.frame.number, d->stored.frame.len);
    if (t->pane == PANE_TREE || t->pane == PANE_BYTES)
        buf_printf(&text, t->pane == PANE_TREE ? "[fields] " : "[bytes] ");
    x += term_put(a->y, a->x + x, a->columns - x, text.p, text.len, 0, LOOK_KEY) + 1;
    text.len = 0;
    buf_char(&text, ' ');
    if (said_put(t, &text) && x + 1 < a->columns) {
        buf_char(&text, ' ');
        term_put(a->y, a->x + x, a->columns - x, text.p, text.len, 0, LOOK_LOST);
    }
    buf_free(&text);
}

static void draw_tree(struct tui *t)
{
    struct detail *d = &t->detail;
    const struct area *a = &t->layout.tree;
    unsigned row;

    fold_lines(d, a->rows);
    row = fold_row(d, d->at);
    d->top = (unsigned)layout_scroll(d->top, row, d->n_shown, a->rows);
    for (unsigned y = 0; y < a->rows && d->top + y < d->n_shown; y++) {
        unsigned i = d->shown[d->top + y], n;
        enum look role = i == d->at                                ? (t->pane == PANE_TREE ? LOOK_SELECTED : LOOK_FIELD)
                         : d->lines[i].layer && !d->lines[i].field ? LOOK_KEY
                                                                   : LOOK_NORMAL;
        t->row.len = 0;
        fold_text(d, i, &t->row);
        n = term_put(a->y + y, a->x, a->columns, t->row.p, t->row.len, 0, role);
        if (i == d->at && n < a->columns)
            term_mark(a->y + y, a->x, a->columns, role);
    }
}

/* The role of a byte: that of the cursor, of the selected field, or none. */
static enum look role_of_byte(const struct tui *t, uint32_t i)
{
    const struct detail *d = &t->detail;
    const struct tree_line *l = d->at < d->n ? &d->lines[d->at] : NULL;

    if (t->pane == PANE_BYTES && i == d->byte)
        return LOOK_SELECTED;
    return l && l->bits && i >= l->bit / 8 && i < (l->bit + l->bits + 7) / 8 ? LOOK_FIELD : LOOK_NORMAL;
}

static void draw_bytes(struct tui *t)
{
    struct detail *d = &t->detail;
    const struct area *a = &t->layout.bytes;
    uint32_t n = d->stored.frame.caplen, top = d->byte_top / BYTES_OF_LINE;
    struct buf dump = {0};

    if (t->pane != PANE_BYTES && top < d->byte / BYTES_OF_LINE) /* what is selected begins above */
        top = d->byte / BYTES_OF_LINE;
    top = (uint32_t)layout_scroll(top, d->byte / BYTES_OF_LINE, (n + BYTES_OF_LINE - 1) / BYTES_OF_LINE, a->rows);
    d->byte_top = top * BYTES_OF_LINE;
    for (unsigned y = 0; y < a->rows && d->byte_top + y * BYTES_OF_LINE < n; y++) {
        uint32_t at = d->byte_top + y * BYTES_OF_LINE, len = min_u32(BYTES_OF_LINE, n - at);
        dump.len = 0;
        print_hex(&dump, d->pkt.data + at, len);
        t->row.len = 0;
        buf_hex(&t->row, at, 4); /* print_hex() counts from 0 */
        buf_mem(&t->row, dump.p + 4, (size_t)((char *)memchr(dump.p, '\n', dump.len) - dump.p) - 4);
        term_put(a->y + y, a->x, a->columns, t->row.p, t->row.len, 0, LOOK_NORMAL);
        for (unsigned i = 0; i < len; i++)
            if (role_of_byte(t, at + i) != LOOK_NORMAL) {
                term_mark(a->y + y, a->x + layout_hex_column(i), 2, role_of_byte(t, at + i));
                if (layout_char_column(i) < a->columns)
                    term_mark(a->y + y, a->x + layout_char_column(i), 1, role_of_byte(t, at + i));
            }
    }
    buf_free(&dump);
}

void detail_draw(struct tui *t)
{
    if (!t->layout.rule.rows)
        return;
    draw_rule(t);
    if (!reload(t))
        return;
    if (t->layout.tree.rows)
        draw_tree(t);
    if (t->layout.bytes_rule.rows)
        term_rule(t->layout.bytes_rule.y, t->layout.bytes_rule.x, t->layout.bytes_rule.columns);
    if (t->layout.bytes.rows)
        draw_bytes(t);
}

/* --- Cursor ----------------------------------------------------------------------------------- */

/* The line of the smallest field that has the byte. */
static void find_field(struct detail *d)
{
    uint32_t least = UINT32_MAX;

    for (unsigned i = 0; i < d->n; i++) {
        const struct tree_line *l = &d->lines[i];
        if (l->bits && l->bits < least && d->byte >= l->bit / 8 && d->byte < (l->bit + l->bits + 7) / 8) {
            least = l->bits;
            d->at = i;
        }
    }
    fold_turn(d, FOLD_OPEN);
}

/* `at` moved by `by`, from 0 to below `n`. */
static uint32_t moved(uint32_t at, int64_t by, uint32_t n)
{
    int64_t to = (int64_t)at + by;

    return !n || to < 0 ? 0 : to >= (int64_t)n ? n - 1 : (uint32_t)to;
}

void detail_move(struct tui *t, int64_t lines, int columns)
{
    struct detail *d = &t->detail;

    if (d->index == UINT64_MAX)
        return;
    if (t->pane == PANE_BYTES) {
        d->byte = moved(d->byte, lines * BYTES_OF_LINE + columns, d->stored.frame.caplen);
        find_field(d);
        return;
    }
    fold_lines(d, t->layout.tree.rows);
    if (d->n_shown)
        d->at = d->shown[moved(fold_row(d, d->at), lines, d->n_shown)];
    if (d->n && d->lines[d->at].bits)
        d->byte = d->lines[d->at].bit / 8;
}

void detail_fold(struct tui *t, enum fold how)
{
    fold_turn(&t->detail, how);
    fold_lines(&t->detail, t->layout.tree.rows);
}

/* --- The filter ------------------------------------------------------------------------------- */

/* Whether `text` is a filter that the packet passes. */
static bool passes(const struct pkt *p, const char *text)
{
    struct filter_error e;
    struct filter *f = filter_compile(text, &e);
    bool yes = f && filter_match(f, p);

    filter_free(f);
    return yes;
}

/* The ways to write a value, the first of which that the packet passes is taken. */
static void write_value(struct buf *b, const struct field *f, const struct value *v, unsigned way)
{
    b->len = 0;
    buf_puts(b, f->abbrev);
    if (way == 3)
        return;
    buf_puts(b, " == ");
    if (way == 0) {
        value_print(b, f, v);
    } else if (way == 1) {
        buf_bytes(b, v->p, ftype_is_number(v->type) ? 0 : v->len, ':');
    } else {
        buf_char(b, '"');
        value_print(b, f, v);
        buf_char(b, '"');
    }
}

bool detail_filter(struct tui *t, struct buf *b)
{
    struct detail *d = &t->detail;
    const struct tree_line *l = d->at < d->n ? &d->lines[d->at] : NULL;
    struct value v;

    if (!l || !l->layer || !reload(t))
        return false;
    if (!l->field) {
        buf_puts(b, l->layer->hdr->abbrev);
        return passes(&d->pkt, buf_str(b));
    }
    v.type = (enum ftype)l->field->type;
    if (!field_value(l->field, &d->pkt, l->layer, &v))
        return false;
    for (unsigned way = 0; way < 4; way++) {
        write_value(b, l->field, &v, way);
        if (passes(&d->pkt, buf_str(b)))
            return true;
    }
    return false;
}
