/* layer 3 (fabric): which port of a switch leads to a host: shortest paths, chosen by flow or by packet. */
#include "dissect/link/eth.h"
#include "gen/fabric/fabric_impl.h"

#include <stdlib.h>

#define FAR UINT16_MAX

/* --- Flows ------------------------------------------------------------------------------------ */

static uint64_t hash_bytes(const uint8_t *p, uint32_t len)
{
    uint64_t h = len;

    for (uint32_t i = 0; i + 4 <= len; i += 4)
        h = prng_mix(h + UINT64_C(0x9e3779b97f4a7c15) + load_be32(p + i));
    return h;
}

uint64_t flow_hash(const uint8_t *data, uint32_t len)
{
    uint32_t at = len >= 18 && load_be16(data + 12) == ETHERTYPE_VLAN ? 18 : 14;
    uint16_t type = len >= at + 44 ? load_be16(data + at - 2) : 0;

    if (type == ETHERTYPE_IPV4) /* addresses, and the ports behind a header without options */
        return hash_bytes(data + at + 12, 12) ^ data[at + 9];
    if (type == ETHERTYPE_IPV6)
        return hash_bytes(data + at + 8, 36) ^ data[at + 6];
    return type ? hash_bytes(data + at + 8, 32) : 0; /* the GIDs of RoCEv1 */
}

/* --- Paths ------------------------------------------------------------------------------------ */

/* Whether the switches know, at `now`, that the link of `p` cannot be used. */
static bool is_known_down(const struct fabric_port *p, ns_t now)
{
    const struct fab_switch *s = switch_at(p);
    ns_t known = now - (s ? s->c.reroute : 0);

    return p->down <= known && known < p->up;
}

/* Distances of all switches to `to`, in `dist`; `queue` has room for all nodes. */
static void distances(const struct fabric *f, uint32_t to, uint16_t *dist, uint32_t *queue, ns_t now)
{
    uint32_t head = 0, tail = 0;

    for (uint32_t i = 0; i < f->n_nodes; i++)
        dist[i] = FAR;
    dist[to] = 0;
    queue[tail++] = to;
    while (head < tail) {
        const struct fab_node *n = &f->node[queue[head]];
        uint16_t next = (uint16_t)(dist[queue[head++]] + 1);
        for (uint32_t i = 0; i < n->n_ports; i++) {
            uint32_t peer = n->port[i].peer->node;
            if (!f->node[peer].sw || dist[peer] != FAR || is_known_down(&n->port[i], now))
                continue;
            dist[peer] = next;
            queue[tail++] = peer;
        }
    }
}

/* Ports of a switch that are on shortest paths; `hop` NULL: only count them. */
static uint32_t best_ports(const struct fabric *f, uint32_t at, const uint16_t *dist, uint16_t *hop, ns_t now)
{
    const struct fab_node *n = &f->node[at];
    uint32_t count = 0;

    for (uint32_t i = 0; i < n->n_ports; i++) {
        uint32_t peer = n->port[i].peer->node;
        if (!f->node[peer].sw || dist[peer] == FAR || dist[peer] + 1 != dist[at] || is_known_down(&n->port[i], now))
            continue;
        if (hop)
            hop[count] = (uint16_t)i;
        count++;
    }
    return count;
}

/* Add the ports that lead from each switch to `to`, behind those of the nodes before; `dist` of distances(). */
static bool add_routes(struct fabric *f, uint32_t to, const uint16_t *dist, ns_t now)
{
    for (uint32_t i = 0; i < f->n_nodes; i++) {
        struct fab_switch *s = f->node[i].sw;
        uint32_t n, at;
        uint16_t *hop;
        if (!s)
            continue;
        at = s->route[to];
        n = f->node[to].sw ? best_ports(f, i, dist, NULL, now) : 0;
        s->route[to + 1] = at + n;
        if (!n)
            continue;
        hop = realloc(s->hop, (at + n) * sizeof *hop);
        if (!hop)
            return false;
        s->hop = hop;
        best_ports(f, i, dist, hop + at, now);
    }
    return true;
}

