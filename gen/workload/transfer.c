/* layer 3 (workload): messages on their way: the work requests of their protocols are posted, and completions lead to
 * the next ones. */
#include "gen/workload/workload_impl.h"
#include "grow.h"

#include <stdlib.h>

/* wr_id: message, and step << 32. Immediate data: message, and step << 26. A SEND has none: SENDs of a queue pair
 * arrive in the order in which they were posted, and those under way are in a list (`next_sent`). */
#define STEP_SHIFT 26
_Static_assert(WORKLOAD_MESSAGES == 1u << STEP_SHIFT, "messages fit into the immediate data");

static const struct workload_protocol *protocol_of(const struct workload_message *m)
{
    return &workload_protocols[m->protocol];
}

/* The host that posts step `s`. */
static unsigned poster(const struct workload_message *m, unsigned s)
{
    return protocol_of(m)->step[s].back ? m->dst : m->src;
}

/* The end of the connection that posts step `s`. */
static unsigned end_of(const struct workload_message *m, unsigned s)
{
    return poster(m, s) != (m->src < m->dst ? m->src : m->dst);
}

/* The connection that carries message `i`. */
static struct workload_conn *conn_of(const struct workload *w, uint32_t i)
{
    const struct workload_message *m = &w->message[i];
    uint32_t at = *workload_pair(w, m->src, m->dst);

    if (m->conn)
        return &w->conn[m->conn - 1];
    while (w->conn[at - 1].class != m->class)
        at = w->conn[at - 1].next;
    return &w->conn[at - 1 + i % w->c.qps];
}

/* --- Posting ---------------------------------------------------------------------------------- */

void workload_list_add(struct workload *w, struct workload_list *l, uint32_t i, bool sent)
{
    uint32_t *next = sent ? &w->message[l->tail].next_sent : &w->message[l->tail].next;

    *(sent ? &w->message[i].next_sent : &w->message[i].next) = WORKLOAD_NONE;
    if (l->head == WORKLOAD_NONE)
        l->head = i;
    else
        *next = i;
    l->tail = i;
}

static bool post(struct workload *w, struct workload_conn *n, uint32_t i, unsigned s, ns_t now)
{
    static const uint8_t opcodes[] = {[STEP_SEND] = WR_SEND,
                                      [STEP_WRITE] = WR_RDMA_WRITE,
                                      [STEP_WRITE_IMM] = WR_RDMA_WRITE_WITH_IMM,
                                      [STEP_READ] = WR_RDMA_READ};
    const struct workload_message *m = &w->message[i];
    const struct workload_step *st = &protocol_of(m)->step[s];
    unsigned end = end_of(m, s), at = st->back ? m->dst : m->src, other = st->back ? m->src : m->dst;
    uint64_t bytes = st->bytes == WORKLOAD_WHOLE ? m->bytes : st->bytes;
    struct sge piece = {.addr = WORKLOAD_IOVA + (st->back ? m->to : m->from), (uint32_t)bytes, w->lkey[at]};
    struct send_wr wr = {.wr_id = i | (uint64_t)s << 32,
                         .opcode = opcodes[st->op],
                         .flags = SEND_SIGNALED,
                         .sg_list = &piece,
                         .num_sge = bytes ? 1 : 0,
                         .imm_data = i | s << STEP_SHIFT,
                         .remote_addr = WORKLOAD_IOVA + (st->back ? m->from : m->to),
                         .rkey = w->rkey[other]};

    if (ep_post_send(w->s->ep[at], n->c->qp[end], &wr, now) < 0) {
        workload_fail(w, WC_GENERAL_ERR);
        return false;
    }
    if (st->op == STEP_SEND)
        workload_list_add(w, &n->sent[end], i, true);
    n->posted[end]++;
    w->under_way++;
    sim_touch(w->s, at);
    return true;
}

/* Post what waits, as far as there is room: of each message its next step, and those that follow it at once. */
static bool post_waiting(struct workload *w, struct workload_conn *n, unsigned end, ns_t now)
{
    struct workload_list *l = &n->waits[end];

    while (l->head != WORKLOAD_NONE && n->posted[end] < w->send_depth) {
        struct workload_message *m = &w->message[l->head];
        const struct workload_protocol *p = protocol_of(m);
        uint32_t i = l->head;
        uint8_t s = m->step++;
        if (m->step == p->steps || !p->step[m->step].at_once)
            l->head = m->next;
        if (!post(w, n, i, s, now))
            return false;
    }
    return true;
}

bool workload_go_on(struct workload *w, uint32_t i, ns_t now)
{
    struct workload_conn *n = conn_of(w, i);
    unsigned end = end_of(&w->message[i], w->message[i].step);

    workload_list_add(w, &n->waits[end], i, false);
    return post_waiting(w, n, end, now);
}

bool workload_send(struct workload *w, const struct workload_message *what, ns_t now)
{
    uint32_t i = w->n_messages;

    if (i == WORKLOAD_MESSAGES || !grow((void **)&w->message, i, sizeof *w->message)) {
        workload_fail(w, WC_GENERAL_ERR);
        return false;
    }
    w->message[i] = *what;
    w->message[i].posted = now;
    w->message[i].step = 0;
    if (!w->n_messages++)
        w->r.start = now;
    w->r.posted++;
    return w->nccl && !nccl_may_send(w, i) ? true : workload_go_on(w, i, now);
}

/* --- Completions ------------------------------------------------------------------------------ */

static void arrived(struct workload *w, uint32_t i, ns_t now)
{
    w->message[i].arrived = now;
    if (w->nccl)
        nccl_arrived(w, &w->message[i], now);
    if (w->coll)
        coll_arrived(w, &w->message[i], now);
    else if (w->schedule)
        schedule_arrived(w, &w->message[i], now);
    else if (w->matrix)
        matrix_arrived(w, w->message[i].flow, now);
}

