/* layer 3 (workload): reports as text and JSON: completion times, slowdown, fairness, bandwidth, and what the network
 * did. */
#include "gen/workload/figures.h"
#include "gen/workload/schedule.h"

#include <stdlib.h>

#define TEXT_BINS 5 /* of messages by size, as text */

/* --- Text ------------------------------------------------------------------------------------- */

static void time_us(struct buf *b, const char *what, ns_t t)
{
    buf_printf(b, " %s ", what);
    fig_decimal(b, (uint64_t)t);
}

static void gbit(struct buf *b, const char *what, uint64_t bps)
{
    buf_printf(b, "%s ", what);
    fig_decimal(b, bps / 1000000);
    buf_puts(b, " Gbit/s");
}

/* Slowdown by size, if there are several sizes. */
static void text_sizes(struct buf *b, struct fct *f, uint32_t n)
{
    struct size_bin bin[TEXT_BINS];
    unsigned bins = fig_sizes(f, n, bin, TEXT_BINS);

    for (unsigned i = 0; i < bins && bins > 1; i++) {
        const struct fct *first = f + bin[i].from;
        uint32_t many = bin[i].to - bin[i].from;
        buf_printf(b, "  up to %9llu bytes, %s: p50 ", (unsigned long long)bin[i].bytes, count_str(many, "message"));
        fig_decimal(b, fig_percent(first, many, 50)->slowdown);
        buf_puts(b, " p99 ");
        fig_decimal(b, fig_percent(first, many, 99)->slowdown);
        buf_char(b, '\n');
    }
}

static void text_times(struct buf *b, const struct workload *w)
{
    uint32_t n;
    struct fct *f = fig_messages(w, &n);

    if (f && n) {
        qsort(f, n, sizeof *f, fig_by_took);
        buf_puts(b, " completion time [usec]:");
        time_us(b, "min", f[0].took);
        time_us(b, "p50", fig_percent(f, n, 50)->took);
        time_us(b, "p99", fig_percent(f, n, 99)->took);
        time_us(b, "max", f[n - 1].took);
        qsort(f, n, sizeof *f, fig_by_slowdown);
        buf_puts(b, "\n slowdown: p50 ");
        fig_decimal(b, fig_percent(f, n, 50)->slowdown);
        buf_puts(b, " p99 ");
        fig_decimal(b, fig_percent(f, n, 99)->slowdown);
        buf_char(b, '\n');
        text_sizes(b, f, n);
    }
    free(f);
}

static void text_network(struct buf *b, const struct workload *w)
{
    struct fabric_counters t = fabric_total(w->s->fabric, w->s->now);
    ns_t paused = 0;

    for (unsigned c = 0; c < TOPO_CLASSES; c++)
        paused += t.paused[c];
    buf_printf(b, " network: %s on links, %llu dropped, %llu lost, %llu marked, %llu pauses",
               count_str(t.sent, "frame"), (unsigned long long)t.dropped, (unsigned long long)t.lost,
               (unsigned long long)t.marked, (unsigned long long)t.pauses_sent);
    time_us(b, "of together", paused);
    buf_printf(b, " usec, longest queue %llu bytes\n", (unsigned long long)t.depth_max);
    if (t.storms)
        buf_printf(b, " the watchdog emptied %s\n", count_str(t.storms, "queue"));
}

static void text_failures(struct buf *b, const struct workload *w)
{
    const struct workload_result *r = &w->r;

    if (r->failed)
        buf_printf(b, " %s failed, the first with %s\n", count_str(r->failed, "work request"),
                   wc_status_str(r->first_error));
    if (r->wrong)
        buf_printf(b, " the result of %s was wrong\n", count_str(r->wrong, "rank"));
    if (r->gave_up)
        buf_printf(b, " given up at %lld ns: not everything completed\n", (long long)w->s->now);
}

static void text_collective(struct buf *b, const struct coll *c, bool named)
{
    if (named)
        buf_printf(b, " %s, %s of %llu bytes:\n ", c->name, count_str(c->rounds, "round"),
                   (unsigned long long)c->bytes);
    buf_puts(b, " round [usec]:");
    time_us(b, "min", c->round_min);
    time_us(b, "mean", fig_round_mean(c));
    time_us(b, "max", c->round_max);
    gbit(b, ", algorithm", fig_bandwidth(c->bytes, fig_round_mean(c), 1, 1));
    gbit(b, ", bus", fig_bus_bandwidth(c));
    buf_char(b, '\n');
}

/* What the workload is made of. */
static const char *parts(const struct workload *w)
{
    unsigned n = 0;

    for (const struct coll *c = w->colls; c; c = c->next)
        n++;
    if (n > 1)
        return count_str(n, "collective");
    return w->coll       ? count_str(w->coll->rounds, "round")
           : w->schedule ? count_str(w->schedule->n, "task")
                         : count_str(w->n_flows, "flow");
}