bool routes_find(struct fabric *f, ns_t now)
{
    uint16_t *dist = malloc(f->n_nodes * sizeof *dist);
    uint32_t *queue = malloc(f->n_nodes * sizeof *queue);
    bool good = dist && queue;

    for (uint32_t i = 0; i < f->n_nodes && good; i++) {
        struct fab_switch *s = f->node[i].sw;
        if (s && !s->route && !(s->route = calloc(f->n_nodes + 1, sizeof *s->route)))
            good = false;
    }
    for (uint32_t to = 0; to < f->n_nodes && good; to++) {
        if (f->node[to].sw)
            distances(f, to, dist, queue, now);
        good = add_routes(f, to, dist, now);
    }
    for (uint32_t i = 0; i < f->n_nodes && !good; i++) /* no path is better than half of the old ones */
        if (f->node[i].sw && f->node[i].sw->route)
            memset(f->node[i].sw->route, 0, (f->n_nodes + 1) * sizeof *f->node[i].sw->route);
    free(dist);
    free(queue);
    return good;
}

void routes_watch(struct fabric *f, ns_t now)
{
    ns_t next = NS_NEVER;

    for (uint32_t i = 0; i < f->n_ports; i++) {
        const struct fabric_port *p = &f->port[i];
        const struct fab_switch *s = switch_at(p);
        ns_t change[2] = {p->down, p->up};
        for (unsigned k = 0; s && k < 2; k++) {
            ns_t t = change[k] == NS_NEVER ? NS_NEVER : change[k] + s->c.reroute;
            next = t > now && t < next ? t : next;
        }
    }
    if (next != NS_NEVER)
        timer_set(&f->timers, &f->reroute, next);
}

/* Which of `n` ports a flow takes. */
static uint64_t by_hash(const struct fab_switch *s, uint64_t hash, uint32_t n)
{
    return prng_mix(hash ^ s->seed) % n;
}

struct fabric_port *route_of(struct fabric *f, struct fab_node *at, const struct fab_frame *m)
{
    const struct fab_switch *s = at->sw;
    const struct fabric_port *host;
    uint32_t to, first, n;
    uint64_t choice;

    if (m->to == FAB_NO_HOST)
        return NULL;
    host = f->node[f->host[m->to]].port;
    to = host->peer->node;
    if (&f->node[to] == at)
        return host->peer;
    first = s->route[to];
    n = s->route[to + 1] - first;
    if (n == 0)
        return NULL;
    choice = n == 1 ? 0 : s->c.spray ? prng_below(&f->prng, n) : by_hash(s, m->hash, n);
    return &at->port[s->hop[first + choice]];
}

#define HEADERS 128 /* bytes of a frame in which its flow is, at most */

void fabric_count_path(const struct fabric *f, unsigned from, unsigned to, const uint8_t *head, uint32_t len,
                       struct path_counts *c)
{
    uint8_t frame[HEADERS] = {0};
    const struct fabric_port *p = f->node[f->host[from]].port;
    uint32_t last = f->node[f->host[to]].port->peer->node;
    uint64_t hash;

    memcpy(frame, head, len < HEADERS ? len : HEADERS);
    hash = flow_hash(frame, HEADERS);
    for (uint32_t hops = 0; hops < f->n_nodes && p->peer->node != last; hops++) {
        const struct fab_node *at = &f->node[p->peer->node];
        const uint16_t *hop = at->sw ? at->sw->hop + at->sw->route[last] : NULL;
        uint32_t n = hop ? at->sw->route[last + 1] - at->sw->route[last] : 0;
        if (!n || at->sw->c.spray)
            return;
        p = &at->port[hop[n == 1 ? 0 : by_hash(at->sw, hash, n)]];
        if (n == 1)
            continue;
        for (uint32_t i = 0; i < n; i++)
            c[at->port + hop[i] - f->port].may++;
        c[p - f->port].flows++;
    }
}
