/* layer 3 (gen): perftest-like traffic in a simulation, verified. */
#include "gen/traffic.h"

#include <errno.h>
#include <stdlib.h>

#define GRH_BYTES   40
#define RECV_ID     (UINT64_C(1) << 63)
#define TX_IOVA     UINT64_C(0x10000000)
#define RX_IOVA     UINT64_C(0x20000000)
#define ATOMIC_AREA 64 /* bytes in front of the remote slots: counters of FETCH & ADD and COMPARE & SWAP */
#define DRAIN_TIME  (2 * NS_PER_MS)
#define RING_UNRELIABLE 16384 /* datagrams that may be under way at a time: the network's queues hold many */

/* A message under way. */
struct slot {
    ns_t posted;
    uint64_t expect; /* atomics: value to be found */
    uint32_t len;
    uint8_t op; /* enum traffic_op */
    struct ledger_row row;
};

/* A message that the other side has yet to receive. */
struct awaited {
    uint64_t k;
    uint32_t len;
};

/* One direction of one connection. */
struct flow {
    struct sim_conn *c;
    unsigned host;          /* that posts */
    uint64_t posted, done;
    uint64_t told;          /* of the posted ones: in the ledger */
    uint64_t counter[2];    /* atomics posted: FETCH & ADD, COMPARE & SWAP */
    struct prng prng;
    struct slot *slots;     /* tx_depth of them: message k in k % tx_depth */
    uint8_t *tx, *rx;       /* memory at the posting host, and at the other one */
    uint32_t lkey, rkey, rx_lkey;
    struct awaited *await;  /* ring */
    uint64_t await_head, await_tail;
    uint64_t rx_posted, rx_done;
    bool dead;              /* failed: nothing more is posted */
};

struct traffic {
    struct sim *s;
    struct traffic_config c;
    uint32_t stride;        /* bytes of a slot */
    uint32_t rx_slots, ring;
    struct flow *flows;     /* qps, times 2 if bidirectional */
    unsigned n_flows;
    uint8_t *conn_done;     /* per connection: 1 counted as failed or closing */
    bool *through;          /* per connection: nothing is left to do */
    uint32_t n_through;
    bool drained;           /* that time is over */
    ns_t drain;             /* unreliable: until when arrivals are awaited */
    bool all_done;
    struct traffic_result r;
};

static const char *const op_names[] = {"write", "send", "read", "cas", "faa", "mixed"};

const char *traffic_op_str(enum traffic_op op)
{
    return op_names[op];
}

enum traffic_op traffic_op_find(const char *name)
{
    unsigned i = 0;

    while (i < TRAFFIC_OPS && strcmp(op_names[i], name) != 0)
        i++;
    return (enum traffic_op)i;
}

/* --- Data: every message has its own ------------------------------------------------------------------------------------------ */