/* Whether all messages have as many bytes as the largest one. */
static bool all_alike(const struct workload *w)
{
    uint64_t most = workload_bytes(w);
    bool alike = true;

    for (const struct coll *c = w->colls; c; c = c->next)
        alike = alike && c->bytes == most;
    for (uint32_t i = 0; i < w->n_flows; i++)
        alike = alike && w->flow[i].bytes == most;
    for (uint32_t i = 0; w->schedule && i < w->schedule->n; i++)
        alike = alike && (w->schedule->task[i].kind != TASK_SEND || w->schedule->task[i].bytes == most);
    return alike;
}

void workload_text(struct buf *b, const struct workload *w)
{
    const struct workload_result *r = &w->r;

    buf_printf(b, " %s, %u hosts, %s of %s%llu bytes, MTU %u, seed %llu\n", w->c.kind->name, w->n, parts(w),
               all_alike(w) ? "" : "up to ", (unsigned long long)workload_bytes(w), w->c.conn.peer[0].path_mtu,
               (unsigned long long)w->c.seed);
    buf_printf(b, " messages %llu, completed %llu, bytes %llu", (unsigned long long)r->posted,
               (unsigned long long)r->completed, (unsigned long long)r->bytes);
    if (r->completed) {
        time_us(b, "in", r->end - r->start);
        buf_puts(b, " usec, ");
        gbit(b, "together", fig_bandwidth(r->bytes, r->end - r->start, 1, 1));
    }
    buf_char(b, '\n');
    for (const struct coll *c = w->colls; c; c = c->next)
        text_collective(b, c, w->colls->next != NULL);
    text_times(b, w);
    if (w->threshold && w->threshold <= WORKLOAD_BYTES)
        buf_printf(b, " messages below %llu bytes are eager\n", (unsigned long long)w->threshold);
    if (!w->coll && fig_jain(w)) {
        buf_puts(b, " fairness of the flows (Jain) ");
        fig_decimal(b, fig_jain(w));
        buf_char(b, '\n');
    }
    text_network(b, w);
    paths_text(b, w);
    sparks_text(b, w);
    text_failures(b, w);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void json_number(struct buf *b, const char *name, uint64_t v)
{
    buf_printf(b, ",\"%s\":%llu", name, (unsigned long long)v);
}

static void json_decimal(struct buf *b, const char *name, uint64_t milli)
{
    buf_printf(b, ",\"%s\":", name);
    fig_decimal(b, milli);
}

static void json_sizes(struct buf *b, struct fct *f, uint32_t n)
{
    struct size_bin bin[FIG_BINS];
    unsigned bins = fig_sizes(f, n, bin, FIG_BINS);

    buf_puts(b, ",\"by_size\":[");
    for (unsigned i = 0; i < bins; i++) {
        const struct fct *first = f + bin[i].from;
        uint32_t many = bin[i].to - bin[i].from;
        buf_printf(b, "%s{\"bytes\":%llu", i ? "," : "", (unsigned long long)bin[i].bytes);
        json_number(b, "messages", many);
        json_decimal(b, "p50", fig_percent(first, many, 50)->slowdown);
        json_decimal(b, "p95", fig_percent(first, many, 95)->slowdown);
        json_decimal(b, "p99", fig_percent(first, many, 99)->slowdown);
        buf_char(b, '}');
    }
    buf_char(b, ']');
}

static void json_times(struct buf *b, const struct workload *w)
{
    uint32_t n;
    struct fct *f = fig_messages(w, &n);

    if (f && n) {
        qsort(f, n, sizeof *f, fig_by_took);
        buf_printf(b, ",\"completion_ns\":{\"min\":%lld", (long long)f[0].took);
        json_number(b, "p50", (uint64_t)fig_percent(f, n, 50)->took);
        json_number(b, "p95", (uint64_t)fig_percent(f, n, 95)->took);
        json_number(b, "p99", (uint64_t)fig_percent(f, n, 99)->took);
        json_number(b, "max", (uint64_t)f[n - 1].took);
        qsort(f, n, sizeof *f, fig_by_slowdown);
        buf_puts(b, "},\"slowdown\":{\"p50\":");
        fig_decimal(b, fig_percent(f, n, 50)->slowdown);
        json_decimal(b, "p95", fig_percent(f, n, 95)->slowdown);
        json_decimal(b, "p99", fig_percent(f, n, 99)->slowdown);
        buf_char(b, '}');
        json_sizes(b, f, n);
    }
    free(f);
}

static void json_collective(struct buf *b, const struct coll *c)
{
    buf_printf(b, "{\"name\":\"%s\"", c->name);
    json_number(b, "bytes", c->bytes);
    json_number(b, "rounds", c->rounds);
    json_number(b, "steps", c->steps);
    json_number(b, "min_ns", (uint64_t)c->round_min);
    json_number(b, "mean_ns", (uint64_t)fig_round_mean(c));
    json_number(b, "max_ns", (uint64_t)c->round_max);
    json_number(b, "algorithm_bps", fig_bandwidth(c->bytes, fig_round_mean(c), 1, 1));
    json_number(b, "bus_bps", fig_bus_bandwidth(c));
    json_number(b, "wrong", c->wrong);
    buf_char(b, '}');
}

static void json_collectives(struct buf *b, const struct workload *w)
{
    if (!w->colls->next) {
        buf_puts(b, ",\"collective\":");
        json_collective(b, w->colls);
        return;
    }
    for (const struct coll *c = w->colls; c; c = c->next) {
        buf_puts(b, c == w->colls ? ",\"collectives\":[" : ",");
        json_collective(b, c);
    }
    buf_char(b, ']');
}

static void json_flows(struct buf *b, const struct workload *w)
{
    if (fig_jain(w))
        json_decimal(b, "jain", fig_jain(w));
    buf_puts(b, ",\"flows\":[");
    for (uint32_t i = 0; i < w->n_flows; i++) {
        const struct workload_flow *f = &w->flow[i];
        buf_printf(b, "%s{\"source\":\"%s\",\"destination\":\"%s\"", i ? "," : "",
                   fabric_host_name(w->s->fabric, f->src), fabric_host_name(w->s->fabric, f->dst));
        json_number(b, "bytes", f->bytes);
        json_number(b, "messages", f->done);
        json_number(b, "start_ns", (uint64_t)f->first);
        json_number(b, "end_ns", (uint64_t)f->last);
        json_number(b, "bps", fig_bandwidth(f->bytes * f->done, f->last - f->first, 1, 1));
        buf_char(b, '}');
    }
    buf_char(b, ']');
}

static void json_ports(struct buf *b, const struct workload *w)
{
    struct path_counts *paths = paths_count(w);
    const struct fabric_port *p;

    buf_puts(b, ",\"ports\":[");
    for (uint32_t i = 0; (p = fabric_port_nth(w->s->fabric, i)); i++) {
        struct fabric_counters n = fabric_port_counters(p, w->s->now);
        uint64_t paused = 0;
        for (unsigned c = 0; c < TOPO_CLASSES; c++)
            paused += (uint64_t)n.paused[c];
        buf_printf(b, "%s{\"name\":\"", i ? "," : "");
        fabric_port_name(b, w->s->fabric, p);
        buf_char(b, '"');
        json_number(b, "sent", n.sent);
        json_number(b, "sent_bytes", n.sent_bytes);
        json_number(b, "dropped", n.dropped);
        json_number(b, "lost", n.lost);
        json_number(b, "marked", n.marked);
        json_number(b, "pauses_sent", n.pauses_sent);
        json_number(b, "pauses_received", n.pauses_received);
        json_number(b, "paused_ns", paused);
        json_number(b, "storms", n.storms);
        json_number(b, "depth_max", n.depth_max);
        json_number(b, "ecmp_flows", paths ? paths[i].flows : 0);
        json_number(b, "ecmp_could", paths ? paths[i].may : 0);
        buf_char(b, '}');
    }
    buf_char(b, ']');
    free(paths);
}

static void json_packets(struct buf *b, const struct workload *w)
{
    uint64_t packets = 0, again = 0;

    for (unsigned h = 0; h < w->n; h++) {
        const struct ep_stats *s = ep_stats(w->s->ep[h]);
        packets += s->tx_packets - s->acks_sent - s->nak_sent - s->rnr_nak_sent;
        again += s->retransmitted;
    }
    json_number(b, "packets", packets);
    json_number(b, "retransmitted", again);
}

void workload_json(struct buf *b, const struct workload *w)
{
    const struct workload_result *r = &w->r;

    buf_printf(b, "{\"workload\":\"%s\"", w->c.kind->name);
    json_number(b, "hosts", w->n);
    json_number(b, "connections", w->n_conns);
    json_number(b, "size", workload_bytes(w));
    json_number(b, "mtu", w->c.conn.peer[0].path_mtu);
    json_number(b, "seed", w->c.seed);
    json_number(b, "messages", r->posted);
    json_number(b, "completed", r->completed);
    json_number(b, "failed", r->failed);
    json_number(b, "bytes", r->bytes);
    json_packets(b, w);
    json_number(b, "start_ns", (uint64_t)r->start);
    json_number(b, "end_ns", (uint64_t)r->end);
    buf_printf(b, ",\"gave_up\":%s", r->gave_up ? "true" : "false");
    json_times(b, w);
    if (w->threshold)
        json_number(b, "eager_below", w->threshold);
    if (w->coll)
        json_collectives(b, w);
    else if (w->schedule)
        json_number(b, "tasks", w->schedule->n);
    else
        json_flows(b, w);
    json_ports(b, w);
    buf_puts(b, "}\n");
}
