/* layer 3 (measure): the columns of measurements and how they are written. */
#include "src/measure/columns_impl.h"

#include "src/taps/networks.h"
#include "tokens.h"

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
    N(iface, "interface", "interface in the file, from 0: a separate tap"),
    COLUMN(COL_TAP, files, "tap", "both: name of the file and number of the interface"),
    N(conn, "connection", "number of the connection, as decode and check give it; 0 for datagrams"),
    COLUMN(COL_ADDR, src, "source", "address of the sender"),
    N(sqpn, "source_qpn", "its queue pair"),
    COLUMN(COL_ADDR, dst, "destination", "address of the receiver"),
    N(dqpn, "destination_qpn", "its queue pair"),
    COLUMN(COL_NETWORK, src.network, "network",
           "VNI, VSID or GRE key, and VLAN, of both, if other ends have the same addresses in another network"),
    COLUMN(COL_TEXT, service, "service", "transport service"),
    COLUMN(COL_TEXT, upper, "upper", "upper protocol"),
    COLUMN(COL_TEXT, setup, "setup", "how the two directions were paired"),
    COLUMN(COL_TEXT, certainty, "certainty", "certainty of the pairing: none, likely or sure"),
    N(first_frame, "first_frame", "first frame"),
    N(last_frame, "last_frame", "last frame"),
    COLUMN(COL_TIME, first, "first_time_ns", "time of the first frame, since 1970"),
    COLUMN(COL_TIME, last, "last_time_ns", "time of the last frame, since 1970"),
    N(c.packets, "packets", "packets of this direction: requests, responses and CNPs"),
    N(c.bytes, "bytes", "their bytes on the wire"),
    N(c.payload, "payload_bytes", "their bytes of InfiniBand payload"),
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
    N(migrations, "migrations", "times the requester went to another path"),
    N(migrated_frame, "migrated_frame", "first request along another path"),
    N(acks, "acks", "ACKs of this direction's requests"),
    COLUMN(COL_MILLI, packets_per_ack, "packets_per_ack", "PSNs newly acknowledged by an ACK, on average"),
    N(credits_min, "credits_min", "fewest credits in an ACK; null without end-to-end flow control"),
    N(credits_max, "credits_max", "most credits in an ACK"),
    N(c.ce, "np_ecn_marked_roce_packets", "packets of this direction marked congestion experienced in their IP header"),
    N(ect, "ecn_capable_packets",
      "packets of this direction that switches may mark: ECT(0), ECT(1), or marked already"),
    N(cnps_due[METER_DUE_4US], "cnps_due_4us",
      "CNPs that these marks call for, if a responder sends at most one in 4 us (the default of ConnectX)"),
    N(cnps_due[METER_DUE_50US], "cnps_due_50us", "likewise, at most one in 50 us (DCQCN as published)"),
    N(c.fecn, "fecn", "packets of this direction with FECN in their BTH (not RoCEv2)"),
    N(c.becn, "becn",
      "packets of this direction with BECN in their BTH: congestion in the other direction (not RoCEv2)"),
    N(c.cnps, "np_cnp_sent", "CNPs sent in this direction"),
    N(cnps_received, "rp_cnp_handled", "CNPs that came in the other direction"),
    T(cnp_gap_min, "cnp_gap_min_ns", "shortest time between two CNPs of this direction"),
    T(cnp_gap_mean, "cnp_gap_mean_ns", "mean time between them"),
    N(rate_before_cnp, "rate_before_cnp_bps",
      "payload in bits per second until the first CNP came in the other direction; null without one"),
    N(rate_after_cnp, "rate_after_cnp_bps", "payload in bits per second from then on; null likewise"),
    N(pmtu_agreed, "pmtu_negotiated_bytes", "path MTU by CM"),
    N(pmtu_seen, "pmtu_observed_bytes", "payload of First and Middle packets"),
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
    T(queue_median, "queue_delay_median_ns", "request packet to its ACK, above the shortest of all: median"),
    T(queue_p99, "queue_delay_p99_ns", "the same: 99th percentile"),
    T(queue_max, "queue_delay_max_ns", "the same: longest"),
    T(lost, "lost_ns",
      "time of this direction's requests in states that cost: lost to losses, RNR, pauses and the like"),
    COLUMN(COL_TEXT, carries, "protocol", "upper protocol whose commands were decoded"),
    N(commands, "commands", "its commands that were sent in this direction"),
    N(commands_failed, "commands_failed", "of them, with a response that says so"),
    N(command_bytes, "command_bytes", "data of its commands that this direction moved, each byte once"),
    {NULL, COL_NUMBER, 0, NULL},
};

