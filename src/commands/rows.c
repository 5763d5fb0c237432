/* layer 3 (commands): commands of upper protocols as rows. */
#include "src/commands/rows.h"

#include "src/commands/waits.h"

/* --- For programs ----------------------------------------------------------------------------- */

/* A text that a function appends; "" for the row of which only the names are wanted. */
#define GIVE_PUT(t, name, put, ...)                                                                                    \
    do {                                                                                                               \
        struct buf text_ = {0};                                                                                        \
        if (c->proto)                                                                                                  \
            put(&text_, __VA_ARGS__);                                                                                  \
        cell_text(t, name, buf_str(&text_));                                                                           \
        buf_free(&text_);                                                                                              \
    } while (0)

/* Parts of the latency: until the data begin, of the data, and until the response. */
struct parts {
    bool data, response;
    ns_t before, during, after, all;
};

static struct parts parts_of(const struct ulp_command *c)
{
    struct parts p = {.data = c->data_first != 0, .response = c->response != 0};

    if (p.data) {
        p.before = c->headless ? -1 : c->data_start - c->start;
        p.during = c->data_end - c->data_start;
    }
    if (p.response) {
        p.after = p.data ? c->end - c->data_end : c->headless ? -1 : c->end - c->start;
        p.all = c->headless ? -1 : c->end - c->start;
    }
    return p;
}

static void give_parts(const struct cell_to *t, const struct ulp_command *c)
{
    const struct parts p = parts_of(c);
    const struct ulp_shares s = waits_shares(c);
    const struct waited w = waits_of(c);

    cell_number(t, "latency_ns", (uint64_t)p.all, p.response && p.all >= 0);
    cell_number(t, "before_data_ns", (uint64_t)p.before, p.data && p.before >= 0);
    cell_number(t, "data_ns", (uint64_t)p.during, p.data && p.during >= 0);
    cell_number(t, "response_ns", (uint64_t)p.after, p.response && p.after >= 0);
    cell_number(t, "server_ns", (uint64_t)s.server, s.known);
    cell_number(t, "client_ns", (uint64_t)s.client, s.known);
    cell_number(t, "network_ns", (uint64_t)s.network, s.known);
    cell_number(t, "transfer_ns", (uint64_t)s.transfer, s.known);
    cell_number(t, "network_is_at_most", s.bound, s.known);
    cell_number(t, "retransmission_ns", (uint64_t)(w.of[WAIT_LOSS] + w.of[WAIT_TIMEOUT]), s.known);
}

static void give_bytes(const struct cell_to *t, const struct ulp_command *c)
{
    static const struct {
        const char *moved, *asked;
    } names[ULP_DIRS] = {{"bytes_to_client", "asked_bytes_to_client"},
                         {"bytes_from_client", "asked_bytes_from_client"}};

    for (unsigned i = 0; i < ULP_DIRS; i++) {
        cell_number(t, names[i].moved, c->moved[i], ulp_moved_known(c, (enum ulp_dir)i));
        cell_number(t, names[i].asked, c->requested[i], ulp_asked_known(c, (enum ulp_dir)i));
    }
}

/* What of its memory was refused: null if nothing was. */
static void give_refusal(const struct cell_to *t, const struct ulp_command *c)
{
    struct buf text = {0};

    if (c->naks)
        ulp_refusal_text(&text, &c->refusal);
    cell_text(t, "refused_for", c->naks ? ulp_fault_str((enum ulp_fault)c->refusal.fault) : NULL);
    cell_text(t, "refused", c->naks ? buf_str(&text) : NULL);
    buf_free(&text);
}

