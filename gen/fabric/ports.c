/* layer 3 (fabric): ports by name, their counters, and how long a message takes at best. */
#include "gen/fabric/fabric_impl.h"

#include <stdlib.h>

static bool is_named(const struct fab_node *n, const char *name, size_t len)
{
    return strlen(n->name) == len && memcmp(n->name, name, len) == 0;
}

struct fabric_port *fabric_port_find(const struct fabric *f, const char *name, size_t len)
{
    const char *dot = memchr(name, '.', len);
    size_t head = dot ? (size_t)(dot - name) : len, rest = dot ? len - head - 1 : 0;
    const struct fab_node *n = NULL;
    struct token number = {.p = name + head + 1, .len = (uint32_t)rest};
    uint64_t v;

    for (uint32_t i = 0; i < f->n_nodes && !n; i++)
        if (is_named(&f->node[i], name, head))
            n = &f->node[i];
    if (!n || (n->sw == NULL) == (dot != NULL))
        return NULL;
    if (!dot)
        return n->port;
    if (token_u64(&number, &v))
        return v >= 1 && v <= n->n_ports ? &n->port[v - 1] : NULL;
    for (uint32_t i = 0; i < n->n_ports; i++)
        if (is_named(&f->node[n->port[i].peer->node], name + head + 1, rest))
            return &n->port[i];
    return NULL;
}

struct fabric_port *fabric_port_nth(const struct fabric *f, uint32_t i)
{
    return i < f->n_ports ? &f->port[i] : NULL;
}

void fabric_port_name(struct buf *b, const struct fabric *f, const struct fabric_port *p)
{
    buf_puts(b, f->node[p->node].name);
    if (f->node[p->node].sw) {
        buf_char(b, '.');
        buf_puts(b, f->node[p->peer->node].name);
    }
}

void fabric_place_name(struct buf *b, const struct fabric_port *p, bool on_link)
{
    buf_puts(b, on_link ? "link " : "queue ");
    fabric_port_name(b, p->f, p);
}

struct fabric_counters fabric_port_counters(const struct fabric_port *p, ns_t now)
{
    struct fabric_counters n = p->n;

    for (unsigned c = 0; c < TOPO_CLASSES; c++)
        n.paused[c] = pfc_paused(&p->q[c], now);
    return n;
}

uint64_t fabric_port_depth(const struct fabric_port *p)
{
    uint64_t sum = 0;

    for (unsigned c = 0; c < TOPO_CLASSES; c++)
        sum += p->q[c].bytes;
    return sum;
}

uint64_t fabric_port_rate(const struct fabric_port *p)
{
    return p->rate;
}

void fabric_port_tap(struct fabric_port *p, struct tap_set *taps)
{
    p->taps = taps;
}

struct fabric_counters fabric_total(const struct fabric *f, ns_t now)
{
    struct fabric_counters t = {0};

    for (uint32_t i = 0; i < f->n_ports; i++) {
        struct fabric_counters n = fabric_port_counters(&f->port[i], now);
        t.sent += n.sent;
        t.sent_bytes += n.sent_bytes;
        t.received += n.received;
        t.dropped += n.dropped;
        t.lost += n.lost;
        t.marked += n.marked;
        t.pauses_sent += n.pauses_sent;
        t.resumes_sent += n.resumes_sent;
        t.pauses_received += n.pauses_received;
        t.storms += n.storms;
        t.depth_max = n.depth_max > t.depth_max ? n.depth_max : t.depth_max;
        for (unsigned c = 0; c < TOPO_CLASSES; c++)
            t.paused[c] += n.paused[c];
    }
    return t;
}

uint64_t fabric_hops(const struct fabric *f)
{
    return fabric_total(f, 0).sent;
}

/* The port by which a frame for host `to` leaves the node behind `p`, on the first of the shortest paths; NULL: it is
 * there, or no path leads there. */
static const struct fabric_port *next_port(const struct fabric *f, const struct fabric_port *p, unsigned to)
{
    const struct fab_node *at = &f->node[p->peer->node];
    const struct fab_switch *s = at->sw;
    const struct fabric_port *last = f->node[f->host[to]].port->peer;

    if (s && last->node == p->peer->node)
        return last;
    return s && s->route[last->node] != s->route[last->node + 1] ? &at->port[s->hop[s->route[last->node]]] : NULL;
}

ns_t fabric_ideal(const struct fabric *f, unsigned from, unsigned to, uint64_t bytes, uint32_t mtu, uint32_t head,
                  uint32_t reply)
{
    uint64_t packets = bytes ? (bytes + mtu - 1) / mtu : 1;
    uint32_t last = (uint32_t)(bytes - (packets - 1) * mtu);
    ns_t t = 0, slowest = 0;

    for (const struct fabric_port *p = f->node[f->host[from]].port; p; p = next_port(f, p, to)) {
        ns_t full = port_least(p, packets - 1, mtu + head);
        slowest = full > slowest ? full : slowest;
        t += p->delay + port_least(p, 1, last + head);
        if (reply)
            t += p->delay + port_least(p->peer, 1, reply);
    }
    return t + slowest;
}

bool fabric_port_same_node(const struct fabric_port *a, const struct fabric_port *b)
{
    return a->node == b->node;
}
