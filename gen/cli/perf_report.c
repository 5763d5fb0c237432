/* layer 4 (tool): results of perftest-like traffic: the tables of perftest, statistics per queue pair, JSON. */
#include "gen/cli/live_options.h"
#include "gen/live/parts.h"
#include "gen/peers/perf_client.h"

#include <stdio.h>

#define MB (1 << 20)

/* --- Verification of data --------------------------------------------------------------------- */

/* Whether the receiver reported how many messages arrived, and how many of these were wrong. */
static bool server_compares(const struct perf_client *p)
{
    return p->config.op == TRAFFIC_SEND && p->counted;
}

static const char *what_is_compared(const struct perf_client *p)
{
    switch ((enum traffic_op)p->config.op) {
    case TRAFFIC_WRITE:
        return "the memory written, at the end";
    case TRAFFIC_READ:
        return p->ours ? "every message, with the pattern of rdmagen serve"
                       : "every message, with what the first READ brought";
    case TRAFFIC_SEND:
        return p->config.latency ? "every message and its answer" : "every message, by the server";
    default:
        return "every answer, with the one before";
    }
}

static const char *why_nothing(const struct perf_client *p)
{
    if (!p->traffic.t.r.completed)
        return "no message was completed";
    if (p->config.op == TRAFFIC_SEND)
        return p->config.latency && !p->ours ? "of answers only the length is known"
                                             : "the receiver did not report its counts";
    if (!p->ours)
        return "the memory of the peer cannot be read";
    return p->config.latency ? "answers hold nothing but a counter"
                             : "the memory written can be read over RC and XRC only";
}

struct outcome {
    uint64_t compared, wrong;
    bool whole; /* everything sent was compared */
};

static struct outcome outcome_of(const struct perf_client *p)
{
    const struct traffic_result *r = &p->traffic.t.r;
    struct outcome v = {.compared = r->compared, .wrong = r->mismatches, .whole = r->compared != 0};

    if (p->config.verify && server_compares(p)) {
        v.compared = p->arrived;
        v.wrong += p->wrong;
        v.whole = p->arrived && p->arrived >= r->completed;
    }
    return v;
}

static const char *validated(const struct perf_client *p, const struct outcome *v, const char *error)
{
    if (!p->config.verify)
        return "null";
    return v->wrong ? "false" : v->whole && !*error ? "true" : "null";
}

/* Append the result of the verification, without a newline. */
static void describe_validation(struct buf *b, const struct perf_client *p, const struct outcome *v)
{
    if (!p->config.verify)
        buf_puts(b, "not asked for");
    else if (!v->compared && !v->wrong)
        buf_printf(b, "nothing was compared: %s", server_compares(p) ? "no message arrived" : why_nothing(p));
    else
        buf_printf(b, "%s: %llu compared, %llu wrong", what_is_compared(p), (unsigned long long)v->compared,
                   (unsigned long long)v->wrong);
}

/* --- Results ---------------------------------------------------------------------------------- */

static void bandwidth_table(struct buf *b, struct traffic *t)
{
    struct traffic_figures s = traffic_figures(t, NULL);

    buf_puts(b, " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n");
    buf_printf(b, " %-10u %-14llu %-18.2f %-20.2f %.6f\n", t->c.size, (unsigned long long)t->r.completed, s.peak / MB,
               s.average / MB, s.rate / 1e6);
}

void latency_table(struct buf *b, struct traffic *t)
{
    struct traffic_figures s = traffic_figures(t, NULL);

    buf_puts(b, " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
                "99% percentile[usec]   "
                "99.9% percentile[usec]\n");
    buf_printf(b, " %-7u %-14llu %-14.2f %-12.2f %-18.2f %-14.2f %-15.2f %-22.2f %.2f\n", t->c.size,
               (unsigned long long)t->r.completed, s.min, s.max, s.typical, s.mean, s.deviation, s.p99, s.p999);
}

static void queue_pairs(struct buf *b, struct perf_client *p)
{
    buf_puts(b, "\n QP        peer      messages   BW average[MB/sec]   MsgRate[Mpps]   t_min[usec]   t_avg[usec]   "
                "t_max[usec]   again   wrong\n");
    for (unsigned i = 0; i < p->config.qps; i++) {
        const struct perf_qp *q = &p->traffic.qp[i];
        struct traffic_figures s = traffic_figures(&p->traffic.t, &q->out);
        buf_printf(b, " 0x%06x  0x%06x  %-10llu %-20.2f %-15.6f %-13.2f %-13.2f %-13.2f %-7llu %llu\n", q->own.qpn,
                   q->peer.qpn, (unsigned long long)q->out.r.completed, s.average / MB, s.rate / 1e6, s.min, s.mean,
                   s.max, (unsigned long long)ep_qp_stats(p->live->ep, q->qp)->retransmitted,
                   (unsigned long long)q->out.r.mismatches);
    }
}

