/* layer 3 (trace): the table of flows: order and output. */
#include "src/trace/flows_impl.h"

#include "src/trace/explain_impl.h"

#include <stdio.h>
#include <stdlib.h>

void flows_keep(struct flows *f, uint32_t flow, struct flow_row *row)
{
    struct flow_done *grown;

    if (f->n_done == f->cap_done) {
        uint32_t cap = f->cap_done ? f->cap_done * 2 : 64;
        grown = cap > FLOWS_DONE ? NULL : realloc(f->done, cap * sizeof *grown);
        if (!grown) {
            f->lost++;
            free(row);
            return;
        }
        f->done = grown;
        f->cap_done = cap;
    }
    f->done[f->n_done++] = (struct flow_done){*conn_flow_at(watch_conns(f->watch), flow), row};
}

static const char *const sorts[] = {[SORT_CONN] = "conn", [SORT_BYTES] = "bytes", [SORT_PACKETS] = "packets", [SORT_GOODPUT] = "goodput", [SORT_AGAIN] = "again"};

bool flows_sort_parse(const char *s, enum flows_sort *sort)
{
    for (unsigned i = 0; i < ARRAY_LEN(sorts); i++)
        if (strcmp(sorts[i], s) == 0) {
            *sort = (enum flows_sort)i;
            return true;
        }
    return false;
}

/* Bits per second of payload that was moved for the first time. */
static double goodput(const struct flow_row *r)
{
    return r->last > r->first ? (double)r->fresh_bytes * 8e9 / (double)(r->last - r->first) : 0;
}

static enum flows_sort order;

static int by_key(const void *a, const void *b)
{
    const struct flow_done *x = a, *y = b;
    double d = 0;

    switch (order) {
    case SORT_BYTES:
        d = (double)y->row->bytes + (double)y->row->rsp_bytes - (double)x->row->bytes - (double)x->row->rsp_bytes;
        break;
    case SORT_PACKETS:
        d = (double)y->row->packets - (double)x->row->packets;
        break;
    case SORT_GOODPUT:
        d = goodput(y->row) - goodput(x->row);
        break;
    case SORT_AGAIN:
        d = (double)y->row->again - (double)x->row->again;
        break;
    default:
        break;
    }
    if (d != 0)
        return d < 0 ? -1 : 1;
    if (x->flow.conn != y->flow.conn)
        return x->flow.conn < y->flow.conn ? -1 : 1;
    return x->row->first_frame < y->row->first_frame ? -1 : x->row->first_frame > y->row->first_frame;
}

void flows_order(struct flows *f, enum flows_sort sort)
{
    order = sort;
    if (f->n_done)
        qsort(f->done, f->n_done, sizeof *f->done, by_key);
}

void flows_end_names(struct buf *b, const struct flow *c)
{
    buf_puts(b, addr_text(&c->src));
    if (c->have_sqpn)
        buf_printf(b, " QP 0x%x", c->sqpn);
    buf_printf(b, " -> %s QP 0x%x", addr_text(&c->dst), c->dqpn);
}

/* --- Columns ---------------------------------------------------------------------------------------------------------------------- */

/* A number of a row: its name in JSON and CSV, and where it is. The names are those of the hardware counters where they mean the
 * same. */
struct column {
    const char *name;
    uint64_t (*get)(struct flow_row *r, const struct flow *c);
};
#define MEMBER(n)                                                                                                      \
    static uint64_t get_##n(struct flow_row *r, const struct flow *c)                                                  \
    {                                                                                                                  \
        (void)c;                                                                                                       \
        return (uint64_t)r->n;                                                                                         \
    }
