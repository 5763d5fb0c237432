/* layer 3 (workload): collectives: ranks go from step to step, rounds follow each other, results are verified. */
#include "gen/workload/workload_impl.h"

#include <errno.h>
#include <stdlib.h>

/* --- Data ------------------------------------------------------------------------------------- */

unsigned coll_log2(unsigned n)
{
    unsigned k = 0;

    while (1u << k < n)
        k++;
    return k;
}

uint32_t coll_value(unsigned rank, uint64_t i)
{
    uint64_t z = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) + (rank + 1) * UINT64_C(0xbf58476d1ce4e5b9);

    return (uint32_t)((z ^ z >> 29) * UINT64_C(0x94d049bb133111eb) >> 32);
}

unsigned coll_factor_allreduce(unsigned n)
{
    return 2 * (n - 1);
}
unsigned coll_factor_others(unsigned n)
{
    return n - 1;
}
unsigned coll_factor_broadcast(unsigned n)
{
    return n;
}

void coll_add(struct coll *c, unsigned rank, uint64_t to, uint64_t from, uint64_t bytes)
{
    uint8_t *a = c->mem[rank] + to;
    const uint8_t *b = c->mem[rank] + from;

    for (uint64_t i = 0; i < bytes; i += 4) {
        uint32_t x, y;
        memcpy(&x, a + i, 4);
        memcpy(&y, b + i, 4);
        x += y;
        memcpy(a + i, &x, 4);
    }
}

bool coll_is_sum(const struct coll *c, unsigned rank, uint64_t at, uint64_t first, uint64_t bytes)
{
    return memcmp(c->mem[rank] + at, c->sum + first / 4, bytes) == 0;
}

bool coll_is_data(const struct coll *c, unsigned rank, uint64_t at, unsigned of, uint64_t first, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i += 4) {
        uint32_t v, want = coll_value(of, (first + i) / 4);
        memcpy(&v, c->mem[rank] + at + i, 4);
        if (v != want)
            return false;
    }
    return true;
}

bool coll_is_gathered(const struct coll *c, unsigned rank, unsigned first, unsigned blocks)
{
    for (unsigned of = first; of < first + blocks && of < c->n; of++)
        if (!coll_is_data(c, rank, of * c->block, of, of * c->block, c->block))
            return false;
    return true;
}

/* --- Setup ------------------------------------------------------------------------------------ */

static void init_sums(struct coll *c)
{
    for (uint64_t i = 0; i < c->bytes / 4; i++)
        for (unsigned r = 0; r < c->n; r++)
            c->sum[i] += coll_value(r, i);
}

/* Which messages come, and the connections that they take. */
static int plan(struct workload *w, struct coll *c, struct text_error *e)
{
    struct coll_move m;
    int r = 0;

    for (unsigned rank = 0; rank < c->n && r == 0; rank++)
        for (unsigned step = 0; step < c->steps && r == 0; step++)
            if (c->k->move(c, rank, step, &m)) {
                uint32_t parts = nccl_parts(w, m.bytes);
                if (parts > WORKLOAD_MESSAGES) {
                    text_fail(e, NULL, "a step takes more than %u messages", WORKLOAD_MESSAGES);
                    return -E2BIG;
                }
                c->waits[(size_t)m.to * c->steps + step] = parts;
                if (w->nccl)
                    nccl_expect(w, rank, m.bytes, c->iters);
                r = workload_connect(w, rank, m.to, WORKLOAD_CLASS, e);
            }
    return r;
}

static bool allocate(struct coll *c)
{
    size_t marks = (size_t)c->n * c->steps + 1;

    c->sum = calloc(c->bytes / 4 + 1, sizeof *c->sum);
    c->step = calloc(c->n, sizeof *c->step);
    c->begun = calloc(c->n, 1);
    c->sends = calloc(c->n, sizeof *c->sends);
    c->waits = calloc(marks, sizeof *c->waits);
    c->there = calloc(marks, sizeof *c->there);
    return c->sum && c->step && c->begun && c->sends && c->waits && c->there;
}

bool coll_append(struct workload *w, const struct workload_kind *kind, uint64_t size, uint64_t rounds,
                 struct text_error *e)
{
    const struct collective *k = kind->collective;
    struct coll *c = calloc(1, sizeof *c), **last = &w->colls;
    uint64_t cut = 4 * (uint64_t)w->n;

