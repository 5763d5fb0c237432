/* layer 3 (sim): perftest-like traffic in a simulation: connections, and the order of their operations. */
#include "gen/sim/traffic_impl.h"

#include <errno.h>
#include <stdlib.h>

#define DRAIN_TIME (2 * NS_PER_MS)

/* --- Setup ------------------------------------------------------------------------------------ */

uint32_t sim_traffic_conns(const struct traffic_config *c)
{
    return c->type == QPT_XRC_INI && c->bidirectional ? c->qps * 2 : c->qps;
}

uint32_t sim_traffic_keys(const struct traffic_config *c)
{
    return sim_traffic_conns(c) * (4 + (traffic_lends(c) ? 4 + 2 * TRAFFIC_LOANS * TRAFFIC_KEYS : 0));
}

static int flow_open(struct sim_traffic *t, struct sim_flow *d, struct sim_conn *c, unsigned host)
{
    struct verbs *verbs = ep_verbs(t->s->ep[host]), *other = ep_verbs(t->s->ep[host ^ 1]);
    uint32_t depth = t->t.c.tx_depth, pitch = traffic_pitch(&t->t.c);
    size_t tx = (size_t)depth * pitch, rx = ATOMIC_AREA + tx + traffic_receive_bytes(&t->t, t->t.c.rx_depth);
    struct receives recvs = {.verbs = other, .qp = c->qp[host ^ 1], .srq = c->srq[host ^ 1]};
    struct traffic_flow *f = &d->f;
    int r = traffic_add(&t->t, f, verbs, c->qp[host]);

    d->c = c;
    d->host = host;
    d->rows = calloc(depth, sizeof *d->rows);
    d->tx = calloc(1, tx);
    d->rx = calloc(1, rx);
    if (r < 0 || !d->rows || !d->tx || !d->rx)
        return -ENOMEM;
    prng_seed(&f->prng, t->t.c.seed * 977 + c->number * 2 + host);
    f->ah = c->ah[host];
    f->iters = host != c->initiator && t->keeps_silent ? 0 : f->iters;
    f->from = (struct traffic_slots){d->tx, TX_IOVA, depth, pitch};
    f->to = (struct traffic_slots){d->rx + ATOMIC_AREA, RX_IOVA + ATOMIC_AREA, depth, pitch};
    f->counter[0] = RX_IOVA;
    f->counter[1] = RX_IOVA + 8;
    r = verbs_mr_reg_iova(verbs, t->conn.pd[host], d->tx, tx, TX_IOVA, ACCESS_LOCAL_WRITE, &f->lkey);
    if (r == 0)
        r = verbs_mr_reg_iova(other, t->conn.pd[host ^ 1], d->rx, rx, RX_IOVA, ACCESS_LOCAL_WRITE | ACCESS_REMOTE,
                              &f->rkey);
    recvs.mem = d->rx + ATOMIC_AREA + tx;
    recvs.iova = RX_IOVA + ATOMIC_AREA + tx;
    recvs.lkey = f->rkey;
    traffic_receive(f, &recvs);
    return r == 0 && traffic_lends(&t->t.c) ? sim_loans_open(d) : r;
}

static int conn_open(struct sim_traffic *t, unsigned i, struct prng *prng)
{
    struct sim_conn *c;
    int r = 0;

    for (unsigned h = 0; h < NET_HOSTS && !t->t.c.psn_given; h++)
        t->conn.psn[h] = (uint32_t)prng_next(prng) & 0xffffff;
    t->conn.initiator = i & t->alternate;
    if (!(c = sim_conn_add(t->s, &t->conn, &r)))
        return r;
    for (unsigned h = c->initiator; h <= (unsigned)(c->initiator | t->t.c.bidirectional) && r == 0; h++)
        r = flow_open(t, &t->flows[t->t.n_flows], c, h);
    if (r < 0)
        return r;
    return t->s->cm[0] ? sim_conn_connect(t->s, c, c->initiator) : sim_conn_join(t->s, c);
}

static int conns_open(struct sim_traffic *t)
{
    const struct traffic_config *c = &t->t.c;
    struct prng prng;
    int r = 0;

    prng_seed(&prng, c->seed ^ 0x7e57);
    for (unsigned h = 0; h < NET_HOSTS && r >= 0; h++) {
        struct verbs *v = ep_verbs(t->s->ep[h]);
        t->conn.pd[h] = verbs_pd_alloc(v);
        if (c->srq && c->type != QPT_XRC_INI)
            r = t->conn.srq[h] = verbs_srq_create(v, t->conn.pd[h], c->rx_depth, 1);
    }
    for (unsigned i = 0; i < c->qps && r >= 0; i++)
        r = conn_open(t, i, &prng);
    for (unsigned i = 0; i + 1 < t->t.n_flows && traffic_answers(c); i += 2)
        traffic_pair(&t->flows[i].f, &t->flows[i + 1].f);
    return r;
}

