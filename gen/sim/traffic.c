/* layer 3 (sim): perftest-like traffic in a simulation: connections, and the order of their operations. */
#include "gen/sim/traffic_impl.h"

#include <errno.h>
#include <stdlib.h>

#define DRAIN_TIME      (2 * NS_PER_MS)
#define RING_UNRELIABLE 16384 /* datagrams that may be in transit: the queues of the network hold many */

/* --- Setup ------------------------------------------------------------------------------------ */

bool traffic_receives(const struct traffic_config *c)
{
    return c->op == TRAFFIC_SEND || c->op == TRAFFIC_MIXED || c->with_imm || traffic_lends(c);
}

bool traffic_lends(const struct traffic_config *c)
{
    return traffic_mix(c) & TRAFFIC_LENDS;
}

uint32_t traffic_conns(const struct traffic_config *c)
{
    return c->type == QPT_XRC_INI && c->bidirectional ? c->qps * 2 : c->qps;
}

uint32_t traffic_keys(const struct traffic_config *c)
{
    return traffic_conns(c) * (4 + (traffic_lends(c) ? 4 + 2 * TRAFFIC_LOANS * TRAFFIC_KEYS : 0));
}

/* Lay out the receive buffers of a direction, from `at` bytes of the receiving host's memory on. */
static void lay_out_receives(const struct traffic *t, struct traffic_dir *d, size_t at)
{
    uint32_t grh = d->c->type == QPT_UD ? UD_GRH_BYTES : 0;
    unsigned other = d->host ^ 1;

    d->recvs = (struct receives){.verbs = ep_verbs(t->s->ep[other]),
                                 .qp = d->c->qp[other],
                                 .srq = d->c->srq[other],
                                 .mem = d->rx + at,
                                 .iova = RX_IOVA + at,
                                 .lkey = d->s.rkey,
                                 .pitch = t->stride + UD_GRH_BYTES,
                                 .bytes = t->stride + grh,
                                 .grh = grh,
                                 .slots = t->rx_slots,
                                 .id = RECEIVES_ID};
}

static int dir_init(struct traffic *t, struct traffic_dir *d, struct sim_conn *c, unsigned host)
{
    size_t tx = (size_t)t->c.tx_depth * t->stride;
    size_t rx = ATOMIC_AREA + tx + (size_t)t->rx_slots * (t->stride + UD_GRH_BYTES);
    struct verbs *verbs = ep_verbs(t->s->ep[host]), *other = ep_verbs(t->s->ep[host ^ 1]);
    int r;

    d->c = c;
    d->host = host;
    prng_seed(&d->prng, t->c.seed * 977 + c->number * 2 + host);
    d->s = (struct sender){.verbs = verbs,
                           .qp = c->qp[host],
                           .ah = c->ah[host],
                           .iters = host == c->initiator || !t->answers ? t->c.iters : 0,
                           .depth = t->c.tx_depth,
                           .signal_every = t->c.signal_every,
                           .imm = t->c.with_imm,
                           .solicited = t->c.solicited,
                           .message = calloc(t->c.tx_depth, sizeof *d->s.message)};
    d->rows = calloc(t->c.tx_depth, sizeof *d->rows);
    d->await = calloc(t->ring, sizeof *d->await);
    d->tx = calloc(1, tx);
    d->rx = calloc(1, rx);
    if (!d->s.message || !d->rows || !d->await || !d->tx || !d->rx)
        return -ENOMEM;
    r = verbs_mr_reg_iova(verbs, t->c.conn.pd[host], d->tx, tx, TX_IOVA, ACCESS_LOCAL_WRITE, &d->s.lkey);
    if (r == 0)
        r = verbs_mr_reg_iova(other, t->c.conn.pd[host ^ 1], d->rx, rx, RX_IOVA, ACCESS_LOCAL_WRITE | ACCESS_REMOTE,
                              &d->s.rkey);
    lay_out_receives(t, d, ATOMIC_AREA + tx);
    if (r == 0 && traffic_lends(&t->c))
        r = traffic_loans_open(t, d);
    return r;
}

