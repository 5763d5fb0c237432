/* layer 3b (tui): the rates of a connection as bars, with what went wrong below them. */
#include "src/tui/tui_impl.h"

#include <stdlib.h>

#define LABEL_COLUMNS 15 /* of "208.41 Mbit/s |" */
#define ROWS_AROUND   4  /* the head, events, the axis, and the row with the highest bar's label */
#define EIGHTHS       8  /* parts of a cell */

/* Parts of a cell from below, as UTF-8; without it half a cell at least is drawn. */
static const char *const blocks[EIGHTHS + 1] = {" ",
                                                "\xe2\x96\x81",
                                                "\xe2\x96\x82",
                                                "\xe2\x96\x83",
                                                "\xe2\x96\x84",
                                                "\xe2\x96\x85",
                                                "\xe2\x96\x86",
                                                "\xe2\x96\x87",
                                                "\xe2\x96\x88"};

/* What went wrong in a column, by a letter: the first one that did. */
static const struct {
    char letter;
    const char *name;
    size_t off; /* in struct meter_counts */
} events[] = {
    {'t', "ACK timeout", offsetof(struct meter_counts, timeouts)},
    {'N', "NAK", offsetof(struct meter_counts, seq_naks)},
    {'R', "RNR NAK", offsetof(struct meter_counts, rnr_naks)},
    {'=', "retransmission", offsetof(struct meter_counts, again)},
    {'C', "CNP", offsetof(struct meter_counts, cnps)},
    {'e', "CE mark", offsetof(struct meter_counts, ce)},
};

static char event_of(const struct meter_counts *c, bool used[])
{
    uint64_t v;

    for (unsigned i = 0; i < ARRAY_LEN(events); i++) {
        memcpy(&v, (const uint8_t *)c + events[i].off, sizeof v);
        if (!v)
            continue;
        used[i] = true;
        return events[i].letter;
    }
    return ' ';
}

/* Bits a second of a column. */
static uint64_t rate_in(const struct rates_columns *c, unsigned i)
{
    return (uint64_t)((double)c->of[i].bytes * 8e9 / (double)c->length);
}

/* Row `row` from below, from 0, of bars of `rows`. */
static void put_bars(const struct tui *t, const struct rates_columns *c, uint64_t highest, unsigned row, unsigned rows,
                     struct buf *b)
{
    for (unsigned i = 0; i < c->n; i++) {
        uint64_t parts = (uint64_t)((double)rate_in(c, i) * rows * EIGHTHS / (double)highest + 0.5);
        uint64_t here = parts > (uint64_t)row * EIGHTHS ? parts - (uint64_t)row * EIGHTHS : 0;
        if (!row && !parts && rate_in(c, i))
            here = 1;
        if (t->o.term.ascii)
            buf_char(b, here >= EIGHTHS / 2 ? '#' : here ? '_' : ' ');
        else
            buf_puts(b, blocks[here < EIGHTHS ? here : EIGHTHS]);
    }
}

static void put_label(struct buf *b, const char *text)
{
    buf_printf(b, "%*s ", LABEL_COLUMNS - 2, text);
    buf_char(b, '|');
}

/* Bars, the highest row first. */
static void put_graph(struct tui *t, const struct rates_columns *c, uint64_t highest, unsigned rows, struct lines *l)
{
    for (unsigned row = rows; row-- > 0;) {
        struct buf label = {0};
        if (row + 1 == rows || (rows > 4 && row + 1 == rows / 2))
            table_rate(&label, row + 1 == rows ? highest : highest * (row + 1) / rows);
        lines_item(l, l->text.len, NULL, LOOK_REQUEST, false);
        put_label(&l->text, buf_str(&label));
        put_bars(t, c, highest, row, rows, &l->text);
        buf_char(&l->text, '\n');
        buf_free(&label);
    }
}

/* What went wrong in each column, and what the letters mean. */
static void put_events(const struct rates_columns *c, struct lines *l)
{
    bool used[ARRAY_LEN(events)] = {false};
    unsigned n = 0;

    lines_item(l, l->text.len, NULL, LOOK_AGAIN, false);
    put_label(&l->text, "events");
    for (unsigned i = 0; i < c->n; i++)
        buf_char(&l->text, event_of(&c->of[i], used));
    buf_char(&l->text, '\n');
    lines_item(l, l->text.len, NULL, LOOK_NOTE, false);
    put_label(&l->text, "a column");
    buf_char(&l->text, ' ');
    buf_rounded(&l->text, c->length);
    for (unsigned i = 0; i < ARRAY_LEN(events); i++)
        if (used[i])
            buf_printf(&l->text, "%s%c %s", n++ ? ", " : "; ", events[i].letter, events[i].name);
    buf_char(&l->text, '\n');
}

static void put_head(struct tui *t, uint32_t conn, const struct rates_columns *c, struct buf *b)
{
    struct buf from = {0}, to = {0};

    buf_printf(b, "connection %u: ", conn);
    conn_addr_put(b, &c->src);
    buf_puts(b, " > ");
    conn_addr_put(b, &c->dst);
    print_stamp(&from, c->begin, t->first, TIME_RELATIVE, 6);
    print_stamp(&to, c->begin + c->n * c->length, t->first, TIME_RELATIVE, 6);
    buf_printf(b, "  %s s to %s s\n", buf_str(&from) + strspn(buf_str(&from), " "),
               buf_str(&to) + strspn(buf_str(&to), " "));
    buf_free(&from);
    buf_free(&to);
}

void graph_make(struct tui *t, uint32_t conn, unsigned columns, unsigned rows, struct lines *l)
{
    struct rates_columns c = {.n = 0};
    uint64_t highest = 1;

    if (conn && columns > LABEL_COLUMNS + 8 && rows > ROWS_AROUND)
        c = rates_columns_of(t, conn, columns - LABEL_COLUMNS - 1);
    if (!c.of) {
        if (none_so_far(t))
            put_so_far(t, &l->text, "");
        else
            buf_puts(&l->text, t->ended ? "No rates of a connection.\n" : "No rates of a connection so far.\n");
        return;
    }
    for (unsigned i = 0; i < c.n; i++)
        highest = rate_in(&c, i) > highest ? rate_in(&c, i) : highest;
    lines_item(l, 0, NULL, LOOK_KEY, false);
    put_head(t, conn, &c, &l->text);
    put_graph(t, &c, highest, rows - ROWS_AROUND + 1, l);
    put_events(&c, l);
    free(c.of);
}
