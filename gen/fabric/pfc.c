/* layer 3 (fabric): priority-based flow control: a port pauses its neighbour, and obeys its neighbour. */
#include "gen/fabric/fabric_impl.h"
#include "gen/net/pause.h"

#define PAUSES_AT_ONCE (2 * TOPO_CLASSES) /* half of the link is left for data */

/* --- Pausing the neighbour -------------------------------------------------------------------- */

void port_mac(const struct fabric_port *p, uint8_t mac[6])
{
    const uint8_t first[4] = {0x02, 0, 0, 0xfe};
    uint16_t host = p->f->node[p->node].host;

    if (host != FAB_NO_HOST) {
        memcpy(mac, fabric_addr(host, false).mac, 6);
        return;
    }
    memcpy(mac, first, 4);
    mac[4] = (uint8_t)((p - p->f->port) >> 8);
    mac[5] = (uint8_t)(p - p->f->port);
}

/* Send a pause frame ahead of all that waits. */
static void tell(struct fabric_port *p, unsigned class, unsigned quanta, ns_t now)
{
    uint8_t data[PAUSE_FRAME_LEN], mac[6];
    struct fab_frame *m;

    port_mac(p, mac);
    pause_build(data, mac, class, quanta);
    m = frame_new(p->f, data, sizeof data);
    if (!m)
        return;
    m->pause = true;
    if (quanta)
        p->n.pauses_sent++;
    else
        p->n.resumes_sent++;
    if (switch_at(p))
        port_urgent(p, m, now);
    else
        port_send(p, m, now);
}

/* Time until a pause is prolonged: half of its length, but no less than the link takes to carry a pause frame of each
 * class, else such frames would leave no room for others. */
static ns_t refresh_time(const struct fabric_port *p)
{
    ns_t half = pause_time(switch_at(p)->c.quanta, p->rate) / 2 + 1,
         least = PAUSES_AT_ONCE * port_time(p, PAUSE_FRAME_LEN);

    return half > least ? half : least;
}

/* Begin, or prolong, a pause of the neighbour. */
static void pause_neighbour(struct fabric_port *p, unsigned class, ns_t now)
{
    struct fab_ingress *g = &p->in[class];
    struct fab_switch *s = switch_at(p);

    g->pausing = true;
    g->refresh = now + refresh_time(p);
    if (!s->watch.place || s->watch.when > g->refresh)
        timer_set(&p->f->timers, &s->watch, g->refresh);
    tell(p, class, s->c.quanta, now);
}

void pfc_check(struct fabric_port *in, unsigned class, ns_t now)
{
    const struct fab_switch *s = switch_at(in);
    struct fab_ingress *g = &in->in[class];
    uint64_t xoff = pfc_xoff(s), shared = pfc_shared(s, g->used);

    if (!g->pausing) {
        if (g->headroom || shared >= xoff)
            pause_neighbour(in, class, now);
    } else if (!g->headroom && (shared == 0 || shared + s->c.xon <= xoff)) {
        g->pausing = false;
        tell(in, class, 0, now);
    }
}

void pfc_refresh(struct fabric *f, struct fab_node *n, ns_t now)
{
    ns_t next = NS_NEVER;

    timer_stop(&f->timers, &n->sw->watch);
    for (uint32_t i = 0; i < n->n_ports; i++)
        for (unsigned c = 0; c < TOPO_CLASSES; c++) {
            struct fab_ingress *g = &n->port[i].in[c];
            if (g->pausing && g->refresh <= now)
                pause_neighbour(&n->port[i], c, now);
            if (g->pausing && g->refresh < next)
                next = g->refresh;
        }
    if (next != NS_NEVER)
        timer_set(&f->timers, &n->sw->watch, next);
}

/* The host at `p` pauses its switch, goes on with that, or ends it. Returns when that is to be done next. */
static ns_t host_storm(struct fabric_port *p, ns_t now)
{
    uint8_t lossless = switch_at(p->peer)->c.lossless;
    ns_t next = now + pause_time(PAUSE_QUANTA_MAX, p->rate) / 2 + 1;

    if (now < p->storm || now > p->calm)
        return now < p->storm ? p->storm : NS_NEVER;
    for (unsigned c = 0; c < TOPO_CLASSES; c++)
        if (lossless >> c & 1)
            tell(p, c, now < p->calm ? PAUSE_QUANTA_MAX : 0, now);
    return now == p->calm ? NS_NEVER : next < p->calm ? next : p->calm;
}

void pfc_host_storms(struct fabric *f, ns_t now)
{
    ns_t next = NS_NEVER;

    timer_stop(&f->timers, &f->storm);
    for (uint32_t i = 0; i < f->n_ports; i++) {
        struct fabric_port *p = &f->port[i];
        bool is_host = !switch_at(p) && p->storm != NS_NEVER;
        ns_t due = is_host ? host_storm(p, now) : NS_NEVER;
        next = due < next ? due : next;
    }
    if (next != NS_NEVER)
        timer_set(&f->timers, &f->storm, next);
}

/* --- Obeying the neighbour -------------------------------------------------------------------- */

static bool is_stopped(const struct fab_queue *q, ns_t now)
{
    return UNLIKELY(q->stopped_until > now) && q->stopped_from <= now;
}

