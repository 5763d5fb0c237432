/* layer 3 (sim): the messages of perftest-like traffic: posted, completed, verified. */
#include "gen/sim/traffic_impl.h"

/* --- Data: every message has its own ---------------------------------------------------------- */

static uint64_t pattern_start(const struct traffic_dir *d, uint64_t k)
{
    uint64_t v = (k + 1) * HASH_MULTIPLIER ^ ((uint64_t)d->c->number << 40 | (uint64_t)d->host << 32);

    return v ^ v >> 29;
}

void traffic_pattern_put(const struct traffic_dir *d, uint64_t k, uint8_t *p, uint32_t len)
{
    uint64_t v = pattern_start(d, k);

    for (; len >= 8; len -= 8, p += 8, v += UINT64_C(0xbf58476d1ce4e5b9))
        memcpy(p, &v, 8);
    memcpy(p, &v, len);
}

bool traffic_pattern_is(const struct traffic_dir *d, uint64_t k, const uint8_t *p, uint32_t len)
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

uint32_t traffic_mix(const struct traffic_config *c)
{
    uint32_t all = c->op != TRAFFIC_MIXED ? 1u << c->op : c->mix ? c->mix : (1u << TRAFFIC_MIXED) - 1;

    return all & traffic_of_service(c->type);
}

static enum traffic_op pick_op(const struct traffic *t, struct traffic_dir *d)
{
    uint32_t mix = traffic_mix(&t->c), n = (uint32_t)__builtin_popcount(mix);

    if (t->c.op != TRAFFIC_MIXED)
        return t->c.op;
    for (n = n > 1 ? prng_below(&d->prng, n) : 0; n; n--)
        mix &= mix - 1;
    return (enum traffic_op)__builtin_ctz(mix);
}

static uint32_t qpn_of(const struct traffic *t, const struct traffic_dir *d, unsigned host)
{
    return verbs_qp_num(ep_verbs(t->s->ep[host]), d->c->qp[host]);
}

/* Whether the other host gets a receive completion for a message. */
static bool is_received(const struct traffic *t, const struct sender_message *m)
{
    return m->op == TRAFFIC_SEND || m->op >= TRAFFIC_MW1 || (m->op == TRAFFIC_WRITE && t->c.with_imm);
}

void traffic_await(struct traffic *t, struct traffic_dir *d, struct awaited a)
{
    if (d->await_tail - d->await_head == t->ring)
        d->await_head++; /* never received: unreliable services only */
    d->await[d->await_tail++ % t->ring] = a;
}

/* The next message, whose data is at `remote` at the other host, was posted: it awaits its receive, and gets a row of
 * the ledger. `loan`: what it lends; -1: nothing. */
static void posted(struct traffic *t, struct traffic_dir *d, const struct sender_message *m, uint64_t remote, int loan,
                   ns_t now)
{
    uint64_t k = d->s.posted - 1;

    d->rows[k % t->c.tx_depth] = (struct ledger_row){.conn = d->c->number,
                                                     .host = d->host,
                                                     .qpn = qpn_of(t, d, d->host),
                                                     .remote_qpn = qpn_of(t, d, d->host ^ 1),
                                                     .number = k,
                                                     .va = remote,
                                                     .rkey = d->s.rkey,
                                                     .imm = (uint32_t)k,
                                                     .bytes = m->len,
                                                     .opcode = (uint8_t)traffic_opcode(m->op, t->c.with_imm),
                                                     .status = LEDGER_OPEN,
                                                     .posted = now,
                                                     .sent = NS_NEVER,
                                                     .completed = NS_NEVER};
    if (is_received(t, m))
        traffic_await(t, d,
                      (struct awaited){.k = k,
                                       .len = m->len,
                                       .kind = loan < 0 ? AWAIT_DATA : AWAIT_KEY,
                                       .loan = (uint8_t)(loan < 0 ? 0 : loan)});
    if (!t->r.posted++)
        t->r.start = now;
}

bool traffic_post(struct traffic *t, struct traffic_dir *d, ns_t now)
{
    uint64_t k = d->s.posted;
    uint8_t *local = tx_slot(t, d, k), *remote = remote_slot(t, d, k);
    struct sender_message m = {.op = (uint8_t)pick_op(t, d), .len = t->c.size};
    bool atomic = traffic_is_atomic(m.op);
    int loan = -1;

    if (t->c.vary)
        m.len = prng_below(&d->prng, t->c.size + 1);
    if (traffic_has_8_bytes(m.op))
        m.len = 8;
    if (atomic)
        remote = d->rx + (m.op == TRAFFIC_CAS ? 8 : 0);
    if (atomic || m.op == TRAFFIC_READ)
        memset(local, 0xee, m.len);
    if (m.op >= TRAFFIC_MW1) {
        if ((loan = traffic_lend(t, d, &m, local, now)) < 0)
            return false;
    } else if (!atomic) {
        traffic_pattern_put(d, k, m.op == TRAFFIC_READ ? remote : local, m.len);
    }
    d->s.remote_qpn = d->c->remote_qpn[d->host];
    d->s.remote_qkey = d->c->remote_qkey[d->host];
    d->s.remote_srqn = d->c->remote_srqn;
    if (sender_post(&d->s, &m, TX_IOVA + (uint64_t)(local - d->tx), RX_IOVA + (uint64_t)(remote - d->rx), now) < 0)
        return false;
    posted(t, d, &m, RX_IOVA + (uint64_t)(remote - d->rx), loan, now);
    return true;
}

