/* layer 3 (workload): patterns of flows: incast, permutation, all-to-all, and lists. */
#include "gen/workload/workload_impl.h"

#include <stdlib.h>

static bool add(struct workload *w, unsigned src, unsigned dst, struct text_error *e)
{
    const struct workload_flow f = workload_flow_between(w, src, dst);

    return workload_flow(w, &f, e);
}

/* Again and again at random times, so often that they make a load of the link to the first host: that of `ppb`. */
static bool incasts(struct workload *w, unsigned senders, uint32_t ppb, struct text_error *e)
{
    uint64_t bits = senders * w->c.size * 8, gap = poisson_gap(bits, fabric_host_rate(w->s->fabric, 0), ppb);
    ns_t start = 0;

    for (uint64_t i = 0; i < w->c.iters; i++) {
        if (!poisson_next(w, gap, &start, e))
            return false;
        for (unsigned k = 0; k < senders; k++) {
            struct workload_flow f = workload_flow_between(w, w->n - 1 - k, 0);
            f.start += start;
            f.count = 1;
            f.own = true;
            if (!workload_flow(w, &f, e))
                return false;
        }
    }
    return true;
}

bool incast_flows(struct workload *w, const char *args, struct text_error *e)
{
    struct token t, key, value;
    uint64_t senders = w->n - 1;
    uint32_t ppb = 0;

    for (bool first = true; workload_word(&args, &t); first = false)
        if (token_key(&t, &key, &value) && token_is(&key, "load")) {
            if (!token_ppb(&value, &ppb) || !ppb)
                return text_fail(e, &value, "expected a load, such as 2%%");
        } else if (!first || !token_u64(&t, &senders) || senders < 1 || senders > w->n - 1) {
            return text_fail(e, &t, "expected 1 to %u senders, or load=PERCENT", w->n - 1);
        }
    if (ppb)
        return incasts(w, (unsigned)senders, ppb, e);
    for (unsigned i = 0; i < senders; i++)
        if (!add(w, w->n - 1 - i, 0, e))
            return false;
    return true;
}

bool permutation_flows(struct workload *w, const char *args, struct text_error *e)
{
    uint16_t *to = malloc(w->n * sizeof *to);
    bool good = to != NULL;

    (void)args;
    for (unsigned i = 0; good && i < w->n; i++)
        to[i] = (uint16_t)i;
    for (unsigned i = w->n - 1; good && i > 0; i--) { /* one cycle: no host sends to itself (Sattolo) */
        unsigned k = prng_below(&w->prng, i);
        uint16_t x = to[i];
        to[i] = to[k];
        to[k] = x;
    }
    for (unsigned i = 0; good && i < w->n; i++)
        good = add(w, i, to[i], e);
    free(to);
    return good;
}

/* Hosts by chance that get more than the others, as experts of a model that many tokens are for. */
struct hot {
    uint64_t hosts, times;
    uint8_t *is; /* by host */
};

static bool parse_hot(const struct workload *w, const char *args, struct hot *h, struct text_error *e)
{
    struct token t, key, value;

    while (workload_word(&args, &t)) {
        uint64_t *to = !token_key(&t, &key, &value) ? NULL
                       : token_is(&key, "hot")      ? &h->hosts
                       : token_is(&key, "times")    ? &h->times
                                                    : NULL;
        if (!to || !token_u64(&value, to) || h->hosts >= w->n || h->times < 1 || h->times > 1000)
            return text_fail(e, &t, "expected hot=HOSTS, below %u, or times=N, 1 to 1000", w->n);
    }
    if (h->hosts && h->times == 1)
        return text_fail(e, NULL, "expected times=N, 2 to 1000, beside hot=HOSTS");
    if (!h->hosts && h->times > 1)
        return text_fail(e, NULL, "expected hot=HOSTS, 1 to %u, beside times=N", w->n - 1);
    return true;
}

/* What a host sends is as much as if none were hot: the bytes to one that is not. */
static uint64_t cold_bytes(const struct workload *w, const struct hot *h, unsigned from)
{
    uint64_t hot = h->hosts - h->is[from];

    return w->c.size * (w->n - 1) / (w->n - 1 + hot * (h->times - 1));
}

bool alltoall_flows(struct workload *w, const char *args, struct text_error *e)
{
    struct hot h = {.times = 1, .is = calloc(w->n, 1)};
    bool good = h.is ? parse_hot(w, args, &h, e) : text_fail(e, NULL, "out of memory");

    for (uint64_t left = h.hosts; good && left;) {
        unsigned i = prng_below(&w->prng, w->n);
        left -= !h.is[i];
        h.is[i] = 1;
    }
    for (unsigned k = 1; k < w->n && good; k++)
        for (unsigned i = 0; i < w->n && good; i++) {
            struct workload_flow f = workload_flow_between(w, i, (i + k) % w->n);
            f.bytes = h.hosts ? cold_bytes(w, &h, i) * (h.is[f.dst] ? h.times : 1) : f.bytes;
            good = workload_flow(w, &f, e);
        }
    free(h.is);
    return good;
}

