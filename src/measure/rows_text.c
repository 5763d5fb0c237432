/* layer 3 (measure): rows as a table for people. */
#include "src/measure/columns_impl.h"
#include "src/taps/networks.h"

#include <stdlib.h>

/* In the order in which they are shown. */
static const struct text_column text_columns[] = {
    {"tap", "tap", 2, true, 0},
    {"connection", "conn", 0, true, 0},
    {"service", "type", 9, true, 0},
    {"ends", "source > destination", 0, true, 0},
    {"packets", "packets", 6, false, 0},
    {"bytes", "bytes", 12, false, 0},
    {"messages", "messages", 8, false, 0},
    {"goodput_bps", "goodput", 4, false, 0},
    {"lost_ns", "time lost", 3, false, 0},
    {"retransmitted_packets", "retrans", 1, false, 0},
    {"packet_seq_err", "NAK", 1, false, 0},
    {"rnr_nak_retry_err", "RNR", 1, false, 0},
    {"local_ack_timeout_err", "t/o", 1, false, 0},
    {"np_ecn_marked_roce_packets", "CE", 5, false, 0, true},
    {"np_cnp_sent", "CNP", 5, false, 0, true},
    {"rate_before_cnp_bps", "before CNP", 10, false, 0, true},
    {"rate_after_cnp_bps", "after CNP", 10, false, 0, true},
    {"message_latency_median_ns", "lat median", 11, false, 0},
    {"message_latency_p99_ns", "lat p99", 10, false, 0},
    {"message_latency_max_ns", "lat max", 13, false, 0},
    {"protocol", "protocol", 14, true, 0, true},
    {"commands", "commands", 15, false, 0, true},
    {"command_bytes", "command bytes", 16, false, 0, true},
};

bool rows_text_has(const char *name)
{
    return strcmp(name, "ends") == 0 || column_find(name);
}

const char *rows_text_name(const char *title)
{
    for (unsigned i = 0; i < ARRAY_LEN(text_columns); i++)
        if (strcmp(text_columns[i].title, title) == 0)
            return text_columns[i].name;
    return title;
}

void rows_text_titles(struct buf *b)
{
    for (unsigned i = 0; i < ARRAY_LEN(text_columns); i++)
        buf_printf(b, "%s%s", i ? ", " : "", text_columns[i].title);
}

/* `digits`: of the number of the queue pair, at least. */
static void put_end(struct buf *b, const struct conn_addr *a, uint64_t qpn, bool stream, int digits)
{
    conn_addr_put(b, a);
    if (qpn == METER_NONE)
        buf_puts(b, " ?");
    else if (stream)
        buf_printf(b, " port %llu", (unsigned long long)qpn);
    else
        buf_printf(b, " 0x%0*llx", digits, (unsigned long long)qpn);
}

static void put_ends(struct buf *b, const struct meter_row *r, int digits)
{
    put_end(b, &r->src, r->sqpn, r->stream, digits);
    buf_puts(b, " > ");
    put_end(b, &r->dst, r->dqpn, r->stream, digits);
    if (r->src.network)
        buf_puts(b, ", ");
    network_put(b, r->src.network);
}

void row_ends(struct buf *b, const struct meter_row *r)
{
    put_ends(b, r, 6);
}

void row_ends_short(struct buf *b, const struct meter_row *r)
{
    put_ends(b, r, 1);
}

void row_destination(struct buf *b, const struct meter_row *r)
{
    buf_puts(b, "> ");
    put_end(b, &r->dst, r->dqpn, r->stream, 6);
}

/* The name of a tap: the interface alone if there is one file only. */
static void put_tap(struct buf *b, const struct meter_row *r)
{
    if (r->files && r->files[1])
        conn_tap_put(b, r->files, row_tap(r));
    else
        buf_dec(b, r->iface);
}

void row_tap_after(struct buf *b, const struct meter_row *r)
{
    if (!r->iface && !(r->files && r->files[1]))
        return;
    buf_puts(b, "  tap ");
    put_tap(b, r);
}

/* True for bits per second. */
static bool is_rate(const struct column *c)
{
    return c->off == offsetof(struct meter_row, goodput) || c->off == offsetof(struct meter_row, rate_before_cnp) ||
           c->off == offsetof(struct meter_row, rate_after_cnp);
}

/* A value as people read it; `exact` in all its digits. False if it is not known. */
static bool put_value(struct buf *b, const struct meter_row *r, const struct column *c, bool exact)
{
    if (c->kind == COL_TAP) {
        put_tap(b, r);
        return true;
    }
    if (c->kind != COL_NS && !is_rate(c))
        return column_put(b, r, c, false);
    if (column_number(r, c) == METER_NONE)
        return false;
    if (c->kind != COL_NS)
        table_rate(b, column_number(r, c));
    else if (exact)
        buf_duration(b, (ns_t)column_number(r, c));
    else
        buf_rounded(b, (ns_t)column_number(r, c));
    return true;
}

/* The value of column `c`; NULL: the ends. */
static void put_cell(struct buf *b, const struct meter_row *r, const struct column *c)
{
    if (!c)
        row_ends(b, r);
    else if ((c->off == offsetof(struct meter_row, conn) && !r->conn) || !put_value(b, r, c, false))
        buf_char(b, '-');
}

void row_text_cell(struct buf *b, const struct meter_row *r, const struct column *c)
{
    put_cell(b, r, c);
}

/* --- Details ---------------------------------------------------------------------------------- */

