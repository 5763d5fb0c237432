/* layer 3b (diff): the figures of a direction, and when two differ. */
#include "src/diff/diff_impl.h"
#include "src/measure/columns.h"

#include <math.h>
#include <stdio.h>

/* Columns of flows that are compared, in the order of the output: what was asked for, what it took, what went wrong,
 * what it cost. Latencies of each operation follow. */
static const struct {
    const char *column;
    bool setting;
} compared[] = {
    {"pmtu_negotiated_bytes", true},
    {"depth_negotiated", true},
    {"timeout_negotiated_ns", true},
    {"retry_negotiated", true},
    {"rnr_retry_negotiated", true},
    {"messages", false},
    {"send", false},
    {"send_with_imm", false},
    {"send_with_inv", false},
    {"rdma_write", false},
    {"rdma_write_with_imm", false},
    {"rdma_read", false},
    {"cmp_swap", false},
    {"fetch_add", false},
    {"flush", false},
    {"atomic_write", false},
    {"message_bytes", false},
    {"completed", false},
    {"failed", false},
    {"request_packets", false},
    {"response_packets", false},
    {"acks", false},
    {"packets_per_ack", false},
    {"pmtu_observed_bytes", true},
    {"depth_observed", false},
    {"in_flight_psns", false},
    {"goodput_bps", false},
    {"retransmitted_packets", false},
    {"packet_seq_err", false},
    {"implied_nak_seq_err", false},
    {"local_ack_timeout_err", false},
    {"timeout_ns", false},
    {"rnr_nak_retry_err", false},
    {"rnr_ns", false},
    {"remote_errors", false},
    {"duplicates", false},
    {"duplicate_request", false},
    {"out_of_sequence", false},
    {"out_of_order", false},
    {"missing_psns", false},
    {"rx_icrc_encapsulated", false},
    {"restarts", false},
    {"np_ecn_marked_roce_packets", false},
    {"np_cnp_sent", false},
    {"lost_ns", false},
    {"ack_latency_median_ns", false},
    {"ack_latency_p99_ns", false},
};

static struct figure *add(struct direction *d)
{
    return &d->figure[d->n_figures++]; /* DIFF_FIGURES holds `compared` and two for each operation */
}
_Static_assert(ARRAY_LEN(compared) + 2 * WQE_OPS <= DIFF_FIGURES, "figures of a direction");

/* A column of flows: if it is compared, its figure is appended. */
static void take_cell(void *user, const struct cell *c)
{
    struct direction *d = user;
    struct figure *f;

    for (size_t i = 0; i < ARRAY_LEN(compared); i++) {
        if (strcmp(compared[i].column, c->name) != 0)
            continue;
        f = &d->figure[i];
        snprintf(f->name, sizeof f->name, "%s", c->name);
        f->known = c->known;
        f->milli = c->kind == CELL_MILLI;
        f->setting = compared[i].setting;
        f->value = c->number;
    }
}

/* The column of flows that counts the messages of an operation. */
static const char *column_of(unsigned op)
{
    for (const struct column *c = row_columns; c->name; c++)
        if (c->off == offsetof(struct meter_row, ops) + op * sizeof(uint64_t))
            return c->name;
    return "";
}

void figures_of(struct direction *d)
{
    static const struct {
        const char *name;
        unsigned permille;
    } ranks[] = {{"median", 500}, {"p99", 990}};

    d->n_figures = ARRAY_LEN(compared);
    row_cells(&d->row, take_cell, d);
    for (unsigned i = 0; i < d->n_figures && !d->row.conn && d->row.dqpn <= 1; i++)
        if (strcmp(d->figure[i].name, "goodput_bps") == 0)
            d->figure[i].known = false; /* MADs: few, and their pace is nobody's goodput */
    for (unsigned op = 0; op < WQE_OPS; op++)
        for (unsigned i = 0; i < ARRAY_LEN(ranks); i++) {
            struct figure *f = add(d);
            snprintf(f->name, sizeof f->name, "%s_latency_%s_ns", column_of(op), ranks[i].name);
            f->known = d->latency[op] && d->latency[op]->n;
            f->value = f->known ? (uint64_t)hist_permille(d->latency[op], ranks[i].permille) : 0;
        }
}

static bool apart(uint64_t a, uint64_t b, double tolerance)
{
    return fabs((double)b - (double)a) > (double)a * tolerance / 100;
}

bool figure_differs(const struct figure *a, const struct figure *b, double tolerance)
{
    if (a->setting)
        return a->known && b->known && a->value != b->value;
    return a->known && b->known && apart(a->value, b->value, tolerance);
}

bool tally_differs(const struct tally *a, const struct tally *b, double tolerance)
{
    return apart(a->times, b->times, tolerance) || apart((uint64_t)a->lost, (uint64_t)b->lost, tolerance);
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

void figure_put(struct buf *b, const struct figure *f)
{
    if (!f->known)
        buf_char(b, '-');
    else if (f->milli)
        buf_printf(b, "%.2f", (double)f->value / 1000);
    else if (ends_with(f->name, "_ns"))
        buf_rounded(b, (ns_t)f->value);
    else if (ends_with(f->name, "_bps"))
        table_rate(b, f->value);
    else
        buf_dec(b, f->value);
}
