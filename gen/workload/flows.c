/* layer 3 (workload): patterns of flows: incast, permutation, all-to-all, and lists. */
#include "gen/workload/workload_impl.h"

#include <stdlib.h>

static bool add(struct workload *w, unsigned src, unsigned dst, struct text_error *e)
{
    const struct workload_flow f = workload_flow_between(w, src, dst);

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
static bool flow_line(struct workload *w, unsigned number, const struct token *t, unsigned n, struct text_error *e)
{
    bool hpcc = n == 6;
    const struct token *bytes = &t[hpcc ? 4 : 2], *start = hpcc ? &t[5] : &t[3], *class = hpcc ? &t[2] : &t[4];
    struct workload_flow f = {.class = WORKLOAD_CLASS, .count = w->c.iters};
    int src, dst;
    uint64_t c;

    if (number == 1 && n == 1 && token_u64(&t[0], &c)) /* flow.txt begins with the number of flows */
        return true;
    if (n < 3 || n > 6)
        return text_fail(e, NULL, "expected 'SRC DST BYTES [START [CLASS]]', or 'SRC DST CLASS PORT BYTES START'");
    if ((src = workload_host(w, &t[0])) < 0 || (dst = workload_host(w, &t[1])) < 0)
        return text_fail(e, src < 0 ? &t[0] : &t[1], "there is no such host");
    if (!token_size(bytes, &f.bytes) || f.bytes > WORKLOAD_BYTES)
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

bool listed_flows(struct workload *w, const char *args, struct text_error *e)
{
    (void)args;
    return workload_lines(w, e, flow_line) && (w->n_flows > 0 || text_fail(e, NULL, "the list has no flows"));
}
