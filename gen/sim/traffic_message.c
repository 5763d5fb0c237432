/* layer 3 (sim): the messages of perftest-like traffic: posted, completed, verified. */
#include "gen/sim/traffic_impl.h"

/* --- Data: every message has its own ---------------------------------------------------------- */

static uint64_t pattern_start(const struct traffic_dir *d, uint64_t k)
{
    uint64_t v = (k + 1) * HASH_MULTIPLIER ^ ((uint64_t)d->c->number << 40 | (uint64_t)d->host << 32);

    return v ^ v >> 29;
}

static void pattern_put(const struct traffic_dir *d, uint64_t k, uint8_t *p, uint32_t len)
{
    uint64_t v = pattern_start(d, k);

    for (; len >= 8; len -= 8, p += 8, v += UINT64_C(0xbf58476d1ce4e5b9))
        memcpy(p, &v, 8);
    memcpy(p, &v, len);
}

static bool pattern_is(const struct traffic_dir *d, uint64_t k, const uint8_t *p, uint32_t len)
{
    uint64_t v = pattern_start(d, k);

    for (; len >= 8; len -= 8, p += 8, v += UINT64_C(0xbf58476d1ce4e5b9))
        if (memcmp(p, &v, 8) != 0)
            return false;
    return memcmp(p, &v, len) == 0;
}

static uint8_t *tx_slot(const struct traffic *t, const struct traffic_dir *d, uint64_t k)
{
    return d->tx + (k % t->c.tx_depth) * t->stride;
}

static uint8_t *remote_slot(const struct traffic *t, const struct traffic_dir *d, uint64_t k)
{
    return d->rx + ATOMIC_AREA + (k % t->c.tx_depth) * t->stride;
}

/* --- Posting ---------------------------------------------------------------------------------- */

void traffic_post_recvs(struct traffic *t, struct traffic_dir *d, ns_t now)
{
    while (d->rx_posted - d->rx_done < t->rx_slots && receives_post(&d->recvs, d->rx_posted, now) == 0)
        d->rx_posted++;
}

static enum traffic_op pick_op(const struct traffic *t, struct traffic_dir *d)
{
    static const uint8_t reliable[] = {TRAFFIC_WRITE, TRAFFIC_SEND, TRAFFIC_READ, TRAFFIC_CAS, TRAFFIC_FAA};

    if (t->c.op != TRAFFIC_MIXED)
        return t->c.op;
    if (t->c.type == QPT_UD)
        return TRAFFIC_SEND;
    return reliable[prng_below(&d->prng, t->c.type == QPT_RC ? 5 : 2)];
}

/* Fill the memory of message k, and note the data expected at its completion. */
static void fill_slot(struct traffic *t, struct traffic_dir *d, uint64_t k, struct slot *s, struct send_wr *wr)
{
    wr->remote_addr = RX_IOVA + (uint64_t)(remote_slot(t, d, k) - d->rx);
    if (traffic_is_atomic(s->op)) {
        bool cas = s->op == TRAFFIC_CAS;
        s->len = 8;
        s->expect = d->counter[cas]++;
        wr->remote_addr = RX_IOVA + (cas ? 8 : 0);
        wr->compare_add = cas ? s->expect : 1;
        wr->swap = s->expect + 1;
        memset(tx_slot(t, d, k), 0xee, 8);
    } else if (s->op == TRAFFIC_READ) {
        memset(tx_slot(t, d, k), 0xee, s->len);
        pattern_put(d, k, remote_slot(t, d, k), s->len);
    } else {
        pattern_put(d, k, tx_slot(t, d, k), s->len);
    }
}

static uint32_t qpn_of(const struct traffic *t, const struct traffic_dir *d, unsigned host)
{
    return verbs_qp_num(ep_verbs(t->s->ep[host]), d->c->qp[host]);
}

