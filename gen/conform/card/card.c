/* layer 3 (conform): stored score cards are compared. */
#include "gen/conform/card/card.h"
#include "gen/conform/measures/metrics.h"

#include "stored_card.h"
#include "types.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct card {
    json_t *root, *tests, *metrics;
};

struct card *card_parse(const char *text, size_t n, struct buf *err)
{
    json_t *root = stored_card_read(text, n, err);
    struct card *c = root ? calloc(1, sizeof *c) : NULL;

    if (root && !c) {
        stored_card_free(root);
        buf_puts(err, "out of memory");
    }
    if (c)
        *c = (struct card){
            .root = root, .tests = json_object_get(root, "tests"), .metrics = json_object_get(root, "metrics")};
    return c;
}

void card_free(struct card *c)
{
    if (c)
        stored_card_free(c->root);
    free(c);
}

/* --- Comparing -------------------------------------------------------------------------------- */

static const char *text_of(const json_t *row, const char *name)
{
    const char *s = json_string_value(json_object_get(row, name));

    return s ? s : "";
}

static json_t *find(const json_t *rows, const char *id)
{
    json_t *row;
    size_t i;

    json_array_foreach(rows, i, row) if (strcmp(text_of(row, "id"), id) == 0) return row;
    return NULL;
}

/* How bad a result is; those of which one cannot say are -1. */
static int badness(const char *result)
{
    static const char *const order[] = {"pass", "known", "info", "weak", "fail", "crash"};

    for (int i = 0; i < (int)ARRAY_LEN(order); i++)
        if (strcmp(order[i], result) == 0)
            return i;
    return -1;
}

struct sums {
    unsigned regressed, fixed, changed, added, gone;
};

static void put_test(struct buf *b, const char *what, const json_t *row)
{
    const char *level = text_of(row, "level"), *id = text_of(row, "id");

    buf_printf(b, "%-9s  ", what);
    buf_printable(b, level, strlen(level));
    buf_puts(b, "  ");
    buf_printable(b, id, strlen(id));
    buf_puts(b, "  ");
}

/* The cell of these parameters; NULL: there is none. */
static const json_t *find_cell(const json_t *test, const json_t *params)
{
    json_t *cells = json_object_get(test, "cells"), *cell;
    size_t i;

    json_array_foreach(cells, i, cell) if (json_equal(json_object_get(cell, "params"), params)) return cell;
    return NULL;
}

static void put_params(struct buf *b, json_t *params)
{
    const char *name, *before = "";
    json_t *v;

    json_object_foreach(params, name, v)
    {
        buf_puts(b, before);
        buf_printable(b, name, strlen(name));
        buf_char(b, '=');
        if (json_is_integer(v))
            buf_printf(b, "%lld", (long long)json_integer_value(v));
        else if (json_is_string(v))
            buf_printable(b, json_string_value(v), json_string_length(v));
        before = " ";
    }
}

/* Append a line for each cell that came out worse or better. How many came out worse; *better: the others. */
static unsigned compare_cells(const json_t *before, const json_t *now, struct buf *b, unsigned *better)
{
    json_t *cells = json_object_get(now, "cells"), *cell;
    unsigned worse = 0;
    size_t i;

    *better = 0;
    json_array_foreach(cells, i, cell)
    {
        json_t *params = json_object_get(cell, "params");
        const json_t *other = find_cell(before, params);
        int from = other ? badness(text_of(other, "result")) : -1, to = badness(text_of(cell, "result"));
        if (from < 0 || to < 0 || from == to)
            continue;
        buf_puts(b, "              ");
        put_params(b, params);
        buf_printf(b, ": %s -> %s\n", text_of(other, "result"), text_of(cell, "result"));
        *(to > from ? &worse : better) += 1;
    }
    return worse;
}

/* A test of both cards. */
static void compare_test(const json_t *before, const json_t *now, struct buf *b, struct sums *s)
{
    const char *was = text_of(before, "result"), *is = text_of(now, "result"), *reason = text_of(now, "reason");
    int from = badness(was), to = badness(is);
    bool known = from >= 0 && to >= 0;
    unsigned better, worse;
    struct buf cells = {0};

    worse = compare_cells(before, now, &cells, &better);
    if (from == to && known) { /* it ended in another cell */
        from = worse ? -1 : better ? 1 : 0;
        to = 0;
    }
    if (strcmp(was, is) != 0 || worse || better) {
        put_test(b, !known ? "changed" : to > from ? "regressed" : "fixed", now);
        buf_printf(b, "%s -> %s", was, is);
        if (*reason) {
            buf_puts(b, ": ");
            buf_printable(b, reason, strlen(reason));
        }
        buf_char(b, '\n');
        buf_mem(b, cells.p, cells.len);
        *(!known ? &s->changed : to > from ? &s->regressed : &s->fixed) += 1;
    }
    buf_free(&cells);
}