static void dir_free(struct traffic_dir *d)
{
    free(d->s.message);
    free(d->rows);
    free(d->await);
    free(d->tx);
    free(d->rx);
    traffic_loans_free(d);
}

static int traffic_open(struct traffic *t)
{
    struct prng prng;
    int r = 0;

    prng_seed(&prng, t->c.seed ^ 0x7e57);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        t->c.conn.pd[h] = verbs_pd_alloc(ep_verbs(t->s->ep[h]));
        if (t->c.srq && t->c.type != QPT_XRC_INI &&
            (r = t->c.conn.srq[h] = verbs_srq_create(ep_verbs(t->s->ep[h]), t->c.conn.pd[h], t->rx_slots, 1)) < 0)
            return r;
    }
    for (uint32_t i = 0; i < t->c.qps; i++) {
        for (unsigned h = 0; h < NET_HOSTS && !t->c.psn_given; h++)
            t->c.conn.psn[h] = (uint32_t)prng_next(&prng) & 0xffffff;
        t->c.conn.initiator = i & t->alternate;
        struct sim_conn *c = sim_conn_add(t->s, &t->c.conn, &r);
        if (!c)
            return r;
        for (unsigned h = c->initiator; h <= (unsigned)(c->initiator | t->c.bidirectional); h++)
            if ((r = dir_init(t, &t->dirs[t->n_dirs++], c, h)) < 0)
                return r;
        r = t->c.use_cm ? sim_conn_connect(t->s, c, c->initiator) : sim_conn_join(t->s, c);
        if (r < 0)
            return r;
    }
    return 0;
}

struct traffic *traffic_new(struct sim *s, const struct traffic_config *c, int *err)
{
    struct traffic *t = calloc(1, sizeof *t);

    *err = -ENOMEM;
    if (!t)
        return NULL;
    t->s = s;
    t->c = *c;
    if (c->type == QPT_XRC_INI && c->bidirectional) {
        t->c.qps = traffic_conns(c);
        t->c.bidirectional = false;
        t->alternate = 1;
    }
    if (traffic_lends(c)) { /* the other host gives back what it was lent */
        t->answers = !c->bidirectional;
        t->c.bidirectional = true;
    }
    t->refill = NS_NEVER;
    t->stride = (max_u32(c->size, traffic_lends(c) ? TRAFFIC_LOAN_BYTES : 8) + 7) & ~7u;
    t->rx_slots = c->rx_depth ? c->rx_depth : 2 * c->tx_depth;
    /* else the send queue would fill up without a completion */
    t->c.signal_every = min_u32(max_u32(c->signal_every, 1), c->tx_depth);
    for (t->ring = qp_is_reliable(c->type) ? 1 : RING_UNRELIABLE; t->ring < 4 * (t->c.tx_depth + t->rx_slots);)
        t->ring *= 2;
    t->c.conn.max_send_wr = c->tx_depth + (traffic_lends(c) ? TRAFFIC_LOANS * TRAFFIC_LOAN_WRS : 0);
    t->c.conn.max_recv_wr = t->rx_slots;
    t->dirs = calloc((size_t)t->c.qps * 2, sizeof *t->dirs);
    t->conn_done = calloc(t->c.qps, 1);
    t->through = calloc(t->c.qps, sizeof *t->through);
    *err = t->dirs && t->conn_done && t->through ? traffic_open(t) : -ENOMEM;
    if (*err == 0)
        return t;
    traffic_free(t);
    return NULL;
}

void traffic_free(struct traffic *t)
{
    if (!t)
        return;
    for (unsigned i = 0; i < t->n_dirs; i++)
        dir_free(&t->dirs[i]);
    free(t->dirs);
    free(t->conn_done);
    free(t->through);
    free(t);
}

