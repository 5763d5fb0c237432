/* layer 3 (live): an endpoint on a real network is opened, by the address that it is to have, and closed. */
#include "clock.h"
#include "gen/live/host.h"

#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define MAX_CONNS       4096
#define PACE_SLACK      (200 * NS_PER_US) /* what the kernel may wake us up late */
#define HEADERS         96                /* bytes of an IP packet that Linux reserves for headers */
#define HALF_OPEN       (70 * NS_PER_S)   /* longest time from REP to RTU: all retries of Linux's connection manager */
#define HALF_OPEN_SHORT (2 * NS_PER_S)    /* likewise, after a REQ was rejected for lack of resources */

uint16_t live_path_mtu(uint32_t mtu)
{
    uint16_t m = 4096;

    while (m >= 256 && (uint32_t)m + HEADERS > mtu)
        m /= 2;
    return m >= 256 ? m : 0;
}

static int __attribute__((format(printf, 3, 4))) fail(struct live_error *err, int error, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    return error;
}

/* Of several processes the first one holds the port, and answers those who ask for the address. */
static bool is_first(const struct live_config *c)
{
    return !c->part || c->part->part == 0;
}

/* Use the interface's own address: the kernel must not be a RoCE endpoint there, nor send ICMP errors for UDP 4791. */
static int use_host_address(struct live *l, const struct live_config *c, const char *iface, struct live_error *err)
{
    bool v6 = c->peer ? !gid_is_ipv4(c->peer) : c->want6;
    char device[64];
    int r;

    if (!l->backend->has_mac)
        return fail(err, -EINVAL, "backend %s has no address of its own: give one with --addr", l->backend->ops->name);
    if (live_roce_device("/sys/class/infiniband", iface, device, sizeof device))
        return fail(err, -EADDRINUSE,
                    "RoCE device %s of the kernel has UDP port 4791 of %s: give an address of your own with --addr",
                    device, iface);
    r = host_address(iface, v6, c->peer, l->id.gid);
    if (r < 0)
        return fail(err, r, "interface %s has no IPv%d address: give one with --addr", iface, v6 ? 6 : 4);
    if (is_first(c))
        l->udp = host_hold_port(l->id.gid, iface);
    if (is_first(c) && l->udp < 0)
        return fail(err, l->udp, "UDP port 4791 of %s: %s%s", live_addr_str(l->id.gid), strerror(-l->udp),
                    l->udp == -EADDRINUSE ? " (a RoCE device of the kernel, or another endpoint)" : "");
    memcpy(l->id.mac, l->backend->mac, 6);
    l->id.answer = false;
    return 0;
}

static int parse_mac(uint8_t mac[6], const char *text, struct live_error *err)
{
    unsigned m[6];
    int end = 0;

    if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5], &end) != 6 || text[end] ||
        m[0] & 1)
        return fail(err, -EINVAL, "%s is not the MAC address of one station", text);
    for (unsigned i = 0; i < 6; i++)
        mac[i] = (uint8_t)m[i];
    return 0;
}

static int use_own_address(struct live *l, const struct live_config *c, struct live_error *err)
{
    char owner[IFNAMSIZ];

    if (!live_parse_host(c->addr, l->id.gid))
        return fail(err, -EINVAL, "%s is no address", c->addr);
    /* two stations would have the same address */
    if (l->backend->ops->needs_iface && host_owner(l->id.gid, owner, sizeof owner) == 0)
        return fail(err, -EADDRINUSE,
                    "%s is this host's own address, of interface %s: leave out --addr, or give one that nobody has",
                    c->addr, owner);
    identity_derive_mac(l->id.mac, l->id.gid);
    l->id.answer &= is_first(c);
    l->id.more = c->addresses ? c->addresses - 1u : 0;
    return c->mac ? parse_mac(l->id.mac, c->mac, err) : 0;
}

static int open_identity(struct live *l, const struct live_config *c, const char *iface, struct live_error *err)
{
    static const uint8_t zero[16];
    int r;

    identity_init(&l->id, zero, zero);
    if (c->mac && !c->addr)
        return fail(err, -EINVAL, "a MAC address of your own needs an address of your own (--addr)");
    r = c->addr ? use_own_address(l, c, err) : use_host_address(l, c, iface, err);
    if (r < 0)
        return r;
    if (c->peer && gid_is_ipv4(c->peer) != gid_is_ipv4(l->id.gid))
        return fail(err, -EINVAL, "%s is not of the family of the peer's address", c->addr);
    if (c->via && (!live_parse_host(c->via, l->via) || gid_is_ipv4(l->via) != gid_is_ipv4(l->id.gid)))
        return fail(err, -EINVAL, "%s is no address of a router", c->via);
    l->has_via = c->via != NULL;
    l->has_peer_mac = c->peer_mac != NULL;
    if (c->peer_mac && (r = parse_mac(l->peer_mac, c->peer_mac, err)) < 0)
        return r;
    l->id.has_vlan = c->vlan != 0;
    l->id.vlan = c->vlan;
    l->id.pcp = c->pcp;
    for (uint32_t i = 0; c->addr && l->backend->ops->join && i <= l->id.more; i++) {
        uint8_t mac[6];
        identity_own_mac(&l->id, i, mac);
        if ((r = l->backend->ops->join(l->backend, mac)) < 0)
            return fail(err, r, "interface %s does not take another MAC address: %s", iface, strerror(-r));
    }
    return 0;
}

