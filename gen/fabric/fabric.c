/* layer 3 (fabric): the network: built from a topology, frames on links, ports of hosts, what is due. */
#include "dissect/link/eth.h"
#include "dissect/link/macc.h"
#include "gen/endpoint/endpoint.h"
#include "gen/fabric/fabric_impl.h"

#include <errno.h>
#include <stdlib.h>

static const uint32_t frame_sizes[FRAME_SIZES] = {128, 1280, 2304, 4480, NET_FRAME_MAX};

static uint8_t size_for(uint32_t len)
{
    uint8_t size = 0;

    while (frame_sizes[size] < len)
        size++;
    return size;
}

/* A further frame with memory of this size; NULL: no memory. */
static struct fab_frame *frame_further(struct fabric *f, uint8_t size)
{
    struct fab_frames *more;
    struct fab_frame *m;

    if (!f->unused) {
        more = aligned_alloc(_Alignof(struct fab_frames), sizeof *more);
        if (!more)
            return NULL;
        memset(more, 0, sizeof *more);
        more->next = f->frames;
        f->frames = more;
        f->unused = ARRAY_LEN(more->frame);
    }
    m = &f->frames->frame[f->unused - 1];
    m->data = malloc(frame_sizes[size]);
    if (!m->data)
        return NULL;
    f->unused--;
    return m;
}

/* An empty frame with memory of this size; NULL: no memory. */
static struct fab_frame *frame_empty(struct fabric *f, uint8_t size)
{
    struct fab_frame *m = f->spare[size];

    if (m)
        f->spare[size] = m->next;
    else if (!(m = frame_further(f, size)))
        return NULL;
    *m = (struct fab_frame){.data = m->data, .size = size};
    return m;
}

struct fab_frame *frame_new(struct fabric *f, const uint8_t *data, uint32_t len)
{
    struct fab_frame *m = frame_empty(f, size_for(len));

    if (!m)
        return NULL;
    m->len = len;
    memcpy(m->data, data, len);
    return m;
}

void frame_free(struct fabric *f, struct fab_frame *m)
{
    m->next = f->spare[m->size];
    f->spare[m->size] = m;
}

void frame_lost(const struct fabric_port *at, struct fab_frame *m, bool on_link, ns_t now)
{
    const struct fabric_watch *w = at->f->watch;

    if (UNLIKELY(w) && m->serial)
        w->lost(w->user, m->serial, at, on_link, now);
    frame_free(at->f, m);
}

void fabric_set_watch(struct fabric *f, const struct fabric_watch *w)
{
    f->watch = w;
}

bool frame_grow(struct fab_frame *m, uint32_t more)
{
    if (frame_sizes[m->size] - m->len < more)
        return false;
    m->len += more;
    return true;
}

/* Bits of a frame on the wire, times 10^9: at the rate of a port, divided by it, they take so many ns. */
static uint64_t wire_bits(uint32_t len)
{
    return ((uint64_t)len + FCS_LEN + WIRE_GAP) * 8 * NS_PER_S;
}

ns_t port_time(const struct fabric_port *p, uint32_t len)
{
    return (ns_t)((wire_bits(len) + p->rate - 1) / p->rate);
}

ns_t port_least(const struct fabric_port *p, uint64_t frames, uint32_t len)
{
    return (ns_t)(uint64_t)((unsigned __int128)frames * wire_bits(len) / p->rate);
}

/* The port is busy with a frame from now on, or from the end of the one before on. Times are whole ns: by how much an
 * end was rounded up, the next frame of a row is shorter, so that a port sends at its rate. */
static void occupy(struct fabric_port *p, uint32_t len, ns_t now)
{
    uint64_t bits = wire_bits(len), time;

    if (p->free_at < now) {
        p->free_at = now;
        p->ahead = 0;
    }
    time = bits > p->ahead ? (bits - p->ahead + p->rate - 1) / p->rate : 0;
    p->ahead += time * p->rate - bits;
    p->free_at += (ns_t)time;
}

void port_show(const struct fabric_port *p, const struct fab_frame *m, bool inbound, ns_t now)
{
    if (UNLIKELY(p->taps))
        tap_frame(p->taps, m->data, m->len, inbound, now);
}

