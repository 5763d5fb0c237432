/* layer 4 (test): what libsqlite3 alone needs for the rows of an exported database: `bare_sqlite FROM.db TO.db` reads
 * all rows of FROM into memory, then creates the same tables in TO, inserts the rows by prepared statements for 64 rows
 * each, in one transaction without a journal, and creates the same indexes. It prints the seconds of CPU time since the
 * creation. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TABLES_MAX 64
#define ROWS       64 /* for each statement */

struct value {
    int type, bytes;
    union {
        sqlite3_int64 number;
        double real;
        char *text;
    };
};

struct rows {
    char *name, *sql;
    size_t columns, n, cap; /* n, cap: values */
    struct value *values;
};

static void check(sqlite3 *db, int result)
{
    if (result == SQLITE_OK || result == SQLITE_DONE || result == SQLITE_ROW)
        return;
    fprintf(stderr, "bare_sqlite: %s\n", sqlite3_errmsg(db));
    exit(1);
}

static sqlite3 *open_db(const char *name)
{
    sqlite3 *db = NULL;
    int result = sqlite3_open_v2(name, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);

    check(db, result);
    return db;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s;

    check(db, sqlite3_prepare_v2(db, sql, -1, &s, NULL));
    return s;
}

static char *column_text(sqlite3_stmt *s, int i)
{
    const char *text = (const char *)sqlite3_column_text(s, i);

    return text ? strdup(text) : NULL;
}

/* `before`: the value of the row before, NULL: none. A text that is the same is kept once. */
static struct value value_of(sqlite3_stmt *s, int i, const struct value *before)
{
    struct value v = {.type = sqlite3_column_type(s, i), .bytes = sqlite3_column_bytes(s, i)};

    if (v.type == SQLITE_INTEGER)
        v.number = sqlite3_column_int64(s, i);
    else if (v.type == SQLITE_FLOAT)
        v.real = sqlite3_column_double(s, i);
    else if (v.type == SQLITE_TEXT && before && before->type == v.type && before->bytes == v.bytes &&
             memcmp(before->text, sqlite3_column_text(s, i), (size_t)v.bytes) == 0)
        v.text = before->text;
    else if (v.type == SQLITE_TEXT)
        v.text = column_text(s, i);
    return v;
}

static void read_rows(sqlite3 *db, struct rows *t)
{
    char sql[512];
    sqlite3_stmt *s;

    snprintf(sql, sizeof sql, "SELECT * FROM \"%s\"", t->name);
    s = prepare(db, sql);
    t->columns = (size_t)sqlite3_column_count(s);
    while (sqlite3_step(s) == SQLITE_ROW) {
        if (t->n + t->columns > t->cap) {
            t->cap = 2 * (t->cap + t->columns);
            t->values = realloc(t->values, t->cap * sizeof *t->values);
        }
        for (size_t i = 0; i < t->columns; i++) {
            struct value v = value_of(s, (int)i, t->n >= t->columns ? &t->values[t->n - t->columns] : NULL);
            t->values[t->n++] = v;
        }
    }
    sqlite3_finalize(s);
}

static void bind(sqlite3_stmt *s, int i, const struct value *v)
{
    if (v->type == SQLITE_INTEGER)
        sqlite3_bind_int64(s, i, v->number);
    else if (v->type == SQLITE_FLOAT)
        sqlite3_bind_double(s, i, v->real);
    else if (v->type == SQLITE_TEXT)
        sqlite3_bind_text(s, i, v->text, v->bytes, SQLITE_STATIC);
    else
        sqlite3_bind_null(s, i);
}

/* A statement that inserts `n` rows. */
static sqlite3_stmt *insert(sqlite3 *db, const struct rows *t, size_t n)
{
    static char sql[1 << 16];
    int len = snprintf(sql, sizeof sql, "INSERT INTO \"%s\" VALUES", t->name);

    for (size_t row = 0; row < n; row++)
        for (size_t i = 0; i < t->columns; i++)
            len += snprintf(sql + len, sizeof sql - (size_t)len, "%s", i ? ",?" : row ? "),(?" : "(?");
    snprintf(sql + len, sizeof sql - (size_t)len, ")");
    return prepare(db, sql);
}

static void insert_rows(sqlite3 *db, const struct rows *t)
{
    sqlite3_stmt *many = insert(db, t, ROWS), *one = insert(db, t, 1);

    for (size_t at = 0, n; at < t->n; at += n) {
        sqlite3_stmt *s = t->n - at >= ROWS * t->columns ? many : one;
        n = s == many ? ROWS * t->columns : t->columns;
        for (size_t i = 0; i < n; i++)
            bind(s, (int)i + 1, &t->values[at + i]);
        check(db, sqlite3_step(s));
        sqlite3_reset(s);
    }
    sqlite3_finalize(many);
    sqlite3_finalize(one);
}

int main(int argc, char **argv)
{
    struct rows made[TABLES_MAX] = {{0}};
    sqlite3 *from, *to;
    sqlite3_stmt *s;
    clock_t begin;
    int n = 0;

    if (argc != 3)
        return 2;
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    from = open_db(argv[1]);
    s = prepare(from, "SELECT iif(type = 'table', name, NULL), sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY "
                      "type <> 'table', type DESC");
    for (; n < TABLES_MAX && sqlite3_step(s) == SQLITE_ROW; n++) {
        made[n] = (struct rows){.name = column_text(s, 0), .sql = column_text(s, 1)};
        if (made[n].name)
            read_rows(from, &made[n]);
    }
    unlink(argv[2]);
    begin = clock();
    to = open_db(argv[2]);
    check(to, sqlite3_exec(to,
                           "PRAGMA page_size=32768; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA "
                           "locking_mode=EXCLUSIVE; BEGIN",
                           NULL, NULL, NULL));
    for (int i = 0; i < n; i++) {
        check(to, sqlite3_exec(to, made[i].sql, NULL, NULL, NULL));
        if (made[i].name)
            insert_rows(to, &made[i]);
    }
    check(to, sqlite3_exec(to, "COMMIT", NULL, NULL, NULL));
    check(to, sqlite3_close(to));
    printf("%.3f\n", (double)(clock() - begin) / CLOCKS_PER_SEC);
    return 0;
}
