/* layer 3 (workload): the connection matrices of htsim (.cm): flows, and triggers by which the end of one starts
 * others.
 *
 *     Nodes 4
 *     Connections 3
 *     Triggers 1
 *     0->1 id 1 start 0 size 4096 send_done_trigger 7        start: picoseconds
 *     2->1 id 2 start 1000000 size 4096 recv_done_trigger 7  or when the receiver has all of it
 *     1->3 id 3 trigger 7 size 100
 *     trigger id 7 barrier count 2                           oneshot, multishot (one more each time it fires), barrier
 */
#include "gen/workload/workload_impl.h"
#include "grow.h"

#include <stdlib.h>

#define TRIGGERS_MAX (1u << 22) /* the largest number of one */

enum trigger_kind { TRIGGER_UNKNOWN, TRIGGER_ONESHOT, TRIGGER_MULTISHOT, TRIGGER_BARRIER };

struct trigger {
    uint8_t kind;         /* enum trigger_kind */
    bool fires;           /* a flow fires it */
    uint32_t left;        /* barrier: how often it must fire yet */
    uint32_t first, last; /* flows that it starts, the next one first, by number + 1; 0: none */
};

/* Of a flow; triggers by their numbers, 0: none. */
struct matrix_flow {
    uint32_t waits, sent, received; /* for which it waits, which it fires when it is done, when it has arrived */
    uint32_t next;                  /* of those that wait for the same, by number + 1 */
};

struct matrix {
    struct matrix_flow *flow; /* as the workload's */
    uint32_t n_flows;
    struct trigger *trigger; /* by number */
    uint32_t n_triggers;     /* room */
    uint32_t defined;
    uint64_t connections, triggers; /* as the file says */
};

void matrix_free(struct matrix *m)
{
    if (!m)
        return;
    free(m->flow);
    free(m->trigger);
    free(m);
}

/* --- Reading ---------------------------------------------------------------------------------- */

static struct trigger *trigger_of(struct matrix *m, const struct token *t, uint32_t *number, struct text_error *e)
{
    struct trigger *all = m->trigger;
    uint64_t v;

    if (!token_u64(t, &v) || !v || v > TRIGGERS_MAX) {
        text_fail(e, t, "expected the number of a trigger, 1 to %u", TRIGGERS_MAX);
        return NULL;
    }
    if (v >= m->n_triggers) {
        uint32_t room = v < TRIGGERS_MAX / 2 ? 2 * (uint32_t)v + 64 : TRIGGERS_MAX + 1;
        if (!(all = realloc(all, room * sizeof *all))) {
            text_fail(e, NULL, "out of memory");
            return NULL;
        }
        memset(all + m->n_triggers, 0, (room - m->n_triggers) * sizeof *all);
        m->trigger = all;
        m->n_triggers = room;
    }
    *number = (uint32_t)v;
    return &all[v];
}

static bool fired(struct matrix *m, const struct token *t, uint32_t *number, struct text_error *e)
{
    struct trigger *g = trigger_of(m, t, number, e);

    if (g)
        g->fires = true;
    return g != NULL;
}

/* Flow number `flow` waits for a trigger. */
static bool wait_for(struct matrix *m, const struct token *t, struct matrix_flow *own, uint32_t flow,
                     struct text_error *e)
{
    struct trigger *g;

    if (own->waits)
        return text_fail(e, t, "a connection waits for one trigger");
    if (!(g = trigger_of(m, t, &own->waits, e)))
        return false;
    *(g->last ? &m->flow[g->last - 1].next : &g->first) = flow + 1;
    g->last = flow + 1;
    return true;
}

/* Picoseconds; what is below one is left out. */
static bool parse_ps(const struct token *t, ns_t *time)
{
    struct token whole, rest;
    uint64_t ps;

    token_cut(t, '.', &whole, &rest);
    if (!token_u64(&whole, &ps) || ps / 1000 > (uint64_t)TOPO_TIME_MAX)
        return false;
    *time = (ns_t)(ps / 1000);
    return true;
}