void port_send(struct fabric_port *p, struct fab_frame *m, ns_t now)
{
    struct fabric *f = p->f;

    occupy(p, m->len, now);
    p->n.sent++;
    p->n.sent_bytes += m->len;
    port_show(p, m, false, now);
    if (port_is_down(p, now) || (p->loss_ppb && prng_below(&f->prng, 1000000000) < p->loss_ppb)) {
        p->n.lost++;
        frame_lost(p, m, true, now);
        return;
    }
    m->next = NULL;
    m->due = p->free_at + p->delay;
    if (p->link)
        p->link_end->next = m;
    else
        p->link = m;
    p->link_end = m;
    if (p->link == m)
        timer_set(&f->timers, &p->arrive, m->due);
}

/* --- Hosts ------------------------------------------------------------------------------------ */

struct link_addr fabric_addr(unsigned h, bool ipv6)
{
    struct link_addr a = {.encap = ENCAP_ROCEV2, .mac = {0x02, 0, 50, 60, 0, 1}, .lid = 1};
    const uint8_t v6[16] = {0x20, 0x01, 0x0d, 0xb8, [7] = 0x3c, [15] = 1};

    memcpy(a.gid, v6, 16);
    if (!ipv6)
        gid_from_ipv4(a.gid, 0x323c0001);
    return link_addr_nth(&a, h);
}

/* The host that a frame is for; FAB_NO_HOST: none. */
static uint16_t host_of(const struct fabric *f, const uint8_t *data, uint32_t len)
{
    uint32_t n = len >= 14 ? load_be32(data + 2) - ((uint32_t)50 << 24 | 60 << 16 | 1) : UINT32_MAX;

    return n < f->n_hosts ? (uint16_t)n : FAB_NO_HOST;
}

static struct fabric_port *port_of_host(const struct fabric *f, unsigned host)
{
    return f->node[f->host[host]].port;
}

static bool is_pause(const struct fab_frame *m)
{
    return m->len >= ETH_LEN + MACC_PAUSE_LEN && load_be16(m->data + 12) == ETHERTYPE_MACC;
}

static struct fab_frame *addressed(const struct fabric *f, struct fab_frame *m)
{
    if (!m)
        return NULL;
    m->pause = is_pause(m);
    m->to = host_of(f, m->data, m->len);
    m->class = frame_class(m->data, m->len);
    m->hash = flow_hash(m->data, m->len);
    return m;
}

struct fab_frame *fabric_frame(struct fabric *f, const uint8_t *data, uint32_t len)
{
    return addressed(f, frame_new(f, data, len));
}

bool fabric_draft_open(struct fabric *f, uint32_t most)
{
    f->draft = frame_empty(f, size_for(most));
    return f->draft != NULL;
}

uint8_t *fabric_draft(const struct fabric *f)
{
    return f->draft->data;
}

/* The draft becomes a frame, unless its memory is too large for it. */
static struct fab_frame *frame_of(struct fabric *f, const uint8_t *data, uint32_t len)
{
    struct fab_frame *m = f->draft, *next;

    if (!m || data != m->data || size_for(len) != m->size)
        return fabric_frame(f, data, len);
    next = frame_empty(f, m->size);
    if (!next)
        return NULL;
    f->draft = next;
    m->len = len;
    return addressed(f, m);
}

ns_t fabric_send(struct fabric *f, unsigned host, const uint8_t *data, uint32_t len, ns_t now)
{
    struct fabric_port *p = port_of_host(f, host);
    struct fab_frame *m = frame_of(f, data, len);

    if (!m) {
        p->n.lost++;
        return now;
    }
    m->serial = ++f->serial;
    if (UNLIKELY(f->watch))
        f->watch->sent(f->watch->user, m->serial, host, data, len, now);
    port_send(p, m, now);
    return p->free_at;
}

uint8_t fabric_stopped(const struct fabric *f, unsigned host, ns_t now)
{
    return pfc_stopped(port_of_host(f, host), now);
}

unsigned fabric_hosts(const struct fabric *f)
{
    return f->n_hosts;
}

int fabric_host_numbered(const struct fabric *f, uint64_t number)
{
    uint16_t host = FAB_NO_HOST;

    if (number < (f->by_node ? f->n_nodes : f->n_hosts))
        host = f->by_node ? f->node[number].host : (uint16_t)number;
    return host == FAB_NO_HOST ? -1 : host;
}

const char *fabric_host_name(const struct fabric *f, unsigned h)
{
    return f->node[f->host[h]].name;
}

uint64_t fabric_host_rate(const struct fabric *f, unsigned h)
{
    return port_of_host(f, h)->rate;
}

/* --- Time ------------------------------------------------------------------------------------- */

