/* layer 3 (measure): what each interval added to the rows. */
#include "src/measure/columns_impl.h"

static const struct {
    const char *name;
    size_t off;
} counts[] = {
    {"packets", offsetof(struct meter_counts, packets)},
    {"bytes", offsetof(struct meter_counts, bytes)},
    {"payload_bytes", offsetof(struct meter_counts, payload)},
    {"retransmitted_packets", offsetof(struct meter_counts, again)},
    {"packet_seq_err", offsetof(struct meter_counts, seq_naks)},
    {"rnr_nak_retry_err", offsetof(struct meter_counts, rnr_naks)},
    {"local_ack_timeout_err", offsetof(struct meter_counts, timeouts)},
    {"np_ecn_marked_roce_packets", offsetof(struct meter_counts, ce)},
    {"fecn", offsetof(struct meter_counts, fecn)},
    {"becn", offsetof(struct meter_counts, becn)},
    {"np_cnp_sent", offsetof(struct meter_counts, cnps)},
};

static const char *const tick_ids[] = {"file",       "interface",   "connection",      "source",
                                       "source_qpn", "destination", "destination_qpn", "service"};

const char *count_name(unsigned i)
{
    return i < ARRAY_LEN(counts) ? counts[i].name : NULL;
}

uint64_t count_value(const struct meter_counts *c, unsigned i)
{
    uint64_t v;

    memcpy(&v, (const uint8_t *)c + counts[i].off, sizeof v);
    return v;
}

static const struct text_column text_columns[] = {
    {"since", "seconds", 0, false, 12},
    {"connection", "conn", 0, true, 0},
    {"service", "type", 9, true, 0},
    {"ends", "source > destination", 0, true, 45},
    {"packets", "packets", 1, false, 9},
    {"bytes", "bytes", 2, false, 11},
    {"payload_bytes", "payload", 10, false, 11},
    {"retransmitted_packets", "retrans", 2, false, 0},
    {"packet_seq_err", "NAK", 5, false, 4},
    {"rnr_nak_retry_err", "RNR", 5, false, 4},
    {"local_ack_timeout_err", "t/o", 4, false, 4},
    {"np_ecn_marked_roce_packets", "CE", 6, false, 4},
    {"fecn", "FECN", 8, false, 4},
    {"becn", "BECN", 8, false, 4},
    {"np_cnp_sent", "CNP", 3, false, 4},
    {"destination", "destination", 0, true, 26},
};
#define ENDS        3 /* the place of "ends" */
#define FIRST_COUNT 4 /* the columns before name the row */
#define TEXT_USUAL  (ARRAY_LEN(text_columns) - 1)
#define DESTINATION TEXT_USUAL /* in place of the ends if they must be brief */

void ticks_begin(struct ticks *t)
{
    if (t->format == ROWS_JSON) {
        buf_puts(t->b, "{\"intervals\":[");
    } else if (t->format == ROWS_CSV) {
        buf_puts(t->b, "start_ns,since_ns");
        for (unsigned i = 0; i < ARRAY_LEN(tick_ids); i++)
            buf_printf(t->b, ",%s", tick_ids[i]);
        for (unsigned i = 0; i < ARRAY_LEN(counts); i++)
            buf_printf(t->b, ",%s", counts[i].name);
        buf_char(t->b, '\n');
    } else {
        table_of(&t->table, text_columns, TEXT_USUAL);
        for (unsigned i = FIRST_COUNT; t->sums && i < TEXT_USUAL; i++)
            t->table.idle[i] = !count_value(t->sums, i - FIRST_COUNT);
        if (t->brief) {
            t->table.columns[ENDS] = &text_columns[DESTINATION];
            t->table.widths[ENDS] = text_columns[DESTINATION].width;
        }
        table_fit(&t->table, t->width);
        table_head(&t->table, t->b);
    }
}

/* Column `i` of text_columns. */
static void put_cell(struct buf *b, unsigned i, const struct meter_row *r, ns_t since, const struct meter_counts *c)
{
    if (i == 0)
        buf_seconds(b, since);
    else if (i == 1 && r->conn)
        buf_dec(b, r->conn);
    else if (i == 1)
        buf_char(b, '-');
    else if (i == 2)
        buf_puts(b, r->service);
    else if (i == ENDS)
        row_ends(b, r);
    else if (i == DESTINATION)
        row_destination(b, r);
    else
        buf_dec(b, count_value(c, i - FIRST_COUNT));
}

static void tick_text(struct ticks *t, const struct meter_row *r, ns_t since, const struct meter_counts *c)
{
    for (unsigned i = 0; i < t->table.n; i++) {
        size_t at = t->b->len;
        put_cell(t->b, (unsigned)(t->table.columns[i] - text_columns), r, since, c);
        table_cell(&t->table, i, t->b, at);
    }
    row_tap_after(t->b, r);
    buf_char(t->b, '\n');
}

void ticks_add(struct ticks *t, const struct meter_row *r, ns_t start, ns_t since, const struct meter_counts *c)
{
    bool json = t->format == ROWS_JSON;

    t->n++;
    if (t->format == ROWS_TEXT) {
        tick_text(t, r, since, c);
        return;
    }
    if (json)
        buf_puts(t->b, t->n > 1 ? ",\n{\"start_ns\":" : "\n{\"start_ns\":");
    buf_printf(t->b, "%lld%s%lld", (long long)start, json ? ",\"since_ns\":" : ",", (long long)since);
    for (unsigned i = 0; i < ARRAY_LEN(tick_ids); i++) {
        if (json)
            buf_printf(t->b, ",\"%s\":", tick_ids[i]);
        else
            buf_char(t->b, ',');
        column_put(t->b, r, column_find(tick_ids[i]), json);
    }
    for (unsigned i = 0; i < ARRAY_LEN(counts); i++)
        buf_printf(t->b, json ? ",\"%s\":%llu" : ",%s%llu", json ? counts[i].name : "",
                   (unsigned long long)count_value(c, i));
    buf_puts(t->b, json ? "}" : "\n");
}

void ticks_end(struct ticks *t, const struct meter_totals *totals)
{
    if (t->format != ROWS_JSON)
        return;
    buf_puts(t->b, "\n],");
    totals_json(t->b, totals);
}