/* True if some values of a column say more than others. */
static bool has_worth(const struct column *c)
{
    return c->kind != COL_ADDR && c->kind != COL_NETWORK && c->kind != COL_TIME && c->kind != COL_TAP;
}

/* True if a value is known and not 0. */
static bool worth_showing(const struct meter_row *r, const struct column *c)
{
    if (c->kind == COL_TEXT)
        return column_text(r, c) != NULL;
    return has_worth(c) && column_number(r, c) != METER_NONE && column_number(r, c) != 0;
}

static void print_details(struct buf *b, const struct meter_row *r)
{
    for (const struct column *c = row_columns; c->name; c++) {
        if (!worth_showing(r, c))
            continue;
        buf_printf(b, "    %-29s ", c->name);
        put_value(b, r, c, true);
        buf_char(b, '\n');
    }
}

void meter_migrations_put(struct buf *b, struct meter_row *const *rows, size_t n, unsigned width)
{
    for (size_t i = 0; i < n; i++) {
        const struct meter_row *r = rows[i];
        struct buf line = {0};
        if (!r->migrations)
            continue;
        buf_printf(&line, "Connection %llu: ", (unsigned long long)r->conn);
        conn_addr_put(&line, &r->src);
        buf_printf(&line, " migrated to another path in frame %llu: ", (unsigned long long)r->migrated_frame);
        conn_addr_put(&line, &r->migrated[0]);
        buf_puts(&line, " > ");
        conn_addr_put(&line, &r->migrated[1]);
        if (r->migrations > 1)
            buf_printf(&line, ", and %s later", count_str(r->migrations - 1, "time"));
        buf_char(&line, '.');
        buf_paragraph(b, buf_str(&line), 0, width ? width : UINT32_MAX);
        buf_free(&line);
    }
}

/* --- The table -------------------------------------------------------------------------------- */

/* A column that --columns names: one of the usual ones, or any other with its name as its title. */
static struct text_column named_column(const char *name)
{
    const struct column *c;

    for (unsigned i = 0; i < ARRAY_LEN(text_columns); i++)
        if (strcmp(text_columns[i].name, name) == 0) {
            struct text_column t = text_columns[i];
            t.rank = 0;
            return t;
        }
    c = column_find(name);
    return (struct text_column){.name = name,
                                .title = name,
                                .left = c->kind == COL_TEXT || c->kind == COL_ADDR || c->kind == COL_NETWORK ||
                                        c->kind == COL_TAP};
}

static bool one_tap(struct meter_row *const *rows, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (row_tap(rows[i]) != row_tap(rows[0]))
            return false;
    return true;
}

/* Whether no row has a value of a column of numbers or text. */
static bool is_empty(const struct column *c, struct meter_row *const *rows, size_t n)
{
    bool valued = c && has_worth(c);

    for (size_t i = 0; valued && i < n; i++)
        if (worth_showing(rows[i], c))
            return false;
    return valued;
}

/* The columns: those of --columns, whatever their width; else those that fit. */
static void choose_columns(struct table *t, struct text_column *named, const struct rows_opts *o,
                           struct meter_row *const *rows, size_t n)
{
    for (unsigned i = 0; o->columns && i < o->columns->n; i++) {
        named[i] = named_column(o->columns->names[i]);
        t->columns[t->n++] = &named[i];
    }
    for (unsigned i = o->columns || !one_tap(rows, n) ? 0 : 1; !o->columns && i < ARRAY_LEN(text_columns); i++)
        if (!text_columns[i].rare || !is_empty(column_find(text_columns[i].name), rows, n))
            t->columns[t->n++] = &text_columns[i];
}

static void measure_columns(struct table *t, struct meter_row *const *rows, size_t n)
{
    struct buf cell = {0};

    for (unsigned i = 0; i < t->n; i++) {
        const struct column *c = column_find(t->columns[i]->name);
        t->widths[i] = (unsigned)strlen(t->columns[i]->title);
        t->idle[i] = is_empty(c, rows, n);
        for (size_t k = 0; k < n; k++) {
            cell.len = 0;
            put_cell(&cell, rows[k], c);
            t->widths[i] = max_u32(t->widths[i], (uint32_t)cell.len);
        }
    }
    buf_free(&cell);
}

void rows_text(struct buf *b, const struct rows_opts *o, struct meter_row *const *rows, size_t n,
               const struct meter_totals *totals)
{
    struct text_column named[TABLE_COLUMNS];
    const struct column *columns[TABLE_COLUMNS];
    struct table t = {.n = 0};

    choose_columns(&t, named, o, rows, n);
    measure_columns(&t, rows, n);
    table_fit(&t, o->width);
    table_head(&t, b);
    for (unsigned k = 0; k < t.n; k++)
        columns[k] = column_find(t.columns[k]->name);
    for (size_t i = 0; i < n; i++) {
        for (unsigned k = 0; k < t.n; k++) {
            size_t at = b->len;
            put_cell(b, rows[i], columns[k]);
            table_cell(&t, k, b, at);
        }
        buf_char(b, '\n');
        if (o->details)
            print_details(b, rows[i]);
    }
    meter_migrations_put(b, rows, n, o->width);
    if (totals->malformed)
        buf_printf(b, "%s in no row: malformed, with a wrong ICRC or an undefined opcode\n",
                   count_str(totals->malformed, "packet"));
    if (totals->lost_rows)
        buf_printf(b, "%s left out: too many queue pairs\n", count_str(totals->lost_rows, "row or datagram"));
}
