/* layer 3 (measure): work requests, written. */
#include "src/measure/wqe_print.h"

#include "dissect/ib/opcode.h"
#include "tokens.h"

const char *wqe_status_str(const struct wqe *w)
{
    return w->status == WQE_STATUS_UNKNOWN ? "unknown" : wc_status_str((enum wc_status)w->status);
}

static const char *op_str(const struct wqe *w)
{
    return w->name ? w->name : wqe_op_str((enum wqe_op)w->op);
}

static bool has_imm(const struct wqe *w)
{
    return w->op == WQE_SEND_IMM || w->op == WQE_WRITE_IMM;
}

static bool has_latency(const struct wqe *w)
{
    return w->done_frame && w->begun && w->done >= w->start;
}

/* --- For programs ----------------------------------------------------------------------------- */

static void give_addr(const struct cell_to *t, const char *name, const struct conn_addr *a)
{
    struct buf text = {0};

    conn_addr_put(&text, a);
    cell_text(t, name, buf_str(&text));
    buf_free(&text);
}

static void give_tap(const struct cell_to *t, const struct meter_row *r)
{
    struct buf name = {0};

    conn_tap_put(&name, r->files, (uint32_t)(r->file << 16 | r->iface));
    cell_text(t, "tap", buf_str(&name));
    buf_free(&name);
}

void wqe_cells(const struct wqe_row *q, cell_take *take, void *user)
{
    const struct cell_to t = {take, user};
    const struct wqe *w = q->w;
    const struct meter_row *r = q->row;

    cell_number(&t, "number", w->id, true);
    cell_number(&t, "file", r->file, true);
    cell_number(&t, "interface", r->iface, true);
    give_tap(&t, r);
    cell_number(&t, "connection", r->conn, true);
    give_addr(&t, "source", &r->src);
    cell_number(&t, "source_qpn", r->sqpn, r->sqpn != METER_NONE);
    give_addr(&t, "destination", &r->dst);
    cell_number(&t, "destination_qpn", r->dqpn, true);
    cell_text(&t, "service", r->stream ? r->service : service_str((enum service)w->service));
    cell_text(&t, "operation", op_str(w));
    cell_number(&t, "bytes", w->bytes, true);
    cell_number(&t, "remote_va", w->va, w->have_remote);
    cell_number(&t, "rkey", w->rkey, w->have_remote);
    cell_number(&t, "immediate", w->imm, has_imm(w));
    cell_number(&t, "invalidated_rkey", w->imm, w->op == WQE_SEND_INV);
    cell_number(&t, "psn", w->psn, !r->stream);
    cell_number(&t, "first_frame", w->first_frame, true);
    cell_number(&t, "last_frame", w->last_frame, true);
    cell_number(&t, "done_frame", w->done_frame, w->done_frame != 0);
    cell_time(&t, "start_ns", w->start, true);
    cell_time(&t, "completed_ns", w->done, w->done_frame != 0);
    cell_number(&t, "latency_ns", (uint64_t)(w->done - w->start), has_latency(w));
    cell_number(&t, "lost_ns", (uint64_t)q->lost, q->accounted);
    cell_number(&t, "packets", w->packets, true);
    cell_number(&t, "retransmitted_packets", w->again, true);
    cell_number(&t, "packet_seq_err", w->seq_naks, true);
    cell_number(&t, "rnr_nak_retry_err", w->rnr_naks, true);
    cell_text(&t, "status", wqe_status_str(w));
    cell_text(&t, "reason", wqe_reason_str((enum wqe_reason)w->reason));
}

void wqe_columns(cell_take *take, void *user)
{
    static const struct wqe none;
    static const struct meter_row no_row;

    wqe_cells(&(struct wqe_row){.w = &none, .row = &no_row}, take, user);
}

/* --- For people ------------------------------------------------------------------------------- */

static void put_id(struct buf *b, const struct wqe_row *q)
{
    buf_dec(b, q->w->id);
}

static void put_start(struct buf *b, const struct wqe_row *q)
{
    buf_seconds(b, q->w->start - q->origin);
}

static void put_connection(struct buf *b, const struct wqe_row *q)
{
    if (q->row->conn)
        buf_dec(b, q->row->conn);
    else
        buf_char(b, '-');
}

static void put_ends(struct buf *b, const struct wqe_row *q)
{
    conn_addr_put(b, &q->row->src);
    buf_puts(b, " > ");
    conn_addr_put(b, &q->row->dst);
    buf_printf(b, q->row->stream ? " port %llu" : " 0x%06llx", (unsigned long long)q->row->dqpn);
}

static void put_operation(struct buf *b, const struct wqe_row *q)
{
    buf_puts(b, op_str(q->w));
}

static void put_bytes(struct buf *b, const struct wqe_row *q)
{
    buf_dec(b, q->w->bytes);
}

static void put_remote(struct buf *b, const struct wqe_row *q)
{
    const struct wqe *w = q->w;

    if (w->have_remote)
        buf_printf(b, "0x%llx rkey 0x%x", (unsigned long long)w->va, w->rkey);
    if (has_imm(w))
        buf_printf(b, "%simm 0x%x", w->have_remote ? " " : "", w->imm);
    if (w->op == WQE_SEND_INV)
        buf_printf(b, "inv 0x%x", w->imm);
}

