/* layer 3 (net): a bridge between two hosts that applies exact events to the frames that it forwards. */
#include "gen/net/bridge.h"
#include "gen/net/tso_split.h"
#include "gen/net/txq.h"

#include <stdlib.h>

struct port {
    struct outbox out;
    struct bridge_stats stats;
};

struct bridge {
    struct bridge_config config;
    struct net net;
    struct port port[NET_HOSTS];
    const uint8_t *data; /* frame that is arriving, unchanged */
    uint32_t len;
    unsigned from; /* port at which it is arriving */
    ns_t now;
    struct buf note;
};

/* --- Leaving ---------------------------------------------------------------------------------- */

static bool leave(struct bridge *b, unsigned port, const uint8_t *data, uint32_t len, const char *note)
{
    if (!b->config.send(b->config.user, port, data, len))
        return false;
    b->port[port].stats.sent++;
    if (b->config.record)
        b->config.record(b->config.user, port, false, data, len, note);
    return true;
}

static void waiting_leave(struct bridge *b, unsigned port)
{
    struct outbox *o = &b->port[port].out;

    while (o->head && leave(b, port, o->head->data, o->head->len, o->head->note ? o->head->note : ""))
        outbox_pop(o);
}

/* True if an event truncated the frame to less than an Ethernet header: it cannot be sent. */
static bool cut_away(const struct net_frame *f)
{
    return f->result.cut && f->len < BRIDGE_FRAME_MIN;
}

/* The comment of a frame in the capture file: what the events did to it or, before it leaves (`left` is NULL), will
 * do. */
static const char *note_of(struct bridge *b, const struct net_frame *f, const struct event_left *left)
{
    const struct event_result *r = &f->result;
    const struct conns_view *v = &r->view;

    b->note.len = 0;
    if (!r->hit)
        return "";
    buf_puts(&b->note, "rdmagen: ");
    if (f->copy)
        buf_printf(&b->note, "copy %u of %u: ", f->copy, r->dup);
    events_describe(&b->note, b->config.events, r, left);
    if (cut_away(f))
        buf_puts(&b->note, ", too short to be sent");
    if (v->conn)
        buf_printf(&b->note, "; conn %u %s", v->conn, v->from ? "rsp" : "req");
    if (v->has_psn)
        buf_printf(&b->note, " psn %u iter %u", v->psn, r->iteration);
    return buf_str(&b->note);
}

static void deliver(void *user, unsigned to, const uint8_t *data, uint32_t len, ns_t now)
{
    struct bridge *b = user;
    const struct net_frame *f = b->net.frame;
    struct event_left left = {.held = now - f->decided, .passed = f->passed};
    const char *note = note_of(b, f, &left);

    if (len < BRIDGE_FRAME_MIN)
        b->port[to].stats.too_short++;
    else if (b->port[to].out.head || !leave(b, to, data, len, note))
        b->port[to].stats.overflow += !outbox_put(&b->port[to].out, BRIDGE_QUEUE, data, len, note);
}

/* --- Arriving --------------------------------------------------------------------------------- */

static void record_arrival(struct bridge *b, unsigned port, const char *note)
{
    if (b->config.record)
        b->config.record(b->config.user, port, true, b->data, b->len, note);
}

static void decided(void *user, const struct net_frame *f, ns_t now)
{
    struct bridge *b = user;
    struct bridge_stats *s = &b->port[f->dir].stats;
    const char *note = note_of(b, f, NULL);

    (void)now;
    s->rdma += f->result.view.rdma;
    s->matched += f->result.hit != 0;
    s->dropped += f->result.drop || cut_away(f);
    record_arrival(b, f->dir, note);
    if (*note && b->config.matched)
        b->config.matched(b->config.user, f->dir, note);
}

/* Forward a frame, or one segment of a joined frame. */
static void pass(void *user, const uint8_t *data, uint32_t len)
{
    struct bridge *b = user;

    b->data = data;
    b->len = len;
    if (!net_send(&b->net, b->from, data, len, b->now)) {
        b->port[b->from ^ 1].stats.overflow++;
        record_arrival(b, b->from, "rdmagen: not forwarded: out of memory");
    }
}

/* Split TCP segments joined by an offload. False: the frame holds none. */
static bool take_apart(struct bridge *b, const uint8_t *data, uint32_t len)
{
    return segment_needed(data, len, b->config.mtu) && segment_tcp(data, len, b->config.mtu, pass, b);
}

void bridge_rx(struct bridge *b, unsigned port, const uint8_t *data, uint32_t len, uint32_t lost, ns_t now)
{
    struct bridge_stats *s = &b->port[port].stats;

    s->received++;
    s->bytes += (uint64_t)len + lost;
    b->data = data;
    b->len = len;
    b->from = port;
    b->now = now;
    if (!lost && take_apart(b, data, len)) {
        s->joined++;
    } else if (lost || len > NET_FRAME_MAX) {
        s->too_long++;
        record_arrival(b, port, "rdmagen: not forwarded: longer than a frame may be");
    } else if (len < BRIDGE_FRAME_MIN) {
        b->port[port ^ 1].stats.too_short++;
        record_arrival(b, port, "rdmagen: not forwarded: shorter than an Ethernet header");
    } else {
        pass(b, data, len);
    }
}

/* --- The bridge ------------------------------------------------------------------------------- */

struct bridge *bridge_new(const struct bridge_config *c)
{
    struct bridge *b = calloc(1, sizeof *b);

    if (!b)
        return NULL;
    b->config = *c;
    net_build_events(&b->net, c->events, LINK_ETHERNET, c->seed, c->hold, BRIDGE_HELD);
    b->net.deliver = deliver;
    b->net.decided = decided;
    b->net.user = b;
    return b;
}

void bridge_free(struct bridge *b)
{
    if (!b)
        return;
    for (unsigned i = 0; i < NET_HOSTS; i++)
        outbox_clear(&b->port[i].out);
    net_free(&b->net);
    buf_free(&b->note);
    free(b);
}

bool bridge_ready(const struct bridge *b, unsigned port)
{
    return !b->port[port ^ 1].out.head;
}

bool bridge_blocked(const struct bridge *b)
{
    return b->port[0].out.head || b->port[1].out.head;
}

ns_t bridge_next(struct bridge *b)
{
    return net_next(&b->net);
}

void bridge_run(struct bridge *b, ns_t now)
{
    for (unsigned i = 0; i < NET_HOSTS; i++)
        waiting_leave(b, i);
    net_run(&b->net, now);
}

void bridge_end(struct bridge *b, ns_t now)
{
    bridge_run(b, now);
    net_end(&b->net, now);
}

void bridge_stats(const struct bridge *b, unsigned port, struct bridge_stats *s)
{
    *s = b->port[port].stats;
    s->overflow += net_total(&b->net, port ^ 1).overflow;
}
