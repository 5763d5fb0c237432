/* layer 3b (export): an SQLite database that is written once. */
#include "src/export/store.h"

#include "beside.h"
#include "src/cores/worker.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define TABLES_MAX 32
#define ROWS       64         /* that one statement inserts: each statement costs about as much as seven values */
#define KEPT       (4 * ROWS) /* rows that are a piece of work: short beside the caches, long beside waking a thread */
#define OPEN       (SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX) /* one thread at a time uses it */

enum value_kind { VALUE_NULL, VALUE_NUMBER, VALUE_REAL, VALUE_WORD, VALUE_TEXT };

struct value {
    uint8_t kind; /* enum value_kind */
    uint32_t len; /* VALUE_TEXT */
    union {
        uint64_t number;
        double real;
        const char *word;
        size_t at; /* VALUE_TEXT: in the `texts` of its rows */
    };
};

/* A statement that inserts rows. What is bound to it stays so: only values that differ from those of the rows before
 * are bound again. */
struct inserter {
    sqlite3_stmt *insert;
    unsigned rows, skipped; /* that it inserts; columns that it leaves out at the beginning of each */
    struct value *bound;    /* rows * columns */
};

/* Rows that wait until they are inserted. */
struct rows {
    struct store_table *table;
    struct buf texts;
    unsigned n;            /* values */
    struct value values[]; /* KEPT * columns */
};

struct store_table {
    struct store *store;
    unsigned columns;
    /* Of the caller: rows that are filled, others that are inserted or were; those not needed yet are NULL. */
    struct rows *rows[WORKER_PIECES + 1];
    unsigned at;                /* those that are filled */
    struct value *next, *after; /* of the row at hand: its next value, and behind its last one; NULL: none is begun */
    /* Of the worker. */
    struct inserter one, many;
    struct inserter serial; /* as many, for rows whose key is that of the row before and 1: SQLite looks for no other */
    bool numbered;          /* the first column is the key, a number */
    uint64_t last;          /* numbered: the largest key so far */
};

struct store {
    sqlite3 *db;
    char *path, *unfinished; /* its name at the end, and until then */
    struct worker *worker;   /* inserts rows; while it has some, nobody else uses `db` */
    atomic_flag failing;     /* the first error is being written, or was */
    atomic_bool failed;      /* `error` is there */
    struct buf error;
    struct store_table tables[TABLES_MAX];
    unsigned n_tables;
};

/* --- Errors ----------------------------------------------------------------------------------- */

const char *store_error(const struct store *s)
{
    return s->failed ? s->error.p : NULL;
}

static void fail(struct store *s, const char *what)
{
    if (atomic_flag_test_and_set(&s->failing))
        return;
    buf_printf(&s->error, "%s: %s", s->path, what);
    buf_char(&s->error, '\0');
    s->failed = true;
}

/* Check the result of a call of SQLite. */
static bool good(struct store *s, int result)
{
    if (result == SQLITE_OK || result == SQLITE_DONE)
        return true;
    fail(s, s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(result));
    return false;
}

/* --- Rows ------------------------------------------------------------------------------------- */

static int bind(const struct rows *r, sqlite3_stmt *to, int i, const struct value *v)
{
    switch ((enum value_kind)v->kind) {
    case VALUE_NUMBER:
        return sqlite3_bind_int64(to, i, (sqlite3_int64)v->number);
    case VALUE_REAL:
        return sqlite3_bind_double(to, i, v->real);
    case VALUE_WORD:
        return sqlite3_bind_text(to, i, v->word, -1, SQLITE_STATIC);
    case VALUE_TEXT:
        return sqlite3_bind_text(to, i, r->texts.p + v->at, (int)v->len, SQLITE_STATIC);
    case VALUE_NULL:
        break;
    }
    return sqlite3_bind_null(to, i);
}

/* Whether `v` is what `bound` is. A text is not: those of the rows before are no longer there. */
static bool is_bound(const struct value *bound, const struct value *v)
{
    switch ((enum value_kind)v->kind) {
    case VALUE_NUMBER:
        return bound->kind == VALUE_NUMBER && bound->number == v->number;
    case VALUE_WORD:
        return bound->kind == VALUE_WORD && bound->word == v->word;
    case VALUE_NULL:
        return bound->kind == VALUE_NULL;
    case VALUE_REAL:
    case VALUE_TEXT:
        break;
    }
    return false;
}

/* Insert the rows from value `at` on, as many as `by` inserts. */
static void insert(const struct rows *r, struct inserter *by, unsigned at)
{
    const struct store_table *t = r->table;
    const struct value *end = r->values + at + by->rows * t->columns;
    struct value *bound = by->bound;
    int i = 0;

    for (const struct value *row = r->values + at; row < end; row += t->columns)
        for (unsigned c = by->skipped; c < t->columns; c++, bound++) {
            i++;
            if (is_bound(bound, &row[c]))
                continue;
            *bound = row[c];
            if (!good(t->store, bind(r, by->insert, i, bound)))
                return;
        }
    good(t->store, sqlite3_step(by->insert));
    good(t->store, sqlite3_reset(by->insert));
}