/* A word of a connection and its value. */
static bool flow_word(struct workload *w, const struct token *t, struct workload_flow *f, struct matrix_flow *own,
                      struct text_error *e)
{
    uint64_t any;

    if (token_is(&t[0], "start"))
        return parse_ps(&t[1], &f->start) || text_fail(e, &t[1], "expected picoseconds");
    if (token_is(&t[0], "size"))
        return (token_u64(&t[1], &f->bytes) && f->bytes && f->bytes <= WORKLOAD_BYTES) ||
               text_fail(e, &t[1], "expected bytes, 1 to 1G: a flow has an end");
    if (token_is(&t[0], "trigger"))
        return wait_for(w->matrix, &t[1], own, w->n_flows, e);
    if (token_is(&t[0], "send_done_trigger"))
        return fired(w->matrix, &t[1], &own->sent, e);
    if (token_is(&t[0], "recv_done_trigger"))
        return fired(w->matrix, &t[1], &own->received, e);
    if (token_is(&t[0], "id") || token_is(&t[0], "prio"))
        return token_u64(&t[1], &any) || text_fail(e, &t[1], "expected a number");
    return text_fail(e, &t[0], "expected id, start, size, trigger, send_done_trigger, recv_done_trigger or prio");
}

/* "0->15" */
static bool parse_ends(const struct workload *w, const struct token *t, struct workload_flow *f, struct text_error *e)
{
    const char *arrow = memmem(t->p, t->len, "->", 2);
    struct token src = *t, dst = *t;
    int a, b;

    src.len = (uint32_t)(arrow - t->p);
    dst.p = arrow + 2;
    dst.len = t->len - src.len - 2;
    a = workload_host(w, &src);
    b = workload_host(w, &dst);
    if (a < 0 || b < 0)
        return text_fail(e, t, "there is no host '%.*s'", (int)(a < 0 ? src.len : dst.len), a < 0 ? src.p : dst.p);
    f->src = (uint16_t)a;
    f->dst = (uint16_t)b;
    return true;
}

static bool connection_line(struct workload *w, const struct token *t, unsigned n, struct text_error *e)
{
    struct matrix *m = w->matrix;
    struct workload_flow f = {.class = WORKLOAD_CLASS, .count = 1, .start = NS_NEVER, .own = true};
    struct matrix_flow *own;

    if (!grow((void **)&m->flow, m->n_flows, sizeof *m->flow))
        return text_fail(e, NULL, "out of memory");
    own = &m->flow[m->n_flows++];
    *own = (struct matrix_flow){0};
    if (!parse_ends(w, &t[0], &f, e))
        return false;
    for (unsigned i = 1; i < n; i += 2)
        if (i + 1 == n)
            return text_fail(e, &t[i], "a word without a value");
        else if (!flow_word(w, &t[i], &f, own, e))
            return false;
    if ((f.start == NS_NEVER) != (own->waits != 0) || !f.bytes)
        return text_fail(e, NULL, "expected 'SRC->DST start PS size BYTES', or 'SRC->DST trigger N size BYTES'");
    return workload_flow(w, &f, e);
}

static bool trigger_line(struct matrix *m, const struct token *t, unsigned n, struct text_error *e)
{
    static const char *const names[] = {
        [TRIGGER_ONESHOT] = "oneshot", [TRIGGER_MULTISHOT] = "multishot", [TRIGGER_BARRIER] = "barrier"};
    struct trigger *g = n >= 4 && token_is(&t[1], "id") ? trigger_of(m, &t[2], &(uint32_t){0}, e) : NULL;
    uint64_t count = 0;
    uint8_t kind = TRIGGER_BARRIER;

    if (n < 4 || !token_is(&t[1], "id"))
        return text_fail(e, NULL, "expected 'trigger id N oneshot', 'multishot' or 'barrier count N'");
    if (!g)
        return false;
    while (kind && !token_is(&t[3], names[kind]))
        if (--kind == TRIGGER_UNKNOWN)
            return text_fail(e, &t[3], "expected oneshot, multishot or barrier");
    if (g->kind)
        return text_fail(e, &t[2], "there is this trigger already");
    if (kind == TRIGGER_BARRIER && (n < 6 || !token_u64(&t[5], &count) || !count || count > WORKLOAD_CONNS))
        return text_fail(e, NULL, "expected 'barrier count N'");
    g->kind = kind;
    g->left = (uint32_t)count;
    m->defined++;
    return true;
}

