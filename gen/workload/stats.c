/* layer 3 (workload): figures over time: a row of CSV for each port and each queue pair that changed. */
#include "gen/workload/workload_impl.h"

#include <stdlib.h>

void workload_stats(struct workload *w, struct buf *b, ns_t interval)
{
    w->stats = b;
    w->interval = interval;
    w->sample = interval;
    buf_puts(b, "ns,what,name,depth_bytes,sent_bytes,sent_frames,marked,dropped,lost,pauses_sent,pauses_received,"
                "paused_ns,rate_bps,rate_cuts\n");
}

static void number(struct buf *b, uint64_t v)
{
    buf_char(b, ',');
    buf_dec(b, v);
}

static void port_row(struct workload *w, uint32_t i, const struct fabric_port *p, ns_t now)
{
    struct fabric_counters n = fabric_port_counters(p, now);
    uint64_t depth = fabric_port_depth(p), paused = 0, sum;

    for (unsigned c = 0; c < TOPO_CLASSES; c++)
        paused += (uint64_t)n.paused[c];
    sum = n.sent_bytes + n.dropped + n.lost + n.pauses_received + paused + (depth << 20);
    if (sum == w->told[i])
        return;
    w->told[i] = sum;
    buf_dec(w->stats, (uint64_t)now);
    buf_puts(w->stats, ",port,");
    fabric_port_name(w->stats, w->s->fabric, p);
    number(w->stats, depth);
    number(w->stats, n.sent_bytes);
    number(w->stats, n.sent);
    number(w->stats, n.marked);
    number(w->stats, n.dropped);
    number(w->stats, n.lost);
    number(w->stats, n.pauses_sent);
    number(w->stats, n.pauses_received);
    number(w->stats, paused);
    buf_puts(w->stats, ",,\n");
}

static void qp_row(struct workload *w, uint64_t *told, const struct sim_conn *c, unsigned end, ns_t now)
{
    const struct endpoint *ep = w->s->ep[c->host[end]];
    const struct ep_stats *st = ep_qp_stats(ep, c->qp[end]);
    const struct cc *cc = ep_qp_cc(ep, c->qp[end]);
    uint64_t sum = st->tx_bytes + (cc ? cc_rate(cc) + cc->cuts : 0);

    if (sum == *told)
        return;
    *told = sum;
    buf_dec(w->stats, (uint64_t)now);
    buf_printf(w->stats, ",qp,%s>%s:0x%06x,", fabric_host_name(w->s->fabric, c->host[end]),
               fabric_host_name(w->s->fabric, c->host[end ^ 1]), ep_qp(ep, c->qp[end])->qpn);
    number(w->stats, st->tx_bytes);
    number(w->stats, st->tx_packets);
    buf_puts(w->stats, ",,,,,,");
    if (cc) {
        number(w->stats, cc_rate(cc));
        number(w->stats, cc->cuts);
    } else {
        buf_puts(w->stats, ",,");
    }
    buf_char(w->stats, '\n');
}

static void rows(struct workload *w, ns_t now)
{
    struct fabric_port *p;
    uint32_t i;

    for (i = 0; (p = fabric_port_nth(w->s->fabric, i)); i++)
        port_row(w, i, p, now);
    for (uint32_t k = 0; k < w->n_conns; k++)
        for (unsigned end = 0; end < 2; end++)
            qp_row(w, &w->told[i + 2 * k + end], w->conn[k].c, end, now);
}

void stats_rows(struct workload *w, ns_t now)
{
    uint32_t ports = 0;

    if (now != NS_NEVER && now < w->sample)
        return;
    while (fabric_port_nth(w->s->fabric, ports))
        ports++;
    if (!w->told && !(w->told = calloc(ports + 2 * (size_t)w->n_conns + 1, sizeof *w->told)))
        return;
    rows(w, now == NS_NEVER ? w->s->now : now - now % w->interval);
    w->sample = now == NS_NEVER ? NS_NEVER : now + w->interval - now % w->interval;
}

/* --- Curves ----------------------------------------------------------------------------------- */

/* Half as many points, each of twice the time. */
static void merge(struct sparks *k)
{
    for (unsigned i = 0; i < SPARKS / 2; i++) {
        uint64_t a = k->queue[2 * i], b = k->queue[2 * i + 1];
        k->queue[i] = a > b ? a : b;
        k->sent[i] = k->sent[2 * i] + k->sent[2 * i + 1];
    }
    k->n = SPARKS / 2;
    k->interval *= 2;
}

static void note(struct workload *w, struct sparks *k)
{
    uint64_t longest = 0, sent = 0;
    const struct fabric_port *p;

    for (uint32_t i = 0; (p = fabric_port_nth(w->s->fabric, i)); i++) {
        uint64_t depth = fabric_port_depth(p);
        longest = depth > longest ? depth : longest;
    }
    for (unsigned h = 0; h < w->n; h++)
        sent += ep_stats(w->s->ep[h])->tx_bytes;
    k->queue[k->n] = longest;
    k->sent[k->n++] = sent - k->sent_before;
    k->sent_before = sent;
}

void sparks_note(struct workload *w, ns_t now)
{
    struct sparks *k = &w->sparks;

    if (LIKELY(now < k->next) || !w->r.posted)
        return;
    if (!k->interval) { /* they begin with the first message */
        k->interval = NS_PER_US;
        k->next = w->r.start - w->r.start % k->interval;
    }
    while (k->next <= now) { /* nothing happened meanwhile */
        if (k->n == SPARKS)
            merge(k);
        note(w, k);
        k->next += k->interval;
    }
}

static void curve(struct buf *b, const uint64_t *v, unsigned n, uint64_t most)
{
    static const char *const steps[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

    for (unsigned i = 0; i < n; i++)
        buf_puts(b, v[i] == 0 ? " " : steps[most ? (v[i] * 8 - 1) / most % 8 : 0]);
}

static uint64_t largest(const uint64_t *v, unsigned n)
{
    uint64_t most = 0;

    for (unsigned i = 0; i < n; i++)
        most = v[i] > most ? v[i] : most;
    return most;
}

void sparks_text(struct buf *b, const struct workload *w)
{
    const struct sparks *k = &w->sparks;
    uint64_t queue = largest(k->queue, k->n), sent = largest(k->sent, k->n);

    if (k->n < 8)
        return;
    buf_puts(b, " longest queue  |");
    curve(b, k->queue, k->n, queue);
    buf_printf(b, "| up to %llu bytes\n bytes sent     |", (unsigned long long)queue);
    curve(b, k->sent, k->n, sent);
    buf_printf(b, "| up to %llu Mbit/s\n", (unsigned long long)(sent * 8000 / (uint64_t)k->interval));
}