void command_cells(const struct command_row *q, cell_take *take, void *user)
{
    const struct cell_to t = {take, user};
    const struct ulp_command *c = q->c;
    const struct meter_row *r = q->row;

    cell_number(&t, "number", c->number, true);
    cell_number(&t, "file", r->file, true);
    cell_number(&t, "interface", r->iface, true);
    cell_number(&t, "connection", r->conn, true);
    GIVE_PUT(&t, "client", conn_addr_put, &r->src);
    GIVE_PUT(&t, "server", conn_addr_put, &r->dst);
    cell_number(&t, "server_qpn", r->dqpn, true);
    cell_text(&t, "protocol", c->proto ? ulp_name(c->proto) : "");
    cell_text(&t, "known_by", c->proto ? ulp_how_str(ulp_command_how(c)) : "");
    GIVE_PUT(&t, "name", ulp_command_name, c);
    GIVE_PUT(&t, "command", ulp_command_text, c);
    GIVE_PUT(&t, "status", ulp_status_text, c);
    cell_number(&t, "failed", c->failed, c->ended == ULP_COMPLETED && !c->unread);
    give_bytes(&t, c);
    cell_number(&t, "command_frame", c->frame, true);
    cell_number(&t, "data_first_frame", c->data_first, c->data_first != 0);
    cell_number(&t, "data_last_frame", c->data_last, c->data_last != 0);
    cell_number(&t, "response_frame", c->response, c->response != 0);
    cell_time(&t, "start_ns", c->start, true);
    give_parts(&t, c);
    cell_number(&t, "packets", c->packets, true);
    cell_number(&t, "retransmitted_packets", c->again, true);
    cell_number(&t, "remote_access_errors", c->naks, true);
    cell_number(&t, "refused_frame", c->refusal.frame, c->naks != 0);
    give_refusal(&t, c);
}

void command_columns(cell_take *take, void *user)
{
    static const struct ulp_command none;
    static const struct meter_row no_row;

    command_cells(&(struct command_row){.c = &none, .row = &no_row}, take, user);
}

/* The protocol's own values: members of an object. */
static void write_value(void *user, const struct ulp_value *v)
{
    const struct cell c = {.name = v->name,
                           .kind = v->text ? CELL_TEXT : CELL_NUMBER,
                           .known = v->known,
                           .number = v->number,
                           .text = v->text ? v->text : ""};

    cell_row_json(user, &c);
}

static void print_json(struct buf *b, const struct command_row *q)
{
    struct cell_row to = {.b = b}, values = {.b = b};

    command_cells(q, cell_row_json, &to);
    buf_puts(b, ",\"values\":");
    ulp_command_values(q->c, write_value, &values);
    buf_puts(b, values.n ? "}}" : "{}}");
}

/* --- For people ------------------------------------------------------------------------------- */

static void put_number(struct buf *b, const struct command_row *q)
{
    buf_dec(b, q->c->number);
}

static void put_start(struct buf *b, const struct command_row *q)
{
    buf_seconds(b, q->c->start - q->origin);
}

static void put_connection(struct buf *b, const struct command_row *q)
{
    buf_dec(b, q->row->conn);
}

static void put_command(struct buf *b, const struct command_row *q)
{
    ulp_command_text(b, q->c);
}

/* "4096", or "1024 of 4096" if they were not all seen; "1024 of ?" if the command was cut before it says how many, "?"
 * if no data were seen, either. */
static void put_bytes(struct buf *b, const struct command_row *q)
{
    uint64_t moved = q->c->moved[ULP_TO_CLIENT] + q->c->moved[ULP_FROM_CLIENT],
             requested = q->c->requested[ULP_TO_CLIENT] + q->c->requested[ULP_FROM_CLIENT];
    bool asked = ulp_asked_known(q->c, ULP_TO_CLIENT) && ulp_asked_known(q->c, ULP_FROM_CLIENT);

    if (asked || moved)
        buf_dec(b, moved);
    if (!asked)
        buf_puts(b, moved ? " of ?" : "?");
    else if (moved != requested && requested)
        buf_printf(b, " of %llu", (unsigned long long)requested);
}

void command_frames_put(struct buf *b, const struct ulp_command *c)
{
    buf_dec(b, c->frame);
    if (c->data_first) {
        buf_printf(b, " %llu", (unsigned long long)c->data_first);
        if (c->data_last != c->data_first)
            buf_printf(b, "-%llu", (unsigned long long)c->data_last);
    }
    if (c->response)
        buf_printf(b, " %llu", (unsigned long long)c->response);
}

static void put_frames(struct buf *b, const struct command_row *q)
{
    command_frames_put(b, q->c);
}

static void put_part(struct buf *b, bool known, ns_t t)
{
    if (known && t >= 0)
        buf_rounded(b, t);
    else
        buf_char(b, '-');
}