/* --- Completions ------------------------------------------------------------------------------ */

static bool message_good(const struct traffic *t, const struct traffic_dir *d, const struct sender_message *m)
{
    uint64_t k = d->s.completed - 1;

    if (!qp_is_reliable(d->c->type))
        return true;
    switch ((enum traffic_op)m->op) {
    case TRAFFIC_WRITE:
    case TRAFFIC_ATOMIC_WRITE:
        return traffic_pattern_is(d, k, remote_slot(t, d, k), m->len);
    case TRAFFIC_READ:
        return traffic_pattern_is(d, k, tx_slot(t, d, k), m->len);
    case TRAFFIC_CAS:
    case TRAFFIC_FAA:
        return memcmp(tx_slot(t, d, k), &m->expect, 8) == 0;
    default:
        return true; /* the receiver has verified it */
    }
}

static void message_done(struct traffic *t, const struct traffic_dir *d, const struct sender_message *m, ns_t when)
{
    t->r.mismatches += !message_good(t, d, m);
    t->r.completed++;
    t->r.bytes += m->len;
    t->r.end = when;
    traffic_times_add(&t->r.took, when - m->posted);
}

void traffic_tell(struct traffic *t, struct traffic_dir *d, uint64_t k, const struct wc *wc)
{
    for (; t->c.ledger && d->entered <= k && d->entered < d->s.posted; d->entered++) {
        struct ledger_row *r = &d->rows[d->entered % t->c.tx_depth];
        if (wc)
            r->status = d->entered == k ? wc->status : WC_SUCCESS;
        if (wc && d->entered == k)
            r->completed = wc->when;
        ledger_put(t->c.ledger, r);
    }
}

void traffic_failed(struct traffic *t, struct traffic_dir *d, const struct wc *wc)
{
    if (!t->r.failed++)
        t->r.first_error = wc->status;
    d->dead = true;
}

void traffic_send_completed(struct traffic *t, struct traffic_dir *d, const struct wc *wc)
{
    const struct sender_message *m;

    traffic_tell(t, d, wc->wr_id, wc);
    if (wc->status != WC_SUCCESS) {
        traffic_failed(t, d, wc);
        return;
    }
    t->r.mismatches += wc->wr_id < d->s.completed; /* a duplicate completion, or out of order */
    while ((m = sender_completed(&d->s, wc)))
        message_done(t, d, m, wc->when);
}

/* True if the receive has the message awaited as number `n`. */
static bool is_awaited(const struct traffic *t, const struct traffic_dir *d, uint64_t n, const struct wc *wc,
                       const uint8_t *data, uint32_t len)
{
    const struct awaited *a = &d->await[n % t->ring];

    if (a->len != len || ((wc->flags & WC_WITH_IMM) && wc->imm_data != (uint32_t)a->k))
        return false;
    return wc->opcode != WC_RECV || traffic_pattern_is(d, a->k, data, len);
}

/* The same for reliable services, which lend memory, too. */
static bool took_awaited(struct traffic *t, struct traffic_dir *d, uint64_t n, const struct wc *wc, const uint8_t *data,
                         uint32_t len)
{
    struct awaited a = d->await[n % t->ring];

    return a.kind == AWAIT_DATA ? is_awaited(t, d, n, wc, data, len) : traffic_loan_arrived(t, d, &a, wc, data, len);
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
        d->rx_flushed |= wc->status == WC_WR_FLUSH_ERR;
        return;
    }
    t->r.received++;
    good = (wc->wr_id & ~RECEIVES_ID) == i; /* receives complete in the order in which they were posted */
    if (!qp_is_reliable(d->c->type))
        good &= was_sent(t, d, wc, data, len);
    else if (d->await_head == d->await_tail)
        good = false;
    else
        good &= took_awaited(t, d, d->await_head++, wc, data, len);
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
    if (!d || sent.wr_id & KEY_ID)
        return;
    r = &d->rows[sent.wr_id % t->c.tx_depth];
    r->packets++;
    r->again += sent.repeat;
    if (r->sent == NS_NEVER) {
        r->sent = now;
        r->psn = sent.psn;
    }
}
