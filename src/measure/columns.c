/* layer 3 (measure): the columns of measurements and how they are written. */
#include "src/measure/columns.h"

#include <stdlib.h>

#define N(member, name, help)                                                                                          \
    {                                                                                                                  \
        name, COL_NUMBER, offsetof(struct meter_row, member), help                                                     \
    }
#define T(member, name, help)                                                                                          \
    {                                                                                                                  \
        name, COL_NS, offsetof(struct meter_row, member), help                                                         \
    }
#define COLUMN(kind, member, name, help)                                                                               \
    {                                                                                                                  \
        name, kind, offsetof(struct meter_row, member), help                                                           \
    }
#define TIMES(member, name, what)                                                                                      \
    N(member.n, name "_count", what ": number of values"), T(member.min, name "_min_ns", what ": shortest"),           \
        T(member.median, name "_median_ns", what ": median"), T(member.p99, name "_p99_ns", what ": 99th percentile"), \
        T(member.max, name "_max_ns", what ": longest")

const struct column row_columns[] = {
    N(file, "file", "number of the capture file, from 0"),
    N(iface, "interface", "interface in the file, from 0: a tap of its own"),
    COLUMN(COL_TAP, files, "tap", "both: name of the file and number of the interface"),
    N(conn, "connection", "number of the connection, as decode and check give it; 0 for datagrams"),
    COLUMN(COL_ADDR, src, "source", "address of the sender"),
    N(sqpn, "source_qpn", "its queue pair"),
    COLUMN(COL_ADDR, dst, "destination", "address of the receiver"),
    N(dqpn, "destination_qpn", "its queue pair"),
    COLUMN(COL_TEXT, service, "service", "transport service"),
    COLUMN(COL_TEXT, upper, "upper", "upper protocol"),
    COLUMN(COL_TEXT, setup, "setup", "how the two directions were paired"),
    COLUMN(COL_TEXT, certainty, "certainty", "certainty of the pairing: none, likely or sure"),
    N(first_frame, "first_frame", "first frame"),
    N(last_frame, "last_frame", "last frame"),
    COLUMN(COL_TIME, first, "first_time", "time of the first frame"),
    COLUMN(COL_TIME, last, "last_time", "time of the last frame"),
    N(c.packets, "packets", "packets of this direction: requests, responses and CNPs"),
    N(c.bytes, "bytes", "their bytes on the wire"),
    N(c.payload, "payload", "their bytes of InfiniBand payload"),
    N(requests, "request_packets", "request packets, retransmissions included"),
    N(request_bytes, "request_bytes", "their payload"),
    N(responses, "response_packets", "responses to requests of the other direction"),
    N(naks_sent, "naks_sent", "NAKs among them"),
    N(messages, "messages", "messages (work requests) of this direction"),
    N(ops[WQE_SEND], "send", "SEND messages"),
    N(ops[WQE_SEND_IMM], "send_with_imm", "SEND messages with immediate"),
    N(ops[WQE_SEND_INV], "send_with_inv", "SEND messages with invalidate"),
    N(ops[WQE_WRITE], "rdma_write", "RDMA WRITE messages"),
    N(ops[WQE_WRITE_IMM], "rdma_write_with_imm", "RDMA WRITE messages with immediate"),
    N(ops[WQE_READ], "rdma_read", "RDMA READs"),
    N(ops[WQE_CMP_SWAP], "cmp_swap", "atomic compare and swap"),
    N(ops[WQE_FETCH_ADD], "fetch_add", "atomic fetch and add"),
    N(ops[WQE_FLUSH], "flush", "FLUSH"),
    N(ops[WQE_ATOMIC_WRITE], "atomic_write", "ATOMIC WRITE"),
    N(completed, "completed", "messages that were completed with success"),
    N(failed, "failed", "messages that ended with an error"),
    N(message_bytes, "message_bytes", "bytes of completed messages (of all, for UC and UD)"),
    N(goodput, "goodput_bps", "those, in bits per second from the first start to the last end"),
    N(c.again, "retransmitted_packets", "retransmitted request packets"),
    N(again_bytes, "retransmitted_bytes", "their payload"),
    N(c.seq_naks, "packet_seq_err", "sequence NAKs that answer this direction's requests"),
    N(implied_naks, "implied_nak_seq_err", "retransmissions on an implied NAK: a response skipped a READ or atomic"),
    N(c.timeouts, "local_ack_timeout_err", "retransmissions on ACK timeout"),
    T(timeout_wait, "timeout_ns", "time without a packet before them"),
    N(c.rnr_naks, "rnr_nak_retry_err", "RNR NAKs that answer this direction's requests"),
    T(rnr_wait, "rnr_ns", "time from RNR NAKs to the next copy of the request"),
    T(rnr_timer, "rnr_timer_ns", "RNR timer of the latest RNR NAK"),
    N(naks, "remote_errors", "NAKs that end a connection: invalid request, access, operation"),
    N(naks_invalid, "req_remote_invalid_request", "of them, invalid request"),
    N(naks_access, "req_remote_access_errors", "of them, remote access error"),
    N(duplicates, "duplicates", "packets identical to the copy before"),
    N(duplicate_requests, "duplicate_request", "request packets that were acknowledged before"),
    N(out_of_sequence, "out_of_sequence", "request packets ahead of the expected PSN"),
    N(late, "out_of_order", "new request packets that came after later ones"),
    N(missing, "missing_psns",
      "PSNs skipped when later ones came first; null for datagrams if not all came: others may have received them"),
    N(bad_icrc, "rx_icrc_encapsulated", "packets with a wrong ICRC (not counted elsewhere)"),
    N(restarts, "restarts", "times the queue pair was reconnected"),
    N(acks, "acks", "ACKs of this direction's requests"),
    COLUMN(COL_MILLI, packets_per_ack, "packets_per_ack", "PSNs newly acknowledged by an ACK, on average"),
    N(credits_min, "credits_min", "fewest credits in an ACK; null without end-to-end flow control"),
    N(credits_max, "credits_max", "most credits in an ACK"),
    N(c.ce, "np_ecn_marked_roce_packets", "packets of this direction marked congestion experienced in their IP header"),
    N(c.fecn, "fecn", "packets of this direction with FECN in their BTH (not RoCEv2)"),
    N(c.becn, "becn",
      "packets of this direction with BECN in their BTH: congestion in the other direction (not RoCEv2)"),
    N(c.cnps, "np_cnp_sent", "CNPs sent in this direction"),
    N(cnps_received, "rp_cnp_handled", "CNPs that came in the other direction"),
    T(cnp_gap_min, "cnp_gap_min_ns", "shortest time between two CNPs of this direction"),
    T(cnp_gap_mean, "cnp_gap_mean_ns", "mean time between them"),
    N(pmtu_agreed, "pmtu_negotiated", "path MTU by CM"),
    N(pmtu_seen, "pmtu_observed", "payload of First and Middle packets"),
    N(depth_agreed, "depth_negotiated", "READs and atomics outstanding at most, by CM"),
    N(depth_seen, "depth_observed", "READs and atomics outstanding at most, observed"),
    T(timeout_agreed, "timeout_negotiated_ns", "local ACK timeout by CM; 0 is none"),
    T(timeout_seen, "timeout_observed_ns", "shortest silence before a timeout"),
    N(retry_agreed, "retry_negotiated", "retry count by CM"),
    N(retry_seen, "retry_observed", "most timeouts without progress in between"),
    N(rnr_retry_agreed, "rnr_retry_negotiated", "RNR retry count by CM; 7 is unlimited"),
    N(rnr_retry_seen, "rnr_retry_observed", "most RNR NAKs in a row for a PSN"),
    N(in_flight, "in_flight_psns", "most PSNs not acknowledged at a time"),
    TIMES(latency, "message_latency", "first packet to completion of a message"),
    TIMES(ack_latency, "ack_latency", "request packet to its ACK"),
    T(lost, "lost_ns",
      "time of this direction's requests in states that cost: lost to losses, RNR, pauses and the like"),
    {NULL, COL_NUMBER, 0, NULL},
};