    text_fail(e, NULL, "out of memory");
    if (!c)
        return false;
    while (*last)
        last = &(*last)->next;
    *last = c;
    *c = (struct coll){.k = k, .name = kind->name, .n = w->n, .steps = k->steps(w->n), .iters = rounds};
    c->ordered = k->in_order ? k->in_order(w->n) : 0;
    c->bytes = k->empty ? 0 : (size + cut - 1) / cut * cut;
    c->block = c->bytes / w->n;
    if (k->power_of_two && w->n & (w->n - 1))
        return text_fail(e, NULL, "%s needs a power of two of hosts, not %u", kind->name, w->n);
    if (k->memory(c) + 4 > w->region)
        w->region = k->memory(c) + 4;
    if (w->region * w->n > WORKLOAD_MEMORY_MAX || !allocate(c))
        return false;
    init_sums(c);
    return plan(w, c, e) == 0;
}

int coll_open(struct workload *w, struct text_error *e)
{
    if (!w->colls && !coll_append(w, w->c.kind, w->c.size, w->c.iters, e))
        return -EINVAL;
    w->coll = w->colls;
    return 0;
}

void coll_free(struct coll *c)
{
    if (!c)
        return;
    coll_free(c->next);
    free(c->sum);
    free(c->step);
    free(c->begun);
    free(c->sends);
    free(c->waits);
    free(c->there);
    free(c);
}

/* --- Rounds ----------------------------------------------------------------------------------- */

static void count_round(struct coll *c, ns_t took)
{
    c->round_min = !c->rounds || took < c->round_min ? took : c->round_min;
    c->round_max = took > c->round_max ? took : c->round_max;
    c->round_sum += took;
    c->rounds++;
}

/* The message of a step, in parts if it is to be cut. */
static bool send_move(struct workload *w, unsigned rank, unsigned step, const struct coll_move *m, ns_t now)
{
    const struct workload_message what = {.src = (uint16_t)rank,
                                          .dst = (uint16_t)m->to,
                                          .flow = step,
                                          .class = WORKLOAD_CLASS,
                                          .bytes = m->bytes,
                                          .from = m->from_at,
                                          .to = m->to_at};
    uint32_t parts = nccl_parts(w, m->bytes);

    w->coll->under_way += parts;
    w->coll->sends[rank] += parts;
    for (uint32_t i = 0; i < parts; i++) {
        struct workload_message part = what;
        if (w->nccl)
            nccl_cut(w, i, &part);
        if (!workload_send(w, &part, now))
            return false;
    }
    return true;
}

/* The rank does what it can. */
static void go_on(struct workload *w, unsigned rank, ns_t now)
{
    struct coll *c = w->coll;

    while (c->step[rank] < c->steps) {
        uint32_t step = c->step[rank];
        size_t at = (size_t)rank * c->steps + step;
        struct coll_move m;
        if (!c->begun[rank] && step < c->ordered && c->sends[rank])
            return;
        if (!c->begun[rank]) {
            c->begun[rank] = 1;
            if (c->k->begin)
                c->k->begin(c, rank, step);
            if (c->k->move(c, rank, step, &m) && !send_move(w, rank, step, &m, now))
                return;
        }
        if (c->there[at] < c->waits[at])
            return;
        if (c->waits[at] && c->k->finish)
            c->k->finish(c, rank, step);
        c->step[rank]++;
        c->begun[rank] = 0;
    }
    if (--c->left == 0)
        count_round(c, now - c->began);
}

void coll_start(struct workload *w, ns_t now)
{
    struct coll *c = w->coll;

    memset(c->there, 0, (size_t)c->n * c->steps * sizeof *c->there);
    memset(c->begun, 0, c->n);
    memset(c->step, 0, c->n * sizeof *c->step);
    c->left = c->n;
    c->began = now;
    if (w->nccl)
        nccl_start(w, now);
    for (unsigned r = 0; r < c->n; r++) {
        uint32_t *data = (uint32_t *)(void *)c->mem[r];
        for (uint64_t i = 0; i < c->bytes / 4; i++)
            data[i] = coll_value(r, i);
        if (c->k->init)
            c->k->init(c, r);
    }
    for (unsigned r = 0; r < c->n; r++)
        go_on(w, r, now);
}

void coll_arrived(struct workload *w, const struct workload_message *m, ns_t now)
{
    struct coll *c = w->coll;

    c->there[(size_t)m->dst * c->steps + m->flow]++;
    if (c->step[m->dst] == m->flow)
        go_on(w, m->dst, now);
}

void coll_done(struct workload *w, const struct workload_message *m, ns_t now)
{
    struct coll *c = w->coll;

    c->sends[m->src]--;
    if (c->step[m->src] < c->ordered)
        go_on(w, m->src, now);
    if (--c->under_way || c->left)
        return;
    for (unsigned r = 0; r < c->n; r++) {
        bool right = c->k->right(c, r);
        c->wrong += !right;
        w->r.wrong += !right;
    }
    if (c->rounds == c->iters && !c->next) {
        w->over = true;
        return;
    }
    w->coll = c->rounds == c->iters ? c->next : c;
    coll_start(w, now);
}