void perf_text(struct buf *b, struct perf_client *p)
{
    uint64_t sent = p->traffic.t.r.completed;
    struct outcome v = outcome_of(p);

    if (p->config.latency)
        latency_table(b, &p->traffic.t);
    else
        bandwidth_table(b, &p->traffic.t);
    if (p->config.qps > 1)
        queue_pairs(b, p);
    if (p->counted && p->arrived < sent)
        buf_printf(b, "arrived: %llu of %s\n", (unsigned long long)p->arrived, count_str(sent, "message"));
    if (p->config.verify) {
        buf_puts(b, "validated: ");
        describe_validation(b, p, &v);
        buf_char(b, '\n');
    }
}

static void json_stats(struct buf *b, const struct traffic_result *r, const struct traffic_figures *s)
{
    buf_printf(
        b,
        "\"messages\":%llu,\"bytes\":%llu,\"seconds\":%.9f,\"bw_peak\":%.0f,\"bw_average\":%.0f,\"msg_rate\":%.3f,"
        "\"t_min\":%.3f,\"t_max\":%.3f,\"t_avg\":%.3f,\"mismatches\":%llu",
        (unsigned long long)r->completed, (unsigned long long)r->bytes, s->seconds, s->peak, s->average, s->rate,
        s->min, s->max, s->mean, (unsigned long long)r->mismatches);
}

void perf_json(struct buf *b, struct perf_client *p, const char *error)
{
    const struct traffic_config *c = &p->config;
    struct traffic_figures s = traffic_figures(&p->traffic.t, NULL);
    struct outcome v = outcome_of(p);
    struct buf text = {0};

    buf_printf(b, "{\"op\":\"%s\",\"type\":\"%s\",\"latency\":%s,\"size\":%u,\"mtu\":%u,\"qps\":%u,",
               traffic_op_str(c->op), qp_service_str((enum qp_type)c->type), c->latency ? "true" : "false", c->size,
               p->config.mtu, c->qps);
    json_stats(b, &p->traffic.t.r, &s);
    buf_printf(b, ",\"t_typical\":%.3f,\"t_stdev\":%.3f,\"t_99\":%.3f,\"t_99_9\":%.3f", s.typical, s.deviation, s.p99,
               s.p999);
    describe_validation(&text, p, &v);
    buf_printf(b, ",\"arrived\":");
    if (p->counted)
        buf_printf(b, "%llu", (unsigned long long)p->arrived);
    else
        buf_puts(b, "null");
    buf_printf(b, ",\"compared\":%llu,\"validation\":", (unsigned long long)v.compared);
    buf_json(b, buf_str(&text), text.len);
    buf_free(&text);
    buf_printf(b, ",\"validated\":%s,\"peer_is_rdmagen\":%s,\"error\":", validated(p, &v, error),
               p->ours ? "true" : "false");
    buf_json(b, error, strlen(error));
    buf_puts(b, ",\"queue_pairs\":[");
    for (unsigned i = 0; p->traffic.qp && i < c->qps && p->traffic.qp[i].qp >= 0; i++) {
        const struct perf_qp *q = &p->traffic.qp[i];
        const struct ep_stats *st = ep_qp_stats(p->live->ep, q->qp);
        s = traffic_figures(&p->traffic.t, &q->out);
        buf_printf(b, "%s{\"qpn\":%u,\"peer_qpn\":%u,", i ? "," : "", q->own.qpn, q->peer.qpn);
        json_stats(b, &q->out.r, &s);
        buf_printf(b,
                   ",\"retransmitted\":%llu,\"local_ack_timeout_err\":%llu,\"packet_seq_err\":%llu,\"rnr_nak_retry_"
                   "err\":%llu}",
                   (unsigned long long)st->retransmitted, (unsigned long long)st->local_ack_timeout_err,
                   (unsigned long long)st->packet_seq_err, (unsigned long long)st->rnr_nak_retry_err);
    }
    buf_puts(b, "]}\n");
}

/* --- Several threads -------------------------------------------------------------------------- */

void perf_part_fill(struct perf_part *part, struct perf_client *p, const char *error)
{
    struct perf_sums *out = &part->s;
    const struct traffic_result *r = &p->traffic.t.r;
    struct outcome v = outcome_of(p);
    struct buf b = {0};

    out->messages = r->completed;
    out->bytes = r->bytes;
    out->mismatches = r->mismatches;
    out->compared = v.compared;
    out->wrong = v.wrong;
    out->whole = v.whole;
    out->counted = p->counted;
    out->arrived = p->arrived;
    out->start = r->start;
    out->end = r->end;
    out->qps = p->config.qps;
    snprintf(out->compares, sizeof out->compares, "%s", what_is_compared(p));
    snprintf(out->error, sizeof out->error, "%s", error);
    perf_json(&b, p, error);
    if (b.len < sizeof part->json)
        memcpy(part->json, buf_str(&b), b.len + 1);
    buf_free(&b);
    out->there = true;
}