/* A new row of the ledger. */
static struct ledger_row row_of(const struct traffic *t, const struct traffic_dir *d, const struct slot *s,
                                const struct send_wr *wr)
{
    return (struct ledger_row){.conn = d->c->number,
                               .host = d->host,
                               .qpn = qpn_of(t, d, d->host),
                               .remote_qpn = qpn_of(t, d, d->host ^ 1),
                               .number = wr->wr_id,
                               .va = wr->remote_addr,
                               .rkey = wr->rkey,
                               .imm = wr->imm_data,
                               .bytes = s->len,
                               .opcode = wr->opcode,
                               .status = LEDGER_OPEN,
                               .posted = s->posted,
                               .sent = NS_NEVER,
                               .completed = NS_NEVER};
}

bool traffic_post(struct traffic *t, struct traffic_dir *d, ns_t now)
{
    uint64_t k = d->posted;
    struct slot *s = &d->slots[k % t->c.tx_depth];
    struct sge sge = {TX_IOVA + (uint64_t)(tx_slot(t, d, k) - d->tx), 0, d->lkey};
    struct send_wr wr = {.wr_id = k, .sg_list = &sge, .num_sge = 1, .imm_data = (uint32_t)k, .rkey = d->rkey};

    *s = (struct slot){.posted = now, .op = (uint8_t)pick_op(t, d), .len = t->c.size};
    if (t->c.vary)
        s->len = prng_below(&d->prng, t->c.size + 1);
    wr.opcode = (uint8_t)traffic_opcode(s->op, t->c.with_imm);
    wr.flags = (uint8_t)((k + 1) % t->c.signal_every == 0 || k + 1 == t->c.iters ? SEND_SIGNALED : 0) |
               (t->c.solicited ? SEND_SOLICITED : 0);
    fill_slot(t, d, k, s, &wr);
    sge.length = s->len;
    if (d->c->type == QPT_UD) {
        wr.ah = (uint32_t)d->c->ah[d->host];
        wr.remote_qpn = d->c->remote_qpn[d->host];
        wr.remote_qkey = d->c->remote_qkey[d->host];
    }
    if (s->op == TRAFFIC_SEND || wr.opcode == WR_RDMA_WRITE_WITH_IMM) {
        if (d->await_tail - d->await_head == t->ring)
            d->await_head++; /* never received: unreliable services only */
        d->await[d->await_tail % t->ring] = (struct awaited){k, s->len};
    }
    if (verbs_post_send(ep_verbs(t->s->ep[d->host]), d->c->qp[d->host], &wr, now) < 0)
        return false;
    s->row = row_of(t, d, s, &wr);
    if (s->op == TRAFFIC_SEND || wr.opcode == WR_RDMA_WRITE_WITH_IMM)
        d->await_tail++;
    if (!t->r.posted++)
        t->r.start = now;
    d->posted++;
    return true;
}

/* --- Completions ------------------------------------------------------------------------------ */

static bool slot_good(const struct traffic *t, const struct traffic_dir *d, uint64_t k)
{
    const struct slot *s = &d->slots[k % t->c.tx_depth];
    uint64_t v;

    if (d->c->type != QPT_RC)
        return true;
    switch ((enum traffic_op)s->op) {
    case TRAFFIC_WRITE:
        return pattern_is(d, k, remote_slot(t, d, k), s->len);
    case TRAFFIC_READ:
        return pattern_is(d, k, tx_slot(t, d, k), s->len);
    case TRAFFIC_CAS:
    case TRAFFIC_FAA:
        memcpy(&v, tx_slot(t, d, k), 8);
        return v == s->expect;
    default:
        return true; /* the receiver has verified it */
    }
}

static void message_done(struct traffic *t, struct traffic_dir *d, uint64_t k, ns_t when)
{
    const struct slot *s = &d->slots[k % t->c.tx_depth];

    t->r.mismatches += !slot_good(t, d, k);
    t->r.completed++;
    t->r.bytes += s->len;
    t->r.end = when;
    traffic_times_add(&t->r.took, when - s->posted);
}