/* --- Lists: ours, and those of other simulators ----------------------------------------------- */

/* Each line is told by its own words:
 *
 *     h2 h1 4K 5us 3                       ours: SRC DST BYTES [START [CLASS]]
 *     2 1 3 100 4096 2.000005              flow.txt of the HPCC simulator: SRC DST CLASS PORT BYTES START, in seconds
 *     2 1 3 100000 2.0 9.5                 flow.txt of ns3-rdma: SRC DST CLASS PACKETS START END, in seconds
 *
 * A flow.txt begins with the number of its flows; behind the last one there may be any text. */
#define PORT_MAX 65535

/* Seconds with decimals, or a time with its unit. */
static bool parse_start(const struct token *t, ns_t *start)
{
    char text[40];
    struct token with_unit = {.p = text, .col = t->col};

    if (token_time(t, start))
        return true;
    if (t->len > sizeof text - 2)
        return false;
    memcpy(text, t->p, t->len);
    text[t->len] = 's';
    with_unit.len = t->len + 1;
    return token_time(&with_unit, start);
}

/* Where a line has its words; NULL: it has not. */
struct flow_words {
    const struct token *bytes, *packets, *start, *class, *port;
};

/* Both kinds of flow.txt have six words: ns3-rdma's fourth is no port, or its fifth is a time. */
static struct flow_words words_of(const struct token *t, unsigned n)
{
    uint64_t port;

    if (n < 6)
        return (struct flow_words){.bytes = &t[2], .start = n > 3 ? &t[3] : NULL, .class = n > 4 ? &t[4] : NULL};
    if (memchr(t[4].p, '.', t[4].len) || !token_u64(&t[3], &port) || port > PORT_MAX)
        return (struct flow_words){.packets = &t[3], .start = &t[4], .class = &t[2]};
    return (struct flow_words){.bytes = &t[4], .start = &t[5], .class = &t[2], .port = &t[3]};
}

static bool parse_length(const struct workload *w, const struct flow_words *at, uint64_t *bytes, struct text_error *e)
{
    uint32_t mtu = w->c.conn.peer[0].path_mtu;

    if (at->bytes)
        return (token_size(at->bytes, bytes) && *bytes <= WORKLOAD_BYTES) ||
               text_fail(e, at->bytes, "expected bytes, at most 1G");
    if (!token_u64(at->packets, bytes) || *bytes > WORKLOAD_BYTES / mtu)
        return text_fail(e, at->packets, "expected packets, at most 1G in all");
    *bytes *= mtu;
    return true;
}

static bool parse_class(const struct token *t, uint8_t *class, struct text_error *e)
{
    uint64_t c;

    if (!token_u64(t, &c) || c > 7)
        return text_fail(e, t, "expected a class, 0 to 7");
    *class = (uint8_t)c;
    return true;
}

static bool parse_hosts(const struct workload *w, const struct token *t, struct workload_flow *f, struct text_error *e)
{
    int src = workload_host(w, &t[0]), dst = workload_host(w, &t[1]);

    if (src < 0 || dst < 0)
        return text_fail(e, src < 0 ? &t[0] : &t[1], "there is no such host");
    f->src = (uint16_t)src;
    f->dst = (uint16_t)dst;
    return true;
}

static bool flow_line(struct workload *w, unsigned number, const struct token *t, unsigned n, struct text_error *e)
{
    struct workload_flow f = {.class = WORKLOAD_CLASS, .count = w->c.iters, .own = n == 6};
    struct flow_words at;
    uint64_t port = 0;

    if (number == 1 && n == 1 && token_u64(&t[0], &w->listed))
        return w->listed || text_fail(e, &t[0], "the list has no flows");
    if (w->listed && w->n_flows == w->listed)
        return true;
    if (n < 3 || n > 6)
        return text_fail(e, NULL,
                         "expected 'SRC DST BYTES [START [CLASS]]', or 'SRC DST CLASS PORT BYTES START' or 'SRC DST "
                         "CLASS PACKETS START END'");
    at = words_of(t, n);
    if (!parse_hosts(w, t, &f, e) || !parse_length(w, &at, &f.bytes, e))
        return false;
    if (at.start && !parse_start(at.start, &f.start))
        return text_fail(e, at.start, "expected a time such as 5us, or seconds");
    if (at.class && !parse_class(at.class, &f.class, e))
        return false;
    if (at.port)
        token_u64(at.port, &port);
    f.port = (uint16_t)port;
    return workload_flow(w, &f, e);
}

bool listed_flows(struct workload *w, const char *args, struct text_error *e)
{
    (void)args;
    if (!workload_lines(w, e, flow_line))
        return false;
    if (w->n_flows < w->listed)
        return text_fail(e, NULL, "the list has %u of the %llu flows that its first line says", w->n_flows,
                         (unsigned long long)w->listed);
    return w->n_flows > 0 || text_fail(e, NULL, "the list has no flows");
}
