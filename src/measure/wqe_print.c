/* layer 3 (measure): work requests, written. */
#include "src/measure/wqe_print.h"

#include "dissect/ib/opcode.h"

const char *wqe_status_str(const struct wqe *w)
{
    return w->status == WQE_STATUS_UNKNOWN ? "unknown" : wc_status_str((enum wc_status)w->status);
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

/* A row is written value by value, with keys in JSON and without in CSV. */
struct writer {
    struct buf *b;
    bool json;
    unsigned n;
};

static void key(struct writer *w, const char *name)
{
    if (w->json)
        buf_printf(w->b, "%s\"%s\":", w->n ? "," : "{", name);
    else if (w->n)
        buf_char(w->b, ',');
    w->n++;
}

static void put_number(struct writer *w, const char *name, uint64_t v, bool known)
{
    key(w, name);
    if (known)
        buf_dec(w->b, v);
    else if (w->json)
        buf_puts(w->b, "null");
}

static void put_text(struct writer *w, const char *name, const char *s)
{
    key(w, name);
    if (w->json)
        buf_json(w->b, s, strlen(s));
    else
        buf_csv(w->b, s);
}

static void put_addr(struct writer *w, const char *name, const struct conn_addr *a)
{
    key(w, name);
    if (w->json)
        buf_char(w->b, '"');
    conn_addr_put(w->b, a);
    if (w->json)
        buf_char(w->b, '"');
}

static void put_time(struct writer *w, const char *name, ns_t t, bool known)
{
    key(w, name);
    if (known)
        buf_time(w->b, t);
    else if (w->json)
        buf_puts(w->b, "null");
}

static void put_tap(struct writer *w, const struct meter_row *r)
{
    struct buf name = {0};

    conn_tap_put(&name, r->files, (uint32_t)(r->file << 16 | r->iface));
    put_text(w, "tap", buf_str(&name));
    buf_free(&name);
}

static void write_row(struct writer *to, const struct wqe_row *q)
{
    const struct wqe *w = q->w;
    const struct meter_row *r = q->row;

    put_number(to, "number", w->id, true);
    put_number(to, "file", r->file, true);
    put_number(to, "interface", r->iface, true);
    put_tap(to, r);
    put_number(to, "connection", r->conn, true);
    put_addr(to, "source", &r->src);
    put_number(to, "source_qpn", r->sqpn, r->sqpn != METER_NONE);
    put_addr(to, "destination", &r->dst);
    put_number(to, "destination_qpn", r->dqpn, true);
    put_text(to, "service", service_str((enum service)w->service));
    put_text(to, "operation", wqe_op_str((enum wqe_op)w->op));
    put_number(to, "bytes", w->bytes, true);
    put_number(to, "remote_va", w->va, w->have_remote);
    put_number(to, "rkey", w->rkey, w->have_remote);
    put_number(to, "immediate", w->imm, has_imm(w));
    put_number(to, "invalidated_rkey", w->imm, w->op == WQE_SEND_INV);
    put_number(to, "psn", w->psn, true);
    put_number(to, "first_frame", w->first_frame, true);
    put_number(to, "last_frame", w->last_frame, true);
    put_number(to, "done_frame", w->done_frame, w->done_frame != 0);
    put_time(to, "start", w->start, true);
    put_time(to, "completed", w->done, w->done_frame != 0);
    put_number(to, "latency_ns", (uint64_t)(w->done - w->start), has_latency(w));
    put_number(to, "lost_ns", (uint64_t)q->lost, q->accounted);
    put_number(to, "packets", w->packets, true);
    put_number(to, "retransmitted_packets", w->again, true);
    put_number(to, "packet_seq_err", w->seq_naks, true);
    put_number(to, "rnr_nak_retry_err", w->rnr_naks, true);
    put_text(to, "status", wqe_status_str(w));
    put_text(to, "reason", wqe_reason_str((enum wqe_reason)w->reason));
}

static const char csv_head[] =
    "number,file,interface,tap,connection,source,source_qpn,destination,destination_qpn,service,operation,bytes,remote_"
    "va,"
    "rkey,immediate,invalidated_rkey,psn,first_frame,last_frame,done_frame,start,completed,latency_ns,lost_ns,packets,"
    "retransmitted_packets,packet_seq_err,rnr_nak_retry_err,status,reason\n";

/* --- For people ------------------------------------------------------------------------------- */

static void put_id(struct buf *b, const struct wqe_row *q)
{
    buf_dec(b, q->w->id);
}

static void put_start(struct buf *b, const struct wqe_row *q)
{
    buf_printf(b, "%.6f", (double)(q->w->start - q->origin) / 1e9);
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
    buf_printf(b, " 0x%06llx", (unsigned long long)q->row->dqpn);
}

static void put_operation(struct buf *b, const struct wqe_row *q)
{
    buf_puts(b, wqe_op_str((enum wqe_op)q->w->op));
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

static void print_text(struct buf *b, const struct table *t, const struct wqe_row *q)
{
    size_t start = b->len;
    struct buf tap = {0};

    for (unsigned i = 0; i < t->n; i++) {
        size_t at = b->len;
        put_cell[t->columns[i] - text_columns](b, q);
        table_cell(t, i, b, at);
    }
    row_tap_after(&tap, q->row);
    table_cut(t, b, start, tap.len);
    buf_puts(b, buf_str(&tap));
    buf_char(b, '\n');
    buf_free(&tap);
}

void wqe_print_head(struct buf *b, enum rows_format format, const struct table *t)
{
    if (format == ROWS_CSV)
        buf_puts(b, csv_head);
    else if (format == ROWS_TEXT)
        table_head(t, b);
}

void wqe_print(struct buf *b, enum rows_format format, const struct table *t, const struct wqe_row *q)
{
    struct writer to = {.b = b, .json = format == ROWS_JSON};

    if (format == ROWS_TEXT) {
        print_text(b, t, q);
        return;
    }
    write_row(&to, q);
    buf_char(b, to.json ? '}' : '\n');
}
