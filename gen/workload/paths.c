/* layer 3 (workload): which flows share a port although equal-cost paths are free: collisions of ECMP. */
#include "gen/workload/workload_impl.h"

#include <stdlib.h>

#define COLLISIONS_TOLD 4 /* switches, as text */

/* One end of a connection sent: its packets take one path. */
static void add_flow(const struct workload *w, const struct workload_conn *n, unsigned end, struct path_counts *p)
{
    const struct endpoint *ep = w->s->ep[n->host[end]];
    const struct path *path;

    if (!n->c || !ep_qp_stats(ep, n->c->qp[end])->tx_payload)
        return;
    path = ep_qp_path(ep, n->c->qp[end]);
    fabric_count_path(w->s->fabric, n->host[end], n->host[!end], path->head, path->head_len, p);
}

struct path_counts *paths_count(const struct workload *w)
{
    uint32_t ports = 0;
    struct path_counts *p;

    while (fabric_port_nth(w->s->fabric, ports))
        ports++;
    p = calloc(ports ? ports : 1, sizeof *p);
    for (uint32_t i = 0; p && i < w->n_conns; i++)
        for (unsigned end = 0; end < 2; end++)
            add_flow(w, &w->conn[i], end, p);
    return p;
}

/* The ports of one switch that equal-cost paths begin with. */
struct choice {
    uint32_t flows, ports, unused, most; /* `most`: on `busiest` */
    const struct fabric_port *busiest;
};

/* Of the switch with port `*i`, which becomes the first port of the next node. */
static struct choice choice_of(const struct fabric *f, const struct path_counts *p, uint32_t *i)
{
    struct choice c = {0};
    const struct fabric_port *port = fabric_port_nth(f, *i), *first = port;

    for (; port && fabric_port_same_node(port, first); port = fabric_port_nth(f, ++*i)) {
        const struct path_counts *x = &p[*i];
        c.ports += x->may > 0;
        c.unused += x->may && !x->flows;
        c.flows += x->flows;
        if (x->flows > c.most) {
            c.most = x->flows;
            c.busiest = port;
        }
    }
    return c;
}

void paths_text(struct buf *b, const struct workload *w)
{
    struct path_counts *p = paths_count(w);
    unsigned told = 0, more = 0;

    for (uint32_t i = 0; p && fabric_port_nth(w->s->fabric, i);) {
        struct choice c = choice_of(w->s->fabric, p, &i);
        if (!c.ports || c.most <= (c.flows + c.ports - 1) / c.ports)
            continue;
        if (told == COLLISIONS_TOLD) {
            more++;
            continue;
        }
        told++;
        buf_puts(b, " ECMP collision: ");
        fabric_port_name(b, w->s->fabric, c.busiest);
        buf_printf(b, " carries %u of %s for which there are %u ports", c.most, count_str(c.flows, "flow"), c.ports);
        if (c.unused)
            buf_printf(b, ", %u of them without any", c.unused);
        buf_char(b, '\n');
    }
    if (more)
        buf_printf(b, " ECMP collisions at further switches: %u\n", more);
    free(p);
}