/* Callbacks of the connection manager. */
static bool path_of(void *user, const uint8_t gid[16], struct av *av)
{
    return live_path(user, gid, av);
}

static bool resolve(void *user, const uint8_t gid[16], ns_t *again)
{
    return live_ask(user, gid, again);
}

static int open_endpoint(struct live *l, const struct live_config *c, const char *iface, uint64_t seed,
                         struct live_error *err)
{
    struct ep_config e = {.mtu = l->mtu,
                          .profile = c->profile,
                          .policies = c->policies,
                          .congestion = c->congestion,
                          .link_rate = host_speed(iface),
                          .pace_slack = PACE_SLACK,
                          .seed = seed,
                          .timeout = c->ack_timeout,
                          .faults = c->faults,
                          .n_faults = c->n_faults};
    struct cm_agent_config a = {.path = path_of,
                                .resolve = resolve,
                                .seed = seed + 1,
                                .max_conns = MAX_CONNS,
                                .half_open = HALF_OPEN,
                                .half_open_short = HALF_OPEN_SHORT};

    /* A peer may remember the queue pair of an earlier run for some time, and reject its number as a stale
     * connection. */
    if (!e.policies.qpn)
        e.policies.qpn = &number_random;
    if (c->part) {
        e.policies.qpn = &number_part;
        e.policies.qpn_arg = QPN_PART_ARG(c->part->part, c->part->parts);
    }
    e.addr.encap = ENCAP_ROCEV2;
    memcpy(e.addr.mac, l->id.mac, 6);
    memcpy(e.addr.gid, l->id.gid, 16);
    e.addr.has_vlan = l->id.has_vlan;
    e.addr.vlan = l->id.vlan;
    l->ep = ep_new(&e);
    a.ep = l->ep;
    a.user = l;
    l->user = c->user;
    l->frame = c->frame;
    l->cm = l->ep ? cm_agent_new(&a) : NULL;
    return l->cm ? 0 : fail(err, -ENOMEM, "out of memory");
}

int live_iface(const struct live_config *c, char iface[LIVE_IFACE], struct live_error *err)
{
    const struct backend_ops *kind = backend_find(c->backend ? c->backend : "packet");
    int r;

    memset(iface, 0, LIVE_IFACE);
    if (c->iface && strlen(c->iface) >= LIVE_IFACE)
        return fail(err, -ENODEV, "there is no interface %s", c->iface);
    if (c->iface)
        memcpy(iface, c->iface, strlen(c->iface));
    else if (c->peer && kind && kind->needs_iface && (r = host_route(c->peer, iface, LIVE_IFACE)) < 0)
        return fail(err, r, "no route to %s: give an interface with -I", live_addr_str(c->peer));
    return 0;
}

static int open_all(struct live *l, const struct live_config *c, struct live_error *err)
{
    const char *spec = c->backend ? c->backend : "packet";
    uint64_t seed = c->seed ? c->seed + (c->part ? c->part->part : 0)
                            : (uint64_t)clock_ns(CLOCK_REALTIME) ^ (uint64_t)getpid() << 40;
    struct backend_error why = {""};
    char iface[LIVE_IFACE];
    int r = live_iface(c, iface, err);

    if (r < 0)
        return r;
    r = backend_open_part(&l->backend, spec, *iface ? iface : NULL, c->part, &why);
    if (r < 0)
        return fail(err, r, "%s", why.msg);
    l->mtu = live_path_mtu(l->backend->mtu);
    if (!l->mtu)
        return fail(err, -EMSGSIZE, "an MTU of %u bytes is too small for RoCE", l->backend->mtu);
    if (c->mtu && c->mtu < l->mtu)
        l->mtu = c->mtu;
    l->tclass = c->tclass;
    l->hop_limit = c->hop_limit;
    if ((r = open_identity(l, c, iface, err)) < 0 || (c->record && (r = live_record_to(l, c->record, 0, err)) < 0))
        return r;
    host_drop_capabilities();
    if (c->net || c->events) {
        l->net = live_net_new(c->net, c->events, c->side, seed);
        if (!l->net)
            return fail(err, -ENOMEM, "too many nodes of a network, or out of memory");
    }
    return open_endpoint(l, c, iface, seed, err);
}

int live_open(struct live *l, const struct live_config *c, struct live_error *err)
{
    uint8_t frame[IDENTITY_FRAME_MAX];
    int r;

    memset(l, 0, sizeof *l);
    l->udp = -1;
    l->events = c->events;
    r = open_all(l, c, err);
    if (r < 0) {
        live_close(l);
        return r;
    }
    if (l->id.answer)
        live_send_link(l, frame, identity_announce(&l->id, frame));
    return 0;
}

void live_close(struct live *l)
{
    live_record_end(l);
    cm_agent_free(l->cm);
    ep_free(l->ep);
    live_net_free(l->net);
    event_list_free(l->events);
    backend_close(l->backend);
    if (l->udp >= 0)
        close(l->udp);
    l->cm = NULL;
    l->ep = NULL;
    l->net = NULL;
    l->events = NULL;
    l->backend = NULL;
    l->udp = -1;
}