const char *const rows_formats[] = {"text", "json", "csv", NULL};

const struct column *column_find(const char *name)
{
    for (const struct column *c = row_columns; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static const void *value_at(const struct meter_row *r, const struct column *c)
{
    return (const uint8_t *)r + c->off;
}
static uint64_t number_at(const struct meter_row *r, const struct column *c)
{
    uint64_t v;

    memcpy(&v, value_at(r, c), sizeof v);
    return v;
}
static const char *text_at(const struct meter_row *r, const struct column *c)
{
    const char *s;

    memcpy(&s, value_at(r, c), sizeof s);
    return s;
}

static uint32_t tap_of(const struct meter_row *r)
{
    return (uint32_t)(r->file << 16 | r->iface);
}

/* --- Sorting ---------------------------------------------------------------------------------- */

static int compare_by(const struct meter_row *x, const struct meter_row *y, const struct column *by)
{
    uint64_t a, b;

    if (by->kind == COL_TAP)
        return tap_of(x) < tap_of(y) ? -1 : tap_of(x) > tap_of(y);
    if (by->kind == COL_ADDR)
        return memcmp(value_at(x, by), value_at(y, by), sizeof(struct conn_addr));
    if (by->kind == COL_TEXT) {
        const char *s = text_at(x, by), *t = text_at(y, by);
        return strcmp(s ? s : "", t ? t : "");
    }
    a = number_at(x, by) + 1; /* METER_NONE becomes the smallest */
    b = number_at(y, by) + 1;
    return a > b ? -1 : a < b;
}

static void merge_sort(struct meter_row **rows, struct meter_row **tmp, size_t n, const struct column *by)
{
    size_t half = n / 2, i = 0, k = half, to = 0;

    if (n < 2)
        return;
    merge_sort(rows, tmp, half, by);
    merge_sort(rows + half, tmp, n - half, by);
    memcpy(tmp, rows, n * sizeof(struct meter_row *));
    while (i < half || k < n)
        rows[to++] = k == n || (i < half && compare_by(tmp[i], tmp[k], by) <= 0) ? tmp[i++] : tmp[k++];
}

void rows_sort(struct meter_row **rows, size_t n, const struct column *by)
{
    struct meter_row **tmp = malloc((n ? n : 1) * sizeof(struct meter_row *));

    if (tmp)
        merge_sort(rows, tmp, n, by);
    free(tmp);
}

/* --- Values ----------------------------------------------------------------------------------- */

static void put_milli(struct buf *b, uint64_t v)
{
    buf_printf(b, "%llu.%03llu", (unsigned long long)(v / 1000), (unsigned long long)(v % 1000));
}

static void put_tap(struct buf *b, const struct meter_row *r, bool json)
{
    struct buf name = {0};

    conn_tap_put(&name, r->files, tap_of(r));
    if (json)
        buf_json(b, buf_str(&name), name.len);
    else
        buf_csv(b, buf_str(&name));
    buf_free(&name);
}

/* A value for JSON or CSV; false if there is none. */
static bool put_value(struct buf *b, const struct meter_row *r, const struct column *c, bool json)
{
    const char *s;
    size_t at;

    switch (c->kind) {
    case COL_ADDR:
        at = b->len;
        if (json)
            buf_char(b, '"');
        conn_addr_put(b, value_at(r, c));
        if (json)
            buf_char(b, '"');
        return b->len > at;
    case COL_TEXT:
        s = text_at(r, c);
        if (!s)
            return false;
        if (json)
            buf_json(b, s, strlen(s));
        else
            buf_puts(b, s);
        return true;
    case COL_TAP:
        put_tap(b, r, json);
        return true;
    case COL_TIME:
        buf_time(b, (ns_t)number_at(r, c));
        return true;
    case COL_MILLI:
        if (number_at(r, c) != METER_NONE)
            put_milli(b, number_at(r, c));
        return number_at(r, c) != METER_NONE;
    default:
        if (number_at(r, c) != METER_NONE)
            buf_dec(b, number_at(r, c));
        return number_at(r, c) != METER_NONE;
    }
}

static void print_json_row(struct buf *b, const struct meter_row *r)
{
    for (const struct column *c = row_columns; c->name; c++) {
        buf_printf(b, "%s\"%s\":", c == row_columns ? "{" : ",", c->name);
        if (!put_value(b, r, c, true))
            buf_puts(b, "null");
    }
    buf_puts(b, ",\"states\":");
    if (r->accounted)
        states_json(b, r->states);
    else
        buf_puts(b, "null");
    buf_char(b, '}');
}

static void print_totals(struct buf *b, const struct meter_totals *t)
{
    buf_printf(b,
               "\"totals\":{\"packets\":%llu,\"counted\":%llu,\"not_counted\":%llu,\"lost_rows\":%llu,\"forgotten_"
               "flows\":%llu}}\n",
               (unsigned long long)t->packets, (unsigned long long)t->counted, (unsigned long long)t->malformed,
               (unsigned long long)t->lost_rows, (unsigned long long)t->forgotten);
}

static void print_json(struct buf *b, struct meter_row *const *rows, size_t n, const struct meter_totals *t)
{
    buf_puts(b, "{\"flows\":[");
    for (size_t i = 0; i < n; i++) {
        buf_puts(b, i ? ",\n" : "\n");
        print_json_row(b, rows[i]);
    }
    buf_puts(b, "\n],");
    print_totals(b, t);
}

static void print_csv(struct buf *b, struct meter_row *const *rows, size_t n)
{
    for (const struct column *c = row_columns; c->name; c++)
        buf_printf(b, "%s%s", c == row_columns ? "" : ",", c->name);
    buf_char(b, '\n');
    for (size_t i = 0; i < n; i++) {
        for (const struct column *c = row_columns; c->name; c++) {
            if (c != row_columns)
                buf_char(b, ',');
            put_value(b, rows[i], c, false);
        }
        buf_char(b, '\n');
    }
}

/* --- Text ------------------------------------------------------------------------------------- */

static void put_rate(struct buf *b, uint64_t bps)
{
    static const char *const units[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
    double v = (double)bps;
    unsigned u = 0;

    while (v >= 1000 && u + 1 < ARRAY_LEN(units)) {
        v /= 1000;
        u++;
    }
    buf_printf(b, u ? "%.2f %s" : "%.0f %s", v, units[u]);
}

/* Pad the text written since `at` to `width` columns. */
static void pad(struct buf *b, size_t at, unsigned width)
{
    size_t len = b->len - at;

    buf_fill(b, ' ', len < width ? width - len : 1);
}

static void put_end(struct buf *b, const struct conn_addr *a, uint64_t qpn)
{
    conn_addr_put(b, a);
    if (qpn == METER_NONE)
        buf_puts(b, " ?");
    else
        buf_printf(b, " 0x%06llx", (unsigned long long)qpn);
}

static void put_ends(struct buf *b, const struct meter_row *r)
{
    size_t at = b->len;

    if (r->conn)
        buf_printf(b, "%llu", (unsigned long long)r->conn);
    else
        buf_char(b, '-');
    pad(b, at, 5);
    at = b->len;
    buf_puts(b, r->service);
    pad(b, at, 5);
    at = b->len;
    put_end(b, &r->src, r->sqpn);
    buf_puts(b, " > ");
    put_end(b, &r->dst, r->dqpn);
    pad(b, at, 52);
}

static void put_latency(struct buf *b, uint64_t v, unsigned width)
{
    size_t at = b->len;

    if (v == METER_NONE)
        buf_char(b, '-');
    else
        buf_duration(b, (ns_t)v);
    pad(b, at, width);
}

/* A value in text output. */
static void put_for_people(struct buf *b, const struct meter_row *r, const struct column *c)
{
    if (c->off == offsetof(struct meter_row, goodput))
        put_rate(b, r->goodput);
    else if (c->kind == COL_NS)
        buf_duration(b, (ns_t)number_at(r, c));
    else
        put_value(b, r, c, false);
}

/* True if a value is known and not 0. */
static bool worth_showing(const struct meter_row *r, const struct column *c)
{
    if (c->kind == COL_TEXT)
        return text_at(r, c) != NULL;
    if (c->kind == COL_ADDR || c->kind == COL_TIME || c->kind == COL_TAP)
        return false;
    return number_at(r, c) != METER_NONE && number_at(r, c) != 0;
}

static void print_details(struct buf *b, const struct meter_row *r)
{
    for (const struct column *c = row_columns; c->name; c++) {
        size_t at;
        if (!worth_showing(r, c))
            continue;
        buf_puts(b, "    ");
        at = b->len;
        buf_puts(b, c->name);
        pad(b, at, 30);
        put_for_people(b, r, c);
        buf_char(b, '\n');
    }
}

/* The name of a tap in text output: the interface alone if there is one file only. */
static void put_tap_text(struct buf *b, const struct meter_row *r)
{
    if (r->files && r->files[1])
        conn_tap_put(b, r->files, tap_of(r));
    else
        buf_dec(b, r->iface);
}

/* Columns for the names of taps; 0: all rows are of one tap. */
static unsigned taps_width(struct meter_row *const *rows, size_t n)
{
    struct buf name = {0};
    bool several = false;
    unsigned width = 0;

    for (size_t i = 0; i < n; i++) {
        several |= tap_of(rows[i]) != tap_of(rows[0]);
        name.len = 0;
        put_tap_text(&name, rows[i]);
        width = max_u32(width, (unsigned)name.len + 1);
    }
    buf_free(&name);
    return several ? max_u32(width, sizeof "tap") : 0;
}

void row_tap_after(struct buf *b, const struct meter_row *r)
{
    if (!r->iface && !(r->files && r->files[1]))
        return;
    buf_puts(b, "  tap ");
    put_tap_text(b, r);
}

static void print_text_row(struct buf *b, const struct meter_row *r, unsigned taps)
{
    size_t at = b->len;

    if (taps) {
        put_tap_text(b, r);
        pad(b, at, taps);
    }
    put_ends(b, r);
    buf_dec_pad(b, r->c.packets, 9);
    buf_dec_pad(b, r->c.bytes, 12);
    buf_dec_pad(b, r->messages, 9);
    buf_puts(b, "  ");
    at = b->len;
    if (r->goodput == METER_NONE)
        buf_char(b, '-');
    else
        put_rate(b, r->goodput);
    pad(b, at, 14);
    buf_dec_pad(b, r->c.again, 6);
    buf_dec_pad(b, r->c.seq_naks, 6);
    buf_dec_pad(b, r->c.rnr_naks, 6);
    buf_dec_pad(b, r->c.timeouts, 6);
    buf_puts(b, "  ");
    put_latency(b, r->latency.median, 11);
    put_latency(b, r->latency.p99, 11);
    put_latency(b, r->latency.max, 1);
    while (b->len && b->p[b->len - 1] == ' ')
        b->len--;
    buf_char(b, '\n');
}

static void print_text(struct buf *b, bool details, struct meter_row *const *rows, size_t n,
                       const struct meter_totals *t)
{
    unsigned taps = taps_width(rows, n);
    size_t at = b->len;

    if (taps) {
        buf_puts(b, "tap");
        pad(b, at, taps);
    }
    buf_puts(b, "conn type source > destination");
    pad(b, at, 62 + taps);
    buf_puts(b, "  packets       bytes messages  goodput        again   NAK   RNR   t/o  median     p99        max\n");
    for (size_t i = 0; i < n; i++) {
        print_text_row(b, rows[i], taps);
        if (details)
            print_details(b, rows[i]);
    }
    if (t->malformed)
        buf_printf(b, "%s in no row: malformed or with a wrong ICRC\n", count_str(t->malformed, "packet"));
    if (t->lost_rows)
        buf_printf(b, "%s left out: too many queue pairs\n", count_str(t->lost_rows, "row or datagram"));
}

void rows_print(struct buf *b, enum rows_format format, bool details, struct meter_row *const *rows, size_t n,
                const struct meter_totals *t)
{
    if (format == ROWS_JSON)
        print_json(b, rows, n, t);
    else if (format == ROWS_CSV)
        print_csv(b, rows, n);
    else
        print_text(b, details, rows, n, t);
}

/* --- Intervals -------------------------------------------------------------------------------- */

static const struct {
    const char *name, *title;
    size_t off;
} tick_columns[] = {
    {"packets", "packets", offsetof(struct meter_counts, packets)},
    {"bytes", "bytes", offsetof(struct meter_counts, bytes)},
    {"payload", "payload", offsetof(struct meter_counts, payload)},
    {"retransmitted_packets", "again", offsetof(struct meter_counts, again)},
    {"packet_seq_err", "NAK", offsetof(struct meter_counts, seq_naks)},
    {"rnr_nak_retry_err", "RNR", offsetof(struct meter_counts, rnr_naks)},
    {"local_ack_timeout_err", "t/o", offsetof(struct meter_counts, timeouts)},
    {"np_ecn_marked_roce_packets", "CE", offsetof(struct meter_counts, ce)},
    {"fecn", "FECN", offsetof(struct meter_counts, fecn)},
    {"becn", "BECN", offsetof(struct meter_counts, becn)},
    {"np_cnp_sent", "CNP", offsetof(struct meter_counts, cnps)},
};

static const char *const tick_ids[] = {"file",       "interface",   "connection",      "source",
                                       "source_qpn", "destination", "destination_qpn", "service"};

static uint64_t tick_value(const struct meter_counts *c, unsigned i)
{
    uint64_t v;

    memcpy(&v, (const uint8_t *)c + tick_columns[i].off, sizeof v);
    return v;
}

void ticks_begin(struct ticks *t)
{
    size_t at = t->b->len;

    if (t->format == ROWS_JSON) {
        buf_puts(t->b, "{\"intervals\":[");
    } else if (t->format == ROWS_CSV) {
        buf_puts(t->b, "start,since");
        for (unsigned i = 0; i < ARRAY_LEN(tick_ids); i++)
            buf_printf(t->b, ",%s", tick_ids[i]);
        for (unsigned i = 0; i < ARRAY_LEN(tick_columns); i++)
            buf_printf(t->b, ",%s", tick_columns[i].name);
        buf_char(t->b, '\n');
    } else {
        buf_puts(t->b, "     seconds  conn type source > destination");
        pad(t->b, at, 76);
        for (unsigned i = 0; i < ARRAY_LEN(tick_columns); i++)
            buf_printf(t->b, "%*s", i < 3 ? 10 : 6, tick_columns[i].title);
        buf_char(t->b, '\n');
    }
}

static void tick_text(struct ticks *t, const struct meter_row *r, ns_t since, const struct meter_counts *c)
{
    buf_printf(t->b, "%12.6f  ", (double)since / 1e9);
    put_ends(t->b, r);
    for (unsigned i = 0; i < ARRAY_LEN(tick_columns); i++)
        buf_printf(t->b, "%*llu", i < 3 ? 10 : 6, (unsigned long long)tick_value(c, i));
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
        buf_puts(t->b, t->n > 1 ? ",\n{\"start\":" : "\n{\"start\":");
    buf_time(t->b, start);
    buf_puts(t->b, json ? ",\"since_ns\":" : ",");
    if (json)
        buf_dec(t->b, (uint64_t)since);
    else
        buf_time(t->b, since);
    for (unsigned i = 0; i < ARRAY_LEN(tick_ids); i++) {
        if (json)
            buf_printf(t->b, ",\"%s\":", tick_ids[i]);
        else
            buf_char(t->b, ',');
        if (!put_value(t->b, r, column_find(tick_ids[i]), json) && json)
            buf_puts(t->b, "null");
    }
    for (unsigned i = 0; i < ARRAY_LEN(tick_columns); i++)
        buf_printf(t->b, json ? ",\"%s\":%llu" : ",%s%llu", json ? tick_columns[i].name : "",
                   (unsigned long long)tick_value(c, i));
    buf_puts(t->b, json ? "}" : "\n");
}

void ticks_end(struct ticks *t, const struct meter_totals *totals)
{
    if (t->format != ROWS_JSON)
        return;
    buf_puts(t->b, "\n],");
    print_totals(t->b, totals);
}
