/* layer 3 (workload): memory, connections and messages of a workload; flows. */
#include "gen/workload/workload_impl.h"
#include "grow.h"

#include <errno.h>
#include <stdlib.h>

/* --- Connections ------------------------------------------------------------------------------ */

static uint32_t *pair_of(const struct workload *w, unsigned a, unsigned b)
{
    return &w->pair[a < b ? (size_t)a * w->n + b : (size_t)b * w->n + a];
}

static int add_conn(struct workload *w, unsigned a, unsigned b, uint8_t class)
{
    struct sim_conn_config c = w->c.conn;
    struct workload_conn *n;
    int err;

    if (!grow((void **)&w->conn, w->n_conns, sizeof *w->conn))
        return -ENOMEM;
    n = &w->conn[w->n_conns];
    *n = (struct workload_conn){.class = class, .head = {WORKLOAD_NONE, WORKLOAD_NONE}};
    c.host[0] = (uint16_t)(a < b ? a : b);
    c.host[1] = (uint16_t)(a < b ? b : a);
    c.max_send_wr = WORKLOAD_SEND_DEPTH;
    c.max_recv_wr = WORKLOAD_RECV_DEPTH;
    for (unsigned i = 0; i < 2; i++) {
        c.psn[i] = (uint32_t)prng_next(&w->prng) & 0xffffff;
        c.pd[i] = w->pd[c.host[i]];
        if (class != WORKLOAD_CLASS) {
            c.peer[i].av.tclass = (uint8_t)(class << 5 | (c.peer[i].av.tclass & 0x1f));
            c.peer[i].av.sl = class;
        }
    }
    n->c = sim_conn_add(w->s, &c, &err);
    if (!n->c)
        return err;
    w->n_conns++;
    return sim_conn_join(w->s, n->c);
}

int workload_connect(struct workload *w, unsigned a, unsigned b, uint8_t class, struct text_error *e)
{
    uint32_t *first = pair_of(w, a, b), at, last = *first;
    int r = 0;

    for (at = *first; at; at = w->conn[at - 1].next) {
        if (w->conn[at - 1].class == class)
            return 0;
        last = at;
    }
    if (w->c.qps > WORKLOAD_CONNS - w->n_conns) {
        text_fail(e, NULL, "more than %u connections", WORKLOAD_CONNS);
        return -E2BIG;
    }
    at = w->n_conns + 1;
    for (uint32_t i = 0; i < w->c.qps && r == 0; i++)
        r = add_conn(w, a, b, class);
    if (last && r == 0)
        w->conn[last - 1].next = at;
    else if (r == 0)
        *first = at;
    return r;
}

/* --- Messages --------------------------------------------------------------------------------- */

void workload_fail(struct workload *w, enum wc_status status)
{
    if (!w->r.failed++)
        w->r.first_error = (uint8_t)status;
    w->over = true;
}

static bool post(struct workload *w, struct workload_conn *n, unsigned end, uint32_t i, ns_t now)
{
    const struct workload_message *m = &w->message[i];
    struct sge piece = {.addr = WORKLOAD_IOVA + m->from, .length = (uint32_t)m->bytes, .lkey = w->lkey[m->src]};
    struct send_wr wr = {.wr_id = i,
                         .opcode = WR_RDMA_WRITE_WITH_IMM,
                         .flags = SEND_SIGNALED,
                         .sg_list = &piece,
                         .num_sge = m->bytes ? 1 : 0,
                         .imm_data = i,
                         .remote_addr = WORKLOAD_IOVA + m->to,
                         .rkey = w->rkey[m->dst]};

    if (ep_post_send(w->s->ep[m->src], n->c->qp[end], &wr, now) < 0) {
        workload_fail(w, WC_GENERAL_ERR);
        return false;
    }
    n->posted[end]++;
    sim_touch(w->s, m->src);
    return true;
}

/* Post what waits, as far as there is room. */
static bool post_waiting(struct workload *w, struct workload_conn *n, unsigned end, ns_t now)
{
    while (n->head[end] != WORKLOAD_NONE && n->posted[end] < WORKLOAD_SEND_DEPTH) {
        uint32_t i = n->head[end];
        n->head[end] = w->message[i].next;
        if (!post(w, n, end, i, now))
            return false;
    }
    return true;
}

/* The connection that carries message `i`. */
static struct workload_conn *conn_of(const struct workload *w, uint32_t i)
{
    const struct workload_message *m = &w->message[i];
    uint8_t class = w->coll ? WORKLOAD_CLASS : w->flow[m->flow].class;
    uint32_t at = *pair_of(w, m->src, m->dst);

