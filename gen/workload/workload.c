/* layer 3 (workload): memory, connections and messages of a workload; flows. */
#include "gen/workload/workload_impl.h"
#include "grow.h"

#include <errno.h>
#include <stdlib.h>

/* --- Connections ------------------------------------------------------------------------------ */

/* Receives of a new queue pair get memory, which all hosts share: nobody reads it. */
static int give_memory(struct workload *w, const struct sim_conn *c, unsigned end)
{
    unsigned h = c->host[end];
    struct sge piece = {.addr = WORKLOAD_IOVA, .length = w->bounce_bytes};
    int r = 0;

    if (!w->bounce && !(w->bounce = malloc(w->bounce_bytes)))
        return -ENOMEM;
    if (!w->bounce_key[h])
        r = ep_mr_reg(w->s->ep[h], w->pd[h], w->bounce, w->bounce_bytes, WORKLOAD_IOVA, ACCESS_LOCAL_WRITE,
                      &w->bounce_key[h]);
    piece.lkey = w->bounce_key[h];
    return r < 0 ? r : ep_qp_set_refill(w->s->ep[h], c->qp[end], &piece);
}

/* Create the queue pairs of a connection. */
static int open_conn(struct workload *w, struct workload_conn *n)
{
    struct sim_conn_config c = w->c.conn;
    int err;

    memcpy(c.host, n->host, sizeof c.host);
    c.max_send_wr = w->send_depth;
    c.max_recv_wr = WORKLOAD_RECV_DEPTH;
    c.max_inline = nccl_inline(w);
    for (unsigned i = 0; i < 2; i++) {
        c.psn[i] = (uint32_t)prng_next(&w->prng) & 0xffffff;
        c.pd[i] = w->pd[c.host[i]];
        if (n->class != WORKLOAD_CLASS) {
            c.peer[i].av.tclass = (uint8_t)(n->class << 5 | (c.peer[i].av.tclass & 0x1f));
            c.peer[i].av.sl = n->class;
        }
    }
    n->c = sim_conn_add(w->s, &c, &err);
    if (!n->c)
        return err;
    for (unsigned i = 0; i < 2 && w->bounce_bytes; i++)
        if ((err = give_memory(w, n->c, i)) < 0)
            return err;
    return sim_conn_join(w->s, n->c);
}

/* The queue pairs of all connections; few messages on each need few work requests. */
static int open_conns(struct workload *w)
{
    uint64_t most = w->n_flows ? 0 : WORKLOAD_SEND_DEPTH;
    int r = 0;

    for (uint32_t i = 0; i < w->n_flows; i++) {
        uint64_t share = w->flow[i].own ? w->flow[i].count : (w->flow[i].count + w->c.qps - 1) / w->c.qps;
        most = share > most ? share : most;
    }
    w->send_depth = most <= WORKLOAD_SEND_FEW ? WORKLOAD_SEND_FEW : WORKLOAD_SEND_DEPTH;
    for (uint32_t i = 0; i < w->n_conns && r == 0; i++)
        r = open_conn(w, &w->conn[i]);
    return r;
}

/* Add a connection, without its queue pairs. */
static int add_conn(struct workload *w, unsigned a, unsigned b, uint8_t class, struct text_error *e)
{
    struct workload_conn *n;

    if (w->n_conns == WORKLOAD_CONNS) {
        text_fail(e, NULL, "more than %u connections", WORKLOAD_CONNS);
        return -E2BIG;
    }
    if (!grow((void **)&w->conn, w->n_conns, sizeof *w->conn))
        return -ENOMEM;
    n = &w->conn[w->n_conns++];
    *n = (struct workload_conn){.host = {(uint16_t)(a < b ? a : b), (uint16_t)(a < b ? b : a)}, .class = class};
    for (unsigned i = 0; i < 2; i++)
        n->waits[i].head = n->sent[i].head = WORKLOAD_NONE;
    return 0;
}