/* Whether the key of each of ROWS rows is that of the row before and 1. */
static bool is_consecutive(const struct store_table *t, const struct value *row)
{
    if (!t->numbered)
        return false;
    for (unsigned i = 0; i < ROWS; i++, row += t->columns)
        if (row->number != t->last + 1 + i)
            return false;
    return true;
}

/* How the rows from value `at` on are inserted. */
static struct inserter *inserter_of(const struct rows *r, unsigned at)
{
    struct store_table *t = r->table;

    if (r->n - at < ROWS * t->columns)
        return &t->one;
    return is_consecutive(t, r->values + at) ? &t->serial : &t->many;
}

/* The worker's: insert rows, and forget them. */
static void insert_rows(void *user, void *piece)
{
    struct rows *r = piece;
    struct store_table *t = r->table;
    const struct store *s = user;

    for (unsigned at = 0, n; at < r->n && !s->failed; at += n) {
        struct inserter *by = inserter_of(r, at);
        n = by->rows * t->columns;
        insert(r, by, at);
        for (unsigned i = at; t->numbered && i < at + n; i += t->columns)
            t->last = r->values[i].number > t->last ? r->values[i].number : t->last;
    }
    r->n = 0;
    r->texts.len = 0;
}

/* Begin to fill rows. When the table has filled all others, these are inserted. False without memory. */
static bool begin(struct store_table *t)
{
    struct rows **r = &t->rows[t->at];

    if (!*r && (*r = malloc(sizeof **r + KEPT * t->columns * sizeof *(*r)->values)))
        **r = (struct rows){.table = t};
    if (!*r) {
        fail(t->store, "out of memory");
        return false;
    }
    t->next = (*r)->values;
    t->after = t->next + t->columns;
    return true;
}

/* Have the rows inserted that are complete. */
static void flush(struct store_table *t)
{
    struct rows *r = t->rows[t->at];

    if (!t->next)
        return;
    r->n = (unsigned)(t->after - r->values) - t->columns;
    t->next = t->after = NULL;
    t->at = (t->at + 1) % ARRAY_LEN(t->rows);
    worker_put(t->store->worker, r);
}

void store_sql(struct store *s, const char *sql)
{
    for (unsigned i = 0; i < s->n_tables; i++)
        flush(&s->tables[i]);
    worker_wait(s->worker);
    if (!s->failed)
        good(s, sqlite3_exec(s->db, sql, NULL, NULL, NULL));
}

/* --- Opening ---------------------------------------------------------------------------------- */

/* A new file beside `path`. */
static bool create_file(struct store *s)
{
    int fd;

    s->unfinished = beside_new(s->path, &fd);
    if (!s->unfinished) {
        fail(s, strerror(errno));
        return false;
    }
    close(fd);
    return true;
}

struct store *store_new(const char *path, unsigned threads)
{
    struct store *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    atomic_flag_clear(&s->failing);
    s->path = strdup(path);
    s->worker = worker_new(threads, insert_rows, s);
    if (!s->path || !s->worker) {
        store_free(s);
        return NULL;
    }
    /* one thread at a time, and memory statistics are not used: no locks */
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    /* No other program reads the file before it has its name: no journal, and the disk decides when it writes. */
    if (create_file(s) && good(s, sqlite3_open_v2(s->unfinished, &s->db, OPEN, NULL)))
        store_sql(s, "PRAGMA page_size=32768; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA "
                     "locking_mode=EXCLUSIVE; BEGIN");
    return s;
}

static void end_inserter(struct inserter *by)
{
    sqlite3_finalize(by->insert);
    free(by->bound);
}

static void free_tables(struct store *s)
{
    for (unsigned i = 0; i < s->n_tables; i++) {
        struct store_table *t = &s->tables[i];
        end_inserter(&t->one);
        end_inserter(&t->many);
        end_inserter(&t->serial);
        for (unsigned k = 0; k < ARRAY_LEN(t->rows); k++) {
            if (t->rows[k])
                buf_free(&t->rows[k]->texts);
            free(t->rows[k]);
        }
    }
    s->n_tables = 0;
}

void store_free(struct store *s)
{
    if (!s)
        return;
    worker_free(s->worker);
    free_tables(s);
    sqlite3_close(s->db);
    beside_drop(s->unfinished);
    free(s->path);
    buf_free(&s->error);
    free(s);
}

/* --- Tables ----------------------------------------------------------------------------------- */