/* --- Running ---------------------------------------------------------------------------------- */

struct traffic_dir *traffic_dir_of(struct traffic *t, unsigned conn, unsigned host)
{
    if (t->c.bidirectional)
        return &t->dirs[conn * 2 + host];
    return host == t->s->conn[conn]->initiator ? &t->dirs[conn] : NULL;
}

/* Process the completions of connection `i` at host `h`. */
static void poll_cq(struct traffic *t, unsigned i, unsigned h)
{
    const struct sim_conn *c = t->s->conn[i];
    struct traffic_dir *tx = traffic_dir_of(t, i, h), *rx = traffic_dir_of(t, i, h ^ 1);
    struct wc wc[16];
    int n;

    while ((n = verbs_poll(ep_verbs(t->s->ep[h]), c->cq[h], wc, ARRAY_LEN(wc))) > 0)
        for (int k = 0; k < n; k++) {
            if ((wc[k].wr_id & RECEIVES_ID) && rx)
                traffic_recv_completed(t, rx, &wc[k]);
            else if (wc[k].wr_id & KEY_ID)
                traffic_loan_completed(t, i, h, &wc[k]);
            else if (tx)
                traffic_send_completed(t, tx, &wc[k]);
        }
}

/* True if all messages of the direction are complete (RC: and received, and all that was lent is back), or its queue
 * pair failed. */
static bool dir_done(const struct traffic_dir *d)
{
    if (d->dead)
        return true;
    return d->s.completed == d->s.iters && (!qp_is_reliable(d->c->type) || d->await_head == d->await_tail) &&
           traffic_loans_done(d);
}

/* Receives that the direction needs: one for each message of it, and for each key that comes back, as long as the queue
 * pair takes any. */
static uint64_t receives_needed(const struct traffic *t, const struct traffic_dir *d)
{
    if (d->rx_flushed)
        return 0;
    return d->loans ? UINT64_MAX : t->c.iters + t->rx_slots;
}

/* With recv_delay: true if receives may not be posted yet. */
static bool refill_waits(struct traffic *t, struct traffic_dir *d, ns_t now)
{
    if (!t->c.recv_delay || !d->rx_posted)
        return false;
    if (!d->refill && d->rx_posted == d->rx_done)
        d->refill = now + t->c.recv_delay;
    if (d->refill && d->refill <= now) {
        d->refill = 0;
        return false;
    }
    if (d->refill && d->refill < t->refill)
        t->refill = d->refill;
    return true;
}

static void dir_run(struct traffic *t, struct traffic_dir *d, ns_t now)
{
    if (traffic_receives(&t->c) && !d->dead && d->rx_posted < receives_needed(t, d) && !refill_waits(t, d, now))
        traffic_post_recvs(t, d, now);
    traffic_use_keys(t, d, now);
    if (d->c->state[d->host] != SIM_CONN_UP || (d->c->type == QPT_UD && d->c->state[d->host ^ 1] != SIM_CONN_UP))
        return;
    while (!d->dead && sender_room(&d->s))
        if (!traffic_post(t, d, now))
            break;
}

/* Run connection `i`; starts its disconnect when both directions are done. True: it is finished. */
static bool conn_run(struct traffic *t, unsigned i, ns_t now)
{
    struct sim_conn *c = t->s->conn[i];
    bool done = true, dead = false;

    if (c->state[0] == SIM_CONN_FAILED || c->state[1] == SIM_CONN_FAILED) {
        t->r.conn_failed += !t->conn_done[i];
        t->conn_done[i] = 1;
        return true;
    }
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        const struct traffic_dir *d = traffic_dir_of(t, i, h);
        done &= !d || dir_done(d);
        dead |= d && d->loans && d->dead; /* what was lent never comes back */
    }
    if (!done)
        return dead;
    if (!qp_is_reliable(c->type)) {
        if (!t->drain)
            t->drain = now + DRAIN_TIME;
        if (now < t->drain)
            return false;
    }
    if (!t->c.use_cm || !t->c.disconnect || c->type == QPT_UD)
        return true;
    if (!t->conn_done[i]) {
        t->conn_done[i] = 1;
        if (sim_conn_disconnect(t->s, c, 0) < 0)
            return true;
    }
    return c->state[0] == SIM_CONN_DOWN;
}

