/* layer 3 (net): a simulated network: its chains are built, and virtual time runs in them. */
#include "gen/net/net_impl.h"

#include <errno.h>
#include <stdlib.h>

/* The path of a frame, by the link address of its source. */
static uint8_t path_of(const struct net *net, unsigned from, const uint8_t *data, uint32_t len)
{
    const struct link_addr *second = net->port2[from];

    if (LIKELY(!second))
        return 1;
    if (net->linktype == LINK_INFINIBAND)
        return len >= 8 && load_be16(data + 6) == second->lid ? 2 : 1;
    return len >= 14 && memcmp(data + 6, second->mac, 6) == 0 ? 2 : 1;
}

bool net_send(struct net *net, unsigned from, const uint8_t *data, uint32_t len, ns_t now)
{
    struct net_frame *f = len <= NET_FRAME_MAX ? net_frame_new(net, data, len) : NULL;

    if (!f)
        return false;
    f->dir = (uint8_t)from;
    f->path = path_of(net, from, data, len);
    f->serial = ++net->serial;
    net_report(net, f, NET_SENT, NULL, now);
    node_take(net, net->chain[from], f, now);
    return true;
}

/* True if `a`, due at `due`, comes before `b`, due at `at`. */
static bool comes_first(const struct net_node *a, ns_t due, const struct net_node *b, ns_t at)
{
    if (due != at)
        return due < at;
    return !a->head || (b->head && a->head->order < b->head->order);
}

/* The node that is due next; NULL: none. */
static struct net_node *net_due(struct net *net)
{
    struct net_node *best = NULL;
    ns_t at = NS_NEVER;

    for (unsigned d = 0; d < NET_HOSTS; d++)
        for (unsigned i = 0; i < net->n[d]; i++) {
            struct net_node *n = &net->chain[d][i];
            ns_t due = node_due(n);
            if (due == NS_NEVER || (best && !comes_first(n, due, best, at)))
                continue;
            best = n;
            at = due;
        }
    return best;
}

ns_t net_next(struct net *net)
{
    if (!net->next_known) {
        const struct net_node *n = net_due(net);
        net->next_at = n ? node_due(n) : NS_NEVER;
        net->next_known = true;
    }
    return net->next_at;
}

void net_run(struct net *net, ns_t now)
{
    struct net_node *n;

    while (net_next(net) <= now && (n = net_due(net)))
        node_release(net, n, now);
}

void net_end(struct net *net, ns_t now)
{
    struct net_node *n;

    while ((n = net_due(net)))
        node_release(net, n, now);
}

static void chain_add(struct net *net, unsigned dir, const struct net_node *node)
{
    net->chain[dir][net->n[dir]++] = *node;
}

static void chain_tap(struct net *net, unsigned dir, struct tap_set *taps)
{
    if (taps)
        tap_linktype(taps, net->linktype);
    if (taps)
        chain_add(net, dir, &(struct net_node){.kind = NET_TAP, .taps = taps});
}

/* A node is seeded by its place in the configuration. */
static void chain_config(struct net *net, const struct net_config *c, uint64_t seed, unsigned dir, bool before,
                         struct tap_set *taps)
{
    for (unsigned i = 0; i < c->n[dir]; i++) {
        struct net_node n = c->node[dir][i];
        prng_seed(&n.prng, seed * 1000003 + dir * 4099 + i * 61 + n.kind);
        prng_next(&n.prng);
        if (n.kind == NET_PAUSE) {
            n.before = before;
            n.taps = taps;
        }
        if (c->before[dir][i] == before)
            chain_add(net, dir, &n);
    }
}

/* True if a node pauses: pause frames are Ethernet frames. */
static bool config_pauses(const struct net_config *c, unsigned dir)
{
    for (unsigned i = 0; i < c->n[dir]; i++)
        if (c->node[dir][i].kind == NET_PAUSE)
            return true;
    return false;
}

int net_build(struct net *net, const struct net_config *c, struct tap_set *const taps[3], struct event_list *events,
              uint16_t linktype, uint64_t seed)
{
    struct net_node half = {.kind = NET_DELAY, .delay = c->delay / 2};
    struct net_node rest = {.kind = NET_DELAY, .delay = c->delay - c->delay / 2};
    /* longest time that a frame is held for reordering */
    struct net_node exact = {.kind = NET_EVENTS, .delay = 10 * NS_PER_MS};

    *net = (struct net){.linktype = linktype, .events = events};
    prng_seed(&exact.prng, seed ^ 0xe7e27);
    for (unsigned d = 0; d < NET_HOSTS; d++) {
        struct tap_set *near = taps[d ? TAP_AT_RESPONDER : TAP_AT_REQUESTER];
        struct tap_set *far = taps[d ? TAP_AT_REQUESTER : TAP_AT_RESPONDER];
        if (c->n[d] + 6 > NET_CHAIN_MAX)
            return -ENOSPC;
        if (linktype != LINK_ETHERNET && config_pauses(c, d))
            return -EINVAL;
        chain_tap(net, d, near);
        chain_config(net, c, seed, d, true, near);
        chain_add(net, d, &half);
        net->middle[d] = net->n[d];
        chain_tap(net, d, taps[TAP_AT_MIDDLE]);
        chain_add(net, d, &exact);
        chain_config(net, c, seed, d, false, far);
        chain_add(net, d, &rest);
        chain_tap(net, d, far);
    }
    return 0;
}

void net_build_events(struct net *net, struct event_list *events, uint16_t linktype, uint64_t seed, ns_t hold,
                      uint32_t held_max)
{
    struct net_node exact = {.kind = NET_EVENTS, .delay = hold, .held_max = held_max};

    *net = (struct net){.linktype = linktype, .events = events, .learns = true};
    for (unsigned d = 0; d < NET_HOSTS; d++) {
        prng_seed(&exact.prng, seed + d);
        chain_add(net, d, &exact);
    }
}

void net_free(struct net *net)
{
    struct net_frame *f;

    for (unsigned d = 0; d < NET_HOSTS; d++)
        for (unsigned i = 0; i < net->n[d]; i++)
            node_clear(net, &net->chain[d][i]);
    while ((f = net->spare)) {
        net->spare = f->next;
        free(f);
    }
}

bool net_before_middle(const struct net *net, unsigned dir, const struct net_node *node)
{
    return (size_t)(node - net->chain[dir]) < net->middle[dir];
}

struct net_counters net_total(const struct net *net, unsigned dir)
{
    struct net_counters t = {0};

    for (unsigned i = 0; i < net->n[dir]; i++) {
        const struct net_counters *s = &net->chain[dir][i].stat;
        t.dropped += s->dropped;
        t.overflow += s->overflow;
        t.marked += s->marked;
        t.damaged += s->damaged;
        t.held += s->held;
        t.doubled += s->doubled;
        t.rewritten += s->rewritten;
    }
    t.in = net->n[dir] ? net->chain[dir][0].stat.in : 0;
    t.out = net->n[dir] ? net->chain[dir][net->n[dir] - 1].stat.out : 0;
    return t;
}

uint64_t net_changed(const struct net_counters *c)
{
    return c->marked + c->damaged + c->held + c->doubled + c->rewritten;
}
