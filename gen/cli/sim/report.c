/* layer 4 (tool): results of `rdmagen sim`: a table like perftest's, statistics per queue pair, JSON. */
#include "dissect/ib/opcode.h"
#include "gen/cli/sim/sim_cli.h"

#define TABLE_MAX 32 /* connections listed in text */

/* Columns of the table of queue pairs. */
static const struct {
    const char *title;
    size_t at;
} columns[] = {
    {"tx", offsetof(struct ep_stats, tx_packets)},
    {"rx", offsetof(struct ep_stats, rx_packets)},
    {"messages", offsetof(struct ep_stats, messages)},
    {"again", offsetof(struct ep_stats, retransmitted)},
    {"timeout", offsetof(struct ep_stats, local_ack_timeout_err)},
    {"nak_rx", offsetof(struct ep_stats, packet_seq_err)},
    {"implied", offsetof(struct ep_stats, implied_nak_seq_err)},
    {"rnr_rx", offsetof(struct ep_stats, rnr_nak_retry_err)},
    {"ack_tx", offsetof(struct ep_stats, acks_sent)},
    {"nak_tx", offsetof(struct ep_stats, nak_sent)},
    {"rnr_tx", offsetof(struct ep_stats, rnr_nak_sent)},
    {"dup_rx", offsetof(struct ep_stats, duplicate_request)},
    {"ooo_rx", offsetof(struct ep_stats, out_of_sequence)},
    {"drop", offsetof(struct ep_stats, dropped)},
};

/* Service of the connections: "RC", "XRC" ... */
static const char *type_str(const struct sim_job *job)
{
    return qp_service_str((enum qp_type)job->traffic.type);
}

static uint64_t value_of(const struct ep_stats *s, unsigned column)
{
    uint64_t v;

    memcpy(&v, (const char *)s + columns[column].at, sizeof v);
    return v;
}

static const char *host_name(unsigned h)
{
    return h ? "responder" : "requester";
}

static void qp_table(struct buf *b, const struct sim *s)
{
    buf_printf(b, "\n %-4s %-9s %8s", "conn", "host", "qpn");
    for (unsigned i = 0; i < ARRAY_LEN(columns); i++)
        buf_printf(b, " %8s", columns[i].title);
    for (unsigned n = 0; n < s->n_conns && n < TABLE_MAX; n++)
        for (unsigned h = 0; h < NET_HOSTS; h++) {
            const struct ep_stats *st = ep_qp_stats(s->ep[h], s->conn[n]->qp[h]);
            buf_printf(b, "\n %-4u %-9s 0x%06x", s->conn[n]->number, host_name(h),
                       ep_qp(s->ep[h], s->conn[n]->qp[h])->qpn);
            for (unsigned i = 0; i < ARRAY_LEN(columns); i++)
                buf_printf(b, " %8llu", (unsigned long long)value_of(st, i));
        }
    if (s->n_conns > TABLE_MAX)
        buf_printf(b, "\n and %s (--json lists all)", count_str(s->n_conns - TABLE_MAX, "more connection"));
    buf_char(b, '\n');
}

static void report_failures(struct buf *b, const struct sim *s, const struct traffic_result *r)
{
    if (r->failed)
        buf_printf(b, " %llu of %s failed, the first with %s\n", (unsigned long long)r->failed,
                   count_str(r->posted, "request"), wc_status_str(r->first_error));
    if (r->recv_failed)
        buf_printf(b, " %s failed\n", count_str(r->recv_failed, "receive"));
    if (r->mismatches)
        buf_printf(b, " %s had wrong data or came out of order\n", count_str(r->mismatches, "message"));
    if (r->conn_failed)
        buf_printf(b, " %s failed\n", count_str(r->conn_failed, "connection"));
    if (r->gave_up)
        buf_printf(b, " given up at %lld ns: not everything completed\n", (long long)s->now);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        struct net_counters c = net_total(&s->net, h);
        if (c.dropped || net_changed(&c))
            buf_printf(b, " network, from the %s: %s, %llu lost, %llu changed\n", host_name(h),
                       count_str(c.in, "frame"), (unsigned long long)c.dropped, (unsigned long long)net_changed(&c));
        if (ep_stats(s->ep[h])->faults)
            buf_printf(b, " %s: %s committed\n", host_name(h), count_str(ep_stats(s->ep[h])->faults, "fault"));
    }
}

static void bandwidth_table(struct buf *b, struct traffic *t)
{
    struct traffic_figures f = traffic_figures(t, NULL);

    buf_printf(b, " %-10s %-12s %-21s %-17s %-12s %-12s %s\n", "#bytes", "#iterations", "BW average[MB/sec]",
               "MsgRate[Mpps]", "t_min[usec]", "t_avg[usec]", "t_max[usec]");
    buf_printf(b, " %-10u %-12llu %18.2f%17.6f%16.3f%13.3f%13.3f\n", t->c.size, (unsigned long long)t->r.completed,
               f.average / (1 << 20), f.rate / 1e6, f.min, f.mean, f.max);
}

