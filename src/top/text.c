/* layer 3b (top): what passes now, as a table. */
#include "src/measure/columns.h"
#include "src/top/top.h"

#define SHORT_BELOW 120 /* columns of a screen that has short numbers of queue pairs */
#define ENDS_LEAST  16  /* columns that the ends have at least */

/* In the order in which they are shown. */
static const struct text_column text_columns[] = {
    {"connection", "conn", 0, true, 0},
    {"service", "type", 10, true, 0},
    {"ends", "source > destination", 0, true, 0},
    {"payload_1s_bps", "1 s", 2, false, 0},
    {"payload_10s_bps", "10 s", 5, false, 0},
    {"payload_60s_bps", "60 s", 6, false, 0},
    {"retransmitted_packets", "retrans", 1, false, 0},
    {"packet_seq_err", "NAK", 3, false, 0},
    {"rnr_nak_retry_err", "RNR", 3, false, 0},
    {"np_cnp_sent", "CNP", 8, false, 0},
    {"message_latency_median_ns", "p50", 7, false, 0},
    {"message_latency_p99_ns", "p99", 4, false, 0},
    {"state", "state", 0, true, 9},
};

unsigned top_ring_use(const struct top *t)
{
    double used = t->ring ? (double)t->behind / 1e6 * (double)t->bytes_per_s / (double)t->ring : 0;

    return used < 1000 ? (unsigned)used : 1000;
}

/* --- The table -------------------------------------------------------------------------------- */

/* `width`: of a line; 0: any. */
static void put_cell(struct buf *b, const struct rate *r, const char *name, unsigned width)
{
    uint64_t v = rate_number(r, name);

    if (strcmp(name, "ends") == 0)
        (width && width < SHORT_BELOW ? row_ends_short : row_ends)(b, &r->row);
    else if (strcmp(name, "service") == 0)
        buf_puts(b, r->row.service);
    else if (strcmp(name, "state") == 0)
        buf_puts(b, rate_state_str((enum rate_state)r->state));
    else if (v == METER_NONE || (!v && strcmp(name, "connection") == 0))
        buf_char(b, '-');
    else if (strstr(name, "_bps"))
        table_rate(b, v);
    else if (strstr(name, "_ns"))
        buf_rounded(b, (ns_t)v);
    else
        buf_dec(b, v);
}

/* Whether a column counts what goes wrong: without any it gives way to the rates. */
static bool is_count(const char *name)
{
    return strstr(name, "_err") || strcmp(name, "retransmitted_packets") == 0 || strcmp(name, "np_cnp_sent") == 0;
}

static void measure(struct table *t, const struct top *top, unsigned width)
{
    struct buf cell = {0};

    for (unsigned i = 0; i < t->n; i++) {
        t->idle[i] = is_count(t->columns[i]->name);
        for (size_t k = 0; k < top->n; k++) {
            uint64_t v = t->idle[i] ? rate_number(top->rates[k], t->columns[i]->name) : 0;
            t->idle[i] &= !v || v == METER_NONE;
            cell.len = 0;
            put_cell(&cell, top->rates[k], t->columns[i]->name, width);
            t->widths[i] = max_u32(t->widths[i], (uint32_t)cell.len);
        }
    }
    buf_free(&cell);
}

/* If what is always shown does not fit, the ends have the room that the other columns leave. */
static void narrow(struct table *t, const struct top *top)
{
    unsigned sum = 0, ends = 0, last = 0; /* last: characters of the last column, the tap included */
    struct buf cell = {0};

    for (unsigned i = 0; i + 1 < t->n; i++) {
        sum += t->widths[i] + TABLE_GAP;
        ends = strcmp(t->columns[i]->name, "ends") == 0 ? i : ends;
    }
    for (size_t i = 0; i < top->n; i++) {
        cell.len = 0;
        put_cell(&cell, top->rates[i], t->columns[t->n - 1]->name, t->width);
        row_tap_after(&cell, &top->rates[i]->row);
        last = max_u32(last, (uint32_t)cell.len);
    }
    buf_free(&cell);
    sum += last;
    if (t->width && sum > t->width && ends)
        t->widths[ends] = max_u32(ENDS_LEAST, t->widths[ends] - min_u32(sum - t->width, t->widths[ends]));
}

const char *top_column(unsigned i)
{
    return i < ARRAY_LEN(text_columns) ? text_columns[i].name : NULL;
}

/* The titles; that of the column by which is sorted, in capital letters. */
static void put_titles(const struct table *t, struct buf *b, const char *sort)
{
    for (unsigned i = 0; i < t->n; i++) {
        size_t at = b->len;
        bool marked = sort && strcmp(sort, t->columns[i]->name) == 0;
        buf_puts(b, t->columns[i]->title);
        for (size_t k = at; marked && k < b->len; k++)
            if (b->p[k] >= 'a' && b->p[k] <= 'z')
                b->p[k] = (char)(b->p[k] - 'a' + 'A');
        table_cell(t, i, b, at);
    }
    buf_char(b, '\n');
}