static void put_frames(struct buf *b, const struct wqe_row *q)
{
    const struct wqe *w = q->w;

    buf_dec(b, w->first_frame);
    if (w->last_frame != w->first_frame)
        buf_printf(b, "-%llu", (unsigned long long)w->last_frame);
    if (w->done_frame)
        buf_printf(b, " (%llu)", (unsigned long long)w->done_frame);
}

static void put_if_known(struct buf *b, ns_t t, bool known)
{
    if (known)
        buf_rounded(b, t);
    else
        buf_char(b, '-');
}

static void put_latency(struct buf *b, const struct wqe_row *q)
{
    put_if_known(b, q->w->done - q->w->start, has_latency(q->w));
}

static void put_lost(struct buf *b, const struct wqe_row *q)
{
    put_if_known(b, q->lost, q->accounted);
}

static void put_again(struct buf *b, const struct wqe_row *q)
{
    buf_dec(b, q->w->again);
}

static void put_status(struct buf *b, const struct wqe_row *q)
{
    const struct wqe *w = q->w;

    buf_printf(b, "%s%s%s", wqe_status_str(w), w->reason ? ": " : "", wqe_reason_str((enum wqe_reason)w->reason));
}

#define COLUMNS 12

/* In the order in which they are shown. Rows are written one by one, so widths are those of common values. */
static const struct text_column text_columns[COLUMNS] = {
    {"number", "number", 0, false, 6},
    {"start", "start", 5, false, 12},
    {"connection", "conn", 2, true, 4},
    {"ends", "source > destination", 7, true, 40},
    {"operation", "operation", 0, true, 13},
    {"bytes", "bytes", 4, false, 9},
    {"remote", "remote address, key, immediate", 9, true, 30},
    {"frames", "frames (done)", 8, true, 16},
    {"latency_ns", "latency", 1, false, 8},
    {"lost_ns", "time lost", 3, false, 9},
    {"retransmitted_packets", "retrans", 6, false, 7},
    {"status", "status", 0, true, 12},
};

static void (*const put_cell[COLUMNS])(struct buf *b, const struct wqe_row *q) = {
    put_id,     put_start,  put_connection, put_ends, put_operation, put_bytes,
    put_remote, put_frames, put_latency,    put_lost, put_again,     put_status,
};

static const struct text_column *column_named(const char *name)
{
    for (unsigned i = 0; i < COLUMNS; i++)
        if (strcmp(text_columns[i].name, name) == 0)
            return &text_columns[i];
    return NULL;
}

const char *wqe_text_name(const char *title)
{
    for (unsigned i = 0; i < COLUMNS; i++)
        if (strcmp(text_columns[i].title, title) == 0)
            return text_columns[i].name;
    return title;
}

const char *wqe_text_sorts_by(const char *name)
{
    static const char *const others[][2] = {
        {"start", "start_ns"}, {"ends", "source"}, {"remote", "remote_va"}, {"frames", "first_frame"}};

    name = wqe_text_name(name);
    for (unsigned i = 0; i < ARRAY_LEN(others); i++)
        if (strcmp(others[i][0], name) == 0)
            return others[i][1];
    return name;
}

const char *wqe_text_nearest(const char *name)
{
    struct text_nearest near = text_nearest_to(name, strlen(name));

    for (unsigned i = 0; i < COLUMNS; i++)
        text_nearest_try(&near, text_columns[i].name);
    return near.name;
}

bool wqe_text_has(const char *name)
{
    return column_named(name) != NULL;
}

void wqe_text_names(struct buf *b)
{
    for (unsigned i = 0; i < COLUMNS; i++)
        buf_printf(b, "%s%s", i ? ", " : "", text_columns[i].name);
}

void wqe_table(struct table *t, const struct column_names *named, unsigned width)
{
    table_of(t, text_columns, COLUMNS);
    if (!named) {
        table_fit(t, width);
        return;
    }
    for (t->n = t->width = 0; t->n < named->n; t->n++) {
        const struct text_column *c = column_named(named->names[t->n]);
        t->columns[t->n] = c;
        t->widths[t->n] = c->width;
    }
}

static void put_column(struct buf *b, const void *row, unsigned column)
{
    put_cell[column](b, row);
}

static void print_text(struct buf *b, const struct table *t, const struct wqe_row *q)
{
    struct buf tap = {0};

    row_tap_after(&tap, q->row);
    table_row(t, b, text_columns, put_column, q, &tap);
    buf_free(&tap);
}

void wqe_print_head(struct buf *b, enum rows_format format, const struct table *t)
{
    if (format == ROWS_CSV) {
        wqe_columns(cell_row_name, &(struct cell_row){.b = b});
        buf_char(b, '\n');
    } else if (format == ROWS_TEXT) {
        table_head(t, b);
    }
}

void wqe_print(struct buf *b, enum rows_format format, const struct table *t, const struct wqe_row *q)
{
    struct cell_row to = {.b = b};

    if (format == ROWS_TEXT) {
        print_text(b, t, q);
        return;
    }
    wqe_cells(q, format == ROWS_JSON ? cell_row_json : cell_row_csv, &to);
    buf_char(b, format == ROWS_JSON ? '}' : '\n');
}
