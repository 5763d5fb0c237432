/* layer 3b (top): what passes now, as lines of JSON and as OpenMetrics. */
#include "src/top/top.h"

/* --- NDJSON ----------------------------------------------------------------------------------- */

static void put_member(void *user, const struct cell *c)
{
    buf_printf(user, ",\"%s\":", c->name);
    cell_json(user, c);
}

static void put_number(struct buf *b, const char *name, uint64_t v, bool known)
{
    put_member(b, &(struct cell){.name = name, .kind = CELL_NUMBER, .known = known, .number = v});
}

void top_ndjson(struct buf *b, const struct top *t)
{
    buf_puts(b, "{\"type\":\"top\"");
    put_member(b, &(struct cell){.name = "source", .kind = CELL_TEXT, .known = true, .text = t->source});
    put_number(b, "time_ns", (uint64_t)t->at, true);
    put_number(b, "since_ns", (uint64_t)t->since, true);
    put_number(b, "packets", t->packets, true);
    put_number(b, "connections", t->connections, true);
    put_number(b, "datagram_pairs", t->datagrams, true);
    put_number(b, "connections_left_out", t->refused, true);
    put_number(b, "received_packets", t->received, t->live);
    put_number(b, "kernel_dropped_packets", t->dropped, t->live);
    put_number(b, "interface_dropped_packets", t->if_dropped, t->live);
    put_number(b, "file_dropped_packets", t->file_drops, !t->live);
    put_number(b, "ring_bytes", t->ring, t->live);
    put_member(
        b, &(struct cell){.name = "ring_used_ratio", .kind = CELL_MILLI, .known = t->live, .number = top_ring_use(t)});
    buf_puts(b, "}\n");
    for (size_t i = 0; i < t->n; i++) {
        buf_puts(b, "{\"type\":\"rate\"");
        put_number(b, "time_ns", (uint64_t)t->at, true);
        rate_cells(t->rates[i], put_member, b);
        buf_puts(b, "}\n");
    }
}

/* The row before ends where the next one begins. */
static void begin_counter(void *user)
{
    struct buf *b = user;

    buf_puts(b, b->len ? "}\n{\"type\":\"counter\"" : "{\"type\":\"counter\"");
}

void top_counters_ndjson(struct buf *b, struct adapter *a)
{
    struct buf lines = {0};

    adapter_cells(a, begin_counter, put_member, &lines);
    if (lines.len)
        buf_puts(&lines, "}\n");
    buf_mem(b, lines.p, lines.len);
    buf_free(&lines);
}

/* --- OpenMetrics ------------------------------------------------------------------------------ */

enum metric_type { COUNTER, GAUGE };

/* Metrics of each connection: the value `cell` of rate_cells(), of which one unit is `scale` of the metric's. */
static const struct metric {
    const char *name, *unit, *cell, *help;
    enum metric_type type;
    double scale; /* 0: a whole number */
} metrics[] = {
    {"rdmatrace_packets", NULL, "packets", "Packets of both directions.", COUNTER, 0},
    {"rdmatrace_wire_bytes", "bytes", "bytes", "Bytes on the wire, with all headers.", COUNTER, 0},
    {"rdmatrace_payload_bytes", "bytes", "payload_bytes", "InfiniBand payload.", COUNTER, 0},
    {"rdmatrace_completed_messages", NULL, "completed", "Messages that were completed.", COUNTER, 0},
    {"rdmatrace_retransmitted_packets", NULL, "retransmitted_packets", "Retransmitted request packets.", COUNTER, 0},
    {"rdmatrace_packet_seq_err", NULL, "packet_seq_err", "Sequence NAKs.", COUNTER, 0},
    {"rdmatrace_rnr_nak_retry_err", NULL, "rnr_nak_retry_err", "RNR NAKs.", COUNTER, 0},
    {"rdmatrace_local_ack_timeout_err", NULL, "local_ack_timeout_err", "Retransmissions on ACK timeout.", COUNTER, 0},
    {"rdmatrace_remote_errors", NULL, "remote_errors", "NAKs that end a connection.", COUNTER, 0},
    {"rdmatrace_ecn_marked_packets", NULL, "np_ecn_marked_roce_packets", "Packets marked CE.", COUNTER, 0},
    {"rdmatrace_cnps", NULL, "np_cnp_sent", "CNPs of both directions.", COUNTER, 0},
    {"rdmatrace_message_latency_median_seconds", "seconds", "message_latency_median_ns",
     "Median latency of the messages since the last time.", GAUGE, 1e-9},
    {"rdmatrace_message_latency_p99_seconds", "seconds", "message_latency_p99_ns",
     "99th percentile of the latency of the messages since the last time.", GAUGE, 1e-9},
};

