/* layer 3 (explain): the flows to each host, found without a walk over all flows. */
#include "src/explain/compare/taps.h"
#include "src/explain/explain_impl.h"

#include <stdlib.h>

struct to_host {
    struct conn_addr dst;
    uint32_t tap, flow;
};

static int by_host(const void *a, const void *b)
{
    const struct to_host *x = a, *y = b;
    int d = memcmp(&x->dst, &y->dst, sizeof x->dst);

    if (d)
        return d;
    d = (x->tap > y->tap) - (x->tap < y->tap);
    return d ? d : (x->flow > y->flow) - (x->flow < y->flow);
}

bool explain_hosts_index(struct explainer *x)
{
    struct conn_table *conns = observer_conns(x->observer);
    uint32_t n = conn_counts(conns).flows;

    explain_hosts_free(x);
    x->to_hosts = calloc(n + (size_t)1, sizeof *x->to_hosts);
    for (uint32_t i = 0; x->to_hosts && i < n; i++) {
        const struct flow *f = conn_flow_at(conns, i);
        x->to_hosts[i].tap = f->tap;
        x->to_hosts[i].flow = i;
        memcpy(&x->to_hosts[i].dst, &f->dst, sizeof f->dst);
    }
    x->n_to_hosts = x->to_hosts ? n : 0;
    if (x->n_to_hosts)
        qsort(x->to_hosts, x->n_to_hosts, sizeof *x->to_hosts, by_host);
    return x->to_hosts != NULL;
}

void explain_hosts_free(struct explainer *x)
{
    free(x->to_hosts);
    x->to_hosts = NULL;
    x->n_to_hosts = 0;
}

/* The place of the first flow that is not before `key`. */
static uint32_t lowest(const struct explainer *x, const struct to_host *key)
{
    uint32_t low = 0, high = x->n_to_hosts;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (by_host(&x->to_hosts[mid], key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct flows_to explain_flows_to(const struct explainer *x, const struct conn_addr *dst, uint32_t tap)
{
    struct to_host key = {.tap = tap == FLOWS_OF_ALL_TAPS ? 0 : tap};
    struct flows_to f;

    memcpy(&key.dst, dst, sizeof *dst);
    f.at = lowest(x, &key);
    key.tap = tap;
    key.flow = UINT32_MAX;
    f.end = lowest(x, &key);
    return f;
}

uint32_t explain_flow_to(const struct explainer *x, uint32_t at)
{
    return x->to_hosts[at].flow;
}