static void finished(struct workload *w, uint32_t i, ns_t now)
{
    struct workload_message *m = &w->message[i];

    m->done = now;
    w->r.completed++;
    w->r.bytes += m->bytes;
    w->r.end = now;
    if (w->coll)
        coll_done(w, m, now);
    else if (w->schedule)
        schedule_done(w, m, now);
    else
        workload_flow_done(w, m->flow, now);
}

/* Step `s` of message `i` took effect at the host that did not post it (`at_peer`), or is complete for the one that
 * did: the next step waits for what its host sees. */
static void step_over(struct workload *w, uint32_t i, unsigned s, bool at_peer, ns_t now)
{
    const struct workload_protocol *p = protocol_of(&w->message[i]);
    bool read = p->step[s].op == STEP_READ, last = s + 1u == p->steps;

    if (s == p->there && at_peer != read)
        arrived(w, i, now);
    if (last && at_peer == workload_ends_at_source(p))
        finished(w, i, now);
    if (!last && !p->step[s + 1].at_once && at_peer == (p->step[s].back != p->step[s + 1].back))
        workload_go_on(w, i, now);
}

/* --- Copying ---------------------------------------------------------------------------------- */

/* An eager message that is being copied from its receive. */
struct copying {
    struct timer timer;
    uint32_t message;
};
struct copies {
    struct timers timers;
    uint32_t room; /* of the heap */
};

/* How much longer copying takes than receiving; both go on at the same time. */
static ns_t copy_time(const struct workload *w, const struct workload_message *m)
{
    uint64_t rate = fabric_host_rate(w->s->fabric, m->dst);
    unsigned __int128 bits = (unsigned __int128)m->bytes * 8 * NS_PER_S;

    return w->copy < rate ? (ns_t)(uint64_t)(bits / w->copy - bits / rate) : 0;
}

static bool copy(struct workload *w, uint32_t i, ns_t now)
{
    struct copies *c = w->copies ? w->copies : (w->copies = calloc(1, sizeof *w->copies));
    struct copying *x = c ? calloc(1, sizeof *x) : NULL;

    if (x && c->timers.n + 2 > c->room) {
        uint32_t room = c->room ? 2 * c->room : 64;
        struct timer_slot *heap = realloc(c->timers.heap, room * sizeof *heap);
        if (heap) {
            c->timers.heap = heap;
            c->room = room;
        }
    }
    if (!x || c->timers.n + 2 > c->room) {
        free(x);
        workload_fail(w, WC_GENERAL_ERR);
        return false;
    }
    x->message = i;
    w->under_way++;
    timer_set(&c->timers, &x->timer, now + copy_time(w, &w->message[i]));
    return true;
}

ns_t workload_copied(struct workload *w, ns_t now, ns_t next)
{
    struct timer *first = NULL;

    while (w->copies && (first = timers_first(&w->copies->timers)) && first->when <= now) {
        struct copying *x = TIMER_OF(first, struct copying, timer);
        uint32_t i = x->message;
        timer_stop(&w->copies->timers, first);
        free(x);
        w->under_way--;
        step_over(w, i, 0, true, now);
    }
    return first && first->when < next ? first->when : next;
}

void copies_free(struct copies *c)
{
    struct timer *first;

    while (c && (first = timers_first(&c->timers))) {
        timer_stop(&c->timers, first);
        free(TIMER_OF(first, struct copying, timer));
    }
    free(c ? c->timers.heap : NULL);
    free(c);
}

/* --- Completions, by kind --------------------------------------------------------------------- */

/* The connection of a completion. */
static struct workload_conn *conn_completed(const struct workload *w, unsigned host, const struct wc *wc)
{
    const struct endpoint *ep = w->s->ep[host];
    const struct sim_conn *c = ep_qp_user(ep, ep_qp_find(ep, wc->qpn));

    return &w->conn[c->number - 1];
}

static void received(struct workload *w, unsigned host, const struct wc *wc, ns_t now)
{
    struct workload_conn *n;
    struct workload_list *l;
    uint32_t i;

    if (wc->opcode == WC_RECV_RDMA_WITH_IMM) {
        step_over(w, wc->imm_data % WORKLOAD_MESSAGES, wc->imm_data >> STEP_SHIFT, true, now);
        return;
    }
    n = conn_completed(w, host, wc);
    l = &n->sent[n->host[0] == host];
    i = l->head;
    if (i == WORKLOAD_NONE) {
        workload_fail(w, WC_GENERAL_ERR);
        return;
    }
    l->head = w->message[i].next_sent;
    if (w->copy && w->message[i].protocol == PROTOCOL_EAGER)
        copy(w, i, now);
    else
        step_over(w, i, w->message[i].step - 1u, true, now);
}

void workload_completed(struct workload *w, unsigned host, const struct wc *wc, ns_t now)
{
    uint32_t i = (uint32_t)wc->wr_id;
    unsigned s = (unsigned)(wc->wr_id >> 32), end;
    struct workload_conn *n;

    if (wc->status != WC_SUCCESS) {
        workload_fail(w, (enum wc_status)wc->status);
        return;
    }
    if (UNLIKELY(w->nccl && nccl_is_cts(wc))) {
        w->under_way--;
        return;
    }
    if (wc->opcode == WC_RECV || wc->opcode == WC_RECV_RDMA_WITH_IMM) {
        received(w, host, wc, now);
        return;
    }
    n = conn_of(w, i);
    end = end_of(&w->message[i], s);
    n->posted[end]--;
    w->under_way--;
    post_waiting(w, n, end, now);
    step_over(w, i, s, false, now);
}
