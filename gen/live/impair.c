/* layer 3 (live): exact events and network nodes for the traffic of a live endpoint. The chains are those of the
 * simulated network, without delay. */
#include "gen/live/live.h"
#include "gen/net/txq.h"

#include <stdlib.h>

#define QPS_MAX 4096 /* queue pairs that conn= of an event can name */
#define OUT_MAX 4096 /* frames waiting for the backend */

struct live_net {
    struct net net;
    struct event_list *events;
    struct live *live; /* that sends or receives the present frame */
    struct outbox out; /* frames that the backend could not queue */
    unsigned side;
    unsigned number[QPS_MAX]; /* of the connection, by handle; 0: none yet */
};

static void deliver(void *user, unsigned to, const uint8_t *data, uint32_t len, ns_t now)
{
    struct live_net *n = user;

    if (to == n->side)
        live_net_in(n->live, data, len, now);
    else if (n->out.head || !live_net_out(n->live, data, len))
        n->live->unsent += !outbox_put(&n->out, OUT_MAX, data, len, "");
}

struct live_net *live_net_new(const struct net_config *conf, struct event_list *events, unsigned side, uint64_t seed)
{
    static const struct net_config none;
    struct tap_set *const taps[TAP_PLACES] = {NULL};
    struct live_net *n = calloc(1, sizeof *n);

    if (!n || net_build(&n->net, conf ? conf : &none, taps, events, LINK_ETHERNET, seed) < 0) {
        free(n);
        return NULL;
    }
    n->net.deliver = deliver;
    n->net.user = n;
    n->events = events;
    n->side = side;
    return n;
}

void live_net_free(struct live_net *n)
{
    if (!n)
        return;
    net_free(&n->net);
    outbox_clear(&n->out);
    free(n);
}

/* Add the connection of the queue pair with handle `h`, or update it. */
static void learn(struct live_net *n, const struct qp *q, unsigned h)
{
    struct conns *t = event_conns(n->events);
    struct conn_id id = {.ud = q->type == QPT_UD};

    id.qpn[n->side] = q->qpn;
    id.psn[n->side] = q->attr.sq_psn;
    id.qpn[n->side ^ 1] = q->attr.dest_qpn;
    id.psn[n->side ^ 1] = q->attr.rq_psn;
    if (!n->number[h]) {
        n->number[h] = conns_add(t, &id);
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        if (t->c[n->number[h] - 1].qpn[i] != id.qpn[i])
            conns_set_qpn(t, n->number[h], i, id.qpn[i]);
        t->c[n->number[h] - 1].psn[i] = id.psn[i];
    }
}

void live_net_learn(struct live_net *n, const struct endpoint *ep)
{
    unsigned gaps = 0;

    if (!n->events)
        return;
    for (unsigned h = 0; h < QPS_MAX && gaps < 64; h++) {
        const struct qp *q = ep_qp(ep, (int)h);
        gaps = q ? 0 : gaps + 1;
        if (q && q->qpn > 1 && q->state >= QPS_RTR && q->state <= QPS_RTS && q->type != QPT_UD)
            learn(n, q, h);
    }
}

void live_net_pass(struct live_net *n, struct live *l, bool out, const uint8_t *data, uint32_t len, ns_t now)
{
    n->live = l;
    net_send(&n->net, out ? n->side : n->side ^ 1, data, len, now);
}

void live_net_run(struct live_net *n, struct live *l, ns_t now)
{
    n->live = l;
    while (n->out.head && live_net_out(l, n->out.head->data, n->out.head->len))
        outbox_pop(&n->out);
    net_run(&n->net, now);
}

bool live_net_ready(const struct live_net *n)
{
    return !n->out.head;
}

ns_t live_net_next(struct live_net *n)
{
    return net_next(&n->net);
}
