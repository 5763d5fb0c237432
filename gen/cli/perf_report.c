/* layer 4 (tool): results of perftest-like traffic: the tables of perftest, statistics per queue pair, JSON. */
#include "gen/cli/perf_cli.h"

#define MB (1 << 20)

static void bandwidth(struct buf *b, const struct perf_client *p, const struct load_stats *s)
{
    buf_puts(b, " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n");
    buf_printf(b, " %-10u %-14llu %-18.2f %-20.2f %.6f\n", p->config.size, (unsigned long long)s->messages, s->peak / MB, s->average / MB,
               s->rate / 1e6);
}

static void latency(struct buf *b, const struct perf_client *p, const struct load_stats *s)
{
    buf_puts(b, " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   "
                "99.9% percentile[usec]\n");
    buf_printf(b, " %-7u %-14llu %-14.2f %-12.2f %-18.2f %-14.2f %-15.2f %-22.2f %.2f\n", p->config.size, (unsigned long long)s->messages,
               s->min, s->max, s->typical, s->mean, s->deviation, s->p99, s->p999);
}

static void queue_pairs(struct buf *b, struct perf_client *p)
{
    buf_puts(b, "\n QP        peer      messages   BW average[MB/sec]   MsgRate[Mpps]   t_min[usec]   t_avg[usec]   t_max[usec]   again   wrong\n");
    for (unsigned i = 0; i < p->config.qps; i++) {
        const struct load_qp *q = &p->load.qp[i];
        struct load_stats s;
        load_result(&p->load, (int)i, &s);
        buf_printf(b, " 0x%06x  0x%06x  %-10llu %-20.2f %-15.6f %-13.2f %-13.2f %-13.2f %-7llu %llu\n", q->own.qpn, q->peer.qpn,
                   (unsigned long long)s.messages, s.average / MB, s.rate / 1e6, s.min, s.mean, s.max,
                   (unsigned long long)ep_qp_stats(p->live->ep, q->qp)->retransmitted, (unsigned long long)s.mismatches);
    }
}

void perf_text(struct buf *b, struct perf_client *p)
{
    struct load_stats s;

    load_result(&p->load, -1, &s);
    if (p->config.latency)
        latency(b, p, &s);
    else
        bandwidth(b, p, &s);
    if (p->config.qps > 1)
        queue_pairs(b, p);
}

static void json_stats(struct buf *b, const struct load_stats *s)
{
    buf_printf(b,
               "\"messages\":%llu,\"bytes\":%llu,\"seconds\":%.9f,\"bw_peak\":%.0f,\"bw_average\":%.0f,\"msg_rate\":%.3f,"
               "\"t_min\":%.3f,\"t_max\":%.3f,\"t_avg\":%.3f,\"mismatches\":%llu",
               (unsigned long long)s->messages, (unsigned long long)s->bytes, s->seconds, s->peak, s->average, s->rate, s->min, s->max, s->mean,
               (unsigned long long)s->mismatches);
}

void perf_json(struct buf *b, struct perf_client *p)
{
    const struct load_config *c = &p->config;
    struct load_stats s;

    load_result(&p->load, -1, &s);
    buf_printf(b, "{\"op\":\"%s\",\"type\":\"%s\",\"latency\":%s,\"size\":%u,\"mtu\":%u,\"qps\":%u,", load_op_str(c->op), qp_type_str(c->type),
               c->latency ? "true" : "false", c->size, c->mtu, c->qps);
    json_stats(b, &s);
    buf_printf(b, ",\"t_typical\":%.3f,\"t_stdev\":%.3f,\"t_99\":%.3f,\"t_99_9\":%.3f", s.typical, s.deviation, s.p99, s.p999);
    buf_printf(b, ",\"validated\":%s,\"peer_is_rdmagen\":%s,\"error\":", c->validate ? "true" : "false", p->ours ? "true" : "false");
    buf_json(b, p->load.why, strlen(p->load.why));
    buf_puts(b, ",\"queue_pairs\":[");
    for (unsigned i = 0; i < c->qps; i++) {
        const struct load_qp *q = &p->load.qp[i];
        const struct ep_stats *st = ep_qp_stats(p->live->ep, q->qp);
        load_result(&p->load, (int)i, &s);
        buf_printf(b, "%s{\"qpn\":%u,\"peer_qpn\":%u,", i ? "," : "", q->own.qpn, q->peer.qpn);
        json_stats(b, &s);
        buf_printf(b, ",\"retransmitted\":%llu,\"local_ack_timeout_err\":%llu,\"packet_seq_err\":%llu,\"rnr_nak_retry_err\":%llu}",
                   (unsigned long long)st->retransmitted, (unsigned long long)st->local_ack_timeout_err,
                   (unsigned long long)st->packet_seq_err, (unsigned long long)st->rnr_nak_retry_err);
    }
    buf_puts(b, "]}\n");
}
