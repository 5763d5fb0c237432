/* layer 3 (net): learning connections from the packets between two hosts. */
#include "gen/net/conns_learn.h"
#include "dissect/pkt.h"
#include "psn.h"

#define QPN_MULTICAST 0xffffffu
#define READ_SPAN     16384 /* PSNs by which responses may be ahead of the newest request: one large READ */

static unsigned learnt(struct conns_learner *l, struct conns *t, const struct conn_id *c)
{
    unsigned n = t->n < CONNS_LEARN_MAX ? conns_add(t, c) : 0;

    l->too_many += n == 0;
    return n;
}

/* --- Connections whose setup is seen: the halves of src/conn/setup.h ---------------------------- */

/* A REQ or SIDR_REQ begins a connection, unless it is retransmitted. */
static void learn_first(struct conns_learner *l, struct conns *t, unsigned host, const struct setup_half *h)
{
    unsigned n = conns_find_cm(t, host, h->id, &h->src, &h->dst);
    bool ud = h->kind == SETUP_SIDR_REQ;

    if (n && t->c[n - 1].host == host && t->c[n - 1].ud == ud && (ud || t->c[n - 1].qpn[0] == h->qpn))
        return;
    learnt(l, t,
           &(struct conn_id){.host = (uint8_t)host,
                             .cm_id = {h->id},
                             .addr = {h->src, h->dst},
                             .qpn = {h->qpn},
                             .psn = {0, h->psn},
                             .no_psn = ud ? 3 : 1,
                             .no_qpn = ud ? 3 : 2,
                             .ud = ud});
}

/* A REP or SIDR_REP completes the connection of its REQ or SIDR_REQ. */
static void learn_answer(struct conns *t, unsigned host, const struct setup_half *h)
{
    unsigned n = conns_find_cm(t, host ^ 1, h->peer_id, &h->dst, &h->src);
    bool ud = h->kind == SETUP_SIDR_REP;

    if (!n || t->c[n - 1].host == host || t->c[n - 1].ud != ud)
        return;
    conns_set_qpn(t, n, 1, h->qpn);
    if (ud)
        return;
    conns_set_cm(t, n, 1, h->id);
    t->c[n - 1].psn[0] = h->psn;
    t->c[n - 1].no_psn &= 2;
}

/* The address of a queue pair in an exchange: the GID, or, if it has none (a LID only), the address of the TCP
 * connection. */
static struct conn_addr end_of(const struct setup_half *h)
{
    return load_be64(h->end.b) == 0 && load_be32(h->end.b + 8) == 0 ? h->src : h->end;
}

static void learn_exchange(struct conns_learner *l, struct conns *t, unsigned host, const struct setup_half *h)
{
    struct setup_half first;
    struct conn_id c;
    unsigned n;

    if (!setup_exchange_join(&l->exchanges, h, &first))
        return;
    c = (struct conn_id){.host = (uint8_t)(host ^ 1),
                         .addr = {end_of(&first), end_of(h)},
                         .qpn = {first.qpn, h->qpn},
                         .psn = {first.psn, h->psn}};
    n = conns_find_qpn(t, c.host, c.qpn[0], &c.addr[0], &c.addr[1]);
    if (n && n == conns_find_qpn(t, host, c.qpn[1], &c.addr[1], &c.addr[0]) &&
        memcmp(t->c[n - 1].psn, c.psn, sizeof c.psn) == 0)
        return; /* repeated exchange, as perftest does at its end */
    learnt(l, t, &c);
}

static void learn_setup(struct conns_learner *l, struct conns *t, unsigned host, const struct pkt *p)
{
    struct setup_msg m;

    if (!setup_msg_of(&m, p))
        return;
    m.half.tap = host; /* the other half comes from the other host */
    m.half.peer_tap = host ^ 1;
    if (m.half.kind == SETUP_EXCHANGE)
        learn_exchange(l, t, host, &m.half);
    else if (m.half.kind == SETUP_REQ || m.half.kind == SETUP_SIDR_REQ)
        learn_first(l, t, host, &m.half);
    else
        learn_answer(t, host, &m.half);
}

/* --- Queue pairs whose setup was not seen ------------------------------------------------------- */

