/* layer 3 (commands): commands of upper protocols, summed by name and size. */
#include "src/commands/rows.h"
#include "src/commands/waits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN 65 /* class of a size that was not captured */

/* The class of a size: the number of its bits. */
static unsigned class_of(uint64_t bytes)
{
    unsigned n = 0;

    for (; bytes; bytes >>= 1)
        n++;
    return n;
}

/* The sum of these commands; a new one if there is none. NULL without memory. */
static struct command_sum *find(struct command_sums *s, const struct ulp_proto *proto, const char *name, unsigned size)
{
    unsigned i = 0;

    for (; i < COMMAND_SUMS && s->sum[i]; i++)
        if (s->sum[i]->proto == proto && s->sum[i]->size == size && strcmp(s->sum[i]->name, name) == 0)
            return s->sum[i];
    if (i == COMMAND_SUMS - 1 && strcmp(name, "others") != 0)
        return find(s, proto, "others", 0);
    if (i == COMMAND_SUMS)
        return s->sum[i - 1];
    s->sum[i] = calloc(1, sizeof *s->sum[i]);
    if (!s->sum[i])
        return NULL;
    s->sum[i]->proto = proto;
    s->sum[i]->size = size;
    snprintf(s->sum[i]->name, sizeof s->sum[i]->name, "%s", name);
    return s->sum[i];
}

const struct hist *command_sums_add(struct command_sums *s, const struct ulp_command *c)
{
    uint64_t requested = c->requested[ULP_TO_CLIENT] + c->requested[ULP_FROM_CLIENT];
    bool asked = ulp_asked_known(c, ULP_TO_CLIENT) && ulp_asked_known(c, ULP_FROM_CLIENT);
    const struct ulp_shares share = waits_shares(c);
    struct command_sum *m;
    struct buf name = {0};

    ulp_command_name(&name, c);
    m = name.err ? NULL : find(s, c->proto, buf_str(&name), asked ? class_of(requested) : UNKNOWN);
    buf_free(&name);
    if (!m)
        return NULL;
    m->n++;
    m->completed += c->ended == ULP_COMPLETED;
    m->failed += c->ended == ULP_COMPLETED && c->failed;
    m->requested += requested;
    m->moved += c->moved[ULP_TO_CLIENT] + c->moved[ULP_FROM_CLIENT];
    m->again += c->again;
    if (c->response && c->end >= c->start && !c->headless)
        hist_add(&m->latency, c->end - c->start);
    if (share.known) {
        hist_add(&m->server, share.server);
        hist_add(&m->network, share.network);
    }
    return &m->latency;
}

static int by_name(const void *a, const void *b)
{
    const struct command_sum *x = *(struct command_sum *const *)a, *y = *(struct command_sum *const *)b;
    int d = strcmp(ulp_name(x->proto), ulp_name(y->proto));

    d = d ? d : strcmp(x->name, y->name);
    return d ? d : (x->size > y->size) - (x->size < y->size);
}

/* "4096-8191", "0", "?". */
static void put_size(struct buf *b, unsigned size)
{
    if (size == UNKNOWN)
        buf_char(b, '?');
    else if (size <= 1)
        buf_dec(b, size);
    else
        buf_printf(b, "%llu-%llu", 1ULL << (size - 1), (2ULL << (size - 1)) - 1);
}

#define COLUMNS 14
static const struct text_column columns[COLUMNS] = {
    {"protocol", "protocol", 0, true, 9},
    {"name", "command", 0, true, 26},
    {"size", "bytes asked", 0, true, 15},
    {"n", "commands", 2, false, 8},
    {"failed", "failed", 1, false, 6},
    {"moved", "bytes moved", 9, false, 11},
    {"median", "lat median", 3, false, 10},
    {"p99", "lat p99", 4, false, 8},
    {"max", "lat max", 5, false, 8},
    {"server_median", "server median", 6, false, 13},
    {"server_p99", "server p99", 11, false, 10},
    {"network_median", "network median", 7, false, 14},
    {"network_p99", "network p99", 12, false, 11},
    {"again", "retrans", 8, false, 7},
};

/* A percentile; 1000: the largest. */
static void put_time(struct buf *b, const struct hist *h, unsigned permille)
{
    if (h->n)
        buf_rounded(b, permille == 1000 ? h->max : hist_permille(h, permille));
    else
        buf_char(b, '-');
}

static void put_cell(struct buf *b, const struct command_sum *m, unsigned column)
{
    const uint64_t numbers[COLUMNS] = {[3] = m->n, [4] = m->failed, [5] = m->moved, [13] = m->again};
    const struct {
        const struct hist *of;
        unsigned permille;
    } times[COLUMNS] = {
        [6] = {&m->latency, 500}, [7] = {&m->latency, 990},  [8] = {&m->latency, 1000}, [9] = {&m->server, 500},
        [10] = {&m->server, 990}, [11] = {&m->network, 500}, [12] = {&m->network, 990}};

    if (column == 0)
        buf_puts(b, ulp_name(m->proto));
    else if (column == 1)
        buf_puts(b, m->name);
    else if (column == 2)
        put_size(b, m->size);
    else if (times[column].of)
        put_time(b, times[column].of, times[column].permille);
    else
        buf_dec(b, numbers[column]);
}