/* The next connection from `i` on with news; t->c.qps: none. */
static unsigned next_news(const struct traffic *t, unsigned i)
{
    const uint8_t *at = memchr(t->s->news + i, 1, t->c.qps - i);

    return at ? (unsigned)(at - t->s->news) : t->c.qps;
}

/* Set `news` for connections with completions, and when the time to wait for arrivals ends. Completion queues were
 * created in the order of connections. */
static void find_news(struct traffic *t, ns_t now)
{
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        int first = t->s->conn[0]->cq[h];
        for (int cq = ep_cq_next(t->s->ep[h], first); cq >= 0; cq = ep_cq_next(t->s->ep[h], cq + 1))
            if ((uint32_t)(cq - first) < t->c.qps)
                t->s->news[cq - first] = 1;
    }
    if (t->refill <= now) {
        t->refill = NS_NEVER;
        memset(t->s->news, 1, t->c.qps);
    }
    if (t->drain && !t->drained && now >= t->drain) {
        t->drained = true;
        memset(t->s->news, 1, t->c.qps);
    }
}

static ns_t traffic_step(void *user, ns_t now)
{
    struct traffic *t = user;

    find_news(t, now);
    for (unsigned i = next_news(t, 0); i < t->c.qps; i = next_news(t, i + 1))
        for (unsigned h = 0; h < NET_HOSTS; h++)
            poll_cq(t, i, h);
    for (unsigned i = next_news(t, 0); i < t->c.qps; i = next_news(t, i + 1))
        for (unsigned h = 0; h < NET_HOSTS; h++) {
            struct traffic_dir *d = traffic_dir_of(t, i, h);
            if (d)
                dir_run(t, d, now);
        }
    for (unsigned i = next_news(t, 0); i < t->c.qps; i = next_news(t, i + 1)) {
        t->s->news[i] = 0;
        if (conn_run(t, i, now) && !t->through[i]) {
            t->through[i] = true;
            t->n_through++;
        }
    }
    t->all_done = t->n_through == t->c.qps;
    if (t->all_done)
        return NS_NEVER;
    return t->drain > now && t->drain < t->refill ? t->drain : t->refill;
}

struct sim_app traffic_app(struct traffic *t)
{
    return (struct sim_app){.run = traffic_step, .sent = t->c.ledger ? traffic_sent : NULL, .user = t};
}

unsigned traffic_progress(const struct traffic *t)
{
    uint64_t total = 0, done = 0;

    for (unsigned i = 0; i < t->n_dirs; i++) {
        const struct traffic_dir *d = &t->dirs[i];
        total += d->s.iters;
        done += d->dead ? d->s.iters : d->s.completed;
    }
    return total ? (unsigned)(done * 1000 / total) : 1000;
}

void traffic_run(struct traffic *t, void (*tick)(void *user), void *user)
{
    ns_t limit = t->c.time_limit ? t->c.time_limit : NS_NEVER;

    for (uint32_t n = 0; !t->all_done && !t->r.gave_up; n++) {
        t->r.gave_up = !sim_step(t->s, limit) && !t->all_done;
        if (tick && (n & 0xff) == 0)
            tick(user);
    }
    for (unsigned i = 0; i < t->n_dirs; i++) {
        traffic_tell(t, &t->dirs[i], UINT64_MAX, NULL);
        traffic_loans_check(t, &t->dirs[i]);
    }
}

const struct traffic_result *traffic_result(const struct traffic *t)
{
    return &t->r;
}
