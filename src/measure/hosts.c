/* layer 3 (measure): host by host: what one host sent to another, at each tap. */
#include "src/measure/hosts.h"

static struct host_pair *pair_of(struct host_pairs *x, const struct meter_row *m)
{
    for (unsigned i = 0; i < x->n; i++) {
        const struct meter_row *r = x->of[i].row;
        if (row_tap(r) == row_tap(m) && conn_addr_eq(&r->src, &m->src) && conn_addr_eq(&r->dst, &m->dst))
            return &x->of[i];
    }
    if (x->n == HOST_PAIRS)
        return NULL;
    x->of[x->n] = (struct host_pair){.row = m};
    return &x->of[x->n++];
}

static void add_row(struct host_pair *p, const struct meter_row *m)
{
    p->packets += m->c.packets;
    p->bytes += m->c.bytes;
    p->again += m->c.again;
    p->ce += m->c.ce;
    p->lost += m->lost == METER_NONE ? 0 : m->lost;
    if (m->latency.n && m->latency.p99 > p->p99)
        p->p99 = m->latency.p99;
}

void host_pairs_add(struct host_pairs *x, struct meter_row *const *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct host_pair *to = pair_of(x, rows[i]);
        if (to)
            add_row(to, rows[i]);
        else
            x->left_out += rows[i]->c.bytes;
    }
}