static void put_latency(struct buf *b, const struct command_row *q)
{
    const struct parts p = parts_of(q->c);

    put_part(b, p.response, p.all);
}

static void put_before(struct buf *b, const struct command_row *q)
{
    const struct parts p = parts_of(q->c);

    put_part(b, p.data, p.before);
}

static void put_data(struct buf *b, const struct command_row *q)
{
    const struct parts p = parts_of(q->c);

    put_part(b, p.data, p.during);
}

static void put_response(struct buf *b, const struct command_row *q)
{
    const struct parts p = parts_of(q->c);

    put_part(b, p.response, p.after);
}

static void put_again(struct buf *b, const struct command_row *q)
{
    buf_dec(b, q->c->again);
}

/* How it ended, and what of it the responder of the transport refused. */
static void put_status(struct buf *b, const struct command_row *q)
{
    ulp_status_text(b, q->c);
    if (q->c->naks)
        buf_printf(b, "; refused in frame %llu: %s", (unsigned long long)q->c->refusal.frame,
                   ulp_fault_words((enum ulp_fault)q->c->refusal.fault));
}

/* `bound`: how it may differ where the way was seen once only. */
static void put_share(struct buf *b, const struct ulp_shares *s, const char *bound, ns_t share)
{
    if (s->known && s->bound)
        buf_puts(b, bound);
    put_part(b, s->known, share);
}

static void put_server(struct buf *b, const struct command_row *q)
{
    const struct ulp_shares s = waits_shares(q->c);

    put_share(b, &s, ">=", s.server);
}

static void put_network(struct buf *b, const struct command_row *q)
{
    const struct ulp_shares s = waits_shares(q->c);

    put_share(b, &s, "<=", s.network);
}

#define COLUMNS 14

static const struct text_column text_columns[COLUMNS] = {
    {"number", "number", 0, false, 6},
    {"start", "start", 6, false, 12},
    {"connection", "conn", 3, true, 4},
    {"bytes", "bytes", 2, false, 9},
    {"frames", "frames", 7, true, 14},
    {"latency_ns", "latency", 1, false, 8},
    {"before_data_ns", "to data", 9, false, 8},
    {"data_ns", "data", 8, false, 8},
    {"response_ns", "to response", 10, false, 8},
    {"server_ns", "server", 4, false, 8},
    {"network_ns", "network", 4, false, 8},
    {"retransmitted_packets", "retrans", 5, false, 7},
    {"status", "status", 0, true, 30},
    {"command", "command", 0, true, 40},
};

static void (*const put_cell[COLUMNS])(struct buf *b, const struct command_row *q) = {
    put_number, put_start,    put_connection, put_bytes,   put_frames, put_latency, put_before,
    put_data,   put_response, put_server,     put_network, put_again,  put_status,  put_command,
};

void command_table(struct table *t, unsigned width)
{
    table_of(t, text_columns, COLUMNS);
    table_fit(t, width);
}

static void put_column(struct buf *b, const void *row, unsigned column)
{
    put_cell[column](b, row);
}

static void print_text(struct buf *b, const struct table *t, const struct command_row *q)
{
    struct buf tap = {0};

    row_tap_after(&tap, q->row);
    table_row(t, b, text_columns, put_column, q, &tap);
    buf_free(&tap);
}

void command_print_head(struct buf *b, enum rows_format format, const struct table *t)
{
    static const struct ulp_command none;
    static const struct meter_row no_row;

    if (format == ROWS_TEXT) {
        table_head(t, b);
    } else if (format == ROWS_CSV) {
        command_cells(&(struct command_row){.c = &none, .row = &no_row}, cell_row_name, &(struct cell_row){.b = b});
        buf_char(b, '\n');
    }
}

void command_print(struct buf *b, enum rows_format format, const struct table *t, const struct command_row *q)
{
    struct cell_row to = {.b = b};

    if (format == ROWS_TEXT) {
        print_text(b, t, q);
    } else if (format == ROWS_JSON) {
        print_json(b, q);
    } else {
        command_cells(q, cell_row_csv, &to);
        buf_char(b, '\n');
    }
}
