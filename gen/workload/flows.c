/* layer 3 (workload): patterns of flows: incast, permutation, all-to-all, and lists. */
#include "gen/workload/workload_impl.h"

#include <stdlib.h>

/* A time by chance, within one packet: hosts that start at exactly the same moment are an artefact. */
static ns_t some_time(struct workload *w, unsigned src)
{
    uint64_t bits = 8 * (uint64_t)w->c.conn.peer[0].path_mtu;
    uint64_t time = bits * NS_PER_S / fabric_host_rate(w->s->fabric, src);

    return (ns_t)prng_below(&w->prng, time < UINT32_MAX ? (uint32_t)time + 1 : UINT32_MAX);
}

static bool add(struct workload *w, unsigned src, unsigned dst, struct text_error *e)
{
    const struct workload_flow f = {.src = (uint16_t)src,
                                    .dst = (uint16_t)dst,
                                    .class = WORKLOAD_CLASS,
                                    .bytes = w->c.size,
                                    .count = w->c.iters,
                                    .start = some_time(w, src)};

    return workload_flow(w, &f, e);
}

bool incast_flows(struct workload *w, const char *args, struct text_error *e)
{
    struct token t = token_of(args);
    uint64_t senders = w->n - 1;

    if (*args && (!token_u64(&t, &senders) || senders < 1 || senders > w->n - 1))
        return text_fail(e, &t, "expected 1 to %u senders", w->n - 1);
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

bool alltoall_flows(struct workload *w, const char *args, struct text_error *e)
{
    (void)args;
    for (unsigned k = 1; k < w->n; k++)
        for (unsigned i = 0; i < w->n; i++)
            if (!add(w, i, (i + k) % w->n, e))
                return false;
    return true;
}

/* --- Lists ------------------------------------------------------------------------------------ */

/* A host, by its name, or by its number from 0; -1: none. */
static int host_named(const struct workload *w, const struct token *t)
{
    uint64_t n;

    for (unsigned h = 0; h < w->n; h++)
        if (token_is(t, fabric_host_name(w->s->fabric, h)))
            return (int)h;
    return token_u64(t, &n) && n < w->n ? (int)n : -1;
}

/* Seconds with decimals, as flow.txt has them, or a time with its unit. */
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

/* "SRC DST BYTES [START [CLASS]]", or of flow.txt "SRC DST CLASS PORT BYTES START". */
static bool flow_line(struct workload *w, const struct token *t, unsigned n, struct text_error *e)
{
    bool hpcc = n == 6;
    const struct token *bytes = &t[hpcc ? 4 : 2], *start = hpcc ? &t[5] : &t[3], *class = hpcc ? &t[2] : &t[4];
    struct workload_flow f = {.class = WORKLOAD_CLASS, .count = w->c.iters};
    int src, dst;
    uint64_t c;

    if (n < 3 || n > 6)
        return text_fail(e, NULL, "expected 'SRC DST BYTES [START [CLASS]]', or 'SRC DST CLASS PORT BYTES START'");
    if ((src = host_named(w, &t[0])) < 0 || (dst = host_named(w, &t[1])) < 0)
        return text_fail(e, src < 0 ? &t[0] : &t[1], "there is no such host");
    if (!token_size(bytes, &f.bytes) || f.bytes > UINT64_C(1) << 30)
        return text_fail(e, bytes, "expected bytes, at most 1G");
    if (n > 3 && !parse_start(start, &f.start))
        return text_fail(e, start, "expected a time such as 5us, or seconds");
    if (n > 4 && (!token_u64(class, &c) || c > 7))
        return text_fail(e, class, "expected a class, 0 to 7");
    if (n > 4)
        f.class = (uint8_t)c;
    f.src = (uint16_t)src;
    f.dst = (uint16_t)dst;
    return workload_flow(w, &f, e);
}

/* The text of the list is the argument: who calls has read the file. */
bool listed_flows(struct workload *w, const char *args, struct text_error *e)
{
    unsigned number = 0;
    uint64_t flows;

    while (*args) {
        size_t len = strcspn(args, "\n");
        char line[256];
        struct token t[7];
        unsigned n;
        number++;
        if (len >= sizeof line)
            return text_fail(e, NULL, "line %u: too long", number);
        memcpy(line, args, len);
        line[len] = '\0';
        n = text_split(line, t, 6);
        if (n && !(number == 1 && n == 1 && token_u64(&t[0], &flows))) /* flow.txt begins with the number of flows */
            if (!flow_line(w, t, n, e)) {
                char why[sizeof e->msg];
                memcpy(why, e->msg, sizeof why);
                return text_fail(e, NULL, "line %u: %.200s", number, why);
            }
        args += len + (args[len] == '\n');
    }
    return w->n_flows > 0 || text_fail(e, NULL, "the list has no flows");
}
