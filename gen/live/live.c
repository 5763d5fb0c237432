/* layer 3 (live): the event loop of an endpoint on a real network. */
#include "clock.h"
#include "gen/live/host.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define RX_BATCH        64
#define TX_BATCH        256
#define MAX_CONNS       4096
#define PACE_SLACK      (200 * NS_PER_US) /* what the kernel may wake us up late */
#define BLOCKED_WAIT    (100 * NS_PER_US)
#define HEADERS         96 /* bytes of an IP packet that Linux reserves for headers */
#define ASK_AGAIN       (200 * NS_PER_MS)
#define HALF_OPEN       (70 * NS_PER_S) /* longest time from REP to RTU: all retries of Linux's connection manager */
#define HALF_OPEN_SHORT (2 * NS_PER_S)  /* likewise, after a REQ was rejected for lack of resources */

static volatile sig_atomic_t stopped;

ns_t live_now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

void live_stop(void)
{
    stopped = 1;
}

bool live_stopped(void)
{
    return stopped;
}

void live_go_on(void)
{
    stopped = 0;
}

static void on_signal(int sig)
{
    (void)sig;
    stopped = 1;
}

void live_catch_signals(void)
{
    struct sigaction a = {.sa_handler = on_signal};

    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

void live_catch_ends(void)
{
    static const int others[] = {SIGHUP, SIGPIPE};
    struct sigaction a = {.sa_handler = on_signal}, is;

    live_catch_signals();
    for (unsigned i = 0; i < ARRAY_LEN(others); i++)
        if (sigaction(others[i], NULL, &is) == 0 && is.sa_handler == SIG_DFL) /* not under nohup */
            sigaction(others[i], &a, NULL);
}

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

/* --- Opening ---------------------------------------------------------------------------------- */

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
    if (c->addr && l->backend->ops->join && (r = l->backend->ops->join(l->backend, l->id.mac)) < 0)
        return fail(err, r, "interface %s does not take another MAC address: %s", iface, strerror(-r));
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
    if ((r = open_identity(l, c, iface, err)) < 0 || (c->record && (r = live_record_to(l, c->record, err)) < 0))
        return r;
    host_drop_capabilities();
    if (c->net || c->events) {
        l->net = live_net_new(c->net, c->events, c->side, seed);
        if (!l->net)
            return fail(err, -ENOMEM, "too many nodes of a network, or out of memory");
    }
    return open_endpoint(l, c, iface, seed, err);
}