/* The first frame on the link of `p` arrives. */
static void arrived(struct fabric_port *p, ns_t now)
{
    struct fab_frame *m = p->link;
    struct fabric_port *to = p->peer;
    struct fabric *f = p->f;
    const struct fab_node *n = &f->node[to->node];

    p->link = m->next;
    if (p->link) {
        timer_set(&f->timers, &p->arrive, p->link->due);
        if (p->link->next)
            __builtin_prefetch(p->link->next); /* its time is read next */
    } else {
        timer_stop(&f->timers, &p->arrive);
    }
    if (port_is_down(p, now)) {
        p->n.lost++;
        frame_lost(p, m, true, now);
        return;
    }
    to->n.received++;
    port_show(to, m, true, now);
    if (UNLIKELY(m->pause))
        pfc_take(to, m, now);
    if (UNLIKELY(f->watch) && !n->sw && m->serial)
        f->watch->arrived(f->watch->user, m->serial, n->host, now);
    if (!n->sw)
        f->user.deliver(f->user.user, n->host, m->data, m->len, now);
    if (n->sw && !m->pause)
        switch_take(to, m, now);
    else
        frame_free(f, m);
}

/* The port may send, or a class of it may be sent again. */
static void turned(struct fabric_port *p, ns_t now)
{
    const struct fab_node *n = &p->f->node[p->node];

    timer_stop(&p->f->timers, &p->turn);
    if (n->sw)
        port_turn(p, now);
    else
        p->f->user.resumed(p->f->user.user, n->host, now);
}

ns_t fabric_next(const struct fabric *f)
{
    const struct timer *t = timers_first(&f->timers);

    return t ? t->when : NS_NEVER;
}

/* A timer of a port lies in the array of the ports, any other one elsewhere. */
static bool fire_port(struct fabric *f, struct timer *t, ns_t now)
{
    uintptr_t at = (uintptr_t)t - (uintptr_t)f->port;
    struct fabric_port *p;

    if ((uintptr_t)t < (uintptr_t)f->port || at >= f->n_ports * sizeof *f->port)
        return false;
    p = &f->port[at / sizeof *f->port];
    if (t == &p->arrive)
        arrived(p, now);
    else
        turned(p, now);
    return true;
}

static void fire(struct fabric *f, struct timer *t, ns_t now)
{
    if (fire_port(f, t, now))
        return;
    if (t == &f->reroute) {
        timer_stop(&f->timers, t);
        routes_find(f, now);
        routes_watch(f, now);
        return;
    }
    if (t == &f->storm) {
        pfc_host_storms(f, now);
        return;
    }
    for (uint32_t i = 0; i < f->n_nodes; i++)
        if (f->node[i].sw && t == &f->node[i].sw->watch)
            pfc_refresh(f, &f->node[i], now);
        else if (f->node[i].sw && t == &f->node[i].sw->tell)
            tell_rates(f, &f->node[i], now);
}

void fabric_run(struct fabric *f, ns_t now)
{
    struct timer *t;

    while ((t = timers_first(&f->timers)) && t->when <= now)
        fire(f, t, now);
}

/* --- Building --------------------------------------------------------------------------------- */

static void port_init(struct fabric *f, struct fabric_port *p, const struct topo_link *l, uint32_t node)
{
    struct fab_node *n = &f->node[node];

    *p = (struct fabric_port){.f = f,
                              .node = node,
                              .number = (uint16_t)n->n_ports++,
                              .rate = l->rate,
                              .delay = l->delay,
                              .reaction = l->reaction,
                              .loss_ppb = l->loss_ppb,
                              .down = l->down,
                              .up = l->up,
                              .storm = l->storm,
                              .calm = l->calm};
}

static bool node_init(struct fabric *f, uint32_t i, const struct topo_node *from, uint64_t seed)
{
    struct fab_node *n = &f->node[i];

    memcpy(n->name, from->name, sizeof n->name);
    n->host = from->is_switch ? FAB_NO_HOST : f->n_hosts;
    if (!from->is_switch) {
        f->host[f->n_hosts++] = (uint16_t)i;
        return true;
    }
    n->sw = calloc(1, sizeof *n->sw);
    if (!n->sw)
        return false;
    n->sw->c = from->sw;
    n->sw->seed = seed * 1000003 + i;
    return true;
}

/* Bytes that may arrive behind a pause frame: on the link both ways, until the neighbour obeys, and a frame of each
 * that was already being sent; at most `most`. */
