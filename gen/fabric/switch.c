/* layer 3 (fabric): a switch: its shared buffer, and which queue of a port sends next. */
#include "gen/endpoint/rewrite.h"
#include "gen/fabric/fabric_impl.h"

#define ROUND 2048 /* bytes for each unit of weight in a round of the scheduler */

/* Bytes that a frame takes of the buffer. */
static uint32_t room_of(const struct fab_frame *m)
{
    return m->len + FCS_LEN;
}

static bool is_lossless(const struct fab_switch *s, unsigned class)
{
    return s->c.lossless >> class & 1;
}

static uint64_t share_of(const struct fab_switch *s, const struct topo_share *a)
{
    uint64_t left = s->shared > s->shared_used ? s->shared - s->shared_used : 0;

    unsigned __int128 share = (unsigned __int128)left * a->num / a->den;

    return share < UINT64_MAX ? (uint64_t)share : UINT64_MAX;
}

uint64_t pfc_xoff(const struct fab_switch *s)
{
    return s->c.xoff ? s->c.xoff : share_of(s, &s->c.xoff_share);
}

/* --- The buffer ------------------------------------------------------------------------------- */

uint64_t pfc_shared(const struct fab_switch *s, uint64_t used)
{
    return used > s->c.reserve ? used - s->c.reserve : 0;
}

/* Take room for a frame of a lossless class: reserved, then shared as long as the neighbour is not to pause, then
 * headroom, of `most` bytes. */
static bool admit_lossless(struct fab_switch *s, struct fab_ingress *in, uint64_t most, uint32_t room)
{
    uint64_t all = pfc_shared(s, in->used + room), more = all - pfc_shared(s, in->used);
    bool good = !in->pausing && all <= pfc_xoff(s) && s->shared_used + more <= s->shared;

    if (!in->headroom && (good || !all)) {
        in->used += room;
        s->shared_used += more;
        return true;
    }
    if (in->headroom + room > most)
        return false;
    in->headroom += room;
    return true;
}

static bool admit_lossy(struct fab_switch *s, const struct fab_queue *q, uint32_t room)
{
    if (s->shared_used + room > s->shared || q->bytes + room > share_of(s, &s->c.alpha))
        return false;
    s->shared_used += room;
    return true;
}

/* Give back the room of a frame that leaves, of the headroom first. */
static void release(struct fab_node *n, const struct fab_frame *m, ns_t now)
{
    struct fab_switch *s = n->sw;
    struct fabric_port *in = &n->port[m->in];
    struct fab_ingress *g = &in->in[m->class];
    uint64_t room = room_of(m), head;

    if (!is_lossless(s, m->class)) {
        s->shared_used -= room;
        return;
    }
    head = room < g->headroom ? room : g->headroom;
    g->headroom -= head;
    s->shared_used -= pfc_shared(s, g->used) - pfc_shared(s, g->used - (room - head));
    g->used -= room - head;
    pfc_check(in, m->class, now);
}

/* --- Queues ----------------------------------------------------------------------------------- */

static void queue_put(struct fabric_port *p, struct fab_frame *m)
{
    struct fab_queue *q = &p->q[m->class];

    m->next = NULL;
    p->waiting |= (uint8_t)(1u << m->class);
    if (q->head)
        q->tail->next = m;
    else
        q->head = m;
    q->tail = m;
    q->bytes += room_of(m);
    if (q->bytes > p->n.depth_max)
        p->n.depth_max = q->bytes;
}

static struct fab_frame *queue_get(struct fabric_port *p, unsigned class, ns_t now)
{
    struct fab_queue *q = &p->q[class];
    struct fab_frame *m = q->head;

    q->head = m->next;
    if (q->head)
        __builtin_prefetch(q->head); /* it may have waited long */
    else
        p->waiting &= (uint8_t) ~(1u << class);
    q->bytes -= room_of(m);
    release(&p->f->node[p->node], m, now);
    return m;
}

void queue_flush(struct fabric_port *p, unsigned class, ns_t now)
{
    while (p->q[class].head) {
        frame_lost(p, queue_get(p, class, now), false, now);
        p->n.dropped++;
    }
}

/* --- The scheduler ---------------------------------------------------------------------------- */

/* Deficit round robin among the classes in `ready`, of which there is one at least. */
static unsigned next_in_round(struct fabric_port *p, const struct fab_switch *s, uint8_t ready)
{
    for (;;) {
        unsigned c = p->turn_class;
        struct fab_queue *q = &p->q[c];
        if (ready >> c & 1) {
            if (!q->in_turn)
                q->deficit += (int64_t)s->c.weight[c] * ROUND;
            q->in_turn = true;
            if (q->deficit >= room_of(q->head)) {
                q->deficit -= room_of(q->head);
                return c;
            }
        } else if (!q->head) {
            q->deficit = 0;
        }
        q->in_turn = false;
        p->turn_class = (uint8_t)((c + 1) % TOPO_CLASSES);
    }
}