static bool head_line(struct workload *w, const struct token *t, unsigned n, struct text_error *e)
{
    uint64_t v;

    if (n != 2 || !token_u64(&t[1], &v))
        return text_fail(e, NULL, "expected 'Nodes N', 'Connections N', 'Triggers N', a connection or a trigger");
    if (token_is(&t[0], "Nodes"))
        return v <= w->n || text_fail(e, &t[1], "more nodes than hosts, of which there are %u", w->n);
    if (token_is(&t[0], "Connections"))
        w->matrix->connections = v;
    else if (token_is(&t[0], "Triggers"))
        w->matrix->triggers = v;
    else if (!token_is(&t[0], "Failures") || v)
        return text_fail(e, &t[0],
                         "expected Nodes, Connections or Triggers (--fabric 'link A B down=TIME': a failure)");
    return true;
}

static bool matrix_line(struct workload *w, unsigned number, const struct token *t, unsigned n, struct text_error *e)
{
    (void)number;
    if (memmem(t[0].p, t[0].len, "->", 2))
        return connection_line(w, t, n, e);
    return token_is(&t[0], "trigger") ? trigger_line(w->matrix, t, n, e) : head_line(w, t, n, e);
}

/* The file is whole: it has what it says, and each trigger is one that a flow fires. */
static bool is_whole(const struct workload *w, struct text_error *e)
{
    const struct matrix *m = w->matrix;

    if (w->n_flows != m->connections || m->defined != m->triggers)
        return text_fail(e, NULL, "the file says %llu connections and %llu triggers, and has %u and %u",
                         (unsigned long long)m->connections, (unsigned long long)m->triggers, w->n_flows, m->defined);
    for (uint32_t i = 0; i < m->n_triggers; i++) {
        const struct trigger *g = &m->trigger[i];
        if ((g->fires || g->first) && !g->kind)
            return text_fail(e, NULL, "trigger %u is not described", i);
        if (g->first && !g->fires)
            return text_fail(e, NULL, "no connection fires trigger %u", i);
    }
    return w->n_flows > 0 || text_fail(e, NULL, "the file has no connections");
}

bool matrix_flows(struct workload *w, const char *args, struct text_error *e)
{
    (void)args;
    w->matrix = calloc(1, sizeof *w->matrix);
    if (!w->matrix)
        return text_fail(e, NULL, "out of memory");
    return workload_lines(w, e, matrix_line) && is_whole(w, e);
}

/* --- Playing ---------------------------------------------------------------------------------- */

static void start_next(struct workload *w, struct trigger *g, ns_t now)
{
    uint32_t flow = g->first - 1;

    g->first = w->matrix->flow[flow].next;
    workload_flow_start(w, flow, now);
}

/* A flow fires a trigger; 0: none. */
static void fire(struct workload *w, uint32_t number, ns_t now)
{
    struct trigger *g = &w->matrix->trigger[number];

    if (!number || (g->kind == TRIGGER_BARRIER && g->left && --g->left))
        return;
    do
        if (g->first)
            start_next(w, g, now);
    while (g->first && g->kind != TRIGGER_MULTISHOT);
}

void matrix_arrived(struct workload *w, uint32_t flow, ns_t now)
{
    fire(w, w->matrix->flow[flow].received, now);
}

void matrix_done(struct workload *w, uint32_t flow, ns_t now)
{
    fire(w, w->matrix->flow[flow].sent, now);
}
