/* layer 3 (measure): rows of work requests in the order of a value. */
#include "src/measure/wqe_sort.h"

#include "tokens.h"

#include <stdlib.h>

struct wqe_sorted {
    uint64_t id, number; /* of the work request; the value, if it is one */
    bool known;          /* it has a value */
    uint32_t len;        /* of the row */
    char *text;          /* the row, and behind it the value, if it is a text, and a NUL */
};

/* The cell of the column asked for. */
struct wanted {
    const char *name;
    struct wqe_sorted *row;
    struct buf text; /* its value */
};

static void take_value(void *user, const struct cell *c)
{
    struct wanted *w = user;

    if (strcmp(c->name, w->name) != 0)
        return;
    w->row->known = c->known;
    w->row->number = c->kind == CELL_TEXT || !c->known ? 0 : c->number;
    if (c->kind == CELL_TEXT && c->known)
        buf_puts(&w->text, c->text);
}

/* The order of rows. */
static int compare(const void *a, const void *b)
{
    const struct wqe_sorted *x = a, *y = b;
    int text;

    if (x->known != y->known)
        return x->known ? -1 : 1;
    if (x->number != y->number)
        return x->number > y->number ? -1 : 1;
    text = strcmp(x->text + x->len, y->text + y->len);
    return text ? text : x->id < y->id ? -1 : x->id > y->id;
}

/* Let row `i` of the heap sink to where it belongs. */
static void sink(struct wqe_sort *s, uint32_t i)
{
    for (uint32_t child; (child = 2 * i + 1) < s->n; i = child) {
        struct wqe_sorted held = s->rows[i];
        if (child + 1 < s->n && compare(&s->rows[child + 1], &s->rows[child]) > 0)
            child++;
        if (compare(&held, &s->rows[child]) >= 0)
            return;
        s->rows[i] = s->rows[child];
        s->rows[child] = held;
    }
}

/* A place for one more row; false: there is none. */
static bool make_room(struct wqe_sort *s)
{
    uint32_t cap = s->cap ? s->cap * 2 : 256;
    struct wqe_sorted *more;

    if (s->n < s->cap)
        return true;
    more = realloc(s->rows, cap * sizeof *more);
    s->failed |= !more;
    if (!more)
        return false;
    s->rows = more;
    s->cap = cap;
    return true;
}

/* Put a row in place of the last one, if it comes before that. */
static void replace(struct wqe_sort *s, struct wqe_sorted *row)
{
    char *dropped = row->text;

    s->left_out++;
    if (compare(row, &s->rows[0]) < 0) {
        dropped = s->rows[0].text;
        s->rows[0] = *row;
        sink(s, 0);
    }
    free(dropped);
}

void wqe_sort_put(struct wqe_sort *s, const struct wqe_row *q, const char *text, size_t len)
{
    struct wqe_sorted row = {.id = q->w->id, .len = (uint32_t)len};
    struct wanted w = {.name = s->by, .row = &row};
    uint32_t max = s->max ? s->max : WQE_SORT_MAX;

    wqe_cells(q, take_value, &w);
    row.text = malloc(len + w.text.len + 1);
    s->failed |= !row.text || w.text.err;
    if (row.text && !w.text.err) {
        memcpy(row.text, text, len);
        memcpy(row.text + len, buf_str(&w.text), w.text.len + 1);
    }
    buf_free(&w.text);
    if (s->failed) {
        free(row.text);
        return;
    }
    if (s->n == max) {
        replace(s, &row);
        return;
    }
    if (!make_room(s)) {
        free(row.text);
        return;
    }
    s->rows[s->n++] = row;
    for (uint32_t i = s->n == max ? max / 2 : 0; i > 0; i--) /* from now on it is a heap */
        sink(s, i - 1);
}

void wqe_sort_end(struct wqe_sort *s, void (*put)(void *user, const char *text, size_t len), void *user)
{
    if (s->n)
        qsort(s->rows, s->n, sizeof *s->rows, compare);
    for (uint32_t i = 0; i < s->n; i++)
        put(user, s->rows[i].text, s->rows[i].len);
}

void wqe_sort_free(struct wqe_sort *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        free(s->rows[i].text);
    free(s->rows);
    s->rows = NULL;
    s->n = s->cap = 0;
}

/* --- Names ------------------------------------------------------------------------------------ */

/* What is looked for among the columns. */
struct search {
    const char *name, *found;
    struct text_nearest near;
};

static void look(void *user, const struct cell *c)
{
    struct search *s = user;

    if (strcmp(c->name, s->name) == 0)
        s->found = c->name;
    text_nearest_try(&s->near, c->name);
}

const char *wqe_sort_column(const char *name, const char **near)
{
    struct search s = {.name = wqe_text_sorts_by(name), .near = text_nearest_to(name, strlen(name))};

    wqe_columns(look, &s);
    *near = s.near.name;
    return s.found;
}
