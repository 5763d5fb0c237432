/* layer 3b (export): rows of cells of which many have the same names: those are stored once, and a view shows both. */
#include "src/export/split_rows.h"

#include "bits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kinds that are known: when there are more they are forgotten, and those that come again are stored again. */
#define KINDS_KEPT  (1U << 15)
#define SLOTS       (2 * KINDS_KEPT)
#define COLUMNS_MAX 64

struct kind {
    size_t at; /* of its key in `keys` */
    uint32_t len;
};

struct split_rows {
    struct store_table *row, *kind;
    split_cells *cells;
    bool common[COLUMNS_MAX]; /* whether a column is in `kind` */
    unsigned column;          /* of the cell that comes next */
    struct buf key, keys;     /* common values of the row at hand; of the kinds that are known */
    uint64_t forgotten;       /* kinds that were stored before those that are known */
    uint32_t n;               /* kinds that are known */
    struct kind kinds[KINDS_KEPT];
    uint32_t at[SLOTS]; /* by hash: number of a kind from 1; 0: none */
};

/* --- Tables ----------------------------------------------------------------------------------- */

/* The columns of both tables, while they are made. */
struct making {
    struct split_rows *r;
    const char *const *common;
    struct store_column row[COLUMNS_MAX + 1], kind[COLUMNS_MAX + 1];
    unsigned n_row, n_kind;
    struct buf view;
};

static bool is_common(const char *const *common, const char *name)
{
    while (*common && strcmp(*common, name) != 0)
        common++;
    return *common != NULL;
}

static void add_column(void *user, const struct cell *c)
{
    struct making *m = user;
    unsigned i = m->n_row + m->n_kind - 1; /* `kind` has a column `kind` of its own */
    bool common = is_common(m->common, c->name);

    if (i >= COLUMNS_MAX)
        return;
    m->r->common[i] = common;
    *(common ? &m->kind[m->n_kind++] : &m->row[m->n_row++]) =
        (struct store_column){c->name, c->kind == CELL_TEXT ? STORE_TEXT : STORE_INTEGER};
    buf_printf(&m->view, "%s%s.\"%s\"", i ? ", " : "", common ? "k" : "r", c->name);
}

static void make_tables(struct split_rows *r, struct store *s, const char *name, const char *const *common)
{
    struct making m = {.r = r, .common = common, .kind = {{"kind", STORE_INTEGER}}, .n_kind = 1};
    char row[64], kind[64];

    snprintf(row, sizeof row, "%s_row", name);
    snprintf(kind, sizeof kind, "%s_kind", name);
    buf_printf(&m.view, "CREATE VIEW \"%s\" AS SELECT ", name);
    r->cells(NULL, add_column, &m);
    m.row[m.n_row++] = (struct store_column){"kind", STORE_INTEGER};
    r->row = store_table(s, row, m.row, m.n_row, m.row->name);
    r->kind = store_table(s, kind, m.kind, m.n_kind, "kind");
    buf_printf(&m.view, " FROM %s AS r JOIN %s AS k USING (kind)", row, kind);
    store_sql(s, buf_str(&m.view));
    buf_free(&m.view);
}

struct split_rows *split_rows_new(struct store *s, const char *name, split_cells *cells, const char *const *common)
{
    struct split_rows *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    r->cells = cells;
    make_tables(r, s, name, common);
    return r;
}

void split_rows_free(struct split_rows *r)
{
    if (!r)
        return;
    buf_free(&r->key);
    buf_free(&r->keys);
    free(r);
}

/* --- Rows ------------------------------------------------------------------------------------- */

static void put(struct store_table *t, const struct cell *c)
{
    if (!c->known)
        store_null(t);
    else if (c->kind == CELL_TEXT)
        store_text(t, c->text);
    else
        store_number(t, c->number);
}

/* The cells that are not common go to the row, the others to its key. */
static void take_row(void *user, const struct cell *c)
{
    struct split_rows *r = user;

    if (!r->common[r->column++]) {
        put(r->row, c);
        return;
    }
    buf_char(&r->key, c->known ? 1 : 0);
    if (c->known && c->kind == CELL_TEXT)
        buf_mem(&r->key, c->text, strlen(c->text) + 1);
    else if (c->known)
        buf_mem(&r->key, (const char *)&c->number, sizeof c->number);
}

static void take_kind(void *user, const struct cell *c)
{
    struct split_rows *r = user;

    if (r->common[r->column++])
        put(r->kind, c);
}

static uint32_t slot_of(const struct buf *key)
{
    uint64_t h = key->len, word;

    for (size_t i = 0; i < key->len; i += sizeof word) {
        size_t left = key->len - i;
        word = 0;
        memcpy(&word, key->p + i, left < sizeof word ? left : sizeof word);
        h = (h ^ word) * HASH_MULTIPLIER;
        h ^= h >> 29;
    }
    return (uint32_t)(h * HASH_MULTIPLIER >> 32) % SLOTS;
}

static bool is_kind(const struct split_rows *r, const struct kind *k)
{
    return k->len == r->key.len && memcmp(r->keys.p + k->at, r->key.p, k->len) == 0;
}

/* The number of the row's kind, which is stored when it is new. */
static uint64_t kind_number(struct split_rows *r, const void *row)
{
    uint32_t slot = slot_of(&r->key);

    for (; r->at[slot]; slot = (slot + 1) % SLOTS)
        if (is_kind(r, &r->kinds[r->at[slot] - 1]))
            return r->forgotten + r->at[slot];
    if (r->n == KINDS_KEPT) {
        memset(r->at, 0, sizeof r->at);
        r->forgotten += r->n;
        r->n = 0;
        r->keys.len = 0;
        slot = slot_of(&r->key);
    }
    r->kinds[r->n++] = (struct kind){r->keys.len, (uint32_t)r->key.len};
    buf_mem(&r->keys, r->key.p, r->key.len);
    r->at[slot] = r->n;
    store_number(r->kind, r->forgotten + r->n);
    r->column = 0;
    r->cells(row, take_kind, r);
    store_insert(r->kind);
    return r->forgotten + r->n;
}

void split_rows_put(struct split_rows *r, const void *row)
{
    r->key.len = 0;
    r->column = 0;
    r->cells(row, take_row, r);
    store_number(r->row, kind_number(r, row));
    store_insert(r->row);
}
