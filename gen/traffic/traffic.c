/* layer 3 (traffic): flows of messages: posted, completed, verified. */
#include "gen/traffic/traffic.h"

#include <errno.h>
#include <stdlib.h>

#define RING_UNRELIABLE 16384     /* datagrams that may be in transit: the queues of the network hold many */
#define CATCH_UP        NS_PER_MS /* with a rate: time for which lost sending is made up for */

/* --- Setup ------------------------------------------------------------------------------------ */

uint32_t traffic_mix(const struct traffic_config *c)
{
    uint32_t all = c->op != TRAFFIC_MIXED ? 1u << c->op : c->mix ? c->mix : (1u << TRAFFIC_MIXED) - 1;

    return all & traffic_of_service(c->type);
}

bool traffic_lends(const struct traffic_config *c)
{
    return traffic_mix(c) & TRAFFIC_LENDS;
}

bool traffic_receives(const struct traffic_config *c)
{
    return c->op == TRAFFIC_SEND || c->op == TRAFFIC_MIXED || c->with_imm || traffic_lends(c);
}

bool traffic_answers(const struct traffic_config *c)
{
    return c->latency && (c->op == TRAFFIC_SEND || c->op == TRAFFIC_WRITE);
}

uint32_t traffic_pitch(const struct traffic_config *c)
{
    return (max_u32(c->size, traffic_lends(c) ? TRAFFIC_LOAN_BYTES : 8) + 7) & ~7u;
}

/* Whether the last byte of a message is its number, for which the receiver of a WRITE waits. */
static bool is_marked(const struct traffic_config *c)
{
    return traffic_answers(c) && c->op == TRAFFIC_WRITE && !c->with_imm;
}

static bool open_result(const struct traffic *t, struct traffic_result *r, uint32_t window)
{
    r->window = window;
    r->when = t->peak ? calloc(2 * (size_t)window, sizeof *r->when) : NULL;
    return r->when || !t->peak;
}

int traffic_init(struct traffic *t, const struct traffic_config *config, const struct traffic_ways *ways, bool peak)
{
    struct traffic_config *c = &t->c;

    *t = (struct traffic){.c = *config, .ways = *ways, .peak = peak, .until = NS_NEVER};
    if (c->latency)
        c->tx_depth = 1;
    if (!c->iters)
        c->iters = UINT64_MAX;
    if (!c->rx_depth)
        c->rx_depth = 2 * c->tx_depth;
    /* else the send queue would fill up without a completion */
    c->batch = min_u32(max_u32(c->batch, 1), c->tx_depth);
    c->signal_every = min_u32(c->signal_every ? c->signal_every : c->batch, c->tx_depth);
    for (t->ring = qp_is_reliable(c->type) ? 1 : RING_UNRELIABLE; t->ring < 4 * (c->tx_depth + c->rx_depth);)
        t->ring *= 2;
    t->flow = calloc(c->qps, 2 * sizeof(struct traffic_flow *));
    return t->flow && open_result(t, &t->r, c->tx_depth * c->qps) ? 0 : -ENOMEM;
}

void traffic_free(struct traffic *t)
{
    for (uint32_t i = 0; i < t->n_flows; i++) {
        free(t->flow[i]->message);
        free(t->flow[i]->await);
        free(t->flow[i]->r.when);
    }
    free(t->flow);
    free(t->sample);
    free(t->r.when);
    *t = (struct traffic){0};
}

int traffic_add(struct traffic *t, struct traffic_flow *f, struct verbs *verbs, int qp)
{
    *f = (struct traffic_flow){.t = t,
                               .id = (uint64_t)t->n_flows << TRAFFIC_FLOW,
                               .verbs = verbs,
                               .qp = qp,
                               .iters = t->c.iters,
                               .message = calloc(t->c.tx_depth, sizeof *f->message),
                               .await = calloc(traffic_receives(&t->c) ? t->ring : 1, sizeof *f->await)};
    t->flow[t->n_flows++] = f;
    return f->message && f->await && open_result(t, &f->r, t->c.tx_depth) ? 0 : -ENOMEM;
}