/* Settings that follow from others. */
static struct traffic_config settle(struct sim_traffic *t, struct traffic_config c)
{
    c.verify = true;
    c.bidirectional |= traffic_answers(&c);
    if (c.type == QPT_XRC_INI && c.bidirectional) {
        c.qps = sim_traffic_conns(&c);
        c.bidirectional = false;
        t->alternate = 1;
    }
    if (traffic_lends(&c)) { /* the other host gives back what it was lent */
        t->keeps_silent = !c.bidirectional;
        c.bidirectional = true;
    }
    return c;
}

struct sim_traffic *sim_traffic_new(struct sim *s, const struct traffic_config *config,
                                    const struct sim_conn_config *conn, struct ledger *ledger, int *err)
{
    struct sim_traffic *t = calloc(1, sizeof *t);
    struct traffic_config c;

    *err = -ENOMEM;
    if (!t)
        return NULL;
    t->s = s;
    t->conn = *conn;
    t->ledger = ledger;
    t->due = NS_NEVER;
    c = settle(t, *config);
    if (traffic_init(&t->t, &c, &sim_ways, false) == 0) {
        /* a key may be back long before the ACK of the message that lent it, whose work requests stay until then */
        t->conn.max_send_wr =
            t->t.c.tx_depth + (traffic_lends(&c) ? max_u32(TRAFFIC_LOANS, t->t.c.tx_depth) * TRAFFIC_LOAN_WRS : 0);
        t->conn.max_recv_wr = t->t.c.rx_depth;
        t->flows = calloc(c.qps, 2 * sizeof *t->flows);
        t->course = calloc(c.qps, 1);
        *err = t->flows && t->course ? conns_open(t) : -ENOMEM;
    }
    if (*err >= 0)
        return t;
    sim_traffic_free(t);
    return NULL;
}

void sim_traffic_free(struct sim_traffic *t)
{
    if (!t)
        return;
    for (unsigned i = 0; i < t->t.n_flows; i++) {
        free(t->flows[i].rows);
        free(t->flows[i].tx);
        free(t->flows[i].rx);
        sim_loans_free(&t->flows[i]);
    }
    traffic_free(&t->t);
    free(t->flows);
    free(t->course);
    free(t);
}

/* --- Running ---------------------------------------------------------------------------------- */

struct sim_flow *sim_flow_from(struct sim_traffic *t, unsigned conn, unsigned host)
{
    if (t->t.c.bidirectional)
        return &t->flows[conn * 2 + host];
    return host == t->s->conn[conn]->initiator ? &t->flows[conn] : NULL;
}

/* Look at all connections at `when`. */
static void come_back(struct sim_traffic *t, ns_t when)
{
    t->due = when < t->due ? when : t->due;
}

/* True if host `h` is still sending a frame: of an unreliable service a message is complete when its last frame has
 * left the port. */
static bool is_sending(const struct sim_traffic *t, unsigned h)
{
    return !qp_is_reliable(t->t.c.type) && sim_port_left(t->s, h) > t->s->now;
}

/* When a message was complete whose completion is the first one since host `h` sent a frame. */
static ns_t complete_at(const struct sim_traffic *t, unsigned h, const struct wc *wc)
{
    bool received = wc->opcode == WC_RECV || wc->opcode == WC_RECV_RDMA_WITH_IMM;
    ns_t left = qp_is_reliable(t->t.c.type) || received ? 0 : sim_port_left(t->s, h);

    return wc->when > left ? wc->when : left;
}

/* Process the completions of connection `i` at host `h`. */
static void poll_cq(struct sim_traffic *t, unsigned i, unsigned h)
{
    struct wc wc[16];
    int n;

    if (is_sending(t, h))
        return;
    while ((n = verbs_poll(ep_verbs(t->s->ep[h]), t->s->conn[i]->cq[h], wc, ARRAY_LEN(wc))) > 0)
        for (int k = 0; k < n; k++) {
            wc[k].when = complete_at(t, h, &wc[k]);
            if (wc[k].wr_id & TRAFFIC_FOREIGN)
                sim_loan_completed(sim_flow_of(traffic_flow_of(&t->t, wc[k].wr_id)), &wc[k]);
            else
                traffic_took(&t->t, &wc[k]);
        }
}

/* Receives that the flow needs: one for each message of it, and for each key that comes back, as long as the queue
 * pair takes any. */
static bool needs_receives(const struct sim_flow *d)
{
    const struct traffic_config *c = &d->f.t->c;

    if (!traffic_receives(c) || d->f.dead || d->f.rx_flushed)
        return false;
    return d->loans || d->f.rx_posted < c->rx_depth || d->f.rx_posted - c->rx_depth < c->iters;
}

/* With recv_delay: true if receives may not be posted yet. */
static bool refill_waits(struct sim_traffic *t, struct sim_flow *d, ns_t now)
{
    if (!t->t.c.recv_delay || !d->f.rx_posted)
        return false;
    if (!d->refill && d->f.rx_posted == d->f.rx_done)
        d->refill = now + t->t.c.recv_delay;
    if (d->refill && d->refill <= now) {
        d->refill = 0;
        return false;
    }
    if (d->refill)
        come_back(t, d->refill);
    return true;
}

