/* layer 3 (workload): the shuffle of MapReduce: reducers READ the blocks that mappers wrote. */
#include "gen/workload/workload_impl.h"

/* A host READs from another one. */
static bool add(struct workload *w, unsigned reducer, unsigned mapper, uint64_t bytes, struct text_error *e)
{
    struct workload_flow f = workload_flow_between(w, mapper, reducer);

    f.protocol = PROTOCOL_READ;
    f.bytes = bytes;
    return workload_flow(w, &f, e);
}

/* "REDUCER MAPPER BYTES" */
static bool block_line(struct workload *w, unsigned number, const struct token *t, unsigned n, struct text_error *e)
{
    int reducer, mapper;
    uint64_t bytes;

    (void)number;
    if (n != 3)
        return text_fail(e, NULL, "expected 'REDUCER MAPPER BYTES'");
    if ((reducer = workload_host(w, &t[0])) < 0 || (mapper = workload_host(w, &t[1])) < 0)
        return text_fail(e, reducer < 0 ? &t[0] : &t[1], "there is no such host");
    if (!token_size(&t[2], &bytes) || !bytes || bytes > WORKLOAD_BYTES)
        return text_fail(e, &t[2], "expected bytes, 1 to 1G");
    return add(w, (unsigned)reducer, (unsigned)mapper, bytes, e);
}

/* Each host READs from all others, in an order of its own. */
static bool from_all(struct workload *w, struct text_error *e)
{
    for (unsigned r = 0; r < w->n; r++) {
        unsigned first = prng_below(&w->prng, w->n - 1);
        for (unsigned k = 0; k < w->n - 1; k++)
            if (!add(w, r, (r + 1 + (first + k) % (w->n - 1)) % w->n, w->c.size, e))
                return false;
    }
    return true;
}

bool shuffle_flows(struct workload *w, const char *args, struct text_error *e)
{
    (void)args;
    if (!w->c.text)
        return from_all(w, e);
    return workload_lines(w, e, block_line) && (w->n_flows || text_fail(e, NULL, "the list has no blocks"));
}
