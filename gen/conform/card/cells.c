/* layer 3 (conform): the cells of a test, by the line at which its scenario ended. */
#include "gen/conform/card/cells.h"

#include <stdlib.h>

/* The cells of a scenario that ended at a line. */
struct cells {
    struct buf script;
    unsigned n;
    unsigned ended; /* the cell with this line, from 1 on; 0: none, or it did not end before its end */
};

/* The line at which the scenario ended, by the reason; 0: it says none. */
static unsigned line_of(const struct conform_outcome *o)
{
    static const char begin[] = "line ";
    const size_t n = sizeof begin - 1;

    return o->reason.len > n && memcmp(o->reason.p, begin, n) == 0 ? (unsigned)strtoul(o->reason.p + n, NULL, 10) : 0;
}

/* The next line of the scenario from *p on that begins a cell: its parameters; empty: there is none. *line is the
 * number of the line at *p. */
static struct token next_cell(const struct buf *script, const char **p, unsigned *line)
{
    const char *end = script->p + script->len;

    while (*p < end) {
        const char *nl = memchr(*p, '\n', (size_t)(end - *p)), *from = *p;
        size_t n = (size_t)((nl ? nl : end) - from);
        *p = nl ? nl + 1 : end;
        ++*line;
        if (n > sizeof CELL_MARK - 1 && memcmp(from, CELL_MARK, sizeof CELL_MARK - 1) == 0)
            return (struct token){.p = from + sizeof CELL_MARK - 1, .len = (uint32_t)(n - (sizeof CELL_MARK - 1))};
    }
    return (struct token){0};
}

static void cells_find(struct cells *c, const struct conform_outcome *o)
{
    unsigned line = 0, last = line_of(o);
    const char *p;

    *c = (struct cells){0};
    conform_script(o->test, &c->script);
    p = c->script.p;
    while (next_cell(&c->script, &p, &line).len) {
        c->n++;
        c->ended = line <= last ? c->n : c->ended;
    }
}

/* NAME=VALUE words, as members of an object; whole numbers are numbers. */
static void put_params(struct buf *b, struct token all)
{
    struct token w, name, value;
    const char *before = "";
    uint64_t v;

    while (all.len) {
        uint32_t n = 0;
        while (n < all.len && all.p[n] != ' ')
            n++;
        w = (struct token){.p = all.p, .len = n};
        all = (struct token){.p = all.p + n + (n < all.len), .len = all.len - n - (n < all.len)};
        if (!token_cut(&w, '=', &name, &value))
            continue;
        buf_printf(b, "%s\"%.*s\":", before, (int)name.len, name.p);
        if (token_u64(&value, &v))
            buf_printf(b, "%llu", (unsigned long long)v);
        else
            buf_json(b, value.p, value.len);
        before = ",";
    }
}

void cells_json(const struct conform_outcome *o, struct buf *b)
{
    const char *result = conform_result_str((enum conform_result)o->result), *p, *before = ",\"cells\":[";
    unsigned line = 0, i = 0;
    struct token params;
    struct cells c;

    cells_find(&c, o);
    p = c.script.p;
    while (!o->judge_alone && (params = next_cell(&c.script, &p, &line)).len) {
        i++;
        buf_printf(b, "%s{\"params\":{", before);
        put_params(b, params);
        buf_printf(b, "},\"result\":\"%s\"}",
                   !c.ended || i == c.ended ? result
                   : i < c.ended            ? conform_result_str(CONFORM_PASS)
                                            : "not run");
        before = ",";
    }
    buf_puts(b, *before && before[1] ? "" : "]");
    buf_free(&c.script);
}

void cells_failed(const struct conform_outcome *o, struct buf *b)
{
    unsigned line = 0;
    struct cells c;
    const char *p;

    cells_find(&c, o);
    p = c.script.p;
    for (unsigned i = 1; i <= c.ended; i++) {
        struct token params = next_cell(&c.script, &p, &line);
        if (i == c.ended)
            buf_mem(b, params.p, params.len);
    }
    buf_free(&c.script);
}
