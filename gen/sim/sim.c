/* layer 3 (sim): hosts, a network and one virtual clock. */
#include "gen/sim/sim_impl.h"

#include "dissect/pkt.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

void sim_config_init(struct sim_config *c, uint64_t seed)
{
    memset(c, 0, sizeof *c);
    c->seed = seed;
    c->net.delay = NS_PER_US;
    c->port_rate = UINT64_C(100000000000);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        struct link_addr *a = &c->ep[h].addr;
        a->encap = ENCAP_ROCEV2;
        memcpy(a->mac, (uint8_t[]){0x02, 0, 50, 50, 50, (uint8_t)(h + 1)}, 6);
        gid_from_ipv4(a->gid, 0x32323201 + h);
        a->lid = (uint16_t)(h + 1);
        c->ep[h].mtu = 1024;
        c->ep[h].policies = policies_default();
    }
}

void sim_config_many(struct sim_config *c, unsigned h, uint16_t addrs, bool ipv6)
{
    const uint8_t v6[16] = {0x20, 0x01, 0x0d, 0xb8, [7] = (uint8_t)(2 + h), [15] = 1};
    struct link_addr *a = &c->ep[h].addr;

    c->ep[h].addrs = addrs;
    gid_from_ipv4(a->gid, 0x32330001 + (h << 16));
    if (ipv6)
        memcpy(a->gid, v6, 16);
    memcpy(a->mac, (uint8_t[]){0x02, 0, 50, (uint8_t)(51 + h), 0, 1}, 6);
}

/* The addresses of the second port of a host. */
static struct link_addr second_port(const struct link_addr *first)
{
    struct link_addr a = *first;

    a.mac[4]++;
    a.gid[gid_is_ipv4(a.gid) ? 14 : 7]++;
    a.lid += 16;
    return a;
}

struct link_addr sim_addr(const struct sim *s, const struct sim_conn *c, unsigned end, unsigned port)
{
    unsigned host = c ? c->host[end] : end;

    return link_addr_nth(port == 2 ? &s->port2[host] : &s->addr[host], c ? c->sgid_index[end] : 0);
}

struct av sim_conn_path(const struct sim *s, const struct sim_conn *c, unsigned from, unsigned port)
{
    struct link_addr to = sim_addr(s, c, from ^ 1, port);
    struct av av = {.dlid = to.lid, .hop_limit = 64, .port = (uint8_t)port, .sgid_index = c ? c->sgid_index[from] : 0};

    memcpy(av.dgid, to.gid, 16);
    memcpy(av.dmac, to.mac, 6);
    return av;
}

struct av sim_path(const struct sim *s, unsigned from, unsigned port)
{
    return sim_conn_path(s, NULL, from, port);
}

/* True if the host has stopped. */
static bool has_stopped(const struct sim *s, unsigned h)
{
    const struct sim_end *e = &s->end[h];

    return UNLIKELY((e->at && s->now >= e->at) || (e->frames && s->sent[h] >= e->frames));
}

static void sim_deliver(void *user, unsigned to, const uint8_t *data, uint32_t len, ns_t now)
{
    struct sim *s = user;

    if (s->wire && to != s->wire->local)
        s->wire->send(s->wire->user, data, len);
    else if (!has_stopped(s, to))
        ep_rx(s->ep[to], data, len, now);
}

static void sim_paused(void *user, unsigned to, const uint8_t *data, uint32_t len, ns_t now)
{
    struct sim *s = user;

    if ((!s->wire || to == s->wire->local) && !has_stopped(s, to))
        ep_rx(s->ep[to], data, len, now);
}

/* Room for the hosts. */
static bool hosts_alloc(struct sim *s, unsigned n)
{
    s->n_hosts = n;
    s->ep = calloc(n, sizeof(struct endpoint *));
    s->cm = calloc(n, sizeof(struct cm_agent *));
    s->addr = calloc(n, sizeof *s->addr);
    return s->ep && s->cm && s->addr;
}

