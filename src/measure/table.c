/* layer 3 (measure): tables in text output. */
#include "src/measure/table.h"

#include <string.h>

static unsigned width_of(const struct table *t)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < t->n; i++)
        sum += t->widths[i] + (i ? TABLE_GAP : 0);
    return sum;
}

static void leave_out(struct table *t, unsigned i)
{
    t->n--;
    memmove(&t->columns[i], &t->columns[i + 1], (t->n - i) * sizeof t->columns[0]);
    memmove(&t->widths[i], &t->widths[i + 1], (t->n - i) * sizeof t->widths[0]);
    memmove(&t->idle[i], &t->idle[i + 1], (t->n - i) * sizeof t->idle[0]);
}

/* The greater, the earlier a column is left out; 0: never. */
static unsigned rank_of(const struct table *t, unsigned i)
{
    unsigned rank = t->columns[i]->rank;

    return rank && t->idle[i] ? rank + UINT8_MAX : rank;
}

void table_of(struct table *t, const struct text_column *columns, unsigned n)
{
    *t = (struct table){0};
    t->n = n < TABLE_COLUMNS ? n : TABLE_COLUMNS;
    for (unsigned i = 0; i < t->n; i++) {
        t->columns[i] = &columns[i];
        t->widths[i] = (unsigned)strlen(columns[i].title);
        if (columns[i].width > t->widths[i])
            t->widths[i] = columns[i].width;
    }
}

void table_fit(struct table *t, unsigned width)
{
    t->width = width;
    while (width && width_of(t) > width) {
        unsigned worst = 0;
        for (unsigned i = 1; i < t->n; i++)
            if (rank_of(t, i) >= rank_of(t, worst))
                worst = i;
        if (!t->n || !rank_of(t, worst))
            return;
        leave_out(t, worst);
    }
}

void table_cell(const struct table *t, unsigned i, struct buf *b, size_t at)
{
    size_t len = b->len - at, pad = len < t->widths[i] ? t->widths[i] - len : 0;
    bool last = i + 1 == t->n;

    if (t->columns[i]->left) {
        if (!last)
            buf_fill(b, ' ', (unsigned)pad + TABLE_GAP);
        return;
    }
    buf_fill(b, ' ', (unsigned)pad);
    if (b->len != at + len + pad) /* out of memory */
        return;
    memmove(b->p + at + pad, b->p + at, len);
    memset(b->p + at, ' ', pad);
    if (!last)
        buf_fill(b, ' ', TABLE_GAP);
}

void table_cut(const struct table *t, struct buf *b, size_t at, size_t more)
{
    static const char dots[] = "...";
    size_t room = t->width > more + sizeof dots ? t->width - more : sizeof dots;

    if (!t->width || b->len - at <= room)
        return;
    b->len = at + room - (sizeof dots - 1);
    buf_puts(b, dots);
}

/* Fold the lines from `start` on. */
static void fold_from(const struct table *t, struct buf *b, size_t start)
{
    struct buf row = {0};

    buf_mem(&row, b->p + start, b->len - start);
    if (!row.err) {
        b->len = start;
        buf_fold(b, row.p, row.len, t->width);
    }
    buf_free(&row);
}

void table_row(const struct table *t, struct buf *b, const struct text_column *columns,
               void (*put)(struct buf *b, const void *row, unsigned column), const void *row, struct buf *after)
{
    size_t start = b->len;

    for (unsigned i = 0; i < t->n; i++) {
        size_t at = b->len;
        put(b, row, (unsigned)(t->columns[i] - columns));
        table_cell(t, i, b, at);
    }
    if (!t->folds)
        table_cut(t, b, start, after->len);
    buf_puts(b, buf_str(after));
    buf_char(b, '\n');
    if (t->folds && t->width && b->len - start > t->width + 1)
        fold_from(t, b, start);
}

void table_head(const struct table *t, struct buf *b)
{
    for (unsigned i = 0; i < t->n; i++) {
        size_t at = b->len;
        buf_puts(b, t->columns[i]->title);
        table_cell(t, i, b, at);
    }
    buf_char(b, '\n');
}

bool column_names_parse(struct column_names *c, const char *arg)
{
    size_t len = strlen(arg);

    c->n = 0;
    if (len >= sizeof c->text)
        return false;
    memcpy(c->text, arg, len + 1);
    for (char *s = c->text; s;) {
        char *comma = strchr(s, ',');
        if (comma)
            *comma = 0;
        if (!*s || c->n == TABLE_COLUMNS)
            return false;
        c->names[c->n++] = s;
        s = comma ? comma + 1 : NULL;
    }
    return true;
}

void table_rate(struct buf *b, uint64_t bits_per_s)
{
    static const char *const units[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
    double v = (double)bits_per_s;
    unsigned u = 0;

    while (v >= 1000 && u + 1 < sizeof units / sizeof units[0]) {
        v /= 1000;
        u++;
    }
    buf_printf(b, u ? "%.2f %s" : "%.0f %s", v, units[u]);
}