size_t traffic_receive_bytes(const struct traffic *t, uint32_t n)
{
    return (size_t)n * (traffic_pitch(&t->c) + UD_GRH_BYTES);
}

void traffic_receive(struct traffic_flow *f, const struct receives *at)
{
    const struct traffic_config *c = &f->t->c;

    f->recvs = *at;
    f->recvs.pitch = traffic_pitch(c) + UD_GRH_BYTES;
    f->recvs.grh = c->type == QPT_UD ? UD_GRH_BYTES : 0;
    f->recvs.bytes = traffic_pitch(c) + f->recvs.grh;
    f->recvs.slots = c->rx_depth;
    f->recvs.id = RECEIVES_ID | f->id;
}

void traffic_pair(struct traffic_flow *a, struct traffic_flow *b)
{
    a->back = b;
    b->back = a;
    a->leads = true;
}

uint8_t *traffic_slot(const struct traffic_slots *s, uint64_t k)
{
    return s->mem ? s->mem + k % s->n * s->pitch : NULL;
}

/* --- Data ------------------------------------------------------------------------------------- */

static void put_data(const struct traffic_flow *f, uint64_t k, uint8_t *p, uint32_t len)
{
    if (p && f->t->ways.put)
        f->t->ways.put(f, k, p, len);
    if (is_marked(&f->t->c))
        p[len - 1] = (uint8_t)(k + 1);
}

static bool has_data(const struct traffic_flow *f, uint64_t k, const uint8_t *p, uint32_t len)
{
    if (!is_marked(&f->t->c))
        return f->t->ways.is(f, k, p, len);
    return p[len - 1] == (uint8_t)(k + 1) && f->t->ways.is(f, k, p, len - 1);
}

/* Change every byte, so that a correct response does. */
static void spoil(uint8_t *p, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        p[i] = (uint8_t)~p[i];
}

void traffic_wrong(struct traffic_flow *f, bool wrong)
{
    struct traffic_flow *own = f->verbs ? f : f->back; /* the peer's answers count for the messages that they answer */

    own->r.mismatches += wrong;
    f->t->r.mismatches += wrong;
}

void traffic_compared(struct traffic_flow *f, bool good)
{
    f->t->r.compared++;
    traffic_wrong(f, !good);
}

/* --- Posting ---------------------------------------------------------------------------------- */

int traffic_post_receives(struct traffic_flow *f, ns_t now)
{
    int r = 0;

    while (r == 0 && f->rx_posted - f->rx_done < f->recvs.slots)
        if ((r = receives_post(&f->recvs, f->rx_posted, now)) == 0)
            f->rx_posted++;
    return r;
}

static enum traffic_op pick_op(struct traffic_flow *f)
{
    uint32_t mix = traffic_mix(&f->t->c), n = (uint32_t)__builtin_popcount(mix);

    if (f->t->c.op != TRAFFIC_MIXED)
        return f->t->c.op;
    for (n = n > 1 ? prng_below(&f->prng, n) : 0; n; n--)
        mix &= mix - 1;
    return (enum traffic_op)__builtin_ctz(mix);
}

static struct traffic_message next_message(struct traffic_flow *f, ns_t now)
{
    const struct traffic_config *c = &f->t->c;
    struct traffic_message m = {.posted = now, .op = (uint8_t)pick_op(f), .len = c->size};

    if (c->vary)
        m.len = prng_below(&f->prng, c->size + 1);
    if (traffic_has_8_bytes(m.op))
        m.len = 8;
    m.expect = f->next[m.op == TRAFFIC_CAS];
    return m;
}

void traffic_await(struct traffic_flow *f, struct traffic_awaited a)
{
    if (f->await_tail - f->await_head == f->t->ring)
        f->await_head++; /* never received: unreliable services only */
    f->await[f->await_tail++ % f->t->ring] = a;
}