/* The class that sends next of those in `ready`. */
static unsigned pick(struct fabric_port *p, const struct fab_switch *s, uint8_t ready)
{
    uint8_t first = ready & s->c.strict;

    if (first)
        return 31 - (unsigned)__builtin_clz(first);
    if ((ready & (ready - 1)) == 0)
        return (unsigned)__builtin_ctz(ready);
    return next_in_round(p, s, ready);
}

/* Mark the frame that leaves, by what it leaves behind in its queue. False: it is dropped, not being ECN-capable. */
static bool mark(struct fabric_port *p, struct fab_frame *m, ns_t now)
{
    struct fab_queue *q = &p->q[m->class];

    if (!mp_marks(&q->mark, q->bytes, now))
        return true;
    if (frame_mark_ce(m->data, m->len, LINK_ETHERNET, !q->mark.config->all))
        p->n.marked++;
    else if (q->mark.config->drop) {
        p->n.dropped++;
        frame_lost(p, m, false, now);
        return false;
    }
    return true;
}

/* The next frame of the classes in `ready` that are not stopped; NULL: there is none. */
static struct fab_frame *next_frame(struct fabric_port *p, uint8_t ready, ns_t now)
{
    struct fab_frame *m = NULL;
    uint8_t may;

    while (!m && (may = ready & p->waiting & (uint8_t)~pfc_stopped(p, now))) {
        m = queue_get(p, pick(p, switch_at(p), may), now);
        m = mark(p, m, now) ? m : NULL;
    }
    return m;
}

void port_urgent(struct fabric_port *p, struct fab_frame *m, ns_t now)
{
    m->next = NULL;
    if (p->urgent)
        p->urgent_end->next = m;
    else
        p->urgent = m;
    p->urgent_end = m;
    port_turn(p, now);
}

static struct fab_frame *urgent_get(struct fabric_port *p)
{
    struct fab_frame *m = p->urgent;

    p->urgent = m->next;
    return m;
}

/* Nothing may be sent before the port is free, or before a pause ends. */
static void wait_for(struct fabric_port *p, ns_t when)
{
    if (when != NS_NEVER)
        timer_set(&p->f->timers, &p->turn, when);
    else
        timer_stop(&p->f->timers, &p->turn);
}

/* Leave out the classes that the watchdog empties. */
static uint8_t watched(struct fabric_port *p, uint8_t ready, ns_t now)
{
    for (unsigned c = 0; c < TOPO_CLASSES; c++)
        if ((ready >> c & 1) && pfc_storm(p, c, now))
            ready &= (uint8_t) ~(1u << c);
    return ready;
}

void port_turn(struct fabric_port *p, ns_t now)
{
    const struct fab_switch *s = switch_at(p);
    uint8_t ready = p->waiting;
    struct fab_frame *m = NULL;

    if (UNLIKELY(s->c.watchdog != 0))
        ready = watched(p, ready, now);
    if (!p->urgent && !ready)
        return;
    if (p->free_at > now) {
        wait_for(p, p->free_at);
        return;
    }
    if (p->urgent)
        m = urgent_get(p);
    else if ((m = next_frame(p, ready, now)) && UNLIKELY(p->f->telemetry))
        tell_hop(p, m, now);
    if (m) {
        port_send(p, m, now);
        wait_for(p, p->urgent || p->waiting ? p->free_at : NS_NEVER);
    } else {
        wait_for(p, pfc_resumes(p, ready, now));
    }
}

void switch_take(struct fabric_port *in, struct fab_frame *m, ns_t now)
{
    struct fabric *f = in->f;
    struct fab_node *n = &f->node[in->node];
    struct fab_switch *s = n->sw;
    struct fabric_port *out = route_of(f, n, m);
    bool lossless = is_lossless(s, m->class), room;

    if (!out) {
        in->n.dropped++;
        frame_lost(in, m, false, now);
        return;
    }
    m->in = in->number;
    room = lossless ? admit_lossless(s, &in->in[m->class], in->headroom, room_of(m))
                    : admit_lossy(s, &out->q[m->class], room_of(m));
    if (!room || (UNLIKELY(s->c.watchdog != 0) && out->q[m->class].storm_until > now)) {
        if (room)
            release(n, m, now);
        out->n.dropped++;
        frame_lost(out, m, false, now);
        return;
    }
    queue_put(out, m);
    tell_wake(out, now);
    if (lossless)
        pfc_check(in, m->class, now);
    port_turn(out, now);
}