    while (w->conn[at - 1].class != class)
        at = w->conn[at - 1].next;
    return &w->conn[at - 1 + i % w->c.qps];
}

bool workload_send(struct workload *w, const struct workload_message *what, ns_t now)
{
    uint32_t i = w->n_messages;
    struct workload_conn *n;
    unsigned end = what->src > what->dst;

    if (i == WORKLOAD_MESSAGES || !grow((void **)&w->message, i, sizeof *w->message)) {
        workload_fail(w, WC_GENERAL_ERR);
        return false;
    }
    w->message[i] = *what;
    w->message[i].posted = now;
    w->message[i].next = WORKLOAD_NONE;
    if (!w->n_messages++)
        w->r.start = now;
    w->r.posted++;
    n = conn_of(w, i);
    if (n->head[end] == WORKLOAD_NONE)
        n->head[end] = i;
    else
        w->message[n->tail[end]].next = i;
    n->tail[end] = i;
    return post_waiting(w, n, end, now);
}

/* --- Flows ------------------------------------------------------------------------------------ */

bool workload_flow(struct workload *w, const struct workload_flow *f, struct text_error *e)
{
    if (f->src == f->dst || f->src >= w->n || f->dst >= w->n)
        return text_fail(e, NULL, "a flow leads from one host to another");
    text_fail(e, NULL, "out of memory");
    if (!grow((void **)&w->flow, w->n_flows, sizeof *w->flow) || workload_connect(w, f->src, f->dst, f->class, e) < 0)
        return false;
    w->flow[w->n_flows++] = *f;
    if (f->bytes > w->region)
        w->region = f->bytes;
    return true;
}

/* Hand over the messages that the flow may have under way. */
static void flow_go_on(struct workload *w, uint32_t number, ns_t now)
{
    struct workload_flow *f = &w->flow[number];
    const struct workload_message m = {.src = f->src, .dst = f->dst, .flow = number, .bytes = f->bytes};

    if (!f->sent)
        f->first = now;
    while (f->sent < f->count && f->sent - f->done < w->c.depth && !w->over) {
        f->sent++;
        workload_send(w, &m, now);
    }
}

static void flow_done(struct workload *w, uint32_t number, ns_t now)
{
    struct workload_flow *f = &w->flow[number];

    f->done++;
    f->last = now;
    flow_go_on(w, number, now);
}

/* Start the flows whose time has come; returns the time of the next one. */
static ns_t start_flows(struct workload *w, ns_t now)
{
    while (w->started < w->n_flows) {
        uint32_t number = w->by_start[w->started];
        if (w->flow[number].start > now)
            return w->flow[number].start;
        w->started++;
        flow_go_on(w, number, now);
    }
    return NS_NEVER;
}

static int compare_start(const void *a, const void *b, void *user)
{
    const struct workload_flow *flow = user;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    if (flow[x].start != flow[y].start)
        return flow[x].start < flow[y].start ? -1 : 1;
    return x < y ? -1 : x > y;
}

static bool sort_flows(struct workload *w)
{
    w->by_start = malloc((w->n_flows + 1) * sizeof *w->by_start);
    if (!w->by_start)
        return false;
    for (uint32_t i = 0; i < w->n_flows; i++)
        w->by_start[i] = i;
    qsort_r(w->by_start, w->n_flows, sizeof *w->by_start, compare_start, w->flow);
    return true;
}

/* --- The application -------------------------------------------------------------------------- */

static void completed(struct workload *w, unsigned host, const struct wc *wc, ns_t now)
{
    bool receive = wc->opcode == WC_RECV || wc->opcode == WC_RECV_RDMA_WITH_IMM;
    uint64_t i = receive ? wc->imm_data : wc->wr_id;
    struct workload_message *m;
    struct workload_conn *n;

    if (wc->status != WC_SUCCESS || i >= w->n_messages) {
        workload_fail(w, (enum wc_status)wc->status);
        return;
    }
    m = &w->message[i];
    if (receive) {
        m->arrived = now;
        if (w->coll)
            coll_arrived(w, m, now);
        return;
    }
    m->done = now;
    w->r.completed++;
    w->r.bytes += m->bytes;
    w->r.end = now;
    n = conn_of(w, (uint32_t)i);
    n->posted[m->src > m->dst]--;
    post_waiting(w, n, m->src > m->dst, now);
    if (w->coll)
        coll_done(w, m, now);
    else
        flow_done(w, m->flow, now);
    (void)host;
}