static uint64_t pattern_start(const struct flow *f, uint64_t k)
{
    uint64_t v = (k + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ ((uint64_t)f->c->number << 40 | (uint64_t)f->host << 32);

    return v ^ v >> 29;
}

static void pattern_put(const struct flow *f, uint64_t k, uint8_t *p, uint32_t len)
{
    uint64_t v = pattern_start(f, k);

    for (; len >= 8; len -= 8, p += 8, v += UINT64_C(0xbf58476d1ce4e5b9))
        memcpy(p, &v, 8);
    memcpy(p, &v, len);
}

static bool pattern_is(const struct flow *f, uint64_t k, const uint8_t *p, uint32_t len)
{
    uint64_t v = pattern_start(f, k);

    for (; len >= 8; len -= 8, p += 8, v += UINT64_C(0xbf58476d1ce4e5b9))
        if (memcmp(p, &v, 8) != 0)
            return false;
    return memcmp(p, &v, len) == 0;
}

static uint8_t *tx_slot(const struct traffic *t, const struct flow *f, uint64_t k)
{
    return f->tx + (k % t->c.tx_depth) * t->stride;
}

static uint8_t *remote_slot(const struct traffic *t, const struct flow *f, uint64_t k)
{
    return f->rx + ATOMIC_AREA + (k % t->c.tx_depth) * t->stride;
}

static uint8_t *recv_slot(const struct traffic *t, const struct flow *f, uint64_t i)
{
    return f->rx + ATOMIC_AREA + (uint64_t)t->c.tx_depth * t->stride + (i % t->rx_slots) * (t->stride + GRH_BYTES);
}

/* --- Setting up ---------------------------------------------------------------------------------------------------------------- */

bool traffic_receives(const struct traffic_config *c)
{
    return c->op == TRAFFIC_SEND || c->op == TRAFFIC_MIXED || c->with_imm;
}

bool traffic_is_atomic(enum traffic_op op)
{
    return op == TRAFFIC_CAS || op == TRAFFIC_FAA;
}

static int flow_init(struct traffic *t, struct flow *f, struct sim_conn *c, unsigned host)
{
    size_t tx = (size_t)t->c.tx_depth * t->stride;
    size_t rx = ATOMIC_AREA + tx + (size_t)t->rx_slots * (t->stride + GRH_BYTES);
    unsigned other = host ^ 1;
    uint32_t key = 0;
    int r;

    f->c = c;
    f->host = host;
    prng_seed(&f->prng, t->c.seed * 977 + c->number * 2 + host);
    f->slots = calloc(t->c.tx_depth, sizeof *f->slots);
    f->await = calloc(t->ring, sizeof *f->await);
    f->tx = calloc(1, tx);
    f->rx = calloc(1, rx);
    if (!f->slots || !f->await || !f->tx || !f->rx)
        return -ENOMEM;
    r = ep_mr_reg(t->s->ep[host], t->c.conn.pd[host], f->tx, tx, TX_IOVA, ACCESS_LOCAL_WRITE, &f->lkey);
    if (r == 0)
        r = ep_mr_reg(t->s->ep[other], t->c.conn.pd[other], f->rx, rx, RX_IOVA, ACCESS_LOCAL_WRITE | ACCESS_REMOTE, &key);
    f->rkey = f->rx_lkey = key;
    return r;
}

static void flow_free(struct flow *f)
{
    free(f->slots);
    free(f->await);
    free(f->tx);
    free(f->rx);
}

static int traffic_open(struct traffic *t)
{
    struct prng prng;
    int r = 0;

    prng_seed(&prng, t->c.seed ^ 0x7e57);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        t->c.conn.pd[h] = ep_pd_alloc(t->s->ep[h]);
        if (t->c.srq && (r = t->c.conn.srq[h] = ep_srq_create(t->s->ep[h], t->c.conn.pd[h], t->rx_slots, 1)) < 0)
            return r;
    }
    for (uint32_t i = 0; i < t->c.qps; i++) {
        for (unsigned h = 0; h < NET_HOSTS && !t->c.psn_given; h++)
            t->c.conn.psn[h] = (uint32_t)prng_next(&prng) & 0xffffff;
        struct sim_conn *c = sim_conn_add(t->s, &t->c.conn, &r);
        if (!c)
            return r;
        for (unsigned h = 0; h <= (unsigned)t->c.bidirectional; h++)
            if ((r = flow_init(t, &t->flows[t->n_flows++], c, h)) < 0)
                return r;
        r = t->c.use_cm ? sim_conn_connect(t->s, c, 0) : sim_conn_join(t->s, c);
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
    t->stride = (max_u32(c->size, 8) + 7) & ~7u;
    t->rx_slots = c->rx_depth ? c->rx_depth : 2 * c->tx_depth;
    t->c.signal_every = min_u32(max_u32(c->signal_every, 1), c->tx_depth); /* or the queue would fill up without a completion */
    for (t->ring = c->type == QPT_RC ? 1 : RING_UNRELIABLE; t->ring < 4 * (t->c.tx_depth + t->rx_slots);)
        t->ring *= 2;
    t->c.conn.max_send_wr = c->tx_depth;
    t->c.conn.max_recv_wr = t->rx_slots;
    t->flows = calloc((size_t)c->qps * 2, sizeof *t->flows);
    t->conn_done = calloc(c->qps, 1);
    t->through = calloc(c->qps, sizeof *t->through);
    *err = t->flows && t->conn_done && t->through ? traffic_open(t) : -ENOMEM;
    if (*err == 0)
        return t;
    traffic_free(t);
    return NULL;
}

void traffic_free(struct traffic *t)
{
    if (!t)
        return;
    for (unsigned i = 0; i < t->n_flows; i++)
        flow_free(&t->flows[i]);
    free(t->flows);
    free(t->conn_done);
    free(t->through);
    free(t);
}

/* --- Posting --------------------------------------------------------------------------------------------------------------------- */

static void post_recvs(struct traffic *t, struct flow *f, ns_t now)
{
    unsigned other = f->host ^ 1;

    while (f->rx_posted - f->rx_done < t->rx_slots) {
        struct sge sge = {RX_IOVA + (uint64_t)(recv_slot(t, f, f->rx_posted) - f->rx), t->stride + (f->c->type == QPT_UD ? GRH_BYTES : 0),
                          f->rx_lkey};
        struct recv_wr wr = {.wr_id = RECV_ID | f->rx_posted, .sg_list = &sge, .num_sge = 1};
        int srq = t->c.conn.srq[other];
        if ((srq == EP_NO_SRQ ? ep_post_recv(t->s->ep[other], f->c->qp[other], &wr, now)
                              : ep_post_srq_recv(t->s->ep[other], srq, &wr, now)) < 0)
            return;
        f->rx_posted++;
    }
}

static enum traffic_op pick_op(const struct traffic *t, struct flow *f)
{
    static const uint8_t reliable[] = {TRAFFIC_WRITE, TRAFFIC_SEND, TRAFFIC_READ, TRAFFIC_CAS, TRAFFIC_FAA};

    if (t->c.op != TRAFFIC_MIXED)
        return t->c.op;
    if (t->c.type == QPT_UD)
        return TRAFFIC_SEND;
    return reliable[prng_below(&f->prng, t->c.type == QPT_RC ? 5 : 2)];
}

static enum wr_opcode opcode_of(enum traffic_op op, bool imm)
{
    switch (op) {
    case TRAFFIC_WRITE:
        return imm ? WR_RDMA_WRITE_WITH_IMM : WR_RDMA_WRITE;
    case TRAFFIC_READ:
        return WR_RDMA_READ;
    case TRAFFIC_CAS:
        return WR_ATOMIC_CMP_AND_SWP;
    case TRAFFIC_FAA:
        return WR_ATOMIC_FETCH_AND_ADD;
    default:
        return imm ? WR_SEND_WITH_IMM : WR_SEND;
    }
}

/* Prepare the memory of message k, and what to find when it is done. */
static void fill_slot(struct traffic *t, struct flow *f, uint64_t k, struct slot *s, struct send_wr *wr)
{
    wr->remote_addr = RX_IOVA + (uint64_t)(remote_slot(t, f, k) - f->rx);
    if (traffic_is_atomic(s->op)) {
        bool cas = s->op == TRAFFIC_CAS;
        s->len = 8;
        s->expect = f->counter[cas]++;
        wr->remote_addr = RX_IOVA + (cas ? 8 : 0);
        wr->compare_add = cas ? s->expect : 1;
        wr->swap = s->expect + 1;
        memset(tx_slot(t, f, k), 0xee, 8);
    } else if (s->op == TRAFFIC_READ) {
        memset(tx_slot(t, f, k), 0xee, s->len);
        pattern_put(f, k, remote_slot(t, f, k), s->len);
    } else {
        pattern_put(f, k, tx_slot(t, f, k), s->len);
    }
}

static uint32_t qpn_of(const struct traffic *t, const struct flow *f, unsigned host)
{
    return ep_qp(t->s->ep[host], f->c->qp[host])->qpn;
}

/* A new row of the ledger. */
static struct ledger_row row_of(const struct traffic *t, const struct flow *f, const struct slot *s, const struct send_wr *wr)
{
    return (struct ledger_row){.conn = f->c->number, .host = f->host, .qpn = qpn_of(t, f, f->host), .remote_qpn = qpn_of(t, f, f->host ^ 1),
                               .number = wr->wr_id, .va = wr->remote_addr, .rkey = wr->rkey, .imm = wr->imm_data, .bytes = s->len,
                               .opcode = wr->opcode, .status = LEDGER_OPEN, .posted = s->posted, .sent = NS_NEVER, .completed = NS_NEVER};
}

static bool post_one(struct traffic *t, struct flow *f, ns_t now)
{
    uint64_t k = f->posted;
    struct slot *s = &f->slots[k % t->c.tx_depth];
    struct sge sge = {TX_IOVA + (uint64_t)(tx_slot(t, f, k) - f->tx), 0, f->lkey};
    struct send_wr wr = {.wr_id = k, .sg_list = &sge, .num_sge = 1, .imm_data = (uint32_t)k, .rkey = f->rkey};

    *s = (struct slot){.posted = now, .op = (uint8_t)pick_op(t, f), .len = t->c.size};
    if (t->c.vary)
        s->len = prng_below(&f->prng, t->c.size + 1);
    wr.opcode = (uint8_t)opcode_of(s->op, t->c.with_imm);
    wr.flags = (uint8_t)((k + 1) % t->c.signal_every == 0 || k + 1 == t->c.iters ? SEND_SIGNALED : 0) | (t->c.solicited ? SEND_SOLICITED : 0);
    fill_slot(t, f, k, s, &wr);
    sge.length = s->len;
    if (f->c->type == QPT_UD) {
        wr.ah = (uint32_t)f->c->ah[f->host];
        wr.remote_qpn = f->c->remote_qpn[f->host];
        wr.remote_qkey = f->c->remote_qkey[f->host];
    }
    if (s->op == TRAFFIC_SEND || wr.opcode == WR_RDMA_WRITE_WITH_IMM) {
        if (f->await_tail - f->await_head == t->ring)
            f->await_head++; /* never received: only unreliable services come here */
        f->await[f->await_tail % t->ring] = (struct awaited){k, s->len};
    }
    if (ep_post_send(t->s->ep[f->host], f->c->qp[f->host], &wr, now) < 0)
        return false;
    s->row = row_of(t, f, s, &wr);
    if (s->op == TRAFFIC_SEND || wr.opcode == WR_RDMA_WRITE_WITH_IMM)
        f->await_tail++;
    if (!t->r.posted++)
        t->r.start = now;
    f->posted++;
    return true;
}

/* --- Completions ------------------------------------------------------------------------------------------------------------------ */

static bool slot_good(const struct traffic *t, const struct flow *f, uint64_t k)
{
    const struct slot *s = &f->slots[k % t->c.tx_depth];
    uint64_t v;

    if (f->c->type != QPT_RC)
        return true;
    switch ((enum traffic_op)s->op) {
    case TRAFFIC_WRITE:
        return pattern_is(f, k, remote_slot(t, f, k), s->len);
    case TRAFFIC_READ:
        return pattern_is(f, k, tx_slot(t, f, k), s->len);
    case TRAFFIC_CAS:
    case TRAFFIC_FAA:
        memcpy(&v, tx_slot(t, f, k), 8);
        return v == s->expect;
    default:
        return true; /* the receiver has looked at it */
    }
}

static void message_done(struct traffic *t, struct flow *f, uint64_t k, ns_t when)
{
    const struct slot *s = &f->slots[k % t->c.tx_depth];
    ns_t lat = when - s->posted;

    t->r.mismatches += !slot_good(t, f, k);
    t->r.completed++;
    t->r.bytes += s->len;
    t->r.end = when;
    if (lat < t->r.lat_min || t->r.completed == 1)
        t->r.lat_min = lat;
    if (lat > t->r.lat_max)
        t->r.lat_max = lat;
    t->r.lat_sum += (unsigned __int128)lat;
}

/* Requests up to number `k` are over: only the last of them may have a completion, and one that says of the others that they succeeded. */
static void tell(struct traffic *t, struct flow *f, uint64_t k, const struct wc *wc)
{
    for (; t->c.ledger && f->told <= k && f->told < f->posted; f->told++) {
        struct ledger_row *r = &f->slots[f->told % t->c.tx_depth].row;
        if (wc)
            r->status = f->told == k ? wc->status : WC_SUCCESS;
        if (wc && f->told == k)
            r->completed = wc->when;
        ledger_put(t->c.ledger, r);
    }
}

static void send_completed(struct traffic *t, struct flow *f, const struct wc *wc)
{
    tell(t, f, wc->wr_id, wc);
    if (wc->status != WC_SUCCESS) {
        if (!t->r.failed++)
            t->r.first_error = wc->status;
        f->dead = true;
        return;
    }
    t->r.mismatches += wc->wr_id < f->done; /* a second completion, or out of order */
    for (; f->done <= wc->wr_id; f->done++)
        message_done(t, f, f->done, wc->when);
}

/* Whether the receive is the message awaited as number `n`. */
static bool is_awaited(const struct traffic *t, const struct flow *f, uint64_t n, const struct wc *wc, const uint8_t *data, uint32_t len)
{
    const struct awaited *a = &f->await[n % t->ring];

    if (a->len != len || ((wc->flags & WC_WITH_IMM) && wc->imm_data != (uint32_t)a->k))
        return false;
    return wc->opcode != WC_RECV || pattern_is(f, a->k, data, len);
}

/* Unreliable services lose, repeat and reorder: the message has to be one of those sent of late. */
static bool was_sent(const struct traffic *t, struct flow *f, const struct wc *wc, const uint8_t *data, uint32_t len)
{
    uint64_t oldest = f->await_tail > t->ring ? f->await_tail - t->ring : 0;

    for (uint64_t n = f->await_head; n < f->await_tail; n++)
        if (is_awaited(t, f, n, wc, data, len)) {
            f->await_head = n + 1;
            return true;
        }
    for (uint64_t n = f->await_head; n-- > oldest;)
        if (is_awaited(t, f, n, wc, data, len))
            return true;
    return false;
}

static void recv_completed(struct traffic *t, struct flow *f, const struct wc *wc)
{
    uint64_t i = f->rx_done++;
    uint32_t skip = f->c->type == QPT_UD ? GRH_BYTES : 0, len = wc->byte_len - skip;
    const uint8_t *data = recv_slot(t, f, i) + skip;
    bool good;

    if (wc->status != WC_SUCCESS) {
        t->r.recv_failed += wc->status != WC_WR_FLUSH_ERR;
        return;
    }
    t->r.received++;
    good = (wc->wr_id & ~RECV_ID) == i; /* receives complete in the order in which they were posted */
    if (f->c->type != QPT_RC)
        good &= was_sent(t, f, wc, data, len);
    else
        good &= f->await_head < f->await_tail && is_awaited(t, f, f->await_head++, wc, data, len);
    t->r.mismatches += !good;
}

static struct flow *flow_of(struct traffic *t, unsigned conn, unsigned host)
{
    return t->c.bidirectional ? &t->flows[conn * 2 + host] : host == 0 ? &t->flows[conn] : NULL;
}

/* Completions of connection `i` at host `h`. */
static void poll_cq(struct traffic *t, unsigned i, unsigned h)
{
    const struct sim_conn *c = t->s->conn[i];
    struct flow *tx = flow_of(t, i, h), *rx = flow_of(t, i, h ^ 1);
    struct wc wc[16];
    int n;

    while ((n = ep_poll(t->s->ep[h], c->cq[h], wc, ARRAY_LEN(wc))) > 0)
        for (int k = 0; k < n; k++) {
            if ((wc[k].wr_id & RECV_ID) && rx)
                recv_completed(t, rx, &wc[k]);
            else if (tx)
                send_completed(t, tx, &wc[k]);
        }
}

/* --- Going on ----------------------------------------------------------------------------------------------------------------------- */

/* Whether the flow has nothing left to do. */
static bool flow_done(const struct traffic *t, const struct flow *f)
{
    if (f->dead)
        return true;
    return f->done == t->c.iters && (f->c->type != QPT_RC || f->await_head == f->await_tail);
}

static void flow_run(struct traffic *t, struct flow *f, ns_t now)
{
    if (traffic_receives(&t->c) && !f->dead && f->rx_posted < t->c.iters + t->rx_slots)
        post_recvs(t, f, now);
    if (f->c->state[f->host] != SIM_CONN_UP || (f->c->type == QPT_UD && f->c->state[f->host ^ 1] != SIM_CONN_UP))
        return;
    while (!f->dead && f->posted < t->c.iters && f->posted - f->done < t->c.tx_depth)
        if (!post_one(t, f, now))
            break;
}

/* Whether connection `i` is through, starting its end when its flows are done. */
static bool conn_run(struct traffic *t, unsigned i, ns_t now)
{
    struct sim_conn *c = t->s->conn[i];
    bool done = true;

    if (c->state[0] == SIM_CONN_FAILED || c->state[1] == SIM_CONN_FAILED) {
        t->r.conn_failed += !t->conn_done[i];
        t->conn_done[i] = 1;
        return true;
    }
    for (unsigned h = 0; h <= (unsigned)t->c.bidirectional; h++)
        done &= flow_done(t, flow_of(t, i, h));
    if (!done)
        return false;
    if (c->type != QPT_RC) {
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

/* The next connection from `i` on that has news; t->c.qps: none. */
static unsigned next_news(const struct traffic *t, unsigned i)
{
    const uint8_t *at = memchr(t->s->news + i, 1, t->c.qps - i);

    return at ? (unsigned)(at - t->s->news) : t->c.qps;
}

/* Completions, and the end of the time that arrivals are awaited, are news. The completion queues were made in the order of the
 * connections. */
static void find_news(struct traffic *t, ns_t now)
{
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        int first = t->s->conn[0]->cq[h];
        for (int cq = ep_cq_next(t->s->ep[h], first); cq >= 0; cq = ep_cq_next(t->s->ep[h], cq + 1))
            if ((uint32_t)(cq - first) < t->c.qps)
                t->s->news[cq - first] = 1;
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
        for (unsigned h = 0; h <= (unsigned)t->c.bidirectional; h++)
            flow_run(t, flow_of(t, i, h), now);
    for (unsigned i = next_news(t, 0); i < t->c.qps; i = next_news(t, i + 1)) {
        t->s->news[i] = 0;
        if (conn_run(t, i, now) && !t->through[i]) {
            t->through[i] = true;
            t->n_through++;
        }
    }
    t->all_done = t->n_through == t->c.qps;
    return !t->all_done && t->drain > now ? t->drain : NS_NEVER;
}

/* A frame of `host` leaves: which work request it belongs to. */
static void on_sent(void *user, unsigned host, const uint8_t *data, uint32_t len, ns_t now)
{
    struct traffic *t = user;
    struct ep_sent sent = ep_tx_last(t->s->ep[host]);

    (void)data;
    (void)len;
    for (unsigned i = 0; i < t->n_flows && sent.request; i++) {
        struct flow *f = &t->flows[i];
        struct ledger_row *r = &f->slots[sent.wr_id % t->c.tx_depth].row;
        if (f->host != host || f->c->qp[host] != sent.qp)
            continue;
        r->packets++;
        r->again += sent.repeat;
        if (r->sent == NS_NEVER) {
            r->sent = now;
            r->psn = sent.psn;
        }
    }
}

struct sim_app traffic_app(struct traffic *t)
{
    return (struct sim_app){.run = traffic_step, .sent = t->c.ledger ? on_sent : NULL, .user = t};
}

unsigned traffic_progress(const struct traffic *t)
{
    uint64_t total = t->c.iters * t->n_flows, done = 0;

    for (unsigned i = 0; i < t->n_flows; i++)
        done += t->flows[i].dead ? t->c.iters : t->flows[i].done;
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
    for (unsigned i = 0; i < t->n_flows; i++)
        tell(t, &t->flows[i], UINT64_MAX, NULL);
}

const struct traffic_result *traffic_result(const struct traffic *t)
{
    return &t->r;
}
