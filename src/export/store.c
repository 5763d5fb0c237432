/* layer 3b (export): an SQLite database that is written once. */
#include "src/export/store.h"

#include "beside.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#define TABLES_MAX 32
#define OPEN       (SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX) /* one thread uses it */

struct store_table {
    struct store *store;
    sqlite3_stmt *insert;
    int n, at; /* columns; values set in this row */
};

struct store {
    sqlite3 *db;
    char *path, *unfinished; /* its name at the end, and until then */
    struct buf error;        /* empty: none */
    struct store_table tables[TABLES_MAX];
    unsigned n_tables;
};

/* --- Errors ----------------------------------------------------------------------------------- */

const char *store_error(const struct store *s)
{
    return s->error.len ? s->error.p : NULL;
}

static void fail(struct store *s, const char *what)
{
    if (s->error.len)
        return;
    buf_printf(&s->error, "%s: %s", s->path, what);
    buf_char(&s->error, '\0');
}

/* Check the result of a call of SQLite. */
static bool good(struct store *s, int result)
{
    if (result == SQLITE_OK || result == SQLITE_DONE)
        return true;
    fail(s, s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(result));
    return false;
}

void store_sql(struct store *s, const char *sql)
{
    if (!s->error.len)
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

struct store *store_new(const char *path)
{
    struct store *s = calloc(1, sizeof *s);

    if (!s || !(s->path = strdup(path))) {
        free(s);
        return NULL;
    }
    /* one thread, and memory statistics are not used: no locks */
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    /* No other program reads the file before it has its name: no journal, and the disk decides when it writes. */
    if (create_file(s) && good(s, sqlite3_open_v2(s->unfinished, &s->db, OPEN, NULL)))
        store_sql(s, "PRAGMA page_size=32768; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA "
                     "locking_mode=EXCLUSIVE; BEGIN");
    return s;
}

void store_free(struct store *s)
{
    if (!s)
        return;
    for (unsigned i = 0; i < s->n_tables; i++)
        sqlite3_finalize(s->tables[i].insert);
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

/* Prepare the statement that inserts rows of `n` values. */
static bool prepare(struct store_table *t, const char *name, unsigned n)
{
    struct buf sql = {0};
    bool ok;

    buf_printf(&sql, "INSERT INTO \"%s\" VALUES(", name);
    for (unsigned i = 0; i < n; i++)
        buf_puts(&sql, i ? ",?" : "?");
    buf_char(&sql, ')');
    ok = good(t->store, sqlite3_prepare_v2(t->store->db, buf_str(&sql), -1, &t->insert, NULL));
    buf_free(&sql);
    return ok;
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
    if (s->error.len)
        return NULL;
    t->store = s;
    t->n = (int)n;
    if (!prepare(t, name, n))
        return NULL;
    s->n_tables++;
    return t;
}

/* The number of the next value of the row; 0: there was an error. */
static int next(struct store_table *t)
{
    return t && !t->store->error.len ? ++t->at : 0;
}

void store_number(struct store_table *t, uint64_t v)
{
    int i = next(t);

    if (i)
        good(t->store, sqlite3_bind_int64(t->insert, i, (sqlite3_int64)v));
}

void store_real(struct store_table *t, double v)
{
    int i = next(t);

    if (i)
        good(t->store, sqlite3_bind_double(t->insert, i, v));
}

void store_text(struct store_table *t, const char *v)
{
    int i = next(t);

    if (i)
        good(t->store, sqlite3_bind_text(t->insert, i, v, -1, SQLITE_TRANSIENT));
}

void store_null(struct store_table *t)
{
    int i = next(t);

    if (i)
        good(t->store, sqlite3_bind_null(t->insert, i));
}

void store_word(struct store_table *t, const char *v)
{
    int i;

    if (!v)
        store_null(t);
    else if ((i = next(t)))
        good(t->store, sqlite3_bind_text(t->insert, i, v, -1, SQLITE_STATIC));
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
    while (t && t->at < t->n && !t->store->error.len)
        store_null(t);
    if (!t || t->store->error.len)
        return;
    good(t->store, sqlite3_step(t->insert));
    good(t->store, sqlite3_reset(t->insert));
    t->at = 0;
}

/* --- The end ---------------------------------------------------------------------------------- */

bool store_commit(struct store *s)
{
    store_sql(s, "COMMIT");
    for (unsigned i = 0; i < s->n_tables; i++)
        sqlite3_finalize(s->tables[i].insert);
    s->n_tables = 0;
    if (!s->error.len && good(s, sqlite3_close(s->db)))
        s->db = NULL;
    if (s->error.len)
        return false;
    if (!beside_done(s->unfinished, s->path))
        fail(s, strerror(errno));
    s->unfinished = NULL;
    return !s->error.len;
}