static void host_polled(void *user, unsigned host, ns_t now)
{
    struct workload *w = user;
    struct endpoint *ep = w->s->ep[host];
    struct wc wc[16];
    int n;

    for (int cq = 0; (cq = ep_cq_next(ep, cq)) >= 0; cq++)
        while ((n = ep_poll(ep, cq, wc, ARRAY_LEN(wc))) > 0)
            for (int i = 0; i < n; i++)
                completed(w, host, &wc[i], now);
}

static ns_t run(void *user, ns_t now)
{
    struct workload *w = user;
    ns_t next = NS_NEVER;

    if (!w->coll)
        next = start_flows(w, now);
    else if (w->r.posted == 0)
        coll_start(w, now);
    if (w->stats)
        stats_rows(w, now);
    sparks_note(w, now);
    return next;
}

struct sim_app workload_app(struct workload *w)
{
    return (struct sim_app){.run = run, .host = host_polled, .user = w};
}

static bool all_done(const struct workload *w)
{
    return w->over || (!w->coll && w->started == w->n_flows && w->r.completed == w->r.posted && w->r.posted);
}

void workload_run(struct workload *w)
{
    ns_t limit = w->c.time_limit && w->c.time_limit < WORKLOAD_TIME ? w->c.time_limit : WORKLOAD_TIME;

    while (!all_done(w) && sim_step(w->s, limit))
        continue;
    w->r.gave_up = !all_done(w);
    if (w->stats)
        stats_rows(w, NS_NEVER);
}

const struct workload_result *workload_result(const struct workload *w)
{
    return &w->r;
}

uint64_t workload_bytes(const struct workload *w)
{
    return w->coll ? w->coll->bytes : w->region;
}

/* --- Setup ------------------------------------------------------------------------------------ */

/* Memory of the hosts: of a collective each has its own; the messages of flows are all alike. */
static int allocate(struct workload *w)
{
    for (unsigned h = 0; h < w->n; h++) {
        int r;
        w->mem[h] = h && !w->coll ? w->mem[0] : calloc(1, w->region + 8);
        if (!w->mem[h])
            return -ENOMEM;
        r = ep_mr_reg(w->s->ep[h], w->pd[h], w->mem[h], w->region + 8, WORKLOAD_IOVA,
                      ACCESS_LOCAL_WRITE | ACCESS_REMOTE, &w->lkey[h]);
        if (r < 0)
            return r;
        w->rkey[h] = w->lkey[h];
    }
    if (w->coll)
        w->coll->mem = w->mem;
    else
        for (uint64_t i = 0; i < w->region; i++)
            w->mem[0][i] = (uint8_t)(i ^ i >> 8);
    return 0;
}

static int open_all(struct workload *w, struct text_error *e)
{
    int r;

    w->mem = calloc(w->n, sizeof *w->mem);
    w->lkey = calloc(w->n, sizeof *w->lkey);
    w->rkey = calloc(w->n, sizeof *w->rkey);
    w->pair = calloc((size_t)w->n * w->n, sizeof *w->pair);
    w->pd = calloc(w->n, sizeof *w->pd);
    if (!w->mem || !w->lkey || !w->rkey || !w->pd || !w->pair)
        return -ENOMEM;
    for (unsigned h = 0; h < w->n; h++)
        w->pd[h] = ep_pd_alloc(w->s->ep[h]);
    if (w->c.kind->flows)
        r = w->c.kind->flows(w, w->c.args, e) ? sort_flows(w) ? 0 : -ENOMEM : -EINVAL;
    else
        r = coll_open(w, e);
    return r < 0 ? r : allocate(w);
}

struct workload *workload_new(struct sim *s, const struct workload_config *c, struct text_error *e)
{
    struct workload *w = calloc(1, sizeof *w);
    int r;

    text_fail(e, NULL, "out of memory");
    if (!w)
        return NULL;
    w->s = s;
    w->c = *c;
    w->n = s->n_hosts;
    prng_seed(&w->prng, c->seed * 7919 + 17);
    r = open_all(w, e);
    if (r == 0)
        return w;
    workload_free(w);
    return NULL;
}

void workload_free(struct workload *w)
{
    if (!w)
        return;
    for (unsigned h = 0; w->mem && h < (w->coll ? w->n : 1); h++)
        free(w->mem[h]);
    coll_free(w->coll);
    free(w->mem);
    free(w->lkey);
    free(w->rkey);
    free(w->pd);
    free(w->pair);
    free(w->conn);
    free(w->message);
    free(w->flow);
    free(w->by_start);
    free(w->told);
    free(w);
}