static void put_columns(struct buf *sql, const struct store_column *columns, unsigned n)
{
    static const char *const types[] = {"INTEGER", "REAL", "TEXT"};

    for (unsigned i = 0; i < n; i++)
        buf_printf(sql, "%s\"%s\" %s", i ? ", " : "", columns[i].name, types[columns[i].type]);
}

/* Prepare the statement that inserts `rows` rows without the first `skipped` columns. */
static void prepare(struct store_table *t, struct inserter *by, const char *name, const struct store_column *columns,
                    unsigned rows, unsigned skipped)
{
    struct buf sql = {0};

    buf_printf(&sql, "INSERT INTO \"%s\"(", name);
    for (unsigned i = skipped; i < t->columns; i++)
        buf_printf(&sql, "%s\"%s\"", i > skipped ? ", " : "", columns[i].name);
    buf_puts(&sql, ") VALUES");
    for (unsigned row = 0; row < rows; row++)
        for (unsigned i = skipped; i < t->columns; i++)
            buf_puts(&sql, i > skipped ? ",?" : row ? "),(?" : "(?");
    buf_char(&sql, ')');
    *by = (struct inserter){.rows = rows, .skipped = skipped, .bound = calloc(rows, t->columns * sizeof *by->bound)};
    if (by->bound)
        good(t->store, sqlite3_prepare_v2(t->store->db, buf_str(&sql), -1, &by->insert, NULL));
    else
        fail(t->store, "out of memory");
    buf_free(&sql);
}

struct store_table *store_table(struct store *s, const char *name, const struct store_column *columns, unsigned n,
                                const char *key)
{
    struct store_table *t = &s->tables[s->n_tables];
    struct buf sql = {0};

    if (s->n_tables == TABLES_MAX)
        fail(s, "too many tables");
    buf_printf(&sql, "CREATE TABLE \"%s\"(", name);
    put_columns(&sql, columns, n);
    if (key)
        buf_printf(&sql, ", PRIMARY KEY(%s)", key);
    buf_puts(&sql, key && strchr(key, ',') ? ") STRICT, WITHOUT ROWID" : ") STRICT");
    store_sql(s, buf_str(&sql));
    buf_free(&sql);
    if (s->failed)
        return NULL;
    s->n_tables++;
    *t = (struct store_table){.store = s, .columns = n};
    t->numbered = key && !strchr(key, ',') && columns->type == STORE_INTEGER;
    prepare(t, &t->one, name, columns, 1, 0);
    prepare(t, &t->many, name, columns, ROWS, 0);
    if (t->numbered)
        prepare(t, &t->serial, name, columns, ROWS, 1);
    return s->failed ? NULL : t;
}

/* The place of the next value of the row; NULL: there is none. */
static inline struct value *next(struct store_table *t, enum value_kind kind)
{
    struct value *v;

    if (!t || (UNLIKELY(!t->next) && !begin(t)) || t->next == t->after)
        return NULL;
    v = t->next++;
    v->kind = (uint8_t)kind;
    return v;
}

void store_number(struct store_table *t, uint64_t number)
{
    struct value *v = next(t, VALUE_NUMBER);

    if (v)
        v->number = number;
}

void store_real(struct store_table *t, double real)
{
    struct value *v = next(t, VALUE_REAL);

    if (v)
        v->real = real;
}

void store_text(struct store_table *t, const char *text)
{
    struct value *v = next(t, text ? VALUE_TEXT : VALUE_NULL);
    struct buf *texts;

    if (!v || !text)
        return;
    texts = &t->rows[t->at]->texts;
    v->at = texts->len;
    v->len = (uint32_t)strlen(text);
    if (!buf_need(texts, v->len + 1)) {
        fail(t->store, "out of memory");
        return;
    }
    buf_puts(texts, text);
    buf_char(texts, '\0'); /* even an empty text has an address */
}

void store_null(struct store_table *t)
{
    next(t, VALUE_NULL);
}

void store_word(struct store_table *t, const char *word)
{
    struct value *v = next(t, word ? VALUE_WORD : VALUE_NULL);

    if (v)
        v->word = word;
}

void store_if(struct store_table *t, bool known, uint64_t v)
{
    if (known)
        store_number(t, v);
    else
        store_null(t);
}

void store_insert(struct store_table *t)
{
    if (!t || !t->next)
        return;
    while (t->next < t->after)
        store_null(t);
    t->after += t->columns;
    if (t->next == t->rows[t->at]->values + KEPT * t->columns)
        flush(t);
}

/* --- The end ---------------------------------------------------------------------------------- */

bool store_commit(struct store *s)
{
    store_sql(s, "COMMIT");
    free_tables(s);
    if (!s->failed && good(s, sqlite3_close(s->db)))
        s->db = NULL;
    if (s->failed)
        return false;
    if (!beside_done(s->unfinished, s->path))
        fail(s, strerror(errno));
    s->unfinished = NULL;
    return !s->failed;
}