ns_t pfc_paused(const struct fab_queue *q, ns_t now)
{
    ns_t until = q->stopped_until < now ? q->stopped_until : now;

    return q->paused + (until > q->stopped_from ? until - q->stopped_from : 0);
}

/* Count a pause that is over. */
static void settle(struct fab_queue *q, ns_t now)
{
    if (q->stopped_until > now)
        return;
    q->paused = pfc_paused(q, now);
    q->stopped_from = q->stopped_until = 0;
}

uint8_t pfc_stopped(const struct fabric_port *p, ns_t now)
{
    uint8_t mask = 0;

    if (LIKELY(p->paused_until <= now))
        return 0;
    for (unsigned c = 0; c < TOPO_CLASSES; c++)
        mask |= (uint8_t)(is_stopped(&p->q[c], now) << c);
    return mask;
}

ns_t pfc_resumes(const struct fabric_port *p, uint8_t mask, ns_t now)
{
    ns_t first = NS_NEVER;

    for (unsigned c = 0; c < TOPO_CLASSES; c++) {
        const struct fab_queue *q = &p->q[c];
        ns_t watchdog = switch_at(p) ? switch_at(p)->c.watchdog : 0, t = q->stopped_until;
        if (!(mask >> c & 1) || !is_stopped(q, now))
            continue;
        if (watchdog && q->stopped_from + watchdog < t)
            t = q->stopped_from + watchdog;
        first = t < first ? t : first;
    }
    return first;
}

/* Tell the observer of a pause between a host and its switch. A pause of the host's own begins and ends when its frames
 * leave the host: no tap sees when they arrive at the switch. */
static void tell_watch(const struct fabric_port *p, unsigned class)
{
    const struct fabric_watch *w = p->f->watch;
    const struct fab_queue *q = &p->q[class];
    uint16_t host = p->f->node[p->node].host;
    ns_t way = 0;

    if (host == FAB_NO_HOST) {
        host = p->f->node[p->peer->node].host;
        way = p->peer->delay + port_time(p->peer, PAUSE_FRAME_LEN) + p->reaction;
    }
    if (UNLIKELY(w) && host != FAB_NO_HOST && q->stopped_until)
        w->paused(w->user, host, class, q->stopped_from - way, q->stopped_until - way);
}

void fabric_log_pauses(struct fabric *f, struct buf *b)
{
    f->pauses = b;
}

/* Log a pause that begins now, or one that ends before its time. */
static void log_pause(const struct fabric_port *p, unsigned class, unsigned quanta, ns_t now)
{
    bool stopped = p->q[class].stopped_until > now;

    if (UNLIKELY(p->f->pauses != NULL) && stopped != (quanta != 0))
        buf_printf(p->f->pauses, "%lld %u %d %u %d\n", (long long)now, p->node, switch_at(p) != NULL, p->number + 1u,
                   quanta != 0);
}

/* The neighbour says how long a class is to be stopped; 0: it may go on. */
static void obey(struct fabric_port *p, unsigned class, unsigned quanta, ns_t now)
{
    struct fab_queue *q = &p->q[class];
    ns_t from = now + p->reaction;

    settle(q, now);
    if (quanta) {
        if (!q->stopped_until)
            q->stopped_from = from;
        q->stopped_until = now + pause_time(quanta, p->rate);
    } else if (q->stopped_until > from) {
        q->stopped_until = from;
    }
    if (q->stopped_until < q->stopped_from)
        q->stopped_until = q->stopped_from;
    if (q->stopped_until > p->paused_until)
        p->paused_until = q->stopped_until;
    tell_watch(p, class);
}

/* Wake a host when its port may go on. */
static void wake_host(struct fabric_port *p, ns_t now)
{
    ns_t when = NS_NEVER;

    for (unsigned c = 0; c < TOPO_CLASSES; c++)
        if (p->q[c].stopped_until > now && p->q[c].stopped_until < when)
            when = p->q[c].stopped_until;
    if (when != NS_NEVER)
        timer_set(&p->f->timers, &p->turn, when);
    else
        timer_stop(&p->f->timers, &p->turn);
    p->f->user.resumed(p->f->user.user, p->f->node[p->node].host, now);
}

void pfc_take(struct fabric_port *p, const struct fab_frame *m, ns_t now)
{
    struct pause_frame f;

    if (!pause_frame_get(&f, m->data + 14, m->len - 14) || f.opcode != MACC_PFC)
        return;
    p->n.pauses_received++;
    for (unsigned c = 0; c < TOPO_CLASSES; c++)
        if (f.classes >> c & 1) {
            log_pause(p, c, f.quanta[c], now);
            obey(p, c, f.quanta[c], now);
        }
    if (switch_at(p))
        port_turn(p, now);
    else
        wake_host(p, now);
}

/* --- The watchdog ----------------------------------------------------------------------------- */

bool pfc_storm(struct fabric_port *p, unsigned class, ns_t now)
{
    const struct topo_switch *c = &switch_at(p)->c;
    struct fab_queue *q = &p->q[class];
    bool long_stopped = is_stopped(q, now) && now - q->stopped_from >= c->watchdog;

    if (long_stopped && q->storm_until <= now)
        p->n.storms++;
    if (long_stopped)
        q->storm_until = now + c->restore;
    if (q->storm_until <= now)
        return false;
    queue_flush(p, class, now);
    return true;
}