MEMBER(packets)
MEMBER(bytes)
MEMBER(fresh_bytes)
MEMBER(rsp_packets)
MEMBER(rsp_bytes)
MEMBER(sends)
MEMBER(writes)
MEMBER(reads)
MEMBER(atomics)
MEMBER(others)
MEMBER(again)
MEMBER(again_bytes)
MEMBER(seq_naks)
MEMBER(rnr_naks)
MEMBER(fatal_naks)
MEMBER(rnr_cost)
MEMBER(timeouts)
MEMBER(implied)
MEMBER(copies)
MEMBER(late)
MEMBER(acks)
MEMBER(credit)
MEMBER(ce)
MEMBER(cnps)
MEMBER(bad_icrc)
MEMBER(max_reads)
MEMBER(pmtu)
MEMBER(first_frame)
#undef MEMBER
static uint64_t get_goodput(struct flow_row *r, const struct flow *c)
{
    (void)c;
    return (uint64_t)goodput(r);
}
static uint64_t get_duration(struct flow_row *r, const struct flow *c)
{
    (void)c;
    return (uint64_t)(r->last - r->first);
}
static uint64_t get_cnp_gap(struct flow_row *r, const struct flow *c)
{
    (void)c;
    return r->cnp_gap == NS_NEVER ? 0 : (uint64_t)r->cnp_gap;
}
static uint64_t get_least_wait(struct flow_row *r, const struct flow *c)
{
    (void)c;
    return r->least_wait == NS_NEVER ? 0 : (uint64_t)r->least_wait;
}
#define LATENCY(which, name, permille)                                                                                 \
    static uint64_t get_##which##_##name(struct flow_row *r, const struct flow *c)                                     \
    {                                                                                                                  \
        (void)c;                                                                                                       \
        return (uint64_t)dist_at(&r->which##_latency, permille);                                                       \
    }
LATENCY(msg, min, 0)
LATENCY(msg, median, 500)
LATENCY(msg, p99, 990)
LATENCY(msg, max, 1000)
LATENCY(ack, min, 0)
LATENCY(ack, median, 500)
LATENCY(ack, p99, 990)
LATENCY(ack, max, 1000)
#undef LATENCY
static uint64_t get_depth(struct flow_row *r, const struct flow *c)
{
    (void)r;
    return c->params.have_depth ? c->params.depth : 0;
}
static uint64_t get_agreed_pmtu(struct flow_row *r, const struct flow *c)
{
    (void)r;
    return c->paired_by == PAIR_CM ? c->pmtu : 0;
}
static uint64_t get_timeout(struct flow_row *r, const struct flow *c)
{
    (void)r;
    return c->params.have_timeout && c->params.timeout ? UINT64_C(4096) << (c->params.timeout & 31) : 0;
}
static uint64_t get_retry(struct flow_row *r, const struct flow *c)
{
    (void)r;
    return c->params.have_timeout ? c->params.retry_cnt : 0;
}

static const struct column columns[] = {
    {"first_frame", get_first_frame},
    {"packets", get_packets},
    {"bytes", get_bytes},
    {"new_bytes", get_fresh_bytes},
    {"response_packets", get_rsp_packets},
    {"response_bytes", get_rsp_bytes},
    {"duration_ns", get_duration},
    {"goodput_bps", get_goodput},
    {"send_messages", get_sends},
    {"rx_write_requests", get_writes},
    {"rx_read_requests", get_reads},
    {"rx_atomic_requests", get_atomics},
    {"other_messages", get_others},
    {"retransmitted_packets", get_again},
    {"retransmitted_bytes", get_again_bytes},
    {"packet_seq_err", get_seq_naks},
    {"rnr_nak_retry_err", get_rnr_naks},
    {"rnr_time_ns", get_rnr_cost},
    {"fatal_naks", get_fatal_naks},
    {"local_ack_timeout_err", get_timeouts},
    {"implied_nak_seq_err", get_implied},
    {"duplicates", get_copies},
    {"out_of_sequence", get_late},
    {"acks", get_acks},
    {"credit_code", get_credit},
    {"np_ecn_marked_roce_packets", get_ce},
    {"np_cnp_sent", get_cnps},
    {"cnp_spacing_min_ns", get_cnp_gap},
    {"rx_icrc_encapsulated", get_bad_icrc},
    {"message_latency_min_ns", get_msg_min},
    {"message_latency_median_ns", get_msg_median},
    {"message_latency_p99_ns", get_msg_p99},
    {"message_latency_max_ns", get_msg_max},
    {"ack_latency_min_ns", get_ack_min},
    {"ack_latency_median_ns", get_ack_median},
    {"ack_latency_p99_ns", get_ack_p99},
    {"ack_latency_max_ns", get_ack_max},
    {"pmtu_agreed", get_agreed_pmtu},
    {"pmtu_seen", get_pmtu},
    {"depth_agreed", get_depth},
    {"depth_seen", get_max_reads},
    {"timeout_agreed_ns", get_timeout},
    {"shortest_wait_seen_ns", get_least_wait},
    {"retry_agreed", get_retry},
};

/* --- Output ------------------------------------------------------------------------------------------------------------------------- */

static void latency_text(struct buf *b, const char *what, struct dist *d)
{
    if (!d->n)
        return;
    buf_printf(b, "    %s: min ", what);
    buf_duration(b, dist_at(d, 0));
    buf_puts(b, ", median ");
    buf_duration(b, dist_at(d, 500));
    buf_puts(b, ", p99 ");
    buf_duration(b, dist_at(d, 990));
    buf_puts(b, ", max ");
    buf_duration(b, dist_at(d, 1000));
    buf_printf(b, " (%llu)\n", (unsigned long long)d->n);
}

static void count_text(struct buf *b, const char **sep, uint64_t n, const char *what)
{
    if (!n)
        return;
    buf_printf(b, "%s%llu %s", *sep, (unsigned long long)n, what);
    *sep = ", ";
}

static void agreed_text(struct buf *b, struct flow_row *r, const struct flow *c)
{
    const struct conn_params *p = &c->params;

    if (c->paired_by == PAIR_CM)
        buf_printf(b, r->pmtu ? "    agreed (seen): path MTU %u (%u)" : "    agreed (seen): path MTU %u (no full packet)", c->pmtu, r->pmtu);
    else if (r->pmtu)
        buf_printf(b, "    path MTU seen %u", r->pmtu);
    else
        return;
    if (p->have_depth)
        buf_printf(b, ", READs and atomics outstanding %u (%u)", p->depth, r->max_reads);
    if (p->have_timeout)
        buf_printf(b, ", ACK timeout %.3f ms, %u retries", (double)(INT64_C(4096) << (p->timeout & 31)) / 1e6, p->retry_cnt);
    if (r->least_wait != NS_NEVER)
        buf_printf(b, ", shortest silence before a repetition %.3f ms", (double)r->least_wait / 1e6);
    buf_char(b, '\n');
}

static void row_text(struct buf *b, struct flow_row *r, const struct flow *c)
{
    const char *sep = "    messages: ";

    buf_printf(b, "connection %u, %s, set up by %s: ", c->conn, service_str((enum service)r->service), pairing_str((enum pairing)c->paired_by));
    flows_end_names(b, c);
    buf_printf(b, "\n    %llu requests, %llu bytes; %llu responses, %llu bytes", (unsigned long long)r->packets, (unsigned long long)r->bytes,
               (unsigned long long)r->rsp_packets, (unsigned long long)r->rsp_bytes);
    if (r->last > r->first) {
        buf_puts(b, " in ");
        buf_duration(b, r->last - r->first);
        buf_printf(b, "; goodput %.3f Mbit/s", goodput(r) / 1e6);
    }
    buf_char(b, '\n');
    count_text(b, &sep, r->sends, "SEND");
    count_text(b, &sep, r->writes, "WRITE");
    count_text(b, &sep, r->reads, "READ");
    count_text(b, &sep, r->atomics, "atomic");
    count_text(b, &sep, r->others, "other");
    if (*sep == ',')
        buf_char(b, '\n');
    sep = "    trouble: ";
    count_text(b, &sep, r->again, "packets sent again");
    count_text(b, &sep, r->seq_naks, "sequence NAKs");
    count_text(b, &sep, r->rnr_naks, "RNR NAKs");
    count_text(b, &sep, r->fatal_naks, "fatal NAKs");
    count_text(b, &sep, r->timeouts, "repetitions without NAK");
    count_text(b, &sep, r->implied, "implied NAKs");
    count_text(b, &sep, r->copies, "duplicates");
    count_text(b, &sep, r->late, "out of order");
    count_text(b, &sep, r->bad_icrc, "bad ICRCs");
    count_text(b, &sep, r->ce, "marked CE");
    count_text(b, &sep, r->cnps, "CNPs");
    if (*sep == ',')
        buf_char(b, '\n');
    if (r->rnr_cost) {
        buf_puts(b, "    RNR NAKs cost ");
        buf_duration(b, r->rnr_cost);
        buf_char(b, '\n');
    }
    if (r->acks)
        buf_printf(b, "    %.1f requests for each ACK%s\n", (double)r->packets / (double)r->acks, r->credit == AETH_CREDIT_INVALID ? "" : ", credits in use");
    latency_text(b, "latency of messages", &r->msg_latency);
    latency_text(b, "latency of ACKs", &r->ack_latency);
    agreed_text(b, r, c);
}

void flows_text(struct flows *f, struct buf *b)
{
    for (uint32_t i = 0; i < f->n_done; i++)
        row_text(b, f->done[i].row, &f->done[i].flow);
    if (f->lost)
        buf_printf(b, "%llu further flows were not kept.\n", (unsigned long long)f->lost);
    if (!f->n_done)
        buf_puts(b, "There are no requests in this capture.\n");
}

void flows_json(struct flows *f, struct buf *b)
{
    buf_printf(b, "{\"packets\":%llu,\"flows\":[", (unsigned long long)f->packets);
    for (uint32_t i = 0; i < f->n_done; i++) {
        const struct flow *c = &f->done[i].flow;
        buf_printf(b, "%s{\"connection\":%u,\"service\":\"%s\",\"pairing\":\"%s\",\"file\":%u,\"interface\":%u", i ? ",\n" : "\n", c->conn,
                   service_str((enum service)f->done[i].row->service), pairing_str((enum pairing)c->paired_by), c->tap >> 16, c->tap & 0xffff);
        buf_printf(b, ",\"source\":\"%s\",\"destination\":\"%s\",\"destination_qp\":%u", addr_text(&c->src), addr_text(&c->dst), c->dqpn);
        if (c->have_sqpn)
            buf_printf(b, ",\"source_qp\":%u", c->sqpn);
        for (unsigned k = 0; k < ARRAY_LEN(columns); k++)
            buf_printf(b, ",\"%s\":%llu", columns[k].name, (unsigned long long)columns[k].get(f->done[i].row, c));
        buf_char(b, '}');
    }
    buf_puts(b, "]}\n");
}

void flows_csv(struct flows *f, struct buf *b)
{
    buf_puts(b, "connection,service,pairing,file,interface,source,source_qp,destination,destination_qp");
    for (unsigned k = 0; k < ARRAY_LEN(columns); k++)
        buf_printf(b, ",%s", columns[k].name);
    buf_char(b, '\n');
    for (uint32_t i = 0; i < f->n_done; i++) {
        const struct flow *c = &f->done[i].flow;
        buf_printf(b, "%u,%s,%s,%u,%u,%s,", c->conn, service_str((enum service)f->done[i].row->service), pairing_str((enum pairing)c->paired_by),
                   c->tap >> 16, c->tap & 0xffff, addr_text(&c->src));
        if (c->have_sqpn)
            buf_dec(b, c->sqpn);
        buf_printf(b, ",%s,%u", addr_text(&c->dst), c->dqpn);
        for (unsigned k = 0; k < ARRAY_LEN(columns); k++)
            buf_printf(b, ",%llu", (unsigned long long)columns[k].get(f->done[i].row, c));
        buf_char(b, '\n');
    }
}