int sim_init(struct sim *s, const struct sim_config *c, const struct sim_app *app)
{
    int r;

    memset(s, 0, sizeof *s);
    s->app = *app;
    s->events = c->events ? c->events : event_list_new();
    if (!s->events || !hosts_alloc(s, c->topology ? c->topology->n_hosts : NET_HOSTS))
        return -ENOMEM;
    if (c->topology)
        return sim_fabric_open(s, c);
    s->port_rate = c->port_rate;
    s->wire = c->wire;
    s->port = c->port;
    memcpy(s->end, c->end, sizeof s->end);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        struct ep_config ec = c->ep[h];
        ec.seed = c->seed * 2 + h;
        ec.link_rate = c->port_rate;
        s->port2[h] = ec.port2 = second_port(&ec.addr);
        s->addr[h] = ec.addr;
        s->addrs[h] = ec.addrs ? ec.addrs : 1;
        s->credits[h] = ec.credits;
        s->ep[h] = ep_new(&ec);
        if (!s->ep[h])
            return -ENOMEM;
    }
    r = net_build(&s->net, &c->net, c->taps, s->events, ep_linktype(s->ep[0]), c->seed);
    s->net.deliver = sim_deliver;
    s->net.paused = sim_paused;
    s->net.user = s;
    s->net.rate = c->port_rate;
    s->net.hosts_stop = !c->wire;
    for (unsigned h = 0; h < NET_HOSTS; h++)
        s->net.port2[h] = c->ep[h].two_ports ? &s->port2[h] : NULL;
    if (r < 0 || c->no_cm)
        return r;
    return sim_cm_open(s, c);
}

void sim_free(struct sim *s)
{
    net_free(&s->net);
    sim_fabric_close(s);
    for (unsigned h = 0; s->ep && s->cm && h < s->n_hosts; h++) {
        cm_agent_free(s->cm[h]);
        ep_free(s->ep[h]);
    }
    free(s->ep);
    free(s->cm);
    free(s->addr);
    for (unsigned i = 0; i < s->n_conns; i++) {
        free(s->conn[i]->cm);
        free(s->conn[i]);
    }
    free(s->conn);
    free(s->news);
    event_list_free(s->events);
    memset(s, 0, sizeof *s);
}

unsigned sim_other_port(const struct sim *s, const struct sim_conn *c, unsigned host)
{
    return ep_qp(s->ep[host], c->qp[host])->attr.av.port == 2 ? 1 : 2;
}

unsigned sim_path_taken(const struct sim *s, unsigned from, const struct pkt *p)
{
    const struct link_addr *second = &s->port2[from];

    if (!s->net.port2[from])
        return 1;
    if (p->encap == ENCAP_IB)
        return p->lrh.slid == second->lid ? 2 : 1;
    return memcmp(p->src, p->addr_len == 4 ? second->gid + 12 : second->gid, p->addr_len) == 0 ? 2 : 1;
}

unsigned sim_idle(const struct sim *s, const char *const who[NET_HOSTS], report_fn *report, void *user)
{
    unsigned n = events_idle(s->events, report, user);

    for (unsigned h = 0; h < NET_HOSTS; h++)
        if ((!s->wire || s->wire->local == h) && !s->foreign[h])
            n += ep_faults_idle(s->ep[h], s->ep[h ^ 1], who[h], report, user);
    return n;
}

/* When the port of a host is free: after the frame before, and after a pause. */
static ns_t port_open_at(const struct sim *s, unsigned h)
{
    return s->port_free[h] > s->net.stopped_until[h] ? s->port_free[h] : s->net.stopped_until[h];
}

ns_t sim_port_left(const struct sim *s, unsigned host)
{
    return s->fabric ? 0 : s->port_free[host];
}

ns_t sim_frame_time(const struct sim *s, unsigned host, uint32_t len)
{
    uint64_t bits = ((uint64_t)len + 24) * 8; /* with preamble, frame check sequence and gap */
    uint64_t rate = s->fabric ? fabric_host_rate(s->fabric, host) : s->port_rate;

    return (ns_t)((bits * NS_PER_S + rate - 1) / rate);
}

/* Whether the port of a host takes a frame now. */
static bool may_transmit(const struct sim *s, unsigned h)
{
    if (port_open_at(s, h) > s->now || has_stopped(s, h))
        return false;
    return !s->wire || s->wire->ready(s->wire->user);
}