/* The receive of a message that was posted, or of its answer, is to complete here. */
static void await_receive(struct traffic_flow *f, const struct traffic_message *m)
{
    struct traffic_awaited a = {.k = f->posted - 1, .len = m->len};

    if (m->op != TRAFFIC_SEND && !(m->op == TRAFFIC_WRITE && f->t->c.with_imm))
        return;
    if (f->recvs.slots)
        traffic_await(f, a);
    else if (f->back)
        traffic_await(f->back, a);
}

/* Post the work request of message `m`. */
static int post_request(const struct traffic_flow *f, const struct traffic_message *m, uint64_t remote, ns_t now)
{
    const struct traffic_config *c = &f->t->c;
    uint64_t k = f->posted;
    bool signaled = k + 1 == f->iters || (k + 1) % c->signal_every == 0;
    struct sge sge = {f->from.addr + k % f->from.n * f->from.pitch, m->len, f->lkey};
    struct send_wr wr = {.wr_id = f->id + k,
                         .opcode = (uint8_t)traffic_opcode(m->op, c->with_imm),
                         .flags = (uint8_t)((signaled ? SEND_SIGNALED : 0) | (c->solicited ? SEND_SOLICITED : 0)),
                         .num_sge = m->len && m->op != TRAFFIC_FLUSH ? 1 : 0,
                         .sg_list = &sge,
                         .imm_data = (uint32_t)k,
                         .remote_addr = remote,
                         .rkey = f->rkey,
                         .compare_add = m->op == TRAFFIC_CAS ? m->expect : 1,
                         .swap = m->expect + 1,
                         .remote_qpn = f->remote_qpn,
                         .remote_qkey = f->remote_qkey,
                         .remote_srqn = f->remote_srqn,
                         .flush_length = m->len,
                         .placement = FLUSH_GLOBAL,
                         .ah = (uint32_t)f->ah};

    return verbs_post_send(f->verbs, f->qp, &wr, now);
}

static int post_message(struct traffic_flow *f, ns_t now)
{
    struct traffic *t = f->t;
    struct traffic_message m = next_message(f, now);
    uint64_t k = f->posted, remote = f->to.addr + k % f->to.n * f->to.pitch;
    uint8_t *from = traffic_slot(&f->from, k);
    bool atomic = traffic_is_atomic(m.op), reads = atomic || m.op == TRAFFIC_READ;
    int r = 0;

    if (atomic)
        remote = f->counter[m.op == TRAFFIC_CAS];
    if (reads && t->c.verify)
        spoil(from, m.len);
    if (m.op >= TRAFFIC_MW1)
        r = t->ways.lend(f, &m, from, now);
    else if (!atomic)
        put_data(f, k, reads ? traffic_slot(&f->to, k) : from, m.len);
    if (r == 0)
        r = post_request(f, &m, remote, now);
    if (r < 0)
        return r;
    f->next[m.op == TRAFFIC_CAS] += atomic;
    f->message[f->posted++ % t->c.tx_depth] = m;
    if (!t->r.posted && t->c.duration && t->until == NS_NEVER)
        t->until = t->c.duration < NS_NEVER - now ? now + t->c.duration : NS_NEVER;
    traffic_count_posted(f, now);
    await_receive(f, &m);
    if (t->ways.posted)
        t->ways.posted(f, &m, remote, now);
    return 0;
}

/* Messages that may be posted now: a batch, or the rest. */
static uint64_t may_post(const struct traffic_flow *f, ns_t now)
{
    const struct traffic *t = f->t;
    uint64_t left = f->iters - f->posted, n = t->c.tx_depth - (f->posted - f->completed);
    bool answer = f->back && !f->leads && f->back->verbs; /* of a message of ours: never too late */

    if (f->dead || (now >= t->until && !answer) || (t->c.rate && now < t->next))
        return 0;
    if (f->back && f->back->arrived + f->leads <= f->posted)
        return 0;
    if (left <= n && left < t->c.batch)
        return left;
    return n >= t->c.batch ? t->c.batch : 0;
}

