/* layer 3 (judge): how evenly queue pairs that send to one destination share its rate. */
#include "src/judge/judge_impl.h"

#include <stdlib.h>

/* So many senders, for so long, say something. */
#define FAIR_FLOWS 3
#define FAIR_TIME  (50 * NS_PER_MS)

static double gbps(uint64_t bytes, ns_t time)
{
    return time > 0 ? (double)bytes * 8 / (double)time : 0;
}

/* The payload that one queue pair sent to a destination. */
struct share {
    uint32_t tap;
    struct conn_addr dst;
    ns_t first, last;
    uint64_t bytes;
};

static int by_destination(const void *x, const void *y)
{
    const struct share *a = x, *b = y;
    int d = a->tap != b->tap ? (a->tap < b->tap ? -1 : 1) : memcmp(&a->dst, &b->dst, 16);

    return d ? d : (a->bytes < b->bytes) - (a->bytes > b->bytes);
}

/* True if `a` sent during at least half of the time in which `b` sent. */
static bool together(const struct share *a, const struct share *b)
{
    ns_t from = a->first > b->first ? a->first : b->first, to = a->last < b->last ? a->last : b->last;
    ns_t all = b->last - b->first;

    return to - from >= all - all / 2;
}

/* Jain's index of the senders `s` (`n`, sorted by bytes, most first) to one destination that sent at the same time
 * as the first. */
static void note_shares(struct judge *j, const struct share *s, uint32_t n)
{
    double sum = 0, squares = 0, low = 0, high = 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++) {
        double r = gbps(s[i].bytes, s[i].last - s[i].first);
        if (!together(s, &s[i]))
            continue;
        low = count && low < r ? low : r;
        high = high > r ? high : r;
        sum += r;
        squares += r * r;
        count++;
    }
    if (count < FAIR_FLOWS || s->last - s->first < FAIR_TIME)
        return;
    j->file = (uint16_t)(s->tap >> 16);
    judge_note(j, RULE_CC_08, FLOW_NONE, 0,
               say(j, "Jain's index %.3f of %u queue pairs to one destination, %.6f to %.6f Gbit/s",
                   sum * sum / (count * squares), count, low, high),
               "1 is perfectly fair, 1/n is all for one. Payload, of queue pairs that send at the same time, if their "
               "programs "
               "want as much.");
}

void judge_fairness(struct judge *j)
{
    struct conn_counts c = conn_counts(j->conns);
    struct share *s = judge_wants(j, RULE_CC_08) && c.flows > 1 ? malloc(c.flows * sizeof *s) : NULL;
    uint32_t n = 0;

    for (uint32_t i = 0; s && i < c.flows; i++) {
        const struct req_dir *h = j->flows[i].dir;
        const struct flow *f = &j->flow[i];
        if (h && h->bytes && h->last_ts > h->first_ts)
            s[n++] = (struct share){
                .tap = f->tap, .dst = f->dst, .first = h->first_ts, .last = h->last_ts, .bytes = h->bytes};
    }
    if (n)
        qsort(s, n, sizeof *s, by_destination);
    for (uint32_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && s[k].tap == s[i].tap && conn_addr_eq(&s[k].dst, &s[i].dst); k++)
            ;
        note_shares(j, s + i, k - i);
    }
    free(s);
}