void traffic_tell(struct traffic *t, struct traffic_dir *d, uint64_t k, const struct wc *wc)
{
    for (; t->c.ledger && d->told <= k && d->told < d->posted; d->told++) {
        struct ledger_row *r = &d->slots[d->told % t->c.tx_depth].row;
        if (wc)
            r->status = d->told == k ? wc->status : WC_SUCCESS;
        if (wc && d->told == k)
            r->completed = wc->when;
        ledger_put(t->c.ledger, r);
    }
}

void traffic_send_completed(struct traffic *t, struct traffic_dir *d, const struct wc *wc)
{
    traffic_tell(t, d, wc->wr_id, wc);
    if (wc->status != WC_SUCCESS) {
        if (!t->r.failed++)
            t->r.first_error = wc->status;
        d->dead = true;
        return;
    }
    t->r.mismatches += wc->wr_id < d->done; /* a duplicate completion, or out of order */
    for (; d->done <= wc->wr_id; d->done++)
        message_done(t, d, d->done, wc->when);
}

/* True if the receive has the message awaited as number `n`. */
static bool is_awaited(const struct traffic *t, const struct traffic_dir *d, uint64_t n, const struct wc *wc,
                       const uint8_t *data, uint32_t len)
{
    const struct awaited *a = &d->await[n % t->ring];

    if (a->len != len || ((wc->flags & WC_WITH_IMM) && wc->imm_data != (uint32_t)a->k))
        return false;
    return wc->opcode != WC_RECV || pattern_is(d, a->k, data, len);
}

/* Unreliable services lose, duplicate and reorder messages: it must be one of those sent recently. */
static bool was_sent(const struct traffic *t, struct traffic_dir *d, const struct wc *wc, const uint8_t *data,
                     uint32_t len)
{
    uint64_t oldest = d->await_tail > t->ring ? d->await_tail - t->ring : 0;

    for (uint64_t n = d->await_head; n < d->await_tail; n++)
        if (is_awaited(t, d, n, wc, data, len)) {
            d->await_head = n + 1;
            return true;
        }
    for (uint64_t n = d->await_head; n-- > oldest;)
        if (is_awaited(t, d, n, wc, data, len))
            return true;
    return false;
}

void traffic_recv_completed(struct traffic *t, struct traffic_dir *d, const struct wc *wc)
{
    uint64_t i = d->rx_done++;
    uint32_t len;
    const uint8_t *data = receives_data(&d->recvs, i, wc, &len);
    bool good;

    if (wc->status != WC_SUCCESS) {
        t->r.recv_failed += wc->status != WC_WR_FLUSH_ERR;
        return;
    }
    t->r.received++;
    good = (wc->wr_id & ~RECV_ID) == i; /* receives complete in the order in which they were posted */
    if (d->c->type != QPT_RC)
        good &= was_sent(t, d, wc, data, len);
    else
        good &= d->await_head < d->await_tail && is_awaited(t, d, d->await_head++, wc, data, len);
    t->r.mismatches += !good;
}

void traffic_sent(void *user, unsigned host, const uint8_t *data, uint32_t len, ns_t now)
{
    struct traffic *t = user;
    struct ep_sent sent = ep_tx_last(t->s->ep[host]);
    const struct sim_conn *c = sent.request ? ep_qp_user(t->s->ep[host], sent.qp) : NULL;
    struct traffic_dir *d = c ? traffic_dir_of(t, c->number - 1, host) : NULL;
    struct ledger_row *r;

    (void)data, (void)len;
    if (!d)
        return;
    r = &d->slots[sent.wr_id % t->c.tx_depth].row;
    r->packets++;
    r->again += sent.repeat;
    if (r->sent == NS_NEVER) {
        r->sent = now;
        r->psn = sent.psn;
    }
}