static void put_row(const struct table *t, struct buf *b, const struct rate *r)
{
    size_t start = b->len;
    struct buf tap = {0};

    for (unsigned i = 0; i < t->n; i++) {
        size_t at = b->len;
        put_cell(b, r, t->columns[i]->name, t->width);
        if (b->len - at > t->widths[i]) { /* see narrow() */
            b->len = at + t->widths[i] - 2;
            buf_puts(b, "..");
        }
        table_cell(t, i, b, at);
    }
    row_tap_after(&tap, &r->row);
    table_cut(t, b, start, tap.len);
    buf_puts(b, buf_str(&tap));
    buf_char(b, '\n');
    buf_free(&tap);
}

/* --- Above the table -------------------------------------------------------------------------- */

static uint64_t payload_now(const struct top *t)
{
    uint64_t bps = 0;

    for (size_t i = 0; i < t->n; i++)
        bps += t->rates[i]->bps[0];
    return bps;
}

static void put_capture(struct buf *b, const struct top *t)
{
    unsigned use = top_ring_use(t);

    if (t->live) {
        buf_printf(b, "%s received, %llu dropped by the kernel, %llu by the interface; ring %u KiB, ",
                   count_str(t->received, "packet"), (unsigned long long)t->dropped, (unsigned long long)t->if_dropped,
                   t->ring >> 10);
        buf_printf(b, use ? "%u.%u %% in use\n" : "nothing in use\n", use / 10, use % 10);
    } else if (t->file_drops) {
        buf_printf(b, "%s dropped while this was captured\n", count_str(t->file_drops, "packet"));
    }
}

static void put_head(struct buf *b, const struct top *t, const struct top_look *look)
{
    buf_printable(b, t->source, strlen(t->source));
    buf_printf(b, ": %.3f s, %s, ", (double)t->since / 1e9, count_str(t->connections, "connection"));
    if (t->datagrams)
        buf_printf(b, "%s for datagrams, ", count_str(t->datagrams, "pair"));
    buf_printf(b, "%s, ", count_str(t->packets, "packet"));
    table_rate(b, payload_now(t));
    buf_puts(b, look->paused ? " (paused)\n" : "\n");
    put_capture(b, t);
    if (t->refused)
        buf_printf(b, "%s left out: there are too many\n", count_str(t->refused, "connection"));
}

/* Cut the lines from `from` on to `width` characters: one that is longer would be two on a terminal. */
static void cut_lines(struct buf *b, size_t from, unsigned width)
{
    size_t to = from, column = 0;

    for (size_t i = from; i < b->len; i++) {
        column = b->p[i] == '\n' ? 0 : column + 1;
        if (column <= width)
            b->p[to++] = b->p[i];
    }
    b->len = to;
}

/* What is above the table, in lines that are broken between words. */
static void put_above(struct buf *b, const struct top *t, const struct top_look *look)
{
    struct buf head = {0};

    put_head(&head, t, look);
    buf_str(&head); /* ends with a null character */
    if (!look->width)
        buf_mem(b, head.p, head.len);
    for (char *line = head.p, *end; look->width && line && *line; line = end + 1) {
        end = strchrnul(line, '\n');
        *end = '\0';
        buf_paragraph(b, line, 0, look->width);
    }
    b->err |= head.err;
    buf_free(&head);
}

static unsigned lines_in(const struct buf *b, size_t from)
{
    unsigned n = 0;

    for (size_t i = from; i < b->len; i++)
        n += b->p[i] == '\n';
    return n;
}

/* Keep the first `n` lines from `from` on. */
static void keep_lines(struct buf *b, size_t from, unsigned n)
{
    size_t to = from;

    while (n && to < b->len)
        n -= b->p[to++] == '\n';
    b->len = to;
}

void top_text(struct buf *b, const struct top *t, const struct top_look *look)
{
    size_t at = b->len, shown = t->n;
    struct table table;

    put_above(b, t, look);
    if (look->rows) /* on a small screen the table matters more */
        keep_lines(b, at, look->rows / 3);
    table_of(&table, text_columns, ARRAY_LEN(text_columns));
    measure(&table, t, look->width);
    table_fit(&table, look->width);
    narrow(&table, t);
    put_titles(&table, b, look->sort);
    if (look->rows) {
        unsigned above = lines_in(b, at);
        size_t room = look->rows > above ? look->rows - above : 0;
        shown = shown < room ? shown : room;
    }
    for (size_t i = 0; i < shown; i++)
        put_row(&table, b, t->rates[i]);
    if (look->width)
        cut_lines(b, at, look->width);
}