static const struct perf_sums *sums_at(struct parts *parts, unsigned i)
{
    return &((const struct perf_part *)parts_result(parts, i))->s;
}

/* The sums: from the first message of any thread to the last one. */
static struct perf_sums sums_of(struct parts *parts)
{
    struct perf_sums all = {.counted = true, .whole = true};

    for (unsigned i = 0; i < parts_count(parts); i++) {
        const struct perf_sums *t = sums_at(parts, i);
        all.messages += t->messages;
        all.bytes += t->bytes;
        all.mismatches += t->mismatches;
        all.compared += t->compared;
        all.wrong += t->wrong;
        all.arrived += t->arrived;
        all.counted &= t->counted;
        all.whole &= t->whole;
        all.qps += t->qps;
        if (t->messages && (!all.start || t->start < all.start))
            all.start = t->start;
        if (t->end > all.end)
            all.end = t->end;
        if (!*all.error)
            snprintf(all.error, sizeof all.error, "%s", t->there ? t->error : "a thread ended without a result");
        if (!*all.compares)
            snprintf(all.compares, sizeof all.compares, "%s", t->compares);
    }
    return all;
}

static double per_second(uint64_t n, const struct perf_sums *t)
{
    return t->end > t->start ? (double)n * 1e9 / (double)(t->end - t->start) : 0;
}

bool perf_parts_any(struct parts *parts)
{
    return sums_of(parts).messages;
}

void perf_parts_text(struct buf *b, struct parts *parts, const struct traffic_config *c)
{
    struct perf_sums all = sums_of(parts);

    buf_puts(b, " #bytes     #iterations    BW average[MB/sec]   MsgRate[Mpps]\n");
    buf_printf(b, " %-10u %-14llu %-20.2f %.6f\n", c->size, (unsigned long long)all.messages,
               per_second(all.bytes, &all) / MB, per_second(all.messages, &all) / 1e6);
    buf_puts(b, "\n thread   queue pairs   messages      BW average[MB/sec]   MsgRate[Mpps]   wrong\n");
    for (unsigned i = 0; i < parts_count(parts); i++) {
        const struct perf_sums *t = sums_at(parts, i);
        buf_printf(b, " %-8u %-13u %-13llu %-20.2f %-15.6f %llu\n", i, t->qps, (unsigned long long)t->messages,
                   per_second(t->bytes, t) / MB, per_second(t->messages, t) / 1e6, (unsigned long long)t->wrong);
    }
    if (all.counted && all.arrived < all.messages)
        buf_printf(b, "arrived: %llu of %s\n", (unsigned long long)all.arrived, count_str(all.messages, "message"));
    if (c->verify && !all.compared && !all.wrong)
        buf_puts(b, "validated: nothing was compared\n");
    else if (c->verify)
        buf_printf(b, "validated: %s: %llu compared, %llu wrong\n", all.compares, (unsigned long long)all.compared,
                   (unsigned long long)all.wrong);
}

static const char *all_validated(const struct perf_sums *all, const struct traffic_config *c)
{
    if (!c->verify)
        return "null";
    return all->wrong ? "false" : all->whole && !*all->error ? "true" : "null";
}

void perf_parts_json(struct buf *b, struct parts *parts, const struct traffic_config *c)
{
    struct perf_sums all = sums_of(parts);

    buf_printf(
        b,
        "{\"op\":\"%s\",\"type\":\"%s\",\"size\":%u,\"qps\":%u,\"messages\":%llu,\"bytes\":%llu,\"seconds\":%.9f,"
        "\"bw_average\":%.0f,\"msg_rate\":%.3f,\"mismatches\":%llu,\"arrived\":",
        traffic_op_str(c->op), qp_service_str((enum qp_type)c->type), c->size, all.qps,
        (unsigned long long)all.messages, (unsigned long long)all.bytes, (double)(all.end - all.start) / 1e9,
        per_second(all.bytes, &all), per_second(all.messages, &all), (unsigned long long)all.mismatches);
    if (all.counted)
        buf_printf(b, "%llu", (unsigned long long)all.arrived);
    else
        buf_puts(b, "null");
    buf_printf(b, ",\"compared\":%llu,\"validated\":%s,\"error\":", (unsigned long long)all.compared,
               all_validated(&all, c));
    buf_json(b, all.error, strlen(all.error));
    buf_puts(b, ",\"threads\":[");
    for (unsigned i = 0; i < parts_count(parts); i++) {
        const struct perf_part *t = parts_result(parts, i);
        const char *json = *t->json ? t->json : "null";
        buf_printf(b, "%s%.*s", i ? "," : "", (int)strcspn(json, "\n"), json);
    }
    buf_puts(b, "]}\n");
}