const char *const rows_formats[] = {"text", "json", "csv", "ndjson", NULL};

const struct column *column_find(const char *name)
{
    for (const struct column *c = row_columns; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

const char *column_nearest(const char *name)
{
    struct text_nearest near = text_nearest_to(name, strlen(name));

    for (const struct column *c = row_columns; c->name; c++)
        text_nearest_try(&near, c->name);
    return near.name;
}

static const void *value_at(const struct meter_row *r, const struct column *c)
{
    return (const uint8_t *)r + c->off;
}
uint64_t column_number(const struct meter_row *r, const struct column *c)
{
    uint64_t v;

    memcpy(&v, value_at(r, c), sizeof v);
    return v;
}
const char *column_text(const struct meter_row *r, const struct column *c)
{
    const char *s;

    memcpy(&s, value_at(r, c), sizeof s);
    return s;
}

/* --- Sorting ---------------------------------------------------------------------------------- */

static int compare_by(const struct meter_row *x, const struct meter_row *y, const struct column *by)
{
    uint64_t a, b;

    if (by->kind == COL_TAP)
        return row_tap(x) < row_tap(y) ? -1 : row_tap(x) > row_tap(y);
    if (by->kind == COL_ADDR)
        return memcmp(value_at(x, by), value_at(y, by), sizeof(struct conn_addr));
    if (by->kind == COL_TEXT) {
        const char *s = column_text(x, by), *t = column_text(y, by);
        return strcmp(s ? s : "", t ? t : "");
    }
    a = column_number(x, by) + 1; /* METER_NONE becomes the smallest */
    b = column_number(y, by) + 1;
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

size_t rows_of_conn(struct meter_row **rows, size_t n, uint32_t conn)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (!conn || rows[i]->conn == conn)
            rows[kept++] = rows[i];
    return kept;
}

/* --- Values ----------------------------------------------------------------------------------- */

/* The value of column `c`; texts that are not constant are made in `text`. */
static struct cell cell_of(const struct meter_row *r, const struct column *c, struct buf *text)
{
    struct cell v = {.name = c->name, .kind = CELL_TEXT, .known = true};

    text->len = 0;
    switch (c->kind) {
    case COL_ADDR:
        conn_addr_put(text, value_at(r, c));
        v.known = text->len != 0;
        v.text = buf_str(text);
        return v;
    case COL_NETWORK:
        network_put(text, column_number(r, c));
        v.known = text->len != 0;
        v.text = buf_str(text);
        return v;
    case COL_TAP:
        conn_tap_put(text, r->files, row_tap(r));
        v.text = buf_str(text);
        return v;
    case COL_TEXT:
        v.text = column_text(r, c);
        v.known = v.text != NULL;
        return v;
    default:
        v.kind = c->kind == COL_TIME ? CELL_TIME : c->kind == COL_MILLI ? CELL_MILLI : CELL_NUMBER;
        v.number = column_number(r, c);
        v.known = c->kind == COL_TIME || v.number != METER_NONE;
        return v;
    }
}

bool column_put(struct buf *b, const struct meter_row *r, const struct column *c, bool json)
{
    struct buf text = {0};
    struct cell v = cell_of(r, c, &text);

    (json ? cell_json : cell_csv)(b, &v);
    buf_free(&text);
    return v.known;
}

void column_cell(const struct meter_row *r, const struct column *c, cell_take *take, void *user)
{
    struct buf text = {0};
    struct cell v = cell_of(r, c, &text);

    take(user, &v);
    buf_free(&text);
}

void row_cells(const struct meter_row *r, cell_take *take, void *user)
{
    for (const struct column *c = row_columns; c->name; c++)
        column_cell(r, c, take, user);
}

static void print_json_row(struct buf *b, const struct meter_row *r)
{
    for (const struct column *c = row_columns; c->name; c++) {
        buf_printf(b, "%s\"%s\":", c == row_columns ? "{" : ",", c->name);
        column_put(b, r, c, true);
    }
    buf_puts(b, ",\"states\":");
    if (r->accounted)
        states_json(b, r->states);
    else
        buf_puts(b, "null");
    buf_char(b, '}');
}

void totals_json(struct buf *b, const struct meter_totals *t)
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
    totals_json(b, t);
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
            column_put(b, rows[i], c, false);
        }
        buf_char(b, '\n');
    }
}

void rows_print(struct buf *b, const struct rows_opts *o, struct meter_row *const *rows, size_t n,
                const struct meter_totals *t)
{
    if (o->format == ROWS_JSON)
        print_json(b, rows, n, t);
    else if (o->format == ROWS_CSV)
        print_csv(b, rows, n);
    else
        rows_text(b, o, rows, n, t);
}