/* Send what the hosts have due, as fast as their ports allow; at most `most` frames. */
static void sim_transmit(struct sim *s, unsigned h, unsigned most)
{
    uint8_t frame[EP_FRAME_MAX];
    int n;

    while (most-- && may_transmit(s, h) && (n = ep_tx(s->ep[h], frame, sizeof frame, s->now)) > 0) {
        if (!s->wire)
            s->port_free[h] = s->now + sim_frame_time(s, h, (uint32_t)n);
        s->last_frame = s->now;
        s->frames++;
        s->sent[h]++;
        s->passes = 0;
        if (s->app.sent)
            s->app.sent(s->app.user, h, frame, (uint32_t)n, s->now);
        net_send(&s->net, h, frame, (uint32_t)n, s->now);
    }
}

static void sim_events(struct sim *s, unsigned h)
{
    struct ep_event e;

    while (!s->foreign[h] && ep_event(s->ep[h], &e)) {
        if (e.type == EP_EV_COMM_EST && s->cm[h])
            cm_agent_established(s->cm[h], e.handle);
        if (e.type == EP_EV_PATH_MIG && s->cm[h])
            cm_agent_migrated(s->cm[h], e.handle);
        if (s->app.event)
            s->app.event(s->app.user, h, &e);
    }
}

static ns_t earlier(ns_t a, ns_t b)
{
    return a < b ? a : b;
}

void sim_arrive(struct sim *s, const uint8_t *data, uint32_t len, ns_t when)
{
    unsigned from = s->wire->local ^ 1;

    s->now = s->last_frame = s->wire->clock(s->wire->user);
    if (s->app.sent)
        s->app.sent(s->app.user, from, data, len, when);
    net_send(&s->net, from, data, len, s->now);
    net_run(&s->net, s->now);
    sim_transmit(s, s->wire->local, 1); /* one response at a time, as a host does under no load */
}

/* Do the work of the real host; returns when it must be called again. */
static ns_t wire_work(struct sim *s)
{
    unsigned h = s->wire->local;

    net_run(&s->net, s->now);
    if (ep_next_expiry(s->ep[h]) <= s->now)
        ep_expire(s->ep[h], s->now);
    if (s->cm[h])
        cm_agent_run(s->cm[h], s->now);
    sim_events(s, h);
    sim_transmit(s, h, UINT_MAX);
    net_run(&s->net, s->now);
    return earlier(earlier(ep_next_expiry(s->ep[h]), s->cm[h] ? cm_agent_next(s->cm[h]) : NS_NEVER), net_next(&s->net));
}

static bool wire_step(struct sim *s, ns_t until)
{
    ns_t next;

    s->now = s->wire->clock(s->wire->user);
    next = earlier(wire_work(s), until);
    if (s->wire_err || s->now >= until)
        return false;
    s->wire_err = s->wire->wait(s->wire->user, next);
    s->now = s->wire->clock(s->wire->user);
    wire_work(s);
    return s->wire_err == 0;
}

bool sim_step(struct sim *s, ns_t until)
{
    ns_t next = NS_NEVER;

    if (s->fabric)
        return sim_fabric_step(s, until);
    if (s->wire)
        return wire_step(s, until);

    net_run(&s->net, s->now);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        if (has_stopped(s, h))
            continue;
        if (ep_next_expiry(s->ep[h]) <= s->now)
            ep_expire(s->ep[h], s->now);
        if (s->cm[h])
            cm_agent_run(s->cm[h], s->now);
        sim_events(s, h);
    }
    if (s->app.run)
        next = s->app.run(s->app.user, s->now);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        sim_transmit(s, h, UINT_MAX);
        if (has_stopped(s, h))
            continue;
        if (port_open_at(s, h) > s->now)
            next = earlier(next, port_open_at(s, h));
        next = earlier(next, ep_next_expiry(s->ep[h]));
        if (s->cm[h])
            next = earlier(next, cm_agent_next(s->cm[h]));
    }
    next = earlier(next, net_next(&s->net));
    if (next == NS_NEVER || next > until || s->passes++ > SIM_PASSES_MAX)
        return false;
    if (next > s->now)
        s->now = next;
    return true;
}