int workload_connect(struct workload *w, unsigned a, unsigned b, uint8_t class, struct text_error *e)
{
    uint32_t *first = workload_pair(w, a, b), at, last = *first;
    int r = 0;

    for (at = *first; at; at = w->conn[at - 1].next) {
        if (w->conn[at - 1].class == class)
            return 0;
        last = at;
    }
    at = w->n_conns + 1;
    for (uint32_t i = 0; i < w->c.qps && r == 0; i++)
        r = add_conn(w, a, b, class, e);
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

/* --- Flows ------------------------------------------------------------------------------------ */

bool workload_flow(struct workload *w, const struct workload_flow *f, struct text_error *e)
{
    if (f->src == f->dst || f->src >= w->n || f->dst >= w->n)
        return text_fail(e, NULL, "a flow leads from one host to another");
    text_fail(e, NULL, "out of memory");
    if (!grow((void **)&w->flow, w->n_flows, sizeof *w->flow))
        return false;
    if (!f->own && workload_connect(w, f->src, f->dst, f->class, e) < 0)
        return false;
    if (f->own && add_conn(w, f->src, f->dst, f->class, e) < 0)
        return false;
    w->flow[w->n_flows] = *f;
    w->flow[w->n_flows++].conn = f->own ? w->n_conns : 0;
    if (f->bytes > w->region)
        w->region = f->bytes;
    return true;
}

/* Hand over the messages that the flow may have under way. */
static void flow_go_on(struct workload *w, uint32_t number, ns_t now)
{
    struct workload_flow *f = &w->flow[number];
    struct workload_message m = {
        .src = f->src, .dst = f->dst, .flow = number, .class = f->class, .conn = f->conn, .bytes = f->bytes};

    if (!f->sent)
        f->first = now;
    while (f->sent < f->count && f->sent - f->done < w->c.depth && !w->over) {
        f->sent++;
        m.protocol = f->others && prng_below(&w->prng, 100) < f->others ? f->other : f->protocol;
        workload_send(w, &m, now);
    }
}

void workload_flow_done(struct workload *w, uint32_t number, ns_t now)
{
    struct workload_flow *f = &w->flow[number];

    f->done++;
    f->last = now;
    flow_go_on(w, number, now);
    if (w->matrix)
        matrix_done(w, number, now);
}

void workload_flow_start(struct workload *w, uint32_t number, ns_t now)
{
    w->triggered++;
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

static void host_polled(void *user, unsigned host, ns_t now)
{
    struct workload *w = user;
    struct endpoint *ep = w->s->ep[host];
    struct wc wc[16];
    int n;

    for (int cq = 0; (cq = ep_cq_next(ep, cq)) >= 0; cq++)
        while ((n = ep_poll(ep, cq, wc, ARRAY_LEN(wc))) > 0)
            for (int i = 0; i < n; i++)
                workload_completed(w, host, &wc[i], now);
    if (w->nccl)
        nccl_poll(w, host, now);
}

static ns_t run(void *user, ns_t now)
{
    struct workload *w = user;
    ns_t next = NS_NEVER;

    if (w->schedule)
        next = schedule_run(w, now);
    else if (!w->coll)
        next = start_flows(w, now);
    else if (w->r.posted == 0)
        coll_start(w, now);
    if (w->copy)
        next = workload_copied(w, now, next);
    if (w->stats)
        stats_rows(w, now);
    sparks_note(w, now);
    w->s->idle_until = w->coll || w->schedule || w->copy || w->stats ? 0 : w->sparks.next;
    return next;
}

struct sim_app workload_app(struct workload *w)
{
    return (struct sim_app){.run = run, .host = host_polled, .user = w};
}

static bool all_done(const struct workload *w)
{
    bool started = !w->coll && !w->schedule && w->started + w->triggered == w->n_flows;
    bool flows = started && w->r.completed == w->r.posted && w->r.posted;

    return w->r.failed || ((w->over || flows) && !w->under_way);
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
    uint64_t most = w->coll ? 0 : w->region;

    for (const struct coll *c = w->colls; c; c = c->next)
        most = c->bytes > most ? c->bytes : most;
    return most;
}

/* --- Setup ------------------------------------------------------------------------------------ */

#define PERIOD 65536 /* bytes after which the data of messages repeat themselves */

static void fill(uint8_t *to, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes && i < PERIOD; i++)
        to[i] = (uint8_t)(i ^ i >> 8);
    for (uint64_t done = PERIOD; done < bytes; done += PERIOD)
        memcpy(to + done, to, bytes - done < PERIOD ? bytes - done : PERIOD);
}

/* Memory of the hosts: of a collective each has its own; the messages of flows are all alike. */
static int allocate(struct workload *w)
{
    uint64_t bytes = (w->region > WORKLOAD_HEADER ? w->region : WORKLOAD_HEADER) + 8;

    for (unsigned h = 0; h < w->n; h++) {
        int r;
        w->mem[h] = h && !w->coll ? w->mem[0] : calloc(1, bytes);
        if (!w->mem[h])
            return -ENOMEM;
        r = ep_mr_reg(w->s->ep[h], w->pd[h], w->mem[h], bytes, WORKLOAD_IOVA, ACCESS_LOCAL_WRITE | ACCESS_REMOTE,
                      &w->lkey[h]);
        if (r < 0)
            return r;
        w->rkey[h] = w->lkey[h];
    }
    for (struct coll *c = w->colls; c; c = c->next)
        c->mem = w->mem;
    if (!w->coll)
        fill(w->mem[0], w->region);
    return 0;
}

static int open_all(struct workload *w, struct text_error *e)
{
    bool keys;
    int r;

    w->mem = calloc(w->n, sizeof *w->mem);
    w->lkey = calloc(w->n, sizeof *w->lkey);
    w->rkey = calloc(w->n, sizeof *w->rkey);
    w->pair = calloc((size_t)w->n * w->n, sizeof *w->pair);
    w->pd = calloc(w->n, sizeof *w->pd);
    w->bounce_key = calloc(w->n, sizeof *w->bounce_key);
    keys = w->lkey && w->rkey && w->bounce_key;
    if (!keys || !w->mem || !w->pd || !w->pair)
        return -ENOMEM;
    for (unsigned h = 0; h < w->n; h++)
        w->pd[h] = ep_pd_alloc(w->s->ep[h]);
    if (w->c.kind->prepare && !w->c.kind->prepare(w, w->c.args, e))
        return -EINVAL;
    if (w->c.kind->tasks)
        r = schedule_open(w, e);
    else if (w->c.kind->flows)
        r = w->c.kind->flows(w, w->c.args, e) ? sort_flows(w) ? 0 : -ENOMEM : -EINVAL;
    else
        r = coll_open(w, e);
    r = r < 0 ? r : open_conns(w);
    r = r < 0 ? r : allocate(w);
    return r < 0 || !w->nccl ? r : nccl_open(w);
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
    for (unsigned h = 0; w->mem && h < (w->colls ? w->n : 1); h++)
        free(w->mem[h]);
    coll_free(w->colls);
    schedule_free(w->schedule);
    copies_free(w->copies);
    matrix_free(w->matrix);
    free(w->sizes);
    nccl_free(w->nccl);
    free(w->bounce);
    free(w->bounce_key);
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