/* Send an ARP or neighbour discovery frame; if the queue is full the frame is lost, and the next request repeats it. */
static void send_frame(struct live *l, const uint8_t *frame, uint32_t len)
{
    if (len && backend_send(l->backend, frame, len) == 0)
        live_record(l, frame, len, false, NULL);
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
        send_frame(l, frame, identity_announce(&l->id, frame));
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

/* --- The loop --------------------------------------------------------------------------------- */

bool live_can_send(struct live *l)
{
    if (l->backend->ops->room(l->backend))
        return true;
    l->blocked = l->backend->ops->flush(l->backend) == -EAGAIN;
    return !l->blocked && l->backend->ops->room(l->backend);
}

bool live_net_out(struct live *l, const uint8_t *data, uint32_t len)
{
    int r = backend_send(l->backend, data, len);

    if (r == -EAGAIN) {
        l->backend->ops->flush(l->backend);
        r = backend_send(l->backend, data, len);
    }
    if (r == -EAGAIN)
        return false;
    if (r < 0)
        l->unsent++;
    else
        live_record(l, data, len, false, NULL);
    return true;
}

void live_send(struct live *l, const uint8_t *data, uint32_t len)
{
    l->unsent += !live_net_out(l, data, len);
}

void live_net_in(struct live *l, const uint8_t *data, uint32_t len, ns_t now)
{
    ep_rx(l->ep, data, len, now);
    l->progressed = true;
}

/* Convert the frame's time of arrival to the time of day, whatever clock stamped it. Returns it on the clock of
 * live_now(). */
static ns_t when_taken(struct live *l, struct backend_frame *f)
{
    ns_t now = live_now(), today = clock_ns(CLOCK_REALTIME), age;

    if (f->ts && f->stamp == BACKEND_STAMPS_HARDWARE)
        f->ts = stamps_time(&l->stamps, f->ts, today);
    age = f->ts ? today - f->ts : 0;
    return age > 0 && age < NS_PER_S ? now - age : now;
}

const char *live_stamps_str(const struct live *l)
{
    enum backend_stamps by = (enum backend_stamps)l->backend->stamps;
    static char text[160];
    uint64_t late = l->backend->stats.late_stamps;

    snprintf(text, sizeof text, "%s%s", backend_stamps_str(by),
             stamps_in_step(&l->stamps) ? "" : ", whose clock is not this host's and was brought into step");
    if (late)
        snprintf(text + strlen(text), sizeof text - strlen(text), "; of %s by the kernel", count_str(late, "frame"));
    return text;
}

static int take_frames(struct live *l, bool *busy)
{
    uint8_t answer[IDENTITY_FRAME_MAX];
    unsigned most = l->burst && l->burst < RX_BATCH ? l->burst : RX_BATCH;
    struct backend_frame f;
    int r = 0;

    for (unsigned i = 0; i < most && (r = l->backend->ops->rx(l->backend, &f)) > 0; i++) {
        ns_t when = l->record || l->frame ? when_taken(l, &f) : 0;
        if (when)
            late_note(&l->late, when, live_now());
        live_record_in(l, f.data, f.len, f.ts);
        *busy = true;
        if (unreachable_rx(&l->unreachable, l->id.gid, f.data, f.len)) /* an error quotes a packet, and is none */
            continue;
        send_frame(l, answer, identity_rx(&l->id, f.data, f.len, answer));
        if (l->frame)
            l->frame(l->user, f.data, f.len, when);
        else if (l->net)
            live_net_pass(l->net, l, false, f.data, f.len, live_now());
        else
            ep_rx(l->ep, f.data, f.len, live_now());
    }
    if (l->net)
        live_net_run(l->net, l, live_now());
    return r < 0 ? r : 0;
}

/* Frames of the endpoint pass the events and nodes first, which may hold them. */
static void send_through_net(struct live *l, bool *busy)
{
    uint8_t frame[EP_FRAME_MAX];
    int len;

    live_net_learn(l->net, l->ep);
    live_net_run(l->net, l, live_now());
    for (unsigned i = 0;
         i < TX_BATCH && live_net_ready(l->net) && (len = ep_tx(l->ep, frame, sizeof frame, live_now())) > 0; i++) {
        live_net_pass(l->net, l, true, frame, (uint32_t)len, live_now());
        *busy = true;
    }
    live_net_run(l->net, l, live_now());
}

static int send_frames(struct live *l, bool *busy)
{
    int r = 0, len;

    if (l->net)
        send_through_net(l, busy);
    for (unsigned i = 0; i < TX_BATCH && !l->net; i++) {
        uint8_t *room = l->backend->ops->room(l->backend);
        if (!room) {
            r = l->backend->ops->flush(l->backend);
            if (r < 0)
                break;
            continue;
        }
        len = ep_tx(l->ep, room, BACKEND_FRAME_MAX, live_now());
        if (len <= 0)
            break;
        live_record(l, room, (uint32_t)len, false, NULL);
        l->backend->ops->push(l->backend, (uint32_t)len);
        *busy = true;
    }
    if (r == 0)
        r = l->backend->ops->flush(l->backend);
    l->blocked = r == -EAGAIN || (l->net && !live_net_ready(l->net));
    return r == -EAGAIN ? 0 : r;
}

int live_wait(struct pollfd *fds, unsigned n, ns_t when)
{
    ns_t left = when - live_now();
    struct timespec t;
    sigset_t open, old;
    int r;

    if (left <= 0)
        return stopped ? -EINTR : 0;
    if (left > NS_PER_S)
        left = NS_PER_S;
    t = (struct timespec){.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};
    /* A signal between the test and the wait must end the wait: only ppoll() unblocks it. */
    sigemptyset(&open);
    sigaddset(&open, SIGINT);
    sigaddset(&open, SIGTERM);
    sigprocmask(SIG_BLOCK, &open, &old);
    r = stopped ? 0 : ppoll(fds, n, &t, &old);
    r = r < 0 && errno != EINTR ? -errno : 0;
    sigprocmask(SIG_SETMASK, &old, NULL);
    return r < 0 ? r : stopped ? -EINTR : 0;
}

static int wait_until(struct live *l, ns_t when)
{
    struct pollfd p = {.fd = l->backend->fd, .events = POLLIN};
    ns_t begin = live_now();
    int r = live_wait(&p, p.fd >= 0, when);

    if (!p.revents)
        late_waited(&l->late, begin, when, live_now());
    backend_polled(l->backend, p.revents);
    return r;
}

static int step(struct live *l, ns_t deadline)
{
    bool busy = false;
    ns_t next, now;
    int r;

    l->progressed = false;
    if (stopped)
        return -EINTR;
    if ((r = backend_check(l->backend)) < 0)
        return r;
    if (l->net)
        live_net_learn(l->net, l->ep);
    if ((r = take_frames(l, &busy)) < 0)
        return backend_why(l->backend, r);
    now = live_now();
    if (ep_next_expiry(l->ep) <= now) {
        ep_expire(l->ep, now);
        busy = true;
    }
    cm_agent_run(l->cm, now);
    if ((r = send_frames(l, &busy)) < 0)
        return backend_why(l->backend, r);
    if (cm_agent_raised(l->cm) != l->raised)
        l->progressed = true;
    l->raised = cm_agent_raised(l->cm);
    if (busy || l->progressed)
        return 0;
    next = ep_next_expiry(l->ep);
    if (cm_agent_next(l->cm) < next)
        next = cm_agent_next(l->cm);
    if (l->net && live_net_next(l->net) < next)
        next = live_net_next(l->net);
    if (l->blocked && now + BLOCKED_WAIT < next)
        next = now + BLOCKED_WAIT;
    return wait_until(l, next < deadline ? next : deadline);
}

int live_step(struct live *l, ns_t deadline)
{
    int r;

    late_enter(&l->late, live_now());
    r = step(l, deadline);
    late_leave(&l->late, live_now());
    return r;
}

int live_cm_event(struct live *l, int channel, struct rdmacm_event *e, ns_t end)
{
    int r = 0;

    while (r == 0 && !rdmacm_get_event(ep_verbs(l->ep)->cm, channel, e))
        r = live_now() > end ? -ETIMEDOUT : live_step(l, end);
    return r;
}

const char *live_unreachable(const struct live *l, const uint8_t gid[16])
{
    static char text[100];
    const struct unreachable *u = &l->unreachable;

    if (!u->known || memcmp(u->gid, gid, 16) != 0)
        return NULL;
    snprintf(text, sizeof text, "%s, says %s", unreachable_str(u), live_addr_str(u->from));
    return text;
}

int live_cm_resolve(struct live *l, int channel, const uint8_t gid[16], uint16_t port)
{
    struct rdmacm *cm = ep_verbs(l->ep)->cm;
    struct rdmacm_event e = {0};
    int id = rdmacm_id_create(cm, channel, CM_PS_TCP), r = id;

    if (id < 0)
        return id;
    r = rdmacm_resolve(cm, id, gid, port, LIVE_RESOLVE_WAIT, live_now());
    if (r == 0)
        do
            r = live_cm_event(l, channel, &e, NS_NEVER);
        while (r == 0 && e.id != id);
    r = r == 0 ? e.status : r;
    if (r < 0)
        rdmacm_id_destroy(cm, id, live_now());
    return r < 0 ? r : id;
}

/* --- Peers ------------------------------------------------------------------------------------ */

/* The MAC address of a neighbour; while no peer is on the link, the address that rdmagen derives from the GID. */
static bool hop_mac(const struct live *l, const uint8_t gid[16], uint8_t mac[6])
{
    if (l->has_peer_mac) {
        memcpy(mac, l->peer_mac, 6);
        return true;
    }
    if (identity_lookup(&l->id, gid, mac))
        return true;
    if (!l->backend->ops->alone || !l->backend->ops->alone(l->backend))
        return false;
    identity_derive_mac(mac, gid);
    return true;
}

bool live_path(struct live *l, const uint8_t gid[16], struct av *av)
{
    *av = (struct av){.tclass = l->tclass, .hop_limit = l->hop_limit, .sl = l->id.pcp};
    memcpy(av->dgid, gid, 16);
    return (l->has_via && hop_mac(l, l->via, av->dmac)) || hop_mac(l, gid, av->dmac);
}

bool live_ask(struct live *l, const uint8_t gid[16], ns_t *again)
{
    const uint8_t *hop = l->has_via ? l->via : gid;
    uint8_t frame[IDENTITY_FRAME_MAX], mac[6];
    ns_t now = live_now();

    if (hop_mac(l, hop, mac))
        return true;
    if (now >= *again) {
        send_frame(l, frame, identity_ask(&l->id, hop, frame));
        *again = now + ASK_AGAIN;
    }
    return false;
}

int live_resolve(struct live *l, const uint8_t gid[16], ns_t timeout)
{
    ns_t end = live_now() + timeout, again = 0;

    while (!live_ask(l, gid, &again)) {
        int r;
        if (live_now() >= end)
            return -ETIMEDOUT;
        r = live_step(l, again < end ? again : end);
        if (r < 0)
            return r;
    }
    return 0;
}