static void learn_unknown(struct conns_learner *l, struct conns *t, unsigned host, const struct pkt *p)
{
    struct conn_id c = {.host = (uint8_t)host, .no_psn = 2, .no_qpn = 1, .newest = p->bth.psn};
    unsigned n;

    conn_addr_of(p, &c.addr[0], &c.addr[1]);
    c.qpn[1] = p->bth.dqpn;
    c.psn[0] = p->bth.psn;
    if (p->have & H_DETH) {
        c.qpn[0] = p->deth.srcqp;
        c.no_qpn = 0;
        c.ud = true;
    }
    n = learnt(l, t, &c);
    if (n && c.no_qpn)
        l->open[l->open_at++ % CONNS_LEARN_OPEN] = n;
}

/* The connection that this response of `host` belongs to, among the connections whose requester has an unknown queue
 * pair: the connection whose newest request has the nearest PSN. 0: none. */
static unsigned answered(const struct conns_learner *l, const struct conns *t, unsigned host, const struct pkt *p)
{
    int32_t best = INT32_MAX;
    struct conn_addr src, dst;
    unsigned found = 0;

    conn_addr_of(p, &src, &dst);
    for (unsigned i = 0; i < CONNS_LEARN_OPEN; i++) {
        const struct conn_id *c = l->open[i] ? &t->c[l->open[i] - 1] : NULL;
        int32_t behind;
        if (!c || c->host == host || c->no_qpn != 1 || !conn_addr_eq(&c->addr[0], &dst) ||
            !conn_addr_eq(&c->addr[1], &src))
            continue;
        behind = psn_diff(c->newest, p->bth.psn);
        if (behind < -READ_SPAN || psn_diff(p->bth.psn, c->psn[0]) < 0)
            continue;
        behind = behind < 0 ? -behind : behind;
        if (behind < best) {
            best = behind;
            found = l->open[i];
        }
    }
    return found;
}

/* Connections `a` and `b` are the two directions of one connection: it keeps the lower number. */
static void join(struct conns *t, unsigned a, unsigned b)
{
    unsigned keep = a < b ? a : b, drop = a < b ? b : a;
    const struct conn_id *d = &t->c[drop - 1];
    uint32_t qpn = d->qpn[1], psn = d->psn[0];

    conns_unset_qpn(t, drop, 1);
    conns_set_qpn(t, keep, 0, qpn);
    t->c[keep - 1].psn[1] = psn;
    t->c[keep - 1].no_psn = 0;
}

static void learn_response(struct conns_learner *l, struct conns *t, unsigned host, const struct pkt *p, unsigned conn)
{
    unsigned n = answered(l, t, host, p);

    if (n && conn && t->c[conn - 1].no_qpn == 1 && conn != n)
        join(t, conn, n);
    else if (n && !conn)
        conns_set_qpn(t, n, 0, p->bth.dqpn);
}

static void learn_known(struct conn_id *c, const struct pkt *p, const struct conns_view *v)
{
    if (c->no_psn >> v->from & 1) {
        c->psn[v->from] = p->bth.psn;
        c->no_psn &= (uint8_t) ~(1u << v->from);
    }
    if (v->from == 0 && psn_diff(p->bth.psn, c->newest) > 0)
        c->newest = p->bth.psn;
}

/* Learn from a packet of a queue pair. True: the table has changed, and the caller must look up *v again. */
static bool learn_packet_of_qp(struct conns_learner *l, struct conns *t, unsigned host, const struct pkt *p,
                               const struct conns_view *v)
{
    struct conn_id *c = v->conn ? &t->c[v->conn - 1] : NULL;

    if (v->class == PC_CNP || p->bth.dqpn <= 1 || p->bth.dqpn == QPN_MULTICAST || p->flags & PKT_MALFORMED)
        return false;
    if (c && !c->no_qpn && !c->no_psn)
        return false;
    if (v->request && c) {
        if (c->ud && p->have & H_DETH && c->no_qpn >> v->from & 1)
            conns_set_qpn(t, v->conn, v->from, p->deth.srcqp);
        learn_known(c, p, v);
    } else if (v->request) {
        learn_unknown(l, t, host, p);
    } else if (!v->has_psn) {
        learn_response(l, t, host, p, v->conn);
    }
    return true;
}

void conns_learn(struct conns_learner *l, struct conns *t, unsigned host, const struct pkt *p, struct conns_view *v)
{
    learn_setup(l, t, host, p);
    conns_view(t, host, p, v);
    if (v->rdma && v->class != PC_CM && learn_packet_of_qp(l, t, host, p, v))
        conns_view(t, host, p, v);
}