/* Sort them; returns how many there are. */
static unsigned sorted(struct command_sums *s)
{
    unsigned n = 0;

    while (n < COMMAND_SUMS && s->sum[n])
        n++;
    qsort(s->sum, n, sizeof s->sum[0], by_name);
    return n;
}

/* --- For programs ----------------------------------------------------------------------------- */

static void give_times(const struct cell_to *t, const struct hist *h, const char *const names[4])
{
    static const unsigned permilles[] = {500, 900, 990};

    for (unsigned i = 0; i < ARRAY_LEN(permilles); i++)
        cell_number(t, names[i], h->n ? (uint64_t)hist_permille(h, permilles[i]) : 0, h->n != 0);
    cell_number(t, names[3], h->n ? (uint64_t)h->max : 0, h->n != 0);
}

static void sum_cells(const struct command_sum *m, cell_take *take, void *user)
{
    static const char *const latency[] = {"latency_median_ns", "latency_p90_ns", "latency_p99_ns", "latency_max_ns"};
    static const char *const server[] = {"server_median_ns", "server_p90_ns", "server_p99_ns", "server_max_ns"};
    static const char *const network[] = {"network_median_ns", "network_p90_ns", "network_p99_ns", "network_max_ns"};
    const struct cell_to t = {take, user};
    bool asked = m->size != UNKNOWN;
    uint64_t least = m->size && asked ? UINT64_C(1) << (m->size - 1) : 0;

    cell_text(&t, "protocol", m->proto ? ulp_name(m->proto) : "");
    cell_text(&t, "name", m->name);
    cell_number(&t, "least_bytes", least, asked);
    cell_number(&t, "most_bytes", least ? least + (least - 1) : 0, asked);
    cell_number(&t, "commands", m->n, true);
    cell_number(&t, "completed", m->completed, true);
    cell_number(&t, "failed", m->failed, true);
    cell_number(&t, "asked_bytes", m->requested, asked);
    cell_number(&t, "bytes", m->moved, true);
    cell_number(&t, "retransmitted_packets", m->again, true);
    give_times(&t, &m->latency, latency);
    give_times(&t, &m->server, server);
    give_times(&t, &m->network, network);
}

void command_sums_head(struct buf *b)
{
    static const struct command_sum none;

    sum_cells(&none, cell_row_name, &(struct cell_row){.b = b});
    buf_char(b, '\n');
}

bool command_sums_rows(struct command_sums *s, enum rows_format format, command_sums_put *put, void *user)
{
    unsigned n = sorted(s);
    struct buf b = {0};
    bool ok;

    for (unsigned i = 0; i < n && !b.err; i++) {
        struct cell_row row = {.b = &b};
        b.len = 0;
        sum_cells(s->sum[i], format == ROWS_JSON ? cell_row_json : cell_row_csv, &row);
        buf_char(&b, format == ROWS_JSON ? '}' : '\n');
        if (!b.err)
            put(user, b.p, b.len);
    }
    ok = !b.err;
    buf_free(&b);
    return ok;
}

/* --- Text ------------------------------------------------------------------------------------- */

/* A column is as wide as its longest text, also if that is longer than expected; in a narrow table, not wider. */
static void width_of(struct table *t, unsigned column, const struct command_sums *s, unsigned n)
{
    struct buf text = {0};
    unsigned most = (unsigned)strlen(t->columns[column]->title);

    for (unsigned i = 0; i < n; i++) {
        text.len = 0;
        put_cell(&text, s->sum[i], column);
        most = text.len > most ? (unsigned)text.len : most;
    }
    buf_free(&text);
    if (t->width || most > t->widths[column])
        t->widths[column] = most;
}

void command_sums_print(struct buf *b, struct command_sums *s, unsigned width)
{
    struct table t;
    unsigned n = sorted(s);

    if (!n)
        return;
    table_of(&t, columns, COLUMNS);
    t.width = width;
    for (unsigned i = 0; i < t.n; i++)
        width_of(&t, i, s, n);
    table_fit(&t, width);
    table_head(&t, b);
    for (unsigned i = 0; i < n; i++) {
        for (unsigned k = 0; k < t.n; k++) {
            size_t at = b->len;
            put_cell(b, s->sum[i], (unsigned)(t.columns[k] - columns));
            table_cell(&t, k, b, at);
        }
        buf_char(b, '\n');
    }
}

void command_sums_free(struct command_sums *s)
{
    for (unsigned i = 0; i < COMMAND_SUMS; i++)
        free(s->sum[i]);
}
