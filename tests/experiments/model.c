/* layer 5 (test): the packet-level model: events in a heap, packets in queues. */
#include "tests/experiments/model_impl.h"

#include <stdio.h>
#include <stdlib.h>

/* --- Events ----------------------------------------------------------------------------------- */

static bool before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push_event(struct model *m, struct event e)
{
    size_t i = m->n++;

    e.order = m->order++;

    if (m->n > m->cap) {
        m->cap = m->cap ? 2 * m->cap : 1024;
        m->heap = realloc(m->heap, m->cap * sizeof *m->heap);
        if (!m->heap)
            abort();
    }
    for (; i && before(&e, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
        m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = e;
}

static void push(struct model *m, ns_t at, enum event_kind kind, uint32_t what)
{
    push_event(m, (struct event){.at = at, .what = what, .kind = (uint8_t)kind});
}

static struct event pop(struct model *m)
{
    struct event top = m->heap[0], last = m->heap[--m->n];
    size_t i = 0;

    for (;;) {
        size_t k = 2 * i + 1;
        if (k >= m->n)
            break;
        if (k + 1 < m->n && before(&m->heap[k + 1], &m->heap[k]))
            k++;
        if (!before(&m->heap[k], &last))
            break;
        m->heap[i] = m->heap[k];
        i = k;
    }
    m->heap[i] = last;
    return top;
}

static uint32_t packet_new(struct model *m)
{
    uint32_t i = m->free;

    if (i) {
        m->free = m->packet[i - 1].next;
        return i - 1;
    }
    if (m->n_packet == m->cap_packet) {
        m->cap_packet = m->cap_packet ? 2 * m->cap_packet : 1024;
        m->packet = realloc(m->packet, m->cap_packet * sizeof *m->packet);
        if (!m->packet)
            abort();
    }
    return m->n_packet++;
}

static void packet_free(struct model *m, uint32_t p)
{
    m->packet[p].next = m->free;
    m->free = p + 1;
}

/* --- Senders ---------------------------------------------------------------------------------- */

static ns_t time_of(uint64_t bytes, uint64_t rate)
{
    return (ns_t)((bytes * 8 * (uint64_t)NS_PER_S + rate - 1) / rate);
}

static unsigned hops_of(const struct model_flow *f)
{
    return f->hops ? f->hops : 1;
}

/* Time from a receiver back to the sender. */
static ns_t way_back(const struct model *m, const struct model_flow *f)
{
    return m->c->delay * (hops_of(f) + 1) + m->c->feedback;
}

/* A packet begins on the link of flow `i`. */
static void depart(struct model *m, uint32_t i, uint32_t bytes)
{
    uint32_t n = packet_new(m);

    m->packet[n] = (struct packet){.flow = i, .bytes = bytes, .sent = m->now};
    push(m, m->now + time_of(bytes, m->c->flow[i].link) + m->c->delay, AT_ARRIVE, n);
}

/* The events of a flow after its state has changed. */
static void look(struct model *m, uint32_t i)
{
    struct flow *f = &m->flow[i];
    struct cc *c = &m->c->flow[i].state;
    bool may = !f->paused && f->in_flight + m->c->packet <= cc_window(c) && cc_budget(c);
    ns_t at = !may ? NS_NEVER : cc_next_send(c) > m->now ? cc_next_send(c) : m->now;

    if (at != f->send_at) {
        f->send_at = at;
        if (at != NS_NEVER)
            push(m, at, AT_SEND, i);
    }
    if (c->want_probe) {
        cc_probe_sent(c, m->now);
        depart(m, i, PROBE);
    }
    if (c->want_ask) {
        cc_asked(c, m->now);
        push(m, m->now + way_back(m, &m->c->flow[i]), AT_ASK, i);
    }
    if (cc_deadline(c) != f->timer_at) {
        f->timer_at = cc_deadline(c);
        if (f->timer_at != NS_NEVER)
            push(m, f->timer_at, AT_TIMER, i);
    }
}

static void send(struct model *m, uint32_t i)
{
    m->flow[i].in_flight += m->c->packet;
    cc_sent(&m->c->flow[i].state, m->c->packet, m->now);
    depart(m, i, m->c->packet);
}

/* --- Queues ----------------------------------------------------------------------------------- */

static void count_queue(struct model *m, unsigned i)
{
    struct model_queue *c = &m->c->queue[i];
    struct queue *q = &m->queue[i];
    double time = (double)(m->now - q->changed);

    c->area += time * (double)q->bytes;
    c->square += time * (double)q->bytes * (double)q->bytes;
    q->changed = m->now;
    if (q->bytes > c->most)
        c->most = q->bytes;
}

/* Bytes of flow `i` in its first queue: its port pauses and goes on by them. */
static void count_port(struct model *m, uint32_t i, int64_t change)
{
    struct flow *f = &m->flow[i];

    f->in_first += (uint64_t)change;
    if (!m->c->xoff)
        return;
    if (!f->stopped && f->in_first >= m->c->xoff) {
        f->stopped = true;
        m->pauses++;
        push(m, m->now + m->c->delay, AT_PAUSE, i);
    } else if (f->stopped && f->in_first < m->c->xon) {
        f->stopped = false;
        push(m, m->now + m->c->delay, AT_RESUME, i);
    }
}

/* The head of a queue begins to leave. */
static void leave(struct model *m, unsigned i)
{
    struct model_queue *c = &m->c->queue[i];
    struct queue *q = &m->queue[i];
    struct packet *p;
    uint32_t n = q->head;
    ns_t time;

    q->busy = n != 0;
    if (!n)
        return;
    p = &m->packet[n - 1];
    q->head = p->next;
    count_queue(m, i);
    q->bytes -= p->bytes;
    if (c->marking && mp_marks(&q->mp, q->bytes, m->now)) {
        p->marked = true;
        c->marks++;
    }
    c->left++;
    c->left_bytes += p->bytes;
    q->packets[p->flow]--;
    q->tx_bytes += p->bytes;
    p->hops[p->hop] = (struct cc_hop){c->link, m->now, q->tx_bytes, (uint32_t)q->bytes};
    if (p->hop == 0)
        count_port(m, p->flow, -(int64_t)p->bytes);
    p->hop++;
    time = time_of(p->bytes, c->link);
    push(m, m->now + time, AT_LEAVE, i);
    push(m, m->now + time + m->c->delay, AT_ARRIVE, n - 1);
}

static void enter(struct model *m, unsigned i, uint32_t n)
{
    struct model_queue *c = &m->c->queue[i];
    struct queue *q = &m->queue[i];
    struct packet *p = &m->packet[n];

    if (c->limit && q->bytes + p->bytes > c->limit) {
        c->drops++;
        m->flow[p->flow].in_flight -= p->bytes == PROBE ? 0 : p->bytes;
        packet_free(m, n);
        return;
    }
    count_queue(m, i);
    q->bytes += p->bytes;
    if (q->bytes > c->most)
        c->most = q->bytes;
    q->packets[p->flow]++;
    p->next = 0;
    if (q->head)
        m->packet[q->tail - 1].next = n + 1;
    else
        q->head = n + 1;
    q->tail = n + 1;
    if (p->hop == 0)
        count_port(m, p->flow, p->bytes);
    if (!q->busy)
        leave(m, i);
}

/* A congestion point tells the flows that have packets in its queue. */
static void tell_rate(struct model *m, unsigned i)
{
    struct queue *q = &m->queue[i];
    struct event e = {.value = fair_step(&q->fair, q->bytes), .kind = AT_RATE, .from = (uint8_t)i};

    for (e.what = 0; e.what < m->c->n_flow; e.what++) {
        e.at = m->now + way_back(m, &m->c->flow[e.what]) - m->c->delay;
        if (q->packets[e.what])
            push_event(m, e);
    }
    push(m, q->fair.next, AT_FAIR, i);
}

/* --- Receivers -------------------------------------------------------------------------------- */

static void plan_grant(struct model *m)
{
    if (m->credit.next == m->grant_at)
        return;
    m->grant_at = m->credit.next;
    if (m->grant_at != NS_NEVER)
        push(m, m->grant_at, AT_GRANT, 0);
}

static void grant(struct model *m)
{
    struct event e = {.kind = AT_CREDIT};
    int i = credit_grant(&m->credit, &e.value, m->now);

    if (i < 0)
        return;
    e.what = (uint32_t)i;
    e.at = m->now + way_back(m, &m->c->flow[i]);
    push_event(m, e);
}

static void receive(struct model *m, uint32_t n)
{
    static const uint8_t receiver[16] = {[15] = 1};
    struct packet *p = &m->packet[n];
    struct model_flow *c = &m->c->flow[p->flow];
    ns_t back = way_back(m, c), due = NS_NEVER;
    uint8_t address[16] = {[0] = 10, [12] = (uint8_t)(p->flow >> 8), [13] = (uint8_t)p->flow};

    c->bytes += p->bytes == PROBE ? 0 : p->bytes;
    if (p->marked)
        due = np_marked(&m->np, address, receiver, &m->flow[p->flow].notified, false, m->now);
    if (due != NS_NEVER)
        push(m, due + back, AT_CNP, p->flow);
    push(m, m->now + back, AT_ACK, n);
    if (c->state.config->scheme->needs & CC_NEEDS_CREDIT) {
        credit_arrived(&m->credit, p->flow, p->bytes, m->now);
        plan_grant(m);
    }
}

static void arrive(struct model *m, uint32_t n)
{
    const struct packet *p = &m->packet[n];
    const struct model_flow *c = &m->c->flow[p->flow];

    if (p->hop < hops_of(c))
        enter(m, c->path[p->hop], n);
    else
        receive(m, n);
}

static void acked(struct model *m, uint32_t n)
{
    struct packet *p = &m->packet[n];
    struct cc_ack a = {.bytes = p->bytes, .rtt = m->now - p->sent, .ecn = p->marked};
    struct cc *c = &m->c->flow[p->flow].state;

    if (p->bytes == PROBE) {
        cc_probe_reply(c, p->sent, 0, 0, m->now);
        look(m, p->flow);
        packet_free(m, n);
        return;
    }
    m->flow[p->flow].in_flight -= p->bytes;
    cc_acked(c, &a, m->now);
    cc_telemetry(c, p->hops, p->hop, a.rtt, m->now);
    look(m, p->flow);
    packet_free(m, n);
}

/* --- The whole -------------------------------------------------------------------------------- */

static void pause(struct model *m, uint32_t i, bool stop)
{
    struct flow *f = &m->flow[i];

    if (f->paused && !stop)
        m->c->flow[i].paused += m->now - f->since;
    f->since = m->now;
    f->paused = stop;
    look(m, i);
}

static void step(struct model *m, const struct event *e)
{
    struct model_flow *c = &m->c->flow[e->kind == AT_ARRIVE || e->kind == AT_ACK ? 0 : e->what % MODEL_FLOWS];
    struct flow *f = &m->flow[c - m->c->flow];

    switch ((enum event_kind)e->kind) {
    case AT_SEND:
        if (f->send_at != e->at)
            return;
        f->send_at = NS_NEVER;
        send(m, e->what);
        look(m, e->what);
        return;
    case AT_TIMER:
        if (f->timer_at != e->at)
            return;
        cc_expire(&c->state, m->now);
        look(m, e->what);
        return;
    case AT_ARRIVE:
        arrive(m, e->what);
        return;
    case AT_LEAVE:
        leave(m, e->what);
        return;
    case AT_CNP:
        c->cnps++;
        cc_cnp(&c->state, m->now);
        look(m, e->what);
        return;
    case AT_ACK:
        acked(m, e->what);
        return;
    case AT_FAIR:
        tell_rate(m, e->what);
        return;
    case AT_RATE:
        cc_fair_rate(&c->state, e->value, e->from, m->now);
        look(m, e->what);
        return;
    case AT_ASK:
        credit_asked(&m->credit, e->what, cc_look(&c->state, "demand"), cc_look(&c->state, "quota"), m->now);
        plan_grant(m);
        return;
    case AT_GRANT:
        if (m->grant_at != e->at)
            return;
        m->grant_at = NS_NEVER;
        grant(m);
        plan_grant(m);
        return;
    case AT_CREDIT:
        cc_credit(&c->state, e->value, m->now);
        look(m, e->what);
        return;
    default:
        pause(m, e->what, e->kind == AT_PAUSE);
    }
}

static bool prepare(struct model *m)
{
    struct model_config *c = m->c;
    struct text_error e = {0};
    const char *np;

    for (unsigned i = 0; i < c->n_flow; i++)
        if (!cc_parse(&m->flow[i].cc, c->flow[i].cc, &e))
            goto wrong;
    np = c->np ? c->np : m->flow[0].cc.scheme->np;
    if (np && !np_parse(&m->np_config, np, &e))
        goto wrong;
    m->credit_config = credit_config_of(&m->flow[0].cc);
    for (unsigned i = 0; i < c->n_queue; i++) {
        m->queue[i].marking = mp_config_default();
        if (c->queue[i].marking && !mp_parse(&m->queue[i].marking, c->queue[i].marking, &e))
            goto wrong;
        mp_init(&m->queue[i].mp, &m->queue[i].marking, c->seed * 64 + i, 0);
        m->queue[i].fairness = fair_config_for(c->queue[i].link);
        if (c->queue[i].fair && *c->queue[i].fair && !fair_parse(&m->queue[i].fairness, c->queue[i].fair, &e))
            goto wrong;
        fair_init(&m->queue[i].fair, &m->queue[i].fairness, 0);
        if (c->queue[i].fair)
            push(m, m->queue[i].fair.next, AT_FAIR, i);
    }
    return true;
wrong:
    fprintf(stderr, "model: %s\n", e.msg);
    return false;
}

/* A flow begins: at its time, and up to a packet's time later, by its number. */
static void begin(struct model *m, uint32_t i)
{
    struct model_flow *f = &m->c->flow[i];
    struct cc_limits limits = {.line = f->link, .mtu = m->c->packet, .seed = m->c->seed * 1000 + i};
    ns_t at = f->start + time_of(m->c->packet, f->link) * (ns_t)i / (ns_t)m->c->n_flow;

    limits.base_rtt = 2 * m->c->delay * (hops_of(f) + 1) + time_of(m->c->packet, f->link) * (hops_of(f) + 1);
    cc_start(&f->state, &m->flow[i].cc, &limits, at);
    if (f->rate)
        f->state.rate = f->rate;
    cc_demand(&f->state, UINT64_MAX / 2, at);
    m->flow[i].send_at = at;
    m->flow[i].timer_at = NS_NEVER;
    push(m, at, AT_SEND, i);
}

struct model *model_new(struct model_config *config)
{
    struct model *m = calloc(1, sizeof *m);

    if (!m)
        abort();
    m->c = config;
    config->delay = config->delay ? config->delay : NS_PER_US;
    config->packet = config->packet ? config->packet : 1000;
    m->np_config = np_config_default();
    m->grant_at = NS_NEVER;
    if (!prepare(m)) {
        free(m);
        return NULL;
    }
    np_init(&m->np, &m->np_config, m->slot, NP_SLOTS);
    credit_init(&m->credit, &m->credit_config, m->sender, config->n_flow, config->queue[0].link, config->packet);
    for (uint32_t i = 0; i < config->n_flow; i++)
        begin(m, i);
    model_begin(m);
    return m;
}

void model_free(struct model *m)
{
    if (!m)
        return;
    free(m->heap);
    free(m->packet);
    free(m);
}

ns_t model_now(const struct model *m)
{
    return m->now;
}

void model_begin(struct model *m)
{
    for (unsigned i = 0; i < m->c->n_flow; i++) {
        struct model_flow *f = &m->c->flow[i];
        f->bytes = f->cnps = 0;
        f->paused = 0;
        m->flow[i].since = m->now;
    }
    for (unsigned i = 0; i < m->c->n_queue; i++) {
        struct model_queue *q = &m->c->queue[i];
        q->area = q->square = 0;
        q->most = q->left = q->left_bytes = q->marks = q->drops = 0;
        m->queue[i].changed = m->now;
    }
    m->pauses = 0;
    m->from = m->now;
}

void model_run(struct model *m, ns_t until)
{
    while (m->n && m->heap[0].at <= until) {
        struct event e = pop(m);
        m->now = e.at;
        step(m, &e);
    }
    m->now = until;
    for (unsigned i = 0; i < m->c->n_queue; i++)
        count_queue(m, i);
    for (unsigned i = 0; i < m->c->n_flow; i++)
        if (m->flow[i].paused) {
            m->c->flow[i].paused += m->now - m->flow[i].since;
            m->flow[i].since = m->now;
        }
}

#define MEAN_STEPS 200

double model_run_mean(struct model *m, ns_t until, const char *name)
{
    ns_t from = m->now;
    double sum = 0;

    for (unsigned k = 1; k <= MEAN_STEPS; k++) {
        model_run(m, from + (until - from) * k / MEAN_STEPS);
        for (unsigned i = 0; i < m->c->n_flow; i++)
            sum += (double)cc_look(&m->c->flow[i].state, name);
    }
    return sum / MEAN_STEPS / m->c->n_flow;
}
