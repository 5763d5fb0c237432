/* layer 3 (measure): work requests, written. */
#include "src/measure/wqe_print.h"

const char *wqe_status_str(const struct wqe *w)
{
    return w->status == WQE_STATUS_UNKNOWN ? "unknown" : wc_status_str((enum wc_status)w->status);
}

static bool has_imm(const struct wqe *w)
{
    return w->op == WQE_SEND_IMM || w->op == WQE_WRITE_IMM;
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

static void write_row(struct writer *to, const struct wqe *w, const struct meter_row *r)
{
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
    put_number(to, "latency_ns", (uint64_t)(w->done - w->start), w->done_frame && w->begun && w->done >= w->start);
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
    "rkey,immediate,invalidated_rkey,psn,first_frame,last_frame,done_frame,start,completed,latency_ns,packets,"
    "retransmitted_packets,packet_seq_err,rnr_nak_retry_err,status,reason\n";

/* --- For people ------------------------------------------------------------------------------- */

static void pad(struct buf *b, size_t at, unsigned width)
{
    size_t len = b->len - at;

    buf_fill(b, ' ', len < width ? width - len : 1);
}

static void put_frames(struct buf *b, const struct wqe *w)
{
    size_t at = b->len;

    buf_dec(b, w->first_frame);
    if (w->last_frame != w->first_frame)
        buf_printf(b, "-%llu", (unsigned long long)w->last_frame);
    if (w->done_frame)
        buf_printf(b, " (%llu)", (unsigned long long)w->done_frame);
    pad(b, at, 18);
}

static void put_remote(struct buf *b, const struct wqe *w)
{
    size_t at = b->len;

    if (w->have_remote)
        buf_printf(b, "0x%llx rkey 0x%x", (unsigned long long)w->va, w->rkey);
    if (has_imm(w))
        buf_printf(b, "%simm 0x%x", w->have_remote ? " " : "", w->imm);
    if (w->op == WQE_SEND_INV)
        buf_printf(b, "inv 0x%x", w->imm);
    pad(b, at, 32);
}

static void print_text(struct buf *b, const struct wqe *w, const struct meter_row *r, ns_t origin)
{
    size_t at = b->len;

    buf_dec_pad(b, w->id, 6);
    buf_printf(b, "%13.6f  ", (double)(w->start - origin) / 1e9);
    at = b->len;
    if (r->conn)
        buf_dec(b, r->conn);
    else
        buf_char(b, '-');
    pad(b, at, 5);
    at = b->len;
    conn_addr_put(b, &r->src);
    buf_puts(b, " > ");
    conn_addr_put(b, &r->dst);
    buf_printf(b, " 0x%06llx", (unsigned long long)r->dqpn);
    pad(b, at, 42);
    at = b->len;
    buf_puts(b, wqe_op_str((enum wqe_op)w->op));
    pad(b, at, 21);
    buf_dec_pad(b, w->bytes, 9);
    buf_puts(b, "  ");
    put_remote(b, w);
    put_frames(b, w);
    at = b->len;
    if (w->done_frame && w->begun)
        buf_duration(b, w->done - w->start);
    else
        buf_char(b, '-');
    pad(b, at, 14);
    buf_dec_pad(b, w->again, 5);
    buf_printf(b, "  %s%s%s", wqe_status_str(w), w->reason ? ": " : "", wqe_reason_str((enum wqe_reason)w->reason));
    row_tap_after(b, r);
    buf_char(b, '\n');
}

void wqe_print_head(struct buf *b, enum rows_format format)
{
    if (format == ROWS_CSV)
        buf_puts(b, csv_head);
    else if (format == ROWS_TEXT)
        buf_printf(b, "%6s%13s  %-5s%-42s%-21s%9s  %-32s%-18s%-14s%5s  %s\n", "number", "start", "conn",
                   "source > destination", "operation", "bytes", "remote address, key, immediate", "frames (done)",
                   "latency", "again", "status");
}

void wqe_print(struct buf *b, enum rows_format format, const struct wqe *w, const struct meter_row *row, ns_t origin)
{
    struct writer to = {.b = b, .json = format == ROWS_JSON};

    if (format == ROWS_TEXT) {
        print_text(b, w, row, origin);
        return;
    }
    write_row(&to, w, row);
    buf_char(b, to.json ? '}' : '\n');
}