/* Time of `n` messages at the rate. */
static ns_t time_of(const struct traffic_config *c, uint64_t n)
{
    unsigned __int128 time = (unsigned __int128)n * c->size * 8 * NS_PER_S / c->rate;

    return time < NS_NEVER / 4 ? (ns_t)time : NS_NEVER / 4;
}

int traffic_post(struct traffic_flow *f, ns_t now)
{
    struct traffic *t = f->t;
    uint64_t n;
    int r = 0;

    while (r == 0 && (n = may_post(f, now))) {
        for (uint64_t i = 0; i < n && r == 0; i++)
            r = post_message(f, now);
        if (t->c.rate)
            t->next = (t->next > now - CATCH_UP ? t->next : now) + time_of(&t->c, n);
    }
    return r;
}

/* --- Completions ------------------------------------------------------------------------------ */

static void verify(struct traffic_flow *f, const struct traffic_message *m)
{
    uint64_t k = f->completed - 1;
    const uint8_t *from = traffic_slot(&f->from, k), *to = traffic_slot(&f->to, k);
    bool writes = m->op == TRAFFIC_WRITE || m->op == TRAFFIC_ATOMIC_WRITE;

    if (!f->t->c.verify || !qp_is_reliable(f->t->c.type))
        return;
    if (traffic_is_atomic(m->op))
        traffic_compared(f, memcmp(from, &m->expect, sizeof m->expect) == 0);
    else if (m->op == TRAFFIC_READ && f->t->ways.is)
        traffic_compared(f, has_data(f, k, from, m->len));
    else if (writes && to)
        traffic_compared(f, has_data(f, k, to, m->len));
}

void traffic_failed(struct traffic_flow *f, const struct wc *wc)
{
    if (!f->t->r.failed++)
        f->t->r.first_error = wc->status;
    f->dead = true;
    if (f->t->ways.failed)
        f->t->ways.failed(f, wc);
}

static void send_completed(struct traffic_flow *f, const struct wc *wc)
{
    uint64_t k = wc->wr_id - f->id;

    if (f->t->ways.completed)
        f->t->ways.completed(f, k, wc);
    if (wc->status != WC_SUCCESS) {
        traffic_failed(f, wc);
        return;
    }
    traffic_wrong(f, k < f->completed);                     /* a duplicate completion, or out of order */
    while (f->completed < f->posted && f->completed <= k) { /* with it all messages before */
        const struct traffic_message *m = &f->message[f->completed++ % f->t->c.tx_depth];
        verify(f, m);
        traffic_count_completed(f, m->len, wc->when);
        if (!f->back)
            traffic_count_took(f, wc->when - m->posted);
    }
}

/* The next message of a flow with answers has arrived: it is the answer to the last one the other way. */
static void answered(struct traffic_flow *f, ns_t now)
{
    struct traffic_flow *b = f->back;

    if (b->verbs && b->posted)
        traffic_count_took(b, (now - b->message[(b->posted - 1) % f->t->c.tx_depth].posted) / 2);
    f->arrived++;
}

/* The last byte of a flow's memory: its value counts the messages that arrived. */
static const volatile uint8_t *mark_of(const struct traffic_flow *f)
{
    return f->to.mem + f->t->c.size - 1;
}

void traffic_look(struct traffic *t, ns_t now)
{
    for (uint32_t i = 0; i < t->n_flows && is_marked(&t->c); i++) {
        struct traffic_flow *f = t->flow[i];
        if (f->to.mem && f->arrived <= f->back->posted && *mark_of(f) == (uint8_t)(f->arrived + 1))
            answered(f, now);
    }
}