void report_text(struct buf *b, const struct sim_job *job, const struct sim *s, struct traffic *t)
{
    buf_printf(b, " %s %s, %s, MTU %u, seed %llu\n", type_str(job), traffic_op_str(job->traffic.op),
               count_str(job->traffic.qps, "connection"), job->conn.peer[0].path_mtu,
               (unsigned long long)job->sim.seed);
    if (t->c.latency)
        latency_table(b, t);
    else
        bandwidth_table(b, t);
    qp_table(b, s);
    report_failures(b, s, &t->r);
}

static void json_stats(struct buf *b, const struct ep_stats *st)
{
    for (unsigned i = 0; i < EP_COUNTERS; i++)
        buf_printf(b, "%s\"%s\":%llu", i ? "," : "", ep_counter_str(i), (unsigned long long)ep_counter(st, i));
}

static void json_conns(struct buf *b, const struct sim *s)
{
    for (unsigned n = 0; n < s->n_conns; n++) {
        buf_printf(b, "%s{\"conn\":%u", n ? "," : "", s->conn[n]->number);
        for (unsigned h = 0; h < NET_HOSTS; h++) {
            buf_printf(b, ",\"%s\":{\"qpn\":%u,", host_name(h), ep_qp(s->ep[h], s->conn[n]->qp[h])->qpn);
            json_stats(b, ep_qp_stats(s->ep[h], s->conn[n]->qp[h]));
            buf_char(b, '}');
        }
        buf_char(b, '}');
    }
}

/* Append the counters of the network for frames of host `h`. */
static void json_network(struct buf *b, const struct sim *s, unsigned h)
{
    struct net_counters c = net_total(&s->net, h);
    const struct {
        const char *name;
        uint64_t v;
    } counts[] = {
        {"frames", c.in},           {"delivered", c.out},   {"lost", c.dropped},   {"changed", net_changed(&c)},
        {"marked", c.marked},       {"damaged", c.damaged}, {"held_back", c.held}, {"doubled", c.doubled},
        {"rewritten", c.rewritten},
    };

    buf_printf(b, ",\"network_from_%s\":{", host_name(h));
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        buf_printf(b, "%s\"%s\":%llu", i ? "," : "", counts[i].name, (unsigned long long)counts[i].v);
    buf_char(b, '}');
}

void report_json(struct buf *b, const struct sim_job *job, const struct sim *s, struct traffic *t)
{
    const struct traffic_result *r = &t->r;
    struct traffic_figures f = traffic_figures(t, NULL);
    const struct {
        const char *name;
        uint64_t v;
    } results[] = {
        {"seed", job->sim.seed},
        {"size", job->traffic.size},
        {"mtu", job->conn.peer[0].path_mtu},
        {"qps", job->traffic.qps},
        {"iters", job->traffic.iters},
        {"posted", r->posted},
        {"completed", r->completed},
        {"failed", r->failed},
        {"received", r->received},
        {"recv_failed", r->recv_failed},
        {"mismatches", r->mismatches},
        {"conn_failed", r->conn_failed},
        {"bytes", r->bytes},
        {"start_ns", (uint64_t)r->start},
        {"end_ns", (uint64_t)r->end},
        {"lat_min_ns", (uint64_t)r->min},
        {"lat_max_ns", (uint64_t)r->max},
        {"lat_avg_ns", r->samples ? (uint64_t)(r->sum / r->samples) : 0},
        {"lat_typical_ns", (uint64_t)(f.typical * 1e3)},
        {"lat_99_ns", (uint64_t)(f.p99 * 1e3)},
        {"lat_99_9_ns", (uint64_t)(f.p999 * 1e3)},
        {"frames", s->frames},
    };

    buf_printf(b, "{\"op\":\"%s\",\"type\":\"%s\"", traffic_op_str(job->traffic.op), type_str(job));
    for (size_t i = 0; i < ARRAY_LEN(results); i++)
        buf_printf(b, ",\"%s\":%llu", results[i].name, (unsigned long long)results[i].v);
    buf_printf(b, ",\"gave_up\":%s,\"first_error\":\"%s\"", r->gave_up ? "true" : "false",
               r->failed ? wc_status_str(r->first_error) : "");
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        buf_printf(b, ",\"%s\":{", host_name(h));
        json_stats(b, ep_stats(s->ep[h]));
        buf_char(b, '}');
        json_network(b, s, h);
    }
    buf_puts(b, ",\"connections\":[");
    json_conns(b, s);
    buf_puts(b, "]}\n");
}
