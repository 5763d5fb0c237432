/* layer 3 (workload): reports as CSV: a row for each message; for each flow, each collective and each size. */
#include "gen/workload/figures.h"

#include <stdlib.h>

void workload_messages_csv(struct buf *b, const struct workload *w)
{
    buf_puts(b, "message,source,destination,flow,bytes,posted_ns,arrived_ns,done_ns,ideal_ns\n");
    for (uint32_t i = 0; i < w->n_messages; i++) {
        const struct workload_message *m = &w->message[i];
        buf_printf(b, "%u,%s,%s,%u,%llu,%lld,%lld,%lld,%lld\n", i, fabric_host_name(w->s->fabric, m->src),
                   fabric_host_name(w->s->fabric, m->dst), m->flow, (unsigned long long)m->bytes, (long long)m->posted,
                   (long long)m->arrived, (long long)m->done, (long long)workload_ideal(w, m));
    }
}

#define FCT_PORT  100 /* of destinations, if no list says one: that of ordinary flows there */
#define FCT_FIRST 10000

static uint32_t address_of(const struct workload *w, unsigned host)
{
    return load_be32(w->s->addr[host].gid + 12);
}

void workload_fct(struct buf *b, const struct workload *w)
{
    for (uint32_t i = 0; i < w->n_messages; i++) {
        const struct workload_message *m = &w->message[i];
        uint16_t port = m->flow < w->n_flows && w->flow[m->flow].port ? w->flow[m->flow].port : FCT_PORT;
        if (m->done)
            buf_printf(b, "%08x %08x %u %u %llu %lld %lld %lld\n", address_of(w, m->src), address_of(w, m->dst),
                       FCT_FIRST + m->flow % (UINT16_MAX - FCT_FIRST), port, (unsigned long long)m->bytes,
                       (long long)m->posted, (long long)(m->done - m->posted), (long long)workload_ideal(w, m));
    }
}

/* --- Summary ---------------------------------------------------------------------------------- */

/* Columns of the summary; a value that a row has not is left out. */
enum column { MESSAGES, START, END, LEAST, MEAN, MOST, P50, P95, P99, RATE, BUS, JAIN, COLUMNS };
static const char *const column_names[COLUMNS] = {"messages",     "start_ns", "end_ns",       "min_ns",
                                                  "mean_ns",      "max_ns",   "slowdown_p50", "slowdown_p95",
                                                  "slowdown_p99", "bps",      "bus_bps",      "jain"};
/* Which are thousandths. */
static const bool is_decimal[COLUMNS] = {[P50] = true, [P95] = true, [P99] = true, [JAIN] = true};

struct summary_row {
    uint64_t v[COLUMNS];
    uint32_t has; /* mask of columns */
};

static void put(struct summary_row *r, enum column c, uint64_t v)
{
    r->v[c] = v;
    r->has |= 1u << c;
}

static void put_slowdown(struct summary_row *r, const struct fct *f, uint32_t n)
{
    put(r, P50, fig_percent(f, n, 50)->slowdown);
    put(r, P95, fig_percent(f, n, 95)->slowdown);
    put(r, P99, fig_percent(f, n, 99)->slowdown);
}

static void csv_row(struct buf *b, const struct summary_row *r)
{
    for (unsigned i = 0; i < COLUMNS; i++) {
        buf_char(b, ',');
        if (r->has >> i & 1 && is_decimal[i])
            fig_decimal(b, r->v[i]);
        else if (r->has >> i & 1)
            buf_dec(b, r->v[i]);
    }
    buf_char(b, '\n');
}

static void csv_all(struct buf *b, const struct workload *w)
{
    struct summary_row r = {.has = 0};
    struct size_bin bin[FIG_BINS];
    uint32_t n;
    struct fct *f = fig_messages(w, &n);

    put(&r, MESSAGES, w->r.completed);
    put(&r, START, (uint64_t)w->r.start);
    put(&r, END, (uint64_t)w->r.end);
    put(&r, RATE, fig_bandwidth(w->r.bytes, w->r.end - w->r.start, 1, 1));
    if (fig_jain(w))
        put(&r, JAIN, fig_jain(w));
    if (f && n) {
        qsort(f, n, sizeof *f, fig_by_slowdown);
        put_slowdown(&r, f, n);
    }
    buf_printf(b, "all,%s,,,%llu", w->c.kind->name, (unsigned long long)w->r.bytes);
    csv_row(b, &r);
    for (unsigned i = 0, bins = f ? fig_sizes(f, n, bin, FIG_BINS) : 0; i < bins; i++) {
        r = (struct summary_row){.has = 0};
        put(&r, MESSAGES, bin[i].to - bin[i].from);
        put_slowdown(&r, f + bin[i].from, bin[i].to - bin[i].from);
        buf_printf(b, "size,,,,%llu", (unsigned long long)bin[i].bytes);
        csv_row(b, &r);
    }
    free(f);
}

static void csv_collective(struct buf *b, const struct coll *c)
{
    struct summary_row r = {.has = 0};

    put(&r, MESSAGES, c->rounds);
    put(&r, LEAST, (uint64_t)c->round_min);
    put(&r, MEAN, (uint64_t)fig_round_mean(c));
    put(&r, MOST, (uint64_t)c->round_max);
    put(&r, RATE, fig_bandwidth(c->bytes, fig_round_mean(c), 1, 1));
    put(&r, BUS, fig_bus_bandwidth(c));
    buf_printf(b, "collective,%s,,,%llu", c->name, (unsigned long long)c->bytes);
    csv_row(b, &r);
}

void workload_summary_csv(struct buf *b, const struct workload *w)
{
    buf_puts(b, "what,name,source,destination,bytes");
    for (unsigned i = 0; i < COLUMNS; i++)
        buf_printf(b, ",%s", column_names[i]);
    buf_char(b, '\n');
    csv_all(b, w);
    for (const struct coll *c = w->colls; c; c = c->next)
        csv_collective(b, c);
    for (uint32_t i = 0; i < w->n_flows; i++) {
        const struct workload_flow *f = &w->flow[i];
        struct summary_row r = {.has = 0};
        put(&r, MESSAGES, f->done);
        put(&r, START, (uint64_t)f->first);
        put(&r, END, (uint64_t)f->last);
        put(&r, RATE, fig_bandwidth(f->bytes * f->done, f->last - f->first, 1, 1));
        buf_printf(b, "flow,%u,%s,%s,%llu", i, fabric_host_name(w->s->fabric, f->src),
                   fabric_host_name(w->s->fabric, f->dst), (unsigned long long)f->bytes);
        csv_row(b, &r);
    }
}