static void put_family(struct buf *b, const char *name, const char *type, const char *unit, const char *help)
{
    buf_printf(b, "# TYPE %s %s\n", name, type);
    if (unit)
        buf_printf(b, "# UNIT %s %s\n", name, unit);
    buf_printf(b, "# HELP %s %s\n", name, help);
}

/* A value of a label: what a terminal would obey becomes \xNN; backslashes and quotes are escaped. */
static void put_escaped(struct buf *b, const char *s)
{
    struct buf text = {0};

    buf_printable(&text, s, strlen(s));
    for (const char *p = buf_str(&text); *p; p++)
        if (*p == '"' || *p == '\\')
            buf_printf(b, "\\%c", *p);
        else
            buf_char(b, *p);
    b->err |= text.err;
    buf_free(&text);
}

/* The cells that identify the connection of a metric. */
static void put_label(void *user, const struct cell *c)
{
    static const char *const labels[] = {"tap",     "connection",      "source",  "source_qpn", "destination",
                                         "network", "destination_qpn", "service", NULL};
    struct buf *b = user;
    unsigned i = 0;

    while (labels[i] && strcmp(labels[i], c->name) != 0)
        i++;
    if (!labels[i] || !c->known)
        return;
    buf_printf(b, "%s%s=\"", b->p[b->len - 1] == '{' ? "" : ",", c->name);
    if (c->kind == CELL_TEXT)
        put_escaped(b, c->text);
    else
        buf_dec(b, c->number);
    buf_char(b, '"');
}

static void put_sample(struct buf *b, const struct metric *m, const struct rate *r)
{
    uint64_t v = rate_number(r, m->cell);

    if (v == METER_NONE)
        return;
    buf_printf(b, "%s%s{", m->name, m->type == COUNTER ? "_total" : "");
    rate_cells(r, put_label, b);
    if (m->scale > 0)
        buf_printf(b, "} %.9f\n", (double)v * m->scale);
    else
        buf_printf(b, "} %llu\n", (unsigned long long)v);
}

/* The state: one sample for each there is, 1 for that which holds. */
static void put_states(struct buf *b, const struct rate *r)
{
    for (unsigned s = 0; s < RATE_STATES; s++) {
        buf_puts(b, "rdmatrace_state{");
        rate_cells(r, put_label, b);
        buf_printf(b, ",rdmatrace_state=\"%s\"} %d\n", rate_state_str((enum rate_state)s), r->state == s);
    }
}

static void put_total(struct buf *b, const char *name, uint64_t v, const char *help)
{
    put_family(b, name, "counter", NULL, help);
    buf_printf(b, "%s_total %llu\n", name, (unsigned long long)v);
}

static void put_capture(struct buf *b, const struct top *t)
{
    put_total(b, "rdmatrace_captured_packets", t->packets, "Packets read from the capture.");
    if (!t->live)
        return;
    put_total(b, "rdmatrace_kernel_dropped_packets", t->dropped, "Packets for which the ring had no room.");
    put_total(b, "rdmatrace_interface_dropped_packets", t->if_dropped, "Packets that the interface dropped.");
    put_family(b, "rdmatrace_ring_used_ratio", "gauge", "ratio", "Share of the ring in use, estimated.");
    buf_printf(b, "rdmatrace_ring_used_ratio %u.%03u\n", top_ring_use(t) / 1000, top_ring_use(t) % 1000);
}

void top_prom(struct buf *b, const struct top *t)
{
    size_t n = t->n < TOP_METRICS ? t->n : TOP_METRICS;

    put_capture(b, t);
    put_family(b, "rdmatrace_connections", "gauge", NULL, "Connections with packets in the last minute.");
    buf_printf(b, "rdmatrace_connections %zu\n", t->connections);
    put_family(b, "rdmatrace_datagram_pairs", "gauge", NULL,
               "Pairs of queue pairs for datagrams with packets in the last minute.");
    buf_printf(b, "rdmatrace_datagram_pairs %zu\n", t->datagrams);
    for (const struct metric *m = metrics; m < metrics + ARRAY_LEN(metrics); m++) {
        put_family(b, m->name, m->type == COUNTER ? "counter" : "gauge", m->unit, m->help);
        for (size_t i = 0; i < n; i++)
            put_sample(b, m, t->rates[i]);
    }
    /* no stateset: readers of the older text format, such as that of files of node_exporter, refuse a file with one */
    put_family(b, "rdmatrace_state", "gauge", NULL, "What the connection does: 1.");
    for (size_t i = 0; i < n; i++)
        put_states(b, t->rates[i]);
    buf_puts(b, "# EOF\n");
}