static uint64_t headroom_of(const struct fabric_port *p, uint64_t most)
{
    ns_t time = 2 * p->delay + p->peer->reaction;
    unsigned __int128 bytes = (unsigned __int128)time * p->rate / (8 * NS_PER_S);

    bytes += 2 * (EP_FRAME_MAX + FCS_LEN + WIRE_GAP);
    return bytes < most ? (uint64_t)bytes : most;
}

/* What is left of the buffer behind the headroom and the reserves of all ports. False: nothing. */
static bool share_buffer(struct fab_node *n)
{
    const struct topo_switch *c = &n->sw->c;
    uint64_t left = c->buffer, classes = (uint64_t)__builtin_popcount(c->lossless);

    for (uint32_t i = 0; i < n->n_ports && classes; i++) {
        struct fabric_port *p = &n->port[i];
        p->headroom = c->headroom == TOPO_AUTO ? headroom_of(p, left) : c->headroom;
        if (p->headroom > left / classes || c->reserve > left / classes - p->headroom)
            return false;
        left -= (p->headroom + c->reserve) * classes;
    }
    n->sw->shared = left;
    return left > 0;
}

static void mark_init(struct fabric_port *p, uint64_t seed)
{
    const struct fab_switch *s = switch_at(p);

    for (unsigned c = 0; s && c < TOPO_CLASSES; c++)
        mp_init(&p->q[c].mark, &s->c.mark, seed * 31 + (uint64_t)(p - p->f->port) * TOPO_CLASSES + c, 0);
}

static bool build_ports(struct fabric *f, const struct topology *t, uint64_t seed)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < t->n_nodes; i++) {
        f->node[i].port = f->port + at;
        at += t->node[i].links;
    }
    for (uint32_t i = 0; i < t->n_links; i++) {
        const struct topo_link *l = &t->link[i];
        struct fabric_port *p[2];
        for (unsigned k = 0; k < 2; k++) {
            struct fab_node *n = &f->node[l->end[k]];
            p[k] = &n->port[n->n_ports];
            port_init(f, p[k], l, l->end[k]);
        }
        p[0]->peer = p[1];
        p[1]->peer = p[0];
    }
    for (uint32_t i = 0; i < t->n_nodes; i++)
        if (f->node[i].sw && !share_buffer(&f->node[i]))
            return false;
    for (uint32_t i = 0; i < f->n_ports; i++)
        mark_init(&f->port[i], seed);
    return true;
}

static bool build(struct fabric *f, const struct topology *t, uint64_t seed, int *err)
{
    f->n_ports = 2 * t->n_links;
    f->node = calloc(t->n_nodes, sizeof *f->node);
    f->by_node = t->by_node;
    f->host = calloc(t->n_hosts, sizeof *f->host);
    f->port = calloc(f->n_ports, sizeof *f->port);
    f->timers.heap = calloc(2 * ((size_t)f->n_ports + t->n_nodes + 1), sizeof *f->timers.heap);
    if (!f->node || !f->host || !f->port || !f->timers.heap)
        return false;
    f->n_nodes = t->n_nodes;
    for (uint32_t i = 0; i < t->n_nodes; i++)
        if (!node_init(f, i, &t->node[i], seed))
            return false;
    if (!build_ports(f, t, seed)) {
        *err = -ENOBUFS;
        return false;
    }
    routes_watch(f, -1);
    pfc_host_storms(f, -1);
    return routes_find(f, 0);
}

bool fabric_tells(struct fabric *f, bool rates, bool telemetry)
{
    f->telemetry = telemetry;
    return !rates || tell_open(f);
}

struct fabric *fabric_new(const struct topology *t, const struct fabric_user *user, uint64_t seed, int *err)
{
    struct fabric *f = calloc(1, sizeof *f);

    *err = -ENOMEM;
    if (!f)
        return NULL;
    f->user = *user;
    prng_seed(&f->prng, seed ^ 0xfab21c);
    if (build(f, t, seed, err))
        return f;
    fabric_free(f);
    return NULL;
}

static void frames_free(struct fabric *f)
{
    struct fab_frames *all = f->frames;

    while (all) {
        struct fab_frames *next = all->next;
        for (size_t i = 0; i < ARRAY_LEN(all->frame); i++)
            free(all->frame[i].data);
        free(all);
        all = next;
    }
}

void fabric_free(struct fabric *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; i < f->n_nodes; i++)
        if (f->node[i].sw) {
            free(f->node[i].sw->route);
            free(f->node[i].sw->hop);
            free(f->node[i].sw);
        }
    frames_free(f);
    free(f->node);
    free(f->host);
    free(f->port);
    free(f->timers.heap);
    free(f->fair);
    free(f);
}