static void flow_run(struct sim_traffic *t, struct sim_flow *d, ns_t now)
{
    const uint8_t *state = d->c->state;

    if (needs_receives(d) && !refill_waits(t, d, now))
        traffic_post_receives(&d->f, now);
    sim_use_keys(d, now);
    if (state[d->host] != SIM_CONN_UP || (d->c->type == QPT_UD && state[d->host ^ 1] != SIM_CONN_UP))
        return;
    d->f.remote_qpn = d->c->remote_qpn[d->host];
    d->f.remote_qkey = d->c->remote_qkey[d->host];
    d->f.remote_srqn = d->c->remote_srqn;
    traffic_post(&d->f, now);
    if (now < t->t.until)
        come_back(t, t->t.until);
}

/* Run connection `i`; starts its disconnect when its flows are done. True: it is over. */
static bool conn_run(struct sim_traffic *t, unsigned i, ns_t now)
{
    struct sim_conn *c = t->s->conn[i];
    bool done = true, dead = false;

    if (c->state[0] == SIM_CONN_FAILED || c->state[1] == SIM_CONN_FAILED) {
        t->t.r.conn_failed += !(t->course[i] & ENDS);
        t->course[i] |= ENDS;
        return true;
    }
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        const struct sim_flow *d = sim_flow_from(t, i, h);
        done &= !d || d->f.dead || (traffic_flow_done(&d->f, now) && sim_loans_done(d));
        dead |= d && d->loans && d->f.dead; /* what was lent never comes back */
    }
    if (!done)
        return dead;
    if (!qp_is_reliable(c->type)) {
        if (!t->drain)
            t->drain = now + DRAIN_TIME;
        if (now < t->drain) {
            come_back(t, t->drain);
            return false;
        }
    }
    if (!t->s->cm[0] || !t->t.c.disconnect || c->type == QPT_UD)
        return true;
    if (!(t->course[i] & ENDS)) {
        t->course[i] |= ENDS;
        if (sim_conn_disconnect(t->s, c, 0) < 0)
            return true;
    }
    return c->state[0] == SIM_CONN_DOWN;
}

/* The next connection from `i` on with news; t->t.c.qps: none. */
static unsigned next_news(const struct sim_traffic *t, unsigned i)
{
    const uint8_t *at = memchr(t->s->news + i, 1, t->t.c.qps - i);

    return at ? (unsigned)(at - t->s->news) : t->t.c.qps;
}

/* Set `news` for connections with completions; for all connections when `due` has come, or if WRITEs may have been
 * answered. Completion queues were created in the order of connections. */
static void find_news(struct sim_traffic *t, ns_t now)
{
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        int first = t->s->conn[0]->cq[h];
        for (int cq = is_sending(t, h) ? -1 : ep_cq_next(t->s->ep[h], first); cq >= 0;
             cq = ep_cq_next(t->s->ep[h], cq + 1))
            if ((uint32_t)(cq - first) < t->t.c.qps)
                t->s->news[cq - first] = 1;
    }
    traffic_look(&t->t, now);
    if (t->due <= now || traffic_answers(&t->t.c))
        memset(t->s->news, 1, t->t.c.qps);
    if (t->due <= now)
        t->due = NS_NEVER;
}

static ns_t step(void *user, ns_t now)
{
    struct sim_traffic *t = user;

    find_news(t, now);
    for (unsigned i = next_news(t, 0); i < t->t.c.qps; i = next_news(t, i + 1))
        for (unsigned h = 0; h < NET_HOSTS; h++)
            poll_cq(t, i, h);
    for (unsigned i = next_news(t, 0); i < t->t.c.qps; i = next_news(t, i + 1))
        for (unsigned h = 0; h < NET_HOSTS; h++) {
            struct sim_flow *d = sim_flow_from(t, i, h);
            if (d)
                flow_run(t, d, now);
        }
    for (unsigned i = next_news(t, 0); i < t->t.c.qps; i = next_news(t, i + 1)) {
        t->s->news[i] = 0;
        if (conn_run(t, i, now) && !(t->course[i] & OVER)) {
            t->course[i] |= OVER;
            t->n_over++;
        }
    }
    return t->n_over == t->t.c.qps ? NS_NEVER : t->due;
}

struct sim_app sim_traffic_app(struct sim_traffic *t)
{
    return (struct sim_app){.run = step, .sent = t->ledger ? sim_ledger_sent : NULL, .user = t};
}

void sim_traffic_run(struct sim_traffic *t, void (*tick)(void *user), void *user)
{
    ns_t limit = t->t.c.time_limit ? t->t.c.time_limit : NS_NEVER;
    struct traffic_result *r = &t->t.r;

    for (uint32_t n = 0; t->n_over < t->t.c.qps && !r->gave_up; n++) {
        r->gave_up = !sim_step(t->s, limit) && t->n_over < t->t.c.qps;
        if (tick && (n & 0xff) == 0)
            tick(user);
    }
    for (unsigned i = 0; i < t->t.n_flows; i++) {
        sim_ledger_end(&t->flows[i]);
        sim_loans_check(&t->flows[i]);
    }
}

struct traffic *sim_traffic_flows(struct sim_traffic *t)
{
    return &t->t;
}
