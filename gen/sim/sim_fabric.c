/* layer 3 (sim): hosts in a fabric: only those to which something happened have work to do. */
#include "gen/sim/sim_impl.h"

#include <errno.h>
#include <stdlib.h>

static void deliver(void *user, unsigned host, const uint8_t *data, uint32_t len, ns_t now)
{
    struct sim *s = user;

    ep_rx(s->ep[host], data, len, now);
    sim_touch(s, host);
}

static void resumed(void *user, unsigned host, ns_t now)
{
    (void)now;
    sim_touch(user, host);
}

void sim_touch(struct sim *s, unsigned host)
{
    struct sim_host *h = &s->host[host];

    if (h->touched)
        return;
    h->touched = true;
    h->next_touched = SIM_NO_HOST;
    if (s->touched == SIM_NO_HOST)
        s->touched = (uint16_t)host;
    else
        s->host[s->touched_end].next_touched = (uint16_t)host;
    s->touched_end = (uint16_t)host;
}

/* The longest frame that a host sends; faults may exceed the MTU. */
static uint32_t frame_most(const struct ep_config *c)
{
    return c->mtu && !c->n_faults ? EP_FRAME_MAX - EP_MTU_MAX + c->mtu : EP_FRAME_MAX;
}

int sim_fabric_open(struct sim *s, const struct sim_config *c)
{
    const struct fabric_user user = {.deliver = deliver, .resumed = resumed, .user = s};
    const struct cc_scheme *scheme = c->ep[0].congestion.cc.scheme;
    int err;

    s->touched = SIM_NO_HOST;
    event_conns(s->events)->by_addr = true; /* hosts have queue pairs of the same numbers */
    s->host = calloc(s->n_hosts, sizeof *s->host);
    s->timers.heap = calloc(s->n_hosts + 1, sizeof *s->timers.heap);
    if (!s->host || !s->timers.heap)
        return -ENOMEM;
    s->fabric = fabric_new(c->topology, &user, c->seed, &err);
    if (!s->fabric)
        return err;
    s->frame_most = frame_most(&c->ep[0]);
    if (!fabric_draft_open(s->fabric, s->frame_most))
        return -ENOMEM;
    if (scheme && !fabric_tells(s->fabric, scheme->needs & CC_NEEDS_FAIR, scheme->needs & CC_NEEDS_INT))
        return -ENOMEM;
    for (unsigned h = 0; h < s->n_hosts; h++) {
        struct ep_config ec = c->ep[0];
        ec.link_rate = fabric_host_rate(s->fabric, h);
        ec.seed = c->seed * s->n_hosts + h;
        ec.no_verify = !ec.n_faults; /* a fabric loses frames, but damages none */
        ec.addr = fabric_addr(h, c->ipv6);
        ec.addr.encap = c->ep[0].addr.encap;
        ec.addr.has_vlan = c->ep[0].addr.has_vlan;
        ec.addr.vlan = c->ep[0].addr.vlan;
        s->addr[h] = ec.addr;
        s->ep[h] = ep_new(&ec);
        if (!s->ep[h])
            return -ENOMEM;
    }
    return 0;
}

void sim_fabric_close(struct sim *s)
{
    fabric_free(s->fabric);
    free(s->host);
    free(s->timers.heap);
}

/* Send what the host has due, as its port allows; returns when it can go on, NS_NEVER: it has nothing more. */
static ns_t transmit(struct sim *s, unsigned h)
{
    struct sim_host *host = &s->host[h];
    uint8_t *frame;
    int n;

    ep_stop(s->ep[h], fabric_stopped(s->fabric, h, s->now));
    while (host->port_free <= s->now) {
        frame = fabric_draft(s->fabric);
        n = ep_tx(s->ep[h], frame, s->frame_most, s->now);
        if (n <= 0)
            return NS_NEVER;
        s->frames++;
        if (s->app.sent)
            s->app.sent(s->app.user, h, frame, (uint32_t)n, s->now);
        host->port_free = fabric_send(s->fabric, h, frame, (uint32_t)n, s->now);
    }
    return host->port_free;
}

/* Do the work of a host, and set the time of its next. */
static void work(struct sim *s, unsigned h)
{
    struct endpoint *ep = s->ep[h];
    struct ep_event e;
    ns_t next, expiry;

    if (ep_next_expiry(ep) <= s->now)
        ep_expire(ep, s->now);
    if (s->app.host)
        s->app.host(s->app.user, h, s->now);
    while (ep_event(ep, &e))
        if (s->app.event)
            s->app.event(s->app.user, h, &e);
    next = transmit(s, h);
    expiry = ep_next_expiry(ep);
    next = expiry < next ? expiry : next;
    if (next != NS_NEVER)
        timer_set(&s->timers, &s->host[h].timer, next);
    else
        timer_stop(&s->timers, &s->host[h].timer);
}

static void work_touched(struct sim *s)
{
    while (s->touched != SIM_NO_HOST) {
        unsigned h = s->touched;
        s->touched = s->host[h].next_touched;
        s->host[h].touched = false;
        work(s, h);
    }
}

static ns_t hosts_next(const struct sim *s)
{
    const struct timer *t = timers_first(&s->timers);

    return t ? t->when : NS_NEVER;
}

/* The fabric and the hosts' timers go on to the next time at which something happens, at most to `until`, if the
 * application has nothing to do before `at`. False: nothing happens, or too often at the same time. */
static bool advance(struct sim *s, ns_t at, ns_t until)
{
    ns_t next = fabric_next(s->fabric);
    struct timer *t;

    at = hosts_next(s) < at ? hosts_next(s) : at;
    next = at < next ? at : next;
    if (next == NS_NEVER || next > until)
        return false;
    if (next > s->now)
        s->passes = 0;
    else if (s->passes++ > SIM_PASSES_MAX)
        return false;
    s->now = next > s->now ? next : s->now;
    fabric_run(s->fabric, s->now);
    while ((t = timers_first(&s->timers)) && t->when <= s->now) {
        timer_stop(&s->timers, t);
        sim_touch(s, (unsigned)(TIMER_OF(t, struct sim_host, timer) - s->host));
    }
    return true;
}

/* Frames that only pass switches are nothing for the application, which is asked again when a host worked, or when it
 * wants to be. */
bool sim_fabric_step(struct sim *s, ns_t until)
{
    ns_t at;

    s->idle_until = 0;
    at = s->app.run ? s->app.run(s->app.user, s->now) : NS_NEVER;
    work_touched(s);
    do {
        if (!advance(s, at, until))
            return false;
    } while (s->touched == SIM_NO_HOST && s->now < s->idle_until && s->now < at);
    work_touched(s);
    return true;
}