static void compare_tests(const struct card *before, const struct card *now, struct buf *b, struct sums *s)
{
    json_t *row, *other;
    size_t i;

    json_array_foreach(now->tests, i, row)
    {
        other = find(before->tests, text_of(row, "id"));
        if (other) {
            compare_test(other, row, b, s);
            continue;
        }
        put_test(b, "new", row);
        buf_printable(b, text_of(row, "result"), strlen(text_of(row, "result")));
        buf_char(b, '\n');
        s->added++;
    }
    json_array_foreach(before->tests, i, row)
    {
        if (find(now->tests, text_of(row, "id")))
            continue;
        put_test(b, "gone", row);
        buf_printable(b, text_of(row, "result"), strlen(text_of(row, "result")));
        buf_char(b, '\n');
        s->gone++;
    }
}

/* The unit of a metric: older cards have times only, and do not say so. */
static enum metric_unit unit_of(const json_t *metric)
{
    const char *unit = text_of(metric, "unit");

    return *unit ? metric_unit_find(unit) : METRIC_NS;
}

/* The member NAME_UNIT of a metric. */
static json_t *value_of(const json_t *metric, const char *name)
{
    char key[64];

    snprintf(key, sizeof key, "%s_%s", name, metric_unit_str(unit_of(metric)));
    return json_object_get(metric, key);
}

static int64_t median_of(const json_t *metric)
{
    return json_integer_value(value_of(metric, "median"));
}

static ns_t error_of(const struct card *c)
{
    json_t *u = json_object_get(json_object_get(c->root, "tester"), "u_ns");

    return json_integer_value(u ? u : json_object_get(json_object_get(c->root, "link"), "error_ns")); /* older ones */
}

/* Whether the card says how certain a median is: older ones have an interval of a single sample, too. */
static bool has_interval(const json_t *metric)
{
    return json_integer_value(json_object_get(metric, "n")) > 1 && value_of(metric, "ci");
}

/* Whether two metrics differ: they have intervals, which do not overlap, and the medians differ by more than 10 %,
 * times also by more than three `error`s. */
static bool differ(const json_t *a, const json_t *b, ns_t error)
{
    const json_t *x = value_of(a, "ci"), *y = value_of(b, "ci");
    int64_t was = median_of(a), is = median_of(b);
    bool apart = json_integer_value(json_array_get(x, 1)) < json_integer_value(json_array_get(y, 0)) ||
                 json_integer_value(json_array_get(y, 1)) < json_integer_value(json_array_get(x, 0));
    double by = was > is ? (double)was - (double)is : (double)is - (double)was;

    return has_interval(a) && has_interval(b) && apart && by > 0.1 * (double)was &&
           (unit_of(a) != METRIC_NS || by > 3 * (double)error);
}

static void put_change(struct buf *b, const json_t *before, const json_t *now)
{
    const char *id = text_of(now, "id");
    enum metric_unit u = unit_of(now);
    bool more = median_of(now) > median_of(before);

    buf_printf(b, "%-9s     ", u == METRIC_NS ? more ? "slower" : "faster" : more ? "more" : "less");
    buf_printable(b, id, strlen(id));
    buf_puts(b, "  ");
    metric_value(b, u, median_of(before));
    buf_puts(b, " -> ");
    metric_value(b, u, median_of(now));
    if (strcmp(text_of(before, "bound"), "tester") == 0 || strcmp(text_of(now, "bound"), "tester") == 0)
        buf_puts(b, ", bounded by the tester");
    buf_char(b, '\n');
}

static void compare_metrics(const struct card *before, const struct card *now, struct buf *b)
{
    ns_t error = error_of(before) > error_of(now) ? error_of(before) : error_of(now);
    json_t *row, *other;
    size_t i;

    json_array_foreach(now->metrics, i, row)
    {
        other = find(before->metrics, text_of(row, "id"));
        if (other && unit_of(other) == unit_of(row) && differ(other, row, error))
            put_change(b, other, row);
    }
}

#define REPEATED_MIN 4 /* values: fewer may be the same by chance */

/* How many values an identity of both cards begins with: all that both have, or 0. */
static size_t repeated(const json_t *before, const json_t *now)
{
    const json_t *x = json_object_get(before, "first"), *y = json_object_get(now, "first");
    size_t n = json_array_size(x) < json_array_size(y) ? json_array_size(x) : json_array_size(y);

    for (size_t i = 0; i < n; i++)
        if (!json_equal(json_array_get(x, i), json_array_get(y, i)))
            return 0;
    return n;
}

/* What the device chose both times: keys that come again, as after its driver was loaded again, can be known before. */
static void compare_identities(const struct card *before, const struct card *now, struct buf *b)
{
    const json_t *was = json_object_get(before->root, "identities"), *is = json_object_get(now->root, "identities");
    json_t *row;
    size_t i, n;

    json_array_foreach(is, i, row)
    {
        n = repeated(find(was, text_of(row, "id")), row);
        if (n < REPEATED_MIN)
            continue;
        buf_puts(b, "repeated      ");
        buf_printable(b, text_of(row, "id"), strlen(text_of(row, "id")));
        buf_printf(b, "  the first %zu values are those of the other run\n", n);
    }
}

unsigned card_compare(const struct card *before, const struct card *now, struct buf *b)
{
    struct sums s = {0};

    compare_tests(before, now, b, &s);
    compare_metrics(before, now, b);
    compare_identities(before, now, b);
    buf_printf(b, "%u regressed, %u fixed, %u changed, %u new, %u gone\n", s.regressed, s.fixed, s.changed, s.added,
               s.gone);
    return s.regressed;
}