/* True if the receive has the message awaited as number `n`. */
static bool is_awaited(const struct traffic_flow *f, uint64_t n, const struct wc *wc, const uint8_t *data, uint32_t len)
{
    const struct traffic_awaited *a = &f->await[n % f->t->ring];

    if (a->len != len || ((wc->flags & WC_WITH_IMM) && wc->imm_data != (uint32_t)a->k))
        return false;
    return wc->opcode != WC_RECV || !f->t->ways.is || f->t->ways.is(f, a->k, data, len);
}

/* Reliable services: the oldest message awaited. */
static bool took_awaited(struct traffic_flow *f, const struct wc *wc, const uint8_t *data, uint32_t len)
{
    uint64_t n = f->await_head;
    struct traffic_awaited a = f->await[n % f->t->ring];

    if (n == f->await_tail)
        return false;
    f->await_head++;
    return a.kind ? f->t->ways.arrived(f, &a, wc, data, len) : is_awaited(f, n, wc, data, len);
}

/* Unreliable services lose, duplicate and reorder messages: it must be one of those sent recently. */
static bool was_sent(struct traffic_flow *f, const struct wc *wc, const uint8_t *data, uint32_t len)
{
    uint64_t oldest = f->await_tail > f->t->ring ? f->await_tail - f->t->ring : 0;

    for (uint64_t n = f->await_head; n < f->await_tail; n++)
        if (is_awaited(f, n, wc, data, len)) {
            f->await_head = n + 1;
            return true;
        }
    for (uint64_t n = f->await_head; n-- > oldest;)
        if (is_awaited(f, n, wc, data, len))
            return true;
    return false;
}

static void receive_failed(struct traffic_flow *f, const struct wc *wc)
{
    f->t->r.recv_failed += wc->status != WC_WR_FLUSH_ERR;
    f->rx_flushed |= wc->status == WC_WR_FLUSH_ERR;
    if (f->t->ways.failed)
        f->t->ways.failed(f, wc);
}

static void receive_completed(struct traffic_flow *f, const struct wc *wc)
{
    uint64_t i = f->rx_done++;
    uint32_t len;
    const uint8_t *data = receives_data(&f->recvs, i, wc, &len);
    bool good = wc->wr_id - f->recvs.id == i; /* receives complete in the order in which they were posted */

    if (wc->status != WC_SUCCESS) {
        receive_failed(f, wc);
        return;
    }
    f->t->r.received++;
    good &= qp_is_reliable(f->t->c.type) ? took_awaited(f, wc, data, len) : was_sent(f, wc, data, len);
    if (f->t->c.verify && f->t->ways.is)
        traffic_compared(f, good);
    else
        traffic_wrong(f, f->t->c.verify && !good);
    if (f->back)
        answered(f, wc->when);
}

struct traffic_flow *traffic_flow_of(const struct traffic *t, uint64_t wr_id)
{
    return t->flow[(wr_id & ~RECEIVES_ID) >> TRAFFIC_FLOW];
}

void traffic_took(struct traffic *t, const struct wc *wc)
{
    struct traffic_flow *f = traffic_flow_of(t, wc->wr_id);

    if (wc->wr_id & RECEIVES_ID)
        receive_completed(f, wc);
    else
        send_completed(f, wc);
}

bool traffic_flow_done(const struct traffic_flow *f, ns_t now)
{
    bool received = !qp_is_reliable(f->t->c.type) || f->await_head == f->await_tail;

    if (f->dead || !f->verbs)
        return true;
    if (f->completed < f->posted || (f->posted < f->iters && now < f->t->until))
        return false;
    return f->back ? f->back->arrived >= f->posted : received;
}

unsigned traffic_progress(const struct traffic *t)
{
    uint64_t total = 0, done = 0;

    for (uint32_t i = 0; i < t->n_flows && t->c.iters != UINT64_MAX; i++) {
        const struct traffic_flow *f = t->flow[i];
        total += f->verbs ? f->iters : 0;
        done += f->dead ? f->iters : f->completed;
    }
    return total ? (unsigned)(done * 1000 / total) : 1000;
}
